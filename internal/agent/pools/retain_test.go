package pools

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
)

// TestOnlyDestroyDestroys: a pool is destroyed with its object only if the policy of the object is Destroy.
func TestOnlyDestroyDestroys(t *testing.T) {
	for policy, destroyed := range map[v1alpha1.DeletionPolicy]bool{v1alpha1.DeletionDestroy: true, v1alpha1.DeletionRetain: false, "": false,
		"destroy": false} {
		state := deletedState(liveState())
		state.Pool.Spec.DeletionPolicy = policy
		// A first turn may record guids before the pool is destroyed.
		state.Pool.Status.Vdevs = []v1alpha1.VdevStatus{{Name: diskA + "-part1"}, {Name: diskB + "-part1"}}
		decision := Plan(state)
		if got := poolKinds(decision); destroyed && got != "DestroyPool" || !destroyed && got != "RemoveFinalizer" {
			t.Errorf("policy %q: actions %q: %s", policy, got, decision.Message)
		}
	}
}

// TestARecordedReleaseDestroysNothing: the node remembers that a pool was released, and the object is back from a backup without that.
func TestARecordedReleaseDestroysNothing(t *testing.T) {
	for name, change := range map[string]func(*State){
		"as it is":         func(*State) {},
		"not imported":     func(s *State) { s.Live, s.Importable = nil, nil },
		"imported by hand": func(s *State) { s.Live.Properties[0].Value = "on" },
	} {
		t.Run(name, func(t *testing.T) {
			state := deletedState(liveState())
			state.Pool.Spec.DeletionPolicy, state.Released = v1alpha1.DeletionDestroy, true
			change(&state)
			expectPool(t, Plan(state), "RemoveFinalizer", v1alpha1.ReasonPoolLeftBehind, ReleasePath(state.Pool.UID)+" on the node says")
		})
	}
}

func TestWhatARetainedPoolLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*State)
		says   string
	}{
		"the pool, and how to be rid of it": {func(*State) {}, "pool bench0 (guid 77) stays on node node-a as it is, with its data, on " +
			diskA + ", " + diskB + ". To destroy it, run 'zpool destroy bench0'"},
		"and how to use it": {func(*State) {}, "create a BenchmarkPool with this poolName"},
		"not recorded yet":  {func(s *State) { s.Pool.Status.GUID = "" }, "guid 77"},
		"another's of that name is not ours": {func(s *State) { s.Pool.Status.GUID = ""; s.Live.change(naming.PropertyUID, "uid-0", "local") },
			"no pool is known to exist"},
		"not seen":  {func(s *State) { s.Live = nil }, "guid 77"},
		"in use":    {func(s *State) { s.Users = []string{"a pod"} }, "guid 77"},
		"suspended": {func(s *State) { s.Live.Status.State = "SUSPENDED" }, "guid 77"},
		"a label of it as if it was destroyed": {func(s *State) {
			s.Live, s.Disks[diskA] = nil, labelled(freeDisk(diskA), 77, host.PoolDestroyed)
		}, "guid 77"},
	} {
		t.Run(name, func(t *testing.T) {
			state := deletedState(liveState())
			state.Pool.Spec.DeletionPolicy = v1alpha1.DeletionRetain
			test.change(&state)
			expectPool(t, Plan(state), "RemoveFinalizer", v1alpha1.ReasonPoolLeftBehind, test.says)
		})
	}
}

