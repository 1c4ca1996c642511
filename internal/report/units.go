package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// scale converts a number to a readable one: divided, with a suffix.
type scale struct {
	divisor float64
	suffix  string
}

type step struct {
	from    float64
	divisor float64
	suffix  string
}

var (
	binarySteps = []step{{1 << 40, 1 << 40, " TiB"}, {1 << 30, 1 << 30, " GiB"}, {1 << 20, 1 << 20, " MiB"}, {1 << 10, 1 << 10, " KiB"},
		{0, 1, " B"}}
	timeSteps  = []step{{1e9, 1e9, " s"}, {1e6, 1e6, " ms"}, {1e3, 1e3, " µs"}, {0, 1, " ns"}}
	countSteps = []step{{1e9, 1e9, " G"}, {1e6, 1e6, " M"}, {1e4, 1e3, " k"}, {0, 1, ""}}
)

// scaleFor chooses the scale for a metric by one of its values.
func scaleFor(metric results.MetricResult) scale {
	value := float64(metric.Median)
	switch metric.Unit {
	case results.UnitBytes:
		return choose(binarySteps, value, "")
	case results.UnitBytesPerSecond:
		return choose(binarySteps, value, "/s")
	case results.UnitNanoseconds:
		return choose(timeSteps, value, "")
	case results.UnitPartsPerMillion:
		return scale{1e4, "%"}
	case results.UnitMilli:
		return scale{1e3, ""}
	case results.UnitPerSecond:
		return perSecond(metric.Name, value)
	}
	return choose(countSteps, value, "")
}

func perSecond(name string, value float64) scale {
	chosen := choose(countSteps, value, "")
	if chosen.suffix == "" {
		chosen.suffix = " "
	} else {
		chosen.suffix += " "
	}
	if strings.HasPrefix(name, "transactions") {
		chosen.suffix += "tx/s"
	} else {
		chosen.suffix += "op/s"
	}
	return chosen
}

func choose(steps []step, value float64, per string) scale {
	for _, s := range steps {
		if value >= s.from {
			return scale{s.divisor, s.suffix + per}
		}
	}
	last := steps[len(steps)-1]
	return scale{last.divisor, last.suffix + per}
}

// format formats about three significant digits.
func (s scale) format(value int64) string {
	number := float64(value) / s.divisor
	if s.divisor == 1 {
		return strconv.FormatInt(value, 10)
	}
	return threeDigits(number)
}

// threeDigits formats a number with three significant digits, or two if it is below 0.1, so that a small figure is never shown as 0.00.
func threeDigits(number float64) string {
	magnitude, decimals := math.Abs(number), 2
	switch {
	case magnitude >= 99.95:
		decimals = 0
	case magnitude >= 9.995:
		decimals = 1
	case magnitude >= 0.0995 || magnitude == 0:
	case magnitude < 1e-6:
		return strconv.FormatFloat(number, 'g', 2, 64)
	default:
		decimals = 1 - int(math.Floor(math.Log10(magnitude)))
	}
	return strconv.FormatFloat(number, 'f', decimals, 64)
}

// Amount is one value with its unit: "1.20 GiB/s".
func Amount(name, unit string, value int64) string {
	s := scaleFor(results.MetricResult{Name: name, Unit: unit, Median: value})
	return s.format(value) + s.suffix
}

// Bytes is a size: "1.20 GiB".
func Bytes(bytes int64) string { return Amount("", results.UnitBytes, bytes) }

// Figures is "1.20 GiB/s (1.10..1.30, n=6)". The median chooses the unit.
func Figures(metric results.MetricResult) string {
	s := scaleFor(metric)
	return s.format(metric.Median) + s.suffix + " (" + s.format(metric.Min) + ".." + s.format(metric.Max) + ", n=" +
		strconv.Itoa(int(metric.Runs)) + ")"
}

// ratio formats the ratio of a median to the median of the first variant.
func ratio(median, base int64) string {
	if base <= 0 {
		return "-"
	}
	return "×" + threeDigits(float64(median)/float64(base))
}
