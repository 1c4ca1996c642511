//go:build linux

package engine

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/postgres"
)

// fakeClock returns a clock that only moves when a test sets it.
func fakeClock() (clock, *time.Duration) {
	now := new(time.Duration)
	return clock{day: func() time.Time { return time.Unix(0, 0).Add(*now) }, elapsed: func() time.Duration { return *now }}, now
}

// TestSeriesIsBounded: a day of seconds in two rounds stays within the bound and loses nothing, and no point covers the pause.
func TestSeriesIsBounded(t *testing.T) {
	clock, now := fakeClock()
	var r recorder
	r.sample(fio.Usage{ReadBytes: 99}) // before the measurement
	var brackets []bracket
	for range 2 {
		one := bracket{began: clock.start()}
		r.start(one.began)
		for second := range int64(43_200) {
			*now += time.Second
			r.sample(fio.Usage{ReadBytes: 8192 * (second + 1), WrittenBytes: 4096 * (second + 1), Operations: 3 * (second + 1)})
		}
		r.stop()
		one.ended = clock.start()
		brackets = append(brackets, one)
		*now += time.Hour
		r.sample(fio.Usage{ReadBytes: 1 << 40})
	}
	series := r.document(brackets[1:])
	var read, written, operations, covered, last int64
	for _, point := range series.Points {
		read, written, operations = read+point.ReadBytes, written+point.WrittenBytes, operations+point.Operations
		covered += point.ToMilliseconds - point.FromMilliseconds
		if point.FromMilliseconds < last || point.ToMilliseconds <= point.FromMilliseconds {
			t.Fatalf("%+v follows %d ms", point, last)
		}
		last = point.ToMilliseconds
	}
	if len(series.Points) > maxPoints || len(series.Points) < maxPoints/4 {
		t.Errorf("%d points", len(series.Points))
	}
	if read != 86_400*8192 || written != 86_400*4096 || operations != 86_400*3 || covered != 86_400_000 {
		t.Errorf("read %d, written %d, operations %d in %d ms", read, written, operations, covered)
	}
	if want := (Span{46_800_000, 90_000_000}); len(series.Measured) != 1 || series.Measured[0] != want || series.Steady == nil ||
		series.Steady.ToMilliseconds != want.ToMilliseconds {
		t.Errorf("measured %+v, steady %+v", series.Measured, series.Steady)
	}
	if text, err := json.Marshal(series); err != nil || len(text) > 64<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestSteadyPart: where a known shape becomes steady.
func TestSteadyPart(t *testing.T) {
	for name, c := range map[string]struct {
		seconds        int
		rate           func(second float64) float64
		earliest, last int64 // in seconds; 0, 0 is never
	}{
		"flat":              {200, func(float64) float64 { return 1000 }, 0, 1},
		"a burst":           {200, func(s float64) float64 { return 1000 + 2000*math.Exp(-s/10) }, 30, 80},
		"warms up":          {200, func(s float64) float64 { return 1000 - 800*math.Exp(-s/10) }, 20, 80},
		"saw-toothed":       {200, func(s float64) float64 { return 1000 + 600*float64(int(s)%5-2) }, 0, 1},
		"falls to the end":  {200, func(s float64) float64 { return 2000 - 8*s }, 0, 0},
		"decays to the end": {200, func(s float64) float64 { return 1000 + 2000*math.Exp(-s/100) }, 0, 0},
		"too short":         {20, func(float64) float64 { return 1000 }, 0, 0},
	} {
		var points []Point
		for second := range c.seconds {
			points = append(points, Point{Span: Span{int64(second) * 1000, int64(second+1) * 1000}, Operations: int64(c.rate(float64(second)))})
		}
		round := Span{0, int64(c.seconds) * 1000}
		got, missing := steadyPart(points, round)
		if short := strings.Contains(missing, "shorter than 25s"); short != (name == "too short") || (missing == "") != (got != nil) {
			t.Errorf("%s: why there is none: %q", name, missing)
		}
		switch {
		case c.last == 0 && got != nil:
			t.Errorf("%s: steady from %+v", name, *got)
		case c.last != 0 && (got == nil || got.FromMilliseconds < c.earliest*1000 || got.FromMilliseconds > c.last*1000 ||
			got.ToMilliseconds != round.ToMilliseconds):
			t.Errorf("%s: steady %+v, want from %d to %d s", name, got, c.earliest, c.last)
		}
	}
}

// TestSeriesIsDated: a series ends with the measured time, so that each point has a date.
func TestSeriesIsDated(t *testing.T) {
	b := newBench(t)
	began := time.Now()
	document, details := b.valid(redoPhase(2, "dsync", 3.5))
	rounds := details.Series.Measured
	zero := document.Measured[0].To.Add(-time.Duration(rounds[len(rounds)-1].ToMilliseconds) * time.Millisecond)
	if zero.Before(began) || zero.After(document.Measured[0].From.Add(time.Millisecond)) {
		t.Errorf("the series begins at %s, the phase at %s and the measurement at %s", zero, began, document.Measured[0].From)
	}
	last := zero.Add(time.Duration(details.Series.Points[len(details.Series.Points)-1].ToMilliseconds) * time.Millisecond)
	if last.After(document.Measured[0].To.Add(time.Millisecond)) || last.Before(document.Measured[0].To.Add(-3*time.Second)) {
		t.Errorf("the last point ends at %s, and the measurement at %s", last, document.Measured[0].To)
	}
}

// TestEveryWorkloadHasASeries: the sum of the series of each workload is about the work that it did.
func TestEveryWorkloadHasASeries(t *testing.T) {
	if missing := len(loads) - 6; missing != 0 {
		t.Errorf("%d workloads are new: add them", missing)
	}
	scan := measurePhase(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{Regions: 2}})
	for name, phase := range map[string]v1alpha1.Phase{
		"oltp": oltpPhase(2, 50, 3.5), "redo": redoPhase(2, "dsync", 3.5), "scan": scan,
		"metadata": metadataPhase(func(m *v1alpha1.MetadataWorkload) { m.Duration = seconds(3.5) }),
		"fio":      userPhase("[a]\nrw=randwrite\nbs=8k\nsize=4m\ntime_based\nruntime=3500ms\n"),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
			b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("8Mi")}})
			if name == "scan" {
				b.slowFiles("r", 55*time.Millisecond, 0, 0)
			}
			document, details := b.valid(phase)
			if details.Series == nil || len(details.Series.Points) < 2 {
				t.Fatalf("%+v, %v", details.Series, document.Notes)
			}
			var bytes, operations int64
			for _, point := range details.Series.Points {
				bytes, operations = bytes+point.ReadBytes+point.WrittenBytes, operations+point.Operations
			}
			latencies := slices.ContainsFunc(details.Series.Points, func(p Point) bool { return p.LatencyMaxNanoseconds > 0 })
			if want := name == "oltp" || name == "redo" || name == "metadata"; latencies != want {
				t.Errorf("it has latencies over time: %v, want %v", latencies, want)
			}
			m := document.Metrics
			all, count := m["readBytes"]+m["writtenBytes"], m["readOperations"]+m["writeOperations"]+m["metadataOperations"]
			// No point contains what fio does in its last fraction of a second, and the first one also contains what fio reads to start.
			for what, c := range map[string][3]int64{"bytes": {bytes, all, 8 << 20}, "operations": {operations, count, 500}} {
				if least := c[1] * 6 / 10; c[0] < least || c[0] > c[1]*105/100+c[2] {
					t.Errorf("%d %s in the series, of %d in all", c[0], what, c[1])
				}
			}
		})
	}
}

