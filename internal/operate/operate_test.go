package operate

import (
	"reflect"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestKinds: anyone who adds an operation must decide whether it leaves traces on a kept pool, and which metrics a phase gets from
// it.
func TestKinds(t *testing.T) {
	want := map[string]bool{
		"observe": false, "scrub": false, "trim": false, "exportImport": false, "moduleParameter": false, "layoutScore": false,
		"setProperty": false, "offlineDevice": false,
		"metaslabMap": false,
		"snapshot":    true, "clone": true, "destroySnapshot": true, "destroyDataset": true, "replicate": true, "copy": true, "addVdev": true, "removeVdev": true,
		"replaceDevice": true,
	}
	all := All()
	for _, action := range all {
		name := Name(action)
		if _, known := kinds[name]; !known {
			t.Errorf("%s: describe its kind", name)
		}
		if leaves, listed := want[name]; !listed || leaves != LeavesTraces(&action) {
			t.Errorf("%s leaves traces: %v; listed in this test: %v", name, LeavesTraces(&action), listed)
		}
	}
	if fields := reflect.TypeFor[v1alpha1.PoolAction]().NumField(); fields != len(all) || fields != len(want) {
		t.Errorf("%d actions in the API, %d in All, %d in this test", fields, len(all), len(want))
	}
	if len(kinds) != len(all) {
		t.Errorf("%d actions in the API, %d kinds", len(all), len(kinds))
	}
	if _, known := Metrics(&v1alpha1.PoolAction{}); known {
		t.Error("an unknown operation has metrics")
	}
	if !LeavesTraces(&v1alpha1.PoolAction{}) {
		t.Error("an unknown operation is taken to leave nothing")
	}
}

func TestDataset(t *testing.T) {
	action := v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{Dataset: "a"}}
	*Dataset(&action) = "b"
	if action.LayoutScore.Dataset != "b" {
		t.Error("it is not the field of the action")
	}
	for _, none := range []v1alpha1.PoolAction{{}, {Scrub: &v1alpha1.ScrubAction{}}} {
		if got := Dataset(&none); got != nil {
			t.Errorf("%s has dataset %s", Name(none), *got)
		}
	}
}
