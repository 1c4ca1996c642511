package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunOrder is the order in which the runs of an experiment are executed.
//
// +kubebuilder:validation:Enum=Interleaved;Sequential
type RunOrder string

// The values of RunOrder.
const (
	// OrderInterleaved executes one run of each variant per repetition, in a balanced order: every second repetition reverses the order of the
	// one before it. A drift over time then affects all variants alike.
	OrderInterleaved RunOrder = "Interleaved"
	// OrderSequential executes all repetitions of a variant before the next variant.
	OrderSequential RunOrder = "Sequential"
)

// RetainPolicy says which volumes and pods to keep after their run.
//
// +kubebuilder:validation:Enum=Always;OnFailure;Never
type RetainPolicy string

// The values of RetainPolicy.
const (
	RetainAlways    RetainPolicy = "Always"
	RetainOnFailure RetainPolicy = "OnFailure"
	RetainNever     RetainPolicy = "Never"
)

// GatePolicy says what a verdict does to the condition Ready.
//
// +kubebuilder:validation:Enum=Report;Enforce
type GatePolicy string

// The values of GatePolicy.
const (
	// GatesReport makes Ready True after any verdict. The condition Passed has the verdict.
	GatesReport GatePolicy = "Report"
	// GatesEnforce makes Ready True only after Passed. After any other verdict, Stalled is True.
	GatesEnforce GatePolicy = "Enforce"
)

