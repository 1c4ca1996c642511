package e2e

import (
	"fmt"
	"strings"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/naming"

	batchv1 "k8s.io/api/batch/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// graceValues let a stuck teardown hold its node for a minute only.
var graceValues = []string{"--set", "limits.teardownGrace=60s"}

const tenantFinalizer, tenantLabel = "example.com/kept", "example.com/tenant"

// greedy lets one namespace do its worst with its own objects and pods: a benchmark of another namespace on the same node still gets its
// verdict.
func (p *pools) greedy() {
	greedy := p.team()
	modest := spaceOf(p.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}, levelRestricted)
	before := modest.settled()
	p.t.Cleanup(greedy.letGo)

	spec := p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$1]}]}}}
phases:
- {name: fill, fill: {size: 16Mi}}
- {name: read, measure: {workload: {oltp: {workers: 1, duration: 20s}}}}
repetitions: 1
maxAttempts: 5
`)
	first := greedy.benchmark("greedy", spec)
	greedy.inPhase(first, "read")
	run := greedy.runs(gomega.NewWithT(p.t), first)[0]
	claim := run.Name
	// A pod that keeps the claim, one that is completed and still names it, and names that the next runs need.
	greedy.create(greedy.newPod("keeper", on(p.node), mounted(claim)), greedy.newPod("done", on(p.node), mounted(claim), command("true")),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{tenantLabel: "true"},
			Name: naming.PhaseObjectName(naming.RunName(first.Name, run.Spec.Experiment, 0, 2), "fill")}})
	greedy.keep()
	for i := range 6 { // the whole queue, each with a different spec
		// They wait for the disk of the first. The short startDeadline only keeps the test short: the admin's maxStartDeadline bounds it.
		other := greedy.benchmark(fmt.Sprintf("greedy-%d", i), strings.Replace(spec, "{name: fill,", "{name: fill, startDeadline: 40s,", 1))
		greedy.change(other, func() { other.Spec.Seed = ptr.To(int64(i)) })
	}
	greedy.change(first, func() { first.Spec.Seed = ptr.To[int64](99) })
	if err := cluster.Delete(p.t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		p.t.Fatal(err)
	}

	started := time.Now()
	benchmark := modest.benchmark("modest", p.paths(`
target: {zfs: {nodes: {matchLabels: {storagebench.dev/lab: "true"}}, pool: {vdevs: [{devices: [$4]}]}}}
phases:
- {name: fill, fill: {size: 16Mi}}
`))
	waited := false
	gomega.NewWithT(p.t).Eventually(func(g gomega.Gomega) {
		greedy.keep() // whatever comes next is kept too
		g.Expect(cluster.Get(p.t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
		waited = waited || benchmark.Status.Queue != nil
		g.Expect(meta.IsStatusConditionTrue(benchmark.Status.Conditions, v1alpha1.ConditionComplete)).To(gomega.BeTrue(), "%v",
			benchmark.Status.Conditions)
	}).WithTimeout(benchmarkPatience).WithPolling(polling).Should(gomega.Succeed(), "the modest benchmark gets its turn")
	modest.completed(benchmark)
	gomega.NewWithT(p.t).Expect(waited).To(gomega.BeTrue(), "it had to wait for the greedy ones: else nothing is shown")
	fmt.Printf("greedy tenant: the other namespace has its verdict after %.0f s\n", time.Since(started).Seconds())

	greedy.letGo()
	modest.leavesNothing(before, benchmark)
}

// own returns lists of the kinds in a namespace that its user may change, and whose deletion a run waits for.
func (s *space) own() []client.ObjectList {
	return []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PodList{}, &batchv1.JobList{}, &v1alpha1.StorageBenchmarkList{}}
}

// keep puts a finalizer on everything in the namespace.
func (s *space) keep() {
	s.each(func(object client.Object) {
		if object.GetDeletionTimestamp().IsZero() {
			object.SetFinalizers(append(object.GetFinalizers(), tenantFinalizer))
		}
	})
}

// letGo deletes everything that the greedy user has created, and removes the finalizers.
func (s *space) letGo() {
	ctx, cancel := afterwards(s.t)
	defer cancel()
	for _, name := range []string{"keeper", "done"} {
		_ = cluster.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}})
	}
	if err := cluster.DeleteAllOf(ctx, &v1alpha1.StorageBenchmark{}, client.InNamespace(s.name)); err != nil {
		s.t.Error(err)
	}
	if err := cluster.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(s.name),
		client.MatchingLabels{tenantLabel: "true"}); err != nil {
		s.t.Error(err)
	}
	gomega.NewWithT(s.t).Eventually(func(g gomega.Gomega) {
		s.each(func(object client.Object) { object.SetFinalizers(othersFinalizers(object.GetFinalizers())) })
		var runs v1alpha1.BenchmarkRunList
		var benchmarks v1alpha1.StorageBenchmarkList
		g.Expect(cluster.List(ctx, &runs, client.InNamespace(s.name))).To(gomega.Succeed())
		g.Expect(cluster.List(ctx, &benchmarks, client.InNamespace(s.name))).To(gomega.Succeed())
		g.Expect(len(runs.Items) + len(benchmarks.Items)).To(gomega.BeZero())
	}).WithTimeout(benchmarkPatience).WithPolling(polling).Should(gomega.Succeed(), "all that the greedy user kept is gone")
}

// othersFinalizers returns the finalizers that are not the tenant's.
func othersFinalizers(finalizers []string) (left []string) {
	for _, one := range finalizers {
		if one != tenantFinalizer {
			left = append(left, one)
		}
	}
	return left
}

// each changes the objects of the namespace that its user may change. An object that is gone or has changed meanwhile is left to the next
// call.
func (s *space) each(change func(client.Object)) {
	ctx, cancel := afterwards(s.t)
	defer cancel()
	for _, list := range s.own() {
		if err := cluster.List(ctx, list, client.InNamespace(s.name)); err != nil {
			continue
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, one := range objects {
			object := one.(client.Object)
			kept := len(othersFinalizers(object.GetFinalizers())) < len(object.GetFinalizers())
			before := object.DeepCopyObject().(client.Object)
			change(object)
			if is := len(othersFinalizers(object.GetFinalizers())) < len(object.GetFinalizers()); is != kept {
				_ = cluster.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			}
		}
	}
}
