package trim

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
)

// large is a text that a tenant could write. Each call returns another one, so that each takes memory.
func large(i int) string { return fmt.Sprintf("%06d", i) + strings.Repeat("x", 256<<10) }

// hostile is the metadata of an object that a tenant has created to fill a cache.
func hostile(i int) metav1.ObjectMeta {
	owner := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BenchmarkRun", Name: "r", UID: "r-1",
		Controller: new(true)}
	meta := metav1.ObjectMeta{
		Namespace: "team-a", Name: fmt.Sprintf("filler-%d", i), UID: "u-1", ResourceVersion: "7",
		Labels:          map[string]string{v1alpha1.LabelBenchmark: "b", v1alpha1.LabelBenchmarkUID: "b-1", v1alpha1.LabelRun: "r"},
		Annotations:     map[string]string{"note": large(i), "storagebench.dev/note": large(i), v1alpha1.AnnotationVerdict: "Passed"},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: large(i)}},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: large(i)}, owner},
	}
	for k := range 50 {
		meta.Labels[fmt.Sprintf("storagebench.dev/z%d", k)], meta.Annotations[fmt.Sprintf("storagebench.dev/z%d", k)] = "a",
			strings.Repeat("y", 63)
		meta.Finalizers = append(meta.Finalizers, fmt.Sprintf("example.com/f%d", k))
	}
	return meta
}

// kinds are objects of each kind that the manager caches, filled with what a tenant can put into them.
var kinds = map[string]struct {
	make      func(i int) any
	transform func(any) (any, error)
}{
	"ConfigMap": {func(i int) any { return &metav1.PartialObjectMetadata{ObjectMeta: hostile(i)} }, Metadata},
	"PersistentVolume": {func(i int) any {
		return &corev1.PersistentVolume{ObjectMeta: hostile(i), Spec: corev1.PersistentVolumeSpec{StorageClassName: large(i)}}
	}, Metadata},
	"Pod": {func(i int) any {
		return &corev1.Pod{ObjectMeta: hostile(i),
			Spec:   corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Args: []string{large(i)}}}},
			Status: corev1.PodStatus{Message: large(i), Conditions: []corev1.PodCondition{{Message: large(i)}}}}
	}, Pod},
	"PersistentVolumeClaim": {func(i int) any {
		return &corev1.PersistentVolumeClaim{ObjectMeta: hostile(i),
			Status: corev1.PersistentVolumeClaimStatus{Conditions: []corev1.PersistentVolumeClaimCondition{{Message: large(i)}}}}
	}, Claim},
	"Job": {func(i int) any {
		return &batchv1.Job{ObjectMeta: hostile(i), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: hostile(i)}},
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Message: large(i)}}}}
	}, Job},
	"Event": {func(i int) any {
		return &corev1.Event{ObjectMeta: hostile(i), Message: large(i), Reason: large(i), InvolvedObject: corev1.ObjectReference{Kind: "Job",
			Name: "j", FieldPath: large(i)}}
	}, Event},
	"StorageTarget": {func(i int) any {
		return &v1alpha1.StorageTarget{ObjectMeta: hostile(i)}
	}, Metadata},
	"StorageBenchmark": {func(i int) any {
		return &v1alpha1.StorageBenchmark{ObjectMeta: hostile(i),
			Spec: v1alpha1.StorageBenchmarkSpec{PodTemplate: v1alpha1.PodTemplate{Annotations: map[string]string{"a": large(i)}},
				Gates: []v1alpha1.Gate{{Expression: large(i)}}}}
	}, Benchmark},
	"BenchmarkRun": {func(i int) any {
		run := &v1alpha1.BenchmarkRun{ObjectMeta: hostile(i), Spec: v1alpha1.BenchmarkRunSpec{
			PodTemplate: v1alpha1.PodTemplate{Annotations: map[string]string{"a": large(i)}},
			Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Pool: v1alpha1.PoolTemplate{
				Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{v1alpha1.DevicePath(large(i))}}}}}}}}
		for k := range 16 {
			run.Spec.Phases = append(run.Spec.Phases, v1alpha1.Phase{Name: v1alpha1.PhaseName(fmt.Sprint("p", k)),
				Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
					FIO: &v1alpha1.FIOWorkload{JobFile: strings.Repeat("#", 16<<10)}}}})
		}
		return run
	}, Run},
}

