package fio

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/stats"
)

func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestParseRealReports: the mix-*.json were written by the fio versions in their names: two sections side by side, then appends with
// sync=dsync, then appends with fdatasync=1, of 300 ms each.
func TestParseRealReports(t *testing.T) {
	type figures struct{ reads, readBytes, writes, appends, syncs int64 }
	for version, want := range map[string]figures{
		"3.28": {2359, 19324928, 1216, 166, 93},
		"3.33": {512, 4194304, 259, 79, 100},
		"3.39": {1941, 15900672, 1008, 101, 188},
		"3.42": {2261, 18522112, 1181, 208, 247},
	} {
		t.Run(version, func(t *testing.T) {
			report, err := Parse(golden(t, "mix-"+version+".json"))
			if err != nil || report.Err() != nil || report.Version != version || len(report.Jobs) != 3 {
				t.Fatalf("%v, %v, version %q, %d jobs", err, report.Err(), report.Version, len(report.Jobs))
			}
			mix, appends, syncs := report.Jobs[0], report.Jobs[1], report.Jobs[2]
			got := figures{mix.Read.Operations, mix.Read.Bytes, mix.Write.Operations, appends.Write.Operations, syncs.Sync.Count}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			for name, latency := range map[string]Latency{"reads": mix.Read.Latency, "writes": mix.Write.Latency, "appends": appends.Write.Latency,
				"syncs": syncs.Sync} {
				checkLatency(t, name, latency)
			}
			if appends.Sync.Count != 0 || syncs.Read.Operations != 0 {
				t.Errorf("dsync has %d syncs, appends have %d reads", appends.Sync.Count, syncs.Read.Operations)
			}
			sum := report.Sum([]int{0, 1, 2})
			if sum.Write.Operations != mix.Write.Operations+appends.Write.Operations+syncs.Write.Operations {
				t.Errorf("the sum has %d writes", sum.Write.Operations)
			}
			if sum.Duration < 900*time.Millisecond || sum.Duration > 925*time.Millisecond {
				t.Errorf("three stages of 300 ms took %s", sum.Duration)
			}
		})
	}
}

func checkLatency(t *testing.T, name string, latency Latency) {
	t.Helper()
	mean, known := latency.Mean()
	median, ok := latency.Percentile(500_000)
	largest, _ := latency.Percentile(1_000_000)
	none, _ := latency.ShareOver(latency.Max)
	if !known || !ok || latency.Count == 0 || mean < latency.Min || mean > latency.Max || median > largest || largest > latency.Max ||
		none != 0 {
		t.Errorf("%s: %d of %d..%d ns, mean %d, median %d, largest %d, %d ppm over the largest", name, latency.Count, latency.Min, latency.Max,
			mean, median, largest, none)
	}
}

