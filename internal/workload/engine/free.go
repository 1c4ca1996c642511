//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

const (
	// freeUnit divides the remaining size of each file, so that later phases find whole blocks.
	freeUnit = defaultFillBlock
	// freedPercent of the space that the files gave back has to appear as free space, within freePatience: file systems free space in the
	// background.
	freedPercent = 90
)

// freePatience is how long a file system may take to give space back.
const freePatience = 2 * time.Minute

// free truncates each file of the data. Data that was overwritten in random order is scattered over the disks, and so is the space that
// this frees. Holes would not do, because reading a hole costs nothing.
func (s *session) free(ctx context.Context, phase v1alpha1.FreePhase) error {
	share, err := parseShare(phase.Share)
	if err != nil {
		return err
	}
	if s.volume.block {
		return invalidf(ReasonNotPossible, "free needs a file system: write volumeMode: Filesystem, or remove the phase")
	}
	extents, err := s.volume.data()
	if err != nil {
		return err
	}
	told := *s.volume.marker.Data
	left := int64(float64(told.FileBytes)*(1-share)) / freeUnit * freeUnit
	if left <= 0 || left == told.FileBytes {
		return invalidf(ReasonNotPossible, "files of %d bytes are too small to free %s of them: fill more, or free another share", told.FileBytes,
			phase.Share)
	}
	if err := s.awaitStart(ctx, 0); err != nil {
		return err
	}
	before, err := s.measureSpace(ctx, extents)
	if err != nil {
		return err
	}
	s.began = s.clock.start()
	for _, e := range extents {
		if err := cut(e.path, left); err != nil {
			return fmt.Errorf("delete the end of the data: %w", err)
		}
	}
	told.FileBytes = left
	if err := s.volume.describeData(&told); err != nil {
		return err
	}
	err = s.awaitFreed(ctx, extents, before, share)
	s.ended = s.clock.start()
	if err != nil {
		return err
	}
	s.metrics["durationNanoseconds"] = (s.ended.elapsed - s.began.elapsed).Nanoseconds()
	return s.verifyAllocation(&filling{files: told.Files})
}

// cut truncates a file to a size.
func cut(path string, bytes int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(bytes), file.Close())
}

// measureSpace has the allocated bytes of the data files and of the volume, and the free bytes of the volume.
type space struct{ files, used, free int64 }

// measureSpace measures the space once all data is on the disk.
func (s *session) measureSpace(ctx context.Context, extents []extent) (now space, err error) {
	if now.used, err = s.usedAfterSync(ctx); err != nil {
		return now, err
	}
	for _, e := range extents {
		allocated, _, _, err := allocation(e.path)
		if err != nil {
			return now, err
		}
		now.files += allocated
	}
	_, now.free, _, err = statfs(s.volume.path)
	return now, err
}

// awaitFreed waits until the space that the files gave back is free. On a file system that others write to, only the allocation of the
// files shows that.
func (s *session) awaitFreed(ctx context.Context, extents []extent, before space, share float64) error {
	timer := s.clock.start()
	for {
		now, err := s.measureSpace(ctx, extents)
		if err != nil {
			return err
		}
		given, freed := before.files-now.files, now.free-before.free
		if s.volume.shared {
			freed = before.used - now.used
		}
		least := int64(share * float64(before.files) / 100 * freedPercent)
		if given >= least && freed >= given/100*freedPercent {
			s.metrics["freedBytes"], s.metrics["allocatedBytes"] = freed, now.used
			s.check("freed", true, "%d bytes are free that the data had; its files took %d bytes, and take %d", freed, before.files, now.files)
			return nil
		}
		if timer.spent() >= s.executor.freePatience {
			s.check("freed", false, "the files took %d bytes before and take %d now, and free space grew by %d bytes",
				before.files, now.files, freed)
			return invalidf(ReasonTargetMissed, "%s after the data was deleted, its files take %d bytes instead of %d, and only %d bytes more are "+
				"free: destroy the snapshots and clones that still hold it before this phase, and keep other writers off",
				s.executor.freePatience, now.files, before.files, freed)
		}
		if err := pause(ctx, quietWindow); err != nil {
			return err
		}
	}
}
