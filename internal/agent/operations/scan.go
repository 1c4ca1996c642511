package operations

import (
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// clockSlack is the allowance for the kernel's coarse clock, which may be behind ours.
const clockSlack = time.Second

// since reports whether a time, which has whole seconds, is not before the start of this operation, less clockSlack.
func (s State) since(moment time.Time) bool {
	return !moment.IsZero() && !moment.Before(s.Operation.Status.StartedAt.Add(-clockSlack))
}

// byUs reports whether this operation started a scan, trim or removal. Before OpenZFS 2.3, ZFS reports no start, and an end only for a
// finished one.
func (s State) byUs(progress *zfs.Progress) bool {
	if progress == nil {
		return false
	}
	if !progress.Start.IsZero() {
		return s.since(progress.Start)
	}
	return progress.State == zfs.Running || s.since(progress.End)
}

// tooRecent makes the operation wait if a scan is running or has just ended: it could later be mistaken for our own.
func (s State) tooRecent(progress *zfs.Progress) *obstacle {
	if progress == nil {
		return nil
	}
	if progress.State == zfs.Running || progress.State == zfs.Paused {
		return waits(v1alpha1.ReasonScanRunning, operationSoon, "waiting for a %s already running on pool %s", progress.Function,
			s.Live.Name)
	}
	limit := s.Now.Truncate(time.Second).Add(-2 * clockSlack)
	for _, moment := range []time.Time{progress.Start, progress.End} {
		if !moment.IsZero() && !moment.Before(limit) {
			return waits(v1alpha1.ReasonScanRunning, 2*clockSlack, "waiting: pool %s has just finished a %s", s.Live.Name, progress.Function)
		}
	}
	return nil
}

func (s State) progress(of zfs.Progress) *v1alpha1.OperationProgress {
	percent := int32(of.Percent()) //nolint:gosec // at most 100
	return &v1alpha1.OperationProgress{Percent: percent, DoneBytes: of.DoneBytes, TotalBytes: of.TotalBytes}
}

// durationOf returns how long work of ZFS took. Where ZFS reports only its end, it is the time from the start of this operation until then.
// Otherwise it is the time until the agent sees the end, which may be much later.
func (s State) durationOf(of zfs.Progress) v1alpha1.OperationMetric {
	start := of.Start
	if start.IsZero() && s.Begun {
		start = s.Operation.Status.StartedAt.Time
	}
	if start.IsZero() || of.End.IsZero() {
		return s.seconds()
	}
	return metric(operate.MetricDuration, max(int64(of.End.Sub(start)/time.Second), 0))
}
