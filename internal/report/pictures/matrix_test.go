package pictures

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
)

// matrixExperiment has the given number of runs of each combination of recordsize, fill level and base. Each further record size and base
// is faster than the one before, and each further fill level slower.
func matrixExperiment(runs int, records, levels, bases []string) results.Experiment {
	var e results.Experiment
	var variants []results.VariantResult
	for b, base := range bases {
		for r, record := range records {
			for l, level := range levels {
				name := strings.TrimPrefix(fmt.Sprintf("%s,dataset.recordsize=%s,phases.fill.to=%s", base, record, level), ",")
				variants = append(variants, results.VariantResult{Name: name, Base: base,
					Matrix: map[string]string{"dataset.recordsize": record, "phases.fill.to": level, "pool.ashift": "12"}})
				for i := range runs {
					speed := int64(max(1, 100+50*r-10*l+5*b))<<20 + int64(i)<<18
					e.Runs = append(e.Runs, results.RunResult{Name: name + fmt.Sprint(i), Index: int32(len(e.Runs)), Variant: name, Valid: true,
						Repetition: int32(i + 1), Phases: []results.RunPhase{
							{Name: "fill", Kind: results.KindFill, Outcome: results.OutcomeValid, Metrics: map[string]int64{"writeBytesPerSecond": speed}},
							{Name: "oltp", Kind: results.KindMeasure, Outcome: results.OutcomeValid, Metrics: map[string]int64{
								"readBytesPerSecond": speed, "readLatencyP99Nanoseconds": 1e15 / speed, "gangBlocks": int64(l * l)}}}})
				}
			}
		}
	}
	e.Variants = results.Summarise(e.Runs)
	for i := range e.Variants {
		e.Variants[i].Base, e.Variants[i].Matrix = variants[i].Base, variants[i].Matrix
	}
	return e
}

var (
	records = []string{"128K", "16K", "1M", "4K"}
	levels  = []string{"45%", "60%", "90%"}
)

func TestHeatMap(t *testing.T) {
	e := matrixExperiment(2, records, levels, []string{""})
	e.Variants[0].Phases = nil
	one := find(t, album(t, e), "heat-oltp-readbytespersecond")
	for _, words := range []string{">128K<", ">16K<", ">45%<", ">90%<", ">250<", "best median", "? not measured", ">?<", "MiB/s",
		"Best: 4K with 45%: 250 MiB/s", "16K: 45% 150 MiB/s", "Rows: dataset.recordsize", "Columns: phases.fill.to"} {
		if !strings.Contains(one.SVG, words) {
			t.Errorf("the picture does not say %q", words)
		}
	}
	if frames := strings.Count(one.SVG, `class="fr"`); frames != 2 { // the cell and the legend
		t.Errorf("%d frames", frames)
	}
	if lower := find(t, album(t, e), "heat-oltp-readlatencyp99nanoseconds").SVG; !strings.Contains(lower, "Best: 4K with 45%") {
		t.Error("the smallest latency is not the best: " + lower)
	}
	for _, picture := range New(e).Pictures() {
		if strings.HasPrefix(picture.Name, "heat-fill") {
			t.Error("a fill is preparation, and has a heat map")
		}
	}
}

// TestHeatMapHasAGridForEachRest: further dimensions make further grids, with the same colours.
func TestHeatMapHasAGridForEachRest(t *testing.T) {
	one := find(t, album(t, matrixExperiment(1, records, levels, []string{"mirror", "raidz"})), "heat-oltp-readbytespersecond")
	for _, words := range []string{">mirror<", ">raidz<", "Best: raidz, 4K with 45%"} {
		if !strings.Contains(one.SVG, words) {
			t.Errorf("the picture does not say %q", words)
		}
	}
	bases := []string{"a", "b", "c", "d", "e", "f", "g"}
	if many := find(t, New(matrixExperiment(1, records, levels, bases)).Pictures(), "heat-oltp-readbytespersecond"); strings.Contains(many.SVG,
		">g<") || !strings.Contains(many.Caption, "12 more combinations") {
		t.Error(many.Caption)
	}
}

// stalled removes a metric from the first run of a variant of a matrix, as if the run had too few operations for it.
func stalled(e results.Experiment, variant, metric string) results.Experiment {
	for _, run := range e.Runs {
		if run.Variant == variant && run.Repetition == 1 {
			delete(run.Phases[1].Metrics, metric)
		}
	}
	before := e.Variants
	e.Variants = results.Summarise(e.Runs)
	for i := range e.Variants {
		e.Variants[i].Base, e.Variants[i].Matrix = before[i].Base, before[i].Matrix
	}
	return e
}

