package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/results"
)

// TestWritesOfARamp: a ramp leaves data in memory, which the disks write while the workload after it is measured.
func TestWritesOfARamp(t *testing.T) {
	sys := plant(t, map[string]string{"/sys/dev/block/8:16/uevent": "DEVNAME=sdb\n", "/sys/dev/block/8:16/dev": "8:16\n",
		"/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"})
	sys.probe = placeProbe{place{path: "/dev/storagebench", block: true, device: "8:16"}}
	o, err := newObserver(sys, Target{Path: "/dev/storagebench", Block: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ramped       bool
		levels       map[string]uint64
		known, noted bool
	}{
		"no ramp":           {false, map[string]uint64{"dirtyBytes": 50 << 20, "writebackBytes": 0}, true, false},
		"buffered":          {true, map[string]uint64{"dirtyBytes": 50 << 20, "writebackBytes": 0}, false, true},
		"being written":     {true, map[string]uint64{"dirtyBytes": 0, "writebackBytes": 2 << 20}, false, true},
		"hardly anything":   {true, map[string]uint64{"dirtyBytes": 1 << 20, "writebackBytes": 0}, true, false},
		"an unknown amount": {true, nil, false, true},
		"a part is unknown": {true, map[string]uint64{"dirtyBytes": 0}, false, true},
	} {
		disk := map[string]uint64{"writeOperations": 0, "writtenBytes": 0}
		before, after := Snapshot{groups: map[string]group{}}, Snapshot{groups: map[string]group{}}
		before.groups["device.sdb"] = group{counters: disk}
		before.groups["node.memory"] = group{levels: c.levels}
		after.groups["device.sdb"] = group{counters: map[string]uint64{"writeOperations": 300, "writtenBytes": 100 << 20}}
		after.groups["node.memory"] = group{levels: map[string]uint64{"dirtyBytes": 0, "writebackBytes": 0}}
		own := Application{WrittenBytes: 50 << 20, WriteOperations: 100, Ramped: c.ramped}
		delta := o.Between(before, after).WithApplication(own)
		_, bytes := delta.Metrics["writtenBytesPerApplicationByteMilli"]
		_, writes := delta.Metrics[metricDiskWrites]
		noted := len(delta.Notes) > 0 && strings.Contains(delta.Notes[0], "when the ramp had ended")
		if bytes != c.known || writes != c.known || noted != c.noted || delta.Metrics["deviceWrittenBytes"] != 100<<20 {
			t.Errorf("%s: %v, notes %q", name, delta.Metrics, delta.Notes)
		}
		own.WrittenBytes = 0 // it only read
		if notes := o.Between(before, after).WithApplication(own).Notes; len(notes) > 0 {
			t.Errorf("%s, of reads: %q", name, notes)
		}
	}
}

// TestDisksOfAPlainVolume: in the minute between the snapshots, the disk has 600 reads of 16 KiB in 3 s, and 300 writes of 4 KiB in 6 s;
// the workload has asked for 300 reads and 600 writes, within 30 s of that minute.
func TestDisksOfAPlainVolume(t *testing.T) {
	sys := plant(t, map[string]string{"/sys/dev/block/8:16/uevent": "DEVNAME=sdb\n", "/sys/dev/block/8:16/dev": "8:16\n",
		"/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"})
	sys.probe = placeProbe{place{path: "/dev/storagebench", block: true, device: "8:16"}}
	o, err := newObserver(sys, Target{Path: "/dev/storagebench", Block: true})
	if err != nil {
		t.Fatal(err)
	}
	disk := map[string]uint64{"readOperations": 600, "readBytes": 600 * 16 << 10, "readNanoseconds": 3e9,
		"writeOperations": 300, "writtenBytes": 300 * 4 << 10, "writeNanoseconds": 6e9, "busyNanoseconds": 15e9, "queueNanoseconds": 9e9}
	own := Application{ReadOperations: 300, WriteOperations: 600, Transactions: 100, Lasting: 30 * time.Second}
	got := changed(o, map[string]map[string]uint64{"device.sdb": disk}).WithApplication(own).Metrics
	want := map[string]int64{
		"deviceReadBytes": 600 * 16 << 10, "deviceWrittenBytes": 300 * 4 << 10,
		"diskReadOperationsPerSecond": 20, "diskReadBytesPerSecond": 20 * 16 << 10, "diskReadRequestBytes": 16 << 10,
		"diskWriteOperationsPerSecond": 10, "diskWrittenBytesPerSecond": 10 * 4 << 10, "diskWriteRequestBytes": 4 << 10,
		"diskReadsPerReadMilli": 2000, "diskWritesPerWriteMilli": 500,
		"diskReadBytesPerTransaction": 6 * 16 << 10, "diskWrittenBytesPerTransaction": 3 * 4 << 10,
		"diskReadLatencyMeanNanoseconds": 5e6, "diskWriteLatencyMeanNanoseconds": 20e6, "diskQueueMilli": 300, "diskBusyPartsPerMillion": 500_000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name := range want {
		if _, known := results.LookupMetric(name); !known {
			t.Errorf("%s is not in the vocabulary", name)
		}
	}
	delete(disk, "readOperations") // such as one that was reset
	some := changed(o, map[string]map[string]uint64{"device.sdb": disk}).WithApplication(own).Metrics
	for _, name := range []string{"diskReadOperationsPerSecond", "diskReadRequestBytes", "diskReadsPerReadMilli", "diskReadLatencyMeanNanoseconds"} {
		if value, found := some[name]; found {
			t.Errorf("without the count of reads, %s is %d", name, value)
		}
	}
	if some["diskWriteOperationsPerSecond"] != 10 {
		t.Errorf("the writes are lost too: %v", some)
	}
	disk = map[string]uint64{"writeOperations": 298, "writtenBytes": 298*4096 + 149, "writeNanoseconds": 2*298 - 1} // a half is rounded up
	odd := changed(o, map[string]map[string]uint64{"device.sdb": disk}).WithApplication(own).Metrics
	for name, nearest := range map[string]int64{"diskWriteOperationsPerSecond": 10, "diskWrittenBytesPerSecond": 40_692,
		"diskWriteRequestBytes": 4097, "diskWritesPerWriteMilli": 497, "diskWriteLatencyMeanNanoseconds": 2} {
		if odd[name] != nearest {
			t.Errorf("%s is %d, and not rounded to %d", name, odd[name], nearest)
		}
	}
	disk["busyNanoseconds"] = 15e9
	own.Lasting = 10 * time.Second
	if busy := changed(o, map[string]map[string]uint64{"device.sdb": disk}).WithApplication(own).Metrics["diskBusyPartsPerMillion"]; busy != million {
		t.Errorf("15 s of work, which was not all in the 10 s of the workload: %d ppm", busy)
	}
}
