package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCachesOfPartitions: data that was written to a partition is visible on its disk, although the page cache of the disk still shows the
// old data.
func TestCachesOfPartitions(t *testing.T) {
	disk := loopWithPartition(t)
	n := NewNode("/")
	cached, err := os.OpenFile("/dev/"+disk.Kernel, os.O_RDONLY, 0) // keeps the page cache of the disk
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cached.Close() }()
	const at = 4096
	if _, err := readAt(cached, disk.partitions[0].start+at, 4); err != nil {
		t.Fatal(err)
	}
	partition, err := os.OpenFile("/dev/"+disk.partitions[0].kernel, os.O_RDWR, 0) // while it is open, its data is not written out
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = partition.Close() }()
	if _, err := partition.WriteAt([]byte("data"), at); err != nil {
		t.Fatal(err)
	}
	file, err := n.openDirect(disk.Kernel, disk.Number, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := n.writeOut(&disk); err != nil {
		t.Fatal(err)
	}
	stale, err := readAt(cached, disk.partitions[0].start+at, 4)
	if err != nil || string(stale) == "data" {
		t.Logf("the page cache of the disk is not stale here: %q, %v", stale, err)
	}
	if seen, err := readAt(file, disk.partitions[0].start+at, 4); err != nil || string(seen) != "data" {
		t.Errorf("the disk has %q, %v", seen, err)
	}
}

// loopWithPartition makes a loop device with one partition.
func loopWithPartition(t *testing.T) Disk {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	record := make([]byte, 512)
	copy(record[446:], []byte{0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x10, 0, 0})
	copy(record[510:], []byte{0x55, 0xaa})
	if err := os.WriteFile(image, record, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, diskSize); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", image).CombinedOutput()
	if err != nil {
		t.Skipf("no loop device to be had, so that the page caches of partitions are not tried: %v %s", err, output)
	}
	path := strings.TrimSpace(string(output))
	t.Cleanup(func() {
		_ = exec.Command("partx", "--delete", path).Run() // fails if it was not added
		if output, err := exec.Command("losetup", "--detach", path).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, output)
		}
	})
	if output, err := exec.CommandContext(t.Context(), "partx", "--add", path).CombinedOutput(); err != nil {
		t.Skipf("no partition of a loop device to be had, so that the page caches of partitions are not tried: %v %s", err, output)
	}
	n, disk := NewNode("/"), Disk{Kernel: filepath.Base(path), SizeBytes: diskSize, LogicalSectorBytes: sectorUnit}
	if disk.Number, err = n.text("sys/class/block", disk.Kernel, "dev"); err != nil {
		t.Fatal(err)
	}
	if disk.partitions, err = n.partitions(disk.Kernel); err != nil || len(disk.partitions) != 1 {
		t.Fatalf("%v, %v", disk.partitions, err)
	}
	if _, err := os.Stat("/dev/" + disk.partitions[0].kernel); err != nil {
		t.Skipf("the partition has no device file here, so that its page cache is not tried: %v", err)
	}
	return disk
}
