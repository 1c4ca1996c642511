package integration

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"

	batchv1 "k8s.io/api/batch/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/sim"
)

// TestLimits: the manager refuses what the admin does not allow, before it takes a node, and says whom to ask.
func TestLimits(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.limits = experiment.Limits{MaxHold: time.Hour, MaxStartDeadline: 10 * time.Minute, PriorityClasses: []string{"bench"}}
	l.startManager(config)
	g := gomega.NewWithT(t)
	for name, test := range map[string]struct {
		change func(*v1alpha1.StorageBenchmarkSpec)
		says   string
	}{
		"deadline": {func(s *v1alpha1.StorageBenchmarkSpec) { s.Deadline = lasts(1000 * time.Hour) }, "spec.deadline is 1000h"},
		"startdeadline": {func(s *v1alpha1.StorageBenchmarkSpec) { s.Phases[0].StartDeadline = lasts(time.Hour) },
			"startDeadline of phase fill is 1h"},
		"priority": {func(s *v1alpha1.StorageBenchmarkSpec) { s.PodTemplate.PriorityClassName = "system-node-critical" },
			"only these PriorityClasses may be named: bench"},
		"everything": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.PodTemplate.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, "set the key of the taint"},
	} {
		benchmark := l.submit(name, small, func(b *v1alpha1.StorageBenchmark) { test.change(&b.Spec) })
		l.waits(benchmark, v1alpha1.ReasonLimitExceeded, test.says, "ask the cluster's admin")
		g.Expect(l.get(benchmark).Status.StartedAt).To(gomega.BeNil(), name)
	}
	l.nothingLeft(heldKinds()...)
	l.finished(l.submit("modest", small), v1alpha1.VerdictPassed)
}

func lasts(d time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
}

// TestNamespaceLimit lets one benchmark of a namespace into the line at a time, so that the other namespace comes next.
func TestNamespaceLimit(t *testing.T) {
	t.Parallel()
	l := newLab(t, inPhase("read", sim.Script{Hold: true}), "limit-other")
	l.limits = experiment.Limits{BenchmarksPerNamespace: 1}
	l.startManager(config)
	first := l.submit("first", small)
	l.running("read", 1)
	second := l.submit("second", small)
	l.waits(second, v1alpha1.ReasonNamespaceLimit, "namespace namespacelimit has 1 benchmark in the queue or on nodes, and the limit is 1")
	other := l.submit("other", small, func(b *v1alpha1.StorageBenchmark) { b.Namespace = "limit-other" })
	l.queued(other, 1, first)
	l.cluster.Release(nil)
	l.finished(first, v1alpha1.VerdictPassed)
	l.running("read", 1)
	l.queued(second, 1, other)
	l.cluster.Release(nil)
	l.finished(other, v1alpha1.VerdictPassed)
	l.running("read", 1)
	l.cluster.Release(nil)
	l.finished(second, v1alpha1.VerdictPassed)
	l.nothingLeft(heldKinds()...)
}

// TestStuckTeardown: the node is released although a claim cannot be deleted, and the rest is cleaned up once it can.
func TestStuckTeardown(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil, "stuck-other")
	l.grace = time.Second
	l.startManager(config)
	stuck := l.submit("stuck", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 2 })
	claim := &corev1.PersistentVolumeClaim{}
	l.eventually("the run has a claim, which a tenant keeps", func(g gomega.Gomega) {
		g.Expect(l.live.Get(t.Context(), client.ObjectKey{Namespace: l.namespaces[0], Name: l.firstRun("stuck")},
			claim)).To(gomega.Succeed())
	})
	l.changeFinalizers(claim, append(claim.Finalizers, "example.com/kept"))
	l.waits(stuck, v1alpha1.ReasonTeardownStuck, "the nodes are released until run", claim.Name+" is not deleted")
	l.finished(l.submit("other", small, func(b *v1alpha1.StorageBenchmark) { b.Namespace = "stuck-other" }), v1alpha1.VerdictPassed)
	l.must(l.live.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	l.changeFinalizers(claim, nil)
	l.finished(stuck, v1alpha1.VerdictPassed)
	l.nothingLeft(heldKinds()...)
	gomega.NewWithT(t).Expect(l.journal.mostAtOnce(l.node)).To(gomega.Equal(1), "pods on the node at the same time")
}

