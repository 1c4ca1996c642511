package cli

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestEstimate: an estimate uses what a run requests, and says what is unknown, such as the speed of the storage.
func TestEstimate(t *testing.T) {
	const overhead = phaseOverhead
	for _, test := range []struct {
		phases        string
		asked, moving time.Duration // on storage that moves 100 MiB/s
	}{
		{"{name: p, fill: {to: 50%}}", overhead, 5 * time.Second},
		{"{name: p, fill: {size: 100Mi}}", overhead, time.Second},
		{"{name: f, fill: {to: 50%}}\n  - {name: p, measure: {workload: {oltp: {duration: 5m, rampUp: 1m}}}}", 2*overhead + 6*time.Minute,
			5 * time.Second},
		{"{name: f, fill: {to: 50%}}\n  - {name: p, measure: {workloads: [{name: a, oltp: {duration: 5m, rampUp: 1m}}, " +
			"{name: b, redo: {duration: 5m}}]}}", 2*overhead + 6*time.Minute, 5 * time.Second},
		{"{name: p, measure: {workload: {redo: {duration: 5m}}}}", overhead + 5*time.Minute, 0},
		{"{name: f, fill: {to: 50%}}\n  - {name: p, measure: {workload: {scan: {}}}}", 2 * overhead, 10 * time.Second},
		{"{name: f, fill: {to: 50%}}\n  - {name: p, measure: {workload: {scan: {regions: 10, randomRegions: 1}}}}", 2 * overhead,
			6 * time.Second},
		{"{name: p, measure: {workload: {postgres: {duration: 1m, databaseSize: 100Mi}}}}", overhead + 2*time.Minute, 3 * time.Second},
		{`{name: p, measure: {workload: {fio: {jobFile: "[a]\nrw=read\nsize=1m\nruntime=90\n"}}}}`, overhead + 90*time.Second, 0},
		{`{name: p, measure: {workload: {fio: {jobFile: "[a]\nrw=read\nsize=1m\nruntime=2m\n"}}}}`, overhead + 2*time.Minute, 0},
		{`{name: p, measure: {workload: {fio: {jobFile: "[a]\nrw=read\nsize=1m\ntimeout = 1h\n"}}}}`, overhead + time.Hour, 0},
		{`{name: p, measure: {workload: {fio: {jobFile: "[a]\nrw=read\nsize=1m\nruntime=5000ms\n"}}}}`, overhead + 5*time.Second, 0},
		{`{name: p, measure: {workload: {fio: {jobFile: "[a]\nrw=read\nsize=100m\n"}}}}`, overhead, 2 * time.Second},
		{`{name: p, measure: {workload: {fio: {jobFileFrom: {name: a, key: b}}}}}`, overhead + time.Minute, 0},
		{"{name: p, measure: {steadyState: {windowRounds: 5}, workload: {metadata: {duration: 1m, workers: 4, filesPerWorker: 30000}}}}",
			overhead + time.Minute + 5*time.Minute, 0},
		{"{name: p, fill: {to: 50%}}\n  - {name: q, fragment: {until: Rounds, rounds: 2}}", 2 * overhead, 15 * time.Second},
		{"{name: p, fill: {to: 50%}}\n  - {name: q, fragment: {until: Converged, maxRounds: 25}}", 2 * overhead, 45 * time.Second},
	} {
		text := "apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata: {name: b}\nspec:\n" +
			"  target: {storageClass: {size: 1000Mi}}\n  phases:\n  - " + test.phases + "\n"
		manifests, err := readManifests("-", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		known, err := loadSchemas()
		if err != nil {
			t.Fatal(err)
		}
		checked, problems := known.checkBenchmark(t.Context(), manifests[0], others{})
		if len(problems) > 0 {
			t.Errorf("%s: %v", test.phases, problems)
			continue
		}
		got := estimateRun(&checked.slots[0])
		if moving := got.on(assumedSpeed) - got.requested; got.requested != test.asked || moving.Round(time.Second) != test.moving {
			t.Errorf("%s: %v asked, %v moving", test.phases, got.requested, moving)
		}
	}
}

// TestEstimateOfOperations: the duration of an operation is unknown, so its phase counts with its longest time, and the estimate says so.
func TestEstimateOfOperations(t *testing.T) {
	phase := v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{
		Duration: &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Hour}}}}}}
	slot := design.Slot{Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}, Phases: []v1alpha1.Phase{phase}}
	if got := estimate([]design.Slot{slot}, assumedSpeed); !strings.HasPrefix(got, "about 1h") || strings.Contains(got, "less if") {
		t.Errorf("an hour: %s", got)
	}
	slot.Phases[0].Measure.Until = v1alpha1.UntilOperationEnds
	got := estimate([]design.Slot{slot}, assumedSpeed)
	if !strings.HasPrefix(got, "about 1h") || !strings.Contains(got, "less if operations end") {
		t.Errorf("at most an hour: %s", got)
	}
}

// TestEstimateOfAPool: the size of a share of a pool is unknown, and the estimate says so, unless the fill has a size.
func TestEstimateOfAPool(t *testing.T) {
	const unknown = "plus the phases that depend on the size of the pool"
	size := v1alpha1.Amount{Quantity: resource.MustParse("100Mi")}
	for fill, want := range map[*v1alpha1.FillPhase]bool{{To: "80%"}: true, {Size: &size}: false} {
		slot := design.Slot{Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}, Phases: []v1alpha1.Phase{{Fill: fill}}}
		if got := estimate([]design.Slot{slot}, assumedSpeed); strings.Contains(got, unknown) != want {
			t.Errorf("%+v: %s", fill, got)
		}
	}
}

