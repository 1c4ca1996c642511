package engine

import "time"

// clock reads the time of day, which may be set, and the elapsed time, which is monotonic.
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

// watch is a reading of a clock.
type watch struct {
	clock   clock
	day     time.Time
	elapsed time.Duration
}

func (c clock) start() watch { return watch{c, c.day(), c.elapsed()} }

// spent is the time since the reading; setting the clock does not change it.
func (w watch) spent() time.Duration { return w.clock.elapsed() - w.elapsed }

// stepTolerance is more than a synchronized clock is slewed in that time (500 parts per million).
func stepTolerance(spent time.Duration) time.Duration { return time.Second + spent/1000 }

// step is how far the time of day was set since the reading; 0 if it was not. A suspended machine looks the same.
func (w watch) step() time.Duration {
	spent := w.spent()
	step := w.clock.day().Sub(w.day) - spent
	if step.Abs() <= stepTolerance(spent) {
		return 0
	}
	return step
}
