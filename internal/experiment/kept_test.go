package experiment

import (
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/volume"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// keeping is the state of a benchmark with one variant that keeps its pools and is about to create its first run.
func keeping(reset v1alpha1.ResetPolicy, changes ...func(*v1alpha1.StorageBenchmark)) State {
	state := testState()
	onNodes(state.Benchmark, 1)
	state.Benchmark.Spec.Target.ZFS.Reset, state.Benchmark.Spec.Variants = reset, nil
	for _, change := range changes {
		change(state.Benchmark)
	}
	return settle(state)
}

// TestResetInTheSpec: a spec whose pools cannot be kept is refused, and the error says what to write instead.
func TestResetInTheSpec(t *testing.T) {
	variants := func(b *v1alpha1.StorageBenchmark) { b.Spec.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}} }
	zfs := func(change func(*v1alpha1.ZFSTarget)) func(*v1alpha1.StorageBenchmark) {
		return func(b *v1alpha1.StorageBenchmark) { change(b.Spec.Target.ZFS) }
	}
	operate := func(action v1alpha1.PoolAction) func(*v1alpha1.StorageBenchmark) {
		return func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Phases[1].Fill, b.Spec.Phases[1].Operate = nil, &v1alpha1.OperatePhase{PoolAction: action}
		}
	}
	for name, test := range map[string]struct {
		changes      []func(*v1alpha1.StorageBenchmark)
		reason, says string
	}{
		"plain":              {nil, "", ""},
		"variants, shuffled": {[]func(*v1alpha1.StorageBenchmark){variants}, "SpecInvalid", "write order: Sequential, or reset: Pool"},
		"variants in turn": {[]func(*v1alpha1.StorageBenchmark){variants, func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Order = v1alpha1.OrderSequential
		}}, "", ""},
		"variants, once each": {[]func(*v1alpha1.StorageBenchmark){variants, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 1 }}, "",
			""},
		"retained": {[]func(*v1alpha1.StorageBenchmark){func(b *v1alpha1.StorageBenchmark) { b.Spec.Retain = v1alpha1.RetainOnFailure }},
			"SpecInvalid", "write retain: Never"},
		"of the driver": {[]func(*v1alpha1.StorageBenchmark){zfs(func(z *v1alpha1.ZFSTarget) {
			z.Dataset = &v1alpha1.DatasetTemplate{Provisioner: "OpenEBS"}
		})},
			"NotSupported", "write provisioner: Local"},
		"a clone": {[]func(*v1alpha1.StorageBenchmark){operate(v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{}})}, "NotSupported",
			"phase scan does clone"},
		"more disks": {[]func(*v1alpha1.StorageBenchmark){operate(v1alpha1.PoolAction{AddVdev: &v1alpha1.AddVdevAction{}})}, "NotSupported",
			"phase scan does addVdev"},
		"cold caches": {[]func(*v1alpha1.StorageBenchmark){operate(v1alpha1.PoolAction{ExportImport: &v1alpha1.ExportImportAction{}})}, "", ""},
	} {
		for _, reset := range []v1alpha1.ResetPolicy{v1alpha1.ResetDataset, v1alpha1.ResetNone} {
			err := keeping(reset, test.changes...).SpecError
			if (err == nil) != (test.reason == "") || err != nil && (err.Reason != test.reason || !strings.Contains(err.Message, test.says)) {
				t.Errorf("%s, %s: %+v", name, reset, err)
			}
		}
		if strings.Contains(test.says, "reset") {
			if err := keeping(v1alpha1.ResetPool, test.changes...).SpecError; err != nil {
				t.Errorf("%s with reset: Pool: %v", name, err)
			}
		}
	}
	driven := keeping(v1alpha1.ResetNone)
	driven.Drivers = openEBS(volume.DriverState{Installed: true})
	if got := Plan(driven); got.Reason != v1alpha1.ReasonNotSupported ||
		!strings.Contains(got.Message, "write reset: Pool; or write provisioner: Local") {
		t.Errorf("a default that is the driver: %s %s", got.Reason, got.Message)
	}
}

