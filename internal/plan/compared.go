package plan

import (
	"fmt"
	"math"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/gate"
	"github.com/storagebench/storagebench/internal/history"
	"github.com/storagebench/storagebench/internal/results"
)

// maxDifferences is how many differences of the environment a message lists.
const maxDifferences = 4

// Standards are the accepted documents that compare gates are judged by. Of each, one that is asked for and is not there is refused.
type Standards struct {
	Baseline           *results.Baseline
	BaselineRefused    *Refusal
	Calibration        *results.Calibration
	CalibrationRefused *Refusal
	// History of the experiments before this one; nil if there is none.
	History *history.Series
	// Digest of both: other documents make another verdict.
	Digest string
}

// Refusal says in a word and in a sentence why a document is not used.
type Refusal struct {
	Reason, Message string
	// Invalid says that it must not be used, rather than that it is not there.
	Invalid bool
}

// definitionKey is what allowDifferences calls the definition of a variant.
const definitionKey = "definition"

// Definitions are hashes of what is measured in each variant: numbers of other targets or other phases mean something else.
func Definitions(slots []Slot, pods v1alpha1.PodTemplate) map[string]string {
	definitions := map[string]string{}
	for _, slot := range slots {
		if definitions[slot.Variant] == "" {
			definitions[slot.Variant] = digest(struct {
				Target v1alpha1.Target
				Phases []v1alpha1.Phase
				Pods   v1alpha1.PodTemplate
			}{slot.Target, slot.Phases, pods})
		}
	}
	return definitions
}

// compared is what compare gates need besides the runs.
func compared(spec *v1alpha1.StorageBenchmarkSpec, standards Standards, experiment *results.Experiment) gate.Evidence {
	evidence := gate.Evidence{
		Summary: experiment.Variants, Runs: experiment.Runs, Order: spec.Order, Looks: looks(spec),
	}
	if spec.Baseline != nil {
		evidence.Baseline = baselineFor(spec.Baseline, standards, experiment)
	}
	if spec.Calibration != nil {
		evidence.Noise = noiseFor(spec.Calibration, standards, experiment)
	}
	evidence.History = historyFor(standards.History, experiment)
	return evidence
}

// historyFor judges by the experiments before this one.
func historyFor(series *history.Series, experiment *results.Experiment) func(string, string, string, float64) gate.Trend {
	complete := *experiment
	complete.State = results.StateComplete // as it will be, if its gates are worth anything
	current, usable := history.PointOf(&complete, nil)
	if series == nil {
		series = &history.Series{}
	}
	return func(variant, phase, metric string, tolerance float64) gate.Trend {
		if !usable {
			return gate.Trend{Verdict: v1alpha1.VerdictInconclusive, Reason: gate.ReasonNoData, Text: "no data: this experiment has no point in the history"}
		}
		judgement, err := history.Judge(series, current, history.Path{Variant: variant, Phase: phase, Metric: metric}, tolerance, uint64(experiment.Seed))
		if err != nil {
			return gate.Trend{Verdict: v1alpha1.VerdictInconclusive, Reason: gate.ReasonNoData, Text: err.Error()}
		}
		trend := gate.Trend{Verdict: v1alpha1.VerdictPassed, Reason: gate.ReasonHolds, Text: judgement.Sentence}
		switch judgement.Outcome {
		case history.Worse:
			trend.Verdict, trend.Reason = v1alpha1.VerdictFailed, gate.ReasonWorse
		case history.TooFew:
			trend.Verdict, trend.Reason = v1alpha1.VerdictInconclusive, gate.ReasonTooFewRuns
		case history.Better, history.Unchanged:
		default:
			trend.Verdict, trend.Reason = v1alpha1.VerdictInconclusive, gate.ReasonNoData
		}
		return trend
	}
}

func baselineFor(reference *v1alpha1.Baseline, standards Standards, experiment *results.Experiment) gate.Earlier {
	if refused := standards.BaselineRefused; refused != nil {
		return gate.Earlier{Reason: refused.Reason, Refused: refused.Message, Invalid: refused.Invalid}
	}
	baseline := standards.Baseline
	if baseline == nil {
		return gate.Earlier{Reason: gate.ReasonBaselineMissing, Refused: "the baseline was not read"}
	}
	if differences := results.Differences(baseline.Environment, experiment.Environment, reference.AllowDifferences); len(differences) > 0 {
		return gate.Earlier{Reason: gate.ReasonBaselineUnlike, Invalid: true, Refused: fmt.Sprintf(
			"the baseline in ConfigMap %s is not from like hardware and versions: %s: accept a newer one, or name what may differ in spec.baseline.allowDifferences",
			reference.ConfigMap.Name, results.DifferencesInWords(differences, maxDifferences))}
	}
	now := map[string]string{}
	for _, variant := range experiment.Variants {
		now[variant.Name] = variant.Definition
	}
	mayDiffer := results.DifferenceAllowed(definitionKey, reference.AllowDifferences)
	return gate.Earlier{Values: func(variant, phase, metric string) gate.Stored {
		stored := gate.Stored{Values: baseline.Values(variant, phase, metric)}
		if known, found := results.LookupMetric(metric); found {
			stored.Unit = known.Unit // a baseline in other units is refused when it is read
		}
		if then := baseline.Definition(variant); !mayDiffer && then != now[variant] && len(stored.Values) > 0 {
			stored.Unlike = fmt.Sprintf("variant %s is not what it was in the baseline: its target, phases or pods have changed: accept a newer one, or write %s into spec.baseline.allowDifferences",
				variant, definitionKey)
		}
		return stored
	}}
}

func noiseFor(reference *v1alpha1.Calibration, standards Standards, experiment *results.Experiment) gate.Noise {
	if refused := standards.CalibrationRefused; refused != nil {
		return gate.Noise{Reason: refused.Reason, Refused: refused.Message, Invalid: refused.Invalid}
	}
	calibration := standards.Calibration
	if calibration == nil {
		return gate.Noise{Reason: gate.ReasonCalibrationMissing, Refused: "the calibration was not read"}
	}
	if differences := results.Differences(calibration.Environment, experiment.Environment, reference.AllowDifferences); len(differences) > 0 {
		return gate.Noise{Reason: gate.ReasonCalibrationUnlike, Invalid: true, Refused: fmt.Sprintf(
			"the calibration in ConfigMap %s is not from like hardware and versions: %s: accept a newer one, or name what may differ in spec.calibration.allowDifferences",
			reference.ConfigMap.Name, results.DifferencesInWords(differences, maxDifferences))}
	}
	return gate.Noise{Floor: func(phase, metric string) (float64, bool) {
		floor, found := calibration.Floor(phase, metric)
		return math.Abs(float64(floor.NoisePartsPerMillion)) / 1e6, found
	}}
}
