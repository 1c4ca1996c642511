package plan

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// PhaseFile is the key of a ConfigMap that a phase names: a fio job file or a pgbench script.
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

// spoilChanged makes runs Invalid whose ConfigMap had another text than it had for the first run that used it: their numbers are those of
// another workload. It returns them in words, a group once.
func spoilChanged(runs []v1alpha1.BenchmarkRun, found []results.RunResult, documents map[string]results.PhaseDocument) (givenUp []string) {
	first := map[v1alpha1.ConfigMapKey]string{}
	spoiled := map[string]bool{}
	for i := range runs {
		for _, phase := range runs[i].Spec.Phases {
			file := PhaseFile(phase)
			if file == nil || !found[i].Valid {
				continue
			}
			text := documents[PhaseObjectName(runs[i].Name, phase.Name)].Environment[results.EnvironmentWorkloadFile]
			if first[*file] == "" {
				first[*file] = text
			}
			if text == first[*file] {
				continue
			}
			found[i].Valid, found[i].Reason = false, v1alpha1.ReasonWorkloadChanged
			found[i].Message = fmt.Sprintf("phase %s executed another text of key %s of ConfigMap %s than the runs before: "+
				"to measure the new text, make a ConfigMap with another name and write that into the spec", phase.Name, file.Key, file.Name)
			if group := GroupName(&runs[i]); !spoiled[group] {
				spoiled[group] = true
				givenUp = append(givenUp, fmt.Sprintf("%s repetition %d: %s", found[i].Variant, found[i].Repetition, found[i].Message))
			}
		}
	}
	return givenUp
}
