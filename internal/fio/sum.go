package fio

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Sum has the figures of a whole report, or of several.
type Sum struct {
	Read, Write Direction
	Sync        Latency
	// Duration is the sum of all stages. In a stage, the longest job counts.
	Duration time.Duration
	// Flush is the last part of Duration, in which the jobs had ended but not all of their writes had reached the disk.
	Flush  time.Duration
	Errors int64
}

// Sum adds up the report of a job file. Latencies are merged, so that percentiles are those of all operations.
func (r Report) Sum(stages []int) Sum {
	var sum Sum
	longest := map[int]time.Duration{}
	for i, job := range r.Jobs {
		stage := 0
		if i < len(stages) {
			stage = stages[i]
		}
		longest[stage] = max(longest[stage], job.Runtime())
		sum.Read.add(job.Read)
		sum.Write.add(job.Write)
		sum.Sync.Add(job.Sync)
		sum.Errors += job.failures()
	}
	for _, took := range longest {
		sum.Duration += took
	}
	return sum
}

// Runtime is how long the job took, with the sync at its end if it has one.
func (j JobReport) Runtime() time.Duration {
	return time.Duration(min(max(j.Read.RuntimeMilliseconds, j.Write.RuntimeMilliseconds), int64(1)<<40)) * time.Millisecond
}

// ForgetLatencies removes all latencies, but keeps the number of syncs.
func (s *Sum) ForgetLatencies() {
	s.Read.Latency, s.Write.Latency = Latency{}, Latency{}
	s.ForgetSyncTimes()
}

// ForgetLatencies removes all latencies, but keeps the number of syncs.
func (j *JobReport) ForgetLatencies() {
	j.Read.Latency, j.Write.Latency = Latency{}, Latency{}
	j.ForgetSyncTimes()
}

// ForgetSyncTimes removes the latencies of syncs, but keeps their number.
func (s *Sum) ForgetSyncTimes() { s.Sync = Latency{Count: s.Sync.Count} }

// ForgetSyncTimes removes the latencies of syncs, but keeps their number.
func (j *JobReport) ForgetSyncTimes() { j.Sync = Latency{Count: j.Sync.Count} }

// Flushed adds the time until all writes had reached the disk. It belongs to writes that only went to a cache.
func (s *Sum) Flushed(took time.Duration) {
	s.Flush += took
	s.Duration += took
}

// Add merges the figures of a later report.
func (s *Sum) Add(other Sum) {
	s.Read.add(other.Read)
	s.Write.add(other.Write)
	s.Sync.Add(other.Sync)
	s.Duration += other.Duration
	s.Flush += other.Flush
	s.Errors += other.Errors
}

func (d *Direction) add(other Direction) {
	d.Bytes += other.Bytes
	d.Operations += other.Operations
	d.RuntimeMilliseconds += other.RuntimeMilliseconds
	d.Latency.Add(other.Latency)
}

func (j JobReport) failures() int64 {
	if j.Error != 0 {
		return max(j.Errors, 1)
	}
	return j.Errors
}

// JobError is an operation that failed under fio.
type JobError struct {
	Job   string
	Errno syscall.Errno
	// Detail is fio's own line about it, if there is one.
	Detail string
}

func (e *JobError) Error() string {
	if e.Detail != "" {
		return fmt.Sprintf("fio job %s: %v (%s)", e.Job, e.Errno, e.Detail)
	}
	return fmt.Sprintf("fio job %s: %v", e.Job, e.Errno)
}

func (e *JobError) Unwrap() error { return e.Errno }

// Err is the first error of the report: fio continues with other jobs after one has failed, but a measurement does not.
func (r Report) Err() error {
	for _, job := range r.Jobs {
		switch {
		case job.Error != 0:
			return &JobError{Job: job.Name, Errno: errno(job.Error), Detail: firstError(r.Notes)}
		case job.Errors > 0:
			return fmt.Errorf("fio job %s: %d operations failed: %w", job.Name, job.Errors, syscall.EIO)
		}
	}
	return nil
}

// errno accepts a code with either sign, because fio reports both.
func errno(code int) syscall.Errno {
	if code < 0 {
		code = -code
	}
	return syscall.Errno(code)
}

// firstError is the line of fio that most likely names the error.
func firstError(notes []string) string {
	for _, word := range []string{"error", "fail", "fio:"} {
		for _, note := range notes {
			if strings.Contains(strings.ToLower(note), word) {
				return note
			}
		}
	}
	if len(notes) > 0 {
		return notes[0]
	}
	return "it printed no reason"
}
