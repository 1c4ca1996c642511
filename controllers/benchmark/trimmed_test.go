package benchmark

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/trim"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/volume"
)

// TestTrimmedRuns: with what the cache keeps of runs, the planner decides and judges as with whole runs.
func TestTrimmedRuns(t *testing.T) {
	state, documents := keepingPools(t)
	all, seen := state.Runs, ""
	for n := 1; n <= len(all); n++ {
		for _, atWork := range []bool{false, true} {
			state.Runs = slices.Clone(all[:n])
			user := n - 1
			if atWork {
				state.Runs[n-1].Status, user = v1alpha1.BenchmarkRunStatus{}, max(0, n-2)
			}
			for i := range state.Pools {
				state.Pools[i].RunUID = string(all[user].UID)
			}
			cached := state
			cached.Runs = nil
			for i := range state.Runs {
				object, err := trim.Run(state.Runs[i].DeepCopy())
				if err != nil {
					t.Fatal(err)
				}
				cached.Runs = append(cached.Runs, *object.(*v1alpha1.BenchmarkRun))
			}
			want := decided(t, state, documents)
			if diff := cmp.Diff(want, decided(t, cached, documents)); diff != "" {
				t.Errorf("%d runs, the last at work %t (-whole +trimmed):\n%s", n, atWork, diff)
			}
			seen += strings.Join(want, "\n")
		}
	}
	for _, words := range []string{string(experiment.CreateRun), string(experiment.DeletePool), "used another text of key job.fio"} {
		if !strings.Contains(seen, words) {
			t.Errorf("no state leads to %q: the test no longer tests what it says", words)
		}
	}
}

// keepingPools is the state of a benchmark that keeps two pools and reads a job file from a ConfigMap, with all its runs and their results.
// One attempt was Invalid, and the file was changed before the last run.
func keepingPools(t *testing.T) (experiment.State, map[string]results.PhaseDocument) {
	t.Helper()
	layout := func(disk v1alpha1.DevicePath) v1alpha1.PoolTemplate {
		return v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Type: "stripe", Devices: []v1alpha1.DevicePath{disk}}}}
	}
	logs, benchmark := layout("/dev/disk/by-id/b"), runstest.Benchmark()
	spec := &benchmark.Spec
	spec.Variants, spec.Repetitions = nil, 3
	spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Nodes: v1alpha1.NodeChoice{MatchLabels: map[string]string{"lab": "true"}},
		Pool: layout("/dev/disk/by-id/a"), Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Pool: &logs}}, Reset: v1alpha1.ResetDataset}}
	spec.Phases = []v1alpha1.Phase{runstest.Phase("fill"), {Name: "jobs", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
		FIO: &v1alpha1.FIOWorkload{JobFileFrom: &v1alpha1.ConfigMapKey{Name: "mine", Key: "job.fio"}}}}}}
	slots, err := design.SlotsAt(benchmark, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	state := experiment.State{Now: runstest.Noon, Benchmark: benchmark, Slots: slots, Images: experiment.Images{Runner: "runner:1"},
		Nodes:  []experiment.NodeState{{Name: "n1"}},
		Leases: []experiment.LeaseState{{Node: "n1", Holder: runstest.OwnUID, HolderName: "lab/ageing"}}}
	experiment.Identify(&state, nil)
	benchmark.Status.Experiment, benchmark.Status.NodeName = state.Experiment, "n1"
	documents := map[string]results.PhaseDocument{}
	for _, made := range []struct {
		slot    int
		attempt int32
		ending  runs.Ending
		text    string
	}{{0, 1, runstest.ValidEnding, "a"}, {1, 1, runstest.InvalidEnding, "a"}, {1, 2, runstest.ValidEnding, "a"},
		{2, 1, runstest.ValidEnding, "b"}} {
		run := experiment.NewRun(state, experiment.Action{Slot: &slots[made.slot], Attempt: made.attempt}, []string{"n1"}, "")
		run.UID, run.CreationTimestamp = types.UID(run.Name), metav1.Time{Time: runstest.Noon.Add(-time.Hour)}
		runstest.Record(run, made.ending, true)
		result := naming.PhaseObjectName(run.Name, "jobs")
		run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "jobs", ExecutorUID: "u", Result: result}}
		run.Status.Volumes = []v1alpha1.RunVolumeStatus{{Name: "data", KeptFrom: "earlier",
			Properties: []v1alpha1.EffectiveProperty{{Dataset: "p/data", Name: "recordsize", Value: "8K"}}}}
		documents[result] = results.PhaseDocument{Phase: "jobs", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
			StartedAt: runstest.Noon, FinishedAt: runstest.Noon, Metrics: map[string]int64{"readBytes": 1},
			Environment: map[string]string{results.EnvironmentWorkloadFile: made.text}}
		state.Runs = append(state.Runs, *run)
	}
	for _, name := range []string{"data", "log"} {
		state.Pools = append(state.Pools, experiment.KeptPool{Name: naming.RunPoolName(&state.Runs[0], name), Node: "n1"})
	}
	// Since the first run, the cluster has got another provisioner, which the experiment does not use.
	state.Drivers = map[string]volume.DriverState{volume.ProvisionerOpenEBS: {Installed: true}}
	return state, documents
}

