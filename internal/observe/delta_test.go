package observe

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

// TestWithout measures two rounds of a second each, with ten seconds between them in which much more is read.
func TestWithout(t *testing.T) {
	start := time.Now()
	at := func(seconds int, read, other uint64) Snapshot {
		return Snapshot{at: start.Add(time.Duration(seconds) * time.Second), groups: map[string]group{
			"device.sda": {counters: map[string]uint64{"readBytes": read, "other": other}, levels: map[string]uint64{}}}}
	}
	before := at(0, 100, 5).Without(at(1, 110, 9), at(11, 5110, 3))
	delta := at(12, 5130, 4).at.Sub(before.at)
	if delta != 2*time.Second {
		t.Errorf("the rounds took %s", delta)
	}
	counters := before.groups["device.sda"].counters
	if read := 5130 - counters["readBytes"]; read != 30 {
		t.Errorf("%d bytes were read in the rounds, not 10 and 20", read)
	}
	if _, known := counters["other"]; known || len(before.missing) != 1 {
		t.Errorf("a counter that was reset in between is still compared: %v, %v", counters, before.missing)
	}
}

// TestNodeCPU: the time of the whole node, for each thousand operations and MiB. The threads of ZFS are in no cgroup.
func TestNodeCPU(t *testing.T) {
	at := func(user, nice, system, irq, softirq uint64) Snapshot {
		node := newGroup()
		node.counters = map[string]uint64{"userNanoseconds": user, "niceNanoseconds": nice, "systemNanoseconds": system, "irqNanoseconds": irq,
			"softirqNanoseconds": softirq, "idleNanoseconds": 5e9}
		return Snapshot{at: time.Unix(0, 0), groups: map[string]group{"node": node}}
	}
	observer := &Observer{devices: &deviceTree{}}
	delta := observer.Between(at(1e9, 0, 2e9, 0, 0), at(3e9, 1e9, 8e9, 1e9, 1e9)).WithApplication(Application{ReadBytes: 3 << 20, WrittenBytes: 1 << 20, Operations: 2000})
	for metric, want := range map[string]int64{
		"nodeUserNanoseconds": 3e9, "nodeSystemNanoseconds": 8e9,
		"nodeUserNanosecondsPerThousandOperations": 15e8, "nodeSystemNanosecondsPerThousandOperations": 4e9,
		"nodeUserNanosecondsPerMebibyte": 75e7, "nodeSystemNanosecondsPerMebibyte": 2e9,
		"nodeCPUNanoseconds": 11e9, "nodeCPUNanosecondsPerThousandOperations": 55e8, "nodeCPUNanosecondsPerMebibyte": 275e7,
	} {
		if got := delta.Metrics[metric]; got != want {
			t.Errorf("%s is %d, want %d", metric, got, want)
		}
		if _, known := results.LookupMetric(metric); !known {
			t.Errorf("%s is not in the vocabulary", metric)
		}
	}
	reset := observer.Between(at(3e9, 0, 2e9, 0, 0), at(1e9, 0, 3e9, 0, 0))
	_, user := reset.Metrics["nodeUserNanoseconds"]
	if _, both := reset.Metrics["nodeCPUNanoseconds"]; user || both || reset.Metrics["nodeSystemNanoseconds"] != 1e9 {
		t.Errorf("a counter that fell: %v", reset.Metrics)
	}
	if none := observer.Between(at(1, 0, 0, 0, 0), at(2, 0, 0, 0, 0)).WithApplication(Application{Operations: 5}); len(none.Metrics) != 6 {
		t.Errorf("no bytes: %v", none.Metrics)
	}
}

// TestBytesPerTransactionAreRounded to the nearest number, as on a pool.
func TestBytesPerTransactionAreRounded(t *testing.T) {
	for bytes, want := range map[int64]int64{149: 1, 150: 2, 199: 2, 201: 2, 49: 0, 0: 0} {
		delta := Delta{Metrics: map[string]int64{"deviceReadBytes": bytes, "deviceWrittenBytes": bytes}}
		metrics := delta.WithApplication(Application{Transactions: 100}).Metrics
		if metrics["diskReadBytesPerTransaction"] != want || metrics["diskWrittenBytesPerTransaction"] != want {
			t.Errorf("%d bytes of 100 transactions: %v, want %d", bytes, metrics, want)
		}
	}
}
