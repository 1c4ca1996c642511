package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
)

// TestFiguresAreThoseOfTheReport: the same number must not look different in two places.
func TestFiguresAreThoseOfTheReport(t *testing.T) {
	primary := map[string]results.Metric{}
	for _, metric := range results.Metrics() {
		if metric.Primary {
			primary[metric.Unit] = metric
		}
	}
	if len(primary) < 2 {
		t.Fatal("there are only metrics of one unit")
	}
	compared := 0
	for unit, known := range primary {
		for value := int64(1); value < 1e15; value = value*7 + 3 {
			metric := results.MetricResult{Name: known.Name, Unit: unit, Better: string(known.Better), Median: value, Min: value - 1, Max: value * 2,
				Runs: 6}
			rendered := report.Render(results.Experiment{
				Variants: []results.VariantResult{{Name: "default",
					Phases: []results.PhaseResult{{Name: "p", Metrics: []results.MetricResult{metric}}}}},
			})
			if !strings.Contains(rendered.Markdown, "| "+figures(metric)+" |") {
				t.Errorf("%s %d: %q is not in the report:\n%s", known.Name, value, figures(metric), rendered.Markdown)
			}
			compared++
		}
	}
	if compared < 20 {
		t.Error(compared)
	}
}

func TestFiguresOfOtherUnits(t *testing.T) {
	for want, metric := range map[string]results.MetricResult{
		"812 µs (812..999, n=6)": {Unit: results.UnitNanoseconds, Median: 812_000, Min: 812_000, Max: 999_000, Runs: 6},
		"12.5% (0.00..100, n=1)": {Unit: results.UnitPartsPerMillion, Median: 125_000, Max: 1_000_000, Runs: 1},
		"2.06 (2.06..2.06, n=2)": {Unit: results.UnitMilli, Median: 2060, Min: 2060, Max: 2060, Runs: 2},
		"9999 (9999..9999, n=1)": {Unit: results.UnitCount, Median: 9999, Min: 9999, Max: 9999, Runs: 1},
		"10.0 k tx/s (10.0..10.0, n=1)": {Name: "transactionsPerSecond", Unit: results.UnitPerSecond, Median: 10_000, Min: 10_000,
			Max: 10_000, Runs: 1},
		"512 B (0..512, n=1)":                {Unit: results.UnitBytes, Median: 512, Max: 512, Runs: 1},
		"1.00 GiB/s (1.00..1.00, n=3)":       {Unit: results.UnitBytesPerSecond, Median: 1 << 30, Min: 1 << 30, Max: 1 << 30, Runs: 3},
		"-5 ns (-5..-5, n=1)":                {Unit: results.UnitNanoseconds, Median: -5, Min: -5, Max: -5, Runs: 1},
		fmt.Sprintf("0 (0..%d, n=0)", 1<<40): {Unit: "furlongs", Max: 1 << 40},
	} {
		if got := figures(metric); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}
