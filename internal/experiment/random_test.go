package experiment

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

func itoa(n int) string { return strconv.Itoa(n) }

// dice draws parts of random states, including states that no history leads to.
type dice struct{ t *rapid.T }

func (d dice) yes() bool                  { return rapid.Bool().Draw(d.t, "yes") }
func (d dice) roll(n int) int             { return rapid.IntRange(0, n-1).Draw(d.t, "roll") }
func (d dice) pick(some ...string) string { return some[d.roll(len(some))] }

func (d dice) moment() time.Time {
	return runstest.Noon.Add(time.Duration(d.roll(400)-200) * time.Minute)
}

func (d dice) maybeMoment() *time.Time {
	if d.yes() {
		return nil
	}
	at := d.moment()
	return &at
}

func (d dice) deletion() *metav1.Time {
	if d.roll(4) > 0 {
		return nil
	}
	return &metav1.Time{Time: d.moment()}
}

func (d dice) runState() runs.State {
	run := makeRun(expandedOnce, expandedOnce.Slots[d.roll(len(expandedOnce.Slots))], 1)
	run.Spec.Retain = v1alpha1.RetainPolicy(d.pick("Always", "OnFailure", "Never"))
	run.DeletionTimestamp = d.deletion()
	d.outcome(&run)
	state := runs.State{
		Now: d.moment(), Timings: runs.DefaultTimings(), Run: &run, Owner: runstest.OwnUID,
		LeaseHolder: d.pick("", runstest.OwnUID, runstest.Thief), LeaseHolderName: "x/y",
		Pods: d.roll(3),
	}
	switch d.roll(4) {
	case 0:
		state.Claims.Foreign = true
	case 1:
		state.Claims = runs.Claims{Exists: true, Deleting: d.yes(), Bound: d.yes(), Lost: d.yes(), Problem: d.pick("", "no space")}
	case 2:
		state.Claims = runs.Claims{Exists: true, Bound: true}
	}
	if d.yes() {
		state.Pools = runs.Pools{Needed: true, Foreign: d.pick("", "", "sb-x"), Exist: d.yes(), Some: d.yes(), Deleting: d.yes(),
			Ready: d.yes(), Broken: d.yes(), Reason: "R", Message: "m"}
	}
	onPools := state.Pools.Needed
	if onPools {
		run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}
	}
	if onPools && state.Claims.Foreign { // leftovers of the run's own claim
		state.Claims.Some = d.yes()
	}
	if state.Pools.Needed && d.yes() {
		state.Claims.BindFirst = true
		if !state.Claims.Exists && d.yes() {
			state.Claims.Some, state.Claims.Deleting, state.Claims.Unwatched = true, true, d.pick("", "ZFSVolume openebs/pvc-1")
		}
		for _, words := range []*[]string{&state.Pools.Unread, &state.Pools.Differing} {
			if d.yes() {
				*words = []string{"w"}
			}
		}
		if d.yes() {
			state.Pools.Unasked = map[string]v1alpha1.DatasetPath{"data": "parent/pvc-1"}
		}
	}
	for i := range run.Spec.Phases {
		state.Phases = append(state.Phases, d.phase())
		if onPools {
			state.Phases[i].Companions = d.companions(runs.Companions(&run, run.Spec.Phases[i]))
		}
		if d.yes() {
			run.Status.Phases = append(run.Status.Phases, v1alpha1.RunPhaseStatus{Name: run.Spec.Phases[i].Name, ExecutorUID: d.pick("", "job"),
				Result: d.pick("", "map")})
		}
	}
	return state
}

func (d dice) phase() runs.PhaseState {
	phase := runs.PhaseState{}
	if d.yes() {
		phase.Executor = runs.ExecutorState{Exists: true, Deleting: d.yes(), UID: "job", Created: d.moment(), Failed: d.yes(), Succeeded: d.yes(),
			Message: d.pick("", "quota")}
	}
	if d.yes() {
		phase.Pod = runs.PodState{Exists: d.yes(), Name: "pod", Deleting: d.yes(), Started: d.maybeMoment(), Ended: d.maybeMoment(),
			ExitCode:   int32(d.roll(3) - 1),
			HasReceipt: d.yes(), Message: d.pick("", "words"),
			Problem: d.pick("", v1alpha1.ReasonPodEvicted, v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonPodRejected,
				v1alpha1.ReasonPodUnschedulable)}
	}
	switch d.roll(5) {
	case 0:
		phase.Stored = &runs.StoredResult{ConfigMap: "map", Outcome: results.Outcome(d.pick("Valid", "Invalid", "")), StoredAt: d.moment()}
	case 1:
		phase.Received = &results.PhaseDocument{Outcome: results.OutcomeValid}
	case 2:
		phase.ReceiveError = []error{runs.ErrForeign, results.ErrCorrupt, errors.New("connection refused"),
			fmt.Errorf("%w: 3 of 4", results.ErrTruncated)}[d.roll(4)]
	}
	return phase
}

func (d dice) companions(wanted []runs.Companion) map[runs.Companion]*v1alpha1.PoolOperation {
	companions := map[runs.Companion]*v1alpha1.PoolOperation{}
	for _, companion := range wanted {
		if d.yes() {
			operation := &v1alpha1.PoolOperation{Spec: v1alpha1.PoolOperationSpec{Cancel: d.yes()}}
			operation.DeletionTimestamp, operation.Status.StartedAt = d.deletion(), d.deletion()
			operation.Status.Outcome = d.pick("", v1alpha1.OutcomeSucceeded, v1alpha1.OutcomeFailed, v1alpha1.OutcomeCancelled)
			if d.yes() {
				operation.Status.Progress = &v1alpha1.OperationProgress{}
			}
			companions[companion] = operation
		}
	}
	return companions
}

