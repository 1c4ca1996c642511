package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunOrder is the order in which the runs of an experiment are made.
//
// +kubebuilder:validation:Enum=Interleaved;Sequential
type RunOrder string

// The values of RunOrder.
const (
	// OrderInterleaved makes one run of each variant per repetition, in an order shuffled with the seed, so that a
	// drift over time meets all variants alike.
	OrderInterleaved RunOrder = "Interleaved"
	// OrderSequential makes all repetitions of a variant before the next.
	OrderSequential RunOrder = "Sequential"
)

// RetainPolicy says which volumes and pods are kept after their run.
//
// +kubebuilder:validation:Enum=Always;OnFailure;Never
type RetainPolicy string

// The values of RetainPolicy.
const (
	RetainAlways    RetainPolicy = "Always"
	RetainOnFailure RetainPolicy = "OnFailure"
	RetainNever     RetainPolicy = "Never"
)

// StorageBenchmarkSpec is an experiment.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || has(self.baseline) || self.gates.all(g, !has(g.compare) || g.compare.to != 'Baseline')",message="a gate compares to: Baseline, so name the baseline: set spec.baseline.configMap.name"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || self.gates.all(g, !has(g.compare) || g.compare.to != 'Variant' || (has(self.variants) && self.variants.exists(v, v.name == g.compare.variant)))",message="a gate compares with a variant that spec.variants does not have: name one of them in compare.variant"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || self.gates.all(g, !has(g.bound) || self.phases.exists(p, g.bound.metric.startsWith(p.name + '.')))",message="a gate bounds a metric of a phase that spec.phases does not have: begin bound.metric with the name of one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || self.gates.all(g, !has(g.compare) || self.phases.exists(p, g.compare.metric.startsWith(p.name + '.')))",message="a gate compares a metric of a phase that spec.phases does not have: begin compare.metric with the name of one of them"
// +kubebuilder:validation:XValidation:rule="has(self.target.zfs) || self.phases.all(p, !has(p.operate) && (!has(p.measure) || !has(p.measure.operate)))",message="operate works on pools: use it with target.zfs, or remove it from the phases"
// +kubebuilder:validation:XValidation:rule="has(self.target.zfs) || self.phases.all(p, !has(p.fill) || p.fill.of != 'Pool')",message="fill.of: Pool needs target.zfs; a storageClass target fills a share of its Volume"
// +kubebuilder:validation:XValidation:rule="has(self.target.zfs) || self.phases.all(p, p.volume == 'data')",message="a storageClass target has one volume, called data: remove volume from the phases"
// +kubebuilder:validation:XValidation:rule="!has(self.target.zfs) || self.phases.all(p, p.volume == 'data' || (has(self.target.zfs.volumes) && self.target.zfs.volumes.exists(v, v.name == p.volume)))",message="a phase names a volume that target.zfs.volumes does not have: use data, or one of their names"
// +kubebuilder:validation:XValidation:rule="has(self.target.storageClass) || !has(self.variants) || self.variants.all(v, !has(v.storageClass))",message="variants[].storageClass changes a storageClass target: use it with target.storageClass, or give the variant a target of its own"
// +kubebuilder:validation:XValidation:rule="has(self.target.zfs) || !has(self.variants) || self.variants.all(v, !has(v.pool) && !has(v.dataset) && !has(v.moduleParameters))",message="pool, dataset and moduleParameters of a variant change a zfs target: use them with target.zfs, or give the variant a target of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || self.matrix.all(k, !k.startsWith('phases.') || self.phases.exists(p, k.startsWith('phases.' + p.name + '.')))",message="a path of the matrix names a phase that spec.phases does not have: write phases.PHASE.FIELD with the name of one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.variants) || self.variants.all(v, !has(v.set) || v.set.all(k, !k.startsWith('phases.') || self.phases.exists(p, k.startsWith('phases.' + p.name + '.'))))",message="a path of variants[].set names a phase that spec.phases does not have: write phases.PHASE.FIELD with the name of one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || has(self.target.zfs) || has(self.variants) || self.matrix.all(k, k.startsWith('phases.') || k.startsWith('storageClass.'))",message="pool, dataset and moduleParameters in the matrix change a zfs target: use them with target.zfs"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || has(self.target.storageClass) || has(self.variants) || self.matrix.all(k, !k.startsWith('storageClass.'))",message="storageClass in the matrix changes a storageClass target: use it with target.storageClass"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || has(self.variants) || has(self.matrix) || self.phases.all(p, !has(p.fill) || !has(p.fill.size) || !isQuantity(p.fill.size) || !isQuantity(self.target.storageClass.size) || !quantity(p.fill.size).isGreaterThan(quantity(self.target.storageClass.size)))",message="fill.size is larger than the volume: make it at most target.storageClass.size, or write a share in fill.to"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || self.target.storageClass.volumeMode != 'Block' || self.phases.all(p, !has(p.measure) || (!has(p.measure.workload.postgres) && !has(p.measure.workload.metadata) && (!has(p.measure.workload.oltp) || p.measure.workload.oltp.layout != 'FilePerWorker')))",message="postgres, metadata and layout: FilePerWorker need a file system: write volumeMode: Filesystem, or choose another workload"
// +kubebuilder:validation:XValidation:rule="!has(self.schedule) || !has(self.ttlAfterFinished)",message="ttlAfterFinished would delete the benchmark with its schedule: remove one of the two; resultsHistory bounds what is kept"
// +kubebuilder:validation:XValidation:rule=`!has(self.gates) || self.gates.all(g, !has(g.expression) || self.phases.exists(p, g.expression.contains("'" + p.name + "'") || g.expression.contains('"' + p.name + '"')))`,message="a gate's expression names no phase of spec.phases: write phase('NAME') with the name of one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.adaptive) || self.adaptive.maxRepetitions > self.repetitions",message="adaptive.maxRepetitions is not more than repetitions: make it larger, or remove adaptive"
// +kubebuilder:validation:XValidation:rule="!has(self.adaptive) || self.order == 'Interleaved'",message="adaptive adds repetitions of all variants in turn: set order to Interleaved, or remove adaptive"
// +kubebuilder:validation:XValidation:rule="!has(self.adaptive) || (has(self.gates) && self.gates.exists(g, has(g.compare)))",message="adaptive adds repetitions while a compare gate is open: add a gate with compare, or remove adaptive"
type StorageBenchmarkSpec struct {
	// target is the storage under test.
	// +required
	Target Target `json:"target"`
	// variants are compared with each other; each is the target with some of it replaced.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Variants []Variant `json:"variants,omitempty"`
	// matrix multiplies the variants: each path takes each of its values. Paths: storageClass.name, storageClass.size,
	// pool.ashift, pool.properties.NAME, dataset.NAME, moduleParameters.NAME, and phases.PHASE.FIELD such as
	// phases.fill.to or phases.age.rounds.
	// +optional
	Matrix Matrix `json:"matrix,omitempty"`
	// phases in the order in which they are executed.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Phases []Phase `json:"phases"`
	// repetitions of every variant. Six is the smallest number with which a paired comparison can be significant.
	// +optional
	// +default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	Repetitions int32 `json:"repetitions,omitempty"`
	// adaptive adds repetitions while a compare gate is open: more are made only if the first ones do not say enough.
	// +optional
	Adaptive *Adaptive `json:"adaptive,omitempty"`
	// order of the runs.
	// +optional
	// +default="Interleaved"
	Order RunOrder `json:"order,omitempty"`
	// seed of everything random. Left out, one is made from the object's UID; status.seed says which.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Seed *int64 `json:"seed,omitempty"`
	// maxAttempts for each run: an Invalid run is repeated from the beginning until there are so many.
	// +optional
	// +default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	MaxAttempts int32 `json:"maxAttempts,omitempty"`
	// gates decide the verdict. Without gates, a benchmark whose runs are all valid has Passed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []Gate `json:"gates,omitempty"`
	// baseline that gates can compare with.
	// +optional
	Baseline *Baseline `json:"baseline,omitempty"`
	// calibration says by how much equal runs differ: no compare gate fails for less than twice as much.
	// +optional
	Calibration *Calibration `json:"calibration,omitempty"`
	// schedule repeats the benchmark: the first experiment begins at once, another at each time after it that comes when the one
	// before is over. A time that comes earlier is skipped.
	// +optional
	Schedule *Schedule `json:"schedule,omitempty"`
	// retain says which volumes and pods are kept after their run, until the benchmark is deleted or run again.
	// +optional
	// +default="Never"
	Retain RetainPolicy `json:"retain,omitempty"`
	// resultsHistory is the number of earlier experiments of this benchmark whose results are kept.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ResultsHistory *int32 `json:"resultsHistory,omitempty"`
	// ttlAfterFinished deletes the benchmark with its results so long after its end.
	// +optional
	TTLAfterFinished *Duration `json:"ttlAfterFinished,omitempty"`
	// suspend stops the run in progress, frees the node and starts nothing new. Finished runs are kept; a stopped run
	// starts again on resume.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// deadline for the whole experiment, from its first run.
	// +optional
	Deadline *Duration `json:"deadline,omitempty"`
	// podTemplate shapes the workload pods.
	// +optional
	PodTemplate PodTemplate `json:"podTemplate,omitzero"`
}

