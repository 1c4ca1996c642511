package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScheduleStatus is the observed state of a schedule.
type ScheduleStatus struct {
	// cron is the cron expression that this status describes. Empty after spec.schedule was removed.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	Cron string `json:"cron,omitempty"`
	// timeZone is the time zone of the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// since is when this expression was first seen. Earlier times do not count.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// lastTime is the last scheduled time that started an experiment. Unset for the first experiment, which starts at once. It is
	// part of the experiment's identity and remains when spec.schedule is removed.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// nextTime is the next scheduled time. Unset while the benchmark is suspended or stalled.
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`
	// skippedTimes is the number of scheduled times that passed during the current experiment. 100 means 100 or more.
	// +optional
	SkippedTimes int32 `json:"skippedTimes,omitempty"`
	// lastSkippedTime is the last skipped time.
	// +optional
	LastSkippedTime *metav1.Time `json:"lastSkippedTime,omitempty"`
}

// QueueStatus is a position in the queue for a node.
type QueueStatus struct {
	// since is when the benchmark joined the queue.
	// +required
	Since metav1.MicroTime `json:"since"`
	// turn orders the queue within a priority: the lowest is next. The benchmarks of a namespace get successive turns, so that namespaces
	// alternate.
	// +optional
	Turn int64 `json:"turn,omitempty"`
	// position is the position in the queue. 1 is next. Unset after the first 10.
	// +optional
	Position int32 `json:"position,omitempty"`
	// holder is the benchmark that holds the node, as namespace/name. Only set for the next benchmark; the node's Lease always names it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Holder string `json:"holder,omitempty"`
}

// ProgressStatus is the progress of an experiment.
type ProgressStatus struct {
	// runsTotal is the number of planned runs. A group of runs on several nodes counts as one, also in the fields below.
	// +required
	RunsTotal int32 `json:"runsTotal"`
	// runsDone is the number of valid runs.
	// +required
	RunsDone int32 `json:"runsDone"`
	// runsInvalid is the number of invalid attempts.
	// +required
	RunsInvalid int32 `json:"runsInvalid"`
	// currentRun is the name of the run in progress, or of its group.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentRun string `json:"currentRun,omitempty"`
	// currentPhase is the phase of that run.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	CurrentPhase string `json:"currentPhase,omitempty"`
	// estimatedEnd is the estimated end, from the duration of earlier runs. Unset until the first run has finished.
	// +optional
	EstimatedEnd *metav1.Time `json:"estimatedEnd,omitempty"`
}

// ResultsReference refers to the results of an experiment.
type ResultsReference struct {
	// experiment is the hash of the experiment.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Experiment string `json:"experiment"`
	// configMap is the ConfigMap with results.json, report.md and junit.xml.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`
	// verdict is the verdict of the experiment. Empty if it was superseded.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Verdict string `json:"verdict,omitempty"`
	// finishedAt is when the results were written.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// fingerprint identifies the runs and gates that the results cover.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Fingerprint string `json:"fingerprint,omitempty"`
	// omitted says what did not fit into the ConfigMap.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Omitted string `json:"omitted,omitempty"`
}

// PhaseSummary summarizes a phase over the valid runs of a variant.
type PhaseSummary struct {
	// variant is the name of the variant.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Variant string `json:"variant"`
	// phase is the name of the phase.
	// +required
	Phase PhaseName `json:"phase"`
	// metrics are the metrics of the phase.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Metrics []MetricSummary `json:"metrics"`
}

// MetricSummary summarizes a metric over the valid runs.
type MetricSummary struct {
	// name is the name of the metric, with its unit.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// median is the median of the runs.
	// +required
	Median int64 `json:"median"`
	// min is the minimum of the runs.
	// +required
	Min int64 `json:"min"`
	// max is the maximum of the runs.
	// +required
	Max int64 `json:"max"`
	// runs is the number of runs.
	// +required
	Runs int32 `json:"runs"`
}
