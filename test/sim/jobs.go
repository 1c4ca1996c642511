package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// jobs plays the job controller for Jobs with backoffLimit 0: one pod each.
func (p *pass) jobs(ctx context.Context) error {
	p.seenPods = slices.Grow(p.seenPods, len(p.seenJobs)) // new pods are added while pointers to the others are held
	known := map[types.UID]*corev1.Pod{}
	alive := map[types.UID]bool{}
	for i := range p.seenJobs {
		alive[p.seenJobs[i].UID] = true
	}
	for i := range p.seenPods {
		pod := &p.seenPods[i]
		owner := metav1.GetControllerOf(pod)
		if owner != nil && alive[owner.UID] {
			known[owner.UID] = pod
			continue
		}
		// A pod whose Job is gone is not counted.
		if err := p.untrack(ctx, pod); err != nil {
			return err
		}
	}
	p.deadline = time.Time{}
	for i := range p.seenJobs {
		if err := p.job(ctx, &p.seenJobs[i], known[p.seenJobs[i].UID]); err != nil {
			return fmt.Errorf("play the job controller for %s: %w", client.ObjectKeyFromObject(&p.seenJobs[i]), err)
		}
	}
	return nil
}

// job takes one Job a step further.
func (p *pass) job(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) error {
	if findCondition(job, batchv1.JobComplete) != nil || findCondition(job, batchv1.JobFailed) != nil || job.DeletionTimestamp != nil {
		return p.untrack(ctx, pod)
	}
	if failing := findCondition(job, batchv1.JobFailureTarget); failing != nil {
		if pod != nil && !ended(pod) {
			return p.stop(ctx, pod)
		}
		return p.finishJob(ctx, job, batchv1.JobFailed, failing.Reason, failing.Message)
	}
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		return nil
	}
	if p.pastDeadline(job) {
		return p.failJob(ctx, job, pod, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	}
	const exceeded = "Job has reached the specified backoff limit"
	switch {
	case pod == nil && (p.created[job.UID] || job.Status.Active > 0):
		return p.failJob(ctx, job, nil, batchv1.JobReasonBackoffLimitExceeded, exceeded)
	case pod == nil:
		return p.createPod(ctx, job)
	case pod.Status.Phase == corev1.PodSucceeded:
		if err := p.finishJob(ctx, job, batchv1.JobComplete, batchv1.JobReasonCompletionsReached,
			"Reached expected number of succeeded pods"); err != nil {
			return err
		}
		return p.untrack(ctx, pod)
	case pod.Status.Phase == corev1.PodFailed:
		return p.failJob(ctx, job, pod, batchv1.JobReasonBackoffLimitExceeded, exceeded)
	}
	ready := int32(0)
	if pod.Status.Phase == corev1.PodRunning {
		ready = 1
	}
	return p.countJob(ctx, job, 1, ready)
}

// pastDeadline reports whether a Job has been active for longer than it may; if not, the deadline is remembered.
func (p *pass) pastDeadline(job *batchv1.Job) bool {
	if job.Spec.ActiveDeadlineSeconds == nil || job.Status.StartTime == nil {
		return false
	}
	deadline := job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second)
	if !p.now.Before(deadline) {
		return true
	}
	if p.deadline.IsZero() || deadline.Before(p.deadline) {
		p.deadline = deadline
	}
	return false
}

// createPod creates a Job's pod, under a name that looks random and is the same in every test run.
func (p *pass) createPod(ctx context.Context, job *batchv1.Job) error {
	if job.Status.StartTime == nil {
		if err := p.countJob(ctx, job, 0, 0); err != nil {
			return err
		}
	}
	key := job.Namespace + "/" + job.Name
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%d", key, p.ordinals[key])
	controller := true
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace = job.Namespace
	pod.Name = fmt.Sprintf("%.57s-%05s", job.Name, strconv.FormatUint(uint64(hash.Sum32())%(36*36*36*36*36), 36))
	pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID,
		Controller: &controller, BlockOwnerDeletion: &controller,
	}}
	err := p.client.Create(ctx, pod)
	switch {
	case err == nil:
		p.created[job.UID] = true
		p.seenPods = append(p.seenPods, *pod)
	case apierrors.IsAlreadyExists(err): // left over from another Job of this name
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return p.warn(ctx, "Job", job, "FailedCreate", "Error creating: "+err.Error())
	}
	p.ordinals[key]++
	return p.wrote(err)
}

