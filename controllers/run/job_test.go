package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	batchv1 "k8s.io/api/batch/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

func testRun(mode corev1.PersistentVolumeMode) *v1alpha1.BenchmarkRun {
	lasting := func(d time.Duration) *v1alpha1.Duration {
		return &v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
	}
	phase := func(name v1alpha1.PhaseName) v1alpha1.Phase {
		return v1alpha1.Phase{Name: name, Fill: &v1alpha1.FillPhase{To: "80%"}, Deadline: lasting(time.Hour), StartDeadline: lasting(time.Minute)}
	}
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "ageing-0a1b2c3d-000", Namespace: "lab", UID: "run-uid", Generation: 1,
			Labels: map[string]string{v1alpha1.LabelBenchmark: "ageing", v1alpha1.LabelBenchmarkUID: "bench-uid"}},
		Spec: v1alpha1.BenchmarkRunSpec{
			Experiment: "0a1b2c3d", Seed: 7, NodeName: "n1", RunnerImage: "runner:1",
			Target: v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{Name: "fast",
				Size: v1alpha1.Size{Quantity: resource.MustParse("1Gi")}, VolumeMode: mode}},
			Phases: []v1alpha1.Phase{phase("fill"), phase("scan")},
			PodTemplate: v1alpha1.PodTemplate{
				Labels:      map[string]string{"team": "db", v1alpha1.LabelRun: "forged"},
				Annotations: map[string]string{"a": "b"}, NodeSelector: map[string]string{"disk": "nvme"},
				Tolerations: []corev1.Toleration{{Operator: "Exists"}}, PriorityClassName: "high",
				ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}},
				Resources:        &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			},
		},
	}
}

// restricted lists what the restricted level of the Pod Security Standards forbids in a pod, field by field.
func restricted(spec corev1.PodSpec) (wrong []string) {
	complain := func(bad bool, format string, arguments ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, arguments...))
		}
	}
	complain(spec.HostNetwork || spec.HostPID || spec.HostIPC || spec.HostUsers != nil && *spec.HostUsers, "a namespace of the host")
	pod := ptr.Deref(spec.SecurityContext, corev1.PodSecurityContext{})
	complain(len(pod.Sysctls) > 0 || pod.SELinuxOptions != nil || pod.WindowsOptions != nil || pod.AppArmorProfile != nil,
		"sysctls or profiles")
	complain(pod.SeccompProfile == nil || pod.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault, "no seccomp profile")
	complain(!ptr.Deref(pod.RunAsNonRoot, false) || ptr.Deref(pod.RunAsUser, 0) == 0, "may run as root")
	for _, volume := range spec.Volumes {
		complain(volume.PersistentVolumeClaim == nil && volume.EmptyDir == nil && volume.ConfigMap == nil,
			"volume %s is of a kind that is not allowed", volume.Name)
	}
	complain(len(spec.InitContainers)+len(spec.EphemeralContainers) > 0, "other containers")
	for _, container := range spec.Containers {
		context := ptr.Deref(container.SecurityContext, corev1.SecurityContext{})
		complain(ptr.Deref(context.AllowPrivilegeEscalation, true), "privilege escalation")
		complain(ptr.Deref(context.Privileged, false), "privileged")
		complain(context.Capabilities == nil || len(context.Capabilities.Add) > 0 || !strings.Contains(fmt.Sprint(context.Capabilities.Drop),
			"ALL"), "capabilities")
		complain(context.RunAsUser != nil || context.RunAsNonRoot != nil || context.SeccompProfile != nil || context.ProcMount != nil,
			"the pod's security is overridden")
		complain(!ptr.Deref(context.ReadOnlyRootFilesystem, false), "a root that can be written") // ours: stricter than restricted
		for _, port := range container.Ports {
			complain(port.HostPort != 0, "a port of the host")
		}
	}
	complain(ptr.Deref(spec.AutomountServiceAccountToken, true), "a token") // ours
	return wrong
}

