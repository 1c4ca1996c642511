package runs

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// ChangedFile says which phase used another text of its ConfigMap key than the first run with that key, and so measured another workload.
// It returns "" if nothing has changed. first holds the text of each key; the new keys of this run are added to it.
func ChangedFile(run *v1alpha1.BenchmarkRun, documents map[string]results.PhaseDocument, first map[v1alpha1.ConfigMapKey]string) string {
	for _, phase := range run.Spec.Phases {
		traits, _ := workload.PhaseTraits(&phase)
		file := traits.File
		if file == nil {
			continue
		}
		text := documents[naming.PhaseObjectName(run.Name, phase.Name)].Environment[results.EnvironmentWorkloadFile]
		if first[*file] == "" {
			first[*file] = text
		}
		if text != first[*file] {
			return fmt.Sprintf("phase %s used another text of key %s of ConfigMap %s than earlier runs: "+
				"to measure the new text, create a ConfigMap with another name and use that in the spec", phase.Name, file.Key, file.Name)
		}
	}
	return ""
}