// StorageBenchmarkSpec is the desired experiment.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || has(self.baseline) || self.gates.all(g, !has(g.compare) || g.compare.to != 'Baseline')",message="a gate compares to Baseline, but there is no baseline: set spec.baseline.configMap.name",fieldPath=".gates"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || self.gates.all(g, !has(g.compare) || g.compare.to != 'Variant' || has(self.matrix) || (has(self.variants) && self.variants.exists(v, v.name == g.compare.variant)))",message="a gate compares with a variant that is not in spec.variants: set compare.variant to a name from spec.variants",fieldPath=".gates"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || self.gates.all(g, !has(g.bound) || self.phases.exists(p, g.bound.metric.startsWith(p.name + '.')))",message="a gate bounds a metric of a phase that is not in spec.phases: start bound.metric with a name from spec.phases",fieldPath=".gates"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || self.gates.all(g, !has(g.ratio) || self.phases.exists(p, g.ratio.of.startsWith(p.name + '.')))",message="a gate divides a metric of a phase that is not in spec.phases: start ratio.of with a name from spec.phases",fieldPath=".gates"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || self.gates.all(g, !has(g.compare) || self.phases.exists(p, g.compare.metric.startsWith(p.name + '.')))",message="a gate compares a metric of a phase that is not in spec.phases: start compare.metric with a name from spec.phases",fieldPath=".gates"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || self.phases.all(p, !has(p.operate) && (!has(p.measure) || !has(p.measure.operate)))",message="operate works on pools: use it with target.zfs, or remove it from the phases",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || self.phases.all(p, !has(p.fill) || p.fill.of != 'Pool')",message="fill.of: Pool needs target.zfs; a storageClass target fills a share of its Volume",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || self.phases.all(p, p.volume == 'data')",message="a storageClass target has one volume, named data: remove volume from the phases",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || self.phases.all(p, !has(p.measure) || !has(p.measure.workload) || !has(p.measure.workload.postgres) || !has(p.measure.workload.postgres.walVolume))",message="a storageClass target has one volume: remove walVolume, or use target.zfs with a second volume in target.zfs.volumes",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="!has(self.target.zfs) || self.phases.all(p, p.volume == 'data' || (has(self.target.zfs.volumes) && self.target.zfs.volumes.exists(v, v.name == p.volume)) || self.phases.exists(q, has(q.operate) && ((has(q.operate.clone) && has(q.operate.clone.as) && q.operate.clone.as == p.volume) || (has(q.operate.replicate) && has(q.operate.replicate.as) && q.operate.replicate.as == p.volume) || (has(q.operate.copy) && has(q.operate.copy.as) && q.operate.copy.as == p.volume))))",message="a phase names a volume that is not in target.zfs.volumes: use data, a name from target.zfs.volumes, or one that an earlier phase makes with as",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="!has(self.target.zfs) || !has(self.variants) || self.variants.all(v, !has(v.storageClass))",message="variants[].storageClass changes a storageClass target: use it with target.storageClass, or give the variant its own target",fieldPath=".variants"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || !has(self.variants) || self.variants.all(v, !has(v.pool) && !has(v.dataset) && !has(v.volumes) && !has(v.moduleParameters))",message="pool, dataset, volumes and moduleParameters of a variant change a zfs target: use them with target.zfs, or give the variant its own target",fieldPath=".variants"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || self.matrix.all(k, !k.startsWith('phases.') || self.phases.exists(p, k.startsWith('phases.' + p.name + '.')))",message="a path of the matrix names a phase that is not in spec.phases: write phases.PHASE.FIELD with a name from spec.phases",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="!has(self.variants) || self.variants.all(v, !has(v.set) || v.set.all(k, !k.startsWith('phases.') || self.phases.exists(p, k.startsWith('phases.' + p.name + '.'))))",message="a path of variants[].set names a phase that is not in spec.phases: write phases.PHASE.FIELD with a name from spec.phases",fieldPath=".variants"
// +kubebuilder:validation:XValidation:rule="self.phases.all(p, !has(p.onlyFor) || p.onlyFor.all(n, has(self.variants) && self.variants.exists(v, v.name == n)))",message="onlyFor of a phase names a variant that is not in spec.variants: write names from spec.variants, or remove onlyFor",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="has(self.matrix) || (self.matrixMode == 'Product' && !has(self.matrixExclude) && !has(self.matrixInclude))",message="matrixMode, matrixExclude and matrixInclude change the matrix: add spec.matrix, or remove them",fieldPath=".matrixMode"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || self.matrixMode == 'Zip' || self.matrix.all(k, self.matrix[k].all(v, self.matrix[k].exists_one(w, w == v)))",message="list each value of a matrix path once, or set matrixMode: Zip; use spec.repetitions to repeat a measurement",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || self.matrixMode != 'Zip' || self.matrix.all(k, self.matrix.all(l, self.matrix[k].size() == self.matrix[l].size()))",message="with matrixMode: Zip give all paths of the matrix the same number of values",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || !has(self.matrixExclude) || self.matrixExclude.all(e, e.all(k, k in self.matrix && e[k] in self.matrix[k]))",message="matrixExclude names a path or value that is not in the matrix: write those of the combinations to remove",fieldPath=".matrixExclude"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || !has(self.matrixInclude) || self.matrixInclude.all(e, e.size() == self.matrix.size() && e.all(k, k in self.matrix))",message="give each entry of matrixInclude one value for each path of the matrix, and no other path",fieldPath=".matrixInclude"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || !has(self.target.storageClass) || has(self.variants) || self.matrix.all(k, !k.matches('^(pool|dataset|volumes|moduleParameters)[.]'))",message="pool, dataset, volumes and moduleParameters in the matrix change a zfs target: use them with target.zfs",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="!has(self.matrix) || !has(self.target.zfs) || has(self.variants) || self.matrix.all(k, !k.startsWith('storageClass.'))",message="storageClass in the matrix changes a storageClass target: use it with target.storageClass",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || has(self.variants) || has(self.matrix) || self.phases.all(p, !has(p.fill) || !has(p.fill.size) || !isQuantity(p.fill.size) || !isQuantity(self.target.storageClass.size) || !quantity(p.fill.size).isGreaterThan(quantity(self.target.storageClass.size)))",message="fill.size is larger than the volume: make it at most target.storageClass.size, or write a share in fill.to",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="!has(self.target.storageClass) || self.target.storageClass.volumeMode != 'Block' || self.phases.all(p, !has(p.measure) || !has(p.measure.workload) || (!has(p.measure.workload.postgres) && !has(p.measure.workload.metadata) && (!has(p.measure.workload.oltp) || p.measure.workload.oltp.layout != 'FilePerWorker')))",message="postgres, metadata and layout: FilePerWorker need a file system: write volumeMode: Filesystem, or choose another workload",fieldPath=".phases"
// +kubebuilder:validation:XValidation:rule="!has(self.target.zfs) || !has(self.target.zfs.keepFor) || has(self.schedule)",message="keepFor: Schedule keeps the pool for the next scheduled experiment: add spec.schedule, or remove keepFor",fieldPath=".target.zfs.keepFor"
// +kubebuilder:validation:XValidation:rule="!has(self.schedule) || !has(self.ttlAfterFinished)",message="ttlAfterFinished would delete the benchmark and its schedule: remove one of the two, and use resultsHistory to limit the retained results",fieldPath=".ttlAfterFinished"
// +kubebuilder:validation:XValidation:rule=`!has(self.gates) || self.gates.all(g, !has(g.expression) || self.phases.exists(p, g.expression.contains("'" + p.name + "'") || g.expression.contains('"' + p.name + '"')))`,message="the expression of a gate uses no phase of spec.phases: write phase('NAME') with a name from spec.phases",fieldPath=".gates"
// +kubebuilder:validation:XValidation:rule="!has(self.adaptive) || self.adaptive.maxRepetitions > self.repetitions",message="adaptive.maxRepetitions must be more than repetitions: increase it, or remove adaptive",fieldPath=".adaptive.maxRepetitions"
// +kubebuilder:validation:XValidation:rule="!has(self.adaptive) || self.order == 'Interleaved'",message="adaptive adds interleaved repetitions of all variants: set order to Interleaved, or remove adaptive",fieldPath=".adaptive"
// +kubebuilder:validation:XValidation:rule="!has(self.adaptive) || (has(self.gates) && self.gates.exists(g, has(g.compare)))",message="adaptive adds repetitions while a compare gate is undecided: add a gate with compare, or remove adaptive",fieldPath=".adaptive"
type StorageBenchmarkSpec struct {
	// target is the storage under test.
	// +required
	Target Target `json:"target"`
	// variants are compared with each other. Each is the target with some fields replaced.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Variants []Variant `json:"variants,omitempty"`
	// matrix multiplies the variants: each path takes each of its values. Paths: storageClass.name, storageClass.size,
	// storageClass.volumeMode, pool.ashift, pool.properties.NAME, dataset.NAME, moduleParameters.NAME, phases.PHASE.FIELD such as
	// phases.fill.to or phases.tx.settings.shared_buffers, and phases.PHASE.WORKLOAD.FIELD for one of several workloads.
	// Write volumes.VOLUME. before pool or dataset for a volume other than data.
	// +optional
	Matrix Matrix `json:"matrix,omitempty"`
	// matrixMode is Product (each value of a path with each value of the others) or Zip (the first values of all paths together, then
	// the second values, and so on). Defaults to Product.
	// +optional
	// +default="Product"
	MatrixMode MatrixMode `json:"matrixMode,omitempty"`
	// matrixExclude removes each combination that matches all values of one of these entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	MatrixExclude []MatrixEntry `json:"matrixExclude,omitempty"`
	// matrixInclude adds combinations to the matrix. Each has a value for every path of it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	MatrixInclude []MatrixEntry `json:"matrixInclude,omitempty"`
	// phases are executed in the given order.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Phases []Phase `json:"phases"`
	// repetitions is the number of runs of each variant. Paired comparisons need at least 6 to be significant. Defaults to 6.
	// +optional
	// +default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	Repetitions int32 `json:"repetitions,omitempty"`
	// adaptive adds repetitions while a compare gate is undecided.
	// +optional
	Adaptive *Adaptive `json:"adaptive,omitempty"`
	// order is the order of the runs: Interleaved or Sequential. Defaults to Interleaved.
	// +optional
	// +default="Interleaved"
	Order RunOrder `json:"order,omitempty"`
	// seed is the seed of all random choices. Defaults to a value derived from the object's UID; see status.seed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Seed *int64 `json:"seed,omitempty"`
	// maxAttempts is the number of attempts at each run. An Invalid run is repeated from the beginning. Defaults to 2.
	// The experiment ends after 64 Invalid attempts, or after twice as many as it has runs if that is more.
	// +optional
	// +default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	MaxAttempts int32 `json:"maxAttempts,omitempty"`
	// gates decide the verdict. Without gates, a benchmark passes when each repetition has a valid run.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []Gate `json:"gates,omitempty"`
	// gatePolicy says what a verdict does to the condition Ready: with Report, Ready is True after any verdict; with Enforce, only after
	// Passed. Any other verdict then makes Stalled True, which stops a rollout by Flux or Argo CD. Defaults to Report.
	// +optional
	// +default="Report"
	GatePolicy GatePolicy `json:"gatePolicy,omitempty"`
	// baseline refers to earlier results that gates can compare with.
	// +optional
	Baseline *Baseline `json:"baseline,omitempty"`
	// calibration refers to the measured noise between equal runs. No compare gate fails for a change below the noise.
	// +optional
	Calibration *Calibration `json:"calibration,omitempty"`
	// schedule reruns the benchmark. The first experiment starts at once, each further one at the next scheduled time after the
	// previous one finished. Times that pass before that are skipped.
	// +optional
	Schedule *Schedule `json:"schedule,omitempty"`
	// retain says which volumes and pods to keep after their run, until the benchmark is deleted or rerun. Defaults to Never.
	// +optional
	// +default="Never"
	Retain RetainPolicy `json:"retain,omitempty"`
	// resultsHistory is the number of earlier experiments whose results are retained. Defaults to 10.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ResultsHistory *int32 `json:"resultsHistory,omitempty"`
	// ttlAfterFinished deletes the benchmark and its results this long after completion.
	// +optional
	TTLAfterFinished *Duration `json:"ttlAfterFinished,omitempty"`
	// suspend stops the run in progress, releases the node and starts no new run. Finished runs are kept. The stopped run restarts
	// on resume.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// priority orders the queue for a node: the highest goes first. The admin limits it for each namespace.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`
	// deadline is the time limit of the whole experiment, from its first run.
	// +optional
	Deadline *Duration `json:"deadline,omitempty"`
	// podTemplate customizes the workload pods.
	// +optional
	PodTemplate PodTemplate `json:"podTemplate,omitzero"`
}

