package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// watched are disks whose users are looked for together: one search through all processes serves all of them.
type watched struct {
	// members are the kernel's names of the disks, their partitions and their character devices, by number.
	members map[string]string
	// disks are the disks by the names of their members.
	disks map[string]*Disk
}

// usage finds who uses some disks or partitions of them now.
func (n *Node) usage(disks ...*Disk) error {
	all := watched{members: map[string]string{}, disks: map[string]*Disk{}}
	var failed error
	for _, disk := range disks {
		members := map[string]string{disk.Number: disk.Kernel}
		for _, partition := range disk.partitions {
			members[partition.number] = partition.kernel
		}
		files, err := n.withCharacters(disk.Kernel, members)
		for number, kernel := range files {
			all.members[number], all.disks[kernel] = kernel, disk
		}
		failed = errors.Join(failed, err, n.holders(disk, members), n.swaps(disk, members), n.loops(disk, members), n.exports(disk, members),
			n.systemDisk(disk), n.twins(disk))
	}
	return errors.Join(failed, n.mounts(all), n.processes(all))
}

// holders are devices made of this one: LVM, LUKS, RAID, multipath, bcache.
func (n *Node) holders(disk *Disk, members map[string]string) error {
	for _, kernel := range slices.Sorted(maps.Values(members)) {
		holders, err := n.names("sys/class/block", kernel, "holders")
		if err != nil {
			return err
		}
		for _, holder := range holders {
			kind := ""
			if name, err := n.text("sys/class/block", holder, "dm/name"); err == nil && name != "" {
				kind = " (" + name + ")"
			}
			disk.find(HasHolders, "%s is part of %s%s", kernel, holder, kind)
		}
	}
	return nil
}

func (n *Node) swaps(disk *Disk, members map[string]string) error {
	table, err := n.text("proc/swaps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "/dev/") {
			continue
		}
		if kernel := n.member(mountinfo.Unescape(fields[0]), members); kernel != "" {
			disk.find(Swap, "%s is in use as swap", kernel)
		}
	}
	return nil
}

// mounts looks into the mounts of every process. Opening the disk exclusively detects mounts in a namespace without any process.
func (n *Node) mounts(all watched) error {
	found, deviceless := map[string]bool{}, n.deviceless()
	return n.eachNamespace(func(process, thread string) error {
		return n.mountsOf(thread, func(mount mountinfo.Mount) error {
			kernel := n.mounted(mount, all.members, deviceless)
			if kernel != "" && !found[kernel] {
				found[kernel] = true
				disk := all.disks[kernel]
				disk.find(Mounted, "%s is mounted at %.*s, seen by process %s", disk.title(kernel, all.members), toldPath, mount.Point, process)
			}
			return nil
		})
	})
}

// nodeProcess is in the node's own mount namespace, in which the agent mounts.
const nodeProcess = "1"

// eachNamespace calls look once for each mount namespace that has a process, with a process and its thread in that namespace.
func (n *Node) eachNamespace(look func(process, thread string) error) error {
	seen := map[string]bool{}
	visible := false
	err := n.eachProcess(func(process string) error {
		return n.eachThread(process, func(thread string) error {
			namespace, err := os.Readlink(n.path("proc", thread, "ns/mnt"))
			if err == nil && seen[namespace] {
				return nil
			}
			if err := look(process, thread); err != nil {
				return unlessGone(err)
			}
			seen[namespace] = namespace != ""
			visible = true
			return nil
		})
	})
	if err != nil {
		return err
	}
	if !visible {
		return fmt.Errorf("no process of the node is visible in %s: give the pod hostPID", n.path("proc"))
	}
	return nil
}

// gone reports whether an error means that a process has ended in the meantime, or is a zombie.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL)
}

// Tenants decide how many mounts their processes see. Therefore mounts are read one by one, and only those with wanted mounts on them are
// kept: a namespace usually has fewer than a hundred of these.
const (
	parentsLimit = 1000
	// parentsText bounds the length of their paths and options in bytes.
	parentsText = 256 << 10
)

// errManyMounts says that not all mounts were read.
var errManyMounts = errors.New("too many mounts on mounts, or too long paths, to check them all: end that process or its pod")

// mountsOf calls use with each mount that a process sees.
func (n *Node) mountsOf(process string, use func(mount mountinfo.Mount) error) error {
	if err := mountinfo.Read(n.path("proc", process, "mountinfo"), use); err != nil {
		return fmt.Errorf("reading the mounts of process %s: %w", process, err)
	}
	return nil
}

// standing calls use with each wanted mount that a process sees, together with its parent, the mount below it. The parent may come later in
// the list, so the list is read again.
func (n *Node) standing(process string, want func(mount mountinfo.Mount) bool, use func(mount mountinfo.Standing)) error {
	parents, room := map[string]mountinfo.Mount{}, parentsText
	err := n.mountsOf(process, func(mount mountinfo.Mount) error {
		if want(mount) {
			parents[strings.Clone(mount.Parent)] = mountinfo.Mount{} // a clone, because the original keeps the whole line in memory
		}
		if len(parents) > parentsLimit {
			return errManyMounts
		}
		return nil
	})
	if err != nil || len(parents) == 0 {
		return err
	}
	err = n.mountsOf(process, func(mount mountinfo.Mount) error {
		if _, is := parents[mount.ID]; !is {
			return nil
		}
		if room -= len(mount.Root) + len(mount.Point) + len(mount.SuperOptions); room < 0 {
			return errManyMounts
		}
		parents[mount.ID] = mount
		return nil
	})
	if err != nil {
		return err
	}
	return n.mountsOf(process, func(mount mountinfo.Mount) error {
		if want(mount) {
			use(mountinfo.Standing{Mount: mount, On: parents[mount.Parent]})
		}
		return nil
	})
}

