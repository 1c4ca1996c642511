package results

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var accepted = AcceptOptions{AcceptedAt: testStart.Add(90 * time.Minute), Note: "first of the new disks"}

// repetition returns a valid run of a variant with one phase.
func repetition(index, repetition int32, variant string, metrics map[string]int64) RunResult {
	r := run(index, variant, true, phase("scan", metrics))
	r.Repetition = repetition
	return r
}

// complete returns a passed experiment with this number of repetitions of two variants, which are executed in turn.
func complete(repetitions int32) Experiment {
	finished := testStart.Add(time.Hour)
	e := Experiment{
		Version: PhaseVersion, Benchmark: RunIdentity{Namespace: "lab", Name: "ageing-8k", UID: "1"}, Experiment: "3f9c2e1b",
		State:   StateComplete,
		Verdict: "Passed", NodeName: "node-a", StorageClass: "fast", FinishedAt: &finished,
		Environment: map[string][]string{"kernel": {"6.12.9"}, "device.0.model": {"X1"}},
	}
	for i := range repetitions {
		for j, variant := range []string{"r8k", "r128k"} {
			value := int64(1000 + 10*i + 100*int32(j))
			e.Runs = append(e.Runs, repetition(2*i+int32(j), i+1, variant,
				map[string]int64{"readBytesPerSecond": value, "readLatencyMeanNanoseconds": 2 * value, "readBytes": 5, "ioErrors": 0}))
		}
	}
	e.Variants = Summarise(e.Runs)
	for i := range e.Variants {
		e.Variants[i].Definition = "d" + strings.TrimPrefix(e.Variants[i].Name, "r")
	}
	return e
}

// aloneWarning is the warning about every baseline of a single experiment.
const aloneWarning = "with a single experiment, gates are Inconclusive unless they set acceptSingleDay: how days differ is not known; accept " +
	"the results of other days too"

// TestBaselineOfRunsThatLack: if a run stalled and has no percentile, the values of the others may be only those of the good runs.
func TestBaselineOfRunsThatLack(t *testing.T) {
	e := complete(6)
	for i := range e.Runs {
		if e.Runs[i].Variant == "r8k" && e.Runs[i].Repetition != 3 {
			e.Runs[i].Phases[0].Metrics["readLatencyP99Nanoseconds"] = 40_000_000
		}
	}
	got, warnings, err := MakeBaseline(e, accepted)
	if err != nil || !strings.Contains(strings.Join(warnings, "\n"),
		"variant r8k leaves out what only some of its runs have: readLatencyP99Nanoseconds") {
		t.Fatal(warnings, err)
	}
	for _, metric := range got.Variants[0].Phases[0].Metrics {
		if metric.Name == "readLatencyP99Nanoseconds" || len(metric.Values[0]) != 6 {
			t.Errorf("%+v", metric)
		}
	}
	if len(got.Variants[0].Phases[0].Metrics) < 3 {
		t.Errorf("%+v", got.Variants)
	}
}

