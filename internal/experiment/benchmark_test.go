package experiment

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

type benchmarkTest struct {
	name     string
	state    State
	change   func(*State)
	actions  []string
	position Position
	reason   string
	says     string
	check    func(*testing.T, State, Decision)
}

func runBenchmarkTests(t *testing.T, tests []benchmarkTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			state := test.state
			if test.change != nil {
				test.change(&state)
			}
			decision := Plan(state)
			if problem := benchmarkProblem(state, decision); problem != "" {
				t.Error(problem)
			}
			if got := kinds(decision.Actions); !slices.Equal(got, test.actions) && len(got)+len(test.actions) > 0 {
				t.Errorf("actions %v, want %v", got, test.actions)
			}
			if decision.Position != test.position || decision.Reason != test.reason || !strings.Contains(decision.Message, test.says) {
				t.Errorf("%s %s: %q, want %s %s: ...%q...", decision.Position, decision.Reason, decision.Message, test.position, test.reason, test.says)
			}
			if test.check != nil {
				test.check(t, state, decision)
			}
		})
	}
}

func deleted(s *State)   { s.Benchmark.DeletionTimestamp = &metav1.Time{Time: runstest.Noon} }
func suspended(s *State) { s.Benchmark.Spec.Suspend = true }
func freeNode(s *State)  { s.Leases = nil }

// inLine makes the benchmark wait in the queue since noon.
func inLine(s *State) {
	freeNode(s)
	s.Benchmark.Status.Queue = &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(runstest.Noon), Position: 1}
}

// withRun adds a run in progress for the next slot.
func withRun(state State, attempt int32, change func(*v1alpha1.BenchmarkRun)) State {
	run := makeRun(state, state.Slots[len(state.Runs)%len(state.Slots)], attempt)
	if change != nil {
		change(&run)
	}
	state.Runs = append(state.Runs, run)
	return state
}

func runDeleting(run *v1alpha1.BenchmarkRun) {
	run.DeletionTimestamp = &metav1.Time{Time: runstest.Noon}
}

func cleaning(run *v1alpha1.BenchmarkRun) { runstest.Record(run, runstest.ValidEnding, false) }

func wakes(d time.Duration) func(*testing.T, State, Decision) {
	return func(t *testing.T, _ State, decision Decision) {
		t.Helper()
		if !decision.WakeAt.Equal(runstest.Noon.Add(d)) {
			t.Errorf("wakes at %v, want %v", decision.WakeAt, runstest.Noon.Add(d))
		}
	}
}

