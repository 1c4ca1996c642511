//go:build linux

package engine

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

const memoryVariable = "STORAGEBENCH_TEST_LATENCIES"

// TestMemoryOfSamples reads 1,000,000 latencies in a process of its own and asks the kernel how much memory that took at most.
func TestMemoryOfSamples(t *testing.T) {
	if folder := os.Getenv(memoryVariable); folder != "" {
		samples := fio.NewSamples(keptSamples, 1)
		if err := readLogs(folder, samples.Add); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("SEEN %d KEPT %d\n", samples.Seen, len(samples.Kept()))
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(status))
		return
	}
	folder := t.TempDir()
	writeLatencies(t, filepath.Join(folder, "redo_lat.1.log"), 1_000_000)
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryOfSamples$")
	command.Env = append(os.Environ(), memoryVariable+"="+folder)
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "SEEN 1000000 KEPT 4000") {
		t.Fatalf("%v: %s", err, output)
	}
	var peak int64
	for line := range strings.Lines(string(output)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			if _, err := fmt.Sscanf(text, "%d kB", &peak); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("1,000,000 latencies took %d KiB at most", peak)
	limit := int64(64 << 10)
	if raceDetector {
		limit *= 4 // its shadow memory is not the runner's
	}
	if peak == 0 || peak > limit {
		t.Errorf("%d KiB, more than %d", peak, limit)
	}
}

