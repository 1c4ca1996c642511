package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestWhatANamespaceMayGiveUp tries every refusal with the rights of a namespace. Only file systems are set aside. Without the right,
// nothing is set aside, and the serial number is not revealed.
func TestWhatANamespaceMayGiveUp(t *testing.T) {
	taken, kept := map[string]bool{}, 0
	try := func(name string, n *fakeNode, spoil func(*fakeNode), wish Wish) {
		if spoil != nil {
			spoil(n)
		}
		if wish.Path == "" {
			wish.Path = freePath
		}
		disk, _ := n.Check(wish)
		wish.Reuse, wish.Right = disk.Serial, NoContents
		if _, err := n.Check(wish); err == nil {
			t.Errorf("%s: taken without a right", name)
		} else if disk.Serial != "" && strings.Contains(err.Error(), disk.Serial) {
			t.Errorf("%s: tells the serial number: %v", name, err)
		}
		wish.Right = FileSystems
		before := n.sum()
		_, err := n.Check(wish)
		if err == nil {
			for _, finding := range disk.Findings {
				taken[finding.Type] = true
			}
			return
		}
		if kept++; wish.Reuse == "" {
			return
		}
		if _, err := n.Wipe(wish); err == nil || n.sum() != before {
			t.Errorf("%s: wiped: %v", name, err)
		}
	}
	for _, test := range refusals {
		try(test.name, newFakeNode(t), test.spoil, test.wish)
	}
	for _, test := range buried {
		try(test.name, newLargeNode(t), test.spoil, Wish{})
	}
	for name, spoil := range spanned() {
		before := kept
		try(name, newFakeNode(t), spoil, Wish{})
		if kept == before {
			t.Errorf("%s: given up", name)
		}
	}
	for name, spoil := range inPartitions {
		before := kept
		try(name, afterPoolDisk(t), spoil, Wish{})
		if kept == before {
			t.Errorf("%s: given up", name)
		}
	}
	before := kept
	try("data in the middle of partitions that only the kernel remembers", newLargeNode(t), func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 1<<20, largeSize-(2<<20))
		n.write("vdb", 64<<20, unpacked(n.t, "xfs-group.gz"))
	}, Wish{})
	if kept == before {
		t.Error("data in the middle is given up because its table is gone")
	}
	before = kept
	try("ext with its journal on another disk", newFakeNode(t), func(n *fakeNode) {
		n.superblock(0x5c, 0x4)  // it has a journal
		n.superblock(0xe4, 0x10) // on this device
	}, Wish{})
	try("xfs with its log on another disk", newFakeNode(t), func(n *fakeNode) { n.write("vdb", 0, []byte("XFSB")) }, Wish{})
	if kept != before {
		t.Error("a file system on this disk was kept")
	}
	for kind := range taken {
		if !slices.Contains(expendable, kind) {
			t.Errorf("%q was given up", kind)
		}
	}
	if len(taken) < 4 || kept < 60 {
		t.Errorf("%d kinds were given up, %d disks kept: want more of both", len(taken), kept)
	}
}

// inPartitions are contents of the partitions that a pool has left.
var inPartitions = map[string]func(*fakeNode){
	"file system in the first partition": func(n *fakeNode) { n.write("vdb", 1<<20, []byte("XFSB")) },
	"file system in the last partition":  func(n *fakeNode) { n.write("vdb", 8370176*512, []byte("XFSB")) },
	"swap in the first partition":        func(n *fakeNode) { n.write("vdb", 1<<20+4096-10, []byte("SWAPSPACE2")) },
	"copy of a superblock behind a blank first one": func(n *fakeNode) {
		n.write("vdb", 1<<20, make([]byte, 512<<10)) // with the checksums of labelclear, the middle would be excused
		n.write("vdb", 129<<20, unpacked(n.t, "ext4-backup.gz"))
	},
}

// superblock writes the superblock of ext2, with a value in one of its fields.
func (n *fakeNode) superblock(field int64, value byte) {
	n.t.Helper()
	n.write("vdb", superblockAt, unpacked(n.t, "ext2-super.gz"))
	n.write("vdb", 1024+field, []byte{value})
}