// countJob writes how many pods a Job has, if that changed. How many are ready is written with the next change.
func (p *pass) countJob(ctx context.Context, job *batchv1.Job, active, ready int32) error {
	if job.Status.StartTime != nil && job.Status.Active == active {
		return nil
	}
	terminating := int32(0)
	if job.Status.StartTime == nil {
		job.Status.StartTime = &metav1.Time{Time: p.now}
	}
	job.Status.Active, job.Status.Ready, job.Status.Terminating = active, &ready, &terminating
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	return p.wrote(p.client.Status().Update(ctx, job))
}

// failJob says that a Job will fail. It has failed only when its pod has ended.
func (p *pass) failJob(ctx context.Context, job *batchv1.Job, pod *corev1.Pod, reason, message string) error {
	if pod == nil || ended(pod) {
		return p.finishJob(ctx, job, batchv1.JobFailed, reason, message)
	}
	none, one := int32(0), int32(1)
	p.setCondition(job, batchv1.JobFailureTarget, reason, message)
	job.Status.Active, job.Status.Ready, job.Status.Terminating = 0, &none, &one
	job.Status.Failed = 1
	return p.wrote(p.client.Status().Update(ctx, job))
}

// finishJob writes the end of a Job: the API server requires the conditions in pairs, a start time and no active pods.
func (p *pass) finishJob(ctx context.Context, job *batchv1.Job, end batchv1.JobConditionType, reason, message string) error {
	none := int32(0)
	job.Status.Active, job.Status.Ready, job.Status.Terminating = 0, &none, &none
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	if job.Status.StartTime == nil {
		job.Status.StartTime = &metav1.Time{Time: p.now}
	}
	if end == batchv1.JobComplete {
		job.Status.Succeeded = 1
		job.Status.CompletionTime = &metav1.Time{Time: latest(p.now, job.Status.StartTime.Time)}
		p.setCondition(job, batchv1.JobSuccessCriteriaMet, reason, message)
	} else {
		job.Status.Failed = 1
		p.setCondition(job, batchv1.JobFailureTarget, reason, message)
	}
	p.setCondition(job, end, reason, message)
	return p.wrote(p.client.Status().Update(ctx, job))
}

// stop deletes the pod of a Job that is to fail; the kubelet ends it.
func (p *pass) stop(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	return p.wrote(p.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
}

// untrack removes the finalizer by which the job controller keeps a pod until it has counted it.
func (p *pass) untrack(ctx context.Context, pod *corev1.Pod) error {
	if pod == nil {
		return nil
	}
	return p.dropFinalizer(ctx, pod, batchv1.JobTrackingFinalizer)
}

// dropFinalizer removes a finalizer that an object may have.
func (p *pass) dropFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	if !controllerutil.ContainsFinalizer(object, finalizer) {
		return nil
	}
	before := object.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(object, finalizer)
	return p.wrote(p.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// setCondition sets a condition of a Job to True.
func (p *pass) setCondition(job *batchv1.Job, kind batchv1.JobConditionType, reason, message string) {
	if findCondition(job, kind) != nil {
		return
	}
	when := metav1.NewTime(p.now)
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: when, LastTransitionTime: when,
	})
}

// findCondition finds a condition that is True.
func findCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, condition := range job.Status.Conditions {
		if condition.Type == kind && condition.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// ended reports whether a pod has reached its last phase.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}
