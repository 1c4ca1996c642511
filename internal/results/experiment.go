package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The values of Experiment.State.
const (
	// StateComplete: all runs have finished and the verdict is set.
	StateComplete = "Complete"
	// StateSuperseded: the benchmark was changed before the experiment ended.
	StateSuperseded = "Superseded"
	// StateIncomplete: runs are missing, because they were given up or a deadline passed.
	StateIncomplete = "Incomplete"
)

// Experiment is the complete result of one experiment: the document results.json.
type Experiment struct {
	// Version is results.storagebench.dev/v1alpha1.
	Version string `json:"version" jsonschema:"enum=results.storagebench.dev/v1alpha1"`
	// Benchmark that the experiment belongs to.
	Benchmark RunIdentity `json:"benchmark"`
	// Experiment is the hash of what is measured.
	Experiment string `json:"experiment"`
	// Generation of the benchmark.
	Generation int64 `json:"generation"`
	// State of the experiment.
	State string `json:"state" jsonschema:"enum=Complete,enum=Superseded,enum=Incomplete"`
	// Verdict over all gates. Empty if there is none, as for a superseded experiment.
	Verdict string `json:"verdict" jsonschema:"enum=Passed,enum=Failed,enum=Inconclusive,enum=Invalid,enum="`
	// Reason for the verdict in one word.
	Reason string `json:"reason,omitempty"`
	// Message with the figures.
	Message string `json:"message,omitempty"`
	// Seed of all random choices.
	Seed int64 `json:"seed"`
	// Order of the runs.
	Order string `json:"order,omitempty"`
	// Repetitions of each variant.
	Repetitions int32 `json:"repetitions"`
	// Extended is true if these results are preliminary: a gate is undecided, and more repetitions follow.
	Extended bool `json:"extended,omitempty"`
	// NodeName is the node of all runs. For several nodes it is a comma-separated list of names.
	NodeName string `json:"nodeName,omitempty"`
	// StorageClass that was tested.
	StorageClass string `json:"storageClass,omitempty"`
	// RunnerImage of the workload pods.
	RunnerImage string `json:"runnerImage,omitempty"`
	// StartedAt is when the first run was created.
	StartedAt *time.Time `json:"startedAt,omitempty"`
	// FinishedAt is when the last run ended.
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	// Gates with their verdicts.
	Gates []GateResult `json:"gates,omitempty"`
	// Variants with the metrics of their valid runs.
	Variants []VariantResult `json:"variants,omitempty"`
	// Runs, with every attempt, in the order of execution.
	Runs []RunResult `json:"runs,omitempty"`
	// Groups of runs on several nodes. Each counts as one repetition above.
	Groups []GroupResult `json:"groups,omitempty"`
	// Environment has the distinct values of each key over all runs and phases.
	Environment map[string][]string `json:"environment,omitempty"`
	// Unlike lists the keys of environment that differed between the runs of a phase, without those that differ each time. Older documents
	// do not have it.
	Unlike []string `json:"unlike,omitzero"`
	// Notes are those of the results of valid phases, at most 64.
	Notes []Note `json:"notes,omitempty"`
	// Omitted lists the parts that did not fit.
	Omitted []string `json:"omitted,omitempty"`
}

