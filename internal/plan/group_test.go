package plan

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// groupState is a benchmark on two nodes that has both.
func groupState() BenchmarkState {
	state := testState()
	onNodes(state.Benchmark, 2)
	state.Nodes = []NodeState{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}
	state.Benchmark.Status.NodeNames, state.Benchmark.Status.NodeName = []string{"n1", "n2"}, "n1,n2"
	state.Leases = append(state.Leases, LeaseState{Node: "n2", Holder: ownUID, HolderName: "lab/ageing"})
	return settle(state)
}

// members adds runs of the first slot's group.
func members(state BenchmarkState, change ...func(*v1alpha1.BenchmarkRun)) BenchmarkState {
	for i, do := range change {
		if do != nil {
			run := makeMember(state, state.Slots[0], 1, int32(i), "n1", "n2")
			do(&run)
			state.Runs = append(state.Runs, run)
		}
	}
	return state
}

func untouched(*v1alpha1.BenchmarkRun) {}
func atWork(run *v1alpha1.BenchmarkRun) {
	run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", JobUID: "job"}}
}
func going(run *v1alpha1.BenchmarkRun) { run.DeletionTimestamp = stamp(0) }
func endsWith(ending Ending) func(*v1alpha1.BenchmarkRun) {
	return func(run *v1alpha1.BenchmarkRun) { atWork(run); record(run, ending, true) }
}

func TestGroupIsMadeAndStoppedAsAWhole(t *testing.T) {
	peerEnding := Ending{Reason: v1alpha1.ReasonPeerInvalid, Message: "the other", Retryable: true}
	state := groupState()
	name := RunName(state.Benchmark.Name, state.Experiment, 0, 1)
	for _, test := range []struct {
		name    string
		state   BenchmarkState
		actions []string
		next    int32
		says    string
	}{
		{"none is there: all are made", state, []string{"CreateRun a", "CreateRun b"}, 1, "starting run 1 of 4"},
		{"one is there: the other is made", members(state, untouched), []string{"CreateRun b"}, 1, ""},
		{"both are at work", members(state, atWork, untouched), nil, 1, "node n1: starting"},
		{"one vanished before the work began: it is made again", members(state, nil, untouched), []string{"CreateRun a"}, 1, ""},
		{"one vanished: the other is stopped", members(state, atWork), []string{"DeleteRun " + name + "-a"}, 1, "to make all again"},
		{"one is going: the other is stopped", members(state, atWork, going), []string{"DeleteRun " + name + "-a"}, 1, "to make all again"},
		{"one was valid and is alone", members(state, nil, endsWith(validEnding)), []string{"DeleteRun " + name + "-b"}, 1, ""},
		{"one is Invalid, the other not yet", members(state, atWork, endsWith(invalidEnding)), nil, 2, "node n1"},
		{"both are Invalid: the next attempt", members(state, endsWith(peerEnding), endsWith(invalidEnding)), []string{"CreateRun a", "CreateRun b"}, 2, ""},
		{"both are valid: the next slot", members(state, endsWith(validEnding), endsWith(validEnding)), []string{"CreateRun a", "CreateRun b"}, 1, "starting run 2 of 4"},
	} {
		decision := Benchmark(test.state)
		var actions []string
		for _, action := range decision.Actions {
			word := string(action.Kind) + " " + action.Run
			if action.Kind == CreateRun {
				word = "CreateRun " + string('a'+action.Member)
			}
			actions = append(actions, word)
		}
		if !cmp.Equal(actions, test.actions) || decision.Tally.NextAttempt != test.next || !strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: %q, attempt %d, %s", test.name, actions, decision.Tally.NextAttempt, decision.Message)
		}
	}
}

func TestGroupCountsOnce(t *testing.T) {
	state := groupState()
	tally := Count(members(state, endsWith(validEnding), endsWith(validEnding)))
	if tally.Total != 4 || tally.Done != 1 || tally.Invalid != 0 {
		t.Errorf("valid: %+v", tally)
	}
	state.Benchmark.Spec.MaxAttempts = 1
	tally = Count(members(state, endsWith(Ending{Reason: v1alpha1.ReasonPeerInvalid, Message: "the other", Retryable: true}), endsWith(invalidEnding)))
	if tally.Done != 0 || tally.Invalid != 1 || len(tally.GivenUp) != 1 || !strings.Contains(tally.GivenUp[0], "evicted") {
		t.Errorf("Invalid: %+v", tally)
	}
}

