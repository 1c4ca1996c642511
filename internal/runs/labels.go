package runs

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Labels are the labels of all objects of a run.
func Labels(run *v1alpha1.BenchmarkRun) map[string]string {
	return map[string]string{
		v1alpha1.LabelBenchmark:    run.Labels[v1alpha1.LabelBenchmark],
		v1alpha1.LabelBenchmarkUID: run.Labels[v1alpha1.LabelBenchmarkUID],
		v1alpha1.LabelExperiment:   run.Spec.Experiment,
		v1alpha1.LabelRun:          run.Name,
		v1alpha1.LabelRunUID:       string(run.UID),
	}
}

// ClusterLabels are the labels of cluster-scoped objects: they include the namespace of the run.
func ClusterLabels(run *v1alpha1.BenchmarkRun) map[string]string {
	labels := Labels(run)
	labels[v1alpha1.LabelNamespace] = run.Namespace
	return labels
}
