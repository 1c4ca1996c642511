//go:build linux

package engine

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

func metadataPhase(change func(*v1alpha1.MetadataWorkload)) v1alpha1.Phase {
	given := &v1alpha1.MetadataWorkload{Workers: 2, FilesPerWorker: 150, Duration: seconds(1)}
	change(given)
	return measurePhase(v1alpha1.Workload{Metadata: given})
}

// TestMetadata measures real files, alone and in rounds, and leaves none.
func TestMetadata(t *testing.T) {
	b := newBench(t)
	for _, sync := range []string{"None", "File"} {
		document, details := b.valid(metadataPhase(func(m *v1alpha1.MetadataWorkload) { m.Sync = sync; m.FilesPerWorker = 20 }))
		counted := toldOf(details, "create", "stat", "list", "unlink")
		for _, kind := range []string{"create", "stat", "list", "unlink"} {
			rate, latency := document.Metrics[kind+"OperationsPerSecond"], document.Metrics[kind+"LatencyMeanNanoseconds"]
			// Two workers that do nothing else have this rate.
			if product := float64(rate) * float64(latency) / 2e9; rate == 0 || latency == 0 || product < 0.95 || product > 1.05 {
				t.Errorf("%s: %d a second, each of %d ns", kind, rate, latency)
			}
		}
		if all := document.Metrics["metadataOperations"]; all != counted || all < 100 {
			t.Errorf("%d operations, and the latencies of %d", all, counted)
		}
		if lasted := time.Duration(document.Metrics["durationNanoseconds"]); lasted < time.Second || lasted > 2*time.Second {
			t.Errorf("measured for %s, one second was asked for", lasted)
		}
		for name := range document.Metrics {
			if _, known := results.LookupMetric(name); !known {
				t.Errorf("unknown metric %s", name)
			}
		}
		if _, err := os.Lstat(filepath.Join(b.request.Path, "storagebench.metadata")); !os.IsNotExist(err) {
			t.Errorf("the files are left: %v", err)
		}
	}
	b.refused(metadataPhase(func(m *v1alpha1.MetadataWorkload) { m.FilesPerWorker = 1 << 30 }), ReasonVolumeFull, "use fewer or smaller files")
	short := &metadata{workers: 2, rounds: []latencies{observed("create", 3)}}
	s := b.executor.newSession(b.request, results.KindMeasure, nil)
	s.measured = make([]results.Interval, 1)
	if err := short.finish(s, fio.Sum{}); err == nil || !strings.Contains(err.Error(), "use fewer filesPerWorker") {
		t.Errorf("only creates: %v", err)
	}
}

// observed returns the latencies of operations of one kind that took these times.
func observed(kind string, nanoseconds ...int64) latencies {
	l := latencies{}
	for _, one := range nanoseconds {
		l.of(kind).Observe(one)
	}
	return l
}

