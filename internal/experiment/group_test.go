package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/volume"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// groupState is the state of a benchmark on two nodes that holds both.
func groupState() State {
	state := testState()
	onNodes(state.Benchmark, 2)
	state.Nodes = []NodeState{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}
	state.Benchmark.Status.NodeNames, state.Benchmark.Status.NodeName = []string{"n1", "n2"}, "n1,n2"
	state.Leases = append(state.Leases, LeaseState{Node: "n2", Holder: runstest.OwnUID, HolderName: "lab/ageing"})
	return settle(state)
}

// members adds runs of the first slot's group.
func members(state State, change ...func(*v1alpha1.BenchmarkRun)) State {
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
	run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", ExecutorUID: "job"}}
}
func going(run *v1alpha1.BenchmarkRun) { run.DeletionTimestamp = runstest.Stamp(0) }
func endsWith(ending runs.Ending) func(*v1alpha1.BenchmarkRun) {
	return func(run *v1alpha1.BenchmarkRun) { atWork(run); runstest.Record(run, ending, true) }
}

func TestGroupIsMadeAndStoppedAsAWhole(t *testing.T) {
	peerEnding := runs.Ending{Reason: v1alpha1.ReasonPeerInvalid, Message: "the other", Retryable: true}
	state := groupState()
	name := naming.RunName(state.Benchmark.Name, state.Experiment, 0, 1)
	for _, test := range []struct {
		name    string
		state   State
		actions []string
		next    int32
		says    string
	}{
		{"none is there: all are made", state, []string{"CreateRun a", "CreateRun b"}, 1, "starting run 1 of 4"},
		{"one is there: the other is made", members(state, untouched), []string{"CreateRun b"}, 1, ""},
		{"both are at work", members(state, atWork, untouched), nil, 1, "node n1: starting"},
		{"one vanished before the work began: it is made again", members(state, nil, untouched), []string{"CreateRun a"}, 1, ""},
		{"one vanished: the other is stopped", members(state, atWork), []string{"DeleteRun " + name + "-a"}, 1, "to recreate the group"},
		{"one is going: the other is stopped", members(state, atWork, going), []string{"DeleteRun " + name + "-a"}, 1, "to recreate the group"},
		{"one was valid and is alone", members(state, nil, endsWith(runstest.ValidEnding)), []string{"DeleteRun " + name + "-b"}, 1, ""},
		{"one is Invalid, the other not yet", members(state, atWork, endsWith(runstest.InvalidEnding)), nil, 2, "node n1"},
		{"both are Invalid: the next attempt", members(state, endsWith(peerEnding), endsWith(runstest.InvalidEnding)),
			[]string{"CreateRun a", "CreateRun b"}, 2, ""},
		{"both are valid: the next slot", members(state, endsWith(runstest.ValidEnding), endsWith(runstest.ValidEnding)),
			[]string{"CreateRun a", "CreateRun b"}, 1, "starting run 2 of 4"},
	} {
		decision := Plan(test.state)
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
	tally := Count(members(state, endsWith(runstest.ValidEnding), endsWith(runstest.ValidEnding)))
	if tally.Total != 4 || tally.Done != 1 || tally.Invalid != 0 {
		t.Errorf("valid: %+v", tally)
	}
	state.Benchmark.Spec.MaxAttempts = 1
	tally = Count(members(state, endsWith(runs.Ending{Reason: v1alpha1.ReasonPeerInvalid, Message: "the other", Retryable: true}),
		endsWith(runstest.InvalidEnding)))
	if tally.Done != 0 || tally.Invalid != 1 || len(tally.GivenUp) != 1 || !strings.Contains(tally.GivenUp[0], "evicted") {
		t.Errorf("Invalid: %+v", tally)
	}
}

func TestNodesAreChosenTogether(t *testing.T) {
	with := func(change func(*State)) State {
		state := groupState()
		state.Leases = nil
		state.Nodes = []NodeState{{"n1", 2}, {"n2", 0}, {"n3", 1}}
		change(&state)
		return state
	}
	for name, test := range map[string]struct {
		state State
		want  []string
	}{
		"as before": {with(func(*State) {}), []string{"n1", "n2"}},
		"the shortest lines": {with(func(s *State) { s.Benchmark.Status.NodeNames, s.Benchmark.Status.NodeName = nil, "" }),
			[]string{"n2", "n3"}},
		"one no longer fits": {with(func(s *State) { s.Nodes = s.Nodes[1:] }), []string{"n2", "n3"}},
		"not enough":         {with(func(s *State) { s.Nodes = s.Nodes[:1] }), nil},
		"where its runs are": {members(with(func(s *State) { s.Benchmark.Status.NodeNames = []string{"n2", "n3"} }), untouched),
			[]string{"n1", "n2"}},
		"a part of them held": {with(func(s *State) { s.Leases = []LeaseState{{Node: "n1", Holder: runstest.OwnUID}} }), []string{"n1", "n2"}},
	} {
		decision := Plan(test.state)
		if !cmp.Equal(decision.NodeNames, test.want) {
			t.Errorf("%s: %q, want %q", name, decision.NodeNames, test.want)
		}
		if test.want == nil && !strings.Contains(decision.Message, "1 of the 2 nodes of target.zfs.nodes.count") {
			t.Errorf("%s: %s", name, decision.Message)
		}
	}
}

func TestLeasesAreTakenInOrder(t *testing.T) {
	mine := func(node string) LeaseState { return LeaseState{Node: node, Holder: runstest.OwnUID} }
	other := func(node string) LeaseState {
		return LeaseState{Node: node, Holder: runstest.Thief, HolderName: "lab/thief"}
	}
	for _, test := range []struct {
		name    string
		leases  []LeaseState
		waiting []Place
		runs    bool
		actions []string
		says    string
	}{
		{"all are free", nil, nil, false, []string{"TakeLease n1"}, "taking node n1"},
		{"another is before us", nil, []Place{{UID: "0", Since: runstest.Noon.Add(-time.Hour)}}, false, nil, "number 2 in the queue for nodes n1,n2"},
		{"the second is not free", []LeaseState{other("n2")}, nil, false, nil, "and lab/thief holds n2"},
		{"then the second", []LeaseState{mine("n1")}, []Place{{UID: "0", Since: runstest.Noon.Add(-time.Hour)}}, false, []string{"TakeLease n2"},
			"taking node n2"},
		{"the second was taken meanwhile", []LeaseState{mine("n1"), other("n2")}, nil, false, nil,
			"holds n1 and waits for node n2, held by lab/thief"},
		{"the first was lost", []LeaseState{mine("n2")}, nil, false, []string{"ReleaseLease n2"}, "to take them in order"},
		{"the first was lost under runs", []LeaseState{mine("n2")}, nil, true, []string{"TakeLease n1"}, "taking node n1"},
		{"more than we want now", []LeaseState{mine("n1"), mine("n2"), mine("n9")}, nil, false, []string{"ReleaseLease n1", "ReleaseLease n2",
			"ReleaseLease n9"}, "node n9 no longer fits"},
	} {
		state := groupState()
		state.Leases, state.Waiting = test.leases, test.waiting
		state.Benchmark.Status.Queue = &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(runstest.Noon)}
		if test.runs {
			state = members(state, atWork, atWork)
		}
		decision := Plan(state)
		var actions []string
		for _, action := range decision.Actions {
			actions = append(actions, string(action.Kind)+" "+action.Node)
		}
		if !cmp.Equal(actions, test.actions) || !strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: %q, %s", test.name, actions, decision.Message)
		}
	}
}

