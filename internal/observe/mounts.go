package observe

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
	"github.com/storagebench/storagebench/internal/spelling"
)

// devicesOfMount returns the numbers of the block devices of a file system that is not ZFS.
func devicesOfMount(sys system, m mountinfo.Mount) ([]string, error) {
	switch {
	case m.FSType == "btrfs":
		return btrfsDevices(sys, m.Source)
	case !strings.HasPrefix(m.Device, "0:"):
		return []string{m.Device}, nil
	case m.FSType == "overlay":
		return nil, errors.New("the volume is an overlay, the container's own file system: mount a volume there")
	case m.FSType == "tmpfs" || m.FSType == "ramfs":
		return nil, fmt.Errorf("the volume is %s, which is memory", m.FSType)
	}
	return nil, fmt.Errorf("a %s file system from %s has no block device on this node", m.FSType, spelling.Shorten(m.Source, 80))
}

// btrfsDevices finds all devices of the file system that is on this one.
func btrfsDevices(sys system, source string) ([]string, error) {
	name, err := blockName(sys, source)
	if err != nil {
		return nil, err
	}
	for _, id := range sys.list("/sys/fs/btrfs") {
		members := sys.list(path.Join("/sys/fs/btrfs", id, "devices"))
		var numbers []string
		found := false
		for _, member := range members {
			numbers = append(numbers, sys.word(path.Join("/sys/class/block", member, "dev")))
			found = found || member == name
		}
		if found {
			return numbers, nil
		}
	}
	return []string{sys.word(path.Join("/sys/class/block", name, "dev"))}, nil
}

// blockName returns the kernel's name of a device in /dev. The kernel keeps the names of the device mapper in files of their own.
func blockName(sys system, device string) (string, error) {
	name := path.Base(device)
	if sys.exists(path.Join("/sys/class/block", name, "dev")) {
		return name, nil
	}
	for _, candidate := range sys.list("/sys/class/block") {
		if sys.word(path.Join("/sys/class/block", candidate, "dm/name")) == name {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("there is no block device %s in /sys/class/block", spelling.Shorten(device, 80))
}

// parseCgroup reads the line of cgroup v2 in /proc/self/cgroup.
func parseCgroup(text string) (string, error) {
	for line := range strings.Lines(text) {
		if where, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); found {
			return where, nil
		}
	}
	return "", errors.New("/proc/self/cgroup has no line that starts with 0::, the one of cgroup v2")
}

// findCgroup returns the folder of the cgroup of this process.
func findCgroup(sys system, mounts []mountinfo.Mount) (string, error) {
	text, err := sys.read("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	where, err := parseCgroup(text)
	if err != nil {
		return "", err
	}
	for _, m := range mounts {
		if m.FSType != "cgroup2" {
			continue
		}
		folder := m.Point
		if inside, found := strings.CutPrefix(where, m.Root); found {
			folder = path.Join(m.Point, inside)
		}
		if !sys.exists(path.Join(folder, "cgroup.procs")) {
			folder = m.Point
		}
		return folder, nil
	}
	return "", errors.New("cgroup v2 is not mounted in this container")
}
