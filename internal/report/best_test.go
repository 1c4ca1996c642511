package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

// choice is an experiment with runs of variants whose true values are known. Repetitions differ by more than variants do.
func choice(random *rand.Rand, repetitions int, levels ...float64) results.Experiment {
	e := results.Experiment{Order: "Interleaved"}
	for repetition := range repetitions {
		day := 1 + 0.3*random.Float64()
		for i, level := range levels {
			value := int64(1e9 * level * day * math.Exp(0.02*random.NormFloat64()))
			e.Runs = append(e.Runs, results.RunResult{Name: fmt.Sprintf("%d-%d", repetition, i), Index: int32(len(e.Runs)), Variant: fmt.Sprintf("v%d", i),
				Repetition: int32(repetition + 1), Valid: true, Phases: []results.RunPhase{{Name: "scan", Kind: results.KindMeasure,
					Outcome: results.OutcomeValid, Metrics: map[string]int64{"readBytesPerSecond": value, "readLatencyP99Nanoseconds": value}}}})
		}
	}
	e.Variants = results.Summarise(e.Runs)
	return e
}

func best(e results.Experiment, metric string) string { return bestOf(e, samplesOf(e), "scan", metric) }

func TestBest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	clear := choice(random, 8, 1, 1.12, 0.8)
	if got := best(clear, "readBytesPerSecond"); !strings.HasPrefix(got, "best: v1, 1") || !strings.HasSuffix(got, ") above v0, the next") {
		t.Error(got)
	}
	if got := best(clear, "readLatencyP99Nanoseconds"); !strings.HasPrefix(got, "best: v2, ") || !strings.HasSuffix(got, ") below v0, the next") {
		t.Error(got)
	}
	if got := best(choice(random, 8, 1, 1, 0.7), "readBytesPerSecond"); !strings.HasPrefix(got, "no best: ") || strings.Contains(got, "v2") {
		t.Error(got)
	}
	if got := best(choice(random, 6, 1, 1.5, 2), "readBytesPerSecond"); !strings.Contains(got, "v2 has the best median; too few") ||
		!strings.HasSuffix(got, "at least 7 repetitions") {
		t.Error(got)
	}
	if got := best(choice(random, 30, 1, 1.025), "readLatencyP99Nanoseconds"); !strings.HasPrefix(got, "no best: v0") {
		t.Error("less than two bins: " + got)
	}
	for _, variants := range []int{2, 3, 5, 9} {
		levels := make([]float64, variants)
		for i := range levels {
			levels[i] = 1 + float64(i)/2
		}
		if got := best(choice(random, RepetitionsFor(variants), levels...), "readBytesPerSecond"); !strings.HasPrefix(got, "best: ") {
			t.Errorf("%d repetitions of %d variants: %s", RepetitionsFor(variants), variants, got)
		}
	}
	stalled := choice(random, 12, 1, 2)
	for i := range 4 {
		delete(stalled.Runs[2*i].Phases[0].Metrics, "readLatencyP99Nanoseconds")
	}
	stalled.Variants = results.Summarise(stalled.Runs)
	if got := best(stalled, "readLatencyP99Nanoseconds"); !strings.HasPrefix(got, "v0 has the best median; some runs of v0 have no such value") {
		t.Error("the runs that did not stall speak for all: " + got)
	}
	kept := choice(random, 8, 1, 2)
	kept.Runs[3].KeptFrom = "another"
	if got := best(kept, "readBytesPerSecond"); !strings.HasSuffix(got, "at least 6 repetitions, each with a new pool") {
		t.Error("runs that reused a pool are compared: " + got)
	}
	full := choice(random, 8, 1, 2, 3)
	for i := range full.Runs {
		full.Runs[i].Phases = nil
	}
	if got := best(full, "readBytesPerSecond"); got != "v2 has the best median; the values of single runs of 3 variants did not fit into "+
		"results.json: see report.md" {
		t.Error("enough runs whose values are omitted: " + got)
	}
	few := choice(random, 4, 1, 2, 3)
	few.Runs = nil
	if got := best(few, "readBytesPerSecond"); !strings.Contains(got, "too few comparable runs") {
		t.Error(got)
	}
	lost := choice(random, 8, 1, 2, 3)
	lost.Variants[1].Phases = nil
	if got := best(lost, "readBytesPerSecond"); !strings.HasSuffix(got, "; 1 other variants were not measured") {
		t.Error(got)
	}
	if got := best(choice(random, 8, 1), "readBytesPerSecond"); got != "" {
		t.Error("one variant: " + got)
	}
}

// TestNoteAboutBest: the note about tests is shown if and only if a line says what one found.
func TestNoteAboutBest(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for name, c := range map[string]struct {
		e     results.Experiment
		shown bool
	}{
		"best": {choice(random, 8, 1, 2), true}, "no best": {choice(random, 8, 1, 1), true}, "too few runs": {choice(random, 3, 1, 2), false},
	} {
		markdown, page := sectionOf(c.e, "Which variant is best"), string(render(t, Page{Experiment: c.e}))
		for form, text := range map[string]string{"markdown": markdown, "html": page} {
			if !strings.Contains(text, "scan.readBytesPerSecond") || strings.Contains(text, "confidence of 95%") != c.shown {
				t.Errorf("%s, %s: the note is to be shown: %t\n%s", name, form, c.shown, markdown)
			}
		}
	}
}

// TestBestIsSeldomWrong: one of several equal variants is seldom called best, and the interval against the next one contains the true
// difference.
func TestBestIsSeldomWrong(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const trials = 1000
	wrong, missed, found := 0, 0, 0
	for range trials {
		if strings.HasPrefix(best(choice(random, 8, 1, 1, 1, 1), "readBytesPerSecond"), "best: ") {
			wrong++
		}
		got := best(choice(random, 8, 1, 1.1, 0.9, 0.8), "readBytesPerSecond")
		var middle, low, high float64
		if _, err := fmt.Sscanf(got, "best: v1, %f%% (%f..%f)", &middle, &low, &high); err != nil {
			continue
		}
		if found++; low > 10.0001 || high < 9.9999 {
			missed++
		}
	}
	t.Logf("of %d: %d equal ones called best, %d of 10%% found, %d intervals without the true difference", trials, wrong, found, missed)
	if wrong > trials*5/100 || found < trials*95/100 || missed > found*5/100 {
		t.Errorf("%d wrong, %d found, %d missed", wrong, found, missed)
	}
}

// TestListedAsAlike: few lines leave out a variant that is as good as the best. If the intervals were those of comparisons with one
// reference, and not those of all pairs, there would be twice as many such lines as this test allows, because the data chooses the
// reference.
func TestListedAsAlike(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const trials, variants = 1000, 6
	wrong, worse := 0, 0
	for range trials {
		got := best(choice(random, 12, 1, 1, 1, 1, 1, 0.8), "readBytesPerSecond")
		for i := range variants - 1 {
			if !strings.Contains(got, fmt.Sprintf("v%d", i)) && !strings.Contains(got, "more:") {
				wrong++
				break
			}
		}
		if strings.Contains(got, "v5") {
			worse++
		}
	}
	t.Logf("of %d: %d leave out one that is as good, %d list one that is not", trials, wrong, worse)
	if wrong > trials*2/100 || worse > trials*5/100 {
		t.Errorf("%d wrong, %d name the worse", wrong, worse)
	}
}
