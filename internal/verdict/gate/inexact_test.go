package gate

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

var freshAndAged = []v1alpha1.Phase{{Name: "fresh"}, {Name: "aged"}}

// freshThenAged returns six equal runs that measured the metric in two phases.
func freshThenAged(metric string, fresh, aged int64) []results.RunResult {
	var runs []results.RunResult
	for repetition := range int32(6) {
		of := func(name string, value int64) results.RunPhase {
			return results.RunPhase{Name: name, Outcome: results.OutcomeValid, Metrics: map[string]int64{metric: value}}
		}
		runs = append(runs, results.RunResult{Name: "r", Variant: "default", Repetition: repetition + 1, Valid: true,
			Phases: []results.RunPhase{of("fresh", fresh), of("aged", aged)}})
	}
	return runs
}

// inexact is a gate on values that are only known within a range, and what it has to say.
type inexact struct {
	gate    v1alpha1.Gate
	runs    []results.RunResult
	verdict v1alpha1.Verdict
	reason  string
}

func (i inexact) judge(t *testing.T) v1alpha1.GateStatus {
	t.Helper()
	set, err := Compile([]v1alpha1.Gate{i.gate}, freshAndAged, []string{"default"})
	if err != nil {
		t.Fatal(err)
	}
	got := set.Judge(Evidence{Summary: results.Summarise(i.runs), Runs: i.runs})[0]
	if got.Verdict != i.verdict || got.Reason != i.reason {
		t.Errorf("%s, %s: %s", got.Verdict, got.Reason, got.Message)
	}
	return got
}

// TestPowersOfTwo: the largest piece of free space may be up to twice as large as its value. No kind of gate decides if that could change
// the verdict.
func TestPowersOfTwo(t *testing.T) {
	const largest, mebibyte = "largestFreeSegmentBytes", 1 << 20
	maps := func(fresh, aged int64) []results.RunResult {
		return freshThenAged(largest, fresh*mebibyte, aged*mebibyte)
	}
	smaller := expression("phase('aged')." + largest + " < phase('fresh')." + largest)
	halved := expression("phase('aged')." + largest + " * 2.0 <= phase('fresh')." + largest)
	for name, test := range map[string]inexact{
		"at least, which it is":           {boundGate("aged."+largest, "16Mi", ""), maps(64, 16), passed, ReasonHolds},
		"at most, and it may be more":     {boundGate("aged."+largest, "", "16Mi"), maps(64, 16), inconclusive, ReasonTooCoarse},
		"at most, and twice is less":      {boundGate("aged."+largest, "", "32Mi"), maps(64, 16), passed, ReasonHolds},
		"a smaller power is less":         {smaller, maps(64, 32), passed, ReasonHolds},
		"an equal one may be":             {smaller, maps(64, 64), inconclusive, ReasonTooCoarse},
		"half may be nearly all":          {halved, maps(64, 32), inconclusive, ReasonTooCoarse},
		"a quarter is at most half":       {halved, maps(64, 16), passed, ReasonHolds},
		"a ratio that it may have":        {ratioGate("aged."+largest, "fresh."+largest, "", "", "50%"), maps(64, 32), inconclusive, ReasonTooCoarse},
		"a ratio that it has in any case": {ratioGate("aged."+largest, "fresh."+largest, "", "", "50%"), maps(64, 16), passed, ReasonHolds},
		"a ratio that it cannot have":     {ratioGate("aged."+largest, "fresh."+largest, "", "", "10%"), maps(64, 32), failed, ReasonAboveMaximum},
		"growth that it has in any case":  {ratioGate("aged."+largest, "fresh."+largest, "", "110%", ""), maps(16, 64), passed, ReasonHolds},
		"growth that may be none":         {ratioGate("aged."+largest, "fresh."+largest, "", "110%", ""), maps(16, 32), inconclusive, ReasonTooCoarse},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.judge(t)
			if doubtful := test.reason == ReasonTooCoarse; doubtful != strings.Contains(got.Message, "power of two") {
				t.Error(got.Message)
			}
		})
	}
}

// TestInexactTimes: a percentile may be anywhere in its bin, and a duration of whole seconds may be a second more, or two less. Equal runs do
// not make them exact.
func TestInexactTimes(t *testing.T) {
	const p99, lasted, millisecond, second = "readLatencyP99Nanoseconds", "durationNanoseconds", 1_000_000, 1_000_000_000
	slower := func(metric, times string) v1alpha1.Gate {
		return expression("phase('aged')." + metric + " >= " + times + " * phase('fresh')." + metric)
	}
	percentiles := func(fresh, aged int64) []results.RunResult {
		return freshThenAged(p99, fresh*millisecond, aged*millisecond)
	}
	durations := func(fresh, aged int64) []results.RunResult { return freshThenAged(lasted, fresh*second, aged*second) }
	for name, test := range map[string]inexact{
		"limit in the bin":              {boundGate("aged."+p99, "", "100100us"), percentiles(50, 100), inconclusive, ReasonTooCoarse},
		"limit beyond the bin":          {boundGate("aged."+p99, "", "102ms"), percentiles(50, 100), passed, ReasonHolds},
		"limit before the bin":          {boundGate("aged."+p99, "", "98ms"), percentiles(50, 100), failed, ReasonAboveMaximum},
		"ratio within two bins":         {ratioGate("aged."+p99, "fresh."+p99, "", "2x", ""), percentiles(50, 100), inconclusive, ReasonTooCoarse},
		"ratio beyond two bins":         {ratioGate("aged."+p99, "fresh."+p99, "", "1.9x", ""), percentiles(50, 100), passed, ReasonHolds},
		"ratio of the same bin":         {ratioGate("aged."+p99, "fresh."+p99, "", "1.1x", ""), percentiles(100, 100), failed, ReasonBelowMinimum},
		"expression within two bins":    {slower(p99, "2.0"), percentiles(50, 100), inconclusive, ReasonTooCoarse},
		"expression beyond two bins":    {slower(p99, "1.9"), percentiles(50, 100), passed, ReasonHolds},
		"a mean is exact":               {slower("readLatencyMeanNanoseconds", "2.0"), freshThenAged("readLatencyMeanNanoseconds", 50, 100), passed, ReasonHolds},
		"limit within a second":         {boundGate("aged."+lasted, "", "10500ms"), durations(5, 10), inconclusive, ReasonTooCoarse},
		"limit within two seconds":      {boundGate("aged."+lasted, "8500ms", ""), durations(5, 10), inconclusive, ReasonTooCoarse},
		"limit two seconds below":       {boundGate("aged."+lasted, "8s", ""), durations(5, 10), passed, ReasonHolds},
		"limit farther than a second":   {boundGate("aged."+lasted, "", "11s"), durations(5, 10), passed, ReasonHolds},
		"a measured duration":           {boundGate("aged."+lasted, "", "10500ms"), freshThenAged(lasted, 5, 10_123_456_789), passed, ReasonHolds},
		"one second may be nearly none": {ratioGate("aged."+lasted, "fresh."+lasted, "", "", "10x"), durations(1, 2), inconclusive, ReasonTooCoarse},
		"minutes are exact enough":      {ratioGate("aged."+lasted, "fresh."+lasted, "", "1.9x", ""), durations(60, 120), passed, ReasonHolds},
		"expression of a few seconds":   {slower(lasted, "1.9"), durations(5, 10), inconclusive, ReasonTooCoarse},
		"expression of enough":          {slower(lasted, "1.9"), durations(60, 120), passed, ReasonHolds},
	} {
		t.Run(name, func(t *testing.T) {
			test.judge(t)
		})
	}
}
