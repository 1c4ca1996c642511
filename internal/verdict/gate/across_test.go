package gate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

// acrossOf is an experiment with one value of a metric in each run.
func acrossOf(metric string, values ...int64) results.Experiment {
	var e results.Experiment
	for i, value := range values {
		e.Runs = append(e.Runs, results.RunResult{Name: fmt.Sprint(i), Variant: "v", Repetition: int32(i + 1), Valid: true,
			Phases: []results.RunPhase{{Name: "p", Kind: results.KindMeasure, Outcome: results.OutcomeValid, Metrics: map[string]int64{metric: value}}}})
	}
	e.Variants = results.Summarise(e.Runs)
	return e
}

// TestAcross: 10% less is -10% whichever direction is better, and the interval contains it.
func TestAcross(t *testing.T) {
	for _, metric := range []string{"readBytesPerSecond", "readLatencyMeanNanoseconds"} {
		before := acrossOf(metric, 1_000_000, 1_010_000, 1_020_000, 990_000)
		now := acrossOf(metric, 900_000, 909_000, 918_000, 891_000)
		change, unknown := Across(before, now, "v", "p", metric)
		share := math.Expm1(change.Estimate)
		if unknown != "" || math.Abs(share+0.1) > 0.001 || !change.Interval.Known || change.Interval.Confidence < acrossConfidence ||
			math.Expm1(change.Interval.Low) > -0.1 || math.Expm1(change.Interval.High) < -0.1 || change.Interval.High >= 0 {
			t.Errorf("%s: %v %q", metric, change, unknown)
		}
	}
	few, unknown := Across(acrossOf("readBytesPerSecond", 100, 101), acrossOf("readBytesPerSecond", 110, 111), "v", "p", "readBytesPerSecond")
	if unknown != "" || few.Interval.Known || math.Abs(math.Expm1(few.Estimate)-0.0995) > 0.001 {
		t.Errorf("two runs each: %v %q", few, unknown)
	}
}

// TestAcrossRefuses experiments that would give a meaningless number.
func TestAcrossRefuses(t *testing.T) {
	fine := acrossOf("readBytesPerSecond", 1e6, 1e6, 1e6)
	reused := acrossOf("readBytesPerSecond", 1e6, 1e6, 1e6)
	reused.Runs[1].KeptFrom = "0"
	omitted := acrossOf("readBytesPerSecond", 1e6, 1e6, 1e6)
	omitted.Runs = omitted.Runs[:2]
	for _, test := range []struct {
		metric      string
		before, now results.Experiment
		says        string
	}{
		{"readBytesPerSecond", fine, reused, "run 1 reused the pool of another run"},
		{"readBytesPerSecond", omitted, fine, "the results have 2 of its 3 runs"},
		{"readBytesPerSecond", fine, acrossOf("ioErrors", 0), "measured no readBytesPerSecond"},
		{"readBytesPerSecond", acrossOf("readBytesPerSecond", 0, 1e6), fine, "no ratio"},
		{"readOperationsPerSecond", acrossOf("readOperationsPerSecond", 50, 50), acrossOf("readOperationsPerSecond", 50, 51),
			"50 is too coarse: it is rounded to 1"},
		{"largestFreeSegmentBytes", acrossOf("largestFreeSegmentBytes", 1<<30, 1<<30, 1<<29), acrossOf("largestFreeSegmentBytes", 1<<28, 1<<28, 1<<28),
			"it is only known down to a power of two"},
	} {
		if change, unknown := Across(test.before, test.now, "v", "p", test.metric); !strings.Contains(unknown, test.says) {
			t.Errorf("%q instead of %q, %v", unknown, test.says, change)
		}
	}
}
