package foresee

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// setting is a ZFS property, a module parameter or a setting of PostgreSQL, with the field that sets it.
type setting struct {
	field, name, value string
	check              func(name, value string) settings.Answer
	// further is true if another value of the same path came before, so that a wrong name is not reported again.
	further bool
}

// foreseeSettings checks each setting at the place where it is written: in a target, a variant, the matrix or an operation.
func foreseeSettings(spec *v1alpha1.StorageBenchmarkSpec, f *Foresight) {
	f.checkSettings(settingsOf(spec))
}

// Target finds settings of a StorageTarget that cannot work.
func Target(target *v1alpha1.Target) *Foresight {
	f := &Foresight{}
	f.checkSettings(targetSettings("spec", target))
	return f
}

func (f *Foresight) checkSettings(all []setting) {
	var before settings.Answer
	for _, one := range all {
		answer := one.check(one.name, one.value)
		if one.further && answer == before {
			continue
		}
		before = answer
		if answer.Refusal != "" {
			f.refuse(one.field, answer.Refusal)
		}
		if answer.Warning != "" {
			f.warn(one.field, answer.Warning)
		}
	}
}

func settingsOf(spec *v1alpha1.StorageBenchmarkSpec) []setting {
	all := targetSettings("spec.target", &spec.Target)
	for i := range spec.Variants {
		variant, at := &spec.Variants[i], fmt.Sprintf("spec.variants[%d]", i)
		if variant.Target != nil {
			all = append(all, targetSettings(at+".target", variant.Target)...)
		}
		if variant.Pool != nil {
			all = append(all, each(at+".pool.properties", variant.Pool.Properties, settings.Pool)...)
		}
		if variant.Dataset != nil {
			all = append(all, each(at+".dataset.properties", variant.Dataset.Properties, settings.Dataset)...)
		}
		for j, change := range variant.Volumes {
			one := fmt.Sprintf("%s.volumes[%d]", at, j)
			if change.Pool != nil {
				all = append(all, each(one+".pool.properties", change.Pool.Properties, settings.Pool)...)
			}
			if change.Dataset != nil {
				all = append(all, each(one+".dataset.properties", change.Dataset.Properties, settings.Dataset)...)
			}
		}
		all = append(all, each(at+".moduleParameters", variant.ModuleParameters, settings.Parameter)...)
		for _, path := range slices.Sorted(maps.Keys(variant.Set)) {
			all = append(all, pathSettings(spec, fmt.Sprintf("%s.set[%s]", at, path), path, variant.Set[path])...)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(spec.Matrix)) {
		all = append(all, pathSettings(spec, fmt.Sprintf("spec.matrix[%s]", path), path, spec.Matrix[path]...)...)
	}
	for i := range spec.Phases {
		all = append(all, actionSettings(i, &spec.Phases[i])...)
		if given := databaseOf(&spec.Phases[i]); given != nil {
			all = append(all, each(design.PhaseField(i)+".measure.workload.postgres.settings", given.Settings, databaseSetting)...)
		}
	}
	return all
}

// actionSettings returns the settings of the operations of a phase.
func actionSettings(i int, phase *v1alpha1.Phase) (all []setting) {
	at := design.PhaseField(i) + ".operate."
	if phase.Operate == nil {
		at = design.PhaseField(i) + ".measure.operate."
	}
	for _, action := range operate.Of(phase) {
		switch {
		case action.ModuleParameter != nil:
			all = append(all, setting{design.PhaseField(i), action.ModuleParameter.Name, string(action.ModuleParameter.Value),
				named(settings.Parameter),
				false})
		case action.SetProperty != nil:
			all = append(all, each(at+"setProperty.properties", action.SetProperty.Properties, settings.Change)...)
		case action.Copy != nil:
			all = append(all, each(at+"copy.properties", action.Copy.Properties, settings.Dataset)...)
		}
	}
	return all
}

func targetSettings(at string, target *v1alpha1.Target) []setting {
	zfs := target.ZFS
	if zfs == nil {
		return nil
	}
	all := slices.Concat(poolSettings(at+".zfs.pool", &zfs.Pool), datasetSettings(at+".zfs.dataset", zfs.Dataset),
		each(at+".zfs.moduleParameters", zfs.ModuleParameters, settings.Parameter))
	for i := range zfs.Volumes {
		one := fmt.Sprintf("%s.zfs.volumes[%d]", at, i)
		if pool := zfs.Volumes[i].Pool; pool != nil {
			all = append(all, poolSettings(one+".pool", pool)...)
		}
		all = append(all, datasetSettings(one+".dataset", zfs.Volumes[i].Dataset)...)
	}
	for i := range zfs.PerNode {
		all = append(all, poolSettings(fmt.Sprintf("%s.zfs.perNode[%d].pool", at, i), &zfs.PerNode[i].Pool)...)
	}
	return all
}

func poolSettings(at string, pool *v1alpha1.PoolTemplate) []setting {
	return append(each(at+".properties", pool.Properties, settings.Pool), each(at+".rootProperties", pool.RootProperties, settings.Dataset)...)
}

func datasetSettings(at string, dataset *v1alpha1.DatasetTemplate) []setting {
	if dataset == nil {
		return nil
	}
	return each(at+".properties", dataset.Properties, settings.Dataset)
}

// each lists settings in the order of their names.
func each[M ~map[string]v1alpha1.PropertyValue](at string, all M, check func(name, value string) settings.Answer) (found []setting) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		found = append(found, setting{at + "." + name, name, string(all[name]), check, false})
	}
	return found
}