// StorageBenchmarkStatus is the observed state of an experiment.
type StorageBenchmarkStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Reconciling, Stalled, Complete and Passed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// verdict is the verdict over all gates, once complete.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// state is a one-word summary for people. Programs should read the conditions.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state,omitempty"`
	// experiment is a hash of what is measured: target with the contents of its StorageTargets, variants, matrix, phases, repetitions,
	// adaptive, order, seed, pod template, UID of the object, rerun annotation and scheduled time.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Experiment string `json:"experiment,omitempty"`
	// targetDigest is a digest of the StorageTargets that the experiment began with. Empty without target.ref.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	TargetDigest string `json:"targetDigest,omitempty"`
	// seed is the seed in use.
	// +optional
	Seed *int64 `json:"seed,omitempty"`
	// nodeName is the node that executes the runs. For several nodes it is a comma-separated list of names, possibly truncated.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`
	// nodeNames are the nodes, if each phase executes on several at once.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	NodeNames []string `json:"nodeNames,omitempty"`
	// storageClass is the resolved StorageClass.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`
	// runnerImage is the image of the workload pods.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	RunnerImage string `json:"runnerImage,omitempty"`
	// queue is the position in the queue while another benchmark holds the node.
	// +optional
	Queue *QueueStatus `json:"queue,omitempty"`
	// holdUntil is the latest end of the experiment. It follows from the admin's limit on how long a benchmark may hold its nodes.
	// +optional
	HoldUntil *metav1.Time `json:"holdUntil,omitempty"`
	// startedAt is when the first run was created.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when the last run ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// progress is the progress of the runs.
	// +optional
	Progress *ProgressStatus `json:"progress,omitempty"`
	// results refers to the results of the experiment.
	// +optional
	Results *ResultsReference `json:"results,omitempty"`
	// gates are the gates with their verdicts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []GateStatus `json:"gates,omitempty"`
	// summary holds the primary metrics per variant and measure phase. It is bounded; the results hold everything.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Summary []PhaseSummary `json:"summary,omitempty"`
	// summaryOmitted is the number of summary entries that only the results hold.
	// +optional
	SummaryOmitted int32 `json:"summaryOmitted,omitempty"`
	// history lists earlier experiments of this benchmark, newest first.
	// +optional
	// +listType=map
	// +listMapKey=experiment
	// +kubebuilder:validation:MaxItems=100
	History []ResultsReference `json:"history,omitempty"`
	// schedule says which time of spec.schedule the experiment belongs to, and when the next one starts.
	// +optional
	Schedule *ScheduleStatus `json:"schedule,omitempty"`
}

// StorageBenchmark is a storage experiment: what to create, what to do with it, what to measure and what must hold.
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
// +kubebuilder:printcolumn:name="Waits for",type=string,JSONPath=`.status.queue.holder`,priority=1
// +kubebuilder:printcolumn:name="Ends",type=date,JSONPath=`.status.progress.estimatedEnd`,priority=1
// +kubebuilder:printcolumn:name="Report",type=string,JSONPath=`.status.results.configMap`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="shorten metadata.name to at most 63 characters"
type StorageBenchmark struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired experiment.
	// +required
	Spec StorageBenchmarkSpec `json:"spec"`
	// status is the observed state of the experiment.
	// +default={"observedGeneration": -1}
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