func TestNodesAreChosenTogether(t *testing.T) {
	with := func(change func(*BenchmarkState)) BenchmarkState {
		state := groupState()
		state.Leases = nil
		state.Nodes = []NodeState{{"n1", 2}, {"n2", 0}, {"n3", 1}}
		change(&state)
		return state
	}
	for name, test := range map[string]struct {
		state BenchmarkState
		want  []string
	}{
		"as before":           {with(func(*BenchmarkState) {}), []string{"n1", "n2"}},
		"the shortest lines":  {with(func(s *BenchmarkState) { s.Benchmark.Status.NodeNames, s.Benchmark.Status.NodeName = nil, "" }), []string{"n2", "n3"}},
		"one no longer fits":  {with(func(s *BenchmarkState) { s.Nodes = s.Nodes[1:] }), []string{"n2", "n3"}},
		"not enough":          {with(func(s *BenchmarkState) { s.Nodes = s.Nodes[:1] }), nil},
		"where its runs are":  {members(with(func(s *BenchmarkState) { s.Benchmark.Status.NodeNames = []string{"n2", "n3"} }), untouched), []string{"n1", "n2"}},
		"a part of them held": {with(func(s *BenchmarkState) { s.Leases = []LeaseState{{Node: "n1", Holder: ownUID}} }), []string{"n1", "n2"}},
	} {
		decision := Benchmark(test.state)
		if !cmp.Equal(decision.NodeNames, test.want) {
			t.Errorf("%s: %q, want %q", name, decision.NodeNames, test.want)
		}
		if test.want == nil && !strings.Contains(decision.Message, "1 of the 2 nodes of target.zfs.nodes.count") {
			t.Errorf("%s: %s", name, decision.Message)
		}
	}
}

func TestLeasesAreTakenInOrder(t *testing.T) {
	mine := func(node string) LeaseState { return LeaseState{Node: node, Holder: ownUID} }
	other := func(node string) LeaseState { return LeaseState{Node: node, Holder: thief, HolderName: "lab/thief"} }
	for _, test := range []struct {
		name    string
		leases  []LeaseState
		waiting []Place
		runs    bool
		actions []string
		says    string
	}{
		{"all are free", nil, nil, false, []string{"TakeLease n1"}, "taking node n1"},
		{"somebody is before us", nil, []Place{{UID: "0", Since: noon.Add(-time.Hour)}}, false, nil, "number 2 in line for nodes n1,n2"},
		{"the second is not free", []LeaseState{other("n2")}, nil, false, nil, "of which lab/thief has n2"},
		{"then the second", []LeaseState{mine("n1")}, []Place{{UID: "0", Since: noon.Add(-time.Hour)}}, false, []string{"TakeLease n2"}, "taking node n2"},
		{"the second was taken meanwhile", []LeaseState{mine("n1"), other("n2")}, nil, false, nil, "has n1 and waits for node n2, which lab/thief has"},
		{"the first was lost", []LeaseState{mine("n2")}, nil, false, []string{"ReleaseLease n2"}, "to take them in order"},
		{"the first was lost under runs", []LeaseState{mine("n2")}, nil, true, []string{"TakeLease n1"}, "taking node n1"},
		{"more than we want now", []LeaseState{mine("n1"), mine("n2"), mine("n9")}, nil, false, []string{"ReleaseLease n1", "ReleaseLease n2", "ReleaseLease n9"}, "node n9 no longer fits"},
	} {
		state := groupState()
		state.Leases, state.Waiting = test.leases, test.waiting
		state.Benchmark.Status.Queue = &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(noon)}
		if test.runs {
			state = members(state, atWork, atWork)
		}
		decision := Benchmark(state)
		var actions []string
		for _, action := range decision.Actions {
			actions = append(actions, string(action.Kind)+" "+action.Node)
		}
		if !cmp.Equal(actions, test.actions) || !strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: %q, %s", test.name, actions, decision.Message)
		}
	}
}