// TestLostNodeOfAGroup: while the run on a lost node does not stop, other benchmarks can get the other nodes of the group.
func TestLostNodeOfAGroup(t *testing.T) {
	notStopped := func(run *v1alpha1.BenchmarkRun) {
		endsWith(runstest.InvalidEnding)(run)
		run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonPodsNotStopped}}
	}
	peer := endsWith(runs.Ending{Reason: v1alpha1.ReasonPeerInvalid, Message: "the other", Retryable: true})
	ending := func(run *v1alpha1.BenchmarkRun) { runstest.Record(run, runstest.InvalidEnding, false) }
	holding := func(state State, nodes ...string) State {
		state.Leases = nil
		for _, node := range nodes {
			state.Leases = append(state.Leases, LeaseState{Node: node, Holder: runstest.OwnUID, HolderName: "lab/ageing"})
		}
		return state
	}
	taken := func(state State, node string) State {
		state.Leases = append(state.Leases, LeaseState{Node: node, Holder: runstest.Thief, HolderName: "lab/thief"})
		return state
	}
	withoutN1 := func(state State) State { state.Nodes = state.Nodes[1:]; return state }
	resetting := func(change func(*v1alpha1.BenchmarkRun)) func(*v1alpha1.BenchmarkRun) { // an observation failed
		return func(run *v1alpha1.BenchmarkRun) {
			change(run)
			run.Status.Conditions[0].Reason = v1alpha1.ReasonActionFailed
		}
	}
	deleted := func(state State) State {
		state.Benchmark.DeletionTimestamp = runstest.Stamp(0)
		state.Runs = state.Runs[:1] // the other is torn down
		state.Runs[0].DeletionTimestamp = runstest.Stamp(0)
		return state
	}
	working := func(*v1alpha1.BenchmarkRun) {}
	alone := func(state State) State { state.Runs = state.Runs[:1]; return state }
	first, second := members(groupState(), notStopped, peer), members(groupState(), peer, notStopped)
	keeps := members(groupState(), notStopped, peer)
	keeps.Pools = []KeptPool{{Name: "kept", Node: "n2", RunUID: string(keeps.Runs[1].UID)}}
	for _, test := range []struct {
		name     string
		state    State
		actions  []string
		position Position
		says     string
	}{
		{"the first is lost", first, []string{"ReleaseLease n2"}, PositionWaiting, "only node n1 stays taken, until run"},
		{"it stays released", holding(first, "n1"), nil, PositionWaiting, "only node n1"},
		{"the second is lost", second, []string{"ReleaseLease n1"}, PositionWaiting, "only node n2"},
		{"it stays released too", holding(second, "n2"), nil, PositionWaiting, "only node n2"},
		{"both are lost", members(groupState(), notStopped, notStopped), nil, PositionWaiting, "2 runs do not stop: run"},
		{"the other is still ending", members(groupState(), notStopped, ending), nil, PositionRunning, ""},
		{"a pool is kept on the other", keeps, []string{"DeletePool "}, PositionWaiting, "only node n1"},
		{"the first has stopped", holding(members(groupState(), peer, peer), "n1"), []string{"TakeLease n2"}, PositionQueued, "taking node n2"},
		{"another has the second meanwhile", taken(holding(members(groupState(), peer, peer), "n1"), "n2"), []string{"ReleaseLease n1"},
			PositionQueued, "node n2, which was released, is held by lab/thief now: releasing n1"},
		{"the second is needed only when the first has stopped", holding(members(groupState(), resetting(notStopped), peer), "n1"), nil,
			PositionRunning, "waiting for the teardown of run"},
		{"the first has stopped, and its node is gone", withoutN1(holding(members(groupState(), peer, peer), "n1", "n2")),
			[]string{"ReleaseLease n1", "ReleaseLease n2"}, PositionWaiting, "waits for node n1"},
		{"the second has stopped", holding(members(groupState(), peer, peer), "n2"), []string{"ReleaseLease n2"}, PositionQueued, "in order"},
		{"the benchmark is deleted", deleted(members(groupState(), notStopped, peer)), []string{"ReleaseLease n2"}, PositionDeleting, ""},
		{"the second was deleted with its Lease, and the first waits for it", alone(holding(members(groupState(), working, working), "n1")),
			[]string{"DeleteRun "}, PositionRunning, "to recreate the group"},
	} {
		decision := Plan(test.state)
		var actions []string
		for _, action := range decision.Actions {
			actions = append(actions, string(action.Kind)+" "+action.Node)
		}
		if !cmp.Equal(actions, test.actions) || decision.Position != test.position || !strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: %q, %s, %s", test.name, actions, decision.Position, decision.Message)
		}
	}
}

