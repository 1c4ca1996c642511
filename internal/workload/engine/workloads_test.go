//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

func scanPhase(regions int32) v1alpha1.Phase {
	return measurePhase(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{Regions: regions}})
}

func redoPhase(writers int32, sync string, duration float64, sizes ...v1alpha1.BlockSizeShare) v1alpha1.Phase {
	return measurePhase(v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Writers: writers, Sync: sync, Duration: seconds(duration),
		BlockSizes: sizes}})
}

func userPhase(text string) v1alpha1.Phase {
	return measurePhase(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: text}})
}

func fragmentPhase(rounds int32) v1alpha1.Phase {
	return v1alpha1.Phase{Name: "age", Fragment: &v1alpha1.FragmentPhase{Until: v1alpha1.FragmentUntilRounds, Rounds: ptr.To(rounds)}}
}

// TestTranslation: U percent updates are 100 reads to U writes, within 1%. fio chooses each operation at random, so only a large number of
// operations can show that: the blocks are small and in memory, and the deviation that chance explains on a slow machine is allowed as
// well.
func TestTranslation(t *testing.T) {
	b := newBenchAlone(t)
	b.request.VolumeSizeBytes = 16 << 20
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.executor.judgeLoad = func(observe.Load) (string, string) { return "", "" } // other tests use the same disk
	b.valid(fillPhase("50%"))
	for _, updates := range []int32{0, 25, 50, 100} {
		phase := oltpPhase(8, updates, 1.5)
		phase.Measure.Cache, phase.Measure.Workload.OLTP.BlockSize = v1alpha1.CacheWarm, block("512")
		document, _ := b.valid(phase)
		reads, writes := float64(document.Metrics["readOperations"]), float64(document.Metrics["writeOperations"])
		got, want := 100*writes/reads, float64(updates)
		share := writes / (reads + writes)
		chance := 0.0
		if updates > 0 {
			chance = 3.5 / math.Sqrt((reads+writes)*share*(1-share)) // standard deviations of the ratio
		}
		t.Logf("%d updates: %.0f reads, %.0f writes: %.2f writes to 100 reads, chance is %.2f%%", updates, reads, writes, got, 100*chance)
		if reads == 0 || math.Abs(got-want) > max(0.01, chance)*want {
			t.Errorf("%d updates: %.3f writes to 100 reads", updates, got)
		}
	}
}

func TestWholePercents(t *testing.T) {
	for _, c := range []struct {
		updates, workers, low, more int
	}{{0, 8, 0, 0}, {25, 8, 20, 0}, {50, 8, 33, 3}, {50, 1, 33, 0}, {50, 3, 33, 1}, {100, 5, 50, 0}, {10, 11, 9, 1}, {1, 64, 0, 63}} {
		low, more := wholePercents(float64(c.updates)/float64(100+c.updates), c.workers)
		if low != c.low || more != c.more {
			t.Errorf("%d updates by %d workers: %d%% and %d with one more, want %d%% and %d", c.updates, c.workers, low, more, c.low, c.more)
		}
	}
}

