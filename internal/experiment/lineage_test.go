package experiment

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/foresee"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// nightly keeps the pool from one scheduled experiment to the next.
func nightly(b *v1alpha1.StorageBenchmark) {
	b.Spec.Target.ZFS.KeepFor, b.Spec.Schedule = v1alpha1.KeepForSchedule, &v1alpha1.Schedule{Cron: "0 3 * * *"}
}

// aged is the state of a benchmark whose last experiment is over, and whose pool three experiments have used.
func aged() State {
	state := keeping(v1alpha1.ResetNone, nightly)
	state = endedRuns(state, 0, len(state.Slots), runstest.ValidEnding)
	for i := range state.Runs {
		state.Runs[i].Labels = map[string]string{v1alpha1.LabelLineage: state.Lineage}
	}
	state.Benchmark.Status.FinishedAt = runstest.Stamp(0)
	state.Results = []StoredExperiment{{
		ConfigMap: naming.ResultsName(state.Benchmark.Name, state.Experiment), Experiment: state.Experiment,
		Fingerprint: fingerprint(state), Verdict: "Passed", StoredAt: runstest.Noon}}
	state.History = HistoryState{Exists: true, Folded: []string{FoldKey(state.Results[0])}}
	last := state.Runs[len(state.Runs)-1]
	state.Pools = []KeptPool{{Name: naming.KeptPoolName(string(state.Benchmark.UID), state.Lineage, "default", "n1", naming.VolumeData),
		Node: "n1", RunUID: string(last.UID), Lineage: state.Lineage, Age: &v1alpha1.PoolAge{Experiments: 3, Runs: 6}}}
	return state
}

// nextNight is the same state after the next experiment has begun.
func nextNight(state State) State {
	state.Now = runstest.Noon.Add(24 * time.Hour)
	state.Benchmark.Status.Schedule = &v1alpha1.ScheduleStatus{LastTime: runstest.Stamp(time.Hour)}
	state.Benchmark.Status.FinishedAt = nil
	return settle(state)
}