func TestBenchmarkEnds(t *testing.T) {
	name := func(i int) string { s := testState(); return makeRun(s, s.Slots[i], 1).Name }
	old := func(ended bool, stored bool) func(*State) {
		return func(s *State) {
			run := makeRun(*s, s.Slots[0], 1)
			run.Name, run.Spec.Experiment = "old-1", "0ld0ld0l"
			if ended {
				runstest.Record(&run, runstest.ValidEnding, true)
			}
			other := *run.DeepCopy()
			other.Name = "old-2"
			s.Runs = append(s.Runs, run, other)
			if stored {
				s.Results = append(s.Results, StoredExperiment{ConfigMap: "ageing-0ld0ld0l", Experiment: "0ld0ld0l", StoredAt: runstest.Noon})
			}
		}
	}
	broken := func(s *State) { s.SpecError = &design.SpecError{Reason: "GateInvalid", Message: "gate x"} }
	runBenchmarkTests(t, []benchmarkTest{
		{name: "deletion: runs first", state: endedRuns(testState(), 0, 2, runstest.ValidEnding), change: deleted,
			actions: []string{"DeleteRun " + name(0), "DeleteRun " + name(1)}, position: PositionDeleting, reason: "CleaningUp", says: "2 runs"},
		{name: "deletion: wait for runs", state: withRun(testState(), 1, runDeleting), change: deleted, position: PositionDeleting,
			reason: "CleaningUp"},
		{name: "deletion: then the node", state: testState(), change: deleted, actions: []string{"ReleaseLease"}, position: PositionDeleting,
			reason: "CleaningUp"},
		{name: "deletion: then the object", state: testState(), change: func(s *State) { deleted(s); freeNode(s) },
			actions: []string{"RemoveFinalizer"}, position: PositionDeleting, reason: "CleaningUp"},
		{name: "deletion leaves another holder's Lease", state: testState(), change: func(s *State) {
			deleted(s)
			s.Leases[0].Holder = runstest.Thief
		}, actions: []string{"RemoveFinalizer"}, position: PositionDeleting, reason: "CleaningUp"},
		{name: "the finalizer comes before anything is made", state: testState(), change: func(s *State) {
			s.Benchmark.Finalizers = []string{"x/y"}
		}, actions: []string{"AddFinalizer", "CreateRun"}, position: PositionRunning, reason: "Progressing"},

		{name: "superseded: results are written before runs are deleted", state: testState(), change: old(true, false),
			actions: []string{"ReleaseLease", "WriteResults"}, position: PositionWaiting, reason: "Superseded",
			check: func(t *testing.T, _ State, d Decision) {
				if a := d.Actions[1]; !a.Superseded || a.Experiment != "0ld0ld0l" || a.ConfigMap != "ageing-0ld0ld0l" || a.Fingerprint == "" {
					t.Errorf("%+v", a)
				}
			}},
		{name: "superseded: then the runs go", state: testState(), change: old(true, true),
			actions: []string{"DeleteRun old-1", "DeleteRun old-2"}, position: PositionWaiting, reason: "Superseded", says: "2 runs"},
		{name: "superseded: preliminary results are written again", state: testState(), change: func(s *State) {
			old(true, true)(s)
			s.Results[0].Extended = true
		}, actions: []string{"ReleaseLease", "WriteResults"}, position: PositionWaiting, reason: "Superseded"},
		{name: "superseded: without an ended run there is nothing to write", state: testState(), change: old(false, false),
			actions: []string{"DeleteRun old-1", "DeleteRun old-2"}, position: PositionWaiting, reason: "Superseded"},
		{name: "superseded comes before a wrong spec", state: testState(), change: func(s *State) { old(false, false)(s); broken(s) },
			actions: []string{"DeleteRun old-1", "DeleteRun old-2"}, position: PositionWaiting, reason: "Superseded"},

		{name: "stalled: the node is freed", state: testState(), change: broken, actions: []string{"ReleaseLease"}, position: PositionStalled,
			reason: "GateInvalid", says: "gate x"},
		{name: "stalled: not under a run", state: withRun(testState(), 1, nil), change: broken, position: PositionStalled, reason: "GateInvalid"},
		{name: "stalled: nor while it is cleaned up", state: withRun(testState(), 1, cleaning), change: broken, position: PositionStalled,
			reason: "GateInvalid"},

		{name: "suspend stops the run", state: withRun(testState(), 1, nil), change: suspended, actions: []string{"DeleteRun " + name(0)},
			position: PositionSuspended, reason: "Suspended", says: "after 0 of 4"},
		{name: "suspend waits for it", state: withRun(testState(), 1, runDeleting), change: suspended, position: PositionSuspended,
			reason: "Suspended"},
		{name: "suspend keeps ended runs and frees the node", state: endedRuns(testState(), 0, 3, runstest.ValidEnding), change: suspended,
			actions: []string{"ReleaseLease"}, position: PositionSuspended, reason: "Suspended", says: "after 3 of 4"},
		{name: "suspend lets cleaning up end", state: withRun(testState(), 1, cleaning), change: suspended, position: PositionSuspended,
			reason: "Suspended"},
		{name: "suspend does not undo an end", state: finished(), change: suspended, actions: []string{"ReleaseLease"},
			position: PositionFinished, reason: "Finished"},

		{name: "over: the last run is cleaned up after", state: withRun(endedRuns(testState(), 0, 3, runstest.ValidEnding), 1, cleaning),
			position: PositionRunning, reason: "CleaningUp"},
		{name: "over: results are written", state: endedRuns(testState(), 0, 4, runstest.ValidEnding),
			actions:  []string{"ReleaseLease", "WriteResults"},
			position: PositionRunning, reason: "Progressing"},
		{name: "over: other gates, other results", state: finished(), change: func(s *State) {
			s.Benchmark.Spec.Gates = []v1alpha1.Gate{{Name: "new"}}
		}, actions: []string{"ReleaseLease", "WriteResults"}, position: PositionRunning, reason: "Progressing"},
		{name: "over: the name is taken", state: endedRuns(testState(), 0, 4, runstest.ValidEnding), change: func(s *State) {
			s.Results = []StoredExperiment{{ConfigMap: naming.ResultsName("ageing", s.Experiment), Foreign: true}}
		}, actions: []string{"ReleaseLease"}, position: PositionStalled, reason: "NameTaken", says: "does not belong to this benchmark",
			check: wakes(runs.ForeignRecheck)},
		{name: "finished", state: finished(), change: freeNode, position: PositionFinished, reason: "Finished"},
		{name: "finished: the node is freed", state: finished(), actions: []string{"ReleaseLease"}, position: PositionFinished,
			reason: "Finished"},
	})
}

