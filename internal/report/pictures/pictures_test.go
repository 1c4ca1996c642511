package pictures

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// experiment has runs of two phases, with a gate of each kind.
func experiment(runs int, variants ...string) results.Experiment {
	var e results.Experiment
	for i := range runs {
		for v, variant := range variants {
			phase := func(name string, rate int64) results.RunPhase {
				return results.RunPhase{Name: name, Kind: results.KindMeasure, Outcome: results.OutcomeValid, ConfigMap: fmt.Sprint(name, i, variant),
					Metrics: map[string]int64{"readBytesPerSecond": rate + int64(i%7)<<20, "readLatencyP99Nanoseconds": 2_000_000 + int64(i%5)*1000,
						"layoutScorePartsPerMillion": 900_000}}
			}
			e.Runs = append(e.Runs, results.RunResult{Name: fmt.Sprintf("run-%d-%d", i, v), Variant: variant, Repetition: int32(i + 1), Valid: true,
				Phases: []results.RunPhase{phase("fresh", 600<<20), phase("aged", 100<<20)}})
		}
	}
	e.Variants = results.Summarise(e.Runs)
	low, high := int64(-110_000), int64(-98_000)
	least, most := int64(1_000_000), int64(10_000_000)
	fresh, aged := results.GateMetric{Phase: "fresh", Metric: "readBytesPerSecond"}, results.GateMetric{Phase: "aged", Metric: "readBytesPerSecond"}
	e.Gates = []results.GateResult{
		{Name: "keeps", Definition: "phase('aged').readBytesPerSecond >= 0.8 * phase('fresh').readBytesPerSecond",
			Metrics: []results.GateMetric{aged, fresh}},
		{Name: "tail", Metrics: []results.GateMetric{{Phase: "aged", Metric: "readLatencyP99Nanoseconds"}}, AtLeast: &least, AtMost: &most},
		{Name: "no-worse", Metrics: []results.GateMetric{fresh}, Comparisons: []results.Comparison{
			{Variant: "b", Verdict: "Failed", ChangePartsPerMillion: -104_000, LowPartsPerMillion: &low, HighPartsPerMillion: &high,
				TolerancePartsPerMillion: 50_000}}},
		{Name: "share", Definition: "a text with fresh.readLatencyP99Nanoseconds and at most 1M", Metrics: []results.GateMetric{aged, fresh}},
		{Name: "one", Metrics: []results.GateMetric{{Variant: "a", Phase: "aged", Metric: "readBytesPerSecond"}, fresh,
			{Phase: "never", Metric: "readBytesPerSecond"}}},
	}
	return e
}

// document has everything that the rooms draw.
func document(t *testing.T, phase string, rate int64) results.PhaseDocument {
	t.Helper()
	raw := map[string]any{"samplesSeen": 90_000}
	var rounds, regions, samples, bins, points []map[string]int64
	for i := range int64(12) {
		rounds = append(rounds, map[string]int64{"bytes": rate * (20 - i), "durationNanoseconds": 1e9})
		regions = append(regions, map[string]int64{"index": i, "offset": i << 20, "bytes": rate, "nanoseconds": 1e9 + i*1e7})
	}
	for i := range int64(4000) {
		samples = append(samples, map[string]int64{"Milliseconds": i, "Nanoseconds": 100_000 + i*i%977*1000})
	}
	for i := range int64(300) {
		bins = append(bins, map[string]int64{"Nanoseconds": 50_000 + i*1000, "Count": 30_000 / (i + 1)})
	}
	for i := range int64(480) {
		points = append(points, map[string]int64{"fromMilliseconds": i * 1000, "toMilliseconds": (i + 1) * 1000, "readBytes": rate + rate/(i+1),
			"latencyMaxNanoseconds": 1_000_000 + i%97*1000})
	}
	raw["series"] = map[string]any{"points": points, "steady": map[string]int64{"fromMilliseconds": 100_000, "toMilliseconds": 480_000}}
	raw["rounds"], raw["regions"], raw["samples"], raw["latencies"] = rounds, regions, samples, map[string]any{"read": bins}
	text, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return results.PhaseDocument{Phase: phase, Kind: results.KindMeasure, Outcome: results.OutcomeValid, Raw: text, Measured: []results.Interval{
		{From: start.Add(3 * time.Second), To: start.Add(8 * time.Second)}, {From: start.Add(9 * time.Second), To: start.Add(10 * time.Second)}}}
}

