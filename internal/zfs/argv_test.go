package zfs_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/internal/zfs/zfstest"
)

const (
	d1 = "/dev/disk/by-id/d1"
	d2 = "/dev/disk/by-id/d2"
	d3 = "/dev/disk/by-id/d3"
	d4 = "/dev/disk/by-id/d4"
)

// call is one use of a method of Client. Every string that a user could choose is an argument.
type call struct {
	args []string
	run  func(ctx context.Context, c *zfs.Client, args []string) error
	want string
}

func stripe(devices ...string) zfs.Layout {
	return zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Stripe, Devices: devices}}}
}

// calls has at least one entry for every method; TestEveryMethodIsTried checks that.
var calls = map[string][]call{
	"CreatePool": {
		{[]string{"p", d1, d2, "comment", "x", "org:uid", "u-1"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.CreatePool(ctx, zfs.PoolSpec{Name: a[0], Ashift: 12, Layout: zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Mirror, Devices: a[1:3]}}},
				Properties: map[string]string{a[3]: a[4]}, RootProperties: map[string]string{a[5]: a[6]}})
		},
			"zpool create -o cachefile=none -o autoreplace=off -m none -O canmount=off -O setuid=off -O devices=off -O exec=off -O volmode=dev -o " +
				"ashift=12 -o comment=x -O org:uid=u-1 p mirror " + d1 + " " + d2},
		{[]string{d1, d2, d3, d4}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.CreatePool(ctx, zfs.PoolSpec{Name: "p",
				Layout: zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Stripe, Devices: []string{"/dev/disk/by-path/x:0"}}},
					Log: []zfs.Vdev{{Type: zfs.Stripe, Devices: a[:1]}}, Special: []zfs.Vdev{{Type: zfs.Stripe, Devices: a[1:2]}}, Cache: a[2:3],
					Spare: a[3:4]}})
		},
			"zpool create -o cachefile=none -o autoreplace=off -m none -O canmount=off -O setuid=off -O devices=off -O exec=off -O volmode=dev p " +
				"/dev/disk/by-path/x:0 special " + d2 + " log " + d1 + " cache " + d3 + " spare " + d4},
		{[]string{"p", d1}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.CreatePool(ctx, zfs.PoolSpec{Name: a[0], Multihost: true,
				Layout: zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Stripe, Devices: a[1:]}}}})
		},
			"zpool create -o cachefile=none -o autoreplace=off -m none -O canmount=off -O setuid=off -O devices=off -O exec=off -O volmode=dev -o " +
				"multihost=on p " + d1},
		{[]string{"p", d1}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.CreatePool(ctx, zfs.PoolSpec{Name: a[0], NoSnapdir: true,
				Layout: zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Stripe, Devices: a[1:]}}}})
		},
			"zpool create -o cachefile=none -o autoreplace=off -m none -O canmount=off -O setuid=off -O devices=off -O exec=off -O volmode=dev -O " +
				"snapdir=disabled p " + d1},
	},
	"DestroyPool": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.DestroyPool(ctx, a[0]) },
		"zpool destroy p"}},
	"Export": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.Export(ctx, a[0]) }, "zpool export p"}},
	"Import": {
		{[]string{"123", d1, d2}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.Import(ctx, zfs.ImportOptions{GUID: a[0], Devices: a[1:]})
		}, "zpool import -d " + d1 + "-part1 -d " + d2 + "-part1 -o cachefile=none -N 123"},
		{[]string{"123", d1}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.Import(ctx, zfs.ImportOptions{GUID: a[0], Devices: a[1:], Look: true})
		}, "zpool import -d " + d1 + "-part1 -o cachefile=none -N -o readonly=on -o altroot=/run/storagebench/look 123"},
	},
	"Importable": {{[]string{d1, d2}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.Importable(ctx, "p", a)
		return err
	},
		"zpool import -d " + d1 + "-part1 -d " + d2 + "-part1"}},
	"Add": {{[]string{"p", d1}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.Add(ctx, a[0], 12, zfs.Layout{Log: []zfs.Vdev{{Type: zfs.Stripe, Devices: a[1:]}}})
	}, "zpool add -o ashift=12 p log " + d1}},
	"Attach": {{[]string{"p", d1, d2}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.Attach(ctx, a[0], a[1], a[2])
	}, "zpool attach p " + d1 + " " + d2}},
	"Detach": {{[]string{"p", d1}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.Detach(ctx, a[0], a[1]) },
		"zpool detach p " + d1}},
	"RemoveVdev": {{[]string{"p", "mirror-1"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.RemoveVdev(ctx, a[0], a[1])
	}, "zpool remove p mirror-1"}},
	"CancelRemoval": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.CancelRemoval(ctx, a[0]) },
		"zpool remove -s p"}},
	"Replace": {{[]string{"p", "987", d2}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.Replace(ctx, a[0], a[1], a[2])
	}, "zpool replace p 987 " + d2}},
	"Offline": {{[]string{"p", d1}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.Offline(ctx, a[0], a[1]) },
		"zpool offline -t p " + d1}},
	"Online": {{[]string{"p", d1}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.Online(ctx, a[0], a[1]) },
		"zpool online p " + d1}},
	"AwaitResilver": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.AwaitResilver(ctx, a[0]) },
		"zpool wait -t resilver p"}},
	"Scrub": {
		{[]string{"p", "start"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.Scrub(ctx, a[0], zfs.ScrubAct(a[1]))
		}, "zpool scrub p"},
		{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.Scrub(ctx, a[0], zfs.ScrubStop) },
			"zpool scrub -s p"},
	},
	"Trim": {
		{[]string{"p", "start"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.Trim(ctx, a[0], "", zfs.TrimAct(a[1]))
		}, "zpool trim p"},
		{[]string{"p", d1}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.Trim(ctx, a[0], a[1], zfs.TrimCancel)
		}, "zpool trim -c p " + d1},
	},
	"Sync": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.Sync(ctx, a[0]) }, "zpool sync p"}},
	"ClearLabel": {{[]string{d1}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.ClearLabel(ctx, a[0]) },
		"zpool labelclear " + d1 + "-part1"}},
	"SetPoolProperty": {{[]string{"p", "autotrim", "on"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.SetPoolProperty(ctx, a[0], a[1], a[2])
	}, "zpool set autotrim=on p"}},
	"HostName": {{nil, func(ctx context.Context, c *zfs.Client, _ []string) error { _, err := c.HostName(ctx); return err }, "uname -n"}},
	"Version":  {{nil, func(ctx context.Context, c *zfs.Client, _ []string) error { _, err := c.Version(ctx); return err }, "zfs version"}},
	"Status": {
		{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			_, err := c.Status(ctx, zfs.Version{Major: 2, Minor: 3}, a[0])
			return err
		}, "zpool status -j --json-int -P -t p"},
		{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			_, err := c.Status(ctx, zfs.Version{Major: 2, Minor: 1}, a[0])
			return err
		}, "zpool status -p -P -t p"},
	},
	"AuxiliaryGUIDs": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.AuxiliaryGUIDs(ctx, &zfs.Status{Pool: a[0], Vdevs: []zfs.VdevStatus{{Name: d1 + "-part1", Class: "spare"}}})
	}, "zpool status -g -p p"}},
	"Pools": {{nil, func(ctx context.Context, c *zfs.Client, _ []string) error { _, err := c.Pools(ctx); return err },
		"zpool list -Hp -o name,guid,size,allocated,free,fragmentation,capacity,health,freeing,leaked,expandsize,checkpoint,ashift"}},
	"Pool": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error { _, err := c.Pool(ctx, a[0]); return err },
		"zpool list -Hp -o name,guid,size,allocated,free,fragmentation,capacity,health,freeing,leaked,expandsize,checkpoint,ashift p"}},
	"PoolProperties": {{[]string{"p", "size"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.PoolProperties(ctx, a[0], a[1])
		return err
	}, "zpool get -Hp -o name,property,value,source size p"}},
	"VdevProperties": {{[]string{"p", "size"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.VdevProperties(ctx, a[0], a[1])
		return err
	}, "zpool get -Hp -o name,property,value,source size p all-vdevs"}},
	"DatasetProperties": {{[]string{"org:uid", "p/a@s"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.DatasetProperties(ctx, a[:1], a[1])
		return err
	}, "zfs get -Hp -o name,property,value,source org:uid p/a@s"}},
	"CreateDataset": {
		{[]string{"p/a", "recordsize", "8k"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.CreateDataset(ctx, zfs.DatasetSpec{Name: a[0], Properties: map[string]string{a[1]: a[2]}})
		}, "zfs create -u -o recordsize=8k p/a"},
		{[]string{"p/v"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			return c.CreateDataset(ctx, zfs.DatasetSpec{Name: a[0], VolumeBytes: 1 << 30, Sparse: true})
		}, "zfs create -s -V 1073741824 p/v"},
	},
	"DestroyDataset": {{[]string{"p/a"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.DestroyDataset(ctx, a[0], true)
	}, "zfs destroy -r p/a"}},
	"DestroySnapshot": {{[]string{"p/a@s"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.DestroySnapshot(ctx, a[0], false)
	}, "zfs destroy p/a@s"}},
	"Snapshot": {{[]string{"p/a@s", "org:op", "1"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.Snapshot(ctx, a[0], true, map[string]string{a[1]: a[2]})
	}, "zfs snapshot -r -o org:op=1 p/a@s"}},
	"Clone": {{[]string{"p/a@s", "p/b", "org:op", "1"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.Clone(ctx, a[0], a[1], map[string]string{a[2]: a[3]})
	}, "zfs clone -o org:op=1 p/a@s p/b"}},
	"SetProperty": {{[]string{"p/a", "atime", "off"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.SetProperty(ctx, a[0], a[1], a[2])
	}, "zfs set atime=off p/a"}},
	"SetProperties": {{[]string{"p/a", "atime", "off"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.SetProperties(ctx, a[0], map[string]string{a[1]: a[2], "org:mark": "u,atime=off"})
	}, "zfs set atime=off org:mark=u,atime=off p/a"}},
	"Mount": {{[]string{"p/a"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.Mount(ctx, a[0]) },
		"zfs mount -o nosuid,nodev,noexec p/a"}},
	"Unmount": {{[]string{"p/a"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.Unmount(ctx, a[0]) },
		"zfs unmount p/a"}},
	"InheritProperty": {{[]string{"p/a", "atime"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.InheritProperty(ctx, a[0], a[1])
	}, "zfs inherit atime p/a"}},
	"Datasets": {{[]string{"p/a"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.Datasets(ctx, a[0])
		return err
	},
		"zfs list -Hp -r -t filesystem,volume,snapshot -o name,type,guid,used,available,referenced,mounted,mountpoint,origin,usedbyrefreservation p/a"}},
	"SendSize": {
		{[]string{"p/a@s", "p/a@r"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			_, err := c.SendSize(ctx, zfs.SendOptions{Snapshot: a[0], From: a[1], Compressed: true})
			return err
		}, "zfs send -n -v -P -c -i p/a@r p/a@s"},
		{[]string{"1-ab-cd-ef"}, func(ctx context.Context, c *zfs.Client, a []string) error {
			_, err := c.SendSize(ctx, zfs.SendOptions{Token: a[0]})
			return err
		}, "zfs send -n -v -P -t 1-ab-cd-ef"},
	},
	"Replicate": {{[]string{"p/a@s", "q/b", "org:op", "1"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		return c.Replicate(ctx, zfs.SendOptions{Snapshot: a[0]}, a[1], map[string]string{a[2]: a[3]}, new(atomic.Int64))
	}, "zfs receive -s -u -o org:op=1 q/b"}},
	"ResumeToken": {{[]string{"p/a"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.ResumeToken(ctx, a[0])
		return err
	}, "zfs get -Hp -o name,property,value,source receive_resume_token p/a"}},
	"Resumed": {{[]string{"1-ab-cd-ef"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.Resumed(ctx, a[0])
		return err
	}, "zfs send -n -v -P -t 1-ab-cd-ef"}},
	"AbortReceive": {{[]string{"p/a"}, func(ctx context.Context, c *zfs.Client, a []string) error { return c.AbortReceive(ctx, a[0]) },
		"zfs receive -A p/a"}},
	"RequestSizes": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.RequestSizes(ctx, a[0])
		return err
	}, "zpool iostat -H -p -v -P -r p"}},
	"Latencies": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.Latencies(ctx, a[0])
		return err
	}, "zpool iostat -H -p -v -P -w p"}},
	"Counters": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.Counters(ctx, a[0])
		return err
	},
		"zpool get -Hp -o name,property,value,source " +
			"read_ops,write_ops,trim_ops,read_bytes,write_bytes,trim_bytes,allocated,size,read_errors,write_errors,checksum_errors,ashift,fragmentation p all-vdevs"}},
	"Metaslabs": {{[]string{"p"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.Metaslabs(ctx, a[0])
		return err
	}, "zdb -mm -P p"}},
	"LayoutScore": {{[]string{"p/a"}, func(ctx context.Context, c *zfs.Client, a []string) error {
		_, err := c.LayoutScore(ctx, a[0], 7)
		return err
	}, "zdb -ddddd p/a 7"}},
}

