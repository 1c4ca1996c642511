package gate

import (
	"cmp"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// Evidence is what gates are judged by.
type Evidence struct {
	// Summary has the medians, for bounds and expressions.
	Summary []results.VariantResult
	// Runs of the experiment, for comparisons: each of their repetitions is a sample.
	Runs []results.RunResult
	// Order of the runs: only those of variants that took turns are pairs.
	Order v1alpha1.RunOrder
	// Looks is how often these gates may be judged while more runs are added; 0 and 1 are once.
	Looks int
	// Baseline is what gates compare with that say so.
	Baseline Earlier
	// Noise is by how much runs of the same thing differ.
	Noise Noise
	// History judges a metric of a variant by the experiments before this one.
	History func(variant, phase, metric string, tolerance float64) Trend
}

// Refusal says in a word and in a sentence why a document is not used.
type Refusal struct {
	Reason, Message string
	// Invalid says that it must not be used, rather than that it is not there.
	Invalid bool
}

// opinion is that of a gate that needs the document.
func (r Refusal) opinion() opinion {
	verdict := v1alpha1.VerdictInconclusive
	if r.Invalid {
		verdict = v1alpha1.VerdictInvalid
	}
	return opinion{verdict: verdict, reason: r.Reason, text: r.Message}
}

// Earlier are the numbers of an earlier experiment.
type Earlier struct {
	// Refused says why they cannot be compared with.
	Refused *Refusal
	// Values of the repetitions.
	Values func(variant, phase, metric string) Stored
}

// Stored are values of an earlier experiment; none if that was not measured.
type Stored struct {
	Values []int64
	Unit   string
	// Unlike says, if it is not empty, why they mean something else.
	Unlike string
}

// Noise is a measured calibration.
type Noise struct {
	// Refused says why it cannot be used.
	Refused *Refusal
	// Floor of a metric as a logarithm, ln(b/a) of equal things. False if that was not measured.
	Floor func(phase, metric string) (floor float64, known bool)
}

// Trend is what earlier experiments say of a metric.
type Trend struct {
	Verdict      v1alpha1.Verdict
	Reason, Text string
}

func (e *Evidence) measured() measurements { return measurements{e.Summary} }

// sample is the value of a metric in one repetition.
type sample struct {
	repetition int32
	value      int64
}

// samples are the values of a metric in the valid runs of a variant, by repetition. kept is the name of a run that went on with the
// pool of another, if there is one.
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

func phaseMetric(run results.RunResult, of reference) (int64, bool) {
	for _, phase := range run.Phases {
		if phase.Name == of.phase && phase.Outcome == results.OutcomeValid {
			value, measured := phase.Metrics[of.metric]
			return value, measured
		}
	}
	return 0, false
}

// pairs are the values of the repetitions that both have.
func pairs(before, now []sample) (a, b []float64) {
	byRepetition := map[int32]int64{}
	for _, one := range before {
		byRepetition[one.repetition] = one.value
	}
	for _, one := range now {
		if value, both := byRepetition[one.repetition]; both {
			a, b = append(a, float64(value)), append(b, float64(one.value))
		}
	}
	return a, b
}

func values(all []sample) []float64 {
	list := make([]float64, 0, len(all))
	for _, one := range all {
		list = append(list, float64(one.value))
	}
	return list
}
