package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// memberState returns a run of a group of two that is ready to begin, after it has applied change.
func memberState(change func(*runs.State)) runs.State {
	run := runstest.Run()
	run.Spec.Group = experiment.GroupOf(run.Name, 0, []string{"n1", "n2"})
	run.Name = naming.MemberName(run.Name, 0)
	run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Pool: v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}}}}
	run.Status.StartedAt = runstest.Stamp(-time.Minute)
	run.Status.ReadyFor = &v1alpha1.RunReadiness{Phase: "fill", Since: metav1.NewMicroTime(runstest.Noon)}
	state := runs.State{Now: runstest.Noon.Add(time.Second), Timings: runs.DefaultTimings(), Run: run, Owner: runstest.OwnUID,
		LeaseHolder: runstest.OwnUID,
		Claims:      runs.Claims{Exists: true}, Phases: make([]runs.PhaseState, len(run.Spec.Phases)),
		Peers: []runs.PeerState{{Name: "b", Node: "n2", Exists: true, ReadyFor: &v1alpha1.RunReadiness{Phase: "fill",
			Since: metav1.NewMicroTime(runstest.Noon.Add(3 * time.Second))}}}}
	for i := range state.Phases {
		state.Phases[i].Companions = map[runs.Companion]*v1alpha1.PoolOperation{runs.Observation: runstest.Operation(v1alpha1.PoolAction{}, "",
			-time.Minute, 0)}
	}
	change(&state)
	return state
}

func TestBarrier(t *testing.T) {
	start := runstest.Noon.Add(3 * time.Second).Add(runs.StartAllowance)
	failed := func(reason string) *runs.Ending {
		return &runs.Ending{Reason: reason, Message: "it failed", Retryable: true}
	}
	done := func(s *runs.State) {
		for i := range s.Phases {
			s.Phases[i].Stored = runstest.Result("x")
			s.Peers[0].Phases = append(s.Peers[0].Phases, v1alpha1.RunPhaseStatus{Name: s.Run.Spec.Phases[i].Name, ExecutorUID: "j", Result: "r"})
		}
	}
	for _, test := range []struct {
		name    string
		change  func(*runs.State)
		actions []runs.Action
		ready   string
		ending  string
		says    string
	}{
		{name: "all are ready", change: func(*runs.State) {}, actions: []runs.Action{{Kind: runs.StartPhase, StartAt: start}}},
		{name: "the observation after the barrier", change: func(s *runs.State) { s.Phases[0].Companions = nil },
			actions: []runs.Action{{Kind: runs.StartCompanion, Companion: runs.Observation}}},
		{name: "the storage first", change: func(s *runs.State) {
			s.Claims = runs.Claims{}
		}, actions: []runs.Action{{Kind: runs.CreateVolumes}}},
		{name: "say so", change: func(s *runs.State) { s.Run.Status.ReadyFor = nil }, ready: "fill", says: "ready for phase fill (1 of 2)"},
		{name: "not for the phase before", change: func(s *runs.State) { s.Phases[0].Stored = runstest.Result("x") }, ready: "scan"},
		{name: "the other is not", change: func(s *runs.State) { s.Peers[0].ReadyFor = nil }, says: "waiting for node n2"},
		{name: "the other is only for another phase", change: func(s *runs.State) { s.Peers[0].ReadyFor.Phase = "scan" },
			says: "waiting for node n2"},
		{name: "the other is gone", change: func(s *runs.State) { s.Peers[0] = runs.Peer("b", "n2", nil) }, says: "waiting for node n2"},
		{name: "the other has gone on", change: func(s *runs.State) {
			s.Peers[0].Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", ExecutorUID: "j", Result: "r"}}
		}, ending: v1alpha1.ReasonOutOfStep, says: "has finished on node n2"},
		{name: "the other has gone on, and our pool is out of order", change: func(s *runs.State) {
			s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Broken: true}
			s.Peers[0].Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", ExecutorUID: "j", Result: "r"}}
			s.Peers[0].ReadyFor.Phase = "scan"
		}, ending: v1alpha1.ReasonOutOfStep, says: "has finished on node n2"},
		{name: "the other is Invalid", change: func(s *runs.State) { s.Peers[0].Ending = failed("PodLost") }, ending: v1alpha1.ReasonPeerInvalid,
			says: "run b of the group, on node n2, is Invalid: PodLost: it failed"},
		{name: "the other is Invalid while we work", change: func(s *runs.State) {
			s.Phases[0].Executor, s.Peers[0].Ending = runs.ExecutorState{Exists: true, Created: runstest.Noon}, failed("PodLost")
		}, ending: v1alpha1.ReasonPeerInvalid},
		{name: "a cause before a consequence", change: func(s *runs.State) {
			s.Peers = append([]runs.PeerState{{Name: "c", Node: "n3", Ending: failed(v1alpha1.ReasonPeerInvalid)}}, s.Peers...)
			s.Peers[1].Ending = failed("PodLost")
		}, ending: v1alpha1.ReasonPeerInvalid, says: "PodLost"},
		{name: "the node is lost", change: func(s *runs.State) { s.LeaseHolder, s.LeaseHolderName = runstest.Thief, "lab/thief" },
			ending: v1alpha1.ReasonLeaseLost, says: "lab/thief"},
		{name: "another moment", change: func(s *runs.State) {
			s.Phases[0].Executor = runs.ExecutorState{Exists: true, Created: runstest.Noon}
			s.Run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", ExecutorUID: "j", StartAt: &metav1.MicroTime{Time: runstest.Noon}}}
			s.Peers[0].Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", ExecutorUID: "k", StartAt: &metav1.MicroTime{Time: start}}}
		}, ending: v1alpha1.ReasonOutOfStep, says: "one of the runs was recreated"},
		{name: "the end together", change: done, ending: v1alpha1.ReasonMeasured},
		{name: "the end not before the other's", change: func(s *runs.State) { done(s); s.Peers[0].Phases[1].Result = "" },
			says: "all 2 phases have finished here, waiting for node n2"},
	} {
		decision := runs.Plan(memberState(test.change))
		reason := ""
		if decision.Ending != nil {
			reason = decision.Ending.Reason
		}
		if !cmp.Equal(decision.Actions, test.actions) || decision.ReadyFor != test.ready || reason != test.ending ||
			!strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: %+v, ready for %q, %s: %s", test.name, decision.Actions, decision.ReadyFor, reason, decision.Message)
		}
	}
}

