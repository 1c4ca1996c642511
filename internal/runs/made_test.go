package runs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/volume"
)

// makes is a run that fills data, clones it as fresh, scans both, destroys fresh, and scans data again.
func makes() runs.State {
	scan := func(name v1alpha1.PhaseName, on v1alpha1.VolumeName) v1alpha1.Phase {
		phase := runstest.Phase(string(name))
		phase.Fill, phase.Volume, phase.Measure = nil, on, &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}
		return phase
	}
	operate := func(name string, action v1alpha1.PoolAction) v1alpha1.Phase {
		phase := runstest.Phase(name)
		phase.Fill, phase.Operate = nil, &v1alpha1.OperatePhase{PoolAction: action}
		return phase
	}
	state := runstest.Underway()
	state.Run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log"}}}}
	state.Run.Spec.Phases = []v1alpha1.Phase{runstest.Phase("fill"),
		operate("clone", v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", As: "fresh"}}),
		scan("old", "data"), scan("new", "fresh"),
		operate("destroy", v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "fresh"}}), scan("again", "data")}
	state.Phases = make([]runs.PhaseState, len(state.Run.Spec.Phases))
	state.Run.Status.Phases = nil
	state.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true, Datasets: map[string]string{"data": "p/data", "log": "q/log"}}
	state.Pods = 0
	return state
}

// stored marks the first count phases of a run as stored.
func stored(state *runs.State, count int) {
	for i := range count {
		name := state.Run.Spec.Phases[i].Name
		state.Phases[i] = runs.PhaseState{Stored: runstest.Result(string(name))}
		state.Run.Status.Phases = append(state.Run.Status.Phases, v1alpha1.RunPhaseStatus{Name: name, ExecutorUID: "u"})
	}
}

var observing = map[runs.Companion]*v1alpha1.PoolOperation{runs.Observation: runstest.Operation(v1alpha1.PoolAction{
	Observe: &v1alpha1.ObserveAction{}}, "", -time.Minute, 0)}

// TestMadeVolumesAreAwaited: no phase begins before the volumes made so far are mounted, whichever volume it works on. The claim of a made
// volume is created for the first phase that works on it.
func TestMadeVolumesAreAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		done      int
		mounted   bool
		unclaimed bool
		actions   []string
		reason    string
	}{
		"before it is made":       {1, false, false, []string{"StartPhase 1"}, "PhaseRunning"},
		"made":                    {2, false, false, nil, "PreparingVolume"},
		"mounted":                 {2, true, false, []string{"StartPhase 2"}, "PhaseRunning"},
		"needed and mounted":      {3, true, true, []string{"CreateVolumes", "StartPhase 3"}, "PhaseRunning"},
		"needed and claimed":      {3, true, false, []string{"StartPhase 3"}, "PhaseRunning"},
		"needed, and not mounted": {3, false, true, nil, "PreparingVolume"},
		"to be destroyed":         {4, true, false, []string{"StartPhase 4"}, "PhaseRunning"},
		"destroyed":               {5, false, false, []string{"StartPhase 5"}, "PhaseRunning"},
	} {
		state := makes()
		stored(&state, test.done)
		if state.Run.Spec.Phases[test.done].Operate == nil {
			state.Phases[test.done].Companions = observing
		}
		if test.mounted {
			state.Pools.Datasets["fresh"] = "p/fresh"
		}
		if test.unclaimed {
			state.Unclaimed = []string{"fresh"}
		}
		decision := runs.Plan(state)
		if problem := runstest.Problem(state, decision); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
		if got := runstest.Kinds(decision.Actions); fmt.Sprint(got) != fmt.Sprint(append([]string{}, test.actions...)) || decision.Reason != test.reason {
			t.Errorf("%s: %v %s: %s", name, got, decision.Reason, decision.Message)
		}
		state.Now = runstest.Noon.Add(11 * time.Minute)
		ending := runs.Plan(state).Ending
		if late := ending != nil && ending.Reason == v1alpha1.ReasonPoolNotReady; late != (test.reason == "PreparingVolume") {
			t.Errorf("%s: after its deadline %+v", name, ending)
		}
	}
}

// TestDueClaims: the missing claim of a made volume is lost only if there was one; otherwise it is created for the first phase that works
// on it.
func TestDueClaims(t *testing.T) {
	for done, want := range []runs.MissingClaim{runs.NotDue, runs.NotDue, runs.NotDue, runs.ToCreate, runs.Lost, runs.Lost} {
		state := makes()
		stored(&state, done)
		all := volume.RunVolumes(state.Run)
		if len(all) != 3 || all[2].Name != "fresh" || all[2].PoolOf != "data" || all[2].MadeIn != "clone" {
			t.Fatalf("volumes %+v", all)
		}
		if got := runs.MeaningOfMissingClaim(state, all[2]); got != want {
			t.Errorf("after %d phases: %v, want %v", done, got, want)
		}
		if got := runs.MeaningOfMissingClaim(state, all[0]); got != runs.Lost {
			t.Errorf("after %d phases a claim of the target: %v", done, got)
		}
	}
	state := makes()
	stored(&state, 3)
	state.Run.Status.Phases = append(state.Run.Status.Phases, v1alpha1.RunPhaseStatus{Name: "new", ExecutorUID: "u"})
	if got := runs.MeaningOfMissingClaim(state, volume.RunVolumes(state.Run)[2]); got != runs.Lost {
		t.Errorf("while a phase works on it: %v", got)
	}
}

