//go:build linux

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/workload"
)

const (
	defaultWriters   = 6
	defaultRedoBlock = 8 << 10
	// A log is as large as there is room for, between these limits. At its end, the writer starts again from its beginning, as databases reuse
	// their logs.
	largestLog  = 256 * mib
	smallestLog = workload.SmallestLog
	// syncWithWrite is the sync that is a part of each write.
	syncWithWrite = "dsync"
)

// redo is small synchronous appends by several writers, each to a log of its own.
type redo struct {
	given v1alpha1.RedoWorkload
	logs  []extent
	job   fio.Job
	// samples of latencies over time, of the last round.
	samples *fio.Samples
}

func (r *redo) writers() int {
	if r.given.Writers > 0 {
		return int(r.given.Writers)
	}
	return defaultWriters
}

func (r *redo) prepare(ctx context.Context, s *session) error {
	r.job = fio.Job{Mode: fio.Write, Workers: 1, Sync: syncWithWrite, BlockSize: defaultRedoBlock}
	if r.given.Sync != "" {
		r.job.Sync = r.given.Sync
	}
	least := r.job.BlockSize
	for _, share := range r.given.BlockSizes {
		r.job.BlockSizes = append(r.job.BlockSizes, fio.BlockShare{Bytes: share.Size.Value(), Percent: int(share.Percent)})
	}
	if len(r.job.BlockSizes) > 0 {
		least = slices.MinFunc(r.job.BlockSizes, func(a, b fio.BlockShare) int { return int(a.Bytes - b.Bytes) }).Bytes
	}
	kept, err := r.findKeptLogs(s)
	if err != nil {
		return err
	}
	if !kept {
		if err := r.place(s); err != nil {
			return err
		}
		if err := r.layOut(ctx, s); err != nil {
			return err
		}
	}
	r.job.Direct = s.direct(r.logs[0], least, false)
	return nil
}

// place finds room for the logs: files of their own, or the part of a device behind the data.
func (r *redo) place(s *session) error {
	writers := int64(r.writers())
	area := s.volume.area()
	room := area.bytes
	if !s.volume.block {
		if err := r.removeOld(s); err != nil {
			return err
		}
		free, err := s.volume.room()
		if err != nil {
			return err
		}
		room = free / 2
	} else if d := s.volume.marker.Data; d != nil {
		filled := (int64(d.Files)*d.FileBytes + mib - 1) / mib * mib
		area.offset, room = area.offset+filled, area.bytes-filled
	}
	each := min(room/writers/mib*mib, largestLog)
	if each < smallestLog {
		return invalidf(ReasonVolumeFull,
			"there is room for %d bytes of logs, and %d writers need %d each: fill less, enlarge the volume, or use fewer writers",
			room, writers, smallestLog)
	}
	for i := range writers {
		e := extent{area.path, area.offset + i*each, each}
		if !s.volume.block {
			e = extent{logPath(s, int(i)), 0, each}
		}
		r.logs = append(r.logs, e)
	}
	return nil
}

// removeOld removes the logs of an earlier redo phase of this run, which may have had other writers.
func (r *redo) removeOld(s *session) error {
	for i := range 64 {
		err := os.Remove(logPath(s, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the logs of an earlier phase: %w", err)
		}
	}
	return nil
}

// layOut writes the logs once, as a database makes its logs before it uses them: appends then need no allocation.
func (r *redo) layOut(ctx context.Context, s *session) error {
	var jobs []fio.Job
	var bytes int64
	seed := s.random.next()
	for i, e := range r.logs {
		if !s.volume.block {
			if err := grow(e.path, e.bytes); err != nil {
				return fmt.Errorf("create the logs: %w", err)
			}
		}
		jobs = append(jobs, fio.Job{Name: fmt.Sprintf("log-%d", i), Mode: fio.Write, Paths: []string{e.path}, Offset: e.offset, Size: e.bytes,
			Workers:   1,
			BlockSize: mib, Seed: seed, EndSync: true, After: i > 0})
		bytes += e.bytes
	}
	s.progress.stretch("creating the logs", 0, 0, bytes, 0)
	_, _, err := s.runFIO(ctx, fio.NewFile(jobs...), expectation{aside: true})
	return err
}

func (r *redo) round(ctx context.Context, s *session, _ int) (figures, error) {
	seed, lasting := s.random.next(), length(r.given.Duration, defaultDuration)
	r.samples = fio.NewSamples(keptSamples, seed)
	var sum fio.Sum
	var unread, err error // samples are results, and a part of them would look complete
	if r.job.Sync == syncWithWrite {
		jobs := r.jobs(lasting, seed)
		sum, unread, err = s.logged(ctx, "redo", jobs, lasting, r.samples.Add)
		s.details.SampleWindowMilliseconds = jobs[0].LogWindow.Milliseconds()
	} else { // fio keeps no log of the syncs after writes
		sum, _, err = s.measureFIO(ctx, "redo", r.file(lasting, seed), 0, expectation{lasting: lasting})
	}
	if err = cmp.Or(err, unread); err != nil {
		return figures{}, err
	}
	if r.job.Sync != syncWithWrite && sum.Sync.Count < sum.Write.Operations-int64(len(r.logs)) {
		return figures{}, invalidf(ReasonNoNumbers, "fio synced %d times for %d appends: see its report", sum.Sync.Count, sum.Write.Operations)
	}
	return figures{sum: sum, throughput: float64(sum.Write.Operations) / sum.Duration.Seconds(), seed: seed}, nil
}

// jobs are the writers, each with its log.
func (r *redo) jobs(lasting time.Duration, seed int64) []fio.Job {
	var jobs []fio.Job
	for i, e := range r.logs {
		job := r.job
		job.Name, job.Paths, job.Offset, job.Size = fmt.Sprintf("redo-%d", i), []string{e.path}, e.offset, e.bytes
		job.Duration, job.Seed = lasting, seed
		jobs = append(jobs, job)
	}
	return jobs
}

func (r *redo) file(lasting time.Duration, seed int64) fio.File {
	return fio.NewFile(r.jobs(lasting, seed)...)
}

func (r *redo) ramped() { r.job.KeepCache = true }

// finish adds the latencies of durable appends: an append is durable when it returns, or when the sync after it does.
func (r *redo) finish(s *session, sum fio.Sum) error {
	durable := sum.Write.Latency
	if r.job.Sync != syncWithWrite {
		durable = sum.Sync
	}
	s.addShares(durable)
	s.details.Samples, s.details.SamplesSeen = r.samples.Kept(), r.samples.Seen
	if sum.Read.Operations > 0 || durable.Count == 0 || durable.Count > math.MaxInt64/2 {
		return invalidf(ReasonNoNumbers, "there are %d reads and %d latencies of appends: see the report of fio", sum.Read.Operations,
			durable.Count)
	}
	return nil
}
