// Package vm runs a node of the lab as a QEMU virtual machine, whose disks have limits and faults that can be changed
// while it runs.
//
// A Spec describes a machine and gives the command that starts it; a Machine talks to a running one. No state is kept in memory: QEMU is
// asked for it, so each call may come from a new process. Switching the power off and on again removes all faults, plugs in all disks and
// restores the limits of the Spec, but keeps the data.
package vm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/storagebench/storagebench/test/lab/slowdisk"
	"github.com/storagebench/storagebench/test/lab/toolroot"
)

// The files in the folder of a machine.
const (
	overlayFile = "root.qcow2"
	qmpFile     = "qmp.sock"
	consoleFile = "console.log"
	devicesFile = "devices.json"
)

const (
	// maxSocketPath is the longest path of a unix socket that the kernel accepts.
	maxSocketPath = 107
	// maxSerial is the longest serial that virtio accepts; udev makes /dev/disk/by-id/virtio-SERIAL of it.
	maxSerial = 20
	// firstDiskSlot is after the devices that every machine has; a bus of the pc machine has 32 slots.
	firstDiskSlot = 8
	// MaxDisks is how many disks fit on the bus.
	MaxDisks = 32 - firstDiskSlot
	minDisk  = 1 << 20
)

// Disk is a data disk of a machine, seen there as /dev/disk/by-id/virtio-MACHINE-DISK.
type Disk struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
	// IOPS counts requests of any size, reads and writes together; 0 means no limit.
	IOPS int64 `json:"iops"`
	// BytesPerSecond is for reads and writes together; 0 means no limit.
	BytesPerSecond int64 `json:"bytesPerSecond"`
	LogicalSector  int   `json:"logicalSector"`
	PhysicalSector int   `json:"physicalSector"`
	// Service times. A disk with one of them is served by the package slowdisk, at the socket that SlowDisks names.
	Delay          time.Duration `json:"delay,omitempty"`
	FlushDelay     time.Duration `json:"flushDelay,omitempty"`
	UnalignedDelay time.Duration `json:"unalignedDelay,omitempty"`
	SeekDelay      time.Duration `json:"seekDelay,omitempty"`
	// Heads is how many requests a disk with service times serves at the same time; 0 means all of them.
	Heads int `json:"heads,omitempty"`
}

// Slow reports whether the disk has service times.
func (d Disk) Slow() bool {
	return d.Delay > 0 || d.FlushDelay > 0 || d.UnalignedDelay > 0 || d.SeekDelay > 0
}

// maxDelay is well below the 30 seconds after which a guest's kernel considers a disk dead.
const maxDelay = 5 * time.Second

// maxHeads is how many requests QEMU has in flight at the server of a disk.
const maxHeads = 16

// Forward makes a TCP port of the machine reachable on an address of the host.
type Forward struct {
	HostAddress string `json:"hostAddress"`
	HostPort    int    `json:"hostPort"`
	GuestPort   int    `json:"guestPort"`
}

