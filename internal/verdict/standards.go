// Package verdict judges the results of an experiment: its gates, the documents that they compare with, and the overall verdict. It is
// pure: it reads no clock and calls no API.
package verdict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/verdict/history"
)

// maxDifferences is the number of differences of the environment that a message lists.
const maxDifferences = 4

// Standards are the accepted documents that compare gates use. If one is requested but missing, the gate is refused.
type Standards struct {
	Baseline           *results.Baseline
	BaselineRefused    *gate.Refusal
	Calibration        *results.Baseline
	CalibrationRefused *gate.Refusal
	// History holds the experiments before this one. It is nil if there are none.
	History *history.Series
	// Digest identifies the baseline and the calibration: other documents lead to another verdict.
	Digest string
}

// DefinitionKey names the definition of a variant in allowDifferences.
const DefinitionKey = "definition"

// compared returns the evidence for compare gates: the runs, and the documents that they are compared with.
func compared(spec *v1alpha1.StorageBenchmarkSpec, standards Standards, experiment *results.Experiment) gate.Evidence {
	evidence := gate.Evidence{
		Summary: experiment.Variants, Runs: experiment.Runs, Order: spec.Order,
		Share: shareAt(spec, experiment.Repetitions),
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

// historyFor returns the function that finds the values of a metric in the earlier experiments and in this one.
func historyFor(series *history.Series, experiment *results.Experiment) func(string, string, string, time.Time) gate.Trend {
	complete := *experiment
	complete.State = results.StateComplete // it will be, or its gates do not count
	current, usable := history.PointOf(&complete, nil)
	if series == nil {
		series = &history.Series{}
	}
	return func(variant, phase, metric string, since time.Time) gate.Trend {
		missing := "no data: this experiment has no point in the history"
		var trend gate.Trend
		if usable {
			path := history.Path{Variant: variant, Phase: phase, Metric: metric}
			trend.Values, trend.Change, missing = history.Levels(series, current, path, since,
				gate.NewestExperiments, uint64(experiment.Seed))
		}
		if missing != "" {
			trend.Refused = &gate.Refusal{Reason: gate.ReasonNoData, Message: missing}
		}
		return trend
	}
}

// unlike lists the differences of the environment that are not allowed. It returns an empty text if there are none.
func unlike(what, configMap string, then, now map[string][]string, mayDiffer []string) string {
	differences := results.Differences(then, now, mayDiffer)
	if len(differences) == 0 {
		return ""
	}
	return fmt.Sprintf("the %s in ConfigMap %s comes from different hardware or versions: %s: accept a newer one, or list what may differ in "+
		"spec.%[1]s.allowDifferences",
		what, configMap, results.DifferencesInWords(differences, maxDifferences))
}

func baselineFor(reference *v1alpha1.Baseline, standards Standards, experiment *results.Experiment) gate.Earlier {
	baseline := standards.Baseline
	switch {
	case standards.BaselineRefused != nil:
		return gate.Earlier{Refused: standards.BaselineRefused}
	case baseline == nil:
		return gate.Earlier{Refused: &gate.Refusal{Reason: gate.ReasonBaselineMissing, Message: "the baseline was not read"}}
	}
	if words := unlike("baseline", reference.ConfigMap.Name, baseline.Environment, experiment.Environment,
		reference.AllowDifferences); words != "" {
		return gate.Earlier{Refused: &gate.Refusal{Reason: gate.ReasonBaselineUnlike, Invalid: true, Message: words}}
	}
	others := baseline.Without(experiment.Experiment) // an accepted experiment must not be its own reference
	if len(others.Experiments) == 0 {
		return gate.Earlier{Refused: &gate.Refusal{Reason: gate.ReasonBaselineMissing, Message: fmt.Sprintf(
			"the baseline in ConfigMap %s has only the numbers of this experiment, which cannot be compared with itself: it is for later "+
				"experiments",
			reference.ConfigMap.Name)}}
	}
	baseline = &others
	now := definitionsOf(experiment)
	mayDiffer := results.DifferenceAllowed(DefinitionKey, reference.AllowDifferences)
	return gate.Earlier{Values: func(variant, phase, metric string) gate.Stored {
		stored := gate.Stored{Values: baseline.Values(variant, phase, metric)}
		if known, found := results.LookupMetric(metric); found {
			stored.Unit = known.Unit // a baseline in other units is refused when it is read
		}
		if then := baseline.Definition(variant); !mayDiffer && then != now[variant] && len(stored.Values) > 0 {
			stored.Unlike = fmt.Sprintf("variant %s differs from the baseline: its target, phases or pods have changed: accept a newer "+
				"one, or add %s to spec.baseline.allowDifferences",
				variant, DefinitionKey)
		}
		return stored
	}}
}

// definitionsOf returns the definitions of the variants of an experiment, by their names.
func definitionsOf(experiment *results.Experiment) map[string]string {
	now := map[string]string{}
	for _, variant := range experiment.Variants {
		now[variant.Name] = variant.Definition
	}
	return now
}

func noiseFor(reference *v1alpha1.Calibration, standards Standards, experiment *results.Experiment) gate.Noise {
	calibration := standards.Calibration
	switch {
	case standards.CalibrationRefused != nil:
		return gate.Noise{Refused: standards.CalibrationRefused}
	case calibration == nil:
		return gate.Noise{Refused: &gate.Refusal{Reason: gate.ReasonCalibrationMissing, Message: "the calibration was not read"}}
	}
	if words := unlike("calibration", reference.ConfigMap.Name, calibration.Environment, experiment.Environment,
		reference.AllowDifferences); words != "" {
		return gate.Noise{Refused: &gate.Refusal{Reason: gate.ReasonCalibrationUnlike, Invalid: true, Message: words}}
	}
	// An experiment that is also in the baseline must not count twice for the variation of days, and this one shows nothing about itself.
	others := calibration.Without(experiment.Experiment)
	if standards.Baseline != nil {
		for _, accepted := range standards.Baseline.Experiments {
			others = others.Without(accepted.Experiment)
		}
	}
	mayDiffer, now := results.DifferenceAllowed(DefinitionKey, reference.AllowDifferences), definitionsOf(experiment)
	days := func(variant, phase, metric string) stats.Days {
		alike := others
		if !mayDiffer { // other work varies in another way
			alike.Variants = slices.DeleteFunc(slices.Clone(others.Variants), func(v results.BaselineVariant) bool {
				return v.Definition != now[variant]
			})
		}
		return alike.Days(phase, metric)
	}
	return gate.Noise{Days: days, Floor: func(phase, metric string) (float64, bool) {
		floor, found := calibration.Floor(phase, metric)
		return math.Abs(float64(floor.NoisePartsPerMillion)) / 1e6, found
	}}
}
