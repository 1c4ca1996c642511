package observe

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// mount is one line of /proc/self/mountinfo.
type mount struct {
	device       string // major:minor
	root         string // the folder of the file system that is mounted
	point        string
	options      string
	fsType       string
	source       string
	superOptions string
}

// parseMountinfo reads /proc/self/mountinfo, described in proc(5).
func parseMountinfo(text string) ([]mount, error) {
	var mounts []mount
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		before, after, found := strings.Cut(line, " - ")
		head, tail := strings.Fields(before), strings.SplitN(after, " ", 3)
		if !found || len(head) < 6 || len(tail) < 2 {
			return nil, fmt.Errorf("not a line of mountinfo: %q", shorten(line, 80))
		}
		m := mount{device: head[2], root: unescape(head[3]), point: unescape(head[4]), options: head[5],
			fsType: tail[0], source: unescape(tail[1])}
		if len(tail) == 3 {
			m.superOptions = tail[2]
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape undoes the octal numbers that stand for blanks in mountinfo.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) && octal(text[i+1]) && octal(text[i+2]) && octal(text[i+3]) {
			out.WriteByte((text[i+1]-'0')<<6 | (text[i+2]-'0')<<3 | (text[i+3] - '0'))
			i += 3
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// mountOf is the mount that shows at a path: the longest mount point above it, and of equal ones the last, which hides the others.
func mountOf(mounts []mount, at string) *mount {
	var best *mount
	for i, m := range mounts {
		if within(at, m.point) && (best == nil || len(m.point) >= len(best.point)) {
			best = &mounts[i]
		}
	}
	return best
}

func within(at, folder string) bool {
	return at == folder || folder == "/" || strings.HasPrefix(at, folder+"/")
}

// devicesOfMount names the block devices of a file system that is not ZFS.
func devicesOfMount(sys system, m mount) ([]string, error) {
	switch {
	case m.fsType == "btrfs":
		return btrfsDevices(sys, m.source)
	case !strings.HasPrefix(m.device, "0:"):
		return []string{m.device}, nil
	case m.fsType == "overlay":
		return nil, errors.New("the volume is an overlay, the container's own file system: mount a volume there")
	case m.fsType == "tmpfs" || m.fsType == "ramfs":
		return nil, fmt.Errorf("the volume is %s, which is memory", m.fsType)
	}
	return nil, fmt.Errorf("a %s file system from %s has no block device on this node", m.fsType, shorten(m.source, 80))
}

// btrfsDevices finds all devices of the file system that has this one.
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

// blockName is the kernel's name of a device in /dev; names of the device mapper are in its own files.
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
	return "", fmt.Errorf("there is no block device %s in /sys/class/block", shorten(device, 80))
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

// findCgroup is the folder with the cgroup of this process.
func findCgroup(sys system, mounts []mount) (string, error) {
	text, err := sys.read("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	where, err := parseCgroup(text)
	if err != nil {
		return "", err
	}
	for _, m := range mounts {
		if m.fsType != "cgroup2" {
			continue
		}
		folder := m.point
		if inside, found := strings.CutPrefix(where, m.root); found {
			folder = path.Join(m.point, inside)
		}
		if !sys.exists(path.Join(folder, "cgroup.procs")) {
			folder = m.point
		}
		return folder, nil
	}
	return "", errors.New("cgroup v2 is not mounted in this container")
}

// shorten keeps messages readable whatever a file says.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