func TestBuildJob(t *testing.T) {
	for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
		t.Run(string(mode), func(t *testing.T) {
			run := testRun(mode)
			job, err := buildJob(run, run.Spec.Phases[0], runs.Pools{}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			pod := job.Spec.Template.Spec
			for _, wrong := range restricted(pod) {
				t.Error(wrong)
			}
			checkJob(t, job, run)
			checkVolume(t, pod, mode)
			if pod.NodeName != "" ||
				pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0] != "n1" {
				t.Error("the pod is not pinned through the scheduler")
			}
			if pod.RestartPolicy != corev1.RestartPolicyNever || pod.PriorityClassName != "high" || pod.NodeSelector["disk"] != "nvme" ||
				len(pod.Tolerations) != 1 || len(pod.ImagePullSecrets) != 1 || pod.Containers[0].Resources.Requests.Cpu().String() != "1" {
				t.Errorf("the pod template is not followed: %+v", pod)
			}
			request, err := workload.DecodeRequest(pod.Containers[0].Env[0].Value)
			if err != nil || request.Run.UID != "run-uid" || request.Phase.Name != "fill" || request.Seed != 7 || request.VolumeSizeBytes != 1<<30 ||
				request.VolumeMode != string(mode) {
				t.Errorf("request %+v, %v", request, err)
			}
		})
	}
	if user := ptr.Deref(podSpec(testRun("Filesystem"), v1alpha1.Phase{}, "").SecurityContext.RunAsUser, 0); user != 65532 {
		t.Errorf("the default user is %d", user)
	}
}

// TestJobOnPools: each phase gets the volume that it names, and the contents that the volume must have.
func TestJobOnPools(t *testing.T) {
	run := testRun("Filesystem")
	run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
		Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Dataset: &v1alpha1.DatasetTemplate{Type: "Volume",
			Size: &v1alpha1.Size{Quantity: resource.MustParse("1Gi")}}}}}}
	run.Spec.Phases[1].Volume = "log"
	for i, want := range []workload.Request{
		{VolumeMode: "Filesystem", Path: workload.DataPath, Source: naming.RunPoolName(run, "data") + "/data"},
		{VolumeMode: "Block", Path: workload.DevicePath, VolumeSizeBytes: 1 << 30},
	} {
		job, err := buildJob(run, run.Spec.Phases[i], runs.Pools{Datasets: map[string]string{"data": naming.RunPoolName(run, "data") + "/data"}}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		pod := job.Spec.Template.Spec
		for _, wrong := range restricted(pod) {
			t.Error(wrong)
		}
		got, err := workload.DecodeRequest(pod.Containers[0].Env[0].Value)
		if err != nil || got.VolumeMode != want.VolumeMode || got.Path != want.Path || got.Source != want.Source ||
			got.VolumeSizeBytes != want.VolumeSizeBytes {
			t.Errorf("request %+v, %v", got, err)
		}
		if claim := pod.Volumes[0].PersistentVolumeClaim.ClaimName; claim != naming.ClaimName(run, []string{"data", "log"}[i]) {
			t.Errorf("claim %s", claim)
		}
	}
	if _, err := buildJob(run, run.Spec.Phases[0], runs.Pools{}, time.Time{}); err == nil {
		t.Error("a Job is created whose runner cannot verify its dataset")
	}
}

