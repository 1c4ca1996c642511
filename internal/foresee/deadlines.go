package foresee

import (
	"errors"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/workload"
)

// checkDeadlines refuses a phase whose deadline passes before its workload can finish: each attempt would be Invalid, after its fill.
func checkDeadlines(_ *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	var problems []error
	for i := range slot.Phases {
		phase, deadline := &slot.Phases[i], DefaultDeadline
		if phase.Deadline != nil {
			deadline = phase.Deadline.Duration.Duration
		}
		lasting := workloadTime(phase)
		if lasting < deadline || workload.EndsWithOperation(phase) { // such a phase may end earlier
			continue
		}
		field := slot.PhaseField(i) + ".deadline"
		problems = append(problems, design.RefuseField(field, v1alpha1.ReasonSpecInvalid, "phase %s of variant %q would never finish: its "+
			"workload alone takes %s, and its deadline is %s: write a longer deadline, or measure for a shorter time", phase.Name, slot.Variant,
			lasting, deadline))
	}
	return errors.Join(problems...)
}

// workloadTime returns the least time that the workload of a phase takes, if the spec shows it: the ramp and each required round.
func workloadTime(phase *v1alpha1.Phase) time.Duration {
	traits, measures := workload.PhaseTraits(phase)
	if !measures {
		return 0
	}
	rounds := time.Duration(1)
	if rule := phase.Measure.SteadyState; rule != nil {
		rounds = max(1, time.Duration(rule.WindowRounds))
	}
	return traits.RampUp + (traits.Duration+traits.Least)*rounds
}

// Defaults of the API for the deadlines of a phase. DefaultDeadline may exceed the admin's limit (max-hold), which then ends the phase.
const (
	DefaultDeadline      = 6 * time.Hour
	DefaultStartDeadline = 10 * time.Minute
)