func TestEveryMethodIsTried(t *testing.T) {
	client := reflect.TypeFor[*zfs.Client]()
	for at := range client.NumMethod() {
		if name := client.Method(at).Name; len(calls[name]) == 0 {
			t.Errorf("method %s has no entry in calls: add one, so that its arguments are tried", name)
		}
	}
}

func TestArgv(t *testing.T) {
	for name, uses := range calls {
		for _, use := range uses {
			fake := &zfstest.Fake{}
			// What the command prints does not matter here, only that it was run.
			err := use.run(t.Context(), zfs.New(fake), slices.Clone(use.args))
			if errors.Is(err, zfs.Invalid) {
				t.Errorf("%s(%q): %v", name, use.args, err)
			}
			if !slices.Contains(fake.Commands(), use.want) {
				t.Errorf("%s(%q) ran %q, want %q", name, use.args, fake.Commands(), use.want)
			}
			for _, argv := range fake.Argv() {
				for _, arg := range argv[1:] {
					if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--json") && strings.ContainsAny(arg, "fF") {
						t.Errorf("%s passes %q, which forces: %q", name, arg, argv)
					}
				}
			}
		}
	}
}

// hostile are strings that must be refused as an argument, unless harmless accepts them.
var hostile = []string{"", "-f", "-F", "-", "--force", "-r", "-o", " p", "p ", "p q", "p\tq", "p\nq", "p -f", "@", "@s", "p@", "p/@s",
	"p//a", "/p", "p/", "p/a@s@t",
	"p/-f", "p/a@-f", "p#b", "p%recv", "$(id)", "`id`", "a;b", "a|b", "a&b", "a'b", `a"b`, `a\b`, "a*b", "a=b=-f ", "../etc", "/dev/sda",
	"/dev/disk/by-id/",
	"/dev/disk/by-id/../sda", "/dev/disk/by-id/a/b", "/dev/disk/by-id/-f", "/dev/disk/by-id/a b", "/etc/passwd", "mirror", "mirror1", "raidz",
	"log", "cache\x00", "ü",
	"1-nonsense", strings.Repeat("a", 70000)}

