package gate

import (
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// NewestExperiments is the number of newest experiments of a history that are judged together.
	NewestExperiments = 3
	// leastReference and mostReference limit the size of the reference of a history, which is its first experiments. Fewer cannot show how
	// much neighbouring experiments depend on each other. A fixed reference also shows a slow decline, which a comparison with the night
	// before would hide.
	leastReference, mostReference = 10, 30
)

// LeastHistory is the least number of experiments, including the newest ones, with which a history is judged.
const LeastHistory = leastReference + NewestExperiments

// Trend holds the values of a metric in the earlier experiments and in this one, which is the last.
type Trend struct {
	// Refused says why there are no values.
	Refused *Refusal
	Values  []float64
	// Change describes the last change for the worse, and what changed in the environment. It returns an empty text if there is none.
	Change func() string
}

// historyOf returns the values of a metric since a time.
type historyOf func(variant, phase, metric string, since time.Time) Trend

func (c compareRule) history(evidence *Evidence, variant string) (*comparison, *opinion) {
	inconclusive := func(reason, text string) *opinion {
		return &opinion{verdict: v1alpha1.VerdictInconclusive, reason: reason, text: text}
	}
	if evidence.History == nil {
		return nil, inconclusive(ReasonNoData, "no data: there are no earlier experiments of this benchmark")
	}
	since := c.since
	if age := evidence.age(variant); c.acceptAgeing && age != nil && age.Since.After(since) {
		since = age.Since // the age of an earlier pool is not that of this one
	}
	trend := evidence.History(variant, c.of.phase, c.of.metric, since)
	if trend.Refused != nil {
		return nil, new(trend.Refused.opinion())
	}
	n := len(trend.Values)
	if n < LeastHistory {
		return nil, inconclusive(ReasonTooFewExperiments, fmt.Sprintf(
			"%s has %s of its present definition, including this one, but the history is judged from %d on: run %d more", c.of,
			spelling.Count(n, "experiment"), LeastHistory, LeastHistory-n))
	}
	reference := min(n-NewestExperiments, mostReference)
	one := &comparison{better: c.metric.Better, before: trend.Values[:reference], now: trend.Values[n-NewestExperiments:],
		than: "in the first experiments"}
	logarithms, err := one.logarithmsOf(trend.Values, trend.Values[0])
	var found stats.Trend
	if err == nil {
		found, err = stats.LevelTrend(logarithms, reference, NewestExperiments)
	}
	if err != nil {
		return nil, inconclusive(ReasonNoRatio, fmt.Sprintf("%s cannot be compared as a share: %v: use a bound or an expression", c.of, err))
	}
	one.ofDays = &dayTest{test: found.LevelTest, before: reference, now: NewestExperiments, trend: &found, change: trend.Change}
	return one, nil
}
