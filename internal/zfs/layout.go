package zfs

import (
	"fmt"
	"slices"
)

// VdevType is the redundancy of a vdev.
type VdevType string

// The types of vdevs.
const (
	Stripe VdevType = "stripe"
	Mirror VdevType = "mirror"
	Raidz1 VdevType = "raidz1"
	Raidz2 VdevType = "raidz2"
	Raidz3 VdevType = "raidz3"
	Draid1 VdevType = "draid1"
	Draid2 VdevType = "draid2"
	Draid3 VdevType = "draid3"
)

// vdevTypes are the minimum number of devices of each type, and the parity of those that have one.
var vdevTypes = map[VdevType]struct{ minimum, parity int }{
	Stripe: {1, 0}, Mirror: {2, 0}, Raidz1: {2, 1}, Raidz2: {3, 2}, Raidz3: {4, 3}, Draid1: {2, 1}, Draid2: {3, 2}, Draid3: {4, 3},
}

func (t VdevType) draid() bool { return t == Draid1 || t == Draid2 || t == Draid3 }

// Vdev describes a vdev to create. A stripe of several devices creates several top-level vdevs of one device each.
type Vdev struct {
	Type    VdevType
	Devices []string
	// DraidData is the number of data devices in a redundancy group of a draid; 0 leaves it to ZFS.
	DraidData int
	// DraidSpares is the number of distributed spares of a draid.
	DraidSpares int
}

// Layout has the vdevs and devices of a new pool, or those to add to a pool.
type Layout struct {
	Data    []Vdev
	Log     []Vdev
	Special []Vdev
	Cache   []string
	Spare   []string
}

// Devices are all devices of the layout.
func (l Layout) Devices() []string {
	var devices []string
	for _, vdevs := range [][]Vdev{l.Data, l.Log, l.Special} {
		for _, vdev := range vdevs {
			devices = append(devices, vdev.Devices...)
		}
	}
	return append(append(devices, l.Cache...), l.Spare...)
}

// arguments renders the layout as arguments of zpool create and zpool add.
func (l Layout) arguments() ([]string, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	var args []string
	for _, group := range []struct {
		class string
		vdevs []Vdev
	}{{"", l.Data}, {"special", l.Special}, {"log", l.Log}} {
		for at, vdev := range group.vdevs {
			if at == 0 && group.class != "" {
				args = append(args, group.class)
			}
			args = append(args, vdev.arguments()...)
		}
	}
	for _, group := range []struct {
		class   string
		devices []string
	}{{"cache", l.Cache}, {"spare", l.Spare}} {
		if len(group.devices) > 0 {
			args = append(append(args, group.class), group.devices...)
		}
	}
	return args, nil
}

func (v Vdev) arguments() []string {
	switch {
	case v.Type == Stripe:
		return v.Devices
	case v.Type.draid():
		keyword := string(v.Type)
		if v.DraidData > 0 {
			keyword += fmt.Sprintf(":%dd", v.DraidData)
		}
		keyword += fmt.Sprintf(":%dc:%ds", len(v.Devices), v.DraidSpares)
		return append([]string{keyword}, v.Devices...)
	default:
		return append([]string{string(v.Type)}, v.Devices...)
	}
}

func (l Layout) check() error {
	devices := l.Devices()
	if len(devices) == 0 {
		return invalid("a layout without devices: name at least one")
	}
	if err := checkEach(checkDevice, devices); err != nil {
		return err
	}
	sorted := slices.Sorted(slices.Values(devices))
	if unique := slices.Compact(slices.Clone(sorted)); len(unique) != len(sorted) {
		return invalid("a device is listed twice in the layout %v: name each once", devices)
	}
	for _, vdev := range l.Data {
		if err := vdev.check(); err != nil {
			return err
		}
	}
	for _, vdev := range slices.Concat(l.Log, l.Special) {
		if vdev.Type != Stripe && vdev.Type != Mirror {
			return invalid("a log or special vdev of type %q: make it stripe or mirror", vdev.Type)
		}
		if err := vdev.check(); err != nil {
			return err
		}
	}
	return sameRedundancy(slices.Concat(l.Data, l.Special))
}

func (v Vdev) check() error {
	kind, known := vdevTypes[v.Type]
	switch {
	case !known:
		return invalid("vdev type %q: write stripe, mirror, raidz1..3 or draid1..3", v.Type)
	case len(v.Devices) < kind.minimum:
		return invalid("a %s of %d devices: give it at least %d", v.Type, len(v.Devices), kind.minimum)
	case !v.Type.draid() && (v.DraidData != 0 || v.DraidSpares != 0):
		return invalid("a %s with data devices or spares of a draid: leave them out", v.Type)
	case v.DraidData < 0 || v.DraidSpares < 0 || v.DraidSpares > 100:
		return invalid("a %s with %d data devices and %d spares: make neither negative", v.Type, v.DraidData, v.DraidSpares)
	case v.Type.draid() && max(v.DraidData, 1)+v.DraidSpares+kind.parity > len(v.Devices):
		return invalid("a %s of %d devices: give it at least its data devices, spares and parity, %d", v.Type, len(v.Devices),
			max(v.DraidData, 1)+v.DraidSpares+kind.parity)
	}
	return nil
}

// redundancy is the number of devices that each top-level vdev can lose.
func (v Vdev) redundancy() int {
	if v.Type == Mirror {
		return len(v.Devices) - 1
	}
	return vdevTypes[v.Type].parity
}

// sameRedundancy refuses data and special vdevs that can lose different numbers of devices: zpool would accept them only with force.
func sameRedundancy(vdevs []Vdev) error {
	for _, vdev := range vdevs {
		if first := vdevs[0]; vdev.redundancy() != first.redundancy() {
			return invalid("a %s of %d and a %s of %d devices as data or special vdevs of one pool: let each survive the loss of as many "+
				"devices; ZFS mixes them only with force", first.Type, len(first.Devices), vdev.Type, len(vdev.Devices))
		}
	}
	return nil
}
