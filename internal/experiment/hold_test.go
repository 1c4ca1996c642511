package experiment

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// greed is a way in which a tenant tries to keep a node: do changes the tenant's own objects, again and again, once a run holds the node.
type greed struct {
	name string
	do   func(w *world)
	// within is the longest time for which the node may be held.
	within time.Duration
}

// heldAtMost is the limit that the admin has set in these tests.
const heldAtMost = 2 * time.Hour

// toRuns applies do to each run.
func toRuns(do func(w *world, r *worldRun)) func(*world) {
	return func(w *world) {
		for _, name := range w.names() {
			do(w, w.runs[name])
		}
	}
}

func work(w *world, r *worldRun) {
	for i := range r.phases {
		if phase := r.phases[i]; phase.Executor.Exists && phase.Stored == nil && !phase.Executor.Failed && !phase.Executor.Succeeded {
			w.advance(r, i)
		}
	}
}

// stopStarted lets pods start, but never end.
func stopStarted(w *world, r *worldRun) {
	for i := range r.phases {
		if r.phases[i].Pod.Started == nil && r.phases[i].Executor.Exists {
			w.advance(r, i)
		}
	}
}

// TestEveryHoldEnds: whatever a tenant does to its objects, another benchmark that waits for the node gets it within a limited time.
func TestEveryHoldEnds(t *testing.T) {
	grace := runs.DefaultTimings().TeardownGrace
	flip := 0
	ways := []greed{
		{"nothing", toRuns(work), time.Hour},
		{"a finished pod names the claim", toRuns(func(w *world, r *worldRun) { r.keepClaim = true; work(w, r) }), grace + 10*time.Minute},
		{"pods with a finalizer", toRuns(func(w *world, r *worldRun) { r.keepPod = true; work(w, r) }), grace + 10*time.Minute},
		{"a finalizer on runs", func(w *world) {
			w.finalizers = true
			toRuns(work)(w)
			if len(w.runs) > 0 {
				w.benchmark.DeletionTimestamp = &metav1.Time{Time: runstest.Noon}
			}
		}, 10 * time.Minute},
		{"deleted, with the claim in use", func(w *world) {
			toRuns(func(w *world, r *worldRun) { r.keepClaim = true; stopStarted(w, r) })(w)
			w.benchmark.DeletionTimestamp = &metav1.Time{Time: runstest.Noon}
		}, grace + 10*time.Minute},
		{"pods that never end", toRuns(stopStarted), heldAtMost + 10*time.Minute},
		{"and claims that stay", toRuns(func(w *world, r *worldRun) { r.keepClaim = true; stopStarted(w, r) }),
			heldAtMost + grace + 10*time.Minute},
		{"a quota that forbids pods", func(*world) {}, heldAtMost + 10*time.Minute},
		{"names that are taken", func(w *world) { w.taken = true; toRuns(work)(w) }, heldAtMost + 10*time.Minute},
		{"names of results that are taken", toRuns(func(w *world, r *worldRun) {
			w.taken = slices.ContainsFunc(r.phases, func(p runs.PhaseState) bool { return p.Pod.Ended != nil })
			work(w, r)
		}), heldAtMost + 10*time.Minute},
		{"the claim's name is taken", toRuns(func(_ *world, r *worldRun) {
			if !r.phases[0].Executor.Exists {
				r.volume = &runs.Claims{Foreign: true}
			}
		}), heldAtMost + 10*time.Minute},
		{"suspended and resumed", func(w *world) { w.benchmark.Spec.Suspend = !w.benchmark.Spec.Suspend; toRuns(stopStarted)(w) },
			heldAtMost + 10*time.Minute},
		{"run again and again", func(w *world) {
			flip++
			w.benchmark.Annotations = map[string]string{v1alpha1.AnnotationRerun: itoa(flip)}
			toRuns(stopStarted)(w)
		}, 10 * time.Minute},
		{"another spec, again and again", func(w *world) {
			flip++
			w.benchmark.Spec.Matrix = v1alpha1.Matrix{"phases.fill.to": {v1alpha1.MatrixValue(fmt.Sprintf("%d%%", 1+flip%90))}}
			toRuns(func(w *world, r *worldRun) { r.keepClaim = true; stopStarted(w, r) })(w)
		}, grace + 10*time.Minute},
		{"a wrong spec under a run", func(w *world) { w.broken = len(w.runs) > 0; toRuns(stopStarted)(w) }, heldAtMost + 10*time.Minute},
		{"the name of the results is taken", func(w *world) { w.foreign = true; toRuns(work)(w) }, time.Hour},
		{"a quota that forbids results", func(w *world) { w.full = true; toRuns(work)(w) }, time.Hour},
		{"a quota that forbids results, and another spec", func(w *world) {
			w.full = true
			if slices.ContainsFunc(w.names(), func(name string) bool { return runs.RecordedEnding(&w.runs[name].run) != nil }) {
				w.benchmark.Spec.Matrix = v1alpha1.Matrix{"phases.fill.to": {"7%"}}
			}
			toRuns(work)(w)
		}, time.Hour},
		{"no class any more", func(w *world) { w.classes = nil; toRuns(stopStarted)(w) }, heldAtMost + 10*time.Minute},
	}
	for _, way := range ways {
		t.Run(strings.ReplaceAll(way.name, " ", "_"), func(t *testing.T) {
			explore(t, "2", func(t *rapid.T) {
				for _, atWork := range []bool{false, true} {
					kept := holdFor(t, way, atWork)
					if kept > way.within {
						t.Fatalf("the node was kept for %s, at most %s", kept, way.within)
					}
				}
			})
		})
	}
}

// holdFor lets a benchmark take the node and then applies the greed, at once or when a pod is running. It returns how long another
// benchmark has to wait.
func holdFor(t *rapid.T, way greed, atWork bool) time.Duration {
	w := newWorld(t)
	w.benchmark, w.all, w.nodes = runstest.Benchmark(), []string{"n1"}, []string{"n1"}
	w.benchmark.Spec.MaxAttempts, w.limits = 10, Limits{MaxHold: heldAtMost}
	for _, phase := range w.benchmark.Spec.Phases {
		phase.Deadline.Duration.Duration = heldAtMost
	}
	for w.leases["n1"] != runstest.OwnUID {
		w.reconcile(false)
		w.now = w.now.Add(time.Second)
	}
	taken := w.now
	for w.now.Sub(taken) < 4*way.within {
		if w.benchmark == nil || w.leases["n1"] != runstest.OwnUID {
			return w.now.Sub(taken)
		}
		if atWork = atWork && !slices.ContainsFunc(w.names(), func(name string) bool {
			return w.runs[name].phases[0].Pod.Started != nil
		}); atWork {
			toRuns(stopStarted)(w)
		} else {
			way.do(w)
		}
		w.changed, w.wake = false, time.Time{}
		w.reconcile(false)
		for _, name := range w.names() {
			w.reconcileRun(w.runs[name], false)
		}
		w.collect()
		w.now = w.now.Add(20 * time.Second)
	}
	t.Fatalf("the node is kept: %s %s: %s", w.last.Position, w.last.Reason, w.last.Message)
	return 0
}
