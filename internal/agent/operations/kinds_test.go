package operations

import (
	"reflect"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
)

// TestEveryActionHasAKind: an action of the API that no file plans would do nothing, or the wrong thing.
func TestEveryActionHasAKind(t *testing.T) {
	fields := reflect.TypeFor[v1alpha1.PoolAction]()
	for i := range fields.NumField() {
		var action v1alpha1.PoolAction
		field := reflect.ValueOf(&action).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		if kind := kindOf(action); kind.begin == nil || kind.stage == nil {
			t.Errorf("%s (%q) has no kind", fields.Field(i).Name, operate.Name(action))
		}
	}
	if len(kinds) != fields.NumField() || len(kinds) == 0 {
		t.Errorf("%d kinds for %d actions", len(kinds), fields.NumField())
	}
}
