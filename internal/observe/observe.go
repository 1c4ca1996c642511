// Package observe reads the counters of the system right before and right after a workload, without any privileges: CPU, the block devices
// below the volume, ZFS, memory pressure and the limits of the container. It reports how much of the data that a workload read came from
// memory, and describes the machine. It reads only /proc and /sys and never guesses: unknown facts are listed with the reason.
package observe

import (
	"errors"
	"fmt"
	"time"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// Target is the volume that a workload runs on.
type Target struct {
	// Path of the directory where the volume is mounted, or of the block device.
	Path string
	// Block says that Path is a block device.
	Block bool
	// Disks of the pool that holds the volume; empty if they are not known.
	Disks []Disk
	// DisksChange says that the pool also has other disks, or gets some.
	DisksChange bool
}

// Disk is a disk of a pool, as the agent of its node saw it last.
type Disk struct {
	// Path is the one that the BenchmarkPool names, Number major:minor on the node.
	Path, Number, Serial string
}

// Observer knows the devices below one volume, and where its counters are.
type Observer struct {
	system  system
	target  Target
	place   place
	mount   *mountinfo.Mount
	devices *deviceTree
	zfs     *zfsVolume
	cgroup  string // the folder of this process's cgroup, empty if there is none
	cpus    int    // that the pod may use, 0 if not known
	sources []source
	unknown []string
}

// source is a place with counters. read adds its groups by name.
type source struct {
	name string
	hint string // what to do if it can't be read
	read func(groups map[string]group) error
}

// group has the values of one source: counters only grow, levels go up and down.
type group struct {
	counters map[string]uint64
	levels   map[string]uint64
}

func newGroup() group { return group{counters: map[string]uint64{}, levels: map[string]uint64{}} }

// Snapshot has all counters at one moment. Only Between and Without can read it.
type Snapshot struct {
	at        time.Time
	groups    map[string]group
	txgs      []txg
	exclusive bool // the cgroup holds only this process and its children
	missing   []string
}

// New finds the devices or the pool that the volume is on. It fails only if the volume is not as the target describes it.
func New(target Target) (*Observer, error) {
	return newObserver(system{root: "/", probe: realProbe{}}, target)
}

func newObserver(sys system, target Target) (*Observer, error) {
	found, err := sys.probe.look(target.Path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking at the volume %s: %w", target.Path, err)
	case target.Block && !found.block:
		return nil, fmt.Errorf("%s is not a block device: name a block device, or a directory without block", target.Path)
	case !target.Block && found.block:
		return nil, fmt.Errorf("%s is a block device: set block, or use the directory where it is mounted", target.Path)
	}
	o := &Observer{system: sys, target: target, place: found, devices: newDeviceTree(sys)}
	mounts, err := o.findMounts()
	if err != nil {
		o.cannot("Mounts", err)
	}
	o.cgroup, err = findCgroup(sys, mounts)
	if err != nil {
		o.cannot("Counters and limits of the cgroup", err)
	}
	o.cpus = o.countCPUs()
	if err := o.findDevices(); err != nil {
		o.cannot("Counters of the devices below the volume", err)
	}
	o.sources = o.listSources()
	return o, nil
}

// cannot notes that something is not available.
func (o *Observer) cannot(what string, why error) {
	o.unknown = append(o.unknown, sentence(what, why, ""))
}

// findMounts reads all mounts and keeps the one of the target.
func (o *Observer) findMounts() ([]mountinfo.Mount, error) {
	text, err := o.system.read("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	mounts, err := mountinfo.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("/proc/self/mountinfo: %w", err)
	}
	if o.target.Block {
		return mounts, nil
	}
	mount, err := mountinfo.At(mounts, o.place.path)
	if err != nil {
		return mounts, err
	}
	o.mount = &mount
	return mounts, nil
}

// findDevices resolves the block devices or the pool that the volume is on.
func (o *Observer) findDevices() error {
	if o.target.Block {
		if err := o.devices.add(o.place.device); err != nil {
			return err
		}
		return o.noticeZvol(func() (string, error) { return o.system.probe.zvolName(o.place.path) })
	}
	switch {
	case o.mount == nil:
		return errors.New("the mount of the volume is not known")
	case o.mount.FSType == "zfs":
		o.findZFS(o.mount.Source, o.place.blockSize)
		disks, err := o.poolDisks()
		o.devices.top = append(o.devices.top, disks...)
		return err
	}
	numbers, err := devicesOfMount(o.system, *o.mount)
	for _, number := range numbers {
		if err == nil {
			err = o.devices.add(number)
		}
	}
	if err != nil {
		return err
	}
	if o.mount.Root != "/" && o.mount.FSType != "btrfs" {
		o.unknown = append(o.unknown, fmt.Sprintf("Device counters of this volume alone are not available: it is the directory %s of a "+
			"%s file system that others may use too, and the counters contain what they do.", o.mount.Root, o.mount.FSType))
	}
	return o.noticeZvol(func() (string, error) {
		return "", errors.New("only an open block device tells it, and this volume is a file system on a zvol")
	})
}

// Take reads all counters. It does not fail: Between reports what could not be read. At the end of a workload, call it after the last sync:
// before that, data in the page cache has not reached a device.
func (o *Observer) Take() Snapshot {
	snapshot := Snapshot{at: time.Now(), groups: map[string]group{}, missing: o.unknown[:len(o.unknown):len(o.unknown)]}
	for _, s := range o.sources {
		if err := s.read(snapshot.groups); err != nil {
			snapshot.missing = append(snapshot.missing, sentence(s.name, err, s.hint))
		}
	}
	snapshot.exclusive = o.cgroupIsOurs()
	if o.zfs != nil {
		rows, err := o.zfs.readTxgs(o.system)
		if err != nil {
			snapshot.missing = append(snapshot.missing, sentence("Transaction groups of the pool", err, ""))
		}
		snapshot.txgs = rows
	}
	return snapshot
}

// sentence describes something that is not available, for people.
func sentence(what string, why error, hint string) string {
	text := what + " not available: " + why.Error()
	if hint != "" {
		text += "; " + hint
	}
	return text + "."
}