// TestDivide: workers share all data, or have files of their own. A worker with its own region that fits into a cache would dominate the
// rate.
func TestDivide(t *testing.T) {
	files := func(count int) (extents []extent) {
		for i := range count {
			extents = append(extents, extent{fmt.Sprint("f", i), 0, 1 << 20})
		}
		return extents
	}
	for _, c := range []struct {
		name    string
		workers int32
		layout  string
		extents []extent
		jobs    int
		says    string
	}{
		{"a file for all", 8, "SharedFile", files(1), 2, ""},
		{"a file each", 4, "FilePerWorker", files(4), 4, ""},
		{"two files each", 4, "FilePerWorker", files(8), 4, ""},
		{"files for all", 4, "SharedFile", files(3), 2, ""},
		{"too few files", 4, "FilePerWorker", files(2), 0, "cannot be divided evenly"},
		{"odd files", 4, "FilePerWorker", files(6), 0, "cannot be divided evenly"},
		{"no data", 1, "SharedFile", []extent{{"f", 0, 8191}}, 0, "smaller than a block of 8192 bytes"},
	} {
		o := oltp{given: v1alpha1.OLTPWorkload{Workers: c.workers, Layout: c.layout, UpdatePercent: 50}}
		err := o.divide(fio.Job{BlockSize: 8192}, c.extents)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var total, weight int
		seen := map[string]bool{}
		for _, job := range o.jobs {
			total, weight = total+job.Workers, weight+job.Workers*job.WritePercent
			if all := c.layout == "SharedFile"; all && (len(job.Paths) != len(c.extents) || job.Size != int64(len(c.extents))<<20) || job.Stride != 0 {
				t.Errorf("%s: %d workers have %d bytes of %v", c.name, job.Workers, job.Size, job.Paths)
			} else if !all && (job.Workers > 1 || seen[job.Paths[0]] || len(job.Paths) != len(c.extents)/int(c.workers)) {
				t.Errorf("%s: %d workers work on %v", c.name, job.Workers, job.Paths)
			}
			seen[job.Paths[0]] = true
		}
		if err != nil || total != int(c.workers) || len(o.jobs) != c.jobs || math.Abs(float64(weight)/float64(100*total)-1.0/3) > 0.005 {
			t.Errorf("%s: %v, %d workers in %d jobs, %.4f writes", c.name, err, total, len(o.jobs), float64(weight)/float64(100*total))
		}
	}
}

func TestFilePerWorker(t *testing.T) {
	b := newBench(t)
	phase := oltpPhase(4, 50, 0.5)
	phase.Measure.Workload.OLTP.Layout = "FilePerWorker"
	if b.request.DataFiles = workload.DataFilesFor([]v1alpha1.Phase{fillPhase("50%"), phase}); b.request.DataFiles != 4 {
		t.Fatalf("%d files", b.request.DataFiles)
	}
	b.valid(fillPhase("50%"))
	b.valid(phase)
	_, details := b.valid(scanPhase(3)) // regions that begin and end within files
	for _, region := range details.Regions {
		if region.Bytes != details.Regions[0].Bytes || region.Nanoseconds <= 0 {
			t.Errorf("%+v", region)
		}
	}
	large := scanPhase(3)
	large.Measure.Workload.Scan.BlockSize = block("1Mi") // no file of the data is a whole number of these
	b.valid(large)
	document, _ := b.valid(fragmentPhase(1))
	if document.Metrics["coveragePartsPerMillion"] != 1_000_000 {
		t.Errorf("%v", document.Metrics)
	}
}

// TestFillCompressible: the data can be compressed as declared, and no two blocks are the same.
func TestFillCompressible(t *testing.T) {
	b := newBench(t)
	phase := v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("2Mi"), Compressibility: "50%", BlockSize: block("64Ki")}}
	b.valid(phase)
	phase.Name = "more"
	b.valid(phase) // a second fill continues after the first
	data, err := os.ReadFile(filepath.Join(b.request.Path, "storagebench.data.0000"))
	if err != nil || len(data) != 4<<20 {
		t.Fatalf("%v, %d bytes", err, len(data))
	}
	if ratio := float64(compressedBytes(data)) / float64(len(data)); ratio < 0.4 || ratio > 0.6 {
		t.Errorf("the data compresses to %.2f", ratio)
	}
	seen := map[string]bool{}
	for part := range slices.Chunk(data, 4096) {
		if seen[string(part)] {
			t.Fatal("a block was written twice: what deduplicates would not store it")
		}
		seen[string(part)] = true
	}
}

