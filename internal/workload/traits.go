package workload

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// Traits describe a workload for plans, checks and estimates, without executing it. The engine executes it.
type Traits struct {
	// Name is the member of the API's Workload, and Spec a pointer to its value.
	Name string
	Spec any
	// Version increases with a release that changes what the numbers mean. Zero counts as 1.
	Version int
	// Duration of a measurement, zero if the spec does not say. RampUp comes before it.
	Duration, RampUp time.Duration
	// Setup is roughly how long it prepares before its first measurement.
	Setup time.Duration
	// ReadsFill says that it works on the data that a fill phase wrote.
	ReadsFill bool
	// Writes names what it writes to on its volume, such as data or logs, if another workload could write to the same place at the same
	// time.
	Writes string
	// Yields are the prefixes of the metrics that it has and most others lack; see CanMeasure.
	Yields string
	// Dated says that its series over time shows what it did before, during and after an operation.
	Dated bool
	// Files says that it needs a file system. RefusesRoot says that it does not run as root.
	Files, RefusesRoot bool
	// OnFiles says why it does not work on a file system, and what to write instead. Empty if it does.
	OnFiles string
	// HidesCache says why a phase cannot declare a Cold or Warm cache, and Once why it cannot repeat until a steady state, and what to
	// write instead. Empty if it can.
	HidesCache, Once string
	// DataFiles is the number of files that a fill has to write for it; 0 if any number will do.
	DataFiles int32
	// File is the key of a ConfigMap with its job file or script, if any. Inline puts the text into the spec; nil if that is not possible.
	File   *v1alpha1.ConfigMapKey
	Inline func(text string)
	// Refused says what in the spec of the workload cannot be executed; nil if the API has validated all of it.
	Refused func() string
	// Postgres says that it needs the runner image with PostgreSQL.
	Postgres bool
	// Least is how long a measurement takes at least, if Duration does not say.
	Least time.Duration
	// Moves is roughly how many bytes it reads and writes outside of Duration, and Guess roughly how long a measurement takes if the spec does
	// not say. Both are for estimates only.
	Moves func(filledBytes int64) int64
	Guess time.Duration
}

// kinds has a function for each member of Workload. It returns true if that member is set.
var kinds = []func(*v1alpha1.Workload) (Traits, bool){oltp, scan, redo, metadata, postgres, fio}

// TraitsOf returns the traits of the workload that is set. The name is empty if none is set, which the API refuses.
func TraitsOf(workload *v1alpha1.Workload) Traits {
	for _, kind := range kinds {
		if traits, is := kind(workload); is {
			return traits
		}
	}
	return Traits{}
}

// KindOf returns the name of the member that is set, which says what the phase does. Empty if this release knows no member that is set.
func KindOf(phase *v1alpha1.Phase) string {
	switch {
	case phase.Fill != nil:
		return results.KindFill
	case phase.Fragment != nil:
		return results.KindFragment
	case phase.Free != nil:
		return results.KindFree
	case phase.Measure != nil:
		return results.KindMeasure
	case phase.Operate != nil:
		return results.KindOperate
	}
	return ""
}

// kindVersions are the versions of phases without a workload. Since version 2, their time on ZFS includes the time until the transaction
// group is written. Since version 3, that of a fill on ZFS includes the pauses between its files.
var kindVersions = map[string]int{results.KindFill: 3, results.KindFragment: 2}

// Version says what the numbers of a phase mean: the kind of the phase or its workloads, and the version of each. Results that differ in it
// are not compared.
func Version(phase *v1alpha1.Phase) string {
	if parts := PartsOf(phase); len(parts) > 0 {
		var versions []string
		for i := range parts {
			versions = append(versions, parts[i].Version())
		}
		return strings.Join(versions, ", ")
	}
	if traits, measures := PhaseTraits(phase); measures {
		return traits.version()
	}
	return Traits{Name: KindOf(phase), Version: kindVersions[KindOf(phase)]}.version()
}

