package api

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// filler gives every field of a struct a value that is valid and not zero. Where the type alone does not say what is
// valid, values does, by "Type.Field" or by type name.
type filler struct {
	values map[string]any
	// members selects the member of each union to set, by type name; the first by default.
	members map[string]string
	devices int
}

// unions has the types with exactly one set member, and their members in the Go struct.
var unions = map[string][]string{
	"Target": {"StorageClass", "ZFS", "Ref"},
	"Phase":  {"Fill", "Fragment", "Free", "Measure", "Operate"},
	"PoolAction": {"Observe", "Snapshot", "Clone", "DestroySnapshot", "DestroyDataset", "Replicate", "Copy", "Scrub", "Trim", "AddVdev",
		"RemoveVdev", "ReplaceDevice", "OfflineDevice", "ExportImport", "ModuleParameter", "SetProperty", "LayoutScore", "MetaslabMap"},
	"ReplicateAction":  {"ToVolume", "ToPool"},
	"MeasurePhase":     {"Workload", "Workloads"},
	"CopyAction":       {"ToVolume", "ToPool"},
	"Workload":         {"OLTP", "Scan", "Redo", "Metadata", "Postgres", "FIO"},
	"FIOWorkload":      {"JobFile", "JobFileFrom"},
	"FillPhase":        {"To", "Size"},
	"AdditionalVolume": {"Pool", "PoolOf"},
	"Gate":             {"Expression", "Bound", "Ratio", "Compare", "Preflight"},
}

func (f *filler) fill(value reflect.Value, path string) {
	if set, known := f.values[path]; known && set == nil {
		return // left empty on purpose
	}
	if value.Kind() == reflect.Pointer {
		value.Set(reflect.New(value.Type().Elem()))
		f.fill(value.Elem(), path)
		return
	}
	if f.special(value, path) {
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		f.fillStruct(value)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			value.SetBytes([]byte("data"))
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		f.fill(value.Index(0), path)
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		f.fill(key, path)
		f.fill(element, path)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.String:
		value.SetString("a1")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(7)
	default:
		panic(fmt.Sprintf("%s: cannot fill a %s", path, value.Type()))
	}
}

func (f *filler) fillStruct(value reflect.Value) {
	kind := value.Type().Name()
	member := f.members[kind]
	if member == "" && unions[kind] != nil {
		member = unions[kind][0]
	}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		other := member != "" && field.Name != member && strings.Contains(" "+strings.Join(unions[kind], " ")+" ", " "+field.Name+" ")
		if field.Type == reflect.TypeFor[metav1.TypeMeta]() || field.Type == reflect.TypeFor[metav1.ObjectMeta]() || other {
			continue
		}
		f.fill(value.Field(i), kind+"."+field.Name)
	}
}

// special fills values for which the kind of the Go type does not say what is valid.
func (f *filler) special(value reflect.Value, path string) bool {
	if set, known := f.values[path]; known {
		value.Set(reflect.ValueOf(set).Convert(value.Type()))
		return true
	}
	if set, known := f.values[value.Type().Name()]; known {
		value.Set(reflect.ValueOf(set).Convert(value.Type()))
		return true
	}
	if (strings.HasSuffix(path, "dev.Devices") || path == "AddVdevAction.Devices") && value.Kind() == reflect.Slice { // as many as a mirror and the draid below need
		value.Set(reflect.MakeSlice(value.Type(), 3, 3))
		for i := range 3 {
			f.fill(value.Index(i), "")
		}
		return true
	}
	switch at := value.Addr().Interface().(type) {
	case *v1alpha1.DevicePath: // no device may stand in two places
		f.devices++
		*at = v1alpha1.DevicePath(fmt.Sprintf("/dev/disk/by-id/d%d", f.devices))
	case *v1alpha1.DiskRef: // nor be replaced by itself
		f.devices++
		*at = v1alpha1.DiskRef(fmt.Sprintf("/dev/disk/by-id/d%d", f.devices))
	case *v1alpha1.Duration:
		at.Duration.Duration = 90e9
	case *v1alpha1.BlockSize:
		at.Quantity = resource.MustParse("16Ki")
	case *v1alpha1.Share:
		*at = "12.5%"
	case *v1alpha1.MetricPath:
		*at = "a1.readBytesPerSecond"
	case *resource.Quantity:
		*at = resource.MustParse("20Gi")
	case *metav1.Time:
		*at = metav1.Unix(1767225600, 0)
	case *metav1.MicroTime:
		*at = metav1.NewMicroTime(metav1.Unix(1767225600, 123456000).Time)
	case *intstr.IntOrString:
		*at = intstr.FromInt32(7)
	case *types.UID:
		*at = "u"
	default:
		return false
	}
	return true
}

