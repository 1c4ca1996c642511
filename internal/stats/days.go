package stats

import (
	"errors"
	"math"
)

// Day holds the logarithms of the values of one experiment.
type Day []float64

// Days is the variation of equal experiments: how much their levels differ, and how much the runs differ within each experiment.
type Days struct {
	// Levels is the variance of the level of an experiment, with LevelFreedom degrees of freedom. It contains LevelShare times Within,
	// because the level of few runs varies more.
	Levels, LevelFreedom, LevelShare float64
	// Within is the variance of a run around its level, with WithinFreedom degrees of freedom.
	Within, WithinFreedom float64
}

// VarianceOfDays measures the variation of experiments of the same thing.
func VarianceOfDays(days []Day) (Days, error) {
	levels, err := levelsOf(days)
	if err != nil {
		return Days{}, err
	}
	var found Days
	found.LevelFreedom = float64(len(levels) - 1)
	if found.LevelFreedom > 0 {
		found.Levels, found.LevelShare = squaresAround(levels)/found.LevelFreedom, shareOf(days)
	}
	var squares float64
	for _, day := range days {
		squares += squaresAround(day)
		found.WithinFreedom += float64(len(day) - 1)
	}
	if found.WithinFreedom > 0 {
		found.Within = squares / found.WithinFreedom
	}
	return found, nil
}

// Join pools two measurements of the same variation.
func (d Days) Join(other Days) Days {
	pool := func(a, freedomA, b, freedomB float64) (float64, float64) {
		if freedomA+freedomB == 0 {
			return 0, 0
		}
		return (a*freedomA + b*freedomB) / (freedomA + freedomB), freedomA + freedomB
	}
	var joined Days
	joined.Levels, joined.LevelFreedom = pool(d.Levels, d.LevelFreedom, other.Levels, other.LevelFreedom)
	joined.LevelShare, _ = pool(d.LevelShare, d.LevelFreedom, other.LevelShare, other.LevelFreedom)
	joined.Within, joined.WithinFreedom = pool(d.Within, d.WithinFreedom, other.Within, other.WithinFreedom)
	return joined
}

// CompareDays compares the level of one more experiment with those of earlier ones. Its error includes the variation between experiments: a
// day that merely differs from the day before is not a change. No number of runs in one experiment replaces a second experiment.
func CompareDays(before []Day, now Day, variation Days) (LevelTest, error) {
	earlier, err := levelsOf(before)
	if err != nil {
		return LevelTest{}, err
	}
	level, err := levelOf(now)
	if err != nil {
		return LevelTest{}, err
	}
	if !(variation.LevelFreedom > 0) {
		return LevelTest{}, errors.New("the variation between experiments needs two of them")
	}
	share := shareOf(before)
	// The variation may be known from experiments with more runs than the earlier ones have. And levels vary at least as much as their runs
	// make them vary, even if a few levels lie close together by chance.
	levels := max(variation.Levels+variation.Within*max(0, share-variation.LevelShare), variation.Within*share)
	// The level of an experiment with fewer runs than the earlier ones is known less well.
	newest := levels + variation.Within*max(0, 1/float64(len(now))-share)
	return LevelTest{Estimate: level - mean(earlier), Error: math.Sqrt(levels/float64(len(before)) + newest),
		Freedom: variation.LevelFreedom}, nil
}

// shareOf is the share of the variance within experiments that the variance of their levels contains, on average.
func shareOf(days []Day) (share float64) {
	for _, day := range days {
		share += 1 / float64(len(day))
	}
	return share / float64(len(days))
}

// levelOf is the pseudomedian of Hodges and Lehmann: an outlier moves it little.
func levelOf(day Day) (float64, error) {
	shift, err := PairedShift(day, 0.5)
	return shift.Estimate, err
}

func levelsOf(days []Day) ([]float64, error) {
	if len(days) == 0 {
		return nil, errors.New("no experiments")
	}
	levels := make([]float64, 0, len(days))
	for _, day := range days {
		level, err := levelOf(day)
		if err != nil {
			return nil, err
		}
		levels = append(levels, level)
	}
	return levels, nil
}

// squaresAround are the squared distances from the mean.
func squaresAround(values []float64) (sum float64) {
	middle := mean(values)
	for _, value := range values {
		sum += (value - middle) * (value - middle)
	}
	return sum
}
