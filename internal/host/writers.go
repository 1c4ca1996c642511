package host

import (
	"errors"
	"fmt"
	"os"
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

// forWriting reports whether a file is open for writing, according to its flags in fdinfo. In doubt, it reports true. The state of a file
// that was closed in the meantime is empty.
func forWriting(state string) bool {
	for line := range strings.Lines(state) {
		if text, found := strings.CutPrefix(line, "flags:"); found {
			flags, err := strconv.ParseUint(strings.TrimSpace(text), 8, 64)
			return err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY
		}
	}
	return state != ""
}
