package qualify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// good returns the figures of a fast, steady disk.
func good() map[string]map[string]int64 {
	return map[string]map[string]int64{
		"redo-empty": {appendP99: 1e6, appends: 20_000, "writeLatencyP50Nanoseconds": 300_000},
		"redo-full":  {appendP99: 2e6, appends: 18_000, "writeLatencyMaxNanoseconds": 20e6},
		"read-1":     {reads: 8000, hitRate: 0}, "read-16": {reads: 80_000, "readLatencyP99Nanoseconds": 1e6, hitRate: 0},
		"mixed-16": {reads: 50_000, hitRate: 0}, "aged-mixed-16": {reads: 48_000, hitRate: 0},
		"scan": {rate: 2 << 30, hitRate: 0}, "aged-scan": {rate: 1900 << 20, hitRate: 0},
		"postgres": {databaseShareOfMemory: 2_000_000, tps: 5000, "transactionLatencyP99Nanoseconds": 10e6, "failedTransactions": 0},
	}
}

// measured makes an experiment of three runs with these figures, which differ by 2%.
func measured(figures map[string]map[string]int64) results.Experiment {
	e := results.Experiment{State: results.StateComplete, NodeName: "node-a"}
	variant := results.VariantResult{Name: "default"}
	for name, metrics := range figures {
		phase := results.PhaseResult{Name: name}
		for metric, value := range metrics {
			phase.Metrics = append(phase.Metrics, results.MetricResult{Name: metric, Median: value, Min: value * 99 / 100, Max: value * 101 / 100, Runs: 3})
		}
		variant.Phases = append(variant.Phases, phase)
	}
	e.Variants = []results.VariantResult{variant}
	return e
}

func TestGoodStorageIsFit(t *testing.T) {
	card := CardOf("StorageClass fast", nil, measured(good()))
	if card.Verdict != Good || len(card.Findings) < 12 || !strings.HasPrefix(card.Sentence, "Fit for databases") {
		t.Errorf("%s, %d findings: %s", card.Verdict, len(card.Findings), card.Text())
	}
}

// TestRules changes one figure after another.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		phase, metric string
		value         int64
		level         Level
		about, says   string
	}{
		{"redo-empty", appendP99, 6_000_000, Warning, "Commits on the empty volume", "good is 5 ms"},
		{"redo-empty", appendP99, 10_000_001, Bad, "Commits on the empty volume", "the limit is 10 ms"},
		{"redo-empty", appendP99, 9_950_000, Warning, "Commits on the empty volume", "the worst run is beyond the limit of 10 ms"},
		{"redo-full", appendP99, 23_000_000, Bad, "Commits on the full, aged volume", "redo-full.writeLatencyP99Nanoseconds 23 ms"},
		{"redo-full", "writeLatencyMaxNanoseconds", 2_000_000_000, Bad, "The longest commit", "2 s"},
		{"read-16", "readLatencyP99Nanoseconds", 4_970_000, Warning, "Random reads of 16 workers", "the worst run is beyond what is good, 5 ms"},
		{"redo-full", appends, 9000, Bad, "Commits, full against empty", "55% less"},
		{"aged-mixed-16", reads, 44_000, Warning, "Reads and updates after ageing", "12% less; good is at most 10% less"},
		{"aged-mixed-16", reads, 35_000, Bad, "Reads and updates after ageing", "30% less; the limit is 20% less"},
		{"aged-scan", rate, 500 << 20, Bad, "Scans after ageing", "76% less"},
		{"read-16", "readLatencyP99Nanoseconds", 30_000_000, Bad, "Random reads of 16 workers", "the limit is 20 ms"},
		{"read-16", reads, 700, Bad, "Random reads for each of 16 workers", "44/s for each worker"},
		{"read-16", reads, 9000, Bad, "16 workers against one", "1.1 times as much; the limit is 1.5 times"},
		{"scan", rate, 40 << 20, Bad, "Full scan", "the limit is 50 MiB/s"},
		{"postgres", tps, 60, Bad, "PostgreSQL transactions of 8 clients", "the limit is 100/s"},
		{"postgres", "transactionLatencyP99Nanoseconds", 70_000_000, Warning, "PostgreSQL latency", "good is 50 ms"},
		{"postgres", "failedTransactions", 100, Bad, "Errors", "postgres.failedTransactions up to 101"},
		{"read-16", "cacheHitPartsPerMillion", 600_000, Warning, "Reads came from memory", "read-16 60% of the reads"},
		{"redo-empty", "writeLatencyP50Nanoseconds", 4000, Warning, "Commits that are too fast", "4 µs"},
	} {
		figures := good()
		figures[test.phase][test.metric] = test.value
		found := false
		for _, f := range CardOf("x", nil, measured(figures)).Findings {
			if f.About != test.about {
				continue
			}
			found = true
			if f.Level != test.level || !strings.Contains(f.Measured, test.says) || f.Means == "" || f.Do == "" {
				t.Errorf("%s.%s = %d: %+v, want %s with %q", test.phase, test.metric, test.value, f, test.level, test.says)
			}
		}
		if !found {
			t.Errorf("nothing is said about %q", test.about)
		}
	}
}

