package run

import (
	"fmt"
	"maps"
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

const (
	volumeName  = "data"
	scratchName = "scratch"
	scratchPath = "/tmp"
	// backstopSeconds is added to the deadlines of a phase. If the operator is down, the Job itself ends the phase after that time.
	backstopSeconds = 300
)

// buildJob returns the Job of one phase. Its pod passes the restricted Pod Security level: no token, no privileges, no host path, a
// read-only root file system. pools contains the names of the drivers' datasets, and earlier runs. at is the time at which the workload of
// a group starts, or zero without a group.
func buildJob(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, pools runs.Pools, at time.Time) (*batchv1.Job, error) {
	asked, err := runs.Request(run, phase, pools)
	if err != nil {
		return nil, err
	}
	if !at.IsZero() {
		asked.SetStart(at)
	}
	request, err := asked.Encode()
	if err != nil {
		return nil, err
	}
	labels := runs.Labels(run)
	labels[v1alpha1.LabelPhase] = string(phase.Name)
	podLabels := maps.Clone(run.Spec.PodTemplate.Labels)
	if podLabels == nil {
		podLabels = map[string]string{}
	}
	maps.Copy(podLabels, labels)
	deadline := int64(phase.StartDeadline.Seconds()+phase.Deadline.Seconds()) + backstopSeconds
	if !at.IsZero() {
		deadline += int64(runs.StartAllowance.Seconds()) // this time is spent waiting for the others
	}
	pod := podSpec(run, phase, request)
	pod.ActiveDeadlineSeconds = &deadline // the kubelet enforces it, even if a tenant has detached the pod from its Job
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.PhaseObjectName(run.Name, phase.Name), Namespace: run.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{ownerReference(run)},
		},
		Spec: batchv1.JobSpec{
			// A phase is executed only once: a retry would find a changed volume.
			BackoffLimit:          new(int32(0)),
			Completions:           new(int32(1)),
			Parallelism:           new(int32(1)),
			PodReplacementPolicy:  new(batchv1.Failed),
			ActiveDeadlineSeconds: &deadline,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: podAnnotations(run)},
				Spec:       pod,
			},
		},
	}, nil
}

// podAnnotations returns annotations that tell node autoscalers not to evict a measuring pod.
func podAnnotations(run *v1alpha1.BenchmarkRun) map[string]string {
	annotations := map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		"karpenter.sh/do-not-disrupt":                    "true",
	}
	maps.Copy(annotations, run.Spec.PodTemplate.Annotations)
	return annotations
}

func podSpec(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, request string) corev1.PodSpec {
	template := run.Spec.PodTemplate
	user := ptr.Deref(template.RunAsUser, 65532)
	container := corev1.Container{
		Name:  runs.ContainerName,
		Image: run.Spec.RunnerImage,
		Env:   []corev1.EnvVar{{Name: workload.RequestVariable, Value: request}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: scratchName, MountPath: scratchPath}},
	}
	if template.Resources != nil {
		container.Resources = *template.Resources
	}
	pod := corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
			// Without this the kubelet would walk all the data, and warm the caches, before every phase.
			FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Affinity:          nodeAffinity(run.Spec.NodeName),
		NodeSelector:      template.NodeSelector,
		Tolerations:       template.Tolerations,
		PriorityClassName: template.PriorityClassName,
		ImagePullSecrets:  template.ImagePullSecrets,
		Containers:        []corev1.Container{container},
	}
	for i, one := range runs.PodVolumes(run, phase) {
		mountVolume(&pod, i, one, naming.ClaimName(run, one.Name))
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: scratchName, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("64Mi"))}}})
	traits, _ := workload.PhaseTraits(&phase)
	mountFile(&pod, traits.File)
	mountEnd(&pod, run, &phase)
	return pod
}

// mountVolume adds a volume of the phase to its pod. The name of the first one is always the same.
func mountVolume(pod *corev1.PodSpec, i int, one runs.PodVolume, claim string) {
	name, container := volumeName, &pod.Containers[0]
	if i > 0 {
		name = fmt.Sprintf("%s-%d", volumeName, i)
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	if one.Block {
		container.VolumeDevices = append(container.VolumeDevices, corev1.VolumeDevice{Name: name, DevicePath: one.Path})
		return
	}
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: one.Path})
}

// nodeAffinity pins the pod through the scheduler. With spec.nodeName instead, a WaitForFirstConsumer class would never bind.
func nodeAffinity(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{
					Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}},
			}},
		},
	}}
}

func ownerReference(run *v1alpha1.BenchmarkRun) metav1.OwnerReference {
	return *metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("BenchmarkRun"))
}
