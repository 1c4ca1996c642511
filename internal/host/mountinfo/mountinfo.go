// Package mountinfo parses /proc/<process>/mountinfo, see proc(5).
package mountinfo

import (
	"fmt"
	"slices"
	"strings"
)

// Mount is one line of mountinfo.
type Mount struct {
	// ID of the mount, and of its parent mount, in the namespace of the process.
	ID, Parent string
	// Device is major:minor. File systems on several disks have a virtual number.
	Device string
	// Root is the folder of the file system that is mounted at Point.
	Root, Point string
	Options     string
	// Shared is the peer group of the mount: mounts and unmounts propagate within the group. Master is the group that it receives
	// them from without propagating any back. Both are empty for a private mount, and are the same in all namespaces.
	Shared, Master string
	FSType         string
	Source         string
	// SuperOptions are the options of the file system, the same for all its mounts.
	SuperOptions string
}

func (m Mount) String() string {
	return fmt.Sprintf("%s from %s (its folder %s)", m.FSType, m.Source, m.Root)
}

// ReadOnly reports whether the mount, or its whole file system, is read-only.
func (m Mount) ReadOnly() bool {
	return slices.Contains(strings.Split(m.Options+","+m.SuperOptions, ","), "ro")
}

// Parse reads all lines.
func Parse(text string) ([]Mount, error) {
	var mounts []Mount
	for line := range strings.Lines(text) {
		mount, err := ParseLine(line)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, mount)
	}
	return mounts, nil
}

// ParseLine reads "36 35 98:0 /root /point options optional... - type source super".
func ParseLine(line string) (Mount, error) {
	line = strings.TrimSuffix(line, "\n")
	before, after, found := strings.Cut(line, " - ")
	// The kernel separates fields with single blanks. A path may contain other white space: pods choose the names of folders that are
	// mounted.
	head, tail := strings.Split(before, " "), strings.Split(after, " ")
	if !found || len(head) < 6 || len(tail) < 2 || !strings.HasPrefix(head[4], "/") {
		return Mount{}, fmt.Errorf("%.80q is not a line of mountinfo", line)
	}
	mount := Mount{ID: head[0], Parent: head[1], Device: head[2], Root: Unescape(head[3]), Point: Unescape(head[4]), Options: head[5],
		FSType: tail[0], Source: Unescape(tail[1])}
	for _, optional := range head[6:] {
		switch tag, group, _ := strings.Cut(optional, ":"); tag {
		case "shared":
			mount.Shared = group
		case "master":
			mount.Master = group
		}
	}
	if len(tail) > 2 {
		mount.SuperOptions = tail[2]
	}
	return mount, nil
}

// Unescape decodes the three octal digits that the kernel writes for white space and backslashes, also in /proc/swaps.
func Unescape(text string) string {
	var plain strings.Builder
	for at := 0; at < len(text); at++ {
		if text[at] == '\\' && at+3 < len(text) && octal(text[at+1]) && octal(text[at+2]) && octal(text[at+3]) {
			plain.WriteByte((text[at+1]-'0')<<6 | (text[at+2]-'0')<<3 | (text[at+3] - '0'))
			at += 3
			continue
		}
		plain.WriteByte(text[at])
	}
	return plain.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// At finds the visible mount at a path: the one with the longest mount point above it. Of several mounts at the same point, it is the last,
// which hides the others.
func At(mounts []Mount, path string) (Mount, error) {
	var best Mount
	for _, mount := range mounts {
		if above(mount.Point, path) && len(mount.Point) >= len(best.Point) {
			best = mount
		}
	}
	if best.Point == "" {
		return Mount{}, fmt.Errorf("no mount is above %s: is /proc mounted?", path)
	}
	return best, nil
}

func above(point, path string) bool {
	return point == path || point == "/" || strings.HasPrefix(path, point+"/")
}