// TestOverwritesCompressAsFilled: overwrites compress like the data that they replace, unless the phase says otherwise. Later workloads
// then use the new compressibility.
func TestOverwritesCompressAsFilled(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("2Mi"), Compressibility: "75%", BlockSize: block("64Ki")}})
	said := fragmentPhase(1)
	said.Fragment.Compressibility = "0%"
	for _, c := range []struct {
		phase       v1alpha1.Phase
		least, most float64
	}{{fragmentPhase(1), 0.2, 0.4}, {said, 0.95, 1.1}, {oltpPhase(4, 100, 1), 0.95, 1.1}} {
		b.valid(c.phase)
		data, err := os.ReadFile(filepath.Join(b.request.Path, "storagebench.data.0000"))
		if err != nil || len(data) != 2<<20 {
			t.Fatalf("%v, %d bytes", err, len(data))
		}
		if ratio := float64(compressedBytes(data)) / float64(len(data)); ratio < c.least || ratio > c.most {
			t.Errorf("after %s the data compresses to %.2f", c.phase.Name, ratio)
		}
	}
}

// TestHoles: fio says that it has written, and nothing is there.
func TestHoles(t *testing.T) {
	b := newBench(t)
	phase := v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("1Mi")}}
	b.fakeFIO(reportOf(`"write":{"io_bytes":1048576,"total_ios":8,"runtime":30,"lat_ns":{"min":1,"max":9,"mean":5.0,"N":8,"bins":{"5":8}}}`) +
		"sleep 0.1")
	document := b.refused(phase, ReasonNotAllocated, "has a hole at byte 0 of 1048576")
	if document.Checks[len(document.Checks)-2].Passed {
		t.Errorf("%+v", document.Checks)
	}
}

func TestFragment(t *testing.T) {
	b := newBench(t)
	b.refused(fragmentPhase(1), ReasonNoData, "add a fill phase before")
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("8Mi")}})
	path := filepath.Join(b.request.Path, "storagebench.data.0000")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document, details := b.valid(fragmentPhase(3))
	m := document.Metrics
	if m["rounds"] != 3 || m["writtenBytes"] != 3*8<<20 || m["writeOperations"] != 3*1024 || m["coveragePartsPerMillion"] != 1_000_000 ||
		m["readOperations"] != 0 {
		t.Errorf("%v", m)
	}
	if version := document.Environment["workload.version"]; version != "fragment 2" {
		t.Errorf("version %q", version)
	}
	if seeds := slices.Compact(slices.Sorted(slices.Values(document.Seeds))); len(seeds) != 3 || len(details.Rounds) != 3 ||
		details.Rounds[2].Seed != document.Seeds[2] {
		t.Errorf("seeds %v of rounds %+v", document.Seeds, details.Rounds)
	}
	after, err := os.ReadFile(path)
	if err != nil || len(after) != len(before) {
		t.Fatalf("%v, %d bytes", err, len(after))
	}
	for at := 0; at < len(before); at += 8192 {
		if string(before[at:at+8192]) == string(after[at:at+8192]) {
			t.Fatalf("the block at %d was not overwritten", at)
		}
	}
}

// TestFragmentLastsUntilAllIsWritten: each fill and each round includes the time to write the data that is still in memory or in a log when
// fio ends.
func TestFragmentLastsUntilAllIsWritten(t *testing.T) {
	b := newBench(t)
	const sync = 700 * time.Millisecond
	b.slowSync(sync)
	filled, _ := b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
	aged, details := b.valid(fragmentPhase(2))
	for _, c := range []struct {
		document results.PhaseDocument
		syncs    int64
	}{{filled, 1}, {aged, 2}} {
		took := time.Duration(c.document.Metrics["durationNanoseconds"])
		if lasted := c.document.FinishedAt.Sub(c.document.StartedAt); took < time.Duration(c.syncs)*sync || lasted < took {
			t.Errorf("%s: %s of %s were measured, with %d syncs of %s", c.document.Phase, took, lasted, c.syncs, sync)
		}
		if rate := c.document.Metrics["writeBytesPerSecond"]; rate != perSecond(c.syncs*4<<20, took) {
			t.Errorf("%s: %d bytes/s in %s", c.document.Phase, rate, took)
		}
	}
	for _, round := range details.Rounds {
		if round.DurationNanoseconds < sync.Nanoseconds() {
			t.Errorf("%+v", round)
		}
	}
}

