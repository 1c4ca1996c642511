package imports

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// maxDocuments limits the documents of a file. The files of the known tools have two.
const maxDocuments = 32

// manifests are the Job of a tool and the claims beside it.
type manifests struct {
	job       batchv1.Job
	container corev1.Container
	claims    []corev1.PersistentVolumeClaim
}

var documentEnd = regexp.MustCompile(`(?m)^---.*$`)

// containerOf finds the Job of a tool by the image, or by an environment variable, of one of its containers. It returns nil without one.
func containerOf(text, image, variable string) *manifests {
	found := &manifests{}
	has := false
	for i, document := range documentEnd.Split(text, -1) {
		var kind struct {
			Kind string `json:"kind"`
		}
		if i == maxDocuments || yaml.Unmarshal([]byte(document), &kind) != nil {
			return nil
		}
		switch kind.Kind {
		case "PersistentVolumeClaim":
			var claim corev1.PersistentVolumeClaim
			if yaml.Unmarshal([]byte(document), &claim) == nil {
				found.claims = append(found.claims, claim)
			}
		case "Job":
			var job batchv1.Job
			if has || yaml.Unmarshal([]byte(document), &job) != nil {
				continue
			}
			for _, container := range job.Spec.Template.Spec.Containers {
				if strings.Contains(container.Image, image) ||
					slices.ContainsFunc(container.Env, func(env corev1.EnvVar) bool { return env.Name == variable }) {
					found.job, found.container, has = job, container, true
					break
				}
			}
		}
	}
	if !has {
		return nil
	}
	return found
}

// benchmark returns a benchmark with the name, class, size and mode of the volume, and the node selector. It refuses containers with args,
// command or envFrom: what the container does is known only for the tool's own entry point and literal variables.
func (m *manifests) benchmark() (*Benchmark, error) {
	var has []string
	for field, set := range map[string]bool{
		"args": len(m.container.Args) > 0, "command": len(m.container.Command) > 0, "envFrom": len(m.container.EnvFrom) > 0,
	} {
		if set {
			has = append(has, field)
		}
	}
	if slices.Sort(has); len(has) > 0 {
		return nil, fmt.Errorf("its container has %s, which may change what it measures: remove it, and write variables into env",
			strings.Join(has, " and "))
	}
	pod := m.job.Spec.Template.Spec
	b := &Benchmark{Name: m.job.Name, NodeSelector: pod.NodeSelector}
	used := ""
	for _, volume := range pod.Volumes {
		if volume.PersistentVolumeClaim != nil && used == "" {
			used = volume.PersistentVolumeClaim.ClaimName
		}
	}
	at := slices.IndexFunc(m.claims, func(claim corev1.PersistentVolumeClaim) bool { return claim.Name == used })
	if at < 0 {
		b.leave("the claim %q: it is not in the file, so write the StorageClass and the size of its volume", used)
	}
	for i := range m.claims {
		if i != at {
			b.leave("the claim %s: to compare it, add a variant with its StorageClass", m.claims[i].Name)
			continue
		}
		b.takeClaim(m.claims[i].Spec)
	}
	for field, set := range map[string]bool{
		"tolerations": len(pod.Tolerations) > 0, "affinity": pod.Affinity != nil, "nodeName": pod.NodeName != "",
		"priorityClassName": pod.PriorityClassName != "", "imagePullSecrets": len(pod.ImagePullSecrets) > 0,
		"securityContext": pod.SecurityContext != nil || m.container.SecurityContext != nil,
		"resources":       len(m.container.Resources.Limits)+len(m.container.Resources.Requests) > 0,
		"initContainers":  len(pod.InitContainers) > 0, "containers": len(pod.Containers) > 1,
	} {
		if set {
			b.leave("%s of the pod: see spec.podTemplate", field)
		}
	}
	for field, count := range map[string]*int32{"parallelism": m.job.Spec.Parallelism, "completions": m.job.Spec.Completions} {
		if count != nil && *count != 1 {
			b.leave("%s of the Job: each run has a volume and a pod of its own; see spec.repetitions", field)
		}
	}
	slices.Sort(b.Left)
	return b, nil
}

func (b *Benchmark) takeClaim(claim corev1.PersistentVolumeClaimSpec) {
	if claim.StorageClassName != nil {
		b.Class = *claim.StorageClassName
	}
	if size, is := claim.Resources.Requests[corev1.ResourceStorage]; is {
		b.Size = size.String()
	}
	b.Block = claim.VolumeMode != nil && *claim.VolumeMode == corev1.PersistentVolumeBlock
	for _, mode := range claim.AccessModes {
		if mode != corev1.ReadWriteOnce {
			b.leave("accessModes of the claim: the volume is %s; see spec.target.storageClass.accessMode", corev1.ReadWriteOnce)
		}
	}
	if claim.DataSource != nil || claim.DataSourceRef != nil || claim.VolumeName != "" || claim.Selector != nil {
		b.leave("the volume that the claim chooses: each run gets a new one")
	}
}

// environment returns the known variables of the container. Others are listed in b.Left.
func (m *manifests) environment(b *Benchmark, known ...string) (map[string]string, error) {
	values := map[string]string{}
	for _, variable := range m.container.Env {
		switch {
		case variable.ValueFrom != nil && slices.Contains(known, variable.Name):
			return nil, fmt.Errorf("its variable %.40q has its value in another object: write the value itself", variable.Name)
		case variable.ValueFrom != nil:
			b.leave("%s: its value is in another object", variable.Name)
		case slices.Contains(known, variable.Name):
			values[variable.Name] = strings.TrimSpace(variable.Value)
		case variable.Value != "" && variable.Value != "disabled":
			b.leave("%s=%s", variable.Name, variable.Value)
		}
	}
	return values, nil
}
