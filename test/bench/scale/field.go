//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/sim"
)

const (
	namespace = "scale"
	class     = "scale"
)

// field is where the work is done: its nodes, and the observations of the watches.
type field struct {
	live  client.WithWatch
	logs  kubernetes.Interface
	sim   *sim.Cluster
	n     int
	nodes []string

	mutex             sync.Mutex
	created, finished map[string]time.Time
	freed             map[string]time.Time
	toLease, handover []time.Duration
	jobs              map[string]chan struct{}
	joined            map[string]bool
}

func newField(ctx context.Context, config *rest.Config, n, nodes int) (*field, error) {
	live, err := newClients(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	logs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := &field{live: live, logs: logs, n: n, created: map[string]time.Time{}, finished: map[string]time.Time{},
		freed: map[string]time.Time{}, jobs: map[string]chan struct{}{}, joined: map[string]bool{}}
	for i := range nodes {
		f.nodes = append(f.nodes, fmt.Sprintf("node-%d", i))
	}
	for _, name := range []string{namespace, otherNamespace, leaseNamespace} {
		if err := live.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, err
		}
	}
	if f.sim, err = sim.New(config, sim.Options{Namespaces: []string{namespace, otherNamespace}, Nodes: f.nodes}); err != nil {
		return nil, err
	}
	if err := errors.Join(f.sim.CreateNodes(ctx), f.sim.CreateStorageClass(ctx, class, false)); err != nil {
		return nil, err
	}
	go func() { _ = f.sim.Run(ctx) }()
	return f, f.watch(ctx)
}

func (f *field) close() { f.sim.Close() }

// watch records when Leases come and go, and when benchmarks and Jobs are done. An API server ends a watch whose client is slow; watch then
// starts a new one, which begins with all existing objects.
func (f *field) watch(ctx context.Context) error {
	for _, list := range []client.ObjectList{&coordinationv1.LeaseList{}, &v1alpha1.StorageBenchmarkList{}, &batchv1.JobList{}} {
		watching, err := f.live.Watch(ctx, list)
		if err != nil {
			return err
		}
		go func() {
			for err == nil && ctx.Err() == nil {
				for event := range watching.ResultChan() {
					f.note(event, time.Now())
				}
				watching, err = f.live.Watch(ctx, list)
			}
			if ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "scale: watch:", err)
			}
		}()
	}
	return nil
}

func (f *field) note(event watch.Event, now time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch object := event.Object.(type) {
	case *coordinationv1.Lease:
		node := object.Annotations[v1alpha1.AnnotationNode]
		if node == "" {
			return
		}
		switch event.Type {
		case watch.Deleted:
			f.freed[node] = now
		case watch.Added:
			if since, waited := f.freed[node]; waited {
				f.handover = append(f.handover, now.Sub(since))
			}
			if created, known := f.created[object.Annotations[v1alpha1.AnnotationHolder]]; known {
				f.toLease = append(f.toLease, now.Sub(created))
			}
		}
	case *v1alpha1.StorageBenchmark:
		if object.Status.Queue != nil {
			f.joined[object.Name] = true
		}
		if object.Status.Verdict != "" && f.finished[object.Name].IsZero() {
			f.finished[object.Name] = now
		}
	case *batchv1.Job:
		if object.Status.Succeeded > 0 && f.jobs[object.Name] != nil {
			close(f.jobs[object.Name])
			delete(f.jobs, object.Name)
		}
	}
}

func (f *field) done() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.finished)
}

const phases = `
- {name: fill, fill: {to: 50%}}
- {name: read, measure: {workload: {oltp: {workers: 2}}}}
`

// benchmark returns a benchmark with a single run of two phases.
func (f *field) benchmark(namespace, name, node string) (*v1alpha1.StorageBenchmark, error) {
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	benchmark.Spec.Repetitions = 1
	benchmark.Spec.PodTemplate.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return benchmark, errors.Join(yaml.Unmarshal([]byte(phases), &benchmark.Spec.Phases),
		yaml.Unmarshal(fmt.Appendf(nil, "storageClass: {name: %s, size: 64Mi}", class), &benchmark.Spec.Target))
}

// create creates all benchmarks, in turn on each node.
func (f *field) create(ctx context.Context) error {
	for i := range f.n {
		benchmark, err := f.benchmark(namespace, fmt.Sprintf("b-%d", i), f.nodes[i%len(f.nodes)])
		if err != nil {
			return err
		}
		f.mutex.Lock()
		f.created[namespace+"/"+benchmark.Name] = time.Now()
		f.mutex.Unlock()
		if err := f.live.Create(ctx, benchmark); err != nil {
			return err
		}
	}
	return nil
}

// bareJobs does the same work without the manager: on each node, one after another, a claim, two Jobs and their logs. It returns how many
// per second.
func (f *field) bareJobs(ctx context.Context) (float64, error) {
	began := time.Now()
	errs := make([]error, len(f.nodes))
	var all sync.WaitGroup
	for k, node := range f.nodes {
		all.Go(func() {
			for i := k; i < f.n && errs[k] == nil; i += len(f.nodes) {
				errs[k] = f.bareJob(ctx, fmt.Sprintf("bare-%d", i), node)
			}
		})
	}
	all.Wait()
	return float64(f.n) / time.Since(began).Seconds(), errors.Join(errs...)
}

func (f *field) bareJob(ctx context.Context, name, node string) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(class), AccessModes: []corev1.PersistentVolumeAccessMode{
			corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse("64Mi")}}}}
	if err := f.live.Create(ctx, claim); err != nil {
		return err
	}
	for _, phase := range []string{"fill", "read"} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + phase}}
		job.Spec.BackoffLimit = ptr.To[int32](0)
		job.Spec.Template.Labels = map[string]string{"bare": job.Name}
		job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers: []corev1.Container{{Name: "work", Image: "registry.example/work:v1", VolumeMounts: []corev1.VolumeMount{{Name: "data",
				MountPath: "/data"}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}}
		if err := f.work(ctx, job); err != nil {
			return err
		}
	}
	return f.live.Delete(ctx, claim)
}

func (f *field) work(ctx context.Context, job *batchv1.Job) error {
	done := make(chan struct{})
	f.mutex.Lock()
	f.jobs[job.Name] = done
	f.mutex.Unlock()
	if err := f.live.Create(ctx, job); err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("wait for Job %s: %w", job.Name, ctx.Err())
	}
	var pods corev1.PodList
	if err := f.live.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"bare": job.Name}); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		log, err := f.logs.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(ctx)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, log)
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
	}
	return f.live.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(time.Millisecond)
}

func (c *counter) total() (total int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, count := range c.made {
		total += count
	}
	return total
}

func (c *counter) reset() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	clear(c.made)
}

func (c *counter) table(runs int) (text string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, what := range slices.Sorted(maps.Keys(c.made)) {
		text += fmt.Sprintf("  %8.2f %s\n", float64(c.made[what])/float64(runs), what)
	}
	return text
}
