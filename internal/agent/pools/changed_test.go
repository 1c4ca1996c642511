package pools

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

const changedVolume = "bench0/volume"

// changedState is a pool with a dataset on which operations have set recordsize and sync. The spec names recordsize.
func changedState(reset v1alpha1.ResetPolicy) State {
	state := liveState()
	state.Pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "volume", Properties: v1alpha1.Properties{"recordsize": "8k", "atime": "off"}}}
	state.Live.Datasets = append(state.Live.Datasets, zfs.Dataset{Name: changedVolume, Type: "filesystem", GUID: "9"})
	marks := map[string]string{"recordsize": "131072", "atime": "off", "sync": "disabled",
		PropertyChanged: "uid-op,recordsize=128k,sync=disabled"}
	if reset != "" {
		state.Pool.Labels = map[string]string{v1alpha1.LabelReset: string(reset), v1alpha1.LabelRunUID: "r1"}
		marks[naming.PropertyUID], marks[naming.PropertyRun] = "uid-1", "r1"
	}
	for name, value := range marks {
		state.Live.DatasetProperties = append(state.Live.DatasetProperties,
			zfs.Property{Object: changedVolume, Name: name, Value: value, Source: "local"})
	}
	return state
}

func (s *State) setOnVolume(name, value, source string) {
	for i := range s.Live.DatasetProperties {
		if is := &s.Live.DatasetProperties[i]; is.Object == changedVolume && is.Name == name {
			is.Value, is.Source = value, source
		}
	}
}

// TestChangedByOperations: properties that operations have set are not drift, and are not set back until the spec or the run changes.
func TestChangedByOperations(t *testing.T) {
	const keep = "AddFinalizer"
	back := []naming.Setting{{Dataset: changedVolume, Name: "recordsize", Value: "8k"}, {Dataset: changedVolume, Name: "sync"},
		{Dataset: changedVolume, Name: PropertyChanged}}
	for name, c := range map[string]struct {
		reset                    v1alpha1.ResetPolicy
		change                   func(*State)
		actions, reason, message string
		settings                 []naming.Setting
	}{
		"in force": {"", func(*State) {}, keep, v1alpha1.ReasonPoolReady,
			"as specified; operations have set recordsize of bench0/volume to 128k, sync of bench0/volume to disabled", nil},
		"in force, to repair": {"", func(s *State) { s.Pool.Spec.Drift = "Repair" }, keep, v1alpha1.ReasonPoolReady, "128k", nil},
		"changed again, by hand": {"", func(s *State) { s.setOnVolume("recordsize", "8192", "local") }, keep, v1alpha1.ReasonPoolDrifted,
			"recordsize of bench0/volume is 8192 (local), requested is 128k", nil},
		"repaired": {"", func(s *State) {
			s.setOnVolume("sync", "standard", "local")
			s.Pool.Spec.Drift = "Repair"
		}, keep + " SetProperties", v1alpha1.ReasonPoolChanging, "requested is disabled",
			[]naming.Setting{{Dataset: changedVolume, Name: "sync", Value: "disabled"},
				{Dataset: "bench0", Name: naming.PropertyGeneration, Value: "2"}}},
		"an inherited mark": {"", func(s *State) { s.setOnVolume(PropertyChanged, "uid-op,recordsize=128k", "inherited from bench0") }, keep,
			v1alpha1.ReasonPoolDrifted, "requested is 8k", nil},
		"all was refused": {"", func(s *State) {
			s.setOnVolume("recordsize", "8192", "local")
			s.setOnVolume(PropertyChanged, "uid-op", "local")
		}, keep, v1alpha1.ReasonPoolReady, "as specified", nil},
		"another spec": {"", func(s *State) { s.follow(3) }, keep + " SetProperties", v1alpha1.ReasonPoolChanging, "requested is 8k",
			append(slices.Clone(back), naming.Setting{Dataset: "bench0", Name: naming.PropertyGeneration, Value: "3"})},
		"kept, same run": {v1alpha1.ResetNone, func(*State) {}, keep, v1alpha1.ReasonPoolReady, "128k", nil},
		"kept, next run": {v1alpha1.ResetNone, func(s *State) { s.Pool.Labels[v1alpha1.LabelRunUID] = "r2" }, keep + " SetProperties",
			v1alpha1.ReasonPoolChanging, "passing on", append(back, naming.Setting{Dataset: changedVolume, Name: naming.PropertyRun, Value: "r2"})},
		"next run, new dataset": {v1alpha1.ResetDataset, func(s *State) { s.Pool.Labels[v1alpha1.LabelRunUID] = "r2" },
			keep + " DestroyDataset", v1alpha1.ReasonPoolChanging, "destroying", nil},
	} {
		t.Run(name, func(t *testing.T) {
			state := changedState(c.reset)
			c.change(&state)
			decision := Plan(state)
			expectPool(t, decision, c.actions, c.reason, c.message)
			if diff := cmp.Diff(c.settings, decision.Actions[len(decision.Actions)-1].Settings); diff != "" {
				t.Errorf("settings (-want +got)\n%s", diff)
			}
		})
	}
}

// TestTheMarkSurvives: ChangedBy reads the same changes that Mark has written.
func TestTheMarkSurvives(t *testing.T) {
	wrote := Changed{}.With("uid-1", map[string]string{"recordsize": "8k"}).With("uid-2", map[string]string{"sync": "always", "recordsize": "1M"})
	if mark := wrote.Mark(); mark != "uid-2,recordsize=1M,sync=always" {
		t.Error(mark)
	}
	if diff := cmp.Diff(wrote, ChangedBy(zfs.Property{Value: wrote.Mark(), Source: "local"})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
