package vm

import "strings"

// A data disk is a chain of QEMU's block nodes: the file, a throttle with the disk's limits, perhaps a fault, and the
// device that the guest sees. The names say which is which, so that any process can read the state from QEMU.

func deviceID(disk string) string   { return "data-" + disk }
func fileID(disk string) string     { return "file-" + disk }
func throttleID(disk string) string { return "throttle-" + disk }
func limitID(disk string) string    { return "limit-" + disk }
func hangID(disk string) string     { return "hang-" + disk }

const faultPrefix = "fault-"

func faultID(disk string, fault Fault) string { return faultPrefix + string(fault) + "-" + disk }

// faultOf parses the name of a block node.
func faultOf(node string) (disk string, fault Fault, is bool) {
	rest, is := strings.CutPrefix(node, faultPrefix)
	if !is {
		return "", NoFault, false
	}
	kind, disk, _ := strings.Cut(rest, "-") // no kind has a hyphen
	return disk, Fault(kind), true
}

// limits are those of a throttle group. Without a -max, QEMU lets a burst of 100 ms pass at once, the smallest that it can.
// Without iops-size, a request counts once, whatever its size.
type limits struct {
	IOPS           int64 `json:"iops-total"`
	BytesPerSecond int64 `json:"bps-total"`
}

// noFlush lets the host's kernel decide when to write. The data survives everything except a crash of the host, for which a lab is not
// made; in return, the limits alone decide how fast a disk is.
var noFlush = map[string]bool{"no-flush": true}

func fileNode(id, path string, readOnly bool) map[string]any {
	node := map[string]any{"driver": "file", "node-name": id, "filename": path}
	if readOnly {
		node["read-only"] = true
		return node
	}
	node["cache"] = noFlush
	node["discard"] = "unmap"
	return node
}

// dataNode returns the block node that stores a data disk: a file, or the server of a file with service times.
func (s Spec) dataNode(disk Disk) map[string]any {
	if !disk.Slow() {
		return fileNode(fileID(disk.Name), s.diskPath(disk), false)
	}
	return map[string]any{"driver": "nbd", "node-name": fileID(disk.Name), "discard": "unmap", "reconnect-delay": reconnectSeconds,
		"server": map[string]string{"type": "unix", "path": s.slowSocket(disk)}}
}

// reconnectSeconds is how long requests wait for a server that was restarted.
const reconnectSeconds = 20

func throttleNode(id, group, below string) map[string]any {
	return map[string]any{"driver": "throttle", "node-name": id, "throttle-group": group, "file": below, "discard": "unmap"}
}

// errorNode returns a block node that fails requests of the given kinds with EIO, and passes on all others.
func errorNode(id, below string, kinds []string) map[string]any {
	const inputOutputError = 5
	var rules []map[string]any
	for _, kind := range kinds {
		rules = append(rules, map[string]any{"event": "none", "iotype": kind, "errno": inputOutputError, "immediately": true})
	}
	return map[string]any{"driver": "blkdebug", "node-name": id, "image": below, "discard": "unmap", "inject-error": rules}
}

// blockDevice is a disk as the guest sees it.
type blockDevice struct {
	Driver string `json:"driver"`
	ID     string `json:"id"`
	Slot   string `json:"addr"`
	Drive  string `json:"drive"`
	Serial string `json:"serial"`
	// Queues is the number of processors, as with real NVMe disks.
	Queues         int `json:"num-queues"`
	LogicalSector  int `json:"logical_block_size,omitempty"`
	PhysicalSector int `json:"physical_block_size,omitempty"`
	// Discard is offered to the guest, so that the file can become sparse again.
	Discard bool `json:"discard"`
	// Merging would combine several requests into one before they are counted.
	Merging bool `json:"request-merging"`
	// WriteCache is on for a disk that needs flushes, as most do; the guest must not change it.
	WriteCache string `json:"write-cache"`
	Changeable bool   `json:"config-wce"`
	// A full disk of the host stops the machine, which Status reports, instead of looking like a broken disk. All other
	// errors are reported to the guest.
	OnReadError  string `json:"rerror"`
	OnWriteError string `json:"werror"`
}

func (s Spec) blockDevice(id, node, serial string, at int) blockDevice {
	return blockDevice{Driver: "virtio-blk-pci", ID: id, Slot: slot(at), Drive: node, Serial: serial, Queues: s.CPUs,
		Discard: true, WriteCache: "on", OnReadError: "report", OnWriteError: "enospc"}
}

func (s Spec) dataDevice(n int) blockDevice {
	disk := s.Disks[n]
	d := s.blockDevice(deviceID(disk.Name), throttleID(disk.Name), serialOf(s.Name, disk.Name), firstDiskSlot+n)
	d.LogicalSector, d.PhysicalSector = disk.LogicalSector, disk.PhysicalSector
	return d
}
