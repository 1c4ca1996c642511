package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/internal/workload"
)

// localStorage replaces a volume on this machine.
type localStorage struct {
	// path is the folder in which each run gets its own folder, or the device that all runs use.
	path string
	// mode is the volumeMode of the replaced volume.
	mode corev1.PersistentVolumeMode
	// bytes are the size of a device, or the free space in the file system of a folder.
	bytes int64
	// verify checks that the path of a device still leads to the disk that was accepted.
	verify func() error
	// claim is the lock on the folder of the run in progress.
	claim *claim
}

// localPrefix begins the name of the folder of each run.
const localPrefix = "storagebench-"

// storageFor accepts a folder or a device, or returns the reason for the refusal.
func (l Local) storageFor(path, serial string) (*localStorage, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, exitf(ExitNotFound, "--local %s does not exist: create the folder, or use a device", path)
	case err != nil:
		return nil, exit(ExitError, err)
	case info.IsDir():
		return l.folder(path, serial)
	case info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0:
		return l.device(path, serial)
	}
	return nil, exitf(ExitRefused, "--local %s is neither a folder nor a block device: use one of them", path)
}

// device accepts a whole disk that was identified by path and serial number, and that is unused and empty.
func (l Local) device(path, serial string) (*localStorage, error) {
	refuse := func(err error) (*localStorage, error) {
		return nil, exit(ExitRefused, fmt.Errorf("--local %s: %w", path, err))
	}
	if serial == "" {
		return refuse(errors.New("the device will lose all data: confirm it with --serial, as 'lsblk -o " +
			"PATH,SERIAL,SIZE,MODEL' prints it"))
	}
	if l.Disks == nil {
		return refuse(errors.New("this build cannot check what is on a device: use a folder on it instead"))
	}
	bytes, verify, err := l.Disks.Accept(path, serial)
	if err != nil {
		return refuse(err)
	}
	return &localStorage{path: path, mode: corev1.PersistentVolumeBlock, bytes: bytes, verify: verify}, nil
}

func (l Local) folder(path, serial string) (*localStorage, error) {
	if serial != "" {
		return nil, exitf(ExitUsage, "--serial %s is for a device, but --local %s is a folder: remove --serial", serial, path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, exit(ExitError, err)
	}
	free, err := freeBytes(absolute)
	if err != nil {
		return nil, exitf(ExitError, "find the free space in %s: %w", path, err)
	}
	return &localStorage{path: absolute, mode: corev1.PersistentVolumeFilesystem, bytes: free}, nil
}

// suits checks that each variant can run on the storage.
func (s *localStorage) suits(checked *validated) error {
	classes := map[string]bool{}
	for i := range checked.slots {
		target := checked.slots[i].Target.StorageClass
		classes[target.Name] = true
		switch {
		case target.VolumeMode != s.mode && s.mode == corev1.PersistentVolumeBlock:
			return exitf(ExitRefused, "variant %q needs volumeMode %s, but %s is a device: write volumeMode: Block, or use a folder",
				checked.slots[i].Variant, target.VolumeMode, s.path)
		case target.VolumeMode != s.mode:
			return exitf(ExitRefused, "variant %q needs volumeMode %s, but %s is a folder: write volumeMode: Filesystem, or use a device",
				checked.slots[i].Variant, target.VolumeMode, s.path)
		case target.Size.Value() > s.bytes:
			return exitf(ExitRefused,
				"variant %q needs a volume of %s, but %s has room for %.2f GiB: reduce storageClass.size, or use larger storage",
				checked.slots[i].Variant, target.Size.String(), s.path, float64(s.bytes)/(1<<30))
		}
	}
	if len(classes) > 1 {
		return exitf(ExitRefused, "the variants have %d storage classes, but --local has one storage: compare classes in a cluster", len(classes))
	}
	return nil
}

// make creates the volume of a run: a new folder, or the device.
func (s *localStorage) make(run string) (path string, err error) {
	if s.mode == corev1.PersistentVolumeBlock {
		if err := s.verify(); err != nil {
			return "", exit(ExitRefused, fmt.Errorf("--local %s: %w", s.path, err))
		}
		return s.path, nil
	}
	path = filepath.Join(s.path, localPrefix+run)
	s.claim, err = claimFolder(path)
	if err == nil {
		if err = os.Mkdir(path, 0o700); err == nil {
			return path, nil
		}
		err = errors.Join(err, s.release())
	}
	if errors.Is(err, fs.ErrExist) {
		return "", exitf(ExitRefused,
			"%s already exists: the same experiment is still running there, or left it behind: use another folder, or delete it if nothing runs",
			path)
	}
	return "", exitf(ExitError, "create the folder of run %s: %w: is --local writable?", run, err)
}

// remove deletes the folder that make created. A device stays as it is.
func (s *localStorage) remove(path string) error {
	if s.mode == corev1.PersistentVolumeBlock {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return exitf(ExitError, "remove the folder of a run: %w: delete %s manually", err, path)
	}
	return s.release()
}

// release ends the claim on the folder of a run, which was removed or is retained.
func (s *localStorage) release() error {
	held := s.claim
	s.claim = nil
	if err := held.release(); err != nil {
		return exitf(ExitError, "release the folder of a run: %w", err)
	}
	return nil
}

// request returns the runner's request as in a pod, but with the local path.
func (s *localStorage) request(request workload.Request, path string) workload.Request {
	for i := range request.Parts {
		request.Parts[i].Request = s.request(request.Parts[i].Request, path)
	}
	request.VolumeMode, request.Path = string(s.mode), path
	if s.mode == corev1.PersistentVolumeFilesystem {
		request.Promised = workload.PromisedDirectory
	}
	return request
}

// String returns the name of the storage in the results.
func (s *localStorage) String() string { return fmt.Sprintf("local:%s", s.path) }
