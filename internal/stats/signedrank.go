package stats

import (
	"errors"
	"fmt"
	"math"
)

// SignedRankTest is what SignedRank says.
type SignedRankTest struct {
	Pairs int
	Delta float64
	Tails
}

// SignedRank is Wilcoxon's test of paired shifts: whether their middle lies below or above delta. It is the test that the interval
// of PairedShift inverts: a shift is rejected on a side exactly if it lies outside of that interval. Few wild values move it little,
// because each counts by its rank. The statistic is the number of Walsh averages beyond delta; those of exactly delta count against
// both sides, which keeps ties on the safe side.
func SignedRank(shifts []float64, delta float64) (SignedRankTest, error) {
	if err := check(shifts, 1); err != nil {
		return SignedRankTest{}, err
	}
	n := len(shifts)
	if !finite(delta) {
		return SignedRankTest{}, fmt.Errorf("a delta of %g", delta)
	}
	if n > maxAverages/n {
		return SignedRankTest{}, errors.New("the pairs have too many averages")
	}
	notBelow, notAbove := 0, 0
	for i, a := range shifts {
		for _, b := range shifts[i:] {
			average := (a + b) / 2
			slack := closeness * (math.Abs(a) + math.Abs(b) + math.Abs(delta))
			if average >= delta-slack {
				notBelow++
			}
			if average <= delta+slack {
				notAbove++
			}
		}
	}
	below := signedRanksBelow(n)
	return SignedRankTest{n, delta, tails(below[notBelow], below[notAbove], below[0])}, nil
}