// StorageBenchmarkStatus is what is known of an experiment.
type StorageBenchmarkStatus struct {
	// observedGeneration is the generation that the rest of the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, Reconciling, Stalled, Complete, Passed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// verdict over all gates, once complete.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// state is one word for people; programs read the conditions.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state,omitempty"`
	// experiment identifies what is measured: target, variants, matrix, phases, repetitions, adaptive, order, seed, pods,
	// rerun and the time of the schedule.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Experiment string `json:"experiment,omitempty"`
	// seed in use.
	// +optional
	Seed *int64 `json:"seed,omitempty"`
	// nodeName is the node on which all runs are made; of several at once the names, joined by commas, or as many as fit.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`
	// nodeNames are the nodes, if each phase is executed on several at once.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	NodeNames []string `json:"nodeNames,omitempty"`
	// storageClass that is tested, resolved.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`
	// runnerImage of the workload pods.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	RunnerImage string `json:"runnerImage,omitempty"`
	// queue is the place in line while another benchmark has the node.
	// +optional
	Queue *QueueStatus `json:"queue,omitempty"`
	// holdUntil is when the experiment ends at the latest, whatever has been measured by then: the admin's limit on how long a
	// benchmark may hold its nodes, counted from when it took them.
	// +optional
	HoldUntil *metav1.Time `json:"holdUntil,omitempty"`
	// startedAt is when the first run was made.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when the verdict was out.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// progress of the runs.
	// +optional
	Progress *ProgressStatus `json:"progress,omitempty"`
	// results of the experiment.
	// +optional
	Results *ResultsReference `json:"results,omitempty"`
	// gates with their verdicts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []GateStatus `json:"gates,omitempty"`
	// summary of the primary metrics per variant and measure phase, bounded; everything is in the results.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Summary []PhaseSummary `json:"summary,omitempty"`
	// summaryOmitted is the number of further entries that only the results hold.
	// +optional
	SummaryOmitted int32 `json:"summaryOmitted,omitempty"`
	// history of earlier experiments of this benchmark, newest first.
	// +optional
	// +listType=map
	// +listMapKey=experiment
	// +kubebuilder:validation:MaxItems=100
	History []ResultsReference `json:"history,omitempty"`
	// schedule says which time of spec.schedule the experiment belongs to, and when the next one begins.
	// +optional
	Schedule *ScheduleStatus `json:"schedule,omitempty"`
}