func TestGroupsInTheSpec(t *testing.T) {
	target := func(count int32) *v1alpha1.Target {
		benchmark := runstest.Benchmark()
		onNodes(benchmark, count)
		return &benchmark.Spec.Target
	}
	for _, test := range []struct {
		name, says string
		change     func(*v1alpha1.StorageBenchmarkSpec)
	}{
		{"several nodes", "", func(*v1alpha1.StorageBenchmarkSpec) {}},
		{"variants on more", "on 2 nodes at once and variant \"b\" on 3", func(s *v1alpha1.StorageBenchmarkSpec) {
			s.Variants[1].Target = target(3)
		}},
		{"too many", "x nodes), the limit is 512", func(s *v1alpha1.StorageBenchmarkSpec) { s.Target, s.Repetitions = *target(8), 50 }},
		{"devices of a node", "own target, with perNode", func(s *v1alpha1.StorageBenchmarkSpec) {
			s.Target.ZFS.PerNode = []v1alpha1.NodePool{{NodeName: "n2"}}
			s.Variants[0].Pool = &v1alpha1.PoolOverride{Cache: []v1alpha1.DevicePath{"/dev/disk/by-id/c"}}
		}},
	} {
		benchmark := runstest.Benchmark()
		onNodes(benchmark, 2)
		test.change(&benchmark.Spec)
		slots, err := design.Expand(&benchmark.Spec, 1)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %d slots, %v", test.name, len(slots), err)
		}
	}
}