// spanned are contents that look like a single file system, but have a part on another disk.
func spanned() map[string]func(*fakeNode) {
	all := map[string]func(*fakeNode){
		"journal of ext": func(n *fakeNode) { n.superblock(0x60, 0x8) },
		"log of xfs":     func(n *fakeNode) { n.write("vdb", 0, []byte{0xfe, 0xed, 0xba, 0xbe}) },
		"xfs with files on another disk": func(n *fakeNode) {
			n.write("vdb", 0, []byte("XFSB"))
			n.write("vdb", 16, []byte{0, 0, 0, 0, 0, 1, 0x2c, 0})
		},
		"f2fs of two disks": func(n *fakeNode) {
			n.write("vdb", 1024, []byte("\x10\x20\xf5\xf2"))
			n.write("vdb", 1024+2201, []byte("/dev/vdb"))
			n.write("vdb", 1024+2201+68, []byte("/dev/vdc"))
		},
	}
	for _, raid := range []struct {
		kind, magic string
		at          []int64
	}{ // as libblkid looks for them
		{"adaptec", "\x37\xfc\x4d\x1e", []int64{-512}}, {"ddf", "\xde\x11\xde\x11", []int64{-512, -257 * 512}},
		{"hpt45x", "\xf3\x16\x78\x5a", []int64{-11 * 512}}, {"hpt45x, broken", "\xfd\x16\x78\x5a", []int64{-11 * 512}},
		{"isw", "Intel Raid ISM Cfg Sig. ", []int64{-1024, -8192}}, {"jmicron", "JM", []int64{-512}},
		{"lsi", "$XIDE$", []int64{-512}}, {"nvidia", "NVIDIA  ", []int64{-1024}},
		{"promise", "Promise Technology, Inc.", []int64{-63 * 512, -256 * 512, -3087 * 512}},
		{"silicon", "\x00\x00\x00\x2f", []int64{-512 + 0x60}}, {"via", "\x55\xaa\x02", []int64{-512}},
	} {
		for _, at := range raid.at {
			all[fmt.Sprintf("ext on half of a mirror, %s at %d", raid.kind, at)] = func(n *fakeNode) {
				n.superblock(0x5c, 0x4)
				n.write("vdb", at, []byte(raid.magic))
			}
		}
	}
	return all
}

// TestNotEvenAnAdmin: contents that other hosts may be using are never set aside or wiped. A namespace cannot give up swap space with a
// hibernated machine.
func TestNotEvenAnAdmin(t *testing.T) {
	tried := 0
	for _, mark := range marks {
		if !slices.Contains(shared, mark.kind) || mark.at < 0 {
			continue
		}
		tried++
		n := newFakeNode(t)
		n.write("vdb", mark.at, []byte(mark.magic))
		wish := Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}
		if _, err := n.Check(wish); err == nil || !strings.Contains(err.Error(), "Other hosts may have it in use") {
			t.Errorf("%s: %v", mark.kind, err)
		}
		before := n.sum()
		if _, err := n.Wipe(wish); err == nil || n.sum() != before {
			t.Errorf("%s: wiped: %v", mark.kind, err)
		}
	}
	if tried < len(shared) {
		t.Errorf("%d marks were tried, want at least one for each of %v", tried, shared)
	}
	n := newFakeNode(t)
	n.write("vdb", -labelSize, label(t, PoolDestroyed))
	if _, err := n.Check(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); err == nil ||
		!strings.Contains(err.Error(), "by a pool on another host, so reuse does not apply. If its data may be lost, blank it yourself") {
		t.Errorf("what is left of a pool: %v", err)
	}
	for magic, kind := range swapMarks {
		if FileSystems.gives(Finding{Reason: Signature, Type: kind}) != strings.HasPrefix(magic, "SWAP") {
			t.Errorf("%s is %s: wrong right of a namespace", magic, kind)
		}
	}
}

// TestExpendable: a namespace can give up no signature of a disk that is a member of something larger.
func TestExpendable(t *testing.T) {
	var given, held []string
	for _, mark := range marks {
		reason := Signature
		if mark.table {
			reason = PartitionTable
		}
		if FileSystems.gives(Finding{Reason: reason, Type: mark.kind}) {
			given = append(given, mark.kind)
		} else {
			held = append(held, mark.kind)
		}
	}
	for _, kind := range []string{"LVM2_member", "LVM1_member", "linux_raid_member", "ddf_raid_member", "crypto_LUKS", "BitLocker", "ldm",
		"drbd", "bcache", "ceph_bluestore",
		"isw_raid_member", "lsi_mega_raid_member", "nvidia_raid_member", "promise_fasttrack_raid_member", "hpt37x_raid_member",
		"hpt45x_raid_member", "silicon_medley_raid_member", "via_raid_member", "jmicron_raid_member", "adaptec_raid_member",
		"stratis", "btrfs", "oracleasm", "VMFS_volume_member", "vdo"} {
		if !slices.Contains(held, kind) || slices.Contains(given, kind) {
			t.Errorf("a namespace can give up %s", kind)
		}
	}
	if !slices.Contains(given, "ext") || !slices.Contains(given, "xfs") {
		t.Errorf("file systems cannot be given up: %v", given)
	}
	for _, finding := range []Finding{{Reason: PartitionTable, Type: "gpt"}, {Reason: PartitionTable, Type: "dos"},
		{Reason: PoolMember, Type: "zfs_member"}, {Reason: UnknownData}, {Reason: ActivePool, Type: "zfs_member"}, {Reason: InUse}} {
		if FileSystems.gives(finding) || NoContents.gives(finding) {
			t.Errorf("a namespace can give up %+v", finding)
		}
	}
	if refused := (&RefusedError{Path: freePath, Serial: "secret", Right: NoContents,
		Findings: []Finding{{Reason: Signature, Type: "ext"}}}); strings.Contains(refused.Error(), "secret") ||
		!strings.Contains(refused.Error(), "ask the cluster's admin") || !errors.Is(refused, Signature) {
		t.Error(refused)
	}
}
