package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// PoolState is the state of a pool according to a label.
type PoolState uint64

// The states of OpenZFS.
const (
	PoolActive    PoolState = 0
	PoolExported  PoolState = 1
	PoolDestroyed PoolState = 2
	PoolSpare     PoolState = 3
	PoolCache     PoolState = 4
)

// String is the state in words.
func (s PoolState) String() string {
	names := map[PoolState]string{PoolActive: "active", PoolExported: "exported", PoolDestroyed: "destroyed", PoolSpare: "spare",
		PoolCache: "cache"}
	if name := names[s]; name != "" {
		return name
	}
	return fmt.Sprintf("in state %d", uint64(s))
}

// PoolLabel is a label of ZFS. It says which pool the disk belongs to.
type PoolLabel struct {
	// Name and GUID of the pool; a spare or cache device knows neither.
	Name string
	GUID uint64
	// VdevGUID of this device.
	VdevGUID uint64
	State    PoolState
	// Txg is the transaction group of the label.
	Txg uint64
	// CreateTxg is the transaction group in which the disk was to join the pool. Only labels of transaction group 0 have one.
	CreateTxg uint64
	// HostID and HostName of the node that had the pool last.
	HostID   uint64
	HostName string
	// Path of the device, as last seen by the node that had the pool last.
	Path string
	// Offset of the label on the disk in bytes.
	Offset int64
}

// Left reports whether the disk is not, or not yet, part of the pool: ZFS writes a label with transaction group 0 when it takes a disk out,
// and also before it adds one.
func (l PoolLabel) Left() bool { return l.State == PoolActive && l.Txg == 0 }

// Joining reports whether ZFS wrote the label before it added the disk. The pool may have got the disk since this label was read.
func (l PoolLabel) Joining() bool { return l.Left() && l.CreateTxg != 0 }

// judge says what a label means. The label of an active pool that the disk has not left is never set aside, because another node may be
// using the pool.
func (l PoolLabel) judge(kernel string, imported map[string]bool) (Reason, string) {
	pool := fmt.Sprintf("pool %q (guid %d)", l.Name, l.GUID)
	switch {
	case l.Joining():
		return ActivePool, fmt.Sprintf("host %q (id %d) began to add %s to %s, and may be adding it now; if it did not finish, run zpool "+
			"labelclear", l.HostName, l.HostID, kernel, pool)
	case l.Left():
		return PoolMember, fmt.Sprintf("%s was taken out of %s", kernel, pool)
	case l.State == PoolActive && imported[l.Name]:
		return RunningPool, fmt.Sprintf("%s belongs to the running %s", kernel, pool)
	case l.State == PoolActive:
		return ActivePool, fmt.Sprintf("%s belongs to %s, which host %q (id %d) used last and did not export: that host may still use it",
			kernel, pool,
			l.HostName, l.HostID)
	case l.State == PoolSpare || l.State == PoolCache:
		return ActivePool, fmt.Sprintf("%s is a %s device of a pool that its label does not name: remove it from that pool first", kernel,
			l.State)
	default:
		return PoolMember, fmt.Sprintf("%s belongs to the %s %s, last used by host %q", kernel, l.State, pool, l.HostName)
	}
}

// A vdev has four labels: two at its beginning and two at its end.
const (
	labelSize   = 256 << 10
	configStart = 16 << 10
	configSize  = 112 << 10
	ringStart   = 128 << 10
	uberMagic   = 0x00bab10c
)

// labelOffsets returns the offsets of the four labels of a vdev of that size.
func labelOffsets(size int64) []int64 {
	size -= size % labelSize
	return []int64{0, labelSize, size - 2*labelSize, size - labelSize}
}

// likelyLabels returns the offsets of possible labels whose configurations begin in the given piece of a disk.
func likelyLabels(start int64, data []byte) []int64 {
	var places []int64
	const name = 24 // the offset of the name in the first pair
	for at := 0; at+name+9 <= len(data); at += sectorUnit {
		if data[at] == 1 && (string(data[at+name:at+name+7]) == "version" || string(data[at+name:at+name+9]) == "pool_guid") {
			places = append(places, start+int64(at)-configStart)
		}
	}
	return places
}

// formerPartitions returns the partitions of a table at either end of the disk, which the kernel may not know, and those that ZFS makes on
// a whole disk of that size, even if its tables are gone. Labels in the ends of the disk are also found without them, see searchEnds.
func formerPartitions(disk *Disk, file io.ReaderAt) ([]part, error) {
	var former []part
	for _, sector := range []int64{512, 4096} {
		sectors := disk.SizeBytes / sector
		for _, header := range []int64{1, sectors - 1} {
			entries, err := readTable(file, header*sector, sector)
			if errors.Is(err, unix.EIO) {
				return nil, err
			}
			former = append(former, vdevsOf(entries, disk, sector)...) // a broken table is reported already, or is data at the end
		}
		// The table takes 16 KiB and its header a sector. 16384 sectors after the data are reserved, and everything begins at aligned offsets.
		const round, reserved = 2048, 16384
		usable := sectors - gptSize/sector - 1 - reserved
		for _, start := range []int64{round, 256} {
			for _, length := range []int64{usable - start, (usable - start) / round * round} {
				if length*sector > 4*labelSize {
					former = append(former, part{kernel: "former partition 1 of " + disk.Kernel, start: start * sector, size: length * sector})
				}
			}
		}
	}
	return former, nil
}