// TestPoolsOfALineage: a pool stays between experiments while its node is released, and the next experiment takes it over. Otherwise it is
// deleted.
func TestPoolsOfALineage(t *testing.T) {
	with := func(state State, changes ...func(*State)) State {
		for _, change := range changes {
			change(&state)
		}
		return state
	}
	onlyTheLast := func(s *State) { s.Runs = s.Runs[len(s.Runs)-1:] }
	unready := func(s *State) { s.Pools[0].Problem = "Unhealthy: DEGRADED" }
	first := func(s *State) {
		s.Runs = append(s.Runs, makeRun(*s, s.Slots[0], 1))
		s.Runs[len(s.Runs)-1].UID = "first"
	}
	takenOver := func(s *State) { s.Pools[0].RunUID = "first" }
	last := aged().Runs[len(aged().Runs)-1].Name
	const kept = "is kept for the next scheduled experiment (3 experiments and 6 runs on it)"
	for name, test := range map[string]struct {
		state    State
		position Position
		actions  []string
		says     string
	}{
		"it is over": {aged(), PositionFinished, []string{"ReleaseLease"}, kept},
		"not ready between two experiments": {with(aged(), unready), PositionFinished, []string{"ReleaseLease"},
			kept},
		"suspended": {with(aged(), func(s *State) { s.Benchmark.Spec.Suspend = true }), PositionFinished, []string{"DeletePool"}, "suspended"},
		"the admin forbids it": {with(aged(), func(s *State) { s.Limits.ForbidKeeping = true }), PositionFinished, []string{"DeletePool"},
			"the results are in"},
		"a gate is wrong": {with(aged(), func(s *State) { s.SpecError = design.Refuse(v1alpha1.ReasonGateInvalid, "x") }), PositionStalled,
			[]string{"ReleaseLease"}, "x"},
		"its last run was deleted": {with(aged(), func(s *State) { s.Pools[0].RunUID = "gone" }), PositionFinished, []string{"DeletePool"}, ""},
		"results are not yet written": {with(aged(), func(s *State) { s.Results = nil }), PositionRunning,
			[]string{"ReleaseLease", "WriteResults"},
			"writing the results"},
		"results are not yet written, and it cannot stay": {with(aged(), func(s *State) { s.Results, s.Pools[0].RunUID = nil, "gone" }),
			PositionRunning, []string{"DeletePool"}, "waiting until BenchmarkPool"},

		"the next begins": {nextNight(aged()), PositionWaiting, []string{"DeleteRun " + aged().Runs[0].Name},
			"the next scheduled experiment starts"},
		"a late view of the pool": {with(nextNight(aged()), func(s *State) { s.Pools[0].RunUID = string(s.Runs[0].UID) }), PositionRunning,
			[]string{"CreateRun"}, "starting run 1 of 2"},
		"the first run":                     {with(nextNight(aged()), onlyTheLast), PositionRunning, []string{"CreateRun"}, "starting run 1 of 2"},
		"the first run is about to take it": {with(nextNight(aged()), onlyTheLast, first), PositionRunning, nil, "run 1 of 2"},
		"the first run has it": {with(nextNight(aged()), onlyTheLast, first, takenOver), PositionRunning, []string{"DeleteRun " + last},
			"has passed its pool on"},
		"not ready when the next begins": {with(nextNight(aged()), onlyTheLast, unready), PositionRunning, []string{"DeletePool"},
			"it is not reused: Unhealthy: DEGRADED"},
		"another spec": {with(nextNight(aged()), onlyTheLast, func(s *State) {
			s.Benchmark.Spec.Repetitions++
			*s = settle(*s)
		}), PositionWaiting, []string{"DeleteRun " + last}, "waiting for 1 run of the earlier"},
		"a rerun": {with(aged(), onlyTheLast, func(s *State) {
			s.Benchmark.Annotations = map[string]string{v1alpha1.AnnotationRerun: "1"}
			*s = settle(*s)
		}), PositionRunning, []string{"CreateRun"}, "starting run 1 of 2"},
		"its node is not ready": {with(nextNight(aged()), onlyTheLast, func(s *State) { s.Nodes = []NodeState{{Name: "n2"}} }), PositionWaiting,
			[]string{"ReleaseLease"}, "is on node n1, which is not Ready"},
		"its node is gone": {with(nextNight(aged()), onlyTheLast, func(s *State) {
			s.Nodes, s.Leases = []NodeState{{Name: "n2"}}, []LeaseState{{Node: "n2", Holder: runstest.OwnUID}}
			s.Pools[0].Problem = "NodeGone: x"
		}), PositionRunning, []string{"DeletePool"}, "NodeGone"},
		"deleted": {with(aged(), func(s *State) {
			s.Benchmark.DeletionTimestamp = &metav1.Time{Time: runstest.Noon}
			s.Runs = nil
		}), PositionDeleting, []string{"DeletePool"}, "waiting until BenchmarkPool"},
	} {
		decision := Plan(test.state)
		if got := kinds(decision.Actions); !slices.Equal(got, test.actions) && len(got)+len(test.actions) > 0 {
			t.Errorf("%s: actions %v, want %v", name, got, test.actions)
		}
		if decision.Position != test.position || !strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: %s %q, want %s ...%q...", name, decision.Position, decision.Message, test.position, test.says)
		}
	}
	if strings.Contains(Plan(with(aged(), func(s *State) { s.Benchmark.Spec.Suspend = true })).Message, "is kept") {
		t.Error("a pool that goes is said to stay")
	}
}

