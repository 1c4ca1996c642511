package api

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// shape is one way to fill the kinds: the members of unions that are set, and the values that this requires elsewhere.
type shape struct {
	members map[string]string
	values  map[string]any
}

// A target of one kind forbids the fields of the other.
var (
	onClass = map[string]any{"MeasurePhase.Operate": nil, "Variant.Target": nil, "Variant.Pool": nil, "Variant.Dataset": nil,
		"Variant.Volumes": nil, "Variant.ModuleParameters": nil, "StorageBenchmarkSpec.TTLAfterFinished": nil}
	onZFS = map[string]any{"Variant.Target": nil, "Variant.StorageClass": nil, "Phase.Volume": "log", "FillPhase.Of": "Pool",
		"StorageBenchmarkSpec.Schedule": nil}
	ownTarget = map[string]any{"Variant.StorageClass": nil, "Variant.Pool": nil, "Variant.Dataset": nil,
		"Variant.Volumes": nil, "Variant.ModuleParameters": nil, "StorageBenchmarkSpec.Schedule": nil, "MeasurePhase.Operate": nil}
	// removed are lists that mean something when they are empty.
	removed = map[string]any{"PoolOverride.Log": []v1alpha1.AuxiliaryVdev{}, "PoolOverride.Cache": []v1alpha1.DevicePath{},
		"PoolOverride.Special": []v1alpha1.AuxiliaryVdev{}}
	files   = map[string]any{"PersistentVolumeMode": "Filesystem", "OLTPWorkload.Layout": "FilePerWorker"}
	mounted = map[string]any{"PoolDataset.Type": "Filesystem", "PoolDataset.Size": nil, "PoolDataset.Mounted": true}
	awaited = map[string]any{"PoolDataset.Awaited": true, "PoolDataset.Properties": nil}
	// made are volumes that phases make.
	made = map[string]any{"CloneAction.To": nil, "ReplicateAction.To": nil, "CopyAction.To": nil, "CloneAction.As": "fresh",
		"ReplicateAction.As": "fresh", "CopyAction.As": "fresh", "MeasurePhase.Operate": nil}
	converge = map[string]any{"FragmentUntil": "Converged", "FragmentPhase.Rounds": nil, "FragmentPhase.SteadyState": v1alpha1.SteadyState{
		WindowRounds: 7, MaxRange: "12.5%", MaxSlope: "12.5%", MaxDrift: "12.5%"}}
)

// making is the prefix of the names of shapes whose phases make volumes.
const making = "making-"

func of(members map[string]string, values ...map[string]any) shape {
	all := valid()
	for _, more := range values {
		maps.Copy(all, more)
	}
	return shape{members, all}
}

// adaptive adds repetitions while a comparison is open.
var adaptive = map[string]any{"RunOrder": "Interleaved", "StorageBenchmarkSpec.Adaptive": v1alpha1.Adaptive{
	MaxRepetitions: 8, Budget: &v1alpha1.Duration{Duration: metav1.Duration{Duration: 90e9}}}}

