package stats

import (
	"math"
	"slices"
)

// noiseShare is the share of the shifts between equal things that the noise floor should cover.
const noiseShare = 0.95

// ConsecutiveShifts returns ln(second/first) of runs of the same thing, for the first and the second, the third and the fourth, and so on:
// no run counts twice, and a slow drift counts little. The last of an odd number of runs has no partner and is left out.
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

// Noise says how much equal things seem to differ.
type Noise struct {
	// Floor is the absolute shift that is seldom exceeded.
	Floor float64
	// Shifts is the number of shifts that Floor was taken from.
	Shifts int
	// Coverage is the chance that one more shift between equal things stays within Floor. Known is true if it is at least 95%.
	Coverage float64
	Known    bool
}

// NoiseFloor is the 95th percentile of the absolute shifts of A/A pairs: of n shifts, the one with rank k = ceil(0.95 (n+1)). One more
// shift is equally likely to fall before all of them, between any two, or after all, so it stays within the floor with a chance of k/(n+1),
// whatever their distribution. With fewer than 19 shifts there is no such rank, and the floor is the largest shift: then Known is false,
// and Coverage says how much less than 95% it covers.
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
