package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// TestAssembleWithoutRuns: if the deadline stops the only run, there is nothing to judge.
func TestAssembleWithoutRuns(t *testing.T) {
	state := testState()
	state.Benchmark.Spec.Deadline, state.Benchmark.Status.StartedAt = runstest.Lasting(time.Hour), runstest.Stamp(-time.Hour)
	gates, err := gate.Compile(nil, state.Benchmark.Spec.Phases, design.VariantNames(state.Slots))
	if err != nil {
		t.Fatal(err)
	}
	decision := Plan(state)
	experiment := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Gates: gates,
		Tally: decision.Tally})
	if experiment.State != results.StateIncomplete || experiment.Verdict != string(v1alpha1.VerdictInconclusive) ||
		experiment.Reason != v1alpha1.ReasonDeadlineExceeded {
		t.Errorf("%s %s %s: %s", experiment.State, experiment.Verdict, experiment.Reason, experiment.Message)
	}
	if _, _, err := experiment.Encode(1 << 20); err != nil {
		t.Errorf("it cannot be written: %v", err)
	}
}

// TestFinishedAtStays: an experiment ends with its last run, whenever it is judged.
func TestFinishedAtStays(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for name, c := range map[string]struct {
		// ends are those of the runs, relative to noon. Zero means that a run has none.
		ends   []time.Duration
		ending runs.Ending
		want   time.Duration // zero means the time at which it is judged
	}{
		"in order":        {[]time.Duration{-30 * time.Minute, -10 * time.Minute}, runstest.ValidEnding, -10 * time.Minute},
		"the first last":  {[]time.Duration{-10 * time.Minute, -30 * time.Minute}, runstest.ValidEnding, -10 * time.Minute},
		"given up":        {[]time.Duration{-30 * time.Minute, -10 * time.Minute}, runstest.UselessEnding, -10 * time.Minute},
		"one was stopped": {[]time.Duration{-30 * time.Minute, 0}, runstest.ValidEnding, -30 * time.Minute},
		"none has ended":  {[]time.Duration{0}, runstest.ValidEnding, 0},
		"no run":          {nil, runstest.ValidEnding, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			state := endedRuns(testState(), 0, len(c.ends), c.ending)
			for i, end := range c.ends {
				if end != 0 {
					state.Runs[i].Status.FinishedAt = runstest.Stamp(end)
				}
			}
			gates, err := gate.Compile(nil, state.Benchmark.Spec.Phases, design.VariantNames(state.Slots))
			g.Expect(err).NotTo(gomega.HaveOccurred())
			for _, now := range []time.Time{runstest.Noon, runstest.Noon.Add(week)} {
				want := now
				if c.want != 0 {
					want = runstest.Noon.Add(c.want)
				}
				e := Assemble(Evidence{Now: now, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs, Gates: gates,
					Tally: Count(state), Slots: state.Slots})
				g.Expect(e.FinishedAt).To(gomega.HaveValue(gomega.BeTemporally("==", want)))
			}
		})
	}
}

