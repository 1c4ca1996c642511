package gate

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	latency  = "readLatencyP99Nanoseconds"
	reading  = "readBytesPerSecond"
	filling  = "filledBytes"
	reads    = "readOperationsPerSecond"
	slow     = "shareOver10MillisecondsPartsPerMillion"
	squeezed = "compressionRatioMilli"
	broken   = "ioErrors"
)

// TestLimitsInUnits: a bound means the same number of the metric's own unit, however it is written.
func TestLimitsInUnits(t *testing.T) {
	for _, test := range []struct {
		metric string
		bound  v1alpha1.Bound
		value  string
		text   string
	}{
		{latency, "5000", "5000", "5000"}, {latency, "10M", "10000000", "10M"}, {latency, "10ms", "10000000", "10ms (10000000)"},
		{latency, "250us", "250000", "250us (250000)"}, {latency, "250 µs", "250000", "250 µs (250000)"}, {latency, "12ns", "12", "12ns"},
		{latency, "1.5s", "1500000000", "1.5s (1500000000)"}, {latency, "2min", "120000000000", "2min (120000000000)"},
		{latency, "1h", "3600000000000", "1h (3600000000000)"}, {latency, "0.0015ms", "1500", "0.0015ms (1500)"},
		{reading, "100M", "100000000", "100M"}, {reading, "100MB/s", "100000000", "100MB/s (100000000)"},
		{reading, "200MiB/s", "209715200", "200MiB/s (209715200)"}, {reading, "1.5GB/s", "1500000000", "1.5GB/s (1500000000)"},
		{reading, "64KiB/s", "65536", "64KiB/s (65536)"}, {reading, "64kB/s", "64000", "64kB/s (64000)"}, {reading, "7B/s", "7", "7B/s"},
		{filling, "1.5GB", "1500000000", "1.5GB (1500000000)"}, {filling, "2TiB", "2199023255552", "2TiB (2199023255552)"},
		{reads, "5k", "5000", "5k"}, {reads, "5k/s", "5000", "5k/s (5000)"}, {reads, "30.2k op/s", "30200", "30.2k op/s (30200)"},
		{reads, "500/s", "500", "500/s"}, {"transactionsPerSecond", "1.2ktx/s", "1200", "1.2ktx/s (1200)"},
		{slow, "1.04%", "10400", "1.04% (10400)"}, {slow, "0.00005%", "1/2", "0.00005% (0.5)"},
		{"databaseMemoryPartsPerMillion", "3x", "3000000", "3x (3000000)"},
		{squeezed, "1.5x", "1500", "1.5x (1500)"}, {squeezed, "104%", "1040", "104% (1040)"},
		{reading, "100B/s", "100", "100B/s"}, {reading, "1000", "1000", "1000"}, {reading, "0", "0", "0"}, {filling, "20B", "20", "20B"},
		{latency, "10ns", "10", "10ns"}, {latency, "0", "0", "0"}, {reads, "10", "10", "10"}, {slow, "10400", "10400", "10400"},
		{broken, "0", "0", "0"}, {broken, "5k", "5000", "5k"}, {"jobs." + latency, "10ms", "10000000", "10ms (10000000)"},
	} {
		metric, known := results.LookupMetric(test.metric)
		got, err := parseLimit(test.bound, metric)
		if !known || err != nil || got.value.RatString() != test.value || got.text != test.text {
			t.Errorf("%s %s: %+v, error %v, want %s %q", test.metric, test.bound, got, err, test.value, test.text)
		}
	}
	if none, err := parseLimit("", results.Metric{}); none != nil || err != nil || none.above(big.NewRat(1, 1)) || none.below(big.NewRat(1, 1)) {
		t.Errorf("without a bound: %v, error %v", none, err)
	}
}

// TestWholeLimits: pictures show a limit as the whole number that decides the same for whole numbers.
func TestWholeLimits(t *testing.T) {
	for _, test := range []struct {
		value       string
		least, most int64
	}{{"7", 7, 7}, {"1/2", 1, 0}, {"15/2", 8, 7}, {"-1/2", 0, -1}, {"9223372036854775807", math.MaxInt64, math.MaxInt64}} {
		value, _ := new(big.Rat).SetString(test.value)
		one := &limit{value: value}
		if least, most := one.whole(true), one.whole(false); *least != test.least || *most != test.most {
			t.Errorf("%s: at least %d, at most %d", test.value, *least, *most)
		}
	}
	var none *limit
	beyond := &limit{value: new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 63))}
	if none.whole(true) != nil || beyond.whole(true) != nil {
		t.Error("a limit that is none")
	}
}

