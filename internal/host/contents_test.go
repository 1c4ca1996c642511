package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// largeSize is more than a check reads completely.
const largeSize = 256 << 20

// newLargeNode is a fake node whose free disk has a middle.
func newLargeNode(t testing.TB) *fakeNode {
	t.Helper()
	n := newFakeNode(t)
	n.resize(largeSize)
	return n
}

func (n *fakeNode) resize(size int64) {
	n.t.Helper()
	n.must(os.Truncate(n.path("/dev/vdb"), size))
	n.file("/sys/class/block/vdb/size", fmt.Sprintln(size/512))
}

// endLabels writes only the two labels at the end of a vdev.
func (n *fakeNode) endLabels(state PoolState, start, size int64) {
	n.t.Helper()
	for _, offset := range labelOffsets(size)[2:] {
		n.write("vdb", start+offset, label(n.t, state))
	}
}

// backupTable writes a partition table to the end of the disk, with one partition.
func (n *fakeNode) backupTable(size, first, last int64) {
	n.t.Helper()
	header := make([]byte, 512)
	copy(header, "EFI PART")
	binary.LittleEndian.PutUint64(header[72:], uint64(size/512-33))
	binary.LittleEndian.PutUint32(header[80:], 128)
	binary.LittleEndian.PutUint32(header[84:], gptEntrySize)
	n.write("vdb", size-512, header)
	entry := make([]byte, gptEntrySize)
	copy(entry, zfsPartition[:])
	binary.LittleEndian.PutUint64(entry[32:], uint64(first))
	binary.LittleEndian.PutUint64(entry[40:], uint64(last))
	n.write("vdb", size-33*512, entry)
}

