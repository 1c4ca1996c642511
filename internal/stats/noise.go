package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// noiseShare is which share of the shifts between equal things the noise floor should cover.
const noiseShare = 0.95

// CoefficientOfVariation is the deviation as a share of the mean: sqrt(sum of (x/mean - 1)^2 / (n-1)). Without a mean above 0
// it has no meaning.
func CoefficientOfVariation(values []float64) (float64, error) {
	if err := check(values, 2); err != nil {
		return 0, err
	}
	mean := mean(values)
	if !(mean > 0) {
		return 0, fmt.Errorf("a mean of %g: a share of it needs one above 0", mean)
	}
	var squares float64
	for _, value := range values {
		squares += (value/mean - 1) * (value/mean - 1)
	}
	if math.IsInf(squares, 0) {
		return 0, errors.New("the values cancel each other out")
	}
	return math.Sqrt(squares / float64(len(values)-1)), nil
}

// ConsecutiveShifts are ln(second/first) of runs of the same thing, the first with the second, the third with the fourth: no run
// counts twice, and a slow drift counts little. The last of an odd number has no partner and is left out.
func ConsecutiveShifts(runs []float64) ([]float64, error) {
	if err := check(runs, 2); err != nil {
		return nil, err
	}
	var first, second []float64
	for i := 1; i < len(runs); i += 2 {
		first, second = append(first, runs[i-1]), append(second, runs[i])
	}
	return LogRatios(first, second)
}

// Noise is by how much equal things seem to differ.
type Noise struct {
	// Floor is the absolute shift that is seldom exceeded.
	Floor float64
	// Shifts is how many it was taken from.
	Shifts int
	// Coverage is the chance that one more shift between equal things stays within Floor. Known says that it is 95%.
	Coverage float64
	Known    bool
}

// NoiseFloor is the 95th percentile of the absolute shifts of A/A pairs: of n, the one with rank k = ceil(0.95 (n+1)). One more
// shift is as likely to fall before, between or behind them, so it stays within with a chance of k/(n+1), whatever their
// distribution. With fewer than 19 that rank is beyond them, and the largest is the most that was seen: then Known is false, and
// Coverage says how much less than 95% it is.
func NoiseFloor(shifts []float64) (Noise, error) {
	if err := check(shifts, 2); err != nil {
		return Noise{}, err
	}
	sizes := make([]float64, len(shifts))
	for i, shift := range shifts {
		sizes[i] = math.Abs(shift)
	}
	slices.Sort(sizes)
	n := len(sizes)
	rank := int(math.Ceil(noiseShare*float64(n+1) - closeness))
	known := rank <= n
	rank = min(rank, n)
	return Noise{Floor: sizes[rank-1], Shifts: n, Coverage: float64(rank) / float64(n+1), Known: known}, nil
}

// String says it of shifts of logarithms.
func (n Noise) String() string {
	switch {
	case n.Shifts == 0:
		return "noise not known"
	case !n.Known:
		return fmt.Sprintf("noise of %.1f%%, the largest of %d shifts: covers %.0f%%, 19 shifts are needed for 95%%",
			100*math.Expm1(n.Floor), n.Shifts, 100*n.Coverage)
	}
	return fmt.Sprintf("noise of %.1f%%, from %d shifts: covers %.0f%%", 100*math.Expm1(n.Floor), n.Shifts, 100*n.Coverage)
}