// TestSecondAttemptsRepairNoDisk: a failed request makes its phase Invalid, and a second attempt may work.
func TestSecondAttemptsRepairNoDisk(t *testing.T) {
	phase := func(reason string, errors int64) []results.RunPhase {
		return []results.RunPhase{{Name: "scan", Outcome: results.OutcomeInvalid, Reason: reason, Metrics: map[string]int64{ioErrors: errors}}}
	}
	for name, test := range map[string]struct {
		run   results.RunResult
		level Level
		about string
	}{
		"reason":         {results.RunResult{Phases: phase(results.ReasonIOError, 0)}, Bad, "Errors"},
		"count":          {results.RunResult{Phases: phase("WorkloadFailed", 7)}, Bad, "Errors"},
		"read-only":      {results.RunResult{Phases: phase(results.ReasonReadOnly, 0)}, Bad, "Errors"},
		"a lost disk":    {results.RunResult{Phases: phase(results.ReasonPoolUnhealthy, 0)}, Bad, "Errors"},
		"without phases": {results.RunResult{Reason: "PhaseInvalid", Message: "phase scan: IOError: a medium error"}, Bad, "Errors"},
		"full":           {results.RunResult{Phases: phase(results.ReasonVolumeFull, 7)}, Warning, "Attempts without usable numbers"},
		"another":        {results.RunResult{Reason: "LeaseLost"}, Warning, "Attempts without usable numbers"},
		"valid":          {results.RunResult{Valid: true}, Good, ""},
	} {
		e := measured(good())
		test.run.Index, test.run.Attempt = 1, 1
		e.Runs = []results.RunResult{test.run}
		card := CardOf("x", nil, e)
		if card.Verdict != test.level || test.about != "" && (card.Findings[0].About != test.about ||
			!strings.Contains(card.Findings[0].Measured, "run 2, attempt 1: ")) {
			t.Errorf("%s: %s", name, card.Text())
		}
	}
}

// TestDoubtfulFigures: commits that cannot be durable are not good, and a limit of the CPU is not one of the storage.
func TestDoubtfulFigures(t *testing.T) {
	figures := good()
	figures["redo-full"]["writeLatencyP50Nanoseconds"] = 2000
	figures["read-16"][reads], figures["read-16"]["workersBusyPartsPerMillion"] = 9000, 500_000
	levels := map[string]Finding{}
	for _, f := range CardOf("x", nil, measured(figures)).Findings {
		levels[f.About] = f
	}
	for about, words := range map[string]string{"Commits on the full, aged volume": "less than 10 µs", "16 workers against one": "50% of the time"} {
		if f := levels[about]; f.Level != Unknown || !strings.Contains(f.Measured, words) {
			t.Errorf("%+v", f)
		}
	}
	if f := levels["Commits on the empty volume"]; f.Level != Good {
		t.Errorf("%+v", f)
	}
}

