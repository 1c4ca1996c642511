package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/storagebench/storagebench/internal/results"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGolden(t *testing.T) {
	for name, e := range goldenCases() {
		t.Run(name, func(t *testing.T) {
			got := Render(e)
			golden(t, name+".md", []byte(got.Markdown))
			golden(t, name+".xml", got.JUnit)
			if len(got.Omitted) > 0 {
				t.Errorf("omitted %q, want nothing", got.Omitted)
			}
			if !cmp.Equal(got, Render(e)) {
				t.Error("the second time it is different")
			}
		})
	}
}

// sectionOf returns a section of the Markdown. Empty if there is none.
func sectionOf(e results.Experiment, title string) string {
	_, text, _ := strings.Cut(Render(e).Markdown, "\n## "+title+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s; if this is as it should be, run 'go test ./internal/report -update' (-want +got):\n%s", path, diff)
	}
}

// decode reads XML strictly to its end.
func decode(t *testing.T, text []byte) testSuite {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(text))
	var suites testSuites
	if err := decoder.Decode(&suites); err != nil {
		t.Fatalf("%v in:\n%.2000s", err, text)
	}
	if _, err := decoder.Token(); err != nil && !errors.Is(err, io.EOF) {
		for err == nil {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("behind the end: %v", err)
		}
	}
	if len(suites.Suites) != 1 {
		t.Fatalf("%d suites, want 1", len(suites.Suites))
	}
	return suites.Suites[0]
}

func TestJUnitIsGreenOnlyWhenPassed(t *testing.T) {
	cases := []struct {
		name             string
		change           func(*results.Experiment)
		failures, errors int
		tests            string
	}{
		{"passed", func(*results.Experiment) {}, 0, 0, "g runs"},
		{"failed", func(e *results.Experiment) { e.Verdict, e.Gates[0].Verdict = "Failed", "Failed" }, 1, 0, "g runs"},
		{"inconclusive", func(e *results.Experiment) { e.Verdict, e.Gates[0].Verdict = "Inconclusive", "Inconclusive" }, 0, 1, "g runs"},
		{"invalid", func(e *results.Experiment) { e.Verdict, e.Gates[0].Verdict = "Invalid", "Invalid" }, 0, 1, "g runs"},
		{"gate without verdict", func(e *results.Experiment) { e.Gates[0].Verdict = "" }, 0, 1, "g runs"},
		{"verdict worse than gates", func(e *results.Experiment) { e.Verdict = "Invalid" }, 0, 1, "g runs verdict"},
		{"no gates, passed", func(e *results.Experiment) { e.Gates = nil }, 0, 0, "runs verdict"},
		{"no gates, no verdict", func(e *results.Experiment) { e.Gates, e.Verdict = nil, "" }, 0, 1, "runs verdict"},
		{"a slot without valid run", func(e *results.Experiment) { e.Runs[0].Valid = false }, 0, 1, "g runs"},
		{"a slot without run", func(e *results.Experiment) { e.Runs = e.Runs[1:] }, 0, 1, "g runs"},
		{"nothing", func(e *results.Experiment) { *e = results.Experiment{} }, 0, 2, "runs verdict"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := experiment(2, "a", "b")
			e.Verdict, e.Gates = "Passed", []results.GateResult{gate("g", "Passed", "", "")}
			c.change(&e)
			suite := decode(t, Render(e).JUnit)
			var names []string
			for _, test := range suite.Cases {
				names = append(names, test.Name)
			}
			if suite.Failures != c.failures || suite.Errors != c.errors || suite.Tests != len(names) || strings.Join(names, " ") != c.tests {
				t.Errorf("%d failures, %d errors, tests %q of %d, want %d, %d, %q", suite.Failures, suite.Errors, names, suite.Tests, c.failures,
					c.errors, c.tests)
			}
		})
	}
}