// decided says what the planner decides in a state, and how it judges the runs.
func decided(t *testing.T, state experiment.State, documents map[string]results.PhaseDocument) []string {
	t.Helper()
	encoded := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	decision := experiment.Plan(state)
	words := []string{string(decision.Position), decision.Reason, decision.Message, encoded(decision.NodeNames),
		experiment.ImageInUse(state), experiment.DefaultProvisioner(state)}
	for _, action := range decision.Actions {
		words = append(words, fmt.Sprint(action.Kind, " ", action.Run, action.Pool, action.Attempt, action.Node, action.Fingerprint))
		if action.Kind == experiment.CreateRun {
			words = append(words, encoded(experiment.NewRun(state, action, decision.NodeNames, decision.DefaultClass)))
		}
	}
	gates, err := gate.Compile(nil, state.Benchmark.Spec.Phases, design.VariantNames(state.Slots))
	if err != nil {
		t.Fatal(err)
	}
	return append(words, encoded(experiment.Assemble(experiment.Evidence{Now: state.Now, Benchmark: state.Benchmark,
		Experiment: state.Experiment, Runs: state.Runs, Documents: documents, Gates: gates, Tally: decision.Tally, Slots: state.Slots})))
}

// pages is an API server that sends at most as many runs as a request asks for.
type pages struct {
	client.Reader
	runs  []v1alpha1.BenchmarkRun
	lists int
}

func (p *pages) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, is := into.(*v1alpha1.BenchmarkRunList)
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if !is || asked.Limit <= 0 {
		return fmt.Errorf("%T is asked for with limit %d", into, asked.Limit)
	}
	from := 0
	if asked.Continue != "" {
		var err error
		if from, err = strconv.Atoi(asked.Continue); err != nil {
			return err
		}
	}
	p.lists++
	to := min(from+int(asked.Limit), len(p.runs))
	for i := from; i < to; i++ {
		list.Items = append(list.Items, *p.runs[i].DeepCopy())
	}
	if to < len(p.runs) {
		list.Continue = strconv.Itoa(to)
	}
	return nil
}

// TestLiveRuns: all runs are listed, a few at a time, and what tenants have written into their specs is not kept.
func TestLiveRuns(t *testing.T) {
	for count, lists := range map[int]int{0: 1, 1: 1, 50: 1, 51: 2, 130: 3} {
		server := &pages{}
		for i := range count {
			run := runstest.Run()
			run.Name, run.Spec.PodTemplate.Annotations = fmt.Sprintf("r-%03d", i), map[string]string{"note": "long"}
			server.runs = append(server.runs, *run)
		}
		got, err := (&Reconciler{Live: server}).liveRuns(t.Context(), "lab", "u")
		if err != nil || len(got) != count || server.lists != lists {
			t.Errorf("%d runs: %d of them in %d lists, want %d lists (%v)", count, len(got), server.lists, lists, err)
		}
		for i := range got {
			if got[i].Name != server.runs[i].Name || got[i].Spec.NodeName != "n1" || got[i].Spec.PodTemplate.Annotations != nil {
				t.Errorf("run %d of %d: %+v", i, count, got[i])
			}
		}
	}
}
