package integration

import (
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// soon is how fast a fact must show in a condition. It is one reconcile, some ten milliseconds; the rest is for machines
// that are busy with something else.
const soon = 3 * time.Second

// endedAs checks that the first attempt at the first run is invalid for a reason, with these words in its message, and that an event says
// so.
func (l *lab) endedAs(reason string, words ...string) {
	l.t.Helper()
	g := gomega.NewWithT(l.t)
	runs := l.runs()
	g.Expect(runs).NotTo(gomega.BeEmpty())
	run := runs[0]
	valid := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionValid)
	g.Expect(valid).NotTo(gomega.BeNil())
	g.Expect(string(valid.Status)+" "+valid.Reason).To(gomega.Equal("False "+reason), valid.Message)
	for _, word := range words {
		g.Expect(valid.Message).To(gomega.ContainSubstring(word))
	}
	l.eventually("an event says "+reason, func(g gomega.Gomega) {
		g.Expect(firstSeen(l.journal, func(event *corev1.Event) bool {
			return event.InvolvedObject.UID == run.UID && event.Reason == reason && event.Type == corev1.EventTypeWarning
		})).NotTo(gomega.BeZero())
	})
}

// said checks that a run reports a reason with all words soon after a fact, and that its benchmark reports it in the same words.
func (l *lab) said(fact time.Time, reason string, words ...string) {
	l.t.Helper()
	has := func(conditionReason, message string) func(gomega.Gomega) {
		return func(g gomega.Gomega) {
			g.Expect(conditionReason).To(gomega.Equal(reason))
			for _, word := range words {
				g.Expect(message).To(gomega.ContainSubstring(word))
			}
		}
	}
	holds := func(assert func(gomega.Gomega)) bool {
		ok := true
		assert(gomega.NewGomega(func(string, ...int) { ok = false }))
		return ok
	}
	var told, passedOn time.Time
	l.eventually("run and benchmark say "+reason, func(g gomega.Gomega) {
		told = firstSeen(l.journal, func(run *v1alpha1.BenchmarkRun) bool {
			condition := ready(run.Status.Conditions)
			return holds(has(condition.Reason, condition.Message))
		})
		passedOn = firstSeen(l.journal, func(b *v1alpha1.StorageBenchmark) bool { return holds(has(reason, ready(b.Status.Conditions).Message)) })
		g.Expect(told).NotTo(gomega.BeZero(), "run says so")
		g.Expect(passedOn).NotTo(gomega.BeZero(), "benchmark says so")
	})
	l.t.Logf("%s: the run says so %v after the fact, the benchmark %v", reason, told.Sub(fact).Round(time.Millisecond),
		passedOn.Sub(fact).Round(time.Millisecond))
	if fact.IsZero() || told.Sub(fact) > soon || passedOn.Sub(fact) > soon {
		l.t.Errorf("%s is reported too late", reason)
	}
}

// quick is an experiment whose pods must start soon, but not before a busy machine has shown why they do not.
const quick = `
phases:
- {name: fill, fill: {to: 50%}, startDeadline: 8s}
- {name: read, measure: {workload: {oltp: {workers: 2}}}, startDeadline: 8s}
repetitions: 1
`