func observed() *poolseries.Document {
	disk := poolseries.Vdev{Name: "d", TopLevel: true, Disk: true}
	pool := &poolseries.Document{StartedAt: start, Vdevs: []poolseries.Vdev{disk}, RequestSizes: []poolseries.Histogram{{
		Bounds: []int64{512, 4096, 131072}, Columns: map[string][]int64{"sync_read_ind": {1, 30, 500}, "async_write_agg": {0, 7, 9}}}}}
	for i := range int64(1000) {
		pool.Series.OffsetMilliseconds = append(pool.Series.OffsetMilliseconds, i*2000)
		pool.Vdevs[0].ReadBytes = append(pool.Vdevs[0].ReadBytes, i*i<<10)
		pool.Vdevs[0].WriteBytes = append(pool.Vdevs[0].WriteBytes, i<<20)
	}
	return pool
}

func album(t *testing.T, e results.Experiment, names ...string) []report.Picture {
	t.Helper()
	a := New(e)
	for _, wanted := range WantedOf(e) {
		a.Add(Phase{Run: wanted.Run, Variant: wanted.Variant, Document: document(t, wanted.Phase, 50<<20), Pool: observed()})
	}
	drawn := a.Pictures()
	known := map[string]string{}
	for _, picture := range drawn {
		if known[picture.Name] != "" || strings.ContainsAny(picture.Name, "/. ") || picture.Title == "" {
			t.Errorf("picture %q, %q", picture.Name, picture.Title)
		}
		known[picture.Name] = picture.SVG
		decoder := xml.NewDecoder(strings.NewReader(picture.SVG))
		var err error
		for err == nil {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) || strings.Contains(picture.SVG, "NaN") {
			t.Errorf("%s: %v", picture.Name, err)
		}
	}
	for _, name := range names {
		if known[name] == "" {
			t.Errorf("there is no picture %s", name)
		}
	}
	return drawn
}

func find(t *testing.T, drawn []report.Picture, name string) report.Picture {
	t.Helper()
	for _, picture := range drawn {
		if picture.Name == name {
			return picture
		}
	}
	t.Fatalf("there is no picture %s", name)
	return report.Picture{}
}

func TestEveryRoomDraws(t *testing.T) {
	drawn := album(t, experiment(6, "a", "b"), "gate-keeps-runs", "gate-share-runs", "gate-tail-runs", "gate-no-worse", "gate-no-worse-runs",
		"metric-readbytespersecond", "metric-layoutscorepartspermillion", "percentiles-read-latency-fresh-aged", "rounds-fresh",
		"series-aged", "series-fresh", "slowest-aged", "slowest-fresh",
		"regions-fresh-aged", "samples-fresh-a-single-latencies", "pool-fresh-a-the-pool-over-time", "requests-read-fresh-aged",
		"requests-write-fresh-aged")
	for name, want := range map[string][]string{
		"gate-tail-runs":                      {"at least 1 ms", "at most 10 ms", ">a<"},
		"gate-no-worse":                       {"tolerated", "interval", ">b: Failed<", "-10%"},
		"gate-keeps-runs":                     {">aged, a<", ">fresh, b<", "MiB/s"},
		"gate-share-runs":                     {">aged, a<", ">fresh, b<", "MiB/s"},
		"percentiles-read-latency-fresh-aged": {"99%", "fresh, a", "aged, b"},
		"pool-fresh-a-the-pool-over-time":     {"measured", "read", "written"},
		"requests-read-fresh-aged":            {"4 KiB", "128 KiB", "fresh, a"},
	} {
		for _, words := range want {
			if picture := find(t, drawn, name); !strings.Contains(picture.SVG, words) {
				t.Errorf("%s does not say %q", name, words)
			}
		}
	}
	if svg := find(t, drawn, "gate-share-runs").SVG; strings.Contains(svg, "at least") || strings.Contains(svg, "at most") {
		t.Error("the limits of a ratio are drawn among the values")
	}
	if one := find(t, drawn, "gate-one-runs").SVG; !strings.Contains(one, ">aged, a<") || strings.Contains(one, ">aged, b<") ||
		!strings.Contains(one, ">fresh, b<") {
		t.Error("a gate on one variant shows others: " + one)
	}
	if caption := find(t, drawn, "rounds-fresh").Caption; !strings.Contains(caption, "only they count") {
		t.Error(caption)
	}
	for _, name := range []string{"series-fresh", "slowest-fresh"} {
		if caption := find(t, drawn, name).Caption; !strings.Contains(caption, "steady") {
			t.Error(caption)
		}
	}
	for _, section := range []string{"gates", "numbers", "latency", "time", "disks"} {
		if !strings.Contains(fmt.Sprint(drawn), "{"+section+" ") {
			t.Errorf("section %s has no picture", section)
		}
	}
}