// memberState is a run of a group of two that is ready to begin but for what change does.
func memberState(change func(*RunState)) RunState {
	base := groupState()
	run := makeMember(base, base.Slots[0], 1, 0, "n1", "n2")
	run.Status.StartedAt = stamp(-time.Minute)
	run.Status.ReadyFor = &v1alpha1.RunReadiness{Phase: "fill", Since: metav1.NewMicroTime(noon)}
	state := RunState{Now: noon.Add(time.Second), Timings: DefaultTimings(), Run: &run, Owner: ownUID, LeaseHolder: ownUID,
		Volume: VolumeState{Exists: true}, Phases: make([]PhaseState, len(run.Spec.Phases)),
		Peers: []PeerState{{Name: "b", Node: "n2", Exists: true, ReadyFor: &v1alpha1.RunReadiness{Phase: "fill", Since: metav1.NewMicroTime(noon.Add(3 * time.Second))}}}}
	for i := range state.Phases {
		state.Phases[i].Companions = map[Companion]*v1alpha1.PoolOperation{Observation: beside(v1alpha1.PoolAction{}, "", -time.Minute, 0)}
	}
	change(&state)
	return state
}

func TestBarrier(t *testing.T) {
	start := noon.Add(3 * time.Second).Add(StartAllowance)
	failed := func(reason string) *Ending { return &Ending{Reason: reason, Message: "it failed", Retryable: true} }
	done := func(s *RunState) {
		for i := range s.Phases {
			s.Phases[i].Stored = validResult("x")
			s.Peers[0].Phases = append(s.Peers[0].Phases, v1alpha1.RunPhaseStatus{Name: s.Run.Spec.Phases[i].Name, JobUID: "j", Result: "r"})
		}
	}
	for _, test := range []struct {
		name    string
		change  func(*RunState)
		actions []RunAction
		ready   string
		ending  string
		says    string
	}{
		{name: "all are ready", change: func(*RunState) {}, actions: []RunAction{{Kind: StartPhase, StartAt: start}}},
		{name: "the observation after the barrier", change: func(s *RunState) { s.Phases[0].Companions = nil },
			actions: []RunAction{{Kind: StartCompanion, Companion: Observation}}},
		{name: "the storage first", change: func(s *RunState) { s.Volume = VolumeState{} }, actions: []RunAction{{Kind: CreateVolume}}},
		{name: "say so", change: func(s *RunState) { s.Run.Status.ReadyFor = nil }, ready: "fill", says: "ready for phase fill (1 of 2)"},
		{name: "not for the phase before", change: func(s *RunState) { s.Phases[0].Stored = validResult("x") }, ready: "scan"},
		{name: "the other is not", change: func(s *RunState) { s.Peers[0].ReadyFor = nil }, says: "waiting for node n2"},
		{name: "the other is only for another phase", change: func(s *RunState) { s.Peers[0].ReadyFor.Phase = "scan" }, says: "waiting for node n2"},
		{name: "the other is gone", change: func(s *RunState) { s.Peers[0] = Peer("b", "n2", nil) }, says: "waiting for node n2"},
		{name: "the other has gone on", change: func(s *RunState) {
			s.Peers[0].Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", JobUID: "j", Result: "r"}}
		}, ending: v1alpha1.ReasonOutOfStep, says: "is over on node n2"},
		{name: "the other has gone on, and our pool is out of order", change: func(s *RunState) {
			s.Pools = PoolsState{Needed: true, Exist: true, Some: true, Broken: true}
			s.Peers[0].Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", JobUID: "j", Result: "r"}}
			s.Peers[0].ReadyFor.Phase = "scan"
		}, ending: v1alpha1.ReasonOutOfStep, says: "is over on node n2"},
		{name: "the other is Invalid", change: func(s *RunState) { s.Peers[0].Ending = failed("PodLost") }, ending: v1alpha1.ReasonPeerInvalid, says: "run b of the group, on node n2, is Invalid: PodLost: it failed"},
		{name: "the other is Invalid while we work", change: func(s *RunState) {
			s.Phases[0].Job, s.Peers[0].Ending = JobState{Exists: true, Created: noon}, failed("PodLost")
		}, ending: v1alpha1.ReasonPeerInvalid},
		{name: "a cause before a consequence", change: func(s *RunState) {
			s.Peers = append([]PeerState{{Name: "c", Node: "n3", Ending: failed(v1alpha1.ReasonPeerInvalid)}}, s.Peers...)
			s.Peers[1].Ending = failed("PodLost")
		}, ending: v1alpha1.ReasonPeerInvalid, says: "PodLost"},
		{name: "the node is lost", change: func(s *RunState) { s.LeaseHolder, s.LeaseHolderName = thief, "lab/thief" }, ending: v1alpha1.ReasonLeaseLost, says: "lab/thief"},
		{name: "another moment", change: func(s *RunState) {
			s.Phases[0].Job = JobState{Exists: true, Created: noon}
			s.Run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", JobUID: "j", StartAt: &metav1.MicroTime{Time: noon}}}
			s.Peers[0].Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", JobUID: "k", StartAt: &metav1.MicroTime{Time: start}}}
		}, ending: v1alpha1.ReasonOutOfStep, says: "one of the runs was made anew"},
		{name: "the end together", change: done, ending: v1alpha1.ReasonMeasured},
		{name: "the end not before the other's", change: func(s *RunState) { done(s); s.Peers[0].Phases[1].Result = "" }, says: "all 2 phases are over here, waiting for node n2"},
	} {
		decision := Run(memberState(test.change))
		reason := ""
		if decision.Ending != nil {
			reason = decision.Ending.Reason
		}
		if !cmp.Equal(decision.Actions, test.actions) || decision.ReadyFor != test.ready || reason != test.ending || !strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: %+v, ready for %q, %s: %s", test.name, decision.Actions, decision.ReadyFor, reason, decision.Message)
		}
	}
}

