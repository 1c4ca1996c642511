package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func run(index int32, variant string, valid bool, phases ...RunPhase) RunResult {
	return RunResult{Name: fmt.Sprintf("run-%d", index), Index: index, Variant: variant, Repetition: 1, Attempt: 1, Valid: valid,
		Phases: phases}
}

func phase(name string, metrics map[string]int64) RunPhase {
	return RunPhase{Name: name, Kind: KindMeasure, Outcome: OutcomeValid, Metrics: metrics}
}

func TestSummarise(t *testing.T) {
	invalidPhase := phase("scan", map[string]int64{"readBytes": 999})
	invalidPhase.Outcome = OutcomeInvalid
	got := Summarise([]RunResult{
		run(3, "a", true, phase("scan", map[string]int64{"readBytes": 10, "readBytesPerSecond": 4})),
		run(0, "b", true, phase("fill", map[string]int64{"filledBytes": 1}), phase("scan", map[string]int64{"readBytesPerSecond": 7})),
		run(1, "a", true, phase("scan", map[string]int64{"readBytes": 30, "readBytesPerSecond": 1, "regions": 8}),
			RunPhase{Name: "trim", Outcome: OutcomeValid}),
		run(2, "a", false, phase("scan", map[string]int64{"readBytesPerSecond": 1000})),
		run(4, "a", true, invalidPhase),
		run(5, "c", false, phase("scan", map[string]int64{"readBytesPerSecond": 1000})),
	})
	metric := func(name, unit, better string, median, low, high int64, runs int32) MetricResult {
		return MetricResult{Name: name, Unit: unit, Better: better, Median: median, Min: low, Max: high, Runs: runs}
	}
	want := []VariantResult{
		{Name: "b", Phases: []PhaseResult{
			{Name: "fill", Metrics: []MetricResult{metric("filledBytes", UnitBytes, "Neither", 1, 1, 1, 1)}},
			{Name: "scan", Metrics: []MetricResult{metric("readBytesPerSecond", UnitBytesPerSecond, "Higher", 7, 7, 7, 1)}},
		}},
		{Name: "a", Phases: []PhaseResult{{Name: "scan", Metrics: []MetricResult{
			metric("readBytesPerSecond", UnitBytesPerSecond, "Higher", 3, 1, 4, 2),
			metric("readBytes", UnitBytes, "Neither", 20, 10, 30, 2),
			metric("regions", UnitCount, "Neither", 8, 8, 8, 1),
		}}}},
		{Name: "c"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMedian(t *testing.T) {
	cases := []struct {
		sorted []int64
		want   int64
	}{
		{[]int64{5}, 5},
		{[]int64{1, 2}, 2},
		{[]int64{1, 4}, 3},
		{[]int64{2, 4}, 3},
		{[]int64{1, 2, 300}, 2},
		{[]int64{0, 10, 21, 99}, 16},
		{[]int64{math.MaxInt64 - 2, math.MaxInt64}, math.MaxInt64 - 1},
		{[]int64{math.MaxInt64, math.MaxInt64}, math.MaxInt64},
		{[]int64{math.MinInt64, math.MaxInt64}, 0},
		{[]int64{-4, -1}, -2},
	}
	for _, c := range cases {
		if got := medianOfSorted(c.sorted); got != c.want {
			t.Errorf("median of %v = %d, want %d", c.sorted, got, c.want)
		}
	}
	for name, want := range map[string]int64{"diskWriteRequestSize.mode": 2048, "diskWriteRequestBytes": 17408} {
		if got := medianOfRuns(name, []int64{2048, 32768}); got != want {
			t.Errorf("median of %s = %d, want %d", name, got, want)
		}
	}
}

// TestDifferingKeys: runs differ only if the same phase of them does, and not only in what differs each time.
func TestDifferingKeys(t *testing.T) {
	of := func(phase, key, value string) PhaseDocument {
		return PhaseDocument{Phase: phase, Environment: map[string]string{key: value}}
	}
	got := DifferingKeys([]PhaseDocument{
		of("fill", KeyWorkloadVersion, "fill 2"), of("scan", KeyWorkloadVersion, "scan 1"), of("scan", KeyWorkloadVersion, "scan 1"),
		of("fill", "zfs.pool", "sb-1"), of("fill", "zfs.pool", "sb-2"), of("log", "log.mount.root", "/pvc-1"), of("log", "log.mount.root", "/pvc-2"),
		of("fill", "cpu.allowed", "0-1"), of("fill", "cpu.allowed", "2-3"),
		of("scan", "kernel", "6.1"), of("scan", "kernel", "6.12"), of("scan", "fio", "3.39"),
	})
	if diff := cmp.Diff([]string{"kernel"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMergeEnvironment(t *testing.T) {
	got := MergeEnvironment([]PhaseDocument{
		{Environment: map[string]string{"kernel": "6.12", "fio": "3.39"}},
		{Environment: map[string]string{"kernel": "6.1"}},
		{Environment: map[string]string{"kernel": "6.12"}},
	})
	if diff := cmp.Diff(map[string][]string{"kernel": {"6.1", "6.12"}, "fio": {"3.39"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMergeManyValues: each of thousands of values is kept once, and most of them repeat.
func TestMergeManyValues(t *testing.T) {
	var docs []PhaseDocument
	for i := range 5000 {
		docs = append(docs, PhaseDocument{Environment: map[string]string{"same": "a", "few": fmt.Sprintf("%02d", i%50), "each": fmt.Sprintf("%04d", i)}})
	}
	got := MergeEnvironment(docs)
	if len(got["same"]) != 1 || len(got["few"]) != 50 || len(got["each"]) != 5000 || cap(got["few"]) > 500 {
		t.Errorf("%d, %d and %d values, room for %d", len(got["same"]), len(got["few"]), len(got["each"]), cap(got["few"]))
	}
	for key, values := range got {
		if !slices.IsSorted(values) {
			t.Errorf("the values of %s are not sorted", key)
		}
	}
}

// TestEncodeForgedKeys: results fit however many keys the environments of runs have. Well-known keys stay.
func TestEncodeForgedKeys(t *testing.T) {
	e := Experiment{Benchmark: RunIdentity{Namespace: "lab", Name: "forged", UID: "1"}, State: StateComplete, Verdict: "Passed",
		Environment: map[string][]string{"kernel": {"6.12", "6.13"}, "zfs.version": {"2.3.0"}}}
	for i := range 4000 {
		key := fmt.Sprintf("forged-%04d", i)
		e.Environment[key] = []string{strings.Repeat("\x01", 1024), strings.Repeat("\x02", 1024), "3"}
		e.Unlike = append(e.Unlike, key)
	}
	e.Unlike = append(e.Unlike, "kernel")
	text, omitted, err := e.Encode(500 << 10)
	if err != nil || !strings.HasPrefix(omitted[len(omitted)-1], "keys of the environment beyond 64 KiB (39") {
		t.Fatalf("omitted %q, error %v", omitted, err)
	}
	var got Experiment
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Environment["kernel"]) != 2 || len(got.Environment["zfs.version"]) != 1 || !slices.Contains(got.Unlike, "kernel") ||
		len(got.Unlike) != len(got.Environment)-1 || len(e.Environment) != 4002 {
		t.Errorf("%d keys, %d of them unlike", len(got.Environment), len(got.Unlike))
	}
}

// bigExperiment has something for every omission.
func bigExperiment() Experiment {
	e := Experiment{
		Benchmark: RunIdentity{Namespace: "lab", Name: "big", UID: "1"}, Experiment: "abc", State: StateComplete, Verdict: "Failed",
		Gates:       []GateResult{{Name: "g", Definition: "a < b && c > d", Verdict: "Failed", Message: strings.Repeat("g", 500)}},
		Environment: map[string][]string{"kernel": {"1", "2", "3", "4"}},
		Notes:       []Note{{Phase: "scan", Text: strings.Repeat("n", 500), Results: 1, Of: 5}},
		Omitted:     []string{"said before"},
	}
	for i := range 400 { // more than any honest environment
		e.Environment[fmt.Sprintf("forged-%03d", i)] = []string{strings.Repeat("v", 300)}
	}
	for i := range int32(20) {
		p := phase("scan", map[string]int64{"readBytesPerSecond": int64(i), "readBytes": 1, "writeOperations": 2})
		p.Seeds, p.Message = []int64{1, 2, 3, 4, 5, 6, 7, 8}, strings.Repeat("ö", 200)
		r := run(i, "a", i%4 != 0, p)
		r.Message = strings.Repeat("m", 300)
		r.Volumes = []RunVolume{{Name: "data", Pool: "sb-1", Properties: map[string]string{"recordsize": "8192"}}}
		e.Runs = append(e.Runs, r)
	}
	e.Variants = Summarise(e.Runs)
	for _, metric := range Metrics() {
		e.Variants[0].Phases[0].Metrics = append(e.Variants[0].Phases[0].Metrics, MetricResult{Name: metric.Name, Runs: 1})
	}
	for i := range int32(keptRuns) {
		e.Runs = append(e.Runs, run(20+i, "a", true))
	}
	e.Groups = []GroupResult{{Name: "g", Nodes: []string{"n1", "n2"}, Phases: []GroupPhase{{Name: "scan", Metrics: map[string]int64{}}}}}
	for _, metric := range Metrics() {
		e.Groups[0].Phases[0].Metrics[metric.Name] = 1
	}
	return e
}

func TestEncodeLeavesOutInOrder(t *testing.T) {
	e := bigExperiment()
	before := mustJSON(t, e)
	whole, omitted, err := e.Encode(1 << 20)
	if err != nil || len(omitted) != 1 {
		t.Fatalf("omitted %q, error %v, want only what was said before", omitted, err)
	}
	if !bytes.Contains(whole, []byte("a < b && c > d")) {
		t.Error("the gate's expression was escaped")
	}
	most := 0
	for limit := len(whole); ; limit -= limit/100 + 1 {
		text, omitted, err := e.Encode(limit)
		if err != nil {
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v, want ErrTooLarge", err)
			}
			break
		}
		checkOmitted(t, text, omitted, limit)
		again, _, _ := e.Encode(limit)
		if !bytes.Equal(text, again) {
			t.Fatalf("limit %d gave different bytes the second time", limit)
		}
		most = max(most, len(omitted))
	}
	if most != len(omissions)+1 {
		t.Errorf("at most %d omissions, want all %d and the one said before", most, len(omissions))
	}
	if !bytes.Equal(before, mustJSON(t, e)) {
		t.Error("Encode changed the caller's experiment")
	}
}

// checkOmitted checks that the parts that are never omitted are complete, and that the words are those of the first omissions.
func checkOmitted(t *testing.T, text []byte, omitted []string, limit int) {
	t.Helper()
	var got Experiment
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	whole := bigExperiment()
	if omitted[len(omitted)-1] != omitted[0] && strings.HasPrefix(omitted[len(omitted)-1], omissions[len(omissions)-1].words) {
		omitVariantMetrics(&whole)
	}
	if len(text) > limit || got.Verdict != "Failed" || got.Version != PhaseVersion || !cmp.Equal(got.Gates, whole.Gates) ||
		!cmp.Equal(got.Variants, whole.Variants) {
		t.Errorf("limit %d: %d bytes, verdict %q, or variants or gates are not whole", limit, len(text), got.Verdict)
	}
	if !cmp.Equal(got.Omitted, omitted) {
		t.Errorf("limit %d: the document says %q, Encode %q", limit, got.Omitted, omitted)
	}
	for i, words := range omitted[1:] {
		if !strings.HasPrefix(words, omissions[i].words) {
			t.Errorf("limit %d: omission %d is %q, want %q", limit, i, words, omissions[i].words)
		}
	}
}