// TestFragmentConverges needs rounds of known lengths, which only a fake fio and a fake clock can give: each sync takes 100 ms.
func TestFragmentConverges(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
	b.tickingClock(100 * time.Millisecond)
	phase := v1alpha1.Phase{Name: "age", Fragment: &v1alpha1.FragmentPhase{Until: v1alpha1.FragmentUntilConverged, MaxRounds: 7}}
	pass := `"write":{"io_bytes":4194304,"total_ios":512,"runtime":%s}`
	b.fakeFIO(reportOf(fmt.Sprintf(pass, "100")) + "sleep 0.2")
	document, details := b.valid(phase)
	if m := document.Metrics; m["rounds"] != 5 || m["steadyStateRangePartsPerMillion"] != 0 || m["writeBytesPerSecond"] != 20971520 ||
		len(details.Rounds) != 5 {
		t.Errorf("%+v, %v", details.Rounds, m)
	}
	// The first round is faster than all others, so only the second to the sixth are five rounds that satisfy the rule.
	rounds := filepath.Join(t.TempDir(), "rounds")
	b.fakeFIO("echo >> " + rounds + "\ncase $(wc -l < " + rounds + ") in 1) R=50;; *) R=100;; esac\n" +
		strings.Replace(reportOf(fmt.Sprintf(pass, "$R")), "'EOF'", "EOF", 1) + "sleep 0.2")
	if document, _ := b.valid(phase); document.Metrics["rounds"] != 6 {
		t.Errorf("%v", document.Metrics)
	}
	b.fakeFIO("echo >> " + rounds + "\nR=$((20 + $(wc -l < " + rounds + ") % 2 * 80))\n" +
		strings.Replace(reportOf(fmt.Sprintf(pass, "$R")), "'EOF'", "EOF", 1) + "sleep 0.2")
	document = b.execute(phase)
	if document.Outcome != results.OutcomeInvalid || document.Reason != ReasonNotConverged || document.Metrics["rounds"] != 7 {
		t.Errorf("%s %s %s, %v", document.Outcome, document.Reason, document.Message, document.Metrics)
	}
}

// tickingClock advances by one tick whenever it is read.
func (b *bench) tickingClock(tick time.Duration) {
	now := time.Duration(0)
	b.executor.clock = func() clock {
		return clock{day: func() time.Time { return time.Unix(1_800_000_000, 0).Add(now) },
			elapsed: func() time.Duration { now += tick; return now }}
	}
}

func TestSteadyStateOfAMeasurement(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
	phase := oltpPhase(2, 0, 0.2)
	phase.Measure.SteadyState = &v1alpha1.SteadyState{WindowRounds: 3}
	rounds := filepath.Join(t.TempDir(), "rounds")
	b.fakeFIO("echo >> " + rounds + "\ncase $(wc -l < " + rounds + ") in 1) N=9000;; *) N=1000;; esac\n" +
		strings.NewReplacer("'EOF'", "EOF", `"total_ios":1000`, `"total_ios":$N`).Replace(reportOf(goodReads)) + "sleep 0.3")
	document, details := b.valid(phase)
	m := document.Metrics
	if m["rounds"] != 4 || m["readOperations"] != 3000 || m["readOperationsPerSecond"] != 5000 || len(document.Seeds) != 4 ||
		len(details.Rounds) != 4 {
		t.Errorf("the first round is not of the window: %v, %+v", m, details.Rounds)
	}
	if drift, known := m["steadyStateDriftPartsPerMillion"]; !known || drift != 0 {
		t.Errorf("a drift of %d over the last three rounds, known: %v", drift, known)
	}
	if rule := steadyRule(&v1alpha1.SteadyState{MaxDrift: "12.5%"}); rule.MaxDrift != 0.125 || steadyRule(nil).MaxDrift != 0.05 {
		t.Errorf("the rule is %+v", rule)
	}
	if len(document.Measured) != 3 {
		t.Fatalf("the numbers are from %v", document.Measured)
	}
	for i, round := range document.Measured {
		if long := round.To.Sub(round.From); long != 200*time.Millisecond || round.From.Before(document.StartedAt) ||
			round.To.After(document.FinishedAt) {
			t.Errorf("round %d of the window took %s: %v", i, long, round)
		}
		if i > 0 && round.From.Before(document.Measured[i-1].To) {
			t.Errorf("round %d begins before the one before has ended: %v", i, document.Measured)
		}
	}
	b.refused(v1alpha1.Phase{Name: "pg", Measure: &v1alpha1.MeasurePhase{SteadyState: &v1alpha1.SteadyState{WindowRounds: 3},
		Workload: v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{}}}}, ReasonNotPossible, "set postgres.duration")
}

