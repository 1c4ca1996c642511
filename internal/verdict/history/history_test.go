package history

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/results/resultstest"
)

var monday = time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)

var (
	reads   = Path{"default", "scan", "readBytesPerSecond"}
	latency = Path{"default", "scan", "readLatencyP99Nanoseconds"}
)

// weekly returns a series with a point for each value of reads, and with latencies that fall if reads rise.
func weekly(values ...int64) *Series {
	series := &Series{Version: Version, Benchmark: results.RunIdentity{Namespace: "lab", Name: "weekly", UID: "u"}}
	for i, value := range values {
		series.Append(Point{Experiment: fmt.Sprintf("e%03d", i), FinishedAt: monday.AddDate(0, 0, 7*i), Verdict: "Passed",
			Environment: map[string]string{"kernel": "6.12.1", "zfs.version": "2.3.8", "node": "node-a"},
			Metrics:     []Metric{{reads, value, 6}, {latency, 1_000_000_000_000 / value, 6}}})
	}
	return series
}

// noisy returns values around a level, with a standard deviation of 1%.
func noisy(source *rand.Rand, level int64, n int) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = level + int64(source.NormFloat64()*float64(level)/100)
	}
	return values
}

func update(series *Series, from int, environment map[string]string) {
	for i := from; i < len(series.Points); i++ {
		series.Points[i].Environment = environment
	}
}

func TestPointOf(t *testing.T) {
	finished := monday.Add(time.Millisecond)
	experiment := &results.Experiment{State: results.StateComplete, Experiment: "abc", FinishedAt: &finished, Verdict: "Failed",
		NodeName: "n1",
		Environment: map[string][]string{"kernel": {"6.12"}, "fio": {"3.33", "3.39"}, "warning.clockSource": {"hpet"}, "zfs.pool": {"sb-1"},
			"system.boot-id": {"x"}, "long": {strings.Repeat("ä", 200)}, "workload.version": {"fill 1", "scan 2"}},
		Variants: []results.VariantResult{{Name: "default", Definition: "d3", Phases: []results.PhaseResult{{Name: "scan", Metrics: []results.MetricResult{
			{Name: "readBytesPerSecond", Median: 7, Runs: 3}, {Name: "readBytes", Median: 8, Runs: 3}, {Name: "unheardOf", Median: 9, Runs: 3},
			{Name: "log.syncLatencyP99Nanoseconds", Median: 6, Runs: 3}}}}},
			{Name: "empty"}},
	}
	ofLog := Path{"default", "scan", "log.syncLatencyP99Nanoseconds"} // of one of several workloads
	point, complete := PointOf(experiment, map[string]string{"spec": "q"})
	want := Point{Experiment: "abc", FinishedAt: monday, Verdict: "Failed", Metrics: []Metric{{reads, 7, 3}, {ofLog, 6, 3}},
		Definitions: map[string]string{"default": "d3 fill 1, scan 2", "empty": "fill 1, scan 2"},
		Environment: map[string]string{"kernel": "6.12", "node": "n1", "spec": "q", "long": strings.Repeat("ä", 120)}}
	if !complete || !reflect.DeepEqual(point, want) {
		t.Errorf("%+v, want %+v", point, want)
	}
	on := func(pool, value int64) results.RunResult {
		run := results.RunResult{Variant: "default", Repetition: int32(value), Valid: true, PoolAge: &results.PoolAge{Since: time.Unix(pool, 0)},
			Phases: []results.RunPhase{{Name: "scan", Outcome: results.OutcomeValid, Metrics: map[string]int64{"readBytesPerSecond": value}}}}
		if value == 0 {
			run.Phases = nil
		}
		return run
	}
	invalid := on(2, 8)
	invalid.Valid = false
	for name, test := range map[string]struct {
		runs []results.RunResult
		want int
	}{
		"one pool":          {[]results.RunResult{on(1, 7), on(1, 8), invalid}, 1},
		"a recreated pool":  {[]results.RunResult{on(1, 7), on(2, 8)}, 0},
		"a run without one": {[]results.RunResult{on(1, 7), on(1, 0)}, 0},
	} {
		experiment.Runs, experiment.Variants = test.runs, results.Summarise(test.runs)
		if point, _ := PointOf(experiment, nil); len(point.Metrics) != test.want {
			t.Errorf("%s: %+v", name, point.Metrics)
		}
	}
	for _, state := range []string{results.StateIncomplete, results.StateSuperseded} {
		if experiment.State = state; true {
			if _, complete := PointOf(experiment, nil); complete {
				t.Errorf("%s is taken", state)
			}
		}
	}
}