func TestLimitsInOtherUnitsAreRefused(t *testing.T) {
	for _, test := range []struct {
		metric string
		bound  v1alpha1.Bound
		wants  string
	}{
		{reading, "10ms", `"10ms" is a duration, but readBytesPerSecond is in bytes/s: write one such as 200MB/s or 200MiB/s`},
		{reading, "10MB", `is an amount of data, but readBytesPerSecond is in bytes/s`},
		{reading, "3x", `is a share, but`}, {reading, "5k/s", `is a rate, but`},
		{filling, "10MB/s", `is a data rate, but filledBytes is in bytes: write one such as 1.5GB or 1GiB`},
		{latency, "200MiB/s", `is a data rate, but readLatencyP99Nanoseconds is in ns: write one such as 10ms`},
		{latency, "1%", `is a share, but`}, {reads, "5s", `is a duration, but readOperationsPerSecond is in 1/s: write one such as 500/s or 5k/s`},
		{slow, "10ms", `is in ppm: write one such as 1.5% or 3x`}, {broken, "3x", `is a share, but ioErrors is in count: write one such as 5000`},
		{latency, "10m", `"10m" is a fraction of a ns, because of its suffix m: write one such as 10ms`},
		{latency, "10u", `because of its suffix u`}, {reading, "100m", `write one such as 200MB/s`},
		{latency, "fast", `"fast" is not a number with a unit: write one such as 10ms`}, {latency, "1.2.3ms", "is not a number with a unit"},
		{latency, "ms", "is not a number with a unit"}, {latency, "10parsec", "is not a number with a unit"},
		{reading, "10KB/s", "is not a number with a unit"},
		{slow, "0.5", `"0.5" is in ppm: write 50%, or 0.00005% if that is meant`},
		{slow, "50", `"50" is in ppm: write 50%, or 0.005% if that is meant`},
		{squeezed, "1.5", `"1.5" is in 1/1000: write 1.5x, or 0.0015x if that is meant`},
		{reading, "100", `"100" is in bytes/s: write 100MB/s, or 100B/s if that is meant`},
		{reading, "0.5k", `"0.5k" is in bytes/s: write 500MB/s, or 500B/s if that is meant`},
		{filling, "20", `"20" is in bytes: write 20MB, or 20B if that is meant`},
		{latency, "10", `"10" is in ns: write 10ms, or 10ns if that is meant`},
		{"jobs." + latency, "999", `write 999ms, or 999ns if that is meant`},
		{latency, "-5", `"-5" is negative, and no metric is: write one such as 10ms`}, {broken, "-1", `"-1" is negative`},
		{reads, "-5k", `"-5k" is negative`},
	} {
		metric, _ := results.LookupMetric(test.metric)
		if got, err := parseLimit(test.bound, metric); err == nil || !strings.Contains(err.Error(), test.wants) {
			t.Errorf("%s %s: %+v, error %v, want ...%s...", test.metric, test.bound, got, err, test.wants)
		}
	}
}

// TestEveryUnitHasAMeasure: each unit of a metric needs a measure, otherwise no bound on the metric can be read.
func TestEveryUnitHasAMeasure(t *testing.T) {
	units := map[string]bool{}
	for _, metric := range results.Metrics() {
		units[metric.Unit] = true
		if of := measureOf(metric.Unit); of.example == "" {
			t.Errorf("%s has no example", metric.Unit)
		}
	}
	if len(units) != len(measures) || len(units) < 7 {
		t.Errorf("%d units of metrics, %d measures", len(units), len(measures))
	}
	for _, own := range measures {
		metric := results.Metric{Name: "x", Unit: own.of}
		for _, text := range strings.Split(own.example, " or ") {
			if _, err := parseLimit(v1alpha1.Bound(text), metric); err != nil {
				t.Errorf("the example for %s is wrong: %v", own.of, err)
			}
		}
	}
}

// TestBoundsWithUnits: the message has the bound as written, followed by the number to compare with.
func TestBoundsWithUnits(t *testing.T) {
	const path = "aged-scan.readLatencyP99Nanoseconds"
	evidence := evidenceOf(measured("new", path, 9_000_000, 9_100_000, 9_200_000, 9_300_000, 9_400_000, 9_500_000))
	for name, test := range map[string]struct {
		min, max string
		verdict  v1alpha1.Verdict
		says     string
	}{
		"holds":   {"", "10ms", passed, "at most 10ms (10000000)"},
		"beyond":  {"", "8.9ms", failed, "above the maximum of 8.9ms (8900000)"},
		"below":   {"0.01s", "", failed, "below the minimum of 0.01s (10000000)"},
		"both":    {"1us", "1s", passed, "between 1us (1000) and 1s (1000000000)"},
		"unclear": {"", "9250us", inconclusive, "either side of the maximum of 9250us (9250000)"},
	} {
		got := judgeOnly(t, evidence, []v1alpha1.Gate{boundGate(path, test.min, test.max)}, "new")[0]
		if got.Verdict != test.verdict || !strings.Contains(got.Message, test.says) {
			t.Errorf("%s: %s %q, want %s ...%s...", name, got.Verdict, got.Message, test.verdict, test.says)
		}
	}
	if got := Definition(boundGate(path, "1us", "10 ms")); got != path+" is at least 1us and at most 10 ms" {
		t.Errorf("the definition is %s", got)
	}
}