// TestDoubtfulWarnings: for commits that cannot be durable, a warning is not enough.
func TestDoubtfulWarnings(t *testing.T) {
	figures := good()
	for _, phase := range []string{"redo-empty", "redo-full"} {
		figures[phase]["writeLatencyP50Nanoseconds"], figures[phase]["writeLatencyP99Nanoseconds"] = 4000, 6_000_000
	}
	card := CardOf("x", nil, measured(figures))
	if card.Verdict != Unknown {
		t.Errorf("%s: %+v", card.Verdict, card.Findings)
	}
}

// TestStalledRunsAreNotLeftOut: a metric is unknown if a run has no value of it, because that run may have stalled.
func TestStalledRunsAreNotLeftOut(t *testing.T) {
	e := measured(good())
	e.Runs = slices.Repeat([]results.RunResult{{Variant: e.Variants[0].Name, Valid: true}}, 3) // without values, as in large results
	if card := CardOf("x", nil, e); card.Verdict != Good {
		t.Fatal(card.Text())
	}
	for _, phase := range e.Variants[0].Phases {
		for i := range phase.Metrics {
			if phase.Metrics[i].Name == reads {
				phase.Metrics[i].Runs = 2
			}
		}
	}
	if card := CardOf("x", nil, e); card.Verdict == Good {
		t.Error(card.Text())
	}
}

// TestTheLongestCommit: the longest commit of all runs counts.
func TestTheLongestCommit(t *testing.T) {
	e := measured(good())
	for i := range e.Variants[0].Phases {
		for j := range e.Variants[0].Phases[i].Metrics {
			if metric := &e.Variants[0].Phases[i].Metrics[j]; metric.Name == "writeLatencyMaxNanoseconds" {
				metric.Max = 5e9
			}
		}
	}
	if first := CardOf("x", nil, e).Findings[0]; first.Level != Bad || first.About != "The longest commit" || !strings.Contains(first.Measured, "5 s") {
		t.Errorf("%+v", first)
	}
}

// TestUnknownSourceIsNotGood: no finding is good if the source of its reads or the size of the database is not known.
func TestUnknownSourceIsNotGood(t *testing.T) {
	for name, test := range map[string]struct {
		change func(map[string]map[string]int64)
		want   map[string]Level
		says   string
	}{
		"reads": {func(f map[string]map[string]int64) { delete(f["read-16"], hitRate) }, map[string]Level{"Random reads of 16 workers": Unknown,
			"Random reads for each of 16 workers": Unknown, "16 workers against one": Unknown, "Full scan": Good}, "the source of the reads is not known"},
		"a warning": {func(f map[string]map[string]int64) { delete(f["scan"], hitRate); f["scan"][rate] = 100 << 20 },
			map[string]Level{"Full scan": Unknown}, "the source of the reads is not known"},
		"a bad one": {func(f map[string]map[string]int64) { delete(f["scan"], hitRate); f["scan"][rate] = 1 << 20 },
			map[string]Level{"Full scan": Bad, "Scans after ageing": Unknown}, "the source of the reads is not known"},
		"steadiness": {func(f map[string]map[string]int64) { delete(f["mixed-16"], hitRate) }, map[string]Level{"Runs are alike": Unknown},
			"the source of the reads is not known"},
		"a database in memory": {func(f map[string]map[string]int64) { f["postgres"][databaseShareOfMemory] = 400_000 }, map[string]Level{
			"PostgreSQL transactions of 8 clients": Unknown, "PostgreSQL latency": Unknown}, "measures commits only"},
		"a database of no known share": {func(f map[string]map[string]int64) { delete(f["postgres"], databaseShareOfMemory) }, map[string]Level{
			"PostgreSQL transactions of 8 clients": Unknown}, "Whether the database fits into memory is not known"},
	} {
		figures := good()
		test.change(figures)
		card, levels := CardOf("x", nil, measured(figures)), map[string]Level{}
		for _, f := range card.Findings {
			levels[f.About] = f.Level
		}
		for about, want := range test.want {
			if levels[about] != want {
				t.Errorf("%s: %s: %q, want %s", name, about, levels[about], want)
			}
		}
		if !strings.Contains(card.Text(), test.says) {
			t.Errorf("%s does not say %q: %s", name, test.says, card.Text())
		}
	}
}

