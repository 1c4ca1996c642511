package integration

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// workloadKinds returns the kinds that a run makes and that must be gone after it.
func workloadKinds() []client.ObjectList {
	return []client.ObjectList{&batchv1.JobList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}}
}

// heldKinds returns workloadKinds and the Leases of nodes: the kinds that an experiment holds until it is over.
func heldKinds() []client.ObjectList { return append(workloadKinds(), &coordinationv1.LeaseList{}) }

// everyKind returns all kinds that a benchmark may ever make, and its own.
func everyKind() []client.ObjectList {
	return append(heldKinds(), &v1alpha1.BenchmarkRunList{}, &v1alpha1.StorageBenchmarkList{}, &corev1.ConfigMapList{})
}

// left lists the objects of the given kinds in the lab, and the volumes behind its claims.
func (l *lab) left(lists ...client.ObjectList) (names []string) {
	l.t.Helper()
	for _, namespace := range l.namespaces {
		for _, list := range lists {
			l.must(l.live.List(l.t.Context(), list, client.InNamespace(namespace)))
			l.must(meta.EachListItem(list, func(object runtime.Object) error {
				if object.(client.Object).GetName() != "kube-root-ca.crt" {
					names = append(names, fmt.Sprintf("%T %s/%s", object, namespace, object.(client.Object).GetName()))
				}
				return nil
			}))
		}
		var volumes corev1.PersistentVolumeList
		l.must(l.live.List(l.t.Context(), &volumes))
		for _, volume := range volumes.Items {
			if of := volume.Spec.ClaimRef; of != nil && of.Namespace == namespace {
				names = append(names, "PersistentVolume "+volume.Name)
			}
		}
	}
	return names
}

// nothingLeft waits until there is nothing of the given kinds.
func (l *lab) nothingLeft(lists ...client.ObjectList) {
	l.t.Helper()
	l.eventually("nothing left", func(g gomega.Gomega) { g.Expect(l.left(lists...)).To(gomega.BeEmpty()) })
}

// ready returns the Ready condition.
func ready(conditions []metav1.Condition) metav1.Condition {
	if condition := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// finished waits until a benchmark has a verdict on its present spec, and checks that its conditions say so.
func (l *lab) finished(benchmark *v1alpha1.StorageBenchmark, verdict v1alpha1.Verdict) *v1alpha1.StorageBenchmark {
	l.t.Helper()
	var current *v1alpha1.StorageBenchmark
	l.eventually("benchmark "+benchmark.Name+" finished", func(g gomega.Gomega) {
		current = l.get(benchmark)
		g.Expect(ready(current.Status.Conditions).Status).To(gomega.Equal(metav1.ConditionTrue))
		g.Expect(current.Status.ObservedGeneration).To(gomega.Equal(current.Generation))
	})
	l.checkFinished(current, verdict)
	return current
}

// finishedExperimentAfter is like finished, for an experiment other than the given one.
func (l *lab) finishedExperimentAfter(benchmark *v1alpha1.StorageBenchmark, before string, verdict v1alpha1.Verdict) *v1alpha1.StorageBenchmark {
	l.t.Helper()
	l.eventually("a new experiment", func(g gomega.Gomega) {
		g.Expect(l.get(benchmark).Status.Experiment).NotTo(gomega.BeElementOf(before, ""))
	})
	return l.finished(benchmark, verdict)
}

func (l *lab) checkFinished(benchmark *v1alpha1.StorageBenchmark, verdict v1alpha1.Verdict) {
	l.t.Helper()
	g := gomega.NewWithT(l.t)
	status := benchmark.Status
	g.Expect(status.Verdict).To(gomega.Equal(verdict), "verdict (%s)", ready(status.Conditions).Message)
	passed := map[v1alpha1.Verdict]metav1.ConditionStatus{v1alpha1.VerdictPassed: metav1.ConditionTrue,
		v1alpha1.VerdictFailed: metav1.ConditionFalse}[verdict]
	if passed == "" {
		passed = metav1.ConditionUnknown
	}
	want := map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionComplete: metav1.ConditionTrue,
		v1alpha1.ConditionPassed: passed}
	got := map[string]metav1.ConditionStatus{}
	for _, condition := range status.Conditions {
		got[condition.Type] = condition.Status
		g.Expect(condition.ObservedGeneration).To(gomega.Equal(benchmark.Generation), condition.Type)
		g.Expect(condition.Message).NotTo(gomega.BeEmpty(), condition.Type)
	}
	g.Expect(got).To(gomega.Equal(want), "conditions as kstatus reads them")
	g.Expect(status.Results).NotTo(gomega.BeNil())
	g.Expect(status.FinishedAt).NotTo(gomega.BeNil())
	g.Expect(status.Queue).To(gomega.BeNil())
}

// waits waits until a benchmark is not Ready for a reason, and checks the message.
func (l *lab) waits(benchmark *v1alpha1.StorageBenchmark, reason string, words ...string) {
	l.t.Helper()
	l.eventually("benchmark "+benchmark.Name+" says "+reason, func(g gomega.Gomega) {
		condition := ready(l.get(benchmark).Status.Conditions)
		g.Expect(condition.Reason).To(gomega.Equal(reason), condition.Message)
		for _, word := range words {
			g.Expect(condition.Message).To(gomega.ContainSubstring(word))
		}
	})
}

// running waits until the workload of a phase runs in this number of pods altogether. If an index is given, only the runs with this index
// count.
func (l *lab) running(phase string, count int, index ...string) {
	l.t.Helper()
	l.eventually("phase "+phase+" runs", func(g gomega.Gomega) {
		runs := 0
		for _, execution := range l.cluster.Executions() {
			if execution.Phase == phase && !execution.Ended && (len(index) == 0 || strings.HasSuffix(execution.Run, index[0])) {
				runs++
			}
		}
		g.Expect(runs).To(gomega.Equal(count))
	})
}

// executedOnce checks that no phase of any run was executed a second time, and the total number of executions.
func (l *lab) executedOnce(count int) {
	l.t.Helper()
	seen := map[string]bool{}
	executions := l.cluster.Executions()
	for _, execution := range executions {
		key := execution.RunUID + " " + execution.Phase
		if seen[key] {
			l.t.Errorf("phase %s of run %s was executed twice", execution.Phase, execution.Run)
		}
		seen[key] = true
	}
	if len(executions) != count {
		l.t.Errorf("%d workloads were executed, want %d: %+v", len(executions), count, executions)
	}
}
