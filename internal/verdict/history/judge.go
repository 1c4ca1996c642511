package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Outcome is the result of a judgement.
type Outcome string

// The values of Outcome.
const (
	// Worse: the metric has changed for the worse recently, by more than the tolerance.
	Worse Outcome = "Worse"
	// Better: it has changed for the better.
	Better Outcome = "Better"
	// Unchanged: there are enough experiments, and no recent change beyond the tolerance.
	Unchanged Outcome = "Unchanged"
	// TooFew: there are too few experiments. That is never good.
	TooFew Outcome = "TooFew"
)

// RecentPoints is for how many experiments a change is recent. After them the new level is normal: otherwise a gate would fail
// forever.
const RecentPoints = 10

// Judgement is the history's judgement of one metric of the newest experiment.
type Judgement struct {
	Outcome Outcome
	// Sentence explains it, with values.
	Sentence string
	// The recent change, if there is one: its levels, To/From - 1, the first experiment after it and what else changed.
	From, To, Share float64
	Since           time.Time
	Experiment      string
	Causes          []string
}

// Judge says whether a metric has changed recently, with the newest experiment as the last value. A change of at most the
// tolerance, such as 0.05, does not count. A change is visible from the third experiment after it.
func Judge(series *Series, current Point, path Path, tolerance float64, seed uint64) (Judgement, error) {
	with := &Series{Points: append([]Point(nil), series.Points...)}
	with.Append(current)
	points, values := with.values(path)
	if n := len(points); n == 0 || points[n-1].Experiment != current.Experiment {
		return Judgement{Outcome: TooFew, Sentence: fmt.Sprintf("%s was not measured in this experiment", path)}, nil
	}
	if len(values) < LeastPoints {
		return Judgement{Outcome: TooFew,
			Sentence: fmt.Sprintf("%s has %d experiments including this one, but a change is detectable from %d on: run %d more",
				path, len(values), LeastPoints, LeastPoints-len(values))}, nil
	}
	changes, err := changesOf(with, path, seed)
	if err != nil {
		return Judgement{}, err
	}
	if len(changes) == 0 {
		return Judgement{Outcome: Unchanged, Sentence: fmt.Sprintf("%s has not changed in %d experiments", path, len(values))}, nil
	}
	if lately := changes[len(changes)-1]; lately.Ago > RecentPoints {
		return Judgement{Outcome: Unchanged, Sentence: fmt.Sprintf("no change in the last %d experiments; the last one before: %s", RecentPoints,
			lately)}, nil
	}
	return judge(changes, tolerance), nil
}

// judge combines the recent changes: a value that went down and up again has not changed, and a small step does not hide a large
// one right before it. The largest determines the time and the cause.
func judge(changes []Change, tolerance float64) Judgement {
	recent := slices.DeleteFunc(slices.Clone(changes), func(change Change) bool { return change.Ago > RecentPoints })
	whole := slices.MaxFunc(recent, func(a, b Change) int { return cmp.Compare(math.Abs(a.Share), math.Abs(b.Share)) })
	whole.level(recent[0].From, recent[len(recent)-1].To)
	verdict := Judgement{Outcome: Unchanged, Sentence: whole.String(), From: whole.From, To: whole.To, Share: whole.Share,
		Since: whole.Since, Experiment: whole.Experiment, Causes: whole.Causes}
	switch {
	case math.Abs(whole.Share) <= tolerance:
		verdict.Sentence = fmt.Sprintf("within the tolerance of %.4g%%: %s", 100*tolerance, whole)
	case whole.Worse:
		verdict.Outcome = Worse
	case whole.Better:
		verdict.Outcome = Better
	default:
		verdict.Sentence = "changed, but is neither better nor worse: " + whole.String()
	}
	return verdict
}
