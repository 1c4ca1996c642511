// Package gate judges the measurements of an experiment: every gate is checked before anything runs, and a gate without data, or
// with an arithmetic error, never passes.
package gate

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// The reasons of a GateStatus.
const (
	// ReasonHolds: the gate holds.
	ReasonHolds = "Holds"
	// ReasonDoesNotHold: the expression is false.
	ReasonDoesNotHold = "DoesNotHold"
	// ReasonBelowMinimum: a median is smaller than bound.min.
	ReasonBelowMinimum = "BelowMinimum"
	// ReasonAboveMaximum: a median is larger than bound.max.
	ReasonAboveMaximum = "AboveMaximum"
	// ReasonNoData: a metric of the gate was not measured.
	ReasonNoData = "NoData"
	// ReasonEvaluationFailed: the expression has no value for these measurements, such as after a division by zero.
	ReasonEvaluationFailed = "EvaluationFailed"
	// ReasonWorse: the metric is worse than the reference, by more than the tolerance.
	ReasonWorse = "Worse"
	// ReasonUnclear: the runs differ too much to say whether the metric is worse by more than the tolerance.
	ReasonUnclear = "Unclear"
	// ReasonRunsMissing: the experiment is incomplete, so its gates are not decided.
	ReasonRunsMissing = "RunsMissing"
	// ReasonTooFewOperations: so few operations lie beyond the bound of a share that the share is not known.
	ReasonTooFewOperations = "TooFewOperations"
	// ReasonTooFewRuns: there are too few runs to decide, whatever the values.
	ReasonTooFewRuns = "TooFewRuns"
	// ReasonTooFewExperiments: the history is too short to decide, whatever the values.
	ReasonTooFewExperiments = "TooFewExperiments"
	// ReasonDaysDiffer: experiments of the same thing differ too much to say whether the metric is worse by more than the tolerance.
	ReasonDaysDiffer = "DaysDiffer"
	// ReasonNotIndependent: the runs reused each other's pools, so they are not independent repetitions.
	ReasonNotIndependent = "NotIndependent"
	// ReasonSingleDay: the baseline has a single experiment, so it does not show how days differ.
	ReasonSingleDay = "SingleDay"
	// ReasonBaselineMissing: the ConfigMap of the baseline does not exist.
	ReasonBaselineMissing = "BaselineMissing"
	// ReasonBaselineInvalid: it contains no baseline, or one with other units.
	ReasonBaselineInvalid = "BaselineInvalid"
	// ReasonBaselineUnlike: it was measured on other hardware or with other versions.
	ReasonBaselineUnlike = "BaselineUnlike"
	// ReasonCalibrationMissing: the ConfigMap of the calibration does not exist.
	ReasonCalibrationMissing = "CalibrationMissing"
	// ReasonCalibrationInvalid: it contains no calibration.
	ReasonCalibrationInvalid = "CalibrationInvalid"
	// ReasonCalibrationUnlike: it was measured on other hardware or with other versions.
	ReasonCalibrationUnlike = "CalibrationUnlike"
	// ReasonNoRatio: a value is not above 0, so there is no relative difference.
	ReasonNoRatio = "NoRatio"
	// ReasonPreflightWarning: a check of the storage has a warning.
	ReasonPreflightWarning = "PreflightWarning"
	// ReasonPreflightClean: a check of the storage has no warning, and should have one.
	ReasonPreflightClean = "PreflightClean"
	// ReasonNotChecked: a check of the storage could not be made.
	ReasonNotChecked = "NotChecked"
	// ReasonTooCoarse: a value is rounded, or only known within a range, and its true value could change the verdict.
	ReasonTooCoarse = "TooCoarse"
)

// Set holds the compiled gates of an experiment. It is safe for concurrent use.
type Set struct {
	gates []compiled
}

type compiled struct {
	name v1alpha1.GateName
	rule rule
	// variants are those that the gate judges: they have the phases of the rule.
	variants []string
	// limited is true if the gate names its variants.
	limited bool
}

// rule is one kind of gate: expression, bound, ratio, compare or preflight.
type rule interface {
	// judge returns an opinion for each variant, or a single one for all of them.
	judge(evidence *Evidence, variants []string) []opinion
	// uses returns the measurements that the rule needs.
	uses() []reference
}

// opinion is a gate's opinion of one variant.
type opinion struct {
	variant string
	verdict v1alpha1.Verdict
	reason  string
	text    string
	// comparison is the basis of a compare gate's opinion: its verdict is decided when all comparisons of the experiment are known.
	comparison *comparison
}

