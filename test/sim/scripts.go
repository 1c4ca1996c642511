package sim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// Behaviour says what happens to a workload pod. It is called once per pod, when the pod is first seen. The request is
// empty for a pod that carries none.
type Behaviour func(request workload.Request, pod *corev1.Pod) Script

// Outcome is how the life of a pod goes.
type Outcome string

// The values of Outcome.
const (
	// Succeed: the workload ends well and its result arrives. This is the zero value.
	Succeed Outcome = ""
	// Fail: the container ends with Script.ExitCode (1 if that is 0) and without a result, unless Script.Document is set.
	Fail Outcome = "Fail"
	// Truncate: it succeeds, but half of the result's lines are missing from the log.
	Truncate Outcome = "Truncate"
	// WrongDigest: it succeeds, but the receipt is for another document.
	WrongDigest Outcome = "WrongDigest"
	// NoResult: it ends with 0, but there is no receipt and no result.
	NoResult Outcome = "NoResult"
	// LogGone: it succeeds with a receipt, but the log is empty.
	LogGone Outcome = "LogGone"
	// ForeignRun: a flawless result of another run.
	ForeignRun Outcome = "ForeignRun"
	// ForeignPhase: a flawless result of another phase.
	ForeignPhase Outcome = "ForeignPhase"
	// ImagePull: the image is never pulled: first ErrImagePull, then ImagePullBackOff.
	ImagePull Outcome = "ImagePull"
	// Unschedulable: no node takes the pod; Script.Message is the scheduler's.
	Unschedulable Outcome = "Unschedulable"
	// NeverBind: the pod's unbound claims stay unbound, if their class waits for a pod; Script.Message is the warning.
	// Use Options.Claims for classes that bind at once.
	NeverBind Outcome = "NeverBind"
	// NeverStart: the pod stays in ContainerCreating.
	NeverStart Outcome = "NeverStart"
	// Reject: the kubelet refuses the pod, with Script.Reason (OutOfcpu if empty).
	Reject Outcome = "Reject"
	// Evict: the kubelet evicts the running pod.
	Evict Outcome = "Evict"
	// Kill: a user deletes the running pod; the kubelet stops it with exit code 143.
	Kill Outcome = "Kill"
	// LoseNode: the node of the running pod is gone, and the pod garbage collector removes the pod.
	LoseNode Outcome = "LoseNode"
	// Reset: the node of the running pod is reset and forgets its containers. It starts the pod once more, and this time the pod succeeds.
	Reset Outcome = "Reset"
	// Lose: the running pod vanishes from the API server without any trace.
	Lose Outcome = "Lose"
)

// Script is what happens to one pod. The zero value succeeds at once with plausible numbers.
type Script struct {
	Outcome Outcome
	// ExitCode of Fail.
	ExitCode int32
	// Reason of Reject.
	Reason string
	// Message of the scheduler, the kubelet or the container (its termination message), for outcomes that have one.
	Message string
	// Metrics replace or add to those of the result.
	Metrics map[string]int64
	// Document, if set, changes the result before it is written.
	Document func(document *results.PhaseDocument)
	// Hold keeps the pod running until Release; only then the Outcome happens.
	Hold bool
	// LogFailures is how many attempts to read the log fail before one succeeds; if negative, all of them fail.
	LogFailures int
	// Log are lines written before the result.
	Log []string
}

// Execution is a workload that really started, in a pod.
type Execution struct {
	Pod    string
	PodUID types.UID
	JobUID types.UID
	// Namespace and Node of the pod.
	Namespace, Node string
	// RunUID, Run and Phase that the request names.
	RunUID, Run, Phase string
	Seed               int64
	// Ended says that it is over, and ExitCode how; -1 if the pod ended without an exit code of its container.
	Ended    bool
	ExitCode int32
}

// Executions returns the workloads that really started, in order.
func (c *Cluster) Executions() []Execution {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([]Execution(nil), c.executions...)
}

// Release lets the held workloads continue for which match is true, and returns how many. A nil match selects all.
func (c *Cluster) Release(match func(Execution) bool) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	count := 0
	for _, execution := range c.executions {
		if !execution.Ended && !c.released[execution.PodUID] && (match == nil || match(execution)) {
			c.released[execution.PodUID] = true
			count++
		}
	}
	c.renewed = true
	return count
}

// SetBehaviour replaces the behaviour, which is called again for pods that have not ended.
func (c *Cluster) SetBehaviour(behaviour Behaviour) {
	c.step.Lock()
	defer c.step.Unlock()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.behaviour, c.renewed = behaviour, true
	clear(c.scripts)
}

// SetClaims replaces the behaviour of claims.
func (c *Cluster) SetClaims(behaviour ClaimBehaviour) {
	c.step.Lock()
	defer c.step.Unlock()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.options.Claims, c.renewed = behaviour, true
}

// script returns what happens to a pod.
func (c *Cluster) script(pod *corev1.Pod) Script {
	if script, known := c.scripts[pod.UID]; known {
		return script
	}
	c.mutex.Lock()
	behaviour := c.behaviour
	c.mutex.Unlock()
	var script Script
	if behaviour != nil {
		request, _ := requestOf(pod)
		script = behaviour(request, pod.DeepCopy())
	}
	c.scripts[pod.UID] = script
	return script
}

// held reports whether a running pod must not end yet.
func (c *Cluster) held(pod *corev1.Pod) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.scripts[pod.UID].Hold && !c.released[pod.UID]
}

// requestOf reads the request that a pod carries; false means that there is none.
func requestOf(pod *corev1.Pod) (workload.Request, bool) {
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == workload.RequestVariable {
			request, err := workload.DecodeRequest(variable.Value)
			return request, err == nil
		}
	}
	return workload.Request{}, false
}
