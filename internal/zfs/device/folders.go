package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// RemoveFolders removes a folder of the node and those above it, below a top one that stays. One that is not empty, or that something is
// mounted on, stays as well, and with it those above.
func (n *Node) RemoveFolders(top, folder string) error {
	for folder = path.Clean(folder); strings.HasPrefix(folder, path.Clean(top)+"/"); folder = path.Dir(folder) {
		err := unix.Rmdir(n.path(folder)) // never a file, and never what is in it
		switch {
		case errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY):
			return nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("remove the folder %s of the node: %w", folder, &os.PathError{Op: "rmdir", Path: folder, Err: err})
		}
	}
	return nil
}
