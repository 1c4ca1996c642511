// Package operate is what the manager and the agent both know of operations on pools.
package operate

import (
	"reflect"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Name is the field of a PoolAction that is set, which says what is done.
func Name(action v1alpha1.PoolAction) string {
	value := reflect.ValueOf(action)
	for i := range value.NumField() {
		if field := value.Field(i); field.Kind() == reflect.Pointer && !field.IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

// MetricDuration is how long an operation took: as ZFS tells it, or from its start until its end was noticed.
const MetricDuration = "durationSeconds"

// Duration is how long an operation took that tells it.
func Duration(operation *v1alpha1.PoolOperation) (took time.Duration, known bool) {
	for _, metric := range operation.Status.Metrics {
		if metric.Name == MetricDuration && metric.Value >= 0 {
			return time.Duration(metric.Value) * time.Second, true
		}
	}
	return 0, false
}

// LeavesTraces says whether an operation makes or removes something beside the data of the workload: a dataset, a snapshot or a disk.
func LeavesTraces(action *v1alpha1.PoolAction) bool {
	return action.Snapshot != nil || action.Clone != nil || action.DestroyDataset != nil || action.Replicate != nil || action.Copy != nil ||
		action.AddVdev != nil || action.RemoveVdev != nil || action.ReplaceDevice != nil
}

// Of are the operations of a phase: the one that it is, and the one beside it.
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
