//go:build linux

package engine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/fio"
)

// readers are the streams of a scan. Like the workers of a parallel query, each takes the next region that no stream has begun, until none
// is left. So a stream that the storage serves less often reads fewer regions, and all end together. Jobs of fio cannot share regions like
// that.
type readers struct {
	*scan
	files map[string]*os.File
	crew  []*reader
	delay func(kind string)
	// begun are the regions that streams have taken, and read, operations and slowest are for the series over time.
	begun, read, operations, slowest atomic.Int64
}

// reader is one of the streams.
type reader struct {
	*readers
	number  int
	buffer  []byte
	latency fio.Latency
	ended   time.Duration
}

// inStreams reads the regions in several streams.
func (c *scan) inStreams(ctx context.Context, s *session, message string, bytes int64) (fio.Sum, error) {
	all := &readers{scan: c, files: map[string]*os.File{}, delay: s.executor.delay}
	defer all.close()
	if err := all.open(s); err != nil {
		return fio.Sum{}, err
	}
	s.progress.stretch(message, s.progress.from, s.progress.to, bytes, 0)
	if err := s.begin(ctx); err != nil {
		return fio.Sum{}, err
	}
	s.bracket.workers, s.bracket.loop = c.streams, loop{workers: c.streams}
	stop := s.recordEach(func() fio.Usage {
		s.recorder.took(all.slowest.Swap(0))
		return fio.Usage{ReadBytes: all.read.Load(), Operations: all.operations.Load()}
	})
	began := time.Now()
	err := crewed(ctx, len(all.crew), func(ctx context.Context, number int) error { return all.crew[number].work(ctx, began) })
	stop()
	if err != nil {
		return fio.Sum{}, err
	}
	if _, err := s.end(ctx, false); err != nil {
		return fio.Sum{}, err
	}
	sum := fio.Sum{Duration: c.judge(s, all.crew)}
	for _, one := range all.crew {
		sum.Read.Latency.Add(one.latency)
	}
	sum.Read.Bytes, sum.Read.Operations = all.read.Load(), sum.Read.Latency.Count
	return sum, nil
}

// open opens the files of the data and, unless the cache has to be warm, drops them from the page cache, as fio does before a job.
func (a *readers) open(s *session) error {
	for _, e := range a.extents {
		flags := os.O_RDONLY | unix.O_NOFOLLOW
		if s.direct(e, a.block, a.warm) {
			flags |= unix.O_DIRECT
		}
		file, err := os.OpenFile(e.path, flags, 0)
		if err != nil {
			return err
		}
		a.files[e.path] = file
		if a.warm {
			continue
		}
		if err := unix.Fadvise(int(file.Fd()), e.offset, e.bytes, unix.FADV_DONTNEED); err != nil {
			return fmt.Errorf("drop the page cache of %s: %w", e.path, err)
		}
	}
	for number := range a.streams {
		a.crew = append(a.crew, &reader{readers: a, number: number, buffer: pages(a.block)})
	}
	return nil
}

func (a *readers) close() {
	for _, file := range a.files {
		_ = file.Close()
	}
}

// work reads regions until none is left.
func (r *reader) work(ctx context.Context, began time.Time) error {
	for ctx.Err() == nil {
		at := r.begun.Add(1) - 1
		if at >= int64(len(r.timed)) {
			r.ended = time.Since(began)
			return nil
		}
		if err := r.region(&r.timed[at]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (r *reader) region(region *Region) error {
	region.Stream = r.number
	began := time.Now()
	for _, piece := range r.pieces(region.Index) {
		for offset := piece.offset; offset < piece.offset+piece.bytes; offset += r.block {
			if err := r.next(region.Index, piece.path, offset); err != nil {
				return err
			}
			region.Bytes += r.block
		}
	}
	region.Nanoseconds = time.Since(began).Nanoseconds()
	return nil
}

// next reads one block.
func (r *reader) next(region int, path string, offset int64) error {
	began := time.Now()
	if r.delay != nil {
		r.delay(fmt.Sprintf("region %d", region))
	}
	if _, err := r.files[path].ReadAt(r.buffer, offset); err != nil {
		return fmt.Errorf("read %d bytes at %d of %s: %w", len(r.buffer), offset, path, err)
	}
	took := time.Since(began).Nanoseconds()
	r.latency.Observe(took)
	raise(&r.slowest, took)
	r.read.Add(r.block)
	r.operations.Add(1)
	return nil
}

// One stream may work this much longer than another one.
const (
	streamsPercent = 10
	streamsSlack   = 100 * time.Millisecond
)

// judge returns how long the scan took until the last stream ended, and checks that the streams ended together. A stream that finds no more
// regions leaves the storage to the others, and the rate is then no longer that of all streams.
func (c *scan) judge(s *session, crew []*reader) time.Duration {
	earlier := func(a, b *reader) int { return cmp.Compare(a.ended, b.ended) }
	common, longest := slices.MinFunc(crew, earlier).ended, slices.MaxFunc(crew, earlier).ended
	words := fmt.Sprintf("all %d streams read together for %s, and the longest took %s", len(crew), common.Round(time.Millisecond),
		longest.Round(time.Millisecond))
	together := longest-common <= longest*streamsPercent/100+streamsSlack
	if s.check("streams", together, "%s", words); !together {
		c.apart = words + ": write more regions, or fill more"
	}
	return longest
}
