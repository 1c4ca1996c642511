package runs_test

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestRunOnPools covers the pools that a run waits for, creates and deletes.
func TestRunOnPools(t *testing.T) {
	ready := runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
	broken := runs.Pools{Needed: true, Exist: true, Some: true, Broken: true, Reason: "Unhealthy",
		Message: "BenchmarkPool sb-1-data: DEGRADED"}
	making := runs.Pools{Needed: true, Exist: true, Some: true, Reason: "PoolChanging", Message: "BenchmarkPool sb-1-data: making"}
	longAgo := func(s *runs.State) { s.Run.Status.StartedAt = runstest.Stamp(-10 * time.Minute) }
	fillStored := func(s *runs.State) {
		s.Phases[0] = runs.PhaseState{Stored: runstest.Result("m")}
		s.Phases[0].Stored.StoredAt = runstest.Noon.Add(-time.Minute)
	}
	drifted := runs.Pools{Needed: true, Exist: true, Some: true, Ready: true, OtherDisks: []string{"data"}, Reason: v1alpha1.ReasonPoolDisksDiffer,
		Message: "BenchmarkPool sb-1-data: the disks differ"}
	another := drifted
	another.OtherDisks = []string{"data", "log"}
	replacing := func(s *runs.State) {
		s.Run.Spec.Phases[0].Operate = &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{}}}
	}
	lastReceived := func(s *runs.State) {
		received(s)
		fill := s.Phases[0]
		fillStored(s)
		s.Phases[1] = fill
	}
	deleted := func(s *runs.State) { s.Run.DeletionTimestamp = &metav1.Time{Time: runstest.Noon} }
	for _, test := range []struct {
		name    string
		pools   runs.Pools
		changes []runChange
		actions []string
		reason  string
		ending  string
		says    string
		wake    time.Duration
	}{
		{"none is made yet", runs.Pools{Needed: true}, []runChange{jobless(false), volumeGone}, []string{"CreatePools"}, "PreparingVolume", "",
			"creating the pools", 10 * time.Minute},
		{"one of two is made", runs.Pools{Needed: true, Some: true}, []runChange{jobless(false), volumeGone}, []string{"CreatePools"},
			"PreparingVolume", "", "", 10 * time.Minute},
		{"the name is taken", runs.Pools{Needed: true, Foreign: "sb-1-data"}, []runChange{jobless(false), volumeGone}, nil, "NameTaken", "",
			"BenchmarkPool sb-1-data belongs to another owner", runs.ForeignRecheck},
		{"an earlier one is going", runs.Pools{Needed: true, Some: true, Exist: true, Deleting: true}, []runChange{jobless(false), volumeGone},
			nil, "PreparingVolume", "", "earlier pool", 10 * time.Minute},
		{"they are being made", making, []runChange{jobless(false), volumeGone}, nil, "PreparingVolume", "",
			"PoolChanging: BenchmarkPool sb-1-data: making", 10 * time.Minute},
		{"they are never ready", broken, []runChange{jobless(false), volumeGone, longAgo}, nil, "PoolNotReady", "final",
			"not ready within 10m0s: Unhealthy", 0},
		{"they are ready", ready, []runChange{jobless(false), volumeGone}, []string{"CreateVolumes", "StartPhase 0"}, "PhaseRunning", "", "", 0},
		{"without the node nothing is made", runs.Pools{Needed: true}, []runChange{jobless(false), volumeGone, leaseStolen}, nil, "Queued", "",
			"", 0},
		{"ready for the second phase", ready, []runChange{fillStored}, []string{"StartPhase 1"}, "PhaseRunning", "", "", 0},
		{"not ready for the second phase", making, []runChange{fillStored, longAgo}, nil, "PreparingVolume", "", "waits for its pools",
			9 * time.Minute},
		{"broken during a phase", broken, nil, nil, "PoolNotReady", "retry", "DEGRADED", 0},
		{"changing during a phase", making, nil, nil, "PhaseRunning", "", "", 50 * time.Minute},
		{"deleted during a phase", runs.Pools{Needed: true, Some: true, Exist: true, Deleting: true, Ready: true}, nil, nil, "PoolLost",
			"retry", "deleted", 0},
		{"gone during a phase", runs.Pools{Needed: true}, nil, nil, "PoolLost", "retry", "deleted", 0},
		{"a result of a broken pool is none", broken, []runChange{received}, nil, "PoolNotReady", "retry", "DEGRADED", 0},
		{"not even the last", broken, []runChange{lastReceived}, nil, "PoolNotReady", "retry", "DEGRADED", 0},
		{"nor one of a pool that goes", runs.Pools{Needed: true, Some: true, Exist: true, Deleting: true, Ready: true}, []runChange{received},
			nil, "PoolLost", "retry", "deleted", 0},
		{"a phase may change the disks itself", drifted, []runChange{replacing, received}, []string{"StoreResult 0"}, "PhaseRunning", "", "", 0},
		{"and go on beside them", drifted, []runChange{replacing}, nil, "PhaseRunning", "", "", 50 * time.Minute},
		{"so do the phases behind it", drifted, []runChange{replacing, fillStored}, []string{"StartPhase 1"}, "PhaseRunning", "", "", 0},
		{"but not those before it", drifted, []runChange{replacing, jobless(false), volumeGone}, nil, "PreparingVolume", "",
			"DisksDiffer: BenchmarkPool sb-1-data: the disks differ", 10 * time.Minute},
		{"but they have to be good", broken, []runChange{replacing, received}, nil, "PoolNotReady", "retry", "DEGRADED", 0},
		{"but not beside another pool that differs", another, []runChange{replacing, fillStored}, nil, "PoolNotReady", "retry", "differ", 0},
		{"and no other phase may", drifted, []runChange{received}, nil, "PoolNotReady", "retry", "differ", 0},
		{"they go after the volumes", ready, []runChange{deleted, jobless(false)}, []string{"DeleteVolumes"}, "TearingDown", "", "", 0},
		{"a volume that is left half goes too", ready,
			[]runChange{deleted, jobless(false), func(s *runs.State) { s.Claims = runs.Claims{Some: true} }}, []string{"DeleteVolumes"},
			"TearingDown", "", "", 0},
		{"then they go", ready, []runChange{deleted, jobless(false), volumeGone}, []string{"DeletePools"}, "TearingDown", "", "", 0},
		{"also those that are left half", runs.Pools{Needed: true, Some: true}, []runChange{deleted, jobless(false), volumeGone},
			[]string{"DeletePools"}, "TearingDown", "", "", 0},
		{"and are waited for", runs.Pools{Needed: true, Some: true, Exist: true, Deleting: true, Reason: "PoolInUse", Message: "by a pod"},
			[]runChange{deleted, jobless(false), volumeGone}, nil, "TearingDown", "", "PoolInUse: by a pod", 0},
		{"then the object goes", runs.Pools{Needed: true}, []runChange{deleted, jobless(false), volumeGone}, []string{"RemoveFinalizer"},
			"TearingDown", "", "", 0},
	} {
		onPools := func(s *runs.State) { s.Pools = test.pools }
		t.Run(test.name, runCase{changes: append([]runChange{onPools}, test.changes...), actions: test.actions, reason: test.reason,
			ending: test.ending, says: test.says, wake: test.wake}.check)
	}
}

