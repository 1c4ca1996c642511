package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Verdict is the result of a gate or of a benchmark.
//
// +kubebuilder:validation:Enum=Passed;Failed;Inconclusive;Invalid
type Verdict string

// The values of Verdict.
const (
	// VerdictPassed: the measurements show that the gate holds.
	VerdictPassed Verdict = "Passed"
	// VerdictFailed: the measurements show that the gate does not hold.
	VerdictFailed Verdict = "Failed"
	// VerdictInconclusive: there are too few measurements to decide.
	VerdictInconclusive Verdict = "Inconclusive"
	// VerdictInvalid: the measurements cannot be used.
	VerdictInvalid Verdict = "Invalid"
)

// Gate is a condition on the measurements: exactly one of expression, bound, ratio, compare and preflight is set.
//
// +kubebuilder:validation:ExactlyOneOf=expression;bound;ratio;compare;preflight
type Gate struct {
	// name is the name of the gate.
	// +required
	Name GateName `json:"name"`
	// variants limits the gate to some variants. Defaults to all that have the phases of the gate.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Variants []VariantParts `json:"variants,omitempty"`
	// expression is a CEL expression over the medians, for example
	// phase('aged-scan').readBytesPerSecond >= 0.8 * phase('fresh-scan').readBytesPerSecond.
	// With several variants it must hold for each of them; variant('r8k').phase('scan') selects one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.contains('phase(')",message="name the phase that the gate judges, as in phase('scan').readBytesPerSecond >= 100e6"
	Expression string `json:"expression,omitempty"`
	// bound limits a metric to a range.
	// +optional
	Bound *BoundGate `json:"bound,omitempty"`
	// ratio limits the ratio of one metric to another, run by run.
	// +optional
	Ratio *RatioGate `json:"ratio,omitempty"`
	// compare compares a metric with a variant, a baseline or the history.
	// +optional
	Compare *CompareGate `json:"compare,omitempty"`
	// preflight requires storage without warnings, or with expected ones.
	// +optional
	Preflight *PreflightGate `json:"preflight,omitempty"`
}

// VariantParts names a variant by its name or, with a matrix, by parts of it, such as dataset.recordsize=8k.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-A-Za-z0-9_.:/+%=]*(,[A-Za-z0-9][-A-Za-z0-9_.:/+%=]*)*$')",message="name a variant, such as r8k; with a matrix also by its values, comma-separated, such as dataset.recordsize=8k"
type VariantParts string

// MetricPath is PHASE.METRIC, or PHASE.JOB.METRIC for one job of a fio job file or one of several workloads.
// PHASE.DISTRIBUTION.STATISTIC is a statistic of a distribution, such as redo.writeLatency.shareOver10ms.
//
// +kubebuilder:validation:MaxLength=100
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][-a-z0-9]*[.]([A-Za-z0-9][-A-Za-z0-9_.]*[.])?[a-z][A-Za-z0-9]*$')",message="write a metric as PHASE.METRIC, such as aged-scan.readBytesPerSecond, or PHASE.JOB.METRIC"
type MetricPath string

// BoundGate limits a metric to a range.
//
// +kubebuilder:validation:AtLeastOneOf=min;max
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || !isQuantity(self.min) || !isQuantity(self.max) || !quantity(self.min).isGreaterThan(quantity(self.max))",message="make min at most max"
type BoundGate struct {
	// metric is the metric to check, in each variant.
	// +required
	Metric MetricPath `json:"metric"`
	// min is the smallest median that passes, such as 100M or 100MB/s.
	// +optional
	Min Bound `json:"min,omitempty"`
	// max is the largest median that passes, such as 10ms.
	// +optional
	Max Bound `json:"max,omitempty"`
}

// RatioGate limits the ratio of one metric to another, run by run.
//
// +kubebuilder:validation:AtLeastOneOf=min;max
// +kubebuilder:validation:AtLeastOneOf=to;toVariant
type RatioGate struct {
	// of is the metric to divide, in each variant.
	// +required
	Of MetricPath `json:"of"`
	// to is the metric to divide by, in the same unit. Defaults to the same metric if toVariant is set.
	// +optional
	To MetricPath `json:"to,omitempty"`
	// toVariant divides by the run of this variant with the same repetition. Without it, both metrics are from the same run.
	// +optional
	ToVariant VariantParts `json:"toVariant,omitempty"`
	// min is the smallest median of the ratios that passes, such as 80%.
	// +optional
	Min Ratio `json:"min,omitempty"`
	// max is the largest median of the ratios that passes, such as 110% or 1.1x.
	// +optional
	Max Ratio `json:"max,omitempty"`
}

