package pools

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// datasetMarks are the user properties that a dataset is made with: none on a pool that serves one run and goes with it.
func datasetMarks(pool *v1alpha1.BenchmarkPool) map[string]string {
	if !naming.KeptPool(pool) {
		return nil
	}
	return map[string]string{naming.PropertyUID: string(pool.UID), naming.PropertyRun: pool.Labels[v1alpha1.LabelRunUID]}
}

// localMark is a user property that is set on a dataset itself: what is inherited or received proves nothing.
func (l *LivePool) localMark(dataset, name string) string {
	if mark, found := l.Property(dataset, name); found && mark.Local() {
		return mark.Value
	}
	return ""
}

// OutdatedDataset is a dataset of a kept pool that is still another run's; nil if there is none. Unless both of its marks are its own, it
// is a stranger's, and none of this one's to reset.
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

// ours says whether a dataset of a kept pool was made by its BenchmarkPool, for one of its runs.
func (s State) ours(dataset string) bool {
	uid := string(s.Pool.UID)
	return uid != "" && s.Live.localMark(dataset, naming.PropertyUID) == uid && s.Live.localMark(dataset, naming.PropertyRun) != ""
}

// strangers are what nobody but somebody else can have made on a kept pool: datasets that the spec does not name or that carry no marks,
// and snapshots.
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

// resetDatasets makes a kept pool ready for the run that has it now: as its reset says, the dataset of the run before is destroyed, so that
// the next step recreates it, or is handed on with what is on it.
func resetDatasets(state State) *Decision {
	if !naming.KeptPool(state.Pool) {
		return nil
	}
	if others := state.strangers(); len(others) > 0 && !state.resetDone() {
		decision := stall(v1alpha1.ReasonPoolDatasetsRemain,
			"there is on pool %s what this BenchmarkPool has not made: %s. It is left alone, and no run begins beside it: move it elsewhere, or "+
				"destroy it",
			state.Live.Name, SomeOf(others))
		return &decision
	}
	outdated, run := state.OutdatedDataset(), state.Pool.Labels[v1alpha1.LabelRunUID]
	switch policy := v1alpha1.ResetPolicy(state.Pool.Labels[v1alpha1.LabelReset]); {
	case outdated == nil:
		return awaitFreed(state)
	case run == "" || policy != v1alpha1.ResetDataset && policy != v1alpha1.ResetNone:
		decision := stall(v1alpha1.ReasonPoolDrifted, "the label %s=%s or %s=%s of the object is not one of the operator's: nothing is reset",
			v1alpha1.LabelReset, policy, v1alpha1.LabelRunUID, run)
		return &decision
	case policy == v1alpha1.ResetNone:
		decision := act(fmt.Sprintf("handing on dataset %s with what is on it", outdated.Name),
			Action{Kind: SetPoolProperties, GUID: state.Live.GUID,
				Settings: []naming.Setting{{Dataset: outdated.Name, Name: naming.PropertyRun, Value: run}}})
		return &decision
	case len(state.Users) > 0:
		return &Decision{Reason: v1alpha1.ReasonPoolInUse, Recheck: poolSoon,
			Message: fmt.Sprintf("waiting until nobody uses dataset %s of the run before: %s", outdated.Name, SomeOf(state.Users))}
	}
	decision := act("destroying dataset "+outdated.Name+" of the run before", Action{Kind: DestroyDataset, GUID: state.Live.GUID,
		Dataset: zfs.DatasetSpec{Name: outdated.Name}, DatasetGUID: outdated.GUID})
	return &decision
}

// resetDone says that all datasets are there and the present run's: what somebody makes beside them from then on is reported when the next
// run is to begin, or the pool to go.
func (s State) resetDone() bool {
	return !slices.ContainsFunc(s.Pool.Spec.Datasets, func(dataset v1alpha1.PoolDataset) bool {
		name := naming.DatasetName(s.Pool, dataset)
		return !s.ours(name) || s.Live.localMark(name, naming.PropertyRun) != s.Pool.Labels[v1alpha1.LabelRunUID]
	})
}

// awaitFreed waits, before a dataset is recreated, until what was destroyed is free: ZFS frees in the background, and a run would measure
// that too.
func awaitFreed(state State) *Decision {
	if state.Live.FreeingBytes == 0 || state.resetDone() {
		return nil
	}
	return &Decision{Reason: v1alpha1.ReasonPoolChanging, Recheck: poolFreed,
		Message: fmt.Sprintf("pool %s still frees %d bytes of the dataset of the run before", state.Live.Name, state.Live.FreeingBytes)}
}
