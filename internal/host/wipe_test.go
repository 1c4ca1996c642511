package host

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// sum returns a checksum over the data of all disks and its position.
func (n *fakeNode) sum() uint32 {
	n.t.Helper()
	sum := crc32.NewIEEE()
	for _, kernel := range []string{"vda", "vdb"} {
		file, err := os.Open(n.path("/dev", kernel))
		n.must(err)
		for at := int64(0); ; {
			at, err = file.Seek(at, unix.SEEK_DATA)
			if errors.Is(err, unix.ENXIO) { // no data behind it
				break
			}
			n.must(err)
			end, err := file.Seek(at, unix.SEEK_HOLE)
			n.must(err)
			_, err = fmt.Fprintln(sum, kernel, at, end)
			n.must(err)
			_, err = io.Copy(sum, io.NewSectionReader(file, at, end-at))
			n.must(err)
			at = end
		}
		n.must(file.Close())
	}
	return sum.Sum32()
}

// afterPoolDisk is a disk as zpool destroy and zpool labelclear left it on a real node, but smaller in its middle.
func afterPoolDisk(t testing.TB) *fakeNode {
	n := newFakeNode(t)
	head, tail := unpacked(t, "cleared-head.gz"), unpacked(t, "cleared-tail.gz")
	const size = 4 << 30
	n.must(os.Truncate(n.path("/dev/vdb"), size))
	n.file("/sys/class/block/vdb/size", "8388608\n")
	n.write("vdb", 0, head)
	n.write("vdb", size-int64(len(tail)), tail)
	n.partition("vdb", "vdb1", "254:17", 1, 2048*512, 8368128*512)
	n.partition("vdb", "vdb9", "254:25", 9, 8370176*512, 16384*512)
	// Data of the pool between its labels, and the remains of the labels at the end after labelclear.
	n.write("vdb", 100<<20, []byte("data of the pool"))
	n.write("vdb", 2048*512+5<<20, []byte("more of it"))
	for _, offset := range labelOffsets(8368128 * 512)[2:] {
		n.write("vdb", 1<<20+offset+configStart-checksumSize, head[1<<20+configStart-checksumSize:1<<20+configStart])
	}
	return n
}

func TestADiskAfterItsPoolIsTaken(t *testing.T) {
	n := afterPoolDisk(t)
	disk, err := n.Check(Wish{Path: freePath})
	if err != nil || !disk.AfterPool {
		t.Errorf("after a pool: %v, %v", disk.AfterPool, err)
	}
}