// vdevsOf returns the partitions of a table that have room for the labels of a vdev.
func vdevsOf(entries []gptEntry, disk *Disk, sector int64) []part {
	var vdevs []part
	for _, entry := range entries {
		if entry.last < entry.first || entry.last >= uint64(disk.SizeBytes/sector) {
			continue
		}
		if size := int64(entry.last-entry.first+1) * sector; size >= 4*labelSize {
			vdevs = append(vdevs, part{kernel: fmt.Sprintf("former partition %d of %s", entry.index, disk.Kernel),
				start: int64(entry.first) * sector, size: size})
		}
	}
	return vdevs
}

// readLabel reads one label. It returns nil if there is none, and an error if there is something that it cannot read.
func readLabel(disk io.ReaderAt, offset int64) (*PoolLabel, error) {
	data, err := readAt(disk, offset, labelSize)
	if err != nil {
		return nil, err
	}
	if len(data) < labelSize {
		return nil, nil
	}
	config := data[configStart : configStart+configSize]
	if !bytes.Contains(config[:4096], []byte("version")) && !bytes.Contains(config[:4096], []byte("pool_guid")) {
		if hasUberblock(data[ringStart:]) {
			return nil, errors.New("uberblocks of a pool without its label")
		}
		return nil, nil
	}
	label, err := parseLabel(config)
	if err != nil {
		return nil, fmt.Errorf("a label of ZFS that cannot be read: %w", err)
	}
	label.Offset = offset
	return label, nil
}

func hasUberblock(ring []byte) bool {
	for at := 0; at+8 <= len(ring); at += 1024 {
		if binary.LittleEndian.Uint64(ring[at:]) == uberMagic || binary.BigEndian.Uint64(ring[at:]) == uberMagic {
			return true
		}
	}
	return false
}

// parseLabel reads the name-value list of a label.
func parseLabel(config []byte) (*PoolLabel, error) {
	// 1 is the encoding XDR, which is independent of the writer's byte order.
	if len(config) < 4 || config[0] != 1 {
		return nil, errors.New("its encoding is not XDR")
	}
	reader := &xdr{data: config[4:]}
	values := map[string]any{}
	if err := reader.list("", values, 0); err != nil {
		return nil, err
	}
	label := &PoolLabel{}
	_, hasState := values["state"]
	_, hasGUID := values["guid"]
	if !hasState && !hasGUID {
		return nil, errors.New("it has neither state nor guid")
	}
	for name, field := range map[string]*uint64{"pool_guid": &label.GUID, "guid": &label.VdevGUID, "state": (*uint64)(&label.State),
		"txg": &label.Txg, "create_txg": &label.CreateTxg, "hostid": &label.HostID} {
		if value, ok := values[name].(uint64); ok {
			*field = value
		}
	}
	for name, field := range map[string]*string{"name": &label.Name, "hostname": &label.HostName} {
		if value, ok := values[name].(string); ok {
			*field = value
		}
	}
	label.Path = ownPath(values, label.VdevGUID)
	return label, nil
}

// ownPath returns the path of this device from the tree of its top-level vdev.
func ownPath(values map[string]any, guid uint64) string {
	for name, value := range values {
		prefix, isGUID := strings.CutSuffix(name, "/guid")
		if isGUID && value == guid {
			if path, ok := values[prefix+"/path"].(string); ok {
				return path
			}
		}
	}
	return ""
}

// xdr reads the external data representation of name-value lists.
type xdr struct {
	data []byte
}

// The types that a label needs; all others are skipped.
const (
	xdrUint64 = 8
	xdrString = 9
	xdrList   = 19
	xdrLists  = 20

	xdrDepth = 8
	xdrPairs = 4096
)

var errShort = errors.New("it ends within a value")

func (x *xdr) take(count int) ([]byte, error) {
	if count < 0 || count > len(x.data) {
		return nil, errShort
	}
	taken := x.data[:count]
	x.data = x.data[count:]
	return taken, nil
}

func (x *xdr) uint32() (uint32, error) {
	data, err := x.take(4)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(data), nil
}

func (x *xdr) string() (string, error) {
	length, err := x.uint32()
	if err != nil || length > uint32(len(x.data)) {
		return "", errShort
	}
	data, err := x.take(int(length+3) &^ 3)
	if err != nil {
		return "", err
	}
	return string(data[:length]), nil
}

// list reads pairs into values. Those of an inner list get names such as NAME[INDEX]/INNER.
func (x *xdr) list(path string, values map[string]any, depth int) error {
	if depth > xdrDepth {
		return errors.New("its lists are nested too deep")
	}
	if _, err := x.take(8); err != nil { // version and flags
		return err
	}
	for range xdrPairs {
		before := len(x.data)
		size, err := x.uint32()
		if err != nil {
			return err
		}
		if _, err := x.uint32(); err != nil {
			return err
		}
		if size == 0 {
			return nil
		}
		if size < 8 || int64(size) > int64(before) {
			return errShort
		}
		pair := &xdr{data: x.data[:size-8]}
		x.data = x.data[size-8:]
		if err := pair.pair(path, values, depth); err != nil {
			return err
		}
	}
	return errors.New("its list does not end")
}

func (x *xdr) pair(path string, values map[string]any, depth int) error {
	name, err := x.string()
	if err != nil {
		return err
	}
	kind, kindErr := x.uint32()
	count, countErr := x.uint32()
	if err := errors.Join(kindErr, countErr); err != nil {
		return err
	}
	if path != "" {
		name = path + "/" + name
	}
	switch kind {
	case xdrUint64:
		data, err := x.take(8)
		if err != nil {
			return err
		}
		values[name] = binary.BigEndian.Uint64(data)
	case xdrString:
		text, err := x.string()
		if err != nil {
			return err
		}
		values[name] = text
	case xdrList, xdrLists:
		if kind == xdrList {
			count = 1
		}
		for at := range min(count, xdrPairs) {
			if err := x.list(fmt.Sprintf("%s[%d]", name, at), values, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