// TestEachWorkloadIsDrawn: several workloads of a phase have pictures of their own.
func TestEachWorkloadIsDrawn(t *testing.T) {
	e := experiment(1, "a")
	one := document(t, "busy", 50<<20)
	one.Raw = []byte(fmt.Sprintf(`{"workloads": {"data": %s, "log": {"series": null}}}`, one.Raw))
	a := New(e)
	a.Add(Phase{Run: "r", Variant: "a", Document: one, Pool: observed()})
	drawn := a.Pictures()
	if got := find(t, drawn, "series-busy-data"); !strings.Contains(got.Title, "busy.data: throughput over time") {
		t.Error(got.Title)
	}
	find(t, drawn, "samples-busy-data-a-single-latencies")
	pools := 0
	for _, picture := range drawn {
		if strings.HasPrefix(picture.Name, "pool-") {
			pools++
		}
		if strings.Contains(picture.Name, "series-busy-log") {
			t.Error("there is a picture of nothing")
		}
	}
	if pools != 1 {
		t.Errorf("the pool is drawn %d times", pools)
	}
}

// TestDisksOfAMirror: each disk writes all of the data, and the mirror as a whole counts it once.
func TestDisksOfAMirror(t *testing.T) {
	counters := []int64{0, 100 << 20, 200 << 20}
	of := &poolseries.Document{Vdevs: []poolseries.Vdev{{Name: "mirror-0", TopLevel: true, WriteBytes: counters},
		{Name: "a", Disk: true, WriteBytes: counters}, {Name: "b", Disk: true, WriteBytes: counters}}}
	of.Series.OffsetMilliseconds = []int64{0, 1000, 2000}
	points := rates(of, func(v poolseries.Vdev) []int64 { return v.WriteBytes })
	if len(points) == 0 {
		t.Fatal("no points")
	}
	for _, point := range points {
		if point.Y != 200<<20 {
			t.Errorf("%v bytes a second at %v s, two disks write 100 MiB each", point.Y, point.X)
		}
	}
}

// TestUncountedDisks: OpenZFS 2.1 counts nothing, and a large pool leaves its series out. Neither is a rate of zero.
func TestUncountedDisks(t *testing.T) {
	for name, vdevs := range map[string][]poolseries.Vdev{"no vdevs": nil, "no series": {{Name: "a", Disk: true}}} {
		of := &poolseries.Document{Vdevs: vdevs}
		of.Series.OffsetMilliseconds = []int64{0, 1000, 2000}
		if points := rates(of, func(v poolseries.Vdev) []int64 { return v.WriteBytes }); points != nil {
			t.Errorf("%s: %v", name, points)
		}
	}
}

// TestSamplesOfWindows: samples that are the largest of a window are not shown as single operations.
func TestSamplesOfWindows(t *testing.T) {
	for window, says := range map[int64]string{0: "Of 10 operations of run r",
		25: "Of 10 operations, each the slowest of a writer in 25 ms of run r"} {
		one := seen{Phase: Phase{Document: results.PhaseDocument{Phase: "log"}, Variant: "v", Run: "r"}}
		one.raw.SamplesSeen, one.raw.SampleWindowMilliseconds = 10, window
		one.raw.Samples = append(one.raw.Samples, struct{ Milliseconds, Nanoseconds int64 }{5, 7000})
		room := newSamples(results.Experiment{})
		room.add(one)
		if got := room.(*samples).drawn; len(got) != 1 || !strings.Contains(got[0].Caption, says) {
			t.Errorf("window %d: %+v", window, got)
		}
	}
}

