// Package trim removes from cached objects the fields that controllers do not read from the caches, or read from the API server when
// needed. Tenants can write most of these objects and could fill the memory with them, so the size of each trimmed object is limited.
package trim

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	// ours is the prefix of the labels and annotations that the controllers read.
	ours = "storagebench.dev/"
	// maxBytes limits the annotations of an object. The longest lists the results merged into a history: 100 of about 30
	// characters.
	maxBytes = 6 << 10
	// maxKeys limits their number, and that of owners and finalizers: the manager writes fewer than ten of each.
	maxKeys = 16
	// maxMedians is how many medians of a benchmark are kept.
	maxMedians = 32
	// maxMessage limits messages of other components.
	maxMessage = 1 << 10
)

// Metadata removes the metadata that others have written from an object, and also the spec and status of a PersistentVolume. It also works
// for objects that are cached as metadata only.
func Metadata(object any) (any, error) {
	if volume, is := object.(*corev1.PersistentVolume); is {
		volume.Spec, volume.Status = corev1.PersistentVolumeSpec{}, corev1.PersistentVolumeStatus{}
	}
	if one, is := object.(metav1.Object); is {
		shrink(one)
	}
	return object, nil
}

func shrink(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetLabels(keepOurs(object.GetLabels()))
	object.SetAnnotations(keepOurs(object.GetAnnotations()))
	object.SetFinalizers(object.GetFinalizers()[:min(len(object.GetFinalizers()), maxKeys)])
	controller := metav1.GetControllerOf(object)
	object.SetOwnerReferences(nil)
	if controller != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*controller})
	}
}

// keepOurs returns the entries that the manager may have written, up to the limits.
func keepOurs(all map[string]string) map[string]string {
	var kept map[string]string
	room := maxBytes
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if size := len(key) + len(all[key]); strings.HasPrefix(key, ours) && size <= room && len(kept) < maxKeys {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = all[key]
			room -= size
		}
	}
	return kept
}

// Pod keeps the state of a pod and its containers.
func Pod(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return Metadata(object)
	}
	shrink(pod)
	status := &pod.Status
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds}
	pod.Status = corev1.PodStatus{Phase: status.Phase, Reason: status.Reason, Message: spelling.Shorten(status.Message, maxMessage),
		Conditions: status.Conditions, ContainerStatuses: status.ContainerStatuses[:min(len(status.ContainerStatuses), maxKeys)]}
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].Message = spelling.Shorten(pod.Status.Conditions[i].Message, maxMessage)
	}
	return pod, nil
}

// Claim keeps the volume of a claim.
func Claim(object any) (any, error) {
	claim, is := object.(*corev1.PersistentVolumeClaim)
	if !is {
		return Metadata(object)
	}
	shrink(claim)
	claim.Spec = corev1.PersistentVolumeClaimSpec{VolumeName: claim.Spec.VolumeName, StorageClassName: claim.Spec.StorageClassName}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase}
	return claim, nil
}

// Job keeps the fields that show whether and how a Job has ended.
func Job(object any) (any, error) {
	job, is := object.(*batchv1.Job)
	if !is {
		return Metadata(object)
	}
	shrink(job)
	job.Spec = batchv1.JobSpec{}
	job.Status = batchv1.JobStatus{Active: job.Status.Active, Conditions: job.Status.Conditions}
	for i := range job.Status.Conditions {
		job.Status.Conditions[i].Message = spelling.Shorten(job.Status.Conditions[i].Message, maxMessage)
	}
	return job, nil
}

// Event keeps the contents of a Warning about a claim or a Job, and only the metadata of any other event.
func Event(object any) (any, error) {
	event, is := object.(*corev1.Event)
	if !is {
		return Metadata(object)
	}
	kept := &corev1.Event{TypeMeta: event.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: event.Namespace, Name: event.Name,
		UID: event.UID, ResourceVersion: event.ResourceVersion, CreationTimestamp: event.CreationTimestamp}}
	if kind := event.InvolvedObject.Kind; kind == "PersistentVolumeClaim" || kind == "Job" {
		kept.Type, kept.Reason, kept.Message = event.Type, spelling.Shorten(event.Reason, 128), spelling.Shorten(event.Message, maxMessage)
		kept.InvolvedObject = corev1.ObjectReference{Kind: kind, Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
		kept.LastTimestamp, kept.EventTime = event.LastTimestamp, event.EventTime
	}
	return kept, nil
}

// Node keeps the labels and the spec of a node, and of its status the conditions and the node info.
func Node(object any) (any, error) {
	node, is := object.(*corev1.Node)
	if !is {
		return Metadata(object)
	}
	labels := node.Labels
	shrink(node)
	node.Labels = labels // nodes are chosen by labels
	node.Status = corev1.NodeStatus{Conditions: node.Status.Conditions, NodeInfo: node.Status.NodeInfo}
	return node, nil
}