// TestAllComputeTheSameStart: both runs of a group compute the same start time.
func TestAllComputeTheSameStart(t *testing.T) {
	ours := memberState(func(*runs.State) {})
	theirs := memberState(func(s *runs.State) {
		s.Run.Status.ReadyFor, s.Peers[0].ReadyFor = s.Peers[0].ReadyFor, s.Run.Status.ReadyFor
		s.Now = runstest.Noon.Add(9 * time.Second)
	})
	if a, b := runs.Plan(ours).Actions[0].StartAt, runs.Plan(theirs).Actions[0].StartAt; !a.Equal(b) || a.IsZero() {
		t.Errorf("%s here and %s there", a, b)
	}
}

// TestLatePodsGetMoreTime: both runs add the same extra time for the worst lag of an earlier phase.
func TestLatePodsGetMoreTime(t *testing.T) {
	lag := func(milliseconds int64) []v1alpha1.RunPhaseStatus {
		return []v1alpha1.RunPhaseStatus{{Name: "fill", ExecutorUID: "j", Result: "r", StartLagMilliseconds: &milliseconds}}
	}
	second := func(own, other int64) runs.State {
		return memberState(func(s *runs.State) {
			s.Phases[0].Stored = runstest.Result("x")
			s.Run.Status.ReadyFor.Phase, s.Peers[0].ReadyFor.Phase = "scan", "scan"
			s.Run.Status.Phases, s.Peers[0].Phases = lag(own), lag(other)
		})
	}
	want := runstest.Noon.Add(3 * time.Second).Add(runs.StartAllowance + 15*time.Second)
	for _, state := range []runs.State{second(5000, 200), second(200, 5000)} {
		if actions := runs.Plan(state).Actions; len(actions) != 1 || !actions[0].StartAt.Equal(want) {
			t.Errorf("%+v, want %s", actions, want)
		}
	}
}

func TestStartAllowance(t *testing.T) {
	measure := func(load v1alpha1.Workload) v1alpha1.Phase {
		return v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: load}}
	}
	for _, test := range []struct {
		phase v1alpha1.Phase
		want  time.Duration
	}{
		{runstest.Phase("fill"), runs.StartAllowance},
		{v1alpha1.Phase{Operate: &v1alpha1.OperatePhase{}}, 0},
		{measure(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}), runs.StartAllowance},
		{measure(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{RampUp: runstest.Lasting(time.Minute)}}), runs.StartAllowance + time.Minute},
		{measure(v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{RampUp: runstest.Lasting(time.Hour)}}), runs.StartAllowance + time.Hour},
		{measure(v1alpha1.Workload{Metadata: &v1alpha1.MetadataWorkload{Workers: 2, FilesPerWorker: 60_000}}), runs.StartAllowance + time.Minute},
	} {
		if got := runs.StartAllowanceOf(test.phase); got != test.want {
			t.Errorf("%+v: %s, want %s", test.phase, got, test.want)
		}
	}
}

// TestDeadlineBeginsWithTheWork: the time spent waiting for the other runs does not count.
func TestDeadlineBeginsWithTheWork(t *testing.T) {
	state := memberState(func(s *runs.State) {
		s.Phases[0].Executor = runs.ExecutorState{Exists: true, Created: runstest.Noon, StartAt: runstest.After(time.Minute)}
		s.Phases[0].Pod = runs.PodState{Exists: true, Started: runstest.After(0)}
		s.Now = runstest.Noon.Add(time.Hour + 30*time.Second)
	})
	if decision := runs.Plan(state); decision.Ending != nil || !decision.WakeAt.Equal(runstest.Noon.Add(time.Hour+time.Minute)) {
		t.Errorf("%+v", decision)
	}
}
