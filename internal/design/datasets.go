package design

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
)

// datasets are the datasets on the pool of a volume, as the operations of a run change them. The root dataset has the empty path.
type datasets map[v1alpha1.DatasetPath]dataset

type dataset struct {
	snapshots []v1alpha1.SnapshotName
	// received is true if it also has snapshots whose names the agent chose.
	received bool
	// origin is the snapshot that it is a clone of.
	origin snapshot
	// declared is true if it belongs to a volume of the target, gone if an operation has destroyed it. The name of a destroyed dataset
	// stays taken: the agent would recreate the dataset, and pods mount the dataset with this name as the declared volume.
	declared, gone bool
}

type snapshot struct {
	of   v1alpha1.DatasetPath
	name v1alpha1.SnapshotName
}

// checkDatasets follows the operations of a run in their order and reports those on missing datasets or snapshots. Such an operation would
// fail in each repetition, only after the fill.
func checkDatasets(slot *Slot) error {
	var problems []error
	pools := map[string]datasets{}
	all := slot.Volumes()
	for _, pool := range volume.Pools(all) {
		one := datasets{"": {}}
		for _, on := range volume.On(all, pool.Name) {
			if pools[on.Name] = one; on.MadeIn == "" {
				one[naming.RunDataset(on.Name)] = dataset{declared: true}
				one[volume.Of(on).Dataset(on).Path] = dataset{declared: true}
			}
		}
	}
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		on := string(VolumeOf(phase))
		for _, action := range operate.Of(phase) {
			if problem := pools[on].after(action, pools); problem != "" {
				problems = append(problems, slot.refusePhase(i, "phase %s of variant %q: %s on the pool of volume %s: %s", phase.Name, slot.Variant,
					operate.Name(*action), on, problem))
			}
		}
	}
	return errors.Join(problems...)
}

// after changes the datasets as the action does, or says why the action would fail and what to write instead.
func (d datasets) after(action *v1alpha1.PoolAction, pools map[string]datasets) (problem string) {
	if named := operate.Dataset(action); named != nil {
		if missing := d.missing(*named); missing != "" {
			return missing
		}
	}
	switch {
	case action.Snapshot != nil:
		return d.snapshot(action.Snapshot)
	case action.Clone != nil:
		origin := snapshot{action.Clone.Dataset, action.Clone.Snapshot}
		return cmp.Or(d.unsnapped(origin), d.add(writesTo(action), dataset{origin: origin}))
	case action.DestroySnapshot != nil:
		one := snapshot{action.DestroySnapshot.Dataset, action.DestroySnapshot.Name}
		return cmp.Or(d.unsnapped(one), d.destroySnapshot(one))
	case action.Replicate != nil:
		return pools[string(action.Replicate.ToVolume)].add(writesTo(action), dataset{received: true})
	case action.Copy != nil:
		to := d
		if volume := action.Copy.ToVolume; volume != "" {
			to = pools[string(volume)]
		}
		if action.Copy.As != "" {
			return to.add(writesTo(action), dataset{})
		}
		return to.receive(action.Copy)
	case action.DestroyDataset != nil:
		return d.destroy(action.DestroyDataset)
	}
	return "" // the other actions change no datasets
}

// writesTo is the dataset that an action makes or writes to. The dataset of a volume has the name of the volume.
func writesTo(action *v1alpha1.PoolAction) v1alpha1.DatasetPath {
	if name, _, _ := operate.As(action); name != "" {
		return naming.RunDataset(string(name))
	}
	return operate.To(action)
}

// missing returns a problem if there is no such dataset.
func (d datasets) missing(path v1alpha1.DatasetPath) string {
	if one, known := d[path]; known && !one.gone {
		return ""
	}
	var names []string
	for name, one := range d {
		if name != "" && !one.gone {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("dataset %q does not exist at that point: name one of these: %s", path, strings.Join(names, ", "))
}

// unsnapped returns a problem if a dataset has no such snapshot.
func (d datasets) unsnapped(one snapshot) string {
	if slices.Contains(d[one.of].snapshots, one.name) {
		return ""
	}
	return fmt.Sprintf("dataset %s has no snapshot %q by then: take it in an earlier phase, with operate: {snapshot: {dataset: %s, name: %s}}",
		one.of, one.name, one.of, one.name)
}

func (d datasets) snapshot(action *v1alpha1.SnapshotAction) string {
	if slices.Contains(d[action.Dataset].snapshots, action.Name) {
		return fmt.Sprintf("an earlier phase has taken snapshot %s of this dataset: choose another name", action.Name)
	}
	for path, one := range d {
		if path == action.Dataset || action.Recursive && below(path, action.Dataset) {
			one.snapshots = append(one.snapshots, action.Name)
			d[path] = one
		}
	}
	return ""
}

// receive applies a copy to an existing or a new dataset, or says why the copy would fail.
func (d datasets) receive(action *v1alpha1.CopyAction) string {
	if one, known := d[action.To]; !known || one.gone {
		return d.add(action.To, dataset{})
	}
	if len(action.Properties) > 0 {
		return fmt.Sprintf("dataset %s exists by then, and copy sets properties only on a dataset that it creates: write another path in to, "+
			"or use setProperty in an earlier phase", action.To)
	}
	return ""
}

func (d datasets) add(path v1alpha1.DatasetPath, one dataset) string {
	before, known := d[path]
	switch {
	case known && before.gone:
		return fmt.Sprintf("dataset %s is declared in the target, although an earlier phase destroys it: choose another path in to", path)
	case known:
		return fmt.Sprintf("dataset %s exists by then: choose another path in to, or another name in as", path)
	}
	d[path] = one
	return ""
}

// destroy removes a dataset and, with recursion, everything below it. Without recursion, ZFS refuses a dataset with children or snapshots.
// It always refuses to destroy a dataset with clones elsewhere.
func (d datasets) destroy(action *v1alpha1.DestroyDatasetAction) string {
	goes := func(path v1alpha1.DatasetPath) bool { return path == action.Dataset || below(path, action.Dataset) }
	for _, path := range slices.Sorted(maps.Keys(d)) {
		one := d[path]
		if one.gone {
			continue
		}
		if goes(path) && !action.Recursive && (path != action.Dataset || len(one.snapshots) > 0 || one.received) {
			return fmt.Sprintf("dataset %s has snapshots or datasets of its own by then: write recursive: true, which destroys these too",
				action.Dataset)
		}
		if !goes(path) && one.origin.name != "" && goes(one.origin.of) {
			return fmt.Sprintf("dataset %s is a clone of a snapshot of %s by then: destroy the clone in an earlier phase", path, one.origin.of)
		}
	}
	for path, one := range d {
		switch {
		case !goes(path):
		case one.declared:
			d[path] = dataset{declared: true, gone: true}
		default:
			delete(d, path)
		}
	}
	return ""
}

func (d datasets) destroySnapshot(gone snapshot) string {
	for _, path := range slices.Sorted(maps.Keys(d)) {
		if d[path].origin == gone {
			return fmt.Sprintf("dataset %s is a clone of this snapshot by then: destroy the clone in an earlier phase", path)
		}
	}
	one := d[gone.of]
	one.snapshots = slices.DeleteFunc(one.snapshots, func(name v1alpha1.SnapshotName) bool { return name == gone.name })
	d[gone.of] = one
	return ""
}

// below reports whether a dataset is a descendant of another one.
func below(path, ancestor v1alpha1.DatasetPath) bool {
	return path != ancestor && (ancestor == "" || strings.HasPrefix(string(path), string(ancestor)+"/"))
}
