package foresee

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// pathSettings returns a setting for each value of a path in the matrix or in variants[].set. Empty if the path is valid but is not a
// setting.
func pathSettings(spec *v1alpha1.StorageBenchmarkSpec, field, path string, values ...v1alpha1.MatrixValue) (all []setting) {
	if wrong := meantPath(spec, path); wrong != "" {
		return []setting{{field, path, "", func(string, string) settings.Answer { return settings.Answer{Refusal: wrong} }, false}}
	}
	name, check := checkOfPath(spec, path)
	if check == nil {
		return nil
	}
	for i, value := range values {
		at := field
		if strings.HasPrefix(field, "spec.matrix[") {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		all = append(all, setting{at, name, string(value), check, i > 0})
	}
	return all
}

// checkOfPath returns the name and the check of the setting that a path sets. The check is nil if it is no setting of ZFS or PostgreSQL.
func checkOfPath(spec *v1alpha1.StorageBenchmarkSpec, path string) (name string, check func(name, value string) settings.Answer) {
	_, path = ofVolume(path)
	for prefix, check := range map[string]func(name, value string) settings.Answer{
		"dataset.": settings.Dataset, "pool.properties.": settings.Pool, "moduleParameters.": settings.Parameter,
	} {
		if name, is := strings.CutPrefix(path, prefix); is {
			return name, check
		}
	}
	for i := range spec.Phases {
		phase := &spec.Phases[i]
		if name, is := strings.CutPrefix(path, "phases."+string(phase.Name)+".settings."); is && databaseOf(phase) != nil {
			return name, databaseSetting
		}
	}
	return "", nil
}

// databaseOf returns the PostgreSQL workload of a phase, or nil.
func databaseOf(phase *v1alpha1.Phase) *v1alpha1.PostgresWorkload {
	if phase.Measure == nil {
		return nil
	}
	return phase.Measure.Workload.Postgres
}

func databaseSetting(name, value string) settings.Answer {
	return settings.Answer{Refusal: workload.WrongSetting(name, value)}
}

// ofVolume splits the prefix volumes.NAME. off a path.
func ofVolume(path string) (prefix, below string) {
	if rest, is := strings.CutPrefix(path, "volumes."); is {
		name, below, _ := strings.Cut(rest, ".")
		return "volumes." + name + ".", below
	}
	return "", path
}

// meantPath suggests the right path for one that has a setting or phase in the wrong place. The rules of the API can only list all forms of
// paths. Empty if the path is right, or if it is not similar to any.
func meantPath(spec *v1alpha1.StorageBenchmarkSpec, path string) string {
	if shorter := shortPath(spec, path); shorter != path {
		if other := meantPath(spec, shorter); other != "" {
			return other
		}
		return "did you mean " + shorter + "?"
	}
	volume, path := ofVolume(path)
	head, rest, _ := strings.Cut(path, ".")
	if head == "phases" || head == "storageClass" {
		return ""
	}
	ofTarget := volume != "" || slices.Contains([]string{"pool", "dataset", "moduleParameters"}, head)
	if head == "dataset" && slices.Contains(settings.Fields, rest) {
		return "no path can set it: write variants, each with its dataset." + rest
	}
	place := settings.Place(path[strings.LastIndexByte(path, '.')+1:])
	switch {
	case place == path:
		return ""
	case place != "":
		return "did you mean " + volume + place + "?"
	case !ofTarget && slices.ContainsFunc(spec.Phases, func(one v1alpha1.Phase) bool { return string(one.Name) == head }):
		return "did you mean phases." + path + "?"
	}
	return ""
}

// inPhase matches the parts of a field of a phase that a path leaves out: what the phase does, and its workload.
var inPhase = regexp.MustCompile(
	`^(phases[.][^.]+)[.](?:measure[.]workload[.][^.]+|measure[.]workload|measure|workload|fill|fragment|free)[.](.+)$`)

// shortPath removes the parts of a field of the spec that a path to it leaves out, such as spec.target.
func shortPath(spec *v1alpha1.StorageBenchmarkSpec, path string) string {
	whole := path
	for _, prefix := range []string{"spec.", "target.", "zfs."} {
		path = strings.TrimPrefix(path, prefix)
	}
	parts := inPhase.FindStringSubmatch(path)
	named := slices.ContainsFunc(spec.Phases, func(one v1alpha1.Phase) bool { // it may have a workload of that name
		return strings.HasPrefix(path, "phases."+string(one.Name)+".") && one.Measure != nil && len(one.Measure.Workloads) > 0
	})
	if parts != nil && !named {
		return parts[1] + "." + parts[2]
	}
	head, _, _ := strings.Cut(path, ".")
	if !slices.Contains([]string{"storageClass", "pool", "dataset", "volumes", "moduleParameters", "phases"}, head) {
		return whole
	}
	return path
}