// PreflightGate requires storage without warnings in any run, or with certain warnings in each run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.expect) || self.expect != 'Warning' || has(self.checks)",message="set checks to those that have to warn, such as checks: [ashift]"
type PreflightGate struct {
	// checks are the checks to judge. Defaults to all that apply to the target.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=6
	Checks []PreflightCheck `json:"checks,omitempty"`
	// expect is what each of the checks has to find: Clean, or Warning for storage that is set up badly on purpose.
	// +optional
	// +default="Clean"
	// +kubebuilder:validation:Enum=Clean;Warning
	Expect string `json:"expect,omitempty"`
}

// PreflightCheck is a check of the storage before it is measured.
//
// +kubebuilder:validation:Enum=sectors;ashift;alignment;scheduler;writeCache;memory
type PreflightCheck string

// CompareGate compares a metric with another measurement of it.
//
// +kubebuilder:validation:XValidation:rule="(self.to == 'Variant') == has(self.variant)",message="set variant if to is Variant, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.acceptSingleDay) || self.to == 'Baseline'",message="acceptSingleDay is about baselines: remove it, or set to: Baseline"
// +kubebuilder:validation:XValidation:rule="!has(self.acceptAgeing) || self.to != 'Variant'",message="acceptAgeing is about earlier experiments: remove it, or set to: Baseline or History"
// +kubebuilder:validation:XValidation:rule="!has(self.since) || self.to == 'History'",message="since is about the history: remove it, or set to: History"
type CompareGate struct {
	// metric is the metric to compare.
	// +required
	Metric MetricPath `json:"metric"`
	// to is Baseline (spec.baseline), Variant or History.
	// +required
	// +kubebuilder:validation:Enum=Baseline;Variant;History
	To string `json:"to"`
	// variant is the variant to compare with.
	// +optional
	Variant VariantParts `json:"variant,omitempty"`
	// tolerance is the accepted change for the worse. Defaults to 5%.
	// +optional
	// +default="5%"
	Tolerance Share `json:"tolerance,omitempty"`
	// acceptSingleDay accepts a baseline of a single experiment, although two days can differ by more than the tolerance without any change.
	// Without it, such a gate is Inconclusive.
	// +optional
	AcceptSingleDay bool `json:"acceptSingleDay,omitempty"`
	// acceptAgeing accepts runs that used the pool of earlier runs. Without it, such a gate is Inconclusive.
	// +optional
	AcceptAgeing bool `json:"acceptAgeing,omitempty"`
	// since is when the history begins to count. Set it to accept a new level: its first experiments are the reference.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// GateStatus is the verdict on one gate.
type GateStatus struct {
	// name is the name of the gate.
	// +required
	Name GateName `json:"name"`
	// verdict is the verdict on the gate.
	// +required
	Verdict Verdict `json:"verdict"`
	// reason is the reason in one word.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// message explains the verdict with figures.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// comparisons are the evidence of a compare gate, one per variant. The deciding ones come first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Comparisons []GateComparison `json:"comparisons,omitempty"`
}

// GateComparison is the evidence for one variant.
type GateComparison struct {
	// variant is the variant that was compared.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Variant string `json:"variant"`
	// verdict is the verdict on the variant.
	// +required
	Verdict Verdict `json:"verdict"`
	// changePartsPerMillion is the change of the metric (Hodges-Lehmann estimate). -52000 means 5.2% less than the reference.
	// +required
	ChangePartsPerMillion int64 `json:"changePartsPerMillion"`
	// lowPartsPerMillion is the lower end of the confidence interval. Unset if there are too few runs.
	// +optional
	LowPartsPerMillion *int64 `json:"lowPartsPerMillion,omitempty"`
	// highPartsPerMillion is the upper end of the confidence interval.
	// +optional
	HighPartsPerMillion *int64 `json:"highPartsPerMillion,omitempty"`
	// confidencePartsPerMillion is the confidence level of the interval.
	// +optional
	ConfidencePartsPerMillion int64 `json:"confidencePartsPerMillion,omitempty"`
	// worseProbabilityPartsPerMillion is the p-value of "worse by more than the tolerance and the noise", corrected for
	// all comparisons.
	// +required
	WorseProbabilityPartsPerMillion int64 `json:"worseProbabilityPartsPerMillion"`
	// withinProbabilityPartsPerMillion is the p-value of "worse by less than the tolerance".
	// +required
	WithinProbabilityPartsPerMillion int64 `json:"withinProbabilityPartsPerMillion"`
	// runs is the number of runs compared: for two interleaved variants the number of pairs, for a history the number of experiments.
	// +required
	Runs int32 `json:"runs"`
	// baselineRuns is the number of runs compared against.
	// +required
	BaselineRuns int32 `json:"baselineRuns"`
	// tolerancePartsPerMillion is the accepted change for the worse.
	// +required
	TolerancePartsPerMillion int64 `json:"tolerancePartsPerMillion"`
	// noisePartsPerMillion is the measured difference between equal runs, if known.
	// +optional
	NoisePartsPerMillion *int64 `json:"noisePartsPerMillion,omitempty"`
}

// Baseline refers to earlier results to compare with.
type Baseline struct {
	// configMap is the ConfigMap in the same namespace that holds the accepted results.
	// +required
	ConfigMap ConfigMapName `json:"configMap"`
	// allowDifferences lists parts of the environment fingerprint that may differ from the baseline.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	AllowDifferences []string `json:"allowDifferences,omitempty"`
}

// ConfigMapName refers to a ConfigMap in the same namespace.
type ConfigMapName struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a ConfigMap in the same namespace"
	Name string `json:"name"`
}

