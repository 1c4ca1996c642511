//go:build linux

package engine

import (
	"fmt"
	"sync"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/results"
)

// meter reports the progress of a phase. A phase has stretches, each with an end in bytes or in time.
type meter struct {
	report func(results.Progress)

	mutex    sync.Mutex
	message  string
	from, to float64
	bytes    int64
	lasting  time.Duration
	began    time.Time
	last     fio.Usage
	lastAt   time.Time
	// rate is a moving average: ZFS writes nothing for seconds, and then much.
	rate    float64
	highest int32
}

// averaged is how far back the average of the rate goes.
const averaged = 10 * time.Second

func newMeter(report func(results.Progress)) *meter {
	if report == nil {
		report = func(results.Progress) {}
	}
	return &meter{report: report}
}

// stretch begins a part of the phase that takes the progress from one share to another. The part ends after this number of bytes, or after
// this time.
func (m *meter) stretch(message string, from, to float64, bytes int64, lasting time.Duration) {
	m.mutex.Lock()
	now := time.Now()
	m.message, m.from, m.to, m.bytes, m.lasting = message, from, to, bytes, lasting
	m.began, m.last, m.lastAt, m.rate = now, fio.Usage{}, now, 0
	m.highest = max(m.highest, percent(from))
	progress := results.Progress{Percent: m.highest, Message: message}
	m.mutex.Unlock()
	m.report(progress)
}

// watch reports the progress. It is called regularly while fio or another workload is running.
func (m *meter) watch(usage fio.Usage) {
	m.mutex.Lock()
	now := time.Now()
	spent := now.Sub(m.began)
	moved := usage.ReadBytes + usage.WrittenBytes
	done := 0.0
	switch {
	case m.lasting > 0:
		done = spent.Seconds() / m.lasting.Seconds()
	case m.bytes > 0:
		done = float64(moved) / float64(m.bytes)
	}
	done = min(done, 1)
	m.highest = max(m.highest, percent(m.from+done*(m.to-m.from)))
	progress := results.Progress{Percent: m.highest, Message: m.message}
	if interval := now.Sub(m.lastAt).Seconds(); interval > 0 && moved > 0 { // some workloads move no bytes
		rate := max(float64(moved-m.last.ReadBytes-m.last.WrittenBytes)/interval, 0)
		m.rate += (rate - m.rate) * min(1, interval/min(spent.Seconds(), averaged.Seconds()))
		progress.Rate = fmt.Sprintf("%.1f MiB/s", m.rate/mib)
	}
	if done > 0.01 {
		progress.SecondsLeft = int64(spent.Seconds() * (1 - done) / done)
	}
	m.last, m.lastAt = usage, now
	m.mutex.Unlock()
	m.report(progress)
}

// say reports progress that was measured elsewhere.
func (m *meter) say(percent int, rate string, left time.Duration) {
	m.mutex.Lock()
	m.highest = max(m.highest, int32(percent))
	progress := results.Progress{Percent: m.highest, Rate: rate, Message: m.message, SecondsLeft: int64(left.Seconds())}
	m.mutex.Unlock()
	m.report(progress)
}

func percent(share float64) int32 { return int32(min(max(share, 0), 1) * 100) }
