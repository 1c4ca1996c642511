package experiment

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
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
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
)

// world is the smallest possible cluster: one benchmark with its runs and their objects, and a competitor.
type world struct {
	t         *rapid.T
	now       time.Time
	benchmark *v1alpha1.StorageBenchmark // nil once it is gone
	classes   []ClassState
	nodes     []string
	// leases has the holder of the Lease of each node.
	leases map[string]string
	// since and heldFor say when a Lease of ours was taken and for which experiment, by node.
	since     map[string]time.Time
	heldFor   map[string]string
	limits    Limits
	neighbour []Neighbour
	// taken is true if an object of another owner has one of our names. finalizers is true if a finalizer keeps a deleted run.
	taken      bool
	finalizers bool
	abandoned  bool
	ahead      bool // a benchmark that joined the queue earlier
	runs       map[string]*worldRun
	results    []StoredExperiment
	history    HistoryState
	foreign    bool // a ConfigMap of another owner has the name of the results
	full       bool // a quota forbids results: the reconciliation ends with an error
	uids       int
	decisions  int
	wake       time.Time
	changed    bool
	broken     bool // a gate that does not compile
	// begun are the scheduled times for which runs were created.
	begun []time.Time
	all   []string // all nodes that may exist
	last  Decision
}

type worldRun struct {
	run    v1alpha1.BenchmarkRun
	volume *runs.Claims
	phases []runs.PhaseState
	// arrives says for each phase whether its document can be read.
	arrives []bool
	outcome []results.Outcome
	// starts counts the Jobs created for each phase.
	starts []int
	// startedAt are the agreed start times of the phases of a group.
	startedAt []time.Time
	// strays counts the pods without their Job, straysAtWork those that have not ended. A kept claim is not deleted. Kept pods are not
	// deleted either, but they end.
	strays, straysAtWork int
	keepClaim, keepPod   bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: runstest.Noon, benchmark: runstest.Benchmark(), leases: map[string]string{}, since: map[string]time.Time{},
		heldFor: map[string]string{}, runs: map[string]*worldRun{},
		classes: []ClassState{{Name: "fast", Default: true}}, all: []string{"n1", "n2"}}
	spec := &w.benchmark.Spec
	if w.draw(3, "group") == 0 {
		w.all = []string{"n1", "n2", "n3"}
		onNodes(w.benchmark, int32(2+w.draw(2, "size")))
	}
	w.nodes = slices.Clone(w.all)
	w.limits = []Limits{{}, DefaultLimits(), {MaxHold: 40 * time.Minute, BenchmarksPerNamespace: 1, NodesPerNamespace: 3}}[w.draw(3, "limits")]
	w.benchmark.Finalizers = nil
	if w.draw(2, "default class") == 0 && spec.Target.StorageClass != nil {
		spec.Target.StorageClass.Name = ""
	}
	spec.Variants = spec.Variants[:1+w.draw(2, "variants")]
	spec.Phases = spec.Phases[:1+w.draw(2, "phases")]
	spec.Repetitions = int32(1 + w.draw(2, "repetitions"))
	spec.MaxAttempts = int32(1 + w.draw(2, "attempts"))
	spec.Retain = []v1alpha1.RetainPolicy{v1alpha1.RetainNever, v1alpha1.RetainOnFailure, v1alpha1.RetainAlways}[w.draw(3, "retain")]
	if w.draw(3, "deadline") == 0 {
		spec.Deadline = runstest.Lasting(time.Duration(1+w.draw(60, "minutes")) * time.Minute)
	}
	if w.draw(8, "ttl") == 0 {
		spec.TTLAfterFinished = runstest.Lasting(time.Hour)
	}
	if w.draw(3, "schedule") == 0 {
		spec.TTLAfterFinished, spec.Schedule = nil, w.schedule()
	}
	return w
}

