package host

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestAFreeDiskIsTaken(t *testing.T) {
	n := newFakeNode(t)
	disk, err := n.Check(Wish{Path: freePath, MinBytes: diskSize})
	if err != nil {
		t.Fatal(err)
	}
	if disk.Kernel != "vdb" || disk.Serial != "free-serial" || disk.SizeBytes != diskSize || disk.LogicalSectorBytes != 512 ||
		disk.PhysicalSectorBytes != 4096 || disk.Rotational || disk.WriteCache != "write back" || disk.Number != "254:16" {
		t.Errorf("%+v", disk)
	}
	if err := n.Verify(disk); err != nil {
		t.Error(err)
	}
}

// TestReadersAreNoUsers: udev reads a disk after each change of it.
func TestReadersAreNoUsers(t *testing.T) {
	n := newFakeNode(t)
	n.opened("vdb", "0100000")
	n.mountTable(12, "30 24 0:5 / /dev rw - devtmpfs udev rw\n31 24 0:5 /vda /dev/xvda rw - devtmpfs udev rw\n")
	if _, err := n.Check(Wish{Path: freePath}); err != nil {
		t.Error(err)
	}
}

// refusals are all the ways in which the free disk stops being free.
var refusals = []struct {
	name   string
	spoil  func(n *fakeNode)
	wish   Wish
	want   Reason
	detail string
	// keeps says that naming the serial number does not help.
	keeps bool
}{
	{name: "name of the kernel", wish: Wish{Path: "/dev/vdb"}, want: NotStable, keeps: true},
	{name: "path with dots", wish: Wish{Path: "/dev/disk/by-id/../../vdb"}, want: NotStable, keeps: true},
	{name: "by label", wish: Wish{Path: "/dev/disk/by-label/x"}, want: NotStable, keeps: true},
	{name: "no such disk", wish: Wish{Path: "/dev/disk/by-id/virtio-none"}, want: Missing, keeps: true},
	{name: "link out of /dev", spoil: func(n *fakeNode) { n.link(freePath, "../../../etc/passwd"); n.file("/etc/passwd", "x") },
		want: Unreadable, detail: "not a device directly below /dev", keeps: true},
	{name: "links in a circle", spoil: func(n *fakeNode) { n.link(freePath, "virtio-free") }, want: Unreadable, keeps: true},
	{name: "unknown to the kernel", spoil: func(n *fakeNode) { n.link(freePath, "../../vdx"); n.file("/dev/vdx", "") }, want: Unreadable,
		detail: "knows no block device vdx", keeps: true},
	{name: "partition", wish: Wish{Path: "/dev/disk/by-id/part"}, spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20)
		n.file("/dev/vdb1", "")
		n.link("/dev/disk/by-id/part", "../../vdb1")
	}, want: NotWholeDisk, keeps: true},
	{name: "device mapper", wish: Wish{Path: "/dev/disk/by-id/dm-name-x"}, spoil: func(n *fakeNode) {
		n.block("virtual/block", "dm-0", "253:0", diskSize)
		n.file("/dev/dm-0", "")
		n.link("/dev/disk/by-id/dm-name-x", "../../dm-0")
	}, want: NotWholeDisk, detail: "device mapper", keeps: true},
	{name: "software RAID", wish: Wish{Path: "/dev/disk/by-id/md-x"}, spoil: func(n *fakeNode) {
		n.block("virtual/block", "md127", "9:127", diskSize)
		n.file("/dev/md127", "")
		n.link("/dev/disk/by-id/md-x", "../../md127")
	}, want: NotWholeDisk, detail: "software RAID", keeps: true},
	{name: "loop device", wish: Wish{Path: "/dev/disk/by-id/loop"}, spoil: func(n *fakeNode) {
		n.block("virtual/block", "loop3", "7:3", diskSize)
		n.file("/dev/loop3", "")
		n.link("/dev/disk/by-id/loop", "../../loop3")
	}, want: NotWholeDisk, keeps: true},
	{name: "ZFS volume", wish: Wish{Path: "/dev/disk/by-id/zvol"}, spoil: func(n *fakeNode) {
		n.block("virtual/block", "zd16", "230:16", diskSize)
		n.file("/dev/zd16", "")
		n.link("/dev/disk/by-id/zvol", "../../zd16")
	}, want: NotWholeDisk, keeps: true},
	{name: "virtual device of an unknown kind", wish: Wish{Path: "/dev/disk/by-id/new"}, spoil: func(n *fakeNode) {
		n.block("virtual/block", "new0", "240:0", diskSize)
		n.file("/dev/new0", "")
		n.link("/dev/disk/by-id/new", "../../new0")
	}, want: NotWholeDisk, detail: "virtual", keeps: true},
	{name: "node's own disk", wish: Wish{Path: "/dev/disk/by-id/virtio-root"}, want: SystemDisk,
		detail: "the node itself is on it: / is there", keeps: true},
	{name: "node's own disk is mounted too", wish: Wish{Path: "/dev/disk/by-id/virtio-root"}, want: Mounted, keeps: true},
	{name: "node's own disk below LVM", spoil: func(n *fakeNode) {
		n.block("virtual/block", "dm-0", "253:0", diskSize)
		n.file("/sys/devices/virtual/block/dm-0/slaves/vdb", "")
		n.mountTable(1, "24 1 253:0 / / rw - xfs /dev/mapper/vg-root rw\n")
	}, want: SystemDisk, keeps: true},
	{name: "node's /var on btrfs", spoil: func(n *fakeNode) {
		n.mountTable(1, "24 1 254:1 / / rw - ext4 /dev/vda1 rw\n25 24 0:33 /sub /var rw - btrfs /dev/vdb rw\n")
	}, want: SystemDisk, keeps: true},
	{name: "read-only", spoil: func(n *fakeNode) { n.file("/sys/class/block/vdb/ro", "1\n") }, want: ReadOnly, keeps: true},
	{name: "too small", wish: Wish{Path: freePath, MinBytes: diskSize + 1}, want: TooSmall, detail: "16777216", keeps: true},
	{name: "mounted", spoil: func(n *fakeNode) {
		n.mountTable(1, "24 1 254:1 / / rw - ext4 /dev/vda1 rw\n30 24 254:16 / /data rw - ext4 /dev/vdb rw\n")
	}, want: Mounted, detail: "vdb is mounted at /data", keeps: true},
	{name: "partition mounted", spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20)
		n.mountTable(1, "24 1 254:1 / / rw - ext4 /dev/vda1 rw\n30 24 254:17 / /my\\040data rw - ext4 /dev/vdb1 rw\n")
	}, want: Mounted, detail: "vdb1 is mounted at /my data", keeps: true},
	{name: "raw block volume of a pod", spoil: func(n *fakeNode) {
		n.mountTable(4711,
			"30 24 0:5 /vdb /var/lib/kubelet/pods/6f/volumeDevices/kubernetes.io~local-volume/data rw master:7 - devtmpfs udev rw\n")
	}, want: Mounted, detail: "vdb is mounted at /var/lib/kubelet/pods", keeps: true},
	{name: "partition as a raw block volume", spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20)
		n.file("/dev/vdb1", "")
		n.mountTable(4711, "30 24 0:5 /vdb1 /dev/xvda rw - devtmpfs devtmpfs rw\n")
	}, want: Mounted, detail: "vdb1 is mounted at /dev/xvda", keeps: true},
	{name: "open for writing", spoil: func(n *fakeNode) {
		n.opened("vdb", "0100002")
	}, want: InUse, detail: "vdb is open for writing in process 4711 (qemu)", keeps: true},
	{name: "a partition open for writing", spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20)
		n.file("/dev/vdb1", "")
		n.opened("vdb1", "02100001")
	}, want: InUse, detail: "vdb1 is open for writing in process 4711 (qemu)", keeps: true},
	{name: "open with flags that cannot be read", spoil: func(n *fakeNode) { n.opened("vdb", "?") }, want: InUse, keeps: true},
	{name: "SCSI generic device mounted into a pod", spoil: func(n *fakeNode) {
		n.file("/sys/class/block/vdb/device/scsi_generic/sg3/dev", "21:3\n")
		n.mountTable(4711, "30 24 0:5 /sg3 /dev/lun rw - devtmpfs udev rw\n")
	}, want: Mounted, detail: "sg3, a character device of vdb, is mounted at /dev/lun, seen by process 4711", keeps: true},
	{name: "bsg device mounted into a pod", spoil: func(n *fakeNode) {
		n.file("/sys/class/block/vdb/device/bsg/2:0:0:0/dev", "250:3\n")
		n.mountTable(4711, "30 24 0:5 /bsg/2:0:0:0 /dev/lun rw - devtmpfs udev rw\n")
	}, want: Mounted, detail: "bsg/2:0:0:0, a character device of vdb, is mounted at /dev/lun", keeps: true},
	{name: "below a loop device", spoil: func(n *fakeNode) {
		n.block("virtual/block", "loop3", "7:3", diskSize)
		n.file("/sys/class/block/loop3/loop/backing_file", "/dev/vdb\n")
	}, want: InUse, detail: "vdb is below loop3", keeps: true},
	{name: "mounted in another namespace", spoil: func(n *fakeNode) {
		n.mountTable(4711, "30 24 254:16 / /data rw master:7 - xfs /dev/vdb rw\n")
	}, want: Mounted, detail: "process 4711", keeps: true},
	{name: "mounted under a made-up number", spoil: func(n *fakeNode) {
		n.mountTable(4711, "30 24 0:99 /sub /data rw - btrfs /dev/disk/by-id/virtio-free rw\n")
	}, want: Mounted, keeps: true},
	{name: "no process visible", spoil: func(n *fakeNode) { n.must(os.Remove(n.path("/proc/1/mountinfo"))) }, want: Unreadable,
		detail: "hostPID", keeps: true},
	{name: "holder", spoil: func(n *fakeNode) {
		n.file("/sys/class/block/vdb/holders/dm-7", "")
		n.block("virtual/block", "dm-7", "253:7", diskSize)
		n.file("/sys/class/block/dm-7/dm/name", "vg-data\n")
	}, want: HasHolders, detail: "vdb is part of dm-7 (vg-data)", keeps: true},
	{name: "holder of a partition", spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20)
		n.file("/sys/class/block/vdb1/holders/md0", "")
	}, want: HasHolders, detail: "vdb1 is part of md0", keeps: true},
	{name: "swap", spoil: func(n *fakeNode) {
		n.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/vdb partition 65532 0 -2\n")
	}, want: Swap, keeps: true},
	{name: "swap on a partition", spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20)
		n.file("/dev/vdb1", "")
		n.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/vdb1 partition 65532 0 -2\n")
	}, want: Swap, keeps: true},
	{name: "running pool", spoil: func(n *fakeNode) {
		n.write("vdb", 0, label(n.t, PoolActive))
		n.file("/proc/spl/kstat/zfs/sbz/state", "ONLINE\n")
	}, want: RunningPool, detail: `running pool "sbz"`, keeps: true},
	{name: "pool of another host", spoil: func(n *fakeNode) { n.write("vdb", 0, label(n.t, PoolActive)) }, want: ActivePool,
		detail: `host "n1" (id 1526726657)`, keeps: true},
	{name: "spare of some pool", spoil: func(n *fakeNode) { n.write("vdb", 0, label(n.t, PoolSpare)) }, want: ActivePool, keeps: true},
	{name: "cache of some pool", spoil: func(n *fakeNode) { n.write("vdb", labelSize, label(n.t, PoolCache)) }, want: ActivePool, keeps: true},
	{name: "exported pool", spoil: func(n *fakeNode) { n.write("vdb", 0, label(n.t, PoolExported)) }, want: PoolMember,
		detail: "exported pool"},
	{name: "exported pool, second label only", spoil: func(n *fakeNode) { n.write("vdb", labelSize, label(n.t, PoolExported)) },
		want: PoolMember, detail: "exported pool"},
	{name: "exported pool, last label only", spoil: func(n *fakeNode) { n.write("vdb", -labelSize, label(n.t, PoolExported)) },
		want: PoolRemains, detail: "exported pool", keeps: true},
	{name: "destroyed pool, last labels only", spoil: func(n *fakeNode) {
		n.write("vdb", -labelSize, label(n.t, PoolDestroyed))
		n.write("vdb", -2*labelSize, label(n.t, PoolDestroyed))
	}, want: PoolRemains, detail: "only labels at its end are left", keeps: true},
	{name: "last labels of one pool behind the first of another", spoil: func(n *fakeNode) {
		n.write("vdb", 0, withNumber(n.t, label(n.t, PoolExported), "pool_guid", 7))
		n.write("vdb", -labelSize, label(n.t, PoolExported))
	}, want: PoolRemains, detail: "only labels at its end are left", keeps: true},
	{name: "exported pool on a partition", spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 8<<20, 4<<20)
		n.write("vdb", 8<<20, label(n.t, PoolExported))
		n.write("vdb", 12<<20-2*labelSize, label(n.t, PoolExported))
	}, want: PoolMember, detail: "vdb1 belongs to the exported pool"},
	{name: "exported pool on a partition, last labels only", spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 8<<20, 4<<20)
		n.write("vdb", 12<<20-2*labelSize, label(n.t, PoolExported))
	}, want: PoolRemains, detail: "vdb1 belongs to the exported pool", keeps: true},
	{name: "exported pool on a partition of no table", spoil: func(n *fakeNode) {
		n.write("vdb", 5<<20, label(n.t, PoolExported))
		n.write("vdb", 9<<20, label(n.t, PoolExported))
	}, want: PoolMember, detail: "exported pool"},
	{name: "taken out of a pool", spoil: func(n *fakeNode) { n.write("vdb", 0, withNumber(n.t, label(n.t, PoolActive), "txg", 0)) },
		want: PoolMember, detail: "was taken out of pool"},
	{name: "destroyed pool", spoil: func(n *fakeNode) { n.write("vdb", 0, label(n.t, PoolDestroyed)) }, want: PoolMember,
		detail: "destroyed pool"},
	{name: "uberblock without a label", spoil: func(n *fakeNode) {
		n.write("vdb", ringStart+1024, []byte("\x0c\xb1\xba\x00\x00\x00\x00\x00"))
	}, want: PoolRemains, detail: "uberblocks", keeps: true},
	{name: "broken label", spoil: func(n *fakeNode) {
		broken := label(n.t, PoolExported)
		broken[configStart+12] = 0xff // the size of the first pair
		n.write("vdb", 0, broken)
	}, want: PoolRemains, detail: "cannot be read", keeps: true},
	{name: "unknown data at the beginning", spoil: func(n *fakeNode) { n.write("vdb", 3<<20, []byte{1}) }, want: UnknownData,
		detail: "at byte 3145728"},
	{name: "unknown data at the end", spoil: func(n *fakeNode) { n.write("vdb", -1, []byte{1}) }, want: UnknownData,
		detail: "at byte 16777215"},
	{name: "partitions that only the kernel sees", spoil: func(n *fakeNode) { n.partition("vdb", "vdb1", "254:17", 1, 1<<20, 8<<20) },
		want: PartitionTable, detail: "1 partitions"},
	{name: "MBR", spoil: func(n *fakeNode) {
		record := make([]byte, 512)
		copy(record[446:], []byte{0x80, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x10, 0, 0})
		copy(record[510:], []byte{0x55, 0xaa})
		n.write("vdb", 0, record)
	}, want: PartitionTable, detail: "dos"},
	{name: "backup GPT only", spoil: func(n *fakeNode) { n.write("vdb", -512, []byte("EFI PART")) }, want: PartitionTable, detail: "backup"},
	{name: "md 1.0 at the end", spoil: func(n *fakeNode) { n.write("vdb", -8192, []byte{0xfc, 0x4e, 0x2b, 0xa9}) }, want: Signature,
		detail: "linux_raid_member"},
	{name: "md 0.90 at the end", spoil: func(n *fakeNode) { n.write("vdb", -65536, []byte{0xfc, 0x4e, 0x2b, 0xa9}) }, want: Signature,
		detail: "linux_raid_member"},
	{name: "swap of large pages", spoil: func(n *fakeNode) { n.write("vdb", 65536-10, []byte("SWAPSPACE2")) }, want: Signature,
		detail: "swap"},
	{name: "file system on a partition", spoil: func(n *fakeNode) {
		n.partition("vdb", "vdb1", "254:17", 1, 8<<20, 4<<20)
		super := unpacked(n.t, "ext2-super.gz")
		copy(super[4:], []byte{0, 0x10, 0, 0}) // as many blocks of 1 KiB as the partition has
		n.write("vdb", 8<<20+superblockAt, super)
	}, want: Signature, detail: "vdb1 has the signature of ext"},
}