func TestBenchmarkRuns(t *testing.T) {
	deadline := func(d time.Duration) func(*State) {
		return func(s *State) { s.Benchmark.Spec.Deadline = runstest.Lasting(d) } // runs were made at noon-1h
	}
	next := func(index, attempt int32) func(*testing.T, State, Decision) {
		return func(t *testing.T, s State, d Decision) {
			t.Helper()
			if a := d.Actions[0]; a.Slot.Index != index || a.Attempt != attempt {
				t.Errorf("run %d attempt %d, want %d %d", a.Slot.Index, a.Attempt, index, attempt)
			}
		}
	}
	tally := func(done, invalid, givenUp int) func(*testing.T, State, Decision) {
		return func(t *testing.T, s State, d Decision) {
			t.Helper()
			if d.Tally.Done != done || d.Tally.Invalid != invalid || len(d.Tally.GivenUp) != givenUp {
				t.Errorf("tally %+v, want done %d invalid %d given up %d", d.Tally, done, invalid, givenUp)
			}
		}
	}
	second := func(ending runs.Ending) State { // both attempts at the first run have this ending
		state := endedRuns(testState(), 0, 1, ending)
		run := makeRun(state, state.Slots[0], 2)
		runstest.Record(&run, ending, true)
		state.Runs = append(state.Runs, run)
		return state
	}
	stopped := withRun(testState(), 1, nil).Runs[0].Name
	runBenchmarkTests(t, []benchmarkTest{
		{name: "the first run", state: testState(), actions: []string{"CreateRun"}, position: PositionRunning, reason: "Progressing",
			says: "starting run 1 of 4", check: next(0, 1)},
		{name: "the next run", state: endedRuns(testState(), 0, 2, runstest.ValidEnding), actions: []string{"CreateRun"},
			position: PositionRunning, reason: "Progressing", check: next(2, 1)},
		{name: "one at a time", state: withRun(testState(), 1, nil), position: PositionRunning, reason: "Progressing", says: "run 1 of 4",
			check: func(t *testing.T, s State, d Decision) {
				if d.Current == nil || d.Current.Name != s.Runs[0].Name {
					t.Errorf("current %v", d.Current)
				}
			}},
		{name: "nor while one is cleaned up after", state: withRun(testState(), 1, cleaning), position: PositionRunning, reason: "Progressing",
			says: "cleaning up"},
		{name: "nor while one is being deleted", state: withRun(testState(), 1, runDeleting), position: PositionRunning, reason: "Progressing",
			check: tally(0, 0, 0)},
		{name: "a valid run that a user deletes is recreated", state: withRun(endedRuns(testState(), 0, 3, runstest.ValidEnding), 1,
			func(r *v1alpha1.BenchmarkRun) { runstest.Record(r, runstest.ValidEnding, true); runDeleting(r) }),
			position: PositionRunning, reason: "Progressing", says: "run 4 of 4", check: tally(3, 0, 0)},
		{name: "an invalid run is tried again", state: endedRuns(testState(), 0, 1, runstest.InvalidEnding), actions: []string{"CreateRun"},
			position: PositionRunning, reason: "Progressing", check: next(0, 2)},
		{name: "nor on a node that was cordoned meanwhile, and others can have it", state: endedRuns(testState(), 0, 1, runstest.InvalidEnding),
			change: func(s *State) { s.Nodes = nil }, actions: []string{"ReleaseLease"}, position: PositionWaiting,
			reason: v1alpha1.ReasonNoNode, says: "waits for node n1"},
		{name: "unless a pool is kept there", state: endedRuns(testState(), 0, 1, runstest.InvalidEnding),
			change:   func(s *State) { s.Nodes, s.Pools = nil, []KeptPool{{Name: "kept", Node: "n1"}} },
			position: PositionWaiting, reason: v1alpha1.ReasonNoNode, says: "waits for node n1"},
		{name: "if the manager knows", state: endedRuns(testState(), 0, 1, runstest.InvalidEnding),
			change: func(s *State) { s.Nodes, s.ClusterUnread = nil, true }, actions: []string{"CreateRun"}, position: PositionRunning,
			reason: "Progressing"},
		{name: "so often and no more: the others go on", state: second(runstest.InvalidEnding), actions: []string{"CreateRun"},
			position: PositionRunning, reason: "Progressing", check: func(t *testing.T, s State, d Decision) {
				next(1, 1)(t, s, d)
				tally(0, 2, 1)(t, s, d)
			}},
		{name: "more attempts are allowed later", state: second(runstest.InvalidEnding), change: func(s *State) {
			s.Benchmark.Spec.MaxAttempts = 3
		}, actions: []string{"CreateRun"}, position: PositionRunning, reason: "Progressing", check: next(0, 3)},
		{name: "a hopeless run ends everything", state: endedRuns(testState(), 0, 1, runstest.UselessEnding),
			actions:  []string{"ReleaseLease", "WriteResults"},
			position: PositionRunning, reason: "Progressing", check: tally(0, 1, 1)},
		{name: "one valid attempt is enough", state: func() State {
			state := endedRuns(testState(), 0, 1, runstest.InvalidEnding)
			run := makeRun(state, state.Slots[0], 2)
			runstest.Record(&run, runstest.ValidEnding, true)
			state.Runs = append(state.Runs, run)
			return state
		}(), actions: []string{"CreateRun"}, position: PositionRunning, reason: "Progressing", check: next(1, 1)},

		{name: "deadline in a moment", state: withRun(testState(), 1, nil), change: deadline(time.Hour + 1), position: PositionRunning,
			reason: "Progressing", check: wakes(1)},
		{name: "deadline exactly: the run is stopped", state: withRun(testState(), 1, nil), change: deadline(time.Hour),
			actions: []string{"DeleteRun " + stopped}, position: PositionRunning, reason: "CleaningUp"},
		{name: "deadline: a run that has just ended is kept", state: withRun(testState(), 1, cleaning), change: deadline(time.Hour),
			position: PositionRunning, reason: "CleaningUp"},
		{name: "deadline: results of what there is", state: endedRuns(testState(), 0, 2, runstest.ValidEnding), change: deadline(time.Hour),
			actions: []string{"ReleaseLease", "WriteResults"}, position: PositionRunning, reason: "Progressing", check: tally(2, 0, 0)},
		{name: "deadline: all runs were over in time", state: finished(), change: func(s *State) { deadline(time.Minute)(s); freeNode(s) },
			position: PositionFinished, reason: "Finished"},
		{name: "deadline: it does not start again when the only run is gone", state: testState(), change: func(s *State) {
			deadline(time.Hour)(s)
			s.Benchmark.Status.StartedAt = runstest.Stamp(-time.Hour)
		}, actions: []string{"ReleaseLease", "WriteResults"}, position: PositionRunning, reason: "Progressing"},
		{name: "deadline: another experiment's beginning does not count", state: testState(), change: func(s *State) {
			deadline(time.Hour)(s)
			s.Benchmark.Status.StartedAt, s.Benchmark.Status.Experiment = runstest.Stamp(-time.Hour), "0ld0ld0l"
			s.Rehearsed = true
		}, actions: []string{"CreateRun"}, position: PositionRunning, reason: "Progressing"},
		{name: "no deadline before the first run", state: testState(), change: deadline(time.Minute), actions: []string{"CreateRun"},
			position: PositionRunning, reason: "Progressing", check: func(t *testing.T, _ State, d Decision) {
				if !d.WakeAt.IsZero() {
					t.Errorf("wakes at %v", d.WakeAt)
				}
			}},
	})
}