// TestAssemblePreflight: the checks of a run are based on its own phases and pools.
func TestAssemblePreflight(t *testing.T) {
	state := endedRuns(testState(), 0, 2, runstest.ValidEnding)
	documents := map[string]results.PhaseDocument{}
	for i := range state.Runs {
		run := &state.Runs[i]
		name := naming.PhaseObjectName(run.Name, "read")
		run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "read", ExecutorUID: "u", Result: name}}
		run.Status.Volumes = []v1alpha1.RunVolumeStatus{{Name: "data", Pool: "sb", Properties: []v1alpha1.EffectiveProperty{
			{Name: "ashift", Value: []string{"9", "12"}[i]}}}}
		documents[name] = results.PhaseDocument{Phase: "read", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
			StartedAt: runstest.Noon, FinishedAt: runstest.Noon, Metrics: map[string]int64{"readBytes": 1},
			Environment: map[string]string{"device.0.name": "sda", "device.0.logicalSectorBytes": "512", "device.0.physicalSectorBytes": "4096"}}
	}
	gates, err := gate.Compile([]v1alpha1.Gate{{Name: "g", Preflight: &v1alpha1.PreflightGate{Checks: []v1alpha1.PreflightCheck{"ashift"}}}},
		state.Runs[0].Spec.Phases, design.VariantNames(state.Slots))
	if err != nil {
		t.Fatal(err)
	}
	state.Benchmark.Spec.Gates = []v1alpha1.Gate{{Name: "g", Preflight: &v1alpha1.PreflightGate{Checks: []v1alpha1.PreflightCheck{"ashift"}}}}
	e := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs,
		Documents: documents, Gates: gates, Tally: Count(state)})
	for i, want := range []string{results.PreflightWarning, results.PreflightClean} {
		at := slices.IndexFunc(e.Runs[i].Preflight, func(one results.PreflightResult) bool { return one.Check == "ashift" })
		if at < 0 || e.Runs[i].Preflight[at].State != want {
			t.Errorf("run %d: %+v, want %s", i, e.Runs[i].Preflight, want)
		}
	}
	if len(e.Gates) != 1 || e.Gates[0].Reason != gate.ReasonPreflightWarning {
		t.Errorf("%+v", e.Gates)
	}
}

// TestAssembleChangedFile: a user edits the ConfigMap of a job file after the second of four runs. The numbers of the two texts are never
// combined.
func TestAssembleChangedFile(t *testing.T) {
	for name, c := range map[string]struct {
		texts   []string
		invalid int
	}{
		"the same": {[]string{"a", "a", "a", "a"}, 0},
		"edited":   {[]string{"a", "a", "b", "b"}, 2},
	} {
		state := endedRuns(testState(), 0, 4, runstest.ValidEnding)
		documents := map[string]results.PhaseDocument{}
		for i := range state.Runs {
			run := &state.Runs[i]
			run.Spec.Phases = []v1alpha1.Phase{{Name: "jobs", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
				FIO: &v1alpha1.FIOWorkload{JobFileFrom: &v1alpha1.ConfigMapKey{Name: "mine", Key: "job.fio"}}}}}}
			result := naming.PhaseObjectName(run.Name, "jobs")
			run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "jobs", ExecutorUID: "u", Result: result}}
			documents[result] = results.PhaseDocument{Phase: "jobs", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
				StartedAt: runstest.Noon, FinishedAt: runstest.Noon,
				Metrics: map[string]int64{"readBytes": 1}, Environment: map[string]string{results.EnvironmentWorkloadFile: c.texts[i]}}
		}
		gates, err := gate.Compile(nil, state.Runs[0].Spec.Phases, design.VariantNames(state.Slots))
		if err != nil {
			t.Fatal(err)
		}
		e := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs,
			Documents: documents, Gates: gates, Tally: Count(state)})
		invalid := 0
		for _, run := range e.Runs {
			if !run.Valid && run.Reason == v1alpha1.ReasonWorkloadChanged && strings.Contains(run.Message, "ConfigMap mine") {
				invalid++
			}
		}
		wanted := v1alpha1.VerdictPassed
		if c.invalid > 0 {
			wanted = v1alpha1.VerdictInvalid
		}
		if invalid != c.invalid || e.Verdict != string(wanted) {
			t.Errorf("%s: %d runs are Invalid, verdict %s: %s", name, invalid, e.Verdict, e.Message)
		}
	}
}