// huge has far more of everything than fits.
func huge() results.Experiment {
	e := experiment(50, "a", "b", "c")
	long := strings.Repeat("<&|`\\ü\x00", 2000)
	for range 300 {
		e.Gates = append(e.Gates, gate(long, "Passed", long, long))
	}
	e.Gates = append(e.Gates, gate("last", "Failed", "Last", "the only one that failed"))
	for i := range 500 {
		run := spoiled(e.Runs[0], 9, long, long)
		run.Phases[0].Name = long
		run.Phases[0].ConfigMap = long
		e.Runs = append(e.Runs, run)
		e.Environment[long[:i%100]+string(rune('a'+i))] = []string{long, long}
		e.Omitted = append(e.Omitted, long)
	}
	e.Unlike = slices.Sorted(maps.Keys(e.Environment))
	for i := range 200 {
		e.Variants[0].Phases = append(e.Variants[0].Phases, results.PhaseResult{Name: long + string(rune('a'+i)),
			Metrics: e.Variants[0].Phases[0].Metrics})
	}
	e.Message, e.Reason, e.Verdict = long, long, "Failed"
	e.Benchmark.Name, e.NodeName, e.RunnerImage = long, long, long
	return e
}

// TestSectionsFitTogether: the limits of the sections add up to at most that of the report.
func TestSectionsFitTogether(t *testing.T) {
	sum := headBytes
	for _, s := range sections(experiment(2, "a", "b")) {
		sum += s.left + s.text.Len()
	}
	if sum > MaxMarkdownBytes {
		t.Errorf("%d bytes, at most %d are allowed", sum, MaxMarkdownBytes)
	}
}

func TestReportsAreBounded(t *testing.T) {
	got := Render(huge())
	if len(got.Markdown) > MaxMarkdownBytes || len(got.JUnit) > MaxJUnitBytes {
		t.Errorf("%d bytes of Markdown, %d of JUnit", len(got.Markdown), len(got.JUnit))
	}
	if len(got.Omitted) < 6 {
		t.Errorf("omitted %q, want words about every section", got.Omitted)
	}
	suite := decode(t, got.JUnit)
	if suite.Failures != 1 {
		t.Errorf("%d failures, want the one that there is, even though it is the last", suite.Failures)
	}
}

func TestTablesSurviveHostileText(t *testing.T) {
	e := goldenCases()["passed"]
	e.Gates[0].Message = "a | b\n| c | ` [x](http://evil) <script> \\|"
	e.Gates[0].Definition = `a \| <script>`
	for line := range strings.Lines(Render(e).Markdown) {
		if strings.HasPrefix(line, "| keeps-80-percent") {
			if bars(line) != 5 || strings.Contains(line, "[x](") && !strings.Contains(line, `\[x\]`) || strings.Contains(line, " <script") {
				t.Errorf("%d bars, want 5, in %s", bars(line), line)
			}
		}
	}
}

