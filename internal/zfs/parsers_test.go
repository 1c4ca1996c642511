package zfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClassifyRealMessages(t *testing.T) {
	want := map[string]Kind{
		"add-mismatch": Invalid, "attach-small": NotFound, "bad-fsprop": Invalid, "bad-prop": Invalid, "busy-destroy": HasDependents,
		"busy-export": Busy, "busy-unmount": Busy, "create-all": Invalid, "dataset-exists": Exists, "device-in-use": DeviceInUse,
		"has-children": HasDependents, "has-clones": HasDependents, "no-dataset": NotFound, "no-device": NotFound, "no-parent": NotFound,
		"no-pool": NotFound, "no-pool-destroy": NotFound, "no-pool-json": NotFound, "no-replicas": NoReplicas, "no-scrub": NotRunning,
		"no-spare": Unsupported, "nospace-vol": NoSpace, "not-in-pool": NotFound, "permission": Permission, "permission-destroy": Permission,
		"permission-zfs": Permission, "pool-exists": DeviceInUse, "recv-exists": Exists, "recv-junk": BadStream, "recv-resumable": Exists,
		"remove-vdev": NoSpace, "create-exported": DeviceInUse, "import-again": Exists, "import-name": NotFound, "labelclear-clean": Unknown,
		"labelclear-exported": DeviceInUse,
		"scrub-again":         InProgress, "send-token": BadStream, "snap-exists": Exists, "trim-again": InProgress, "usage": Invalid,
	}
	files, err := os.ReadDir(filepath.Join("testdata", "2.3.9", "errors"))
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files, want one for each of %d errors: %v", len(files), len(want), err)
	}
	for _, file := range files {
		if got := classify(string(golden(t, "2.3.9/errors/"+file.Name()))); got != want[file.Name()] {
			t.Errorf("%s is %q, want %q", file.Name(), got, want[file.Name()])
		}
	}
}

