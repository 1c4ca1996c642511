// Package host looks at the disks and mount points of a node. It decides whether a disk may be overwritten.
//
// It trusts no other party: a disk is taken only if it is a whole disk, is not in use as far as the kernel and all processes show, and is
// blank: at both ends, where known contents leave marks, and in samples of the rest. It only reads disks; the one exception is Wipe, for a
// disk whose serial number a user listed for that purpose.
package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Node reads /dev, /sys and /proc in the file system of a node.
type Node struct {
	root string
	// files lets regular files stand for devices, in tests.
	files bool
	// hanging names the process at which a search still hangs.
	hanging atomic.Pointer[string]
}

// NodeRoot is the node's file system, as seen by a privileged pod with hostPID.
const NodeRoot = "/proc/1/root"

// NewNode returns a Node for the file system below a root: "/" on the node itself, NodeRoot in a pod.
func NewNode(root string) *Node { return &Node{root: root} }

// NewFake returns a Node for a root made by a test, in which regular files stand for devices.
func NewFake(root string) *Node { return &Node{root: root, files: true} }

func (n *Node) path(parts ...string) string {
	return filepath.Join(append([]string{n.root}, parts...)...)
}

// text reads a small file of /sys or /proc, trimmed; empty if there is none.
func (n *Node) text(parts ...string) (string, error) {
	data, err := os.ReadFile(n.path(parts...))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// number reads a whole number from a file that must be there.
func (n *Node) number(parts ...string) (int64, error) {
	text, err := n.text(parts...)
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s holds %q: expected a whole number", filepath.Join(parts...), text)
	}
	return value, nil
}

// names lists a folder; empty if there is none.
func (n *Node) names(parts ...string) ([]string, error) {
	entries, err := os.ReadDir(n.path(parts...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

const linkLimit = 8

var (
	stablePattern = regexp.MustCompile(`^/dev/disk/by-(id|path)/[a-zA-Z0-9_][a-zA-Z0-9_.:@+-]*$`)
	kernelPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9!_-]*$`)
)

// resolve follows symlinks within the node's root to the kernel's name of a device, such as sdb.
func (n *Node) resolve(path string) (string, error) {
	for range linkLimit {
		target, err := os.Readlink(n.path(path))
		if errors.Is(err, unix.EINVAL) {
			name, inDev := strings.CutPrefix(path, "/dev/")
			if !inDev || !kernelPattern.MatchString(name) {
				return "", fmt.Errorf("%s is not a device directly below /dev", path)
			}
			return name, nil
		}
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
	}
	return "", fmt.Errorf("%s leads through more than %d symlinks", path, linkLimit)
}

// StablePath returns a path below /dev/disk that leads to the same disk as the given path, such as /dev/sdb. It returns the given path if
// there is none.
func (n *Node) StablePath(path string) (string, error) {
	kernel, err := n.resolve(path)
	if err != nil {
		return "", fmt.Errorf("following %s: %w", path, err)
	}
	if reason := n.notWhole(kernel); reason != "" {
		return "", &RefusedError{Path: path, Findings: []Finding{{Reason: NotWholeDisk, Detail: reason}}}
	}
	if stablePattern.MatchString(path) {
		return path, nil
	}
	for _, folder := range []string{"/dev/disk/by-id", "/dev/disk/by-path"} {
		names, err := n.names(folder)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			stable := filepath.Join(folder, name)
			if other, err := n.resolve(stable); err == nil && other == kernel && stablePattern.MatchString(stable) {
				return stable, nil
			}
		}
	}
	return path, nil
}

// open opens a device and ensures that it is the one that /sys describes. With O_EXCL it fails with EBUSY if the kernel uses the device in
// any namespace: as a mount, as a member of another device, or as swap.
func (n *Node) open(kernel, number string, flags int) (*os.File, error) {
	file, err := os.OpenFile(n.path("dev", kernel), flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := n.sameDevice(file, number); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (n *Node) sameDevice(file *os.File, number string) error {
	var status unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &status); err != nil {
		return err
	}
	if status.Mode&unix.S_IFMT != unix.S_IFBLK {
		if n.files && status.Mode&unix.S_IFMT == unix.S_IFREG {
			return nil
		}
		return fmt.Errorf("%s is not a block device", file.Name())
	}
	if found := fmt.Sprintf("%d:%d", unix.Major(status.Rdev), unix.Minor(status.Rdev)); found != number {
		return fmt.Errorf("%s is device %s, while /sys says %s", file.Name(), found, number)
	}
	return nil
}

// part is a partition as the kernel knows it, or another range of a disk.
type part struct {
	kernel, number string
	start, size    int64
}

// partitions returns the partitions of a disk from /sys, in the order of their position.
func (n *Node) partitions(kernel string) ([]part, error) {
	names, err := n.names("sys/class/block", kernel)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, name := range names {
		at := filepath.Join("sys/class/block", kernel, name)
		if index, err := n.text(at, "partition"); err != nil || index == "" {
			continue
		}
		number, err := n.text(at, "dev")
		start, startErr := n.number(at, "start")
		size, sizeErr := n.number(at, "size")
		if err := errors.Join(err, startErr, sizeErr); err != nil {
			return nil, err
		}
		parts = append(parts, part{kernel: name, number: number, start: start * sectorUnit, size: size * sectorUnit})
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	return parts, nil
}

// sectorUnit is the unit in which /sys counts sizes, whatever the disk's own sectors are.
const sectorUnit = 512

// readAt reads a range, or as much of it as exists.
func readAt(reader io.ReaderAt, offset, length int64) ([]byte, error) {
	return readInto(make([]byte, length), reader, offset)
}

// readInto fills a buffer, or as much of it as there is.
func readInto(data []byte, reader io.ReaderAt, offset int64) ([]byte, error) {
	count, err := reader.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:count], err
}
