package gate

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// limit is the min or max of a bound, exact, in the unit of its metric.
type limit struct {
	value *big.Rat
	// text is the bound as written, and its value if it was written in another unit.
	text string
}

// measure is a way to write bounds: the units of one kind, each with its size in the metric's own unit.
type measure struct {
	// of is the unit of the metrics.
	of string
	// what names the kind, and example is a bound of this kind.
	what, example string
	units         map[string]int64
}

// measures has one for each unit of metrics. TestEveryUnitHasAMeasure compares them with the metrics.
var measures = []measure{
	{results.UnitNanoseconds, "a duration", "10ms", map[string]int64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9,
		"h": 3600e9}},
	{results.UnitBytes, "an amount of data", "1.5GB or 1GiB", sizes("B")},
	{results.UnitBytesPerSecond, "a data rate", "200MB/s or 200MiB/s", sizes("B/s")},
	{results.UnitPerSecond, "a rate", "500/s or 5k/s", rates()},
	{results.UnitPartsPerMillion, "a share", "1.5% or 3x", map[string]int64{"%": 1e4, "x": 1e6}},
	{results.UnitMilli, "a ratio", "1.5x or 150%", map[string]int64{"%": 10, "x": 1e3}},
	{results.UnitCount, "a count", "5000 or 5k", nil},
}

func sizes(unit string) map[string]int64 {
	all := map[string]int64{unit: 1}
	for i, prefix := range []string{"k", "M", "G", "T"} {
		decimal := int64(1)
		for range i + 1 {
			decimal *= 1000
		}
		all[prefix+unit], all[strings.ToUpper(prefix)+"i"+unit] = decimal, 1<<(10*(i+1))
	}
	return all
}

func rates() map[string]int64 {
	all := map[string]int64{}
	for _, of := range []string{"/s", "op/s", "tx/s"} {
		all[of], all["k"+of], all["M"+of], all["G"+of] = 1, 1e3, 1e6, 1e9
	}
	return all
}

func measureOf(unit string) measure {
	at := slices.IndexFunc(measures, func(m measure) bool { return m.of == unit })
	return measures[at]
}

// parseLimit reads a bound on a metric: a number in the metric's own unit, or one with a unit that fits. It returns nil without a bound.
func parseLimit(bound v1alpha1.Bound, metric results.Metric) (*limit, error) {
	if bound == "" {
		return nil, nil
	}
	text := string(bound)
	own := measureOf(metric.Unit)
	if quantity, err := resource.ParseQuantity(text); err == nil {
		if last := text[len(text)-1:]; strings.Contains("num", last) { // m is a thousandth, not a million or a minute
			return nil, fmt.Errorf("%q is a fraction of a %s, because of its suffix %s: write one such as %s", text, metric.Unit, last, own.example)
		}
		value, _ := new(big.Rat).SetString(quantity.AsDec().String())
		if value.Sign() < 0 {
			return nil, fmt.Errorf("%q is negative, and no metric is: write one such as %s", text, own.example)
		}
		if meant := own.meant(value); meant != "" {
			return nil, fmt.Errorf("%q is in %s: %s", text, metric.Unit, meant)
		}
		return &limit{value, text}, nil
	}
	rest := strings.TrimLeft(text, "0123456789.")
	unit := strings.ReplaceAll(rest, " ", "")
	value, known := new(big.Rat).SetString(strings.TrimSuffix(text, rest))
	if !known || kindOfUnit(unit) == "" {
		return nil, fmt.Errorf("%q is not a number with a unit: write one such as %s", text, own.example)
	}
	factor, fits := own.units[unit]
	if !fits {
		return nil, fmt.Errorf("%q is %s, but %s is in %s: write one such as %s", text, kindOfUnit(unit), metric.Name, metric.Unit, own.example)
	}
	value.Mul(value, new(big.Rat).SetInt64(factor))
	if factor != 1 {
		text += fmt.Sprintf(" (%s)", decimal(value))
	}
	return &limit{value, text}, nil
}

// smallest are the units in which a small number without a unit was probably meant, each with the number from which on it is plausible in
// the metric's own unit, and how to write it in that unit nevertheless.
var smallest = map[string]struct {
	below     int64
	unit, own string
}{
	results.UnitPartsPerMillion: {100, "%", "%"},
	results.UnitMilli:           {10, "x", "x"},
	results.UnitNanoseconds:     {1000, "ms", "ns"},
	results.UnitBytes:           {1000, "MB", "B"},
	results.UnitBytesPerSecond:  {1000, "MB/s", "B/s"},
}