// TestAllComputeTheSameStart: from the other's side the moment is the same.
func TestAllComputeTheSameStart(t *testing.T) {
	ours := memberState(func(*RunState) {})
	theirs := memberState(func(s *RunState) {
		s.Run.Status.ReadyFor, s.Peers[0].ReadyFor = s.Peers[0].ReadyFor, s.Run.Status.ReadyFor
		s.Now = noon.Add(9 * time.Second)
	})
	if a, b := Run(ours).Actions[0].StartAt, Run(theirs).Actions[0].StartAt; !a.Equal(b) || a.IsZero() {
		t.Errorf("%s here and %s there", a, b)
	}
}

// TestLatePodsGetMoreTime: both sides add the same for the worst lag of an earlier phase.
func TestLatePodsGetMoreTime(t *testing.T) {
	lag := func(milliseconds int64) []v1alpha1.RunPhaseStatus {
		return []v1alpha1.RunPhaseStatus{{Name: "fill", JobUID: "j", Result: "r", StartLagMilliseconds: &milliseconds}}
	}
	second := func(own, other int64) RunState {
		return memberState(func(s *RunState) {
			s.Phases[0].Stored = validResult("x")
			s.Run.Status.ReadyFor.Phase, s.Peers[0].ReadyFor.Phase = "scan", "scan"
			s.Run.Status.Phases, s.Peers[0].Phases = lag(own), lag(other)
		})
	}
	want := noon.Add(3 * time.Second).Add(StartAllowance + 15*time.Second)
	for _, state := range []RunState{second(5000, 200), second(200, 5000)} {
		if actions := Run(state).Actions; len(actions) != 1 || !actions[0].StartAt.Equal(want) {
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
		{testPhase("fill"), StartAllowance},
		{v1alpha1.Phase{Operate: &v1alpha1.OperatePhase{}}, 0},
		{measure(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}), StartAllowance},
		{measure(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{RampUp: lasting(time.Minute)}}), StartAllowance + time.Minute},
		{measure(v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{RampUp: lasting(time.Hour)}}), StartAllowance + time.Hour},
	} {
		if got := startAllowance(test.phase); got != test.want {
			t.Errorf("%+v: %s, want %s", test.phase, got, test.want)
		}
	}
}

// TestDeadlineBeginsWithTheWork: what is spent waiting for others does not count.
func TestDeadlineBeginsWithTheWork(t *testing.T) {
	state := memberState(func(s *RunState) {
		s.Phases[0].Job = JobState{Exists: true, Created: noon, StartAt: after(time.Minute)}
		s.Phases[0].Pod = PodState{Exists: true, Started: after(0)}
		s.Now = noon.Add(time.Hour + 30*time.Second)
	})
	if decision := Run(state); decision.Ending != nil || !decision.WakeAt.Equal(noon.Add(time.Hour+time.Minute)) {
		t.Errorf("%+v", decision)
	}
}

