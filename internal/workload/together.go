package workload

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Part is one of several workloads that run together, as a phase of its own with one workload.
type Part struct {
	Name  string
	Phase v1alpha1.Phase
}

// PartsOf are the workloads of a phase that runs several together; none for other phases. They share their specs with the phase.
func PartsOf(phase *v1alpha1.Phase) []Part {
	if phase.Measure == nil {
		return nil
	}
	var parts []Part
	for i := range phase.Measure.Workloads {
		one := &phase.Measure.Workloads[i]
		part := Part{Name: string(one.Name), Phase: *phase}
		part.Phase.Volume = cmp.Or(one.Volume, phase.Volume)
		part.Phase.Measure = &v1alpha1.MeasurePhase{Cache: phase.Measure.Cache, Workload: alone(one)}
		parts = append(parts, part)
	}
	return parts
}

// alone is a named workload as that of a phase. What a repeated scan does not say is as in a scan.
func alone(one *v1alpha1.NamedWorkload) v1alpha1.Workload {
	workload := v1alpha1.Workload{OLTP: one.OLTP, Redo: one.Redo}
	if one.Scan != nil {
		workload.Scan = &v1alpha1.ScanWorkload{BlockSize: one.Scan.BlockSize}
	}
	return workload
}

// Measured are the phase itself, or the parts of one that runs several workloads together: what works on one volume each.
func Measured(phase *v1alpha1.Phase) []Part {
	if parts := PartsOf(phase); len(parts) > 0 {
		return parts
	}
	return []Part{{Phase: *phase}}
}

// together are the traits of several workloads: as long as the longest of them.
func together(parts []Part) Traits {
	traits := Traits{Name: "workloads"}
	for i := range parts {
		one := TraitsOf(&parts[i].Phase.Measure.Workload)
		traits.Duration, traits.RampUp = max(traits.Duration, one.Duration), max(traits.RampUp, one.RampUp)
		traits.ReadsFill = traits.ReadsFill || one.ReadsFill
		traits.DataFiles = max(traits.DataFiles, one.DataFiles)
	}
	return traits
}

// Apart says why workloads cannot be measured together, and what to write instead; empty if they can. Those that end before others
// leave them the storage for the rest of the time, and two that write to the same blocks or logs do work that no application does.
func Apart(parts []Part) string {
	var words []string
	same, writer := true, map[string]string{}
	for i := range parts {
		given := &parts[i].Phase.Measure.Workload
		traits := TraitsOf(given)
		if traits.Duration > 0 { // others last as long as these
			words = append(words, fmt.Sprintf("%s %s", parts[i].Name, traits.Duration))
			same = same && traits.Duration == together(parts).Duration
		}
		if traits.Writes == "" {
			continue
		}
		on := fmt.Sprintf("%s of volume %s", traits.Writes, cmp.Or(parts[i].Phase.Volume, "data"))
		if other := writer[on]; other != "" {
			return fmt.Sprintf("workloads %s and %s both write to the %s: put one of them on another volume, or make them one with more workers",
				other, parts[i].Name, on)
		}
		writer[on] = parts[i].Name
	}
	switch {
	case len(words) == 0:
		return "no workload says how long it lasts: add an oltp or redo workload"
	case !same:
		return "the workloads last for different times (" + strings.Join(words, ", ") + "): write the same duration for all of them"
	}
	return ""
}
