package sim

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/cluster"
)

var config *rest.Config

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	cluster.Main(m, &config)
}

// lab is a test's own namespace with a simulated cluster.
type lab struct {
	*testing.T
	*Cluster
	namespace string
	clientset *kubernetes.Clientset
}

func newLab(t *testing.T, options Options) *lab {
	t.Helper()
	ctx := t.Context()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := clientset.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "sim-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	options.Namespaces = []string{namespace.Name}
	simulated, err := New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(simulated.Close)
	l := &lab{T: t, Cluster: simulated, namespace: namespace.Name, clientset: clientset}
	l.must(simulated.CreateNodes(ctx))
	l.must(simulated.CreateStorageClass(ctx, "fast", false))
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) settle() {
	l.Helper()
	l.must(l.Settle(l.Context()))
}

// get reads an object; false means that it is not there.
func (l *lab) get(object client.Object, name string) bool {
	l.Helper()
	err := l.client.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false
	}
	l.must(err)
	return true
}

// completes watches a Job until it is complete.
func (l *lab) completes(job *batchv1.Job) {
	l.Helper()
	jobs, err := l.clientset.BatchV1().Jobs(l.namespace).Watch(l.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: job.Name}))
	l.must(err)
	defer jobs.Stop()
	for event := range jobs.ResultChan() { // begins with the existing object
		seen, is := event.Object.(*batchv1.Job)
		if !is || event.Type == watch.Deleted {
			l.Fatalf("the Job %s is gone: %v", job.Name, event)
		}
		if findCondition(seen, batchv1.JobComplete) != nil {
			return
		}
	}
	l.Fatalf("the watch ended before the Job %s was complete", job.Name)
}

func (l *lab) claim(class string) {
	l.Helper()
	l.must(l.client.Create(l.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}))
}

// job makes a Job as the operator does, for phase "scan" of a run with UID "run-uid".
func (l *lab) job(name string) *batchv1.Job {
	l.Helper()
	request, err := workload.Request{
		Run:   results.RunIdentity{Namespace: l.namespace, Name: "run", UID: "run-uid"},
		Phase: v1alpha1.Phase{Name: "scan", Measure: &v1alpha1.MeasurePhase{}}, Seed: 7,
	}.Encode()
	l.must(err)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0), PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "runner", Image: "runner:1", Env: []corev1.EnvVar{{Name: workload.RequestVariable, Value: request}},
				}},
				Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
				}}},
			}},
		},
	}
	l.must(l.client.Create(l.Context(), job))
	return job
}

// pod returns the only pod, or nil.
func (l *lab) pod() *corev1.Pod {
	l.Helper()
	var pods corev1.PodList
	l.must(l.client.List(l.Context(), &pods, client.InNamespace(l.namespace)))
	if len(pods.Items) > 1 {
		l.Fatalf("there are %d pods", len(pods.Items))
	}
	if len(pods.Items) == 0 {
		return nil
	}
	return &pods.Items[0]
}

func (l *lab) log(pod *corev1.Pod, options corev1.PodLogOptions) (string, error) {
	options.Container = "runner"
	stream, err := l.clientset.CoreV1().Pods(l.namespace).GetLogs(pod.Name, &options).Stream(l.Context())
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(stream)
	return string(text), err
}

// collect verifies the result of the only pod.
func (l *lab) collect() (results.PhaseDocument, error) {
	l.Helper()
	pod := l.pod()
	receipt, err := results.ParseReceipt(pod.Status.ContainerStatuses[0].State.Terminated.Message)
	if err != nil {
		return results.PhaseDocument{}, err
	}
	text, err := l.log(pod, corev1.PodLogOptions{LimitBytes: ptr.To[int64](8 << 20)})
	if err != nil {
		return results.PhaseDocument{}, err
	}
	document, _, err := results.Collect(strings.NewReader(text), receipt)
	return document, err
}

func (l *lab) wantJob(name string, end batchv1.JobConditionType, reason string) {
	l.Helper()
	var job batchv1.Job
	if !l.get(&job, name) {
		l.Fatalf("Job %s is gone", name)
	}
	condition := findCondition(&job, end)
	if condition == nil || (reason != "" && condition.Reason != reason) {
		l.Fatalf("Job %s is not %s/%s: %+v", name, end, reason, job.Status)
	}
	if job.Status.Active != 0 || job.Status.StartTime == nil {
		l.Errorf("Job %s ended with status %+v", name, job.Status)
	}
}

// wantNothing deletes the Job and the claim and expects that nothing remains.
func (l *lab) wantNothing(jobs ...*batchv1.Job) {
	l.Helper()
	ctx := l.Context()
	for _, job := range jobs {
		l.must(client.IgnoreNotFound(l.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	l.must(client.IgnoreNotFound(l.client.Delete(ctx,
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "data"}})))
	l.settle()
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}} {
		l.must(l.client.List(ctx, list, client.InNamespace(l.namespace)))
		if text := fmt.Sprintf("%+v", list); strings.Contains(text, "Name:") {
			l.Errorf("left over: %s", text)
		}
	}
	var volumes corev1.PersistentVolumeList
	l.must(l.client.List(ctx, &volumes))
	for _, volume := range volumes.Items {
		if of := volume.Spec.ClaimRef; of != nil && of.Namespace == l.namespace {
			l.Errorf("PersistentVolume %s is left over", volume.Name)
		}
	}
}