// TestVariantsReachThePoolsOfSingleNodes: variants and the matrix also change the pools in perNode. A matrix of ashift that changed only
// the common pool would compare nothing.
func TestVariantsReachThePoolsOfSingleNodes(t *testing.T) {
	benchmark := runstest.Benchmark()
	onNodes(benchmark, 2)
	benchmark.Spec.Target.ZFS.PerNode = []v1alpha1.NodePool{{NodeName: "n2", Pool: v1alpha1.PoolTemplate{Ashift: 12}}}
	benchmark.Spec.Variants = []v1alpha1.Variant{{Name: "a", Pool: &v1alpha1.PoolOverride{Properties: v1alpha1.Properties{"autotrim": "on"}}}}
	benchmark.Spec.Matrix = v1alpha1.Matrix{"pool.ashift": {"9"}}
	slots, err := design.Expand(&benchmark.Spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	pool := design.ResolveTarget(slots[0].Target, "n2", "", volume.ProvisionerLocal).ZFS.Pool
	if pool.Ashift != 9 || pool.Properties["autotrim"] != "on" {
		t.Errorf("%+v", pool)
	}
}

// TestInvalidGroupInResults: the valid runs of an Invalid group are not used either, and the group counts once.
func TestInvalidGroupInResults(t *testing.T) {
	state := groupState()
	state = members(state, endsWith(runstest.ValidEnding), endsWith(runstest.ValidEnding))
	documents := map[string]results.PhaseDocument{}
	for i := range state.Runs {
		state.Runs[i].Status.Phases[0].Result = "result-" + state.Runs[i].Name
	}
	documents["result-"+state.Runs[0].Name] = results.PhaseDocument{Phase: "fill", Kind: results.KindFill, Outcome: results.OutcomeValid,
		StartedAt: runstest.Noon, FinishedAt: runstest.Noon}
	e := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs,
		Documents: documents, Tally: Count(state)})
	if len(e.Groups) != 1 || e.Groups[0].Valid || e.Runs[0].Valid || e.Runs[0].Reason != v1alpha1.ReasonPeerInvalid ||
		e.Runs[1].Reason != v1alpha1.ReasonResultMissing || e.NodeName != "n1,n2" {
		t.Errorf("%+v\n%+v", e.Groups, e.Runs)
	}
	if e.Runs[1].NodeName != "n2" || e.Runs[1].Group.Size != 2 || e.Runs[1].Group.Index != 1 {
		t.Errorf("%+v", e.Runs[1])
	}
}

func TestNamesOfMembers(t *testing.T) {
	long := naming.RunName(strings.Repeat("b", 63), "0a1b2c3d", 511, 10)
	if name := naming.PhaseObjectName(naming.MemberName(long, 7), v1alpha1.PhaseName(strings.Repeat("p", 20))); len(name) > 63 {
		t.Errorf("%s has %d characters", name, len(name))
	}
	if got := naming.MemberName("x-000-2", 1); got != "x-000-2-b" {
		t.Error(got)
	}
	if got := JoinNodes([]string{strings.Repeat("n", 200), strings.Repeat("m", 200)}); len(got) != 253 || !strings.HasSuffix(got, "...") {
		t.Error(got)
	}
}