// TestMemoryIsNoStorage: figures of a cache say nothing good about disks, but a bad figure is bad anyway.
func TestMemoryIsNoStorage(t *testing.T) {
	figures := good()
	figures["read-16"]["cacheHitPartsPerMillion"], figures["scan"]["cacheHitPartsPerMillion"], figures["scan"][rate] = 600_000, 600_000, 1<<20
	levels := map[string]Level{}
	for _, f := range CardOf("x", nil, measured(figures)).Findings {
		levels[f.About] = f.Level
	}
	for about, want := range map[string]Level{"Random reads of 16 workers": Unknown, "Random reads for each of 16 workers": Unknown,
		"16 workers against one": Unknown, "Full scan": Bad, "Commits on the empty volume": Good, "Scans after ageing": Unknown} {
		if levels[about] != want {
			t.Errorf("%s: %s, want %s", about, levels[about], want)
		}
	}
}

// TestOverlappingRunsAreNotBad: a loss is only a warning if the runs overlap.
func TestOverlappingRunsAreNotBad(t *testing.T) {
	e := measured(good())
	for i := range e.Variants[0].Phases {
		if phase := &e.Variants[0].Phases[i]; phase.Name == "aged-mixed-16" {
			phase.Metrics = []results.MetricResult{{Name: reads, Median: 30_000, Min: 20_000, Max: 55_000, Runs: 3}, {Name: hitRate, Runs: 3}}
		}
	}
	for _, f := range CardOf("x", nil, e).Findings {
		if f.About == "Reads and updates after ageing" && (f.Level != Warning || !strings.Contains(f.Measured, "the runs overlap")) {
			t.Errorf("%+v", f)
		}
	}
}

// TestUnsteadyRuns: the spread of the runs is a finding of its own.
func TestUnsteadyRuns(t *testing.T) {
	for spread, want := range map[int64]Level{10: Good, 30: Warning, 110: Bad} {
		e := measured(good())
		for i := range e.Variants[0].Phases {
			if phase := &e.Variants[0].Phases[i]; phase.Name == "mixed-16" {
				phase.Metrics = []results.MetricResult{{Name: reads, Median: 50_000, Min: 50_000 - 250*spread, Max: 50_000 + 250*spread, Runs: 3}, {Name: hitRate, Runs: 3}}
			}
		}
		for _, f := range CardOf("x", nil, e).Findings {
			if f.About == "Runs are alike" && f.Level != want {
				t.Errorf("%d%%: %+v", spread, f)
			}
		}
	}
}

// TestNothingIsNeverGood: what was not measured is unknown, and no card is good without it.
func TestNothingIsNeverGood(t *testing.T) {
	if card := CardOf("x", nil); card.Verdict != Unknown || !strings.HasPrefix(card.Sentence, "Unknown") {
		t.Errorf("nothing measured: %s", card.Text())
	}
	for phase := range good() {
		figures := good()
		delete(figures, phase)
		if card := CardOf("x", nil, measured(figures)); card.Verdict != Unknown {
			t.Errorf("without %s: %s", phase, card.Verdict)
		}
	}
	lost := measured(good())
	lost.State, lost.Message = results.StateIncomplete, "1 of 3 runs have usable numbers"
	if card := CardOf("x", nil, lost); card.Verdict != Unknown || !strings.Contains(card.Text(), "1 of 3 runs") {
		t.Error(card.Text())
	}
}