// schedule returns one of a few schedules, some of them frequent enough to be due while an experiment is running.
func (w *world) schedule() *v1alpha1.Schedule {
	return &v1alpha1.Schedule{Cron: []string{"*/7 * * * *", "0 * * * *", "30 3 * * 1"}[w.draw(3, "cron")], TimeZone: "Europe/Berlin"}
}

func (w *world) draw(n int, label string) int { return rapid.IntRange(0, n-1).Draw(w.t, label) }

func (w *world) names() []string {
	names := make([]string, 0, len(w.runs))
	for name := range w.runs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// expansions caches expanded specs: there are only a few different ones.
var expansions = map[string]State{}

// observe returns the state that the controller would observe.
func (w *world) observe() State {
	state, known := expansions[design.ID(unscheduled(w.benchmark))]
	if !known {
		state = settle(State{Benchmark: unscheduled(w.benchmark)})
		expansions[state.Experiment] = state
	}
	state.Now, state.Benchmark = w.now, w.benchmark.DeepCopy()
	state.Limits, state.TeardownGrace, state.Neighbours = w.limits, runs.DefaultTimings().TeardownGrace, w.neighbour
	if w.broken {
		state.SpecError = &design.SpecError{Reason: v1alpha1.ReasonGateInvalid, Message: "gate x: unexpected end"}
	}
	for _, name := range w.names() {
		state.Runs = append(state.Runs, *w.runs[name].run.DeepCopy())
	}
	slices.SortFunc(state.Runs, func(a, b v1alpha1.BenchmarkRun) int {
		return int(a.Spec.Index-b.Spec.Index)*100 + int(a.Spec.Attempt-b.Spec.Attempt)
	})
	state.Results, state.History = slices.Clone(w.results), w.history
	state.ScheduledTime = ScheduledTime(w.benchmark, state.Runs, state.Results, w.now)
	state.Experiment = design.IDAt(w.benchmark, state.ScheduledTime)
	state.Classes = slices.Clone(w.classes)
	for _, node := range w.all {
		if holder := w.leases[node]; holder == runstest.OwnUID {
			state.Leases = append(state.Leases, LeaseState{Node: node, Holder: holder, HolderName: "lab/ageing", Since: w.since[node],
				Experiment: w.heldFor[node]})
		}
	}
	for _, node := range w.nodes {
		state.Nodes = append(state.Nodes, NodeState{Name: node, Load: len(w.leases[node])})
	}
	if w.ahead {
		state.Waiting = []Place{{UID: "other-uid", Name: "lab/other", Since: runstest.Noon.Add(-time.Hour)}}
	}
	for _, node := range ChosenNodes(state) {
		if holder := w.leases[node]; holder != "" && holder != runstest.OwnUID {
			state.Leases = append(state.Leases, LeaseState{Node: node, Holder: holder, HolderName: "lab/thief", Abandoned: w.abandoned})
		}
	}
	if w.foreign {
		state.Results = append(state.Results, StoredExperiment{ConfigMap: naming.ResultsName(w.benchmark.Name, state.Experiment), Foreign: true})
	}
	return state
}

// unscheduled returns the benchmark without its status, so that its slots do not depend on the time.
func unscheduled(benchmark *v1alpha1.StorageBenchmark) *v1alpha1.StorageBenchmark {
	bare := benchmark.DeepCopy()
	bare.Status = v1alpha1.StorageBenchmarkStatus{}
	return bare
}

// reconcile is one reconciliation by the benchmark's controller. With crash, it ends before the status is written.
func (w *world) reconcile(crash bool) {
	if w.benchmark == nil {
		return
	}
	state := w.observe()
	decision := Plan(state)
	if decision.Position == PositionRehearsing { // this changes nothing, and the same reconciliation continues with the answer
		if i := slices.IndexFunc(decision.Actions, func(a Action) bool { return a.Kind != Rehearse }); i >= 0 || len(decision.Actions) == 0 {
			w.t.Fatalf("a rehearsal is asked for with %v", kinds(decision.Actions))
		}
		state.Rehearsed = true
		decision = Plan(state)
	}
	w.decisions++
	if again := Plan(state); !reflect.DeepEqual(decision, again) {
		w.t.Fatalf("two decisions on the same state differ:\n%+v\n%+v", decision, again)
	}
	w.checkBenchmark(state, decision)
	w.last = decision
	for _, action := range decision.Actions {
		if w.full && action.Kind == WriteResults { // actions after a failed one are not executed
			break
		}
		w.applyBenchmark(state, decision, action)
	}
	w.changed = w.changed || len(decision.Actions) > 0
	if w.benchmark == nil {
		return
	}
	if !crash {
		before := w.benchmark.Status.DeepCopy()
		w.summarise(state, decision)
		w.changed = w.changed || !kstatus.Same(before, w.benchmark.Status)
	}
	w.wakeAt(decision.WakeAt)
	next := Plan(w.observe())
	for _, action := range next.Actions {
		for _, earlier := range decision.Actions {
			creation := action.Kind == AddFinalizer || action.Kind == TakeLease || action.Kind == CreateRun ||
				action.Kind == WriteResults && !w.full || action.Kind == WriteHistory
			if creation && reflect.DeepEqual(action, earlier) {
				w.t.Fatalf("%+v is asked for again although it was done", action)
			}
		}
	}
}

func (w *world) wakeAt(at time.Time) {
	if !at.IsZero() && (w.wake.IsZero() || at.Before(w.wake)) {
		w.wake = at
	}
}

// summarise writes the fields of the real status that the planner reads.
func (w *world) summarise(state State, decision Decision) {
	status := &w.benchmark.Status
	if status.Experiment != state.Experiment {
		*status = v1alpha1.StorageBenchmarkStatus{NodeName: status.NodeName, NodeNames: status.NodeNames, Experiment: state.Experiment}
	}
	for _, run := range state.Runs {
		if run.Spec.Experiment == state.Experiment && (status.StartedAt == nil || run.CreationTimestamp.Before(status.StartedAt)) {
			status.StartedAt = run.CreationTimestamp.DeepCopy()
		}
	}
	earlier, node := status.Queue, status.NodeName
	status.NodeName, status.NodeNames, status.StorageClass, status.Queue = decision.NodeName, decision.NodeNames, decision.StorageClass, nil
	if decision.InLine {
		status.Queue = &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(w.now), Position: int32(decision.Ahead + 1)}
		if earlier != nil && node == decision.NodeName {
			status.Queue.Since = earlier.Since
		}
	}
	status.Schedule, status.HoldUntil = decision.Schedule.DeepCopy(), decision.HoldUntil
	switch {
	case decision.Position != PositionFinished:
		status.FinishedAt = nil
	case status.FinishedAt == nil:
		status.FinishedAt = &metav1.Time{Time: w.now}
	}
}

