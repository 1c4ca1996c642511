// Package operate has the code about operations on pools that the manager and the agent share.
package operate

import (
	"reflect"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Name is the name of the field of a PoolAction that is set.
func Name(action v1alpha1.PoolAction) string {
	name, _ := requested(&action)
	return name
}

// Dataset returns the field with the dataset that an action reads, changes or destroys, or nil if the action has none.
func Dataset(action *v1alpha1.PoolAction) *v1alpha1.DatasetPath {
	if _, details := requested(action); details.IsValid() {
		if field := details.FieldByName("Dataset"); field.IsValid() {
			return field.Addr().Interface().(*v1alpha1.DatasetPath)
		}
	}
	return nil
}

// All returns an action of each kind.
func All() []v1alpha1.PoolAction {
	all := make([]v1alpha1.PoolAction, reflect.TypeFor[v1alpha1.PoolAction]().NumField())
	for i := range all {
		field := reflect.ValueOf(&all[i]).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
	}
	return all
}

// requested returns the name and the value of the field of an action that is set.
func requested(action *v1alpha1.PoolAction) (name string, details reflect.Value) {
	value := reflect.ValueOf(action).Elem()
	for i := range value.NumField() {
		if field := value.Field(i); field.Kind() == reflect.Pointer && !field.IsNil() {
			name, _, _ = strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			return name, field.Elem()
		}
	}
	return "", reflect.Value{}
}

// MetricDuration is how long an operation took: as ZFS reports it, or from its start until the agent that began it noticed its end.
const MetricDuration = "durationSeconds"

// MetricDurationNanoseconds is how long the work itself took, for operations that measure it.
const MetricDurationNanoseconds = "durationNanoseconds"

// MetricCommand is how long the command of an operation took, if the operation continues after it.
const MetricCommand = "commandNanoseconds"

// Duration returns the reported duration of an operation, as precisely as it is known.
func Duration(operation *v1alpha1.PoolOperation) (took time.Duration, known bool) {
	if took, known = Measured(operation); known {
		return took, true
	}
	for _, metric := range operation.Status.Metrics {
		if metric.Name == MetricDuration && metric.Value >= 0 {
			return time.Duration(metric.Value) * time.Second, true
		}
	}
	return 0, false
}

// Measured returns how long the work of an operation took, if the operation measures that. Such an operation ends when its work ends.
func Measured(operation *v1alpha1.PoolOperation) (took time.Duration, known bool) {
	for _, metric := range operation.Status.Metrics {
		if metric.Name == MetricDurationNanoseconds && metric.Value > 0 {
			return time.Duration(metric.Value), true
		}
	}
	return 0, false
}

// ToPool returns the other BenchmarkPool that an action writes to, or "" if there is none.
func ToPool(action *v1alpha1.PoolAction) string {
	switch {
	case action.Replicate != nil:
		return action.Replicate.ToPool
	case action.Copy != nil:
		return action.Copy.ToPool
	}
	return ""
}

// Disks returns the disks that an action names. The disks that it adds to the pool come last.
func Disks(action *v1alpha1.PoolAction) (disks []*v1alpha1.DiskRef) {
	switch {
	case action.AddVdev != nil:
		for i := range action.AddVdev.Devices {
			disks = append(disks, &action.AddVdev.Devices[i])
		}
	case action.ReplaceDevice != nil:
		return []*v1alpha1.DiskRef{&action.ReplaceDevice.Device, &action.ReplaceDevice.With}
	case action.RemoveVdev != nil:
		return []*v1alpha1.DiskRef{&action.RemoveVdev.Device}
	case action.OfflineDevice != nil:
		return []*v1alpha1.DiskRef{&action.OfflineDevice.Device}
	case action.Trim != nil && action.Trim.Device != "":
		return []*v1alpha1.DiskRef{&action.Trim.Device}
	}
	return disks
}

// As returns the volume that an action makes, the dataset from which it is made, and the volume on whose pool it is made. name is empty if
// the action makes no volume. to is empty for a clone or a copy without toVolume, which stay on their pool.
func As(action *v1alpha1.PoolAction) (name v1alpha1.VolumeName, from v1alpha1.DatasetPath, to v1alpha1.VolumeName) {
	switch {
	case action.Clone != nil:
		return action.Clone.As, action.Clone.Dataset, ""
	case action.Replicate != nil:
		return action.Replicate.As, action.Replicate.Dataset, action.Replicate.ToVolume
	case action.Copy != nil:
		return action.Copy.As, action.Copy.Dataset, action.Copy.ToVolume
	}
	return "", "", ""
}

// To returns the dataset that an action writes to, or "" if there is none.
func To(action *v1alpha1.PoolAction) v1alpha1.DatasetPath {
	switch {
	case action.Clone != nil:
		return action.Clone.To
	case action.Replicate != nil:
		return action.Replicate.To
	case action.Copy != nil:
		return action.Copy.To
	}
	return ""
}

// Of returns the operations of a phase: that of an operate phase, and that of measure.operate.
func Of(phase *v1alpha1.Phase) []*v1alpha1.PoolAction {
	var actions []*v1alpha1.PoolAction
	if phase.Operate != nil {
		actions = append(actions, &phase.Operate.PoolAction)
	}
	if phase.Measure != nil && phase.Measure.Operate != nil {
		actions = append(actions, phase.Measure.Operate)
	}
	return actions
}
