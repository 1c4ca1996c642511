//go:build linux

package engine

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/test/program"
)

// slowFiles gives fio files whose reads (r), writes (w) or syncs (s) take a known time. More variables of slow.c limit which parts of the
// files are slow.
func (b *bench) slowFiles(kinds string, usual, rarely time.Duration, every int, more ...string) {
	b.t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		b.t.Skip("there is no C compiler: install gcc")
	}
	library := filepath.Join(b.t.TempDir(), "slow.so")
	if said, err := exec.CommandContext(b.t.Context(), compiler, "-shared", "-fPIC", "-O1", "-o", library, "testdata/slow.c", "-ldl").
		CombinedOutput(); err != nil {
		b.t.Fatalf("compile slow.c: %v: %s", err, said)
	}
	path := filepath.Join(b.t.TempDir(), "fio")
	if err := program.Script(path, fmt.Sprintf("#!/bin/sh\nexport LD_PRELOAD=%s SLOW_PATH=%s SLOW_KINDS=%s SLOW_MICROSECONDS=%d SLOW_EVERY=%d "+
		"SLOW_RARELY_MICROSECONDS=%d %s\nexec fio \"$@\"\n", library, b.request.Path, kinds, usual.Microseconds(), every,
		rarely.Microseconds(), strings.Join(more, " "))); err != nil {
		b.t.Fatal(err)
	}
	b.executor.FIO = path
}

// near checks that a latency is the injected one plus what this machine adds: some milliseconds if it is busy, and more in the tail.
func near(t *testing.T, document results.PhaseDocument, name string, want time.Duration) {
	t.Helper()
	got, known := document.Metrics[name]
	low, high := want*98/100, want*125/100+5*time.Millisecond
	if strings.Contains(name, "P9") {
		high = 5 * want
	}
	if !known || got < low.Nanoseconds() || got > high.Nanoseconds() {
		t.Errorf("%s is %s, %s was injected", name, time.Duration(got), want)
	}
}

// rateNear checks that the rate is that of this number of workers that each wait for their operation. Other work on the machine keeps them
// from it for a part of the time, and then they are as busy as the rate says.
func rateNear(t *testing.T, document results.PhaseDocument, rate, latency string, workers int) {
	t.Helper()
	product := float64(document.Metrics[rate]) * float64(document.Metrics[latency]) / 1e9
	busy := float64(document.Metrics["workersBusyPartsPerMillion"]) / 1e6
	rounded := 0.5 * float64(document.Metrics[latency]) / 1e9 // a rate is a whole number
	if math.Abs(product/float64(workers)-busy) > 0.01+rounded/float64(workers) {
		t.Errorf("%s of %d and %s of %d ns are %.2f workers, and there are %d, busy for %.3f of the time", rate, document.Metrics[rate], latency,
			document.Metrics[latency], product, workers, busy)
	}
	if busy < 0.8 || busy > 1 {
		t.Errorf("the workers were busy for %.3f of the time", busy)
	}
}

// TestKnownLatencies injects delays into the files below fio, and reads them back as means, percentiles and rates.
func TestKnownLatencies(t *testing.T) {
	const usual, rarely, every = 10 * time.Millisecond, 50 * time.Millisecond, 10
	mean := (usual*(every-1) + rarely) / every
	for _, c := range []struct {
		name, kinds   string
		phase         v1alpha1.Phase
		latency, rate string
		workers       int
	}{
		{"oltp reads", "r", oltpPhase(4, 0, 5), "read", "readOperationsPerSecond", 4},
		{"redo, dsync", "w", redoPhase(4, "dsync", 5), "write", "writeOperationsPerSecond", 4},
		{"redo, fdatasync", "s", redoPhase(4, "fdatasync", 5), "sync", "syncOperationsPerSecond", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
			if c.kinds == "r" {
				b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
			}
			b.slowFiles(c.kinds, usual, rarely, every)
			document, _ := b.valid(c.phase)
			near(t, document, c.latency+"LatencyMeanNanoseconds", mean)
			near(t, document, c.latency+"LatencyP50Nanoseconds", usual)
			near(t, document, c.latency+"LatencyP95Nanoseconds", rarely)
			near(t, document, c.latency+"LatencyP99Nanoseconds", rarely)
			told := document.Distributions[c.latency+"Latency"]
			above, _ := told.Over((rarely - time.Millisecond).Nanoseconds())
			below, _ := told.Below(usual.Nanoseconds())
			if above < 100_000-20_000 || above > 100_000+60_000 || below > 1000 || told.Count() < 100 {
				t.Errorf("of %d operations %d ppm took %s and more, a tenth did, and %d ppm less than %s, none did", told.Count(), above, rarely, below,
					usual)
			}
			if c.kinds != "s" { // a sync has a write before it
				rateNear(t, document, c.rate, c.latency+"LatencyMeanNanoseconds", c.workers)
			}
			if c.kinds != "r" {
				if share := document.Metrics["shareOver20MillisecondsPartsPerMillion"]; share < 100_000-20_000 {
					t.Errorf("%d ppm took longer than 20 ms, at least a tenth did", share)
				}
			}
		})
	}
}