// GateResult is the verdict on one gate.
type GateResult struct {
	Name string `json:"name"`
	// Definition is the expression, or a description of the gate.
	Definition string `json:"definition,omitempty"`
	// Metrics that the gate judges, at most 16.
	Metrics []GateMetric `json:"metrics,omitempty"`
	// AtLeast and AtMost are the limits of a bound gate, in the unit of its metric.
	AtLeast *int64 `json:"atLeast,omitempty"`
	AtMost  *int64 `json:"atMost,omitempty"`
	Verdict string `json:"verdict" jsonschema:"enum=Passed,enum=Failed,enum=Inconclusive,enum=Invalid"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Comparisons are the evidence of a compare gate, one per variant. The deciding ones come first.
	Comparisons []Comparison `json:"comparisons,omitempty"`
}

// GateMetric is a metric of a phase that a gate judges.
type GateMetric struct {
	// Variant of the metric, as the spec names it. Empty if the gate judges each variant.
	Variant string `json:"variant,omitempty"`
	Phase   string `json:"phase"`
	Metric  string `json:"metric"`
}

// Comparison is the evidence of a compare gate for one variant.
type Comparison struct {
	Variant string `json:"variant"`
	Verdict string `json:"verdict" jsonschema:"enum=Passed,enum=Failed,enum=Inconclusive,enum=Invalid"`
	// ChangePartsPerMillion of the metric (Hodges-Lehmann estimate). -52000 means 5.2% less than the reference.
	ChangePartsPerMillion int64 `json:"changePartsPerMillion"`
	// LowPartsPerMillion and HighPartsPerMillion are the ends of the confidence interval. Unset if there are too few runs.
	LowPartsPerMillion  *int64 `json:"lowPartsPerMillion,omitempty"`
	HighPartsPerMillion *int64 `json:"highPartsPerMillion,omitempty"`
	// ConfidencePartsPerMillion is the confidence level of the interval.
	ConfidencePartsPerMillion int64 `json:"confidencePartsPerMillion,omitempty"`
	// WorseProbabilityPartsPerMillion is p of "worse by more than the tolerance and the noise", corrected for all comparisons.
	WorseProbabilityPartsPerMillion int64 `json:"worseProbabilityPartsPerMillion"`
	// WithinProbabilityPartsPerMillion is p of "worse by less than the tolerance".
	WithinProbabilityPartsPerMillion int64 `json:"withinProbabilityPartsPerMillion"`
	// Runs and BaselineRuns are the numbers of the compared runs, and of the runs that they are compared with.
	Runs         int32 `json:"runs"`
	BaselineRuns int32 `json:"baselineRuns"`
	// TolerancePartsPerMillion is the accepted change for the worse.
	TolerancePartsPerMillion int64 `json:"tolerancePartsPerMillion"`
	// NoisePartsPerMillion is the measured difference between equal runs, if known.
	NoisePartsPerMillion *int64 `json:"noisePartsPerMillion,omitempty"`
}

// VariantResult summarizes the valid runs of a variant.
type VariantResult struct {
	Name string `json:"name"`
	// Definition is a hash of the measured configuration: target, phases and pods.
	Definition string `json:"definition,omitempty"`
	// Base is the variant of the spec that the matrix was applied to. Empty without a matrix.
	Base string `json:"base,omitempty"`
	// Matrix has the value of each path of the matrix. Empty without a matrix.
	Matrix map[string]string `json:"matrix,omitempty"`
	// Phases with metrics. Empty if no run of the variant was valid.
	Phases []PhaseResult `json:"phases,omitempty"`
}

// PhaseResult summarizes a phase over the valid runs of a variant.
type PhaseResult struct {
	Name string `json:"name"`
	// Metrics of the phase, primary ones first.
	Metrics []MetricResult `json:"metrics"`
}

// MetricResult is one metric over the valid runs.
type MetricResult struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Better is the direction in which the metric is better.
	Better string `json:"better,omitempty" jsonschema:"enum=Higher,enum=Lower,enum=Neither"`
	Median int64  `json:"median"`
	Min    int64  `json:"min"`
	Max    int64  `json:"max"`
	// Runs is the number of runs with a value.
	Runs int32 `json:"runs"`
}

// RunResult is one attempt at one run.
type RunResult struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Index is the position in the order of execution. Attempts at the same run share it.
	Index   int32  `json:"index"`
	Variant string `json:"variant"`
	// Repetition of the variant, from 1.
	Repetition int32 `json:"repetition"`
	// Attempt at this run, from 1.
	Attempt int32 `json:"attempt"`
	Seed    int64 `json:"seed"`
	// NodeName is the node of the run.
	NodeName string `json:"nodeName,omitempty"`
	// Group is the group of runs on several nodes at once to which this one belongs.
	Group *RunGroup `json:"group,omitempty"`
	// Valid says whether the numbers can be used.
	Valid      bool       `json:"valid"`
	Reason     string     `json:"reason,omitempty"`
	Message    string     `json:"message,omitempty"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	// Reset is the part that was recreated for the run, if not the whole pool: Dataset or None.
	Reset string `json:"reset,omitempty" jsonschema:"enum=Dataset,enum=None,enum="`
	// KeptFrom is the run whose pool this one reused: with reset None, it began with the data that the other run had left. It is empty if
	// the pool was new.
	KeptFrom string `json:"keptFrom,omitempty"`
	// PoolAge is the age of the pool, if experiments pass it on to each other.
	PoolAge *PoolAge `json:"poolAge,omitempty"`
	// Volumes that were created for the run on pools of its own.
	Volumes []RunVolume `json:"volumes,omitempty"`
	// Preflight holds the results of the checks of the storage, without those that do not apply.
	Preflight []PreflightResult `json:"preflight,omitempty"`
	Phases    []RunPhase        `json:"phases,omitempty"`
}