// TestHostileWordsStayInTheirCells: no row has more cells than its table has columns, and nothing in it is an element.
func TestHostileWordsStayInTheirCells(t *testing.T) {
	columns, rows := 0, 0
	for line := range strings.Lines(Render(hostileExperiment()).Markdown) {
		if strings.Contains(strings.ReplaceAll(line, `\<`, ""), "<") {
			t.Errorf("there is an element in %s", line)
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = 0
		case columns == 0:
			columns = bars(line)
		default:
			if rows++; bars(line) != columns {
				t.Errorf("%d bars, want %d, in %s", bars(line), columns, line)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows: the test looks at nothing", rows)
	}
}

// bars counts the bars of a line that have no backslash before them.
func bars(line string) int {
	return strings.Count(regexp.MustCompile(`\\.`).ReplaceAllString(line, ""), "|")
}

func TestFigures(t *testing.T) {
	cases := []struct {
		name, unit  string
		median, min int64
		want        string
	}{
		{"readBytesPerSecond", results.UnitBytesPerSecond, 1_288_490_189, 1_181_116_006, "1.20 GiB/s (1.10..1.20, n=6)"},
		{"readBytes", results.UnitBytes, 900, 1, "900 B (1..900, n=6)"},
		{"readOperationsPerSecond", results.UnitPerSecond, 123_456, 1000, "123 k op/s (1.00..123, n=6)"},
		{"transactionsPerSecond", results.UnitPerSecond, 812, 7, "812 tx/s (7..812, n=6)"},
		{"readLatencyP99Nanoseconds", results.UnitNanoseconds, 812_345, 99_960, "812 µs (100..812, n=6)"},
		{"coveragePartsPerMillion", results.UnitPartsPerMillion, 999_999, 0, "100% (0.00..100, n=6)"},
		{"compressionRatioMilli", results.UnitMilli, 1500, 1000, "1.50 (1.00..1.50, n=6)"},
		{"coveragePartsPerMillion", results.UnitPartsPerMillion, 240, 9, "0.024% (0.00090..0.024, n=6)"},
		{"compressionRatioMilli", results.UnitMilli, 100, 99, "0.10 (0.099..0.10, n=6)"},
		{"rounds", results.UnitCount, 25, 5, "25 (5..25, n=6)"},
		{"x", "", 5, -5, "5 (-5..5, n=6)"},
		{"x", "furlongs", 0, -1, "0 (-1..0, n=6)"},
		{"x", results.UnitNanoseconds, -5, -5, "-5 ns (-5..-5, n=6)"},
		{"x", results.UnitBytesPerSecond, 1 << 30, 1 << 30, "1.00 GiB/s (1.00..1.00, n=6)"},
		{"transactionsPerSecond", results.UnitPerSecond, 10_000, 9999, "10.0 k tx/s (10.0..10.0, n=6)"},
		{"rounds", results.UnitCount, 9999, 9999, "9999 (9999..9999, n=6)"},
	}
	for _, c := range cases {
		got := Figures(results.MetricResult{Name: c.name, Unit: c.unit, Median: c.median, Min: c.min, Max: c.median, Runs: 6})
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := Bytes(5<<30) + Amount("readLatencyP99Nanoseconds", results.UnitNanoseconds, 812_345); got != "5.00 GiB812 µs" {
		t.Errorf("amounts are %q", got)
	}
	if got := ratio(90, 100) + ratio(1, 0) + ratio(3, 10_000_000); got != "×0.90-×3e-07" {
		t.Errorf("ratios are %q", got)
	}
}

func FuzzRender(f *testing.F) {
	for _, seed := range []string{"", "plain", "a|b`c", "\x00\x1b[31m\uFFFE\uFFFF", "]]><x/>&amp;", "\xff\xfe\xed\xa0\x80",
		strings.Repeat("| ", 3000)} {
		f.Add(seed, "Inconclusive", int64(-1), int32(3))
	}
	f.Fuzz(func(t *testing.T, text, verdict string, number int64, repetitions int32) {
		e := experiment(2, "a"+text, "b")
		e.Benchmark.Namespace, e.Verdict, e.Reason, e.Message, e.NodeName = text, verdict, text, text, text
		e.Gates = []results.GateResult{{Name: text, Verdict: verdict, Message: text, Definition: text}}
		e.Runs = append(e.Runs, results.RunResult{Name: text, Variant: text, Reason: text, Message: text, Repetition: repetitions,
			Phases: []results.RunPhase{{Name: text, ConfigMap: text, Outcome: results.OutcomeInvalid, Message: text}}})
		e.Environment[text], e.Unlike = []string{text, "other"}, []string{text}
		e.Repetitions = repetitions % 100
		e.Variants[0].Phases[0].Metrics[0].Median, e.Variants[0].Phases[0].Metrics[0].Min = number, -number
		got := Render(e)
		suite := decode(t, got.JUnit)
		if verdict != "Passed" && suite.Failures+suite.Errors == 0 {
			t.Fatalf("verdict %q gave a green suite", verdict)
		}
		if len(got.Markdown) > MaxMarkdownBytes || len(got.JUnit) > MaxJUnitBytes {
			t.Fatalf("%d bytes of Markdown, %d of JUnit", len(got.Markdown), len(got.JUnit))
		}
	})
}

// TestResetIsSaid: the report says that runs which reused the pool of an earlier run are not independent.
func TestResetIsSaid(t *testing.T) {
	runs := []results.RunResult{{Reset: "None"}, {Reset: "None", KeptFrom: "a"}, {Reset: "None", KeptFrom: "b"}}
	if text := sectionOf(results.Experiment{Runs: runs}, "How it was run"); !strings.Contains(text, "None: 2 of 3 runs reused") {
		t.Error(text)
	}
	if text := sectionOf(results.Experiment{Runs: []results.RunResult{{}}}, "How it was run"); strings.Contains(text, "Reset") {
		t.Error(text)
	}
}

// TestVolumesAreShown: the report shows the volumes of a valid run of each variant, with their properties in order.
func TestVolumesAreShown(t *testing.T) {
	volume := func(recordsize string) []results.RunVolume {
		return []results.RunVolume{{Name: "data", Pool: "sb-1", ZFSVersion: "zfs-2.3.9", Properties: map[string]string{"recordsize": recordsize,
			"atime": "off"}}}
	}
	text := sectionOf(results.Experiment{Runs: []results.RunResult{
		{Variant: "b", Volumes: volume("1")}, {Variant: "b", Valid: true, Volumes: volume("8192")}, {Variant: "b", Valid: true}, {Variant: "a"},
		{Variant: "a", Volumes: volume("4096")},
	}}, "What was made")
	if !strings.Contains(text, "| a | data | `atime=off`, `recordsize=4096` | zfs-2.3.9 |\n| b | data | `atime=off`, `recordsize=8192` |") ||
		strings.Count(text, "| data |") != 2 {
		t.Error(text)
	}
	if text := sectionOf(results.Experiment{Runs: []results.RunResult{{Variant: "a"}}}, "What was made"); text != "" {
		t.Errorf("without volumes: %q", text)
	}
}

// TestCheckpointsAreCompared: the report says that some runs had more checkpoints than others.
func TestCheckpointsAreCompared(t *testing.T) {
	var e results.Experiment
	for _, count := range []int64{2, 6} {
		e.Runs = append(e.Runs, results.RunResult{Valid: true, Phases: []results.RunPhase{{Name: "pg", Outcome: results.OutcomeValid,
			Metrics: map[string]int64{results.MetricCheckpoints: count}}}})
	}
	if got := sectionOf(e, "The runs were not alike"); !strings.Contains(got, "phase pg had from 2 to 6 checkpoints") {
		t.Errorf("%q", got)
	}
	if got := sectionOf(results.Experiment{}, "The runs were not alike"); got != "" {
		t.Errorf("%q", got)
	}
}

// TestAlike: what differs in each run, such as names that were made up for it, does not make runs unlike.
func TestAlike(t *testing.T) {
	e := results.Experiment{Environment: map[string][]string{
		"mount.root": {"/pvc-1", "/pvc-2"}, "mount.source": {"sb-1/data", "sb-2/data"}, "zfs.dataset": {"sb-1/data", "sb-2/data"},
		"zfs.pool": {"sb-1", "sb-2"}, "log.zfs.pool": {"sb-3", "sb-4"}, "workload.version": {"fill 2", "oltp 1"},
	}, Unlike: []string{}}
	if got := sectionOf(e, "The runs were not alike"); got != "" {
		t.Errorf("%q", got)
	}
	e.Unlike = nil // as in documents of earlier releases
	if got := sectionOf(e, "The runs were not alike"); !strings.Contains(got, "| workload.version |") || strings.Contains(got, "sb-") {
		t.Errorf("%q", got)
	}
	e.Environment["kernel"], e.Unlike = []string{"6.1", "6.12"}, []string{"kernel"}
	if got := sectionOf(e, "The runs were not alike"); !strings.Contains(got, "| kernel | `6.1`, `6.12` |") || strings.Contains(got, "sb-") {
		t.Errorf("%q", got)
	}
}

// TestPhasesOfSomeVariants: a variant that does not have a phase has no row in its table, and the next one is the base.
func TestPhasesOfSomeVariants(t *testing.T) {
	e := experiment(6, "plain", "aged", "old")
	for i := range e.Runs {
		if run := &e.Runs[i]; run.Variant == "plain" {
			run.Phases = run.Phases[:1]
		}
	}
	e.Variants = results.Summarise(e.Runs)
	section := sectionOf(e, "Numbers")
	fill, scan, _ := strings.Cut(section, "### aged-scan")
	if !strings.Contains(fill, "Against plain") || !strings.Contains(fill, "| plain |") {
		t.Errorf("the phase of all variants lacks one:\n%s", fill)
	}
	if strings.Contains(scan, "plain") || !strings.Contains(scan, "Against aged") || strings.Contains(scan, notMeasured) {
		t.Errorf("the phase of two variants:\n%s", scan)
	}
	for i := range e.Runs {
		e.Runs[i].Valid = e.Runs[i].Variant != "old"
	}
	e.Variants = results.Summarise(e.Runs)
	if section = sectionOf(e, "Numbers"); strings.Count(section, notMeasured) < 2 {
		t.Errorf("a variant without valid runs is not shown:\n%s", section)
	}
}

// TestNumbersOfOperations: a phase without primary metrics, such as a scrub, shows those that it has.
func TestNumbersOfOperations(t *testing.T) {
	e := experiment(2, "plain")
	for i := range e.Runs {
		e.Runs[i].Phases = append(e.Runs[i].Phases, results.RunPhase{Name: "scrub", Kind: results.KindOperate, Outcome: results.OutcomeValid,
			Metrics: map[string]int64{"durationNanoseconds": 12_000_000_000, "scannedBytes": 68 << 20}})
	}
	e.Variants = results.Summarise(e.Runs)
	_, scrub, _ := strings.Cut(sectionOf(e, "Numbers"), "### scrub")
	if !strings.Contains(scrub, "| durationNanoseconds | Neither | plain | 12.0 s") || !strings.Contains(scrub, "| scannedBytes |") {
		t.Errorf("%q", scrub)
	}
	if others := otherMetrics(e); len(others.Rows) != 2 { // filledBytes and readBytes
		t.Errorf("shown twice: %v", others.Rows)
	}
	scrubbed := &e.Variants[0].Phases[2]
	scrubbed.Metrics = nil
	if got := sectionOf(e, "Numbers"); !strings.Contains(got, "### scrub\n\nThe metrics of this phase did not fit") {
		t.Errorf("%q", got)
	}
}

// TestFiguresOfSomeRuns: runs that stalled have too few operations for a percentile. The percentiles of the other runs do not stand for the
// variant, and nothing is compared with them.
func TestFiguresOfSomeRuns(t *testing.T) {
	e := experiment(6, "old", "new")
	const metric = "readLatencyP99Nanoseconds"
	removed := 0
	for i := range e.Runs {
		if run := &e.Runs[i]; run.Variant == "new" && run.Repetition <= 4 {
			for _, phase := range run.Phases {
				delete(phase.Metrics, metric)
				removed++
			}
		}
	}
	e.Variants = results.Summarise(e.Runs)
	if _, has := find(e.Variants[1], "aged-scan", metric); !has || removed == 0 {
		t.Fatalf("the fixture shows nothing: %d removed", removed)
	}
	for _, row := range numbersTable(e, samplesOf(e), "aged-scan", wide).Rows {
		text := fmt.Sprint(row)
		if row[0].Text == metric && row[2].Text == "new" && (!strings.Contains(text, notInAll) || strings.Contains(text, "×")) {
			t.Errorf("html: %s", text)
		}
	}
	_, scan, _ := strings.Cut(sectionOf(e, "Numbers"), "### aged-scan")
	for line := range strings.Lines(scan) {
		if strings.Contains(line, metric) && strings.Contains(line, "| new |") &&
			(!strings.Contains(line, notInAll) || !strings.HasSuffix(strings.TrimSpace(line), "| - |")) {
			t.Errorf("markdown: %s", line)
		}
	}
}

// TestRowsOfWorkloads: each of several workloads has rows for its figures and for the disks of its pool.
func TestRowsOfWorkloads(t *testing.T) {
	e := experiment(6, "a", "b")
	for i := range e.Runs {
		e.Runs[i].Phases = append(e.Runs[i].Phases, results.RunPhase{Name: "busy", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
			Metrics: map[string]int64{"writeOperationsPerSecond": 5000, "log.writeOperationsPerSecond": 4000,
				"log.writeLatencyP99Nanoseconds": 3_000_000, "log.diskWriteOperationsPerSecond": 70, "data.diskWriteOperationsPerSecond": 90}})
	}
	e.Variants = results.Summarise(e.Runs)
	text := Render(e).Markdown
	for _, want := range []string{"| log.writeOperationsPerSecond | Higher | a |", "| log.writeLatencyP99Nanoseconds | Lower | b |",
		"| busy.log | a |", "| busy.data | b |"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no row %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "| busy | a |") {
		t.Error("there is a row of disks for the whole phase")
	}
}

// TestDisksOfVolumes: without a pool the counters are those of the disks below the volume, and no column is empty in all rows.
func TestDisksOfVolumes(t *testing.T) {
	e := experiment(6, "a")
	for i := range e.Runs {
		e.Runs[i].Phases[1].Metrics["diskReadOperationsPerSecond"], e.Runs[i].Phases[1].Metrics["diskReadsPerReadMilli"] = 2000, 1250
	}
	e.Variants = results.Summarise(e.Runs)
	page, _, err := HTML(Page{Experiment: e})
	if err != nil {
		t.Fatal(err)
	}
	text := Render(e).Markdown
	for _, written := range []string{text, string(page)} {
		if !strings.Contains(written, "Counters of the disks below the volume") || strings.Contains(written, "Counters of the pool") {
			t.Errorf("the counters are said to be those of a pool:\n%s", written)
		}
	}
	want := "| Phase | Variant | Disk reads | Disk reads per read |\n|---|---|---|---|\n| aged-scan | a | 2000 op/s | 1.25 |\n"
	if !strings.Contains(text, want) {
		t.Errorf("the table is not %q in\n%s", want, text)
	}
}

// TestDisksOfSomeRuns: a median of fewer runs than the variant has says so, and so does the head of a column that counts layouts unlike.
func TestDisksOfSomeRuns(t *testing.T) {
	e := experiment(3, "a")
	for i := range e.Runs {
		metrics := e.Runs[i].Phases[1].Metrics
		if metrics["poolAllocatedBytes"], metrics["diskReadOperationsPerSecond"] = 64<<20, 2000; i > 0 {
			metrics["diskReadRequestBytes"] = 8192
		}
	}
	e.Variants = results.Summarise(e.Runs)
	const mirrors = "Allocated: a mirror counts once, a raidz with its parity."
	got := sectionOf(e, "What the disks did")
	if !strings.Contains(got, "| Allocated (zpool) | Disk reads | Mean read |") ||
		!strings.Contains(got, "| aged-scan | a | 64.0 MiB | 2000 op/s | 8.00 KiB (n=2) |") ||
		!strings.Contains(got, "too few samples in a short phase") || !strings.Contains(got, mirrors) {
		t.Error(got)
	}
	if page := string(render(t, Page{Experiment: e})); !strings.Contains(page, mirrors) {
		t.Error("the page does not say how layouts count")
	}
	if got := sectionOf(goldenCases()["passed"], "What the disks did"); got == "" || strings.Contains(got, "mirror") {
		t.Error("without the column: " + got)
	}
}

// TestNumbersOfGates: a metric that a gate judges is among the numbers of its phase, once, and not among the other metrics.
func TestNumbersOfGates(t *testing.T) {
	e := experiment(2, "a", "b")
	for i := range e.Runs {
		e.Runs[i].Phases[1].Metrics["log.syncLatencyMeanNanoseconds"] = 7_000_000
	}
	e.Variants = results.Summarise(e.Runs)
	judged := results.GateMetric{Variant: "b", Phase: "aged-scan", Metric: "log.syncLatencyMeanNanoseconds"}
	e.Gates = []results.GateResult{{Name: "g", Metrics: []results.GateMetric{judged, {Phase: "aged-scan", Metric: "readBytesPerSecond"},
		{Phase: "aged-scan", Metric: "readBytes"}, {Phase: "fill", Metric: "neverMeasured"}}}, {Name: "h", Metrics: []results.GateMetric{judged}}}
	want := []string{"readBytesPerSecond", "readLatencyP99Nanoseconds", "readOperationsPerSecond", judged.Metric, "readBytes"}
	if diff := cmp.Diff(want, mainMetrics(e, "aged-scan")); diff != "" {
		t.Error(diff)
	}
	if text := sectionOf(e, "Numbers"); !strings.Contains(text, "| "+judged.Metric+" | Lower | a | 7.00 ms (7.00..7.00, n=2) |") ||
		strings.Contains(text, "neverMeasured") {
		t.Error(text)
	}
	for _, row := range otherMetrics(e).Rows {
		if row[0].Text == "readBytes" && row[1].Text == "aged-scan" {
			t.Error("a judged metric is among the others")
		}
	}
}

// TestJUnitShowsWhatWasMeasured: the test case of a passed gate has its definition and the measured values.
func TestJUnitShowsWhatWasMeasured(t *testing.T) {
	e := experiment(2, "a")
	e.Gates = []results.GateResult{{Name: "p99", Definition: "scan.p99 is at most 2M", Verdict: "Passed", Message: "scan.p99 = 812000 (2 runs)"},
		{Name: "none", Definition: "d", Verdict: "Passed"}, {Name: "failed", Definition: "d", Verdict: "Failed", Message: "in the failure"}}
	var got []string
	for _, one := range decode(t, Render(e).JUnit).Cases[:3] {
		got = append(got, one.Output)
	}
	if diff := cmp.Diff([]string{"scan.p99 is at most 2M: scan.p99 = 812000 (2 runs)", "d", "d"}, got); diff != "" {
		t.Error(diff)
	}
}
