package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// RemoveFolders removes a folder of the node and its parents, up to a top folder that stays. A folder that is not empty, or that has a
// mount on or below it in any mount namespace, stays with its parents.
func (n *Node) RemoveFolders(top, folder string) error {
	for folder = path.Clean(folder); strings.HasPrefix(folder, path.Clean(top)+"/"); folder = path.Dir(folder) {
		if covered, err := n.covered(folder); err != nil || covered {
			return err
		}
		sealed := n.seal(top, folder, false)
		err := unix.Rmdir(n.path(folder)) // removes neither files nor the contents of a folder
		if err != nil && sealed {
			n.seal(top, folder, true)
		}
		switch {
		case errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY):
			return nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("remove the folder %s of the node: %w", folder, &os.PathError{Op: "rmdir", Path: folder, Err: err})
		}
	}
	return nil
}

// seal sets or clears the immutable flag of a mount point, and reports whether that changed it. If the flag cannot be cleared, rmdir fails
// and reports the error.
func (n *Node) seal(top, at string, set bool) bool {
	found, err := n.walk(top, at, false)
	if err != nil {
		return false
	}
	changed, err := found.immutable(set)
	return errors.Join(err, found.Close()) == nil && changed
}

// covered reports whether anything is mounted on or below a folder of the node, in any mount namespace. The kernel refuses to remove such a
// folder only if the mount is in the caller's namespace, here that of the pod. It would unmount a mount in another namespace.
func (n *Node) covered(folder string) (bool, error) {
	// Locate the folder in the file system that it lies on: a mount on the folder itself does not count here.
	above, err := n.mountAt(path.Dir(folder))
	if err != nil {
		return false, err
	}
	place, covered := above.PlaceOf(folder), false
	all := func(mountinfo.Mount) bool { return true }
	err = n.eachNamespace(func(_, thread string) error {
		return n.standing(thread, all, func(mount mountinfo.Standing) {
			if at, known := mount.Place(); known {
				covered = covered || place.Contains(at)
			} else { // its parent is unknown: compare the paths
				covered = covered || mountinfo.Place{Path: folder}.Contains(mountinfo.Place{Path: mount.Point})
			}
		})
	})
	return covered, err
}
