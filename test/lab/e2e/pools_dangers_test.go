package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// danger is a disk that must not be taken.
type danger struct {
	name string
	// prepare is a script for the node; $2 is the disk that the pool then asks for, and $3 is free for the script.
	prepare string
	// device that the pool asks for instead of $2: the last word of its name.
	device string
	// more of the spec.
	more string
	// says is a part of the refusal.
	says string
	// undo is a script for the node, after the refusal.
	undo string
	// always runs a row even in short tests: these disks were once taken.
	always bool
	// restless contents are written by the node itself; the others may not change by a byte.
	restless bool
}

// twoPaths shows one disk as two, as a node does that has two paths to it and no multipathd. The pool asks for the second.
const twoPaths = `modprobe scsi_debug dev_size_mb=128 add_host=2 vpd_use_hostno=0; udevadm settle
	set -- "$@" $(grep -l scsi_debug /sys/block/sd*/device/model | cut -d/ -f4); test $# -ge 7
	ln -sf "/dev/$7" /dev/disk/by-id/virtio-$(hostname)-other
`

// onePath removes both again.
const onePath = `rm -f /dev/disk/by-id/virtio-$(hostname)-other; udevadm settle; modprobe -r scsi_debug`

// mark writes a magic number, in the notation of printf, to a place on the disk; from its end if negative.
func mark(at int64, magic string) string {
	return fmt.Sprintf(`at=%d; [ $at -ge 0 ] || at=$(($(blockdev --getsize64 "$2") + at)); printf '%s' | dd of="$2" bs=1 seek=$at conv=notrunc,fsync status=none`, at, magic)
}

// newPartition makes a partition table with one partition, without a partitioning program: the node has none.
const newPartition = mbr + `; blockdev --rereadpt "$2"; udevadm settle; test -b "$2-part1"`

// mbr is a partition table with one partition of type 83 from sector 2048 on.
const mbr = `printf '\000\000\000\000\203\000\000\000\000\010\000\000\000\000\004\000' | dd of="$2" bs=1 seek=446 conv=notrunc status=none; printf '\125\252' | dd of="$2" bs=1 seek=510 conv=notrunc,fsync status=none`