// TestAMissingTargetCostsNoAge: while a StorageTarget is being replaced, the pool and the run that used it last stay. The contents of the
// new StorageTarget decide whether they are deleted.
func TestAMissingTargetCostsNoAge(t *testing.T) {
	target := keeping(v1alpha1.ResetNone, nightly).Benchmark.Spec.Target
	other := *target.DeepCopy()
	other.ZFS.Pool.Vdevs[0].Devices[0] = "/dev/disk/by-id/b"
	is, changed, gone := map[string]v1alpha1.Target{"fast": target}, map[string]v1alpha1.Target{"fast": other}, map[string]v1alpha1.Target{}
	read := func(state State, found map[string]v1alpha1.Target) State {
		state.Benchmark = state.Benchmark.DeepCopy()
		state.Benchmark.Spec.Target = v1alpha1.Target{Ref: &v1alpha1.TargetRef{Name: "fast"}}
		state.ScheduledTime = ScheduledTime(state.Benchmark, state.Runs, state.Results, state.Now)
		state.Slots, state.Rehearsed = nil, true
		Identify(&state, found)
		if state.SpecError = state.TargetError; state.SpecError == nil {
			slots, err := design.SlotsAt(state.Benchmark, state.ScheduledTime)
			state.Slots, state.SpecError = slots, design.Combined(err)
		}
		return state
	}
	fresh := read(keeping(v1alpha1.ResetNone, nightly), is)
	fresh.Benchmark.Status.Experiment, fresh.Benchmark.Status.TargetDigest = fresh.Experiment, fresh.TargetDigest
	fresh.Benchmark.Status.StartedAt = runstest.Stamp(0)
	ended := endedRuns(fresh, 0, 1, runstest.ValidEnding)
	ended.Runs[0].Labels = map[string]string{v1alpha1.LabelLineage: fresh.Lineage}
	pool := naming.KeptPoolName(runstest.OwnUID, fresh.Lineage, "default", "n1", naming.VolumeData)
	ended.Pools = []KeptPool{{Name: pool, Node: "n1", RunUID: string(ended.Runs[0].UID), Lineage: fresh.Lineage,
		Age: &v1alpha1.PoolAge{Experiments: 14, Runs: 84}}}
	next := ended
	next.Benchmark = ended.Benchmark.DeepCopy()
	next.Benchmark.Status.Schedule = &v1alpha1.ScheduleStatus{LastTime: runstest.Stamp(time.Hour)}
	next.Benchmark.Status.StartedAt, next.Now = nil, runstest.Noon.Add(24*time.Hour)
	suspended := next
	suspended.Benchmark = next.Benchmark.DeepCopy()
	suspended.Benchmark.Spec.Suspend = true
	stops := []string{"DeleteRun " + ended.Runs[0].Name}
	for name, test := range map[string]struct {
		state   State
		found   map[string]v1alpha1.Target
		actions []string
		says    string
	}{
		"missing at work":              {ended, gone, []string{"ReleaseLease"}, "was deleted after this experiment began"},
		"missing when the next begins": {next, gone, []string{"ReleaseLease"}, "BenchmarkPool " + pool + " is kept for the next scheduled"},
		"back as it was":               {next, is, []string{"CreateRun"}, "starting run 1"},
		"back and changed":             {next, changed, stops, "waiting for 1 run of the earlier"},
		"missing, and suspended":       {suspended, gone, stops, "waiting for 1 run of the earlier"},
	} {
		state := read(test.state, test.found)
		state.Results = []StoredExperiment{{ConfigMap: "r", Experiment: fresh.Experiment}}
		decision := Plan(state)
		if got := kinds(decision.Actions); !slices.Equal(got, test.actions) || !strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: %v, %s: %q", name, got, decision.Position, decision.Message)
		}
	}
}

