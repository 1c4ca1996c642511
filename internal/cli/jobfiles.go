package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/foresee"
	"github.com/storagebench/storagebench/internal/workload"
)

// filesRead has the fields of the job files that were found in ConfigMaps, and the problems of these files.
type filesRead struct {
	fields   []string
	problems []problem
}

// readFiles copies job files from ConfigMaps into the runs, to check them like those in the spec.
func (e *validated) readFiles(configMaps []*manifest) (read filesRead) {
	var seen design.Distinct
	for i := range e.slots {
		slot, found := &e.slots[i], false
		for j := range slot.Phases {
			traits, _ := workload.PhaseTraits(&slot.Phases[j])
			if traits.File == nil || traits.Inline == nil {
				continue
			}
			text := configMapText(configMaps, e.benchmark.Namespace, traits.File)
			if text == "" {
				note := fmt.Sprintf("the job file of phase %s was not checked, because ConfigMap %s with the key %s is in none of the files",
					slot.Phases[j].Name, traits.File.Name, traits.File.Key)
				if !slices.Contains(e.notes, note) {
					e.notes = append(e.notes, note)
				}
				continue
			}
			traits.Inline(text)
			read.fields, found = append(read.fields, slot.PhaseField(j)+foresee.JobFileField), true
		}
		if found {
			read.problems = append(read.problems, listed(errors.Join(seen.Of(slot, design.CheckFiles(slot))...), &e.benchmark.Spec)...)
		}
	}
	return read
}

// atReferences moves the warnings and problems of these job files to the fields with the references, because the manifest has no job file.
func (r filesRead) atReferences(e *validated, problems []problem) []problem {
	for _, all := range [][]problem{e.warnings, problems} {
		for i := range all {
			if at := slices.IndexFunc(r.fields, func(field string) bool { return strings.HasPrefix(all[i].field, field) }); at >= 0 {
				all[i].field = r.fields[at] + "From"
			}
		}
	}
	return problems
}

// configMapText returns the text of a key, or an empty string if no ConfigMap has the key. A manifest without a namespace can be applied to
// any namespace.
func configMapText(manifests []*manifest, namespace string, from *v1alpha1.ConfigMapKey) (found string) {
	for _, one := range manifests {
		if !one.isConfigMap() || one.object.GetName() != from.Name {
			continue
		}
		data, _ := one.object.Object["data"].(map[string]any)
		text, _ := data[from.Key].(string)
		switch own := one.object.GetNamespace(); {
		case own == namespace:
			return text
		case own == "" || namespace == "":
			found = text
		}
	}
	return found
}
