package pools

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// TestWaitsUntilFreed: a dataset is recreated only after ZFS has freed the space of its predecessor.
func TestWaitsUntilFreed(t *testing.T) {
	state := liveState()
	state.Pool.Labels = map[string]string{v1alpha1.LabelReset: "Dataset", v1alpha1.LabelRunUID: "r2"}
	state.Pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "volume"}}
	state.Live.FreeingBytes = 7
	expectPool(t, Plan(state), "AddFinalizer", v1alpha1.ReasonPoolChanging, "still freeing 7 bytes")
	state.Live.FreeingBytes = 0
	decision := Plan(state)
	expectPool(t, decision, "AddFinalizer CreateDataset", v1alpha1.ReasonPoolChanging, "making dataset bench0/volume")
	if got := decision.Actions[1].Dataset.Properties; got[naming.PropertyUID] != "uid-1" || got[naming.PropertyRun] != "r2" {
		t.Errorf("made with %v", got)
	}
}