// TestHeatMapOfSomeRuns: the runs that did not stall do not make a cell the best. What was only left out of results.json is not missing.
func TestHeatMapOfSomeRuns(t *testing.T) {
	const best, metric = "dataset.recordsize=4K,phases.fill.to=45%", "readLatencyP99Nanoseconds"
	const latency, rate = "heat-oltp-readlatencyp99nanoseconds", "heat-oltp-readbytespersecond"
	made := func() results.Experiment { return matrixExperiment(3, records, levels, []string{""}) }
	left := made()
	for _, run := range left.Runs {
		for i := range run.Phases {
			run.Phases[i].Metrics = nil
		}
	}
	noRun := stalled(made(), best, metric)
	noRun.Variants[0].Phases = nil
	for name, test := range map[string]struct {
		e       results.Experiment
		picture string
		says    []string
		missing int
	}{
		"all runs":               {made(), latency, []string{"Best: 4K with 45%"}, 0},
		"left out for its size":  {left, latency, []string{"Best: 4K with 45%"}, 0},
		"one run has none":       {stalled(made(), best, metric), latency, []string{"Best: 4K with 60%", "? not measured in all valid runs"}, 1},
		"and a variant no run":   {noRun, latency, []string{"Best: 4K with 60%", "? not measured in all valid runs"}, 2},
		"another metric has all": {stalled(made(), best, metric), rate, []string{"Best: 4K with 45%"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			drawn := find(t, New(test.e).Pictures(), test.picture).SVG
			for _, words := range test.says {
				g.Expect(drawn).To(gomega.ContainSubstring(words))
			}
			g.Expect(strings.Count(drawn, ">?<")).To(gomega.Equal(test.missing))
		})
	}
}

func TestNoHeatMap(t *testing.T) {
	zip := matrixExperiment(1, records, levels, []string{""})
	zip.Variants = slices.DeleteFunc(zip.Variants, func(v results.VariantResult) bool {
		return slices.Index(records, v.Matrix["dataset.recordsize"]) != slices.Index(levels, v.Matrix["phases.fill.to"])
	})
	for name, e := range map[string]results.Experiment{"one dimension": matrixExperiment(1, records, levels[:1], []string{""}),
		"a diagonal": zip, "no matrix": experiment(2, "a", "b")} {
		if slices.ContainsFunc(album(t, e), func(p report.Picture) bool { return strings.HasPrefix(p.Name, "heat-") }) {
			t.Errorf("%s: there is a heat map", name)
		}
	}
}

func TestSweep(t *testing.T) {
	e := matrixExperiment(6, []string{"lz4", "off"}, levels, []string{""})
	drawn := album(t, e, "sweep-oltp-readbytespersecond")
	one := find(t, drawn, "sweep-oltp-gangblocks")
	if one.Section != "disks" || !strings.Contains(one.Caption, "95% intervals") {
		t.Errorf("%s, %s", one.Section, one.Caption)
	}
	for _, words := range []string{">45%<", ">60%<", ">90%<", ">dataset.recordsize=lz4<", "90% 4"} {
		if !strings.Contains(one.SVG, words) {
			t.Errorf("the picture does not say %q", words)
		}
	}
	if along := find(t, New(matrixExperiment(1, records, levels, []string{""})).Pictures(), "sweep-oltp-gangblocks"); !strings.Contains(along.Title,
		"over phases.fill.to") {
		t.Error("fill levels do not come first: " + along.Title)
	}
	few := find(t, album(t, matrixExperiment(5, []string{"lz4", "off"}, levels, []string{""})), "sweep-oltp-gangblocks")
	if !strings.Contains(few.Caption, "smallest and the largest") {
		t.Error("five runs have no interval of 95%: " + few.Caption)
	}
}

// TestSweepWithoutInterval: runs that depend on each other, and the runs that did not stall, have no interval.
func TestSweepWithoutInterval(t *testing.T) {
	const stalls, metric = "dataset.recordsize=off,phases.fill.to=90%", "readLatencyP99Nanoseconds"
	made := func() results.Experiment { return matrixExperiment(7, []string{"lz4", "off"}, levels, []string{""}) }
	kept := made()
	kept.Runs[3].KeptFrom = kept.Runs[2].Name
	for name, test := range map[string]struct {
		e       results.Experiment
		picture string
		says    string
		lacking bool
	}{
		"all runs":               {made(), "sweep-oltp-readlatencyp99nanoseconds", "95% intervals", false},
		"one run has none":       {stalled(made(), stalls, metric), "sweep-oltp-readlatencyp99nanoseconds", "smallest and the largest", true},
		"another metric has all": {stalled(made(), stalls, metric), "sweep-oltp-readbytespersecond", "95% intervals", false},
		"a pool is kept":         {kept, "sweep-oltp-readbytespersecond", "smallest and the largest", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			one := find(t, New(test.e).Pictures(), test.picture)
			g.Expect(one.Caption).To(gomega.ContainSubstring(test.says))
			g.Expect(strings.Contains(one.Caption, "Medians that are not of all valid runs: 1.")).To(gomega.Equal(test.lacking))
			g.Expect(strings.Contains(one.SVG, "Medians that are not of all valid runs: 1.")).To(gomega.Equal(test.lacking))
		})
	}
}

