//go:build linux

package engine

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
)

const (
	defaultFillBlock = 128 << 10
	// maxFillSteps limits the number of steps in which a fill approaches its target. Only file systems that compress need more than one.
	maxFillSteps = 16
)

// filling is the state of one fill.
type filling struct {
	blockSize       int64
	compressPercent int
	files           int
	had, has        int64 // bytes in each file, before and now
	sum             fio.Sum
}

func (s *session) fill(ctx context.Context, phase v1alpha1.FillPhase) error {
	f := &filling{blockSize: size(phase.BlockSize, defaultFillBlock), files: 1}
	share, err := parseShare(phase.Compressibility)
	if err != nil {
		return err
	}
	f.compressPercent = int(math.Round(share * 100))
	if whole := s.request.Source != "" && s.request.VolumeSizeBytes == 0; phase.Of == "Pool" && !whole {
		return invalidf(ReasonNotPossible, "of: Pool: the volume is not the whole pool: write of: Volume, or remove the size of the dataset")
	}
	if !s.volume.block {
		f.files = int(max(s.request.DataFiles, 1))
	}
	if d := s.volume.marker.Data; d != nil {
		if _, err := s.volume.data(); err != nil {
			return err
		}
		if d.Files != f.files {
			return invalidf(ReasonNotPossible, "the volume was filled with %d files, but %d are requested: fill it again", d.Files, f.files)
		}
		f.had = d.FileBytes
	}
	f.has = f.had
	if err := s.awaitStart(ctx, 0); err != nil {
		return err
	}
	s.began = s.clock.start()
	switch {
	case s.request.KeepsDataOf != nil && f.had > 0:
		err = s.fillKept(ctx, f, phase)
	case s.volume.block:
		err = s.fillDevice(ctx, f, phase)
	default:
		err = s.fillFolder(ctx, f, phase)
	}
	s.ended = s.clock.start()
	if err != nil {
		return err
	}
	s.fillMetrics(f)
	return s.volume.describeData(&data{Files: f.files, FileBytes: f.has, CompressPercent: f.compressPercent})
}

// tolerance returns how close to its share a fill tries to get.
func (f *filling) tolerance(capacity int64) int64 {
	return max(capacity/200, int64(f.files)*f.blockSize+64<<10)
}

func (s *session) fillMetrics(f *filling) {
	s.addFigures(f.sum)
	s.metrics["filledBytes"] = (f.has - f.had) * int64(f.files)
}

// fillDevice writes a part of a device. The layers below may compress or be thin-provisioned, which is not visible here.
func (s *session) fillDevice(ctx context.Context, f *filling, phase v1alpha1.FillPhase) error {
	share, err := parseShare(phase.To)
	if err != nil {
		return err
	}
	wanted, usable := int64(share*float64(s.volume.total)), s.volume.area().bytes
	if phase.Size != nil {
		if wanted = f.had + phase.Size.Value(); wanted > usable {
			return invalidf(ReasonVolumeFull, "%d bytes do not fit: %s has room for %d; fill less, or enlarge it", wanted, s.volume.path, usable)
		}
	}
	add := min(wanted, usable)/f.blockSize*f.blockSize - f.had
	if add <= 0 {
		return invalidf(ReasonNotPossible, "%s already contains %d bytes, but %d are requested: request more", s.volume.path, f.had, wanted)
	}
	s.metrics["volumeBytes"] = s.volume.total
	if err := s.writeMore(ctx, f, add, 0, 1); err != nil {
		return err
	}
	s.check("filled", true, "%d bytes of %d (%.2f%%) hold data", f.has, s.volume.total, 100*float64(f.has)/float64(s.volume.total))
	return nil
}

// fillFolder writes until the requested amount is allocated, which may differ from what is written.
func (s *session) fillFolder(ctx context.Context, f *filling, phase v1alpha1.FillPhase) error {
	capacity, err := s.volume.capacity()
	if err != nil {
		return err
	}
	s.metrics["volumeBytes"] = capacity
	if phase.Size != nil {
		err = s.fillBytes(ctx, f, phase.Size.Value())
	} else {
		err = s.fillShare(ctx, f, phase.To, capacity)
	}
	if err != nil {
		return err
	}
	used, err := s.volume.used()
	if err != nil {
		return err
	}
	s.metrics["allocatedBytes"] = used
	return s.verifyAllocation(f)
}

// fillBytes writes this much data, however much space it takes on the disk.
func (s *session) fillBytes(ctx context.Context, f *filling, wanted int64) error {
	add := (wanted/int64(f.files) + f.blockSize - 1) / f.blockSize * f.blockSize
	room, err := s.volume.room()
	if err != nil {
		return err
	}
	if all := add * int64(f.files); all > room && !compresses(s.volume.mount.FSType) {
		return invalidf(ReasonVolumeFull, "%d bytes do not fit: %s has room for %d; fill less, or enlarge the volume", all, s.volume.path,
			room)
	}
	return s.writeMore(ctx, f, add, 0, 1)
}

