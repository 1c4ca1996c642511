package experiment

import (
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// The number of histories and states is fixed, which also fixes the duration of the suite.
const (
	histories    = 2000
	randomStates = 6000
	movesMost    = 60
	roundsMost   = 400
)

// explore runs a property a fixed number of times. A failure prints the seed that repeats it.
func explore(t *testing.T, times string, property func(*rapid.T)) {
	t.Helper()
	before := flag.Lookup("rapid.checks").Value.String()
	for name, value := range map[string]string{"rapid.checks": times, "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", before) })
	rapid.Check(t, property)
}

// TestHistories plays random histories in which the cluster misbehaves while the planner decides. Then the cluster behaves, and the
// experiment must end.
func TestHistories(t *testing.T) {
	before, ends := statesTried, map[string]int{}
	explore(t, itoa(histories), func(t *rapid.T) {
		w := newWorld(t)
		for range w.draw(movesMost, "moves") {
			w.move()
		}
		w.behave()
		ends[w.end()]++
		statesTried += w.decisions
	})
	for _, end := range []string{"gone", string(PositionFinished), string(PositionSuspended), string(PositionStalled)} {
		if ends[end] == 0 {
			t.Errorf("no history ended %s: the test no longer tests what it says", end)
		}
	}
	if t.Logf("runs by times of a schedule: %v", schedulesTried); schedulesTried[2] < 100 || schedulesTried[3] < 20 {
		t.Errorf("few histories have more than one experiment by a schedule: %v", schedulesTried)
	}
	if t.Logf("ends: %v, %d groups", ends, groupsTried); groupsTried < 100 {
		t.Errorf("only %d groups have come to a good end", groupsTried)
	}
	countStates(t, before)
}

// move is one step: a reconciliation by a controller or an event in the cluster.
func (w *world) move() {
	names := w.names()
	kind := w.draw(20, "move")
	switch {
	case kind < 5:
		w.reconcile(w.draw(4, "crash") == 0)
	case kind < 14 && len(names) > 0:
		r := w.runs[names[w.draw(len(names), "run")]]
		if kind < 9 {
			w.reconcileRun(r, w.draw(4, "crash") == 0)
		} else {
			w.moveRun(r)
		}
	case kind < 16:
		w.now = w.now.Add(time.Duration(1+w.draw(20, "minutes")) * time.Minute)
	case kind < 18:
		w.moveCluster()
	default:
		w.movePeople()
	}
	w.collect()
}

// moveRun does something to a run's objects.
func (w *world) moveRun(r *worldRun) {
	i := w.draw(len(r.phases), "phase")
	phase := &r.phases[i]
	switch w.draw(14, "happening") {
	case 0, 1, 2, 3:
		w.advance(r, i)
	case 4:
		if phase.Pod.Exists && phase.Pod.Ended == nil {
			phase.Pod.Problem, phase.Pod.Message = v1alpha1.ReasonPodEvicted, "node is low on memory"
			phase.Pod.Ended, phase.Pod.ExitCode = w.at(), -1
		}
	case 5:
		if phase.Pod.Started != nil && phase.Pod.Ended == nil {
			w.endPod(r, i, w.draw(4, "how"))
		}
	case 6:
		if phase.Executor.Exists && r.recorded(i) { // a user deletes the Job
			phase.Executor.Deleting = true
		}
	case 7:
		if phase.Pod.Exists { // the node is lost, and the pod with it
			phase.Pod = runs.PodState{}
			phase.Executor.Failed, phase.Executor.Message = true, "BackoffLimitExceeded"
		}
	case 8:
		if r.volume != nil {
			r.volume.Lost = true
		}
	case 9:
		if r.volume != nil {
			r.volume.Deleting = true
		}
	case 10:
		if phase.Executor.Exists && !phase.Pod.Exists {
			phase.Executor.Message = "pods is forbidden: exceeded quota"
		} else if phase.Pod.Exists && phase.Pod.Started == nil {
			phase.Pod.Problem, phase.Pod.Message = v1alpha1.ReasonImagePullFailed, "not found"
		}
	case 11:
		r.run.DeletionTimestamp = &metav1.Time{Time: w.now}
	case 12: // a pod of another user names the claim
		r.keepClaim = !r.keepClaim
	case 13: // a user adds a finalizer to pods
		r.keepPod = !r.keepPod
	}
}

func (w *world) at() *time.Time {
	now := w.now
	return &now
}

// advance makes the next step of a phase happen, as if all goes well.
func (w *world) advance(r *worldRun, i int) {
	phase := &r.phases[i]
	if r.volume != nil && !r.volume.Bound && !r.volume.Lost {
		r.volume.Bound = true
	}
	switch {
	case !phase.Executor.Exists || phase.Executor.Failed || phase.Executor.Deleting:
	case !phase.Pod.Exists:
		phase.Pod = runs.PodState{Exists: true, Name: "pod"}
	case phase.Pod.Started == nil:
		phase.Pod.Started, phase.Pod.Problem, phase.Pod.Message = w.at(), "", ""
	case phase.Pod.Ended == nil:
		w.endPod(r, i, 0)
	default:
		phase.Executor.Succeeded = phase.Pod.ExitCode == 0
		phase.Executor.Failed = !phase.Executor.Succeeded
	}
	w.changed = true
}

