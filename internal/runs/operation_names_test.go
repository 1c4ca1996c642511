package runs

import (
	"reflect"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
)

// TestEveryActionFindsTheDriversDataset: each action that works on the dataset of a volume gets the path that the driver chose, except those
// that would clone or destroy it.
func TestEveryActionFindsTheDriversDataset(t *testing.T) {
	refused := map[string]bool{"clone": true, "destroyDataset": true}
	actions, named := reflect.TypeFor[v1alpha1.PoolAction](), 0
	for i := range actions.NumField() {
		var action v1alpha1.PoolAction
		body := reflect.New(actions.Field(i).Type.Elem())
		reflect.ValueOf(&action).Elem().Field(i).Set(body)
		dataset := body.Elem().FieldByName("Dataset")
		if !dataset.IsValid() {
			continue
		}
		want := "parent/pvc-1"
		if refused[operate.Name(action)] {
			want = string(naming.RunDataset("data"))
		}
		dataset.SetString(string(naming.RunDataset("data")))
		nameDataset(&action, "data", "sb-1-data/parent/pvc-1")
		if named++; dataset.String() != want {
			t.Errorf("%s: the dataset is %q, want %q", operate.Name(action), dataset.String(), want)
		}
	}
	if named < 8 {
		t.Errorf("only %d actions name a dataset", named)
	}
}
