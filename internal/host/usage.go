package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// usage finds who uses a disk or a partition of it now.
func (n *Node) usage(disk *Disk) error {
	members := map[string]string{disk.Number: disk.Kernel}
	for _, partition := range disk.partitions {
		members[partition.number] = partition.kernel
	}
	return errors.Join(n.holders(disk, members), n.swaps(disk, members), n.mounts(disk, members), n.processes(disk, members),
		n.loops(disk, members),
		n.exports(disk, members), n.systemDisk(disk), n.twins(disk))
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
func (n *Node) mounts(disk *Disk, members map[string]string) error {
	found := map[string]bool{}
	return n.eachMount(func(mount seenMount) {
		kernel := n.mounted(mount.Mount, members)
		if kernel != "" && !found[kernel] {
			found[kernel] = true
			disk.find(Mounted, "%s is mounted at %s, seen by process %s", kernel, mount.Point, mount.process)
		}
	})
}

// nodeProcess is in the node's own mount namespace, in which the agent mounts.
const nodeProcess = "1"

// seenMount is a mount that a process sees.
type seenMount struct {
	mountinfo.Standing
	process string
}

// eachMount calls use with every mount, once for each mount namespace that has a process.
func (n *Node) eachMount(use func(mount seenMount)) error {
	seen := map[string]bool{}
	read := 0
	err := n.eachProcess(func(process string) error {
		return n.eachThread(process, func(thread string) error {
			namespace, err := os.Readlink(n.path("proc", thread, "ns/mnt"))
			if err == nil && seen[namespace] {
				return nil
			}
			mounts, err := n.mountsOf(thread)
			if gone(err) {
				return nil
			}
			if err != nil {
				return err
			}
			seen[namespace] = namespace != ""
			read++
			for _, mount := range mountinfo.Stand(mounts) {
				use(seenMount{Standing: mount, process: process})
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if read == 0 {
		return fmt.Errorf("no process of the node is visible in %s: give the pod hostPID", n.path("proc"))
	}
	return nil
}

// gone says that a process ended while it was looked at, or is a zombie.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL)
}

// mountsOf are the mounts that a process sees.
func (n *Node) mountsOf(process string) ([]mountinfo.Mount, error) {
	text, err := os.ReadFile(n.path("proc", process, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("reading the mounts of process %s: %w", process, err)
	}
	mounts, err := mountinfo.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("the mounts of process %s: %w", process, err)
	}
	return mounts, nil
}

// mounted returns the kernel's name of the mounted disk or partition, if it is one of the members. File systems on several disks show a
// virtual number, but have a source. For a disk that a pod has as a raw block volume, its device file is mounted.
func (n *Node) mounted(mount mountinfo.Mount, members map[string]string) string {
	if kernel := members[mount.Device]; kernel != "" {
		return kernel
	}
	if mount.FSType == "devtmpfs" && mount.Root != "/" {
		return n.member("/dev"+mount.Root, members)
	}
	return n.member(mount.Source, members)
}

// member returns the kernel's name of a path if it leads to the disk or one of its partitions.
func (n *Node) member(path string, members map[string]string) string {
	if !strings.HasPrefix(path, "/dev/") {
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
	mounts, err := n.mountsOf(nodeProcess)
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if !slices.Contains(systemPlaces, mount.Point) {
			continue
		}
		kernel := n.kernelOf(mount.Device)
		if kernel == "" && strings.HasPrefix(mount.Source, "/dev/") {
			kernel, _ = n.resolve(mount.Source) // what has no device stands on none that we could name
		}
		if kernel != "" && slices.Contains(n.below(kernel, 0), disk.Kernel) {
			disk.find(SystemDisk, "the node itself stands on it: %s is there", mount.Point)
			return nil
		}
	}
	return nil
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

// below are the disks that a device stands on.
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

// importedPools are the names of the pools that run on the node.
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
