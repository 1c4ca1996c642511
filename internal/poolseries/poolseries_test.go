package poolseries

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/zfs"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sample returns a sample after the given number of seconds, of a mirror that reads once and writes ten bytes each second.
func sample(second int64) Sample {
	percent := int64(3)
	return Sample{At: start.Add(time.Duration(second) * time.Second), Pool: zfs.PoolSummary{Name: "bench0", GUID: "7", Size: 1000,
		Allocated: 100 + second, FragmentationPercent: &percent},
		Counters: []zfs.VdevCounters{{Vdev: "mirror-0", ReadOps: 5 + second, WriteBytes: 10 * second}, {Vdev: "a", ReadOps: second},
			{Vdev: "cache"}}}
}

var tree = zfs.Status{Vdevs: []zfs.VdevStatus{
	{Name: "mirror-0", Class: "normal", Children: []zfs.VdevStatus{{Name: "/dev/disk/by-id/a-part1"}}},
	{Name: "/dev/disk/by-id/cache-part1", Class: "l2cache"},
}}

func recorded(t *testing.T, seconds int64) Document {
	t.Helper()
	var recorder Recorder
	for second := range seconds + 1 {
		if err := recorder.Add(sample(second)); err != nil {
			t.Fatal(err)
		}
	}
	document, err := recorder.Document(tree)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestASeriesIsBounded(t *testing.T) {
	for _, seconds := range []int64{1, 2, 599, 600, 601, 1199, 1200, 10_000} {
		document := recorded(t, seconds)
		offsets, vdev := document.Series.OffsetMilliseconds, document.Vdevs[0]
		if len(offsets) > MaxPoints+1 || len(offsets) < min(int(seconds)+1, MaxPoints/2) || offsets[0] != 0 ||
			offsets[len(offsets)-1] != seconds*1000 {
			t.Errorf("%d seconds: %d points from %d to %d", seconds, len(offsets), offsets[0], offsets[len(offsets)-1])
		}
		for at, offset := range offsets {
			if vdev.ReadOperations[at]*1000 != offset || vdev.WriteBytes[at]*100 != offset ||
				(document.Series.AllocatedBytes[at]-100)*1000 != offset {
				t.Fatalf("%d seconds: point %d does not fit to its time", seconds, at)
			}
			// Only the last step may be shorter.
			if at > 1 && at < len(offsets)-1 && offset-offsets[at-1] != offsets[1] {
				t.Fatalf("%d seconds: step %d is %d, the first is %d", seconds, at, offset-offsets[at-1], offsets[1])
			}
		}
		if vdev.Totals.ReadOperations != seconds || !vdev.TopLevel || vdev.Disk || document.Vdevs[1].TopLevel || !document.Vdevs[1].Disk ||
			document.Vdevs[2].TopLevel || document.Vdevs[2].Disk {
			t.Errorf("%d seconds: %+v", seconds, document.Vdevs)
		}
	}
}

// TestDisksOfThePool: the devices of special and log vdevs are disks of the pool. Cache devices and spares are not, although ZFS counts
// their requests too.
func TestDisksOfThePool(t *testing.T) {
	leaf := func(name, class string) zfs.VdevStatus {
		return zfs.VdevStatus{Name: "/dev/disk/by-id/" + name + "-part1", Class: class}
	}
	status := zfs.Status{Vdevs: []zfs.VdevStatus{
		{Name: "raidz1-0", Class: "normal", Children: []zfs.VdevStatus{leaf("f1", "normal"),
			{Name: "replacing-1", Class: "normal", Children: []zfs.VdevStatus{leaf("f2", "normal"), leaf("f3", "normal")}}}},
		leaf("f4", "special"), {Name: "mirror-2", Class: "log", Children: []zfs.VdevStatus{leaf("f5", "log"), leaf("f6", "log")}},
		leaf("f7", "l2cache"), leaf("f8", "spare"), {Name: "draid1-0-0", Class: "spare"},
	}}
	var samples [2]Sample
	for at := range samples {
		samples[at] = Sample{At: start.Add(time.Duration(at) * time.Second)}
		for _, name := range []string{"raidz1-0", "f1", "replacing-1", "f2", "f3", "f4", "mirror-2", "f5", "f6", "f7", "f8", "draid1-0-0"} {
			samples[at].Counters = append(samples[at].Counters, zfs.VdevCounters{Vdev: name, ReadOps: int64(at)})
		}
	}
	var recorder Recorder
	if err := errors.Join(recorder.Add(samples[0]), recorder.Add(samples[1])); err != nil {
		t.Fatal(err)
	}
	document, err := recorder.Document(status)
	if err != nil {
		t.Fatal(err)
	}
	var tops, disks []string
	for _, vdev := range document.Vdevs {
		if vdev.TopLevel {
			tops = append(tops, vdev.Name)
		}
		if vdev.Disk {
			disks = append(disks, vdev.Name)
		}
	}
	if diff := cmp.Diff([]string{"raidz1-0", "f4", "mirror-2"}, tops); diff != "" {
		t.Errorf("top-level vdevs: %s", diff)
	}
	if diff := cmp.Diff([]string{"f1", "f2", "f3", "f4", "f5", "f6"}, disks); diff != "" {
		t.Errorf("disks: %s", diff)
	}
}

func TestAHoleIsAnError(t *testing.T) {
	for name, change := range map[string]func(*Sample){
		"counters that fell": func(s *Sample) { s.Counters[0].ReadOps = 1 },
		"another pool":       func(s *Sample) { s.Pool.GUID = "8" },
		"another disk":       func(s *Sample) { s.Counters[1].Vdev = "b" },
		"one disk more":      func(s *Sample) { s.Counters = append(s.Counters, zfs.VdevCounters{Vdev: "c"}) },
	} {
		var recorder Recorder
		after := sample(1)
		change(&after)
		if err := recorder.Add(sample(0)); err != nil {
			t.Fatal(err)
		}
		if err := recorder.Add(after); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var recorder Recorder
	if _, err := recorder.Document(tree); err == nil {
		t.Error("a document without samples")
	}
}

func TestTransactionGroups(t *testing.T) {
	history := func(from, to int64) []TransactionGroup {
		text := "txg      birth            state ndirty       nread        nwritten     reads    writes   otime        qtime        wtime      " +
			"  stime\n"
		for number := from; number <= to; number++ {
			text += fmt.Sprintf("%d 1 C 100 5 200 0 1 10 20 30 %d\n", number, 1000*number)
		}
		groups, err := ParseTransactionGroups(text + fmt.Sprintf("%d 1 S 0 0 0 0 0 0 0 0 0\n%d 1 O 0 0 0 0 0 0 0 0 0\n", to+1, to+2))
		if err != nil {
			t.Fatal(err)
		}
		return groups
	}
	var recorder Recorder
	for second, groups := range [][]TransactionGroup{history(1, 10), history(5, 12), history(15, 16)} {
		next := sample(int64(second))
		next.Groups = groups
		if err := recorder.Add(next); err != nil {
			t.Fatal(err)
		}
	}
	document, err := recorder.Document(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := &TransactionGroups{Count: 4, Missed: 2, DirtyBytes: 400, WrittenBytes: 800, OpenNanoseconds: 40, WaitNanoseconds: 120,
		SyncNanoseconds: 1000 * (11 + 12 + 15 + 16), LongestSyncNanoseconds: 16_000, Stride: 1, SyncMicroseconds: []int64{11, 12, 15, 16}}
	if diff := cmp.Diff(want, document.TransactionGroups); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"txg x\n1 1 C a 0 0 0 0 0 0 0 0\n", "1 1 C 0 0 0 0 0 0 0 0 0\nnonsense\n"} {
		if _, err := ParseTransactionGroups(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestManyTransactionGroupsAreBounded(t *testing.T) {
	var recorder Recorder
	for second := range int64(40) {
		next := sample(second)
		for number := range int64(100) {
			next.Groups = append(next.Groups, TransactionGroup{Number: second*100 + number + 1, SyncNanoseconds: 1000})
		}
		if err := recorder.Add(next); err != nil {
			t.Fatal(err)
		}
	}
	document, err := recorder.Document(tree)
	if err != nil {
		t.Fatal(err)
	}
	groups := document.TransactionGroups
	if groups.Count != 3900 || groups.Missed != 0 || len(groups.SyncMicroseconds) > MaxPoints ||
		int64(len(groups.SyncMicroseconds)) != (groups.Count+groups.Stride-1)/groups.Stride {
		t.Errorf("count %d, missed %d, stride %d, listed %d", groups.Count, groups.Missed, groups.Stride, len(groups.SyncMicroseconds))
	}
}

func TestGang(t *testing.T) {
	gang, err := ParseGang("12 1 0x01 3 816 1 2\nname type data\ntotal_allocations 4 10\ngang_writes 4 2\ngang_multilevel 4 1\n")
	if err != nil || *gang != (Gang{Writes: 2, Multilevel: 1, Allocations: 10}) {
		t.Errorf("%+v, %v", gang, err)
	}
	if _, err := ParseGang("name type data\nother 4 1\n"); err == nil {
		t.Error("an older version has no gang counters")
	}
}

// TestPack: parts that do not fit are omitted, the least important first, and the same document gives the same bytes.
func TestPack(t *testing.T) {
	large := recorded(t, MaxPoints)
	noise := uint64(1)
	random := func() int64 {
		noise = noise*6364136223846793005 + 1442695040888963407
		return int64(noise >> 20)
	}
	for range 100 {
		vdev := Vdev{Name: "disk", Disk: true}
		for range MaxPoints {
			vdev.ReadOperations = append(vdev.ReadOperations, random())
		}
		large.Vdevs = append(large.Vdevs, vdev)
		large.RequestSizes = append(large.RequestSizes, Histogram{Vdev: "disk"})
	}
	before := len(large.Vdevs[0].ReadOperations)
	packed, digest, err := large.Pack()
	if err != nil {
		t.Fatal(err)
	}
	text, err := packing.Unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	var kept Document
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if len(packed) > MaxPackedBytes || packing.Digest(text) != digest ||
		!slices.Equal(kept.Omitted, []string{"histograms of vdevs other than the pool", "series of vdevs"}) ||
		len(kept.RequestSizes) != 1 || len(kept.Vdevs[0].ReadOperations) != 0 || kept.Vdevs[0].Totals.ReadOperations == 0 {
		t.Errorf("%d bytes, omitted %q", len(packed), kept.Omitted)
	}
	if len(large.Vdevs[0].ReadOperations) != before || len(large.Omitted) > 0 {
		t.Error("packing has changed the document")
	}
	again, _, err := large.Pack()
	if err != nil || !slices.Equal(packed, again) {
		t.Errorf("another time, other bytes: %v", err)
	}
}

func TestMetaslabMap(t *testing.T) {
	var metaslabs []zfs.Metaslab
	for index := range int64(3) {
		metaslabs = append(metaslabs, zfs.Metaslab{Index: index, FreeBytes: 4096, FreeSegments: map[int]int64{12: 1, 20: index}})
	}
	made := NewMetaslabMap("bench0", "7", "zfs-2.3.9", start, metaslabs)
	if count, largest := made.Segments(); count != 6 || largest != 20 || made.FreeBytes != 3*4096 {
		t.Errorf("%d segments, largest 2^%d, %d bytes", count, largest, made.FreeBytes)
	}
	if count, largest := (MetaslabMap{}).Segments(); count != 0 || largest != -1 {
		t.Errorf("of nothing: %d, %d", count, largest)
	}
	checkSchema(t, "metaslabs", made)
}

func TestDocumentsMatchTheirSchema(t *testing.T) {
	document := recorded(t, 3)
	document.TransactionGroups, document.Gang = &TransactionGroups{}, &Gang{}
	document.RequestSizes = Histograms([]zfs.Histogram{{Vdev: "bench0", Bounds: []int64{512}, Columns: map[string][]int64{"sync_read_ind": {1},
		"idle": {0}}}})
	if _, idle := document.RequestSizes[0].Columns["idle"]; idle {
		t.Error("a kind without requests is kept")
	}
	checkSchema(t, "poolseries", document)
}

// checkSchema checks that the document is valid, and that it is invalid with an unknown field.
func checkSchema(t *testing.T, name string, document any) {
	t.Helper()
	schema, err := validator.NewCompiler().Compile("../../docs/schemas/" + name + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range []struct {
		text  string
		valid bool
	}{{string(text), true}, {strings.Replace(string(text), `"pool"`, `"pond"`, 1), false}} {
		value, err := validator.UnmarshalJSON(strings.NewReader(entry.text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != entry.valid {
			t.Errorf("%.80s: %v", entry.text, err)
		}
	}
}

func TestUnpack(t *testing.T) {
	text, digest, err := recorded(t, 3).Pack()
	if err != nil {
		t.Fatal(err)
	}
	if document, err := Unpack(text, digest); err != nil || document.Pool != "bench0" {
		t.Errorf("%+v: %v", document, err)
	}
	if _, err := Unpack(text, "sha256:0"); !errors.Is(err, packing.ErrCorrupt) {
		t.Errorf("another digest: %v", err)
	}
	if _, err := Unpack([]byte("x"), digest); !errors.Is(err, packing.ErrCorrupt) {
		t.Errorf("no gzip: %v", err)
	}
	later := recorded(t, 3)
	later.Version++
	text, digest, _ = later.Pack()
	if _, err := Unpack(text, digest); !errors.Is(err, packing.ErrVersion) {
		t.Errorf("a later version: %v", err)
	}
}
