package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// mount is what /proc/self/mountinfo says of one mount.
type mount struct {
	// root is the folder of the file system that shows at point.
	root, point string
	options     string
	fsType      string
	source      string
}

func (m mount) String() string {
	return fmt.Sprintf("%s from %s (its folder %s)", m.fsType, m.source, m.root)
}

// mountAt finds the mount that shows at a path: the one with the longest mount point above it, and of several at the same
// point the last, which hides the others.
func mountAt(mountinfo, path string) (mount, error) {
	var best mount
	for line := range strings.Lines(mountinfo) {
		one, err := parseMount(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return mount{}, err
		}
		if above(one.point, path) && len(one.point) >= len(best.point) {
			best = one
		}
	}
	if best.point == "" {
		return mount{}, fmt.Errorf("no mount is above %s: is /proc mounted?", path)
	}
	return best, nil
}

func above(point, path string) bool {
	return point == path || point == "/" || strings.HasPrefix(path, point+"/")
}

// parseMount reads "36 35 98:0 /root /point options optional... - type source super", see proc(5).
func parseMount(line string) (mount, error) {
	before, after, found := strings.Cut(line, " - ")
	head, tail := strings.Fields(before), strings.Fields(after)
	if !found || len(head) < 6 || len(tail) < 2 || !strings.HasPrefix(head[4], "/") {
		return mount{}, fmt.Errorf("%.80q is no line of /proc/self/mountinfo", line)
	}
	options := head[5]
	if len(tail) > 2 {
		options += "," + tail[2]
	}
	return mount{root: unescape(head[3]), point: unescape(head[4]), options: options, fsType: tail[0], source: unescape(tail[1])}, nil
}

// unescape: the kernel writes blanks and backslashes as three octal digits.
func unescape(text string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, `\`)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		code, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8)
		if err != nil || len(after) < 3 {
			out.WriteByte('\\')
			text = after
			continue
		}
		out.WriteByte(byte(code))
		text = after[3:]
	}
}

func (m mount) readOnly() bool {
	for option := range strings.SplitSeq(m.options, ",") {
		if option == "ro" {
			return true
		}
	}
	return false
}

// compresses tells whether the file system may store data in less space than it has, so that its size proves nothing.
func compresses(fsType string) bool { return fsType == "zfs" || fsType == "btrfs" || fsType == "f2fs" }