// TestMetadataFigures: the workers do different amounts of work, and only the last two of three rounds count.
func TestMetadataFigures(t *testing.T) {
	m := &metadata{workers: 2, folder: filepath.Join(t.TempDir(), "files"), crew: make([]*clerk, 2)}
	var last figures
	for _, round := range [][2][]int64{{{5}, {6}}, {{100e6, 300e6}, {200e6}}, {{200e6}, {200e6, 200e6}}} {
		for i, creates := range round {
			m.crew[i] = &clerk{metadata: m, took: observed("create", creates...)}
			for _, kind := range []string{"unlink", "stat", "list"} {
				m.crew[i].took.add(observed(kind, 1e6))
			}
		}
		last = m.figures(1500*time.Millisecond, 500*time.Millisecond)
	}
	if last.operations != 9 || last.throughput != 4.5 || last.waited != 606*time.Millisecond || last.sum.Duration != 2*time.Second {
		t.Errorf("the last round: %+v", last)
	}
	s := Executor{}.newSession(workload.Request{}, results.KindMeasure, nil)
	s.measured = make([]results.Interval, 2)
	if err := m.finish(s, fio.Sum{Duration: 4 * time.Second}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{
		"metadataOperations": 18, "metadataOperationsPerSecond": 5, // 4.5
		"createOperationsPerSecond":    10, // six files in 1.2 s of work of two workers
		"unlinkOperationsPerSecond":    2000,
		"createLatencyMeanNanoseconds": 200e6, "createLatencyMaxNanoseconds": 300e6,
	} {
		if got := s.metrics[name]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if told := s.distributions["createLatency"]; told.Count() != 6 {
		t.Errorf("%d creates in the distribution, want 6", told.Count())
	}
}

// inFakeTime runs a test whose time passes only in pauses, however busy the machine is.
func inFakeTime(t *testing.T, do func(t *testing.T, b *bench)) {
	t.Helper()
	b := newBench(t)
	b.executor.judgeLoad = func(observe.Load) (string, string) { return "", "" } // of real time
	synctest.Test(t, func(t *testing.T) {
		b.t = t
		do(t, b)
	})
}

// TestMetadataHasNoBursts: creates take all of the time, and the rate is the same, no matter at which file the measurement ends.
func TestMetadataHasNoBursts(t *testing.T) {
	inFakeTime(t, func(t *testing.T, b *bench) {
		const workers, files, slow = 2, 100, 2 * time.Millisecond
		b.executor.delay = func(kind string) {
			if kind == "create" {
				_ = pause(t.Context(), slow) // the test ends with it
			}
		}
		const want = workers * (3 + 1.0/files) / 0.002 // each create has an unlink, a stat and a hundredth of a list
		for _, long := range []float64{0.5, 0.55, 0.59, 0.61} {
			document, _ := b.valid(metadataPhase(func(m *v1alpha1.MetadataWorkload) {
				m.Workers, m.FilesPerWorker, m.Duration = workers, files, seconds(long)
			}))
			if got := float64(document.Metrics["metadataOperationsPerSecond"]); math.Abs(got/want-1) > 0.01 {
				t.Errorf("in %.2f s: %.0f operations a second, want %.0f", long, got, want)
			}
			if took := document.Metrics["durationNanoseconds"]; math.Abs(float64(took)/1e9-long) > 0.01 {
				t.Errorf("in %.2f s: measured for %d ns", long, took)
			}
		}
	})
}

// TestMetadataMix: all files are there when the measurement begins. At each moment no worker has begun more operations of one kind than of
// another, except for its current file, and each second has the same number of operations.
func TestMetadataMix(t *testing.T) {
	inFakeTime(t, func(t *testing.T, b *bench) {
		const workers, files = 2, 40
		var lock sync.Mutex
		begun := map[string]int{}
		there, apart, unlisted := -1, 0, 0
		b.executor.delay = func(kind string) {
			lock.Lock()
			if there < 0 {
				there = len(filesOf(t, b))
			}
			begun[kind]++
			changes := []int{begun["unlink"], begun["create"], begun["stat"]}
			apart = max(apart, slices.Max(changes)-slices.Min(changes))
			unlisted = max(unlisted, begun["stat"]-files*begun["list"], files*begun["list"]-begun["stat"])
			lock.Unlock()
			_ = pause(t.Context(), map[string]time.Duration{"unlink": 3, "create": 5, "stat": 1, "list": 7}[kind]*time.Millisecond)
		}
		_, details := b.valid(metadataPhase(func(m *v1alpha1.MetadataWorkload) {
			m.Workers, m.FilesPerWorker, m.Duration = workers, files, seconds(2.5)
		}))
		if there != workers*files {
			t.Errorf("%d files were there when the measurement began, want %d", there, workers*files)
		}
		if apart > workers || unlisted > workers*files {
			t.Errorf("%v: unlinks, creates and lookups were up to %d apart, and lists and lookups up to %d", begun, apart, unlisted)
		}
		if points := details.Series.Points; len(points) != 2 || points[1].Operations < 600 ||
			math.Abs(float64(points[0].Operations)/float64(points[1].Operations)-1) > 0.02 {
			t.Errorf("the seconds differ: %+v", points)
		}
		for kind, count := range begun {
			if told := toldOf(details, kind); told != int64(count) {
				t.Errorf("%d latencies of the kind %s, and %d were begun", told, kind, count)
			}
		}
	})
}

// filesOf returns the paths of the files of all workers.
func filesOf(t *testing.T, b *bench) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(b.request.Path, "storagebench.metadata", "*", "*", "file.*"))
	if err != nil {
		t.Error(err)
	}
	return found
}

