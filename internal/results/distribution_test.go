package results

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/packing"
)

// latencies returns 900 operations of 1 ms, 80 spread evenly from 5 to 15 ms and 20 of 40 ms.
func latencies() Distribution {
	d := Distribution{Unit: UnitNanoseconds}
	d.Add(1e6, 1e6, 900)
	d.Add(5e6, 15e6, 80)
	d.Add(40e6, 40e6, 20)
	return d
}

func TestSharesOfADistribution(t *testing.T) {
	d := latencies()
	for bound, want := range map[int64][2]int64{ // over and below
		0: {1e6, 0}, 1e6: {100_000, 0}, 2e6: {100_000, 900_000}, 10e6: {60_000, 940_000}, 14e6: {28_000, 972_000}, 20e6: {20_000, 980_000},
		40e6: {0, 980_000}, 41e6: {0, 1e6},
	} {
		over, known := d.Over(bound)
		below, also := d.Below(bound)
		if !known || !also || over != want[0] || below != want[1] {
			t.Errorf("%d: %d over and %d below, want %v", bound, over, below, want)
		}
	}
	var none Distribution
	if _, known := none.Over(1); known {
		t.Error("no operations have a share")
	}
	if _, known := none.Mode(); known || d.Count() != 1000 {
		t.Errorf("no operations have a mode, or %d are not 1000", d.Count())
	}
}

