package runs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestCompanions covers when the companions of a measure phase begin and end.
func TestCompanions(t *testing.T) {
	observe, scrub := v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}, v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	counting, counted := runstest.Operation(observe, "", -time.Minute, 0), runstest.Operation(observe, v1alpha1.OutcomeCancelled, -time.Minute,
		-time.Second)
	scrubbing, scrubbed := runstest.Operation(scrub, "", -time.Minute, 0), runstest.Operation(scrub, v1alpha1.OutcomeSucceeded, -time.Minute,
		-time.Second)
	cancelled := func(operation *v1alpha1.PoolOperation) *v1alpha1.PoolOperation {
		operation = operation.DeepCopy()
		operation.Spec.Cancel = true
		return operation
	}
	failed := func(reason string) *v1alpha1.PoolOperation {
		operation := runstest.Operation(scrub, v1alpha1.OutcomeFailed, -time.Minute, -time.Second)
		operation.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}}
		return operation
	}
	justCreated := runstest.Operation(observe, "", 0, 0)
	justCreated.CreationTimestamp = *runstest.Stamp(0)
	longAgo := func(s *runs.State) { s.Run.Status.StartedAt = runstest.Stamp(-10 * time.Minute) }
	endedAgo := func(ago time.Duration) runChange {
		return func(s *runs.State) { received(s); s.Phases[0].Pod.Ended = runstest.After(-ago) }
	}
	for _, test := range []struct {
		name           string
		changes        []runChange
		observe, under *v1alpha1.PoolOperation
		actions        []string
		reason         string
		ending         string
		says           string
		wake           time.Duration
	}{
		{"the volume and the observation come first", []runChange{jobless(false), volumeGone}, nil, nil,
			[]string{"CreateVolumes", "StartCompanion 0 observe"}, "PhaseRunning", "", "", 10 * time.Minute},
		{"then the observation", []runChange{jobless(false)}, nil, nil, []string{"StartCompanion 0 observe"}, "PhaseRunning", "", "",
			10 * time.Minute},
		{"which has to count", []runChange{jobless(false)}, runstest.Operation(observe, "", 0, 0), nil, nil, "PhaseRunning", "", "",
			10 * time.Minute},
		{"and never does", []runChange{jobless(false), longAgo}, runstest.Operation(observe, "", 0, 0), nil, nil, "PodNotStarted", "final",
			"the agent of node n1 has not looked at it yet", 0},
		{"after a long time away: the observation", []runChange{jobless(false), longAgo}, nil, nil, []string{"StartCompanion 0 observe"},
			"PhaseRunning", "", "", 10 * time.Minute},
		{"which then has its whole time", []runChange{jobless(false), longAgo}, justCreated, nil, nil, "PhaseRunning", "", "", 10 * time.Minute},
		{"it counts: the pod", []runChange{jobless(false)}, counting, nil, []string{"StartPhase 0"}, "PhaseRunning", "", "", 0},
		{"it failed: the pod all the same", []runChange{jobless(false)}, runstest.Operation(observe, v1alpha1.OutcomeFailed, 0, 0), nil,
			[]string{"StartPhase 0"}, "PhaseRunning", "", "", 0},
		{"the pod is not there yet", []runChange{notYet(time.Minute, runs.PodState{}, "")}, counting, nil, nil, "PhaseRunning", "", "",
			9 * time.Minute},
		{"the pod is at work: the scrub", nil, counting, nil, []string{"StartCompanion 0 operate"}, "PhaseRunning", "", "", 50 * time.Minute},
		{"once", nil, counting, scrubbing, nil, "PhaseRunning", "", "", 50 * time.Minute},
		{"the scrub fails", nil, counting, failed(v1alpha1.ReasonActionFailed), nil, "PhaseInvalid", "final",
			"the scrub during the workload failed", 0},
		{"the scrub is stopped on the node", nil, counting, failed(v1alpha1.ReasonStoppedElsewhere), nil, "PhaseInvalid", "retry",
			"the scrub during the workload failed", 0},
		{"a received result ends both", []runChange{received}, counting, scrubbing, []string{"EndCompanion 0 observe", "EndCompanion 0 operate"},
			"PhaseRunning", "", "", 2*time.Minute - time.Second},
		{"only what is at work", []runChange{received}, counting, scrubbed, []string{"EndCompanion 0 observe"}, "PhaseRunning", "", "",
			2*time.Minute - time.Second},
		{"and waits", []runChange{received}, cancelled(counting), cancelled(scrubbing), nil, "PhaseRunning", "", "", 2*time.Minute - time.Second},
		{"both have ended", []runChange{received}, counted, scrubbed, []string{"StoreResult 0"}, "PhaseRunning", "", "", 0},
		{"an observation that does not end is given up", []runChange{endedAgo(3 * time.Minute)}, cancelled(counting), scrubbed,
			[]string{"StoreResult 0"}, "PhaseRunning", "", "", 0},
		{"a scrub that does not end is waited for longer", []runChange{endedAgo(3 * time.Minute)}, cancelled(counting), cancelled(scrubbing), nil,
			"PhaseRunning", "", "", 57 * time.Minute},
		{"but not for ever", []runChange{endedAgo(time.Hour)}, counted, cancelled(scrubbing), nil, "PhaseDeadlineExceeded", "retry",
			"still running 1h0m0s after it", 0},
		{"without any the result says so", []runChange{received}, nil, nil, []string{"StoreResult 0"}, "PhaseRunning", "", "", 0},
	} {
		measuring := func(s *runs.State) {
			s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
			s.Run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{}
			s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Measure = nil, &v1alpha1.MeasurePhase{Operate: &scrub}
		}
		companions := func(s *runs.State) {
			s.Phases[0].Companions = map[runs.Companion]*v1alpha1.PoolOperation{}
			if test.observe != nil {
				s.Phases[0].Companions[runs.Observation] = test.observe
			}
			if test.under != nil {
				s.Phases[0].Companions[runs.Beside] = test.under
			}
		}
		t.Run(test.name, runCase{changes: append(append([]runChange{measuring}, test.changes...), companions), actions: test.actions,
			reason: test.reason,
			ending: test.ending, says: test.says, wake: test.wake}.check)
	}
}

