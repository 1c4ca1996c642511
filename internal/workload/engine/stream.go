//go:build linux

package engine

import (
	"context"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
)

// stream is a scan beside other workloads: it reads all data from the start again and again until they end. Its regions are not timed.
type stream struct {
	given v1alpha1.ScanWorkload
	job   fio.Job
}

func (c *stream) prepare(_ context.Context, s *session) error {
	extents, err := s.volume.data()
	if err != nil {
		return err
	}
	block := size(c.given.BlockSize, defaultScanBlock)
	c.job = fio.Job{Name: "scan", Mode: fio.Read, Workers: 1, BlockSize: block, Offset: extents[0].offset,
		Direct: s.direct(extents[0], block, false)}
	for _, e := range extents {
		c.job.Paths = append(c.job.Paths, e.path)
		c.job.Size += e.bytes / block * block
	}
	if c.job.Size == 0 {
		return invalidf(ReasonNotPossible, "the data is too small for blocks of %d bytes: fill more, or use smaller blocks", block)
	}
	return nil
}

func (c *stream) file(lasting time.Duration, seed int64) fio.File {
	job := c.job
	job.Duration, job.Seed = lasting, seed
	return fio.NewFile(job)
}

func (c *stream) ramped() { c.job.KeepCache = true }

func (c *stream) round(ctx context.Context, s *session, _ int) (figures, error) {
	seed := s.random.next()
	sum, _, err := s.measureFIO(ctx, "scan", c.file(s.beside.lasting, seed), 0, expectation{lasting: s.beside.lasting})
	return figures{sum: sum, throughput: float64(sum.Read.Bytes) / max(sum.Duration.Seconds(), 1e-9), seed: seed}, err
}

// finish says how often the data was read: from the second time on, a cache may serve it.
func (c *stream) finish(s *session, sum fio.Sum) error {
	times := float64(sum.Read.Bytes) / float64(c.job.Size)
	if times > 1 {
		s.note("the scan has read the data %.1f times: a cache may have served what was read before; fill more to read it once", times)
	}
	return nil
}
