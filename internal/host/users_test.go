package host

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// nodeMounts are the mounts of the node after the agent has mounted a dataset.
const nodeMounts = "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n30 24 0:40 / /own rw shared:9 - zfs bench0/a rw\n"

func TestPoolUsers(t *testing.T) {
	volume := func(n *fakeNode) {
		n.block("virtual/block", "zd16", "230:16", diskSize)
		n.file("/dev/zd16", "")
		n.link("/dev/zvol/bench0/a/vol", "../../../zd16")
	}
	for _, test := range []struct {
		name  string
		spoil func(n *fakeNode)
		want  string
	}{
		{"unused", func(*fakeNode) {}, ""},
		{"an idle volume", volume, ""},
		{"another pool with a longer name", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /x rw - zfs bench01/a rw\n") }, ""},
		{"another file system of that name", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /x rw - tmpfs bench0 rw\n") }, ""},
		{"a mount in a pod", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /data rw master:3 - zfs bench0/a rw\n") },
			"dataset bench0/a is mounted at /data, seen by process 7"},
		{"a mount of the agent", func(n *fakeNode) { n.mountTable(1, nodeMounts) }, ""},
		{"a mount where the agent has none", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /own rw - zfs bench0/a rw\n") },
			"dataset bench0/a is mounted at /own, seen by process 7"},
		{"a pod that receives the node's mounts", func(n *fakeNode) {
			n.mountTable(1, nodeMounts)
			n.mountTable(7,
				"50 1 0:99 / / rw - overlay overlay rw\n51 50 254:1 / /host rw master:1 - ext4 /dev/vda1 rw\n52 51 0:40 / /host/own rw master:9 - "+
					"zfs bench0/a rw\n")
		}, ""},
		{"a pod that receives and gives", func(n *fakeNode) {
			n.mountTable(1, nodeMounts)
			n.mountTable(7, "51 1 254:1 / /host rw shared:1 - ext4 /dev/vda1 rw\n52 51 0:40 / /host/own rw shared:9 - zfs bench0/a rw\n")
		}, ""},
		{"a pod in a pod", func(n *fakeNode) {
			n.mountTable(1, nodeMounts)
			n.mountTable(2, "61 1 254:1 / /x rw master:50 - ext4 /dev/vda1 rw\n62 61 0:40 / /x/own rw master:51 - zfs bench0/a rw\n")
			n.mountTable(7,
				"51 1 254:1 / /host rw shared:50 master:1 - ext4 /dev/vda1 rw\n52 51 0:40 / /host/own rw shared:51 master:9 - zfs bench0/a rw\n")
		}, ""},
		{"a pod with a copy of its own", func(n *fakeNode) {
			n.mountTable(1, nodeMounts)
			n.mountTable(7, "51 1 254:1 / /host rw - ext4 /dev/vda1 rw\n52 51 0:40 / /host/own rw - zfs bench0/a rw\n")
		}, "dataset bench0/a is mounted at /host/own, seen by process 7"},
		{"a copy at the agent's own mount point", func(n *fakeNode) {
			n.mountTable(1, nodeMounts)
			n.mountTable(7, "51 1 254:1 / / rw - ext4 /dev/vda1 rw\n52 51 0:40 / /own rw - zfs bench0/a rw\n")
		}, "dataset bench0/a is mounted at /own, seen by process 7"},
		{"the kubelet's bind for a pod", func(n *fakeNode) {
			n.mountTable(1, nodeMounts+"31 24 0:40 / /kubelet/own rw shared:9 - zfs bench0/a rw\n")
		}, "dataset bench0/a is mounted at /kubelet/own, seen by process 1"},
		{"a pod that is given it", func(n *fakeNode) {
			n.mountTable(1, nodeMounts)
			n.mountTable(7, "51 1 254:1 / /host rw master:1 - ext4 /dev/vda1 rw\n52 51 0:40 / /host/x/own rw master:9 - zfs bench0/a rw\n")
		}, "dataset bench0/a is mounted at /host/x/own, seen by process 7"},
		{"the root dataset", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /data rw - zfs bench0 rw\n") },
			"dataset bench0 is mounted at /data, seen by process 7"},
		{"a snapshot", func(n *fakeNode) {
			n.mountTable(7, "30 24 0:40 / /s rw - zfs bench0/a@s rw\n")
		}, "dataset bench0/a@s is mounted at /s, seen by process 7"},
		{"a mounted volume", func(n *fakeNode) {
			volume(n)
			n.mountTable(7, "30 24 230:16 / /own rw - ext4 /dev/zd16 rw\n")
		}, "volume bench0/a/vol (zd16) is mounted at /own, seen by process 7"},
		{"file systems without a device that name a volume or the pool", func(n *fakeNode) {
			volume(n)
			n.file("/proc/filesystems", "nodev\ttmpfs\nnodev\tfuse\n\tbtrfs\n")
			n.mountTable(7, "30 24 0:40 / /x rw - tmpfs /dev/zd16 rw\n31 24 0:41 / /y rw - fuse.zfs bench0/a rw\n")
		}, ""},
		{"a volume in a btrfs", func(n *fakeNode) {
			volume(n)
			n.file("/proc/filesystems", "nodev\ttmpfs\nnodev\tfuse\n\tbtrfs\n")
			n.mountTable(7, "30 24 0:40 / /x rw - btrfs /dev/zvol/bench0/a/vol rw\n")
		}, "volume bench0/a/vol (zd16) is mounted at /x, seen by process 7"},
		{"a held volume", func(n *fakeNode) {
			volume(n)
			n.file("/sys/class/block/zd16/holders/dm-3", "")
		}, "volume bench0/a/vol (zd16) is part of dm-3"},
	} {
		n := newFakeNode(t)
		test.spoil(n)
		users, err := n.PoolUsers("bench0", "/own")
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if test.want == "" && len(users) > 0 || test.want != "" && !slices.Equal(users, []string{test.want}) {
			t.Errorf("%s: %q, want %q", test.name, users, test.want)
		}
	}
	blind := newFakeNode(t)
	blind.must(os.Remove(blind.path("/proc/1/mountinfo")))
	if users, err := blind.PoolUsers("bench0"); err == nil || !strings.Contains(err.Error(), "hostPID") {
		t.Errorf("without any visible process the pool is unused: %q, %v", users, err)
	}
}

// TestManyMountsTakeNoMemory: tenants can have any number of mounts of their volumes.
func TestManyMountsTakeNoMemory(t *testing.T) {
	const processes, each = 12, 5000
	n := newFakeNode(t)
	n.mountTable(1, nodeMounts)
	var table strings.Builder
	table.WriteString("50 1 0:99 / / rw - overlay overlay rw\n")
	for i := range each {
		fmt.Fprintf(&table, "%d 50 0:40 / /data/%d rw master:3 - zfs bench0/a rw\n", 100+i, i)
	}
	n.mountTable(1000, table.String())
	for i := 1; i < processes; i++ {
		n.link(fmt.Sprintf("/proc/%d/mountinfo", 1000+i), "../1000/mountinfo")
	}
	// The heap does not return memory to the system at once, so its size shows how much was in use at the same time.
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapSys) - int64(stats.HeapReleased)
	}
	debug.FreeOSMemory()
	before := heap()
	users, err := n.PoolUsers("bench0", "/own")
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	if err != nil || len(users) != toldUsers+1 || users[toldUsers] != fmt.Sprintf("and %d more", processes*each-toldUsers) {
		t.Errorf("%d users, %v: %q", len(users), err, users)
	}
}