// TestSeriesOfADatabase: the series of a database has the rates and latencies that pgbench has reported.
func TestSeriesOfADatabase(t *testing.T) {
	clock, now := fakeClock()
	var r recorder
	one := bracket{began: clock.start()}
	r.addDatabase([]postgres.Point{{EndMilliseconds: 1000, TransactionsPerSecondMilli: 250_000, LatencyMeanNanoseconds: 4e6},
		{EndMilliseconds: 3000, TransactionsPerSecondMilli: 100_500}}, one.began)
	*now = 3 * time.Second
	one.ended = clock.start()
	series := r.document([]bracket{one})
	if len(series.Points) != 2 || series.Points[0].Operations != 250 || series.Points[1].Operations != 201 ||
		series.Points[1].Span != (Span{1000, 3000}) || series.Points[0].LatencyMeanNanoseconds != 4e6 {
		t.Errorf("%+v", series)
	}
}

// TestLatencyOverTime: one read of 1000 takes 300 ms, and the others 4 ms. Two workers make such a read about every two seconds, and only
// the points of these seconds show it.
func TestLatencyOverTime(t *testing.T) {
	const usual, rarely, every = 4 * time.Millisecond, 300 * time.Millisecond, 1000
	b := newBench(t)
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("8Mi")}})
	b.slowFiles("r", usual, rarely, every)
	document, details := b.valid(oltpPhase(2, 0, 8.5))
	slow, points := 0, details.Series.Points
	var most int64
	for i, point := range points {
		if point.LatencyMaxNanoseconds < usual.Nanoseconds() && i < len(points)-1 {
			t.Errorf("%+v: no second was without a read, and none was that fast", point)
		}
		if point.LatencyMaxNanoseconds >= rarely.Nanoseconds() {
			slow++
		}
		most = max(most, point.LatencyMaxNanoseconds)
	}
	// The last slow read may be after the last point, or two may be in one point.
	if happened := int(document.Metrics["readOperations"] / every); happened < 2 || slow < happened-1 || slow > happened ||
		slow > len(points)-2 {
		t.Errorf("%d of %d points have a slow read, and %d reads were slow: %+v", slow, len(points), happened, points)
	}
	if largest := document.Metrics["readLatencyMaxNanoseconds"]; most > largest || most < rarely.Nanoseconds() {
		t.Errorf("the slowest point has %d ns, and the slowest of all took %d ns", most, largest)
	}
}