func TestRedo(t *testing.T) {
	b := newBench(t)
	for _, sync := range []string{"dsync", "fdatasync"} {
		document, details := b.valid(redoPhase(3, sync, 1, v1alpha1.BlockSizeShare{Size: *block("4Ki"), Percent: 50},
			v1alpha1.BlockSizeShare{Size: *block("8Ki"), Percent: 50}))
		m := document.Metrics
		mean := float64(m["writtenBytes"]) / float64(max(m["writeOperations"], 1))
		over1, known := m["shareOver1MillisecondPartsPerMillion"]
		if m["writeOperations"] == 0 || mean < 5000 || mean > 7300 || !known || over1 < m["shareOver10MillisecondsPartsPerMillion"] {
			t.Errorf("%s: mean append of %.0f bytes, %v", sync, mean, m)
		}
		latency := "writeLatencyMaxNanoseconds"
		if sync == "fdatasync" {
			latency = "syncLatencyMaxNanoseconds"
		}
		if m[latency] == 0 || (sync == "dsync") != (len(details.Samples) > 0) || details.SamplesSeen < int64(len(details.Samples)) ||
			len(details.Samples) > keptSamples {
			t.Errorf("%s: %d of %d samples, %v", sync, len(details.Samples), details.SamplesSeen, m)
		}
	}
	if names := b.entries(); len(names) != 4 { // the marker and three logs: those of the first phase are gone
		t.Errorf("%v", names)
	}
	b.request.VolumeSizeBytes = 8 << 20
	b.refused(redoPhase(64, "dsync", 0.2), ReasonVolumeFull, "use fewer writers")
	declared := redoPhase(1, "dsync", 0.2)
	declared.Measure.Cache = v1alpha1.CacheCold
	b.refused(declared, ReasonNotPossible, "write cache: Any")
}

// TestUserJobsRamp: fio leaves its ramp_time out of its figures, and the counters cannot.
func TestUserJobsRamp(t *testing.T) {
	b := newBench(t)
	job := "[a]\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=1\n"
	document, _ := b.valid(userPhase(job))
	if _, known := document.Metrics["cpuNanoseconds"]; !known {
		t.Errorf("without a ramp, there is the time of the CPU: %v", document.Metrics)
	}
	document, details := b.valid(userPhase(job + "ramp_time=1\n"))
	for _, name := range []string{"cpuNanoseconds", "deviceReadBytes", "cacheHitPartsPerMillion", "readAmplificationMilli"} {
		if value, known := document.Metrics[name]; known {
			t.Errorf("%s has the ramp in it: %d", name, value)
		}
	}
	if !strings.Contains(strings.Join(details.Unavailable, "\n"), "ramp_time") {
		t.Errorf("nothing says why: %v", details.Unavailable)
	}
	declared := userPhase(job + "ramp_time=1\n")
	declared.Measure.Cache = v1alpha1.CacheCold
	b.refused(declared, ReasonNotPossible, "remove ramp_time")
}

