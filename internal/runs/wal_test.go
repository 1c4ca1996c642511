package runs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/workload"
)

// walRun returns a run with a database whose log is on another volume, either on its own pool or on the pool of the data.
func walRun(poolOf v1alpha1.VolumeName) (*v1alpha1.BenchmarkRun, v1alpha1.Phase) {
	run := &v1alpha1.BenchmarkRun{}
	run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: poolOf}}}
	phase := v1alpha1.Phase{Name: "tx", Volume: "data", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
		Postgres: &v1alpha1.PostgresWorkload{Duration: runstest.Lasting(time.Minute), WALVolume: "log"}}}}
	run.Spec.Phases = []v1alpha1.Phase{phase}
	return run, phase
}

// TestWALOnAVolume: the pod of a database with its log on another volume mounts both volumes, both pools are observed, and the runner knows
// which is which.
func TestWALOnAVolume(t *testing.T) {
	run, phase := walRun("")
	var mounted []string
	for _, one := range runs.PodVolumes(run, phase) {
		mounted = append(mounted, one.Name+" "+one.Path)
	}
	if want := []string{"data /data-data", "log /data-log"}; !slices.Equal(mounted, want) {
		t.Errorf("mounted are %v, want %v", mounted, want)
	}
	if got, want := runs.Companions(run, phase), []runs.Companion{"observe", "observe-log"}; !slices.Equal(got, want) {
		t.Errorf("companions %v, want %v", got, want)
	}
	shared, _ := walRun("data")
	if got, want := runs.Companions(shared, phase), []runs.Companion{"observe"}; !slices.Equal(got, want) {
		t.Errorf("companions on one pool %v, want %v", got, want)
	}
	before := results.RunIdentity{Namespace: "lab", Name: "before", UID: "1"}
	run.Spec.Target.ZFS.Reset = v1alpha1.ResetNone
	pools := runs.Pools{Datasets: map[string]string{"data": "p1/data", "log": "p2/log"}, KeptFrom: map[string]results.RunIdentity{"log": before},
		Disks: map[string][]workload.Disk{"log": {{Path: "/dev/a", Number: "8:0"}}}}
	request, err := runs.Request(run, phase, pools)
	if err != nil || len(request.Parts) > 0 || request.WAL == nil {
		t.Fatalf("%v: %+v", err, request)
	}
	text, err := request.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if request, err = workload.DecodeRequest(text); err != nil {
		t.Fatal(err)
	}
	wal := request.WAL
	if request.Path != "/data-data" || request.Source != "p1/data" || request.KeepsDataOf != nil || wal.Path != "/data-log" ||
		wal.Source != "p2/log" || len(wal.Disks) != 1 || wal.KeepsDataOf == nil || *wal.KeepsDataOf != before || wal.WAL != nil {
		t.Errorf("%+v\n%+v", request, wal)
	}
	delete(pools.Datasets, "log")
	if _, err := runs.Request(run, phase, pools); err == nil {
		t.Error("a log whose dataset is not known could not be verified")
	}
}

// TestJoinedOfWAL: the metrics of the log's disks have its name as a prefix, and those of the data's disks have none. On one pool both are
// the same.
func TestJoinedOfWAL(t *testing.T) {
	began := time.Unix(1000, 0).UTC()
	operation := func(written int64) *v1alpha1.PoolOperation {
		series := poolseries.Document{Version: poolseries.Version, StartedAt: began, After: &poolseries.Space{AllocatedBytes: written},
			RequestSizes: []poolseries.Histogram{{Bounds: []int64{8192}, Columns: map[string][]int64{"sync_write_ind": {written}}}},
			Series:       poolseries.Series{OffsetMilliseconds: []int64{0, 10_000}}, Vdevs: []poolseries.Vdev{{Name: "a", Disk: true,
				ReadOperations: []int64{0, 0}, WriteOperations: []int64{0, 0}, ReadBytes: []int64{0, 0}, WriteBytes: []int64{0, 10 * written}}}}
		made := &v1alpha1.PoolOperation{}
		var err error
		if made.Status.Data, made.Status.DataDigest, err = series.Pack(); err != nil {
			t.Fatal(err)
		}
		made.Status.Outcome = v1alpha1.OutcomeCancelled
		return made
	}
	for name, c := range map[string]struct {
		poolOf     v1alpha1.VolumeName
		companions map[runs.Companion]*v1alpha1.PoolOperation
		data, wal  int64
		own        bool
	}{
		"two pools":     {"", map[runs.Companion]*v1alpha1.PoolOperation{"observe": operation(300), "observe-log": operation(50)}, 300, 50, true},
		"one pool":      {"data", map[runs.Companion]*v1alpha1.PoolOperation{"observe": operation(350)}, 350, 350, true},
		"the log alone": {"", map[runs.Companion]*v1alpha1.PoolOperation{"observe-log": operation(50)}, 0, 50, false},
	} {
		run, _ := walRun(c.poolOf)
		received := &results.PhaseDocument{Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: "lab", Name: "r", UID: "u"},
			Phase: "tx", Kind: results.KindMeasure, Outcome: results.OutcomeValid, StartedAt: began, FinishedAt: began.Add(10 * time.Second),
			Metrics: map[string]int64{"transactionsPerSecond": 7}}
		joined, err := runs.Joined(runs.State{Run: run, Phases: []runs.PhaseState{{Received: received, Companions: c.companions}}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		metrics, sizes := joined.Document.Metrics, joined.Document.Distributions
		if metrics["diskWrittenBytesPerSecond"] != c.data || metrics["wal.diskWrittenBytesPerSecond"] != c.wal ||
			metrics["wal.poolAllocatedBytes"] != c.wal || metrics["transactionsPerSecond"] != 7 ||
			sizes["diskWriteRequestSize"].Count() != c.data || sizes["wal.diskWriteRequestSize"].Count() != c.wal {
			t.Errorf("%s: %v %v", name, metrics, sizes)
		}
		if _, own := metrics["poolAllocatedBytes"]; own != c.own || (joined.Observed != nil) != c.own {
			t.Errorf("%s: %v", name, metrics)
		}
	}
}