// TestOlderSpecs: a spec from a backup changes nothing until a person accepts it.
func TestOlderSpecs(t *testing.T) {
	const keep, held = "AddFinalizer", "AddFinalizer SetProperties"
	older := func(s *State) { // of generation 2, on a pool that was changed for generation 5
		s.Live.change(PropertySpec, "5", "local")
		s.Live.change(naming.PropertyDisks, "of another layout", "local")
		s.Pool.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskA, diskC), mirrorOf(diskB, diskD)}
		s.Pool.Spec.RootProperties["recordsize"] = "16k"
		s.Pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "p"}}
	}
	accept := func(s *State, generation string) {
		s.Pool.Annotations = map[string]string{v1alpha1.AnnotationAcceptSpec: generation}
	}
	attach := func(s *State) { s.Pool.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskA, diskB, diskC)} }
	for name, test := range map[string]struct {
		change               func(*State)
		want, reason, noting string
	}{
		"of the pool": {func(*State) {}, keep, v1alpha1.ReasonPoolReady, ""},
		"older":       {older, held, v1alpha1.ReasonPoolOlderSpec, "5:held"},
		"older, and noted": {func(s *State) { older(s); s.Live.change(PropertySpec, "5:held", "local") }, keep,
			v1alpha1.ReasonPoolOlderSpec, ""},
		"older, and changed since then": {func(s *State) {
			older(s)
			s.Live.change(PropertySpec, "5:held", "local")
			s.Pool.Generation = 7
		}, keep, v1alpha1.ReasonPoolOlderSpec, ""},
		"older, accepted": {func(s *State) { older(s); accept(s, "2") }, held, v1alpha1.ReasonPoolChanging, "2"},
		"noted, accepted": {func(s *State) { s.Live.change(PropertySpec, "5:held", "local"); accept(s, "2") }, held,
			v1alpha1.ReasonPoolChanging, "2"},
		"older, another was accepted":      {func(s *State) { older(s); accept(s, "1") }, held, v1alpha1.ReasonPoolOlderSpec, "5:held"},
		"newer is noted before it is done": {func(s *State) { attach(s); s.Pool.Generation = 3 }, held, v1alpha1.ReasonPoolChanging, "3"},
		"newer, noted": {func(s *State) { attach(s); s.follow(3) }, keep + " RecordDisks AttachDisk", v1alpha1.ReasonPoolChanging,
			""},
		"a pool without the mark gets it": {func(s *State) { attach(s); s.Live.change(PropertySpec, "2", "default") }, held,
			v1alpha1.ReasonPoolChanging, "2"},
		"a mark that cannot be read": {func(s *State) { attach(s); s.Live.change(PropertySpec, "x", "local") }, keep,
			v1alpha1.ReasonPoolOlderSpec, ""},
		"a mark that cannot be read, accepted": {func(s *State) { s.Live.change(PropertySpec, "x", "local"); accept(s, "2") }, held,
			v1alpha1.ReasonPoolChanging, "2"},
		"a negative mark": {func(s *State) { attach(s); s.Live.change(PropertySpec, "-5", "local") }, keep, v1alpha1.ReasonPoolOlderSpec, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state := liveState()
			test.change(&state)
			decision := Plan(state)
			expectPool(t, decision, test.want, test.reason, "")
			if noting := decision.Actions[len(decision.Actions)-1].Settings; test.noting == "" && len(noting) > 0 ||
				test.noting != "" && (len(noting) != 1 || noting[0] != naming.Setting{Dataset: "bench0", Name: PropertySpec, Value: test.noting}) {
				t.Errorf("noted is %v, want %q", noting, test.noting)
			}
			if accept := "kubectl annotate --overwrite benchmarkpool bench0 storagebench.dev/accept-spec="; decision.Reason == v1alpha1.ReasonPoolOlderSpec && !strings.Contains(decision.Message, accept) {
				t.Errorf("no way out: %s", decision.Message)
			}
		})
	}
	// The spec that was lost may have said Retain.
	state := deletedState(liveState())
	older(&state)
	expectPool(t, Plan(state), "SetProperties", v1alpha1.ReasonPoolOlderSpec, "accept-spec=2")
}

func FuzzNewestSpec(f *testing.F) {
	for _, text := range []string{"", "0", "5", "5:held", "-1", "9223372036854775808", ":held", "5:held:held"} {
		f.Add(text, int64(2))
	}
	f.Fuzz(func(t *testing.T, text string, generation int64) {
		state := liveState()
		state.Pool.Generation = generation
		state.Live.change(PropertySpec, text, "local")
		if newest, held := state.Live.newestSpec(); newest < 0 {
			t.Errorf("%q is generation %d", text, newest)
		} else if stopped := olderSpec(state) != nil; stopped != (held || newest > generation) {
			t.Errorf("%q on generation %d: stopped is %v", text, generation, stopped)
		}
	})
}