func TestPlacesOf(t *testing.T) {
	for _, test := range []struct {
		values []string
		want   []float64
	}{
		{[]string{"45%", "7.5%"}, []float64{45, 7.5}}, {[]string{"8k", "1M", "512"}, []float64{8192, 1 << 20, 512}},
		{[]string{"16Ki", "1GiB"}, []float64{1 << 14, 1 << 30}}, {[]string{"9", "12"}, []float64{9, 12}},
		{[]string{"45%", "7"}, nil}, {[]string{"lz4", "off"}, nil}, {[]string{"zstd-3", "3"}, nil}, {[]string{"10s"}, nil},
	} {
		places, numbers := placesOf(test.values)
		for i, value := range test.values {
			if numbers != (test.want != nil) || numbers && places[value] != test.want[i] {
				t.Errorf("%v: %v, %v", test.values, places, numbers)
			}
		}
	}
}

// TestMedianSpanHolds: five values are too few for an interval, and that of six values is their whole range.
func TestMedianSpanHolds(t *testing.T) {
	if _, _, enough := medianSpan([]float64{1, 2, 3, 4, 5}); enough {
		t.Error("five values have an interval")
	}
	low, high, enough := medianSpan([]float64{6, 5, 4, 3, 2, 1})
	if !enough || low != 1 || high != 6 {
		t.Errorf("%g to %g, %v", low, high, enough)
	}
}

// TestHostileMatrix: paths and values of a matrix are untrusted text too.
func TestHostileMatrix(t *testing.T) {
	hostile := "</svg><script>alert(1)</script>\"'\x1b[31m\u202e"
	e := matrixExperiment(6, []string{hostile, "b"}, []string{"1", "2", "1e9", hostile}, []string{hostile})
	for i := range e.Variants {
		e.Variants[i].Matrix[hostile] = "x" + fmt.Sprint(i%2)
	}
	drawn := album(t, e, "heat-oltp-readbytespersecond")
	for _, picture := range append(drawn, New(matrixExperiment(6, []string{hostile}, []string{"1", "2", "0"}, []string{hostile})).Pictures()...) {
		if strings.Contains(picture.SVG, "<script") || strings.ContainsAny(picture.SVG, "\x1b\u202e") {
			t.Errorf("%s: %.300s", picture.Name, picture.SVG)
		}
	}
}

// TestLargeMatrix: the pictures of the largest matrix fit into a report.
func TestLargeMatrix(t *testing.T) {
	var sixteen []string
	for i := range 16 {
		sixteen = append(sixteen, fmt.Sprint(math.Pow(2, float64(i+4))))
	}
	e := matrixExperiment(2, sixteen, sixteen, []string{""})
	bytes := 0
	for _, picture := range album(t, e, "heat-oltp-readbytespersecond", "sweep-oltp-gangblocks") {
		bytes += len(picture.SVG)
	}
	if bytes > 768<<10 || bytes < 50<<10 {
		t.Errorf("%d bytes", bytes)
	}
}

// TestTwoVariantsOfOneCell: a document may have the same combination twice, the second time without numbers. It may also have any number of
// values.
func TestTwoVariantsOfOneCell(t *testing.T) {
	e := matrixExperiment(1, []string{"a", "b"}, []string{"x", "y"}, []string{""})
	for _, variant := range slices.Clone(e.Variants) {
		variant.Phases = nil
		e.Variants = append(e.Variants, variant)
	}
	if one := find(t, New(e).Pictures(), "heat-oltp-readbytespersecond"); strings.Contains(one.SVG, "? not measured") {
		t.Error("what is known is hidden")
	}
	for i := range 70 {
		for _, path := range []string{"p", "q"} {
			e.Variants = append(e.Variants, results.VariantResult{Matrix: map[string]string{path: fmt.Sprint("v", i)}})
		}
	}
	if drawn := New(e).Pictures(); slices.ContainsFunc(drawn, func(p report.Picture) bool { return strings.HasPrefix(p.Name, "heat-") }) {
		t.Error("a grid of 4,900 cells is drawn")
	}
}

// TestSweepShowsWhatIsLost: a line is broken at a value without a valid run, and the picture says how many such values there are.
func TestSweepShowsWhatIsLost(t *testing.T) {
	steps := []string{"10%", "20%", "30%", "40%", "50%"}
	whole := find(t, New(matrixExperiment(2, []string{"lz4", "off"}, steps, []string{""})).Pictures(), "sweep-oltp-readbytespersecond")
	e := matrixExperiment(2, []string{"lz4", "off"}, steps, []string{""})
	e.Variants[2].Phases = nil
	one := find(t, New(e).Pictures(), "sweep-oltp-readbytespersecond")
	if strings.Contains(whole.Caption, "valid run:") || !strings.Contains(one.Caption, " Variants without a valid run: 1.") ||
		!strings.Contains(one.SVG, "Variants without a valid run: 1.") {
		t.Error(one.Caption)
	}
	lines := func(svg string) (parts int) {
		for _, element := range strings.Split(svg, "<path class=\"l ")[1:] {
			element, _, _ = strings.Cut(element, ">")
			if strings.Contains(element, "L") { // not a whisker
				parts += strings.Count(element, "M")
			}
		}
		return parts
	}
	if got, before := lines(one.SVG), lines(whole.SVG); before < 2 || got != before+1 {
		t.Errorf("%d parts of lines, of the whole ones %d", got, before)
	}
}