// buried are contents that leave the first 4 MiB and the last MiB of a disk blank, or nearly so.
var buried = []struct {
	name   string
	spoil  func(n *fakeNode)
	want   Reason
	detail string
	not    string
	keeps  bool
}{
	{name: "data behind the first 4 MiB", spoil: func(n *fakeNode) { n.write("vdb", 5<<20, []byte("data")) }, want: UnknownData,
		detail: "at byte 5242880"},
	{name: "data before the last MiB", spoil: func(n *fakeNode) { n.write("vdb", largeSize-2<<20, []byte("data")) }, want: UnknownData,
		detail: "at byte 266338304"},
	{name: "data in the middle", spoil: func(n *fakeNode) { n.write("vdb", 200<<20, bytes.Repeat([]byte("data"), 1<<19)) }, want: UnknownData,
		detail: "data of an unknown kind"},
	{name: "backup superblock of ext4", spoil: func(n *fakeNode) { n.write("vdb", 128<<20, unpacked(n.t, "ext4-backup.gz")) }, want: Signature,
		detail: "signature of ext"},
	{name: "backup superblock of ext4 on a former partition", spoil: func(n *fakeNode) {
		n.write("vdb", 129<<20, unpacked(n.t, "ext4-backup.gz"))
	}, want: Signature, detail: "signature of ext"},
	// Blocks of 1 KiB: group 3 begins behind three groups of 8 MiB and the first block. The magic and the number of the group are written
	// by hand.
	{name: "backup superblock of ext2", spoil: func(n *fakeNode) {
		n.write("vdb", 24<<20+1024+0x38, []byte{0x53, 0xef})
		n.write("vdb", 24<<20+1024+0x5a, []byte{3, 0})
	}, want: Signature, detail: "signature of ext"},
	{name: "something else at the place of a backup", spoil: func(n *fakeNode) { n.write("vdb", 128<<20+17, []byte{1}) }, want: UnknownData,
		detail: "at byte 134217745"},
	{name: "second superblock of XFS", spoil: func(n *fakeNode) { n.write("vdb", 64<<20, unpacked(n.t, "xfs-group.gz")) }, want: Signature,
		detail: "signature of xfs"},
	{name: "copy of the superblock of btrfs", spoil: func(n *fakeNode) { n.write("vdb", 64<<20, unpacked(n.t, "btrfs-copy.gz")) },
		want: Signature, detail: "signature of btrfs"},
	{name: "second header of LUKS2", spoil: func(n *fakeNode) { n.write("vdb", 16<<10, unpacked(n.t, "luks2-second.gz")) }, want: Signature,
		detail: "crypto_LUKS"},
	{name: "second header of LUKS2 at its last place", spoil: func(n *fakeNode) { n.write("vdb", 4<<20, unpacked(n.t, "luks2-second.gz")) },
		want: Signature, detail: "crypto_LUKS"},
	{name: "dynamic disk", spoil: func(n *fakeNode) {
		record := make([]byte, 512)
		copy(record[446:], []byte{0, 0, 2, 0, 0x42, 0, 0, 0, 63, 0, 0, 0, 0, 0x10, 0, 0})
		copy(record[510:], []byte{0x55, 0xaa})
		n.write("vdb", 0, record)
	}, want: Signature, detail: "signature of ldm", not: "dos"},
	{name: "dynamic disk without its first sectors", spoil: func(n *fakeNode) { n.write("vdb", largeSize-512, []byte("PRIVHEAD")) },
		want: Signature, detail: "signature of ldm"},
	{name: "partitions that only the kernel remembers", spoil: func(n *fakeNode) { n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20) },
		want: PartitionTable,
		detail: "its ends are blank, but the kernel still sees 1 partitions of an earlier table: reread the table with 'blockdev " +
			"--rereadpt " + freePath, not: "blank it yourself"},
	// The partition that ZFS makes on this disk: from sector 2048 to the last round place before the reserved 16384 sectors and the table.
	{name: "end labels of a pool, no table", spoil: func(n *fakeNode) { n.endLabels(PoolActive, 1<<20, 246<<20) }, want: ActivePool,
		detail: `pool "sbz"`, keeps: true},
	{name: "end labels of an exported pool, no table", spoil: func(n *fakeNode) { n.endLabels(PoolExported, 1<<20, 246<<20) },
		want: PoolRemains, detail: `exported pool "sbz"`, keeps: true},
	{name: "exported pool, no table", spoil: func(n *fakeNode) {
		n.write("vdb", 1<<20, label(n.t, PoolExported))
		n.endLabels(PoolExported, 1<<20, 246<<20)
	}, want: PoolMember, detail: `exported pool "sbz"`},
	{name: "end labels of a pool on a partition from sector 34", spoil: func(n *fakeNode) { n.endLabels(PoolActive, 34*512, 247<<20) },
		want: ActivePool, detail: `pool "sbz"`, keeps: true},
	{name: "end labels of a pool on 4 KiB sectors", spoil: func(n *fakeNode) {
		n.file("/sys/class/block/vdb/queue/logical_block_size", "4096\n")
		n.endLabels(PoolActive, 8<<20, 176<<20)
	}, want: ActivePool, detail: `pool "sbz"`, keeps: true},
	{name: "end labels of illumos on 4 KiB sectors", spoil: func(n *fakeNode) {
		n.endLabels(PoolActive, 1<<20, largeSize-5*4096-16384*4096-1<<20)
	}, want: ActivePool, detail: `pool "sbz"`, keeps: true},
	{name: "end labels of a pool, table at the end only", spoil: func(n *fakeNode) {
		n.backupTable(largeSize, 2048, 2048+246<<11-1)
		n.endLabels(PoolActive, 1<<20, 246<<20)
	}, want: ActivePool, detail: `pool "sbz"`, keeps: true},
	{name: "table at the end with a tiny partition", spoil: func(n *fakeNode) { n.backupTable(largeSize, 40, 47) }, want: PartitionTable,
		detail: "gpt (backup)"},
	{name: "labels of a pool in the middle, table at the end only", spoil: func(n *fakeNode) {
		n.backupTable(largeSize, 100<<11, 200<<11-1)
		n.endLabels(PoolActive, 100<<20, 100<<20)
	}, want: ActivePool, detail: `pool "sbz"`, keeps: true},
}

func TestBuriedContents(t *testing.T) {
	for _, test := range buried {
		t.Run(test.name, func(t *testing.T) {
			n := newLargeNode(t)
			test.spoil(n)
			before := n.sum()
			_, err := n.Check(Wish{Path: freePath})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.detail) {
				t.Errorf("%v: want %s with %q", err, test.want, test.detail)
			}
			if test.not != "" && strings.Contains(err.Error(), test.not) {
				t.Errorf("%v: must not say %q", err, test.not)
			}
			_, err = n.Check(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents})
			if (err != nil) != test.keeps {
				t.Errorf("named for reuse: %v", err)
			}
			if test.keeps {
				if _, err := n.Wipe(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); err == nil {
					t.Error("it was wiped")
				}
			}
			if n.sum() != before {
				t.Error("the disk was written to")
			}
			if test.keeps {
				return
			}
			_, err = n.Wipe(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents})
			n.must(os.RemoveAll(n.path("/sys/class/block/vdb/vdb1"))) // the kernel of a fake node does not forget partitions
			if _, again := n.Check(Wish{Path: freePath}); again != nil {
				t.Errorf("after it was wiped: %v, %v", err, again)
			}
		})
	}
}