func writeLatencies(t *testing.T, path string, count int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	writer, random := bufio.NewWriter(file), rand.New(rand.NewPCG(1, 2))
	for i := range count {
		fmt.Fprintf(writer, "%d, %d, 1, 8192, 0\n", i/10, 100_000+random.Int64N(10_000_000))
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSizeOfDocument: the largest possible document fits, and says what it leaves out.
func TestSizeOfDocument(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	b := Executor{}
	s := b.newSession(workload.Request{Run: results.RunIdentity{Namespace: "n", Name: "r", UID: "u"}, Phase: oltpPhase(8, 0, 1)}, results.KindMeasure,
		nil)
	s.metrics["readOperations"] = 1
	for i := range 400 {
		s.environment[fmt.Sprintf("key.%d", i)] = fmt.Sprintf("%x", random.Uint64())
		s.check(fmt.Sprintf("check-%d", i%30), true, "%s", strings.Repeat("x", 2000))
	}
	noise := make([]int64, 20_000)
	for range 25 {
		for i := range noise {
			noise[i] = random.Int64()
		}
		report, err := json.Marshal(noise)
		if err != nil {
			t.Fatal(err)
		}
		s.details.FIO = append(s.details.FIO, report)
		s.details.JobFiles = append(s.details.JobFiles, strings.Repeat("[job]\nrw=read\n", 1000))
	}
	for range keptSamples {
		s.details.Samples = append(s.details.Samples, fio.Sample{Milliseconds: random.Int64N(1e6), Nanoseconds: random.Int64N(1e9)})
	}
	for i := range 256 {
		s.details.Regions = append(s.details.Regions, Region{i, random.Int64(), random.Int64(), random.Int64(), 63})
	}
	document := s.document(t.Context(), nil)
	if err := document.Validate(); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var details Details
	if err := json.Unmarshal(document.Raw, &details); err != nil {
		t.Fatal(err)
	}
	size := compressedBytes(text)
	t.Logf("%d bytes, %d compressed, omitted: %q", len(text), size, document.Omitted)
	if size > 256<<10 || len(document.Omitted) < 2 || len(details.Regions) != 256 || len(details.Samples) != keptSamples {
		t.Errorf("%d bytes compressed, omitted %q, %d regions, %d samples", size, document.Omitted, len(details.Regions), len(details.Samples))
	}
}

// TestManyDisksAndJobs: however many disks, jobs, checks and notes there are, the document is valid, has the facts about the node and the
// metrics of the phase, and says what it leaves out.
func TestManyDisksAndJobs(t *testing.T) {
	b := Executor{}
	s := b.newSession(workload.Request{Run: results.RunIdentity{Namespace: "n", Name: "r", UID: "u"}, Phase: oltpPhase(8, 0, 1)}, results.KindMeasure,
		nil)
	s.metrics["writeOperations"], s.environment["zfs.version"] = 1, "2.4.0"
	for i := range 64 * 17 {
		s.environment[fmt.Sprintf("data.device.%d.fact-%d", i/17, i%17)] = strings.Repeat("v", 240)
	}
	for job := range 200 {
		for _, metric := range results.Metrics()[:20] {
			s.metrics[fmt.Sprintf("job%d.%s", job, metric.Name)] = 1
		}
	}
	for i := range 80 {
		s.check(fmt.Sprintf("check-%d", i), true, "%s", strings.Repeat("x", 2000))
		s.note("%s", strings.Repeat("n", 2000))
	}
	document := s.document(t.Context(), nil)
	if err := document.Validate(); err != nil {
		t.Fatal(err)
	}
	omitted := strings.Join(document.Omitted, "; ")
	for _, words := range []string{" entries of the environment", "929 metrics of single jobs", " checks that have passed", "48 notes"} {
		if !strings.Contains(omitted, words) {
			t.Errorf("omitted %q, want %q too", omitted, words)
		}
	}
	if document.Environment["zfs.version"] != "2.4.0" || len(document.Environment) < 200 || document.Metrics["writeOperations"] != 1 {
		t.Errorf("%d facts, %d metrics", len(document.Environment), len(document.Metrics))
	}
	failed := append(s.checks, results.Check{Name: "place", Message: "the one that matters"})
	if kept, _ := boundChecks(failed); len(kept) == 0 || kept[len(kept)-1].Name != "place" {
		t.Errorf("%d checks without the one that failed", len(kept))
	}
}

// TestSeeds: seeds are positive, differ from each other and follow the request.
func TestSeeds(t *testing.T) {
	seen := map[int64]bool{}
	for base := range int64(50) {
		first, again := newSeeds(base, "fill"), newSeeds(base, "fill")
		for range 50 {
			seed := first.next()
			if seed <= 0 || seed >= 1<<53 || seen[seed] || again.next() != seed {
				t.Fatalf("seed %d of %d", seed, base)
			}
			seen[seed] = true
		}
	}
	if newSeeds(1, "fill").next() == newSeeds(1, "age").next() {
		t.Error("two phases have the same seeds")
	}
}

func TestMeter(t *testing.T) {
	var shown []results.Progress
	m := newMeter(func(p results.Progress) { shown = append(shown, p) })
	m.stretch("filling", 0, 0.5, 1000, 0)
	m.watch(fio.Usage{WrittenBytes: 500})
	m.stretch("round 2", 0.5, 1, 0, time.Hour)
	m.watch(fio.Usage{})
	m.say(30, "5 tps", time.Minute)
	var percents []int32
	for _, p := range shown {
		percents = append(percents, p.Percent)
	}
	if fmt.Sprint(percents) != "[0 25 50 50 50]" || shown[4].Rate != "5 tps" || shown[4].SecondsLeft != 60 {
		t.Errorf("%v, %+v", percents, shown)
	}
}

// TestMeterAveragesRates: a second in which ZFS writes nothing does not show as a rate of 0.
func TestMeterAveragesRates(t *testing.T) {
	var last results.Progress
	m := newMeter(func(p results.Progress) { last = p })
	m.stretch("filling", 0, 1, 1<<40, 0)
	m.began, m.lastAt, m.last = time.Now().Add(-10*time.Second), time.Now().Add(-10*time.Second), fio.Usage{}
	m.watch(fio.Usage{WrittenBytes: 1000 << 20})
	rate := func() (shown float64) {
		_, _ = fmt.Sscanf(last.Rate, "%f MiB/s", &shown)
		return shown
	}
	if got := rate(); got < 50 || got > 100 {
		t.Errorf("the first rate: %+v", last)
	}
	m.lastAt = time.Now().Add(-time.Second)
	m.watch(fio.Usage{WrittenBytes: 1000 << 20})
	if got := rate(); got < 20 || got > 95 {
		t.Errorf("after a second without writes: %+v", last)
	}
}