func TestUserJobs(t *testing.T) {
	b := newBench(t)
	document, _ := b.valid(userPhase("[a]\nrw=randread\nbs=4k\nsize=1m\n[b]\nstonewall\nrw=write\nbs=8k\nsize=64k\n"))
	if m := document.Metrics; m["readOperations"] != 256 || m["writeOperations"] != 8 || len(document.Seeds) != 1 {
		t.Errorf("%v, seeds %v", m, document.Seeds)
	}
	if of := document.Distributions; of["a.readLatency"].Count() != 256 || of["b.writeLatency"].Count() != 8 || len(of) != 2 {
		t.Errorf("the jobs have the distributions %v", of)
	}
	b.refused(userPhase("[a]\nexec_prerun=id\n"), ReasonJobRefused, "a job file runs no commands")
	b.refused(userPhase("[a]\nrw=read\nfilename=data\nsize=1m\n"), ReasonNoData, "add a fill phase before")
	b.refused(userPhase("[a]\nrw=read\nsize=1m\nrandom_distribution=zoned:50/5:30/15\n"), ReasonJobRefused, "add up to 100")
	from := measurePhase(v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFileFrom: &v1alpha1.ConfigMapKey{Name: "jobs", Key: "a.fio"}}})
	b.executor.File = filepath.Join(t.TempDir(), "file")
	b.refused(from, ReasonJobRefused, "create the ConfigMap with that key")
	touch(t, b.executor.File, "[a]\nrw=read\nbs=4k\nsize=64k\n")
	if document, _ := b.valid(from); document.Metrics["readOperations"] != 16 {
		t.Errorf("%v", document.Metrics)
	}
}

// TestCacheHonesty: the counters decide, and not what the job asked for.
func TestCacheHonesty(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("8Mi")}})
	asked := ""
	b.executor.judge = func(expectation string, bytes int64, _ observe.Delta) (bool, string) {
		asked = expectation
		return bytes != 8<<20, "of 8 MiB that the workload read, 90.0% came from memory"
	}
	phase := scanPhase(4)
	phase.Measure.Cache = v1alpha1.CacheCold
	document := b.execute(phase)
	if document.Outcome != results.OutcomeInvalid || document.Reason != ReasonCacheMismatch || !strings.Contains(document.Message, "90.0%") ||
		asked != "Cold" {
		t.Errorf("%s %s %s, asked for %s", document.Outcome, document.Reason, document.Message, asked)
	}
	if document.Metrics["readBytes"] != 8<<20 {
		t.Errorf("the numbers are to be looked at: %v", document.Metrics)
	}
}

// TestLoadHonesty: numbers that were limited by the CPU, or measured on a disk that others used, are not numbers of the storage.
func TestLoadHonesty(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("8Mi")}})
	for name, c := range map[string]struct{ throttled, foreign, reason string }{
		"throttled": {"held up for 4s", "", ReasonCPUThrottled}, "foreign": {"", "others read 5 MiB", ReasonForeignLoad},
		"both": {"held up", "others", ReasonCPUThrottled},
	} {
		b.executor.judgeLoad = func(load observe.Load) (string, string) {
			if load.Elapsed <= 0 {
				t.Errorf("%s: %+v", name, load)
			}
			return c.throttled, c.foreign
		}
		if document := b.execute(scanPhase(4)); document.Outcome != results.OutcomeInvalid || document.Reason != c.reason ||
			document.Metrics["readBytes"] != 8<<20 {
			t.Errorf("%s: %s %s %s %v", name, document.Outcome, document.Reason, document.Message, document.Metrics)
		}
	}
}

// ownDisk are counters of a volume that has a disk for itself.
type ownDisk struct{ counters }

func (o ownDisk) Between(before, after observe.Snapshot) observe.Delta {
	delta := o.counters.Between(before, after)
	delta.Load.Devices = "sdb"
	return delta
}

