//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/workload"
)

// load is a workload of a measure phase.
type load interface {
	// prepare does what is not measured, such as creating files and warming caches.
	prepare(ctx context.Context, s *session) error
	// round measures once. It calls s.begin and s.end tightly around what is measured.
	round(ctx context.Context, s *session, number int) (figures, error)
	// finish adds the figures that are special to the workload, from the rounds that count.
	finish(s *session, sum fio.Sum) error
}

// figures of one round.
type figures struct {
	sum fio.Sum
	// operations besides the reads and writes in sum.
	operations int64
	metrics    map[string]int64
	throughput float64
	seed       int64
	// waited is the sum of the latencies of operations.
	waited time.Duration
}

// bracket has the counters around one round.
type bracket struct {
	began, ended  watch
	before, after observe.Snapshot
	// staged says that jobs wait for each other, and fio pauses in between; ramped, that it follows a ramp directly. startup is how long fio
	// takes before the first job begins.
	staged, ramped bool
	startup        time.Duration
	// workers is the maximum number of workers that are active at the same time; 0 if unknown.
	workers int
	loop    loop
	memory  memory
}

// shortPausesPercent of a round is the longest pause that is too short to show in the samples of the disks.
const shortPausesPercent = 5

// measured is the time that a round's numbers come from. It is as long as the workload itself took and ends with the round, so the start of
// fio and a ramp are not in it. With longer pauses between stages, it is the whole round. All intervals are counted on the monotonic clock,
// from the beginning of the first round.
func (b bracket) measured(first watch, long time.Duration) results.Interval {
	to := first.day.Add(b.ended.elapsed - first.elapsed)
	whole := b.ended.elapsed - b.began.elapsed - b.startup
	if paused := whole - long; b.staged && paused > long*shortPausesPercent/100 {
		long = whole
	}
	return results.Interval{From: to.Add(-long).UTC(), To: to.UTC()}
}

// measurement is a measure phase under way.
type measurement struct {
	brackets []bracket
	rounds   []figures
}

func (s *session) measure(ctx context.Context, phase v1alpha1.MeasurePhase) error {
	chosen, err := s.chooseLoad(phase)
	if err != nil {
		return err
	}
	if opened, is := chosen.(interface{ close() }); is {
		defer opened.close()
	}
	if err := chosen.prepare(ctx, s); err != nil {
		return err
	}
	if err := s.emptyCaches(ctx, phase.Cache); err != nil {
		return err
	}
	if err := s.rampUp(ctx, chosen, workload.TraitsOf(&phase.Workload).RampUp); err != nil {
		return err
	}
	var m measurement
	rule, most := stats.SteadyRule{Window: 1}, 1
	if phase.SteadyState != nil {
		rule, most = steadyRule(phase.SteadyState), stats.MaxRounds
	}
	steady, err := s.rounds(ctx, chosen, &m, rule, most)
	if err != nil {
		return err
	}
	s.noteEnd(m.rounds[len(m.rounds)-1].sum.Duration)
	if err := s.summarise(ctx, chosen, &m, rule.Window, phase.Cache); err != nil {
		return err
	}
	if phase.SteadyState == nil {
		return nil
	}
	s.metrics["rounds"] = int64(len(m.rounds))
	s.addSteady(steady)
	s.check("steadyState", steady.Reached, "after %d rounds: %s", len(m.rounds), steady)
	if !steady.Reached {
		return invalidf(ReasonNotConverged, "not converged after %d rounds: %s; measure longer, or allow a larger range, slope or drift",
			len(m.rounds), steady)
	}
	return nil
}

// rounds measures until the rule holds, or once if there is none.
func (s *session) rounds(ctx context.Context, chosen load, m *measurement, rule stats.SteadyRule, most int) (stats.Steady, error) {
	var steady stats.Steady
	var rates []float64
	for number := range most {
		m.brackets = append(m.brackets, bracket{})
		s.bracket = &m.brackets[number]
		s.progress.from, s.progress.to = float64(number)/float64(most), float64(number+1)/float64(most)
		one, err := chosen.round(ctx, s, number)
		if err != nil {
			return steady, err
		}
		m.rounds = append(m.rounds, one)
		rates = append(rates, one.throughput)
		if most == 1 {
			break
		}
		steady = rule.Judge(rates)
		s.addRound(one.seed, one.sum.Read.Operations+one.sum.Write.Operations, one.sum.Read.Bytes+one.sum.Write.Bytes, one.sum, one.throughput,
			steady)
		if steady.Reached {
			break
		}
	}
	return steady, nil
}

// settle waits until earlier writes are done and the other nodes begin too: at the agreed time, or earlier by the length of a ramp.
// Workloads that run together meet twice: none watches its devices while another one prepares, and none begins while another one watches.
func (s *session) settle(ctx context.Context, ramp time.Duration) error {
	for _, step := range []func(context.Context) error{s.sync, s.meet, s.awaitQuiet, s.meet} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return s.awaitStart(ctx, ramp)
}

