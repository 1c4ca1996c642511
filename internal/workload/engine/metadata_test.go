//go:build linux

package engine

import (
	"bytes"
	"compress/flate"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/results"
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
		var counted int64
		for _, kind := range []string{"create", "stat", "list", "unlink"} {
			for _, bin := range details.Latencies[kind] {
				counted += bin.Count
			}
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
	short := &metadata{took: map[string]*fio.Latency{"create": {Count: 3}}}
	if err := short.finish(b.executor.newSession(b.request, results.KindMeasure, nil), fio.Sum{}); err == nil ||
		!strings.Contains(err.Error(), "use fewer filesPerWorker") {
		t.Errorf("only creates: %v", err)
	}
}

// TestMetadataFigures: workers with different amounts of work.
func TestMetadataFigures(t *testing.T) {
	crew := make([]*clerk, 2)
	for i, latencies := range [][]int64{{100e6, 300e6}, {200e6}} {
		var latency fio.Latency
		for _, one := range latencies {
			latency.Observe(one)
		}
		crew[i] = &clerk{took: map[string]*fio.Latency{"create": &latency}}
	}
	got := (&metadata{}).figures(crew, 2*time.Second, 0)
	// Three files in 0.6 s of work of two workers.
	if got.operations != 3 || got.metrics["createOperationsPerSecond"] != 10 || got.metrics["metadataOperationsPerSecond"] != 2 {
		t.Errorf("%+v", got)
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