func TestRefusals(t *testing.T) {
	for _, test := range refusals {
		t.Run(test.name, func(t *testing.T) {
			n := newFakeNode(t)
			wish := test.wish
			if wish.Path == "" {
				wish.Path = freePath
			}
			if test.spoil != nil {
				test.spoil(n)
			}
			disk, err := n.Check(wish)
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %s", err, test.want)
			}
			if !strings.Contains(err.Error(), test.detail) || !strings.Contains(err.Error(), wish.Path) {
				t.Errorf("%v: want %q and the path in it", err, test.detail)
			}
			wish.Reuse, wish.Right = "free-serial", AnyContents
			if disk.Serial != "" {
				wish.Reuse = disk.Serial
			}
			if _, err := n.Check(wish); (err != nil) != test.keeps {
				t.Errorf("with its serial number %s named for reuse: %v", wish.Reuse, err)
			}
			if test.keeps {
				before := n.sum()
				if _, err := n.Wipe(wish); err == nil {
					t.Error("it was wiped")
				}
				if n.sum() != before {
					t.Error("a refused disk was written to")
				}
			}
		})
	}
}

func TestEveryMark(t *testing.T) {
	n := newFakeNode(t)
	// Large enough for the copies that btrfs keeps.
	const size = 128 << 20
	n.must(os.Truncate(n.path("/dev/vdb"), size))
	n.file("/sys/class/block/vdb/size", "262144")
	for _, mark := range marks {
		at := mark.at
		if at < 0 {
			at += size
		}
		if plausible[mark.kind] != nil { // the magic alone means nothing
			n.write("vdb", superblockAt, superblocks(t)[mark.magic])
		}
		n.write("vdb", at, []byte(mark.magic))
		disk, err := n.Check(Wish{Path: freePath})
		want := Signature
		if mark.table {
			want = PartitionTable
		}
		if !errors.Is(err, want) || !strings.Contains(err.Error(), mark.kind) || len(disk.Findings) == 0 {
			t.Errorf("%s at %d: %v", mark.kind, mark.at, err)
		}
		n.write("vdb", at, make([]byte, len(mark.magic)))
		if plausible[mark.kind] != nil {
			n.write("vdb", superblockAt, make([]byte, superblockSize))
		}
	}
	if _, err := n.Check(Wish{Path: freePath}); err != nil {
		t.Errorf("after all marks were taken away: %v", err)
	}
}