func (w *world) endPod(r *worldRun, i, how int) {
	phase := &r.phases[i]
	phase.Pod.Ended = w.at()
	switch how {
	case 0, 1:
		phase.Pod.HasReceipt, r.arrives[i] = true, true
		r.outcome[i] = []results.Outcome{results.OutcomeValid, results.OutcomeInvalid}[how]
	case 2:
		phase.Pod.HasReceipt = true // its log will never be read
	default:
		phase.Pod.ExitCode, phase.Pod.Message = 1, "panic"
	}
}

// moveCluster changes the cluster around the benchmark.
func (w *world) moveCluster() {
	node := w.all[w.draw(len(w.all), "node")]
	switch w.draw(11, "cluster") {
	case 0:
		w.leases[node], w.abandoned = runstest.Thief, false // stolen, whoever had it
	case 1:
		delete(w.leases, node)
	case 2:
		w.abandoned = w.leases[node] == runstest.Thief
	case 3:
		w.nodes = [][]string{{}, {"n1"}, w.all[1:], w.all}[w.draw(4, "nodes")]
	case 4:
		w.classes = [][]ClassState{{}, {{Name: "slow"}}, {{Name: "fast", Default: true}},
			{{Name: "fast"}, {Name: "slow", Default: true}}}[w.draw(4, "classes")]
	case 5:
		w.ahead = !w.ahead
	case 6:
		w.foreign = !w.foreign
	case 7:
		w.results = nil
	case 8: // a user restores the benchmark without its status
		if w.benchmark != nil {
			w.benchmark.Status = v1alpha1.StorageBenchmarkStatus{}
		}
	case 9:
		w.taken = !w.taken
	case 10:
		w.neighbour = nil
		if w.draw(2, "neighbour") == 0 {
			w.neighbour = []Neighbour{{UID: "other-uid", Name: "other", Holds: true, Nodes: 1 + w.draw(8, "nodes")}}
		}
	}
}

// movePeople changes the benchmark, as its users do.
func (w *world) movePeople() {
	if w.benchmark == nil {
		return
	}
	spec := &w.benchmark.Spec
	switch w.draw(11, "people") {
	case 0, 1:
		spec.Suspend = !spec.Suspend
	case 2:
		spec.Repetitions = 3 - spec.Repetitions
	case 3:
		w.benchmark.Annotations = map[string]string{v1alpha1.AnnotationRerun: itoa(w.draw(3, "rerun"))}
	case 4:
		spec.Matrix = []v1alpha1.Matrix{nil, {"phases.fill.nonsense": {"1"}}, {"phases.fill.to": {"50%"}}}[w.draw(3, "matrix")]
	case 5:
		w.broken = !w.broken
	case 6:
		spec.MaxAttempts = int32(1 + w.draw(3, "attempts"))
	case 7:
		spec.Gates = []v1alpha1.Gate{{Name: v1alpha1.GateName("g" + itoa(w.draw(2, "gate")))}}
	case 8:
		spec.Schedule, spec.TTLAfterFinished = w.schedule(), nil
	case 9:
		spec.Schedule = nil
	case 10:
		if w.draw(3, "really") == 0 && len(w.benchmark.Finalizers) > 0 {
			w.benchmark.DeletionTimestamp = &metav1.Time{Time: w.now}
		}
	}
}

// collect does the part of Kubernetes: it finishes deletions.
func (w *world) collect() {
	for _, name := range w.names() {
		r := w.runs[name]
		if r.straysAtWork > 0 || r.strays > 0 && !r.keepPod { // they run for one more step
			if r.straysAtWork, w.changed = 0, true; !r.keepPod {
				r.strays = 0
			}
		}
		pods := false
		for i := range r.phases {
			phase := &r.phases[i]
			if phase.Executor.Deleting {
				if phase.Pod.Exists && (!r.keepPod || phase.Pod.Ended != nil) {
					r.strays++
					if phase.Pod.Ended == nil {
						r.straysAtWork++
					}
				}
				phase.Executor, phase.Pod, w.changed = runs.ExecutorState{}, runs.PodState{}, true
			}
			pods = pods || phase.Pod.Exists
		}
		if r.volume != nil && r.volume.Deleting && !pods && r.strays == 0 && !r.keepClaim {
			r.volume, w.changed = nil, true
		}
	}
}

