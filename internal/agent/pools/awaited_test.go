package pools

import (
	"slices"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// awaitedState is a pool whose spec awaits dataset fresh, and that has such a dataset with a mark.
func awaitedState(mark, source string, is zfs.Dataset) State {
	state := liveState()
	state.Pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "fresh", Type: "Filesystem", Mounted: true, Awaited: true}}
	is.Name, is.Type = "bench0/fresh", "filesystem"
	state.Live.Datasets = append(state.Live.Datasets, is)
	if mark != "" {
		state.Live.DatasetProperties = append(state.Live.DatasetProperties,
			zfs.Property{Object: is.Name, Name: naming.PropertyOperation, Value: mark, Source: source})
	}
	state.Finished = map[string]bool{"op": true}
	return state
}

// TestAwaitedDatasets: a dataset that an operation of this pool has completed is mounted, and remounted if necessary. Any other dataset of
// that name is left alone, and prevents the destruction of the pool like any foreign dataset.
func TestAwaitedDatasets(t *testing.T) {
	ours := naming.MountPoint("bench0", "fresh")
	for name, test := range map[string]struct {
		mark, source   string
		is             zfs.Dataset
		does           string
		arrived, other bool
	}{
		"just completed":           {"op", "local", zfs.Dataset{MountPoint: "none"}, "AddFinalizer SetProperties", false, false},
		"with its mount point":     {"op", "local", zfs.Dataset{MountPoint: ours}, "AddFinalizer MountDataset", false, false},
		"mounted":                  {"op", "local", zfs.Dataset{MountPoint: ours, Mounted: true}, "AddFinalizer", true, false},
		"not complete yet":         {"another", "local", zfs.Dataset{MountPoint: "none"}, "AddFinalizer", false, false},
		"of others":                {"", "", zfs.Dataset{MountPoint: "/x", Mounted: true}, "AddFinalizer", false, true},
		"with an inherited mark":   {"op", "inherited from bench0", zfs.Dataset{MountPoint: "none"}, "AddFinalizer", false, true},
		"with a received mark":     {"op", "received", zfs.Dataset{MountPoint: "none"}, "AddFinalizer", false, true},
		"mounted by others, there": {"", "", zfs.Dataset{MountPoint: ours, Mounted: true}, "AddFinalizer", false, true},
	} {
		state := awaitedState(test.mark, test.source, test.is)
		decision := Plan(state)
		if got := poolKinds(decision); got != test.does {
			t.Errorf("%s: %s, want %s (%s)", name, got, test.does, decision.Message)
		}
		if arrived := slices.Equal(state.Arrived(), []string{"bench0/fresh"}); arrived != test.arrived {
			t.Errorf("%s: arrived %v", name, state.Arrived())
		}
		if others := foreignDatasets(state); (len(others) == 1) != test.other {
			t.Errorf("%s: of others are %v", name, others)
		}
	}
	state := awaitedState("op", "local", zfs.Dataset{MountPoint: ours, Mounted: true})
	if state.Unplaced = []string{"bench0/fresh"}; len(state.Arrived()) > 0 {
		t.Error("what is not visible on the node has arrived")
	}
	state = awaitedState("op", "local", zfs.Dataset{MountPoint: ours})
	if state.Finished = nil; poolKinds(Plan(state)) != "AddFinalizer MountDataset" || state.Unfinished() {
		t.Errorf("complete, without its operation: %s", poolKinds(Plan(state)))
	}
	state = awaitedState("op", "local", zfs.Dataset{MountPoint: "none"})
	if state.Finished = nil; poolKinds(Plan(state)) != "AddFinalizer" || len(state.Arrived()) > 0 || !state.Unfinished() {
		t.Errorf("without its operation: %s", poolKinds(Plan(state)))
	}
	state.Live.Datasets = state.Live.Datasets[:1]
	if decision := Plan(state); poolKinds(decision) != "AddFinalizer" || decision.Phase != PoolDone {
		t.Errorf("before it is there: %+v", decision)
	}
	if state = awaitedState("", "", zfs.Dataset{MountPoint: "none"}); state.Unfinished() {
		t.Error("a dataset of others is waited for")
	}
}
