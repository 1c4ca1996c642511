package v1alpha1

// Verdict is what is said of a gate or a whole benchmark.
//
// +kubebuilder:validation:Enum=Passed;Failed;Inconclusive;Invalid
type Verdict string

// The values of Verdict.
const (
	// VerdictPassed: the numbers show that the gate holds.
	VerdictPassed Verdict = "Passed"
	// VerdictFailed: the numbers show that it does not.
	VerdictFailed Verdict = "Failed"
	// VerdictInconclusive: there are no numbers, or too few, to say either.
	VerdictInconclusive Verdict = "Inconclusive"
	// VerdictInvalid: the numbers cannot be used.
	VerdictInvalid Verdict = "Invalid"
)

// Gate is one condition on the numbers: exactly one of expression, bound and compare is set.
//
// +kubebuilder:validation:ExactlyOneOf=expression;bound;compare
type Gate struct {
	// name of the gate.
	// +required
	Name GateName `json:"name"`
	// expression is a CEL expression over the medians, for example
	// phase('aged-scan').readBytesPerSecond >= 0.8 * phase('fresh-scan').readBytesPerSecond.
	// With several variants it must hold for each; variant('r8k').phase('scan') names one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.contains('phase(')",message="name the phase that the gate judges, as in phase('scan').readBytesPerSecond >= 100e6"
	Expression string `json:"expression,omitempty"`
	// bound gives a metric a smallest and a largest value.
	// +optional
	Bound *BoundGate `json:"bound,omitempty"`
	// compare judges a metric against a variant, a baseline or the history.
	// +optional
	Compare *CompareGate `json:"compare,omitempty"`
}

// MetricPath is PHASE.METRIC.
//
// +kubebuilder:validation:MaxLength=100
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][-a-z0-9]*[.][a-z][A-Za-z0-9]*$')",message="write a metric as PHASE.METRIC, such as aged-scan.readBytesPerSecond"
type MetricPath string

// BoundGate gives a metric a smallest and a largest value.
//
// +kubebuilder:validation:AtLeastOneOf=min;max
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || !isQuantity(self.min) || !isQuantity(self.max) || !quantity(self.min).isGreaterThan(quantity(self.max))",message="make min at most max"
type BoundGate struct {
	// metric to look at, in each variant.
	// +required
	Metric MetricPath `json:"metric"`
	// min is the smallest median that passes, such as 100M.
	// +optional
	Min *Bound `json:"min,omitempty"`
	// max is the largest median that passes.
	// +optional
	Max *Bound `json:"max,omitempty"`
}

// CompareGate judges a metric against another measurement of it.
//
// +kubebuilder:validation:XValidation:rule="(self.to == 'Variant') == has(self.variant)",message="name the variant to compare with exactly when to is Variant"
type CompareGate struct {
	// metric to compare.
	// +required
	Metric MetricPath `json:"metric"`
	// to is Baseline (spec.baseline), Variant or History.
	// +required
	// +kubebuilder:validation:Enum=Baseline;Variant;History
	To string `json:"to"`
	// variant to compare with.
	// +optional
	Variant VariantName `json:"variant,omitempty"`
	// tolerance is the change for the worse that is still accepted.
	// +optional
	// +default="5%"
	Tolerance Share `json:"tolerance,omitempty"`
}

// GateStatus is the verdict on one gate.
type GateStatus struct {
	// name of the gate.
	// +required
	Name GateName `json:"name"`
	// verdict on it.
	// +required
	Verdict Verdict `json:"verdict"`
	// reason in one word.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// message with the figures.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// comparisons are the evidence of a compare gate, a variant each; those that decide come first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Comparisons []GateComparison `json:"comparisons,omitempty"`
}

