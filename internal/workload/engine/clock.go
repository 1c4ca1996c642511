package engine

import "time"

// clock has two hands: one tells the time of day and may be set, the other only ever goes forward.
type clock struct {
	day     func() time.Time
	elapsed func() time.Duration
}

func newClock() clock {
	began := time.Now()
	return clock{
		day:     func() time.Time { return time.Now().Round(0) }, // without the monotonic reading
		elapsed: func() time.Duration { return time.Since(began) },
	}
}

// watch is a clock that was looked at once.
type watch struct {
	clock   clock
	day     time.Time
	elapsed time.Duration
}

func (c clock) start() watch { return watch{c, c.day(), c.elapsed()} }

// spent is the time since then; no setting of the clock changes it.
func (w watch) spent() time.Duration { return w.clock.elapsed() - w.elapsed }

// stepTolerance is more than what a disciplined clock is slewed by in that time (500 parts per million).
func stepTolerance(spent time.Duration) time.Duration { return time.Second + spent/1000 }

// step is by how much the time of day was set meanwhile; 0 if it was not. A suspended machine looks the same.
func (w watch) step() time.Duration {
	spent := w.spent()
	step := w.clock.day().Sub(w.day) - spent
	if step.Abs() <= stepTolerance(spent) {
		return 0
	}
	return step
}