// The dangers. The node's own programs make those that they can make. Other signatures are written to the places where the programs that
// make them would write them.
var allDangers = []danger{
	{name: "system disk", prepare: `ln -sf "$(readlink -f "/dev/block/$(mountpoint -d /)")" /dev/disk/by-id/virtio-$(hostname)-other`,
		device: "other",
		says:   "the node itself is on it", undo: `rm -f /dev/disk/by-id/virtio-$(hostname)-other`},
	{name: "disk of a class's volumes", device: "files", says: "is mounted at"},
	{name: "not there", device: "nothing", says: "nothing"},
	{name: "name made by hand",
		prepare: `ln -s "$(readlink -f "$3")" /dev/disk/by-id/virtio-$(hostname)-other; mkfs.ext4 -q -F -E nodiscard "$3" 64M`, device: "other",
		says: "other",
		undo: `rm -f /dev/disk/by-id/virtio-$(hostname)-other; wipefs -aq "$3"`},
	{name: "name that leads to a file",
		prepare: `truncate -s 4G /var/tmp/e2e-file; ln -s /var/tmp/e2e-file /dev/disk/by-id/virtio-$(hostname)-other`, device: "other",
		says: "other",
		undo: `rm -f /dev/disk/by-id/virtio-$(hostname)-other /var/tmp/e2e-file`},
	{name: "mounted by another path", prepare: twoPaths + `mkfs.ext4 -q -F "/dev/$6"; mkdir -p /run/e2e-twin; mount "/dev/$6" /run/e2e-twin`,
		device: "other", always: true,
		says: "has the same WWID", undo: `umount /run/e2e-twin; rmdir /run/e2e-twin; ` + onePath},
	{name: "two paths, both free", prepare: twoPaths, device: "other", says: "may be two paths to one disk", undo: onePath},
	{name: "ext4", prepare: `mkfs.ext4 -q -F -E nodiscard "$2" 64M`, says: "ext"},
	{name: "xfs", prepare: `mkfs.xfs -q -f -K -d size=320m "$2"`, says: "xfs"},
	{name: "swap space", prepare: `mkswap -q "$2"`, says: "swap"},
	{name: "MBR", prepare: mbr, says: "dos"},
	{name: "GPT", prepare: mark(512, "EFI PART"), says: "gpt"},
	{name: "GPT at the end only", prepare: mark(-512, "EFI PART"), says: "gpt"},
	{name: "LVM", prepare: mark(512, "LABELONE") + "; " + mark(0x218, "LVM2 001"), says: "LVM2_member"},
	{name: "RAID 1.2", prepare: mark(4096, `\374\116\053\251`), says: "linux_raid_member"},
	{name: "RAID 1.0", prepare: mark(-8192, `\374\116\053\251`), says: "linux_raid_member"},
	{name: "hardware RAID", prepare: mark(-512, `\336\021\336\021`), says: "ddf_raid_member"},
	{name: "LUKS", prepare: mark(0, `LUKS\272\276`), says: "crypto_LUKS"},
	{name: "btrfs", prepare: mark(0x10040, "_BHRfS_M"), says: "btrfs"},
	{name: "bcache", prepare: mark(4096+24, `\306\205\163\366\116\032\105\312\202\145\365\177\110\272\155\201`), says: "bcache"},
	{name: "DRBD", prepare: mark(-4096+60, `\203\164\002\155`), says: "drbd"},
	{name: "Ceph", prepare: mark(0, "bluestore block device"), says: "ceph_bluestore"},
	{name: "ASM", prepare: mark(32, "ORCLDISK"), says: "oracleasm"},
	{name: "NTFS", prepare: mark(3, "NTFS    "), says: "ntfs"},
	{name: "FAT", prepare: mark(0x52, "FAT32   "), says: "vfat"},
	{name: "ISO 9660", prepare: mark(32<<10+1, "CD001"), says: "iso9660"},
	{name: "data without a name", prepare: `head -c 64k /dev/urandom | dd of="$2" bs=64k seek=1 conv=notrunc,fsync status=none`, says: "$2"},
	{name: "data behind 4 MiB", always: true, prepare: noise(5<<20, 64<<10), says: "has data of an unknown kind at byte 5242880"},
	{name: "data before the last MiB", always: true, prepare: noise(-2<<20, 64<<10), says: "has data of an unknown kind"},
	// Large enough that no look misses it on a disk of 4 GiB: two of the 512 parts into which the middle is divided.
	{name: "data in the middle", prepare: noise(1234<<20, 17<<20), says: "has data of an unknown kind"},
	{name: "backup superblock of ext4", always: true, prepare: `mkfs.ext4 -q -F -E nodiscard -b 4096 "$2" 512M; ` + alone(128<<20, 4096),
		says: "copy of the signature of ext"},
	{name: "backup superblock of ext2 with blocks of 1 KiB", prepare: `mkfs.ext2 -q -F -E nodiscard -b 1024 "$2" 64M; ` + alone(24<<20, 4096),
		says: "copy of the signature of ext"},
	{name: "second superblock of XFS", prepare: `mkfs.xfs -q -f "$2"; ` + `size=$(blockdev --getsize64 "$2"); ` + aloneAt(`$((size / 4))`,
		4096), says: "copy of the signature of xfs"},
	{name: "copy of the superblock of btrfs", prepare: mark(64<<20+0x40, "_BHRfS_M"), says: "copy of the signature of btrfs"},
	{name: "second header of LUKS2", prepare: mark(0x4000, `SKUL\272\276`), says: "crypto_LUKS"},
	{name: "second header of LUKS2 behind 4 MiB", prepare: mark(0x400000, `SKUL\272\276`), says: "crypto_LUKS"},
	{name: "dynamic disk of Windows", prepare: mbr + `; printf '\102' | dd of="$2" bs=1 seek=450 conv=notrunc,fsync status=none; ` +
		mark(3072, "PRIVHEAD"), says: "signature of ldm"},
	{name: "dynamic disk of Windows, end only", prepare: mark(-512, "PRIVHEAD"), says: "signature of ldm"},
	{name: "VMFS", prepare: mark(1<<20, `\r\320\001\300`), says: "VMFS"},
	{name: "APFS", prepare: mark(32, "NXSB"), says: "apfs"},
	{name: "F2FS", prepare: mark(1024, `\020\040\365\362`), says: "f2fs"},
	{name: "partitions that only the kernel remembers", prepare: newPartition + `; sleep 1000 <"$2-part1" >/dev/null 2>&1 & echo $! >/run/e2e-open.pid
		dd if=/dev/zero of="$2" bs=512 count=1 conv=notrunc,fsync status=none; udevadm settle`, says: "blockdev --rereadpt $2",
		undo: `kill $(cat /run/e2e-open.pid); while [ -d /proc/$(cat /run/e2e-open.pid) ]; do sleep 0.1; done; rm /run/e2e-open.pid`},
	{name: "end labels of a pool, both tables gone", always: true, prepare: cutOff + `blkdiscard -f "$2"
		dd if=/var/tmp/e2e-tail of="$2" bs=1M count=11 seek=$at conv=notrunc,fsync status=none; blockdev --rereadpt "$2"`,
		says: `pool "e2e-foreign"`, undo: `rm /var/tmp/e2e-head /var/tmp/e2e-tail`},
	{name: "end labels of a pool, table at the end only", prepare: cutOff + `blkdiscard -f "$2"
		dd if=/var/tmp/e2e-tail of="$2" bs=1M seek=$at conv=notrunc,fsync status=none; blockdev --rereadpt "$2"`,
		says: `pool "e2e-foreign"`, undo: `rm /var/tmp/e2e-head /var/tmp/e2e-tail`},
	{name: "foreign pool", prepare: foreign(`"$2"`), says: "pool", undo: `zpool destroy e2e-foreign`, restless: true},
	{name: "exported pool", prepare: foreign(`"$2"`) + `; zpool export e2e-foreign`, says: "pool"},
	{name: "pool that was cut off", prepare: cutOff + `
		dd if=/var/tmp/e2e-head of="$2" bs=1M conv=notrunc,fsync status=none; dd if=/var/tmp/e2e-tail of="$2" bs=1M seek=$at conv=notrunc,fsync status=none`,
		says: "pool", undo: `rm /var/tmp/e2e-head /var/tmp/e2e-tail`},
	{name: "destroyed pool", prepare: foreign(`"$2"`) + `; zpool destroy e2e-foreign`, says: "pool"},
	{name: "spare of a pool", prepare: foreign(`"$3" spare "$2"`), says: "pool", undo: `zpool destroy e2e-foreign`},
	{name: "cache of a pool", prepare: foreign(`"$3" cache "$2"`), says: "pool", undo: `zpool destroy e2e-foreign`, restless: true},
	{name: "log of an exported pool", prepare: foreign(`"$3" log "$2"`) + `; zpool export e2e-foreign`, says: "pool"},
	{name: "mounted", prepare: `mkfs.ext4 -q -F -E nodiscard "$2" 64M; mkdir -p /mnt/e2e; mount -o ro,noload "$2" /mnt/e2e`,
		says: "is mounted at /mnt/e2e", undo: `umount /mnt/e2e`},
	{name: "mounted elsewhere only", prepare: `mkfs.ext4 -q -F -E nodiscard "$2" 64M; mkdir -p /mnt/e2e; unshare --mount sh -c 'mount -o ro,noload "$1" /mnt/e2e; exec sleep 1000' e2e "$2" </dev/null >/dev/null 2>&1 & echo $! >/run/e2e-mount.pid
		until grep -q /mnt/e2e /proc/$(cat /run/e2e-mount.pid)/mounts; do sleep 0.1; done`, says: "is mounted at /mnt/e2e", undo: `kill $(cat /run/e2e-mount.pid); while [ -d /proc/$(cat /run/e2e-mount.pid) ]; do sleep 0.1; done; rm /run/e2e-mount.pid`},
	{name: "mounted partition",
		prepare: newPartition + `; mkfs.ext4 -q -F -E nodiscard "$2-part1" 64M; mkdir -p /mnt/e2e; mount -o ro,noload "$2-part1" /mnt/e2e`,
		says:    "is mounted at /mnt/e2e",
		undo:    `umount /mnt/e2e`},
	// The API refuses a name that ends in -part1; this one has another.
	{name: "partition", prepare: newPartition + `; ln -sf "$(readlink -f "$2-part1")" /dev/disk/by-id/virtio-$(hostname)-other`,
		device: "other",
		says:   "is a partition: use the whole disk", undo: `rm -f /dev/disk/by-id/virtio-$(hostname)-other`},
	{name: "swap in use", prepare: `mkswap -q "$2"; swapon "$2"`, says: "is in use as swap", undo: `swapoff "$2"`},
	{name: "open in a process", prepare: `sleep 1000 <>"$2" >/dev/null 2>&1 & echo $! >/run/e2e-open.pid`, says: "is open for writing",
		undo: `kill $(cat /run/e2e-open.pid); while [ -d /proc/$(cat /run/e2e-open.pid) ]; do sleep 0.1; done; rm /run/e2e-open.pid`},
	{name: "below a loop device by another name",
		prepare: `mknod /dev/e2e-node b $(cat /sys/class/block/$(basename $(readlink -f "$2"))/dev | tr : ' '); losetup --find /dev/e2e-node; rm /dev/e2e-node`, always: true,
		says: "is below loop", undo: `losetup --detach-all`},
	{name: "raw block volume of a pod", prepare: `touch /run/e2e-device; mount --bind "$(readlink -f "$2")" /run/e2e-device`,
		says: "is mounted at /run/e2e-device",
		undo: `umount /run/e2e-device; rm /run/e2e-device`},
	{name: "below a loop device", prepare: `losetup --find "$2"`, says: "is below loop", undo: `losetup --detach-all`},
	{name: "read-only", prepare: `blockdev --setro "$2"`, says: "read-only", undo: `blockdev --setrw "$2"`},
	{name: "too small", more: `, minDeviceSize: 1Ti`, says: "but at least"},
}