// begin takes the counters. A measurement follows its ramp immediately: a sync between them would empty the caches that the ramp has
// filled.
func (s *session) begin(ctx context.Context) error {
	ready := s.meet
	if !s.ramped {
		ready = func(ctx context.Context) error { return s.settle(ctx, 0) }
	}
	if err := ready(ctx); err != nil {
		return err
	}
	s.bracket.ramped, s.ramped = s.ramped, false
	s.watchMemory()
	s.bracket.before = s.counters.Take()
	s.bracket.began = s.clock.start()
	s.recorder.start(s.bracket.began)
	return nil
}

const (
	// quietWindow is how long the devices are watched at a time, quietPatience for how long in all.
	quietWindow   = 250 * time.Millisecond
	quietPatience = 30 * time.Second
)

// awaitQuiet waits until the volume's own devices are idle: their remaining activity comes from earlier work.
func (s *session) awaitQuiet(ctx context.Context) error {
	words := ""
	for range s.executor.quietPatience / quietWindow {
		before := s.counters.Take()
		if s.counters.Between(before, before).Load.Devices == "" {
			return nil // the volume has no devices of its own
		}
		if err := pause(ctx, quietWindow); err != nil {
			return err
		}
		if words = s.executor.judgeQuiet(s.counters.Between(before, s.counters.Take()).Load); words == "" {
			return nil
		}
	}
	return invalidf(ReasonDeviceBusy, "%s: this lasted for %s: keep other load off it, or measure later", words, s.executor.quietPatience)
}

