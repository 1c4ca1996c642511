package postgres

import (
	"sync"
	"time"
)

// progress converts the remaining time to a percentage of the total, as far as that is known: how long a load takes only becomes known
// while it runs.
type progress struct {
	tell     func(percent int, rate string, left time.Duration)
	measured time.Duration // ramp-up and measurement, the part known in advance
	began    time.Time

	mutex   sync.Mutex
	percent int
}

func newProgress(options Options) *progress {
	seconds := wholeSeconds(options.RampUp) + wholeSeconds(options.Duration)
	return &progress{tell: options.Progress, measured: time.Duration(seconds) * time.Second, began: time.Now()}
}

// say reports a step of unknown length, before or after the measurement.
func (p *progress) say(step string) { p.report(step, 0) }

// report reports the rate. more is the time that this step still takes in addition to the parts known in advance; it is negative for the
// time of these parts that has passed.
func (p *progress) report(rate string, more time.Duration) {
	if p.tell == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	left := max(0, more+p.measured)
	elapsed := time.Since(p.began)
	p.percent = max(p.percent, min(99, percentOf(elapsed, elapsed+left)))
	p.tell(p.percent, rate, left.Truncate(time.Second))
}

func percentOf(part, whole time.Duration) int {
	if whole <= 0 {
		return 0
	}
	return int(100 * part.Seconds() / whole.Seconds())
}

// passed takes time off the part known in advance.
func (p *progress) passed(measured time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.measured = max(0, p.measured-measured)
}
