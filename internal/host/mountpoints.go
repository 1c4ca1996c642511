package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
	"github.com/storagebench/storagebench/internal/naming"
)

const (
	// below confines a walk to the folder where it began: it follows no symlink and enters no mount.
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
		return folder{}, fmt.Errorf("open %s on the node without following links or entering mounts: %w", at,
			&os.PathError{Op: "openat2", Path: at, Err: err})
	}
	return folder{os.NewFile(uintptr(fd), at), at}, nil
}

// make makes and opens a folder below this one that only root can read.
func (f folder) make(name string) (folder, error) {
	err := unix.Mkdirat(f.fd(), name, onlyRoot)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return folder{}, fmt.Errorf("make the folder %s/%s of the node: %w", f.path, name, err)
	}
	return f.at(name, below)
}

// top opens a folder of the node whose path belongs to root: links and mounts on the way are followed. It can make missing folders.
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

// walk opens a folder below a top folder. It can make missing folders.
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

// immutable sets or clears the flag that prevents even root from creating anything in a folder or changing its owner. It does not affect a
// file system that is mounted on the folder. Some file systems do not have the flag.
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

// flagUnsupported reports whether an error means that the file system does not have the flag.
func flagUnsupported(err error) bool {
	return errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL)
}

// MakeMountPoint makes the folder on which a dataset is to be mounted, and ensures that nothing can be written to it while nothing is
// mounted: the folder is empty and immutable or, on a file system without that flag, accessible to root only.
func (n *Node) MakeMountPoint(top, point string) error {
	made, err := n.walk(top, point, true)
	if err != nil {
		return err
	}
	return errors.Join(made.seal(), made.Close())
}

func (f folder) seal() error {
	if names, _ := f.Readdirnames(1); len(names) > 0 { // an empty folder returns io.EOF
		return fmt.Errorf("%s of the node contains %s: nothing is mounted on a folder that is not empty; check it, and move it", f.path,
			names[0])
	}
	if _, err := f.immutable(true); err == nil || !flagUnsupported(err) {
		return err
	}
	return f.Chmod(0)
}

// Mounted reports whether the whole dataset is mounted at a mount point of the node and holds the folder for pods. It checks the mount
// itself, and follows no link in the path.
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

// openMounted opens a mounted dataset. The returned folder is empty if the dataset is not mounted.
func (n *Node) openMounted(top, point, dataset string) (folder, error) {
	found, err := n.mountAt(point)
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

// MakeVolumeFolder makes the folder for pods in a dataset that was just mounted.
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

// NestedMounts returns the datasets of a pool that the node has mounted below the given mount points, deepest first. Pods can write there,
// and the mounts are visible in their volumes too. Snapshots are left out: the kernel mounts one when a program looks into .zfs/snapshot,
// and unmounts it with its dataset.
func (n *Node) NestedMounts(pool string, points ...string) ([]string, error) {
	var nested []string
	err := n.mountsOf(nodeProcess, func(mount mountinfo.Mount) error {
		if mount.FSType == "zfs" && ofPool(mount.Source, pool) && slices.ContainsFunc(points, func(point string) bool {
			return strings.HasPrefix(mount.Point, point+"/") && !strings.HasPrefix(mount.Point, point+"/.zfs/snapshot/")
		}) {
			nested = append(nested, mount.Source)
		}
		return nil
	})
	slices.Reverse(nested)
	return nested, err
}

// OpenDataset mounts a file system privately, without a path. It is in no mount namespace, and is unmounted with its last open file.
// Programs and device files on it are disabled.
func (n *Node) OpenDataset(dataset string, readOnly bool) (*os.Root, error) {
	mounted, err := detached("zfs", dataset, readOnly)
	if err != nil {
		return nil, fmt.Errorf("look into dataset %s: %w", dataset, err)
	}
	return rootOf(mounted)
}

// rootOf converts a mount to an os.Root, which confines its users to the mount.
func rootOf(mounted *os.File) (*os.Root, error) {
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", mounted.Fd()))
	return root, errors.Join(err, mounted.Close())
}

// detached mounts a file system without adding it to a mount namespace.
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