// TestWorstFirst: the finding that is furthest beyond its limit comes first.
func TestWorstFirst(t *testing.T) {
	figures := good()
	figures["redo-full"][appendP99], figures["scan"][rate], figures["read-16"]["readLatencyP99Nanoseconds"] = 100e6, 45<<20, 6e6
	delete(figures, "postgres")
	var order []string
	for _, f := range CardOf("x", nil, measured(figures)).Findings[:6] {
		order = append(order, string(f.Level)+" "+f.About)
	}
	want := []string{"Bad Commits on the full, aged volume", "Bad Full scan", "Unknown PostgreSQL transactions of 8 clients",
		"Unknown PostgreSQL latency", "Warning Random reads of 16 workers"}
	if got := strings.Join(order[:5], "; "); got != strings.Join(want, "; ") {
		t.Error(got)
	}
}

func suiteOf(of string) Suite {
	return Suite{Of: of, Size: DefaultSize, Duration: DefaultDuration, Repetitions: DefaultRepetitions}
}

func benchmarks(t *testing.T, s Suite) []v1alpha1.StorageBenchmark {
	t.Helper()
	text, err := s.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	var all []v1alpha1.StorageBenchmark
	for document := range strings.SplitSeq(text, "\n---\n") {
		var one v1alpha1.StorageBenchmark
		if err := yaml.UnmarshalStrict([]byte(document), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestTheSuiteMeasuresWhatTheRulesAsk: a rule about a metric that its phase never has would always be Unknown.
func TestTheSuiteMeasuresWhatTheRulesAsk(t *testing.T) {
	figures := map[string]map[string]int64{}
	for _, benchmark := range benchmarks(t, suiteOf("fast")) {
		for i := range benchmark.Spec.Phases {
			phase := &benchmark.Spec.Phases[i]
			figures[string(phase.Name)] = map[string]int64{}
			for _, metric := range workload.Metrics(phase, false) {
				figures[string(phase.Name)][metric] = 1_000_000
			}
		}
	}
	for _, metrics := range figures {
		if _, has := metrics[hitRate]; has {
			metrics[hitRate] = 0 // otherwise all reads would come from memory, and nothing would be known
		}
		if _, has := metrics[databaseShareOfMemory]; has {
			metrics[databaseShareOfMemory] = 2_000_000
		}
	}
	if len(figures) != 11 {
		t.Errorf("%d phases", len(figures))
	}
	for _, f := range Judge(FactsOf(measured(figures))) {
		if f.Level == Unknown {
			t.Errorf("%+v", f)
		}
	}
}

func TestSuite(t *testing.T) {
	names := map[string]string{}
	for of, want := range map[string]string{"fast": `{storageClass: {name: "fast", size: "20Gi"}}`, "target/mirror": `{ref: {name: "mirror"}}`,
		"null": `name: "null"`, "123": `name: "123"`, "target/1e3": `name: "1e3"`,
		"a.b": `name: "a.b"`, "a-b": `name: "a-b"`, "target-mirror": `name: "target-mirror"`, strings.Repeat("x", 120): "xxx",
		"target/" + strings.Repeat("x", 120): "xxx"} {
		text, err := suiteOf(of).Manifests()
		if err != nil || strings.Count(text, want) < 2 {
			t.Errorf("%s: %v\n%s", of, err, text)
		}
		for i, one := range benchmarks(t, suiteOf(of)) {
			if class := one.Spec.Target.StorageClass; class != nil && class.Name != of {
				t.Errorf("%s: the class is %q", of, class.Name)
			}
			if one.Name != suiteOf(of).Names()[i] || len(one.Name) > 63 || names[one.Name] != "" {
				t.Errorf("%s: name %s, as of %s", of, one.Name, names[one.Name])
			}
			names[one.Name] = of
		}
	}
	for name, s := range map[string]Suite{"class": suiteOf("x}, y: {"), "empty": suiteOf("target/"),
		"size":        {Of: "fast", Size: "1Mi", Duration: time.Minute, Repetitions: 3},
		"no size":     {Of: "fast", Size: "20Gi, x: y", Duration: time.Minute, Repetitions: 3},
		"duration":    {Of: "fast", Size: "1Gi", Duration: time.Second, Repetitions: 3},
		"repetitions": {Of: "fast", Size: "1Gi", Duration: time.Minute}} {
		if text, err := s.Manifests(); err == nil {
			t.Errorf("%s is accepted: %s", name, text)
		}
	}
}

func TestAcceptsOnlyItsSuite(t *testing.T) {
	of := func(class, name, phase string, variants int) results.Experiment {
		e := results.Experiment{StorageClass: class, Benchmark: results.RunIdentity{Name: name}}
		for range variants {
			e.Variants = append(e.Variants, results.VariantResult{Phases: []results.PhaseResult{{Name: phase, Metrics: []results.MetricResult{
				{Name: "volumeBytes", Median: 3 << 30, Runs: 1}}}}})
		}
		return e
	}
	for name, test := range map[string]struct {
		suite Suite
		given []results.Experiment
		says  string
	}{
		"both":          {suiteOf("fast"), []results.Experiment{of("fast", "a", "fill", 1), of("fast", "b", "postgres", 1)}, ""},
		"two variants":  {suiteOf("fast"), []results.Experiment{of("fast", "a", "fill", 2)}, "a has 2 variants"},
		"nothing":       {suiteOf("fast"), []results.Experiment{of("fast", "a", "fill", 0)}, "a has 0 variants"},
		"twice":         {suiteOf("fast"), []results.Experiment{of("fast", "a", "fill", 1), of("fast", "b", "fill", 1)}, "phase fill is in a and in b"},
		"another class": {suiteOf("fast"), []results.Experiment{of("slow", "a", "fill", 1)}, `on StorageClass "slow", and not on "fast"`},
		"local": {suiteOf("fast"), []results.Experiment{of("local:/mnt/disk", "a", "fill", 1)},
			"a was measured by run --local, on /mnt/disk: a card is about storage in a cluster; for a local run, see report.html"},
		"target":  {suiteOf("target/m"), []results.Experiment{of("", "qualify-target-m-storage", "fill", 1)}, ""},
		"another": {suiteOf("target/m"), []results.Experiment{of("", "qualify-target-n-storage", "fill", 1)}, "does not belong to the suite of target/m"},
	} {
		if err := test.suite.Accepts(test.given...); test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for phase, want := range map[string]string{"fill": "StorageClass fast, volumes of 3 GiB", "scan": "StorageClass fast, volumes of unknown size"} {
		if got := suiteOf("fast").SubjectOf(of("fast", "a", phase, 1)); got != want {
			t.Error(got)
		}
	}
}

// TestHostileCard: untrusted names and messages are plain text in every form of the card.
func TestHostileCard(t *testing.T) {
	hostile := "</p><script>alert(1)</script> | [x](http://y) `z` \x1b[31m\u202e\n# y"
	e := measured(good())
	e.NodeName, e.State, e.Message, e.Benchmark.Name = hostile, hostile, hostile, hostile
	e.Runs = []results.RunResult{{Preflight: []results.PreflightResult{{Check: hostile, State: results.PreflightWarning, Messages: []string{hostile}}}}}
	card := CardOf(hostile, nil, e)
	page, err := card.HTML()
	if err != nil || strings.Contains(page, "<script") || !strings.Contains(page, "&lt;script&gt;") {
		t.Errorf("%v: %s", err, page)
	}
	markdown := card.Markdown()
	if strings.Count(markdown, "<script") != strings.Count(markdown, `\<script`) || strings.Count(markdown, `[x`) != strings.Count(markdown, `\[x`) ||
		strings.Count(markdown, "script") < 4 || strings.Contains(markdown, "\n# ") {
		t.Error(markdown)
	}
	if strings.ContainsAny(page+markdown, "\x1b\u202e") {
		t.Error("there are characters that cannot be seen")
	}
	if words := card.Text(); strings.Contains(words, "\n# y") || strings.ContainsAny(words, "\x1b\u202e") || strings.Count(words, "script") < 4 {
		t.Error(words)
	}
	text, err := json.Marshal(card)
	if err != nil || !strings.Contains(string(text), fmt.Sprintf("%q", "level")) {
		t.Errorf("%v: %s", err, text)
	}
}
