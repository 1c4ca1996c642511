package observe

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// placeProbe always returns the same place.
type placeProbe struct{ found place }

func (p placeProbe) look(string) (place, error)    { return p.found, nil }
func (placeProbe) zvolName(string) (string, error) { return "", nil }

// plant writes the files of a machine.
func plant(t *testing.T, files ...map[string]string) system {
	t.Helper()
	root := t.TempDir()
	for _, some := range files {
		for name, text := range some {
			full := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return system{root: root}
}

// onLoop are the files of a machine with the block device loop0 on the file /images/disk.
func onLoop(dio string) map[string]string {
	return map[string]string{
		"/sys/dev/block/7:0/uevent":            "DEVNAME=loop0\n",
		"/sys/dev/block/7:0/loop/backing_file": "/images/disk\n",
		"/sys/dev/block/7:0/loop/dio":          dio + "\n",
		"/sys/dev/block/7:0/dev":               "7:0\n",
		"/proc/self/mountinfo":                 "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n",
	}
}

// visible are the files that make the file below loop0 visible in the pod, on a file system of the given type.
func visible(fsType, number string) map[string]string {
	return map[string]string{
		"/images/disk":                         "",
		"/proc/self/mountinfo":                 "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 " + number + " / /images rw - " + fsType + " x rw\n",
		"/sys/dev/block/" + number + "/uevent": "DEVNAME=sdb\n",
		"/sys/dev/block/" + number + "/dev":    number + "\n",
	}
}

// changed returns the delta of some groups whose counters grew from zero.
func changed(o *Observer, grown map[string]map[string]uint64) Delta {
	start := time.Now()
	before, after := Snapshot{at: start, groups: map[string]group{}, missing: o.unknown},
		Snapshot{at: start.Add(time.Minute), groups: map[string]group{}}
	for name, counters := range grown {
		before.groups[name], after.groups[name] = newGroup(), newGroup()
		for key, value := range counters {
			before.groups[name].counters[key], after.groups[name].counters[key] = 0, value
		}
	}
	return o.Between(before, after)
}

// TestLoopDevicesHideACache: reads of a loop device may come from the node's memory, although the device counts them.
func TestLoopDevicesHideACache(t *testing.T) {
	const read = 1 << 30
	for name, c := range map[string]struct {
		files      []map[string]string
		fromDevice uint64
		cold, warm bool
		doubt      string
	}{
		"unseen, cached":     {[]map[string]string{onLoop("0")}, read, false, false, "loop device loop0 may come from the page cache"},
		"unseen, warm":       {[]map[string]string{onLoop("0")}, read / 100, false, true, "losetup --direct-io=on"},
		"unseen, direct":     {[]map[string]string{onLoop("1")}, read, true, false, ""},
		"unseen, not told":   {[]map[string]string{onLoop("")}, read, false, false, "losetup --direct-io=on"},
		"on ZFS, direct":     {[]map[string]string{onLoop("1"), visible("zfs", "0:40")}, read, false, false, "its file is on ZFS"},
		"in memory, direct":  {[]map[string]string{onLoop("1"), visible("tmpfs", "0:40")}, read, false, false, "its file is on tmpfs"},
		"on a disk, cached":  {[]map[string]string{onLoop("0"), visible("ext4", "8:16")}, read, true, false, ""},
		"on a disk, no read": {[]map[string]string{onLoop("0"), visible("ext4", "8:16")}, 0, false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sys := plant(t, c.files...)
			sys.probe = placeProbe{place{path: "/dev/storagebench", block: true, device: "7:0"}}
			o, err := newObserver(sys, Target{Path: "/dev/storagebench", Block: true})
			if err != nil {
				t.Fatal(err)
			}
			counted := map[string]map[string]uint64{"device.loop0": {"readBytes": c.fromDevice}, "process": {"readBytes": c.fromDevice}}
			if o.devices.doubt() == "" && len(o.devices.all) > 1 {
				counted["device.loop0"]["readBytes"], counted["process"]["readBytes"] = read, read
				counted["device.sdb"] = map[string]uint64{"readBytes": c.fromDevice}
			}
			delta := changed(o, counted)
			cold, coldWords := JudgeCache("Cold", read, delta)
			warm, warmWords := JudgeCache("Warm", read, delta)
			if cold != c.cold || warm != c.warm {
				t.Errorf("cold is %v: %s\nwarm is %v: %s", cold, coldWords, warm, warmWords)
			}
			if c.fromDevice == read && c.doubt != "" && (!strings.Contains(coldWords, c.doubt) || !strings.Contains(coldWords, "can't be checked") ||
				!strings.Contains(coldWords, "declare Any")) {
				t.Errorf("it says %q", coldWords)
			}
			if _, words := JudgeCache("Any", read, delta); !strings.Contains(words, c.doubt) {
				t.Errorf("it says %q", words)
			}
			if _, known := delta.WithApplication(Application{ReadBytes: read, Operations: 1}).Metrics["cacheHitPartsPerMillion"]; known == (c.doubt != "") {
				t.Errorf("the part of memory is known: %v; %v", known, delta.Unavailable)
			}
		})
	}
}

// onPool are the files of a machine with the dataset tank/data.
func onPool() map[string]string {
	stat := "9 1 0x01 3 816 1 2\nname type data\n"
	return map[string]string{
		"/proc/self/mountinfo":                   "1 0 0:40 / /data rw - zfs tank/data rw\n",
		"/proc/spl/kstat/zfs/tank/state":         "ONLINE\n",
		"/proc/spl/kstat/zfs/arcstats":           stat + "c_min 4 100\nc_max 4 8000\n",
		"/sys/class/block/sda1/uevent":           "DEVNAME=sda1\nPARTNAME=zfs-1234\n",
		"/sys/class/block/sda1/dev":              "8:1\n",
		"/sys/dev/block/8:1/uevent":              "DEVNAME=sda1\n",
		"/sys/dev/block/8:16/uevent":             "DEVNAME=sdb\n",
		"/sys/dev/block/8:16/dev":                "8:16\n",
		"/sys/dev/block/8:16/device/serial":      "S1\n",
		"/sys/module/zfs/parameters/zfs_arc_max": "0\n",
		"/sys/module/zfs/parameters/zfs_arc_min": "0\n",
		"/sys/devices/system/cpu/online":         "0-3\n",
		"/proc/self/status":                      "Cpus_allowed_list:\t0-1,3\n",
	}
}

func onDataset(t *testing.T, more map[string]string) *Observer {
	t.Helper()
	files := onPool()
	maps.Copy(files, more)
	sys := plant(t, files)
	sys.probe = placeProbe{place{path: "/data", blockSize: 128 << 10}}
	o, err := newObserver(sys, Target{Path: "/data", Disks: []Disk{{Path: "/dev/disk/by-id/b", Number: "8:16", Serial: "S1"}}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestDisksOfAPoolAreNotCounted: the agent counts their reads and writes. Only the latency of their requests is seen here.
func TestDisksOfAPoolAreNotCounted(t *testing.T) {
	o := onDataset(t, nil)
	delta := changed(o, map[string]map[string]uint64{
		"device.sdb": {"readBytes": 5 << 20, "writtenBytes": 5 << 20, "readOperations": 10, "writeOperations": 10, "readNanoseconds": 1e7,
			"busyNanoseconds": 6e9, "queueNanoseconds": 6e9},
		"zfs.arc": {"demand_data_hits": 0, "demand_data_misses": 80, "prefetch_data_misses": 0},
	}).WithApplication(Application{ReadBytes: 10 << 20, WrittenBytes: 10 << 20, ReadOperations: 1, WriteOperations: 1, Operations: 2,
		Lasting: 30 * time.Second})
	if diff := cmp.Diff(map[string]int64{"cacheHitPartsPerMillion": 0, "diskReadLatencyMeanNanoseconds": 1e6, "diskQueueMilli": 200,
		"diskBusyPartsPerMillion": 200_000}, delta.Metrics); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	o.target.DisksChange = true // then the request does not name all disks
	if busy, found := changed(o, map[string]map[string]uint64{"device.sdb": {"busyNanoseconds": 6e9, "queueNanoseconds": 6e9}}).
		WithApplication(Application{Lasting: time.Minute}).Metrics["diskBusyPartsPerMillion"]; found {
		t.Errorf("the disks of another pool are %d busy", busy)
	}
	if met, words := JudgeCache("Cold", 10<<20, delta); !met {
		t.Error(words)
	}
	if words := strings.Join(delta.Unavailable, "\n"); !strings.Contains(words, "the agent of the node counts it") {
		t.Errorf("nothing says why: %s", words)
	}
	facts := o.Environment(t.Context())
	if facts["devices.count"] != "1" || facts["device.0.name"] != "sdb" || facts["device.0.path"] != "/dev/disk/by-id/b" ||
		facts["device.0.serial"] != "S1" {
		t.Errorf("%v", facts)
	}
}

// TestHitsOfCacheDevices: ZFS counts them for data and metadata together. Of 1000 blocks of 128 KiB, some were missed by the ARC.
func TestHitsOfCacheDevices(t *testing.T) {
	const read = 1000 * 128 << 10
	for name, c := range map[string]struct {
		data, prefetched, metadata, hits uint64
		// share is the metric, -1 if it is left out.
		share      int64
		cold, warm bool
	}{
		"no cache device":                {1000, 0, 500, 0, 0, true, false},
		"data only":                      {1000, 0, 0, 600, 600_000, false, false},
		"prefetched too":                 {600, 400, 0, 600, 600_000, false, false},
		"all from the cache":             {1000, 0, 40, 1040, 1_000_000, false, true},
		"a little metadata":              {1000, 0, 30, 515, 500_000, false, false},
		"less than the metadata":         {1000, 0, 40, 40, 38_000, true, false},
		"all metadata, or not":           {1000, 0, 300, 200, -1, true, false},
		"much metadata, and surely data": {1000, 0, 300, 500, -1, false, false},
		"more hits than misses":          {500, 0, 0, 600, 1_000_000, false, true},
	} {
		delta := changed(onDataset(t, nil), map[string]map[string]uint64{"zfs.arc": {"demand_data_hits": 1000 - c.data,
			"demand_data_misses": c.data, "prefetch_data_misses": c.prefetched, "demand_metadata_misses": c.metadata / 2,
			"prefetch_metadata_misses": c.metadata - c.metadata/2, "l2_hits": c.hits}})
		share, found := delta.WithApplication(Application{ReadBytes: read}).Metrics["cacheHitPartsPerMillion"]
		if !found {
			share = -1
		}
		if cold, words := JudgeCache("Cold", read, delta); cold != c.cold {
			t.Errorf("%s: cold is %v: %s", name, cold, words)
		}
		if warm, words := JudgeCache("Warm", read, delta); warm != c.warm {
			t.Errorf("%s: warm is %v: %s", name, warm, words)
		}
		if noted := strings.Contains(strings.Join(delta.Notes, "\n"), "hits of cache devices"); share != c.share || noted != (c.share < 0) {
			t.Errorf("%s: %d, want %d; noted: %v", name, share, c.share, noted)
		}
	}
}

// TestDisksOfAPoolAreNotGuessed: a label may be left from a former pool, and a device number may belong to another disk now.
func TestDisksOfAPoolAreNotGuessed(t *testing.T) {
	for name, c := range map[string]struct {
		disks []Disk
		says  string
	}{
		"not told":     {nil, "they are known only for a BenchmarkPool"},
		"another disk": {[]Disk{{Path: "/dev/disk/by-id/b", Number: "8:16", Serial: "S2"}}, "has the serial number S2, but device 8:16 now has S1"},
		"one is gone":  {[]Disk{{Path: "/dev/disk/by-id/b", Number: "8:16"}, {Path: "/dev/disk/by-id/c", Number: "8:32"}}, "/dev/disk/by-id/c"},
	} {
		sys := plant(t, onPool())
		sys.probe = placeProbe{place{path: "/data", blockSize: 128 << 10}}
		o, err := newObserver(sys, Target{Path: "/data", Disks: c.disks})
		if err != nil {
			t.Fatal(err)
		}
		facts := o.Environment(t.Context())
		if facts["devices.count"] != "" || facts["device.0.name"] != "" {
			t.Errorf("%s: %v", name, facts)
		}
		if words := strings.Join(changed(o, nil).Unavailable, "\n"); !strings.Contains(words, c.says) {
			t.Errorf("%s: %s", name, words)
		}
	}
}

// TestZvolOnDisksOfAPool: neither the zvol, which is above the cache, nor the disks below it are counted.
func TestZvolOnDisksOfAPool(t *testing.T) {
	zvol, disk := &device{name: "zd0", kind: kindZvol}, &device{name: "sdb", told: &Disk{}}
	zvol.below = []*device{disk}
	tree := &deviceTree{top: []*device{zvol}, all: []*device{zvol, disk}}
	if got := namesOf(tree.counted()); got != nil {
		t.Errorf("counted are %q", got)
	}
}

// TestEffectiveARC: the configured bound and the one in effect may differ; a bound that ZFS has chosen itself is not reported.
func TestEffectiveARC(t *testing.T) {
	for name, c := range map[string]struct {
		parameters map[string]string
		want       map[string]string
	}{
		"defaults":    {nil, map[string]string{}},
		"max":         {map[string]string{"zfs_arc_max": "8000"}, map[string]string{"zfs.arc.maxBytes": "8000"}},
		"max ignored": {map[string]string{"zfs_arc_max": "1"}, map[string]string{"zfs.arc.maxBytes": "8000"}},
		"both": {map[string]string{"zfs_arc_max": "8000", "zfs_arc_min": "100"}, map[string]string{"zfs.arc.maxBytes": "8000",
			"zfs.arc.minBytes": "100"}},
	} {
		files := map[string]string{}
		for parameter, value := range c.parameters {
			files["/sys/module/zfs/parameters/"+parameter] = value + "\n"
		}
		facts := onDataset(t, files).Environment(t.Context())
		maps.DeleteFunc(facts, func(key, _ string) bool { return !strings.HasPrefix(key, "zfs.arc.") })
		if diff := cmp.Diff(c.want, facts); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestCPUsOfThePod: the smallest known number counts.
func TestCPUsOfThePod(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int
	}{
		"allowed":   {nil, 3},
		"online":    {map[string]string{"/sys/devices/system/cpu/online": "0,2\n"}, 2},
		"not known": {map[string]string{"/sys/devices/system/cpu/online": "", "/proc/self/status": "Cpus_allowed_list:\tall\n"}, 0},
	} {
		if got := onDataset(t, c.files).cpus; got != c.want {
			t.Errorf("%s: %d CPUs, want %d", name, got, c.want)
		}
	}
}