// mountAt is the visible mount of the node at a path.
func (n *Node) mountAt(path string) (mountinfo.Mount, error) {
	var above []mountinfo.Mount
	err := n.mountsOf(nodeProcess, func(mount mountinfo.Mount) error {
		if (mountinfo.Place{Path: mount.Point}).Contains(mountinfo.Place{Path: path}) {
			above = append(above, mount)
		}
		return nil
	})
	if err != nil {
		return mountinfo.Mount{}, err
	}
	return mountinfo.At(above, path)
}

// mounted returns the kernel's name of the mounted disk or partition, if it is one of the members. File systems on several disks show a
// virtual number, but have a source: btrfs names one of its disks, bcachefs all of them. If a pod has a disk as a raw block volume, its
// device file is mounted. The source of a deviceless file system is any text: a tenant can mount a tmpfs with the name of a disk in a user
// namespace of its own. Only root of the node can mount the other types.
func (n *Node) mounted(mount mountinfo.Mount, members map[string]string, deviceless map[string]bool) string {
	if kernel := members[mount.Device]; kernel != "" {
		return kernel
	}
	if mount.FSType == "devtmpfs" && mount.Root != "/" {
		if name := mount.Root[1:]; isCharacter(name, members) { // it may be in a folder, such as bsg
			return name
		}
		return n.member("/dev"+mount.Root, members)
	}
	kind, _, _ := strings.Cut(mount.FSType, ".") // a subtype, as in fuse.sshfs, is any text too
	devices, found := strings.CutPrefix(mount.Source, "/dev/")
	if !found || deviceless[kind] {
		return ""
	}
	for device := range strings.SplitSeq(devices, ":/dev/") {
		if kernel := n.member("/dev/"+device, members); kernel != "" {
			return kernel
		}
	}
	return ""
}

// typesLimit bounds how much is read of the list of file system types. Each has a line of about 15 bytes.
const typesLimit = 64 << 10

// deviceless returns the types of file systems that need no device. A type that is not in the kernel's list counts as one that needs a
// device, and so do all types if the list cannot be read.
func (n *Node) deviceless() map[string]bool {
	file, err := os.Open(n.path("proc/filesystems"))
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // opened for reading: nothing is lost
	list, err := io.ReadAll(io.LimitReader(file, typesLimit))
	if err != nil {
		return nil
	}
	types := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		entry, whole := strings.CutSuffix(line, "\n") // the limit may cut the last name
		if kind, marked := strings.CutPrefix(entry, "nodev\t"); marked && whole {
			types[kind] = true
		}
	}
	return types
}

// member returns the kernel's name of a path if it leads to the disk or one of its partitions.
func (n *Node) member(path string, members map[string]string) string {
	if len(members) == 0 || !strings.HasPrefix(path, "/dev/") {
		return ""
	}
	kernel, err := n.resolve(path)
	if err != nil {
		return ""
	}
	for _, member := range members {
		if member == kernel {
			return member
		}
	}
	return ""
}

// systemPlaces are the mount points of the node's own system.
var systemPlaces = []string{"/", "/boot", "/boot/efi", "/efi", "/usr", "/var", "/etc", "/home", "/var/lib/kubelet", "/var/lib/containerd",
	"/var/lib/docker", "/var/lib/etcd"}

// systemDisk follows the mounts of the node itself down to the disks, through LVM, LUKS and RAID.
func (n *Node) systemDisk(disk *Disk) error {
	found := false
	return n.mountsOf(nodeProcess, func(mount mountinfo.Mount) error {
		if found || !slices.Contains(systemPlaces, mount.Point) {
			return nil
		}
		kernel := n.kernelOf(mount.Device)
		if kernel == "" && strings.HasPrefix(mount.Source, "/dev/") {
			kernel, _ = n.resolve(mount.Source) // a source that leads to no device is on no disk that we could name
		}
		if kernel != "" && slices.Contains(n.below(kernel, 0), disk.Kernel) {
			found = true
			disk.find(SystemDisk, "the node itself is on it: %s is there", mount.Point)
		}
		return nil
	})
}

// kernelOf is the name of a device number.
func (n *Node) kernelOf(number string) string {
	target, err := os.Readlink(n.path("sys/dev/block", number))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

const stackLimit = 16

// below returns a device and all devices that it stands on.
func (n *Node) below(kernel string, depth int) []string {
	if depth > stackLimit {
		return nil
	}
	disks := []string{kernel}
	if slaves, err := n.names("sys/class/block", kernel, "slaves"); err == nil {
		for _, slave := range slaves {
			disks = append(disks, n.below(slave, depth+1)...)
		}
	}
	if index, err := n.text("sys/class/block", kernel, "partition"); err == nil && index != "" {
		if target, err := filepath.EvalSymlinks(n.path("sys/class/block", kernel)); err == nil {
			disks = append(disks, n.below(filepath.Base(filepath.Dir(target)), depth+1)...)
		}
	}
	return disks
}

// importedPools returns the names of the pools that are imported on the node.
func (n *Node) importedPools() (map[string]bool, error) {
	names, err := n.names("proc/spl/kstat/zfs")
	if err != nil {
		return nil, err
	}
	pools := map[string]bool{}
	for _, name := range names {
		if state, err := n.text("proc/spl/kstat/zfs", name, "state"); err == nil && state != "" {
			pools[name] = true
		}
	}
	return pools, nil
}