// TestTwoPopulations: half of the regions of a scan take 0.96 of the time that all took before, and half 1.45 of it: no mean shows that.
func TestTwoPopulations(t *testing.T) {
	d := Distribution{Unit: UnitNanoseconds}
	for i := range int64(16) {
		factor := int64(96)
		if i >= 8 {
			factor = 145
		}
		d.Add(factor*1e6+i, factor*1e6+i, 1)
	}
	document := PhaseDocument{Distributions: map[string]Distribution{"scanRegionTime": d}}.Reduce(
		[]string{"scanRegionTime.shareOver120ms", "scanRegionTime.shareOver90ms", "scanRegionTime.shareBelow1s", "scanRegionTime.shareOver150ms"})
	for name, want := range map[string]int64{"scanRegionTime.shareOver120ms": 500_000, "scanRegionTime.shareOver90ms": 1e6,
		"scanRegionTime.shareBelow1s": 1e6, "scanRegionTime.shareOver150ms": 0} {
		if got, known := document.Metrics[name]; !known || got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// TestSharesOfTheMean: of 16 regions, 6 take 10 ms and 10 take 18 ms. Their mean is 15 ms. The regions are compared with each other,
// however fast the disk is.
func TestSharesOfTheMean(t *testing.T) {
	for _, speed := range []int64{1, 1000} {
		d := Distribution{Unit: UnitNanoseconds}
		d.Add(10e6/speed, 10e6/speed, 6)
		d.Add(18e6/speed, 18e6/speed, 10)
		want := map[string]int64{
			"shareOver120PercentOfMean": 0, // 18 ms are 120%, and not more
			"shareOver119PercentOfMean": 625_000, "shareOver66PercentOfMean": 1e6, "shareOver67PercentOfMean": 625_000,
			"shareBelow100PercentOfMean": 375_000, "shareBelow66PercentOfMean": 0, "shareBelow121PercentOfMean": 1e6,
		}
		document := PhaseDocument{Distributions: map[string]Distribution{"scanRegionTime": d}}
		for statistic, share := range want {
			name := "scanRegionTime." + statistic
			if got, known := document.Reduce([]string{name}).Metrics[name]; !known || got != share {
				t.Errorf("%s is %d (%v), want %d", name, got, known, share)
			}
		}
	}
}

// TestRequests: rows of several columns, like the counts of zpool iostat -r.
func TestRequests(t *testing.T) {
	d := Requests([]int64{512, 1024, 2048, 4096, 8192, 16384}, []int64{0, 10, 40, 0, 5, 0}, []int64{0, 0, 20, 5}, nil)
	if mode, known := d.Mode(); !known || mode != 2048 {
		t.Errorf("most requests have %d bytes", mode)
	}
	for bound, want := range map[int64]int64{1024: 0, 2048: 125_000, 4096: 875_000, 8192: 937_500, 16384: 1e6} {
		if got, _ := d.Below(bound); got != want {
			t.Errorf("%d ppm are below %d, want %d", got, bound, want)
		}
	}
	if err := d.validate(); err != nil || d.Count() != 80 {
		t.Errorf("%d requests, %v", d.Count(), err)
	}
}

// TestBounded: thousands of bins are joined without losing an operation, and the error of a share is less than the share of a joined bin.
func TestBounded(t *testing.T) {
	var all Distribution
	for exponent := 10; exponent < 40; exponent++ { // 64 bins between two powers of two, like fio
		for step := range int64(64) {
			from := int64(1)<<exponent + step<<(exponent-6)
			all.Add(from, from+1<<(exponent-6), 1+step%5)
		}
	}
	short := all.Bounded()
	if err := short.validate(); err != nil || len(short.From) > MaxBins || len(short.From) < MaxBins/4 || short.Count() != all.Count() {
		t.Fatalf("%d bins with %d of %d operations: %v", len(short.From), short.Count(), all.Count(), err)
	}
	for bound := int64(2000); bound < 1<<39; bound = bound * 5 / 3 {
		want, _ := all.Over(bound)
		if got, _ := short.Over(bound); math.Abs(float64(got-want)) > 600 {
			t.Errorf("%d ppm are over %d, want %d", got, bound, want)
		}
	}
	few := latencies()
	if got := few.Bounded(); !slices.Equal(got.From, few.From) {
		t.Errorf("few bins were joined: %v", got)
	}
}

func TestParseDerived(t *testing.T) {
	for name, want := range map[string]Metric{
		"writeLatency.shareOver10ms":           {Unit: UnitPartsPerMillion, Better: Lower, Description: "Part above 10ms: latency of writes"},
		"log.a.writeLatency.shareOver500us":    {Unit: UnitPartsPerMillion, Better: Lower},
		"scanRegionTime.shareBelow2s":          {Unit: UnitPartsPerMillion, Better: Higher},
		"diskReadRequestSize.shareBelow8KiB":   {Unit: UnitPartsPerMillion, Better: Lower},
		"diskWriteRequestSize.mode":            {Unit: UnitBytes, Better: Higher, Description: "Most frequent size of writes"},
		"diskWriteRequestSize.shareBelow16MiB": {Unit: UnitPartsPerMillion, Better: Lower},
		"scanRegionTime.shareOver150PercentOfMean": {Unit: UnitPartsPerMillion, Better: Lower,
			Description: "Part above 150% of the mean: time of each region"},
		"scanRegionTime.shareBelow90PercentOfMean": {Unit: UnitPartsPerMillion, Better: Lower},
		"readLatency.count":                        {Unit: UnitCount, Better: Neither},
		"readLatency.shareOver999999s":             {Unit: UnitPartsPerMillion, Better: Lower},
		"readLatency.shareOver1ns":                 {Unit: UnitPartsPerMillion, Better: Lower},
		"diskReadRequestSize.shareBelow512B":       {Unit: UnitPartsPerMillion, Better: Lower},
		"diskReadRequestSize.shareBelow1024KiB":    {Unit: UnitPartsPerMillion, Better: Lower},
	} {
		got, known := LookupMetric(name)
		if !known || got.Name != name || got.Unit != want.Unit || got.Better != want.Better || got.Primary ||
			!strings.HasPrefix(got.Description, want.Description) {
			t.Errorf("%s is %+v", name, got)
		}
	}
	for name, says := range map[string]string{
		"appendLatency.shareOver10ms":            `no distribution "appendLatency": use one of readLatency, writeLatency`,
		"writeLatency.shareOver":                 "write shareOver10ms",
		"writeLatency.shareOver10":               "with its unit, in ns",
		"writeLatency.shareOver10KiB":            "with its unit, in ns",
		"writeLatency.shareOver0ms":              "with its unit, in ns",
		"writeLatency.shareOver1.5ms":            "with its unit, in ns",
		"writeLatency.shareOver9999999999s":      "less than a million seconds",
		"writeLatency.shareOver99999999999s":     "with its unit, in ns",
		"writeLatency.shareOver150PercentOfMean": "only shares of scanRegionTime",
		"scanRegionTime.shareOver0PercentOfMean": "write shareOver10ms, shareOver150PercentOfMean",
		"scanRegionTime.shareOver1.5x":           "write shareOver10ms, shareOver150PercentOfMean",
		"writeLatency.mode":                      "use a percentile",
		"writeLatency.median":                    "write shareOver10ms, shareBelow500us or count",
		"diskReadRequestSize.shareOver8KiB":      "write shareBelow8KiB",
		"diskReadRequestSize.shareBelow12KiB":    "powers of two",
		"diskReadRequestSize.shareBelow32MiB":    "powers of two",
		"diskReadRequestSize.shareBelow10ms":     "with its unit, in bytes",
		"diskReadRequestSize.middle":             "write shareBelow8KiB, mode or count",
		"shareOver10ms":                          "no distribution",
		".shareOver10ms":                         "no distribution",
		"-.readLatency.count":                    "no distribution",
	} {
		_, err := ParseDerived(name)
		if _, known := LookupMetric(name); err == nil || known || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	worst := map[string]Across{"writeLatency.shareOver10ms": AcrossMax, "writeLatency.shareBelow10ms": AcrossMin,
		"scanRegionTime.shareBelow90PercentOfMean": AcrossMax, "diskReadRequestSize.mode": AcrossMin, "writeLatency.count": AcrossMin}
	for name, want := range worst {
		if metric, _ := LookupMetric(name); metric.Across() != want {
			t.Errorf("%s of several nodes is the %s", name, metric.Across())
		}
	}
}

// TestReduce: missing, empty and invalid distributions give no metric, and no distribution is kept.
func TestReduce(t *testing.T) {
	document := validPhase()
	overlapping := Distribution{Unit: UnitNanoseconds, From: []int64{5, 1}, To: []int64{6, 2}, Counts: []int64{1, 1}}
	document.Distributions = map[string]Distribution{"writeLatency": latencies(), "readLatency": overlapping, "syncLatency": {Unit: UnitNanoseconds}}
	got := document.Reduce([]string{"writeLatency.shareOver10ms", "writeLatency.count", "readLatency.shareOver10ms", "syncLatency.shareOver1ms",
		"diskReadRequestSize.mode", "nonsense"})
	if len(got.Metrics) != len(document.Metrics)+2 || got.Metrics["writeLatency.shareOver10ms"] != 60_000 ||
		got.Metrics["writeLatency.count"] != 1000 || got.Distributions != nil || len(document.Metrics) != 2 || document.Distributions == nil {
		t.Errorf("%+v", got)
	}
}

func TestValidateDistributions(t *testing.T) {
	ns := func(from, to, counts []int64) Distribution {
		return Distribution{Unit: UnitNanoseconds, From: from, To: to, Counts: counts}
	}
	long := make([]int64, MaxBins+1)
	many := map[string]Distribution{}
	for range MaxDistributions + 1 {
		many[strings.Repeat("a", len(many)+1)+".readLatency"] = latencies()
	}
	for says, distributions := range map[string]map[string]Distribution{
		"":                       {"readLatency": latencies(), "job.writeLatency": latencies(), "diskReadRequestSize": {Unit: UnitBytes}},
		"not in the vocabulary":  {"speed": latencies()},
		"has to be in bytes":     {"diskReadRequestSize": latencies()},
		"entries":                {"readLatency": ns([]int64{1}, []int64{2}, nil)},
		"at most 512":            {"readLatency": ns(long, long, long)},
		"bin 1 from 1":           {"readLatency": ns([]int64{5, 1}, []int64{6, 2}, []int64{1, 1})},
		"bin 0 from -1":          {"readLatency": ns([]int64{-1}, []int64{2}, []int64{1})},
		"bin 0 from 3":           {"readLatency": ns([]int64{3}, []int64{2}, []int64{1})},
		"-5 operations":          {"readLatency": ns([]int64{1}, []int64{2}, []int64{-5})},
		"9223372036854775807 op": {"readLatency": ns([]int64{1}, []int64{2}, []int64{math.MaxInt64})},
		"65 distributions":       many,
	} {
		document := validPhase()
		document.Distributions = distributions
		if err := document.Validate(); (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
}

// TestLoaderDerives: the requested metrics of a phase are computed while its document is read, and its distributions are not kept.
func TestLoaderDerives(t *testing.T) {
	document := validPhase()
	document.Distributions = map[string]Distribution{"writeLatency": latencies()}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	binary, data, _, err := StoredPhase(text, packing.Digest(text))
	if err != nil || strings.Contains(data[KeySummary], "writeLatency") {
		t.Fatalf("%v, summary %s", err, data[KeySummary])
	}
	whole, err := LoadPhase(data, binary)
	if err != nil || whole.Distributions["writeLatency"].Count() != 1000 {
		t.Fatalf("%+v, %v", whole, err)
	}
	for phase, want := range map[string]int{document.Phase: 4, "another": 2} {
		loader := Loader{Derived: map[string][]string{phase: {"writeLatency.shareOver10ms", "writeLatency.count"}}}
		lean, err := loader.Load(data, binary, packing.Digest(text))
		if err != nil || lean.Distributions != nil || len(lean.Metrics) != want || want == 4 && lean.Metrics["writeLatency.shareOver10ms"] != 60_000 {
			t.Errorf("asked of phase %s: %+v, %v", phase, lean, err)
		}
	}
}
