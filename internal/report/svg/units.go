package svg

import (
	"math"
	"strconv"
)

// Unit says how the values of an axis are written, and which of them are round numbers.
type Unit struct {
	steps []unitStep
	// binary: round numbers are powers of two times the step.
	binary bool
	// least is the smallest difference between two ticks; 0 if any will do.
	least float64
}

type unitStep struct {
	size   float64
	suffix string
}

// The units of axes. The first word of each comment is the unit of the values.
var (
	// Bytes, written as KiB, MiB and so on.
	Bytes = Unit{steps: binarySteps(""), binary: true}
	// BytesPerSecond is the same for rates.
	BytesPerSecond = Unit{steps: binarySteps("/s"), binary: true}
	// Nanoseconds, written as µs, ms or s.
	Nanoseconds = Unit{steps: []unitStep{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}}}
	// Seconds of a duration.
	Seconds = Unit{steps: []unitStep{{1, " s"}}}
	// Numbers, with k, M and G for large ones.
	Numbers = Unit{steps: []unitStep{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}, {1, ""}}}
	// PartsPerMillion, written as percent.
	PartsPerMillion = Unit{steps: []unitStep{{1e4, "%"}}}
	// Milli are thousandths, written as the whole.
	Milli = Unit{steps: []unitStep{{1e3, ""}}}
	// Whole numbers, such as positions: no tick lies between two of them.
	Whole = Unit{steps: []unitStep{{1, ""}}, least: 1}
)

func binarySteps(per string) []unitStep {
	return []unitStep{{1 << 40, " TiB" + per}, {1 << 30, " GiB" + per}, {1 << 20, " MiB" + per}, {1 << 10, " KiB" + per}, {1, " B" + per}}
}

// step is the unit in which a value of this magnitude is written.
func (u Unit) step(magnitude float64) unitStep {
	for _, step := range u.steps {
		if math.Abs(magnitude) >= step.size {
			return step
		}
	}
	if len(u.steps) == 0 {
		return unitStep{size: 1}
	}
	return u.steps[len(u.steps)-1]
}

// Format writes a value with three significant digits.
func (u Unit) Format(value float64) string {
	step := u.step(value)
	return number(value/step.size) + step.suffix
}

// number formats a value with three significant digits, without trailing zeros.
func number(value float64) string {
	if value == 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	if digits < 0 {
		return strconv.FormatFloat(math.Round(value), 'f', -1, 64)
	}
	scale := math.Pow(10, float64(digits))
	return strconv.FormatFloat(math.Round(value*scale)/scale, 'f', -1, 64)
}

// tick is a marked value of an axis.
type tick struct {
	value float64
	words string
}

// ticks returns about most round values from low to high. All have the suffix of the largest.
func (u Unit) ticks(low, high float64, most int) []tick {
	step := u.step(math.Max(math.Abs(low), math.Abs(high)))
	between := u.between((high-low)/float64(most), step)
	var found []tick
	for i := math.Ceil(low/between - 1e-9); i*between <= high+between*1e-9 && len(found) <= 2*most; i++ {
		found = append(found, tick{i * between, exact(i*between/step.size, between/step.size) + step.suffix})
	}
	return found
}

// between returns the smallest round distance between ticks that is at least as large as wanted.
func (u Unit) between(wanted float64, step unitStep) float64 {
	wanted = math.Max(wanted/step.size, 1e-12)
	base := math.Pow(10, math.Floor(math.Log10(wanted)))
	factors := []float64{1, 2, 5, 10}
	if u.binary && wanted > 10 { // 64, 128 and 256 KiB are round numbers, 250 KiB is not
		base, factors = math.Pow(2, math.Floor(math.Log2(wanted))), []float64{1, 2}
	}
	for _, factor := range factors {
		if base*factor >= wanted*(1-1e-9) {
			return math.Max(base*factor*step.size, u.least)
		}
	}
	return math.Max(base*10*step.size, u.least)
}

// exact writes a value with the decimals that the distance of the ticks needs.
func exact(value, between float64) string {
	decimals := max(0, -int(math.Floor(math.Log10(between)+1e-9)))
	if value == 0 {
		value = 0 // never -0
	}
	return strconv.FormatFloat(value, 'f', decimals, 64)
}

// logTicks returns powers of ten, with their multiples by 2 and 5 if there is room. For binary units, it returns powers of two.
func (u Unit) logTicks(low, high float64, most int) []tick {
	if u.binary {
		return u.powers(low, high, 2, most, []float64{1})
	}
	if math.Log10(high/low)*3 <= float64(most) {
		return u.powers(low, high, 10, most, []float64{1, 2, 5})
	}
	return u.powers(low, high, 10, most, []float64{1})
}

func (u Unit) powers(low, high, base float64, most int, factors []float64) []tick {
	first, last := math.Floor(math.Log(low)/math.Log(base)+1e-9), math.Ceil(math.Log(high)/math.Log(base)-1e-9)
	every := math.Max(1, math.Ceil((last-first)/float64(most)))
	var found []tick
	for power := first; power <= last; power += every {
		for _, factor := range factors {
			if value := math.Pow(base, power) * factor; value >= low*(1-1e-9) && value <= high*(1+1e-9) {
				found = append(found, tick{value, u.Format(value)})
			}
		}
	}
	return found
}
