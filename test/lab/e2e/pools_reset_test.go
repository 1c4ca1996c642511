package e2e

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/naming"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// resets keeps a pool from one repetition to the next: with Dataset the second begins on a new dataset, with None on the data of the first.
// A pool on which another user has put something is not destroyed.
func (p *pools) resets() {
	s := p.team()
	before := s.settled()
	for _, reset := range []v1alpha1.ResetPolicy{v1alpha1.ResetDataset, v1alpha1.ResetNone} {
		p.kept(s, before, reset)
	}
	p.keptForSchedule(s, before)
	p.keptWithAStranger(s, before)
}

// keptForSchedule passes a pool on from one experiment to the next. Between them its node is free.
func (p *pools) keptForSchedule(s *space, before []string) {
	g := gomega.NewWithT(p.t)
	benchmark := p.twice(s, "kept-schedule", v1alpha1.ResetNone, func(spec *v1alpha1.StorageBenchmarkSpec) {
		spec.Target.ZFS.KeepFor, spec.Schedule, spec.Repetitions = v1alpha1.KeepForSchedule, &v1alpha1.Schedule{Cron: "0 0 29 2 *"}, 1
	})
	first := s.completed(benchmark)
	guid := p.run("zpool", "get", "-H", "-o", "value", "guid", first.Runs[0].Volumes[0].Pool)
	eventually(p.t, "the node is free while the pool waits", func(g gomega.Gomega) {
		lease := client.ObjectKey{Namespace: systemNamespace, Name: naming.LeaseName(nodes[0])}
		err := cluster.Get(p.t.Context(), lease, &coordinationv1.Lease{})
		g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%v", err)
	})
	s.change(benchmark, func() { benchmark.Annotations = map[string]string{v1alpha1.AnnotationRerun: "1"} })
	eventually(p.t, "another experiment has begun", func(g gomega.Gomega) {
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
		g.Expect(benchmark.Status.Experiment).NotTo(gomega.Equal(first.Experiment))
	})
	second := s.completed(benchmark)
	g.Expect(p.run("zpool", "get", "-H", "-o", "value", "guid", second.Runs[0].Volumes[0].Pool)).To(gomega.Equal(guid))
	g.Expect(second.Runs[0].KeptFrom).To(gomega.Equal(first.Runs[0].Name))
	g.Expect(*second.Runs[0].PoolAge).To(gomega.HaveField("Experiments", int32(2)))
	g.Expect(s.phaseDocument(second.Runs[0].Phases[0]).Metrics["filledBytes"]).To(gomega.BeZero())
	fmt.Printf("keepFor: Schedule: pool %s in experiments %s and %s\n", guid, first.Experiment, second.Experiment)
	s.leavesNothing(before, benchmark)
	g.Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty(), "the pool outlives its benchmark")
}

