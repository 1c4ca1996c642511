//go:build linux

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/workload"
)

const (
	volumeModeBlock = "Block"
	// namePrefix is the prefix of everything that this program creates on a volume.
	namePrefix   = "storagebench."
	maxDataFiles = 1024
)

// volume is a place that was verified to be the right one and is marked as ours.
type volume struct {
	place
	marker marker
	// freeAtFirst is how much of the file system was free when the phase began.
	freeAtFirst int64
}

// extent is a part of a file or device.
type extent struct {
	path          string
	offset, bytes int64
}

// claim checks that the volume belongs to this run, was left by the run whose data it keeps, or is empty, and marks it. Nothing is written
// before that.
func claim(p place, request workload.Request) (*volume, error) {
	read := func() (marker, bool, error) { return readFolderMarker(p.path) }
	if p.block {
		read = func() (marker, bool, error) { return readDeviceMarker(p.path, p.total) }
	}
	found, there, err := read()
	if err != nil {
		return nil, err
	}
	v := &volume{place: p, marker: found}
	if !p.block {
		if v.freeAtFirst, _, err = p.freeAndReserve(); err != nil {
			return nil, err
		}
	}
	switch kept := request.KeepsDataOf; {
	case there && found.Run == request.Run:
		return v, v.sameAsMarked()
	case kept != nil:
		return v, v.takeOver(there, *kept, request.Run)
	case there && !p.block:
		return nil, wrongPlace("the volume %s carries the data of run %s/%s (%s): each run needs its own volume",
			p.path, found.Run.Namespace, found.Run.Name, found.Run.UID)
	}
	// A device may carry the marker of an earlier run, whose data is useless.
	v.marker = marker{Version: markerVersion, Run: request.Run, FileSystem: p.mount.FSType, TotalBytes: p.total}
	return v, v.mark()
}

// sameAsMarked compares the volume with its marker.
func (v *volume) sameAsMarked() error {
	m := v.marker
	varies := v.shared || compresses(v.mount.FSType) // their size depends on what others write
	if m.FileSystem != v.mount.FSType || !varies && (v.total < m.TotalBytes-m.TotalBytes/50 || v.total > m.TotalBytes+m.TotalBytes/50) {
		return wrongPlace("the volume %s was %q with %d bytes when it was marked and is %q with %d bytes now: it is another one, or was "+
			"changed in between",
			v.path, m.FileSystem, m.TotalBytes, v.mount.FSType, v.total)
	}
	return nil
}

func (v *volume) mark() error {
	if v.block {
		return v.marker.writeAt(v.path, markerOffset, false)
	}
	return v.marker.writeAt(filepath.Join(v.path, markerName), 0, true)
}

// describeData records what a fill has written.
func (v *volume) describeData(d *data) error {
	v.marker.Data = d
	return v.mark()
}

// area is the part of a device that workloads may use.
func (v *volume) area() extent { return extent{v.path, reserved, v.total - 2*reserved} }

func (v *volume) dataPath(i int) string {
	return filepath.Join(v.path, fmt.Sprintf("%sdata.%04d", namePrefix, i))
}

// data returns the extents of the filled data, after checking that they were not changed since.
func (v *volume) data() ([]extent, error) {
	d := v.marker.Data
	if d == nil {
		return nil, invalidf(ReasonNoData, "there is no data on the volume: add a fill phase before this one")
	}
	if v.block {
		return []extent{{v.path, reserved, int64(d.Files) * d.FileBytes}}, nil
	}
	var extents []extent
	for i := range d.Files {
		path := v.dataPath(i)
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return nil, wrongPlace("the data of the fill phase: %w", err)
		case !info.Mode().IsRegular() || info.Size() != d.FileBytes:
			return nil, wrongPlace("%s has %d bytes and was filled with %d: it was changed since", path, info.Size(), d.FileBytes)
		}
		extents = append(extents, extent{path, 0, d.FileBytes})
	}
	return extents, nil
}

