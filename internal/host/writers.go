package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// behind returns the member that an open file leads to. It is empty if the file leads to none. It does not wait for a file on a server that
// does not respond.
func (n *Node) behind(path string, members map[string]string) (string, error) {
	var status unix.Statx_t
	const flags = unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	err := unix.Statx(unix.AT_FDCWD, path, flags, unix.STATX_TYPE|unix.STATX_INO, &status)
	if errors.Is(err, unix.EACCES) {
		// If a FUSE file system admits only its own user, it answers root only if no attribute is requested. It cannot contain disks.
		if err := unix.Statx(unix.AT_FDCWD, path, flags, 0, &status); err == nil && status.Mask&unix.STATX_TYPE == 0 {
			return "", nil
		}
	}
	if err != nil {
		return "", err
	}
	number := fmt.Sprintf("%d:%d", status.Rdev_major, status.Rdev_minor)
	switch status.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		return members[number], nil
	case unix.S_IFCHR:
		return members[character+number], nil
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

// character begins the number of a character device in a map of members: block devices may have the same number.
const character = "c"

// withCharacters adds the character devices of a disk to its members: SCSI generic, bsg and NVMe generic. Through them, a program sends
// commands to the disk while its block device is not opened, and may be opened exclusively by others.
func (n *Node) withCharacters(kernel string, members map[string]string) (map[string]string, error) {
	all := maps.Clone(members)
	device := filepath.Join("sys/class/block", kernel, "device")
	for class, folder := range map[string]string{"scsi_generic": "", "bsg": "bsg"} {
		names, err := n.names(device, class)
		if err != nil {
			return all, err
		}
		for _, name := range names {
			number, err := n.text(device, class, name, "dev")
			if err != nil {
				return all, err
			}
			all[character+number] = filepath.Join(folder, name)
		}
	}
	if rest, isNVMe := strings.CutPrefix(kernel, "nvme"); isNVMe {
		name := "ng" + rest // below the controller or the subsystem, but always with the numbers of the disk
		number, err := n.text("sys/class/nvme-generic", name, "dev")
		if err != nil {
			return all, err
		}
		all[character+number] = name
	}
	return all, nil
}

// isCharacter reports whether a member is a character device.
func isCharacter(member string, members map[string]string) bool {
	for number, name := range members {
		if name == member {
			return strings.HasPrefix(number, character)
		}
	}
	return false
}

// title names a member in messages. The name of a character device does not show which disk it is.
func (d *Disk) title(member string, members map[string]string) string {
	if isCharacter(member, members) {
		return fmt.Sprintf("%s, a character device of %s,", member, d.Kernel)
	}
	return member
}

// mayWrite reports whether a process may write through an open file, according to its flags in fdinfo. In doubt, it reports true. A
// character device that is open only for reading counts too: the kernel lets privileged processes send any command through it, and nvme-cli
// opens all devices so. With O_PATH, a file is a mere reference. The state of a file that was closed in the meantime is empty.
func mayWrite(state string, toCharacter bool) bool {
	for line := range strings.Lines(state) {
		if text, found := strings.CutPrefix(line, "flags:"); found {
			flags, err := strconv.ParseUint(strings.TrimSpace(text), 8, 64)
			if toCharacter {
				return err != nil || flags&unix.O_PATH == 0
			}
			return err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY
		}
	}
	return state != ""
}
