package device

import (
	"os"
	"slices"
	"strings"
	"testing"
)

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
		{"nobody", func(*fakeNode) {}, ""},
		{"an idle volume", volume, ""},
		{"another pool with a longer name", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /x rw - zfs bench01/a rw\n") }, ""},
		{"another file system of that name", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /x rw - tmpfs bench0 rw\n") }, ""},
		{"a mount in a pod", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /data rw master:3 - zfs bench0/a rw\n") }, "dataset bench0/a is mounted at /data, seen by process 7"},
		{"a mount of the agent", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /own rw - zfs bench0/a rw\n") }, ""},
		{"the root dataset", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /data rw - zfs bench0 rw\n") }, "dataset bench0 is mounted at /data, seen by process 7"},
		{"a snapshot", func(n *fakeNode) { n.mountTable(7, "30 24 0:40 / /s rw - zfs bench0/a@s rw\n") }, "dataset bench0/a@s is mounted at /s, seen by process 7"},
		{"a mounted volume", func(n *fakeNode) {
			volume(n)
			n.mountTable(7, "30 24 230:16 / /own rw - ext4 /dev/zd16 rw\n")
		}, "volume bench0/a/vol (zd16) is mounted at /own, seen by process 7"},
		{"a held volume", func(n *fakeNode) { volume(n); n.file("/sys/class/block/zd16/holders/dm-3", "") }, "volume bench0/a/vol (zd16) is part of dm-3"},
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
		t.Errorf("without any process in sight nobody uses the pool: %q, %v", users, err)
	}
}