// meant says what to write instead of a number without a unit, if it is so small that the unit was probably forgotten. Otherwise it returns
// an empty text. 0 needs no unit.
func (m measure) meant(value *big.Rat) string {
	number, unit := m.forgotten(value)
	if number == nil {
		return ""
	}
	own := smallest[m.of].own
	as := new(big.Rat).Quo(value, new(big.Rat).SetInt64(m.units[own]))
	return fmt.Sprintf("write %s%s, or %s%s if that is meant", decimal(number), unit, decimal(as), own)
}

// forgotten returns the number with the unit that was probably meant by a small number without a unit. The number is nil if it is plausible
// as it is.
func (m measure) forgotten(value *big.Rat) (number *big.Rat, unit string) {
	small, has := smallest[m.of]
	if !has || value.Sign() <= 0 || value.Cmp(big.NewRat(small.below, 1)) >= 0 {
		return nil, ""
	}
	if small.unit == "%" && value.Cmp(big.NewRat(1, 1)) <= 0 { // a part of 1
		return new(big.Rat).Mul(value, big.NewRat(100, 1)), small.unit
	}
	return value, small.unit
}

// kindOfUnit says what a unit measures. It returns an empty text for an unknown unit.
func kindOfUnit(unit string) string {
	for _, m := range measures {
		if _, is := m.units[unit]; is {
			return m.what
		}
	}
	return ""
}

// decimal is a number without needless zeros.
func decimal(value *big.Rat) string {
	if value.IsInt() {
		return value.Num().String()
	}
	return strings.TrimRight(value.FloatString(9), "0")
}

// below reports whether a value is smaller than the limit. It returns false if there is no limit.
func (l *limit) below(value *big.Rat) bool { return l != nil && l.value.Cmp(value) > 0 }

// above reports whether a value is larger than the limit. It returns false if there is no limit.
func (l *limit) above(value *big.Rat) bool { return l != nil && l.value.Cmp(value) < 0 }

// whole is the limit as a whole number that means the same for whole numbers: rounded up for a minimum, down for a maximum. It is nil if
// there is no limit, or if it is beyond the values that a metric can have.
func (l *limit) whole(up bool) *int64 {
	if l == nil {
		return nil
	}
	value, rest := new(big.Int).DivMod(l.value.Num(), l.value.Denom(), new(big.Int))
	if up && rest.Sign() > 0 {
		value.Add(value, big.NewInt(1))
	}
	if !value.IsInt64() {
		return nil
	}
	return new(value.Int64())
}

// limits holds a min and a max, and one of them may be nil.
type limits struct{ min, max *limit }

// mistakes says what is wrong with the limits of a kind of gate.
func (l limits) mistakes(kind string, neither bool) []string {
	switch {
	case neither:
		return []string{kind + " has neither min nor max: set at least one"}
	case l.min != nil && l.max != nil && l.min.value.Cmp(l.max.value) > 0:
		return []string{fmt.Sprintf("%s.min %s is larger than %s.max %s, so nothing could pass: swap them", kind, l.min.text, kind, l.max.text)}
	}
	return nil
}

// decide compares both ends of the interval of a median with the limits.
func (l limits) decide(low, high *big.Rat) (verdict v1alpha1.Verdict, reason, words string) {
	switch {
	case l.min.below(high):
		return v1alpha1.VerdictFailed, ReasonBelowMinimum, "below the minimum of " + l.min.text
	case l.max.above(low):
		return v1alpha1.VerdictFailed, ReasonAboveMaximum, "above the maximum of " + l.max.text
	case l.min.below(low):
		return v1alpha1.VerdictInconclusive, ReasonUnclear, fmt.Sprintf("it may be on either side of the minimum of %s: add repetitions",
			l.min.text)
	case l.max.above(high):
		return v1alpha1.VerdictInconclusive, ReasonUnclear, fmt.Sprintf("it may be on either side of the maximum of %s: add repetitions",
			l.max.text)
	case l.min != nil && l.max != nil:
		return v1alpha1.VerdictPassed, ReasonHolds, fmt.Sprintf("between %s and %s", l.min.text, l.max.text)
	case l.min != nil:
		return v1alpha1.VerdictPassed, ReasonHolds, "at least " + l.min.text
	default:
		return v1alpha1.VerdictPassed, ReasonHolds, "at most " + l.max.text
	}
}