// ScheduleStatus says where a benchmark with a schedule stands.
type ScheduleStatus struct {
	// cron expression that the rest speaks of; empty once spec.schedule was removed.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	Cron string `json:"cron,omitempty"`
	// timeZone of the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// since is when this expression was first seen: times before it do not count.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// lastTime of the schedule that has begun an experiment; absent while there is only the first one, which begins at once.
	// It is part of what identifies the experiment, and stays when spec.schedule is removed.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// nextTime of the schedule; absent while nothing is begun, because the benchmark is suspended or stalled.
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`
	// skippedTimes of the schedule came while the current experiment was going on; 100 stands for 100 or more.
	// +optional
	SkippedTimes int32 `json:"skippedTimes,omitempty"`
	// lastSkippedTime is the last of them.
	// +optional
	LastSkippedTime *metav1.Time `json:"lastSkippedTime,omitempty"`
}

// QueueStatus is a place in line.
type QueueStatus struct {
	// since is when the benchmark joined the line.
	// +required
	Since metav1.MicroTime `json:"since"`
	// position in line: 1 is next.
	// +required
	Position int32 `json:"position"`
	// holder is the benchmark that has the node, as namespace/name.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Holder string `json:"holder,omitempty"`
}

// ProgressStatus says how far an experiment is.
type ProgressStatus struct {
	// runsTotal to be made. The runs of a group, on several nodes at once, count as one here and below.
	// +required
	RunsTotal int32 `json:"runsTotal"`
	// runsDone with usable numbers.
	// +required
	RunsDone int32 `json:"runsDone"`
	// runsInvalid counts attempts whose numbers cannot be used.
	// +required
	RunsInvalid int32 `json:"runsInvalid"`
	// currentRun is the name of the run in progress, or of the group.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CurrentRun string `json:"currentRun,omitempty"`
	// currentPhase of that run.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	CurrentPhase string `json:"currentPhase,omitempty"`
	// estimatedEnd, from the time that earlier runs took; absent before the first has ended.
	// +optional
	EstimatedEnd *metav1.Time `json:"estimatedEnd,omitempty"`
}

// ResultsReference says where the results of an experiment are.
type ResultsReference struct {
	// experiment is the hash of the experiment.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Experiment string `json:"experiment"`
	// configMap with results.json, report.md and junit.xml.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`
	// verdict of the experiment; empty if it was superseded.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Verdict string `json:"verdict,omitempty"`
	// finishedAt is when the results were written.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// fingerprint of the runs and gates that went into the results.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Fingerprint string `json:"fingerprint,omitempty"`
	// omitted says what did not fit into the ConfigMap, if anything.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Omitted string `json:"omitted,omitempty"`
}

