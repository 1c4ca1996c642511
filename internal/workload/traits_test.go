package workload

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestEveryWorkloadHasTraits: a workload of the API that is not in the registry would be planned as if it asked for nothing.
func TestEveryWorkloadHasTraits(t *testing.T) {
	api := reflect.TypeFor[v1alpha1.Workload]()
	if api.NumField() < 5 || len(kinds) != api.NumField() {
		t.Fatalf("%d workloads in the API, %d in the registry", api.NumField(), len(kinds))
	}
	for i, name := range Names() {
		var given v1alpha1.Workload
		field := reflect.ValueOf(&given).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		traits := TraitsOf(&given)
		if traits.Name != name || traits.Spec != field.Interface() {
			t.Errorf("workload %s has the traits of %q", name, traits.Name)
		}
		if problem := traits.Problem(&v1alpha1.MeasurePhase{Workload: given}, false); problem != "" {
			t.Errorf("workload %s alone: %s", name, problem)
		}
	}
}

// TestVersion names each workload of a phase.
func TestVersion(t *testing.T) {
	oltp := v1alpha1.NamedWorkload{Name: "data", OLTP: &v1alpha1.OLTPWorkload{}}
	redo := v1alpha1.NamedWorkload{Name: "log", Redo: &v1alpha1.RedoWorkload{}}
	archived := v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Archive: &v1alpha1.RedoArchive{}}}
	for want, phase := range map[string]v1alpha1.Phase{
		"fill 3":         {Fill: &v1alpha1.FillPhase{}},
		"scan 1":         {Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}},
		"oltp 1, redo 1": {Measure: &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{oltp, redo}}},
		// Only a log with an archiver has a gap, which version 1 measured until the last append had ended.
		"redo 2, archive 1": {Measure: &v1alpha1.MeasurePhase{Workload: archived}},
	} {
		if got := Version(&phase); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestEveryPhaseHasAKind: a phase of the API without a kind would be taken for another one.
func TestEveryPhaseHasAKind(t *testing.T) {
	api, members := reflect.TypeFor[v1alpha1.Phase](), 0
	for i := range api.NumField() {
		field := api.Field(i)
		if field.Type.Kind() != reflect.Pointer || !strings.HasSuffix(field.Type.Elem().Name(), "Phase") {
			continue
		}
		members++
		var phase v1alpha1.Phase
		reflect.ValueOf(&phase).Elem().Field(i).Set(reflect.New(field.Type.Elem()))
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); KindOf(&phase) != name {
			t.Errorf("phase %s has the kind %q: add it to KindOf", name, KindOf(&phase))
		}
	}
	if members < 4 {
		t.Errorf("only %d members of a phase were compared", members)
	}
	if kind := KindOf(&v1alpha1.Phase{}); kind != "" {
		t.Errorf("a phase without a member has the kind %q", kind)
	}
}

// TestProblems covers the settings of a phase that its workload does not support.
func TestProblems(t *testing.T) {
	redo := v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}}
	postgres := v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{}}
	long := v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Duration: lasting(2 * time.Minute)}}
	hour := v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Duration: lasting(time.Hour)}}
	scrub := &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	apart := v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{Layout: LayoutFilePerWorker, Workers: 4}}
	for _, test := range []struct {
		name  string
		phase v1alpha1.MeasurePhase
		block bool
		want  string
	}{
		{"none", v1alpha1.MeasurePhase{}, false, "use one of oltp, scan, redo"},
		{"cold redo", v1alpha1.MeasurePhase{Workload: redo, Cache: v1alpha1.CacheCold}, false, "write cache: Any"},
		{"any", v1alpha1.MeasurePhase{Workload: redo, Cache: v1alpha1.CacheAny}, true, ""},
		{"postgres in rounds", v1alpha1.MeasurePhase{Workload: postgres, SteadyState: &v1alpha1.SteadyState{}}, false, "set postgres.duration"},
		{"postgres on a device", v1alpha1.MeasurePhase{Workload: postgres}, true, "volumeMode: Filesystem"},
		{"files on a device", v1alpha1.MeasurePhase{Workload: apart}, true, "volumeMode: Filesystem"},
		{"files", v1alpha1.MeasurePhase{Workload: apart}, false, ""},
		{"an operation within", v1alpha1.MeasurePhase{Workload: long, OperateAfter: lasting(time.Minute), Operate: scrub}, false, ""},
		{"an operation behind", v1alpha1.MeasurePhase{Workload: long, OperateAfter: lasting(2 * time.Minute), Operate: scrub}, false,
			"2m0s is not less than the time of the workload, 2m0s"},
		{"within postgres", v1alpha1.MeasurePhase{Workload: postgres, OperateAfter: lasting(time.Minute), Operate: scrub}, false,
			"write oltp, redo or metadata"},
		{"until it ends", v1alpha1.MeasurePhase{Workload: long, OperateAfter: lasting(time.Minute), Operate: scrub,
			Until: v1alpha1.UntilOperationEnds, AfterOperation: lasting(59 * time.Second)}, false, ""},
		{"no time until it ends", v1alpha1.MeasurePhase{Workload: long, OperateAfter: lasting(time.Minute), Operate: scrub,
			Until: v1alpha1.UntilOperationEnds, AfterOperation: lasting(time.Minute)}, false, "2m0s, which leaves no time for the operation"},
		{"too soon for points of 8 s", v1alpha1.MeasurePhase{Workload: hour, OperateAfter: lasting(23 * time.Second), Operate: scrub}, false,
			"operateAfter: 23s is too short for rates before the operation: write 24s or longer"},
		{"with the pod", v1alpha1.MeasurePhase{Workload: long, OperateAfter: lasting(0), Operate: scrub}, false, "write 3s or longer"},
		{"points of 8 s", v1alpha1.MeasurePhase{Workload: hour, OperateAfter: lasting(24 * time.Second), Operate: scrub,
			Until: v1alpha1.UntilOperationEnds, AfterOperation: lasting(16 * time.Second)}, false, ""},
		{"too short a rest for points of 8 s", v1alpha1.MeasurePhase{Workload: hour, OperateAfter: lasting(24 * time.Second), Operate: scrub,
			Until: v1alpha1.UntilOperationEnds, AfterOperation: lasting(15 * time.Second)}, false, "write 16s or longer"},
		{"postgres until it ends", v1alpha1.MeasurePhase{Workload: postgres, OperateAfter: lasting(time.Minute), Operate: scrub,
			Until: v1alpha1.UntilOperationEnds, AfterOperation: lasting(time.Minute)}, false, "write oltp, redo or metadata"},
		{"a parameter within", v1alpha1.MeasurePhase{Workload: long, OperateAfter: lasting(time.Minute), Operate: &v1alpha1.PoolAction{
			ModuleParameter: &v1alpha1.ModuleParameterAction{}}}, false, "a module parameter is set until the workload ends"},
	} {
		got := TraitsOf(&test.phase.Workload).Problem(&test.phase, test.block)
		if got == "" != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