// poolOf is the kept pool that the given run used last.
func poolOf(state State, slot design.Slot, user *v1alpha1.BenchmarkRun) KeptPool {
	name := naming.KeptPoolName(string(state.Benchmark.UID), state.Experiment, slot.Variant, "n1", naming.VolumeData)
	return KeptPool{Name: name, Node: "n1", RunUID: string(user.UID)}
}

// TestKeptPools: a valid repetition passes its pool on to the next one. Otherwise the pool is deleted before anything else happens.
func TestKeptPools(t *testing.T) {
	inTurn := func(b *v1alpha1.StorageBenchmark) {
		b.Spec.Variants, b.Spec.Order = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}, v1alpha1.OrderSequential
	}
	at := func(ended int, ending runs.Ending) State {
		state := endedRuns(keeping(v1alpha1.ResetNone, inTurn), 0, ended, ending)
		state.Pools = []KeptPool{poolOf(state, state.Slots[ended-1], &state.Runs[ended-1])}
		return state
	}
	with := func(state State, change func(*State)) State { change(&state); return state }
	for name, test := range map[string]struct {
		state   State
		actions []string
		says    string
	}{
		"the next repetition has it":     {at(1, runstest.ValidEnding), []string{"CreateRun"}, "starting run 2"},
		"another variant has its own":    {at(2, runstest.ValidEnding), []string{"DeletePool"}, "waiting until BenchmarkPool sb-"},
		"after an Invalid run it is new": {at(1, runstest.InvalidEnding), []string{"DeletePool"}, "left it in an unknown state"},
		"not as it should be": {with(at(1, runstest.ValidEnding), func(s *State) { s.Pools[0].Problem = "Drifted: atime" }),
			[]string{"DeletePool"}, "it is not reused: Drifted: atime"},
		"its run is gone": {with(at(1, runstest.ValidEnding), func(s *State) { s.Pools[0].RunUID = "gone" }), []string{"DeletePool"},
			"the last run that used it is gone"},
		"it is going": {with(at(2, runstest.ValidEnding), func(s *State) { s.Pools[0].Deleting, s.Pools[0].Message = true, "DatasetsRemain: x" }),
			nil, "is gone: DatasetsRemain: x"},
		"the last repetition": {at(4, runstest.ValidEnding), []string{"DeletePool"}, "torn down: waiting until BenchmarkPool"},
		"suspended": {with(at(1, runstest.ValidEnding), func(s *State) { s.Benchmark.Spec.Suspend = true }), []string{"DeletePool"},
			"suspended"},
		"no node": {with(at(1, runstest.ValidEnding), func(s *State) { s.SpecError = design.Refuse("GateInvalid", "x") }), []string{"DeletePool"},
			"x"},
		"deleted": {with(at(1, runstest.ValidEnding), func(s *State) {
			s.Benchmark.DeletionTimestamp = &metav1.Time{Time: runstest.Noon}
			s.Runs = nil
		}),
			[]string{"DeletePool"}, "waiting until BenchmarkPool"},
		"a run is at work on it": {with(at(1, runstest.ValidEnding), func(s *State) {
			s.Runs = append(s.Runs, makeRun(*s, s.Slots[1], 1))
			s.Pools[0].RunUID = string(s.Runs[1].UID)
		}), nil, "run 2 of 4"},
		"a run is about to take it": {with(at(1, runstest.ValidEnding), func(s *State) { s.Runs = append(s.Runs, makeRun(*s, s.Slots[1], 1)) }),
			nil, "run 2 of 4"},
		"a run cannot take it": {with(at(1, runstest.ValidEnding), func(s *State) {
			s.Runs, s.Pools[0].RunUID = append(s.Runs, makeRun(*s, s.Slots[1], 1)), "gone"
		}), []string{"DeletePool"}, "run 2 of 4"},
	} {
		decision := Plan(test.state)
		if got := kinds(decision.Actions); !slices.Equal(got, test.actions) && len(got)+len(test.actions) > 0 {
			t.Errorf("%s: actions %v, want %v", name, got, test.actions)
		}
		if !strings.Contains(decision.Message, test.says) {
			t.Errorf("%s: says %q, want ...%q...", name, decision.Message, test.says)
		}
	}
}