// Compile checks every gate before anything runs. variants are the expanded variant names. The error contains all mistakes of all
// gates, one per line.
func Compile(gates []v1alpha1.Gate, phases []v1alpha1.Phase, variants []string) (*Set, error) {
	set := &Set{}
	if len(gates) == 0 {
		return set, nil
	}
	if len(variants) == 0 {
		// Without a variant, every gate would hold.
		return nil, errors.New("gates need at least one variant to judge: an experiment without variants has the variant \"default\"")
	}
	known := scopeOf(phases, slices.Clone(variants))
	var all []error
	for _, gate := range gates {
		rule, judged, mistakes := compileGate(gate, known)
		for _, mistake := range mistakes {
			all = append(all, fmt.Errorf("gate %q: %s", gate.Name, mistake))
		}
		set.gates = append(set.gates, compiled{gate.Name, rule, judged, len(gate.Variants) > 0})
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	return set, nil
}

func scopeOf(phases []v1alpha1.Phase, variants []string) scope {
	known := scope{variants: variants, judged: variants, metrics: map[string]func() []string{},
		only: map[string][]v1alpha1.VariantName{}, workloads: map[string][]string{}}
	for _, phase := range phases {
		name := string(phase.Name)
		known.phases = append(known.phases, name)
		known.metrics[name] = sync.OnceValue(func() []string { return metricsOfPhase(&phase) })
		known.only[name] = phase.OnlyFor
		for _, one := range workload.Named(&phase) {
			known.workloads[name] = append(known.workloads[name], one.Name)
		}
		known.workloads[name] = append(known.workloads[name], workload.IntervalsOf(&phase)...)
	}
	return known
}

// Reference is a metric that a gate needs. Without a variant, the gate needs it of each variant. Variant may be some parts of a name.
type Reference struct{ Variant, Phase, Metric string }

// References returns the metrics that each gate needs, in the order of the gates.
func (s *Set) References() [][]Reference {
	all := make([][]Reference, len(s.gates))
	for i, gate := range s.gates {
		for _, ref := range gate.rule.uses() {
			of := []string{ref.variant}
			if ref.variant == "" && gate.limited {
				of = gate.variants
			}
			for _, variant := range of {
				all[i] = append(all[i], Reference{variant, ref.phase, ref.metric})
			}
		}
	}
	return all
}

// Limits holds the limits of a bound gate in whole units of its metric. Each is nil if the gate has no such limit.
type Limits struct{ AtLeast, AtMost *int64 }

// Limits returns the limits of the gates, in the order of the gates. Gates of other kinds have none.
func (s *Set) Limits() []Limits {
	all := make([]Limits, len(s.gates))
	for i, gate := range s.gates {
		if bound, is := gate.rule.(boundRule); is {
			all[i] = Limits{bound.min.whole(true), bound.max.whole(false)}
		}
	}
	return all
}

// compileGate returns the rule of a gate and the variants that it judges, or all mistakes.
func compileGate(gate v1alpha1.Gate, known scope) (rule rule, judged, mistakes []string) {
	of := kindsOf(gate)
	if len(of) != 1 {
		return nil, nil, []string{fmt.Sprintf("%d of %s are set: set exactly one", len(of), kindNames())}
	}
	if known, mistakes = known.limitedTo(gate.Variants); len(mistakes) > 0 {
		return nil, nil, mistakes
	}
	if rule, mistakes = of[0].compile(gate, known); len(mistakes) > 0 {
		return nil, nil, mistakes
	}
	if expression, is := rule.(expressionRule); is && !expression.perVariant && len(gate.Variants) > 0 {
		return nil, nil, []string{"variants: the expression names its variants itself: remove variants"}
	}
	judged, mistakes = known.judgedBy(rule)
	return rule, judged, mistakes
}

// Derived returns the metrics of distributions that the gates need, by phase: those that they judge, and their numbers of operations.
func (s *Set) Derived() map[string][]string {
	derived := map[string][]string{}
	if s == nil {
		return derived
	}
	for _, gate := range s.gates {
		for _, of := range gate.rule.uses() {
			if _, err := results.ParseDerived(of.metric); err == nil {
				derived[of.phase] = append(derived[of.phase], of.metric)
			}
			if count, needed := countOf(of); needed {
				derived[of.phase] = append(derived[of.phase], count.metric)
			}
		}
	}
	for phase, names := range derived {
		slices.Sort(names)
		derived[phase] = slices.Compact(names)
	}
	return derived
}

// Judge judges every gate, in the order of the gates.
func (s *Set) Judge(evidence Evidence) []v1alpha1.GateStatus {
	if s == nil {
		return nil
	}
	all := make([][]opinion, 0, len(s.gates))
	for _, gate := range s.gates {
		all = append(all, gate.judge(&evidence))
	}
	settle(all, levelsAt(evidence.Share))
	statuses := make([]v1alpha1.GateStatus, 0, len(s.gates))
	for i, gate := range s.gates {
		verdict, reason, message := combine(all[i])
		if reason == ReasonHolds || reason == ReasonDoesNotHold {
			if _, is := gate.rule.(expressionRule); is {
				message = cut(message, maxMessage-len(uncertain)) + uncertain
			}
		}
		statuses = append(statuses, v1alpha1.GateStatus{
			Name: gate.name, Verdict: verdict, Reason: reason, Message: cut(message, maxMessage), Comparisons: figures(all[i]),
		})
	}
	return statuses
}

// judge converts a panic into an opinion: a gate must not crash the controller.
func (c compiled) judge(evidence *Evidence) (opinions []opinion) {
	defer func() {
		if cause := recover(); cause != nil {
			opinions = []opinion{{verdict: v1alpha1.VerdictInvalid, reason: ReasonEvaluationFailed,
				text: fmt.Sprintf("the gate could not be judged: %v: please report this with the gate's definition", cause)}}
		}
	}()
	return c.rule.judge(evidence, c.variants)
}