func TestMakeBaseline(t *testing.T) {
	e := complete(6)
	// The repetitions are out of order. A failed attempt and a failed phase must not count.
	e.Runs[0], e.Runs[11] = e.Runs[11], e.Runs[0]
	failed := repetition(3, 2, "r128k", map[string]int64{"readBytesPerSecond": 77})
	failed.Valid = false
	spoiled := e.Runs[4].Phases[0]
	spoiled.Name, spoiled.Outcome = "spoiled", OutcomeInvalid
	e.Runs[4].Phases = append(e.Runs[4].Phases, spoiled)
	e.Runs = append(e.Runs, failed)
	got, warnings, err := MakeBaseline(e, accepted)
	if err != nil || len(warnings) != 1 || warnings[0] != aloneWarning {
		t.Fatalf("warnings %q, error %v", warnings, err)
	}
	metrics := func(first int64) []BaselineMetric {
		values := func(factor int64) [][]int64 {
			var all []int64
			for i := range int64(6) {
				all = append(all, factor*(first+10*i))
			}
			return [][]int64{all}
		}
		return []BaselineMetric{
			{"readBytesPerSecond", UnitBytesPerSecond, "Higher", values(1)}, {"ioErrors", UnitCount, "Lower", [][]int64{{0, 0, 0, 0, 0, 0}}},
			{"readBytes", UnitBytes, "Neither", [][]int64{{5, 5, 5, 5, 5, 5}}}, {"readLatencyMeanNanoseconds", UnitNanoseconds, "Lower", values(2)},
		}
	}
	want := Baseline{
		Version: BaselineVersion, Environment: e.Environment,
		Experiments: []Accepted{{Benchmark: BenchmarkIdentity{"lab", "ageing-8k"}, Experiment: "3f9c2e1b", Verdict: "Passed", NodeName: "node-a",
			StorageClass: "fast", FinishedAt: e.FinishedAt, AcceptedAt: accepted.AcceptedAt, Note: accepted.Note}},
		Variants: []BaselineVariant{{"r8k", "d8k", []BaselinePhase{{"scan", KindMeasure, nil, metrics(1000)}}},
			{"r128k", "d128k", []BaselinePhase{{"scan", KindMeasure, nil, metrics(1100)}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `[1000, 1010, 1020, 1030, 1040, 1050]`) ||
		!strings.Contains(string(text), `"kernel": ["6.12.9"]`) {
		t.Errorf("a list is not in one line:\n%s", text)
	}
	back, err := DecodeBaseline(map[string]string{KeyBaseline: string(text)})
	if err != nil || !cmp.Equal(back, got) {
		t.Errorf("error %v, (-want +got):\n%s", err, cmp.Diff(got, back))
	}
	if values := back.Values("r128k", "scan", "readBytesPerSecond"); len(values) != 1 || len(values[0]) != 6 || values[0][5] != 1150 ||
		back.Values("r128k", "scan", "x") != nil {
		t.Errorf("Values gives %v", values)
	}
}

// TestBaselineOfGroups: several nodes at once count as one value.
func TestBaselineOfGroups(t *testing.T) {
	e := complete(0)
	for i := range int32(6) {
		for node := range int32(2) {
			r := repetition(i, i+1, "default", map[string]int64{"readBytesPerSecond": 100, "readLatencyP99Nanoseconds": int64(50 + node)})
			r.Name, r.Group = fmt.Sprintf("g-%d-%d", i, node), &RunGroup{Name: fmt.Sprintf("g-%d", i), Index: node, Size: 2}
			e.Runs = append(e.Runs, r)
		}
	}
	got, _, err := MakeBaseline(e, accepted)
	if err != nil {
		t.Fatal(err)
	}
	if values := got.Values("default", "scan", "readBytesPerSecond"); !cmp.Equal(values, [][]int64{{200, 200, 200, 200, 200, 200}}) {
		t.Errorf("rates are %v, want the sum of the nodes once for each group", values)
	}
	if values := got.Values("default", "scan", "readLatencyP99Nanoseconds"); !cmp.Equal(values, [][]int64{{51, 51, 51, 51, 51, 51}}) {
		t.Errorf("latencies are %v, want the worst node", values)
	}
}

// TestWhatIsNotAccepted is the same for baselines and calibrations.
func TestWhatIsNotAccepted(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(*Experiment, *AcceptOptions)
		want  string // part of the error; of the warnings if it begins with a plus
	}{
		{"superseded", func(e *Experiment, _ *AcceptOptions) { e.State = StateSuperseded }, "was changed before all runs had ended"},
		{"incomplete", func(e *Experiment, o *AcceptOptions) {
			e.State, e.Verdict, e.Message, o.EvenIfFailed = StateIncomplete, "Invalid", "2 runs given up", true
		}, "is Incomplete: 2 runs given up"},
		{"unknown state", func(e *Experiment, _ *AcceptOptions) { e.State = "" }, `has the state ""`},
		{"failed", func(e *Experiment, _ *AcceptOptions) { e.Verdict, e.Message = "Failed", "too slow" }, "is Failed: too slow; results worse"},
		{"invalid", func(e *Experiment, _ *AcceptOptions) { e.Verdict = "Invalid" }, "--even-if-failed"},
		{"failed, as asked", func(e *Experiment, o *AcceptOptions) {
			e.Verdict, e.Message, o.EvenIfFailed = "Failed", "too slow", true
		}, "+accepted as asked: too slow"},
		{"inconclusive", func(e *Experiment, _ *AcceptOptions) { e.Verdict, e.Message = "Inconclusive", "no baseline yet" },
			"+Inconclusive: no baseline yet"},
		{"no verdict", func(e *Experiment, o *AcceptOptions) { e.Verdict, o.EvenIfFailed = "", true }, `has the verdict ""`},
		{"other version", func(e *Experiment, _ *AcceptOptions) { e.Version = "results.storagebench.dev/v9" }, "of the same release"},
		{"no time", func(_ *Experiment, o *AcceptOptions) { o.AcceptedAt = time.Time{} }, "acceptedAt"},
		{"long note", func(_ *Experiment, o *AcceptOptions) { o.Note = strings.Repeat("n", maxNoteBytes+1) }, "the note has 1025 bytes"},
		{"no valid run", func(e *Experiment, _ *AcceptOptions) {
			for i := range e.Runs {
				e.Runs[i].Valid = false
			}
		}, "valid run"},
		{"twice", func(e *Experiment, _ *AcceptOptions) { e.Runs = append(e.Runs, e.Runs[0]) }, "repetition 1 of variant r8k has two valid runs"},
		{"not alike", func(e *Experiment, _ *AcceptOptions) {
			e.Environment["kernel"], e.Unlike = []string{"6.1", "6.12"}, []string{"kernel"}
		}, "+kernel was 6.1 and 6.12"},
		{"names may differ", func(e *Experiment, _ *AcceptOptions) { e.Environment["device.0.name"] = []string{"sda", "sdb"} }, "+"},
		{"something missing", func(e *Experiment, _ *AcceptOptions) { e.Omitted = []string{"metrics of single runs (8)"} },
			"+results.json already lacks metrics of"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e, options := complete(40), accepted
			c.spoil(&e, &options)
			_, ofBaseline, baselineErr := MakeBaseline(e, options)
			_, ofCalibration, calibrationErr := MakeCalibration(e, options)
			checkRefusal(t, "baseline", c.want, slices.DeleteFunc(ofBaseline, func(words string) bool { return words == aloneWarning }), baselineErr)
			// A calibration always warns that it has no floor for the number of errors, which is 0.
			checkRefusal(t, "calibration", c.want, ofCalibration[:max(0, len(ofCalibration)-1)], calibrationErr)
		})
	}
}

func checkRefusal(t *testing.T, what, want string, warnings []string, err error) {
	t.Helper()
	warning, accepts := strings.CutPrefix(want, "+")
	switch {
	case accepts && (err != nil || warning == "" && len(warnings) > 0 || !strings.Contains(strings.Join(warnings, "\n"), warning)):
		t.Errorf("%s: warnings %q, error %v, want a warning with %q", what, warnings, err, warning)
	case !accepts && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v, want something with %q", what, err, want)
	}
}

func TestBaselineWarnsOfLittle(t *testing.T) {
	e := complete(3)
	e.Runs = append(e.Runs, run(99, "r1m", false))
	e.Variants = Summarise(e.Runs)
	_, warnings, err := MakeBaseline(e, accepted)
	want := []string{
		"variant r1m has no valid run with metrics and is not included", aloneWarning,
		"variant r8k has 3 valid repetitions of phase scan: with fewer than 6 a comparison is rarely conclusive",
		"variant r128k has 3 valid repetitions of phase scan: with fewer than 6 a comparison is rarely conclusive",
	}
	if err != nil || !cmp.Equal(warnings, want) {
		t.Errorf("error %v, (-want +got):\n%s", err, cmp.Diff(want, warnings))
	}
}

func TestBaselineFits(t *testing.T) {
	e := complete(6)
	whole, _, err := MakeBaseline(e, accepted)
	if err != nil {
		t.Fatal(err)
	}
	text, err := whole.Encode()
	if err != nil {
		t.Fatal(err)
	}
	without := func(limit int) (string, Baseline, error) {
		b, _, err := MakeBaseline(e, accepted)
		if err != nil {
			t.Fatal(err)
		}
		omitted, err := b.fit(limit)
		return strings.Join(omitted, "; "), b, err
	}
	if omitted, b, err := without(len(text)); err != nil || omitted != "" || !cmp.Equal(b, whole) {
		t.Errorf("what fits lost %q, error %v", omitted, err)
	}
	if omitted, b, err := without(len(text) - 1); err != nil || omitted != "metrics that have no better direction (2)" ||
		b.Values("r8k", "scan", "readBytes") != nil || b.Values("r8k", "scan", "ioErrors") == nil {
		t.Errorf("one byte too much: omitted %q, error %v", omitted, err)
	}
	omitted, small, err := without(len(text) * 3 / 5)
	if err != nil || omitted != "metrics that have no better direction (2); metrics that are not primary (4)" ||
		len(small.Variants) != 2 || len(small.Variants[1].Phases[0].Metrics) != 1 || small.Validate() != nil {
		t.Errorf("much too much: omitted %q, error %v", omitted, err)
	}
	if _, _, err := without(100); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}

// TestBaselineIsBounded makes a baseline from more results than fit, with all metrics of the vocabulary.
func TestBaselineIsBounded(t *testing.T) {
	e := complete(0)
	for i := range int32(500) {
		metrics := map[string]int64{}
		for _, metric := range Metrics() {
			metrics[metric.Name] = math.MaxInt64 - int64(i)
		}
		e.Runs = append(e.Runs, repetition(i, i+1, "default", metrics))
	}
	b, warnings, err := MakeBaseline(e, accepted)
	if err != nil || len(b.Omitted) == 0 || !strings.Contains(strings.Join(warnings, "\n"),
		"omitted: metrics that have no better direction") {
		t.Fatalf("omitted %q, warnings %q, error %v", b.Omitted, warnings, err)
	}
	if text, err := b.Encode(); err != nil || len(text) > 700<<10 {
		t.Errorf("%d bytes, error %v", len(text), err)
	}
}

// baselineText returns a valid document. Each test case breaks one thing in it.
func baselineText(t testing.TB) string {
	t.Helper()
	b, _, err := MakeBaseline(complete(6), accepted)
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDecodeBaselineIsStrict(t *testing.T) {
	for _, c := range []struct{ name, old, replacement, want string }{
		{"as it is", "", "", ""},
		{"version", "baseline.storagebench.dev/v1alpha1", "baseline.storagebench.dev/v2",
			"accept results again with this release"},
		{"unit", `"unit": "bytes/s"`, `"unit": "MB/s"`,
			`variant "r8k": phase "scan": metric "readBytesPerSecond": it has the unit "MB/s" instead of "bytes/s"`},
		{"direction", `"better": "Higher"`, `"better": "Lower"`, "worse would count as better"},
		{"values of nothing", `[1000, 1010, 1020, 1030, 1040, 1050]`, `[]`, "it has no values"},
		{"negative", "[1000, ", "[-1000, ", "value 1 of list 1 is -1000"},
		{"float", "[1000, ", "[1000.5, ", "recreate it with 'kubectl storagebench baseline accept'"},
		{"same variant", `"name": "r128k"`, `"name": "r8k"`, `variant "r8k" is a duplicate`},
		{"same metric", `"name": "readBytes"`, `"name": "ioErrors"`, `metric "ioErrors" is a duplicate`},
		{"nameless phase", `"name": "scan"`, `"name": ""`, "phase has a name of 0 characters"},
		{"kind", `"kind": "measure"`, `"kind": "Measure"`, `kind is "Measure"`},
		{"unknown field", `"experiment":`, `"acceptedBy": "me", "experiment":`, "acceptedBy"},
		{"no time", `"acceptedAt": "2026-03-01T13:30:00Z",`, "", "acceptedAt is missing"},
		{"no experiments", `"experiments": [`, `"experiments": [], "omitted": [`, "omitted"},
		{"a list too many", "[1000, 1010, 1020, 1030, 1040, 1050]", "[1000], [1010]", "it has 2 lists of values: use one for each of the 1"},
		{"order without sameVariants", `"kind": "measure",`, `"kind": "measure", "order": [[1]],`, "order has 1 lists"},
		{"no order with sameVariants", `"environment":`, `"sameVariants": true, "environment":`, "order has 0 lists"},
		{"no experiment", `"experiment": "3f9c2e1b"`, `"experiment": ""`, "experiment has 0 characters"},
		{"verdict", `"Passed"`, `"Fine"`, `verdict is "Fine"`},
		{"key without values", `["6.12.9"]`, `[]`, `environment "kernel"`},
		{"metric of another release", `"name": "readBytes"`, `"name": "readsOfTomorrow"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(baselineText(t), c.old, c.replacement, 1)
			if c.old != "" && text == baselineText(t) {
				t.Fatalf("%q is not in the document", c.old)
			}
			checkDecoded(t, c.want, func() error { _, err := DecodeBaseline(map[string]string{KeyBaseline: text}); return err }())
		})
	}
	for want, data := range map[string]map[string]string{
		"the ConfigMap is empty":                nil,
		"no such key, only report.md, results.": {"results.json": "{}", "report.md": ""},
		"it is not JSON":                        {KeyBaseline: "no"},
		`it has version ""`:                     {KeyBaseline: "null"},
		"after top-level value":                 {KeyBaseline: baselineText(t) + "{}"},
		"but the limit is 716799":               {KeyBaseline: strings.Repeat(" ", 700<<10)},
	} {
		_, err := DecodeBaseline(data)
		checkDecoded(t, want, err)
	}
}

func checkDecoded(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v, want something with %q", err, want)
	}
}

// FuzzDecodeBaseline: an accepted document is valid, and stays the same when it is written and read again.
func FuzzDecodeBaseline(f *testing.F) {
	small, _, err := MakeBaseline(sequence(5, 6), accepted)
	if err != nil {
		f.Fatal(err)
	}
	text, err := small.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"version":"baseline.storagebench.dev/v1alpha1"}`)
	f.Fuzz(func(t *testing.T, text string) {
		b, err := DecodeBaseline(map[string]string{KeyBaseline: text})
		if err != nil {
			return
		}
		for _, variant := range b.Variants {
			for _, phase := range variant.Phases {
				for _, metric := range phase.Metrics {
					if len(b.Values(variant.Name, phase.Name, metric.Name)) == 0 {
						t.Fatalf("%s %s %s has no values", variant.Name, phase.Name, metric.Name)
					}
				}
			}
		}
		first, err := b.Encode()
		if errors.Is(err, ErrTooLarge) {
			return // it takes more space when it is indented
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeBaseline(map[string]string{KeyBaseline: string(first)})
		if err != nil {
			t.Fatal(err)
		}
		if second, err := again.Encode(); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("error %v:\n%s\n%s", err, first, second)
		}
	})
}

// TestUnlikeCheckpoints: runs with more checkpoints did more work. A difference of one is chance, and runs that do not count are ignored.
func TestUnlikeCheckpoints(t *testing.T) {
	run := func(valid bool, counts ...int64) RunResult {
		result := RunResult{Valid: valid}
		for i, count := range counts {
			result.Phases = append(result.Phases, RunPhase{Name: []string{"a", "b"}[i], Outcome: OutcomeValid,
				Metrics: map[string]int64{MetricCheckpoints: count}})
		}
		return result
	}
	experiment := Experiment{Runs: []RunResult{run(true, 4, 4), run(true, 5, 9), run(false, 90, 4), run(true, 4)}}
	want := []string{"the runs were not alike: phase b had from 4 to 9 checkpoints"}
	if got := experiment.UnlikeCheckpoints(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