// stalling returns an experiment of six repetitions on some nodes. In one repetition, a run had too few operations for a percentile.
func stalling(nodes int, stalled int32) results.Experiment {
	finished := monday
	e := results.Experiment{State: results.StateComplete, Experiment: "abc", FinishedAt: &finished}
	for repetition := int32(1); repetition <= 6; repetition++ {
		for node := range nodes {
			metrics := map[string]int64{reads.Metric: 7, latency.Metric: 9, "readBytes": 8}
			if repetition == stalled && node == 0 {
				delete(metrics, latency.Metric)
			}
			run := results.RunResult{Variant: "default", Repetition: repetition, Valid: true,
				Phases: []results.RunPhase{{Name: "scan", Kind: results.KindMeasure, Outcome: results.OutcomeValid, Metrics: metrics}}}
			if nodes > 1 {
				run.Group = &results.RunGroup{Name: fmt.Sprint("group", repetition), Index: int32(node), Size: int32(nodes)}
			}
			e.Runs = append(e.Runs, run)
		}
	}
	e.Variants = results.Summarise(e.Runs)
	return e
}

// TestPointOfLargeResults: results that are too large for the values of single runs give the same point.
func TestPointOfLargeResults(t *testing.T) {
	for name, test := range map[string]struct {
		nodes   int
		stalled int32
		want    []Metric
	}{
		"one node":            {1, 0, []Metric{{reads, 7, 6}, {latency, 9, 6}}},
		"one node, stalled":   {1, 3, []Metric{{reads, 7, 6}}},
		"two nodes":           {2, 0, []Metric{{reads, 14, 6}, {latency, 9, 6}}},
		"one of two, stalled": {2, 3, []Metric{{reads, 14, 6}}},
	} {
		for _, part := range []string{"", "metrics of single runs", "phases of single runs"} {
			t.Run(name+" "+part, func(t *testing.T) {
				g := gomega.NewWithT(t)
				e := stalling(test.nodes, test.stalled)
				stored := &e
				if part != "" {
					stored = new(resultstest.WithoutPart(t, e, part))
				}
				point, complete := PointOf(stored, nil)
				g.Expect(complete).To(gomega.BeTrue())
				g.Expect(point.Metrics).To(gomega.Equal(test.want))
			})
		}
	}
}

// TestManyDisksLeaveRoomForVersions: the facts about a dozen disks must not displace what explains most changes.
func TestManyDisksLeaveRoomForVersions(t *testing.T) {
	e := stalling(1, 0)
	e.NodeName, e.Environment = "node-a", map[string][]string{"kernel": {"6.12.1"}, "zfs.version": {"2.3.8"}, "fio": {"3.39"}}
	for disk := range 20 {
		for fact := range 17 {
			e.Environment[fmt.Sprintf("device.%d.fact-%d", disk, fact)] = []string{"same"}
		}
	}
	point, _ := PointOf(&e, map[string]string{"spec": "1234abcd"})
	if len(point.Environment) != maxEnvironment {
		t.Errorf("%d keys are kept, want %d", len(point.Environment), maxEnvironment)
	}
	for key, want := range map[string]string{"kernel": "6.12.1", "zfs.version": "2.3.8", "fio": "3.39", "node": "node-a", "spec": "1234abcd",
		"device.0.fact-0": "same"} {
		if point.Environment[key] != want {
			t.Errorf("%s is %q, want %q", key, point.Environment[key], want)
		}
	}
}

func TestAppend(t *testing.T) {
	series := weekly(1, 2, 3)
	late := series.Points[1]
	late.Verdict = "Failed"
	series.Append(late)
	series.Append(Point{Experiment: "first", FinishedAt: monday.Add(-time.Hour)})
	var got []string
	for _, point := range series.Points {
		got = append(got, point.Experiment+point.Verdict)
	}
	if want := "first e000Passed e001Failed e002Passed"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	for i := range 2 * MaxPoints {
		series.Append(Point{Experiment: fmt.Sprint("x", i), FinishedAt: monday.AddDate(1, 0, i)})
	}
	if n := len(series.Points); n != MaxPoints || series.Points[n-1].Experiment != fmt.Sprint("x", 2*MaxPoints-1) {
		t.Errorf("%d points, the last is %s", n, series.Points[n-1].Experiment)
	}
}