// poolStates are counters of a volume on a pool, which is in another state each time.
type poolStates struct {
	counters
	states []string
}

func (p *poolStates) PoolState() string {
	state := p.states[0]
	if len(p.states) > 1 {
		p.states = p.states[1:]
	}
	return state
}

// TestPoolState: a measurement on a pool that has lost a disk is refused, even if the disk was lost during the phase.
func TestPoolState(t *testing.T) {
	for name, c := range map[string]struct {
		states []string
		says   string
	}{
		"on none":         {[]string{""}, ""},
		"whole":           {[]string{"ONLINE"}, ""},
		"degraded":        {[]string{"DEGRADED"}, "is DEGRADED before the phase"},
		"lost on the way": {[]string{"ONLINE", "DEGRADED"}, "is DEGRADED after the phase"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.executor.observe = func(target observe.Target) (counters, error) {
				real, err := observe.New(target)
				return &poolStates{real, slices.Clone(c.states)}, err
			}
			document := b.execute(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("8Mi")}})
			if c.says == "" && document.Outcome != results.OutcomeValid ||
				c.says != "" && (document.Reason != ReasonPoolUnhealthy || !strings.Contains(document.Message, c.says)) {
				t.Errorf("%s %s %s", document.Outcome, document.Reason, document.Message)
			}
		})
	}
}

// TestPoolStateBesideAnOperation: workloads that run together are measured on a pool whose disk is being replaced, like a single one.
func TestPoolStateBesideAnOperation(t *testing.T) {
	for operated, want := range map[bool]string{true: "", false: ReasonPoolUnhealthy} {
		phase := v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{}}
		s := &session{request: workload.Request{Phase: phase}, beside: &beside{operated: operated},
			counters: &poolStates{states: []string{"DEGRADED"}}}
		var found *invalid
		if got := ""; errors.As(s.checkPool("before"), &found) {
			got = found.reason
			if got != want {
				t.Errorf("operated %v: %q", operated, got)
			}
		} else if got != want {
			t.Errorf("operated %v: no error, want %q", operated, want)
		}
	}
}

// TestQuietBefore: a workload waits for the work that the disk still does for whatever was before it.
func TestQuietBefore(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("8Mi")}})
	b.executor.observe = func(target observe.Target) (counters, error) {
		real, err := observe.New(target)
		return ownDisk{real}, err
	}
	b.executor.quietPatience = 3 * quietWindow
	asked, quietAfter := 0, 2
	b.executor.judgeQuiet = func(load observe.Load) string {
		if asked++; asked >= quietAfter {
			return ""
		}
		return load.Devices + " was at work"
	}
	at := time.Now()
	b.request.StartAt = &at
	document, _ := b.valid(scanPhase(4))
	if asked != quietAfter {
		t.Errorf("asked %d times, it was quiet at the second", asked)
	}
	if lag := time.Duration(document.Metrics[results.MetricStartLag]); lag < 2*quietWindow {
		t.Errorf("it waited for the disk for %s, and says that it began %s late", 2*quietWindow, lag)
	}
	quietAfter = 1000
	if document := b.execute(scanPhase(4)); document.Outcome != results.OutcomeInvalid || document.Reason != ReasonDeviceBusy ||
		!strings.Contains(document.Message, "sdb was at work") {
		t.Errorf("%s %s %s", document.Outcome, document.Reason, document.Message)
	}
}

// TestReadTimes: two files with logs of their own, and three regions, the second in both.
func TestReadTimes(t *testing.T) {
	folder := t.TempDir()
	touch(t, filepath.Join(folder, "scan_lat.1.log"), "10, 9000000, 0, 8192, 0\n30, 19000000, 0, 8192, 0\n60, 29000000, 0, 8192, 0\n")
	touch(t, filepath.Join(folder, "scan_lat.2.log"), "5, 4000000, 0, 8192, 0\n5, 700000, 0, 8192, 0\n6, 2500000, 0, 8192, 0\n")
	c := scan{block: 8192, each: 16384, timed: make([]Region, 3)}
	if err := c.readTimes(folder, 2); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, region := range c.timed {
		got = append(got, region.Bytes, region.Nanoseconds)
	}
	if want := []int64{16384, 29_000_000, 16384, 34_000_000, 16384, 3_200_000}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := c.readTimes(folder, 3); err == nil {
		t.Error("a log is missing")
	}
}

