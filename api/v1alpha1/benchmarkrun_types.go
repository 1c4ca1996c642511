package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunGroup is the group of a run whose phases execute on several nodes at the same time.
//
// +kubebuilder:validation:XValidation:rule="self.index < self.nodes.size()",message="make index less than the number of nodes: it starts at 0"
type RunGroup struct {
	// name is the common name of the group. The name of each run adds a letter, such as -a for the first node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=61
	Name string `json:"name"`
	// index is the index of this run's node in nodes.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=7
	Index int32 `json:"index"`
	// nodes are the nodes of the group, sorted by name. Each has one run.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes"`
}

// BenchmarkRunSpec is one execution of one variant with all values resolved. It is immutable.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a BenchmarkRun is immutable: change its StorageBenchmark, which creates new runs"
// +kubebuilder:validation:XValidation:rule="!has(self.group) || self.group.index >= self.group.nodes.size() || self.group.nodes[self.group.index] == self.nodeName",message="nodeName differs from the node that group.index selects in group.nodes: make them the same"
type BenchmarkRunSpec struct {
	// benchmark is the name of the StorageBenchmark.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Benchmark string `json:"benchmark"`
	// experiment is the hash of the experiment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	Experiment string `json:"experiment"`
	// index is the position of the run in the order of execution.
	// +required
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`
	// variant is the name of the variant with its matrix values.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Variant string `json:"variant"`
	// repetition is the repetition of the variant, starting at 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Repetition int32 `json:"repetition"`
	// attempt is the attempt at this run, starting at 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt"`
	// seed is the seed of all random choices of this run.
	// +required
	Seed int64 `json:"seed"`
	// nodeName is the node that executes the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a node as 'kubectl get nodes' shows it"
	NodeName string `json:"nodeName"`
	// group is the group of runs that execute each phase at the same time, one run per node. Unset for a single run.
	// +optional
	Group *RunGroup `json:"group,omitempty"`
	// runnerImage is the image of the workload pods.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	RunnerImage string `json:"runnerImage"`
	// target is the target with the variant applied.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.ref)",message="write the content of the StorageTarget instead of ref"
	Target Target `json:"target"`
	// phases are the phases with the variant applied.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Phases []Phase `json:"phases"`
	// retain says whether to keep the volume and pods after the run.
	// +required
	Retain RetainPolicy `json:"retain"`
	// podTemplate customizes the workload pods.
	// +optional
	PodTemplate PodTemplate `json:"podTemplate,omitzero"`
}

// RunPhaseStatus is the observed state of one phase of a run.
type RunPhaseStatus struct {
	// name is the name of the phase.
	// +required
	Name PhaseName `json:"name"`
	// executorUID is the UID of the Job or PoolOperation that executes the phase. If it is lost without a result, it is never
	// recreated.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ExecutorUID string `json:"executorUID,omitempty"`
	// startedAt is when the Job or PoolOperation was created.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// startAt is the time at which the runs of a group agreed to start the workload.
	// +optional
	StartAt *metav1.MicroTime `json:"startAt,omitempty"`
	// startLagMilliseconds is how long after startAt the workload started, by the node's clock.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartLagMilliseconds *int64 `json:"startLagMilliseconds,omitempty"`
	// finishedAt is when the result was stored.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// result is the name of the ConfigMap that holds the result of the phase.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Result string `json:"result,omitempty"`
	// digest is the digest of the result document.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Digest string `json:"digest,omitempty"`
}

// RunReadiness is the phase that a run of a group is ready to start.
type RunReadiness struct {
	// phase is the phase that is ready to start.
	// +required
	Phase PhaseName `json:"phase"`
	// since is when it became ready. It never changes for a phase: all runs of the group compute the start time from it.
	// +required
	Since metav1.MicroTime `json:"since"`
}

// PoolAge is how much a pool has been used, up to and including a run.
type PoolAge struct {
	// since is when the pool was created.
	// +required
	Since metav1.Time `json:"since"`
	// experiments is the number of experiments on the pool, including that of the run.
	// +required
	Experiments int32 `json:"experiments"`
	// runs is the number of runs on the pool, including this one.
	// +required
	Runs int32 `json:"runs"`
}

// RunVolumeStatus is a volume that was created for a run on a zfs target.
type RunVolumeStatus struct {
	// name is the name that phases use for the volume.
	// +required
	Name VolumeName `json:"name"`
	// pool is the name of its BenchmarkPool.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Pool string `json:"pool"`
	// provisioner is the provisioner that created the dataset.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Provisioner string `json:"provisioner,omitempty"`
	// guid is the GUID of the pool.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	GUID string `json:"guid,omitempty"`
	// keptFrom is the run that used the pool before this one, if reset is not Pool. With Dataset, only the dataset is new; with None, it holds
	// the data of that run. Empty if the pool was new.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	KeptFrom string `json:"keptFrom,omitempty"`
	// poolAge is how much the pool has been used. Only set with keepFor: Schedule.
	// +optional
	PoolAge *PoolAge `json:"poolAge,omitempty"`
	// zfsVersion is the version of the ZFS module and tools on the node.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ZFSVersion string `json:"zfsVersion,omitempty"`
	// properties are the requested properties, and other relevant ones, as ZFS reported them before the first phase.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Properties []EffectiveProperty `json:"properties,omitempty"`
}

// BenchmarkRunStatus is the observed state of a run.
type BenchmarkRunStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Reconciling, Stalled, Complete and Valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// state is a one-word summary for people. Programs should read the conditions.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state,omitempty"`
	// currentPhase is the phase in progress.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	CurrentPhase string `json:"currentPhase,omitempty"`
	// volumes are the volumes that were created for the run. Empty for a storageClass target.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Volumes []RunVolumeStatus `json:"volumes,omitempty"`
	// phases are the phases that were started.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Phases []RunPhaseStatus `json:"phases,omitempty"`
	// readyFor is the phase that a run of a group is ready to start, or started last.
	// +optional
	ReadyFor *RunReadiness `json:"readyFor,omitempty"`
	// startedAt is when the controller first acted on the run.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when the last phase ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// retryable says whether another attempt at an Invalid run can succeed.
	// +optional
	Retryable bool `json:"retryable,omitempty"`
}

// BenchmarkRun is one execution of one variant of a StorageBenchmark. The operator creates it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sbrun,categories=storagebench
// +kubebuilder:printcolumn:name="Variant",type=string,JSONPath=`.spec.variant`
// +kubebuilder:printcolumn:name="Rep",type=integer,JSONPath=`.spec.repetition`
// +kubebuilder:printcolumn:name="Try",type=integer,JSONPath=`.spec.attempt`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.currentPhase`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BenchmarkRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the resolved run.
	// +required
	Spec BenchmarkRunSpec `json:"spec"`
	// status is the observed state of the run.
	// +optional
	Status BenchmarkRunStatus `json:"status,omitzero"`
}

// BenchmarkRunList is a list of BenchmarkRuns.
//
// +kubebuilder:object:root=true
type BenchmarkRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BenchmarkRun `json:"items"`
}