func TestBenchmarkPlaces(t *testing.T) {
	chosen := func(node string) func(*testing.T, State, Decision) {
		return func(t *testing.T, _ State, d Decision) {
			t.Helper()
			if d.NodeName != node {
				t.Errorf("node %q, want %q", d.NodeName, node)
			}
		}
	}
	class := func(used, standard string) func(*testing.T, State, Decision) {
		return func(t *testing.T, _ State, d Decision) {
			t.Helper()
			if d.StorageClass != used || d.DefaultClass != standard {
				t.Errorf("class %q default %q, want %q %q", d.StorageClass, d.DefaultClass, used, standard)
			}
		}
	}
	unnamed := func(s *State) {
		s.Benchmark.Spec.Target.StorageClass.Name = ""
		*s = settle(*s)
	}
	nodes := func(nodes ...NodeState) func(*State) {
		return func(s *State) { freeNode(s); s.Nodes, s.Benchmark.Status.NodeName = nodes, "" }
	}
	waiting := func(places ...Place) func(*State) {
		return func(s *State) { inLine(s); s.Waiting = places }
	}
	ahead := func(inLine bool, ahead int) func(*testing.T, State, Decision) {
		return func(t *testing.T, _ State, d Decision) {
			t.Helper()
			if d.InLine != inLine || d.Ahead != ahead {
				t.Errorf("in line %v behind %d, want %v %d", d.InLine, d.Ahead, inLine, ahead)
			}
		}
	}
	joining := benchmarkTest{position: PositionQueued, reason: "Queued", says: "joining the queue"}
	with := func(test benchmarkTest, name string, change func(*State), check func(*testing.T, State, Decision)) benchmarkTest {
		test.name, test.state, test.change, test.check = name, testState(), change, check
		return test
	}
	run := []string{"CreateRun"}
	runBenchmarkTests(t, []benchmarkTest{
		{name: "class: named", state: testState(), actions: run, position: PositionRunning, reason: "Progressing", check: class("fast", "fast")},
		{name: "class: missing", state: testState(), change: func(s *State) { s.Classes = s.Classes[1:] }, actions: []string{"ReleaseLease"},
			position: PositionWaiting, reason: "StorageClassNotFound", says: "kubectl get storageclass"},
		{name: "class: missing for the second variant", state: testState(), change: func(s *State) {
			s.Benchmark.Spec.Variants[1].StorageClass = &v1alpha1.StorageClassOverride{Name: "gone"}
			*s = settle(*s)
		}, actions: []string{"ReleaseLease"}, position: PositionWaiting, reason: "StorageClassNotFound", says: `"gone" of variant "b"`},
		{name: "class: the default", state: testState(), change: unnamed, actions: run, position: PositionRunning, reason: "Progressing",
			check: class("fast", "fast")},
		{name: "class: of two defaults the first by name", state: testState(), change: func(s *State) {
			unnamed(s)
			s.Classes = []ClassState{{"z", true}, {"b", true}, {"a", false}}
		}, actions: run, position: PositionRunning, reason: "Progressing", check: class("b", "b")},
		{name: "class: no default", state: testState(), change: func(s *State) { unnamed(s); s.Classes = nil }, actions: []string{"ReleaseLease"},
			position: PositionWaiting, reason: "NoDefaultStorageClass", says: "kubectl get storageclass"},
		{name: "class: another default half-way changes nothing", state: testState(), change: func(s *State) {
			unnamed(s)
			*s = endedRuns(*s, 0, 1, runstest.ValidEnding)
			s.Classes = []ClassState{{"fast", false}, {"slow", true}}
		}, actions: run, position: PositionRunning, reason: "Progressing", check: class("fast", "fast")},

		with(joining, "node: the only one", nodes(NodeState{"n7", 3}), chosen("n7")),
		with(joining, "node: the shortest line", nodes(NodeState{"a", 2}, NodeState{"c", 1}, NodeState{"b", 1}), chosen("b")),
		with(joining, "node: as before", func(s *State) {
			nodes(NodeState{"a", 0}, NodeState{"n1", 9})(s)
			s.Benchmark.Status.NodeName = "n1"
		}, chosen("n1")),
		with(joining, "node: as before, unless it no longer fits", func(s *State) {
			nodes(NodeState{"a", 0})(s)
			s.Benchmark.Status.NodeName = "n1"
		}, chosen("a")),
		with(joining, "node: where the runs are, whatever else", func(s *State) {
			nodes(NodeState{"a", 0}, NodeState{"n1", 9})(s)
			*s = endedRuns(*s, 0, 1, runstest.ValidEnding)
		}, chosen("n1")),
		{name: "node: the one we hold", state: testState(), change: func(s *State) {
			s.Nodes, s.Benchmark.Status.NodeName, s.Leases[0].Node = []NodeState{{"a", 0}, {"n2", 5}}, "a", "n2"
		}, actions: run, position: PositionRunning, reason: "Progressing", check: chosen("n2")},
		{name: "node: none", state: testState(), change: func(s *State) { s.Nodes = nil }, actions: []string{"ReleaseLease"},
			position: PositionWaiting, reason: "NoNode"},
		{name: "wrong node: given back", state: testState(), change: func(s *State) { s.Leases[0].Node = "n9" },
			actions: []string{"ReleaseLease"}, position: PositionQueued, reason: "Queued", says: "node n9 no longer fits"},
		{name: "wrong node: not under a run", state: withRun(testState(), 1, nil), change: func(s *State) { s.Leases[0].Node = "n9" },
			position: PositionQueued, reason: "Queued"},

		with(joining, "queue: join first", freeNode, ahead(true, 0)),
		{name: "queue: then take", state: testState(), change: inLine, actions: []string{"TakeLease"}, position: PositionQueued, reason: "Queued",
			says: "taking node n1", check: ahead(true, 0)},
		{name: "queue: behind the holder", state: testState(), change: func(s *State) {
			inLine(s)
			s.Leases = []LeaseState{{Node: "n1", Holder: runstest.Thief, HolderName: "lab/thief"}}
		}, position: PositionQueued, reason: "Queued", says: "number 1 in the queue for node n1, held by lab/thief", check: ahead(true, 0)},
		{name: "queue: earlier first", state: testState(), change: waiting(Place{UID: "z", Since: runstest.Noon.Add(-1)},
			Place{UID: "y", Since: runstest.Noon.Add(1)}), position: PositionQueued, reason: "Queued", says: "number 2 in the queue",
			check: ahead(true, 1)},
		{name: "queue: a tie goes to the smaller UID, theirs", state: testState(), change: waiting(Place{UID: "0", Since: runstest.Noon}),
			position: PositionQueued, reason: "Queued", says: "number 2 in the queue", check: ahead(true, 1)},
		{name: "queue: a tie goes to the smaller UID, ours", state: testState(), change: waiting(Place{UID: "z", Since: runstest.Noon}),
			actions: []string{"TakeLease"}, position: PositionQueued, reason: "Queued", check: ahead(true, 0)},
		{name: "queue: a newcomer is behind all", state: testState(), change: func(s *State) {
			waiting(Place{UID: "y", Since: runstest.Noon.Add(time.Hour)}, Place{UID: "z", Since: runstest.Noon.Add(time.Hour)})(s)
			s.Benchmark.Status.Queue = nil
		}, position: PositionQueued, reason: "Queued", says: "number 3 in the queue", check: ahead(true, 2)},
		with(joining, "queue: a place in another line does not count", func(s *State) { inLine(s); s.Nodes = []NodeState{{"n2", 0}} },
			chosen("n2")),
		{name: "queue: an abandoned Lease is broken", state: testState(), change: func(s *State) {
			inLine(s)
			s.Leases = []LeaseState{{Node: "n1", Holder: "ghost", HolderName: "lab/ghost", Abandoned: true}}
		}, actions: []string{"BreakLease"}, position: PositionQueued, reason: "Queued", says: "lab/ghost, which no longer exists"},
	})
}

