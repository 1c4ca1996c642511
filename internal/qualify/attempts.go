package qualify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// attempts are attempts without usable numbers. A second attempt may have worked, but does not repair a disk.
type attempts struct {
	// failed are those in which the storage failed requests, and unusable are the others.
	failed, unusable []string
}

var (
	// broken are the reasons of a phase whose storage has failed.
	broken = []string{results.ReasonIOError, results.ReasonReadOnly}
	// full are reasons that say only that the volume has no more space.
	full = []string{results.ReasonVolumeFull, results.ReasonQuotaExceeded}
)

// see notes why an attempt has no usable numbers.
func (a *attempts) see(run results.RunResult) {
	if run.Valid {
		return
	}
	words := fmt.Sprintf("run %d, attempt %d: %s", run.Index+1, run.Attempt, because(run.Reason, run.Message))
	if fails(run) {
		a.failed = append(a.failed, words)
	} else {
		a.unusable = append(a.unusable, words)
	}
}

// fails reports whether the storage has failed requests of a run.
func fails(run results.RunResult) bool {
	return run.Because(broken) != "" || slices.ContainsFunc(run.Phases, func(phase results.RunPhase) bool {
		return phase.Metrics[ioErrors] > 0 && !slices.Contains(full, phase.Reason)
	})
}

func because(reason, message string) string {
	if message == "" {
		return cmp.Or(reason, "no reason is known")
	}
	return strings.TrimPrefix(reason+": "+message, ": ")
}

// repeated warns of attempts without usable numbers.
func repeated(facts Facts) []Finding {
	if len(facts.unusable) == 0 {
		return nil
	}
	return []Finding{{Level: Warning, About: "Attempts without usable numbers", Measured: strings.Join(facts.unusable, "; "),
		Means: "The figures of this card are from other attempts.", Do: "Check whether the storage is the cause, and run qualify again."}}
}
