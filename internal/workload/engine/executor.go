//go:build linux

// Package engine executes a phase on a volume: it verifies the place, fills, fragments and measures. Each workload has a file of its own.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/workload"
)

// Executor executes phases on this machine. Its zero value uses the fio of the search path and the system's folder for
// temporary files.
type Executor struct {
	// FIO is the path of fio; empty looks it up.
	FIO string
	// Scratch is a small writable folder outside the volume; empty is that of the system.
	Scratch string
	// File is the file that the phase refers to in a ConfigMap: a job file or a pgbench script; empty means PhaseFile.
	File string
	// End is the file that tells a workload that the operation beside it is over; empty is EndFile.
	End string

	clock     func() clock
	sync      func(*volume) error
	observe   func(observe.Target) (counters, error)
	judge     func(expectation string, readBytes int64, delta observe.Delta) (bool, string)
	judgeLoad func(load observe.Load) (throttled, foreign string)
	// judgeQuiet is called repeatedly until the devices are quiet, for quietPatience at most.
	judgeQuiet    func(load observe.Load) string
	quietPatience time.Duration
	freePatience  time.Duration
	allowFile     bool // a plain file may stand for a device, in tests
	// delay is called within each operation of a workload that the runner executes itself, without fio, in tests.
	delay func(kind string)
}

// counters reads the counters of the system around a workload.
type counters interface {
	Take() observe.Snapshot
	Between(before, after observe.Snapshot) observe.Delta
	Environment(ctx context.Context) map[string]string
	PoolState() string
	Memory() observe.Memory
}

// Execute executes one phase and returns its document. If the phase did not do what was requested, the document has the outcome Invalid and
// says why. An error means that the request itself is broken, so there is no document. When the context ends, everything that was started
// has ended before Execute returns.
func (e Executor) Execute(ctx context.Context, request workload.Request, progress func(results.Progress)) (results.PhaseDocument, error) {
	kind, err := kindOfPhase(request)
	if err != nil {
		return results.PhaseDocument{}, err
	}
	s := e.newSession(request, kind, progress)
	err = s.execute(ctx)
	if s.held != nil {
		err = errors.Join(err, s.held.Close())
	}
	document := s.document(ctx, err)
	return document, document.Validate()
}

// Ready returns an error if fio, which every phase needs, does not work on this machine.
func (e Executor) Ready(ctx context.Context) error {
	_, err := fio.Program{Path: cmp.Or(e.FIO, "fio")}.Version(ctx)
	return err
}

// Warnings returns what makes the results on a folder or device worse than its storage is, as the documents of phases have it. It returns
// nothing if the volume cannot be looked at: the first phase says why.
func (e Executor) Warnings(ctx context.Context, path string, device bool) (all []string) {
	observer, err := observe.New(observe.Target{Path: path, Block: device})
	if err != nil {
		return nil
	}
	facts := observer.Environment(ctx)
	for _, key := range slices.Sorted(maps.Keys(facts)) {
		if strings.HasPrefix(key, "warning.") {
			all = append(all, facts[key])
		}
	}
	return slices.Compact(all)
}

// kindOfPhase returns the kind of the phase, or an error for a request for which no document can be made.
func kindOfPhase(request workload.Request) (string, error) {
	if request.Run.Namespace == "" || request.Run.Name == "" || request.Run.UID == "" || request.Phase.Name == "" {
		return "", fmt.Errorf("the request is incomplete: run %q of %q with uid %q, phase %q", request.Run.Name, request.Run.Namespace,
			request.Run.UID, request.Phase.Name)
	}
	switch kind := workload.KindOf(&request.Phase); kind {
	case results.KindFill, results.KindFragment, results.KindFree, results.KindMeasure:
		return kind, nil
	}
	return "", fmt.Errorf("phase %s is not fill, fragment, free or measure: only these are executed on a volume", request.Phase.Name)
}

