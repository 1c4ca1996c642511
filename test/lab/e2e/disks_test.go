package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/test/lab/vm"
)

// Scripts for one block of a disk, which bypass the cache: $1 is the device.
const (
	readBlock  = `dd if="$1" of=/dev/null bs=4k count=1 skip=1000 iflag=direct status=none`
	writeBlock = `dd if=/dev/zero of="$1" bs=4k count=1 seek=1000 oflag=direct conv=notrunc status=none`
)

// breakDisk performs an action on a disk; throttle takes operations and bytes per second. At the end of the test the action is undone,
// before the pods are deleted: a pod that waits for its disk cannot end.
func breakDisk(t *testing.T, node string, disk vm.Disk, action string, limits ...int64) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := afterwards(t)
		defer cancel()
		if err := restoreDisk(ctx, node, disk); err != nil {
			t.Error(err)
		}
	})
	if err := theLab.Disk(t.Context(), node, disk.Name, action, limits...); err != nil {
		t.Fatalf("%s disk %s of node %s: %v", action, disk.Name, node, err)
	}
}

// TestDiskFaults: requests of the broken kinds fail with EIO, at once, and none fail once the disk is healed.
func TestDiskFaults(t *testing.T) {
	inTurn(t, 2)
	node := nodes[0]
	disk := takeDisks(t, node, 1)[0]
	s := newSpace(t, levelPrivileged)
	pod := s.start("disks", on(node), privileged).Name
	for _, c := range []struct{ action, reads, writes string }{
		{"fail", "Input/output error", "Input/output error"},
		{"heal", "", ""},
		{"fail-writes", "", "Input/output error"},
		{"fail-reads", "Input/output error", ""}, // replaces the other fault
		{"heal", "", ""},
	} {
		breakDisk(t, node, disk, c.action)
		s.ends(pod, "read after "+c.action, readBlock, device(node, disk.Name), c.reads)
		s.ends(pod, "write after "+c.action, writeBlock, device(node, disk.Name), c.writes)
	}
}

// ends runs a script that must fail with the given words, or succeed if there are none.
func (s *space) ends(pod, what, script, argument, words string) {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	if _, err := s.try(pod, script, argument); words == "" {
		g.Expect(err).NotTo(gomega.HaveOccurred(), what)
	} else {
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(words)), what)
	}
}

// TestDiskHangs: a request waits as long as the disk hangs, and ends once the disk is healed.
func TestDiskHangs(t *testing.T) {
	long(t)
	node := nodes[0]
	disk := takeDisks(t, node, 1)[0]
	g, s := gomega.NewWithT(t), newSpace(t, levelPrivileged)
	pod := s.start("disks", on(node), privileged).Name
	breakDisk(t, node, disk, "hang")
	s.must(pod, `(if `+readBlock+`; then echo read; else echo failed; fi >/tmp/ended) </dev/null >/dev/null 2>&1 &`, device(node, disk.Name))
	ended := func() string { return s.must(pod, `cat /tmp/ended 2>/dev/null || true`) }
	g.Consistently(ended).WithTimeout(5*time.Second).WithPolling(time.Second).Should(gomega.BeEmpty(), "a read of a hanging disk")
	breakDisk(t, node, disk, "heal")
	g.Eventually(ended).WithTimeout(patience).WithPolling(polling).Should(gomega.Equal("read"))
}

// TestDiskUnplugged: the disk disappears and comes back under the same name, with its content.
func TestDiskUnplugged(t *testing.T) {
	long(t)
	node := nodes[0]
	disk := takeDisks(t, node, 1)[0]
	g, s := gomega.NewWithT(t), newSpace(t, levelPrivileged)
	pod := s.start("disks", on(node), privileged).Name
	const sum = `dd if="$1" bs=64k count=16 iflag=direct status=none | sha256sum`
	written := s.must(pod, `head -c 1M /dev/urandom | dd of="$1" bs=64k iflag=fullblock oflag=direct conv=notrunc status=none; `+sum,
		device(node, disk.Name))
	there := func(is string) {
		t.Helper()
		eventually(t, device(node, disk.Name)+" is there: "+is, func(g gomega.Gomega) {
			g.Expect(s.must(pod, `test -b "$1" && echo yes || echo no`, device(node, disk.Name))).To(gomega.Equal(is))
		})
	}
	there("yes")
	breakDisk(t, node, disk, "unplug")
	there("no")
	breakDisk(t, node, disk, "plug")
	there("yes")
	g.Expect(s.must(pod, sum, device(node, disk.Name))).To(gomega.Equal(written))
	s.must(pod, `dd if=/dev/zero of="$1" bs=64k count=16 oflag=direct conv=notrunc status=none`, device(node, disk.Name))
}

// TestMirror: a mirror survives one of its two disks, says so, and is whole again after heal and clear.
func TestMirror(t *testing.T) {
	long(t)
	node, name := nodes[0], poolPrefix+"mirror"
	taken := takeDisks(t, node, 2)
	g, s := gomega.NewWithT(t), newSpace(t, levelPrivileged)
	pod := s.start("mirror", on(node), privileged).Name
	sum := s.must(pod, makePool, name, "mirror", device(node, taken[0].Name), device(node, taken[1].Name))
	breakDisk(t, node, taken[1], "fail")
	started := time.Now()
	var broken pool
	eventually(t, "the second disk is faulted", func(g gomega.Gomega) {
		// A broken disk is noticed only when it is used.
		s.must(pod, `head -c 4M /dev/urandom >"/$1/data/more"; zpool sync "$1"`, name)
		var err error
		broken, err = s.status(pod, name)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		// The pool itself may still say ONLINE: OpenZFS 2.3 passes the state up only when its event daemon faults the disk too.
		g.Expect(broken.Vdevs[name].leaf(taken[1].Name).State).To(gomega.Equal("FAULTED"), "%+v", broken)
	})
	fmt.Printf("pool %s: second disk FAULTED %.0f s after it broke, %d errors; the pool says %s\n",
		name, time.Since(started).Seconds(), broken.Vdevs[name].errors(), broken.State)
	more := s.must(pod, `sha256sum "/$1/data/more"`, name)
	breakDisk(t, node, taken[1], "heal")
	s.must(pod, `zpool clear "$1"`, name)
	eventually(t, "the pool is whole again", func(g gomega.Gomega) {
		status, err := s.status(pod, name)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(status.State).To(gomega.Equal("ONLINE"), "%+v", status)
		g.Expect(status.Vdevs[name].leaf(taken[1].Name).State).To(gomega.Equal("ONLINE"), "%+v", status)
		g.Expect(status.Scan.State).To(gomega.Equal("FINISHED"), "%+v", status)
	})
	s.must(pod, `zpool scrub -w "$1"`, name)
	status, err := s.status(pod, name)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(status.Scan.Function).To(gomega.Equal("SCRUB"))
	g.Expect(status.Scan.Errors).To(gomega.BeZero(), "%+v", status)
	g.Expect(status.Vdevs[name].errors()).To(gomega.BeZero(), "%+v", status)
	// The disk that has missed writes now has all of them.
	s.must(pod, `zpool offline "$1" "$2"; zpool export "$1"; zpool import -o cachefile=none -d /dev/disk/by-id "$1"`, name,
		device(node, taken[0].Name))
	g.Expect(s.must(pod, `sha256sum "/$1/data/file"`, name)).To(gomega.Equal(sum))
	g.Expect(s.must(pod, `sha256sum "/$1/data/more"`, name)).To(gomega.Equal(more))
	s.must(pod, `zpool destroy "$1"`, name)
}