// severalVolumes changes the first phase so that it runs workloads on two pools.
func severalVolumes(s *runs.State) {
	s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
	s.Run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log"}}}
	s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Measure = nil, &v1alpha1.MeasurePhase{
		Workloads: []v1alpha1.NamedWorkload{{Name: "reads", OLTP: &v1alpha1.OLTPWorkload{Duration: runstest.Lasting(time.Minute)}},
			{Name: "redo", Volume: "log", Redo: &v1alpha1.RedoWorkload{Duration: runstest.Lasting(time.Minute)}},
			{Name: "more", Volume: "log", Scan: &v1alpha1.RepeatedScan{}}},
		Operate: &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}}
}

// TestEachPoolIsObserved: a phase with several workloads begins once all their pools are observed, and ends with all these observations.
func TestEachPoolIsObserved(t *testing.T) {
	observe := v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}
	counting := runstest.Operation(observe, "", -time.Minute, 0)
	with := func(companions map[runs.Companion]*v1alpha1.PoolOperation) runChange {
		return func(s *runs.State) { s.Phases[0].Companions = companions }
	}
	type of = map[runs.Companion]*v1alpha1.PoolOperation
	const log = runs.Companion("observe-log")
	for _, test := range []struct {
		name    string
		changes []runChange
		actions []string
		wake    time.Duration
	}{
		{"first its own", []runChange{severalVolumes, jobless(false), with(nil)}, []string{"StartCompanion 0 observe"}, 10 * time.Minute},
		{"then the other", []runChange{severalVolumes, jobless(false), with(of{runs.Observation: counting})},
			[]string{"StartCompanion 0 observe-log"}, 10 * time.Minute},
		{"which has to count", []runChange{severalVolumes, jobless(false), with(of{runs.Observation: counting,
			log: runstest.Operation(observe, "", 0, 0)})}, nil, 10 * time.Minute},
		{"then the pod", []runChange{severalVolumes, jobless(false), with(of{runs.Observation: counting, log: counting})},
			[]string{"StartPhase 0"}, 0},
		{"and both end", []runChange{severalVolumes, received, with(of{runs.Observation: counting, log: counting})},
			[]string{"EndCompanion 0 observe", "EndCompanion 0 observe-log"}, 2*time.Minute - time.Second},
	} {
		t.Run(test.name, runCase{changes: test.changes, actions: test.actions, reason: "PhaseRunning", wake: test.wake}.check)
	}
	state := runs.State{Run: &v1alpha1.BenchmarkRun{}}
	state.Run.Spec.Phases = []v1alpha1.Phase{runstest.Phase("busy")}
	state.Phases = make([]runs.PhaseState, 1)
	severalVolumes(&state)
	for companion, volume := range map[runs.Companion]string{runs.Observation: "data", log: "log", runs.Beside: "data"} {
		operation := runs.CompanionOperation(state, 0, companion)
		if operation.Spec.Pool != naming.RunPoolName(state.Run, volume) || operation.Name != runs.CompanionName(state.Run,
			state.Run.Spec.Phases[0], companion) || (operation.Spec.Action.Observe == nil) != (companion == runs.Beside) {
			t.Errorf("%s: %+v", companion, operation)
		}
	}
	if got := runs.Companions(state.Run, state.Run.Spec.Phases[0]); !slices.Equal(got, []runs.Companion{runs.Observation, log, runs.Beside}) {
		t.Errorf("companions %v", got)
	}
	state.Run.Spec.Target.ZFS.Volumes[0].PoolOf = "data"
	if got := runs.Companions(state.Run, state.Run.Spec.Phases[0]); !slices.Equal(got, []runs.Companion{runs.Observation, runs.Beside}) {
		t.Errorf("one pool has the companions %v", got)
	}
	state.Run.Spec.Phases[0].Volume = "log"
	if operation := runs.CompanionOperation(state, 0, runs.Observation); operation.Spec.Pool != naming.RunPoolName(state.Run, "data") {
		t.Errorf("the pool of volume log is %s", operation.Spec.Pool)
	}
}

