//go:build linux

package engine

import (
	"context"
	"time"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// awaitStart waits once for the start time of the runs of a group, after everything else is ready. It uses the clock of the node: nodes
// whose clocks differ begin that far apart. A late node begins at once, and a metric reports its lag. A ramp begins earlier, and ends at
// that time.
func (s *session) awaitStart(ctx context.Context, ramp time.Duration) error {
	if _, begun := s.metrics[results.MetricStartLag]; begun || s.request.StartAt == nil {
		return nil // a further round follows the one before it
	}
	at := s.request.StartAt.Add(-ramp)
	for left := at.Sub(s.clock.day()); left > 0; left = at.Sub(s.clock.day()) {
		if left > workload.MaxStartWait {
			return invalidf(ReasonClocksApart, "the workload should start at %s, but here it is %s: synchronize the clocks of the nodes",
				at.UTC().Format(time.RFC3339), s.clock.day().UTC().Format(time.RFC3339))
		}
		s.progress.stretch("waiting for the other nodes", s.progress.from, s.progress.to, 0, 0)
		timer := time.NewTimer(left)
		select {
		case <-timer.C: // check the clock again, because it may have been set
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	s.lags(at)
	return nil
}

// lags records how much later than agreed it is.
func (s *session) lags(at time.Time) {
	s.metrics[results.MetricStartLag] = max(0, s.clock.day().Sub(at).Nanoseconds())
}
