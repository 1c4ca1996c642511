package operations

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

var setPropertyKind = traits{begin: beginSetProperty, stage: setPropertyStage}

// wantedProperties returns the properties of the action, with the names in sorted order.
func (s State) wantedProperties() (names []string, values map[string]string) {
	values = map[string]string{}
	for name, value := range s.Operation.Spec.Action.SetProperty.Properties {
		values[name] = string(value)
	}
	return slices.Sorted(maps.Keys(values)), values
}

func (s State) property(name string) (zfs.Property, bool) {
	at := slices.IndexFunc(s.Properties, func(p zfs.Property) bool { return p.Name == name })
	if at < 0 {
		return zfs.Property{}, false
	}
	return s.Properties[at], true
}

// beginSetProperty records the guid of the dataset: a later dataset of the same name has another guid.
func beginSetProperty(state State) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	names, _ := state.wantedProperties()
	for _, name := range names {
		if _, has := state.property(name); !has {
			return "", refuses(v1alpha1.ReasonNotSupported, "the ZFS of this node knows no property %s of %s, which is a %s: remove it", name,
				state.Source.Name, state.Source.Type)
		}
	}
	return state.Source.GUID, nil
}

// setPropertyStage returns the progress. The command that sets the values also sets the mark of the operation, so the mark shows whether it
// has run.
func setPropertyStage(state State) operationStage {
	if !state.Source.Exists || state.Source.GUID != state.handleDetail() {
		return failedStage(v1alpha1.ReasonDatasetNotFound, "dataset %s with guid %s, which the operation started with, is gone",
			state.Source.Name, state.handleDetail())
	}
	names, values := state.wantedProperties()
	var set, other []string
	for _, name := range names {
		is, _ := state.property(name)
		set = append(set, fmt.Sprintf("%s=%s", name, values[name]))
		if !zfs.SameValue(values[name], is.Value) {
			other = append(other, fmt.Sprintf("%s is %s instead of %s", name, is.Value, values[name]))
		}
	}
	mark, _ := state.property(pools.PropertyChanged)
	switch {
	case pools.ChangedBy(mark).Operation != string(state.Operation.UID):
		return pending("setting %s of dataset %s", strings.Join(set, ", "), state.Source.Name)
	case len(other) > 0:
		return failedStage(v1alpha1.ReasonActionFailed, "after setting %s of dataset %s, ZFS reports: %s; write values as 'zfs get' prints them",
			strings.Join(set, ", "), state.Source.Name, strings.Join(other, ", "))
	}
	return done(nil, "%s of dataset %s is set: it applies to blocks written from now on", strings.Join(set, ", "), state.Source.Name)
}

// Correction returns the mark that has to replace the mark of the operation, or "" if that mark is right. ZFS checks properties one by one:
// it may refuse some and still set the others and the mark, which then records values that the dataset does not have. The returned mark
// records a refused property with its current value, because an earlier operation may have set that value. If the spec has the same value,
// the property is removed from the mark. The UID stays, because it shows that the command has run.
func (s State) Correction() string {
	mark, _ := s.property(pools.PropertyChanged)
	changed := pools.ChangedBy(mark)
	right := changed.With(changed.Operation, nil)
	for name := range s.Operation.Spec.Action.SetProperty.Properties {
		is, _ := s.property(name)
		specified := slices.ContainsFunc(pools.WantedSettings(s.Pool), func(setting naming.Setting) bool {
			return setting.Dataset == s.Source.Name && setting.Name == name && zfs.SameValue(setting.Value, is.Value)
		})
		switch was, recorded := changed.Properties[name]; {
		case !recorded || zfs.SameValue(was, is.Value):
		case is.Local() && !specified && !strings.Contains(is.Value, ","): // no mark can hold such a value
			right.Properties[name] = is.Value
		default:
			delete(right.Properties, name)
		}
	}
	if changed.Operation != string(s.Operation.UID) || maps.Equal(right.Properties, changed.Properties) {
		return ""
	}
	return right.Mark()
}

// Setting returns the properties that the command sets, including the mark.
func (s State) Setting() map[string]string {
	_, values := s.wantedProperties()
	mark, _ := s.property(pools.PropertyChanged)
	values[pools.PropertyChanged] = pools.ChangedBy(mark).With(string(s.Operation.UID), values).Mark()
	return values
}