// cutOff keeps both ends of a disk of a pool as they were before the pool was exported.
var cutOff = foreign(`"$2"`) + `; zpool sync; at=$(($(blockdev --getsize64 "$2") / 1048576 - 12))
	dd if="$2" of=/var/tmp/e2e-head bs=1M count=4 iflag=direct status=none; dd if="$2" of=/var/tmp/e2e-tail bs=1M skip=$at iflag=direct status=none
	zpool export e2e-foreign
`

// noise writes data to a place on the disk; from its end if negative.
func noise(at, length int64) string {
	return fmt.Sprintf(`at=%d; [ $at -ge 0 ] || at=$(($(blockdev --getsize64 "$2") + at)); yes | head -c %d | dd of="$2" bs=64k oflag=seek_bytes seek=$at iflag=fullblock conv=notrunc,fsync status=none`, at, length)
}

// alone clears the disk except for one piece of it.
func alone(at, length int64) string { return aloneAt(fmt.Sprint(at), length) }

func aloneAt(at string, length int64) string {
	return fmt.Sprintf(`at=%s; dd if="$2" of=/run/e2e-piece bs=%[2]d iflag=skip_bytes,direct skip=$at count=1 status=none; blkdiscard -f "$2"
		dd if=/run/e2e-piece of="$2" bs=%[2]d oflag=seek_bytes seek=$at conv=notrunc,fsync status=none; rm /run/e2e-piece`, at, length)
}