// TestKeptJob: the node is released although a tenant keeps the Job of a run, and with it the pod, which the garbage collector deletes only
// after the Job.
func TestKeptJob(t *testing.T) {
	t.Parallel()
	l, kept := heldBriefly(t, "kept-other")
	var jobs batchv1.JobList
	keep := func(finalizers ...string) {
		l.must(l.live.List(t.Context(), &jobs, client.InNamespace(l.namespaces[0])))
		gomega.NewWithT(t).Expect(jobs.Items).NotTo(gomega.BeEmpty(), "the Job is kept all the time: else nothing is shown")
		for i := range jobs.Items {
			l.changeFinalizers(&jobs.Items[i], finalizers)
		}
	}
	keep("example.com/kept")
	l.finished(l.submit("other", small, func(b *v1alpha1.StorageBenchmark) { b.Namespace = "kept-other" }), v1alpha1.VerdictPassed)
	l.waits(kept, v1alpha1.ReasonTeardownStuck, "the nodes are released until run", "remove the finalizers")
	keep()
	l.finished(kept, v1alpha1.VerdictInconclusive)
	l.nothingLeft(heldKinds()...)
}

// heldBriefly starts a benchmark whose pod never ends by itself. Benchmarks in another namespace use the same node, and their pods end. The
// admin lets a benchmark hold the node for seconds only.
func heldBriefly(t *testing.T, other string) (*lab, *v1alpha1.StorageBenchmark) {
	t.Helper()
	l := newLab(t, func(request workload.Request, pod *corev1.Pod) sim.Script {
		return sim.Script{Hold: request.Phase.Name == "read" && pod.Namespace != other}
	}, other)
	l.limits, l.grace = experiment.Limits{MaxHold: 30 * time.Second}, time.Second
	l.startManager(config)
	kept := l.submit("kept", small)
	l.running("read", 1)
	return l, kept
}

// TestRelabelledJob: the node is released although a tenant removes, from the Job of a run, the label by which Jobs are deleted.
func TestRelabelledJob(t *testing.T) {
	t.Parallel()
	l, kept := heldBriefly(t, "label-other")
	var jobs batchv1.JobList
	l.must(l.live.List(t.Context(), &jobs, client.InNamespace(l.namespaces[0])))
	gomega.NewWithT(t).Expect(jobs.Items).NotTo(gomega.BeEmpty())
	for i := range jobs.Items {
		job := &jobs.Items[i]
		before := client.MergeFrom(job.DeepCopy())
		delete(job.Labels, v1alpha1.LabelRunUID)
		l.must(l.live.Patch(t.Context(), job, before))
	}
	l.finished(l.submit("other", small, func(b *v1alpha1.StorageBenchmark) { b.Namespace = "label-other" }), v1alpha1.VerdictPassed)
	l.finished(kept, v1alpha1.VerdictInconclusive)
	l.nothingLeft(heldKinds()...)
}

// TestFullBenchmark: a benchmark that its tenant has filled until its status no longer fits leaves its queue.
func TestFullBenchmark(t *testing.T) {
	t.Parallel()
	l := newLab(t, inPhase("read", sim.Script{Hold: true}), "full-other")
	l.startManager(config)
	l.submit("holder", small)
	l.running("read", 1)
	full := l.submit("full", small, func(b *v1alpha1.StorageBenchmark) { b.Namespace = "full-other" })
	l.waits(full, v1alpha1.ReasonQueued, "number 1")
	other := l.submit("other", small)
	l.waits(other, v1alpha1.ReasonQueued, "number 2")
	l.fill(full)
	l.eventually("the queue is left", func(g gomega.Gomega) {
		status := l.get(full).Status
		g.Expect(status.Queue).To(gomega.BeNil())
		g.Expect(ready(status.Conditions).Message).To(gomega.ContainSubstring("remove labels"))
	})
	l.waits(other, v1alpha1.ReasonQueued, "number 1")
	l.cluster.SetBehaviour(nil)
	l.finished(other, v1alpha1.VerdictPassed)
}

