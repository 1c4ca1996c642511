package experiment

import (
	"errors"
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

// checkDeadlines refuses a phase that its deadline ends before its own workload does: each attempt would be Invalid, after its fill.
func checkDeadlines(_ *v1alpha1.StorageBenchmarkSpec, slot *Slot) error {
	var problems []error
	for i := range slot.Phases {
		phase, deadline := &slot.Phases[i], defaultDeadline
		if phase.Deadline != nil {
			deadline = phase.Deadline.Duration.Duration
		}
		lasting := workloadTime(phase)
		if lasting < deadline || workload.EndsWithOperation(phase) { // the latter may end earlier
			continue
		}
		field := slot.phaseField(i) + ".deadline"
		problems = append(problems, &Mistake{field, &SpecError{v1alpha1.ReasonSpecInvalid, fmt.Sprintf(
			"%s: phase %s of variant %q would never finish: its workload alone takes %s, and its deadline is %s: write a longer deadline, or "+
				"measure for a shorter time", field, phase.Name, slot.Variant, lasting, deadline)}})
	}
	return errors.Join(problems...)
}

// workloadTime is the least time that the workload of a phase takes, if the spec shows it: the ramp and each required round.
func workloadTime(phase *v1alpha1.Phase) time.Duration {
	traits, measures := workload.PhaseTraits(phase)
	if !measures {
		return 0
	}
	rounds := time.Duration(1)
	if rule := phase.Measure.SteadyState; rule != nil {
		rounds = max(1, time.Duration(rule.WindowRounds))
	}
	return traits.RampUp + traits.Duration*rounds
}
