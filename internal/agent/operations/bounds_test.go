package operations

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/operate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/zfs"
)

var (
	scoreAction     = v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{Dataset: "a"}}
	snapshotAction  = v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Dataset: "a", Name: "s"}}
	cloneAction     = v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "a", Snapshot: "s", To: "c"}}
	replicateAction = v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "a", ToPool: "bench1", To: "c"}}
)

// unhindered is a state in which nothing prevents an operation from starting.
func unhindered(action v1alpha1.PoolAction) State {
	state := operationState(action)
	source := zfs.Dataset{Name: "bench0/a", Type: "filesystem", GUID: "5"}
	state.Source = Object{Name: source.Name, Exists: true, Dataset: source}
	state.Parameter = ParameterState{Grants: txgGrant, Found: true}
	switch {
	case action.Copy != nil:
		state.Target = Object{Name: "bench0/b", Exists: true, Dataset: source, Empty: true}
	case action.Clone != nil, action.DestroySnapshot != nil:
		state.Snapshot = Object{Name: "bench0/a@s", Exists: true, Dataset: zfs.Dataset{GUID: "6", UsedBytes: 4096}}
	case action.Replicate != nil:
		state.ToPool = state.Pool.DeepCopy()
		state.ToPool.Name, state.ToLive = "bench1", &Pool{PoolSummary: zfs.PoolSummary{Name: "bench1", GUID: "701"}}
	}
	return state
}

// TestNothingBeginsPastItsDeadline: an agent that comes back after a week destroys nothing that has become valuable since.
func TestNothingBeginsPastItsDeadline(t *testing.T) {
	for _, action := range []v1alpha1.PoolAction{scrubAction, trimAction, replaceAction, removeAction, addAction, offlineAction, exportAction, observeAction,
		copyAction, setAction,
		mapAction, destroyAction, forgetAction, scoreAction, snapshotAction, cloneAction, replicateAction} {
		t.Run(operate.Name(action), func(t *testing.T) {
			at := func(after time.Duration) State {
				state := unhindered(action)
				state.Operation.Spec.Deadline = &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Hour}}
				kstatus.SetProgressing(&state.Operation.Status.Conditions, 1, v1alpha1.ReasonQueued, "waiting for PoolOperation other")
				state.Now = operationStart.Add(after)
				return state
			}
			if decision := Plan(at(time.Hour - time.Second)); !decision.Begin {
				t.Errorf("in time, it does not begin: %+v", decision)
			}
			late := decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDeadlineExceeded,
				"did not start within its deadline of 1h0m0s, and nothing was done"}
			for _, after := range []time.Duration{time.Hour, 7 * 24 * time.Hour} {
				decision := Plan(at(after))
				late.diff(t, decision)
				if decision.Begin || !strings.Contains(decision.Message, "spec.deadline") ||
					!strings.Contains(decision.Message, "waiting for PoolOperation other") {
					t.Errorf("%+v", decision)
				}
			}
			// The same holds if the pool could not be observed, or if it has another UID.
			blind := at(2 * time.Hour)
			blind.Pool, blind.Live, blind.ToPool, blind.Source = nil, nil, nil, Object{}
			late.diff(t, Plan(blind))
			cancelled := at(2 * time.Hour)
			cancelled.Operation.Spec.Cancel = true
			decided{"", v1alpha1.OutcomeCancelled, v1alpha1.ReasonCancelled, "before it started"}.diff(t, Plan(cancelled))
			deleted := at(2 * time.Hour)
			deleted.Operation.DeletionTimestamp = &metav1.Time{Time: operationStart}
			decided{"RemoveFinalizer", "", v1alpha1.ReasonCancelled, ""}.diff(t, Plan(deleted))
		})
	}
}

// TestBegunPastItsDeadlineDoesNotRun: the agent ended between the record of the start and the command.
func TestBegunPastItsDeadlineDoesNotRun(t *testing.T) {
	state := begun(destroyAction, "5")
	dataset("5", 0)(&state)
	decided{"AddFinalizer NoteBegun Run", "", v1alpha1.ReasonOperationRunning, "destroying"}.diff(t, Plan(state))
	state.Now = operationStart.Add(7 * 24 * time.Hour)
	decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDeadlineExceeded, "deadline"}.diff(t, Plan(state))
}

