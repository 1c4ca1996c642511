//go:build linux

package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
	"github.com/storagebench/storagebench/internal/workload"
)

const (
	mib = 1 << 20
	// reserved is the size of the area at each end of a device that workloads do not touch: it has the signatures of whatever uses the
	// device, and the marker.
	reserved = 2 * mib
)

// place is where a phase may write.
type place struct {
	path     string
	block    bool
	mount    mountinfo.Mount
	promised int64
	// total is the size of the volume. If the file system is shared with others, it is at most what was requested.
	total  int64
	shared bool
}

// String describes the place in checks and refusals.
func (p place) String() string {
	if p.block {
		return fmt.Sprintf("the block device %s of %d bytes", p.path, p.total)
	}
	kind := "the volume"
	if p.shared {
		kind = "a part of a file system that others may use too,"
	}
	return fmt.Sprintf("%s %s, %s, taken as %d bytes", kind, p.path, p.mount, p.total)
}

// findPlace makes sure that the path is what the request promises. It writes nothing.
func findPlace(request workload.Request, allowFile bool) (place, error) {
	real, err := filepath.EvalSymlinks(request.Path)
	if err != nil {
		return place{}, wrongPlace("%s, where the volume should be: %w", request.Path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return place{}, wrongPlace("%s, where the volume should be: %w", request.Path, err)
	}
	p := place{path: real, block: request.VolumeMode == volumeModeBlock, promised: request.VolumeSizeBytes}
	isDevice := info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0 || allowFile && info.Mode().IsRegular()
	switch {
	case p.block && !isDevice:
		return place{}, wrongPlace("a block device was expected at %s, but there is %s: check the volumeDevices of the pod", request.Path,
			kindOf(info))
	case !p.block && !info.IsDir():
		return place{}, wrongPlace("a file system was expected at %s, but there is %s: check the volumeMounts of the pod", request.Path,
			kindOf(info))
	case p.block:
		return p.measureDevice()
	}
	return p.measureFolder(request.Promised == workload.PromisedDirectory, request.Source)
}

func wrongPlace(format string, args ...any) error {
	return &invalid{ReasonWrongPlace, fmt.Errorf("nothing was written: "+format, args...)}
}

func kindOf(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "a directory"
	case info.Mode().IsRegular():
		return "a plain file"
	case info.Mode()&fs.ModeCharDevice != 0:
		return "a character device"
	case info.Mode()&fs.ModeDevice != 0:
		return "a block device"
	}
	return "something else (" + info.Mode().String() + ")"
}

func (p place) measureDevice() (place, error) {
	device, err := os.Open(p.path)
	if err != nil {
		return place{}, wrongPlace("the device cannot be opened: %w: give the user of the pod access to it", err)
	}
	defer func() { _ = device.Close() }()
	p.total, err = device.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
		return place{}, wrongPlace("the size of %s cannot be found: %w", p.path, err)
	case p.total < p.promised:
		return place{}, wrongPlace("%s has %d bytes instead of %d: it is another device", p.path, p.total, p.promised)
	case p.total < 4*reserved:
		return place{}, wrongPlace("%s has %d bytes: at least %d are needed", p.path, p.total, 4*reserved)
	}
	return p, nil
}

// measureFolder checks the mount. A volume of a pod is a mount of its own; any other directory is on the node's own disk.
func (p place) measureFolder(plain bool, source string) (place, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return place{}, wrongPlace("the mounts cannot be read: %w", err)
	}
	mounts, err := mountinfo.Parse(string(text))
	if err != nil {
		return place{}, wrongPlace("/proc/self/mountinfo: %w", err)
	}
	if p.mount, err = mountinfo.At(mounts, p.path); err != nil {
		return place{}, wrongPlace("%w", err)
	}
	size, _, _, err := statfs(p.path)
	if err != nil {
		return place{}, wrongPlace("%w", err)
	}
	switch {
	case !plain && p.mount.Point != p.path:
		return place{},
			wrongPlace("%s is a directory on the node's own disk (%s, mounted at %s), but a volume was expected: "+
				"check the volumeMounts of the pod",
				p.path, p.mount, p.mount.Point)
	case source != "" && (p.mount.FSType != "zfs" || p.mount.Source != source):
		return place{}, wrongPlace("the ZFS dataset %s was expected at %s, but there is %s: it is another volume", source, p.path, p.mount)
	case plain && p.path == "/":
		return place{}, wrongPlace("the root of the file system cannot be used for a benchmark: use a separate directory")
	case p.mount.ReadOnly():
		return place{}, &invalid{ReasonReadOnly, fmt.Errorf("the volume %s is mounted read-only: %s", p.path, p.mount)}
	case size < p.promised/2:
		return place{}, wrongPlace("%s has %d bytes instead of %d: it is another volume", p.path, size, p.promised)
	}
	bound := p.mount.Root != "/" && strings.HasPrefix(p.mount.Source, "/dev/")
	whole := source != "" && p.promised == 0 // a dataset without a limit of its own
	p.shared = plain || bound || !whole && size > p.promised+p.promised/4+64*mib
	p.total = size
	if p.shared {
		p.total = min(size, p.promised)
	}
	return p, nil
}

// capacity is how much can be allocated on the volume. Space that only root may use does not count, as in df.
func (p place) capacity() (int64, error) {
	if p.block || p.shared {
		return p.total, nil
	}
	total, free, available, err := statfs(p.path)
	return total - free + available, err
}

// used is how much of the volume is allocated.
func (p place) used() (int64, error) {
	if p.shared {
		return allocatedBelow(p.path)
	}
	total, free, _, err := statfs(p.path)
	return total - free, err
}

// room is how much a phase may still write. On a file system that others use, some is left to them.
func (p place) room() (int64, error) {
	free, least, err := p.freeAndReserve()
	if err != nil || !p.shared {
		return free, err
	}
	used, err := p.used()
	return max(0, min(free-least, p.total-used)), err
}

// freeAndReserve is how much space is free, and how much of it has to be left to others.
func (p place) freeAndReserve() (free, least int64, err error) {
	total, _, free, err := statfs(p.path)
	return free, min(total/20, 1<<30), err
}

// statfs returns the size of a file system in bytes, its free space, and the part of that which users other than root may use.
func statfs(path string) (total, free, available int64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return 0, 0, 0, fmt.Errorf("the space on %s cannot be found: %w", path, err)
	}
	return int64(stat.Blocks) * stat.Frsize, int64(stat.Bfree) * stat.Frsize, int64(stat.Bavail) * stat.Frsize, nil
}

// allocatedBelow adds up the space that files take on the disk, which is not their size.
func allocatedBelow(folder string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil // such as lost+found
			}
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
			sum += stat.Blocks * 512
		}
		return nil
	})
	return sum, err
}
