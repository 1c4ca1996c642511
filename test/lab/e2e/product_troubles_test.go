package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/workload/engine"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/test/lab"
)

// managerRestarted: a running phase does not notice that the manager dies.
func managerRestarted(t *testing.T) {
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	before := s.settled()
	benchmark := s.benchmark("undisturbed", `
target: {storageClass: {size: 64Mi}}
retain: Always
phases:
- {name: fill, fill: {to: 50%}}
- {name: oltp, measure: {workload: {oltp: {workers: 2, duration: 40s}}}}
`)
	worker := s.working(benchmark, "oltp", 10)
	manager := managerPod(t)
	if err := cluster.Delete(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	gone(t.Context(), t, manager)
	managerAvailable(s)
	g.Expect(managerPod(t).UID).NotTo(gomega.Equal(manager.UID))
	o := s.ended(benchmark, v1alpha1.VerdictPassed) // with one run of one attempt
	plausible(g, o.documents["oltp"], made.Files)
	pods := s.phasePods(benchmark, "oltp")
	g.Expect(pods).To(gomega.HaveLen(1))
	g.Expect(pods[0].UID).To(gomega.Equal(worker.UID), "the pod that was at work is the one that has ended")
	container := pods[0].Status.ContainerStatuses[0]
	g.Expect(container.RestartCount).To(gomega.BeZero())
	g.Expect(container.State.Terminated).NotTo(gomega.BeNil())
	g.Expect(container.State.Terminated.ExitCode).To(gomega.BeZero())
	g.Expect(s.jobs(benchmark)).To(gomega.HaveLen(2), "one for each phase")
	s.leavesNothing(before, benchmark)
}

func managerPod(t *testing.T) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	labels := client.MatchingLabels{"app.kubernetes.io/component": "manager"}
	if err := cluster.List(t.Context(), &pods, client.InNamespace(systemNamespace), labels); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			return &pods.Items[i]
		}
	}
	t.Fatalf("there is no pod of the manager in namespace %s", systemNamespace)
	return nil
}

// twoBenchmarks: the second benchmark for a node waits in the queue, says so, and never runs at the same time as the first.
func twoBenchmarks(t *testing.T) {
	const spec = `
target: {storageClass: {size: 64Mi}}
retain: Always
phases:
- {name: fill, fill: {to: 50%}}
- {name: oltp, measure: {workload: {oltp: {workers: 2, duration: 10s}}}}
`
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	before := s.settled()
	first := s.benchmark("first", spec)
	eventually(t, "the first benchmark has the node", func(g gomega.Gomega) {
		g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(first), first)).To(gomega.Succeed())
		g.Expect(first.Status.Progress).NotTo(gomega.BeNil())
		g.Expect(first.Status.Progress.CurrentRun).NotTo(gomega.BeEmpty())
	})
	second := s.benchmark("second", spec)
	eventually(t, "the second benchmark is in line", func(g gomega.Gomega) {
		g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(second), second)).To(gomega.Succeed())
		g.Expect(second.Status.State).To(gomega.Equal("Queued(1)"))
		g.Expect(second.Status.Queue).NotTo(gomega.BeNil())
		g.Expect(second.Status.Queue.Position).To(gomega.BeEquivalentTo(1))
		g.Expect(second.Status.Queue.Holder).To(gomega.Equal(s.name + "/first"))
		condition := meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionReconciling)
		g.Expect(condition).NotTo(gomega.BeNil())
		g.Expect(condition.Reason).To(gomega.Equal(v1alpha1.ReasonQueued))
		g.Expect(condition.Message).To(gomega.Equal(fmt.Sprintf("number 1 in the queue for node %s, held by %s/first", nodes[0], s.name)))
	})
	earlier, later := s.ended(first, v1alpha1.VerdictPassed), s.ended(second, v1alpha1.VerdictPassed)
	_, firstEnd := s.podTimes(first)
	secondStart, _ := s.podTimes(second)
	g.Expect(secondStart).NotTo(gomega.BeTemporally("<", firstEnd), "the pods overlap")
	g.Expect(later.documents["fill"].StartedAt).To(gomega.BeTemporally(">", earlier.documents["oltp"].FinishedAt), "the workloads overlap")
	fmt.Printf("the second benchmark began %.0f s after the end of the first\n", secondStart.Sub(firstEnd).Seconds())
	s.leavesNothing(before, first, second)
}

// podTimes returns when the first pod of a benchmark that keeps its pods began to work and when the last one ended. The times of its Jobs
// are not suitable: a Job is marked as complete some time after its pod has ended.
func (s *space) podTimes(benchmark *v1alpha1.StorageBenchmark) (start, end time.Time) {
	s.t.Helper()
	for _, phase := range benchmark.Spec.Phases {
		pods := s.phasePods(benchmark, string(phase.Name))
		if len(pods) != 1 || pods[0].Status.ContainerStatuses[0].State.Terminated == nil {
			s.t.Fatalf("phase %s of benchmark %s does not have one pod that has ended: %+v", phase.Name, benchmark.Name, pods)
		}
		ended := pods[0].Status.ContainerStatuses[0].State.Terminated
		if start.IsZero() || ended.StartedAt.Time.Before(start) {
			start = ended.StartedAt.Time
		}
		if ended.FinishedAt.After(end) {
			end = ended.FinishedAt.Time
		}
	}
	return start, end
}