func (t Traits) version() string { return fmt.Sprintf("%s %d", t.Name, max(t.Version, 1)) }

// PhaseTraits returns the traits of the workload of a measure phase, or of several together; false for other phases.
func PhaseTraits(phase *v1alpha1.Phase) (Traits, bool) {
	if phase.Measure == nil {
		return Traits{}, false
	}
	if parts := PartsOf(phase); len(parts) > 0 {
		return together(parts), true
	}
	return TraitsOf(&phase.Measure.Workload), true
}

// Problem says why a phase cannot measure this workload, and what to write instead; empty if it can.
func (t Traits) Problem(phase *v1alpha1.MeasurePhase, block bool) string {
	declared := phase.Cache != "" && phase.Cache != v1alpha1.CacheAny
	within := t.problemWithin(phase)
	switch {
	case t.Name == "":
		return "the phase has no workload: use one of " + strings.Join(Names(), ", ")
	case t.HidesCache != "" && declared:
		return "cache: " + string(phase.Cache) + ": " + t.HidesCache
	case t.Once != "" && phase.SteadyState != nil:
		return "steadyState: " + t.Once
	case within != "":
		return within
	case t.Files && block:
		return t.Name + " needs a file system: write volumeMode: Filesystem (or dataset.type: Filesystem), or choose another workload"
	case t.OnFiles != "" && !block:
		return t.OnFiles
	}
	return ""
}

// problemWithin says why the operation of a phase cannot begin after the workload has begun, and end before the workload ends.
func (t Traits) problemWithin(phase *v1alpha1.MeasurePhase) string {
	after, rest, longest := length(phase.OperateAfter), length(phase.AfterOperation), t.Duration+t.RampUp
	point, offline := longestPoint(t.Duration), time.Duration(0)
	if phase.Operate != nil && phase.Operate.OfflineDevice != nil {
		offline = length(phase.Operate.OfflineDevice.Duration)
	}
	switch {
	case phase.OperateAfter == nil:
		return ""
	case !t.Dated:
		return "operateAfter: this workload has no rates before, during and after the operation: write oltp, redo or metadata"
	case phase.Operate != nil && phase.Operate.ModuleParameter != nil:
		return "operateAfter: a module parameter is set until the workload ends: remove operateAfter"
	case longest <= after:
		return fmt.Sprintf("operateAfter: %s is not less than the time of the workload, %s: measure longer, or start the operation earlier",
			after, longest)
	case after < pointsBefore*point:
		return fmt.Sprintf("operateAfter: %s is too short for rates before the operation: write %s or longer. The series over time of a "+
			"workload of %s has points of %s", after, pointsBefore*point, t.Duration, point)
	case offline > 0 && longest <= after+rest+offline:
		return fmt.Sprintf("operateAfter: a disk is offline for %s, which leaves no time to rebuild its data in the time of the workload, %s: "+
			"measure longer, or write a shorter duration of offlineDevice", offline, longest)
	case phase.AfterOperation == nil:
		return ""
	case rest < pointsAfter*point:
		return fmt.Sprintf("until: an afterOperation of %s is too short for rates after the operation: write %s or longer. The series over time "+
			"of a workload of %s has points of %s", rest, pointsAfter*point, t.Duration, point)
	case longest <= after+rest:
		return fmt.Sprintf("until: operateAfter and afterOperation are %s, which leaves no time for the operation in the longest time of the "+
			"workload, %s: write a longer duration", after+rest, longest)
	}
	return ""
}

// Refusal returns what Refused says, or an empty string if Refused is nil.
func (t Traits) Refusal() string {
	if t.Refused == nil {
		return ""
	}
	return t.Refused()
}

// Names returns the names of all workloads of the API.
func Names() []string {
	var names []string
	api := reflect.TypeFor[v1alpha1.Workload]()
	for i := range api.NumField() {
		name, _, _ := strings.Cut(api.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func length(given *v1alpha1.Duration) time.Duration {
	if given == nil {
		return 0
	}
	return given.Duration.Duration
}