// Spec describes a machine. Paths are absolute.
type Spec struct {
	// Name is the beginning of the serials of the disks.
	Name string
	// Folder holds the machine's files: root.qcow2, a NAME.raw for each disk, qmp.sock, console.log, devices.json.
	Folder string
	Tools  toolroot.Root
	// Kernel and Initrd are loaded by QEMU. RootImage is a raw image with the file system lab-root; it is shared by all
	// machines and only read. Config is any file, found in the machine as /dev/disk/by-id/virtio-lab-config.
	Kernel, Initrd, RootImage, Config string
	CPUs, MemoryMiB                   int
	// Forwards lead to eth0, which reaches the host at 10.0.2.2.
	Forwards []Forward
	// SwitchSocket is where a netswitch listens for eth1; without one there is no eth1.
	SwitchSocket string
	// Index makes the addresses of the network cards different from those of other machines.
	Index int
	Disks []Disk
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Command returns the command that runs the machine; call Prepare first. The end of the context does not end the machine, which must
// outlive the program that starts it.
func (s Spec) Command(ctx context.Context) *exec.Cmd {
	return s.Tools.Command(context.WithoutCancel(ctx), "qemu-system-x86_64", s.arguments(Accelerator(cpuinfoPath, kvmPath))...)
}

// validate finds mistakes that QEMU would report less clearly, or too late.
func (s Spec) validate() error {
	errs := []error{checkName("machine", s.Name)}
	if s.CPUs < 1 || s.MemoryMiB < 64 || s.Index < 0 || s.Index > 0xffff || len(s.Disks) > MaxDisks {
		errs = append(errs, fmt.Errorf("machine %s has %d CPUs, %d MiB of memory, index %d and %d disks: choose at least "+
			"1 CPU and 64 MiB, an index from 0 to 65535, and at most %d disks", s.Name, s.CPUs, s.MemoryMiB, s.Index,
			len(s.Disks), MaxDisks))
	}
	for what, path := range map[string]string{"folder": s.Folder, "kernel": s.Kernel, "initrd": s.Initrd,
		"root image": s.RootImage, "config": s.Config} {
		if !filepath.IsAbs(path) {
			errs = append(errs, fmt.Errorf("the %s of machine %s is %q: give an absolute path", what, s.Name, path))
		}
	}
	errs = append(errs, checkSocket(filepath.Join(s.Folder, qmpFile)), checkSocket(s.SwitchSocket))
	seen := map[string]bool{}
	for _, disk := range s.Disks {
		errs = append(errs, disk.validate(s.Name))
		if disk.Slow() {
			errs = append(errs, checkSocket(s.slowSocket(disk)))
		}
		if seen[disk.Name] {
			errs = append(errs, fmt.Errorf("machine %s has two disks %q: give each a name of its own", s.Name, disk.Name))
		}
		seen[disk.Name] = true
	}
	return errors.Join(errs...)
}

func (d Disk) validate(machine string) error {
	if err := checkName("disk", d.Name); err != nil {
		return err
	}
	if serial := serialOf(machine, d.Name); len(serial) > maxSerial {
		return fmt.Errorf("the serial %s of disk %s has %d characters, more than the %d of virtio: choose a shorter name",
			serial, d.Name, len(serial), maxSerial)
	}
	for _, sector := range []int{d.LogicalSector, d.PhysicalSector} {
		if sector < 512 || sector > 32768 || sector&(sector-1) != 0 {
			return fmt.Errorf("disk %s has sectors of %d bytes: choose a power of two from 512 to 32768", d.Name, sector)
		}
	}
	if d.LogicalSector > d.PhysicalSector {
		return fmt.Errorf("disk %s has logical sectors of %d bytes in physical ones of %d: make the physical ones at least as large",
			d.Name, d.LogicalSector, d.PhysicalSector)
	}
	if d.SizeBytes < minDisk || d.SizeBytes%int64(d.PhysicalSector) != 0 {
		return fmt.Errorf("disk %s has %d bytes: choose a multiple of its physical sector of %d bytes, at least %d",
			d.Name, d.SizeBytes, d.PhysicalSector, minDisk)
	}
	for _, delay := range []time.Duration{d.Delay, d.FlushDelay, d.UnalignedDelay, d.SeekDelay} {
		if delay < 0 || delay > maxDelay {
			return fmt.Errorf("disk %s has a delay of %s: choose at most %s", d.Name, delay, maxDelay)
		}
	}
	if d.Heads < 0 || d.Heads > maxHeads {
		return fmt.Errorf("disk %s has %d heads: choose at most %d", d.Name, d.Heads, maxHeads)
	}
	if d.Heads > 0 && !d.Slow() || d.Heads == 0 && d.SeekDelay > 0 {
		return fmt.Errorf("disk %s needs both heads and how long they take, such as delay=5ms,heads=1", d.Name)
	}
	return checkLimits(d.Name, d.IOPS, d.BytesPerSecond)
}

func checkName(what, name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%s name %q: use lower-case letters, digits and single hyphens, and begin with a letter", what, name)
	}
	return nil
}

// maxLimit is QEMU's THROTTLE_VALUE_MAX.
const maxLimit = 1_000_000_000_000_000

func checkLimits(disk string, iops, bytesPerSecond int64) error {
	for _, limit := range []int64{iops, bytesPerSecond} {
		if limit < 0 || limit > maxLimit {
			return fmt.Errorf("disk %s has a limit of %d: choose 1 to %d, or 0 for none", disk, limit, int64(maxLimit))
		}
	}
	return nil
}

func checkSocket(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("the socket %s has a path of %d characters, more than the %d that the kernel takes: choose a shorter folder",
			path, len(path), maxSocketPath)
	}
	return nil
}

func serialOf(machine, disk string) string { return machine + "-" + disk }

func (s Spec) diskPath(d Disk) string { return filepath.Join(s.Folder, d.Name+".raw") }

func (s Spec) slowSocket(d Disk) string { return filepath.Join(s.Folder, d.Name+".sock") }

// SlowDisks returns the disks with service times, by the socket at which QEMU expects each.
func (s Spec) SlowDisks() map[string]slowdisk.Disk {
	disks := map[string]slowdisk.Disk{}
	for _, d := range s.Disks {
		if d.Slow() {
			disks[s.slowSocket(d)] = slowdisk.Disk{Path: s.diskPath(d), Delay: d.Delay, FlushDelay: d.FlushDelay,
				UnalignedDelay: d.UnalignedDelay, SectorBytes: int64(d.PhysicalSector), Heads: d.Heads, SeekDelay: d.SeekDelay}
		}
	}
	return disks
}
