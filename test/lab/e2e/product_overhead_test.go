package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/bench"
	"github.com/storagebench/storagebench/test/bench/machine"
	"github.com/storagebench/storagebench/test/lab"
)

const (
	overheadPairs = 10
	// overheadReach is how much longer than bare Jobs a StorageBenchmark may take, and verdictReach how long after its last pod.
	overheadReach = 1.10
	verdictReach  = 2 * time.Second
	// overheadPolling is how often either side is polled. It bounds the error of a single time.
	overheadPolling = 100 * time.Millisecond
	overheadSpec    = `
target: {storageClass: {name: %s, volumeMode: Block, size: 64Mi}}
retain: %s
phases:
- {name: fill, fill: {size: 48Mi}}
- {name: reads, measure: {workload: {oltp: {workers: 4, duration: 10s}}}}
`
)

// TestOverhead compares the time from a StorageBenchmark to its verdict with that of a bare claim and the same Jobs, one after the other,
// with their logs read: in pairs, with each first in turn.
func TestOverhead(t *testing.T) {
	onlyAsBench(t, "overhead")
	needsBlockVolume(t, 400, 16<<20)
	installOperator(t)
	s := newSpace(t, levelRestricted)
	o := &overhead{space: s}
	o.learn()
	for pair := range overheadPairs {
		if pair%2 == 0 {
			o.benchmarked(pair)
			o.bare(pair)
		} else {
			o.bare(pair)
			o.benchmarked(pair)
		}
	}
	ratio, err := bench.Compare(o.product, o.jobs)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n%s\n\nfrom creation to the verdict %.1f s, bare claim and Jobs to the last log %.1f s (medians); ratio %s\n\n%s\n",
		machine.Describe(t.Context()), bench.Median(o.product), bench.Median(o.jobs), ratio, o.breakdown())
	if ratio.Estimate > overheadReach {
		t.Errorf("a StorageBenchmark takes %.2f times as long as bare Jobs, and should take at most %.2f times", ratio.Estimate, overheadReach)
	}
	if late := bench.Median(o.parts[partVerdict]); late > verdictReach.Seconds() {
		t.Errorf("the verdict comes %.1f s after the last pod ended, and should come after at most %s", late, verdictReach)
	}
}

// overhead measures both sides in one namespace. Times are in seconds.
type overhead struct {
	*space
	templates     []batchv1.Job // in the order of the phases
	product, jobs []float64
	// parts of the product's time, by name.
	parts map[string][]float64
}

// The parts of the time of a benchmark. The API server keeps whole seconds, so each is wrong by up to one, and their medians by less.
const (
	partPrepare = "from the benchmark to the first Job"
	partStart   = "from a Job to its running container"
	partWork    = "in the containers"
	partBetween = "from the end of a container to the next Job"
	partVerdict = "from the end of the last container to the verdict"
)

var partsOfTime = []string{partPrepare, partStart, partWork, partBetween, partVerdict}

// learn copies the Jobs of a benchmark that keeps them. It also warms the caches for both sides.
func (o *overhead) learn() {
	benchmark := o.benchmark("template", fmt.Sprintf(overheadSpec, lab.BlockClass, v1alpha1.RetainAlways))
	o.ended(benchmark, v1alpha1.VerdictPassed)
	o.templates = append(o.templates, o.space.jobs(benchmark)...)
	slices.SortFunc(o.templates, func(a, b batchv1.Job) int {
		return strings.Compare(a.Labels[v1alpha1.LabelPhase], b.Labels[v1alpha1.LabelPhase]) // fill, reads
	})
	gomega.NewWithT(o.t).Expect(o.templates).To(gomega.HaveLen(2))
	o.stop(benchmark)
	o.emptied()
}