// foreign makes a pool that is not the operator's. Where another pool has just been, udev may still look at the disk.
func foreign(vdevs string) string {
	create := `zpool create -o ashift=12 -o cachefile=none -O mountpoint=none e2e-foreign ` + vdevs
	return create + ` || { udevadm settle; ` + create + `; }`
}

// dangers requests a pool on each dangerous disk. All are refused with the reason, and nothing on them changes.
func (p *pools) dangers() {
	rows, undo := allDangers, ""
	if testing.Short() {
		rows = nil
		for i, danger := range allDangers {
			if danger.always || i%8 == 0 {
				rows = append(rows, danger)
			}
		}
	}
	for _, disk := range p.disks[1:3] { // they are emptied for each row, and a discard counts as bytes
		breakDisk(p.t, p.node, disk, "throttle", 0, 0)
	}
	for i, danger := range rows {
		// Each script costs seconds on an emulated node, so the same script also undoes the row before.
		p.script(undo + "\n" + empty + "\n" + danger.prepare + "\n" + flushed)
		undo = danger.undo
		before := p.contents(2)
		pool := p.make(fmt.Sprintf("danger-%d", i), fmt.Sprintf(`{poolName: e2e-danger, vdevs: [{devices: [%s]}]%s}`, p.dangerous(danger.device),
			danger.more))
		message := p.says(pool, v1alpha1.ReasonPoolDeviceRefused)
		g := gomega.NewWithT(p.t)
		g.Expect(message).To(gomega.ContainSubstring(p.paths(danger.says)), danger.name)
		p.remove(pool)
		if !danger.restless {
			p.script(flushed)
			g.Expect(p.contents(2)).To(gomega.Equal(before), "%s: the disk was written to", danger.name)
		}
		_, why, _ := strings.Cut(message, "is refused: ")
		why, _, _ = strings.Cut(why, ". If its data")
		fmt.Printf("refused, unchanged | %-46s | %s\n", danger.name, why)
	}
	p.script(undo + "\n" + empty)
	fmt.Printf("%d of %d dangerous disks: all refused, none changed\n", len(rows), len(allDangers))
	if len(allDangers) < 40 {
		p.t.Errorf("%d dangerous disks are too few", len(allDangers))
	}
}

