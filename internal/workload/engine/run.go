//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/storagebench/storagebench/internal/fio"
)

// expectation is what is known about a job before it runs.
type expectation struct {
	// lasting is how long it runs by the clock; 0 if it ends with its data.
	lasting time.Duration
	// free says that it is a user's job, which may wait at any time.
	free bool
	// aside says that its figures are not part of the result, and that it does not end with the operation beside the phase.
	aside bool
}

// runFIO runs one job file to its end, keeps the file and the report, and compares fio's clock with ours.
func (s *session) runFIO(ctx context.Context, file fio.File, expected expectation) (fio.Sum, fio.Report, error) {
	text, err := file.Text()
	if err != nil {
		return fio.Sum{}, fio.Report{}, err
	}
	s.details.JobFiles = append(s.details.JobFiles, text)
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	timer := s.clock.start()
	over := false
	report, err := s.fio.Run(limited, file, func(usage fio.Usage) bool {
		over = over || !expected.aside && s.operationOver() // before the sample: the series reaches until then
		s.progress.watch(usage)
		s.recorder.sample(usage)
		if full := s.volume.crowded(); full != nil {
			stop(full)
		}
		return over
	})
	wall := timer.spent()
	if over {
		s.endedEarly, expected.lasting = true, 0
	}
	sum := report.Sum(file.Stages())
	s.idle = wall - sum.Duration
	if cause := context.Cause(limited); cause != nil && ctx.Err() == nil {
		return fio.Sum{}, fio.Report{}, cause
	}
	if err != nil {
		s.metrics["ioErrors"] = sum.Errors
		return fio.Sum{}, fio.Report{}, err
	}
	if len(report.JSON) > 0 && !expected.aside {
		s.details.FIO = append(s.details.FIO, report.JSON)
	}
	return sum, report, s.compareClocks(sum.Duration, wall, len(file.Sections), expected)
}

// runToDisk runs a job file that writes, and counts the time until the data is flushed, and on a file system of ZFS until its transaction
// group is written. There, the end_fsync of a job waits for the intent log only, and with sync=disabled for nothing. So ZFS also writes
// while fio pauses between jobs that wait for each other, and these pauses count too. This time is not part of flushNanoseconds, which is
// the time after the measured part.
func (s *session) runToDisk(ctx context.Context, file fio.File) (fio.Sum, error) {
	sum, _, err := s.runFIO(ctx, file, expectation{})
	if err != nil {
		return fio.Sum{}, err
	}
	if s.volume.mount.FSType == "zfs" && staged(file) {
		sum.Duration += max(0, s.idle-s.startup)
	}
	timer := s.clock.start()
	err = s.sync(ctx)
	sum.Duration += timer.spent()
	return sum, err
}

// overhead returns the longest time that fio may take to start and to end, and to notice that one section is over and the next one can
// begin. The start was timed on this node, because it can take half as long as a job.
func (s *session) overhead(wall time.Duration, sections int) time.Duration {
	return 5*time.Second + 3*s.startup + wall/20 + time.Duration(sections)*250*time.Millisecond
}

// compareClocks compares fio's time with ours, because a rate is as wrong as the time that it was divided by, and fio may count ticks of
// the CPU.
func (s *session) compareClocks(told, wall time.Duration, sections int, expected expectation) error {
	words := fmt.Sprintf("the load generator reports %s of work, and its process ran for %s", told, wall.Round(time.Millisecond))
	wrong := ""
	switch {
	case told > wall+wall/1000+20*time.Millisecond:
		wrong = "it cannot have worked longer than that"
	case told <= 0 && !expected.aside:
		wrong = "it reports no measured time"
	case expected.free:
	case wall-told > s.overhead(wall, sections):
		wrong = "the difference is too large"
	case expected.lasting > 0 && told < expected.lasting-expected.lasting/100-50*time.Millisecond:
		wrong = fmt.Sprintf("it was asked to work for %s", expected.lasting)
	}
	s.check("duration", wrong == "", "%s", joinWords(words, wrong))
	if wrong != "" {
		return invalidf(ReasonClocksDisagree, "%s, but %s: its rates are not reliable", words, wrong)
	}
	return nil
}

func joinWords(first, second string) string {
	if second == "" {
		return first
	}
	return first + ", but " + second
}

// crowded refuses to fill up a file system that others use too.
func (v *volume) crowded() error {
	if v.block || !v.shared {
		return nil
	}
	free, least, err := v.freeAndReserve()
	if err != nil || free >= min(least, v.freeAtFirst-16*mib) { // a disk that was full before is not our doing
		return err
	}
	return invalidf(ReasonVolumeFull, "only %d bytes are left on %s, which others use too: stopped before they run out of space", free,
		v.mount.Source)
}

// inBackground waits for something that cannot be interrupted, but only as long as the context lasts.
func inBackground(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), errors.New("the kernel has not answered yet"))
	}
}

// crewed runs several workers at once until all are done or one fails. A call that the storage never answers cannot be stopped: the runner
// ends without waiting for it.
func crewed(ctx context.Context, workers int, work func(ctx context.Context, number int) error) error {
	return inBackground(ctx, func() error {
		group, ctx := errgroup.WithContext(ctx)
		for number := range workers {
			group.Go(func() error { return work(ctx, number) })
		}
		return group.Wait()
	})
}
