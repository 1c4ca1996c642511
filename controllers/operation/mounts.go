package operation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/mountinfo"
	"github.com/storagebench/storagebench/internal/plan"
)

// mountOf finds where a dataset is mounted as a whole in the node's own namespace; without a point if nowhere.
func (r *Reconciler) mountOf(dataset string) (mountinfo.Mount, error) {
	text, err := os.ReadFile(r.onNode("/proc/1/mountinfo"))
	if err != nil {
		return mountinfo.Mount{}, fmt.Errorf("read the mounts of the node: %w", err)
	}
	mounts, err := mountinfo.Parse(string(text))
	if err != nil {
		return mountinfo.Mount{}, fmt.Errorf("the mounts of the node: %w", err)
	}
	for _, one := range mounts {
		if one.FSType == "zfs" && one.Source == dataset && one.Root == "/" {
			return one, nil
		}
	}
	return mountinfo.Mount{}, nil
}

// open opens a mounted dataset, and makes sure that it is that: nothing outside of it is reached through what is returned.
func (r *Reconciler) open(dataset string) (*os.Root, error) {
	found, err := r.mountOf(dataset)
	if err != nil {
		return nil, err
	}
	if found.Point == "" {
		return nil, fmt.Errorf("dataset %s is not mounted on the node", dataset)
	}
	root, err := os.OpenRoot(r.onNode(found.Point))
	if err != nil {
		return nil, fmt.Errorf("open dataset %s at %s: %w", dataset, found.Point, err)
	}
	device, err := deviceOf(root, ".")
	if err == nil && device != found.Device {
		err = fmt.Errorf("dataset %s should be mounted at %s, but another file system is there", dataset, found.Point)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// deviceOf is the file system that a file is on, as major:minor.
func deviceOf(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return "", err
	}
	return deviceNumber(info), nil
}

func deviceNumber(info fs.FileInfo) string {
	status, isUnix := unixStat(info)
	if !isUnix {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(status.Dev), unix.Minor(status.Dev))
}

// observeMounts tells where the datasets of a copy are mounted.
func (r *Reconciler) observeMounts(state *plan.OperationState) error {
	for _, object := range []*plan.OperationObject{&state.Source, &state.Target} {
		found, err := r.mountOf(object.Name)
		if err != nil {
			return err
		}
		object.MountedAt = found.Point
	}
	if state.Operation.Status.StartedAt != nil || state.Target.MountedAt == "" {
		return nil
	}
	root, err := r.open(state.Target.Name)
	if err != nil {
		return err
	}
	folder, err := root.Open(".")
	if err != nil {
		return errors.Join(err, root.Close())
	}
	names, err := folder.Readdirnames(2)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	state.Target.Empty = len(names) == 0
	return errors.Join(err, folder.Close(), root.Close())
}