// RunVolume is a volume on a pool, as ZFS reported it before the first phase.
type RunVolume struct {
	// Name by which phases refer to it.
	Name string `json:"name"`
	// Pool is the name of the pool.
	Pool string `json:"pool"`
	// Provisioner that created the dataset.
	Provisioner string `json:"provisioner,omitempty"`
	// ZFSVersion of the node's module and tools.
	ZFSVersion string `json:"zfsVersion,omitempty"`
	// Properties in effect by name: those of the dataset, and with the prefix "pool." those of the pool.
	Properties map[string]string `json:"properties,omitempty"`
}

// Because returns the first of these reasons that made the run or one of its phases Invalid. It returns an empty text if none did. Large
// results have only the message of the run, which begins with the phase and its reason.
func (r RunResult) Because(reasons []string) string {
	for _, reason := range reasons {
		if r.Reason == reason || strings.Contains(r.Message, ": "+reason+": ") ||
			slices.ContainsFunc(r.Phases, func(phase RunPhase) bool { return phase.Reason == reason }) {
			return reason
		}
	}
	return ""
}

// StorageFailed reports whether an attempt is Invalid because its storage has failed, or has failed requests.
func (r RunResult) StorageFailed() bool {
	return !r.Valid && (r.Because(StorageFailures) != "" || slices.ContainsFunc(r.Phases, func(phase RunPhase) bool {
		return phase.Metrics["ioErrors"] > 0 && !slices.Contains(noSpace, phase.Reason)
	}))
}

// Attempted says which attempt it was and why it is Invalid, for example "run 2, attempt 1: IOError: a medium error".
func (r RunResult) Attempted() string {
	why := strings.TrimPrefix(r.Reason+": "+r.Message, ": ")
	if r.Message == "" {
		why = cmp.Or(r.Reason, "no reason is known")
	}
	return fmt.Sprintf("run %d, attempt %d: %s", r.Index+1, r.Attempt, why)
}

// RunPhase is one phase of one run.
type RunPhase struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind" jsonschema:"enum=fill,enum=fragment,enum=free,enum=measure,enum=operate"`
	Outcome Outcome `json:"outcome" jsonschema:"enum=Valid,enum=Invalid"`
	Reason  string  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	// ConfigMap that holds the whole document.
	ConfigMap string `json:"configMap,omitempty"`
	// Digest of that document.
	Digest     string           `json:"digest,omitempty"`
	StartedAt  *time.Time       `json:"startedAt,omitempty"`
	FinishedAt *time.Time       `json:"finishedAt,omitempty"`
	Metrics    map[string]int64 `json:"metrics,omitempty"`
	Seeds      []int64          `json:"seeds,omitempty"`
}