func TestSerialNumbers(t *testing.T) {
	dirty := func() *fakeNode {
		n := newFakeNode(t)
		n.write("vdb", 0, []byte("XFSB"))
		return n
	}
	n := dirty()
	for serial, taken := range map[string]bool{"free-serial": true, "free": false, "FREE-SERIAL": false, "root-serial": false, "": false,
		"*": false} {
		if _, err := n.Check(Wish{Path: freePath, Reuse: serial, Right: AnyContents}); (err == nil) != taken {
			t.Errorf("reuse of %q: %v", serial, err)
		}
	}
	n.disk("vdc", "254:32", "free-serial")
	if _, err := n.Check(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); err == nil || !strings.Contains(err.Error(), "2 disks (vdb, vdc)") {
		t.Errorf("a serial number of two disks: %v", err)
	}

	n = dirty()
	n.must(os.Remove(n.path("/sys/class/block/vdb/serial")))
	n.file("/sys/class/block/vdb/device/vpd_pg80", "\x00\x80\x00\x08  SCSI-1")
	if disk, _ := n.Check(Wish{Path: freePath}); disk.Serial != "SCSI-1" {
		t.Errorf("serial number %q of the vital product data, want SCSI-1", disk.Serial)
	}
	n.must(os.Remove(n.path("/sys/class/block/vdb/device/vpd_pg80")))
	n.file("/run/udev/data/b254:16", "S:disk/by-id/x\nE:ID_SERIAL=M_U-2\nE:ID_SERIAL_SHORT=U-2\n")
	if disk, _ := n.Check(Wish{Path: freePath}); disk.Serial != "U-2" {
		t.Errorf("serial number %q of udev, want U-2", disk.Serial)
	}
	n.must(os.Remove(n.path("/run/udev/data/b254:16")))
	if _, err := n.Check(Wish{Path: freePath, Right: AnyContents}); err == nil || !strings.Contains(err.Error(), "reports no serial number") {
		t.Errorf("a dirty disk without a serial number: %v", err)
	}
}