func TestEncode(t *testing.T) {
	series := weekly(noisy(rand.New(rand.NewPCG(1, 1)), 1_000_000, 40)...)
	whole, err := series.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(whole)
	if err != nil || !reflect.DeepEqual(back, series) {
		t.Fatalf("%v: %+v", err, back)
	}
	for _, most := range []int{len(whole) - 1, len(whole) / 2, 1000, 200} {
		text, err := series.encode(most)
		if err != nil || len(text) > most {
			t.Fatalf("%d bytes of %d: %v", len(text), most, err)
		}
		short, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		kept := len(short.Points)
		if kept > 0 && short.Points[kept-1].Experiment != "e039" || most > 1000 && kept < 40*most/len(whole)-2 {
			t.Errorf("%d points in %d bytes", kept, most)
		}
	}
	if _, err := series.encode(20); err == nil {
		t.Error("nothing fits into 20 bytes")
	}
	largest := &Series{}
	for i := range MaxPoints {
		point := Point{Experiment: fmt.Sprint("e", i), FinishedAt: monday.AddDate(0, 0, i)}
		for k := range maxMetrics {
			point.Metrics = append(point.Metrics, Metric{Path{fmt.Sprint("variant", k), "scan", "readBytesPerSecond"}, 1 << 62, 50})
		}
		largest.Append(point)
	}
	text, err := largest.Encode()
	if err != nil || len(text) > MaxBytes || len(text) < MaxBytes/3 {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	if _, err := Decode(text); err != nil {
		t.Error(err)
	}
}

// TestWorkloadsGoFirst: the oldest points are the reference of gates, so the metrics of single workloads make room before.
func TestWorkloadsGoFirst(t *testing.T) {
	series := &Series{}
	for i := range MaxPoints {
		point := Point{Experiment: fmt.Sprint("e", i), FinishedAt: monday.AddDate(0, 0, i)}
		for k := range 20 {
			point.Metrics = append(point.Metrics, Metric{Path{fmt.Sprint("variant", k), "scan", "readBytesPerSecond"}, 1 << 62, 50})
			for _, workload := range []string{"data", "log", "index", "archive"} {
				point.Metrics = append(point.Metrics, Metric{Path{fmt.Sprint("variant", k), "scan", workload + ".readBytesPerSecond"}, 1 << 62, 50})
			}
		}
		series.Append(point)
	}
	text, err := series.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	oldest, newest := got.Points[0], got.Points[len(got.Points)-1]
	if len(got.Points) != MaxPoints || len(oldest.Metrics) != 20 || oldest.MetricsOmitted != 80 || len(newest.Metrics) != 100 {
		t.Errorf("%d points, the oldest with %d metrics, the newest with %d", len(got.Points), len(oldest.Metrics), len(newest.Metrics))
	}
	if paths := got.Paths(); paths[0].Metric != "readBytesPerSecond" || paths[19].Metric != "readBytesPerSecond" || len(series.Points[0].Metrics) != 100 {
		t.Errorf("%v", paths[:20])
	}
}

// TestALongListTakesNoMemory: a tenant can write a history whose empty objects would take many times its size.
func TestALongListTakesNoMemory(t *testing.T) {
	for name, list := range map[string]string{
		"points":  `[` + strings.Repeat(`{},`, 340<<10) + `{}]`,
		"metrics": `[{"metrics":[` + strings.Repeat(`{},`, 340<<10) + `{}]}]`,
	} {
		text := []byte(`{"version":"` + Version + `","points":` + list + `}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(text)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, results.ErrTooLarge) || took > 1<<20 {
			t.Errorf("%s: %d bytes took %d: %v", name, len(text), took, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	point := `{"experiment":"a","finishedAt":"2026-03-02T03:00:00Z"}`
	for text, says := range map[string]string{
		`x`:               "not JSON",
		`{"version":"2"}`: `version "2"`,
		`{"version":"` + Version + `","points":3}`:                                                                      "was changed",
		`{"version":"` + Version + `","points":[{}]}`:                                                                   "empty",
		`{"version":"` + Version + `","points":[` + point + `,` + point + `]}`:                                          "duplicate",
		`{"version":"` + Version + `","points":[` + point + `,{"experiment":"b","finishedAt":"2025-03-02T03:00:00Z"}]}`: "older",
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestContinue: a series is continued only if it is intact and of the same benchmark, which may have another name by now.
func TestContinue(t *testing.T) {
	text, err := weekly(100, 101).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text, uid string
		points          int
	}{
		{"ours", string(text), "u", 2},
		{"of an earlier benchmark of that name", string(text), "v", 0},
		{"edited", strings.Replace(string(text), "e001", "e000", 1), "u", 0},
		{"none", "", "u", 0},
	} {
		benchmark := results.RunIdentity{Namespace: "lab", Name: "renamed", UID: test.uid}
		series, continued := Continue(test.text, benchmark)
		if continued != (test.points > 0) || len(series.Points) != test.points || series.Benchmark != benchmark {
			t.Errorf("%s: %v, %+v", test.name, continued, series)
		}
	}
}

func FuzzDecode(f *testing.F) {
	text, err := weekly(1, 2, 3).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":"` + Version + `"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		series, err := Decode(text)
		if err != nil {
			return
		}
		again, err := series.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		third, err := back.Encode()
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%v\n%s\n%s", err, again, third)
		}
	})
}