// TestPodDoesNotStart covers everything that keeps a pod from starting: it is reported at once, and ends the benchmark at the deadline.
func TestPodDoesNotStart(t *testing.T) {
	t.Parallel()
	condition := func(word string) func(*lab) time.Time {
		return func(l *lab) time.Time {
			return firstSeen(l.journal, func(pod *corev1.Pod) bool {
				for _, condition := range pod.Status.Conditions {
					if condition.Reason == word {
						return true
					}
				}
				return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
					pod.Status.ContainerStatuses[0].State.Waiting.Reason == word
			})
		}
	}
	event := func(reason string) func(*lab) time.Time {
		return func(l *lab) time.Time {
			return firstSeen(l.journal, func(event *corev1.Event) bool { return event.Reason == reason })
		}
	}
	missing := func(_ *lab, b *v1alpha1.StorageBenchmark) { b.Spec.PodTemplate.PriorityClassName = "not-there" }
	tooMuch := func(l *lab, b *v1alpha1.StorageBenchmark) {
		limit := &corev1.LimitRange{}
		limit.Namespace, limit.Name = l.namespaces[0], "small-pods-only"
		limit.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
			Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
		l.must(l.live.Create(l.t.Context(), limit))
		cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		b.Spec.PodTemplate.Resources = &corev1.ResourceRequirements{Requests: cpu, Limits: cpu}
	}
	for _, c := range []struct {
		name   string
		script sim.Script
		claims sim.ClaimBehaviour
		change func(*lab, *v1alpha1.StorageBenchmark)
		fact   func(*lab) time.Time
		reason string
		words  []string
	}{
		{"image", sim.Script{Outcome: sim.ImagePull}, nil, nil, condition("ErrImagePull"), v1alpha1.ReasonImagePullFailed,
			[]string{runnerImage, "not found"}},
		{"unschedulable", sim.Script{Outcome: sim.Unschedulable, Message: "0/1 nodes are available: 1 Insufficient memory."}, nil, nil,
			condition(corev1.PodReasonUnschedulable), v1alpha1.ReasonPodUnschedulable, []string{"Insufficient memory"}},
		{"unbound", sim.Script{Outcome: sim.NeverBind, Message: "pool is out of space"}, nil, nil, event("ProvisioningFailed"),
			v1alpha1.ReasonVolumeNotBound, []string{"pool is out of space"}},
		{"no-volume", sim.Script{}, func(*corev1.PersistentVolumeClaim) string { return "the driver is not there" }, nil,
			event("ProvisioningFailed"), v1alpha1.ReasonVolumeNotBound, []string{"the driver is not there"}},
		{"priority", sim.Script{}, nil, missing, event("FailedCreate"), v1alpha1.ReasonPodRejected, []string{"not-there"}},
		{"limit-range", sim.Script{}, nil, tooMuch, event("FailedCreate"), v1alpha1.ReasonPodRejected,
			[]string{"maximum cpu usage per Container is 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := start(t, func(workload.Request, *corev1.Pod) sim.Script { return c.script })
			l.cluster.SetClaims(c.claims)
			benchmark := l.submit("bench", quick, func(b *v1alpha1.StorageBenchmark) {
				if c.change != nil {
					c.change(l, b)
				}
			})
			l.said(l.fact(c.fact), c.reason, c.words...)
			finished := l.finished(benchmark, v1alpha1.VerdictInvalid)
			l.endedAs(c.reason, append(c.words, "did not start within 8s")...)
			g := gomega.NewWithT(t)
			g.Expect(ready(finished.Status.Conditions).Message).To(gomega.ContainSubstring(c.words[0]), "the verdict says why")
			g.Expect(l.runs()).To(gomega.HaveLen(1), "another attempt would meet the same")
			l.nothingLeft(workloadKinds()...)
			l.executedOnce(0)
		})
	}
}

// fact waits until a fact is seen, and returns when.
func (l *lab) fact(seen func(*lab) time.Time) (at time.Time) {
	l.t.Helper()
	l.eventually("the fact", func(g gomega.Gomega) {
		at = seen(l)
		g.Expect(at).NotTo(gomega.BeZero())
	})
	return at
}

// TestTroubleThatPasses: the problem is over before the deadline, and the experiment continues where it was.
func TestTroubleThatPasses(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]sim.Script{
		"image": {Outcome: sim.ImagePull}, "unschedulable": {Outcome: sim.Unschedulable}, "unbound": {Outcome: sim.NeverBind},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, func(workload.Request, *corev1.Pod) sim.Script { return script })
			benchmark := l.submit("bench", small)
			l.eventually("trouble", func(g gomega.Gomega) {
				g.Expect(ready(l.get(benchmark).Status.Conditions).Message).To(gomega.ContainSubstring("cannot start"))
			})
			l.cluster.SetBehaviour(nil)
			l.finished(benchmark, v1alpha1.VerdictPassed)
			l.executedOnce(2)
		})
	}
}