// TestExtent: repetitions that adaptive may add are not promised.
func TestExtent(t *testing.T) {
	benchmark := &v1alpha1.StorageBenchmark{Spec: v1alpha1.StorageBenchmarkSpec{
		Target:      v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}},
		Variants:    []v1alpha1.Variant{{Name: "a"}, {Name: "b"}},
		Phases:      []v1alpha1.Phase{{Name: "p", Fill: &v1alpha1.FillPhase{To: "50%"}}},
		Repetitions: 6,
	}}
	for adaptive, want := range map[*v1alpha1.Adaptive]string{
		nil:                  ": 12 runs (2 variants x 6 repetitions), about ",
		{MaxRepetitions: 10}: ": 12 to 20 runs (2 variants x 6 to 10 repetitions), at most about ",
	} {
		benchmark.Spec.Adaptive = adaptive
		slots, err := design.Expand(&benchmark.Spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&validated{benchmark: benchmark, slots: slots, storage: assumedSpeed}).extent(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestOverdue: an experiment that cannot end by its deadline gets a note, and repetitions that may be added do not count.
func TestOverdue(t *testing.T) {
	spec := &v1alpha1.StorageBenchmarkSpec{Repetitions: 2}
	slot := design.Slot{Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}, Phases: []v1alpha1.Phase{{Measure: &v1alpha1.MeasurePhase{
		Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{Duration: runstest.Lasting(5 * time.Minute)}}}}}}
	slots := make([]design.Slot, 4)
	for i := range slots {
		slots[i] = slot
		slots[i].Repetition = int32(i + 1)
	}
	for deadline, want := range map[time.Duration]string{
		0: "", 13 * time.Minute: "", 10 * time.Minute: "its runs take about 12m, and spec.deadline is 10m: if",
		time.Minute: "its runs take about 12m, and spec.deadline is 1m: if",
	} {
		if spec.Deadline = nil; deadline > 0 {
			spec.Deadline = runstest.Lasting(deadline)
		}
		if got := overdue(spec, slots, assumedSpeed); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%v: %q, want %q", deadline, got, want)
		}
	}
	spec.Deadline, spec.Repetitions = runstest.Lasting(100*time.Hour), 4
	slot.Phases[0].Measure.Workload.OLTP.Duration = runstest.Lasting(9 * time.Hour)
	if got := overdue(spec, slots, assumedSpeed); !strings.HasPrefix(got, "its runs take about 36h") || !strings.Contains(got, "maxHold, after 24h") {
		t.Errorf("longer than a cluster allows by default: %q", got)
	}
}

// TestSpeed: with a known speed, the estimate and the check of the deadline use it.
func TestSpeed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slow.yaml")
	text := "apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata: {name: slow}\nspec:\n  deadline: 15m\n" +
		"  target: {storageClass: {size: 6000Mi}}\n  phases: [{name: p, fill: {size: 6000Mi}}]\n  repetitions: 2\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const late = "its runs take about 20m, and spec.deadline is 15m"
	code, said := validate(t, file, "--speed", "10Mi")
	if code != ExitPassed || !strings.Contains(said, "about 20m on storage that moves 10.0 MiB/s") || !strings.Contains(said, late) {
		t.Errorf("slow: %d %s", code, said)
	}
	if code, said := validate(t, file); code != ExitPassed || !strings.Contains(said, "about 2m on storage that moves 100 MiB/s") ||
		strings.Contains(said, "deadline") {
		t.Errorf("by default: %d %s", code, said)
	}
	for _, wrong := range []string{"0", "-1Mi", "fast", "", "30", "1023", "30m"} {
		if code, said := validate(t, file, "--speed", wrong); code != ExitUsage || !strings.Contains(said, "such as 30Mi") {
			t.Errorf("%q: %d %s", wrong, code, said)
		}
	}
}

// TestEstimateDoesNotOverflow: what takes longer than can be counted takes long, and not about 0s.
func TestEstimateDoesNotOverflow(t *testing.T) {
	path := file(t, "huge.yaml", "apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata: {name: huge}\nspec:\n"+
		"  target: {storageClass: {size: 4Ei}}\n  repetitions: 3\n  phases:\n  - {name: f, fill: {to: 100%}}\n"+
		"  - {name: a, fragment: {until: Rounds, rounds: 20}}\n")
	for _, command := range []string{"validate", "plan"} {
		for _, speed := range []string{"1Ki", "100Mi"} {
			code, said, problem := called(t, newHub(t), command, path, "--speed", speed)
			if code != ExitPassed || !strings.Contains(said, "about 100 years or more on storage") ||
				!strings.Contains(said, "its runs take about 100 years or more") ||
				command == "plan" && strings.Count(said, "100 years or more") < 3 {
				t.Errorf("%s on %s: %d %s%s", command, speed, code, said, problem)
			}
		}
	}
	if all := (&spent{requested: math.MaxInt64 - 1}); all.on(1) != math.MaxInt64-1 {
		t.Error(all)
	} else if all.add(spent{requested: 2, bytes: 1}); all.on(assumedSpeed) != math.MaxInt64 {
		t.Error(all)
	}
}

func TestRoughly(t *testing.T) {
	for length, want := range map[time.Duration]string{
		34 * time.Second: "30s", 119 * time.Second: "2m", 125 * time.Second: "2m", 64 * time.Minute: "1h", 76 * time.Minute: "1h20m",
		60 * time.Hour: "3 days",
	} {
		if got := roughly(length); got != want {
			t.Errorf("%v: %s", length, got)
		}
	}
}