// TestAssembleCountsAGroupOnce: in the second repetition on two nodes, one node has lost its result and the other executed another text.
func TestAssembleCountsAGroupOnce(t *testing.T) {
	state := groupState()
	documents := map[string]results.PhaseDocument{}
	for repetition, texts := range [][]string{{"a", "a"}, {"", "b"}} {
		for node, text := range texts {
			run := makeMember(state, state.Slots[repetition], 1, int32(node), "n1", "n2")
			endsWith(runstest.ValidEnding)(&run)
			run.Spec.Phases = []v1alpha1.Phase{{Name: "jobs", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
				FIO: &v1alpha1.FIOWorkload{JobFileFrom: &v1alpha1.ConfigMapKey{Name: "mine", Key: "job.fio"}}}}}}
			result := naming.PhaseObjectName(run.Name, "jobs")
			run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "jobs", ExecutorUID: "u", Result: result}}
			state.Runs = append(state.Runs, run)
			if text != "" {
				documents[result] = results.PhaseDocument{Phase: "jobs", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
					StartedAt:  runstest.Noon,
					FinishedAt: runstest.Noon, Environment: map[string]string{results.EnvironmentWorkloadFile: text}}
			}
		}
	}
	gates, err := gate.Compile(nil, state.Runs[0].Spec.Phases, design.VariantNames(state.Slots))
	if err != nil {
		t.Fatal(err)
	}
	tally := Count(state)
	e := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs,
		Documents: documents, Gates: gates, Tally: tally})
	if want := fmt.Sprintf("%d of %d runs", tally.Done-1, tally.Total); e.Verdict != string(v1alpha1.VerdictInvalid) ||
		!strings.Contains(e.Message, want) {
		t.Errorf("%s: %s, want %s", e.Verdict, e.Message, want)
	}
}

// TestTogetherToTheInstant: exact times, not times truncated to whole seconds, decide whether nodes measured at the same time, and the
// outcome applies to the group, its runs and the numbers of the variant.
func TestTogetherToTheInstant(t *testing.T) {
	for name, test := range map[string]struct {
		seconds  [2][2]float64 // of each node
		together bool
	}{
		"80% in common, 90% in whole seconds": {[2][2]float64{{0, 10}, {1.99, 11.99}}, false},
		"90% in common, 89% in whole seconds": {[2][2]float64{{0.1, 99.9}, {10, 109.8}}, true},
	} {
		state, documents := groupState(), map[string]results.PhaseDocument{}
		at := func(second float64) time.Time { return runstest.Noon.Add(time.Duration(second * float64(time.Second))) }
		for node, seconds := range test.seconds {
			run := makeMember(state, state.Slots[0], 1, int32(node), "n1", "n2")
			endsWith(runstest.ValidEnding)(&run)
			result := naming.PhaseObjectName(run.Name, "read")
			run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "read", ExecutorUID: "u", Result: result}}
			documents[result] = results.PhaseDocument{Phase: "read", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
				StartedAt: at(seconds[0]), FinishedAt: at(seconds[1]), Metrics: map[string]int64{"readBytes": 1}}
			state.Runs = append(state.Runs, run)
		}
		e := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs,
			Documents: documents, Tally: Count(state)})
		group := e.Groups[0]
		if group.Valid != test.together || (group.Reason == results.ReasonNotTogether) == test.together ||
			e.Runs[0].Valid != test.together || len(e.Variants[0].Phases) == 1 != test.together {
			t.Errorf("%s: %v %s: %s; %+v", name, group.Valid, group.Reason, group.Message, e.Variants)
		}
		for _, run := range e.Runs {
			if phase := run.Phases[0]; phase.StartedAt.Nanosecond()+phase.FinishedAt.Nanosecond() > 0 {
				t.Errorf("%s: the results have fractions of seconds: %s to %s", name, phase.StartedAt, phase.FinishedAt)
			}
		}
	}
}

// TestVariantsInTheOrderOfTheSpec: reports compare with the first variant, which must not depend on the order of execution.
func TestVariantsInTheOrderOfTheSpec(t *testing.T) {
	firsts := map[string]bool{}
	for seed := range int64(20) {
		state := testState()
		state.Benchmark.Spec.Variants = []v1alpha1.Variant{{Name: "z"}, {Name: "a"}, {Name: "m"}}
		state.Benchmark.Spec.Seed = new(seed)
		state = settle(state)
		firsts[state.Slots[0].Variant] = true
		state = endedRuns(state, 0, len(state.Slots), runstest.ValidEnding)
		e := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Runs: state.Runs, Slots: state.Slots})
		var names []string
		for _, variant := range e.Variants {
			names = append(names, variant.Name)
			if variant.Definition == "" {
				t.Errorf("variant %s has no definition", variant.Name)
			}
		}
		if !slices.Equal(names, []string{"z", "a", "m"}) {
			t.Errorf("seed %d: %v", seed, names)
		}
	}
	if len(firsts) < 2 {
		t.Errorf("all seeds execute %v first: this shows nothing", firsts)
	}
}