func (w *world) applyBenchmark(state State, decision Decision, action Action) {
	switch action.Kind {
	case AddFinalizer:
		w.benchmark.Finalizers = []string{v1alpha1.FinalizerTeardown}
	case RemoveBenchmarkFinalizer:
		w.benchmark = nil
	case TakeLease:
		w.leases[action.Node], w.since[action.Node], w.heldFor[action.Node] = runstest.OwnUID, w.now, state.Experiment
	case BreakLease, ReleaseLease:
		delete(w.leases, action.Node)
		w.abandoned = false
	case CreateRun:
		run := makeMember(state, *action.Slot, action.Attempt, action.Member, decision.NodeNames...)
		w.uids++
		run.UID, run.CreationTimestamp = types.UID(fmt.Sprintf("run-%d", w.uids)), metav1.Time{Time: w.now}
		w.begin(state.ScheduledTime)
		n := len(run.Spec.Phases)
		w.runs[run.Name] = &worldRun{run: run, phases: make([]runs.PhaseState, n), arrives: make([]bool, n),
			outcome: make([]results.Outcome, n), starts: make([]int, n), startedAt: make([]time.Time, n)}
	case DeleteRun:
		w.runs[action.Run].run.DeletionTimestamp = &metav1.Time{Time: w.now}
	case WriteResults:
		w.results = slices.DeleteFunc(w.results, func(s StoredExperiment) bool { return s.Experiment == action.Experiment })
		w.results = append(w.results, StoredExperiment{
			ConfigMap: action.ConfigMap, Experiment: action.Experiment, Fingerprint: action.Fingerprint, Verdict: verdictIf(!action.Superseded),
			StoredAt: w.now, ScheduledTime: w.timeOf(state, action.Experiment)})
	case WriteHistory:
		w.history = HistoryState{Exists: true}
		for _, stored := range Foldable(w.observe()) {
			w.history.Folded = append(w.history.Folded, FoldKey(stored))
		}
	case DeleteResults:
		w.results = slices.DeleteFunc(w.results, func(s StoredExperiment) bool { return s.Experiment == action.Experiment })
	case DeleteBenchmark:
		w.benchmark.DeletionTimestamp = &metav1.Time{Time: w.now}
	}
}

