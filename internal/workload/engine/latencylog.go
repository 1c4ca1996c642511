//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
)

const (
	// maxWindows bounds the log of latencies, which fio keeps in memory.
	maxWindows = 200_000
	leastWait  = 10 * time.Millisecond
)

// logged measures jobs while fio logs the largest latency of each window. The series shows these, and see is called with each. If the log
// cannot be read, unread says why; the sum comes from fio's report and does not need the log.
func (s *session) logged(ctx context.Context, message string, jobs []fio.Job, lasting time.Duration,
	see func(fio.Sample)) (sum fio.Sum, unread, err error) {
	folder, err := s.logFolder()
	if err != nil {
		return fio.Sum{}, nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	window := windowOf(jobs, lasting)
	for i := range jobs {
		jobs[i].LatencyLog, jobs[i].LogWindow = filepath.Join(folder, message), window
	}
	sum, _, err = s.measureFIO(ctx, message, fio.NewFile(jobs...), 0, expectation{lasting: lasting})
	if err != nil {
		return fio.Sum{}, nil, err
	}
	// fio counts from when its jobs begin, and names a window by its end.
	zero := s.bracket.began.elapsed - s.recorder.began.elapsed + s.bracket.startup
	unread = readLogs(folder, func(one fio.Sample) {
		ended := zero + time.Duration(one.Milliseconds)*time.Millisecond
		s.recorder.tookWithin(ended-window, ended, one.Nanoseconds)
		see(one)
	})
	return sum, unread, nil
}

// windowOf returns the window of a log of latencies that keeps the number of its entries below maxWindows: each worker writes one entry per
// window for reads, and one for writes.
func windowOf(jobs []fio.Job, lasting time.Duration) time.Duration {
	entries := 0
	for _, job := range jobs {
		entries += job.Workers
		if job.Mode == fio.RandomMix {
			entries += job.Workers
		}
	}
	return max(leastWait, lasting*time.Duration(entries)/maxWindows)
}

// logFolder is a new folder in the scratch space.
func (s *session) logFolder() (string, error) {
	folder, err := os.MkdirTemp(s.executor.Scratch, "latencies-")
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err != nil {
		return "", fmt.Errorf("scratch space for latencies: %w: mount a writable folder there", err)
	}
	return folder, nil
}

func readLogs(folder string, see func(fio.Sample)) error {
	names, err := filepath.Glob(filepath.Join(folder, "*_lat.*.log"))
	if err != nil {
		return err
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(fio.EachSample(file, see), file.Close()); err != nil {
			return err
		}
	}
	return nil
}