func TestHostileArgumentsRunNothing(t *testing.T) {
	tried := 0
	for name, uses := range calls {
		for _, use := range uses {
			for at := range use.args {
				for _, word := range hostile {
					if harmless(use.args[at], word) || word == "" && optional[name] == at {
						continue
					}
					args := slices.Clone(use.args)
					args[at] = word
					fake := &zfstest.Fake{}
					err := use.run(t.Context(), zfs.New(fake), args)
					tried++
					if !errors.Is(err, zfs.Invalid) {
						t.Errorf("%s with argument %d as %.60q: %v, want it invalid", name, at, word, err)
					}
					if ran := fake.Argv(); len(ran) > 0 {
						t.Errorf("%s with argument %d as %.60q ran %q", name, at, word, ran)
					}
				}
			}
		}
	}
	if tried < 3000 {
		t.Errorf("only %d combinations were tried", tried)
	}
}

// optional has the index of the argument that may be empty, by method.
var optional = map[string]int{"Trim": 1, "SendSize": 1}

// harmless reports whether a word is valid in its place: for example, a path or a type of vdev as the value of a property.
func harmless(place, word string) bool {
	switch place {
	case "x", "1", "u-1", "on", "off", "8k":
		// Values follow NAME=, where nothing can begin an option: only characters that would split the word are refused.
		return slices.Contains([]string{"p@", "p//a", "/p", "p/", "p/a@s@t", "p/-f", "p/a@-f", "p/@s", "/dev/sda", "/dev/disk/by-id/",
			"/dev/disk/by-id/../sda",
			"/dev/disk/by-id/a/b", "/dev/disk/by-id/-f", "/etc/passwd", "mirror", "mirror1", "raidz", "log", "1-nonsense"}, word)
	case "comment", "recordsize", "autotrim", "atime", "size", "org:uid", "org:op":
		return slices.Contains([]string{"mirror", "mirror1", "raidz", "log"}, word)
	}
	return false
}

