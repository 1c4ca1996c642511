package operation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/host/mountinfo"
	"github.com/storagebench/storagebench/internal/naming"
)

// mountOf finds the mount of a dataset's root in the node's own mount namespace. The result has no Point if the dataset is not mounted
// there.
func (r *Reconciler) mountOf(dataset string) (found mountinfo.Mount, err error) {
	err = mountinfo.Read(r.onNode("/proc/1/mountinfo"), func(one mountinfo.Mount) error {
		if found.Point == "" && one.FSType == "zfs" && one.Source == dataset && one.Root == "/" {
			found = one
		}
		return nil
	})
	if err != nil {
		return mountinfo.Mount{}, fmt.Errorf("read the mounts of the node: %w", err)
	}
	return found, nil
}

// open opens a dataset, mounted or not, in a private mount: nothing outside of it is reachable through the result, and nothing
// remains after closing it.
func (r *Reconciler) open(dataset string, readOnly bool) (*os.Root, error) {
	return r.Disks.OpenDataset(dataset, readOnly)
}

// deviceNumber returns the device number of the file system of a file, as major:minor.
func deviceNumber(info fs.FileInfo) string {
	status, isUnix := unixStat(info)
	if !isUnix {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(status.Dev), unix.Minor(status.Dev))
}

// observeTarget checks whether the target of a copy is empty. An empty folder for pods does not count.
func (r *Reconciler) observeTarget(state *operations.State) error {
	if state.Operation.Status.StartedAt != nil || !state.Target.Exists || state.Target.Type != "filesystem" {
		return nil
	}
	root, err := r.open(state.Target.Name, true)
	if err != nil {
		return err
	}
	names, err := someNames(root, ".")
	state.Target.Empty = len(names) == 0
	if len(names) == 1 && names[0] == naming.VolumeFolder {
		inside, readErr := someNames(root, naming.VolumeFolder)
		state.Target.Empty = readErr == nil && len(inside) == 0
	}
	return errors.Join(err, root.Close())
}

// someNames returns up to two of the names in a folder.
func someNames(root *os.Root, folder string) ([]string, error) {
	opened, err := openFolder(root, folder)
	if err != nil {
		return nil, err
	}
	names, err := opened.Readdirnames(2)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, opened.Close())
}
