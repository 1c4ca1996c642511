package pool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/host"
)

// created is a pool of one mirror, with cache devices and spares.
func created(args []string, guid string) *fakePool {
	at := slices.Index(args, "mirror")
	pool := &fakePool{name: args[at-1], guid: guid, imported: true, properties: map[string]string{}, mirror: [][]string{nil},
		labels: map[string]bool{}}
	pool.datasets = map[string]map[string]string{pool.name: {}}
	for i := range at - 1 {
		name, value, _ := strings.Cut(args[i+1], "=")
		switch args[i] {
		case "-o":
			pool.properties[name] = value
		case "-O":
			pool.datasets[pool.name][name] = value
		}
	}
	into := &pool.mirror[0]
	for _, word := range args[at+1:] {
		switch word {
		case "cache":
			into = &pool.cache
		case "spare":
			into = &pool.spare
		default:
			*into, pool.labels[word] = append(*into, word), true
		}
	}
	return pool
}

// in reports whether the devices of a command include all disks of the pool.
func (p *fakePool) in(devices []string) bool {
	return !slices.ContainsFunc(slices.Concat(p.mirror...), func(disk string) bool { return !slices.Contains(devices, disk+"-part1") })
}

// label is the label of a disk of the pool. Labels of cache devices and spares never name the pool.
func (p *fakePool) label(disk string) host.PoolLabel {
	guid, _ := strconv.ParseUint(p.guid, 10, 64)
	if label, left := p.left[disk]; left {
		return label
	}
	switch {
	case slices.Contains(p.cache, disk) && p.swappedCache:
		return host.PoolLabel{State: host.PoolCache, VdevGUID: 1}
	case slices.Contains(p.cache, disk):
		return host.PoolLabel{State: host.PoolCache, VdevGUID: uint64(leafGUID(disk))}
	case slices.Contains(p.spare, disk):
		return host.PoolLabel{State: host.PoolSpare, VdevGUID: uint64(leafGUID(disk))}
	case p.destroyed && disk != p.offline:
		return host.PoolLabel{Name: p.name, GUID: guid, State: host.PoolDestroyed, Txg: 4}
	}
	return host.PoolLabel{Name: p.name, GUID: guid, State: host.PoolActive, Txg: 4, HostName: p.host}
}

// status prints JSON, or text as OpenZFS before 2.3.
func (p *fakePool) status(args []string) []byte {
	if !slices.Contains(args, "-j") {
		return p.statusText(slices.Contains(args, "-g"))
	}
	disk := func(disk, class, state string) map[string]any {
		return map[string]any{"name": disk + "-part1", "vdev_type": "disk", "path": disk + "-part1", "class": class, "state": state,
			"guid": leafGUID(disk)}
	}
	vdevs, cache, spares := map[string]any{}, map[string]any{}, map[string]any{}
	for at, mirror := range p.mirror {
		children := map[string]any{}
		for _, path := range mirror {
			children[path+"-part1"] = disk(path, "normal", map[bool]string{true: "OFFLINE", false: "ONLINE"}[path == p.offline])
		}
		name := fmt.Sprintf("mirror-%d", at)
		vdevs[name] = map[string]any{"name": name, "vdev_type": "mirror", "class": "normal", "state": "ONLINE", "guid": 4, "vdevs": children}
	}
	for _, path := range p.cache {
		cache[path+"-part1"] = disk(path, "l2cache", "ONLINE")
	}
	for _, path := range p.spare {
		spares[path+"-part1"] = disk(path, "spare", "AVAIL")
	}
	guid, _ := strconv.ParseUint(p.guid, 10, 64)
	text, _ := json.Marshal(map[string]any{"pools": map[string]any{p.name: map[string]any{"name": p.name, "state": "ONLINE", "pool_guid": guid,
		"error_count": 0,
		"vdevs": map[string]any{p.name: map[string]any{"name": p.name, "vdev_type": "root", "class": "normal", "state": "ONLINE",
			"vdevs": vdevs}},
		"l2cache": cache, "spares": spares}}})
	return text
}

func (p *fakePool) statusText(guids bool) []byte {
	text := "  pool: " + p.name + "\n state: ONLINE\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n\t" + p.name + "  ONLINE  0  0  0\n"
	disk := func(indent, disk, rest string) {
		name := disk + "-part1"
		if guids {
			name = strconv.Itoa(leafGUID(disk))
		}
		text += "\t" + indent + name + "  " + rest + "\n"
	}
	for at, mirror := range p.mirror {
		text += fmt.Sprintf("\t  mirror-%d  ONLINE  0  0  0\n", at)
		for _, path := range mirror {
			disk("    ", path, "ONLINE  0  0  0")
		}
	}
	for class, paths := range map[string][]string{"cache": p.cache, "spares": p.spare} {
		if len(paths) > 0 {
			text += "\t" + class + "\n"
		}
		for _, path := range paths {
			disk("  ", path, map[string]string{"cache": "ONLINE  0  0  0", "spares": "AVAIL   "}[class])
		}
	}
	return []byte(text + "\nerrors: No known data errors\n")
}

// leafGUID returns a different guid for each disk of these tests.
func leafGUID(path string) int { return 500 + int(path[len(path)-1]) }

// mirrorOf finds the mirror with a member.
func (p *fakePool) mirrorOf(member string) (at, side int) {
	for at, mirror := range p.mirror {
		if side := slices.IndexFunc(mirror, func(path string) bool { return strconv.Itoa(leafGUID(path)) == member }); side >= 0 {
			return at, side
		}
	}
	return -1, -1
}

// attach and detach change a mirror.
func (p *fakePool) attach(member, device string) {
	at, _ := p.mirrorOf(member)
	p.mirror[at] = append(p.mirror[at], device)
	p.labels[device] = true
	delete(p.left, device)
}

func (p *fakePool) detach(member string) {
	at, side := p.mirrorOf(member)
	p.remove(p.mirror[at][side])
}

// remove takes a disk out of the pool. As in OpenZFS, the label of a cache device or spare stays as it is, and the label of a data disk
// gets transaction group 0, unless the disk is offline.
func (p *fakePool) remove(disk string) {
	label := p.label(disk)
	if label.State == host.PoolActive && disk != p.offline {
		label.Txg = 0
	}
	if p.left == nil {
		p.left = map[string]host.PoolLabel{}
	}
	p.left[disk] = label
	without := func(disks []string) []string {
		return slices.DeleteFunc(slices.Clone(disks), func(other string) bool { return other == disk })
	}
	p.cache, p.spare = without(p.cache), without(p.spare)
	for at := range p.mirror {
		p.mirror[at] = without(p.mirror[at])
	}
	p.mirror = slices.DeleteFunc(p.mirror, func(mirror []string) bool { return len(mirror) == 0 })
}

// replace puts a disk in place of another.
func (p *fakePool) replace(old, with string) {
	p.attach(strconv.Itoa(leafGUID(old)), with)
	p.remove(old)
}
