package observe

import (
	"testing"
	"time"
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