// TestMadeVolumes: the dataset of a made volume is in the spec of the pool from the start, but belongs to the volume only once the agent
// reports that it exists.
func TestMadeVolumes(t *testing.T) {
	state := makes()
	run := state.Run
	all := volume.RunVolumes(run)
	pool := volume.Pool(run, all[0], map[string]string{v1alpha1.LabelRunUID: string(run.UID)})
	if made := pool.Spec.Datasets[1]; made.Path != "fresh" || !made.Awaited || !made.Mounted || made.Properties != nil || len(pool.Spec.Datasets) != 2 {
		t.Errorf("datasets %+v", pool.Spec.Datasets)
	}
	kstatus.SetReady(&pool.Status.Conditions, 0, v1alpha1.ReasonPoolReady, "ready")
	log := volume.Pool(run, all[1], map[string]string{v1alpha1.LabelRunUID: string(run.UID)})
	kstatus.SetReady(&log.Status.Conditions, 0, v1alpha1.ReasonPoolReady, "ready")
	before := runs.PoolsOf(run, []*v1alpha1.BenchmarkPool{pool, log}, nil)
	if before.Datasets["fresh"] != "" || len(before.Volumes) != 2 || !before.Ready {
		t.Errorf("before it is there: %+v", before)
	}
	name := pool.Name + "/fresh"
	pool.Status.Properties = []v1alpha1.EffectiveProperty{{Dataset: name, Name: naming.PropertyOperation, Value: "uid"},
		{Dataset: name, Name: "recordsize", Value: "131072"}, {Dataset: pool.Name + "/data", Name: "recordsize", Value: "8192"}}
	after := runs.PoolsOf(run, []*v1alpha1.BenchmarkPool{pool, log}, nil)
	if after.Datasets["fresh"] != name || len(after.Volumes) != 3 {
		t.Fatalf("when it is there: %+v", after)
	}
	at := slices.IndexFunc(after.Volumes, func(one v1alpha1.RunVolumeStatus) bool { return one.Name == "fresh" })
	if properties := after.Volumes[at].Properties; len(properties) != 1 || properties[0].Value != "131072" {
		t.Errorf("properties %+v", properties)
	}
	state.Pools = before
	run.Status = runs.Summarise(state, runs.Decision{})
	state.Pools = after
	if status := runs.Summarise(state, runs.Decision{}); len(status.Volumes) != 3 || status.Volumes[2].Name != "fresh" {
		t.Errorf("status %+v", status.Volumes)
	}
	operation := runs.PhaseOperation(state, 1)
	if clone := operation.Spec.Action.Clone; clone.To != "fresh" || clone.As != "" || run.Spec.Phases[1].Operate.Clone.As != "fresh" {
		t.Errorf("operation %+v", clone)
	}
	request, err := runs.Request(run, run.Spec.Phases[3], after)
	if err != nil || request.Source != name || request.Path != "/data" {
		t.Errorf("request %+v: %v", request, err)
	}
	if _, err := runs.Request(run, run.Spec.Phases[3], before); err == nil {
		t.Error("a runner is sent to a volume that is not there")
	}
}

// TestWhereMadeVolumesAre: a clone is on the pool of its origin; a replica and a copy may be on another pool, even on that of a made
// volume.
func TestWhereMadeVolumesAre(t *testing.T) {
	state := makes()
	phases := state.Run.Spec.Phases[:2]
	for i, action := range []v1alpha1.PoolAction{
		{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToVolume: "log", As: "sent"}},
		{Copy: &v1alpha1.CopyAction{Dataset: "data", ToVolume: "sent", As: "copied"}},
		{Copy: &v1alpha1.CopyAction{Dataset: "copied", As: "within"}},
		{Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", As: "log"}}, // taken: validation rejects that name
	} {
		phase := runstest.Phase(fmt.Sprint("p", i))
		phase.Fill, phase.Operate = nil, &v1alpha1.OperatePhase{PoolAction: action}
		if phases = append(phases, phase); i == 2 {
			phases[len(phases)-1].Volume = "copied"
		}
	}
	state.Run.Spec.Phases = phases
	var got []string
	for _, one := range volume.RunVolumes(state.Run) {
		got = append(got, one.Name+" on "+one.PoolOf)
	}
	want := []string{"data on data", "log on log", "fresh on data", "sent on log", "copied on log", "within on log"}
	if !slices.Equal(got, want) {
		t.Errorf("volumes %v, want %v", got, want)
	}
	state.Phases = make([]runs.PhaseState, len(phases))
	for i, want := range map[int]string{2: "sent", 3: "copied", 4: "within"} {
		operation := runs.PhaseOperation(state, i)
		action, to := operation.Spec.Action, naming.RunPoolName(state.Run, "log")
		switch {
		case action.Replicate != nil && (action.Replicate.ToPool != to || string(action.Replicate.To) != want),
			action.Copy != nil && (string(action.Copy.To) != want || (action.Copy.ToPool == to) == (operation.Spec.Pool == to)):
			t.Errorf("%s: %+v %+v on %s", want, action.Replicate, action.Copy, operation.Spec.Pool)
		}
	}
	class := runstest.Run()
	class.ObjectMeta = metav1.ObjectMeta{Name: "r"}
	class.Spec.Phases = phases
	if all := volume.RunVolumes(class); len(all) != 1 {
		t.Errorf("a storageClass target has %+v", all)
	}
}