// GateComparison is the evidence on one variant.
type GateComparison struct {
	// variant that is judged.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Variant string `json:"variant"`
	// verdict on it.
	// +required
	Verdict Verdict `json:"verdict"`
	// changePartsPerMillion of the metric (Hodges-Lehmann estimate): -52000 is 5.2% less than in what it is compared with.
	// +required
	ChangePartsPerMillion int64 `json:"changePartsPerMillion"`
	// lowPartsPerMillion is the lower end of its interval; there is none if the runs are too few.
	// +optional
	LowPartsPerMillion *int64 `json:"lowPartsPerMillion,omitempty"`
	// highPartsPerMillion is the upper end.
	// +optional
	HighPartsPerMillion *int64 `json:"highPartsPerMillion,omitempty"`
	// confidencePartsPerMillion with which the change lies in the interval.
	// +optional
	ConfidencePartsPerMillion int64 `json:"confidencePartsPerMillion,omitempty"`
	// worseProbabilityPartsPerMillion is p of "worse by more than the tolerance and twice the noise", corrected for all comparisons.
	// +required
	WorseProbabilityPartsPerMillion int64 `json:"worseProbabilityPartsPerMillion"`
	// withinProbabilityPartsPerMillion is p of "worse by less than the tolerance".
	// +required
	WithinProbabilityPartsPerMillion int64 `json:"withinProbabilityPartsPerMillion"`
	// runs that went in; those of two variants in turns are pairs.
	// +required
	Runs int32 `json:"runs"`
	// baselineRuns they were compared with.
	// +required
	BaselineRuns int32 `json:"baselineRuns"`
	// tolerancePartsPerMillion is the change for the worse that is accepted.
	// +required
	TolerancePartsPerMillion int64 `json:"tolerancePartsPerMillion"`
	// noisePartsPerMillion by which equal runs differ, if that was measured.
	// +optional
	NoisePartsPerMillion *int64 `json:"noisePartsPerMillion,omitempty"`
}

// Baseline names earlier results to compare with.
type Baseline struct {
	// configMap of the same namespace that holds the accepted results.
	// +required
	ConfigMap ConfigMapName `json:"configMap"`
	// allowDifferences lists parts of the environment fingerprint that may differ from the baseline's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	AllowDifferences []string `json:"allowDifferences,omitempty"`
}

// ConfigMapName refers to a ConfigMap of the same namespace.
type ConfigMapName struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a ConfigMap of the same namespace"
	Name string `json:"name"`
}

// Calibration names measured noise: by how much equal runs differ.
type Calibration struct {
	// configMap of the same namespace that holds the accepted calibration.
	// +required
	ConfigMap ConfigMapName `json:"configMap"`
	// allowDifferences lists parts of the environment fingerprint that may differ from the calibration's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	AllowDifferences []string `json:"allowDifferences,omitempty"`
}

// Adaptive adds repetitions while a compare gate is open.
type Adaptive struct {
	// maxRepetitions of every variant. Gates are judged twice, after spec.repetitions and, if one is open then, after so many.
	// +required
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=50
	MaxRepetitions int32 `json:"maxRepetitions"`
	// budget of time for the experiment: no repetitions are added that would, at the pace so far, end later.
	// +optional
	Budget *Duration `json:"budget,omitempty"`
}

// Schedule repeats a benchmark.
type Schedule struct {
	// cron expression with five fields, such as "0 3 * * 1", or @daily, @weekly, @monthly.
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(hourly|daily|weekly|monthly)|([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[0-9]{1,2})?(,([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[0-9]{1,2})?)* ([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[0-9]{1,2})?(,([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[0-9]{1,2})?)* ([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[0-9]{1,2})?(,([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[0-9]{1,2})?)* ([*]|(0?[1-9]|1[0-2]|[A-Za-z]{3})(-(0?[1-9]|1[0-2]|[A-Za-z]{3}))?)(/[0-9]{1,2})?(,([*]|(0?[1-9]|1[0-2]|[A-Za-z]{3})(-(0?[1-9]|1[0-2]|[A-Za-z]{3}))?)(/[0-9]{1,2})?)* ([*]|([0-7]|[A-Za-z]{3})(-([0-7]|[A-Za-z]{3}))?)(/[0-9]{1,2})?(,([*]|([0-7]|[A-Za-z]{3})(-([0-7]|[A-Za-z]{3}))?)(/[0-9]{1,2})?)*)$')",message="write five fields (minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-7), such as '0 3 * * 1', or @daily"
	Cron string `json:"cron"`
	// timeZone of the expression, such as Europe/Berlin.
	// +optional
	// +default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z]+([A-Za-z0-9_+/-]*)$')",message="write a time zone of the tz database, such as Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
}