// Benchmark keeps the fields that other benchmarks and the metrics need. For its own reconcile, a benchmark is read from the API server.
func Benchmark(object any) (any, error) {
	benchmark, is := object.(*v1alpha1.StorageBenchmark)
	if !is {
		return Metadata(object)
	}
	shrink(benchmark)
	spec, status := &benchmark.Spec, &benchmark.Status
	spec.Target, spec.Variants, spec.Matrix, spec.Phases, spec.Gates = v1alpha1.Target{}, nil, nil, nil, nil
	spec.MatrixExclude, spec.MatrixInclude, spec.PodTemplate = nil, nil, v1alpha1.PodTemplate{}
	status.Gates, status.Results = nil, nil
	status.Summary, status.History = firstMedians(status.Summary), lastVerdict(status.History)
	return benchmark, nil
}

// Run keeps what other objects need to know about a run. For its own reconcile, a run is read from the API server.
func Run(object any) (any, error) {
	run, is := object.(*v1alpha1.BenchmarkRun)
	if !is {
		return Metadata(object)
	}
	if at := slices.Index(run.Finalizers, v1alpha1.FinalizerTeardown); at > 0 { // without it, the run would seem to have left its node
		run.Finalizers[0], run.Finalizers[at] = run.Finalizers[at], run.Finalizers[0]
	}
	shrink(run)
	spec := &run.Spec
	spec.Target.ZFS, spec.PodTemplate = outlineTarget(spec.Target.ZFS), v1alpha1.PodTemplate{}
	for i := range spec.Phases {
		spec.Phases[i] = outlinePhase(&spec.Phases[i])
	}
	return run, nil
}

// outlineTarget keeps the names of the volumes, what provides them and how long their pools stay, but not the layouts of the pools.
func outlineTarget(target *v1alpha1.ZFSTarget) *v1alpha1.ZFSTarget {
	if target == nil {
		return nil
	}
	kept := &v1alpha1.ZFSTarget{Reset: target.Reset, KeepFor: target.KeepFor, Dataset: outlineDataset(target.Dataset)}
	for _, volume := range target.Volumes {
		kept.Volumes = append(kept.Volumes, v1alpha1.AdditionalVolume{Name: volume.Name, PoolOf: volume.PoolOf,
			Dataset: outlineDataset(volume.Dataset)})
	}
	return kept
}

func outlineDataset(dataset *v1alpha1.DatasetTemplate) *v1alpha1.DatasetTemplate {
	if dataset == nil {
		return nil
	}
	return &v1alpha1.DatasetTemplate{Provisioner: dataset.Provisioner}
}

// outlinePhase keeps the name and the kind of a phase, and which file its workload reads: results are judged by whether that file has
// changed.
func outlinePhase(phase *v1alpha1.Phase) v1alpha1.Phase {
	kept := v1alpha1.Phase{Name: phase.Name}
	switch {
	case phase.Fill != nil:
		kept.Fill = &v1alpha1.FillPhase{}
	case phase.Fragment != nil:
		kept.Fragment = &v1alpha1.FragmentPhase{}
	case phase.Free != nil:
		kept.Free = &v1alpha1.FreePhase{}
	case phase.Operate != nil:
		kept.Operate = &v1alpha1.OperatePhase{}
	case phase.Measure != nil:
		kept.Measure = &v1alpha1.MeasurePhase{}
		if fio := phase.Measure.Workload.FIO; fio != nil {
			kept.Measure.Workload.FIO = &v1alpha1.FIOWorkload{JobFileFrom: fio.JobFileFrom}
		}
		if postgres := phase.Measure.Workload.Postgres; postgres != nil {
			kept.Measure.Workload.Postgres = &v1alpha1.PostgresWorkload{Script: postgres.Script}
		}
	}
	return kept
}

// firstMedians returns the first medians: only as many as the metrics show.
func firstMedians(summary []v1alpha1.PhaseSummary) []v1alpha1.PhaseSummary {
	var kept []v1alpha1.PhaseSummary
	number, bytes := maxMedians, maxBytes
	for _, entry := range summary {
		one := v1alpha1.PhaseSummary{Variant: entry.Variant, Phase: entry.Phase}
		bytes -= len(entry.Variant) + len(entry.Phase)
		for _, metric := range entry.Metrics {
			if number, bytes = number-1, bytes-len(metric.Name); number < 0 || bytes < 0 {
				break
			}
			one.Metrics = append(one.Metrics, metric)
		}
		if len(one.Metrics) == 0 {
			break
		}
		kept = append(kept, one)
	}
	return kept
}

// lastVerdict returns the verdict and the time of the newest earlier results that have a verdict.
func lastVerdict(history []v1alpha1.ResultsReference) []v1alpha1.ResultsReference {
	for _, earlier := range history {
		if earlier.Verdict != "" {
			return []v1alpha1.ResultsReference{{Verdict: earlier.Verdict, FinishedAt: earlier.FinishedAt}}
		}
	}
	return nil
}

// Operation removes the result document of a PoolOperation, which may have a megabyte.
func Operation(object any) (any, error) {
	if operation, is := object.(*v1alpha1.PoolOperation); is {
		operation.ManagedFields, operation.Status.Data = nil, nil
	}
	return object, nil
}
