package device

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// writers are processes that have the disk or a partition of it open to write, such as a database or a virtual machine on a raw block
// volume: nothing in the kernel keeps others off what they use. Who only reads, as udev does after each change, is not counted.
func (n *Node) writers(disk *Disk, members map[string]string) error {
	processes, err := n.names("proc")
	if err != nil {
		return err
	}
	for _, process := range processes {
		if _, err := strconv.Atoi(process); err != nil {
			continue
		}
		kernels, err := n.written(process, members)
		if err != nil {
			return err
		}
		for _, kernel := range kernels {
			name, err := n.text("proc", process, "comm")
			if gone(err) {
				continue
			}
			if err != nil {
				return err
			}
			disk.find(InUse, "%s is open for writing in process %s (%s)", kernel, process, name)
		}
	}
	return nil
}

// written are those of the members that a process has open to write.
func (n *Node) written(process string, members map[string]string) (kernels []string, err error) {
	descriptors, err := n.names("proc", process, "fd")
	if err != nil && !gone(err) {
		return nil, fmt.Errorf("reading what process %s has open: %w", process, err)
	}
	for _, descriptor := range descriptors {
		kernel, err := n.behind(n.path("proc", process, "fd", descriptor), members)
		if gone(err) || err == nil && (kernel == "" || slices.Contains(kernels, kernel)) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading what process %s has open: %w", process, err)
		}
		state, err := n.text("proc", process, "fdinfo", descriptor)
		if err != nil && !gone(err) {
			return nil, err
		}
		if forWriting(state) {
			kernels = append(kernels, kernel)
		}
	}
	return kernels, nil
}

// behind is which of the members an open file is. A file of a server that does not answer is not waited for.
func (n *Node) behind(path string, members map[string]string) (string, error) {
	var status unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_INO, &status); err != nil {
		return "", err
	}
	if status.Mode&unix.S_IFMT == unix.S_IFBLK {
		return members[fmt.Sprintf("%d:%d", status.Rdev_major, status.Rdev_minor)], nil
	}
	if !n.files || status.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", nil
	}
	open, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	for _, kernel := range members {
		if device, err := os.Stat(n.path("dev", kernel)); err == nil && os.SameFile(open, device) {
			return kernel, nil
		}
	}
	return "", nil
}

// forWriting reads the flags of an open file.
func forWriting(state string) bool {
	for line := range strings.Lines(state) {
		if text, found := strings.CutPrefix(line, "flags:"); found {
			flags, err := strconv.ParseUint(strings.TrimSpace(text), 8, 64)
			return err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY
		}
	}
	return state != ""
}

// loops are loop devices on the disk or a partition of it. They are no holders of it, and no process has it open for them.
func (n *Node) loops(disk *Disk, members map[string]string) error {
	devices, err := n.names("sys/class/block")
	if err != nil {
		return err
	}
	for _, loop := range devices {
		file, err := n.text("sys/class/block", loop, "loop/backing_file")
		if err != nil {
			return err
		}
		if kernel := n.member(file, members); kernel != "" {
			disk.find(InUse, "%s is below %s", kernel, loop)
		}
	}
	return nil
}
