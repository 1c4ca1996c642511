//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
)

const (
	// mostArchived is the maximum number of archived segments that are kept. After that, each new one replaces the oldest, as if a backup
	// had moved it elsewhere.
	mostArchived = 64
	// leastArchived is how many archived segments have to fit on the volume in addition to everything else.
	leastArchived = 2
	archiveBlock  = mib
)

// archiver copies the full segments of a log one after another, in the order in which they became full.
type archiver struct {
	given     v1alpha1.RedoWorkload
	switching *switching
	delay     func(kind string)
	crowded   func() error
	folder    string
	keep      int
	kept      []string
	number    int
	buffer    []byte
	// under is the copy in progress. A measurement continues the copy that its ramp has begun.
	under *copying

	reads, writes, syncs    fio.Latency
	read, written           atomic.Int64
	archived, archivedBytes int64 // segments and their bytes
}

// copying is the copy of a segment.
type copying struct {
	*segment

	from, to *os.File
	done     int64
}

func (c *copying) close() error { return errors.Join(c.from.Close(), c.to.Close()) }

func (a *archiver) prepare(ctx context.Context, s *session) error {
	a.delay, a.crowded, a.folder = s.executor.delay, s.volume.crowded, filepath.Join(s.volume.path, namePrefix+"archive")
	if err := os.RemoveAll(a.folder); err != nil {
		return err
	}
	select { // the logs may be on the same volume
	case <-a.switching.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	room, err := s.volume.room()
	if err != nil {
		return err
	}
	if a.keep = int(min(room/2/a.switching.bytes, mostArchived)); a.keep < leastArchived {
		return invalidf(ReasonVolumeFull, "there is room for %d bytes of archived segments, and one has %d: enlarge the volume, or fill less",
			room/2, a.switching.bytes)
	}
	a.buffer = make([]byte, archiveBlock)
	return os.Mkdir(a.folder, 0o700)
}

func (a *archiver) round(ctx context.Context, s *session, _ int) (figures, error) {
	lasting := length(a.given.Duration, defaultDuration)
	s.progress.stretch("archiving", s.progress.from, s.progress.to, 0, lasting)
	if err := s.begin(ctx); err != nil {
		return figures{}, err
	}
	if err := s.startAsFIO(ctx); err != nil {
		return figures{}, err
	}
	s.bracket.workers, s.bracket.loop = 1, loop{workers: 1, idles: true} // it waits for full segments
	a.reads, a.writes, a.syncs, a.archived, a.archivedBytes = fio.Latency{}, fio.Latency{}, fio.Latency{}, 0, 0
	a.read.Store(0)
	a.written.Store(0)
	stop := s.recordEach(func() fio.Usage { return fio.Usage{ReadBytes: a.read.Load(), WrittenBytes: a.written.Load()} })
	began := time.Now()
	err := a.work(ctx, began.Add(lasting))
	took := time.Since(began)
	stop()
	if err != nil {
		return figures{}, err
	}
	flush, err := s.end(ctx, true)
	if err != nil {
		return figures{}, err
	}
	all := figures{sum: fio.Sum{Duration: took, Sync: a.syncs}}
	all.sum.Read = fio.Direction{Bytes: a.read.Load(), Operations: a.reads.Count, Latency: a.reads}
	all.sum.Write = fio.Direction{Bytes: a.written.Load(), Operations: a.writes.Count, Latency: a.writes}
	all.sum.Flushed(flush)
	all.metrics = map[string]int64{"archivedBytes": a.archivedBytes, "archivedSegments": a.archived}
	all.throughput = float64(a.archivedBytes) / all.sum.Duration.Seconds()
	return all, nil
}

func (a *archiver) ramp(ctx context.Context, _ *session, lasting time.Duration) error {
	return a.work(ctx, time.Now().Add(lasting))
}

func (a *archiver) finish(*session, fio.Sum) error {
	var err error
	if a.under != nil {
		err = a.under.close()
	}
	if a.archived == 0 {
		return errors.Join(err, invalidf(ReasonNoNumbers, "in %s no segment of %d bytes became full and was archived: measure longer, or use "+
			"fewer writers or a smaller volume", length(a.given.Duration, defaultDuration), a.switching.bytes))
	}
	return errors.Join(err, os.RemoveAll(a.folder))
}

// work copies segments until the time is over.
func (a *archiver) work(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	return inBackground(ctx, func() error {
		for ctx.Err() == nil && time.Now().Before(until) {
			if a.under == nil {
				select {
				case full := <-a.switching.full:
					if err := a.open(full); err != nil {
						return err
					}
				case <-timer.C:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if err := a.block(); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// open begins to copy a segment. The oldest one in the archive is removed if there is no room for another.
func (a *archiver) open(full *segment) error {
	if crowded := a.crowded(); crowded != nil {
		return crowded
	}
	if len(a.kept) == a.keep {
		if err := os.Remove(a.kept[0]); err != nil {
			return err
		}
		a.kept = a.kept[1:]
	}
	from, err := os.OpenFile(full.path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	path := filepath.Join(a.folder, fmt.Sprintf("segment.%08d", a.number))
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	a.number++
	a.kept, a.under = append(a.kept, path), &copying{segment: full, from: from, to: to}
	return nil
}

// block copies one block. After the last block of the segment, it makes the copy durable, and then the segment may be written again.
func (a *archiver) block() error {
	one := a.under
	block := a.buffer[:min(archiveBlock, one.bytes-one.done)]
	began := time.Now()
	if _, err := io.ReadFull(io.NewSectionReader(one.from, one.offset+one.done, int64(len(block))), block); err != nil {
		return err
	}
	read := time.Now()
	if a.delay != nil {
		a.delay("archive")
	}
	if _, err := one.to.Write(block); err != nil {
		return err
	}
	a.reads.Observe(read.Sub(began).Nanoseconds())
	a.writes.Observe(time.Since(read).Nanoseconds())
	a.read.Add(int64(len(block)))
	a.written.Add(int64(len(block)))
	if one.done += int64(len(block)); one.done < one.bytes {
		return nil
	}
	began = time.Now()
	if err := one.to.Sync(); err != nil {
		return err
	}
	a.syncs.Observe(time.Since(began).Nanoseconds())
	a.archived, a.archivedBytes, a.under = a.archived+1, a.archivedBytes+one.bytes, nil
	one.token <- struct{}{}
	return one.close()
}