// TestWarmAndCold are told apart by the real counters, where there is a device below.
func TestWarmAndCold(t *testing.T) {
	b := newBenchAlone(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("16Mi")}})
	cold, warm := scanPhase(2), scanPhase(2)
	cold.Measure.Cache, warm.Measure.Cache = v1alpha1.CacheCold, v1alpha1.CacheWarm
	first := b.execute(warm)
	// A kernel that pages out memory that looks idle (DAMON) takes some of the data that was just read. The phase is rightly refused then,
	// so it gets two more chances.
	for range 2 {
		if first.Reason == ReasonCacheMismatch {
			first = b.execute(warm)
		}
	}
	if strings.Contains(first.Message, "can't be checked") {
		t.Skipf("there is no device below the folder for temporary files: %s", first.Message)
	}
	if first.Outcome != results.OutcomeValid {
		t.Errorf("warm: %s %s", first.Reason, first.Message)
	}
	if second := b.execute(cold); second.Outcome != results.OutcomeValid {
		t.Errorf("cold: %s %s", second.Reason, second.Message)
	}
}

// TestInterrupted: at whatever moment the context ends, there is a document that says so, and no fio is left.
func TestInterrupted(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("8Mi")}})
	why := errors.New("the pod was told to end")
	for _, phase := range []v1alpha1.Phase{oltpPhase(4, 50, 30), redoPhase(2, "dsync", 30), fragmentPhase(90),
		{Name: "more", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}}} {
		for _, after := range []time.Duration{0, 30 * time.Millisecond, 300 * time.Millisecond} {
			b.request.Phase = phase
			if phase.Fill != nil { // what an interrupted fill has left would be refused, rightly
				if err := os.Truncate(filepath.Join(b.request.Path, "storagebench.data.0000"), 8<<20); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(after, func() { cancel(why) })
			started := time.Now()
			document, err := b.executor.Execute(ctx, b.request, nil)
			timer.Stop()
			if err != nil {
				t.Fatal(err)
			}
			if document.Outcome == results.OutcomeValid && phase.Fill != nil {
				break // it was faster, and there is more data now
			}
			if document.Reason != ReasonInterrupted || !strings.Contains(document.Message, why.Error()) || len(document.Metrics) > 0 ||
				time.Since(started) > 8*time.Second {
				t.Errorf("%s after %s: %s %s, %v", phase.Name, after, document.Reason, document.Message, document.Metrics)
			}
			if left := processesIn(t, b.executor.Scratch); len(left) > 0 {
				t.Errorf("%s after %s: still running: %v", phase.Name, after, left)
			}
		}
	}
}

// processesIn finds processes that work in the scratch folder, as every fio does that was started here.
func processesIn(t *testing.T, folder string) (found []string) {
	t.Helper()
	working, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(working) == 0 { // this test is one of them
		t.Fatalf("no processes in /proc: %v", err)
	}
	for _, link := range working {
		if where, err := os.Readlink(link); err == nil && strings.HasPrefix(where, folder) {
			found = append(found, link)
		}
	}
	return found
}

// TestEveryWorkloadIsExecuted: a workload that has traits but no load would end the runner.
func TestEveryWorkloadIsExecuted(t *testing.T) {
	names := workload.Names()
	if len(names) < 5 || len(names) != len(loads) {
		t.Fatalf("workloads %v, and %d that can be executed", names, len(loads))
	}
	for _, name := range names {
		if loads[name] == nil {
			t.Errorf("workload %s cannot be executed", name)
		}
	}
}
