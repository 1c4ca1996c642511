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
	"github.com/storagebench/storagebench/internal/naming"
)

const (
	// below keeps a walk within the folder where it began: through no symlink, and into nothing that is mounted on the way.
	below = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
	// flagImmutable is FS_IMMUTABLE_FL.
	flagImmutable = 0x10
	onlyRoot      = 0o700
)

// folder is an open folder of the node.
type folder struct {
	*os.File
	path string
}

func (f folder) fd() int { return int(f.Fd()) } //nolint:gosec // a file descriptor

// at opens a folder below this one.
func (f folder) at(name string, how uint64) (folder, error) {
	at := path.Join(f.path, name)
	fd, err := unix.Openat2(f.fd(), name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: how})
	if err != nil {
		return folder{}, fmt.Errorf("walk to %s of the node without following links and into mounts: %w", at,
			&os.PathError{Op: "openat2", Path: at, Err: err})
	}
	return folder{os.NewFile(uintptr(fd), at), at}, nil
}

// make makes a folder below this one, which only root looks into, and opens it.
func (f folder) make(name string) (folder, error) {
	err := unix.Mkdirat(f.fd(), name, onlyRoot)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return folder{}, fmt.Errorf("make the folder %s/%s of the node: %w", f.path, name, err)
	}
	return f.at(name, below)
}

// top opens a folder of the node that is root's, and may be reached through links and mounts; with missing ones made, if asked.
func (f folder) top(at string, missing bool) (folder, error) {
	inside := path.Join(".", at)
	found, err := f.at(inside, unix.RESOLVE_IN_ROOT)
	if !missing || inside == "." || !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	parent, err := f.top(path.Dir(at), true)
	if err != nil {
		return folder{}, err
	}
	const everybodyReads = 0o755
	err = unix.Mkdirat(parent.fd(), path.Base(at), everybodyReads)
	if err := errors.Join(err, parent.Close()); err != nil {
		return folder{}, fmt.Errorf("make the folder %s of the node: %w", at, err)
	}
	return f.at(inside, unix.RESOLVE_IN_ROOT)
}

// walk opens a folder below a top one; with missing ones made, if asked.
func (n *Node) walk(top, to string, missing bool) (folder, error) {
	rest, inside := strings.CutPrefix(path.Clean(to), path.Clean(top)+"/")
	if !inside {
		return folder{}, fmt.Errorf("%s is not below %s", to, top)
	}
	root, err := os.Open(n.path("/"))
	if err != nil {
		return folder{}, err
	}
	here, err := folder{root, "/"}.top(path.Clean(top), missing)
	if err = errors.Join(err, root.Close()); err != nil {
		return folder{}, err
	}
	here.path = path.Clean(top)
	if !missing {
		found, err := here.at(rest, below)
		return found, errors.Join(err, here.Close())
	}
	for name := range strings.SplitSeq(rest, "/") {
		next, err := here.make(name)
		if err = errors.Join(err, here.Close()); err != nil {
			return folder{}, err
		}
		here = next
	}
	return here, nil
}

// immutable sets or clears the flag that prevents even root from creating anything in a folder or changing its owner. What is mounted on
// it is not concerned. Some file systems do not have it.
func (f folder) immutable(set bool) (changed bool, err error) {
	flags, err := unix.IoctlGetUint32(f.fd(), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return false, err
	}
	wanted := flags &^ flagImmutable
	if set {
		wanted = flags | flagImmutable
	}
	if wanted == flags {
		return false, nil
	}
	err = unix.IoctlSetPointerInt(f.fd(), unix.FS_IOC_SETFLAGS, int(wanted))
	return err == nil, err
}

// unknown says that a file system does not have a flag.
func unknown(err error) bool {
	return errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL)
}

// MakeMountPoint makes the folder that a dataset is to be mounted on, and makes sure that nothing can be written to it while nothing is
// mounted there: it is empty and immutable, or, on a file system without that flag, at least root's alone.
func (n *Node) MakeMountPoint(top, point string) error {
	made, err := n.walk(top, point, true)
	if err != nil {
		return err
	}
	return errors.Join(made.seal(), made.Close())
}

func (f folder) seal() error {
	if names, _ := f.Readdirnames(1); len(names) > 0 { // an empty one says EOF
		return fmt.Errorf("%s of the node contains %s: nothing is mounted on a folder that is not empty; check it, and move it", f.path,
			names[0])
	}
	if _, err := f.immutable(true); err == nil || !unknown(err) {
		return err
	}
	return f.Chmod(0)
}