func TestQueueIsATotalOrder(t *testing.T) {
	places := []Place{{UID: "c", Since: runstest.Noon}, {UID: "a", Since: runstest.Noon}, {UID: "b", Since: runstest.Noon.Add(-time.Second)},
		{UID: "d", Since: runstest.Noon.Add(time.Second)}}
	seats := make([]string, len(places))
	for i, own := range places {
		state := testState()
		freeNode(&state)
		state.Benchmark.UID, state.Waiting = types.UID(own.UID), slices.Delete(slices.Clone(places), i, i+1)
		state.Benchmark.Status.Queue = &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(own.Since)}
		decision := Plan(state)
		if seats[decision.Ahead] != "" {
			t.Errorf("%s and %s have the same place", seats[decision.Ahead], own.UID)
		}
		seats[decision.Ahead] = own.UID
		if takes := slices.Contains(kinds(decision.Actions), "TakeLease"); takes != (decision.Ahead == 0) {
			t.Errorf("%s takes the node: %v", own.UID, takes)
		}
	}
	if fmt.Sprint(seats) != "[b a c d]" {
		t.Errorf("order %v", seats)
	}
}

func TestHouseKeeping(t *testing.T) {
	history := func(keep *int32, n int) func(*State) {
		return func(s *State) {
			freeNode(s)
			s.Benchmark.Spec.ResultsHistory = keep
			for i := range n {
				name := fmt.Sprintf("old%02d", (i*7)%n) // not in order of time
				s.Results = append(s.Results, StoredExperiment{ConfigMap: name, Experiment: name,
					StoredAt: runstest.Noon.Add(time.Duration((i*7)%n) * time.Hour)})
			}
			s.Results = append(s.Results, StoredExperiment{ConfigMap: "foreign", Foreign: true})
		}
	}
	gone := func(names ...string) func(*testing.T, State, Decision) {
		return func(t *testing.T, _ State, d Decision) {
			t.Helper()
			var got []string
			for _, action := range d.Actions {
				got = append(got, action.ConfigMap)
			}
			if !slices.Equal(got, names) {
				t.Errorf("deletes %v, want %v", got, names)
			}
		}
	}
	keep := func(n int32) *int32 { return &n }
	ttl := func(d time.Duration) func(*State) {
		return func(s *State) { s.Benchmark.Spec.TTLAfterFinished = runstest.Lasting(d); freeNode(s) }
	}
	end := benchmarkTest{position: PositionFinished, reason: "Finished"}
	with := func(name string, change func(*State), actions []string, check func(*testing.T, State, Decision)) benchmarkTest {
		test := end
		test.name, test.state, test.change, test.actions, test.check = name, finished(), change, actions, check
		return test
	}
	remove := "DeleteResults"
	runBenchmarkTests(t, []benchmarkTest{
		with("history: ten by default", history(nil, 11), []string{remove}, gone("old00")),
		with("history: fewer", history(nil, 10), nil, nil),
		with("history: the newest are kept", history(keep(1), 3), []string{remove, remove}, gone("old01", "old00")),
		with("history: none", history(keep(0), 2), []string{remove, remove}, gone("old01", "old00")),
		with("history: results that are not in it go in", func(s *State) { freeNode(s); s.History.Folded = nil }, []string{"WriteHistory"}, nil),
		with("history: results of other gates go in again", func(s *State) { freeNode(s); s.History.Folded = []string{s.Experiment + ":0"} },
			[]string{"WriteHistory"}, nil),
		with("history: before old results are deleted", func(s *State) {
			history(keep(0), 1)(s)
			s.Results[1].Verdict = "Failed"
		}, []string{"WriteHistory", remove}, nil),
		with("history: superseded results do not go in", history(nil, 1), nil, nil),
		with("history: the name is taken", func(s *State) { freeNode(s); s.History = HistoryState{Foreign: true} }, nil,
			func(t *testing.T, s State, d Decision) {
				wakes(runs.ForeignRecheck)(t, s, d)
				if !strings.Contains(d.Message, "ConfigMap ageing-history belongs to another owner: delete or rename it") {
					t.Error(d.Message)
				}
			}),
		with("ttl: in a moment", ttl(1), nil, wakes(1)),
		with("ttl: exactly", func(s *State) { ttl(time.Minute)(s); s.Results[0].StoredAt = runstest.Noon.Add(-time.Minute) },
			[]string{"DeleteBenchmark"}, nil),
		with("ttl: from when there are results", func(s *State) { ttl(time.Minute)(s); s.Benchmark.Status.FinishedAt = runstest.Stamp(-time.Hour) },
			nil, wakes(time.Minute)),
		with("ttl: from the last run", func(s *State) { ttl(time.Minute)(s); s.Runs[1].Status.FinishedAt = runstest.Stamp(time.Second) },
			nil, wakes(61*time.Second)),
		with("ttl: not before the status says when", func(s *State) { ttl(0)(s); s.Benchmark.Status.FinishedAt = nil }, nil, nil),
		with("ttl: not before the node is free", func(s *State) {
			lease := s.Leases
			ttl(0)(s)
			s.Leases = lease
		}, []string{"ReleaseLease"}, nil),
	})
}