// session is the state of one call of Execute.
type session struct {
	executor Executor
	request  workload.Request
	kind     string
	fio      fio.Program
	clock    clock
	volume   *volume
	counters counters
	progress *meter
	recorder recorder
	random   *seeds
	bracket  *bracket      // around the round that is measured
	ramped   bool          // a ramp has just ended, and the round continues from there
	held     *os.File      // a device that is kept open, if any
	startup  time.Duration // how long fio takes to start and print its version: seconds, on an emulated node
	// endedEarly says that the operation beside the phase was over before the duration of the workload.
	endedEarly bool
	// idle is how long the last fio ran beyond the time of its jobs.
	idle time.Duration
	// beside is set in a workload that runs together with others. delta and memory are the readings of its counters, and workers is the
	// maximum number of its workers.
	beside  *beside
	delta   observe.Delta
	workers int
	memory  memory
	watched *memoryWatch // of the round under way
	// wal is the volume of the write-ahead log, if that is a separate one.
	wal *walVolume

	began, ended watch // around the measured part, or all of it
	measured     []results.Interval
	// undropped says how much was still cached when a phase with a cold cache began; empty if that was little.
	undropped string
	// unbracketed is a sentence that says why the counters contain more than what is measured; empty if they do not.
	unbracketed   string
	metrics       map[string]int64
	distributions map[string]results.Distribution
	checks        []results.Check
	environment   map[string]string
	notes         []string
	details       Details
}

func (e Executor) newSession(request workload.Request, kind string, progress func(results.Progress)) *session {
	e.FIO = cmp.Or(e.FIO, "fio")
	e.File = cmp.Or(e.File, workload.PhaseFile)
	e.End = cmp.Or(e.End, workload.EndFile)
	if e.clock == nil {
		e.clock = newClock
	}
	if e.sync == nil {
		e.sync = (*volume).sync
	}
	if e.observe == nil {
		e.observe = func(target observe.Target) (counters, error) { return observe.New(target) }
	}
	if e.judge == nil {
		e.judge = observe.JudgeCache
	}
	if e.judgeLoad == nil {
		e.judgeLoad = observe.JudgeLoad
	}
	if e.judgeQuiet == nil {
		e.judgeQuiet = observe.JudgeQuiet
	}
	e.quietPatience = cmp.Or(e.quietPatience, quietPatience)
	e.freePatience = cmp.Or(e.freePatience, freePatience)
	s := &session{
		executor: e, request: request, kind: kind, clock: e.clock(), fio: fio.Program{Path: e.FIO, Scratch: e.Scratch},
		progress: newMeter(progress), random: newSeeds(request.Seed, string(request.Phase.Name)),
		metrics: map[string]int64{}, environment: map[string]string{},
	}
	s.began = s.clock.start()
	s.ended = s.began
	return s
}

// execute verifies the place and does what the phase asks for.
func (s *session) execute(ctx context.Context) error {
	if len(s.request.Parts) > 0 {
		return s.together(ctx)
	}
	if err := s.preparePlace(ctx); err != nil {
		return err
	}
	if err := s.prepareWAL(ctx); err != nil {
		return err
	}
	return s.work(ctx)
}

// work does what the phase asks for, in a place that was verified.
func (s *session) work(ctx context.Context) error {
	defer s.unwatchMemory() // of a round that failed
	timer := s.clock.start()
	version, err := s.fio.Version(ctx)
	if err != nil {
		return err
	}
	s.startup = timer.spent()
	s.environment["fio"] = version
	if err := errors.Join(s.checkPool("before"), s.checkWAL("before")); err != nil {
		return err
	}
	began := s.clock.start()
	switch s.kind {
	case results.KindFill:
		err = s.fill(ctx, *s.request.Phase.Fill)
	case results.KindFragment:
		err = s.fragment(ctx, *s.request.Phase.Fragment)
	case results.KindFree:
		err = s.free(ctx, *s.request.Phase.Free)
	default:
		err = s.measure(ctx, *s.request.Phase.Measure)
	}
	if err == nil {
		err = errors.Join(s.checkPool("after"), s.checkWAL("after"))
	}
	return errors.Join(err, s.checkClock(began))
}