// TestVariantsSayTheirCombination: variants have their base and their matrix values as fields, so that figures of a matrix need not parse
// names.
func TestVariantsSayTheirCombination(t *testing.T) {
	state := testState()
	state.Benchmark.Spec.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}
	state.Benchmark.Spec.Matrix = v1alpha1.Matrix{"storageClass.size": {"1Gi", "2Gi"}}
	state = settle(state)
	state = endedRuns(state, 0, len(state.Slots), runstest.ValidEnding)
	e := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Runs: state.Runs, Slots: state.Slots})
	if len(e.Variants) != 4 {
		t.Fatalf("%d variants", len(e.Variants))
	}
	for _, variant := range e.Variants {
		if want := variant.Base + ",storageClass.size=" + variant.Matrix["storageClass.size"]; variant.Name != want || variant.Base == "" {
			t.Errorf("%s is %s", variant.Name, want)
		}
	}
}

// TestRunVolumeInResults: a property set on the dataset hides the inherited one, in whatever order they are listed.
func TestRunVolumeInResults(t *testing.T) {
	property := func(dataset, name, value string) v1alpha1.EffectiveProperty {
		return v1alpha1.EffectiveProperty{Dataset: dataset, Name: name, Value: value}
	}
	properties := []v1alpha1.EffectiveProperty{property("sb-1/volume", "recordsize", "8192"), property("", "ashift", "12"),
		property("sb-1", "recordsize", "131072"), property("sb-1", "atime", "off")}
	want := map[string]string{"recordsize": "8192", "pool.ashift": "12", "atime": "off"}
	for range 2 {
		if got := runVolume(v1alpha1.RunVolumeStatus{Name: "data", Pool: "sb-1", Properties: properties}); !maps.Equal(got.Properties, want) ||
			got.Name != "data" {
			t.Errorf("got %+v", got)
		}
		slices.Reverse(properties)
	}
}

// TestDefinitionsFollowThePhases: the definition of a variant changes with its phases, because the numbers then mean something else.
func TestDefinitionsFollowThePhases(t *testing.T) {
	state := testState()
	before := design.Definitions(state.Slots, state.Benchmark.Spec.PodTemplate)
	state.Slots[0].Phases[0].Name = "renamed"
	after := design.Definitions(state.Slots, state.Benchmark.Spec.PodTemplate)
	if first := state.Slots[0].Variant; before[first] == "" || before[first] == after[first] {
		t.Errorf("definition %q before and after", before[first])
	}
}

