// Package lab is a real Kubernetes cluster on one Linux machine, whose nodes are virtual machines with real OpenZFS and
// throttled disks. docs/tasks/lab.md explains how to use it.
package lab

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/test/lab/vm"
)

// Options describe a lab. They cannot change while it exists.
type Options struct {
	Nodes int `json:"nodes"`
	// Disks of every node, named disk1 and so on.
	Disks []vm.Disk `json:"disks"`
	// Volumes are further disks of every node, offered as raw block PersistentVolumes.
	Volumes []vm.Disk `json:"volumes"`
	// Files is the disk of every node that holds the file system volumes.
	Files     vm.Disk `json:"files"`
	CPUs      int     `json:"cpus"`
	MemoryMiB int     `json:"memoryMiB"`
}

// Limits keep a typo from using up the machine.
const (
	maxNodes = 9
	maxDisks = 20
)

// NewOptions makes the disks: all alike, except for those that an override like "2:iops=100,size=8Gi" names.
func NewOptions(nodes, disks, volumes int, alike vm.Disk, overrides []string) (Options, error) {
	options := Options{Nodes: nodes}
	if nodes < 1 || nodes > maxNodes {
		return options, fmt.Errorf("%d nodes: choose 1 to %d", nodes, maxNodes)
	}
	if disks < 0 || volumes < 0 || disks+volumes > maxDisks {
		return options, fmt.Errorf("%d disks and %d volumes: choose at most %d together", disks, volumes, maxDisks)
	}
	if err := checkDisk(alike); err != nil {
		return options, err
	}
	for n := range disks {
		disk := alike
		disk.Name = fmt.Sprintf("disk%d", n+1)
		options.Disks = append(options.Disks, disk)
	}
	for n := range volumes {
		disk := alike
		disk.Name = fmt.Sprintf("volume%d", n+1)
		options.Volumes = append(options.Volumes, disk)
	}
	options.Files = alike
	options.Files.Name, options.Files.SizeBytes = "files", max(alike.SizeBytes, 8<<30)
	for _, override := range overrides {
		if err := options.override(override); err != nil {
			return options, fmt.Errorf("disk option %q: %w", override, err)
		}
	}
	return options, nil
}

func (o *Options) override(text string) error {
	number, settings, found := strings.Cut(text, ":")
	n, err := strconv.Atoi(number)
	if !found || err != nil || n < 1 || n > len(o.Disks) {
		return fmt.Errorf("write it as NUMBER:KEY=VALUE,..., with a number from 1 to %d", len(o.Disks))
	}
	disk := &o.Disks[n-1]
	for setting := range strings.SplitSeq(settings, ",") {
		key, value, _ := strings.Cut(setting, "=")
		if delay := delays(disk)[key]; delay != nil {
			var err error
			if *delay, err = time.ParseDuration(value); err != nil {
				return fmt.Errorf("%s: %q is not a duration like 5ms", key, value)
			}
			continue
		}
		quantity, err := ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		switch key {
		case "size":
			disk.SizeBytes = quantity
		case "iops":
			disk.IOPS = quantity
		case "bps":
			disk.BytesPerSecond = quantity
		case "logical":
			disk.LogicalSector = int(quantity)
		case "physical":
			disk.PhysicalSector = int(quantity)
		case "heads":
			disk.Heads = int(quantity)
		default:
			return fmt.Errorf("there is no %q; there are size, iops, bps, logical, physical, delay, flush, unaligned, heads and seek", key)
		}
	}
	return checkDisk(*disk)
}

// delays returns the delays of a disk, by the keys that set them.
func delays(disk *vm.Disk) map[string]*time.Duration {
	return map[string]*time.Duration{"delay": &disk.Delay, "flush": &disk.FlushDelay, "unaligned": &disk.UnalignedDelay,
		"seek": &disk.SeekDelay}
}

// ParseQuantity parses a whole number, which may have a suffix, as 100Mi.
func ParseQuantity(text string) (int64, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number like 4Gi or 2000", text)
	}
	value, whole := quantity.AsInt64()
	if !whole || value < 0 {
		return 0, fmt.Errorf("%q is not a whole number of at least 0", text)
	}
	return value, nil
}

func checkDisk(disk vm.Disk) error {
	const sector = 4096
	if disk.SizeBytes < 64<<20 || disk.SizeBytes%sector != 0 {
		return fmt.Errorf("a disk of %d bytes: choose a multiple of %d of at least 64Mi, the smallest that ZFS takes", disk.SizeBytes, sector)
	}
	for _, size := range []int{disk.LogicalSector, disk.PhysicalSector} {
		if size != 512 && size != sector {
			return fmt.Errorf("sectors of %d bytes: choose 512 or %d", size, sector)
		}
	}
	if disk.LogicalSector > disk.PhysicalSector {
		return fmt.Errorf("logical sectors of %d bytes are larger than physical ones of %d bytes: choose larger physical ones",
			disk.LogicalSector, disk.PhysicalSector)
	}
	return nil
}

// all returns the disks of a node, in the order in which they are attached.
func (o Options) all() []vm.Disk {
	return append(append(append([]vm.Disk{}, o.Disks...), o.Volumes...), o.Files)
}

func (o Options) equal(other Options) bool { return reflect.DeepEqual(o, other) }