// TestTooManyMountsAreAUse: an unread mount may be a mount of the pool.
func TestTooManyMountsAreAUse(t *testing.T) {
	var nested, long strings.Builder
	for i := range parentsLimit + 1 {
		fmt.Fprintf(&nested, "%d %d 0:40 / /data/%d rw - zfs bench0/a rw\n", 101+i, 100+i, i)
	}
	for i := range 20 {
		fmt.Fprintf(&long, "%d 1 0:9 / /%s rw - tmpfs tmpfs rw\n%d %d 0:40 / /data rw - zfs bench0/a rw\n", 100+i,
			strings.Repeat("x", mountinfo.FieldLimit-1), 200+i, 100+i)
	}
	for name, table := range map[string]string{
		"mounts on mounts": nested.String(),
		"long paths below": long.String(),
	} {
		n := newFakeNode(t)
		n.mountTable(7, table)
		n.must(os.MkdirAll(n.path("/top/sb-1"), 0o755))
		const want = "mounts of process 7: too many mounts"
		if users, err := n.PoolUsers("bench0"); err != nil || len(users) != 1 || !strings.Contains(users[0], want) {
			t.Errorf("%s: %d users, %v: %.500q", name, len(users), err, users)
		}
		if err := n.RemoveFolders("/top", "/top/sb-1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a folder was removed although its mounts are unknown: %v", name, err)
		}
	}
}

// TestALongPathIsCut: a pod can nest a folder that is mounted in it as deep as it likes. The other mounts are still read, and so are the
// file systems of the mounts with long paths.
func TestALongPathIsCut(t *testing.T) {
	long := strings.Repeat("/"+strings.Repeat("x", 250), 4000)
	n := newFakeNode(t)
	n.mountTable(1, "24 1 254:1 / / rw - ext4 /dev/vda1 rw\n30 24 254:16 "+long+" /var/lib/kubelet/pods/a rw - ext4 /dev/vdb rw\n"+
		"31 24 0:41 / /mnt/tank rw - zfs tank rw\n32 24 254:16 / "+long+" rw - ext4 /dev/vdc rw")
	var sources []string
	if err := n.mountsOf("1", func(mount mountinfo.Mount) error {
		if len(mount.Root) > mountinfo.FieldLimit || len(mount.Point) > mountinfo.FieldLimit {
			t.Errorf("a path has %d and %d bytes", len(mount.Root), len(mount.Point))
		}
		sources = append(sources, mount.Source)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(sources, " "); got != "/dev/vda1 /dev/vdb tank /dev/vdc" {
		t.Errorf("mounts of %s", got)
	}
	if mount, err := n.mountAt("/mnt/tank/x"); err != nil || mount.Source != "tank" {
		t.Errorf("%+v, %v", mount, err)
	}
}

// TestManyCopiesAreAUse: if copies of the agent's own mounts are in more peer groups than the search follows, the rest count as users,
// whatever events they receive.
func TestManyCopiesAreAUse(t *testing.T) {
	n := newFakeNode(t)
	n.mountTable(1, nodeMounts)
	for process := range 3 {
		var table strings.Builder
		for i := range copiesLimit / 2 {
			fmt.Fprintf(&table, "%d 1 254:1 / /x%d rw shared:%d master:1 - ext4 /dev/vda1 rw\n", 2000+i, i, process*copiesLimit+100+i)
			fmt.Fprintf(&table, "%d %d 0:40 / /x%d/own rw - zfs bench0/a rw\n", 4000+i, 2000+i, i)
		}
		n.mountTable(1000+process, table.String())
	}
	users, err := n.PoolUsers("bench0", "/own")
	if err != nil || len(users) != toldUsers+1 || users[toldUsers] != fmt.Sprintf("and %d more", copiesLimit/2-toldUsers) {
		t.Errorf("%d users, %v: %q", len(users), err, users)
	}
}