// checkBenchmark checks invariants.
func (w *world) checkBenchmark(state State, decision Decision) {
	w.checkSchedule(state, decision)
	if problem := benchmarkProblem(state, decision); problem != "" {
		w.t.Fatalf("%s: %v\n%+v", problem, kinds(decision.Actions), decision)
	}
	for _, action := range decision.Actions {
		if action.Kind != CreateRun {
			continue
		}
		for _, node := range decision.NodeNames {
			if w.leases[node] != runstest.OwnUID {
				w.t.Fatalf("a run is made without the Lease of %s", node)
			}
		}
		name := naming.RunName(w.benchmark.Name, state.Experiment, action.Slot.Index, action.Attempt)
		if w.runs[name] != nil || action.Slot.NodeCount() > 1 && w.runs[naming.MemberName(name, action.Member)] != nil {
			w.t.Fatalf("a run is made that there is: %+v", action)
		}
		if state.Benchmark.Spec.Suspend {
			w.t.Fatalf("a run is made although the benchmark is suspended")
		}
	}
}

// benchmarkProblem returns the first violation of an invariant by a decision, or "" if there is none.
func benchmarkProblem(state State, decision Decision) string {
	if decision.Reason == "" || decision.Message == "" || decision.Position == "" {
		return "nothing is said"
	}
	working, going, busyElse := map[string]bool{}, false, func(Action) bool { return false }
	for i := range state.Runs {
		if run := &state.Runs[i]; !runs.Settled(run) || !run.DeletionTimestamp.IsZero() {
			working[run.Spec.NodeName] = working[run.Spec.NodeName] || !runs.Resting(run)
			going = going || !runs.Resting(run) && !runs.NotStopped(run) // if a run does not stop, others can have the other nodes
			earlier := busyElse
			busyElse = func(action Action) bool {
				return earlier(action) || run.Spec.Group == nil || run.Spec.Index != action.Slot.Index || run.Spec.Attempt != action.Attempt
			}
		}
	}
	count, touched := map[ActionKind]int{}, map[string]ActionKind{}
	touch := func(thing string, kind ActionKind) string {
		if earlier, found := touched[thing]; found {
			return fmt.Sprintf("%s and %s of the same %s", earlier, kind, thing)
		}
		touched[thing] = kind
		return ""
	}
	for _, action := range decision.Actions {
		count[action.Kind]++
		problem := ""
		switch action.Kind {
		case AddFinalizer, RemoveBenchmarkFinalizer:
			problem = touch("finalizer", action.Kind)
		case TakeLease, BreakLease, ReleaseLease:
			problem = touch("Lease of "+action.Node, action.Kind)
		case WriteHistory:
			problem = touch("history", action.Kind)
		case WriteResults, DeleteResults:
			problem = touch("results "+action.Experiment, action.Kind)
		case CreateRun:
			problem = touch(fmt.Sprintf("run %s %d", naming.RunName(state.Benchmark.Name, state.Experiment, action.Slot.Index, action.Attempt),
				action.Member), action.Kind)
		case DeleteRun:
			problem = touch("run "+action.Run, action.Kind)
		case DeleteBenchmark:
		}
		switch {
		case problem != "":
			return problem
		case action.Kind == ReleaseLease && (going || working[action.Node] || !slices.Contains(held(state), action.Node)):
			return "the Lease is released while a run may be at work, or is not ours"
		case action.Kind == TakeLease && (leaseOn(state, action.Node) != nil || slices.Contains(held(state), action.Node)):
			return "a Lease is taken that another holder has"
		case action.Kind == BreakLease && (leaseOn(state, action.Node) == nil || !leaseOn(state, action.Node).Abandoned):
			return "a Lease is broken that is not abandoned"
		case action.Kind == CreateRun && busyElse(action):
			return "a run is made while another is unsettled"
		case action.Kind == RemoveBenchmarkFinalizer && (len(state.Runs) > 0 || state.Benchmark.DeletionTimestamp.IsZero()):
			return "the finalizer is removed too early"
		}
	}
	switch {
	case count[CreateRun] > nodeCount(state):
		return "two runs are made"
	case count[CreateRun] > 0 && count[DeleteRun]+count[ReleaseLease]+count[DeleteBenchmark]+count[RemoveBenchmarkFinalizer] > 0:
		return "making and unmaking in one decision"
	case count[WriteResults] > 0 && count[DeleteRun] > 0:
		return "runs are deleted before their results are written"
	}
	return ""
}

