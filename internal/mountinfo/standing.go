package mountinfo

import (
	"path"
	"strings"
)

// Standing is a mount with the one that it stands on, as one namespace shows them.
type Standing struct {
	Mount
	// On is empty if the namespace does not show it, as of its root.
	On Mount
}

// Stand finds what each mount of a namespace stands on.
func Stand(mounts []Mount) []Standing {
	known := map[string]Mount{}
	for _, mount := range mounts {
		known[mount.ID] = mount
	}
	standing := make([]Standing, 0, len(mounts))
	for _, mount := range mounts {
		standing = append(standing, Standing{Mount: mount, On: known[mount.Parent]})
	}
	return standing
}

// Place is a folder of a file system. It is the same in all namespaces, wherever they show it.
type Place struct {
	// Device is major:minor of the file system.
	Device string
	// Path within the file system.
	Path string
}

// PlaceOf is where a path below the point of a mount leads to in its file system.
func (m Mount) PlaceOf(below string) Place {
	return Place{Device: m.Device, Path: path.Join(m.Root, strings.TrimPrefix(below, m.Point))}
}

// Contains says whether another place is this one or below it.
func (p Place) Contains(other Place) bool {
	return p.Device == other.Device && above(p.Path, other.Path)
}

// Place is the folder that the mount covers; ok is false if it is not known.
func (s Standing) Place() (place Place, ok bool) {
	if s.On.Point == "" || !above(s.On.Point, s.Point) {
		return Place{}, false
	}
	return s.On.PlaceOf(s.Point), true
}

// Propagation tells which mounts the kernel unmounts together with one of them, in all namespaces.
type Propagation struct {
	from  Standing
	place Place
	// groups are the peer groups that hear of what happens on the mount below.
	groups map[string]bool
}

// NewPropagation follows an unmount through the namespaces. Between two groups it finds its way by those that stand on them: name all
// mounts of the file system.
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

// Reaches says whether a mount goes with the one that is unmounted. What counts is the mount that it stands on: a bind mount of the same
// file system elsewhere is a slave of it too, and stays.
func (p Propagation) Reaches(mount Standing) bool {
	place, known := mount.Place()
	return known && place == p.place && mount.Device == p.from.Device && mount.Root == p.from.Root &&
		(p.groups[mount.On.Shared] || p.groups[mount.On.Master])
}