func pause(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// end takes the counters once the writes of the workload have reached the devices. If it wrote, the round lasts until then, and flush is
// how long that took.
func (s *session) end(ctx context.Context, wrote bool) (flush time.Duration, err error) {
	s.recorder.stop()
	s.bracket.ended = s.clock.start()
	if err := s.sync(ctx); err != nil {
		return 0, err
	}
	if wrote {
		flush = s.bracket.ended.spent()
		s.bracket.ended = s.clock.start()
	}
	s.bracket.after = s.counters.Take()
	s.unwatchMemory()
	return flush, nil
}

// summarise makes the metrics of the rounds that count: those of the last window, or all if there are fewer.
func (s *session) summarise(ctx context.Context, chosen load, m *measurement, window int, cache v1alpha1.CacheExpectation) error {
	first := max(0, len(m.rounds)-window)
	counting := m.brackets[first:]
	var sum fio.Sum
	var seen []memory
	for i, one := range m.rounds[first:] {
		seen = append(seen, counting[i].memory)
		sum.Add(one.sum)
		s.measured = append(s.measured, counting[i].measured(counting[0].began, one.sum.Duration))
		for name, value := range one.metrics { // these cannot be added up: the last round counts
			s.metrics[name] = value
		}
	}
	s.began, s.ended = counting[0].began, counting[len(counting)-1].ended
	s.addFigures(sum)
	s.addSeries(counting, m.rounds)
	if err := errors.Join(chosen.finish(s, sum), s.checkLoop(m.rounds[first:], counting)); err != nil {
		return err
	}
	delta := s.within(counting)
	operations := sum.Read.Operations + sum.Write.Operations
	for _, one := range m.rounds[first:] {
		operations += one.operations
	}
	s.delta, s.workers, s.memory = delta, counting[0].workers, memoryOf(seen...)
	delta = delta.WithApplication(observe.Application{ReadBytes: sum.Read.Bytes, WrittenBytes: sum.Write.Bytes,
		ReadOperations: sum.Read.Operations, WriteOperations: sum.Write.Operations, Operations: operations,
		Transactions: s.metrics["transactions"], Lasting: s.lasting(), Ramped: counting[0].ramped})
	s.details.Counters, s.details.Unavailable, s.notes = delta.Details, delta.Unavailable, append(s.notes, delta.Notes...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.beside != nil { // the rest is judged for all workloads together
		s.keepOwn(delta)
		return nil
	}
	if s.workers > 0 { // no more CPUs than workers can be held up
		delta.Load.CPUs = min(delta.Load.CPUs, s.workers)
	}
	if err := s.judgeLoad(delta.Load); err != nil {
		return err
	}
	if s.unbracketed != "" {
		s.details.Unavailable = append(s.details.Unavailable, s.unbracketed)
		return nil
	}
	s.addMemory(s.memory)
	for name, value := range delta.Metrics {
		if _, known := results.LookupMetric(name); known {
			s.metrics[name] = value
		}
	}
	return s.judgeCache(cache, sum.Read.Bytes, delta)
}

// within returns the change of the counters over some rounds, without the time between them.
func (s *session) within(rounds []bracket) observe.Delta {
	before := rounds[0].before
	for i := range rounds[1:] {
		before = before.Without(rounds[i].after, rounds[i+1].before)
	}
	return s.counters.Between(before, rounds[len(rounds)-1].after)
}

// judgeLoad refuses measurements that were limited by CPU, or disturbed by other load on the same devices.
func (s *session) judgeLoad(load observe.Load) error {
	throttled, foreign := s.executor.judgeLoad(load)
	if throttled != "" {
		return invalidf(ReasonCPUThrottled, "%s", throttled)
	}
	if foreign != "" {
		return invalidf(ReasonForeignLoad, "%s", foreign)
	}
	return nil
}

// loads creates the workload of each kind. Workloads that can work on cached data read it once in advance if the phase declares a warm
// cache.
var loads = map[string]func(v1alpha1.MeasurePhase) load{
	"oltp": func(phase v1alpha1.MeasurePhase) load {
		return &oltp{given: *phase.Workload.OLTP, warm: phase.Cache == v1alpha1.CacheWarm}
	},
	"scan": func(phase v1alpha1.MeasurePhase) load {
		return &scan{given: *phase.Workload.Scan, warm: phase.Cache == v1alpha1.CacheWarm}
	},
	"redo":     func(phase v1alpha1.MeasurePhase) load { return &redo{given: *phase.Workload.Redo} },
	"metadata": func(phase v1alpha1.MeasurePhase) load { return &metadata{given: *phase.Workload.Metadata} },
	"postgres": func(phase v1alpha1.MeasurePhase) load { return &database{given: *phase.Workload.Postgres} },
	"fio": func(phase v1alpha1.MeasurePhase) load {
		return &userJobs{given: *phase.Workload.FIO, declared: phase.Cache != "" && phase.Cache != v1alpha1.CacheAny}
	},
}

// chooseLoad makes the workload that the phase asks for.
func (s *session) chooseLoad(phase v1alpha1.MeasurePhase) (load, error) {
	traits := workload.TraitsOf(&phase.Workload)
	if problem := traits.Problem(&phase, s.volume.block); problem != "" {
		return nil, invalidf(ReasonNotPossible, "%s", problem)
	}
	switch made := repeated[traits.Name]; {
	case s.beside == nil:
	case s.beside.archives:
		return &archiver{given: *phase.Workload.Redo, switching: s.beside.switching}, nil
	case s.beside.switching != nil:
		return &archivedLog{redo: redo{given: *phase.Workload.Redo}, switching: s.beside.switching}, nil
	case made != nil:
		return made(phase), nil
	}
	return loads[traits.Name](phase), nil
}

// measureFIO runs a round of a workload that consists of one job file.
func (s *session) measureFIO(ctx context.Context, message string, file fio.File, bytes int64,
	expected expectation) (fio.Sum, fio.Report, error) {
	s.progress.stretch(message, s.progress.from, s.progress.to, bytes, expected.lasting)
	if err := s.begin(ctx); err != nil {
		return fio.Sum{}, fio.Report{}, err
	}
	s.bracket.staged, s.bracket.startup, s.bracket.workers = staged(file), s.startup, workers(file)
	s.bracket.loop = loopOf(file, expected.free)
	sum, report, err := s.runFIO(ctx, file, expected)
	if err != nil {
		return fio.Sum{}, fio.Report{}, err
	}
	if sum.Read.Operations+sum.Write.Operations == 0 {
		return fio.Sum{}, fio.Report{}, invalidf(ReasonNoNumbers, "fio ended without a single read or write: see its report")
	}
	flush, err := s.end(ctx, sum.Write.Operations > 0)
	sum.Flushed(flush)
	return sum, report, err
}

// staged reports whether jobs of the file wait for others before them.
func staged(file fio.File) bool {
	stages := file.Stages()
	return len(stages) > 0 && stages[len(stages)-1] > 0
}

// workers is the number of workers of all jobs of the file.
func workers(file fio.File) int {
	sum := 0
	for _, section := range file.Sections {
		count := 1
		for _, option := range slices.Concat(file.Global, section.Options) {
			if number, err := strconv.Atoi(option.Value); option.Name == "numjobs" && err == nil {
				count = number
			}
		}
		sum += count
	}
	return sum
}

// warmUp reads everything once through the page cache.
func (s *session) warmUp(ctx context.Context, extents []extent) error {
	if s.volume.block { // the kernel drops the cache of a device when its last user closes it
		held, err := os.Open(s.volume.path)
		if err != nil {
			return err
		}
		s.held = held
	}
	var jobs []fio.Job
	var bytes int64
	for i, e := range extents {
		jobs = append(jobs, fio.Job{Name: fmt.Sprintf("warm-%d", i), Mode: fio.Read, Paths: []string{e.path}, Offset: e.offset, Size: e.bytes,
			Workers: 1, BlockSize: min(64<<10, e.bytes), KeepCache: true, After: i > 0})
		bytes += e.bytes
	}
	s.progress.stretch("warming the caches", 0, 0, bytes, 0)
	_, _, err := s.runFIO(ctx, fio.NewFile(jobs...), expectation{aside: true})
	return err
}
