package integration

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"

	eventsv1 "k8s.io/api/events/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"

	past "github.com/storagebench/storagebench/internal/verdict/history"
	"github.com/storagebench/storagebench/test/sim"
)

// movedClock is the real time, moved forward.
type movedClock struct{ by atomic.Int64 }

// Now returns the moved time.
func (c *movedClock) Now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

// Since returns the time that has passed on this clock.
func (c *movedClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

// set moves the clock so that it is that time now.
func (c *movedClock) set(now time.Time) { c.by.Store(int64(time.Until(now))) }

// wake makes the manager look at the benchmark again: timers do not follow the moved clock.
func (l *lab) wake(benchmark *v1alpha1.StorageBenchmark) {
	l.t.Helper()
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) {
		b.Annotations = map[string]string{"storagebench.dev/woken": strconv.FormatInt(l.clock.Now().UnixNano(), 10)}
	})
}

// TestSchedule lets a year pass twice: one experiment begins by itself, and while it still runs, the next scheduled time passes.
func TestSchedule(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	benchmark := l.submit("yearly", small+"schedule: {cron: '0 3 1 6 *', timeZone: Europe/Berlin}\n")
	first := l.finished(benchmark, v1alpha1.VerdictPassed)
	status := first.Status.Schedule
	g.Expect(status).NotTo(gomega.BeNil())
	g.Expect(status.LastTime).To(gomega.BeNil(), "the first experiment belongs to no time")
	g.Expect(status.NextTime).NotTo(gomega.BeNil())
	june := status.NextTime.Time
	g.Expect(june.UTC().Format("01-02 15:04")).To(gomega.Equal("06-01 01:00"))

	l.cluster.SetBehaviour(inPhase("read", sim.Script{Hold: true}))
	l.clock.set(june.Add(-3 * time.Second))
	l.wake(benchmark)
	l.running("read", 1)
	second := l.get(benchmark)
	g.Expect(l.clock.Now().Before(june)).To(gomega.BeFalse(), "it has not begun too early")
	g.Expect(second.Status.Experiment).NotTo(gomega.Equal(first.Status.Experiment))
	g.Expect(second.Status.Schedule.LastTime.Time.Equal(june)).To(gomega.BeTrue())
	g.Expect(l.runs()).To(gomega.HaveLen(1))
	g.Expect(l.runs()[0].Annotations).To(gomega.HaveKeyWithValue(v1alpha1.AnnotationScheduledTime, june.UTC().Format(time.RFC3339)))

	l.clock.set(june.AddDate(1, 0, 1))
	l.wake(benchmark)
	l.eventually("the time that comes too early is skipped", func(g gomega.Gomega) {
		g.Expect(l.get(benchmark).Status.Schedule.SkippedTimes).To(gomega.BeEquivalentTo(1))
		var events eventsv1.EventList
		l.must(l.live.List(t.Context(), &events, client.InNamespace(l.namespaces[0])))
		reasons := map[string]string{}
		for _, event := range events.Items {
			reasons[event.Reason] = event.Note
		}
		g.Expect(reasons).To(gomega.HaveKeyWithValue(v1alpha1.ReasonTimeSkipped, gomega.ContainSubstring("still running")))
		g.Expect(reasons).To(gomega.HaveKey(v1alpha1.ReasonScheduled))
	})
	// A user restores the object without its status, and removes the schedule: the experiment continues.
	current := l.get(benchmark)
	before := current.DeepCopy()
	current.Status = v1alpha1.StorageBenchmarkStatus{}
	l.must(l.live.Status().Patch(t.Context(), current, client.MergeFrom(before)))
	l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Spec.Schedule = nil })
	g.Expect(l.cluster.Release(func(sim.Execution) bool { return true })).To(gomega.Equal(1))
	last := l.finished(benchmark, v1alpha1.VerdictPassed)
	g.Expect(last.Status.Experiment).To(gomega.Equal(second.Status.Experiment))
	g.Expect(last.Status.Schedule).To(gomega.Equal(&v1alpha1.ScheduleStatus{LastTime: &metav1.Time{Time: june.Local()}}))
	g.Expect(last.Status.History).To(gomega.HaveLen(1))
	stored, _ := l.results(last, last.Status.Results.ConfigMap)
	g.Expect(stored.Annotations).To(gomega.HaveKeyWithValue(v1alpha1.AnnotationScheduledTime, june.UTC().Format(time.RFC3339)))
	l.executedOnce(4)
	g.Expect(l.history(last).Points).To(gomega.HaveLen(2))
}