// TestKnownRequestSizes: of the requests that fio made with known sizes, the mode and the shares are read back.
func TestKnownRequestSizes(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed: apt-get install fio")
	}
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), "fio", "--name=sizes", "--rw=randwrite", "--filename=data", "--filesize=32m", "--io_size=24m",
		"--bssplit=2k/60:8k/30:64k/10", "--randseed=7", "--norandommap", "--write_lat_log=sizes", "--thread")
	command.Dir = folder
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	log, err := os.ReadFile(filepath.Join(folder, "sizes_lat.1.log"))
	if err != nil {
		t.Fatal(err)
	}
	rows, counts := []int64{512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}, make([]int64, 9)
	for line := range strings.Lines(string(log)) { // milliseconds, latency, direction, size
		var milliseconds, latency, direction, bytes int64
		if _, err := fmt.Sscanf(line, "%d, %d, %d, %d,", &milliseconds, &latency, &direction, &bytes); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		counts[slices.Index(rows, bytes)]++
	}
	sizes := results.Requests(rows, counts)
	mode, _ := sizes.Mode()
	small, _ := sizes.Below(8 << 10)
	most, _ := sizes.Below(64 << 10)
	if mode != 2048 || sizes.Count() < 1000 || math.Abs(float64(small)-600_000) > 50_000 || math.Abs(float64(most)-900_000) > 30_000 {
		t.Errorf("of %d requests most have %d bytes, %d ppm are below 8 KiB, %d ppm below 64 KiB: %v", sizes.Count(), mode, small, most, sizes)
	}
}

// TestKnownMetadataLatencies makes each operation on files take a known time: the measured length of a pause, which is longer on a busy
// machine.
func TestKnownMetadataLatencies(t *testing.T) {
	b := newBench(t)
	usual := map[string]time.Duration{"create": 8 * time.Millisecond, "stat": 4 * time.Millisecond, "list": 30 * time.Millisecond,
		"unlink": 6 * time.Millisecond}
	var lock sync.Mutex
	took := map[string][]time.Duration{}
	var creates atomic.Int64
	b.executor.delay = func(kind string) {
		long := usual[kind]
		if kind == "create" && creates.Add(1)%5 == 0 {
			long = 40 * time.Millisecond
		}
		begun := time.Now()
		_ = pause(t.Context(), long) // the test ends with it
		lock.Lock()
		defer lock.Unlock()
		took[kind] = append(took[kind], time.Since(begun))
	}
	document, _ := b.valid(metadataPhase(func(m *v1alpha1.MetadataWorkload) {
		m.Workers, m.FilesPerWorker, m.Duration = 4, 10, seconds(6)
	}))
	for kind, least := range usual {
		slices.Sort(took[kind])
		var sum time.Duration
		for _, one := range took[kind] {
			sum += one
		}
		if len(took[kind]) == 0 || took[kind][0] < least {
			t.Fatalf("%d operations of the kind %s had a pause, all of %s or more", len(took[kind]), kind, least)
		}
		near(t, document, kind+"LatencyMeanNanoseconds", sum/time.Duration(len(took[kind])))
	}
	near(t, document, "createLatencyP50Nanoseconds", took["create"][len(took["create"])/2])
	near(t, document, "createLatencyP95Nanoseconds", 40*time.Millisecond)
	if busy := document.Metrics["workersBusyPartsPerMillion"]; busy < 950_000 {
		t.Errorf("the workers were busy for %d ppm of the time", busy)
	}
}

// TestClosedLoop: latencies that cannot have fitted into the time of the workers make a phase Invalid. A note says if the workers spent
// much of their time elsewhere.
func TestClosedLoop(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("4Mi")}})
	// 1000 reads in 0.2 s by two workers take at most 0.4 ms each.
	report := func(mean int) string {
		return reportOf(strings.NewReplacer(`"mean":200.0`, fmt.Sprintf(`"mean":%d.0`, mean), `"max":300`, `"max":900000`).Replace(goodReads)) +
			"sleep 0.3"
	}
	for _, c := range []struct {
		mean int
		busy int64
		note bool
	}{{400_000, 1_000_000, false}, {330_000, 825_000, false}, {300_000, 750_000, true}, {200, 500, true}} {
		b.fakeFIO(report(c.mean))
		document, _ := b.valid(oltpPhase(2, 0, 0.2))
		noted := strings.Contains(strings.Join(document.Notes, "\n"), "the node's CPU")
		if busy := document.Metrics["workersBusyPartsPerMillion"]; busy != c.busy || noted != c.note {
			t.Errorf("reads of %d ns: busy for %d ppm, noted: %v", c.mean, busy, noted)
		}
	}
	b.fakeFIO(report(420_000))
	b.refused(oltpPhase(2, 0, 0.2), ReasonLoopBroken, "on average 2.10 operations were under way, but at most 2 are possible")
}

// TestLoopOf: how many operations the jobs of a file can have under way.
func TestLoopOf(t *testing.T) {
	for text, want := range map[string]int{
		"[a]\nrw=read\nsize=1m\n":                                                       1,
		"[a]\nnumjobs=4\nsize=1m\n[b]\nnumjobs=2\nsize=1m\n":                            6,
		"[a]\nnumjobs=4\nsize=1m\n[b]\nstonewall\nnumjobs=2\nsize=1m\n":                 4,
		"[a]\nnumjobs=2\nioengine=libaio\niodepth=16\nsize=1m\n":                        32,
		"[a]\nnumjobs=2\niodepth=16\nsize=1m\n":                                         2,
		"[global]\nioengine=io_uring\niodepth=8\n[a]\nsize=1m\n[b]\niodepth=1\nsize=1m": 9,
	} {
		parsed, err := fio.ParseUserFile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := loopOf(parsed.On(fio.Place{Folder: os.TempDir()}, 1), true); got.workers != want {
			t.Errorf("%q: %d, want %d", text, got.workers, want)
		}
	}
}