// grow extends a file to exactly this size, without writing to it: fio would remove a file that is too short.
func grow(path string, bytes int64) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && info.Size() > bytes {
		err = fmt.Errorf("%s already has %d bytes, more than %d", path, info.Size(), bytes)
	}
	if err == nil {
		err = file.Truncate(bytes)
	}
	return errors.Join(err, file.Close())
}

// allocation returns the space that a file takes on the disk, the offset of its first hole, and its size. The end of the file counts as a
// hole.
func allocation(path string) (allocated, hole, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { _ = file.Close() }()
	// This comes first, because it makes ZFS write out what the file has in memory, which is not counted until then.
	hole, holeErr := unix.Seek(int(file.Fd()), 0, unix.SEEK_HOLE)
	info, err := file.Stat()
	if err != nil {
		return 0, 0, 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0, fmt.Errorf("the allocation of %s is not known here", path)
	}
	switch {
	case errors.Is(holeErr, unix.ENXIO): // the file is empty
		hole, holeErr = 0, nil
	case errors.Is(holeErr, unix.EINVAL), errors.Is(holeErr, unix.EOPNOTSUPP): // the file system does not support this
		hole, holeErr = info.Size(), nil
	}
	return stat.Blocks * 512, hole, info.Size(), holeErr
}

// sync writes out everything that the kernel still holds for the volume, and waits for it.
func (v *volume) sync() error {
	file, err := os.Open(v.path)
	if err != nil {
		return err
	}
	if v.block {
		err = unix.Fsync(int(file.Fd()))
	} else {
		err = unix.Syncfs(int(file.Fd()))
	}
	if err = errors.Join(err, file.Close()); err == nil && v.mount.FSType == "zfs" {
		err = v.commit()
	}
	if err != nil {
		err = fmt.Errorf("write out what is cached for %s: %w", v.path, err)
	}
	return err
}

// commit waits until all writes to our files are in their final place on ZFS, and counted. On ZFS, a sync only makes them safe in the
// intent log. When ZFS searches a changed file for a hole, it waits until the transaction groups of the whole pool are written, so one file
// that is changed last is enough: to visit each of many small files would take longer than their writes. Other file systems need only the
// sync.
func (v *volume) commit() error {
	settled := func(path string) error {
		_, _, _, err := allocation(path)
		return err
	}
	marked := filepath.Join(v.path, markerName)
	if unix.UtimesNanoAt(unix.AT_FDCWD, marked, nil, unix.AT_SYMLINK_NOFOLLOW) != nil { // a full dataset may refuse even that
		return v.eachFile(settled)
	}
	return settled(marked)
}

// eachFile visits all files that are ours. A file that is removed meanwhile is skipped.
func (v *volume) eachFile(visit func(path string) error) error {
	ours, err := filepath.Glob(filepath.Join(v.path, namePrefix+"*"))
	for _, top := range ours {
		err = errors.Join(err, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				err = visit(path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		}))
	}
	return err
}

// takesDirect reports whether transfers of this size can bypass the page cache, by trying one.
func takesDirect(e extent, blockSize int64) bool {
	file, err := os.OpenFile(e.path, os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	buffer := pages(max(blockSize, 4096))
	// The second block of that size is aligned only if such blocks are.
	read, err := file.ReadAt(buffer[:blockSize], e.offset+min(blockSize, max(0, e.bytes-blockSize)))
	return err == nil && int64(read) == blockSize
}

// pages returns page-aligned memory, as transfers that bypass the page cache need it. It does not use mmap: a worker that still waits for
// the storage may use its memory after the phase is over, so the memory could not be unmapped.
func pages(bytes int64) []byte {
	page := int64(os.Getpagesize())
	all := make([]byte, bytes+page)
	at := page - int64(uintptr(unsafe.Pointer(&all[0]))%uintptr(page))
	return all[at : at+bytes]
}