func TestVerifyFindsAnotherDisk(t *testing.T) {
	for name, change := range map[string]func(n *fakeNode){
		"symlink moved":             func(n *fakeNode) { n.disk("vdc", "254:32", "other"); n.link(freePath, "../../vdc") },
		"symlink gone":              func(n *fakeNode) { n.must(os.Remove(n.path(freePath))) },
		"another disk in its place": func(n *fakeNode) { n.file("/sys/class/block/vdb/diskseq", "99\n") },
		"another serial number":     func(n *fakeNode) { n.file("/sys/class/block/vdb/serial", "other") },
		"another size":              func(n *fakeNode) { n.file("/sys/class/block/vdb/size", "4096\n") },
	} {
		n := newFakeNode(t)
		disk, err := n.Check(Wish{Path: freePath})
		if err != nil {
			t.Fatal(err)
		}
		change(n)
		if err := n.Verify(disk); !errors.Is(err, Changed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFilesAreNoDevices: on a real node only block devices count as devices, whatever /sys says.
func TestFilesAreNoDevices(t *testing.T) {
	n := newFakeNode(t)
	if _, err := NewNode(n.root).Check(Wish{Path: freePath}); !errors.Is(err, Unreadable) ||
		!strings.Contains(err.Error(), "not a block device") {
		t.Errorf("%v", err)
	}
	n.link("/dev/vdb", "vda")
	if _, err := n.Check(Wish{Path: freePath}); err == nil {
		t.Error("a symlink in the place of a device was followed to another disk")
	}
}

func TestWarnings(t *testing.T) {
	disk := Disk{SizeBytes: 1, LogicalSectorBytes: 512, PhysicalSectorBytes: 4096, Rotational: true, WriteCache: "write back"}
	warnings := strings.Join(disk.Warnings(9), "\n")
	for _, part := range []string{"ashift 9", "emulates", "rotational", "write cache", "no serial number"} {
		if !strings.Contains(warnings, part) {
			t.Errorf("%q does not say %q", warnings, part)
		}
	}
	good := Disk{SizeBytes: 1, Serial: "x", LogicalSectorBytes: 4096, PhysicalSectorBytes: 4096, WriteCache: "write through"}
	if warnings := good.Warnings(12); len(warnings) != 0 {
		t.Errorf("warnings about nothing: %q", warnings)
	}
	if len(good.Warnings(16)) != 1 || len(good.Warnings(9)) != 1 {
		t.Errorf("%q, %q", good.Warnings(16), good.Warnings(9))
	}
}
