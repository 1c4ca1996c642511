package sim

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// state is what one pass sees.
type state struct {
	seenJobs   []batchv1.Job
	seenPods   []corev1.Pod
	seenClaims []corev1.PersistentVolumeClaim

	// These are read only by passes that need them.
	nodes   []corev1.Node
	classes map[string]storagev1.StorageClass
	pvs     []corev1.PersistentVolume
	hasPVs  bool
}

// revision returns the revision of the whole store. A list of Events carries it, because it never comes from the API server's watch cache.
// The namespace has no Events, so the list is small.
func (c *Cluster) revision(ctx context.Context) (string, error) {
	var events metav1.PartialObjectMetadataList
	events.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("EventList"))
	err := c.client.List(ctx, &events, client.InNamespace("storagebench-sim-none"), client.Limit(1))
	return events.ResourceVersion, err
}

// look lists the objects that every pass needs.
func (c *Cluster) look(ctx context.Context) (*state, error) {
	seen := &state{}
	var jobs batchv1.JobList
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	err := inParallel(
		func() (err error) {
			seen.seenJobs, err = gather(ctx, c, &jobs, func() []batchv1.Job { return jobs.Items })
			return
		},
		func() (err error) {
			seen.seenPods, err = gather(ctx, c, &pods, func() []corev1.Pod { return pods.Items })
			return
		},
		func() (err error) {
			seen.seenClaims, err = gather(ctx, c, &claims, func() []corev1.PersistentVolumeClaim { return claims.Items })
			return
		},
	)
	return seen, err
}

// gather lists a kind in all namespaces of the Cluster.
func gather[T any](ctx context.Context, c *Cluster, list client.ObjectList, items func() []T) ([]T, error) {
	if len(c.options.Namespaces) == 0 {
		err := c.client.List(ctx, list)
		return items(), err
	}
	var all []T
	for _, namespace := range c.options.Namespaces {
		if err := c.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		all = append(all, slices.Clone(items())...)
	}
	return all, nil
}

// inParallel calls functions that do not touch each other's data and returns the first error.
func inParallel(functions ...func() error) error {
	var group errgroup.Group
	for _, f := range functions {
		group.Go(f)
	}
	return group.Wait()
}

// acts reports whether the Cluster acts in a namespace.
func (c *Cluster) acts(namespace string) bool {
	return len(c.options.Namespaces) == 0 || slices.Contains(c.options.Namespaces, namespace)
}

// needVolumes reads the PersistentVolumes, once per pass.
func (p *pass) needVolumes(ctx context.Context) error {
	if p.hasPVs {
		return nil
	}
	var list corev1.PersistentVolumeList
	if err := p.client.List(ctx, &list); err != nil {
		return err
	}
	p.pvs, p.hasPVs = list.Items, true
	return nil
}

// needClasses reads the StorageClasses, once per pass.
func (p *pass) needClasses(ctx context.Context) error {
	if p.classes != nil {
		return nil
	}
	var list storagev1.StorageClassList
	if err := p.client.List(ctx, &list); err != nil {
		return err
	}
	p.classes = map[string]storagev1.StorageClass{}
	for _, class := range list.Items {
		p.classes[class.Name] = class
	}
	return nil
}

// needNodes reads the nodes of this Cluster, once per pass.
func (p *pass) needNodes(ctx context.Context) error {
	if p.nodes != nil {
		return nil
	}
	var list corev1.NodeList
	if err := p.client.List(ctx, &list); err != nil {
		return err
	}
	p.nodes = slices.DeleteFunc(list.Items, func(node corev1.Node) bool { return !slices.Contains(p.options.Nodes, node.Name) })
	return nil
}

// claim finds a claim among those seen.
func (s *state) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	for i := range s.seenClaims {
		if s.seenClaims[i].Namespace == namespace && s.seenClaims[i].Name == name {
			return &s.seenClaims[i]
		}
	}
	return nil
}

// volume finds a PersistentVolume among those seen.
func (s *state) volume(name string) *corev1.PersistentVolume {
	for i := range s.pvs {
		if s.pvs[i].Name == name {
			return &s.pvs[i]
		}
	}
	return nil
}

// claimNames returns the names of the claims that a pod mounts.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}