// TestLineage: the lineage is the same for each scheduled time and each rerun, and changes with anything that changes the measurement.
func TestLineage(t *testing.T) {
	of := func(changes ...func(*v1alpha1.StorageBenchmark)) string {
		return keeping(v1alpha1.ResetNone, append(changes, nightly)...).Lineage
	}
	want := of()
	for name, change := range map[string]func(*v1alpha1.StorageBenchmark){
		"rerun": func(b *v1alpha1.StorageBenchmark) { b.Annotations = map[string]string{v1alpha1.AnnotationRerun: "1"} },
		"time": func(b *v1alpha1.StorageBenchmark) {
			b.Status.Schedule = &v1alpha1.ScheduleStatus{LastTime: runstest.Stamp(0)}
		},
		"gates":  func(b *v1alpha1.StorageBenchmark) { b.Spec.Gates = nil },
		"retain": func(b *v1alpha1.StorageBenchmark) { b.Spec.Retain = v1alpha1.RetainNever },
	} {
		if got := of(change); got != want || got == "" {
			t.Errorf("another %s: lineage %s, want %s", name, got, want)
		}
	}
	for name, change := range map[string]func(*v1alpha1.StorageBenchmark){
		"repetitions": func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions++ },
		"phases":      func(b *v1alpha1.StorageBenchmark) { b.Spec.Phases = b.Spec.Phases[:1] },
		"disks":       func(b *v1alpha1.StorageBenchmark) { b.Spec.Target.ZFS.Pool.Vdevs[0].Devices[0] = "/dev/disk/by-id/b" },
		"seed":        func(b *v1alpha1.StorageBenchmark) { b.Spec.Seed = new(int64) },
	} {
		if of(change) == want {
			t.Errorf("other %s: the same lineage", name)
		}
	}
	state := aged()
	run := NewRun(state, Action{Slot: &state.Slots[0], Attempt: 1}, []string{"n1"}, "")
	if got := naming.RunPoolName(run, naming.VolumeData); got != state.Pools[0].Name {
		t.Errorf("the run calls its pool %s, the benchmark %s", got, state.Pools[0].Name)
	}
	if plain := NewRun(keeping(v1alpha1.ResetNone), Action{Slot: &state.Slots[0], Attempt: 1}, []string{"n1"}, ""); plain.Labels[v1alpha1.LabelLineage] != "" {
		t.Errorf("without a schedule: %v", plain.Labels)
	}
	targets := func(device v1alpha1.DevicePath) string {
		referring := aged()
		one := map[string]v1alpha1.Target{"fast": *referring.Benchmark.Spec.Target.DeepCopy()}
		one["fast"].ZFS.Pool.Vdevs[0].Devices[0] = device
		referring.Benchmark.Spec.Target = v1alpha1.Target{Ref: &v1alpha1.TargetRef{Name: "fast"}}
		referring.Benchmark.Status, referring.Runs = v1alpha1.StorageBenchmarkStatus{}, nil
		Identify(&referring, one)
		return referring.Lineage
	}
	if a, b := targets("/dev/disk/by-id/a"), targets("/dev/disk/by-id/b"); a == b || a == "" || a != targets("/dev/disk/by-id/a") {
		t.Errorf("lineages of two StorageTargets: %s and %s", a, b)
	}
}

