package results

import (
	"regexp"
	"strings"
	"testing"
)

func TestVocabulary(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	seen, primary := map[string]bool{}, 0
	for _, metric := range Metrics() {
		switch {
		case !name.MatchString(metric.Name) || len(metric.Name) > 64:
			t.Errorf("%q is no name that gates and status can carry", metric.Name)
		case seen[metric.Name]:
			t.Errorf("%s is a duplicate", metric.Name)
		case metric.Unit == "" || metric.Description == "":
			t.Errorf("%s has unit %q and description %q, want both", metric.Name, metric.Unit, metric.Description)
		case metric.Better != Higher && metric.Better != Lower && metric.Better != Neither:
			t.Errorf("%s is better %q", metric.Name, metric.Better)
		case metric.Primary && metric.Better == Neither:
			t.Errorf("%s is primary, but gates cannot use it without a direction", metric.Name)
		}
		seen[metric.Name] = true
		if metric.Primary {
			primary++
		}
	}
	if primary > 10 {
		t.Errorf("%d primary metrics are more than a handful", primary)
	}
}

// TestRoundedBytesSaySo: before OpenZFS 2.3, ZFS prints three digits of these amounts.
func TestRoundedBytesSaySo(t *testing.T) {
	for _, name := range []string{"copiedBytes", "repairedBytes", "resilveredBytes"} {
		if metric, _ := LookupMetric(name); !strings.Contains(metric.Description, "ounded to three digits before OpenZFS 2.3") {
			t.Errorf("%s: %s", name, metric.Description)
		}
	}
}

func TestLookupMetric(t *testing.T) {
	for _, name := range []string{"readBytesPerSecond", "syncLatencyP999Nanoseconds", "transactionsPerSecond", "rounds",
		"walBytesPerTransaction"} {
		if metric, known := LookupMetric(name); !known || metric.Name != name {
			t.Errorf("LookupMetric(%q) = %v, %t", name, metric, known)
		}
	}
	if _, known := LookupMetric("ReadBytesPerSecond"); known {
		t.Error("names are case sensitive")
	}
}

func TestMetricsIsACopy(t *testing.T) {
	Metrics()[0].Name = "spoiled"
	if Metrics()[0].Name == "spoiled" {
		t.Error("a caller can change the vocabulary")
	}
}

// TestLookupIsCheap: each metric of each run is looked up. Only a name that is not in the vocabulary is parsed.
func TestLookupIsCheap(t *testing.T) {
	if cost := testing.AllocsPerRun(10, func() { LookupMetric("readBytesPerSecond") }); cost > 0 {
		t.Errorf("%v allocations", cost)
	}
	if cost := testing.AllocsPerRun(10, func() { LookupMetric("readLatency.shareOver10ms") }); cost == 0 {
		t.Error("a statistic is found without parsing, so that this test shows nothing")
	}
}

// TestEnds: a number of some metrics stands for a range.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct{ value, low, high int64 }{
		"readLatencyP99Nanoseconds":  {100_000_000, 99_614_720, 100_663_296},
		"readLatencyP50Nanoseconds":  {100, 100, 100},
		"a.readLatencyP1Nanoseconds": {0, 0, 0},
		"durationNanoseconds":        {90e9, 88e9, 91e9},
		"log.durationNanoseconds":    {1e9, 1, 2e9},
		"readLatencyMeanNanoseconds": {100_000_000, 100_000_000, 100_000_000},
		"largestFreeSegmentBytes":    {1024, 1024, 2047},
		"readBytesPerSecond":         {5, 5, 5},
	} {
		metric, _ := LookupMetric(name)
		if low, high := metric.Ends(test.value); low != test.low || high != test.high {
			t.Errorf("%s of %d: from %d to %d", name, test.value, low, high)
		}
	}
	if low, high := (Metric{Name: "durationNanoseconds"}).Ends(30_000_123_456); low != high {
		t.Error("a duration that was measured is inexact")
	}
}

// TestRoundedMetrics: gates must know the rounding of small numbers and of percentiles, also for one of several workloads.
func TestRoundedMetrics(t *testing.T) {
	for name, want := range map[string]struct {
		step   int64
		binned bool
	}{
		"readBytesPerSecond": {0, false}, "readOperationsPerSecond": {1, false}, "diskReadBytesPerTransaction": {1, false},
		"walBytesPerTransaction": {1, false}, "db.diskWrittenBytesPerTransaction": {1, false}, "transactions": {0, false},
		"freeSpaceFragmentationPartsPerMillion": {10_000, false}, "writeLatency.shareOver10ms": {1, false},
		"readLatencyP99Nanoseconds": {0, true}, "createLatencyP50Nanoseconds": {0, true}, "statLatencyP95Nanoseconds": {0, true},
		"a.listLatencyP99Nanoseconds": {0, true}, "unlinkLatencyP999Nanoseconds": {0, true}, "createLatencyMeanNanoseconds": {0, false},
		"transactionLatencyP99Nanoseconds": {0, false},
	} {
		if metric, known := LookupMetric(name); !known || metric.Step() != want.step || metric.Binned() != want.binned {
			t.Errorf("%s, known: %v: rounded to %d, binned: %v", name, known, metric.Step(), metric.Binned())
		}
	}
}