// behave lets the cluster behave until nothing changes any more.
func (w *world) behave() {
	w.nodes, w.classes = w.all, []ClassState{{Name: "fast", Default: true}, {Name: "slow"}}
	w.ahead, w.foreign, w.abandoned, w.taken, w.neighbour = false, false, false, false, nil
	for _, r := range w.runs {
		r.keepClaim, r.keepPod = false, false
	}
	for node, holder := range w.leases {
		if holder == runstest.Thief {
			delete(w.leases, node)
		}
	}
	pace := []time.Duration{time.Second, 3 * time.Minute}[w.draw(2, "pace")] // slow enough to meet spec.deadline, too
	for round := 0; ; round++ {
		if round == roundsMost/4 && w.benchmark != nil { // at this pace, experiments may follow each other forever
			w.benchmark.Spec.Schedule = nil
		}
		if round > roundsMost {
			w.t.Fatalf("no end after %d rounds: %s %s: %s", round, w.last.Position, w.last.Reason, w.last.Message)
		}
		w.changed, w.wake = false, time.Time{}
		w.reconcile(false)
		for _, name := range w.names() {
			r := w.runs[name]
			w.reconcileRun(r, false)
			for i := range r.phases {
				if phase := r.phases[i]; phase.Executor.Exists && phase.Stored == nil && !phase.Executor.Failed && !phase.Executor.Succeeded {
					w.advance(r, i)
				}
			}
		}
		w.collect()
		switch {
		case w.changed:
			w.now = w.now.Add(pace)
		case w.wake.IsZero() || w.last.Position == PositionFinished && w.scheduled(w.wake):
			return // the next scheduled experiment would be another history
		case !w.wake.After(w.now):
			w.t.Fatalf("nothing has changed, and the planner wants to be woken in the past: %s", w.last.Message)
		default:
			w.now = w.wake
		}
	}
}

// end returns how a history has ended, and checks that this is what the user requested.
func (w *world) end() string {
	if w.benchmark == nil {
		if len(w.runs) > 0 || slices.Contains(slices.Collect(maps.Values(w.leases)), runstest.OwnUID) {
			w.t.Fatalf("the benchmark is gone, but %d runs or a Lease are left: %v", len(w.runs), w.leases)
		}
		return "gone"
	}
	state := w.observe()
	for node, holder := range w.leases {
		if holder == runstest.OwnUID && unsettled(state) == nil {
			w.t.Fatalf("it ended %s (%s), but keeps node %s", w.last.Position, w.last.Message, node)
		}
	}
	expected := PositionFinished
	switch {
	case !w.benchmark.DeletionTimestamp.IsZero():
		w.t.Fatalf("it was deleted, but is still there: %s", w.last.Message)
	case state.SpecError != nil:
		expected = PositionStalled
	case w.benchmark.Spec.Suspend && !Count(state).Over:
		expected = PositionSuspended
	}
	if expected == PositionStalled && w.waiting(unsettled(state)) {
		return string(expected)
	}
	if w.last.Position != expected || unsettled(state) != nil {
		w.t.Fatalf("it ended %s (%s: %s) instead of %s", w.last.Position, w.last.Reason, w.last.Message, expected)
	}
	w.groupsAreWhole(state)
	if tally := Count(state); expected == PositionFinished && !tally.Over {
		w.t.Fatalf("it is finished, but not over: %+v", tally)
	}
	return string(expected)
}

// groupsAreWhole checks that the runs of each valid group have agreed on the same start times.
func (w *world) groupsAreWhole(state State) {
	for i := range state.Slots {
		for _, group := range attemptsAt(state, state.Slots[i].Index) {
			if ending := group.ending(); ending == nil || !ending.Valid {
				continue
			}
			for _, run := range group.runs {
				for k, phase := range w.runs[run.Name].startedAt {
					if first := w.runs[group.runs[0].Name].startedAt[k]; !phase.Equal(first) {
						w.t.Fatalf("phase %d of run %s began by %s, that of run %s by %s", k, run.Name, phase, group.runs[0].Name, first)
					}
				}
			}
			groupsTried++
		}
	}
}

// groupsTried counts the groups that ended valid.
var groupsTried int

// waiting reports whether a run has lost the node between two phases and waits until the spec is repaired: nothing of it runs, and nothing
// is lost.
func (w *world) waiting(run *v1alpha1.BenchmarkRun) bool {
	if run == nil || w.last.Position != PositionStalled {
		return false
	}
	r := w.runs[run.Name]
	for i := range r.phases {
		if pod := r.phases[i].Pod; pod.Exists && pod.Ended == nil {
			return false
		}
	}
	reason := runs.Plan(w.observeRun(r)).Reason
	robbed := slices.ContainsFunc(RunNodes(run), func(node string) bool { return w.leases[node] != runstest.OwnUID })
	return r.strays == 0 && robbed && (reason == v1alpha1.ReasonQueued || reason == v1alpha1.ReasonWaitingForPeers)
}