// toldOf is how many latencies of some kinds are in the details.
func toldOf(details Details, kinds ...string) (count int64) {
	for _, kind := range kinds {
		for _, bin := range details.Latencies[kind] {
			count += bin.Count
		}
	}
	return count
}

// TestMetadataRounds: rounds are added up, and each continues where the previous one stopped: here between an unlink and a create.
func TestMetadataRounds(t *testing.T) {
	inFakeTime(t, func(t *testing.T, b *bench) {
		var lock sync.Mutex
		var begun []string
		b.executor.delay = func(kind string) {
			lock.Lock()
			begun = append(begun, kind)
			lock.Unlock()
			if kind == "unlink" {
				_ = pause(t.Context(), 10*time.Millisecond) // the test ends with it
			}
		}
		var synced, there []int // before and after each round
		b.executor.sync = func(*volume) error {
			synced, there = append(synced, len(begun)), append(there, len(filesOf(t, b)))
			return nil
		}
		phase := metadataPhase(func(m *v1alpha1.MetadataWorkload) { m.FilesPerWorker, m.Duration = 10, seconds(0.5) })
		phase.Measure.SteadyState = &v1alpha1.SteadyState{WindowRounds: 3}
		document, details := b.valid(phase)
		m, all := document.Metrics, int64(len(begun))
		if m["rounds"] != 3 || len(document.Measured) != 3 || len(document.Seeds) != 3 || m["durationNanoseconds"] != 1.5e9 {
			t.Errorf("%d rounds of together %d ns, with the seeds %v", m["rounds"], m["durationNanoseconds"], document.Seeds)
		}
		if told := toldOf(details, "create", "stat", "list", "unlink"); m["metadataOperations"] != all || told != all {
			t.Errorf("%d operations in all rounds, want %d, and the latencies of %d", m["metadataOperations"], all, told)
		}
		if got, want := m["metadataOperationsPerSecond"], perSecond(all, 1500*time.Millisecond); got != want {
			t.Errorf("%d operations a second, want %d", got, want)
		}
		if want := []int{20, 18, 18, 18, 18, 18}; !slices.Equal(there, want) || begun[synced[1]] != "create" {
			t.Errorf("%v files were there before and after each round, want %v; the second one began with %s", there, want, begun[synced[1]])
		}
		if left := filesOf(t, b); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

// TestMetadataStops: a worker can be stopped after each operation, and continues with the next one. Each turn replaces a file with a new
// one.
func TestMetadataStops(t *testing.T) {
	const files = 102
	var done []string
	m := &metadata{files: files, size: 4 << 10, folder: t.TempDir(), delay: func(kind string) { done = append(done, kind) }}
	c := m.newClerk(0, 1)
	if err := c.populate(t.Context(), func() error { return nil }); err != nil || len(done) > 0 {
		t.Fatalf("%v, %v", err, done)
	}
	contents := map[string]bool{}
	var want []string
	for slot := range 2 * files {
		path := c.path(slot % files)
		before, err := os.ReadFile(path)
		if err != nil || len(before) != 4<<10 {
			t.Fatalf("%d bytes, %v", len(before), err)
		}
		contents[string(before)] = true
		turn := []string{"unlink", "create", "stat"}
		if slot%files == 99 || slot%files == files-1 {
			turn = append(turn, "list")
		}
		if slot == files {
			c.randomise(2) // as a new round does
		}
		for range turn {
			if err := c.work(t.Context(), time.Time{}); err != nil {
				t.Fatalf("after %v: %v", done, err)
			}
		}
		want = append(want, turn...)
	}
	if !slices.Equal(done, want) {
		t.Errorf("%v, want %v", done, want)
	}
	if len(contents) != 2*files {
		t.Errorf("%d contents in %d files", len(contents), 2*files)
	}
}

// TestMetadataPopulationEnds: workers stop making files when the phase ends.
func TestMetadataPopulationEnds(t *testing.T) {
	m := &metadata{files: 1000, size: 512, folder: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.newClerk(0, 1).populate(ctx, func() error { return nil }); !errors.Is(err, context.Canceled) || m.done.Load() != 1 {
		t.Errorf("%v after %d files", err, m.done.Load())
	}
}

// TestMetadataDeadline: files that cannot be made in time for the measurement are refused before the deadline.
func TestMetadataDeadline(t *testing.T) {
	b := newBench(t)
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for long, want := range map[float64]string{0.3: "", 3600: ReasonNotPossible} {
		b.request.Phase = metadataPhase(func(m *v1alpha1.MetadataWorkload) { m.FilesPerWorker, m.Duration = 20, seconds(long) })
		document, err := b.executor.Execute(limited, b.request, nil)
		if err != nil || document.Reason != want || want != "" && !strings.Contains(document.Message, "write a longer deadline") {
			t.Errorf("%.1f s: %s %s, %v", long, document.Reason, document.Message, err)
		}
	}
	for _, c := range []struct {
		name        string
		made, all   int64
		spent, left time.Duration
		want        bool
	}{
		{"in time", 1000, 2000, time.Minute, 2 * time.Minute, false},
		{"in time if they become faster", 1000, 3000, time.Minute, 90 * time.Second, false},
		{"never", 1000, 4000, time.Minute, 80 * time.Second, true},
		{"too early to tell", 1, 64_000_000, time.Second, time.Hour, false},
		{"slow from the start", 1, 64_000_000, time.Hour, time.Hour, true},
		{"no time left", 1, 2, time.Millisecond, -time.Second, true},
	} {
		if got := late(c.made, c.all, c.spent, c.left); got != c.want {
			t.Errorf("%s: late is %v", c.name, got)
		}
	}
	phase := metadataPhase(func(*v1alpha1.MetadataWorkload) {})
	once := leastTime(phase, time.Minute)
	phase.Measure.SteadyState = &v1alpha1.SteadyState{WindowRounds: 4}
	if rounds := leastTime(phase, time.Minute); once != time.Minute || rounds != 4*time.Minute {
		t.Errorf("%s for a round, and %s for four", once, rounds)
	}
	if phase.Measure.Until = v1alpha1.UntilOperationEnds; leastTime(phase, time.Minute) != 0 {
		t.Error("an operation may end at once")
	}
}

// TestMetadataContent: files that compress or that are alike would take less space than their size says, and so less time.
func TestMetadataContent(t *testing.T) {
	m := &metadata{size: 16 << 10}
	blocks := map[string]bool{}
	for worker := range 3 {
		c := m.newClerk(worker, 4711)
		for range 5 {
			c.refresh()
			var compressed bytes.Buffer
			writer, err := flate.NewWriter(&compressed, flate.BestCompression)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := writer.Write(c.content); err != nil || writer.Close() != nil {
				t.Fatal(err)
			}
			if compressed.Len() < len(c.content) {
				t.Fatalf("%d bytes of content compress to %d", len(c.content), compressed.Len())
			}
			for at := 0; at < len(c.content); at += 4 << 10 {
				blocks[string(c.content[at:at+4<<10])] = true
			}
		}
	}
	if want := 3 * 5 * 4; len(blocks) != want {
		t.Errorf("%d different blocks, want %d", len(blocks), want)
	}
	if a, b := m.newClerk(1, 1), m.newClerk(1, 1); !bytes.Equal(a.content, b.content) {
		t.Error("the same seed gives other files")
	}
}