// TestAssemblePhasesOfSomeVariants: a phase that a variant does not execute does not count as missing.
func TestAssemblePhasesOfSomeVariants(t *testing.T) {
	state := testState()
	aged := runstest.Phase("aged")
	aged.OnlyFor = []v1alpha1.VariantName{"a"}
	state.Benchmark.Spec.Phases = append(state.Benchmark.Spec.Phases, aged)
	maximum := "phase('aged').readBytesPerSecond >= 0.5 * phase('scan').readBytesPerSecond"
	state.Benchmark.Spec.Gates = []v1alpha1.Gate{{Name: "aged", Expression: maximum}}
	state = settle(state)
	documents := map[string]results.PhaseDocument{}
	for _, slot := range state.Slots {
		run := makeRun(state, slot, 1)
		runstest.Record(&run, runstest.ValidEnding, true)
		run.Status.Phases = nil
		for _, phase := range run.Spec.Phases {
			result := naming.PhaseObjectName(run.Name, phase.Name)
			run.Status.Phases = append(run.Status.Phases, v1alpha1.RunPhaseStatus{Name: phase.Name, ExecutorUID: "u", Result: result})
			documents[result] = results.PhaseDocument{Phase: string(phase.Name), Kind: results.KindMeasure, Outcome: results.OutcomeValid,
				StartedAt: runstest.Noon, FinishedAt: runstest.Noon, Metrics: map[string]int64{"readBytesPerSecond": 100}}
		}
		state.Runs = append(state.Runs, run)
	}
	gates, err := gate.Compile(state.Benchmark.Spec.Gates, state.Benchmark.Spec.Phases, design.VariantNames(state.Slots))
	if err != nil {
		t.Fatal(err)
	}
	e := Assemble(Evidence{Now: runstest.Noon, Benchmark: state.Benchmark, Experiment: state.Experiment, Runs: state.Runs,
		Documents: documents, Gates: gates, Tally: Count(state), Slots: state.Slots})
	if e.Verdict != string(v1alpha1.VerdictPassed) {
		t.Errorf("%s: %s; gates %+v", e.Verdict, e.Message, e.Gates)
	}
	var got []string
	for _, variant := range e.Variants {
		for _, phase := range variant.Phases {
			got = append(got, fmt.Sprintf("%s.%s", variant.Name, phase.Name))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a.aged", "a.fill", "a.scan", "b.fill", "b.scan"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestLostToStorage: only attempts that failed because of the storage are counted.
func TestLostToStorage(t *testing.T) {
	of := func(reason, message string) results.RunResult {
		return results.RunResult{Reason: v1alpha1.ReasonPhaseInvalid, Message: message, Phases: []results.RunPhase{{Reason: reason}}}
	}
	runs := []results.RunResult{{Valid: true}, of(results.ReasonIOError, ""), {Reason: "Evicted"}, of("", "phase scan: IOError: EIO"),
		of(results.ReasonPoolUnhealthy, ""), of("NotConverged", ""), {Valid: true, Phases: []results.RunPhase{{Reason: results.ReasonIOError}}}}
	got, want := lostToStorage(runs), "attempts that failed because of the storage, and are not in any result: 2 (IOError), 1 (PoolUnhealthy)"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lostToStorage(runs[2:3]); got != "" {
		t.Errorf("of an eviction it says %q", got)
	}
}

// TestUnlike: an upgrade of the node between two runs of a variant is reported; differences between nodes, variants and phases are not.
func TestUnlike(t *testing.T) {
	document := func(phase, kernel, dirty string) results.PhaseDocument {
		return results.PhaseDocument{Phase: phase, Environment: map[string]string{"kernel": kernel, "zfs.parameter.zfs_dirty_data_max": dirty,
			"zfs.pool": phase + kernel}}
	}
	a := results.RunResult{Valid: true, Variant: "a", NodeName: "n1"}
	other, elsewhere, invalid := a, a, a
	other.Variant, elsewhere.NodeName, invalid.Valid = "b", "n2", false
	for name, c := range map[string]struct {
		runs  []results.RunResult
		byRun [][]results.PhaseDocument
		want  string
	}{
		"the same": {[]results.RunResult{a, a}, [][]results.PhaseDocument{{document("p", "6.1", "1")}, {document("p", "6.1", "1")}}, ""},
		"an upgrade": {[]results.RunResult{a, a}, [][]results.PhaseDocument{{document("p", "6.1", "1")}, {document("p", "6.2", "1")}},
			"runs of the same variant differ in kernel (6.1, 6.2)"},
		"phases": {[]results.RunResult{a}, [][]results.PhaseDocument{{document("p", "6.1", "1"), document("q", "6.1", "2")}}, ""},
		"others": {[]results.RunResult{a, other, elsewhere, invalid}, [][]results.PhaseDocument{{document("p", "6.1", "1")},
			{document("p", "6.2", "2")}, {document("p", "6.3", "3")}, {document("p", "6.4", "4")}}, ""},
	} {
		if got := unlike(c.runs, c.byRun); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
