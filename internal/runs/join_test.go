package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

// fillRun is a run with one phase.
func fillRun() *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "ageing-0a1b2c3d-000", Namespace: "lab", UID: "run-uid"},
		Spec: v1alpha1.BenchmarkRunSpec{NodeName: "n1", Phases: []v1alpha1.Phase{{Name: "fill", Fill: &v1alpha1.FillPhase{To: "80%"},
			Deadline: lasting(time.Hour), StartDeadline: lasting(time.Minute)}}}}
}

// TestJoined: the result of a phase on a pool has the results of its companions, or says that they are missing.
func TestJoined(t *testing.T) {
	began := time.Unix(1000, 0).UTC()
	series := poolseries.Document{Version: poolseries.Version, After: &poolseries.Space{AllocatedBytes: 77}, Missing: []string{"gang blocks"}}
	data, digest, err := series.Pack()
	if err != nil {
		t.Fatal(err)
	}
	operation := func(action v1alpha1.PoolAction, outcome, reason string) *v1alpha1.PoolOperation {
		made := &v1alpha1.PoolOperation{Spec: v1alpha1.PoolOperationSpec{Action: action}}
		made.Status.Outcome, made.Status.StartedAt = outcome, &metav1.Time{Time: began}
		kstatus.SetStalled(&made.Status.Conditions, 1, reason, "in words")
		return made
	}
	scrub := v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	counted := operation(v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}, v1alpha1.OutcomeCancelled, "Cancelled")
	counted.Status.Data, counted.Status.DataDigest = data, digest
	spoilt := counted.DeepCopy()
	spoilt.Status.DataDigest = "sha256:0"
	scrubbed := operation(scrub, v1alpha1.OutcomeCancelled, "Cancelled")
	scrubbed.Status.Metrics = []v1alpha1.OperationMetric{{Name: "scannedBytes", Value: 9}, {Name: "readBytes", Value: 1}}
	short := scrubbed.DeepCopy()
	short.Status.FinishedAt = &metav1.Time{Time: began.Add(time.Second)}
	for name, test := range map[string]struct {
		observed, under *v1alpha1.PoolOperation
		outcome         results.Outcome
		says            string
		kept            bool
	}{
		"both":                    {counted, scrubbed, results.OutcomeValid, "gang blocks", true},
		"the observation is gone": {nil, scrubbed, results.OutcomeValid, "was deleted", false},
		"the observation is late": {operation(v1alpha1.PoolAction{}, "", "Running"), scrubbed, results.OutcomeValid, "did not finish", false},
		"the observation has a hole": {operation(v1alpha1.PoolAction{}, v1alpha1.OutcomeFailed, "Interrupted"), scrubbed, results.OutcomeValid,
			"in words", false},
		"the agent was restarted": {operation(v1alpha1.PoolAction{}, v1alpha1.OutcomeFailed, v1alpha1.ReasonAgentRestarted), scrubbed,
			results.OutcomeInvalid, "in words", false},
		"the vdevs changed meanwhile": {operation(v1alpha1.PoolAction{}, v1alpha1.OutcomeFailed, v1alpha1.ReasonObservationInterrupted), scrubbed,
			results.OutcomeValid, "in words", false},
		"the observation is spoilt": {spoilt, scrubbed, results.OutcomeValid, "digest", false},
		"the scrub is gone":         {counted, nil, results.OutcomeInvalid, "", true},
		"the scrub was too short":   {counted, short, results.OutcomeInvalid, "", true},
	} {
		run := fillRun()
		run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}
		spec := run.Spec.Phases[0]
		spec.Fill, spec.Measure = nil, &v1alpha1.MeasurePhase{Operate: &scrub}
		received := &results.PhaseDocument{Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: "lab", Name: "r", UID: "u"},
			Phase: "fill",
			Kind:  results.KindMeasure, Outcome: results.OutcomeValid, StartedAt: began, FinishedAt: began.Add(10 * time.Second),
			Metrics: map[string]int64{"readBytes": 5}}
		companions := map[Companion]*v1alpha1.PoolOperation{}
		if test.observed != nil {
			companions[Observation] = test.observed
		}
		if test.under != nil {
			companions[Beside] = test.under
		}
		run.Spec.Phases[0] = spec
		joined, err := Joined(State{Run: run, Phases: []PhaseState{{Received: received, Companions: companions}}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		document, reason := joined.Document, ""
		switch {
		case test.observed != nil && len(test.observed.Status.Conditions) > 0 &&
			test.observed.Status.Conditions[0].Reason == v1alpha1.ReasonAgentRestarted:
			reason = v1alpha1.ReasonAgentRestarted
		case test.outcome == results.OutcomeInvalid:
			reason = v1alpha1.ReasonOperationDidNotOverlap
		}
		if document.Outcome != test.outcome || document.Reason != reason ||
			!strings.Contains(strings.Join(document.Omitted, "\n"), test.says) || (joined.Observed != nil) != test.kept {
			t.Errorf("%s: %+v", name, document)
		}
		if _, known := document.Metrics["poolAllocatedBytes"]; known != test.kept {
			t.Errorf("%s: metrics %v", name, document.Metrics)
		}
		if test.under == scrubbed && (document.Metrics["scannedBytes"] != 9 || document.Metrics["readBytes"] != 5 ||
			document.Metrics["besidePartsPerMillion"] != 1_000_000) {
			t.Errorf("%s: metrics %v", name, document.Metrics)
		}
		if len(received.Metrics) != 1 || len(received.Omitted) != 0 {
			t.Errorf("%s: the received document was changed", name)
		}
		if _, _, _, err := results.StoredPhase(joined.Text, joined.Digest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnlyWhatLastsHasAPart: a snapshot has no share of the measured time, not a share of 0.
func TestOnlyWhatLastsHasAPart(t *testing.T) {
	began := time.Unix(1000, 0).UTC()
	for name, c := range map[string]struct {
		action v1alpha1.PoolAction
		told   bool
	}{
		"a snapshot":           {v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{}}, false},
		"a scrub":              {v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}, true},
		"the end of a dataset": {v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{}}, true},
	} {
		operation := &v1alpha1.PoolOperation{Spec: v1alpha1.PoolOperationSpec{Action: c.action}}
		operation.Status.Outcome, operation.Status.StartedAt = v1alpha1.OutcomeSucceeded, &metav1.Time{Time: began}
		document := &results.PhaseDocument{Outcome: results.OutcomeValid, StartedAt: began, FinishedAt: began.Add(10 * time.Second),
			Metrics: map[string]int64{}, Environment: map[string]string{}}
		joinBeside(document, operation, v1alpha1.MeasurePhase{})
		if _, told := document.Metrics["besidePartsPerMillion"]; told != c.told || document.Outcome != results.OutcomeValid {
			t.Errorf("%s: %+v", name, document)
		}
	}
}

