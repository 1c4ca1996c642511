//go:build linux

package engine

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/internal/workload"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// bench is a volume with an executor, for phases one after another.
type bench struct {
	t        *testing.T
	executor Executor
	request  workload.Request
}

func needFIO(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed: apt-get install fio")
	}
}

// newBench returns a bench on an empty directory in memory, with the real fio: on the disk, the writes of other programs would make each
// sync long. Its tests run in parallel, because they mostly wait for fio.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	b := newBenchAlone(t)
	var stat unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &stat); err != nil || int64(stat.Bavail)*stat.Bsize < 512<<20 {
		return b // not enough memory: use the disk
	}
	folder, err := os.MkdirTemp("/dev/shm", "storagebench-test-")
	if err != nil {
		return b
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	b.request.Path = folder
	return b
}

// newBenchAlone returns a bench on the disk. It is for tests that look at counters, which would also count the work of parallel tests.
func newBenchAlone(t *testing.T) *bench {
	t.Helper()
	needFIO(t)
	return &bench{t: t, executor: Executor{Scratch: t.TempDir()}, request: workload.Request{
		Run: results.RunIdentity{Namespace: "lab", Name: "run", UID: "uid-1"}, Seed: 42, VolumeMode: "Filesystem", Path: t.TempDir(),
		VolumeSizeBytes: 64 << 20, Promised: workload.PromisedDirectory,
	}}
}

func (b *bench) execute(phase v1alpha1.Phase) results.PhaseDocument {
	b.t.Helper()
	b.request.Phase = phase
	var shown []results.Progress
	document, err := b.executor.Execute(b.t.Context(), b.request, func(p results.Progress) { shown = append(shown, p) })
	if err != nil {
		b.t.Fatalf("%s: %v", phase.Name, err)
	}
	for i, p := range shown {
		if i > 0 && p.Percent < shown[i-1].Percent {
			b.t.Errorf("%s: progress went back from %d%% to %d%%", phase.Name, shown[i-1].Percent, p.Percent)
		}
	}
	var log strings.Builder
	receipt, err := results.Emit(&log, document)
	if err != nil {
		b.t.Fatalf("%s: %v", phase.Name, err)
	}
	if _, _, err := results.Collect(strings.NewReader(log.String()), receipt); err != nil {
		b.t.Fatalf("%s: %v", phase.Name, err)
	}
	return document
}

// valid executes a phase that has to succeed.
func (b *bench) valid(phase v1alpha1.Phase) (results.PhaseDocument, Details) {
	b.t.Helper()
	document := b.execute(phase)
	for again := 2; again > 0 && document.Reason == results.ReasonNotTogether; again-- { // a busy machine starts one of them late
		b.t.Logf("%s: once more: %s", phase.Name, document.Message)
		document = b.execute(phase)
	}
	if document.Outcome != results.OutcomeValid {
		b.t.Fatalf("%s: %s: %s\n%+v", phase.Name, document.Reason, document.Message, document.Checks)
	}
	var details Details
	if err := json.Unmarshal(document.Raw, &details); err != nil {
		b.t.Fatalf("%s: %v", phase.Name, err)
	}
	for name := range document.Metrics {
		if !workload.CanMeasure(&phase, false, name) {
			b.t.Errorf("%s has %s, and a gate on it would be refused", phase.Name, name)
		}
	}
	return document, details
}

// refused executes a phase that has to be Invalid for a reason, without a number that looks good.
func (b *bench) refused(phase v1alpha1.Phase, reason, says string) results.PhaseDocument {
	b.t.Helper()
	document := b.execute(phase)
	if document.Outcome != results.OutcomeInvalid || document.Reason != reason || !strings.Contains(document.Message, says) {
		b.t.Errorf("%s: %s %s %q, want %s with %q", phase.Name, document.Outcome, document.Reason, document.Message, reason, says)
	}
	for name, value := range document.Metrics {
		if name != "ioErrors" || value == 0 {
			b.t.Errorf("%s: there is still %s=%d", phase.Name, name, value)
		}
	}
	return document
}

func seconds(n float64) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Duration(n * float64(time.Second))}}
}

func block(text string) *v1alpha1.BlockSize {
	return &v1alpha1.BlockSize{Quantity: resource.MustParse(text)}
}

func amount(text string) *v1alpha1.Amount {
	return &v1alpha1.Amount{Quantity: resource.MustParse(text)}
}

func fillPhase(to v1alpha1.Share) v1alpha1.Phase {
	return v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{To: to}}
}

func measurePhase(load v1alpha1.Workload) v1alpha1.Phase {
	return v1alpha1.Phase{Name: "measure", Measure: &v1alpha1.MeasurePhase{Workload: load}}
}

func oltpPhase(workers, updates int32, duration float64) v1alpha1.Phase {
	return measurePhase(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{Workers: workers, UpdatePercent: updates, Duration: seconds(duration)}})
}

func TestFillScanOLTP(t *testing.T) {
	b := newBenchAlone(t)
	filled, _ := b.valid(fillPhase("50%"))
	if got := filled.Metrics["filledBytes"]; got < 31<<20 || got > 32<<20 {
		t.Errorf("filled %d bytes of 50%% of 64 MiB", got)
	}
	info, err := os.Stat(filepath.Join(b.request.Path, "storagebench.data.0000"))
	if err != nil || info.Size() != filled.Metrics["filledBytes"] {
		t.Fatalf("%v, %+v", err, info)
	}
	scanned, details := b.valid(measurePhase(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{Regions: 4}}))
	if len(details.Regions) != 4 || scanned.Metrics["regions"] != 4 || scanned.Metrics["readBytes"] < 31<<20 {
		t.Errorf("%+v, %v", details.Regions, scanned.Metrics)
	}
	if times := scanned.Distributions["scanRegionTime"]; times.Count() != 4 || times.From[0] <= 0 {
		t.Errorf("the times of regions are %+v", times)
	}
	measured, _ := b.valid(oltpPhase(4, 25, 1))
	for _, name := range []string{"readOperationsPerSecond", "writeOperationsPerSecond", "readLatencyP50Nanoseconds",
		"writeLatencyMaxNanoseconds"} {
		if measured.Metrics[name] <= 0 {
			t.Errorf("%s is %d", name, measured.Metrics[name])
		}
	}
	if took := measured.FinishedAt.Sub(measured.StartedAt); took < time.Second || took > 5*time.Second {
		t.Errorf("one second took %s", took)
	}
}

func TestScanOfRandomRegions(t *testing.T) {
	b := newBench(t)
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("16Mi")}})
	load := v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{Regions: 16, RandomRegions: ptr.To[int32](5), BlockSize: block("64Ki")}}
	first, details := b.valid(measurePhase(load))
	if len(details.Regions) != 5 || len(first.Seeds) != 1 || first.Metrics["readBytes"] != 5<<20 {
		t.Errorf("%+v, seeds %v, %d bytes", details.Regions, first.Seeds, first.Metrics["readBytes"])
	}
	_, again := b.valid(measurePhase(load))
	b.request.Seed++
	_, other := b.valid(measurePhase(load))
	order := func(d Details) (indexes [5]int) {
		for i, region := range d.Regions {
			indexes[i] = region.Index
		}
		return indexes
	}
	if order(details) != order(again) || order(details) == order(other) {
		t.Errorf("%v, the same seed %v, another %v", order(details), order(again), order(other))
	}
}