func (d dice) outcome(run *v1alpha1.BenchmarkRun) {
	switch d.roll(5) {
	case 0:
		runstest.Record(run, runstest.ValidEnding, d.yes())
	case 1:
		runstest.Record(run, runstest.InvalidEnding, d.yes())
	case 2:
		runstest.Record(run, runstest.UselessEnding, d.yes())
	case 3:
		run.Status.Conditions = []metav1.Condition{{Type: d.pick("Complete", "Ready", "Valid"),
			Status: metav1.ConditionStatus(d.pick("True", "False", "Unknown"))}}
	}
	run.Status.StartedAt, run.Status.FinishedAt = d.deletion(), d.deletion()
}

// expandedOnce saves the expansion of every random state.
var expandedOnce = testState()

func (d dice) benchmarkState() State {
	state := expandedOnce
	benchmark := runstest.Benchmark()
	state.Benchmark, state.Now = benchmark, d.moment()
	benchmark.DeletionTimestamp = d.deletion()
	if d.roll(4) == 0 {
		benchmark.Finalizers = nil
	}
	benchmark.Spec.Suspend, benchmark.Spec.MaxAttempts = d.roll(4) == 0, int32(d.roll(4))
	if d.yes() {
		benchmark.Spec.Deadline = runstest.Lasting(time.Duration(d.roll(200)) * time.Minute)
	}
	if d.yes() {
		benchmark.Spec.TTLAfterFinished = runstest.Lasting(time.Duration(d.roll(200)) * time.Minute)
	}
	if d.yes() {
		keep := int32(d.roll(4))
		benchmark.Spec.ResultsHistory = &keep
	}
	benchmark.Status = v1alpha1.StorageBenchmarkStatus{NodeName: d.pick("", "n1", "n2", "gone"), StorageClass: d.pick("", "fast"),
		Experiment: d.pick("", state.Experiment), StartedAt: d.deletion(), FinishedAt: d.deletion()}
	if d.yes() {
		benchmark.Status.Queue = &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(d.moment()), Position: int32(d.roll(3))}
	}
	if d.roll(6) == 0 {
		state.SpecError = &design.SpecError{Reason: v1alpha1.ReasonSpecInvalid, Message: "wrong"}
		if d.yes() {
			state.Slots = nil
		}
	}
	d.surroundings(&state)
	for range d.roll(6) {
		slot := expandedOnce.Slots[d.roll(len(expandedOnce.Slots))]
		run := makeRun(expandedOnce, slot, int32(1+d.roll(3)))
		run.Name, run.UID = fmt.Sprintf("%s-%d", run.Name, len(state.Runs)), types.UID(itoa(len(state.Runs)))
		run.Spec.Experiment = d.pick(state.Experiment, state.Experiment, "0ld0ld0l", "0lder000")
		run.CreationTimestamp, run.DeletionTimestamp = metav1.Time{Time: d.moment()}, d.deletion()
		d.outcome(&run)
		state.Runs = append(state.Runs, run)
	}
	return state
}

func (d dice) surroundings(state *State) {
	state.Nodes, state.Classes, state.Leases, state.Waiting, state.Results = nil, nil, nil, nil, nil
	for range d.roll(4) {
		state.Nodes = append(state.Nodes, NodeState{Name: d.pick("n1", "n2", "n3"), Load: d.roll(3)})
	}
	for range d.roll(3) {
		state.Classes = append(state.Classes, ClassState{Name: d.pick("fast", "slow"), Default: d.yes()})
	}
	if d.yes() {
		state.Leases = []LeaseState{{Node: d.pick("n1", "n2", ""), Holder: d.pick(runstest.OwnUID, runstest.Thief, ""),
			HolderName: d.pick("", "x/y"), Abandoned: d.yes()}}
	}
	for range d.roll(3) {
		state.Waiting = append(state.Waiting, Place{UID: d.pick("0", "z"), Since: d.moment()})
	}
	for range d.roll(4) {
		state.Results = append(state.Results, StoredExperiment{ConfigMap: d.pick("ageing-x", naming.ResultsName("ageing", state.Experiment)),
			Experiment:  d.pick(state.Experiment, "0ld0ld0l", "other"+itoa(len(state.Results))),
			Fingerprint: d.pick("", "f"), StoredAt: d.moment(), Foreign: d.roll(5) == 0})
	}
}

// TestRandomRuns plans random states, including states that no history leads to: every state has a valid decision.
func TestRandomRuns(t *testing.T) {
	before := statesTried
	explore(t, itoa(randomStates), func(t *rapid.T) {
		state := dice{t}.runState()
		decision := runs.Plan(state)
		if !reflect.DeepEqual(decision, runs.Plan(state)) {
			t.Fatalf("the second decision differs")
		}
		if problem := runstest.Problem(state, decision); problem != "" {
			t.Fatalf("%s: %v %+v", problem, runstest.Kinds(decision.Actions), decision)
		}
		statesTried++
	})
	countStates(t, before)
}

// TestRandomBenchmarks does the same for benchmarks.
func TestRandomBenchmarks(t *testing.T) {
	before := statesTried
	explore(t, itoa(randomStates), func(t *rapid.T) {
		state := dice{t}.benchmarkState()
		decision := Plan(state)
		if !reflect.DeepEqual(decision, Plan(state)) {
			t.Fatalf("the second decision differs")
		}
		if problem := benchmarkProblem(state, decision); problem != "" {
			t.Fatalf("%s: %v %+v", problem, kinds(decision.Actions), decision)
		}
		statesTried++
	})
	countStates(t, before)
}