// TestCompanionsGoWithTheJobs: a companion that is still running is deleted before its pool, or ended if the run is retained.
func TestCompanionsGoWithTheJobs(t *testing.T) {
	going := runstest.Operation(v1alpha1.PoolAction{}, "", 0, 0)
	going.DeletionTimestamp = runstest.Stamp(0)
	for name, test := range map[string]struct {
		retain    string
		companion *v1alpha1.PoolOperation
		actions   []string
		settled   bool
	}{
		"is there":             {"Never", runstest.Operation(v1alpha1.PoolAction{}, "", 0, 0), []string{"DeleteJobsAndOperations"}, false},
		"is going":             {"Never", going, nil, false},
		"kept, and at work":    {"Always", runstest.Operation(v1alpha1.PoolAction{}, "", 0, 0), []string{"EndCompanion 1 observe"}, false},
		"kept, and at its end": {"Always", runstest.Operation(v1alpha1.PoolAction{}, v1alpha1.OutcomeCancelled, 0, 0), nil, true},
		"kept, and to end soon": {"Always", func() *v1alpha1.PoolOperation { o := going.DeepCopy(); o.Spec.Cancel = true; return o }(), nil,
			false},
	} {
		state := runstest.Underway()
		state.Run.Spec.Retain, state.Run.Spec.Target.ZFS = v1alpha1.RetainPolicy(test.retain), &v1alpha1.ZFSTarget{}
		state.Pools, state.Claims = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}, runs.Claims{}
		allStored(&state)
		runstest.Record(state.Run, runstest.InvalidEnding, false)
		state.Phases[1].Companions = map[runs.Companion]*v1alpha1.PoolOperation{runs.Observation: test.companion}
		decision := runs.Plan(state)
		if got := runstest.Kinds(decision.Actions); !slices.Equal(got, test.actions) || decision.Settled != test.settled {
			t.Errorf("%s: %v, settled %v", name, got, decision.Settled)
		}
	}
}

