//go:build linux

package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/workload"
)

const (
	defaultOLTPBlock = 8 << 10
	defaultWorkers   = 8
	defaultDuration  = 5 * time.Minute
)

// oltp is random reads and updates by many workers.
type oltp struct {
	given v1alpha1.OLTPWorkload
	warm  bool
	jobs  []fio.Job
	// writes is the requested share of writes, and planned the share that fio can reach with whole percentages.
	writes, planned float64
}

func (o *oltp) prepare(ctx context.Context, s *session) error {
	extents, err := s.volume.data()
	if err != nil {
		return err
	}
	blockSize := size(o.given.BlockSize, defaultOLTPBlock)
	job := fio.Job{BlockSize: blockSize, KeepCache: o.warm, Think: length(o.given.ThinkTime, 0),
		Direct: s.direct(extents[0], blockSize, o.warm)}
	if d := s.volume.marker.Data; d != nil {
		job.CompressPercent = d.CompressPercent
	}
	if err := o.divide(job, extents); err != nil {
		return err
	}
	if o.warm {
		return s.warmUp(ctx, extents)
	}
	return nil
}

func (o *oltp) ramped() {
	for i := range o.jobs {
		o.jobs[i].KeepCache = true
	}
}

// divide lets all workers use all data, or gives each its own files. No worker gets its own region of a file: a worker whose region fits
// into the cache of ZFS does not wait for the disks, reads its blocks more often than the others, and so keeps them cached. In the lab,
// with half of the data fitting into the cache, 98% of the reads came from it, and the CPU determined the rate.
func (o *oltp) divide(job fio.Job, extents []extent) error {
	workers, files := defaultWorkers, len(extents)
	if o.given.Workers > 0 {
		workers = int(o.given.Workers)
	}
	apart := o.given.Layout == workload.LayoutFilePerWorker && workers > 1
	if apart && files%workers != 0 {
		return invalidf(ReasonNotPossible,
			"the data is in %d files, which cannot be divided evenly among %d workers with layout %s: use the same workers and layout in all oltp "+
				"phases",
			files, workers, o.given.Layout)
	}
	o.writes = float64(o.given.UpdatePercent) / float64(100+o.given.UpdatePercent)
	low, more := wholePercents(o.writes, workers)
	o.planned = (float64(low*workers) + float64(more)) / float64(100*workers)
	if apart {
		each := files / workers
		for i := range workers {
			o.add(job, extents[i*each:(i+1)*each], 1, percentOf(low, i >= workers-more))
		}
	} else {
		o.add(job, extents, workers-more, low)
		o.add(job, extents, more, low+1)
	}
	for _, j := range o.jobs {
		if j.Size < j.BlockSize {
			return invalidf(ReasonNotPossible, "the data of a worker is smaller than a block of %d bytes: fill more", job.BlockSize)
		}
	}
	return nil
}

// wholePercents divides a share of writes among the workers, because fio takes only whole percents: low is the percentage of each, and more
// is how many get one percent more, so that all together come as close as possible to the share.
func wholePercents(share float64, workers int) (low, more int) {
	low = int(math.Floor(share*100 + 1e-9))
	return low, int(math.Round((share*100 - float64(low)) * float64(workers)))
}

func percentOf(low int, oneMore bool) int {
	if oneMore {
		return low + 1
	}
	return low
}

func (o *oltp) add(job fio.Job, extents []extent, workers, writePercent int) {
	if workers == 0 {
		return
	}
	job.Name, job.Workers, job.WritePercent, job.Offset = fmt.Sprintf("oltp-%d", len(o.jobs)), workers, writePercent, extents[0].offset
	job.Mode = fio.RandomMix
	if writePercent == 0 {
		job.Mode = fio.RandomRead
	}
	for _, e := range extents {
		job.Paths = append(job.Paths, e.path)
		job.Size += e.bytes / job.BlockSize * job.BlockSize
	}
	o.jobs = append(o.jobs, job)
}

func (o *oltp) file(lasting time.Duration, seed int64) fio.File {
	return fio.NewFile(o.seeded(lasting, seed)...)
}

func (o *oltp) seeded(lasting time.Duration, seed int64) []fio.Job {
	jobs := make([]fio.Job, len(o.jobs))
	for i, job := range o.jobs {
		job.Duration, job.Seed = lasting, seed
		jobs[i] = job
	}
	return jobs
}

func (o *oltp) round(ctx context.Context, s *session, _ int) (figures, error) {
	seed, lasting := s.random.next(), length(o.given.Duration, defaultDuration)
	sum, unread, err := s.logged(ctx, "oltp", o.seeded(lasting, seed), lasting, func(fio.Sample) {})
	if unread != nil {
		s.note("latencies over time are incomplete: %v", unread)
	}
	operations := sum.Read.Operations + sum.Write.Operations
	return figures{sum: sum, throughput: float64(operations) / max(sum.Duration.Seconds(), 1e-9), seed: seed}, err
}

// finish checks the mix: with U percent updates there are U writes to 100 reads.
func (o *oltp) finish(s *session, sum fio.Sum) error {
	operations := float64(sum.Read.Operations + sum.Write.Operations)
	measured := float64(sum.Write.Operations) / operations
	chance := 4 * math.Sqrt(o.planned*(1-o.planned)/operations) // four standard deviations of the random choice
	allowed := 0.01*o.writes + math.Abs(o.planned-o.writes) + chance
	met := math.Abs(measured-o.writes) <= allowed
	words := fmt.Sprintf("%d updates to 100 reads are %.2f%% writes, and %.2f%% of %.0f operations were writes", o.given.UpdatePercent,
		100*o.writes, 100*measured, operations)
	s.check("mix", met, "%s", words)
	if !met {
		return invalidf(ReasonMixMissed, "%s: see the report of fio", words)
	}
	return nil
}
