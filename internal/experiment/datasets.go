package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
)

// datasets are those of the pool of a volume, as the operations of a run leave them, each with the names of its snapshots. The root dataset
// has the empty path.
type datasets map[v1alpha1.DatasetPath][]v1alpha1.SnapshotName

// checkDatasets follows the operations of a run in their order. One that names what is not there would fail in each repetition, after the
// fill of each.
func checkDatasets(slot *Slot) error {
	var problems []error
	pools := map[string]datasets{}
	all := slot.volumes()
	for _, pool := range volume.Pools(all) {
		one := datasets{"": nil}
		for _, on := range volume.On(all, pool.Name) {
			if pools[on.Name] = one; on.MadeIn == "" {
				one[naming.RunDataset(on.Name)], one[volume.Of(on).Dataset(on).Path] = nil, nil
			}
		}
	}
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		on := string(volumeOf(phase))
		for _, action := range operate.Of(phase) {
			if problem := pools[on].after(action, pools); problem != "" {
				problems = append(problems, slot.atPhase(i, &SpecError{v1alpha1.ReasonSpecInvalid, fmt.Sprintf(
					"phase %s of variant %q: %s on the pool of volume %s: %s", phase.Name, slot.Variant, operate.Name(*action), on, problem)}))
			}
		}
	}
	return errors.Join(problems...)
}

// after changes the datasets as the action does, or says why it would fail, and what to write instead.
func (d datasets) after(action *v1alpha1.PoolAction, pools map[string]datasets) (problem string) {
	switch {
	case action.Snapshot != nil:
		return cmp.Or(d.missing(action.Snapshot.Dataset), d.snapshot(action.Snapshot))
	case action.Clone != nil:
		return cmp.Or(d.missing(action.Clone.Dataset), d.unsnapped(action.Clone.Dataset, action.Clone.Snapshot), d.add(writesTo(action)))
	case action.Replicate != nil:
		return cmp.Or(d.missing(action.Replicate.Dataset), pools[string(action.Replicate.ToVolume)].add(writesTo(action)))
	case action.Copy != nil:
		to := d
		if volume := action.Copy.ToVolume; volume != "" {
			to = pools[string(volume)]
		}
		if action.Copy.As != "" {
			return cmp.Or(d.missing(action.Copy.Dataset), to.add(writesTo(action)))
		}
		return cmp.Or(d.missing(action.Copy.Dataset), to.receive(action.Copy))
	case action.SetProperty != nil:
		return d.missing(action.SetProperty.Dataset)
	case action.LayoutScore != nil:
		return d.missing(action.LayoutScore.Dataset)
	case action.DestroyDataset != nil:
		if problem = d.missing(action.DestroyDataset.Dataset); problem == "" {
			d.remove(action.DestroyDataset.Dataset)
		}
		return problem
	}
	return "" // the others name no dataset
}

// writesTo is the dataset that an action makes or writes to. That of a volume has the name of the volume.
func writesTo(action *v1alpha1.PoolAction) v1alpha1.DatasetPath {
	if name, _, _ := operate.As(action); name != "" {
		return naming.RunDataset(string(name))
	}
	return operate.To(action)
}

// missing says that there is no such dataset.
func (d datasets) missing(path v1alpha1.DatasetPath) string {
	if _, known := d[path]; known {
		return ""
	}
	var names []string
	for name := range d {
		if name != "" {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("there is no dataset %q by then: name one of these: %s", path, strings.Join(names, ", "))
}

// unsnapped says that a dataset has no such snapshot.
func (d datasets) unsnapped(path v1alpha1.DatasetPath, name v1alpha1.SnapshotName) string {
	if slices.Contains(d[path], name) {
		return ""
	}
	return fmt.Sprintf("dataset %s has no snapshot %q by then: take it in an earlier phase, with operate: {snapshot: {dataset: %s, name: %s}}",
		path, name, path, name)
}

func (d datasets) snapshot(action *v1alpha1.SnapshotAction) string {
	if slices.Contains(d[action.Dataset], action.Name) {
		return fmt.Sprintf("an earlier phase has taken snapshot %s of this dataset: choose another name", action.Name)
	}
	for path := range d {
		if path == action.Dataset || action.Recursive && below(path, action.Dataset) {
			d[path] = append(d[path], action.Name)
		}
	}
	return ""
}

// receive takes the files of a copy, into a dataset that exists or a new one.
func (d datasets) receive(action *v1alpha1.CopyAction) string {
	if _, known := d[action.To]; !known {
		return d.add(action.To)
	}
	if len(action.Properties) > 0 {
		return fmt.Sprintf("dataset %s exists by then, and copy sets properties only on a dataset that it creates: write another path in to, "+
			"or use setProperty in an earlier phase", action.To)
	}
	return ""
}

func (d datasets) add(path v1alpha1.DatasetPath) string {
	if _, known := d[path]; known {
		return fmt.Sprintf("dataset %s exists by then: choose another path in to, or another name in as", path)
	}
	d[path] = nil
	return ""
}

func (d datasets) remove(path v1alpha1.DatasetPath) {
	for name := range d {
		if name == path || below(name, path) {
			delete(d, name)
		}
	}
}

// below says whether a dataset is a descendant of another one.
func below(path, ancestor v1alpha1.DatasetPath) bool {
	return path != ancestor && (ancestor == "" || strings.HasPrefix(string(path), string(ancestor)+"/"))
}