// TestAllOfASmallDiskIsRead: a single byte is seen.
func TestAllOfASmallDiskIsRead(t *testing.T) {
	n := newFakeNode(t)
	n.resize(96<<20 + 512)
	for _, at := range []int64{16<<20 - 1, 16 << 20, 40<<20 + 12345, 80<<20 - 1, 80 << 20, 80<<20 + 511, 96<<20 + 511} {
		n.write("vdb", at, []byte{1})
		if _, err := n.Check(Wish{Path: freePath}); !errors.Is(err, UnknownData) ||
			!strings.Contains(err.Error(), fmt.Sprintf("at byte %d", at)) {
			t.Errorf("a byte at %d: %v", at, err)
		}
		n.write("vdb", at, []byte{0})
	}
	if _, err := n.Check(Wish{Path: freePath}); err != nil {
		t.Error(err)
	}
}

// countingReader counts reads and bytes, and can simulate a slow disk with a clock of its own.
type countingReader struct {
	io.ReaderAt
	bytes, reads int64
	clock        time.Time
	slow         time.Duration
}

func (c *countingReader) ReadAt(data []byte, offset int64) (int, error) {
	c.bytes, c.reads, c.clock = c.bytes+int64(len(data)), c.reads+1, c.clock.Add(c.slow)
	return c.ReaderAt.ReadAt(data, offset)
}

func (c *countingReader) now() time.Time { return c.clock }

// lookAt searches the free disk through a reader.
func (n *fakeNode) lookAt(slow time.Duration) (Disk, *countingReader, error) {
	n.t.Helper()
	disk, err := n.Identify(freePath)
	n.must(err)
	file, err := n.openDirect(disk.Kernel, disk.Number, 0)
	n.must(err)
	defer func() { n.must(file.Close()) }()
	reader := &countingReader{ReaderAt: file, slow: slow}
	return disk, reader, n.search(&disk, reader, reader.now)
}

// TestALargeDiskIsReadInBounds: neither too much of it, nor too little.
func TestALargeDiskIsReadInBounds(t *testing.T) {
	n := newFakeNode(t)
	n.resize(8 << 40)
	began := time.Now()
	disk, reader, err := n.lookAt(0)
	if err != nil || len(disk.Findings) > 0 {
		t.Fatalf("%v, %+v", err, disk.Findings)
	}
	t.Logf("8 TiB: %d MiB in %d reads, %v", reader.bytes>>20, reader.reads, time.Since(began))
	const least, most = 2*endSize + sampleRounds*sampleCells*sampleSize, 128 << 20
	if reader.bytes < least || reader.bytes > most {
		t.Errorf("%d bytes were read, want %d to %d", reader.bytes, int64(least), int64(most))
	}
}

func TestSlowDisks(t *testing.T) {
	n := newFakeNode(t)
	n.resize(1 << 40)
	// 100 reads a second: somewhat more than the minimum is read, and the disk is taken.
	disk, reader, err := n.lookAt(10 * time.Millisecond)
	if err != nil || len(disk.Findings) > 0 || reader.reads < sampleCells || reader.reads > 2*sampleCells {
		t.Errorf("100 reads a second: %d reads, %v, %+v", reader.reads, err, disk.Findings)
	}
	// 10 a second: the minimum is not reached, and the disk is refused.
	_, reader, err = n.lookAt(100 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "at least 512 are required: it is too slow, busy or failing") {
		t.Errorf("10 reads a second: %d reads, %v", reader.reads, err)
	}
}

func TestDirectReads(t *testing.T) {
	for _, folder := range []string{t.TempDir(), "/dev/shm"} {
		t.Run(folder, func(t *testing.T) {
			if _, err := os.Stat(folder); err != nil {
				t.Skipf("no %s here: direct reads are not tried on it", folder)
			}
			at, err := os.MkdirTemp(folder, "direct")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(at) }()
			data := make([]byte, 3*directBuffer+512)
			for i := range data {
				data[i] = byte(i*7 + i>>12)
			}
			n := NewFake(at)
			if err := errors.Join(os.Mkdir(filepath.Join(at, "dev"), 0o755), os.WriteFile(filepath.Join(at, "dev/vdb"), data, 0o600)); err != nil {
				t.Fatal(err)
			}
			file, err := n.openDirect("vdb", "1:1", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			for _, r := range [][2]int{{0, 1}, {1, 4096}, {511, 512}, {4095, 8194}, {directBuffer - 1, directBuffer + 2}, {17, len(data) - 17},
				{len(data) - 512, 512}, {len(data) - 1, 1}} {
				got, err := readAt(file, int64(r[0]), int64(r[1]))
				if err != nil || !bytes.Equal(got, data[r[0]:r[0]+r[1]]) {
					t.Errorf("%d bytes at %d: %d, %v", r[1], r[0], len(got), err)
				}
			}
			for _, at := range []int{len(data) - 100, len(data), len(data) + 5000} {
				if got, err := readAt(file, int64(at), 4096); err != nil || !bytes.Equal(got, data[min(at, len(data)):]) {
					t.Errorf("over the end at %d: %d, %v", at, len(got), err)
				}
			}
		})
	}
}