// checkPool refuses a pool that lacks a disk: it works, but not at the speed of the requested pool. A phase beside an operation, such as
// the replacement of a disk, is meant to measure exactly that.
func (s *session) checkPool(when string) error {
	state, measure := s.counters.PoolState(), s.request.Phase.Measure
	whole, beside := state == observe.PoolOnline, measure != nil && measure.Operate != nil || s.beside != nil && s.beside.operated
	if state == "" || beside && !whole {
		return nil
	}
	if s.check("pool", whole, "%s the phase the pool was %s", when, state); whole {
		return nil
	}
	return invalidf(ReasonPoolUnhealthy,
		"the pool of the volume is %s %s the phase: see 'zpool status' on the node, and replace the failed disk",
		state, when)
}

// preparePlace verifies the place before anything is written. What it finds is part of the result.
func (s *session) preparePlace(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	found, err := findPlace(s.request, s.executor.allowFile)
	if err != nil {
		s.check("place", false, "%v", err)
		return err
	}
	s.volume, err = claim(found, s.request)
	if err != nil {
		s.check("place", false, "%v", err)
		return err
	}
	whose := "marked as the volume of this run"
	if before := s.request.KeepsDataOf; before != nil {
		whose += ", with what run " + before.Name + " has left on it"
	}
	s.check("place", true, "%s, %s", found, whose)
	target := observe.Target{Path: found.path, Block: found.block, DisksChange: s.request.DisksChange}
	for _, disk := range s.request.Disks {
		target.Disks = append(target.Disks, observe.Disk(disk))
	}
	s.counters, err = s.executor.observe(target)
	if err != nil {
		return wrongPlace("%w", err)
	}
	s.environment = s.counters.Environment(ctx)
	if s.environment == nil {
		s.environment = map[string]string{}
	}
	s.environment[results.KeyWorkloadVersion] = workload.Version(&s.request.Phase)
	if s.beside != nil {
		s.environment[results.KeyWorkloadVersion] = s.beside.version
	}
	return nil
}

// checkClock refuses a clock that was set during the phase. fio uses a monotonic clock, but the times of the document would be wrong, and a
// machine that was suspended has measured its own sleep.
func (s *session) checkClock(began watch) error {
	if step := began.step(); step != 0 {
		s.check("clock", false, "the time of day jumped by %s during the phase, or the machine was suspended", step.Round(time.Millisecond))
		return invalidf(ReasonClockStepped, "the clock of the node jumped by %s during the phase, or the machine was suspended: measure again",
			step.Round(time.Millisecond))
	}
	s.check("clock", true, "the time of day was continuous")
	return nil
}

// check records the outcome of one check.
func (s *session) check(name string, passed bool, format string, args ...any) {
	check := results.Check{Name: name, Passed: passed, Message: spelling.Shorten(fmt.Sprintf(format, args...), 1024)}
	for i := range s.checks {
		if s.checks[i].Name == name { // the last round counts, unless an earlier one has failed
			if s.checks[i].Passed {
				s.checks[i] = check
			}
			return
		}
	}
	s.checks = append(s.checks, check)
}

// passed reports whether all checks so far have passed.
func (s *session) passed() bool {
	return !slices.ContainsFunc(s.checks, func(check results.Check) bool { return !check.Passed })
}

// sync waits until all data that was written to the volume is on the disk.
func (s *session) sync(ctx context.Context) error {
	return inBackground(ctx, func() error { return s.executor.sync(s.volume) })
}

// length is a duration of the API, or the given default if it is missing.
func length(given *v1alpha1.Duration, otherwise time.Duration) time.Duration {
	if given == nil {
		return otherwise
	}
	return given.Duration.Duration
}

// size is a block size of the API, or the given default if it is missing.
func size(given *v1alpha1.BlockSize, otherwise int64) int64 {
	if given == nil || given.Value() <= 0 {
		return otherwise
	}
	return given.Value()
}