// Mounted looks at one mount point of the node: is the dataset as a whole what shows there, and does it hold the folder for pods? It is
// asked of the mount itself, and no link in its path is followed.
func (n *Node) Mounted(top, point, dataset string) (bool, error) {
	place, err := n.openMounted(top, point, dataset)
	if err != nil || place.File == nil {
		return false, err
	}
	var status unix.Stat_t
	err = unix.Fstatat(place.fd(), naming.VolumeFolder, &status, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, place.Close()
	}
	return err == nil && status.Mode&unix.S_IFMT == unix.S_IFDIR, errors.Join(err, place.Close())
}

// openMounted opens a mounted dataset; nothing if it is not there.
func (n *Node) openMounted(top, point, dataset string) (folder, error) {
	mounts, err := n.mountsOf(nodeProcess)
	if err != nil {
		return folder{}, err
	}
	found, err := mountinfo.At(mounts, point)
	if err != nil || found.Point != point || found.FSType != "zfs" || found.Source != dataset || found.Root != "/" {
		return folder{}, err
	}
	above, err := n.walk(top, path.Dir(point), false)
	if err != nil {
		return folder{}, err
	}
	place, err := above.at(path.Base(point), below&^unix.RESOLVE_NO_XDEV)
	if err := errors.Join(err, above.Close()); err != nil {
		return folder{}, err
	}
	var status unix.Stat_t
	if err := unix.Fstat(place.fd(), &status); err != nil {
		return folder{}, errors.Join(err, place.Close())
	}
	if device := fmt.Sprintf("%d:%d", unix.Major(status.Dev), unix.Minor(status.Dev)); device != found.Device {
		return folder{}, errors.Join(fmt.Errorf("at %s of the node is file system %s, and dataset %s is %s", point, device, dataset,
			found.Device), place.Close())
	}
	return place, nil
}

// MakeVolumeFolder makes, in a dataset that has just been mounted, the folder that pods get.
func (n *Node) MakeVolumeFolder(top, point, dataset string) error {
	place, err := n.openMounted(top, point, dataset)
	if err != nil {
		return err
	}
	if place.File == nil {
		return fmt.Errorf("dataset %s is not mounted at %s of the node", dataset, point)
	}
	const everybodyReads = 0o755
	err = unix.Mkdirat(place.fd(), naming.VolumeFolder, everybodyReads)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		var made folder
		if made, err = place.at(naming.VolumeFolder, below); err == nil {
			err = made.Close()
		}
	}
	return errors.Join(err, place.Close())
}

// NestedMounts are the datasets of a pool that the node has mounted below some mount points, the deepest first: there pods can write, and
// what is mounted there shows in their volumes too.
func (n *Node) NestedMounts(pool string, points ...string) ([]string, error) {
	mounts, err := n.mountsOf(nodeProcess)
	if err != nil {
		return nil, err
	}
	var nested []string
	for _, mount := range mounts {
		if mount.FSType != "zfs" || !ofPool(mount.Source, pool) {
			continue
		}
		for _, point := range points {
			if strings.HasPrefix(mount.Point, point+"/") {
				nested = append([]string{mount.Source}, nested...)
				break
			}
		}
	}
	return nested, nil
}

// OpenDataset mounts a file system privately, at no path. It is in no mount namespace, and gone with the last file that is
// open on it. Nothing of it runs, and none of its device files works.
func (n *Node) OpenDataset(dataset string, readOnly bool) (*os.Root, error) {
	mounted, err := detached("zfs", dataset, readOnly)
	if err != nil {
		return nil, fmt.Errorf("look into dataset %s: %w", dataset, err)
	}
	return rootOf(mounted)
}

// rootOf hands a mount over to what stays within it.
func rootOf(mounted *os.File) (*os.Root, error) {
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", mounted.Fd()))
	return root, errors.Join(err, mounted.Close())
}

// detached is a mount that is in no mount namespace.
func detached(kind, source string, readOnly bool) (*os.File, error) {
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	context := os.NewFile(uintptr(fd), "fscontext")
	defer func() { _ = context.Close() }() // the mount stays
	if err := unix.FsconfigSetString(fd, "source", source); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	attributes := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOATIME
	if readOnly {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	mounted, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return nil, os.NewSyscallError("fsmount", err)
	}
	return os.NewFile(uintptr(mounted), source), nil
}