// TestKeptTogether: either all pools of a run are passed on or none.
func TestKeptTogether(t *testing.T) {
	state := endedRuns(keeping(v1alpha1.ResetNone, func(b *v1alpha1.StorageBenchmark) {
		b.Spec.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log"}}
	}), 0, 1, runstest.ValidEnding)
	data := poolOf(state, state.Slots[0], &state.Runs[0])
	log := KeptPool{Name: naming.KeptPoolName(runstest.OwnUID, state.Experiment, "default", "n1", "log"), Node: "n1", RunUID: data.RunUID}
	for _, test := range []struct {
		pools   []KeptPool
		actions []string
	}{
		{[]KeptPool{data, log}, []string{"CreateRun"}}, {[]KeptPool{data}, []string{"DeletePool"}}, {nil, []string{"CreateRun"}},
	} {
		state.Pools = test.pools
		if got := kinds(Plan(state).Actions); !slices.Equal(got, test.actions) {
			t.Errorf("%d pools: %v, want %v", len(test.pools), got, test.actions)
		}
	}
}

// TestKeptPoolNames: there is one name for each variant, node and volume of an experiment, whichever run uses the pool. Operations still
// have a name for each run.
func TestKeptPoolNames(t *testing.T) {
	state := keeping(v1alpha1.ResetDataset)
	run := makeRun(state, state.Slots[0], 1)
	run.Labels = map[string]string{v1alpha1.LabelBenchmarkUID: runstest.OwnUID}
	name, operation := naming.RunPoolName(&run, naming.VolumeData), naming.RunOperationName(&run, run.Spec.Phases[0])
	if want := keptPoolNames(state, state.Slots[0].Variant, state.Slots[0].Target.ZFS, []string{"n1"}); !want[name] {
		t.Errorf("the run calls it %s, the benchmark %v", name, want)
	}
	again := run
	again.UID, again.Spec.Repetition = "another", 2
	if naming.RunPoolName(&again, naming.VolumeData) != name || naming.RunOperationName(&again, run.Spec.Phases[0]) == operation {
		t.Error(naming.RunPoolName(&again, naming.VolumeData), name, operation)
	}
	for what, change := range map[string]func(*v1alpha1.BenchmarkRun){
		"node": func(r *v1alpha1.BenchmarkRun) { r.Spec.NodeName = "n2" }, "variant": func(r *v1alpha1.BenchmarkRun) { r.Spec.Variant = "b" },
		"experiment": func(r *v1alpha1.BenchmarkRun) { r.Spec.Experiment = "0" },
		"benchmark":  func(r *v1alpha1.BenchmarkRun) { r.Labels = map[string]string{v1alpha1.LabelBenchmarkUID: "other"} },
	} {
		other := run
		change(&other)
		if naming.RunPoolName(&other, naming.VolumeData) == name {
			t.Errorf("another %s, and the same pool", what)
		}
	}
}