func TestBesideShare(t *testing.T) {
	scrub, snapshot := v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}, v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{}}
	destroy, score, metaslabs := v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{}},
		v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{}},
		v1alpha1.PoolAction{MetaslabMap: &v1alpha1.MetaslabMapAction{}}
	took := func(seconds int64, operation *v1alpha1.PoolOperation) *v1alpha1.PoolOperation {
		operation.Status.Metrics = []v1alpha1.OperationMetric{{Name: operate.MetricDuration, Value: seconds}}
		return operation
	}
	from, to := runstest.Noon, runstest.Noon.Add(100*time.Second)
	for name, test := range map[string]struct {
		operation *v1alpha1.PoolOperation
		share     int64
		problem   string
	}{
		"the whole time": {runstest.Operation(scrub, v1alpha1.OutcomeCancelled, -time.Second, 110*time.Second), 1_000_000, ""},
		"the end of a snapshot": {runstest.Operation(v1alpha1.PoolAction{DestroySnapshot: &v1alpha1.DestroySnapshotAction{}}, v1alpha1.OutcomeSucceeded,
			-time.Second, 50*time.Second), 500_000, "running for 50% of the measured time"},
		"began a little later": {runstest.Operation(scrub, v1alpha1.OutcomeCancelled, 5*time.Second, 110*time.Second), 950_000, ""},
		"ended too early": {runstest.Operation(scrub, v1alpha1.OutcomeSucceeded, -time.Second, 50*time.Second), 500_000,
			"running for 50% of the measured time"},
		"ended before":  {runstest.Operation(scrub, v1alpha1.OutcomeSucceeded, -20*time.Second, -10*time.Second), 0, "for 0%"},
		"never began":   {runstest.Operation(scrub, v1alpha1.OutcomeCancelled, 0, 0), 0, "never started"},
		"failed":        {runstest.Operation(scrub, v1alpha1.OutcomeFailed, -time.Second, 110*time.Second), 0, "failed"},
		"still at work": {runstest.Operation(scrub, "", -time.Second, 0), 1_000_000, ""},
		"its end is noticed late": {took(80, runstest.Operation(scrub, v1alpha1.OutcomeSucceeded, 5*time.Second, 95*time.Second)), 810_000,
			"for 81%"},
		"its end is noticed":     {took(89, runstest.Operation(scrub, v1alpha1.OutcomeSucceeded, 5*time.Second, 95*time.Second)), 900_000, ""},
		"a destruction":          {runstest.Operation(destroy, v1alpha1.OutcomeSucceeded, -time.Second, 110*time.Second), 1_000_000, ""},
		"a short destruction":    {runstest.Operation(destroy, v1alpha1.OutcomeSucceeded, -time.Second, 50*time.Second), 500_000, "for 50%"},
		"a short score":          {runstest.Operation(score, v1alpha1.OutcomeSucceeded, -time.Second, 10*time.Second), 100_000, "for 10%"},
		"a short map":            {runstest.Operation(metaslabs, v1alpha1.OutcomeSucceeded, -time.Second, 10*time.Second), 100_000, "for 10%"},
		"a snapshot":             {runstest.Operation(snapshot, v1alpha1.OutcomeSucceeded, 5*time.Second, 6*time.Second), 0, ""},
		"a snapshot not in time": {runstest.Operation(snapshot, v1alpha1.OutcomeCancelled, 0, 0), 0, "had not finished"},
	} {
		share, problem := runs.BesideShare(test.operation, from, to)
		if share != test.share || (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
			t.Errorf("%s: %d, %q", name, share, problem)
		}
	}
}

// TestCompanionNames: no phase and no operate phase can have the name of a companion.
func TestCompanionNames(t *testing.T) {
	run := runstest.Underway().Run
	run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{}
	fill, operate := runstest.Phase("fill"), runstest.Phase("fill-observe")
	operate.Operate = &v1alpha1.OperatePhase{}
	if name := runs.CompanionName(run, fill, runs.Observation); name == naming.RunOperationName(run, operate) ||
		!strings.HasSuffix(name, "-fill.observe") {
		t.Error(name)
	}
	if len(runs.Companions(run, operate)) != 0 || len(runs.Companions(run, fill)) != 1 {
		t.Error("an operate phase has companions, or a fill none")
	}
	run.Spec.Target.ZFS = nil
	if len(runs.Companions(run, fill)) != 0 {
		t.Error("there is nothing to observe below a storage class")
	}
}
