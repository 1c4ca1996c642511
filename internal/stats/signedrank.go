package stats

// SignedRankTest is what SignedRank says.
type SignedRankTest struct {
	Pairs int
	Delta float64
	Tails
}

// SignedRank is Wilcoxon's test of paired shifts: whether their middle lies below or above delta. It is the test that the interval
// of PairedShift inverts. Few wild values move it little, because each counts by its rank.
func SignedRank(shifts []float64, delta float64) (SignedRankTest, error) {
	ranked, err := NewPaired(shifts, nil)
	if err != nil {
		return SignedRankTest{}, err
	}
	found, err := ranked.Test(delta)
	return SignedRankTest{len(shifts), delta, found}, err
}
