package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/internal/mountinfo"
)

// freeBytes is what an unprivileged user may still write into the file system of a folder.
func freeBytes(folder string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return 0, err
	}
	return int64(stat.Bavail) * stat.Bsize, nil
}

// device accepts a whole disk that was named twice, that nobody uses and on which nothing is known.
func (l Local) device(ctx context.Context, path, serial string, info fs.FileInfo) (*localStorage, error) {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return nil, exitf(ExitError, "--local %s: its device number cannot be read", path)
	}
	return l.disk(ctx, path, serial, fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev)))
}

// disk is device for the one with that number.
func (l Local) disk(ctx context.Context, path, serial, number string) (*localStorage, error) {
	refuse := func(format string, arguments ...any) (*localStorage, error) {
		return nil, exit(ExitRefused, fmt.Errorf("--local %s: %w", path, fmt.Errorf(format, arguments...)))
	}
	disk := sysDisk{root: l.Root, number: number, folder: filepath.Join(l.Root, "/sys/dev/block", number)}
	if serial == "" {
		return refuse("all that is on the device will be lost: name it a second time with --serial, as 'lsblk -o PATH,SERIAL,SIZE,MODEL' prints it")
	}
	if wrong := disk.unfit(); wrong != "" {
		return refuse("%s", wrong)
	}
	switch known := disk.serial(); {
	case known == "":
		return refuse("the kernel and udev know no serial number of it, so it cannot be named twice: use a folder on it instead")
	case known != serial: // which one it is stays unsaid: it has to come from somewhere else
		return refuse("its serial number is not %s: look which device you mean with 'lsblk -o PATH,SERIAL,SIZE,MODEL'", serial)
	}
	if err := openAlone(filepath.Join(l.Root, path)); err != nil {
		return refuse("%w", err)
	}
	if l.Signatures == nil {
		return refuse("this build cannot check what is on a device: use a folder on it instead")
	}
	found, err := l.Signatures.Signature(ctx, filepath.Join(l.Root, path))
	if err != nil {
		return refuse("look what is on it: %w", err)
	}
	if found != "" {
		return refuse("there is %s on it: name an empty device; if nobody needs what is there, 'blkdiscard --zeroout %s' empties it", found, path)
	}
	return &localStorage{path: path, mode: corev1.PersistentVolumeBlock, bytes: disk.bytes()}, nil
}

// openAlone fails if anybody on this machine has the device mounted or otherwise in use, in whatever namespace.
func openAlone(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_EXCL, 0)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return errors.New("it is in use: unmount it, or name another")
	case err != nil:
		return fmt.Errorf("%w: may you write to it?", err)
	}
	return file.Close()
}

// sysDisk reads what the kernel tells of a block device.
type sysDisk struct{ root, number, folder string }

// read is the first line of an attribute, empty if it is not there.
func (d sysDisk) read(attribute string) string {
	text, err := os.ReadFile(filepath.Join(d.folder, attribute))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// bytes is its size; the kernel counts in sectors of 512.
func (d sysDisk) bytes() int64 {
	sectors, err := strconv.ParseInt(d.read("size"), 10, 64)
	if err != nil {
		return 0
	}
	return sectors * 512
}

// unfit says why a device must not be written to, whatever its name.
func (d sysDisk) unfit() string {
	entries, err := os.ReadDir(d.folder)
	if err != nil {
		return "the kernel tells nothing of it: " + err.Error()
	}
	switch {
	case d.has("partition"):
		return "it is a partition: name the whole disk"
	case d.read("ro") == "1":
		return "it is read-only: name another"
	}
	for _, entry := range entries {
		if _, err := os.Stat(filepath.Join(d.folder, entry.Name(), "partition")); err == nil {
			return fmt.Sprintf("it has partitions (%s): name an empty disk", entry.Name())
		}
	}
	if holders, err := os.ReadDir(filepath.Join(d.folder, "holders")); err == nil && len(holders) > 0 {
		return fmt.Sprintf("it is part of %s: name another", holders[0].Name())
	}
	return d.mounted()
}

// mounted looks at the mounts and swaps that this process can see.
func (d sysDisk) mounted() string {
	text, err := os.ReadFile(filepath.Join(d.root, "/proc/self/mountinfo"))
	if err != nil {
		return "the mounts cannot be read: " + err.Error()
	}
	mounts, err := mountinfo.Parse(string(text))
	if err != nil {
		return "the mounts cannot be read: " + err.Error()
	}
	for _, mount := range mounts {
		if mount.Device == d.number {
			return fmt.Sprintf("it is mounted at %s: unmount it, or name another", mount.Point)
		}
	}
	swaps, err := os.ReadFile(filepath.Join(d.root, "/proc/swaps"))
	if err != nil {
		return "" // a kernel without swap
	}
	for line := range strings.Lines(string(swaps)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		var stat unix.Stat_t
		if unix.Stat(filepath.Join(d.root, fields[0]), &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFBLK &&
			fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev)) == d.number {
			return "it is swap space: name another"
		}
	}
	return ""
}

func (d sysDisk) has(attribute string) bool {
	_, err := os.Stat(filepath.Join(d.folder, attribute))
	return err == nil
}

// serial is the number by which the device is named a second time. Of a loop device, it is the file behind it, and of a
// device-mapper device its UUID: they have no other.
func (d sysDisk) serial() string {
	for _, attribute := range []string{"serial", "device/serial", "loop/backing_file", "dm/uuid"} {
		if text := d.read(attribute); text != "" {
			return text
		}
	}
	if page, err := os.ReadFile(filepath.Join(d.folder, "device/vpd_pg80")); err == nil && len(page) > 4 {
		if text := strings.Trim(string(page[4:]), " \x00\n"); text != "" {
			return text
		}
	}
	return d.udevSerial()
}

// udevSerial is what udev has found out by asking the device.
func (d sysDisk) udevSerial() string {
	text, err := os.ReadFile(filepath.Join(d.root, "/run/udev/data/b"+d.number))
	if err != nil {
		return ""
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, is := strings.Cut(strings.TrimSpace(line), "="); is {
			found[strings.TrimPrefix(key, "E:")] = value
		}
	}
	for _, key := range []string{"ID_SCSI_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL"} {
		if found[key] != "" {
			return found[key]
		}
	}
	return ""
}