// named makes a check put the name of the setting in front of its message. It is for fields that do not end with that name.
func named(check func(name, value string) settings.Answer) func(name, value string) settings.Answer {
	return func(name, value string) settings.Answer {
		answer := check(name, value)
		for _, text := range []*string{&answer.Refusal, &answer.Warning} {
			if *text != "" {
				*text = name + ": " + *text
			}
		}
		return answer
	}
}

// checkKinds refuses properties of filesystems on volumes, and the other way round.
func checkKinds(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	if slot.Target.ZFS == nil {
		return nil
	}
	f := &Foresight{}
	for i, one := range volume.TargetVolumes(slot.Target) {
		for _, name := range slices.Sorted(maps.Keys(one.Dataset.Properties)) {
			problem := settings.On(name, cmp.Or(one.Dataset.Type, settings.Filesystem))
			if problem == "" {
				continue
			}
			field := datasetAt(spec, slot, i) + ".properties." + name
			if i == 0 {
				field = datasetField(spec, slot, name)
				problem = cmp.Or(ofOtherVariants(spec, field, name), problem)
			}
			f.refuse(field, fmt.Sprintf("%s (variant %q)", problem, slot.Variant))
		}
	}
	return f.Err()
}

// ofOtherVariants says where to move a property that fits the dataset of the target, but not that of a variant. Empty if it does not fit
// the target either.
func ofOtherVariants(spec *v1alpha1.StorageBenchmarkSpec, field, name string) string {
	base := spec.Target.ZFS
	if base == nil || base.Dataset == nil || !strings.HasPrefix(field, "spec.target.") {
		return ""
	}
	switch kind := cmp.Or(base.Dataset.Type, settings.Filesystem); {
	case settings.On(name, kind) != "":
		return ""
	case kind == settings.Filesystem:
		return "a variant is a Volume, which does not have it: move " + name + " to the variants that are file systems"
	default:
		return "a variant is a Filesystem, which does not have it: move " + name + " to the variants that are volumes"
	}
}

// datasetField returns the field that sets a property of the first dataset of a variant.
func datasetField(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot, name string) string {
	path := "dataset." + name
	if _, is := spec.Matrix[path]; is {
		return fmt.Sprintf("spec.matrix[%s]", path)
	}
	for i, variant := range spec.Variants {
		if slot.Base != string(variant.Name) {
			continue
		}
		at := fmt.Sprintf("spec.variants[%d]", i)
		if _, is := variant.Set[path]; is {
			return fmt.Sprintf("%s.set[%s]", at, path)
		}
		if variant.Target != nil {
			return at + ".target.zfs.dataset.properties." + name
		}
		if variant.Dataset != nil && variant.Dataset.Properties[name] != "" {
			return at + ".dataset.properties." + name
		}
	}
	return "spec.target.zfs.dataset.properties." + name
}