// TestLatencyOverTime: each latency is drawn in the middle of its time, and no line crosses a time without one.
func TestLatencyOverTime(t *testing.T) {
	var one seen
	if err := json.Unmarshal([]byte(`{"series": {"steady": {"fromMilliseconds": 3000}, "points": [
		{"fromMilliseconds": 0, "toMilliseconds": 1000, "readBytes": 7, "latencyMaxNanoseconds": 50},
		{"fromMilliseconds": 1000, "toMilliseconds": 2000},
		{"fromMilliseconds": 2000, "toMilliseconds": 3000},
		{"fromMilliseconds": 3000, "toMilliseconds": 5000, "readBytes": 9, "latencyMaxNanoseconds": 3000000000},
		{"fromMilliseconds": 5000, "toMilliseconds": 7000, "readBytes": 9, "latencyMaxNanoseconds": 60}]}}`), &one.raw); err != nil {
		t.Fatal(err)
	}
	got := newSlowest(results.Experiment{}).(*timelines).read(one)
	want := []svg.Point{{X: 0.5e9, Y: 50}, {X: 4e9, Y: 3e9}, {X: 6e9, Y: 60}}
	if !slices.Equal(got.points, want) || !slices.Equal(got.breaks, []int{1}) || !slices.Equal(got.dots, want[1:2]) {
		t.Errorf("%+v", got)
	}
}

// TestDatabasesCountOperations: transactions count no bytes, so their number and mean latency are drawn, and not a line of zeros.
func TestDatabasesCountOperations(t *testing.T) {
	e := experiment(1, "a")
	a := New(e)
	a.Add(Phase{Run: "r", Variant: "a", Document: results.PhaseDocument{Phase: "tx", Kind: results.KindMeasure,
		Raw: []byte(`{"series": {"points": [
		{"fromMilliseconds": 0, "toMilliseconds": 2000, "operations": 500, "latencyMeanNanoseconds": 4000000},
		{"fromMilliseconds": 2000, "toMilliseconds": 4000, "operations": 400, "latencyMeanNanoseconds": 5000000}]}}`)}})
	drawn := a.Pictures()
	if got := find(t, drawn, "operations-tx").SVG; !strings.Contains(got, "operations per second") || !strings.Contains(got, ">200<") {
		t.Error(got)
	}
	if got := find(t, drawn, "mean-tx").SVG; !strings.Contains(got, "5 ms") {
		t.Error(got)
	}
	for _, picture := range drawn {
		if picture.Name == "series-tx" || picture.Name == "slowest-tx" {
			t.Errorf("%s is a picture of nothing", picture.Name)
		}
	}
}

// TestOperationsAreShaded: a scrub that ran from the 20th to the 30th second of the series is shown there.
func TestOperationsAreShaded(t *testing.T) {
	e := experiment(1, "a", "b")
	a := New(e)
	for _, variant := range []string{"a", "b"} {
		one := document(t, "fresh", 50<<20)
		one.Measured = []results.Interval{{From: start, To: start.Add(480 * time.Second)}}
		one.Operated = &results.Interval{From: start.Add(20 * time.Second), To: start.Add(30 * time.Second)}
		one.Raw = []byte(strings.Replace(string(one.Raw), `"series":{`, `"series":{"measured":[{"fromMilliseconds":0,"toMilliseconds":480000}],`, 1))
		a.Add(Phase{Run: "run-0-0", Variant: variant, Document: one})
	}
	for _, name := range []string{"series-fresh", "slowest-fresh"} {
		shaded := find(t, a.Pictures(), name).SVG
		if strings.Count(shaded, `class="w"`) != 2 || !strings.Contains(shaded, ">operation, a<") { // the band and its key
			t.Error(shaded)
		}
	}
	if plain := find(t, album(t, e), "series-fresh").SVG; strings.Contains(plain, `class="w"`) {
		t.Error("there is an operation without one")
	}
	band := operatedOf(seen{Phase: Phase{Document: results.PhaseDocument{Measured: []results.Interval{{To: start.Add(100 * time.Second)}},
		Operated: &results.Interval{From: start.Add(20 * time.Second), To: start.Add(30 * time.Second)}}}, raw: rawWith(t, 90_000)})
	if band == nil || band.From != 10e9 || band.To != 20e9 {
		t.Errorf("%+v", band)
	}
}