// dangerous returns the path to ask for: a disk of the test, or the last word of a name by which the node knows another.
func (p *pools) dangerous(device string) string {
	if device == "" {
		return p.on(2)
	}
	return "/dev/disk/by-id/virtio-" + p.node + "-" + device
}

// flushed writes to the disk the data that the node still has in memory for it.
const flushed = `sync; blockdev --flushbufs "$2"`

// empty makes the disks of the dangers as good as new.
const empty = blank + `blank "$2"
blank "$3"
udevadm settle`

// contents returns a checksum of everything that was ever written to a disk, and of its place.
func (p *pools) contents(disk int) string {
	p.t.Helper()
	path, err := theLab.DiskFile(p.node, p.disks[disk-1].Name)
	if err != nil {
		p.t.Fatal(err)
	}
	sum, err := sparseSum(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return sum
}

// sparseSum returns a checksum of the data of a sparse file, without its zeros: holes may come and go.
func sparseSum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	const block = 64 << 10
	hash, buffer, zeros := sha256.New(), make([]byte, block), make([]byte, block)
	for at := int64(0); ; {
		at, err = file.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // no more data
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
		at -= at % block
		n, err := file.ReadAt(buffer, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if string(buffer[:n]) != string(zeros[:n]) {
			_, _ = fmt.Fprintf(hash, "%d\n", at) // a hash does not fail
			_, _ = hash.Write(buffer[:n])
		}
		if at += int64(n); n < block {
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
	}
}