// observeRun returns the state that the run's controller would observe.
func (w *world) observeRun(r *worldRun) runs.State {
	state := runs.State{Now: w.now, Timings: runs.DefaultTimings(), Run: r.run.DeepCopy(), Owner: runstest.OwnUID,
		LeaseHolder: w.leases[r.run.Spec.NodeName], LeaseHolderName: "lab/thief", Phases: slices.Clone(r.phases), Pods: r.strays,
		PodsAtWork: r.straysAtWork}
	for _, name := range w.peers(r) {
		peer := w.runs[name]
		if peer == nil {
			state.Peers = append(state.Peers, runs.Peer(name, "gone", nil))
			continue
		}
		state.Peers = append(state.Peers, runs.Peer(name, peer.run.Spec.NodeName, peer.run.DeepCopy()))
	}
	if r.volume != nil {
		state.Claims = *r.volume
	}
	for i := range state.Phases {
		phase := &state.Phases[i]
		if phase.Pod.Exists {
			state.Pods++
			if phase.Pod.Ended == nil {
				state.PodsAtWork++
			}
		}
		if phase.Stored != nil || phase.Pod.Ended == nil || !phase.Pod.HasReceipt {
			continue
		}
		if r.arrives[i] {
			phase.Received = &results.PhaseDocument{Outcome: r.outcome[i], Reason: "NotConverged", Message: "it did not converge"}
		} else {
			phase.ReceiveError = errors.New("connection refused")
		}
	}
	return state
}

// peers returns the names of the other runs of the group.
func (w *world) peers(r *worldRun) []string {
	var names []string
	for member := range RunNodes(&r.run) {
		if name := naming.MemberName(naming.GroupName(&r.run), int32(member)); r.run.Spec.Group != nil && name != r.run.Name {
			names = append(names, name)
		}
	}
	return names
}