// shapes returns shapes that reach every member of every union and, together, every field.
func shapes() map[string]shape {
	all := map[string]shape{
		"fragment-rounds":    of(map[string]string{"Phase": "Fragment"}, onClass),
		"fragment-converged": of(map[string]string{"Phase": "Fragment"}, onClass, converge),
		"free":               of(map[string]string{"Phase": "Free"}, onClass),
		"own-target":         of(map[string]string{"Phase": "Fill"}, ownTarget),
		"zfs":                of(map[string]string{"Target": "ZFS", "Phase": "Fill"}, onZFS),
		"pool-of":            of(map[string]string{"Target": "ZFS", "Phase": "Fill", "AdditionalVolume": "PoolOf"}, onZFS),
		"ref":                of(map[string]string{"Target": "Ref", "Phase": "Fill"}, onClass, map[string]any{"Variant.StorageClass": nil}),
		"removed-devices":    of(map[string]string{"Target": "ZFS", "Phase": "Fill"}, onZFS, removed),
		"files":              of(map[string]string{"Phase": "Measure", "Workload": "OLTP"}, onClass, files),
		"mounted":            of(map[string]string{"Phase": "Fill"}, onClass, mounted),
		"awaited":            of(map[string]string{"Phase": "Fill"}, onClass, mounted, awaited),
		"fill-size":          of(map[string]string{"Phase": "Fill", "FillPhase": "Size"}, onClass),
		"fio-config-map":     of(map[string]string{"Phase": "Measure", "Workload": "FIO", "FIOWorkload": "JobFileFrom"}, onClass),
	}
	block := &v1alpha1.BlockSize{Quantity: resource.MustParse("16Ki")}
	long := &v1alpha1.Duration{Duration: metav1.Duration{Duration: 90e9}}
	all["workloads"] = of(map[string]string{"Phase": "Measure", "MeasurePhase": "Workloads"}, onClass, map[string]any{
		"MeasurePhase.SteadyState": nil, "CacheExpectation": "Any", "MeasurePhase.Workloads": []v1alpha1.NamedWorkload{
			{Name: "a1", Volume: "log", OLTP: &v1alpha1.OLTPWorkload{Workers: 7, UpdatePercent: 7, BlockSize: block, Duration: long,
				Layout: "SharedFile"}},
			{Name: "a2", Volume: "data", Scan: &v1alpha1.RepeatedScan{BlockSize: block}},
			{Name: "a3", Volume: "log", Redo: &v1alpha1.RedoWorkload{Writers: 7, Sync: "fdatasync", Duration: long}}}})
	for _, member := range unions["Workload"] {
		all["workload-"+member] = of(map[string]string{"Phase": "Measure", "Workload": member}, onClass, files)
	}
	all["workload-Redo"] = of(map[string]string{"Phase": "Measure", "Workload": "Redo"}, onClass, files,
		map[string]any{"MeasurePhase.SteadyState": nil})
	all["workload-Postgres"] = of(map[string]string{"Phase": "Measure", "Workload": "Postgres"}, onClass, files,
		map[string]any{"MeasurePhase.SteadyState": nil, "PostgresWorkload.WALVolume": nil})
	all["wal-volume"] = of(map[string]string{"Target": "ZFS", "Phase": "Measure", "Workload": "Postgres"}, onZFS, files,
		map[string]any{"MeasurePhase.SteadyState": nil, "MeasurePhase.Operate": nil, "PostgresWorkload.WALVolume": "data"})
	for _, member := range unions["Gate"] {
		all["gate-"+member] = of(map[string]string{"Phase": "Fill", "Gate": member}, onClass)
	}
	compare := map[string]string{"Phase": "Fill", "Gate": "Compare"}
	all["gate-baseline"] = of(compare, onClass, map[string]any{"CompareGate.To": "Baseline", "CompareGate.Variant": nil,
		"CompareGate.AcceptSingleDay": true})
	all["gate-history"] = of(compare, onClass, map[string]any{"CompareGate.To": "History", "CompareGate.Variant": nil,
		"CompareGate.Since": metav1.Unix(1767225600, 0), "CompareGate.AcceptAgeing": true})
	all["keep-for"] = of(map[string]string{"Target": "ZFS", "Phase": "Fill"}, onZFS, map[string]any{"ZFSTarget.KeepFor": v1alpha1.KeepForSchedule,
		"StorageBenchmarkSpec.TTLAfterFinished": nil,
		"StorageBenchmarkSpec.Schedule":         v1alpha1.Schedule{Cron: "0 3 * * 1", TimeZone: "Europe/Berlin"}})
	all["adaptive"] = of(compare, onClass, adaptive)
	all["operate-after"] = of(map[string]string{"Target": "ZFS", "Phase": "Measure", "PoolAction": "Scrub"}, onZFS,
		map[string]any{"MeasurePhase.SteadyState": nil, "MeasurePhase.OperateAfter": *long})
	all["until-operation-ends"] = of(map[string]string{"Target": "ZFS", "Phase": "Measure", "PoolAction": "Scrub"}, onZFS,
		map[string]any{"MeasurePhase.SteadyState": nil, "MeasurePhase.OperateAfter": *long, "MeasurePhase.Until": "OperationEnds",
			"MeasurePhase.AfterOperation": *long})
	for _, member := range unions["PoolAction"] {
		members := map[string]string{"Target": "ZFS", "Phase": "Operate", "PoolAction": member}
		all["operate-"+member] = of(members, onZFS)
		if slices.Contains([]string{"Clone", "Replicate", "Copy"}, member) {
			all[making+member] = of(members, onZFS, made)
		}
		members = map[string]string{"Target": "ZFS", "Phase": "Measure", "PoolAction": member}
		all["beside-"+member] = of(members, onZFS)
	}
	return all
}

func TestEveryFieldSurvives(t *testing.T) {
	door, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	seen, objects := map[string]bool{}, 0
	kinds := []client.Object{&v1alpha1.StorageBenchmark{}, &v1alpha1.BenchmarkRun{}, &v1alpha1.BenchmarkPool{}, &v1alpha1.PoolOperation{},
		&v1alpha1.StorageTarget{}}
	for name, shape := range shapes() {
		for _, kind := range kinds {
			if _, is := kind.(*v1alpha1.StorageBenchmark); shape.members["Target"] == "Ref" && !is {
				continue // only a benchmark refers to a StorageTarget
			}
			if _, is := kind.(*v1alpha1.PoolOperation); is && strings.HasPrefix(name, making) {
				continue // only phases make volumes
			}
			t.Run(fmt.Sprintf("%s/%s", reflect.TypeOf(kind).Elem().Name(), name), func(t *testing.T) {
				survives(t, door, kind, shape, seen)
			})
			objects++
		}
	}
	fields := map[string]bool{}
	for _, kind := range kinds {
		for _, part := range []string{"Spec", "Status"} {
			top, has := reflect.TypeOf(kind).Elem().FieldByName(part)
			if !has {
				continue
			}
			eachField(top.Type, func(owner reflect.Type, field reflect.StructField) {
				fields[owner.Name()+"."+field.Name] = true
			})
		}
	}
	if len(fields) < 200 {
		t.Errorf("only %d fields found: eachField does not see them", len(fields))
	}
	for field := range fields {
		if !seen[field] {
			t.Errorf("no shape fills %s: add one to shapes()", field)
		}
	}
	if !t.Failed() {
		fmt.Printf("fields that survive a round trip: %d, in %d objects\n", len(fields), objects)
	}
}

