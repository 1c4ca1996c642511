package runs

import (
	"reflect"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
)

// TestEveryActionFindsTheDriversDataset: each action that works on the dataset of a volume gets the path that the driver chose. Validation
// rejects actions that clone or destroy such a dataset.
func TestEveryActionFindsTheDriversDataset(t *testing.T) {
	refused := map[string]bool{"clone": true, "destroyDataset": true}
	actions, named := reflect.TypeFor[v1alpha1.PoolAction](), 0
	for i := range actions.NumField() {
		var action v1alpha1.PoolAction
		body := reflect.New(actions.Field(i).Type.Elem())
		reflect.ValueOf(&action).Elem().Field(i).Set(body)
		dataset := body.Elem().FieldByName("Dataset")
		if !dataset.IsValid() || refused[operate.Name(action)] {
			continue
		}
		dataset.SetString(string(naming.RunDataset("data")))
		nameDataset(&action, "data", "sb-1-data/parent/pvc-1")
		if named++; dataset.String() != "parent/pvc-1" {
			t.Errorf("%s: the dataset is %q", operate.Name(action), dataset.String())
		}
	}
	if named < 6 {
		t.Errorf("only %d actions name a dataset", named)
	}
}