// TestInvalidStatus: others have created ConfigMaps in the name of a benchmark that would make its status invalid. The benchmark leaves its
// queue anyway, and the status mentions only what is valid.
func TestInvalidStatus(t *testing.T) {
	t.Parallel()
	l := newLab(t, inPhase("read", sim.Script{Hold: true}), "invalid-other")
	l.startManager(config)
	inOther := func(b *v1alpha1.StorageBenchmark) { b.Namespace = "invalid-other" }
	l.submit("holder", small)
	l.running("read", 1)
	const hash = "0a1b2c3d"
	long := strings.Repeat("0", 17)
	tricks := []struct {
		name   string
		forge  func(*v1alpha1.StorageBenchmark)
		listed int
	}{
		{"long", func(b *v1alpha1.StorageBenchmark) { l.forgeResults(b, naming.ResultsName(b.Name, long), long, hash) }, 0},
		{"twice", func(b *v1alpha1.StorageBenchmark) {
			l.forgeResults(b, naming.ResultsName(b.Name, hash), hash, hash)
			l.forgeResults(b, b.Name+"-again", hash, hash)
		}, 1},
		{"fingerprint", func(b *v1alpha1.StorageBenchmark) { l.forgeResults(b, naming.ResultsName(b.Name, hash), hash, long) }, 1},
	}
	var waiting []*v1alpha1.StorageBenchmark
	for i, trick := range tricks {
		benchmark := l.submit(trick.name, small, inOther)
		l.waits(benchmark, v1alpha1.ReasonQueued, fmt.Sprintf("number %d", i+1))
		waiting = append(waiting, benchmark)
	}
	other := l.submit("other", small, inOther)
	l.waits(other, v1alpha1.ReasonQueued, fmt.Sprintf("number %d", len(tricks)+1))
	for i, trick := range tricks {
		trick.forge(l.get(waiting[i]))
		l.change(waiting[i], func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Target = v1alpha1.Target{Ref: &v1alpha1.TargetRef{Name: "missing"}}
		})
		l.eventually("the queue is left: "+trick.name, func(g gomega.Gomega) {
			status := l.get(waiting[i]).Status
			g.Expect(status.Queue).To(gomega.BeNil())
			g.Expect(ready(status.Conditions).Reason).To(gomega.Equal(v1alpha1.ReasonTargetNotFound))
			g.Expect(status.History).To(gomega.HaveLen(trick.listed))
		})
	}
	l.waits(other, v1alpha1.ReasonQueued, "number 1")
	l.cluster.SetBehaviour(nil)
	l.finished(other, v1alpha1.VerdictPassed)
}

// forgeResults creates a ConfigMap that looks like results of a benchmark, in its name.
func (l *lab) forgeResults(benchmark *v1alpha1.StorageBenchmark, name, experimentHash, fingerprint string) {
	l.t.Helper()
	l.must(l.live.Create(l.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: benchmark.Namespace, Name: name,
		Labels: map[string]string{v1alpha1.LabelBenchmark: benchmark.Name, v1alpha1.LabelBenchmarkUID: string(benchmark.UID),
			v1alpha1.LabelExperiment: experimentHash},
		Annotations:     map[string]string{v1alpha1.AnnotationFingerprint: fingerprint, v1alpha1.AnnotationVerdict: "Passed"},
		OwnerReferences: []metav1.OwnerReference{experiment.OwnerReference(benchmark)}}}))
}

// TestInvalidRunStatus: the node is released although others keep the claim of a run, and have created an object in the name of the run
// that would make its status invalid.
func TestInvalidRunStatus(t *testing.T) {
	t.Parallel()
	const outcome = "storagebench.dev/outcome"
	for name, annotations := range map[string]map[string]string{
		"digest": {outcome: "Valid", "storagebench.dev/digest": strings.Repeat("0", 81)},
		"lag": {outcome: "Valid", "storagebench.dev/digest": "sha256:" + strings.Repeat("0", 64),
			"storagebench.dev/start-lag-milliseconds": "-1"},
		"job": {v1alpha1.AnnotationStartAt: "9999-12-31T23:59:59-23:59"}, // in UTC, its year has five digits, which no status may hold
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := "invalid-run-other-" + name
			l := newLab(t, func(request workload.Request, pod *corev1.Pod) sim.Script {
				return sim.Script{Hold: request.Phase.Name == "fill" && pod.Namespace != other}
			}, other)
			l.grace = time.Second
			l.startManager(config)
			stuck := l.submit("stuck", small)
			l.running("fill", 1)
			run, claim := l.runs()[0], &corev1.PersistentVolumeClaim{}
			l.must(l.live.Get(t.Context(), client.ObjectKey{Namespace: run.Namespace, Name: run.Name}, claim))
			l.changeFinalizers(claim, append(claim.Finalizers, "example.com/kept"))
			forged := forgedFor(&run, annotations, name == "job")
			l.must(l.live.Create(t.Context(), forged))
			l.waits(stuck, v1alpha1.ReasonTeardownStuck, "the nodes are released until run")
			l.finished(l.submit("other", small, func(b *v1alpha1.StorageBenchmark) { b.Namespace = other }), v1alpha1.VerdictPassed)
			var ended v1alpha1.BenchmarkRun
			l.must(l.live.Get(t.Context(), client.ObjectKeyFromObject(&run), &ended))
			if ending := runs.RecordedEnding(&ended); ending == nil || ending.Valid {
				t.Errorf("the run has not ended as Invalid: %+v", ended.Status)
			}
			l.cluster.SetBehaviour(nil)
			for _, kept := range []client.Object{forged, claim} {
				l.must(l.live.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
				l.changeFinalizers(kept, nil)
			}
			l.finished(stuck, v1alpha1.VerdictPassed)
			l.nothingLeft(heldKinds()...)
			gomega.NewWithT(t).Expect(l.journal.mostAtOnce(l.node)).To(gomega.Equal(1), "pods on the node at the same time")
		})
	}
}