// survives writes an object with everything set and reads it back.
func survives(t *testing.T, door client.Client, kind client.Object, shape shape, seen map[string]bool) {
	ctx := context.Background()
	want := kind.DeepCopyObject().(client.Object)
	members := maps.Clone(shape.members)
	if _, is := kind.(*v1alpha1.PoolOperation); is { // a phase names a volume, an operation a pool
		members["ReplicateAction"], members["CopyAction"] = "ToPool", "ToPool"
	}
	filler := &filler{values: shape.values, members: members}
	filler.fill(reflect.ValueOf(want).Elem(), "")
	want.SetName("roundtrip")
	switch kind.(type) {
	case *v1alpha1.StorageBenchmark, *v1alpha1.BenchmarkRun, *v1alpha1.StorageTarget:
		want.SetNamespace("default")
	}
	stored := want.DeepCopyObject().(client.Object)
	if err := door.Create(ctx, stored); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = door.Delete(ctx, stored) }()
	parts := []string{"Spec"}
	if reflect.ValueOf(want).Elem().FieldByName("Status").IsValid() {
		parts = append(parts, "Status")
		status := want.DeepCopyObject().(client.Object)
		status.SetResourceVersion(stored.GetResourceVersion())
		if err := door.Status().Update(ctx, status); err != nil {
			t.Fatal(err)
		}
	}
	got := kind.DeepCopyObject().(client.Object)
	if err := door.Get(ctx, client.ObjectKeyFromObject(want), got); err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		a, b := reflect.ValueOf(want).Elem().FieldByName(part), reflect.ValueOf(got).Elem().FieldByName(part)
		sameQuantity := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
		if diff := cmp.Diff(a.Interface(), b.Interface(), sameQuantity); diff != "" {
			t.Errorf("%s differs (-written +read):\n%s", part, diff)
		}
		eachValue(b, func(owner reflect.Type, field reflect.StructField, value reflect.Value) {
			if !value.IsZero() {
				seen[owner.Name()+"."+field.Name] = true
			} else if part == "Status" {
				t.Errorf("status field %s.%s is empty", owner.Name(), field.Name)
			}
		})
	}
}

// ours reports whether a struct is encoded as an object with fields, not as a string like a Time or a Quantity.
func ours(kind reflect.Type) bool {
	switch kind {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[resource.Quantity]():
		return false
	}
	if kind.Kind() != reflect.Struct || kind.Name() == "IntOrString" {
		return false
	}
	if kind.NumField() == 1 && kind.Field(0).Anonymous { // Size, Amount, BlockSize, Bound, Duration
		inner := kind.Field(0).Type
		return inner != reflect.TypeFor[resource.Quantity]() && inner != reflect.TypeFor[metav1.Duration]()
	}
	return true
}

func metadata(field reflect.StructField) bool {
	return field.Type == reflect.TypeFor[metav1.TypeMeta]() || field.Type == reflect.TypeFor[metav1.ObjectMeta]()
}

// eachField visits the fields of a type and of all types below it.
func eachField(kind reflect.Type, visit func(reflect.Type, reflect.StructField)) {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
		kind = kind.Elem()
	}
	if !ours(kind) {
		return
	}
	for i := range kind.NumField() {
		if field := kind.Field(i); !metadata(field) {
			if !field.Anonymous && field.Type.Size() > 0 && jsonName(field) != "" {
				visit(kind, field)
			}
			eachField(field.Type, visit)
		}
	}
}

// eachValue visits the fields of a value and of all values below it.
func eachValue(value reflect.Value, visit func(reflect.Type, reflect.StructField, reflect.Value)) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			eachValue(value.Elem(), visit)
		}
	case reflect.Slice:
		for i := range value.Len() {
			eachValue(value.Index(i), visit)
		}
	case reflect.Struct:
		if !ours(value.Type()) {
			return
		}
		for i := range value.NumField() {
			visit(value.Type(), value.Type().Field(i), value.Field(i))
			eachValue(value.Field(i), visit)
		}
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
