package runs

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
)

// PhaseFile is the ConfigMap key that a phase uses: a fio job file or a pgbench script.
func PhaseFile(phase v1alpha1.Phase) *v1alpha1.ConfigMapKey {
	if phase.Measure == nil {
		return nil
	}
	switch load := phase.Measure.Workload; {
	case load.FIO != nil:
		return load.FIO.JobFileFrom
	case load.Postgres != nil:
		return load.Postgres.Script
	}
	return nil
}

// ChangedFile says that a phase of a run used another text of its ConfigMap than the first run: its metrics belong to another
// workload. First holds the text of each key, and is extended by those of this run. Empty if nothing has changed.
func ChangedFile(run *v1alpha1.BenchmarkRun, documents map[string]results.PhaseDocument, first map[v1alpha1.ConfigMapKey]string) string {
	for _, phase := range run.Spec.Phases {
		file := PhaseFile(phase)
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
