package pools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// ReportedDataset returns the full name of a dataset of another component whose properties are reported too, or "" if there is none.
func ReportedDataset(pool *v1alpha1.BenchmarkPool) string {
	if path := pool.Annotations[v1alpha1.AnnotationReport]; path != "" {
		return naming.PoolName(pool) + "/" + path
	}
	return ""
}

// WantedSettings returns all properties of the spec, in a stable order.
func WantedSettings(pool *v1alpha1.BenchmarkPool) []naming.Setting {
	var wanted []naming.Setting
	add := func(dataset string, properties v1alpha1.Properties) {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			wanted = append(wanted, naming.Setting{Dataset: dataset, Name: name, Value: string(properties[name])})
		}
	}
	add("", pool.Spec.Properties)
	add(naming.PoolName(pool), pool.Spec.RootProperties)
	for _, dataset := range pool.Spec.Datasets {
		add(naming.DatasetName(pool, dataset), dataset.Properties)
	}
	return wanted
}

// withoutProperties marks a new pool whose root properties are not set yet. With the generation 0, those of the datasets are not set yet.
const withoutProperties = "new"

// rootProperties sets the properties of the root dataset of a new pool, also those that are equal to the default of this release of ZFS. It
// comes before the datasets: some properties matter when a dataset is mounted.
func rootProperties(state State) *Decision {
	root := state.Live.Name
	if mark, _ := state.Live.Property(root, naming.PropertyGeneration); mark.Value != withoutProperties {
		return nil
	}
	var wanted []naming.Setting
	for _, setting := range WantedSettings(state.Pool) {
		if setting.Dataset == root && !settings.Once(setting.Name) {
			wanted = append(wanted, setting)
		}
	}
	wanted = append(wanted, naming.Setting{Dataset: root, Name: naming.PropertyGeneration, Value: "0"})
	return new(act("setting the properties of pool "+root, Action{Kind: SetPoolProperties, GUID: state.Live.GUID, Settings: wanted}))
}

// poolDatasets creates the first missing dataset, parents before children. It also mounts or unmounts existing datasets, and reports those
// that differ from the spec in type or size.
func poolDatasets(state State) *Decision {
	datasets := slices.Clone(state.Pool.Spec.Datasets)
	slices.SortFunc(datasets, func(a, b v1alpha1.PoolDataset) int { return strings.Compare(string(a.Path), string(b.Path)) })
	for _, dataset := range datasets {
		name := naming.DatasetName(state.Pool, dataset)
		at := slices.IndexFunc(state.Live.Datasets, func(d zfs.Dataset) bool { return d.Name == name })
		if dataset.Awaited && (at < 0 || !state.finished(dataset)) {
			continue // an operation has to create or complete it, or it belongs to others
		}
		if at >= 0 {
			if is, asked := state.Live.Datasets[at].Type, strings.ToLower(dataset.Type); asked != "" && is != asked {
				return new(stall(v1alpha1.ReasonPoolDrifted, "dataset %s is a %s, not a %s: destroy it, or choose another path", name, is,
					asked))
			}
			if decision := otherSize(state, dataset, name); decision != nil {
				return decision
			}
			if decision := mountWanted(state, dataset, state.Live.Datasets[at]); decision != nil {
				return decision
			}
			continue
		}
		spec := zfs.DatasetSpec{Name: name, Properties: plain(dataset.Properties)}
		maps.Copy(spec.Properties, datasetMarks(state.Pool))
		if dataset.Mounted {
			maps.Copy(spec.Properties, zfs.Unmounted())
		}
		if dataset.Size != nil {
			spec.VolumeBytes = dataset.Size.Value()
		}
		return new(act("making dataset "+name, Action{Kind: CreateDataset, GUID: state.Live.GUID, Dataset: spec}))
	}
	return nil
}

// largestBlock is the largest unit to which ZFS rounds up the size of a volume.
const largestBlock = 16 << 20

// otherSize reports a volume whose size differs from the spec. The size is not changed: shrinking a volume loses the data at its end.
func otherSize(state State, dataset v1alpha1.PoolDataset, name string) *Decision {
	if dataset.Size == nil {
		return nil
	}
	is, _ := state.Live.Property(name, "volsize")
	asked := dataset.Size.Value()
	if size, err := strconv.ParseInt(is.Value, 10, 64); err == nil && size >= asked && size < asked+largestBlock {
		return nil
	}
	return new(stall(v1alpha1.ReasonPoolDrifted,
		"volume %s has %s bytes instead of %d: the size of a volume cannot change; choose another path", name, is.Value, asked))
}

// poolProperties sets the properties of a new generation. Differences from a generation that was already set are drift, which is repaired
// or reported, as the spec says.
func poolProperties(state State) *Decision {
	var differing []naming.Setting
	var words []string
	for _, wanted := range state.InForce() {
		is, found := state.Live.Property(wanted.Dataset, wanted.Name)
		if found && zfs.SameValue(wanted.Value, is.Value) {
			continue
		}
		differing = append(differing, wanted)
		words = append(words, difference(state.Live.Name, wanted, is, found))
	}
	isSet := state.specIsSet()
	if isSet && len(differing) == 0 {
		return nil
	}
	if isSet && state.Pool.Spec.Drift != "Repair" {
		return new(stall(v1alpha1.ReasonPoolDrifted, "pool %s was changed: %s. Change it back, change the spec, or set spec.drift: Repair",
			state.Live.Name, strings.Join(words, "; ")))
	}
	// The mark comes last: it says that all others are set.
	changes := differing
	if !isSet { // a newer spec overrides the changes by operations
		for _, dataset := range state.Pool.Spec.Datasets {
			for _, back := range state.setBack(naming.DatasetName(state.Pool, dataset)) {
				if !slices.Contains(changes, back) {
					changes = append(changes, back)
				}
			}
		}
	}
	changes = append(changes, naming.Setting{Dataset: state.Live.Name, Name: naming.PropertyGeneration,
		Value: strconv.FormatInt(state.Pool.Generation, 10)})
	message := "setting the properties of pool " + state.Live.Name
	if len(words) > 0 {
		message += ": " + strings.Join(words, "; ")
	}
	decision := act(message, Action{Kind: SetPoolProperties, GUID: state.Live.GUID, Settings: changes})
	if isSet {
		// Another component may change the value back each time, or ZFS may format it differently. So do not retry at once.
		decision.Recheck = poolSoon
	}
	return &decision
}

// specIsSet reports whether the properties of this generation of the spec have been set.
func (s State) specIsSet() bool {
	mark, _ := s.Live.Property(s.Live.Name, naming.PropertyGeneration)
	return mark.Local() && mark.Value == strconv.FormatInt(s.Pool.Generation, 10)
}

func difference(pool string, wanted naming.Setting, is zfs.Property, found bool) string {
	object := cmp.Or(wanted.Dataset, "pool "+pool)
	if !found {
		return fmt.Sprintf("%s of %s does not exist, requested is %s (write names as 'zfs get' prints them)", wanted.Name, object, wanted.Value)
	}
	return fmt.Sprintf("%s of %s is %s (%s), requested is %s", wanted.Name, object, is.Value, is.Source, wanted.Value)
}