// TestSlowestIsWhereItHappened: the slowest operation stays in its place, even when points are joined. Joined points have the mean weighted
// by the number of operations, and the larger of their maximum latencies.
func TestSlowestIsWhereItHappened(t *testing.T) {
	clock, now := fakeClock()
	var r recorder
	r.start(clock.start())
	for second := range int64(4) {
		*now += time.Second
		r.took(10 + second)
		r.took(5)
		r.sample(fio.Usage{Operations: second + 1})
	}
	r.tookWithin(2490*time.Millisecond, 2500*time.Millisecond, 70)
	r.tookWithin(2490*time.Millisecond, 2500*time.Millisecond, 60)
	r.tookWithin(3990*time.Millisecond, 4010*time.Millisecond, 99) // behind the last one
	for i, want := range []int64{10, 11, 70, 13} {
		if got := r.points[i].LatencyMaxNanoseconds; got != want {
			t.Errorf("point %d has %d, want %d", i, got, want)
		}
	}
	for i, mean := range []int64{100, 400, 0, 0} {
		r.points[i].LatencyMeanNanoseconds, r.points[i].Operations = mean, []int64{30, 10, 0, 0}[i]
	}
	joined := halved(r.points)
	if len(joined) != 2 || joined[0].LatencyMaxNanoseconds != 11 || joined[0].LatencyMeanNanoseconds != 175 ||
		joined[1].LatencyMaxNanoseconds != 70 || joined[1].LatencyMeanNanoseconds != 0 {
		t.Errorf("%+v", joined)
	}
}

// TestLongWindowsLeaveNoGaps: with hundreds of workers, each value of the log covers several seconds, and each of these seconds has it.
// Where the log has no value, no operation ended.
func TestLongWindowsLeaveNoGaps(t *testing.T) {
	for _, milliseconds := range []int64{10, 990, 1260, 2500, 7000} {
		window := time.Duration(milliseconds) * time.Millisecond
		clock, now := fakeClock()
		var r recorder
		r.start(clock.start())
		for range 90 {
			*now += time.Second
			r.sample(fio.Usage{Operations: 1})
		}
		for ended := window; ended <= 90*time.Second; ended += window {
			if ended < 30*time.Second || ended-window > 60*time.Second {
				r.tookWithin(ended-window, ended, 70)
			}
		}
		slack := window.Milliseconds() + 500
		for _, point := range r.points {
			middle := (point.FromMilliseconds + point.ToMilliseconds) / 2
			known := point.LatencyMaxNanoseconds > 0
			if within := middle > 30_000 && middle < 60_000; within && known || !within && !known && max(30_000-middle, middle-60_000) > slack &&
				middle < 90_000-slack {
				t.Errorf("windows of %s: the point at %d ms has a value: %v", window, middle, known)
			}
		}
	}
}

// TestWindowsAreBounded: the log of a day with many workers has no more entries than there is memory for.
func TestWindowsAreBounded(t *testing.T) {
	for _, c := range []struct {
		job     fio.Job
		lasting time.Duration
	}{{fio.Job{Mode: fio.RandomMix, Workers: 512}, 24 * time.Hour}, {fio.Job{Mode: fio.Write, Workers: 1}, 24 * time.Hour},
		{fio.Job{Mode: fio.RandomRead, Workers: 8}, time.Second}} {
		window := windowOf([]fio.Job{c.job}, c.lasting)
		each := 1
		if c.job.Mode == fio.RandomMix {
			each = 2
		}
		if entries := int(c.lasting/window) * c.job.Workers * each; entries > maxWindows || window < leastWait || entries < 100 {
			t.Errorf("%d workers for %s write %d entries, of %s", c.job.Workers, c.lasting, entries, window)
		}
	}
}

// TestNoSeriesOfBatches: requests that are submitted in batches are in no counter. Their series is left out, because it would show no work.
func TestNoSeriesOfBatches(t *testing.T) {
	clock, now := fakeClock()
	s := &session{clock: clock}
	one := bracket{began: clock.start()}
	s.recorder.start(one.began)
	for range 5 {
		*now += time.Second
		s.recorder.sample(fio.Usage{ReadBytes: 100})
	}
	s.addSeries([]bracket{one}, []figures{{sum: fio.Sum{Read: fio.Direction{Bytes: 1 << 30}}}})
	if s.details.Series != nil || !strings.Contains(strings.Join(s.notes, ""), "use psync") {
		t.Errorf("%+v, %v", s.details.Series, s.notes)
	}
}