// TestADiskAfterItsPoolCannotBeSpoiled: users of a pool cannot write data that makes the disk unusable after the pool is destroyed.
func TestADiskAfterItsPoolCannotBeSpoiled(t *testing.T) {
	n := afterPoolDisk(t)
	for name, write := range map[string]func(){
		"btrfs":  func() { n.write("vdb", 64<<20, unpacked(t, "btrfs-copy.gz")) },
		"ext":    func() { n.write("vdb", 129<<20, unpacked(t, "ext4-backup.gz")) },
		"LUKS":   func() { n.write("vdb", 5<<20, unpacked(t, "luks2-second.gz")) },
		"labels": func() { n.write("vdb", 4084<<20, label(t, PoolActive)) },
	} {
		write()
		if _, err := n.Check(Wish{Path: freePath}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHalfAPool: zpool create has made its table on a blank disk, and died.
func TestHalfAPool(t *testing.T) {
	n := afterPoolDisk(t)
	n.write("vdb", 1<<20, make([]byte, 40<<20))
	n.write("vdb", 100<<20, make([]byte, 4096))
	n.write("vdb", 1<<20+labelOffsets(8368128 * 512)[2], make([]byte, 2*labelSize))
	if _, err := n.Check(Wish{Path: freePath}); err != nil {
		t.Error(err)
	}
}

func TestADiskAfterItsPoolIsRefusedForAnythingMore(t *testing.T) {
	for name, spoil := range map[string]func(n *fakeNode){
		"label":                    func(n *fakeNode) { n.write("vdb", 1<<20, label(t, PoolDestroyed)) },
		"last label":               func(n *fakeNode) { n.write("vdb", 2048*512+labelOffsets(8368128 * 512)[3], label(t, PoolDestroyed)) },
		"data in the first label":  func(n *fakeNode) { n.write("vdb", 1<<20+100, []byte{1}) },
		"data in the last label":   func(n *fakeNode) { n.write("vdb", 2048*512+labelOffsets(8368128 * 512)[3]+200000, []byte{1}) },
		"data before partition 1":  func(n *fakeNode) { n.write("vdb", 1<<20-1, []byte{1}) },
		"data before partition 9":  func(n *fakeNode) { n.write("vdb", 8370176*512-1, []byte{1}) }, // the last label
		"data behind partition 9":  func(n *fakeNode) { n.write("vdb", (8370176+16384)*512, []byte{1}) },
		"data in the middle of it": func(n *fakeNode) { n.write("vdb", 8370176*512+4<<20, []byte{1}) },
		"a label blanked otherwise": func(n *fakeNode) {
			n.write("vdb", 1<<20+configStart-checksumSize, make([]byte, checksumSize))
			n.write("vdb", 200<<20, bytes.Repeat([]byte("data"), 6<<20)) // enough for a sample to hit it
		},
		"data in partition 9":       func(n *fakeNode) { n.write("vdb", 8370176*512+1000, []byte{1}) },
		"file system in part 1":     func(n *fakeNode) { n.write("vdb", 1<<20, []byte("XFSB")) },
		"LVM in partition 9":        func(n *fakeNode) { n.write("vdb", 8370176*512+0x218, []byte("LVM2 001")) },
		"one more partition":        func(n *fakeNode) { n.partition("vdb", "vdb2", "254:18", 2, 8386560*512, 512*512) },
		"partition moved":           func(n *fakeNode) { n.file("/sys/class/block/vdb/vdb1/start", "4096\n") },
		"partition of another kind": func(n *fakeNode) { n.write("vdb", 1024, []byte{0xaf, 0x3d, 0xc6, 0x0f}) },
		"one more entry":            func(n *fakeNode) { n.write("vdb", 1024+128, bytes.Repeat([]byte{7}, 56)) },
	} {
		n := afterPoolDisk(t)
		spoil(n)
		var refused *RefusedError
		if _, err := n.Check(Wish{Path: freePath}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWipeMakesADiskFree(t *testing.T) {
	for _, test := range refusals {
		if test.keeps {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			n := newFakeNode(t)
			test.spoil(n)
			if _, err := n.Wipe(Wish{Path: freePath}); err == nil {
				t.Fatal("wiped without its serial number")
			}
			if _, err := n.Wipe(Wish{Path: freePath, Reuse: "root-serial", Right: AnyContents}); err == nil {
				t.Fatal("wiped with the serial number of another disk")
			}
			disk, err := n.Wipe(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents})
			// The kernel of a fake node does not forget partitions.
			if len(disk.partitions) > 0 {
				n.must(os.RemoveAll(n.path("/sys/class/block/vdb/vdb1")))
				_, err = n.Check(Wish{Path: freePath})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWipeLeavesOtherDisksAlone(t *testing.T) {
	n := newFakeNode(t)
	n.write("vda", 0, bytes.Repeat([]byte("precious"), 1<<20))
	n.write("vda", -1<<20, bytes.Repeat([]byte("precious"), 1<<17))
	before, err := os.ReadFile(n.path("/dev/vda"))
	n.must(err)
	n.write("vdb", 0, []byte("XFSB"))
	if _, err := n.Wipe(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(n.path("/dev/vda"))
	n.must(err)
	if !bytes.Equal(before, after) {
		t.Error("another disk changed")
	}
}

func TestWipeOfABlankDiskWritesNothing(t *testing.T) {
	n := newFakeNode(t)
	n.must(os.Chmod(n.path("/dev/vdb"), 0o444))
	if _, err := n.Wipe(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); err != nil {
		t.Error(err)
	}
}

// TestAWipeThatEndsHalfway: the disk can be wiped again, because it never has only the last labels of a pool without the first.
func TestAWipeThatEndsHalfway(t *testing.T) {
	n := newLargeNode(t)
	n.write("vdb", 1<<20, label(t, PoolExported))
	n.write("vdb", 1<<20+labelSize, label(t, PoolExported))
	n.endLabels(PoolExported, 1<<20, 246<<20)
	wish := Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}
	for writes := 0; ; writes++ {
		disk, err := n.Check(wish)
		if err != nil {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		if len(disk.Findings) == 0 {
			if writes < 2 {
				t.Errorf("blank after %d writes: there was no halfway", writes)
			}
			return
		}
		file, err := os.OpenFile(n.path("/dev/vdb"), os.O_RDWR, 0)
		n.must(err)
		one := true
		_ = n.blank(disk, careful{File: file, may: func() error { // ends after one write
			if !one {
				return errAbandoned
			}
			one = false
			return nil
		}})
		n.must(file.Close())
	}
}