// heapOf returns how much memory the given number of objects takes.
func heapOf(t *testing.T, count int, one func(int) any) int64 {
	t.Helper()
	kept := make([]any, 0, count)
	before := live()
	for i := range count {
		kept = append(kept, one(i))
	}
	after := live()
	runtime.KeepAlive(kept)
	return after - before
}

func live() int64 {
	runtime.GC()
	runtime.GC() // also frees what the first one has found
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// TestTenantsFillNoMemory: 1,000 ConfigMaps, or 100 objects of any other kind, take little memory although each has annotations of 256 KiB,
// the maximum.
func TestTenantsFillNoMemory(t *testing.T) {
	for name, kind := range kinds {
		const few, each = 20, 16 << 10
		many := 100
		if name == "ConfigMap" {
			many = 1000
		}
		if untrimmed := heapOf(t, few, kind.make); untrimmed < few*256<<10 {
			t.Errorf("%s: %d objects as they are take %d KiB: the measurement is wrong", name, few, untrimmed>>10)
		}
		trimmed := heapOf(t, many, func(i int) any {
			object, err := kind.transform(kind.make(i))
			if err != nil {
				t.Fatal(err)
			}
			return object
		})
		t.Logf("%s: %d bytes for each", name, trimmed/int64(many))
		if trimmed > int64(many)*each {
			t.Errorf("%s: %d objects take %d KiB, more than %d bytes each", name, many, trimmed>>10, each)
		}
		if trimmed < int64(many)*100 {
			t.Errorf("%s: %d objects take %d bytes: they are not kept at all", name, many, trimmed)
		}
	}
}

// TestWhatIsReadIsKept: the caches still show what the controllers read from them.
func TestWhatIsReadIsKept(t *testing.T) {
	for name, kind := range kinds {
		object, err := kind.transform(kind.make(1))
		if err != nil {
			t.Fatal(err)
		}
		meta := object.(metav1.Object)
		if meta.GetName() != "filler-1" || meta.GetNamespace() != "team-a" || meta.GetUID() != "u-1" || meta.GetResourceVersion() != "7" {
			t.Errorf("%s: %+v", name, meta)
		}
		if name == "Event" {
			continue
		}
		if meta.GetLabels()[v1alpha1.LabelRun] != "r" || meta.GetLabels()[v1alpha1.LabelBenchmarkUID] != "b-1" ||
			meta.GetAnnotations()[v1alpha1.AnnotationVerdict] != "Passed" {
			t.Errorf("%s: labels %v, annotations of %d keys", name, meta.GetLabels(), len(meta.GetAnnotations()))
		}
		if controller := metav1.GetControllerOf(meta); controller == nil || controller.UID != "r-1" {
			t.Errorf("%s: its controller is %v", name, controller)
		}
	}
	years := ptr.To[int64](315_360_000)
	pod, _ := Pod(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1", TerminationGracePeriodSeconds: years}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory",
		ContainerStatuses: []corev1.ContainerStatus{{Name: "runner", RestartCount: 1,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "receipt"}}}}}})
	if status := pod.(*corev1.Pod).Status; status.Reason != "Evicted" || status.Message != "low on memory" ||
		status.ContainerStatuses[0].State.Terminated.Message != "receipt" {
		t.Errorf("of a pod is left %+v", status)
	}
	// A pod with a grace period of years was not made for a run: runs.PodsAtWork recognizes it by what the cache keeps.
	if spec := pod.(*corev1.Pod).Spec; spec.NodeName != "n1" || ptr.Deref(spec.TerminationGracePeriodSeconds, 0) != *years {
		t.Errorf("of a pod is left %+v", spec)
	}
	claim, _ := Claim(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pvc-1"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
	if claim := claim.(*corev1.PersistentVolumeClaim); claim.Spec.VolumeName != "pvc-1" || claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("of a claim is left %+v", claim)
	}
	node, _ := Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"rack": "7"}},
		Spec:   corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot-1"}, Images: []corev1.ContainerImage{{Names: []string{"a"}}}}})
	if node := node.(*corev1.Node); node.Labels["rack"] != "7" || !node.Spec.Unschedulable || node.Status.NodeInfo.BootID != "boot-1" ||
		node.Status.Images != nil {
		t.Errorf("of a node is left %+v", node)
	}
	event := &corev1.Event{Type: "Warning", Reason: "FailedCreate", Message: "no", InvolvedObject: corev1.ObjectReference{Kind: "Job",
		Namespace: "team-a", Name: "j"}}
	kept, _ := Event(event)
	if diff := cmp.Diff(event, kept); diff != "" {
		t.Errorf("of a Warning about a Job is left (-want +got):\n%s", diff)
	}
	event.InvolvedObject.Kind = "Certificate"
	if other, _ := Event(event); other.(*corev1.Event).Message != "" || other.(*corev1.Event).InvolvedObject.Name != "" {
		t.Errorf("of a Warning about something else is left %+v", other)
	}
	benchmark, _ := Benchmark(&v1alpha1.StorageBenchmark{Spec: v1alpha1.StorageBenchmarkSpec{Suspend: true, Baseline: &v1alpha1.Baseline{}},
		Status: v1alpha1.StorageBenchmarkStatus{NodeName: "n1", Queue: &v1alpha1.QueueStatus{Position: 2},
			History: []v1alpha1.ResultsReference{{Experiment: "superseded"}, {Verdict: "Failed", ConfigMap: "x"}, {Verdict: "Passed"}}}})
	if diff := cmp.Diff([]v1alpha1.ResultsReference{{Verdict: "Failed"}}, benchmark.(*v1alpha1.StorageBenchmark).Status.History); diff != "" {
		t.Errorf("of the history is left (-want +got):\n%s", diff)
	}
	if kept := benchmark.(*v1alpha1.StorageBenchmark); !kept.Spec.Suspend || kept.Spec.Baseline == nil || kept.Status.Queue == nil ||
		kept.Status.NodeName != "n1" {
		t.Errorf("of a benchmark is left %+v", kept)
	}
}