// TestKeepForInTheSpec: a spec whose pool cannot be passed on is refused, and the error says what to write instead.
func TestKeepForInTheSpec(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.StorageBenchmark)
		says   string
	}{
		"plain":       {func(*v1alpha1.StorageBenchmark) {}, ""},
		"interleaved": {func(b *v1alpha1.StorageBenchmark) { b.Spec.Order = v1alpha1.OrderInterleaved }, ""},
		"variants": {func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Variants, b.Spec.Order = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}, v1alpha1.OrderSequential
		}, "a single variant, and there are 2: write a benchmark for each"},
		"no schedule": {func(b *v1alpha1.StorageBenchmark) { b.Spec.Schedule = nil }, "there is no spec.schedule: add it"},
		"retained":    {func(b *v1alpha1.StorageBenchmark) { b.Spec.Retain = v1alpha1.RetainAlways }, "write retain: Never"},
	} {
		err := keeping(v1alpha1.ResetDataset, nightly, test.change).SpecError
		if (err == nil) != (test.says == "") || err != nil && (err.Reason != v1alpha1.ReasonSpecInvalid || !strings.Contains(err.Message, test.says)) {
			t.Errorf("%s: %+v", name, err)
		}
	}
	state := keeping(v1alpha1.ResetNone, nightly)
	if err := (Limits{}).Check(&state.Benchmark.Spec, state.Slots); err != nil {
		t.Error(err)
	}
	err := Limits{ForbidKeeping: true}.Check(&state.Benchmark.Spec, state.Slots)
	if err == nil || !strings.Contains(err.Error(), "remove keepFor, or ask the cluster's admin") {
		t.Error(err)
	}
	if plain := keeping(v1alpha1.ResetNone); (Limits{ForbidKeeping: true}).Check(&plain.Benchmark.Spec, plain.Slots) != nil {
		t.Error("a pool of one experiment is forbidden too")
	}
	for accept, warnings := range map[bool]int{false: 1, true: 0} {
		spec := &state.Benchmark.Spec
		spec.Gates = []v1alpha1.Gate{{Name: "g", Compare: &v1alpha1.CompareGate{To: "History", Metric: "scan.readBytesPerSecond", AcceptAgeing: accept}}}
		gates, err := gate.Compile(spec.Gates, spec.Phases, design.VariantNames(state.Slots))
		if err != nil {
			t.Fatal(err)
		}
		if got := foresee.Spec(spec, state.Slots, gates).Warnings; len(got) != warnings || warnings > 0 && !strings.Contains(got[0].Message, "add acceptAgeing") {
			t.Errorf("acceptAgeing %t: %v", accept, got)
		}
	}
}

// TestKeptPoolOfALineage: temporary problems are no reason to give up an aged pool.
func TestKeptPoolOfALineage(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.BenchmarkPool)
		problem string
	}{
		"it is ready": {func(*v1alpha1.BenchmarkPool) {}, ""},
		"its agent is updated": {func(p *v1alpha1.BenchmarkPool) {
			kstatus.SetProgressing(&p.Status.Conditions, 1, v1alpha1.ReasonPoolChanging, "x")
		}, ""},
		"its node is gone": {func(p *v1alpha1.BenchmarkPool) {
			kstatus.SetStalled(&p.Status.Conditions, 1, v1alpha1.ReasonPoolNodeGone, "x")
		},
			"NodeGone: x"},
		"its age was edited": {func(p *v1alpha1.BenchmarkPool) {
			p.Annotations = map[string]string{v1alpha1.AnnotationPoolAge: "1/many"}
		},
			"its annotation storagebench.dev/pool-age was changed"},
	} {
		pool := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Generation: 1, Labels: map[string]string{v1alpha1.LabelLineage: "l"}}}
		kstatus.SetReady(&pool.Status.Conditions, 1, v1alpha1.ReasonPoolReady, "ready")
		test.change(pool)
		if got := KeptPoolOf(pool); got.Problem != test.problem || got.Lineage != "l" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAgeInTheResults: the message of the verdict says how old the pool is.
func TestAgeInTheResults(t *testing.T) {
	state := aged()
	for i := range state.Runs {
		state.Runs[i].Status.Volumes = []v1alpha1.RunVolumeStatus{{Name: "data", PoolAge: &v1alpha1.PoolAge{
			Since: *runstest.Stamp(-time.Hour), Experiments: 3, Runs: int32(5 + i)}}}
	}
	gates, err := gate.Compile(nil, state.Benchmark.Spec.Phases, []string{"default"})
	if err != nil {
		t.Fatal(err)
	}
	judged := Assemble(Evidence{Now: state.Now, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs, Gates: gates,
		Tally: Count(state), Slots: state.Slots})
	since := runstest.Noon.Add(-time.Hour)
	if want := (&results.PoolAge{Since: since, Experiments: 3, Runs: 6}); judged.Runs[1].PoolAge == nil || *judged.Runs[1].PoolAge != *want {
		t.Errorf("%+v, want %+v", judged.Runs[1].PoolAge, want)
	}
	if want := "; the pool was aged over 3 experiments (6 runs) since " + since.Format(time.RFC3339); !strings.HasSuffix(judged.Message, want) {
		t.Errorf("%q, want ...%q", judged.Message, want)
	}
}
