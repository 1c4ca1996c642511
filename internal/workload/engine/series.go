//go:build linux

package engine

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/postgres"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/workload"
)

const (
	// maxPoints bounds a series: when it is full, neighbours are joined.
	maxPoints  = workload.MaxPoints
	everyPoint = time.Second
	// steadyParts is how many parts a round is divided into to find its steady part. Each takes several seconds at least, because the
	// transaction groups of ZFS make the rates of single seconds a sawtooth.
	steadyParts    = 20
	leastPart      = 5 * time.Second
	leastPartCount = 5
)

// Series is the rate of a workload over time, as the runner saw it each second.
type Series struct {
	Points []Point `json:"points"`
	// Measured are the rounds whose figures are the result.
	Measured []Span `json:"measured"`
	// Steady is the final part of the last of these rounds, if the rate is steady there; missing if it is not, or if the round is too short to
	// tell.
	Steady *Span `json:"steady,omitempty"`
	// unsteady says why Steady is missing.
	unsteady string
}

// Span is a part of a series, from the beginning of the first round.
type Span struct {
	FromMilliseconds int64 `json:"fromMilliseconds"`
	ToMilliseconds   int64 `json:"toMilliseconds"`
}

// Point is what was done in a second, or in several of them together. Bytes are those that the workload asked the kernel for.
type Point struct {
	Span

	ReadBytes    int64 `json:"readBytes,omitempty"`
	WrittenBytes int64 `json:"writtenBytes,omitempty"`
	Operations   int64 `json:"operations,omitempty"`
	// LatencyMaxNanoseconds is the latency of the slowest operation that ended in this time, or near it if the log of latencies is coarser.
	// Missing if none ended, or if it is unknown.
	LatencyMaxNanoseconds int64 `json:"latencyMaxNanoseconds,omitempty"`
	// LatencyMeanNanoseconds is the mean latency of transactions, as pgbench reports it.
	LatencyMeanNanoseconds int64 `json:"latencyMeanNanoseconds,omitempty"`
	seconds                int
}

// recorder collects a series. Its methods may be called at the same time.
type recorder struct {
	mutex  sync.Mutex
	points []Point
	every  int // seconds in a full point
	began  watch
	last   fio.Usage
	at     time.Duration
	active bool
	// slowest operation since the last sample.
	slowest int64
}

// start begins a round.
func (r *recorder) start(now watch) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.every == 0 {
		r.began, r.every = now, 1
	}
	r.last, r.at, r.active, r.slowest = fio.Usage{}, now.elapsed-r.began.elapsed, true, 0
}

func (r *recorder) stop() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.active = false
}

// sample adds what was done since the last sample, or since the beginning of the round.
func (r *recorder) sample(usage fio.Usage) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.active {
		return
	}
	at := r.began.spent()
	r.add(Point{Span: Span{r.at.Milliseconds(), at.Milliseconds()}, ReadBytes: max(0, usage.ReadBytes-r.last.ReadBytes),
		WrittenBytes: max(0, usage.WrittenBytes-r.last.WrittenBytes), Operations: max(0, usage.Operations-r.last.Operations),
		LatencyMaxNanoseconds: r.slowest, seconds: 1})
	r.last, r.at, r.slowest = usage, at, 0
}

// took records the latency of an operation that has just ended.
func (r *recorder) took(nanoseconds int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.slowest = max(r.slowest, nanoseconds)
}

// tookWithin records the latency of the slowest operation that ended between two moments. It is recorded in the point that contains the
// middle of that time, and in others whose own middle lies in that time. A point without a latency saw no operation end. Latencies after
// the last point are dropped.
func (r *recorder) tookWithin(from, to time.Duration, nanoseconds int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	middle := (from + to).Milliseconds() / 2
	first := sort.Search(len(r.points), func(i int) bool { return r.points[i].ToMilliseconds > from.Milliseconds() })
	for i := first; i < len(r.points) && r.points[i].FromMilliseconds <= to.Milliseconds(); i++ {
		point := &r.points[i]
		own := (point.FromMilliseconds + point.ToMilliseconds) / 2
		if point.FromMilliseconds <= middle && middle < point.ToMilliseconds || from.Milliseconds() <= own && own < to.Milliseconds() {
			point.LatencyMaxNanoseconds = max(point.LatencyMaxNanoseconds, nanoseconds)
		}
	}
}

func (r *recorder) add(next Point) {
	if last := len(r.points) - 1; last >= 0 && r.points[last].seconds < r.every && r.points[last].ToMilliseconds == next.FromMilliseconds {
		r.points[last].join(next)
		return
	}
	if len(r.points) == maxPoints {
		r.points = halved(r.points)
		r.every *= 2
	}
	r.points = append(r.points, next)
}

// halved joins neighbours, but not over the pause between two rounds, unless that would leave too many.
func halved(points []Point) []Point {
	var joined []Point
	for i := 0; i < len(points); i++ {
		next := points[i]
		if i+1 < len(points) && (points[i+1].FromMilliseconds == next.ToMilliseconds || len(joined) >= maxPoints/2) {
			next.join(points[i+1])
			i++
		}
		joined = append(joined, next)
	}
	return joined
}

