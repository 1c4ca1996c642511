package e2e

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
)

// makePool makes a pool in a privileged pod, with a dataset at /NAME that holds a file with a known checksum. The pool is in
// no cache file, so that no node imports it at boot by itself.
const makePool = `pool=$1; shift
	# When zpool has written the table of partitions, udev makes the links of the disk again. If that happens just when zpool opens the
	# partition by one, it says that there is no such pool. Then the table is there, and the next try finds the link.
	make() { zpool create -f -o ashift=12 -o cachefile=none -O compression=off -O mountpoint="/$pool" "$pool" "$@"; }
	make "$@" || { sleep 3; make "$@"; }
	zfs create -o recordsize=16K "$pool/data"
	head -c 8M /dev/urandom >"/$pool/data/file"
	zpool sync "$pool"
	sha256sum "/$pool/data/file"`

// TestZFS: a privileged pod makes a pool on a disk of its node, finds on it what it wrote, and destroys it again.
func TestZFS(t *testing.T) {
	long(t)
	for _, node := range nodes {
		t.Run(node, func(t *testing.T) {
			disk := device(node, takeDisks(t, node, 1)[0].Name)
			g, s := gomega.NewWithT(t), newSpace(t, levelPrivileged)
			pod, name := s.start("zfs", on(node), privileged).Name, poolPrefix+"pool"
			sum := s.must(pod, makePool, name, disk)
			g.Expect(s.must(pod, `zpool get -Hp -o value ashift "$1"; zfs get -Hp -o value recordsize "$1/data"`,
				name)).To(gomega.Equal("12\n16384"))
			g.Expect(s.must(pod, `zpool list -Hp -o health,fragmentation "$1"; zfs get -Hp -o value mounted "$1/data"`,
				name)).To(gomega.Equal("ONLINE\t0\nyes"))
			status, err := s.status(pod, name)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(status.State).To(gomega.Equal("ONLINE"))
			g.Expect(status.Vdevs).To(gomega.HaveKey(name))
			g.Expect(status.Vdevs[name].errors()).To(gomega.BeZero())
			// Read from the disk: nothing is cached of a pool that was exported.
			g.Expect(s.must(pod, `zpool export "$1" && zpool import -o cachefile=none -d /dev/disk/by-id "$1" && sha256sum "/$1/data/file"`,
				name)).To(gomega.Equal(sum))
			fmt.Printf("pool on %s/%s: %s\n", node, made.Disks[0].Name, s.must(pod, `zpool version | xargs`))
			s.must(pod, `zpool destroy "$1"`, name)
			g.Expect(s.must(pod, `zpool list -H -o name`)).NotTo(gomega.ContainSubstring(name))
			// zpool create refuses a disk on which it still sees something.
			s.must(pod, makePool, name, disk)
			s.must(pod, `zpool destroy "$1"`, name)
		})
	}
}