// forgedFor returns an object in the name of a run that does not belong to the run: a result of its phase fill, or a Job of its phase read,
// which a finalizer keeps.
func forgedFor(run *v1alpha1.BenchmarkRun, annotations map[string]string, job bool) client.Object {
	made := metav1.ObjectMeta{Namespace: run.Namespace, Name: naming.PhaseObjectName(run.Name, "fill"), Labels: runs.Labels(run),
		Annotations:     annotations,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("BenchmarkRun"))}}
	if !job {
		return &corev1.ConfigMap{ObjectMeta: made}
	}
	made.Name, made.Finalizers = naming.PhaseObjectName(run.Name, "read"), []string{"example.com/kept"}
	return &batchv1.Job{ObjectMeta: made, Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "none", Image: "none"}}}}}}
}

// fill adds labels to a benchmark until hardly anything more fits, and makes its spec wrong in a way that needs a long message.
func (l *lab) fill(benchmark *v1alpha1.StorageBenchmark) {
	l.t.Helper()
	domain := strings.Join([]string{strings.Repeat("a", 63), strings.Repeat("b", 63), strings.Repeat("c", 63)}, ".")
	refused := func(labels int, wrong bool) bool {
		found := l.get(benchmark)
		before := client.MergeFrom(found.DeepCopy())
		found.Labels = map[string]string{}
		for i := range labels {
			found.Labels[fmt.Sprintf("%s/%s%04d", domain, strings.Repeat("d", 50), i)] = strings.Repeat("e", 63)
		}
		if wrong {
			found.Spec.Target = v1alpha1.Target{Ref: &v1alpha1.TargetRef{Name: strings.Repeat("n", 200)}}
		}
		err := l.live.Patch(l.t.Context(), found, before)
		if err != nil && !strings.Contains(err.Error(), "too large") {
			l.t.Fatal(err)
		}
		return err != nil
	}
	const most = 6000
	labels := sort.Search(most, func(count int) bool { return refused(count, false) }) - 1
	if labels <= 0 || labels >= most-1 || refused(labels, true) && refused(labels-1, true) {
		l.t.Fatalf("%d labels fit", labels)
	}
}

// firstRun returns the name of the first run of a benchmark.
func (l *lab) firstRun(benchmark string) string {
	for _, run := range l.runs() {
		if run.Spec.Benchmark == benchmark {
			return run.Name
		}
	}
	return ""
}

// TestMaxHold ends an experiment that holds its node for too long, whatever deadline it has.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	l := newLab(t, inPhase("read", sim.Script{Hold: true}))
	l.limits = experiment.Limits{MaxHold: 10 * time.Second}
	l.startManager(config)
	benchmark := l.finished(l.submit("endless", small), v1alpha1.VerdictInconclusive)
	passed := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionPassed)
	g := gomega.NewWithT(t)
	g.Expect(passed.Reason).To(gomega.Equal(v1alpha1.ReasonDeadlineExceeded))
	g.Expect(passed.Message).To(gomega.ContainSubstring("10s"))
	g.Expect(benchmark.Status.HoldUntil).NotTo(gomega.BeNil())
	l.nothingLeft(heldKinds()...)
}