func (p *Point) join(other Point) {
	p.ToMilliseconds = other.ToMilliseconds
	p.LatencyMaxNanoseconds = max(p.LatencyMaxNanoseconds, other.LatencyMaxNanoseconds)
	if all := float64(p.Operations + other.Operations); all > 0 {
		p.LatencyMeanNanoseconds = int64((float64(p.LatencyMeanNanoseconds)*float64(p.Operations) +
			float64(other.LatencyMeanNanoseconds)*float64(other.Operations)) / all)
	}
	p.ReadBytes += other.ReadBytes
	p.WrittenBytes += other.WrittenBytes
	p.Operations += other.Operations
	p.seconds += other.seconds
}

// work is the amount of work in a point: operations if they are counted, otherwise bytes.
func (p Point) work() float64 {
	if p.Operations > 0 {
		return float64(p.Operations)
	}
	return float64(p.ReadBytes + p.WrittenBytes)
}

// document is the series with the rounds that count.
func (r *recorder) document(counting []bracket) *Series {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.points) == 0 {
		return nil
	}
	series := &Series{Points: r.points}
	for _, one := range counting {
		series.Measured = append(series.Measured, Span{(one.began.elapsed - r.began.elapsed).Milliseconds(),
			(one.ended.elapsed - r.began.elapsed).Milliseconds()})
	}
	series.Steady, series.unsteady = steadyPart(series.Points, series.Measured[len(series.Measured)-1])
	return series
}

// steadyPart divides a round into equal parts, and finds the first part from which on the rate satisfies the rule of steady state until the
// end of the round. It returns the span from there to the end, or why there is none.
func steadyPart(points []Point, round Span) (steady *Span, missing string) {
	short := fmt.Sprintf("the measurement is shorter than %s", leastPart*leastPartCount)
	var within []Point
	for _, point := range points {
		if point.FromMilliseconds >= round.FromMilliseconds && point.ToMilliseconds <= round.ToMilliseconds {
			within = append(within, point)
		}
	}
	if len(within) == 0 {
		return nil, short
	}
	from, to := within[0].FromMilliseconds, within[len(within)-1].ToMilliseconds
	count := min(steadyParts, (to-from)/leastPart.Milliseconds(), int64(len(within)))
	if count < leastPartCount {
		return nil, short
	}
	done, long := make([]float64, count), make([]float64, count)
	for _, point := range within {
		middle := (point.FromMilliseconds + point.ToMilliseconds) / 2
		at := min((middle-from)*count/(to-from), count-1)
		done[at] += point.work()
		long[at] += float64(point.ToMilliseconds - point.FromMilliseconds)
	}
	for i := range done {
		done[i] /= max(long[i], 1)
	}
	rule := stats.DefaultSteady()
	for first := int64(0); first+leastPartCount <= count; first++ {
		rule.Window = int(count - first)
		if rule.Judge(done[first:]).Reached {
			return &Span{from + (to-from)*first/count, to}, ""
		}
	}
	return nil, "the rate changes by more than the rule allows"
}

// addSeries adds the series to the details, unless the kernel did not count what the workload did: requests that are submitted in batches
// are in no counter of the process.
func (s *session) addSeries(counting []bracket, rounds []figures) {
	series := s.recorder.document(counting)
	if series == nil {
		s.note("there is no series over time: the measurement was shorter than a second")
		return
	}
	var seen, done int64
	for _, point := range series.Points {
		seen += point.ReadBytes + point.WrittenBytes
	}
	for _, one := range rounds {
		done += one.sum.Read.Bytes + one.sum.Write.Bytes
	}
	if last := series.Points[len(series.Points)-1]; done > 0 && seen < done/2 && last.ToMilliseconds > 3000 {
		s.note("there is no series over time: the kernel does not count what this ioengine of fio does; use psync")
		return
	}
	s.details.Series = series
	if series.Steady == nil {
		s.note("no part of the series is marked as steady: %s", series.unsteady)
	}
}

// recordEach records each second what a workload without fio has done, until it is stopped.
func (s *session) recordEach(done func() fio.Usage) (stop func()) {
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(everyPoint)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				usage := done()
				s.progress.watch(usage)
				s.recorder.sample(usage)
			}
		}
	})
	return func() {
		close(over)
		watching.Wait()
	}
}

// raise sets largest to value if that is larger.
func raise(largest *atomic.Int64, value int64) {
	for {
		known := largest.Load()
		if value <= known || largest.CompareAndSwap(known, value) {
			return
		}
	}
}

// addDatabase takes over the series of pgbench, whose transactions the kernel does not count.
func (r *recorder) addDatabase(series []postgres.Point, now watch) {
	r.start(now)
	defer r.stop()
	last := int64(0)
	for _, one := range series {
		long := one.EndMilliseconds - last
		r.add(Point{Span: Span{last, one.EndMilliseconds}, Operations: (one.TransactionsPerSecondMilli*long + 500_000) / 1_000_000,
			LatencyMeanNanoseconds: one.LatencyMeanNanoseconds, seconds: r.every})
		last = one.EndMilliseconds
	}
}
