package mountinfo

import (
	"path"
	"strings"
)

// Standing is a mount with its parent mount, in one namespace.
type Standing struct {
	Mount
	// On is the parent mount. It is empty if the namespace does not show the parent, as for its root.
	On Mount
}

// Place is a folder of a file system. It is the same in all namespaces, wherever it is mounted.
type Place struct {
	// Device is major:minor of the file system.
	Device string
	// Path within the file system.
	Path string
}

// PlaceOf returns the folder of the file system that a path below the mount point leads to.
func (m Mount) PlaceOf(below string) Place {
	return Place{Device: m.Device, Path: path.Join(m.Root, strings.TrimPrefix(below, m.Point))}
}

// Contains reports whether another place is this one or below it.
func (p Place) Contains(other Place) bool {
	return p.Device == other.Device && above(p.Path, other.Path)
}

// Place is the folder that the mount covers. ok is false if it is unknown.
func (s Standing) Place() (place Place, ok bool) {
	if s.On.Point == "" || !above(s.On.Point, s.Point) {
		return Place{}, false
	}
	return s.On.PlaceOf(s.Point), true
}

// Propagation determines which mounts the kernel unmounts together with one of them, in all namespaces.
type Propagation struct {
	from  Standing
	place Place
	// groups are the peer groups that receive the events of the mount below.
	groups map[string]bool
}

// NewPropagation follows an unmount through the namespaces. It needs all mounts of the file system to find the way from one group to
// another.
func NewPropagation(from Standing, all []Standing) Propagation {
	p := Propagation{from: from, groups: map[string]bool{}}
	place, known := from.Place()
	if !known || from.On.Shared == "" {
		return p
	}
	p.place, p.groups[from.On.Shared] = place, true
	for found := true; found; {
		found = false
		for _, one := range all {
			if group := one.On.Shared; group != "" && !p.groups[group] && p.groups[one.On.Master] {
				p.groups[group], found = true, true
			}
		}
	}
	return p
}

// Reaches reports whether a mount is unmounted together with the given one. The parent mount decides: a bind mount of the same file system
// elsewhere is a slave of the given mount too, and stays.
func (p Propagation) Reaches(mount Standing) bool {
	place, known := mount.Place()
	return known && place == p.place && mount.Device == p.from.Device && mount.Root == p.from.Root &&
		(p.groups[mount.On.Shared] || p.groups[mount.On.Master])
}