// TestWorkThatEndsItsAgentIsGivenUp: each agent process is recorded before it begins the work, and the third one does not begin it.
func TestWorkThatEndsItsAgentIsGivenUp(t *testing.T) {
	for _, action := range []v1alpha1.PoolAction{scoreAction, copyAction, mapAction, destroyAction, replicateAction, offlineAction} {
		t.Run(operate.Name(action), func(t *testing.T) {
			decision := Plan(unhindered(action))
			if diff := cmp.Diff([]string{"life-1"}, decision.Attempts); diff != "" || !decision.Begin {
				t.Errorf("the first attempt (-want +got)\n%s%+v", diff, decision)
			}
			life := func(agent string, attempts ...string) State {
				state := unhindered(action)
				begun := begun(action, "5")
				state.Operation, state.Now, state.Agent = begun.Operation, begun.Now, agent
				state.Operation.Status.Attempts = attempts
				return state
			}
			expectShort(t, "counted", Plan(life("life-1", "life-1")), "Run")
			second := Plan(life("life-2", "life-1"))
			if !slices.Equal(second.Attempts, []string{"life-1", "life-2"}) || len(second.Actions) > 0 || second.Recheck != pools.AtOnce {
				t.Errorf("it begins in a second life before that is written down: %+v", second)
			}
			expectShort(t, "counted again", Plan(life("life-2", "life-1", "life-2")), "Run")
			third := life("life-3", "life-1", "life-2")
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonAgentDied, "ended 2 times"}.diff(t, Plan(third))
			third.Leftovers = []string{"half a receive"}
			expectShort(t, "what is left goes first", Plan(third), "CleanUp")
		})
	}
	// If traces show whether the command has run, no attempt is counted.
	for _, action := range []v1alpha1.PoolAction{scrubAction, observeAction, exportAction, setAction, snapshotAction} {
		if decision := Plan(unhindered(action)); len(decision.Attempts) > 0 || !decision.Begin {
			t.Errorf("%s: %+v", operate.Name(action), decision)
		}
	}
}

// TestOnlyWhatIsMeantIsDestroyed: if the spec names a guid, nothing is done unless the existing object has that guid.
func TestOnlyWhatIsMeantIsDestroyed(t *testing.T) {
	destroy := func(guid v1alpha1.GUID) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "a", GUID: guid}}
	}
	forget := func(guid v1alpha1.GUID) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{DestroySnapshot: &v1alpha1.DestroySnapshotAction{Dataset: "a", Name: "s", GUID: guid}}
	}
	remove := func(guid v1alpha1.GUID) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{RemoveVdev: &v1alpha1.RemoveVdevAction{Device: diskA, GUID: guid}}
	}
	replace := func(guid v1alpha1.GUID) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: diskA, With: diskD, GUID: guid}}
	}
	begins := decided{"AddFinalizer", "", v1alpha1.ReasonOperationRunning, "begins"}
	for name, entry := range map[string]struct {
		action    v1alpha1.PoolAction
		top, leaf string
		want      decided
	}{
		"dataset":     {destroy("5"), "", "", begins},
		"any dataset": {destroy(""), "", "", begins},
		"another dataset": {destroy("55"), "", "", decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonGUIDMismatch,
			"dataset bench0/a has guid 5, but the spec names guid 55"}},
		"snapshot":     {forget("6"), "", "", begins},
		"any snapshot": {forget(""), "", "", begins},
		"the dataset, not its snapshot": {forget("5"), "", "", decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonGUIDMismatch,
			"snapshot bench0/a@s has guid 6, but the spec names guid 5"}},
		"vdev": {remove("81"), "81", "91", begins},
		"the disk, not its vdev": {remove("91"), "81", "91", decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonGUIDMismatch,
			"has guid 81, but the spec names guid 91"}},
		"a vdev without guid": {remove("81"), "", "", decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonNotSupported, "OpenZFS 2.3"}},
		"disk":                {replace("91"), "81", "91", begins},
		"another disk": {replace("92"), "81", "91", decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonGUIDMismatch,
			diskA + " has guid 91, but the spec names guid 92"}},
		"a disk without guid": {replace("91"), "", "", decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonNotSupported, "remove guid"}},
	} {
		t.Run(name, func(t *testing.T) {
			state := unhindered(entry.action)
			top := &state.Live.Status.Vdevs[0]
			top.GUID, top.Children[0].GUID = entry.top, entry.leaf
			decision := Plan(state)
			entry.want.diff(t, decision)
			if decision.Begin != (entry.want.Outcome == "") {
				t.Errorf("begin is %v", decision.Begin)
			}
		})
	}
}
