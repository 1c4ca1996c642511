package host

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// fakeNode is a node made of files: its own disk vda, mounted, and vdb, which is blank and free.
type fakeNode struct {
	*Node
	t testing.TB
}

const (
	freePath = "/dev/disk/by-id/virtio-free"
	diskSize = 16 << 20
)

func newFakeNode(t testing.TB) *fakeNode {
	t.Helper()
	n := &fakeNode{Node: NewFake(t.TempDir()), t: t}
	n.disk("vda", "254:0", "root-serial")
	n.partition("vda", "vda1", "254:1", 1, 1<<20, 8<<20)
	n.link("/dev/disk/by-id/virtio-root", "../../vda")
	n.disk("vdb", "254:16", "free-serial")
	n.link(freePath, "../../vdb")
	n.mountTable(1, "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n25 24 0:21 / /proc rw - proc proc rw\n")
	n.file("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
	return n
}

func (n *fakeNode) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *fakeNode) file(path, text string) {
	n.t.Helper()
	n.must(os.MkdirAll(filepath.Dir(n.path(path)), 0o755))
	n.must(os.WriteFile(n.path(path), []byte(text), 0o644))
}

func (n *fakeNode) link(path, target string) {
	n.t.Helper()
	n.must(os.MkdirAll(filepath.Dir(n.path(path)), 0o755))
	if err := os.Remove(n.path(path)); err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	n.must(os.Symlink(target, n.path(path)))
}

// block makes the entry of a block device in /sys, in a folder there.
func (n *fakeNode) block(folder, kernel, number string, size int64) {
	n.t.Helper()
	at := filepath.Join("/sys/devices", folder, kernel)
	for name, text := range map[string]string{"dev": number, "size": fmt.Sprint(size / 512), "ro": "0", "diskseq": number[len(number)-1:],
		"queue/logical_block_size": "512", "queue/physical_block_size": "4096", "queue/rotational": "0", "queue/write_cache": "write back"} {
		n.file(filepath.Join(at, name), text+"\n")
	}
	n.link("/sys/class/block/"+kernel, "../../devices/"+folder+"/"+kernel)
	n.link("/sys/dev/block/"+number, "../../devices/"+folder+"/"+kernel)
}

func (n *fakeNode) disk(kernel, number, serial string) {
	n.t.Helper()
	folder := "pci0000:00/virtio" + number + "/block"
	n.block(folder, kernel, number, diskSize)
	n.link("/sys/block/"+kernel, "../devices/"+folder+"/"+kernel)
	n.file("/sys/class/block/"+kernel+"/serial", serial)
	n.file("/dev/"+kernel, "")
	n.must(os.Truncate(n.path("/dev", kernel), diskSize))
}

func (n *fakeNode) partition(disk, kernel, number string, index int, start, size int64) {
	n.t.Helper()
	at := "/sys/class/block/" + disk + "/" + kernel
	for name, text := range map[string]string{"dev": number, "partition": fmt.Sprint(index), "start": fmt.Sprint(start / 512),
		"size": fmt.Sprint(size / 512)} {
		n.file(filepath.Join(at, name), text+"\n")
	}
	target, err := os.Readlink(n.path("/sys/class/block", disk))
	n.must(err)
	n.link("/sys/class/block/"+kernel, target+"/"+kernel)
	n.link("/sys/dev/block/"+number, target+"/"+kernel)
}

func (n *fakeNode) mountTable(process int, table string) {
	n.t.Helper()
	n.file(fmt.Sprintf("/proc/%d/mountinfo", process), table)
}

// opened makes a process that has a device open, with flags as the kernel writes them.
func (n *fakeNode) opened(kernel, flags string) {
	n.t.Helper()
	n.link("/proc/4711/fd/7", "../../../dev/"+kernel)
	n.file("/proc/4711/fdinfo/7", "pos:\t0\nflags:\t"+flags+"\nmnt_id:\t28\n")
	n.file("/proc/4711/comm", "qemu\n")
	n.mountTable(4711, "24 1 254:1 / / rw - ext4 /dev/vda1 rw\n")
}

// write writes data to a disk. A negative place counts from the end.
func (n *fakeNode) write(kernel string, at int64, data []byte) {
	n.t.Helper()
	if at < 0 {
		at += diskSize
	}
	file, err := os.OpenFile(n.path("/dev", kernel), os.O_WRONLY, 0)
	n.must(err)
	_, err = file.WriteAt(data, at)
	n.must(err)
	n.must(file.Close())
}

func unpacked(t testing.TB, name string) []byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// label returns a whole label of ZFS with the configuration of a real one.
func label(t testing.TB, state PoolState) []byte {
	t.Helper()
	data := make([]byte, labelSize)
	copy(data[configStart:], unpacked(t, "label-active.gz"))
	return withNumber(t, data, "state", byte(state))
}

// withNumber changes the last number with the given name in a label: numbers of the pool may follow those of its vdevs.
func withNumber(t testing.TB, data []byte, name string, value byte) []byte {
	t.Helper()
	// A pair ends with its value: name, type 8, one element, 64 bits.
	pattern := append([]byte(name), make([]byte, 3-(len(name)+3)%4)...)
	pattern = append(pattern, 0, 0, 0, 8, 0, 0, 0, 1)
	at := bytes.LastIndex(data, pattern)
	if at < 0 {
		t.Fatalf("the golden label has no %s", name)
	}
	copy(data[at+len(pattern):], []byte{0, 0, 0, 0, 0, 0, 0, value})
	return data
}