func TestGroupsInTheSpec(t *testing.T) {
	target := func(count int32) *v1alpha1.Target {
		benchmark := testBenchmark()
		onNodes(benchmark, count)
		return &benchmark.Spec.Target
	}
	for _, test := range []struct {
		name, says string
		change     func(*v1alpha1.StorageBenchmarkSpec)
	}{
		{"several nodes", "", func(*v1alpha1.StorageBenchmarkSpec) {}},
		{"variants on more", "on 2 nodes at once and variant \"b\" on 3", func(s *v1alpha1.StorageBenchmarkSpec) { s.Variants[1].Target = target(3) }},
		{"too many", "x nodes), the limit is 512", func(s *v1alpha1.StorageBenchmarkSpec) { s.Target, s.Repetitions = *target(8), 50 }},
		{"devices of a node", "a target of its own, with perNode", func(s *v1alpha1.StorageBenchmarkSpec) {
			s.Target.ZFS.PerNode = []v1alpha1.NodePool{{NodeName: "n2"}}
			s.Variants[0].Pool = &v1alpha1.PoolOverride{Cache: []v1alpha1.DevicePath{"/dev/disk/by-id/c"}}
		}},
	} {
		benchmark := testBenchmark()
		onNodes(benchmark, 2)
		test.change(&benchmark.Spec)
		slots, err := Expand(&benchmark.Spec, 1)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %d slots, %v", test.name, len(slots), err)
		}
	}
}

// TestVariantsReachThePoolsOfSingleNodes: a matrix of ashift that stops at the common pool would compare nothing.
func TestVariantsReachThePoolsOfSingleNodes(t *testing.T) {
	benchmark := testBenchmark()
	onNodes(benchmark, 2)
	benchmark.Spec.Target.ZFS.PerNode = []v1alpha1.NodePool{{NodeName: "n2", Pool: v1alpha1.PoolTemplate{Ashift: 12}}}
	benchmark.Spec.Variants = []v1alpha1.Variant{{Name: "a", Pool: &v1alpha1.PoolOverride{Properties: v1alpha1.Properties{"autotrim": "on"}}}}
	benchmark.Spec.Matrix = v1alpha1.Matrix{"pool.ashift": {"9"}}
	slots, err := Expand(&benchmark.Spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	pool := ResolveTarget(slots[0].Target, "n2", "", ProvisionerLocal).ZFS.Pool
	if pool.Ashift != 9 || pool.Properties["autotrim"] != "on" {
		t.Errorf("%+v", pool)
	}
}

// TestInvalidGroupInResults: its valid runs are not used either, and it counts once.
func TestInvalidGroupInResults(t *testing.T) {
	state := groupState()
	state = members(state, endsWith(validEnding), endsWith(validEnding))
	documents := map[string]results.PhaseDocument{}
	for i := range state.Runs {
		state.Runs[i].Status.Phases[0].Result = "result-" + state.Runs[i].Name
	}
	documents["result-"+state.Runs[0].Name] = results.PhaseDocument{Phase: "fill", Kind: results.KindFill, Outcome: results.OutcomeValid, StartedAt: noon, FinishedAt: noon}
	e := Assemble(Evidence{Now: noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs, Documents: documents, Tally: Count(state)})
	if len(e.Groups) != 1 || e.Groups[0].Valid || e.Runs[0].Valid || e.Runs[0].Reason != v1alpha1.ReasonPeerInvalid || e.Runs[1].Reason != v1alpha1.ReasonResultMissing || e.NodeName != "n1,n2" {
		t.Errorf("%+v\n%+v", e.Groups, e.Runs)
	}
	if e.Runs[1].NodeName != "n2" || e.Runs[1].Group.Size != 2 || e.Runs[1].Group.Index != 1 {
		t.Errorf("%+v", e.Runs[1])
	}
}

func TestNamesOfMembers(t *testing.T) {
	long := RunName(strings.Repeat("b", 63), "0a1b2c3d", 511, 10)
	if name := PhaseObjectName(MemberName(long, 7), v1alpha1.PhaseName(strings.Repeat("p", 20))); len(name) > 63 {
		t.Errorf("%s has %d characters", name, len(name))
	}
	if got := MemberName("x-000-2", 1); got != "x-000-2-b" {
		t.Error(got)
	}
	if got := JoinNodes([]string{strings.Repeat("n", 200), strings.Repeat("m", 200)}); len(got) != 253 || !strings.HasSuffix(got, "...") {
		t.Error(got)
	}
}