// TestClassifyOtherMessages checks messages from the source of OpenZFS that the lab did not provoke.
func TestClassifyOtherMessages(t *testing.T) {
	for said, want := range map[string]Kind{
		"cannot export 'p': pool is busy\n":                                                                                Busy,
		"cannot scrub p: pool I/O is currently suspended\n":                                                                Suspended,
		"cannot create 'p/out of space/x': dataset already exists\n":                                                       Exists,
		"cannot label '/dev/x': failed to detect device partitions on '/dev/x-part1': 19\n":                                NoPartition,
		"missing link: sdb was partitioned but /dev/disk/by-id/x-part1 is missing\n":                                       NoPartition,
		"cannot replace 12 with /dev/x: no such pool or dataset\n":                                                         NotFound,
		"cannot destroy 'is busy': no such pool\n":                                                                         NotFound,
		"cannot create 'p': pool already exists\n":                                                                         Exists,
		"cannot import 'p': a pool with that name already exists\nuse the form 'zpool import <pool | id> <newpool>' ...\n": Exists,
		"cannot import 'p': pool was previously in use from another system.\nLast accessed by n2 (hostid=1) at Sat\nThe pool can be imported, " +
			"use 'zpool import -f' to import the pool.\n": OtherHost,
		"cannot import '12345': no such pool available\n":                                                                       NotFound,
		"cannot receive new filesystem stream: out of space\n":                                                                  NoSpace,
		"invalid vdev specification\nuse '-f' to override the following errors:\n/dev/x-part1 is part of exported pool 'y'\n":   DeviceInUse,
		"invalid vdev specification\nuse '-f' to override the following errors:\n/dev/x contains a filesystem of type 'ext4'\n": DeviceInUse,
		"cannot replace a with b: device is too small\n":                                                                        DeviceTooSmall,
		"The ZFS modules are not loaded.\nTry running '/sbin/modprobe zfs' as root to load them.\n":                             NotInstalled,
		"nsenter: failed to execute zpool: No such file or directory\n":                                                         NotInstalled,
		"cannot receive resume stream: checksum mismatch or incomplete stream.\nPartially received snapshot is saved.\n":        BadStream,
		"cannot set property for 'p': 'recordsize' must be power of 2 from 512B to 1M\n":                                        Invalid,
		"cannot pause scrubbing p: there is no active scrub\n":                                                                  NotRunning,
		"something unheard of\n": Unknown,
		"":                       Unknown,
	} {
		if got := classify(said); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
}

func TestErrorsAreFriendly(t *testing.T) {
	err := error(&Error{Kind: Busy, Command: "zpool export p", ExitCode: 1, Stderr: "cannot unmount '/x': pool or dataset is busy\n",
		Err: os.ErrClosed})
	var typed *Error
	if !errors.Is(err, Busy) || errors.Is(err, NotFound) || !errors.Is(err, os.ErrClosed) || !errors.As(err, &typed) {
		t.Errorf("%v cannot be told apart", err)
	}
	tempting := &Error{Kind: DeviceInUse,
		Stderr: "invalid vdev specification\nuse '-f' to override the following errors:\n/dev/x is part of exported pool 'p'\n"}
	if text := tempting.Error(); strings.Contains(text, "-f") || !strings.Contains(text, "exported pool 'p'") {
		t.Errorf("%q invites to use force, or does not say what is wrong", text)
	}
	for _, part := range []string{"zpool export p", "cannot unmount '/x'", "end that use first"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestVersions(t *testing.T) {
	for output, want := range map[string]Version{
		string(golden(t, "2.3.9/version")): {Major: 2, Minor: 3, Patch: 9, Userland: "zfs-2.3.9-0+deb13u1",
			Kernel: "zfs-kmod-2.3.9-0+deb13u1"},
		"zfs-2.1.5-1ubuntu6~22.04.4\nzfs-kmod-2.1.5-1\n": {Major: 2, Minor: 1, Patch: 5, Userland: "zfs-2.1.5-1ubuntu6~22.04.4",
			Kernel: "zfs-kmod-2.1.5-1"},
		"zfs-2.4.0-rc3\nzfs-kmod-2.2.7-1\n": {Major: 2, Minor: 4, Userland: "zfs-2.4.0-rc3", Kernel: "zfs-kmod-2.2.7-1"},
		"zfs-2.4.99-12_gabc\nzfs-kmod-2.4.99-12_gabcdef\n": {Major: 2, Minor: 4, Patch: 99, Userland: "zfs-2.4.99-12_gabc",
			Kernel: "zfs-kmod-2.4.99-12_gabcdef"},
	} {
		got, err := parseVersion(output)
		if err != nil {
			t.Errorf("%q: %v", output, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	for _, output := range []string{"", "zfs-2.3.9\n", "zfs-kmod-2.3.9\n", "zfs-x\nzfs-kmod-2.3.9\n"} {
		if got, err := parseVersion(output); err == nil {
			t.Errorf("%q read as %+v", output, got)
		}
	}
	older, newer := Version{Major: 2, Minor: 1, Patch: 15}, Version{Major: 2, Minor: 3, Kernel: "zfs-kmod-2.3.0-1"}
	if older.JSON() || older.VdevProperties() || !newer.JSON() || !newer.VdevProperties() || len(older.Missing()) == 0 ||
		len(newer.Missing()) != 0 {
		t.Errorf("2.1.15 misses %q, 2.3.0 misses %q", older.Missing(), newer.Missing())
	}
	newer.Kernel = "zfs-kmod-2.2.7-1" // upgraded without a reboot
	if newer.Snapdir() || len(newer.Missing()) != 1 {
		t.Errorf("with an older module 2.3.0 misses %q", newer.Missing())
	}
}

func TestPools(t *testing.T) {
	pools, err := parsePools("", string(golden(t, "2.3.9/pools")))
	if err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	want := []PoolSummary{{Name: "sbz", GUID: "14707078720094928066", Health: StateOnline, Size: 4026531840, Allocated: 102658048,
		Free:                 3923873792,
		FragmentationPercent: &one, CapacityPercent: 2, Ashift: 12}}
	if diff := cmp.Diff(want, pools); diff != "" {
		t.Error(diff)
	}
	faulted, err := parsePools("", "p\t1\t-\t-\t-\t-\t-\tUNAVAIL\t-\t-\t-\t-\t12\n")
	if err != nil || len(faulted) != 1 || faulted[0].FragmentationPercent != nil || faulted[0].Health != StateUnavail {
		t.Errorf("%+v, %v", faulted, err)
	}
	for _, output := range []string{"p\t1\n", "p\t1\tx\t0\t0\t0\t0\tONLINE\t0\t0\t-\t-\t12\n"} {
		if got, err := parsePools("", output); err == nil {
			t.Errorf("%q read as %+v", output, got)
		}
	}
}

func TestProperties(t *testing.T) {
	properties, err := parseProperties("", string(golden(t, "2.3.9/get-user")))
	if err != nil {
		t.Fatal(err)
	}
	own, _ := find(properties, "sbz", "storagebench.dev:uid")
	inherited, _ := find(properties, "sbz/fs", "storagebench.dev:uid")
	if !own.Local() || inherited.Local() || own.Value != inherited.Value || inherited.Source != "inherited from sbz" {
		t.Errorf("own %+v, inherited %+v", own, inherited)
	}
	if _, there := find(properties, "sbz", "nosuch"); there {
		t.Error("found what is not there")
	}
	for _, file := range []string{"get-pool", "get-dataset", "get-vdevs"} {
		properties, err := parseProperties("", string(golden(t, "2.3.9/"+file)))
		if err != nil || len(properties) < 30 {
			t.Errorf("%s: %d properties, %v", file, len(properties), err)
		}
	}
}

func TestDatasets(t *testing.T) {
	datasets, err := parseDatasets("", string(golden(t, "2.3.9/datasets")))
	if err != nil {
		t.Fatal(err)
	}
	var clone, volume Dataset
	for _, dataset := range datasets {
		switch dataset.Name {
		case "sbz/clone":
			clone = dataset
		case "sbz/vol":
			volume = dataset
		}
	}
	if len(datasets) != 5 || clone.Origin != "sbz/fs@a" || volume.Type != "volume" || volume.UsedBytes != 70254592 || volume.MountPoint != "" {
		t.Errorf("%+v", datasets)
	}
	// The pool uses what is reserved for its volume.
	if pool := datasets[0]; volume.UsedBytes-volume.ReservedBytes != 57344 || pool.ReservedBytes != volume.ReservedBytes {
		t.Errorf("reserved are %d bytes of the volume and %d of the pool", volume.ReservedBytes, pool.ReservedBytes)
	}
}

// TestReservedBytes: what is reserved for a volume is used by all datasets above it, and by no others.
func TestReservedBytes(t *testing.T) {
	row := func(name, kind, reserved string) string {
		return strings.Join([]string{name, kind, "7", "100", "900", "5", "no", "none", "-", reserved}, "\t") + "\n"
	}
	datasets, err := parseDatasets("", row("p/a", "filesystem", "1")+row("p/a@s", "snapshot", "-")+row("p/a/b", "filesystem", "0")+
		row("p/a/b/v", "volume", "20")+row("p/a/b/w", "volume", "300")+row("p/a/bc", "filesystem", "0"))
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, dataset := range datasets {
		got = append(got, dataset.ReservedBytes)
	}
	if diff := cmp.Diff([]int64{321, 0, 320, 20, 300, 0}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHistograms(t *testing.T) {
	sizes, err := parseHistograms("", string(golden(t, "2.3.9/sizes")), sizeColumns)
	if err != nil {
		t.Fatal(err)
	}
	if len(sizes) != 4 || sizes[0].Vdev != "sbz" || sizes[3].Vdev != "/dev/disk/by-id/virtio-n1-disk4-part1" || len(sizes[0].Bounds) != 16 {
		t.Fatalf("%d vdevs, %d rows", len(sizes), len(sizes[0].Bounds))
	}
	if got := sizes[0].Columns["async_write_agg"][9]; sizes[0].Bounds[9] != 262144 || got != 168 {
		t.Errorf("%d aggregated writes of %d bytes, want 168 of 262144", got, sizes[0].Bounds[9])
	}
	latencies, err := parseHistograms("", string(golden(t, "2.3.9/latencies")), latencyColumns)
	if err != nil {
		t.Fatal(err)
	}
	if got := latencies[0].Columns["total_write"][22]; latencies[0].Bounds[22] != 8388607 || got != 1243 {
		t.Errorf("%d writes up to %d ns, want 1243 up to 8388607", got, latencies[0].Bounds[22])
	}
	classes, err := parseHistograms("", string(golden(t, "2.3.9/sizes-all-classes")), sizeColumns)
	if err != nil || len(classes) < 12 {
		t.Errorf("%d vdevs of all classes, %v", len(classes), err)
	}
	older, err := parseHistograms("", string(golden(t, "2.1/sizes")), sizeColumns)
	if err != nil || len(older[0].Columns) != 12 || older[0].Columns["rebuild_ind"] != nil || older[0].Columns["sync_write_ind"][0] != 9 {
		t.Errorf("%+v, %v", older, err)
	}
}

func TestHistogramsSince(t *testing.T) {
	read := func(count string) []Histogram {
		t.Helper()
		histograms, err := parseHistograms("", "\np\n512\t"+count+"\t0\n1024\t5\t6\n", sizeColumns)
		if err != nil {
			t.Fatal(err)
		}
		return histograms
	}
	added, err := HistogramsSince(read("9"), read("7"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]int64{"sync_read_ind": {2, 0}, "sync_read_agg": {0, 0}}, added[0].Columns); diff != "" {
		t.Error(diff)
	}
	if _, err := HistogramsSince(read("1"), read("7")); err == nil || !strings.Contains(err.Error(), "imported again") {
		t.Errorf("counters that fell: %v", err)
	}
	if _, err := HistogramsSince(read("9"), nil); err == nil {
		t.Error("vdevs that came are no error")
	}
	other := read("9")
	other[0].Vdev = "q"
	if _, err := HistogramsSince(other, read("7")); err == nil {
		t.Error("another vdev is no error")
	}
}

func TestCounters(t *testing.T) {
	properties, err := parseProperties("", string(golden(t, "2.3.9/get-vdevs")))
	if err != nil {
		t.Fatal(err)
	}
	var known []Property
	for _, property := range properties {
		for _, name := range counterProperties {
			if property.Name == name {
				known = append(known, property)
			}
		}
	}
	counters, err := vdevCounters(known)
	if err != nil {
		t.Fatal(err)
	}
	var disk VdevCounters
	for _, vdev := range counters {
		if vdev.Vdev == "virtio-n1-disk3" {
			disk = vdev
		}
	}
	if len(counters) != 3 || counters[0].Vdev != "mirror-0" {
		t.Errorf("%+v: want the mirror and its disks; the root counts nothing", counters)
	}
	if disk.ReadOps != 3 || disk.WriteOps != 2379 || disk.ReadBytes != 24576 || disk.WriteBytes != 111009792 || disk.TrimOps != 13 ||
		disk.Ashift != 12 {
		t.Errorf("%+v", disk)
	}
}

func TestSendSizes(t *testing.T) {
	for file, want := range map[string]int64{"2.3.9/send": 44552, "2.3.9/send-resumed": 6987592, "2.3.9/send-increment": 103515328} {
		if got, err := parseSendSize("", string(golden(t, file))); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", file, got, err, want)
		}
	}
	for _, output := range []string{"", "size\n", "size\tx\n", "size\t-1\n"} {
		if got, err := parseSendSize("", output); err == nil {
			t.Errorf("%q read as %d", output, got)
		}
	}
}

func TestMetaslabs(t *testing.T) {
	for _, file := range []string{"2.3.9/metaslabs", "2.3.9/metaslabs-more"} {
		metaslabs, err := parseMetaslabs(string(golden(t, file)))
		if err != nil {
			t.Fatal(err)
		}
		first, three := metaslabs[0], int64(3)
		want := Metaslab{FreeBytes: 159 << 20, FragmentationPercent: &three, FreeSegments: map[int]int64{12: 9, 13: 4, 14: 1, 15: 5, 16: 3,
			27: 1}}
		if diff := cmp.Diff(want, first); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
		if last := metaslabs[14]; len(metaslabs) != 15 || last.Index != 14 || last.Offset != 0xe0000000 || last.FreeBytes != 256<<20 {
			t.Errorf("%s: %d metaslabs, the last %+v", file, len(metaslabs), last)
		}
	}
	exact, err := parseMetaslabs(string(golden(t, "2.3.9/metaslabs-exact")))
	if err != nil || len(exact) != 15 || exact[0].FreeBytes != 268226560 {
		t.Errorf("%+v, %v, want exact numbers", exact, err)
	}
	// The first three metaslabs are in use. The others have no space map, and so no histogram.
	for at, metaslab := range exact[3:] {
		want := Metaslab{Index: int64(at) + 3, Offset: (int64(at) + 3) << 28, FreeBytes: 1 << 28, FreeSegments: map[int]int64{28: 1}}
		if diff := cmp.Diff(want, metaslab); diff != "" {
			t.Errorf("a metaslab that was never used: %s", diff)
		}
	}
	if segments := exact[0].FreeSegments; segments[27] != 1 || segments[28] != 0 {
		t.Errorf("a metaslab in use has %v", segments)
	}
	const line = "\tmetaslab      0   offset            0   spacemap      %d   free    %d\n"
	for _, one := range []struct {
		spaceMap, free int64
		want           map[int]int64
	}{{0, 3 << 20, map[int]int64{21: 1}}, {0, 0, map[int]int64{}}, {7, 3 << 20, map[int]int64{}}} {
		found, err := parseMetaslabs("\tvdev          0\t  metaslab shift   22\n" + fmt.Sprintf(line, one.spaceMap, one.free))
		if err != nil || !cmp.Equal(found[0].FreeSegments, one.want) {
			t.Errorf("space map %d with %d bytes free: %+v, %v", one.spaceMap, one.free, found, err)
		}
	}
	if _, err := parseMetaslabs("zdb: can't open 'p'\n"); err == nil {
		t.Error("nothing is no error")
	}
}

func TestLinesThatAreTooLong(t *testing.T) {
	var lines []string
	writer := &lineWriter{line: func(line []byte) { lines = append(lines, string(line)) }}
	for _, piece := range []string{"a\nb", strings.Repeat("x", lineLimit), "rest", "\nc\n"} {
		if _, err := writer.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(lines, " "); got != "a c" {
		t.Errorf("lines %.100q", got)
	}
}

func TestLayoutScore(t *testing.T) {
	var scorer layoutScorer
	writer := &lineWriter{line: scorer.line}
	data := golden(t, "2.3.9/blocks")
	// The lines are the same for pieces of any size.
	for len(data) > 0 {
		piece := min(len(data), 37)
		if _, err := writer.Write(data[:piece]); err != nil {
			t.Fatal(err)
		}
		data = data[piece:]
	}
	if all, _ := scorer.score.PartsPerMillion(); scorer.score.Blocks < 30 || scorer.score.Firsts != 1 || all != 1_000_000 {
		t.Errorf("%+v of a file written at once", scorer.score)
	}
	scattered := layoutScorer{}
	for _, line := range strings.Split("    Object  lvl   iblk\n 0 L0 0:1000:1000 \n 1000 L0 0:2000:1000 \n 2000 L0 0:900000:1000 \n 3000 L0 1:3000:1000 \n 4000 L0 0:1000:1000 \n 5000 L0 0:5000:1000 ", "\n") {
		scattered.line([]byte(line))
	}
	if want := (LayoutScore{Blocks: 6, Firsts: 2, Neighbours: 2}); scattered.score != want {
		t.Errorf("%+v, want %+v", scattered.score, want)
	}
	for _, c := range []struct {
		score LayoutScore
		want  int64
		known bool
	}{
		{scattered.score, 500_000, true}, {LayoutScore{Blocks: 1001, Firsts: 1, Neighbours: 994}, 994_000, true},
		{LayoutScore{Blocks: 30001, Firsts: 1, Neighbours: 20000}, 666_667, true}, {LayoutScore{Blocks: 2, Firsts: 1}, 0, true},
		{LayoutScore{Blocks: 1, Firsts: 1}, 0, false}, {LayoutScore{}, 0, false},
	} {
		if got, known := c.score.PartsPerMillion(); got != c.want || known != c.known {
			t.Errorf("%+v: %d, %v, want %d", c.score, got, known, c.want)
		}
	}
}

func TestImportablePools(t *testing.T) {
	pools, err := parseImportable(string(golden(t, "2.1/importable.txt")))
	if err != nil {
		t.Fatal(err)
	}
	want := []Importable{{Name: "bench0", GUID: "14707078720094928066", State: StateOnline},
		{Name: "other", GUID: "42", State: StateUnavail, Message: "One or more devices contains corrupted data."}}
	if diff := cmp.Diff(want, pools); diff != "" {
		t.Error(diff)
	}
	real, err := parseImportable(string(golden(t, "2.3.9/importable.txt")))
	if diff := cmp.Diff([]Importable{{Name: "sbz", GUID: "5910360142845223151", State: StateOnline}}, real); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for output, want := range map[string]bool{"no pools available to import\n": true, "": true, "   pool: p\n": false, "what\n": false} {
		if pools, err := parseImportable(output); (err == nil) != want || len(pools) != 0 && want {
			t.Errorf("%q: %+v, %v", output, pools, err)
		}
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0B": 0, "512": 512, "1.50G": 3 << 29, "131M": 131 << 20, "2K": 2048, "-1K": 0, "x": 0, "99999999E": 0, "NaN": 0, "InfK": 0} {
		if got := amount(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

// FuzzTables tries all parsers of tables: none may crash, and none may read a negative number where there can be none.
func FuzzTables(f *testing.F) {
	seeds(f, "2.3.9/[a-z]*[a-z]")
	seeds(f, "2.1/*")
	f.Fuzz(func(t *testing.T, data []byte) {
		text := string(data)
		if _, err := parseVersion(text); err == nil && !strings.Contains(text, "kmod") {
			t.Fatal("a version without a module")
		}
		if pools, err := parsePools("", text); err == nil {
			for _, pool := range pools {
				_ = pool.Name
			}
		}
		properties, err := parseProperties("", text)
		if err == nil {
			_, _ = vdevCounters(properties)
		}
		_, _ = parseDatasets("", text)
		_, _ = parseSendSize("", text)
		if resumed, err := parseResumed("", text); err == nil && (resumed.GUID == "" || resumed.Snapshot == "") {
			t.Fatalf("%+v", resumed)
		}
		_, _ = parseImportable(text)
		if metaslabs, err := parseMetaslabs(text); err == nil && len(metaslabs) == 0 {
			t.Fatal("no metaslab and no error")
		}
		var scorer layoutScorer
		_, _ = (&lineWriter{line: scorer.line}).Write(data)
		if score := scorer.score; score.Neighbours+score.Firsts > score.Blocks {
			t.Fatalf("%+v", score)
		}
		for _, columns := range [][]string{sizeColumns, latencyColumns} {
			histograms, err := parseHistograms("", text, columns)
			if err != nil {
				continue
			}
			for _, histogram := range histograms {
				for name, counts := range histogram.Columns {
					if len(counts) != len(histogram.Bounds) {
						t.Fatalf("%d counts of %s in %d rows", len(counts), name, len(histogram.Bounds))
					}
				}
			}
			if _, err := HistogramsSince(histograms, histograms); err != nil {
				t.Fatal(err)
			}
		}
		_ = classify(text)
	})
}