// PhaseSummary is what the valid runs of a variant say about a phase.
type PhaseSummary struct {
	// variant measured.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Variant string `json:"variant"`
	// phase measured.
	// +required
	Phase PhaseName `json:"phase"`
	// metrics of the phase.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Metrics []MetricSummary `json:"metrics"`
}

// MetricSummary is a metric over the valid runs.
type MetricSummary struct {
	// name of the metric, with its unit.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// median of the runs.
	// +required
	Median int64 `json:"median"`
	// min of the runs.
	// +required
	Min int64 `json:"min"`
	// max of the runs.
	// +required
	Max int64 `json:"max"`
	// runs that went in.
	// +required
	Runs int32 `json:"runs"`
}

// StorageBenchmark is an experiment on storage: what is made, what is done to it, what is measured and what must hold.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sb,categories=storagebench
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Done",type=integer,JSONPath=`.status.progress.runsDone`
// +kubebuilder:printcolumn:name="Runs",type=integer,JSONPath=`.status.progress.runsTotal`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.progress.currentPhase`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Ends",type=date,JSONPath=`.status.progress.estimatedEnd`,priority=1
// +kubebuilder:printcolumn:name="Report",type=string,JSONPath=`.status.results.configMap`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="shorten metadata.name to at most 63 characters"
type StorageBenchmark struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the experiment.
	// +required
	Spec StorageBenchmarkSpec `json:"spec"`
	// status is what is known of it.
	// +optional
	Status StorageBenchmarkStatus `json:"status,omitzero"`
}

// StorageBenchmarkList is a list of StorageBenchmarks.
//
// +kubebuilder:object:root=true
type StorageBenchmarkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StorageBenchmark `json:"items"`
}