// TestWhatIsReadOfARun: a cached run shows all but its pod template, its target and its phases, and of these what the planner, the results
// and the metrics read.
func TestWhatIsReadOfARun(t *testing.T) {
	file, script := &v1alpha1.ConfigMapKey{Name: "mine", Key: "job.fio"}, &v1alpha1.ConfigMapKey{Name: "mine", Key: "tx.sql"}
	measure := func(workload v1alpha1.Workload) *v1alpha1.MeasurePhase {
		return &v1alpha1.MeasurePhase{Workload: workload}
	}
	whole := &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "r", UID: "u-1", ResourceVersion: "7", Generation: 1,
			Labels:          map[string]string{v1alpha1.LabelBenchmarkUID: "b-1", v1alpha1.LabelLineage: "l-1"},
			Annotations:     map[string]string{v1alpha1.AnnotationScheduledTime: "2026-11-21T12:00:00Z"},
			Finalizers:      []string{v1alpha1.FinalizerTeardown},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StorageBenchmark", Name: "b", UID: "b-1", Controller: new(true)}}},
		Spec: v1alpha1.BenchmarkRunSpec{Benchmark: "b", Experiment: "0a1b2c3d", Index: 3, Variant: "a", Repetition: 2, Attempt: 2, Seed: 7,
			NodeName: "n2", Group: &v1alpha1.RunGroup{Name: "g", Index: 1, Nodes: []string{"n1", "n2"}}, RunnerImage: "runner:1",
			Retain: v1alpha1.RetainAlways, PodTemplate: v1alpha1.PodTemplate{Labels: map[string]string{"team": "a"}},
			Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetNone, KeepFor: v1alpha1.KeepForSchedule,
				Pool:    v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}},
				Dataset: &v1alpha1.DatasetTemplate{Provisioner: "Local", Properties: v1alpha1.Properties{"recordsize": "8k"}},
				Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Pool: &v1alpha1.PoolTemplate{}, Dataset: &v1alpha1.DatasetTemplate{
					Provisioner: "OpenEBS"}}, {Name: "archive", PoolOf: "log"}}}},
			Phases: []v1alpha1.Phase{{Name: "fill", Fill: &v1alpha1.FillPhase{To: "80%"}}, {Name: "age", Fragment: &v1alpha1.FragmentPhase{}},
				{Name: "free", Free: &v1alpha1.FreePhase{}}, {Name: "scrub", Operate: &v1alpha1.OperatePhase{}},
				{Name: "scan", Measure: measure(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{Regions: 8}})},
				{Name: "jobs", Measure: measure(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFileFrom: file}})},
				{Name: "tx", Measure: measure(v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{Script: script, Clients: 8}})}}},
		Status: v1alpha1.BenchmarkRunStatus{State: "Valid", CurrentPhase: "tx", Retryable: true,
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: "done"}},
			Volumes:    []v1alpha1.RunVolumeStatus{{Name: "data", KeptFrom: "q"}}, Phases: []v1alpha1.RunPhaseStatus{{Name: "fill", Result: "f"}}},
	}
	object, err := Run(whole.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	kept := object.(*v1alpha1.BenchmarkRun)
	for i := range whole.Spec.Phases {
		before, after := &whole.Spec.Phases[i], &kept.Spec.Phases[i]
		had, _ := workload.PhaseTraits(before)
		has, _ := workload.PhaseTraits(after)
		if after.Name != before.Name || workload.KindOf(after) != workload.KindOf(before) || cmp.Diff(had.File, has.File) != "" {
			t.Errorf("of phase %s is left %+v with file %+v", before.Name, after, has.File)
		}
	}
	volumes := func(run *v1alpha1.BenchmarkRun) (words []string) {
		for _, one := range volume.RunVolumes(run) {
			words = append(words, fmt.Sprint(one.Name, " on the pool of ", one.PoolOf, " by ", one.Dataset.Provisioner))
		}
		return words
	}
	if diff := cmp.Diff(volumes(whole), volumes(kept)); diff != "" {
		t.Errorf("of the volumes is left (-want +got):\n%s", diff)
	}
	if target := kept.Spec.Target.ZFS; target.Reset != v1alpha1.ResetNone || target.KeepFor != v1alpha1.KeepForSchedule {
		t.Errorf("of the target is left %+v", target)
	}
	whole.Spec.PodTemplate, whole.Spec.Target, whole.Spec.Phases = v1alpha1.PodTemplate{}, kept.Spec.Target, kept.Spec.Phases
	if diff := cmp.Diff(whole, kept); diff != "" {
		t.Errorf("of the rest is left (-want +got):\n%s", diff)
	}
	crowded := &v1alpha1.BenchmarkRun{ObjectMeta: hostile(1)}
	crowded.Finalizers = append(crowded.Finalizers, v1alpha1.FinalizerTeardown)
	if _, err := Run(crowded); err != nil || !slices.Contains(crowded.Finalizers, v1alpha1.FinalizerTeardown) {
		t.Errorf("of the finalizers are left %v (%v)", crowded.Finalizers, err)
	}
}

// TestFirstMedians: as many medians as get metrics, within the limit of text for an object.
func TestFirstMedians(t *testing.T) {
	for name, test := range map[string]struct{ phases, metrics, length, want int }{
		"none": {0, 0, 0, 0}, "one": {1, 1, 10, 1}, "all": {4, 8, 10, 32}, "more": {5, 8, 10, 32}, "within a phase": {128, 5, 10, 32},
		"long names": {128, 1, 512, 11},
	} {
		var summary []v1alpha1.PhaseSummary
		for range test.phases {
			entry := v1alpha1.PhaseSummary{Variant: strings.Repeat("v", test.length)}
			for range test.metrics {
				entry.Metrics = append(entry.Metrics, v1alpha1.MetricSummary{Name: "readBytesPerSecond", Median: 1})
			}
			summary = append(summary, entry)
		}
		kept := 0
		for _, entry := range firstMedians(summary) {
			if len(entry.Metrics) == 0 {
				t.Errorf("%s: a phase without metrics is kept", name)
			}
			kept += len(entry.Metrics)
		}
		if kept != test.want {
			t.Errorf("%s: %d medians are kept, want %d", name, kept, test.want)
		}
	}
}