func rawWith(t *testing.T, end int64) (made raw) {
	t.Helper()
	if err := json.Unmarshal(fmt.Appendf(nil, `{"series":{"measured":[{"toMilliseconds":%d}]}}`, end), &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// TestPercentilesWithoutDocuments: the results have some points of the curve.
func TestPercentilesWithoutDocuments(t *testing.T) {
	e := experiment(6, "a")
	for i := range e.Runs {
		for j := range e.Runs[i].Phases {
			e.Runs[i].Phases[j].Metrics["transactionLatencyP50Nanoseconds"], e.Runs[i].Phases[j].Metrics["transactionLatencyP99Nanoseconds"] = 1e6, 9e6
		}
	}
	e.Variants = results.Summarise(e.Runs)
	drawn := New(e).Pictures()
	if picture := find(t, drawn, "percentiles-transaction-latency-fresh-aged"); strings.Count(picture.SVG, `<path class="d s`) != 2 {
		t.Error(picture.SVG)
	}
	for _, picture := range drawn {
		if strings.HasPrefix(picture.Name, "percentiles-read") {
			t.Error("one point is no curve")
		}
	}
}

// TestCurve: the curve is at each latency where the operations that took at most that long end, as the axis says, and it ends where ten
// operations are left.
func TestCurve(t *testing.T) {
	at := func(slower float64, latency int64) svg.Point {
		return svg.Point{X: -math.Log10(slower), Y: float64(latency)}
	}
	many := map[int64]int64{}
	for latency := range int64(1000) {
		many[latency+1] = 100
	}
	for name, test := range map[string]struct {
		bins map[int64]int64
		want []svg.Point
	}{
		"steps": {map[int64]int64{100: 500, 200: 400, 300: 90, 400: 9, 500: 1},
			[]svg.Point{at(1, 100), at(0.5, 100), at(0.5, 200), at(0.1, 200), at(0.1, 300), at(0.01, 300)}},
		"two latencies": {map[int64]int64{1e6: 50_000, 10e6: 50_000},
			[]svg.Point{at(1, 1e6), at(0.5, 1e6), at(0.5, 10e6), at(0.0001, 10e6)}},
		"one latency": {map[int64]int64{7: 1000}, []svg.Point{at(1, 7), at(0.01, 7)}},
		"too few":     {map[int64]int64{7: 9}, nil},
		"nothing":     {nil, nil},
	} {
		got := curve(test.bins)
		if !slices.EqualFunc(got, test.want, func(a, b svg.Point) bool { return math.Abs(a.X-b.X) < 1e-9 && a.Y == b.Y }) {
			t.Errorf("%s: %v instead of %v", name, got, test.want)
		}
	}
	points := curve(many)
	for _, point := range points { // of 1 to 1000, each as often as the others
		if share := 1 - math.Pow(10, -point.X); math.Abs(share*1000-point.Y) > 1.5 {
			t.Errorf("%g of the operations took at most %g", share, point.Y)
		}
	}
	if len(points) < 20 || len(points) > 200 {
		t.Errorf("%d points", len(points))
	}
}

// TestMetaslabs: free space is drawn where it is, one vdev after another, and by the size of its pieces.
func TestMetaslabs(t *testing.T) {
	const mib = 1 << 20
	at := func(vdev, index, free int64) poolseries.Metaslab {
		return poolseries.Metaslab{Vdev: vdev, Index: index, Offset: index * 16 * mib, FreeBytes: free * mib}
	}
	all := []poolseries.Metaslab{at(0, 0, 4), at(0, 1, 16), at(1, 0, 8), at(1, 1, 0), at(2, 0, 9)}
	got, breaks := places(all)
	if !slices.Equal(breaks, []int{0, 2}) {
		t.Errorf("the vdevs begin at %v", breaks)
	}
	for i, want := range []svg.Point{{X: 8 * mib, Y: 250_000}, {X: 24 * mib, Y: 1e6}, {X: 40 * mib, Y: 500_000}, {X: 56 * mib, Y: 0}} {
		if len(got) != 4 || got[i] != want {
			t.Fatalf("%v", got)
		}
	}
	a := New(experiment(1, "a"))
	for phase, segments := range map[string]map[int]int64{"map-fresh": {24: 2}, "map-aged": {12: 4096, 24: 1, 70: 1}} {
		a.Add(Phase{Run: "r", Variant: "a", Document: results.PhaseDocument{Kind: results.KindOperate, Phase: phase},
			Metaslabs: &poolseries.MetaslabMap{Metaslabs: all, FreeSegments: segments}})
	}
	drawn := a.Pictures()
	for prefix, words := range map[string][]string{"metaslabs-places-map": {"free part of the metaslab", "map-fresh", "map-aged"},
		"metaslabs-pieces-map": {"4 KiB", "16 MiB", "map-aged"}} {
		i := slices.IndexFunc(drawn, func(one report.Picture) bool { return strings.HasPrefix(one.Name, prefix) })
		if i < 0 {
			t.Fatalf("there is no picture %s", prefix)
		}
		for _, word := range words {
			if !strings.Contains(drawn[i].SVG, word) {
				t.Errorf("%s does not say %q", prefix, word)
			}
		}
	}
}

func TestHostileNamesDoNothing(t *testing.T) {
	hostile := "</svg><script>alert(1)</script>\"'\x1b[31m\u202e/../../x"
	e := experiment(6, hostile, "b")
	e.Gates[0].Name, e.Gates[2].Comparisons[0].Variant = hostile, hostile
	drawn := album(t, e)
	if len(drawn) < 10 {
		t.Fatalf("%d pictures", len(drawn))
	}
	for _, picture := range drawn {
		if strings.Contains(picture.SVG, "<script") || strings.ContainsAny(picture.SVG, "\x1b\u202e") {
			t.Errorf("%s: %.300s", picture.Name, picture.SVG)
		}
	}
	a := New(e)
	a.Add(Phase{Run: "r", Variant: "b", Document: results.PhaseDocument{Raw: json.RawMessage(`{"rounds": "none", "regions": 7}`)}})
	if len(a.Pictures()) == 0 {
		t.Error("a raw part of another form takes all pictures away")
	}
}

// TestManyRuns: pictures stay small, and few documents are read.
func TestManyRuns(t *testing.T) {
	e := experiment(100, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	if wanted := WantedOf(e); len(wanted) != maxVariants*maxRuns*2 {
		t.Errorf("%d documents are wanted", len(wanted))
	}
	began := time.Now()
	drawn := album(t, e, "gate-keeps-runs", "metric-readbytespersecond")
	page, _, err := report.HTML(report.Page{Experiment: e, Pictures: drawn})
	if err != nil || len(page) > report.MaxHTMLBytes || len(page) < 200<<10 || strings.Count(string(page), "<figure>") < 15 {
		t.Errorf("%v: %d bytes, %d pictures", err, len(page), strings.Count(string(page), "<figure>"))
	}
	t.Logf("%d runs: %d bytes, %d pictures, %s with the documents", len(e.Runs), len(page), len(drawn), time.Since(began))
}

// BenchmarkPage measures the time and memory of a report of 1000 runs without its documents.
func BenchmarkPage(b *testing.B) {
	e := experiment(250, "a", "b", "c", "d")
	b.ReportAllocs()
	for b.Loop() {
		page, _, err := report.HTML(report.Page{Experiment: e, Pictures: New(e).Pictures()})
		if err != nil || len(page) < 100<<10 {
			b.Fatal(len(page), err)
		}
	}
}

// TestNoDotsInTheLegendWithoutRuns: results without the values of single runs are drawn as ranges, so the legend has no dots.
func TestNoDotsInTheLegendWithoutRuns(t *testing.T) {
	e := experiment(6, "a", "b")
	if one := find(t, New(e).Pictures(), "metric-readbytespersecond").SVG; !strings.Contains(one, ">a run<") || strings.Contains(one, "smallest to") {
		t.Error(one)
	}
	for i := range e.Runs {
		for j := range e.Runs[i].Phases {
			e.Runs[i].Phases[j].Metrics = nil
		}
	}
	if one := find(t, New(e).Pictures(), "metric-readbytespersecond").SVG; strings.Contains(one, ">a run<") ||
		!strings.Contains(one, ">smallest to largest<") {
		t.Error(one)
	}
}

// TestNoPicturesOfZeros: how data lies on the disks is not drawn if there is nothing to see.
func TestNoPicturesOfZeros(t *testing.T) {
	e := experiment(3, "a", "b")
	for i := range e.Runs {
		metrics := e.Runs[i].Phases[0].Metrics
		metrics["gangBlocks"], metrics["freeSpaceFragmentationPartsPerMillion"] = 0, int64(i/5)
	}
	e.Variants = results.Summarise(e.Runs)
	drawn := New(e).Pictures()
	find(t, drawn, "metric-freespacefragmentationpartspermillion") // one run has some
	if slices.ContainsFunc(drawn, func(one report.Picture) bool { return one.Name == "metric-gangblocks" }) {
		t.Error("there is a picture of zeros")
	}
}