// allPoolProperties are the properties that a pool may have.
var allPoolProperties = v1alpha1.Properties{"autoexpand": "on", "autotrim": "on", "comment": "a1", "compatibility": "openzfs-2.1-linux",
	"dedup_table_quota": "1G", "failmode": "continue"}

// valid returns the values for fields for which not any text or number is valid. For each field at least one shape has a value other than
// the default: otherwise a lost value would not be noticed.
func valid() map[string]any {
	return map[string]any{
		"MeasurePhase.OperateAfter": nil, "MeasurePhase.Until": nil, "MeasurePhase.AfterOperation": nil,
		"Vdev.Type": "draid1", "Vdev.DraidDataDevices": 1, "Vdev.DraidSpares": 1,
		"AddVdevAction.Type": "draid1", "AddVdevAction.DraidDataDevices": 1, "AddVdevAction.DraidSpares": 1,
		"AuxiliaryVdev.Type": "mirror",
		"ResetPolicy":        "Dataset", "RunOrder": "Sequential", "GatePolicy": "Enforce", "RetainPolicy": "Always", "Verdict": "Inconclusive",
		"StorageBenchmarkSpec.Adaptive": nil, // it needs the order Interleaved, and a gate that compares
		"FragmentUntil":                 "Rounds", "FragmentPhase.SteadyState": nil, "FragmentPhase.MaxRounds": 9,
		"CacheExpectation": "Cold", "ConditionStatus": "Unknown", "BenchmarkPoolSpec.Drift": "Repair", "DeletionPolicy": "Destroy",
		"PersistentVolumeMode": "Block", "PersistentVolumeAccessMode": "ReadWriteMany",
		"TolerationOperator": "Equal", "TaintEffect": "NoExecute",
		"PoolDataset.Type": "Volume", "PoolDataset.Mounted": nil, "PoolDataset.Awaited": nil,
		"CloneAction.As": nil, "ReplicateAction.As": nil, "CopyAction.As": nil, "DatasetTemplate.Type": "Volume", "DatasetOverride.Type": "Volume",
		"DatasetTemplate.FSType": "xfs", "DatasetOverride.FSType": "xfs",
		"DatasetTemplate.Provisioner": "Local", "DatasetOverride.Provisioner": "Local",
		"FillPhase.Of": "Volume", "OLTPWorkload.Layout": "SharedFile", "RedoWorkload.Sync": "fdatasync", "MetadataWorkload.Sync": "File",
		"PostgresWorkload.Mode": "Script", "PostgresWorkload.DataChecksums": false, "CompareGate.To": "Variant",
		"CompareGate.AcceptSingleDay": nil, "CompareGate.AcceptAgeing": nil, "CompareGate.Since": nil, "ZFSTarget.KeepFor": nil,
		"PoolOperationStatus.Outcome": "Cancelled", "GUID": "7",
		"Bound": "1.5GB/s", "Ratio": "1.5x", "PreflightCheck": "ashift", "PreflightGate.Expect": "Warning", "Schedule.Cron": "0 3 * * 1", "Schedule.TimeZone": "Europe/Berlin", "FIOWorkload.JobFile": "[job1]\nrw=read",
		"Gate.Expression": "phase('a1').readBytesPerSecond >= 100e6", "ModuleParameterAction.Name": "zfs_arc_max",
		"ModuleParameters": v1alpha1.ModuleParameters{"zfs_arc_max": "1"}, "Phase.Volume": "data",
		"PoolTemplate.Ashift": 13, "PoolOverride.Ashift": 9, "BlockSizeShare.Percent": 100,
		"PoolTemplate.Properties": allPoolProperties, "PoolOverride.Properties": allPoolProperties,
		"LiveProperties": v1alpha1.LiveProperties{"recordsize": "128k"},
		"CloneAction.To": "copy", "CopyAction.To": "copy", "ReplicateAction.ToVolume": "log", "ReplicateAction.ToPool": "other",
		"CopyAction.ToVolume": "log", "CopyAction.ToPool": "other",
		"RunGroup.Nodes": []string{"a0", "a1"}, "RunGroup.Index": 1,
		"DeviceReuse.Serials": []string{"WD-1234"}, "AdditionalVolume.Name": "log", "AdditionalVolume.PoolOf": "data", "VolumeOverride.Name": "log",
		"Matrix":     v1alpha1.Matrix{"phases.a1.to": {"60%", "90%"}},
		"MatrixMode": "Zip", "MatrixEntry": v1alpha1.MatrixEntry{"phases.a1.to": "60%"},
		"Variant.Set":               map[string]v1alpha1.MatrixValue{"phases.a1.to": "50%"},
		"PostgresWorkload.Settings": map[string]v1alpha1.PropertyValue{"shared_buffers": "1GB"},
	}
}
