package operate

import (
	"reflect"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestLeavesTraces: anyone who adds an operation must decide whether it leaves traces on a kept pool, and which metrics a phase gets from
// it.
func TestLeavesTraces(t *testing.T) {
	want := map[string]bool{
		"observe": false, "scrub": false, "trim": false, "exportImport": false, "moduleParameter": false, "layoutScore": false,
		"setProperty": false, "offlineDevice": false,
		"metaslabMap": false,
		"snapshot":    true, "clone": true, "destroySnapshot": true, "destroyDataset": true, "replicate": true, "copy": true, "addVdev": true, "removeVdev": true,
		"replaceDevice": true,
	}
	fields := reflect.TypeFor[v1alpha1.PoolAction]()
	for i := range fields.NumField() {
		var action v1alpha1.PoolAction
		field := reflect.ValueOf(&action).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		name := Name(action)
		if _, known := Metrics(&action); !known {
			t.Errorf("%s: say which metrics it has", name)
		}
		if leaves, listed := want[name]; !listed || leaves != LeavesTraces(&action) {
			t.Errorf("%s leaves traces: %v; listed in this test: %v", name, LeavesTraces(&action), listed)
		}
	}
	if fields.NumField() != len(want) {
		t.Errorf("%d actions in the API, %d in this test", fields.NumField(), len(want))
	}
	if len(metrics) != fields.NumField() {
		t.Errorf("%d actions in the API, %d with metrics", fields.NumField(), len(metrics))
	}
	if _, known := Metrics(&v1alpha1.PoolAction{}); known {
		t.Error("an unknown operation has metrics")
	}
	if !LeavesTraces(&v1alpha1.PoolAction{}) {
		t.Error("an unknown operation is taken to leave nothing")
	}
}
