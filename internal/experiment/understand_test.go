package experiment

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/foresee"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/volume"
)

// TestAllMistakesAtOnce: the status names the first ones, and says how to see the others.
func TestAllMistakesAtOnce(t *testing.T) {
	state := testState()
	onNodes(state.Benchmark, 1)
	state.Benchmark.Spec.Variants = nil
	state.Benchmark.Spec.Phases[0].Fill.To = "5%"
	state.Benchmark.Spec.Target.ZFS.Dataset = &v1alpha1.DatasetTemplate{Type: "Filesystem", Properties: v1alpha1.Properties{
		"atime": "no", "checksun": "on", "logbias": "fast", "recordsize": "9k", "sync": "never", "xatr": "sa", "new_one": "on"}}
	state.Benchmark.Spec.Gates = []v1alpha1.Gate{{Name: "g", Expression: "phase('none').readBytesPerSecond > 1.0"}}
	state.Benchmark.Status.Experiment = ""
	if _, err := Understand(&state); err != nil || state.SpecError == nil {
		t.Fatal(err, state.SpecError)
	}
	message := Plan(state).Message
	for _, part := range []string{`phase "none" is not in spec.phases`, "properties.atime: ", "checksum?; ", "logbias: ", "recordsize: ",
		"and 2 more: 'kubectl storagebench validate' lists all"} {
		if !strings.Contains(message, part) {
			t.Errorf("it does not say %q: %s", part, message)
		}
	}
}

// TestWarningsAreShown: warnings are shown until the experiment begins.
func TestWarningsAreShown(t *testing.T) {
	decision := Decision{Position: PositionQueued, Message: "waiting"}
	state := State{Warnings: []foresee.Warning{{Field: "spec.x", Message: "not known"}, {Field: "spec.y", Message: "neither"}}}
	decision.warn(state)
	if want := "waiting; spec.x: not known; and 1 more: 'kubectl storagebench validate' lists all"; decision.Message != want {
		t.Errorf("%q", decision.Message)
	}
	decision = Decision{Position: PositionRunning, Message: "running"}
	if decision.warn(state); decision.Message != "running" {
		t.Errorf("%q", decision.Message)
	}
}

// TestWhatHasBegunIsNotAskedAgain: a newer release may detect more mistakes, but does not stop a running experiment.
func TestWhatHasBegunIsNotAskedAgain(t *testing.T) {
	state := testState()
	onNodes(state.Benchmark, 1)
	state.Benchmark.Spec.Variants = nil
	state.Benchmark.Spec.Target.ZFS.ModuleParameters = v1alpha1.ModuleParameters{"zfs_arc_max": "4G"}
	state = settle(state)
	if _, err := Understand(&state); err != nil || state.SpecError == nil {
		t.Fatal("it is not refused at all", err)
	}
	state.SpecError = nil
	state.Runs = append(state.Runs, makeRun(state, state.Slots[0], 1))
	if _, err := Understand(&state); err != nil || state.SpecError != nil {
		t.Error(err, state.SpecError)
	}
}

// TestLookedAtOncePerVariant: the checks in each reconciliation do not cost more with more repetitions.
func TestLookedAtOncePerVariant(t *testing.T) {
	cost := func(repetitions int32) (foreseen, provided float64) {
		state := onDriver(volume.ProvisionerLocal)
		spec := &state.Benchmark.Spec
		spec.Repetitions, spec.Variants = repetitions, []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}
		spec.Phases = runstest.ZFSSpec().Phases
		spec.Gates = []v1alpha1.Gate{{Name: "g", Expression: "phase('scan').readBytesPerSecond > 1.0"}}
		slots, err := design.Expand(spec, 1)
		if err != nil || len(slots) != 2*int(repetitions) {
			t.Fatal(len(slots), err)
		}
		gates, err := gate.Compile(spec.Gates, spec.Phases, design.VariantNames(slots))
		if err != nil {
			t.Fatal(err)
		}
		state.Slots = slots
		foreseen = testing.AllocsPerRun(3, func() {
			if err := foresee.Spec(spec, slots, gates).Err(); err != nil {
				t.Fatal(err)
			}
		})
		return foreseen, testing.AllocsPerRun(3, func() {
			if stepDriver(state, &Decision{}) {
				t.Fatal("it stopped")
			}
		})
	}
	foreseen, provided := cost(1)
	manyForeseen, manyProvided := cost(100)
	if foreseen < 10 || manyForeseen > 2*foreseen || provided < 10 || manyProvided > 2*provided {
		t.Errorf("allocations with 1 and 100 repetitions: %v and %v to foresee, %v and %v for the provisioners", foreseen, manyForeseen, provided,
			manyProvided)
	}
}