// fillShare approaches the target in steps if the file system compresses: each step shows how much to write next.
func (s *session) fillShare(ctx context.Context, f *filling, to v1alpha1.Share, capacity int64) error {
	share, err := parseShare(to)
	if err != nil {
		return err
	}
	atFirst, err := s.usedAfterSync(ctx)
	if err != nil {
		return err
	}
	target := int64(share * float64(capacity))
	tolerance := f.tolerance(capacity)
	caution, dataPerByte := 1.0, 1.0
	if compresses(s.volume.mount.FSType) {
		caution = 0.6 // the first step may take more than it writes, on RAID-Z for example
	}
	used := atFirst
	for step := 0; step < maxFillSteps; step++ {
		add := int64(float64(target-used)*dataPerByte*caution) / int64(f.files) / f.blockSize * f.blockSize
		if add <= 0 {
			break
		}
		reached := float64(used-atFirst) / float64(target-atFirst)
		if err := s.writeMore(ctx, f, add, reached, reached+(1-reached)*caution); err != nil {
			return err
		}
		if used, err = s.volume.used(); err != nil {
			return err
		}
		if used > atFirst {
			dataPerByte = float64((f.has-f.had)*int64(f.files)) / float64(used-atFirst)
		}
		if caution = 0.95; target-used <= tolerance {
			break
		}
	}
	words := fmt.Sprintf("%d of %d bytes (%.2f%%) are allocated, but %s were requested", used, capacity, 100*float64(used)/float64(capacity),
		to)
	met := f.has > f.had && (used-target) <= 2*tolerance && (target-used) <= 2*tolerance
	s.check("filled", met, "%s", words)
	if f.has == f.had { // another attempt would find the same
		before, err := allocatedBelow(s.volume.path)
		if err != nil {
			return err
		}
		return invalidf(ReasonNotPossible, "%s: nothing is left to write, because files of earlier phases take %d of these bytes, logs of redo "+
			"among them: put the fill before those phases, request a larger share, or enlarge the volume", words, before)
	}
	if !met {
		return invalidf(ReasonTargetMissed, "%s: check the size of the volume, and what else writes to it", words)
	}
	return nil
}

// usedAfterSync returns the allocated bytes once all data is on the disk: file systems only count data that they have written, and they
// write late.
func (s *session) usedAfterSync(ctx context.Context) (int64, error) {
	if err := s.sync(ctx); err != nil {
		return 0, err
	}
	return s.volume.used()
}

// writeMore appends to every file of the data, one after another, and ends when all of it is on the disk.
func (s *session) writeMore(ctx context.Context, f *filling, add int64, from, to float64) error {
	room, err := int64(math.MaxInt64), error(nil)
	if !s.volume.block && s.volume.shared {
		if room, err = s.volume.room(); err != nil {
			return err
		}
	}
	if add > room/int64(f.files) {
		return invalidf(ReasonVolumeFull, "%d more bytes would leave too little space for other users of %s: use a smaller volume, or free "+
			"some space",
			add*int64(f.files), s.volume.path)
	}
	var jobs []fio.Job
	seed := s.random.next()
	for i := range f.files {
		e := extent{s.volume.path, reserved + f.has, add}
		if !s.volume.block {
			e = extent{s.volume.dataPath(i), f.has, add}
			if err := grow(e.path, f.has+add); err != nil {
				return fmt.Errorf("allocate space for the data: %w", err)
			}
		}
		jobs = append(jobs, fio.Job{Name: fmt.Sprintf("fill-%d", i), Mode: fio.Write, Paths: []string{e.path}, Offset: e.offset, Size: add,
			Workers: 1, BlockSize: f.blockSize, Seed: seed, Direct: s.direct(e, f.blockSize, false), CompressPercent: f.compressPercent,
			EndSync: true, After: i > 0})
	}
	s.progress.stretch("filling", from, to, add*int64(f.files), 0)
	sum, err := s.runToDisk(ctx, fio.NewFile(jobs...))
	if err != nil {
		return err
	}
	if sum.Write.Bytes != add*int64(f.files) {
		return invalidf(ReasonTargetMissed, "fio wrote %d bytes instead of %d: see its report", sum.Write.Bytes, add*int64(f.files))
	}
	f.has += add
	f.sum.Add(sum)
	return nil
}

// verifyAllocation makes sure that every byte of the data is allocated.
func (s *session) verifyAllocation(f *filling) error {
	var taken, bytes int64
	for i := range f.files {
		allocated, hole, size, err := allocation(s.volume.dataPath(i))
		if err != nil {
			return err
		}
		if hole < size {
			s.check("allocation", false, "%s has a hole at byte %d", s.volume.dataPath(i), hole)
			return invalidf(ReasonNotAllocated, "%s has a hole at byte %d of %d: reading a hole costs nothing, so it measures nothing",
				s.volume.dataPath(i), hole, size)
		}
		taken, bytes = taken+allocated, bytes+size
	}
	thin := taken < bytes-bytes/50
	s.check("allocation", !thin || compresses(s.volume.mount.FSType), "%d bytes of data take %d on the volume, without holes", bytes, taken)
	if compresses(s.volume.mount.FSType) && taken > 0 {
		s.metrics["compressionRatioMilli"] = int64(float64(bytes) / float64(taken) * 1000)
	} else if thin {
		return invalidf(ReasonNotAllocated, "%d bytes of data take only %d on %s: the data has holes, or the file system reports a wrong size",
			bytes, taken,
			s.volume.mount)
	}
	return nil
}

// parseShare reads "80%" as 0.8; an empty share is 0.
func parseShare(share v1alpha1.Share) (float64, error) {
	if share == "" {
		return 0, nil
	}
	percent, err := share.Percent()
	if err != nil {
		return 0, invalidf(ReasonNotPossible, "%w", err)
	}
	return percent / 100, nil
}

// direct decides whether a job bypasses the page cache. On ZFS none does: its own cache is part of what is measured.
func (s *session) direct(e extent, blockSize int64, warm bool) bool {
	does := !warm && s.volume.mount.FSType != "zfs" && takesDirect(e, blockSize)
	s.environment["workload.direct"] = strconv.FormatBool(does)
	return does
}

// compresses reports whether the file system may store data in less space than its size, so that the space proves nothing.
func compresses(fsType string) bool { return fsType == "zfs" || fsType == "btrfs" || fsType == "f2fs" }