// TestRunIsRepeated covers everything that spoils a run once: the run is invalid, says why, and the second attempt decides.
func TestRunIsRepeated(t *testing.T) {
	t.Parallel()
	held := "phases: [{name: fill, fill: {to: 50%}, deadline: 10s}, {name: read, measure: {workload: {oltp: {workers: 2}}}}]\nrepetitions: 1\n"
	for _, c := range []struct {
		name, spec string
		script     sim.Script
		reason     string
		words      []string
	}{
		{"evicted", small, sim.Script{Outcome: sim.Evict}, v1alpha1.ReasonPodEvicted, []string{"ephemeral-storage"}},
		{"lost", small, sim.Script{Outcome: sim.Lose}, v1alpha1.ReasonPodLost, []string{"phase fill"}},
		{"killed", small, sim.Script{Outcome: sim.Kill}, v1alpha1.ReasonPodLost, []string{"phase fill"}},
		{"node-lost", small, sim.Script{Outcome: sim.LoseNode}, v1alpha1.ReasonPodLost, []string{"node no longer exists"}},
		{"node-reset", small, sim.Script{Outcome: sim.Reset}, v1alpha1.ReasonNodeRebooted, []string{"phase fill", "rebooted"}},
		{"failed", small, sim.Script{Outcome: sim.Fail, ExitCode: 42, Message: "fio: no space left"}, v1alpha1.ReasonPodFailed,
			[]string{"exit code 42", "fio: no space left"}},
		{"refused", small, sim.Script{Outcome: sim.Reject}, v1alpha1.ReasonPodFailed, []string{"OutOfcpu"}},
		{"no-result", small, sim.Script{Outcome: sim.NoResult}, v1alpha1.ReasonResultMissing, []string{runnerImage}},
		{"truncated", small, sim.Script{Outcome: sim.Truncate}, v1alpha1.ReasonResultCorrupt, []string{"phase fill"}},
		{"wrong-digest", small, sim.Script{Outcome: sim.WrongDigest}, v1alpha1.ReasonResultCorrupt, []string{"phase fill"}},
		{"log-gone", small, sim.Script{Outcome: sim.LogGone}, v1alpha1.ReasonResultCorrupt, []string{"phase fill"}},
		{"foreign-run", small, sim.Script{Outcome: sim.ForeignRun}, v1alpha1.ReasonResultForeign, []string{"another-run"}},
		{"foreign-phase", small, sim.Script{Outcome: sim.ForeignPhase}, v1alpha1.ReasonResultForeign, []string{"another-fill"}},
		{"unreadable", small, sim.Script{LogFailures: -1}, v1alpha1.ReasonResultUnreadable, []string{"phase fill"}},
		{"deadline", held, sim.Script{Hold: true}, v1alpha1.ReasonPhaseDeadlineExceeded, []string{"10s", "deadline"}},
		{"runner-says-so", small, sim.Script{Document: func(d *results.PhaseDocument) {
			d.Outcome, d.Reason, d.Message = results.OutcomeInvalid, "CacheNotCold", "the cache was warm"
		}}, v1alpha1.ReasonPhaseInvalid, []string{"CacheNotCold", "the cache was warm"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := start(t, firstAttempt(c.script))
			benchmark := l.finished(l.submit("bench", c.spec), v1alpha1.VerdictPassed)
			l.endedAs(c.reason, c.words...)
			g := gomega.NewWithT(t)
			g.Expect(l.runs()).To(gomega.HaveLen(2))
			g.Expect(*benchmark.Status.Progress).To(gomega.Equal(v1alpha1.ProgressStatus{RunsTotal: 1, RunsDone: 1, RunsInvalid: 1}))
			_, written := l.results(benchmark, benchmark.Status.Results.ConfigMap)
			g.Expect(written.Runs).To(gomega.HaveLen(2), "both attempts are in the results")
			g.Expect(written.Runs[0].Reason).To(gomega.Equal(c.reason))
			l.nothingLeft(workloadKinds()...)
		})
	}
}

// TestAllAttemptsFail ends with the verdict Invalid and its reason.
func TestAllAttemptsFail(t *testing.T) {
	t.Parallel()
	l := start(t, inPhase("read", sim.Script{Outcome: sim.Fail, ExitCode: 3, Message: "disk on fire"}))
	benchmark := l.finished(l.submit("bench", small, gates("phase('read').readOperationsPerSecond > 1.0")), v1alpha1.VerdictInvalid)
	g := gomega.NewWithT(t)
	passed := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionPassed)
	g.Expect(passed.Message).To(gomega.And(gomega.ContainSubstring("attempt 2 of 2"), gomega.ContainSubstring("disk on fire")))
	g.Expect(benchmark.Status.Gates[0].Verdict).To(gomega.Equal(v1alpha1.VerdictInconclusive))
	g.Expect(benchmark.Status.Progress.RunsInvalid).To(gomega.BeEquivalentTo(2))
	l.executedOnce(4)
}

