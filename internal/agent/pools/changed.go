package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// PropertyChanged is the mark that records what operations have set on a dataset: the UID of the last operation and all values, such as
// "UID,recordsize=128k,sync=disabled". The command that sets the values also sets the mark, in the same transaction group. The mark
// disappears with its dataset.
const PropertyChanged = "storagebench.dev:changed"

// Changed are the properties that operations have set on a dataset. They override the spec.
type Changed struct {
	// Operation is the UID of the last operation.
	Operation  string
	Properties map[string]string
}

// ChangedBy reads the mark of a dataset. An inherited or received mark does not count.
func ChangedBy(mark zfs.Property) Changed {
	changed := Changed{Properties: map[string]string{}}
	if !mark.Local() {
		return changed
	}
	operation, values, _ := strings.Cut(mark.Value, ",")
	changed.Operation = operation
	for text := range strings.SplitSeq(values, ",") {
		if name, value, isSetting := strings.Cut(text, "="); isSetting && value != "" && !slices.Contains(settings.Operators(), name) {
			changed.Properties[name] = value
		}
	}
	return changed
}

// With returns the changes after another operation.
func (c Changed) With(operation string, properties map[string]string) Changed {
	after := Changed{Operation: operation, Properties: map[string]string{}}
	maps.Copy(after.Properties, c.Properties)
	maps.Copy(after.Properties, properties)
	return after
}

// Mark returns the value of PropertyChanged.
func (c Changed) Mark() string {
	words := []string{c.Operation}
	for _, name := range slices.Sorted(maps.Keys(c.Properties)) {
		words = append(words, name+"="+c.Properties[name])
	}
	return strings.Join(words, ",")
}

func (l *LivePool) changed(dataset string) Changed {
	mark, _ := l.Property(dataset, PropertyChanged)
	return ChangedBy(mark)
}

// InForce returns the settings of the spec, overridden by the properties that operations have changed since the spec was last applied.
func (s State) InForce() []naming.Setting {
	wanted := WantedSettings(s.Pool)
	if !s.specIsSet() {
		return wanted
	}
	for _, dataset := range s.Pool.Spec.Datasets {
		name := naming.DatasetName(s.Pool, dataset)
		properties := s.Live.changed(name).Properties
		wanted = slices.DeleteFunc(wanted, func(setting naming.Setting) bool {
			_, replaced := properties[setting.Name]
			return setting.Dataset == name && replaced
		})
		for _, property := range slices.Sorted(maps.Keys(properties)) {
			wanted = append(wanted, naming.Setting{Dataset: name, Name: property, Value: properties[property]})
		}
	}
	return wanted
}

// setBack returns the settings that set the properties that operations have changed back to the spec. A setting without a value means that
// the property is inherited. The mark is removed last, because it lists the properties that are still to be set back.
func (s State) setBack(dataset string) []naming.Setting {
	properties := s.Live.changed(dataset).Properties
	if len(properties) == 0 {
		return nil
	}
	specified := map[string]string{}
	for _, setting := range WantedSettings(s.Pool) {
		if setting.Dataset == dataset {
			specified[setting.Name] = setting.Value
		}
	}
	var settings []naming.Setting
	for _, property := range slices.Sorted(maps.Keys(properties)) {
		settings = append(settings, naming.Setting{Dataset: dataset, Name: property, Value: specified[property]})
	}
	return append(settings, naming.Setting{Dataset: dataset, Name: PropertyChanged})
}

// changedWords describes what operations have changed.
func (s State) changedWords() string {
	var words []string
	for _, dataset := range s.Pool.Spec.Datasets {
		name := naming.DatasetName(s.Pool, dataset)
		properties := s.Live.changed(name).Properties
		for _, property := range slices.Sorted(maps.Keys(properties)) {
			words = append(words, fmt.Sprintf("%s of %s to %s", property, name, properties[property]))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "; operations have set " + strings.Join(words, ", ")
}
