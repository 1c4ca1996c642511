package operation

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

func names(requests []reconcile.Request) []string {
	var found []string
	for _, request := range requests {
		found = append(found, request.Name)
	}
	slices.Sort(found)
	return found
}

func TestWhoIsWoken(t *testing.T) {
	ended, elsewhere, to := wanted("ended", acts()["scrub"].action), wanted("elsewhere", acts()["scrub"].action),
		wanted("to", acts()["replicate"].action)
	ended.Status.Outcome = "Failed"
	elsewhere.Spec.NodeName = "node-b"
	other := wanted("other", acts()["scrub"].action)
	other.Spec.Pool = "bench2"
	w := newWorld(t, ended, elsewhere, to, other, wanted("op", acts()["trim"].action))
	if got := names(w.agent.unfinished(t.Context(), ended)); !slices.Equal(got, []string{"op", "other", "to"}) {
		t.Errorf("after an end: %q", got)
	}
	if got := names(w.agent.operationsOf(t.Context(), readyPool("bench1"))); !slices.Equal(got, []string{"to"}) {
		t.Errorf("of the pool that receives: %q", got)
	}
	if got := names(w.agent.operationsOf(t.Context(), readyPool("bench0"))); !slices.Equal(got, []string{"op", "to"}) {
		t.Errorf("of the pool: %q", got)
	}
}

func TestWhatWakes(t *testing.T) {
	going, over := wanted("op", acts()["scrub"].action), wanted("op", acts()["scrub"].action)
	over.Status.Outcome = "Succeeded"
	unreleased := over.DeepCopy()
	unreleased.Finalizers = []string{v1alpha1.FinalizerTeardown}
	changed := over.DeepCopy()
	over.Status.ObservedGeneration, changed.Status.ObservedGeneration, changed.Generation = over.Generation, over.Generation, over.Generation+1
	for name, got := range map[string]bool{
		"a changed one":        unsettled().Update(event.UpdateEvent{ObjectOld: over, ObjectNew: changed}),
		"a new one":            unsettled().Create(event.CreateEvent{Object: going}),
		"an unreleased one":    unsettled().Create(event.CreateEvent{Object: unreleased}),
		"not a settled one":    !unsettled().Create(event.CreateEvent{Object: over}),
		"an end":               unblocksOthers().Update(event.UpdateEvent{ObjectOld: going, ObjectNew: over}),
		"gone before its end":  unblocksOthers().Delete(event.DeleteEvent{Object: going}),
		"no progress":          !unblocksOthers().Update(event.UpdateEvent{ObjectOld: going, ObjectNew: going}),
		"nothing after an end": !unblocksOthers().Update(event.UpdateEvent{ObjectOld: over, ObjectNew: over}),
	} {
		if !got {
			t.Error(name)
		}
	}
	released, touched := going.DeepCopy(), going.DeepCopy()
	released.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: "node-a"}
	touched.Labels = map[string]string{"a": "b"}
	if !requestChanged().Update(event.UpdateEvent{ObjectOld: going, ObjectNew: released}) ||
		requestChanged().Update(event.UpdateEvent{ObjectOld: going, ObjectNew: touched}) {
		t.Error("the annotation that releases wakes, and what asks for nothing does not")
	}
	ready, full, lost := readyPool("bench0"), readyPool("bench0"), readyPool("bench0")
	full.Status.AllocatedBytes = 7
	kstatus.SetStalled(&lost.Status.Conditions, 1, v1alpha1.ReasonPoolLost, "lost")
	if !poolTurns().Update(event.UpdateEvent{ObjectOld: ready, ObjectNew: lost}) ||
		poolTurns().Update(event.UpdateEvent{ObjectOld: ready, ObjectNew: full}) {
		t.Error("a pool wakes when it becomes ready or not, and not otherwise")
	}
}