func TestParseErrorsOfJobs(t *testing.T) {
	for _, version := range []string{"3.33", "3.42"} {
		report, err := Parse(golden(t, "full-"+version+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var failed *JobError
		if !errors.As(report.Err(), &failed) || !errors.Is(report.Err(), syscall.ENOSPC) || !strings.Contains(failed.Error(), "No space left") {
			t.Errorf("%s: %v", version, report.Err())
		}
		if report.Sum(nil).Errors != 1 {
			t.Errorf("%s: %d errors", version, report.Sum(nil).Errors)
		}
	}
}

const small = `{
  "fio version" : "fio-3.36",
  "jobs" : [{"jobname":"a","groupid":0,"error":0,
    "read":{"io_bytes":8192,"total_ios":2,"runtime":10,"lat_ns":{"min":100,"max":300,"mean":200.0,"N":2,"bins":{"100":1,"300":1}}},
    "write":{"io_bytes":0,"total_ios":0,"runtime":0},"sync":{"total_ios":0}}]
}
`

// TestParseVariants: these reports were written by hand, like the output of fio versions and wrappers.
func TestParseVariants(t *testing.T) {
	for name, output := range map[string]string{
		"plain":           small,
		"warnings before": "note: both iodepth >= 1 and synchronous I/O engine are selected\nfio: {odd} message\n" + small,
		"text behind":     small + "\nfio: terminating on something\n",
		"mean of nothing as nan": strings.Replace(small, `"sync":{"total_ios":0}`,
			"\"sync\":{\"total_ios\":0,\n\"lat_ns\" : {\"min\":0,\n\"mean\" : -nan,\n\"N\" : 0}}", 1),
		"clat bins of older runs": strings.Replace(small, `"lat_ns"`, `"clat_ns"`, 1),
		"unknown fields":          strings.Replace(small, `"error":0`, `"error":0,"invention":{"a":[1]}`, 1),
	} {
		report, err := Parse([]byte(output))
		if err != nil || report.Err() != nil || report.Jobs[0].Read.Operations != 2 {
			t.Errorf("%s: %v, %v", name, err, report.Err())
			continue
		}
		if p, ok := report.Jobs[0].Read.Latency.Percentile(990_000); !ok || p != 300 {
			t.Errorf("%s: p99 %d, %t", name, p, ok)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	replaced := func(from, to string) string { return strings.Replace(small, from, to, 1) }
	for name, c := range map[string]struct{ output, says string }{
		"nothing":            {"", "wrote no report"},
		"only an error":      {"fio: engine foo not loadable\n", "engine foo"},
		"cut short":          {small[:len(small)/2], "cut short"},
		"no version":         {replaced("fio version", "version"), "names no fio version"},
		"another program":    {replaced("fio-3.36", "dd"), "names no fio version"},
		"no jobs":            {"{\n\"fio version\":\"fio-3.36\",\"jobs\":[]}", "no job"},
		"negative bytes":     {replaced("8192", "-8192"), "io_bytes is -8192"},
		"huge operations":    {replaced(`"total_ios":2`, `"total_ios":9223372036854775807`), "total_ios is"},
		"fraction":           {replaced(`"total_ios":2`, `"total_ios":2.5`), "can be read"},
		"too large a number": {replaced("8192", "99999999999999999999"), "can be read"},
		"backward latencies": {replaced(`"min":100`, `"min":900`), "900 to 300"},
		"negative bin":       {replaced(`"100":1`, `"-100":1`), "bin"},
		"bin of words":       {replaced(`"100":1`, `"fast":1`), "bin"},
		"wild mean":          {replaced("200.0", "1e300"), "mean"},
		"mixed figures":      {replaced(`"write"`, `"mixed":{},"write"`), "unified_rw_reporting"},
	} {
		report, err := Parse([]byte(c.output))
		if err == nil || !strings.Contains(err.Error(), c.says) || len(report.Jobs) > 0 {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestReportErr(t *testing.T) {
	report, err := Parse([]byte(strings.Replace(small, `"error":0`, `"error":0,"total_err":3`, 1)))
	if err != nil || !errors.Is(report.Err(), syscall.EIO) {
		t.Errorf("%v, %v", err, report.Err())
	}
	report, err = Parse([]byte(strings.Replace(small, `"error":0`, `"error":-122`, 1)))
	if err != nil || !errors.Is(report.Err(), syscall.EDQUOT) {
		t.Errorf("%v, %v", err, report.Err())
	}
}

func TestLatencyOfKnownSamples(t *testing.T) {
	all := Latency{}
	for range 10 {
		all.Add(Latency{Count: 100, Min: 10, Max: 25_000_000, totals: 98*500_000 + 2_000_000 + 25_000_000,
			bins: map[int64]int64{500_000: 98, 2_000_000: 1, 24_900_000: 1}})
	}
	for over, want := range map[int64]int64{1_000_000: 20_000, 10_000_000: 10_000, 20_000_000: 10_000, 30_000_000: 0} {
		if got, ok := all.ShareOver(over); !ok || got != want {
			t.Errorf("over %d: %d, want %d", over, got, want)
		}
	}
	for share, want := range map[int64]int64{1: 500_000, 500_000: 500_000, 980_000: 500_000, 985_000: 2_000_000, 990_000: 2_000_000,
		991_000: 24_900_000, 1_000_000: 24_900_000} {
		low, width := stats.Bin(want)
		if got, ok := all.Percentile(share); !ok || got < low || got > low+width {
			t.Errorf("percentile %d: %d, want one from %d, %d wide", share, got, low, width)
		}
	}
	if mean, ok := all.Mean(); !ok || mean != 760_000 {
		t.Errorf("mean %d", mean)
	}
	all.Count++ // an operation that is in no bin: its latency is not known, and so no percentile
	if _, ok := all.Percentile(990_000); ok {
		t.Error("a percentile of incomplete bins is a guess")
	}
	if _, ok := (Latency{}).Mean(); ok {
		t.Error("there is no mean of nothing")
	}
}

// FuzzParse: whatever fio writes, parsing does not panic, and what it accepts has sane figures.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{small, "note\n" + small, "", "{\n", "{\n}\n", `{"fio version":"fio-3","jobs":[{}]}`,
		"x\n{\n\"a\" : -nan\n}"} {
		f.Add([]byte(seed))
	}
	f.Add(golden(f, "full-3.33.json"))
	f.Fuzz(func(t *testing.T, output []byte) {
		report, err := Parse(output)
		if err != nil {
			return
		}
		sum := report.Sum(nil)
		if sum.Read.Bytes < 0 || sum.Write.Operations < 0 || sum.Duration < 0 || sum.Read.Latency.Count < 0 {
			t.Errorf("negative figures: %+v", sum)
		}
		if p, ok := sum.Read.Latency.Percentile(990_000); ok && (p < sum.Read.Latency.Min || p > sum.Read.Latency.Max) {
			t.Errorf("p99 %d outside of %d..%d", p, sum.Read.Latency.Min, sum.Read.Latency.Max)
		}
		_ = report.Err()
	})
}
