package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Outcome is what a judgement says.
type Outcome string

// The values of Outcome.
const (
	// Worse: the figure has changed for the worse, by more than is tolerated, a short while ago.
	Worse Outcome = "Worse"
	// Better: it has changed for the better.
	Better Outcome = "Better"
	// Unchanged: there are enough experiments, and no recent change beyond the tolerance.
	Unchanged Outcome = "Unchanged"
	// TooFew: nothing can be said yet. That is never good.
	TooFew Outcome = "TooFew"
)

// RecentPoints is for how many experiments a change is news. After them the new level is what is normal: a gate would otherwise fail
// for ever.
const RecentPoints = 10

// Judgement is what the history says about one figure of the newest experiment.
type Judgement struct {
	Outcome Outcome
	// Sentence says why, with the figures.
	Sentence string
	// The recent change, if there is one: its levels, To/From - 1, the first experiment after it and what else had changed.
	From, To, Share float64
	Since           time.Time
	Experiment      string
	Causes          []string
}

// Judge says whether a figure has changed lately, with the newest experiment as the last value. A change of at most the tolerance, a
// share such as 0.05, is none. A change shows from the third experiment after it on.
func Judge(series *Series, current Point, path Path, tolerance float64, seed uint64) (Judgement, error) {
	with := &Series{Points: append([]Point(nil), series.Points...)}
	with.Append(current)
	points, values := with.values(path)
	if n := len(points); n == 0 || points[n-1].Experiment != current.Experiment {
		return Judgement{Outcome: TooFew, Sentence: fmt.Sprintf("%s was not measured in this experiment", path)}, nil
	}
	if len(values) < LeastPoints {
		return Judgement{Outcome: TooFew,
			Sentence: fmt.Sprintf("%s has %d experiments with this one, and a change can be told from %d on: let it run %d more",
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

// judge takes the recent changes together: what went down and came up again has not changed, and a small step does not hide a large one
// right before it. The largest of them says since when, and beside what.
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
		verdict.Sentence = "changed, for neither better nor worse: " + whole.String()
	}
	return verdict
}
