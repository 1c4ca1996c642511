package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/test/lab/vm"
)

// poolPrefix is the prefix of the names of the tests' pools, so that those of a killed run are recognised and removed.
const poolPrefix = "e2e-"

// device returns the name by which a node knows a disk.
func device(node, disk string) string { return "/dev/disk/by-id/virtio-" + node + "-" + disk }

// wipe is a script that empties a disk that is unused or has a pool of the tests. It stops at anything else.
const wipe = `set -eu
device=$1
udevadm settle
for pool in $(lsblk --noheadings --raw --output LABEL "$device" | sort -u); do
	case $pool in
	` + poolPrefix + `*) timeout 60 zpool destroy -f "$pool" 2>/dev/null || true ;;
	*) echo "$device holds $pool: the tests need empty disks, and take away only pools of their own" >&2; exit 1 ;;
	esac
done
for part in "$device"-part*; do
	[ ! -e "$part" ] || timeout 60 zpool labelclear -f "$part" 2>/dev/null || true
done
wipefs --all --quiet "$device"
` + blank + `blank "$device"
udevadm settle
`

// blank defines a shell function that erases a whole disk, because the agent looks at all of it. A discarded block of the lab's disks is a
// hole in a file.
const blank = `blank() {
	blkdiscard -f "$1"
	blockdev --rereadpt "$1"
}
`

// takeDisks gives a test the first data disks of a node, empty, and repairs and empties them again at its end. Call it before newSpace, so
// that the pods are cleaned up first, then the disks that they used.
func takeDisks(t *testing.T, node string, count int) []vm.Disk {
	t.Helper()
	if len(made.Disks) < count {
		t.Skipf("this lab has %d data disks a node: make one with at least %d ('make lab-up LAB=other DISKS=%d')", len(made.Disks), count, count)
	}
	taken := made.Disks[:count]
	clean := func() error {
		ctx, cancel := afterwards(t)
		defer cancel()
		for _, disk := range taken {
			// A discard counts as bytes: at its limit a disk takes minutes to be emptied.
			if err := errors.Join(restoreDisk(ctx, node, disk), theLab.Disk(ctx, node, disk.Name, "throttle", 0, 0)); err != nil {
				return err
			}
		}
		for _, disk := range taken {
			_, err := theLab.Run(ctx, node, "sh", "-c", wipe, "wipe", device(node, disk.Name))
			if err := errors.Join(err, restoreDisk(ctx, node, disk)); err != nil {
				return err
			}
		}
		return nil
	}
	switchOn(t, node) // QEMU may have hung in the test before
	if err := clean(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		switchOn(t, node)
		if err := clean(); err != nil {
			t.Errorf("disks of node %s are not as they were: %v", node, err)
		}
	})
	return taken
}

// vdev is a part of a pool, as `zpool status -j` reports it.
type vdev struct {
	State          string          `json:"state"`
	ReadErrors     int64           `json:"read_errors"`
	WriteErrors    int64           `json:"write_errors"`
	ChecksumErrors int64           `json:"checksum_errors"`
	Vdevs          map[string]vdev `json:"vdevs"`
}

// errors counts the errors of the vdev and of all below it.
func (v vdev) errors() int64 {
	count := v.ReadErrors + v.WriteErrors + v.ChecksumErrors
	for _, below := range v.Vdevs {
		count += below.errors()
	}
	return count
}

// leaf returns the part of the vdev that is on a disk of the lab.
func (v vdev) leaf(disk string) vdev {
	for name, below := range v.Vdevs {
		if strings.HasSuffix(name, "-"+disk) {
			return below
		}
		if found := below.leaf(disk); found.State != "" {
			return found
		}
	}
	return vdev{}
}

// pool is what `zpool status -j` reports about a pool.
type pool struct {
	State string          `json:"state"`
	Vdevs map[string]vdev `json:"vdevs"`
	Scan  struct {
		Function string `json:"function"`
		State    string `json:"state"`
		Errors   int64  `json:"errors"`
	} `json:"scan_stats"`
}

// status asks a pod for the state of a pool.
func (s *space) status(pod, name string) (pool, error) {
	output, err := s.try(pod, `zpool status -j --json-int "$1"`, name)
	if err != nil {
		return pool{}, err
	}
	var answer struct {
		Pools map[string]pool `json:"pools"`
	}
	if err := json.Unmarshal([]byte(output), &answer); err != nil {
		return pool{}, fmt.Errorf("zpool status -j of pool %s: %w: %s", name, err, output)
	}
	found, is := answer.Pools[name]
	if !is {
		return pool{}, fmt.Errorf("zpool status -j does not tell of pool %s: %s", name, output)
	}
	return found, nil
}