// TestLogUnreadableForAWhile: a log that cannot be read for a while loses nothing.
func TestLogUnreadableForAWhile(t *testing.T) {
	t.Parallel()
	l := start(t, inPhase("fill", sim.Script{LogFailures: 4}))
	benchmark := l.submit("bench", small)
	l.said(l.fact(func(l *lab) time.Time {
		return firstSeen(l.journal, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	}), v1alpha1.ReasonResultUnreadable, "phase fill has ended, its result is being read")
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.executedOnce(2)
}

// TestBenchmarkDeadline ends an experiment that takes too long. The deadline is set when the second run hangs: how long a busy
// machine takes for the first must not matter.
func TestBenchmarkDeadline(t *testing.T) {
	t.Parallel()
	l := start(t, holdRun("001", "read"))
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 3 })
	l.running("read", 1, "001")
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) {
		b.Spec.Deadline = &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Second}}
	})
	benchmark = l.finished(benchmark, v1alpha1.VerdictInconclusive)
	passed := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionPassed)
	g := gomega.NewWithT(t)
	g.Expect(passed.Reason).To(gomega.Equal(v1alpha1.ReasonDeadlineExceeded))
	g.Expect(passed.Message).To(gomega.And(gomega.ContainSubstring("1 of 3 runs"), gomega.ContainSubstring("1s")))
	l.nothingLeft(workloadKinds()...)
}

// TestStorageClassMissing waits for a class and goes on when it is there.
func TestStorageClassMissing(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	benchmark := l.submit("bench", small+"target: {storageClass: {name: made-later, size: 64Mi}}")
	l.waits(benchmark, v1alpha1.ReasonStorageClassNotFound, `"made-later"`, "kubectl get storageclass")
	gomega.NewWithT(t).Expect(l.get(benchmark).Status.State).To(gomega.Equal(v1alpha1.ReasonStorageClassNotFound))
	l.must(l.cluster.CreateStorageClass(t.Context(), "made-later", false))
	l.finished(benchmark, v1alpha1.VerdictPassed)
}

// TestNoDefaultClass waits for a default class and goes on when there is one.
func TestNoDefaultClass(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	benchmark := l.submit("bench", small+"target: {storageClass: {size: 64Mi}}")
	l.waits(benchmark, v1alpha1.ReasonNoDefaultClass, "spec.target.storageClass.name")
	l.must(l.cluster.CreateStorageClass(t.Context(), "default-class", true))
	finished := l.finished(benchmark, v1alpha1.VerdictPassed)
	gomega.NewWithT(t).Expect(finished.Status.StorageClass).To(gomega.Equal("default-class"))
}

// TestNoNode waits for a node that is Ready.
func TestNoNode(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	l.nodeReady(corev1.ConditionFalse)
	benchmark := l.submit("bench", small)
	l.waits(benchmark, v1alpha1.ReasonNoNode, "no node is Ready")
	elsewhere := l.submit("elsewhere", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.PodTemplate.NodeSelector["disk"] = "none" })
	l.waits(elsewhere, v1alpha1.ReasonNoNode, "nodeSelector")
	l.nodeReady(corev1.ConditionTrue)
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.waits(elsewhere, v1alpha1.ReasonNoNode)
}

func (l *lab) nodeReady(status corev1.ConditionStatus) {
	l.t.Helper()
	var node corev1.Node
	l.must(l.live.Get(l.t.Context(), client.ObjectKey{Name: l.node}, &node))
	node.Status.Conditions[0].Status = status
	l.must(l.live.Status().Update(l.t.Context(), &node))
}

// TestForeignNames creates objects of another owner under names that the benchmark wants: they are left alone, the node is given to others
// meanwhile, and the benchmark continues by itself when they are gone.
func TestForeignNames(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	g := gomega.NewWithT(t)
	benchmark := l.submit("bench", small)
	experiment := design.ID(l.get(benchmark))
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespaces[0], Name: naming.ResultsName("bench", experiment)}}
	stored.Data = map[string]string{"precious": "yes"}
	l.must(l.live.Create(t.Context(), stored))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespaces[0],
		Name: naming.RunName("bench", experiment, 0, 1)}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: &l.class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	l.must(l.live.Create(t.Context(), claim))

	l.startManager(config)
	l.eventually("the claim's name is taken", func(g gomega.Gomega) {
		g.Expect(ready(l.get(benchmark).Status.Conditions).Message).To(gomega.ContainSubstring("PersistentVolumeClaim " + claim.Name))
	})
	l.executedOnce(0)
	l.must(l.live.Delete(t.Context(), claim))
	l.waits(benchmark, v1alpha1.ReasonNameTaken, stored.Name)
	l.nothingLeft(&coordinationv1.LeaseList{})
	l.must(l.live.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
	g.Expect(stored.Data).To(gomega.HaveLen(1))
	g.Expect(stored.OwnerReferences).To(gomega.BeEmpty())
	l.must(l.live.Delete(t.Context(), stored))
	l.finished(benchmark, v1alpha1.VerdictPassed)
	l.executedOnce(2)
}