func TestLayouts(t *testing.T) {
	vdev := func(kind zfs.VdevType, devices ...string) zfs.Vdev { return zfs.Vdev{Type: kind, Devices: devices} }
	for _, test := range []struct {
		name   string
		layout zfs.Layout
		want   string
		fails  string
	}{
		{name: "stripe", layout: stripe(d1, d2), want: d1 + " " + d2},
		{name: "two mirrors", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Mirror, d1, d2), vdev(zfs.Mirror, d3, d4)}},
			want: "mirror " + d1 + " " + d2 + " mirror " + d3 + " " + d4},
		{name: "raidz2", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Raidz2, d1, d2, d3, d4)}},
			want: "raidz2 " + strings.Join([]string{d1, d2, d3, d4}, " ")},
		{name: "draid", layout: zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Draid1, Devices: []string{d1, d2, d3, d4}, DraidData: 2, DraidSpares: 1}}},
			want: "draid1:2d:4c:1s " + strings.Join([]string{d1, d2, d3, d4}, " ")},
		{name: "draid of its own choice", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Draid2, d1, d2, d3, d4)}},
			want: "draid2:4c:0s " + strings.Join([]string{d1, d2, d3, d4}, " ")},
		{name: "mirrored log", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Stripe, d1)}, Log: []zfs.Vdev{vdev(zfs.Mirror, d2, d3)}},
			want: d1 + " log mirror " + d2 + " " + d3},
		{name: "nothing", layout: zfs.Layout{}, fails: "without devices"},
		{name: "mirror of one", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Mirror, d1)}}, fails: "at least 2"},
		{name: "raidz3 of three", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Raidz3, d1, d2, d3)}}, fails: "at least 4"},
		{name: "twice", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Stripe, d1)}, Cache: []string{d1}}, fails: "twice"},
		{name: "unlike", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Mirror, d1, d2), vdev(zfs.Stripe, d3)}}, fails: "let each survive"},
		{name: "uneven mirrors", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Mirror, d1, d2), vdev(zfs.Mirror, d3, d4, "/dev/disk/by-id/d5")}},
			fails: "let each survive"},
		{name: "special without redundancy", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Mirror, d1, d2)},
			Special: []zfs.Vdev{vdev(zfs.Stripe, d3)}}, fails: "let each survive"},
		{name: "mirror beside raidz1", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Mirror, d1, d2), vdev(zfs.Raidz1, d3, d4)}},
			want: "mirror " + d1 + " " + d2 + " raidz1 " + d3 + " " + d4},
		{name: "mirror beside raidz2", layout: zfs.Layout{Data: []zfs.Vdev{vdev(zfs.Mirror, d1, d2),
			vdev(zfs.Raidz2, d3, d4, "/dev/disk/by-id/d5")}}, fails: "let each survive"},
		{name: "raidz as log", layout: zfs.Layout{Log: []zfs.Vdev{vdev(zfs.Raidz1, d1, d2)}}, fails: "stripe or mirror"},
		{name: "made up", layout: zfs.Layout{Data: []zfs.Vdev{vdev("raid5", d1, d2)}}, fails: "raid5"},
		{name: "spares without draid", layout: zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Raidz1, Devices: []string{d1, d2}, DraidSpares: 1}}},
			fails: "leave them out"},
		{name: "draid too wide", layout: zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Draid2, Devices: []string{d1, d2, d3, d4}, DraidData: 2,
			DraidSpares: 1}}}, fails: "5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fake := &zfstest.Fake{}
			err := zfs.New(fake).Add(t.Context(), "p", 0, test.layout)
			if test.fails != "" {
				if !errors.Is(err, zfs.Invalid) || !strings.Contains(err.Error(), test.fails) || len(fake.Commands()) != 0 {
					t.Fatalf("%v after %q, want it invalid with %q and nothing run", err, fake.Commands(), test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"zpool add p " + test.want}, fake.Commands()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatBelongsToThePackageCannotBeSet(t *testing.T) {
	for _, spec := range []zfs.PoolSpec{
		{Name: "p", Layout: stripe(d1), Properties: map[string]string{"cachefile": "/etc/zfs/zpool.cache"}},
		{Name: "p", Layout: stripe(d1), Properties: map[string]string{"altroot": "/x"}},
		{Name: "p", Layout: stripe(d1), Properties: map[string]string{"listsnaps": "on"}},
		{Name: "p", Layout: stripe(d1), Properties: map[string]string{"failmode": "panic"}},
		{Name: "p", Layout: stripe(d1), Properties: map[string]string{"compatibility": "a/../../passwd"}},
		{Name: "p", Layout: stripe(d1), RootProperties: map[string]string{"mountpoint": "/"}},
		{Name: "p", Layout: stripe(d1), Ashift: 8},
		{Name: "p", Layout: zfs.Layout{Cache: []string{d1}}},
		{Name: "p", Layout: stripe("/dev/sda")},
	} {
		fake := &zfstest.Fake{}
		if err := zfs.New(fake).CreatePool(t.Context(), spec); !errors.Is(err, zfs.Invalid) || len(fake.Argv()) > 0 {
			t.Errorf("%+v: %v, ran %q", spec, err, fake.Argv())
		}
	}
	for name, value := range map[string]string{"listsnapshots": "on", "multihost": "on", "cachefile": "/etc/zfs/zpool.cache",
		"autoreplace": "on", "replace": "on", "failmode": "panic"} {
		fake := &zfstest.Fake{}
		if err := zfs.New(fake).SetPoolProperty(t.Context(), "p", name, value); !errors.Is(err, zfs.Invalid) || len(fake.Argv()) > 0 {
			t.Errorf("%s=%s: %v, ran %q", name, value, err, fake.Argv())
		}
	}
	fake := &zfstest.Fake{}
	if err := zfs.New(fake).DestroyDataset(t.Context(), "p", true); !errors.Is(err, zfs.Invalid) || len(fake.Argv()) > 0 {
		t.Errorf("destroying a root dataset: %v, ran %q", err, fake.Argv())
	}
}