// TestKeptFor: a run takes over only pools that were created for its experiment, have the same reset policy, and are unchanged.
func TestKeptFor(t *testing.T) {
	state := keeping(v1alpha1.ResetNone)
	run := makeRun(state, state.Slots[0], 1)
	run.Labels = map[string]string{v1alpha1.LabelBenchmarkUID: runstest.OwnUID, v1alpha1.LabelExperiment: state.Experiment}
	for name, test := range map[string]struct {
		change func(*v1alpha1.BenchmarkPool, *v1alpha1.BenchmarkRun)
		want   bool
	}{
		"it is":              {func(*v1alpha1.BenchmarkPool, *v1alpha1.BenchmarkRun) {}, true},
		"another benchmark":  {func(p *v1alpha1.BenchmarkPool, _ *v1alpha1.BenchmarkRun) { p.Labels[v1alpha1.LabelBenchmarkUID] = "x" }, false},
		"another experiment": {func(p *v1alpha1.BenchmarkPool, _ *v1alpha1.BenchmarkRun) { p.Labels[v1alpha1.LabelExperiment] = "x" }, false},
		"another namespace":  {func(p *v1alpha1.BenchmarkPool, _ *v1alpha1.BenchmarkRun) { p.Labels[v1alpha1.LabelNamespace] = "x" }, false},
		"another policy":     {func(p *v1alpha1.BenchmarkPool, _ *v1alpha1.BenchmarkRun) { p.Labels[v1alpha1.LabelReset] = "Dataset" }, false},
		"another node":       {func(p *v1alpha1.BenchmarkPool, _ *v1alpha1.BenchmarkRun) { p.Spec.NodeName = "n2" }, false},
		"changed by hand":    {func(p *v1alpha1.BenchmarkPool, _ *v1alpha1.BenchmarkRun) { p.Generation = 2 }, false},
		"a run of no benchmark": {func(p *v1alpha1.BenchmarkPool, r *v1alpha1.BenchmarkRun) {
			delete(p.Labels, v1alpha1.LabelBenchmarkUID)
			delete(r.Labels, v1alpha1.LabelBenchmarkUID)
		}, false},
	} {
		own, pool := run.DeepCopy(), &v1alpha1.BenchmarkPool{Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "n1"}}
		pool.Generation, pool.Labels = 1, map[string]string{v1alpha1.LabelBenchmarkUID: runstest.OwnUID,
			v1alpha1.LabelExperiment: state.Experiment,
			v1alpha1.LabelNamespace:  "lab", v1alpha1.LabelReset: "None"}
		test.change(pool, own)
		if got := runs.KeptFor(pool, own); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestKeptPoolOf: only a pool that its agent reports Ready, with the spec of its creation, has no problem.
func TestKeptPoolOf(t *testing.T) {
	pool := func(changes ...func(*v1alpha1.BenchmarkPool)) *v1alpha1.BenchmarkPool {
		made := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: "sb-1-data", Generation: 1,
			Labels: map[string]string{v1alpha1.LabelRunUID: "u1"}}}
		kstatus.SetReady(&made.Status.Conditions, 1, v1alpha1.ReasonPoolReady, "ready")
		for _, change := range changes {
			change(made)
		}
		return made
	}
	for name, test := range map[string]struct {
		pool    *v1alpha1.BenchmarkPool
		problem string
	}{
		"it is ready":      {pool(), ""},
		"without an agent": {pool(func(p *v1alpha1.BenchmarkPool) { p.Status.Conditions = nil }), "its agent has not reconciled it"},
		"another spec":     {pool(func(p *v1alpha1.BenchmarkPool) { p.Generation = 2 }), "its spec was changed"},
		"it is degraded": {pool(func(p *v1alpha1.BenchmarkPool) {
			kstatus.SetStalled(&p.Status.Conditions, 1, v1alpha1.ReasonPoolUnhealthy, "DEGRADED")
		}), v1alpha1.ReasonPoolUnhealthy + ": DEGRADED"},
		"it has aged for nights, and is degraded": {pool(func(p *v1alpha1.BenchmarkPool) {
			p.Labels[v1alpha1.LabelLineage] = "nightly"
			kstatus.SetStalled(&p.Status.Conditions, 1, v1alpha1.ReasonPoolUnhealthy, "DEGRADED")
		}), v1alpha1.ReasonPoolUnhealthy + ": DEGRADED"},
		"it has aged for nights, and waits for a person": {pool(func(p *v1alpha1.BenchmarkPool) {
			p.Labels[v1alpha1.LabelLineage] = "nightly"
			kstatus.SetStalled(&p.Status.Conditions, 1, v1alpha1.ReasonPoolStopsNode, "the node has stopped")
		}), ""},
	} {
		if got := KeptPoolOf(test.pool); got.Problem != test.problem || got.RunUID != "u1" || got.Name != "sb-1-data" || got.Deleting {
			t.Errorf("%s: %+v", name, got)
		}
	}
	going := KeptPoolOf(pool(func(p *v1alpha1.BenchmarkPool) { p.DeletionTimestamp = runstest.Stamp(0) }))
	if !going.Deleting || !going.DeletedAt.Equal(runstest.Noon) {
		t.Errorf("one that is deleted: %+v", going)
	}
}