// benchmarked runs a benchmark, and records the parts of its time while its pods exist.
func (o *overhead) benchmarked(pair int) {
	o.t.Helper()
	started := time.Now()
	benchmark := o.benchmark(fmt.Sprintf("pair-%d", pair), fmt.Sprintf(overheadSpec, lab.BlockClass, v1alpha1.RetainOnFailure))
	pods := map[string]corev1.Pod{}
	o.soon("benchmark "+benchmark.Name+" is complete", func(g gomega.Gomega) {
		for i := range o.templates {
			phase := o.templates[i].Labels[v1alpha1.LabelPhase]
			for _, pod := range o.phasePods(benchmark, phase) {
				pods[phase] = pod
			}
		}
		g.Expect(cluster.Get(o.t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
		g.Expect(meta.IsStatusConditionTrue(benchmark.Status.Conditions, v1alpha1.ConditionComplete)).To(gomega.BeTrue())
	})
	o.product = append(o.product, time.Since(started).Seconds())
	gomega.NewWithT(o.t).Expect(benchmark.Status.Verdict).To(gomega.Equal(v1alpha1.VerdictPassed))
	o.note(benchmark, pods)
	o.stop(benchmark)
	o.emptied()
}

// note reads the parts from the times in the objects.
func (o *overhead) note(benchmark *v1alpha1.StorageBenchmark, pods map[string]corev1.Pod) {
	o.t.Helper()
	begun, sum := benchmark.CreationTimestamp.Time, map[string]float64{}
	part := partPrepare
	for i := range o.templates {
		pod, found := pods[o.templates[i].Labels[v1alpha1.LabelPhase]]
		if !found || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Terminated == nil {
			return // the pod was removed between two looks: this benchmark has no breakdown
		}
		ended := pod.Status.ContainerStatuses[0].State.Terminated
		sum[part] += pod.CreationTimestamp.Sub(begun).Seconds()
		sum[partStart] += ended.StartedAt.Sub(pod.CreationTimestamp.Time).Seconds()
		sum[partWork] += ended.FinishedAt.Sub(ended.StartedAt.Time).Seconds()
		begun, part = ended.FinishedAt.Time, partBetween
	}
	complete := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionComplete)
	sum[partVerdict] = complete.LastTransitionTime.Sub(begun).Seconds()
	if o.parts == nil {
		o.parts = map[string][]float64{}
	}
	for name, seconds := range sum {
		o.parts[name] = append(o.parts[name], seconds)
	}
}

func (o *overhead) breakdown() string {
	gomega.NewWithT(o.t).Expect(len(o.parts[partVerdict])).To(gomega.BeNumerically(">=", overheadPairs/2), "benchmarks with a breakdown")
	var text strings.Builder
	fmt.Fprintf(&text, "median seconds of %d benchmarks; the objects keep whole seconds:\n", len(o.parts[partVerdict]))
	for _, name := range partsOfTime {
		fmt.Fprintf(&text, "%8.1f  %s\n", bench.Median(o.parts[name]), name)
	}
	return text.String()
}

// bare makes a claim and one Job after the other on it, and reads their logs, as a script would.
func (o *overhead) bare(pair int) {
	o.t.Helper()
	started := time.Now()
	class := lab.BlockClass
	claim := newClaim(fmt.Sprintf("bare-%d", pair), &class, corev1.PersistentVolumeBlock)
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("64Mi")
	o.create(claim)
	var jobs []*batchv1.Job
	for i := range o.templates {
		job := o.like(&o.templates[i], claim.Name)
		o.create(job)
		o.soon("Job "+job.Name+" is complete", func(g gomega.Gomega) {
			g.Expect(cluster.Get(o.t.Context(), client.ObjectKeyFromObject(job), job)).To(gomega.Succeed())
			g.Expect(job.Status.Succeeded).To(gomega.BeEquivalentTo(1), "%+v", job.Status)
		})
		o.logOf(job)
		jobs = append(jobs, job)
	}
	o.jobs = append(o.jobs, time.Since(started).Seconds())
	for _, job := range jobs {
		if err := cluster.Delete(o.t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			o.t.Fatal(err)
		}
		gone(o.t.Context(), o.t, job)
	}
	o.stop(claim)
	o.emptied()
}

// emptied waits until the volumes of the lab can be used again, so that neither side waits for the leftovers of the other.
func (o *overhead) emptied() {
	o.t.Helper()
	eventually(o.t, "the block volumes are available again", func(g gomega.Gomega) {
		var volumes corev1.PersistentVolumeList
		g.Expect(cluster.List(o.t.Context(), &volumes)).To(gomega.Succeed())
		found := 0
		for _, volume := range volumes.Items {
			if volume.Spec.StorageClassName == lab.BlockClass {
				found++
				g.Expect(volume.Status.Phase).To(gomega.Equal(corev1.VolumeAvailable), volume.Name)
			}
		}
		g.Expect(found).To(gomega.BeNumerically(">", 0), "block volumes")
	})
}

// like returns a Job that does the same as another one, on another claim.
func (o *overhead) like(template *batchv1.Job, claim string) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: claim + "-" + template.Labels[v1alpha1.LabelPhase]},
		Spec:       batchv1.JobSpec{BackoffLimit: template.Spec.BackoffLimit},
	}
	job.Spec.Template.Spec = *template.Spec.Template.Spec.DeepCopy()
	for i := range job.Spec.Template.Spec.Volumes {
		if source := job.Spec.Template.Spec.Volumes[i].PersistentVolumeClaim; source != nil {
			source.ClaimName = claim
		}
	}
	return job
}

// logOf reads the log of a Job's pod.
func (o *overhead) logOf(job *batchv1.Job) {
	o.t.Helper()
	var pods corev1.PodList
	if err := cluster.List(o.t.Context(), &pods, client.InNamespace(o.name), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		o.t.Fatal(err)
	}
	gomega.NewWithT(o.t).Expect(pods.Items).To(gomega.HaveLen(1))
	log, err := clients.CoreV1().Pods(o.name).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	gomega.NewWithT(o.t).Expect(log).NotTo(gomega.BeEmpty())
}

func (o *overhead) soon(what string, assert func(g gomega.Gomega)) {
	o.t.Helper()
	gomega.NewWithT(o.t).Eventually(assert).WithTimeout(benchmarkPatience).WithPolling(overheadPolling).Should(gomega.Succeed(), what)
}