// together checks the purpose of a barrier: a phase of a group begins only when all its runs are ready for it, after the same phases.
func (w *world) together(r *worldRun, i int) {
	for _, name := range w.peers(r) {
		peer, phase := w.runs[name], r.run.Spec.Phases[i].Name
		switch {
		case peer == nil:
			w.t.Fatalf("phase %s of run %s is started without run %s", phase, r.run.Name, name)
		case !runs.ReadyFor(peer.run.Status.ReadyFor, phase):
			w.t.Fatalf("phase %s of run %s is started before run %s is ready: %+v", phase, r.run.Name, name, peer.run.Status.ReadyFor)
		case runs.RecordedEnding(&peer.run) != nil:
			w.t.Fatalf("phase %s of run %s is started after the end of run %s", phase, r.run.Name, name)
		}
		for k := range i {
			if stored := peer.phases[k].Stored; stored == nil || stored.Outcome != results.OutcomeValid {
				w.t.Fatalf("phase %s of run %s is started before phase %d of run %s is over", phase, r.run.Name, k, name)
			}
		}
	}
}

func (w *world) reconcileRun(r *worldRun, crash bool) {
	state := w.observeRun(r)
	decision := runs.Plan(state)
	if makes := func(action runs.Action) bool {
		return action.Kind == runs.StartPhase || action.Kind == runs.StoreResult
	}; w.taken && slices.ContainsFunc(decision.Actions, makes) {
		state.Taken = "ConfigMap x"
		decision = runs.Plan(state)
	}
	w.decisions++
	if again := runs.Plan(state); !reflect.DeepEqual(decision, again) {
		w.t.Fatalf("two decisions on the same state differ:\n%+v\n%+v", decision, again)
	}
	w.checkRun(r, state, decision)
	for _, action := range decision.Actions {
		w.applyRun(r, action)
	}
	w.changed = w.changed || len(decision.Actions) > 0
	w.wakeAt(decision.WakeAt)
	if w.runs[r.run.Name] != r {
		return
	}
	if !crash {
		before := r.run.Status.DeepCopy()
		w.summariseRun(r, state, decision)
		w.changed = w.changed || !kstatus.Same(before, r.run.Status)
	}
	if w.taken {
		return
	}
	for _, action := range runs.Plan(w.observeRun(r)).Actions {
		creation := action.Kind == runs.CreateVolumes || action.Kind == runs.StartPhase || action.Kind == runs.StoreResult
		if creation && slices.Contains(decision.Actions, action) {
			w.t.Fatalf("%+v is asked for again although it was done", action)
		}
	}
}

func (w *world) checkRun(r *worldRun, state runs.State, decision runs.Decision) {
	if problem := runstest.Problem(state, decision); problem != "" {
		w.t.Fatalf("%s: %v\n%+v\nstate %+v", problem, runstest.Kinds(decision.Actions), decision, state)
	}
	for _, action := range decision.Actions {
		if action.Kind != runs.StartPhase {
			continue
		}
		if r.starts[action.Phase] > 0 {
			w.t.Fatalf("phase %d of run %s is started a second time", action.Phase, r.run.Name)
		}
		w.together(r, action.Phase)
		for name, other := range w.runs {
			if other != r && naming.GroupName(&other.run) == naming.GroupName(&r.run) {
				continue
			}
			for i, phase := range other.phases {
				if (other != r || i != action.Phase) && phase.Pod.Exists && phase.Pod.Ended == nil {
					w.t.Fatalf("phase %d of run %s is started while a pod of run %s is at work", action.Phase, r.run.Name, name)
				}
			}
			if other.straysAtWork > 0 && other != r {
				w.t.Fatalf("phase %d of run %s is started while run %s still has pods at work", action.Phase, r.run.Name, name)
			}
		}
	}
}

