package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// unitStep is a suffix from a size on.
type unitStep struct {
	from, divisor float64
	suffix        string
}

var (
	byteSteps = []unitStep{{1 << 40, 1 << 40, " TiB"}, {1 << 30, 1 << 30, " GiB"}, {1 << 20, 1 << 20, " MiB"}, {1 << 10, 1 << 10, " KiB"},
		{0, 1, " B"}}
	timeSteps  = []unitStep{{1e9, 1e9, " s"}, {1e6, 1e6, " ms"}, {1e3, 1e3, " µs"}, {0, 1, " ns"}}
	countSteps = []unitStep{{1e9, 1e9, " G"}, {1e6, 1e6, " M"}, {1e4, 1e3, " k"}, {0, 1, ""}}
)

// figures is "1.20 GiB/s (1.10..1.30, n=6)", as in report.md. A test compares the two.
func figures(metric results.MetricResult) string {
	step := stepFor(metric)
	return fmt.Sprintf("%s%s (%s..%s, n=%d)", step.write(metric.Median), step.suffix, step.write(metric.Min), step.write(metric.Max),
		metric.Runs)
}

// stepFor chooses the unit by the size of the median.
func stepFor(metric results.MetricResult) unitStep {
	choose := func(steps []unitStep) unitStep {
		for _, step := range steps {
			if float64(metric.Median) >= step.from {
				return step
			}
		}
		return steps[len(steps)-1]
	}
	switch metric.Unit {
	case results.UnitBytes:
		return choose(byteSteps)
	case results.UnitBytesPerSecond:
		step := choose(byteSteps)
		step.suffix += "/s"
		return step
	case results.UnitNanoseconds:
		return choose(timeSteps)
	case results.UnitPartsPerMillion:
		return unitStep{0, 1e4, "%"}
	case results.UnitMilli:
		return unitStep{0, 1e3, ""}
	case results.UnitPerSecond:
		step, what := choose(countSteps), " op/s"
		if strings.HasPrefix(metric.Name, "transactions") {
			what = " tx/s"
		}
		step.suffix += what
		return step
	}
	return choose(countSteps)
}

// write formats three significant digits, and undivided values as they are.
func (s unitStep) write(value int64) string {
	if s.divisor == 1 {
		return strconv.FormatInt(value, 10)
	}
	number, decimals := float64(value)/s.divisor, 2
	switch size := max(number, -number); {
	case size >= 99.95:
		decimals = 0
	case size >= 9.995:
		decimals = 1
	}
	return strconv.FormatFloat(number, 'f', decimals, 64)
}