// volumeTooSmall: data that does not fit is reported before anything is written, and gives no numbers.
func volumeTooSmall(t *testing.T) {
	s := newSpace(t, levelRestricted)
	before := s.settled()
	benchmark := s.benchmark("full", `
target: {storageClass: {size: 64Mi}}
phases:
- {name: most, fill: {to: 60%}}
- {name: more, fill: {size: 60Mi}}
- {name: oltp, measure: {workload: {oltp: {duration: 5s}}}}
gates:
- {name: reads, expression: "phase('oltp').readOperationsPerSecond >= 1.0"}
`)
	o := s.ended(benchmark, v1alpha1.VerdictInvalid)
	o.broken(t, "more", engine.ReasonVolumeFull, "do not fit")
	s.leavesNothing(before, benchmark)
}

// ballast is a file that fills the disk of the file system volumes except for some room.
const ballast = "/var/lib/lab/volumes/ballast"

// diskFull: a user's job that outgrows its volume is stopped before it fills the disk, which others use too.
func diskFull(t *testing.T) {
	s := newSpace(t, levelRestricted)
	before := s.settled()
	t.Cleanup(func() {
		ctx, cancel := afterwards(t)
		defer cancel()
		if _, err := theLab.Run(ctx, nodes[0], "rm", "-f", ballast); err != nil {
			t.Error(err)
		}
	})
	const room = 600 << 20 // the runner leaves a twentieth of the file system to others
	if _, err := theLab.Run(t.Context(), nodes[0], "sh", "-euc",
		`free=$(stat -f -c '%a * %S' "$(dirname "$1")"); fallocate -l $(($free - $2)) "$1"`,
		"sh", ballast, fmt.Sprint(room)); err != nil {
		t.Fatal(err)
	}
	benchmark := s.benchmark("outgrown", `
target: {storageClass: {name: `+lab.PathClass+`, size: 64Mi}}
phases:
- {name: outgrows, measure: {workload: {fio: {jobFile: "[outgrows]\nrw=write\nbs=1m\ndirect=1\nsize=2g\n"}}}}
gates:
- {name: writes, expression: "phase('outgrows').writeOperationsPerSecond >= 1.0"}
`)
	o := s.ended(benchmark, v1alpha1.VerdictInvalid)
	o.broken(t, "outgrows", engine.ReasonVolumeFull, "stopped before they run out of space")
	s.leavesNothing(before, benchmark)
}

// brokenDisk: a disk that breaks in the middle of a measurement gives a reason and no numbers.
func brokenDisk(t *testing.T) {
	disk := needsBlockVolume(t, 300, 10<<20)
	s := newSpace(t, levelRestricted)
	before := s.settled()
	benchmark := s.benchmark("broken", `
target: {storageClass: {name: `+lab.BlockClass+`, volumeMode: Block, size: 64Mi}}
phases:
- {name: fill, fill: {size: 64Mi}}
- {name: oltp, measure: {workload: {oltp: {workers: 4, updatePercent: 25, duration: 10m}}}}
gates:
- {name: reads, expression: "phase('oltp').readOperationsPerSecond >= 1.0"}
`)
	s.working(benchmark, "oltp", 1)
	breakDisk(t, nodes[0], disk, "fail")
	started := time.Now()
	o := s.ended(benchmark, v1alpha1.VerdictInvalid)
	fmt.Printf("disk %s: the benchmark was Invalid %.0f s after it broke\n", disk.Name, time.Since(started).Seconds())
	o.broken(t, "oltp", engine.ReasonIOError, "I/O error")
	breakDisk(t, nodes[0], disk, "heal")
	s.leavesNothing(before, benchmark)
}

// broken checks that the only run is Invalid because of a phase, that the reason is given in words everywhere, and that there is no number
// of this phase.
func (o outcome) broken(t *testing.T, phase, reason, words string) {
	t.Helper()
	g := gomega.NewWithT(t)
	run, document := o.experiment.Runs[0], o.documents[phase]
	g.Expect(run.Valid).To(gomega.BeFalse())
	g.Expect(run.Reason).To(gomega.Equal(v1alpha1.ReasonPhaseInvalid))
	g.Expect(run.Message).To(gomega.And(gomega.ContainSubstring("phase "+phase), gomega.ContainSubstring(words)))
	g.Expect(document.Outcome).To(gomega.Equal(results.OutcomeInvalid))
	g.Expect(document.Reason).To(gomega.Equal(reason), document.Message)
	g.Expect(document.Message).To(gomega.ContainSubstring(words))
	for metric := range document.Metrics {
		g.Expect(metric).To(gomega.Equal("ioErrors"), "no number of it may look good")
	}
	for _, variant := range o.experiment.Variants {
		g.Expect(variant.Phases).To(gomega.BeEmpty(), "numbers of variant %s", variant.Name)
	}
	g.Expect(o.report).To(gomega.ContainSubstring(words))
	counts := o.junitOf(g)
	g.Expect(counts.Errors).To(gomega.BeNumerically(">", 0), o.junit)
	g.Expect(counts.Failures+counts.Skipped).To(gomega.BeZero(), o.junit)
	fmt.Printf("phase %s: %s: %s\n", phase, document.Reason, document.Message)
}
