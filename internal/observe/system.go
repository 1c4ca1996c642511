package observe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// maxFileBytes is more than the size of any file in /proc or /sys that is read here; /proc/stat is the largest, with a line of all
// interrupts.
const maxFileBytes = 4 << 20

// system has the root of /proc and /sys; tests have trees of their own.
type system struct {
	root  string
	probe probe
}

// probe asks the kernel for facts that are in no file.
type probe interface {
	look(path string) (place, error)
	zvolName(path string) (string, error)
}

// place describes a path, according to the kernel.
type place struct {
	path      string // absolute, without symbolic links
	block     bool
	device    string // major:minor of a block device
	blockSize uint64 // of a file system as statfs reports it; on ZFS this is the recordsize
}

// read returns a whole file.
func (s system) read(path string) (string, error) {
	file, err := os.Open(filepath.Join(s.root, path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, bare(err))
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, bare(err))
	}
	if len(content) > maxFileBytes {
		return "", fmt.Errorf("%s: larger than %d bytes", path, maxFileBytes)
	}
	return string(content), nil
}

// bare removes the path from an error: messages already name it, and in tests it differs.
func bare(err error) error {
	if wrapped, is := errors.AsType[*fs.PathError](err); is {
		return wrapped.Err
	}
	return err
}

// word returns the line of a file with one line. It is empty if the file cannot be read.
func (s system) word(path string) string {
	text, err := s.read(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// number returns the whole number in a file. It is false if there is none.
func (s system) number(path string) (uint64, bool) {
	value, err := strconv.ParseUint(s.word(path), 10, 64)
	return value, err == nil
}

// list returns the sorted names in a folder; none if it can't be read.
func (s system) list(path string) []string {
	folder, err := os.Open(filepath.Join(s.root, path))
	if err != nil {
		return nil
	}
	defer func() { _ = folder.Close() }()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil
	}
	sort.Strings(names)
	return names
}

func (s system) exists(path string) bool {
	_, err := os.Stat(filepath.Join(s.root, path))
	return err == nil
}

// parent returns the real parent of a folder in sysfs, because the folder is often a link.
func (s system) parent(path string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(s.root, path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, bare(err))
	}
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		return "", err
	}
	inside, err := filepath.Rel(root, filepath.Dir(real))
	if err != nil {
		return "", err
	}
	return "/" + inside, nil
}

type realProbe struct{}

func (realProbe) look(path string) (place, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return place{}, err
	}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return place{}, bare(err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return place{}, bare(err)
	}
	found := place{path: real}
	raw, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return place{}, errors.New("this is not Linux")
	}
	if info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0 {
		found.block, found.device = true, deviceNumber(uint64(raw.Rdev)) //nolint:unconvert // 32 bits wide on some architectures
		return found, nil
	}
	var file syscall.Statfs_t
	if err := syscall.Statfs(real, &file); err == nil && file.Bsize > 0 {
		found.blockSize = uint64(file.Bsize)
	}
	return found, nil
}

// deviceNumber splits a dev_t as glibc does.
func deviceNumber(raw uint64) string {
	major := (raw>>8)&0xfff | (raw>>32)&^uint64(0xfff)
	minor := raw&0xff | (raw>>12)&^uint64(0xff)
	return fmt.Sprintf("%d:%d", major, minor)
}

// zvolNameRequest is BLKZNAME of OpenZFS, _IOR(0x12, 125, char[256]). It needs no privilege, only an open device.
const zvolNameRequest = 2<<30 | 256<<16 | 0x12<<8 | 125

func (realProbe) zvolName(path string) (string, error) {
	device, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = device.Close() }()
	var name [256]byte
	if _, _, number := syscall.Syscall(syscall.SYS_IOCTL, device.Fd(), zvolNameRequest, uintptr(unsafe.Pointer(&name[0]))); number != 0 {
		return "", fmt.Errorf("asking %s for its dataset: %w", path, number)
	}
	text, _, _ := bytes.Cut(name[:], []byte{0})
	return string(text), nil
}
