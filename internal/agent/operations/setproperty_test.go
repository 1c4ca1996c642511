package operations

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/zfs"
)

var setPropertyAction = v1alpha1.PoolAction{SetProperty: &v1alpha1.SetPropertyAction{Dataset: "data",
	Properties: v1alpha1.LiveProperties{"recordsize": "128k", "sync": "disabled"}}}

// having gives the dataset these properties, all of them set locally.
func having(guid string, properties map[string]string) func(*State) {
	return func(s *State) {
		s.Source = Object{Name: "bench0/data", Exists: guid != "", Dataset: zfs.Dataset{Type: "filesystem", GUID: guid}}
		for name, value := range properties {
			s.Properties = append(s.Properties, zfs.Property{Object: "bench0/data", Name: name, Value: value, Source: "local"})
		}
	}
}

func TestSetPropertyBegins(t *testing.T) {
	for name, entry := range map[string]struct {
		change func(*State)
		want   decided
	}{
		"there": {having("5", map[string]string{"recordsize": "8192", "sync": "standard"}),
			decided{"AddFinalizer", "", v1alpha1.ReasonOperationRunning, "begins"}},
		"no dataset": {having("", nil), decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDatasetNotFound, "does not exist; nothing was done"}},
		"a volume has none": {having("5", map[string]string{"sync": "standard"}),
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonNotSupported, "no property recordsize"}},
		"a pool that has drifted": {func(s *State) {
			having("5", map[string]string{"recordsize": "8192", "sync": "standard"})(s)
			notReadyFor(v1alpha1.ReasonPoolDrifted)(s)
		}, decided{"", "", v1alpha1.ReasonPoolNotReady, "Drifted"}},
	} {
		t.Run(name, func(t *testing.T) {
			state := operationState(setPropertyAction)
			entry.change(&state)
			entry.want.diff(t, Plan(state))
		})
	}
}

// TestSetPropertyStages: the mark says whether the command has run, whatever the values are.
func TestSetPropertyStages(t *testing.T) {
	runs := decided{"AddFinalizer Run", "", v1alpha1.ReasonOperationRunning, "setting recordsize=128k, sync=disabled"}
	mark := func(of, recordsize string) func(*State) {
		return having("5", map[string]string{"recordsize": recordsize, "sync": "disabled", pools.PropertyChanged: of + ",recordsize=128k"})
	}
	for name, entry := range map[string]struct {
		change func(*State)
		want   decided
	}{
		"not set":         {having("5", map[string]string{"recordsize": "8192", "sync": "standard"}), runs},
		"so by chance":    {having("5", map[string]string{"recordsize": "131072", "sync": "disabled"}), runs},
		"by another":      {mark("uid-other", "131072"), runs},
		"set":             {mark("uid-op", "131072"), decided{"", "Succeeded", v1alpha1.ReasonSucceeded, "is set"}},
		"set, and undone": {mark("uid-op", "8192"), decided{"", "Failed", v1alpha1.ReasonActionFailed, "recordsize is 8192 instead of 128k"}},
		"another dataset": {having("6", nil), decided{"", "Failed", v1alpha1.ReasonDatasetNotFound, "with guid 5"}},
		"an inherited mark": {func(s *State) {
			mark("uid-op", "131072")(s)
			for i := range s.Properties {
				s.Properties[i].Source = "inherited from bench0"
			}
		}, runs},
	} {
		t.Run(name, func(t *testing.T) {
			state := begun(setPropertyAction, "5")
			entry.change(&state)
			entry.want.diff(t, Plan(state))
		})
	}
}

// TestSettingKeepsEarlierChanges: properties that an earlier operation has set stay in the mark, except those that only the agent sets.
func TestSettingKeepsEarlierChanges(t *testing.T) {
	state := begun(setPropertyAction, "5")
	having("5", map[string]string{pools.PropertyChanged: "uid-0,logbias=throughput,mountpoint=/,recordsize=16k"})(&state)
	want := map[string]string{"recordsize": "128k", "sync": "disabled",
		pools.PropertyChanged: "uid-op,logbias=throughput,recordsize=128k,sync=disabled"}
	if diff := cmp.Diff(want, state.Setting()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestCorrection: a mark names only values that the dataset has.
func TestCorrection(t *testing.T) {
	const both = ",recordsize=128k,sync=disabled"
	volume := func(recordsize, sync, mark string) map[string]string {
		return map[string]string{"recordsize": recordsize, "sync": sync, pools.PropertyChanged: mark}
	}
	for name, c := range map[string]struct {
		has  map[string]string
		want string
	}{
		"right":                {volume("131072", "disabled", "uid-op"+both), ""},
		"nothing is set":       {volume("8192", "standard", "-"), ""},
		"one is refused":       {volume("8192", "disabled", "uid-op"+both), "uid-op,sync=disabled"},
		"both are refused":     {map[string]string{"recordsize": "8192", pools.PropertyChanged: "uid-op" + both}, "uid-op"},
		"as an earlier one":    {volume("16384", "disabled", "uid-op"+both), "uid-op,recordsize=16384,sync=disabled"},
		"not to be recorded":   {volume("16384,by-hand", "disabled", "uid-op"+both), "uid-op,sync=disabled"},
		"of another operation": {volume("8192", "disabled", "uid-0"+both), ""},
		"of another property":  {volume("131072", "disabled", "uid-op,atime=on"+both), ""},
	} {
		state := begun(setPropertyAction, "5")
		having("5", c.has)(&state)
		state.Pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "data", Properties: v1alpha1.Properties{"recordsize": "8k"}}}
		if got := state.Correction(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
