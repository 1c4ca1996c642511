package pools

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// datasetMarks returns the user properties of a new dataset, or nil for a pool that serves only one run.
func datasetMarks(pool *v1alpha1.BenchmarkPool) map[string]string {
	if !naming.KeptPool(pool) {
		return nil
	}
	return map[string]string{naming.PropertyUID: string(pool.UID), naming.PropertyRun: pool.Labels[v1alpha1.LabelRunUID]}
}

// localMark returns a user property that is set on the dataset itself, or "" if there is none: an inherited or received property proves
// nothing.
func (l *LivePool) localMark(dataset, name string) string {
	if mark, found := l.Property(dataset, name); found && mark.Local() {
		return mark.Value
	}
	return ""
}

// OutdatedDataset returns a dataset of a kept pool that still belongs to another run, or nil if there is none. A dataset without both local
// marks belongs to others and is not reset.
func (s State) OutdatedDataset() *zfs.Dataset {
	if s.Live == nil || !naming.KeptPool(s.Pool) {
		return nil
	}
	for _, dataset := range s.Pool.Spec.Datasets {
		name := naming.DatasetName(s.Pool, dataset)
		at := slices.IndexFunc(s.Live.Datasets, func(d zfs.Dataset) bool { return d.Name == name })
		run := s.Live.localMark(name, naming.PropertyRun)
		if at >= 0 && s.ours(name) && run != s.Pool.Labels[v1alpha1.LabelRunUID] {
			return &s.Live.Datasets[at]
		}
	}
	return nil
}

// ours reports whether this BenchmarkPool created a dataset of its kept pool for one of its runs.
func (s State) ours(dataset string) bool {
	uid := string(s.Pool.UID)
	return uid != "" && s.Live.localMark(dataset, naming.PropertyUID) == uid && s.Live.localMark(dataset, naming.PropertyRun) != ""
}

// strangers returns the objects on a kept pool that only others can have created: datasets that are not in the spec or lack the marks, and
// snapshots.
func (s State) strangers() []string {
	var others []string
	for _, dataset := range s.Live.Datasets {
		named := slices.ContainsFunc(s.Pool.Spec.Datasets, func(d v1alpha1.PoolDataset) bool {
			return naming.DatasetName(s.Pool, d) == dataset.Name
		})
		if dataset.Name != s.Live.Name && (!named || !s.ours(dataset.Name)) {
			others = append(others, dataset.Name)
		}
	}
	return append(others, s.Live.Snapshots...)
}

// resetDatasets prepares a kept pool for its current run. Depending on its reset, the dataset of the previous run is destroyed and
// recreated in the next step, or passed on with its data and the properties of the spec.
func resetDatasets(state State) *Decision {
	if !naming.KeptPool(state.Pool) {
		return nil
	}
	if others := state.strangers(); len(others) > 0 && !state.resetDone() {
		return new(stall(v1alpha1.ReasonPoolDatasetsRemain,
			"pool %s has datasets or snapshots that this BenchmarkPool did not create: %s. They stay, and no run starts: move them, or "+
				"destroy it",
			state.Live.Name, objects.SomeOf(others)))
	}
	outdated, run := state.OutdatedDataset(), state.Pool.Labels[v1alpha1.LabelRunUID]
	switch policy := v1alpha1.ResetPolicy(state.Pool.Labels[v1alpha1.LabelReset]); {
	case outdated == nil:
		return awaitFreed(state)
	case run == "" || policy != v1alpha1.ResetDataset && policy != v1alpha1.ResetNone:
		return new(stall(v1alpha1.ReasonPoolDrifted, "the label %s=%s or %s=%s of the object was not set by the operator: nothing is reset",
			v1alpha1.LabelReset, policy, v1alpha1.LabelRunUID, run))
	case policy == v1alpha1.ResetNone:
		return new(act(fmt.Sprintf("passing on dataset %s with its data", outdated.Name),
			Action{Kind: SetPoolProperties, GUID: state.Live.GUID,
				Settings: append(state.setBack(outdated.Name), naming.Setting{Dataset: outdated.Name, Name: naming.PropertyRun, Value: run})}))
	case len(state.Users) > 0:
		return &Decision{Reason: v1alpha1.ReasonPoolInUse, Recheck: poolSoon,
			Message: fmt.Sprintf("waiting until dataset %s of the previous run is unused: %s", outdated.Name, objects.SomeOf(state.Users))}
	}
	return new(act("destroying dataset "+outdated.Name+" of the previous run", Action{Kind: DestroyDataset, GUID: state.Live.GUID,
		Dataset: zfs.DatasetSpec{Name: outdated.Name}, DatasetGUID: outdated.GUID}))
}

// resetDone reports whether all datasets exist and belong to the current run. Objects that others create later are reported when the next
// run starts, or when the pool is to be destroyed.
func (s State) resetDone() bool {
	return !slices.ContainsFunc(s.Pool.Spec.Datasets, func(dataset v1alpha1.PoolDataset) bool {
		name := naming.DatasetName(s.Pool, dataset)
		return !s.ours(name) || s.Live.localMark(name, naming.PropertyRun) != s.Pool.Labels[v1alpha1.LabelRunUID]
	})
}

// awaitFreed waits, before a dataset is recreated, until ZFS has freed the space of the destroyed one: ZFS does that in the background,
// which would influence a measurement.
func awaitFreed(state State) *Decision {
	if state.Live.FreeingBytes == 0 || state.resetDone() {
		return nil
	}
	return &Decision{Reason: v1alpha1.ReasonPoolChanging, Recheck: poolFreed,
		Message: fmt.Sprintf("pool %s is still freeing %d bytes of the dataset of the previous run", state.Live.Name, state.Live.FreeingBytes)}
}