// Calibration refers to the measured noise: the difference between equal runs.
type Calibration struct {
	// configMap is the ConfigMap in the same namespace that holds the accepted calibration.
	// +required
	ConfigMap ConfigMapName `json:"configMap"`
	// allowDifferences lists parts of the environment fingerprint that may differ from the calibration.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	AllowDifferences []string `json:"allowDifferences,omitempty"`
}

// Adaptive adds repetitions while a compare gate is undecided.
type Adaptive struct {
	// maxRepetitions is the largest number of repetitions of each variant. Gates are evaluated after spec.repetitions and, if one
	// is undecided, again after maxRepetitions.
	// +required
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=50
	MaxRepetitions int32 `json:"maxRepetitions"`
	// budget is the time limit of the experiment. Repetitions that would end later, at the pace so far, are not added.
	// +optional
	Budget *Duration `json:"budget,omitempty"`
}

// Schedule repeats a benchmark.
type Schedule struct {
	// cron is a cron expression with five fields, such as "0 3 * * 1", or @daily, @weekly, @monthly.
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(hourly|daily|weekly|monthly)|([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[0-9]{1,2})?(,([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[0-9]{1,2})?)* ([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[0-9]{1,2})?(,([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[0-9]{1,2})?)* ([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[0-9]{1,2})?(,([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[0-9]{1,2})?)* ([*]|(0?[1-9]|1[0-2]|[A-Za-z]{3})(-(0?[1-9]|1[0-2]|[A-Za-z]{3}))?)(/[0-9]{1,2})?(,([*]|(0?[1-9]|1[0-2]|[A-Za-z]{3})(-(0?[1-9]|1[0-2]|[A-Za-z]{3}))?)(/[0-9]{1,2})?)* ([*]|([0-7]|[A-Za-z]{3})(-([0-7]|[A-Za-z]{3}))?)(/[0-9]{1,2})?(,([*]|([0-7]|[A-Za-z]{3})(-([0-7]|[A-Za-z]{3}))?)(/[0-9]{1,2})?)*)$')",message="write five fields (minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-7), such as '0 3 * * 1', or @daily"
	Cron string `json:"cron"`
	// timeZone is the time zone of the expression, such as Europe/Berlin. Defaults to Etc/UTC.
	// +optional
	// +default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z]+([A-Za-z0-9_+/-]*)$')",message="write a time zone of the tz database, such as Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
}
