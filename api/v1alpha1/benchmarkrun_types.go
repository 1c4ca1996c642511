package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunGroup is what a run is a part of, if its phases are executed on several nodes at once.
//
// +kubebuilder:validation:XValidation:rule="self.index < self.nodes.size()",message="index counts the nodes from 0: make it less than their number"
type RunGroup struct {
	// name that the runs of the group share; each has a letter behind it, -a for the first node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=61
	Name string `json:"name"`
	// index of this run's node in nodes.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=7
	Index int32 `json:"index"`
	// nodes of the group, sorted by name; each has one run.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes"`
}

// BenchmarkRunSpec is one execution of one variant, with everything resolved. It never changes.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a BenchmarkRun is never changed: change its StorageBenchmark, which makes new runs"
// +kubebuilder:validation:XValidation:rule="!has(self.group) || self.group.index >= self.group.nodes.size() || self.group.nodes[self.group.index] == self.nodeName",message="nodeName is another node than the one of group.nodes that group.index names: make them the same"
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
	// index of the run in the order of execution.
	// +required
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`
	// variant with its matrix values.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Variant string `json:"variant"`
	// repetition of the variant, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Repetition int32 `json:"repetition"`
	// attempt at this run, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt"`
	// seed of everything random in this run.
	// +required
	Seed int64 `json:"seed"`
	// nodeName is where the run takes place.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a node as 'kubectl get nodes' shows it"
	NodeName string `json:"nodeName"`
	// group of runs that execute each phase at the same time, each on a node of its own; left out for a run alone.
	// +optional
	Group *RunGroup `json:"group,omitempty"`
	// runnerImage of the workload pods.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	RunnerImage string `json:"runnerImage"`
	// target with the variant applied.
	// +required
	Target Target `json:"target"`
	// phases with the variant applied.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Phases []Phase `json:"phases"`
	// retain says whether volume and pods are kept.
	// +required
	Retain RetainPolicy `json:"retain"`
	// podTemplate of the workload pods.
	// +optional
	PodTemplate PodTemplate `json:"podTemplate,omitzero"`
}

// RunPhaseStatus is what is known of one phase of a run.
type RunPhaseStatus struct {
	// name of the phase.
	// +required
	Name PhaseName `json:"name"`
	// jobUID of the Job that executes it. A Job that is gone without a result is never silently made again.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	JobUID string `json:"jobUID,omitempty"`
	// startedAt is when the Job was made.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// startAt is the moment that the runs of a group have agreed on for the beginning of the workload.
	// +optional
	StartAt *metav1.MicroTime `json:"startAt,omitempty"`
	// startLagMilliseconds is how much later than startAt the workload began, by the node's clock.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartLagMilliseconds *int64 `json:"startLagMilliseconds,omitempty"`
	// finishedAt is when the result was stored.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// result is the ConfigMap that holds the phase's result.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Result string `json:"result,omitempty"`
	// digest of the result document.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Digest string `json:"digest,omitempty"`
}

// RunReadiness is what a run of a group waits for the others with.
type RunReadiness struct {
	// phase that could begin.
	// +required
	Phase PhaseName `json:"phase"`
	// since when; it never changes for a phase. The start is agreed on from those of all runs of the group.
	// +required
	Since metav1.MicroTime `json:"since"`
}

// RunVolumeStatus is a volume that was made for a run on a zfs target.
type RunVolumeStatus struct {
	// name by which phases refer to it.
	// +required
	Name PhaseName `json:"name"`
	// pool is its BenchmarkPool.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Pool string `json:"pool"`
	// provisioner that made the dataset.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Provisioner string `json:"provisioner,omitempty"`
	// guid of the pool.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	GUID string `json:"guid,omitempty"`
	// keptFrom is the run that used the pool before, if reset other than Pool kept it for this one: with Dataset only the dataset is
	// new, with None it holds what that run has left. Empty says that the pool was new.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	KeptFrom string `json:"keptFrom,omitempty"`
	// zfsVersion of the node's module and tools.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ZFSVersion string `json:"zfsVersion,omitempty"`
	// properties in effect before the first phase, read back from ZFS: those that were asked for, and those that matter anyway.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Properties []EffectiveProperty `json:"properties,omitempty"`
}

// BenchmarkRunStatus is what is known of a run.
type BenchmarkRunStatus struct {
	// observedGeneration is the generation that the rest of the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, Reconciling, Stalled, Complete, Valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// state is one word for people; programs read the conditions.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state,omitempty"`
	// currentPhase of the run.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	CurrentPhase string `json:"currentPhase,omitempty"`
	// volumes that were made for the run; none on a storageClass target.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Volumes []RunVolumeStatus `json:"volumes,omitempty"`
	// phases that were started.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Phases []RunPhaseStatus `json:"phases,omitempty"`
	// readyFor is the phase that a run of a group is ready to execute, or has begun last.
	// +optional
	ReadyFor *RunReadiness `json:"readyFor,omitempty"`
	// startedAt is when the run was first acted upon.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when its last phase ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// retryable says whether another attempt at an Invalid run makes sense.
	// +optional
	Retryable bool `json:"retryable,omitempty"`
}

// BenchmarkRun is one execution of one variant of a StorageBenchmark. It is made by the operator.
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
	// status is what is known of it.
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