// TestJobOfWorkloads: a pod that runs several workloads has each of their volumes once, at the path that each request names.
func TestJobOfWorkloads(t *testing.T) {
	run := testRun("Filesystem")
	run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
		Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Dataset: &v1alpha1.DatasetTemplate{Type: "Volume",
			Size: &v1alpha1.Size{Quantity: resource.MustParse("1Gi")}}}}}}
	phase := run.Spec.Phases[0]
	phase.Fill, phase.Measure = nil, &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{
		{Name: "reads", OLTP: &v1alpha1.OLTPWorkload{}}, {Name: "redo", Volume: "log", Redo: &v1alpha1.RedoWorkload{}},
		{Name: "scan", Scan: &v1alpha1.RepeatedScan{}}}}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	job, err := buildJob(run, phase, runs.Pools{Datasets: map[string]string{"data": "pool/data"}}, at)
	if err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	for _, wrong := range restricted(pod) {
		t.Error(wrong)
	}
	var claims []string
	for _, one := range pod.Volumes {
		if one.PersistentVolumeClaim != nil {
			claims = append(claims, one.Name+" "+one.PersistentVolumeClaim.ClaimName)
		}
	}
	if want := []string{"data " + naming.ClaimName(run, "data"), "data-1 " + naming.ClaimName(run, "log")}; !slices.Equal(claims, want) {
		t.Errorf("claims %v", claims)
	}
	container := pod.Containers[0]
	request, err := workload.DecodeRequest(container.Env[0].Value)
	if err != nil || len(request.Parts) != 3 {
		t.Fatalf("%v %+v", err, request)
	}
	if mounted := container.VolumeMounts[1]; mounted.Name != "data" || mounted.MountPath != "/data-data" {
		t.Errorf("%+v", container.VolumeMounts)
	}
	if device := container.VolumeDevices; len(device) != 1 || device[0].Name != "data-1" || device[0].DevicePath != "/dev/storagebench-log" {
		t.Errorf("%+v", device)
	}
	for i, want := range []string{"reads Filesystem /data-data pool/data", "redo Block /dev/storagebench-log ",
		"scan Filesystem /data-data pool/data"} {
		part := request.Parts[i]
		if got := strings.Join([]string{part.Name, part.VolumeMode, part.Path, part.Source}, " "); got != want || part.StartAt == nil ||
			!part.StartAt.Equal(at) || part.Run != request.Run {
			t.Errorf("part %d: %q, %+v", i, got, part)
		}
	}
	if _, err := buildJob(run, phase, runs.Pools{}, at); err == nil {
		t.Error("a Job is created whose runner cannot verify its datasets")
	}
}

func checkJob(t *testing.T, job *batchv1.Job, run *v1alpha1.BenchmarkRun) {
	t.Helper()
	if *job.Spec.BackoffLimit != 0 || *job.Spec.Completions != 1 || *job.Spec.Parallelism != 1 ||
		*job.Spec.ActiveDeadlineSeconds != 3600+60+backstopSeconds {
		t.Errorf("the Job would execute a phase more than once, or too long: %+v", job.Spec)
	}
	if !metav1.IsControlledBy(job, run) || job.Name != naming.PhaseObjectName(run.Name, "fill") || job.Namespace != "lab" {
		t.Errorf("the Job is not the run's: %+v", job.ObjectMeta)
	}
	labels := job.Spec.Template.Labels
	if labels[v1alpha1.LabelRun] != run.Name || labels[v1alpha1.LabelPhase] != "fill" || labels["team"] != "db" ||
		labels[v1alpha1.LabelBenchmarkUID] != "bench-uid" {
		t.Errorf("labels %v", labels)
	}
	if annotations := job.Spec.Template.Annotations; annotations["a"] != "b" || annotations["karpenter.sh/do-not-disrupt"] != "true" {
		t.Errorf("annotations %v", annotations)
	}
	if run.Spec.PodTemplate.Labels[v1alpha1.LabelRun] != "forged" || len(run.Spec.PodTemplate.Annotations) != 1 {
		t.Error("the run was changed")
	}
}

func checkVolume(t *testing.T, pod corev1.PodSpec, mode corev1.PersistentVolumeMode) {
	t.Helper()
	container, mounted := pod.Containers[0], false
	for _, mount := range container.VolumeMounts {
		mounted = mounted || mount.Name == volumeName && mount.MountPath == workload.DataPath
	}
	if mounted == (mode == corev1.PersistentVolumeBlock) || (len(container.VolumeDevices) == 1) != (mode == corev1.PersistentVolumeBlock) {
		t.Errorf("the volume is in the wrong place: %+v", container)
	}
}
