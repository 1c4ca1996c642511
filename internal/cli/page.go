package cli

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/report"
)

// addPage makes the HTML report, which is too large for the ConfigMap, from what is in it.
func addPage(stored *corev1.ConfigMap, benchmark *v1alpha1.StorageBenchmark) error {
	text, found := stored.Data[keyResults]
	if !found {
		return exitf(ExitNotFound, "ConfigMap %s/%s has no %s, from which the HTML report is made", stored.Namespace, stored.Name, keyResults)
	}
	experiment, err := decodeExperiment("ConfigMap "+stored.Namespace+"/"+stored.Name, []byte(text))
	if err != nil {
		return err
	}
	manifest := ""
	if benchmark.Generation == experiment.Generation {
		manifest = repeatable(benchmark, experiment.Seed)
	}
	page, _, err := report.HTML(report.Page{Experiment: experiment, Manifest: manifest})
	if err != nil {
		return exit(ExitError, err)
	}
	stored.Data[keyPage] = string(page)
	return nil
}

// repeatable is the manifest of a benchmark with the seed of its runs. Empty if it cannot be written.
func repeatable(benchmark *v1alpha1.StorageBenchmark, seed int64) string {
	spec := benchmark.Spec.DeepCopy()
	spec.Seed = ptr.To(seed)
	text, err := yaml.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]string              `json:"metadata"`
		Spec            *v1alpha1.StorageBenchmarkSpec `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "StorageBenchmark"},
		map[string]string{"namespace": benchmark.Namespace, "name": benchmark.Name}, spec,
	})
	if err != nil {
		return ""
	}
	return string(text)
}
