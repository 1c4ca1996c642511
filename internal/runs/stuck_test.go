package runs_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestStuckTeardown: once nothing of the run is running any more, it reports that its teardown is stuck and what blocks it. It does not
// report that while something is running.
func TestStuckTeardown(t *testing.T) {
	grace := runs.DefaultTimings().TeardownGrace
	ended := func(ago time.Duration) runChange {
		return func(s *runs.State) {
			s.Timings = runs.DefaultTimings()
			runstest.Record(s.Run, runstest.ValidEnding, false)
			s.Run.Status.FinishedAt = runstest.Stamp(-ago)
			allStored(s)
			s.Claims.Deleting = true
		}
	}
	deletedRun := func(ago time.Duration) runChange {
		return func(s *runs.State) { s.Run.DeletionTimestamp = runstest.Stamp(-ago) }
	}
	for name, test := range map[string]struct {
		changes []runChange
		stuck   bool
		says    string
	}{
		"not yet":             {[]runChange{ended(grace - time.Second)}, false, "removing"},
		"the claim is in use": {[]runChange{ended(grace)}, true, "delete the pods that use it, finished ones too"},
		"a pod is kept": {[]runChange{ended(grace), func(s *runs.State) { s.Pods = 1 }}, true,
			"pods with the labels of the run are not deleted (1)"},
		"a pod is at work": {[]runChange{ended(10 * grace), func(s *runs.State) { s.Pods, s.PodsAtWork = 1, 1 }}, false,
			"pods of the run have not ended (1): is node n1 running?"},
		"a pod still works": {[]runChange{ended(grace - time.Second), func(s *runs.State) { s.Pods, s.PodsAtWork = 1, 1 }}, false, "removing"},
		"a Job is kept": {[]runChange{ended(grace), func(s *runs.State) { s.Phases[0].Executor = runs.ExecutorState{Exists: true, Deleting: true} }},
			true, "a Job of the run is not deleted"},
		"a Job may make pods": {[]runChange{ended(10 * grace), func(s *runs.State) {
			s.Phases[0].Executor = runs.ExecutorState{Exists: true, Created: runstest.Noon.Add(-20 * grace)}
		}}, false, ""},
		"a Job that the run did not make": {[]runChange{ended(10 * grace), func(s *runs.State) {
			s.Phases[0].Executor = runs.ExecutorState{Exists: true, Created: runstest.Noon}
		}}, true, "Job"},
		"an operation is at work": {[]runChange{ended(10 * grace), func(s *runs.State) {
			s.Phases[0].Operation, s.Phases[0].Executor = true, runs.ExecutorState{Exists: true, Deleting: true, Message: "no agent"}
		}}, false, "has not ended: no agent"},
		"a parameter is not restored": {[]runChange{ended(10 * grace), func(s *runs.State) {
			s.Parameters = map[string]*v1alpha1.PoolOperation{"p": {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: runstest.Stamp(0)}}}
		}}, false, "has not restored module parameter p: the agent of node"},
		"one of two parameters is not restored": {[]runChange{ended(10 * grace), func(s *runs.State) {
			s.Parameters = map[string]*v1alpha1.PoolOperation{"a": {Status: v1alpha1.PoolOperationStatus{Outcome: "Succeeded"}}, "p": {}}
		}}, false, "has not restored module parameter p: the agent of node"},
		"a pool does not go": {[]runChange{ended(grace), func(s *runs.State) {
			s.Claims, s.Pools = runs.Claims{}, runs.Pools{Needed: true, Some: true, Deleting: true, Reason: "PoolInUse",
				Message: "mounted by pod x"}
		}}, true, "PoolInUse: mounted by pod x"},
		"deleted just now":          {[]runChange{ended(10 * grace), deletedRun(time.Second)}, false, ""},
		"deleted when it was stuck": {[]runChange{ended(10 * grace), sayStuck, deletedRun(time.Second)}, true, "is not deleted"},
		"deleted long ago":          {[]runChange{ended(10 * grace), deletedRun(grace)}, true, ""},
	} {
		state := runstest.Underway()
		for _, change := range test.changes {
			change(&state)
		}
		decision := runs.Plan(state)
		if got, want := decision.Reason == v1alpha1.ReasonPodsNotStopped, name == "a pod is at work"; got != want {
			t.Errorf("%s: %s: %s", name, decision.Reason, decision.Message)
		}
		if got := decision.Reason == v1alpha1.ReasonTeardownStuck; got != test.stuck || !strings.Contains(decision.Message, test.says) ||
			decision.Settled {
			t.Errorf("%s: %s: %s", name, decision.Reason, decision.Message)
		}
		if waits := strings.HasPrefix(test.says, "has not"); waits != (decision.Reason == v1alpha1.ReasonOperationNotStopped) {
			t.Errorf("%s: %s: %s", name, decision.Reason, decision.Message)
		}
		if !test.stuck && (!state.AtWork() || name == "a pod still works") && decision.WakeAt.IsZero() {
			t.Errorf("%s: nothing wakes it up", name)
		}
	}
}

func sayStuck(s *runs.State) {
	kstatus.SetProgressing(&s.Run.Status.Conditions, 1, v1alpha1.ReasonTeardownStuck, "stuck")
}

// TestPodsThatHoldTheNode: a tenant can create a pod with the labels and the owner of a run's pods. Such a pod does not hold the node if no
// Job of the run can have created it: a pod on a node without a kubelet, or with a grace period of years, would hold the node forever.
func TestPodsThatHoldTheNode(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{Spec: v1alpha1.BenchmarkRunSpec{NodeName: "n1"}}
	run.Status.FinishedAt = runstest.Stamp(0)
	owned := func(change func(*corev1.Pod)) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *runstest.Stamp(-time.Hour),
			OwnerReferences: []metav1.OwnerReference{{UID: "job", Controller: new(true)}}},
			Spec: corev1.PodSpec{NodeName: "n1", TerminationGracePeriodSeconds: new(int64(30))}}
		change(&pod)
		return pod
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   int
	}{
		"of a Job of the run":     {func(*corev1.Pod) {}, 1},
		"not scheduled yet":       {func(p *corev1.Pod) { p.Spec.NodeName = "" }, 1},
		"on another node":         {func(p *corev1.Pod) { p.Spec.NodeName = "n2" }, 0},
		"with a long grace":       {func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1 << 30)) }, 0},
		"of another Job":          {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, 0},
		"without owner":           {func(p *corev1.Pod) { p.OwnerReferences = nil }, 0},
		"made long after the end": {func(p *corev1.Pod) { p.CreationTimestamp = *runstest.Stamp(time.Hour) }, 0},
		"ended":                   {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 0},
	} {
		if got := runs.PodsAtWork(run, map[types.UID]int{"job": 0}, []corev1.Pod{owned(c.change)}); got != c.want {
			t.Errorf("%s: %d pods hold the node, want %d", name, got, c.want)
		}
	}
}
