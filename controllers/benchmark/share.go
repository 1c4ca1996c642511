package benchmark

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/internal/experiment"
)

// EntryOf returns what the queues need to know about a benchmark.
func EntryOf(benchmark *v1alpha1.StorageBenchmark, limits experiment.Limits) line.Entry {
	entry := line.Entry{Key: client.ObjectKeyFromObject(benchmark), UID: string(benchmark.UID), Created: benchmark.CreationTimestamp.Time,
		Waits: experiment.Waits(benchmark), Place: experiment.PlaceOf(benchmark, limits), Nodes: experiment.StatusNodes(benchmark.Status),
		Limited: limited(benchmark)}
	if ready := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		entry.Reason = ready.Reason
	}
	if baseline := benchmark.Spec.Baseline; baseline != nil {
		entry.Documents = append(entry.Documents, benchmark.Namespace+"/"+baseline.ConfigMap.Name)
	}
	if calibration := benchmark.Spec.Calibration; calibration != nil {
		entry.Documents = append(entry.Documents, benchmark.Namespace+"/"+calibration.ConfigMap.Name)
	}
	return entry
}

// limited reports whether a benchmark waits because of the limits of its namespace.
func limited(benchmark *v1alpha1.StorageBenchmark) bool {
	ready := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonNamespaceLimit && benchmark.DeletionTimestamp.IsZero() && !benchmark.Spec.Suspend
}