// TestUndecidableGatesAreReportedEarly: they are reported while the repetitions can still be changed, and not once there is a verdict.
func TestUndecidableGatesAreReportedEarly(t *testing.T) {
	state := testState()
	state.Benchmark.Spec.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	state.Benchmark.Spec.Repetitions = 4
	state.Benchmark.Spec.Phases[0].Fill.To = "5%"
	state.Benchmark.Spec.Gates = []v1alpha1.Gate{{Name: "g", Compare: &v1alpha1.CompareGate{Metric: "scan.writeBytesPerSecond", To: "Variant",
		Variant: "a", Tolerance: "5%"}}}
	state = settle(state)
	if _, err := Understand(&state); err != nil || state.SpecError != nil {
		t.Fatal(err, state.SpecError)
	}
	const want = "; gates cannot be decided with 4 repetitions: comparisons of variants need at least 6 repetitions"
	if decision := Plan(state); !strings.HasSuffix(decision.Message, want) {
		t.Errorf("%s: %q", decision.Position, decision.Message)
	}
	finished := Decision{Position: PositionFinished, Message: "done"}
	if finished.warn(state); finished.Message != "done" {
		t.Error(finished.Message)
	}
	state.Benchmark.Spec.Repetitions = 6
	state = settle(state)
	if _, err := Understand(&state); err != nil || strings.Contains(Plan(state).Message, "cannot be decided") {
		t.Errorf("%v: %q", err, Plan(state).Message)
	}
}
