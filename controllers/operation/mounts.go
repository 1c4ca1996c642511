package operation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/plan"
)

// mount is where a dataset is mounted on the node.
type mount struct {
	at string
	// device is major:minor of the file system.
	device string
}

// mountOf finds where a dataset is mounted as a whole in the node's own namespace; empty if nowhere.
func (r *Reconciler) mountOf(dataset string) (mount, error) {
	text, err := os.ReadFile(r.onNode("/proc/1/mountinfo"))
	if err != nil {
		return mount{}, fmt.Errorf("read the mounts of the node: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		before, after, found := strings.Cut(line, " - ")
		fields, source := strings.Fields(before), strings.Fields(after)
		if found && len(fields) >= 5 && len(source) >= 2 && source[0] == "zfs" && unescape(source[1]) == dataset && fields[3] == "/" {
			return mount{at: unescape(fields[4]), device: fields[2]}, nil
		}
	}
	return mount{}, nil
}

// unescape reads the octal numbers by which the kernel writes blanks in paths.
func unescape(text string) string {
	var out strings.Builder
	for at := 0; at < len(text); at++ {
		if text[at] == '\\' && at+3 < len(text) {
			if value, err := strconv.ParseUint(text[at+1:at+4], 8, 8); err == nil {
				out.WriteByte(byte(value))
				at += 3
				continue
			}
		}
		out.WriteByte(text[at])
	}
	return out.String()
}

// open opens a mounted dataset, and makes sure that it is that: nothing outside of it is reached through what is returned.
func (r *Reconciler) open(dataset string) (*os.Root, error) {
	found, err := r.mountOf(dataset)
	if err != nil {
		return nil, err
	}
	if found.at == "" {
		return nil, fmt.Errorf("dataset %s is not mounted on the node", dataset)
	}
	root, err := os.OpenRoot(r.onNode(found.at))
	if err != nil {
		return nil, fmt.Errorf("open dataset %s at %s: %w", dataset, found.at, err)
	}
	device, err := deviceOf(root, ".")
	if err == nil && device != found.device {
		err = fmt.Errorf("dataset %s should be mounted at %s, but another file system is there", dataset, found.at)
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
		object.MountedAt = found.at
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

// eachFile walks the folders and files of a dataset, parents first, without following symlinks and without leaving it.
func eachFile(root *os.Root, use func(path string, info fs.FileInfo) error) error {
	device, err := deviceOf(root, ".")
	if err != nil {
		return err
	}
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.IsDir() && (deviceNumber(info) != device || path == ".zfs") {
			return fs.SkipDir
		}
		return use(path, info)
	})
}
