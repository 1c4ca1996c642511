package qualify

import (
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// attempts are attempts without usable numbers. A second attempt may have worked, but does not repair a disk.
type attempts struct {
	// failed are those whose storage has failed, and unusable are the others.
	failed, unusable []string
}

// see notes why an attempt has no usable numbers.
func (a *attempts) see(run results.RunResult) {
	if run.Valid {
		return
	}
	if run.StorageFailed() {
		a.failed = append(a.failed, run.Attempted())
	} else {
		a.unusable = append(a.unusable, run.Attempted())
	}
}

// repeated warns of attempts without usable numbers.
func repeated(facts Facts) []Finding {
	if len(facts.unusable) == 0 {
		return nil
	}
	return []Finding{{Level: Warning, About: "Attempts without usable numbers", Measured: strings.Join(facts.unusable, "; "),
		Means: "The figures of this card are from other attempts.", Do: "Check whether the storage is the cause, and run qualify again."}}
}