// twice makes a benchmark of two repetitions on a kept pool. Its last phase is long enough for a look at the node.
func (p *pools) twice(s *space, name string, reset v1alpha1.ResetPolicy,
	changes ...func(*v1alpha1.StorageBenchmarkSpec)) *v1alpha1.StorageBenchmark {
	p.t.Helper()
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(p.paths(fmt.Sprintf(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}]}
    dataset: {provisioner: Local, size: 512Mi, properties: {recordsize: 8k, compression: "off"}}
    reset: %s
phases:
- {name: fill, fill: {size: 64Mi}}
- {name: read, measure: {workload: {oltp: {workers: 4, updatePercent: 20, duration: 30s}}}}
repetitions: 2
maxAttempts: 2
`, reset))), &benchmark.Spec); err != nil {
		p.t.Fatal(err)
	}
	benchmark.Spec.PodTemplate.NodeSelector = map[string]string{corev1.LabelHostname: nodes[0]}
	for _, change := range changes {
		change(&benchmark.Spec)
	}
	s.create(benchmark)
	return benchmark
}

// keptDataset is what ZFS reports about the dataset of the repetition that is being measured.
type keptDataset struct{ pool, poolGUID, guid, run string }

// repetition waits until a repetition is measured, and looks at the node.
func (p *pools) repetition(s *space, benchmark *v1alpha1.StorageBenchmark, number int32) (found keptDataset) {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(func(g gomega.Gomega) {
		for _, run := range s.runs(g, benchmark) {
			if run.Spec.Repetition == number && run.Status.CurrentPhase == "read" && len(run.Status.Volumes) == 1 {
				found = keptDataset{pool: naming.RunPoolName(&run, naming.VolumeData), poolGUID: run.Status.Volumes[0].GUID, run: string(run.UID)}
			}
		}
		g.Expect(found.pool).NotTo(gomega.BeEmpty())
	}).WithTimeout(benchmarkPatience).WithPolling(polling).Should(gomega.Succeed(), "repetition %d is measured", number)
	g := gomega.NewWithT(p.t)
	g.Expect(p.run("zpool", "get", "-H", "-o", "value", "guid", found.pool)).To(gomega.Equal(found.poolGUID))
	g.Expect(p.run("zfs", "get", "-H", "-o", "value,source", naming.PropertyRun, found.pool+"/data")).To(gomega.Equal(found.run + "\tlocal"))
	found.guid = p.run("zfs", "get", "-H", "-o", "value", "guid", found.pool+"/data")
	return found
}

// kept follows a benchmark of two repetitions.
func (p *pools) kept(s *space, before []string, reset v1alpha1.ResetPolicy) {
	g := gomega.NewWithT(p.t)
	benchmark := p.twice(s, "kept-"+strings.ToLower(string(reset)), reset)
	first, second := p.repetition(s, benchmark, 1), p.repetition(s, benchmark, 2)
	g.Expect(second.pool).To(gomega.Equal(first.pool))
	g.Expect(second.poolGUID).To(gomega.Equal(first.poolGUID), "the pool was recreated")
	g.Expect(second.guid == first.guid).To(gomega.Equal(reset == v1alpha1.ResetNone), "the dataset was %s and is %s", first.guid, second.guid)
	experiment := s.completed(benchmark)
	g.Expect(experiment.Runs).To(gomega.HaveLen(2))
	g.Expect(experiment.Runs[0].KeptFrom).To(gomega.BeEmpty())
	g.Expect(experiment.Runs[1].KeptFrom).To(gomega.Equal(experiment.Runs[0].Name))
	filled := s.phaseDocument(experiment.Runs[1].Phases[0]).Metrics["filledBytes"]
	if reset == v1alpha1.ResetNone {
		g.Expect(filled).To(gomega.BeZero(), "the second fill did not find the data of the first")
	} else {
		g.Expect(filled).To(gomega.BeNumerically(">=", 64<<20))
	}
	fmt.Printf("reset %s: pool %s, dataset %s and then %s, %d bytes filled in the second run\n", reset, first.poolGUID, first.guid,
		second.guid, filled)
	g.Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty(), "a pool outlives its benchmark")
	s.leavesNothing(before, benchmark)
}

// keptWithAStranger puts a dataset on the kept pool by hand. The next run does not begin on this pool, and the pool is not destroyed, until
// the dataset is removed. Then the run continues on a new pool.
func (p *pools) keptWithAStranger(s *space, before []string) {
	g := gomega.NewWithT(p.t)
	benchmark := p.twice(s, "kept-stranger", v1alpha1.ResetNone)
	first := p.repetition(s, benchmark, 1)
	precious := first.pool + "/precious"
	p.script("zfs create -o mountpoint=/mnt/precious " + precious + "; echo precious >/mnt/precious/file; sync; zfs unmount " + precious)
	guid := p.run("zfs", "get", "-H", "-o", "value", "guid", precious)
	var message string
	gomega.NewWithT(p.t).Eventually(func(g gomega.Gomega) {
		var pool v1alpha1.BenchmarkPool
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKey{Name: first.pool}, &pool)).To(gomega.Succeed())
		ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(gomega.BeNil())
		g.Expect(pool.DeletionTimestamp).NotTo(gomega.BeNil(), ready.Message)
		g.Expect(ready.Reason).To(gomega.Equal(v1alpha1.ReasonPoolDatasetsRemain), ready.Message)
		message = ready.Message
	}).WithTimeout(benchmarkPatience).WithPolling(polling).Should(gomega.Succeed(), "the pool is to go, and says what keeps it")
	fmt.Printf("a stranger's dataset: %s\n", message)
	g.Expect(message).To(gomega.ContainSubstring(precious))
	g.Expect(p.run("zfs", "get", "-H", "-o", "value", "guid", precious)).To(gomega.Equal(guid))
	g.Expect(p.script("zfs mount " + precious + "; cat /mnt/precious/file; zfs unmount " + precious)).To(gomega.Equal("precious"))
	p.script("zfs destroy " + precious + "; rmdir /mnt/precious 2>/dev/null || true")
	experiment := s.completed(benchmark)
	last := experiment.Runs[len(experiment.Runs)-1]
	g.Expect(last.Valid).To(gomega.BeTrue(), last.Message)
	g.Expect(last.KeptFrom).To(gomega.BeEmpty(), "it began on the pool that was to go")
	g.Expect(p.run("zpool", "list", "-H")).To(gomega.BeEmpty())
	s.leavesNothing(before, benchmark)
}
