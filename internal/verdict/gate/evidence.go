package gate

import (
	"cmp"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// Evidence is the input for judging gates.
type Evidence struct {
	// Summary has the medians, for bounds and expressions.
	Summary []results.VariantResult
	// Runs of the experiment, for comparisons: each of their repetitions is a sample.
	Runs []results.RunResult
	// Order of the runs: only interleaved variants form pairs.
	Order v1alpha1.RunOrder
	// Share is the share of the levels that this look at the runs may use. 0 and 1 mean all: there is no other look.
	Share float64
	// Baseline for gates that compare with it.
	Baseline Earlier
	// Noise is the difference between equal runs.
	Noise Noise
	// History has the values of a metric in the earlier experiments.
	History historyOf
}

// Refusal is the reason and message why a document is not used.
type Refusal struct {
	Reason, Message string
	// Invalid is true if the document must not be used, and false if it is missing.
	Invalid bool
}

// opinion is the opinion of a gate that needs the document.
func (r Refusal) opinion() opinion {
	verdict := v1alpha1.VerdictInconclusive
	if r.Invalid {
		verdict = v1alpha1.VerdictInvalid
	}
	return opinion{verdict: verdict, reason: r.Reason, text: r.Message}
}

// Earlier holds the values of earlier experiments.
type Earlier struct {
	// Refused says why they are not comparable.
	Refused *Refusal
	// Values of the repetitions.
	Values func(variant, phase, metric string) Stored
}

// Stored holds the values of each earlier experiment that has any. Values is empty if no experiment has measured them.
type Stored struct {
	Values [][]int64
	Unit   string
	// Unlike, if not empty, says why they are not comparable.
	Unlike string
}

// Noise is a measured calibration.
type Noise struct {
	// Refused says why it cannot be used.
	Refused *Refusal
	// Floor returns the noise floor of a metric as a logarithm, ln(b/a) of equal runs. known is false if it was not measured.
	Floor func(phase, metric string) (floor float64, known bool)
	// Days returns the variation of a metric of a variant between experiments that are not in the baseline. It is nil if not known.
	Days func(variant, phase, metric string) stats.Days
}

func (e *Evidence) measured() measurements { return measurements{e} }

// sample is the value of a metric in one repetition.
type sample struct {
	repetition int32
	value      int64
}

// samples are the values of a metric in the valid runs of a variant, by repetition. kept is the name of a run that reused the pool of
// another run, if there is one.
func (e *Evidence) samples(of reference) (found []sample, kept string) {
	for _, run := range results.Repetitions(e.Runs) {
		if run.Variant != of.variant || !run.Valid {
			continue
		}
		if value, measured := phaseMetric(run, of); measured {
			found = append(found, sample{run.Repetition, value})
		}
	}
	slices.SortStableFunc(found, func(a, b sample) int { return cmp.Compare(a.repetition, b.repetition) })
	// Two attempts at one repetition are one sample.
	found = slices.CompactFunc(found, func(a, b sample) bool { return a.repetition == b.repetition })
	for _, run := range e.Runs {
		if run.Variant == of.variant && run.KeptFrom != "" && kept == "" {
			kept = run.Name
		}
	}
	return found, kept
}

// age is the age of the pool of a variant. It is nil if experiments do not pass the pool on.
func (e *Evidence) age(variant string) *results.PoolAge {
	var own []results.RunResult
	for _, run := range e.Runs {
		if run.Variant == variant {
			own = append(own, run)
		}
	}
	return results.AgeOf(own)
}

func phaseMetric(run results.RunResult, of reference) (int64, bool) {
	for _, phase := range run.Phases {
		if phase.Name == of.phase && phase.Outcome == results.OutcomeValid {
			value, measured := phase.Metrics[of.metric]
			return value, measured
		}
	}
	return 0, false
}

// pairs returns the values of the repetitions that both samples have.
func pairs(before, now []sample) (a, b []float64, repetitions []int32) {
	byRepetition := map[int32]int64{}
	for _, one := range before {
		byRepetition[one.repetition] = one.value
	}
	for _, one := range now {
		if value, both := byRepetition[one.repetition]; both {
			a, b, repetitions = append(a, float64(value)), append(b, float64(one.value)), append(repetitions, one.repetition)
		}
	}
	return a, b, repetitions
}

func values(all []sample) []float64 {
	list := make([]float64, 0, len(all))
	for _, one := range all {
		list = append(list, float64(one.value))
	}
	return list
}