func (w *world) summariseRun(r *worldRun, state runs.State, decision runs.Decision) {
	status := &r.run.Status
	status.Phases = nil
	for i, spec := range r.run.Spec.Phases {
		entry := v1alpha1.RunPhaseStatus{Name: spec.Name}
		for _, recorded := range state.Run.Status.Phases {
			if recorded.Name == spec.Name {
				entry = recorded
			}
		}
		if r.phases[i].Executor.Exists && entry.ExecutorUID == "" {
			entry.ExecutorUID = r.phases[i].Executor.UID
			if at := r.phases[i].Executor.StartAt; at != nil {
				entry.StartAt = &metav1.MicroTime{Time: *at}
			}
		}
		if state.Phases[i].Stored != nil {
			entry.Result, entry.Digest = state.Phases[i].Stored.ConfigMap, state.Phases[i].Stored.Digest
		}
		if entry.ExecutorUID != "" || entry.Result != "" {
			status.Phases = append(status.Phases, entry)
		}
	}
	if decision.ReadyFor != "" {
		status.ReadyFor = &v1alpha1.RunReadiness{Phase: v1alpha1.PhaseName(decision.ReadyFor), Since: metav1.NewMicroTime(w.now)}
	}
	if decision.Ending != nil {
		ending := *decision.Ending
		if runstest.Record(&r.run, ending, decision.Settled); decision.Reason == v1alpha1.ReasonTeardownStuck {
			kstatus.SetProgressing(&status.Conditions, 1, decision.Reason, decision.Message)
		}
		if status.FinishedAt == nil {
			status.FinishedAt = &metav1.Time{Time: w.now}
		}
		return
	}
	kstatus.SetProgressing(&status.Conditions, 1, decision.Reason, decision.Message)
}

func (w *world) applyRun(r *worldRun, action runs.Action) {
	switch action.Kind {
	case runs.CreateVolumes:
		r.volume = &runs.Claims{Exists: true}
	case runs.StartPhase:
		w.uids++
		r.starts[action.Phase]++
		r.phases[action.Phase].Executor = runs.ExecutorState{Exists: true, UID: fmt.Sprintf("job-%d", w.uids), Created: w.now}
		if r.startedAt[action.Phase] = action.StartAt; r.run.Spec.Group != nil {
			r.phases[action.Phase].Executor.StartAt = &action.StartAt
		}
	case runs.StoreResult:
		r.phases[action.Phase].Stored = &runs.StoredResult{ConfigMap: naming.PhaseObjectName(r.run.Name, r.run.Spec.Phases[action.Phase].Name),
			Digest: "sha256:1", Outcome: r.outcome[action.Phase], Reason: "NotConverged", Message: "it did not converge", StoredAt: w.now}
	case runs.StartCompanion:
		r.phases[action.Phase].Companions = map[runs.Companion]*v1alpha1.PoolOperation{action.Companion: runstest.Operation(v1alpha1.PoolAction{},
			"", -time.Minute, 0)}
	case runs.EndCompanion:
		r.phases[action.Phase].Companions = map[runs.Companion]*v1alpha1.PoolOperation{action.Companion: runstest.Operation(v1alpha1.PoolAction{},
			v1alpha1.OutcomeCancelled, -time.Minute, 0)}
	case runs.DeleteJobsAndOperations:
		for i := range r.phases {
			r.phases[i].Companions = nil
			if r.phases[i].Executor.Exists {
				r.phases[i].Executor.Deleting = true
			}
		}
	case runs.DeleteVolumes:
		r.volume.Deleting = true
	case runs.RemoveRunFinalizer:
		if r.run.Finalizers = nil; !w.finalizers {
			delete(w.runs, r.run.Name)
		}
	}
}

// recorded reports whether the creation of a phase's Job is recorded in the status.
func (r *worldRun) recorded(i int) bool {
	return slices.ContainsFunc(r.run.Status.Phases, func(p v1alpha1.RunPhaseStatus) bool {
		return p.Name == r.run.Spec.Phases[i].Name && p.ExecutorUID != ""
	})
}

// statesTried counts decisions over all tests.
var statesTried int

// countStates prints how many states a test has tried since before.
func countStates(t *testing.T, before int) {
	t.Helper()
	t.Logf("%d states tried", statesTried-before)
	fmt.Printf("internal/experiment: %s: %d states tried\n", t.Name(), statesTried-before)
}