// TestOperatePhase: a PoolOperation takes the place of the Job and the pod of its phase.
func TestOperatePhase(t *testing.T) {
	begun := func(s *runs.State) {
		s.Phases[0].Pod = runs.PodState{Exists: true, Started: runstest.After(-time.Minute)}
	}
	for name, test := range map[string]struct {
		change         runChange
		actions        []string
		reason, ending string
		says           string
		wake           time.Duration
	}{
		"waits for its turn": {func(*runs.State) {}, nil, "PhaseRunning", "", "Queued: behind another", 9 * time.Minute},
		"is at work":         {begun, nil, "PhaseRunning", "", "Queued: behind another", 59 * time.Minute},
		"never begins": {func(s *runs.State) { s.Now = runstest.Noon.Add(time.Hour) }, nil, "PodNotStarted", "final",
			"the operation of phase fill did not start within 10m0s: Queued", 0},
		"is deleted": {func(s *runs.State) { s.Phases[0].Executor.Deleting = true }, nil, "ExecutorLost", "retry", "PoolOperation sb-", 0},
		"is gone":    {func(s *runs.State) { s.Phases[0] = runs.PhaseState{} }, nil, "ExecutorLost", "retry", "PoolOperation sb-", 0},
		"takes too long": {func(s *runs.State) { begun(s); s.Now = runstest.Noon.Add(2 * time.Hour) }, nil, "PhaseDeadlineExceeded",
			"retry", "", 0},
		"has ended": {func(s *runs.State) { begun(s); received(s) }, []string{"StoreResult 0"}, "PhaseRunning", "", "", 0},
		"is not there, first one": {func(s *runs.State) { s.Phases[0], s.Run.Status.Phases = runs.PhaseState{}, nil }, []string{"StartPhase 0"},
			"PhaseRunning", "", "", 0},
	} {
		operating := func(s *runs.State) {
			s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
			s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Operate = nil, &v1alpha1.OperatePhase{}
			s.Phases[0] = runs.PhaseState{Operation: true, Executor: runs.ExecutorState{Exists: true, UID: "job-0", Created: runstest.Noon.Add(-time.Minute),
				Message: "Queued: behind another"}}
		}
		t.Run(name, runCase{changes: []runChange{operating, test.change}, actions: test.actions, reason: test.reason,
			ending: test.ending, says: test.says, wake: test.wake}.check)
	}
}

// TestOperationsRestAsNoPod: an operation that has ended does not count as a pod at rest, so a leftover pod is not retained because of it.
func TestOperationsRestAsNoPod(t *testing.T) {
	state := runstest.Underway()
	state.Phases[0] = runs.PhaseState{Operation: true, Executor: runs.ExecutorState{Exists: true, Succeeded: true},
		Pod: runs.PodState{Ended: runstest.After(-time.Minute)}}
	if state.Pods = 1; !runs.Restless(state) {
		t.Error("a pod is left")
	}
	if state.Pods = 0; runs.Restless(state) {
		t.Error("nothing is left")
	}
}