// history reads the history of a benchmark.
func (l *lab) history(benchmark *v1alpha1.StorageBenchmark) *past.Series {
	l.t.Helper()
	var stored corev1.ConfigMap
	l.must(l.live.Get(l.t.Context(), client.ObjectKey{Namespace: benchmark.Namespace, Name: naming.HistoryName(benchmark.Name)}, &stored))
	series, err := past.Decode([]byte(stored.Data["history.json"]))
	l.must(err)
	return series
}

// TestHistory measures repeatedly: each complete experiment is recorded once, even if a user deletes or blocks the history.
func TestHistory(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	g := gomega.NewWithT(t)
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespaces[0], Name: "bench-history"},
		Data: map[string]string{"mine": "yes"}}
	l.must(l.live.Create(t.Context(), taken))
	benchmark := l.submit("bench", small)
	first := l.finished(benchmark, v1alpha1.VerdictPassed)
	l.waits(benchmark, v1alpha1.ReasonFinished, "no history is kept: ConfigMap bench-history belongs to another owner")
	l.must(l.live.Get(t.Context(), client.ObjectKeyFromObject(taken), taken))
	g.Expect(taken.Data).To(gomega.Equal(map[string]string{"mine": "yes"}))
	l.must(l.live.Delete(t.Context(), taken))

	var second *v1alpha1.StorageBenchmark
	for i, want := range []int{1, 2, 2, 2} {
		switch i {
		case 1:
			l.change(benchmark, func(b *v1alpha1.StorageBenchmark) { b.Annotations = map[string]string{v1alpha1.AnnotationRerun: "1"} })
			second = l.finishedExperimentAfter(benchmark, first.Status.Experiment, v1alpha1.VerdictPassed)
		case 2:
			l.change(benchmark, func(b *v1alpha1.StorageBenchmark) {
				b.Spec.Gates = []v1alpha1.Gate{{Name: "never", Expression: "phase('read').readOperationsPerSecond < 0.0"}}
			})
			l.finished(benchmark, v1alpha1.VerdictFailed)
		case 3:
			l.must(l.live.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: taken.ObjectMeta}))
		}
		l.eventually("the history", func(g gomega.Gomega) {
			var stored corev1.ConfigMap
			g.Expect(l.live.Get(t.Context(), client.ObjectKeyFromObject(taken), &stored)).To(gomega.Succeed())
			series, err := past.Decode([]byte(stored.Data["history.json"]))
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(series.Points).To(gomega.HaveLen(want))
			g.Expect(metav1.IsControlledBy(&stored, first)).To(gomega.BeTrue())
			if i > 1 {
				g.Expect(series.Points[1].Verdict).To(gomega.Equal("Failed"), "as it was judged last")
			}
		})
	}
	points := l.history(benchmark).Points
	g.Expect([]string{points[0].Experiment, points[1].Experiment}).To(gomega.Equal([]string{first.Status.Experiment,
		second.Status.Experiment}))
	g.Expect(points[0].Metrics).NotTo(gomega.BeEmpty())
	g.Expect(points[0].Environment).To(gomega.HaveKeyWithValue("node", l.node))
	g.Expect(points[0].Environment["spec"]).To(gomega.And(gomega.Not(gomega.BeEmpty()), gomega.Equal(points[1].Environment["spec"])))
}