// TestJoinedOfWorkloads: the metrics of a pool's disks are added for the workloads on that pool, and for no others.
func TestJoinedOfWorkloads(t *testing.T) {
	operation := func(reads int64) *v1alpha1.PoolOperation {
		series := poolseries.Document{Version: poolseries.Version, StartedAt: start, After: &poolseries.Space{AllocatedBytes: reads},
			Gang:         &poolseries.Gang{Writes: reads / 100},
			RequestSizes: []poolseries.Histogram{{Bounds: []int64{8192}, Columns: map[string][]int64{"sync_read_ind": {reads}}}},
			Series:       poolseries.Series{OffsetMilliseconds: []int64{0, 10_000}}, Vdevs: []poolseries.Vdev{{Name: "a", Disk: true,
				ReadOperations: []int64{0, 10 * reads}, WriteOperations: []int64{0, 0}, ReadBytes: []int64{0, 10 * reads * 4096}, WriteBytes: []int64{0, 0}}}}
		made := &v1alpha1.PoolOperation{}
		var err error
		if made.Status.Data, made.Status.DataDigest, err = series.Pack(); err != nil {
			t.Fatal(err)
		}
		made.Status.Outcome = v1alpha1.OutcomeCancelled
		return made
	}
	run := fillRun()
	run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}
	run.Spec.Phases[0].Fill, run.Spec.Phases[0].Measure = nil, &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{
		{Name: "reads", OLTP: &v1alpha1.OLTPWorkload{}}, {Name: "more", OLTP: &v1alpha1.OLTPWorkload{}},
		{Name: "other", Volume: "log", OLTP: &v1alpha1.OLTPWorkload{}}}}
	received := &results.PhaseDocument{Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: "lab", Name: "r", UID: "u"},
		Phase: "fill", Kind: results.KindMeasure, Outcome: results.OutcomeValid, StartedAt: start, FinishedAt: start.Add(10 * time.Second),
		Metrics: map[string]int64{"readOperations": 10_000,
			"reads.readBytes": 1000 * 8192, "more.readBytes": 1100 * 8192, "other.readBytes": 500 * 8192,
			"reads.readOperations": 1000, "reads.durationNanoseconds": int64(10 * time.Second),
			"more.readOperations": 1100, "more.durationNanoseconds": int64(11 * time.Second), // 100/s, for 1 s longer than the others
			"other.readOperations": 500, "other.durationNanoseconds": int64(10 * time.Second)}}
	companions := map[Companion]*v1alpha1.PoolOperation{Observation: operation(400), "observe-log": operation(100)}
	joined, err := Joined(State{Run: run, Phases: []PhaseState{{Received: received, Companions: companions}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"reads.diskReadOperationsPerSecond": 400, "more.diskReadOperationsPerSecond": 400,
		"other.diskReadOperationsPerSecond": 100, "reads.diskReadsPerReadMilli": 2000, "more.diskReadsPerReadMilli": 2000,
		"other.diskReadsPerReadMilli": 2000, "reads.readBytesPerApplicationByteMilli": 1000, "other.readBytesPerApplicationByteMilli": 1000,
		"gangBlocks": 4, "other.poolAllocatedBytes": 100, "reads.poolAllocatedBytes": 400} {
		if got := joined.Document.Metrics[name]; got != want {
			t.Errorf("%s is %d, not %d", name, got, want)
		}
	}
	for name := range joined.Document.Metrics {
		if strings.HasPrefix(name, "disk") || strings.HasPrefix(name, "pool") {
			t.Errorf("%s is of one pool of two", name)
		}
		if strings.HasSuffix(name, ".gangBlocks") {
			t.Errorf("%s is of all pools of the node", name)
		}
	}
	for name, want := range map[string]int64{"reads": 400, "more": 400, "other": 100} {
		if got := joined.Document.Distributions[name+".diskReadRequestSize"].Count(); got != want {
			t.Errorf("the disks of %s read %d requests, not %d", name, got, want)
		}
	}
	if joined.Observed != companions[Observation] {
		t.Error("the series of another pool is stored")
	}
	delete(companions, "observe-log")
	joined, err = Joined(State{Run: run, Phases: []PhaseState{{Received: received, Companions: companions}}}, 0)
	if said := strings.Join(joined.Document.Omitted, "\n"); err != nil || joined.Document.Metrics["other.poolAllocatedBytes"] != 0 ||
		!strings.Contains(said, "disk metrics of the pool of volume log: its PoolOperation was deleted") {
		t.Errorf("%v %q", err, said)
	}
}

// TestUnchangedWithoutCompanions: the document of a runner on a StorageClass is stored exactly as received.
func TestUnchangedWithoutCompanions(t *testing.T) {
	run := fillRun()
	state := PhaseState{Received: &results.PhaseDocument{}, ReceivedBytes: []byte("x"), ReceivedDigest: "d"}
	joined, err := Joined(State{Run: run, Phases: []PhaseState{state}}, 0)
	if err != nil || joined.Document != state.Received || string(joined.Text) != "x" || joined.Digest != "d" || joined.Observed != nil ||
		joined.StartLagMilliseconds != nil {
		t.Errorf("%+v %v", joined, err)
	}
}

func TestObserveInterval(t *testing.T) {
	oltp := func(seconds time.Duration) v1alpha1.Workload {
		return v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{Duration: lasting(seconds * time.Second)}}
	}
	for name, c := range map[string]struct {
		phase v1alpha1.Phase
		want  time.Duration
	}{
		"a short one":   {v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: oltp(10)}}, 2 * time.Second},
		"half a minute": {v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: oltp(30)}}, 3 * time.Second},
		"a long one":    {v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: oltp(300)}}, 5 * time.Second},
		"a scan": {v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}},
			2 * time.Second},
		"a fill": {v1alpha1.Phase{Fill: &v1alpha1.FillPhase{}}, 5 * time.Second},
	} {
		if got := observeInterval(c.phase); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestACopyBesideAWorkload: the work of the disks for the copy cannot be told apart from their work for the workload.
func TestACopyBesideAWorkload(t *testing.T) {
	from := time.Unix(1000, 0)
	document := results.PhaseDocument{Outcome: results.OutcomeValid, StartedAt: from, FinishedAt: from.Add(10 * time.Second),
		Metrics: map[string]int64{}, Environment: map[string]string{}}
	operation := &v1alpha1.PoolOperation{Spec: v1alpha1.PoolOperationSpec{Action: v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{}}}}
	operation.Status = v1alpha1.PoolOperationStatus{Outcome: v1alpha1.OutcomeSucceeded, StartedAt: &metav1.Time{Time: from},
		FinishedAt: &metav1.Time{Time: from.Add(10 * time.Second)}, Metrics: []v1alpha1.OperationMetric{
			{Name: "durationNanoseconds", Value: 10e9}, {Name: "copiedBytesPerSecond", Value: 7}, {Name: "copiedBytes", Value: 70},
			{Name: "diskWrittenBytesPerCopiedBytePartsPerMillion", Value: 9}, {Name: "diskWritesPerCopiedMebibyteMilli", Value: 9},
			{Name: "diskReadBytesPerCopiedBytePartsPerMillion", Value: 9}}}
	alone := operationMetrics(operation.Status.Metrics)
	if len(alone) != 6 {
		t.Errorf("alone, it yields %v", alone)
	}
	joinBeside(&document, operation, v1alpha1.MeasurePhase{})
	want := map[string]int64{"besidePartsPerMillion": 1_000_000, "copiedBytes": 70, "copiedBytesPerSecond": 7}
	if diff := cmp.Diff(want, document.Metrics); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
