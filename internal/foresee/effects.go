package foresee

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
)

// effectRules find settings whose effect no phase can show. Each rule looks at one volume in all variants, and returns the field of the
// setting and what to write instead. The message is empty if all is well or too little is known.
var effectRules = []func(c *comparison, on places) (field, message string){
	intentLog, unflushed, attributes, accessTimes, specialUnused, specialTakesAll, specialAlike, cacheUnused, cacheCold,
	nothingTwice, nothingSmaller, recordsStay, zerosWritten, blockRepeated, fillOverwritten, algorithmsAlike, blankRows, directAlike,
	clonesAlike, smallFiles, levelsOfVolume, sameBytes, holesWritten, wholeDevice, queueBelowLeast, justWritten, readFromMemory, readAgain,
	secondaryUnused, nothingPrefetched, paddedBlocks,
}

// foreseeEffects warns once for each rule.
func foreseeEffects(spec *v1alpha1.StorageBenchmarkSpec, variants []design.Slot, f *Foresight) {
	variants = slices.SortedFunc(slices.Values(variants), func(a, b design.Slot) int { return cmp.Compare(a.Rank, b.Rank) })
	files := jobsByFile{}
	c := compare(spec, variants, files)
	for _, rule := range effectRules {
		for _, on := range c.volumes {
			if field, message := rule(c, on); message != "" {
				f.warn(field, message)
				break
			}
		}
	}
	foreseeJobs(variants, files, f)
	foreseeReadOnly(spec, variants, f)
	foreseeCheckpoints(variants, f)
}

// comparison holds the volumes of all variants that are on ZFS pools.
type comparison struct {
	spec    *v1alpha1.StorageBenchmarkSpec
	volumes []places
	// arrives is true if an operation writes data to some volume. The kind of that data is unknown, and it may duplicate existing data.
	arrives bool
}

// places are one volume in all variants that have it.
type places []place

// place is a volume of one variant, with the tasks of the phases on it.
type place struct {
	volume.RunVolume
	slot  *design.Slot
	tasks []task
	// changed are the properties and module parameters that a phase sets.
	changed map[string]bool
}

// task is a phase, or one of its workloads, that works on a volume, with the jobs of its job file.
type task struct {
	workload.Part
	file fileJobs
}

func compare(spec *v1alpha1.StorageBenchmarkSpec, variants []design.Slot, files jobsByFile) *comparison {
	c := &comparison{spec: spec}
	for i := range variants {
		all := placesWithTasks(&variants[i], files)
		c.arrives = c.arrives || len(all) > 0 && brings(&variants[i])
		for _, one := range all {
			c.add(one)
		}
	}
	return c
}

// placesWithTasks returns the volumes of a variant on a zfs target, with their tasks. It returns nil for other targets.
func placesWithTasks(slot *design.Slot, files jobsByFile) places {
	if slot.Target.ZFS == nil {
		return nil
	}
	targets, tasks := volume.TargetVolumes(slot.Target), map[string][]task{}
	for i := range slot.Phases {
		for _, part := range workload.Measured(&slot.Phases[i]) {
			on := string(design.VolumeOf(&part.Phase))
			if !slices.ContainsFunc(targets, func(one volume.RunVolume) bool { return one.Name == on }) {
				on = "" // a phase makes this volume, and it may inherit its properties from any other
			}
			tasks[on] = append(tasks[on], task{part, files.of(&part.Phase)})
		}
	}
	all := placesOf(slot)
	for i := range all {
		all[i].tasks = slices.Concat(tasks[all[i].Name], tasks[""])
	}
	return all
}

// placesOf returns the volumes of a variant, without their tasks.
func placesOf(slot *design.Slot) (all places) {
	changed := map[string]bool{}
	for i := range slot.Phases {
		for _, action := range operate.Of(&slot.Phases[i]) {
			if action.SetProperty != nil {
				for name := range action.SetProperty.Properties {
					changed[name] = true
				}
			}
			if action.ModuleParameter != nil {
				changed[action.ModuleParameter.Name] = true
			}
		}
	}
	for _, one := range volume.TargetVolumes(slot.Target) {
		all = append(all, place{RunVolume: one, slot: slot, changed: changed})
	}
	return all
}

// brings reports whether the operations of a variant write data.
func brings(slot *design.Slot) bool {
	return slices.ContainsFunc(slot.Phases, func(phase v1alpha1.Phase) bool {
		return slices.ContainsFunc(operate.Of(&phase), func(action *v1alpha1.PoolAction) bool {
			return action.Copy != nil || action.Replicate != nil
		})
	})
}

func (c *comparison) add(one place) {
	at := slices.IndexFunc(c.volumes, func(on places) bool { return on[0].Name == one.Name })
	if at < 0 {
		c.volumes = append(c.volumes, places{one})
		return
	}
	c.volumes[at] = append(c.volumes[at], one)
}

// sharing returns all volumes on the pool of a volume, in all variants. It returns none if the volume has no pool of its own, or a
// different pool on some nodes.
func (c *comparison) sharing(on places) (all places) {
	alike := func(p *place) bool {
		return p.PoolOf == p.Name && (p.Name != naming.VolumeData || len(p.slot.Target.ZFS.PerNode) == 0)
	}
	if on.any(func(p *place) bool { return !alike(p) }) {
		return nil
	}
	for _, other := range c.volumes {
		if other[0].PoolOf == on[0].Name {
			all = append(all, other...)
		}
	}
	return all
}

// first returns the first place for which a condition holds, or nil.
func (on places) first(holds func(*place) bool) *place {
	for i := range on {
		if holds(&on[i]) {
			return &on[i]
		}
	}
	return nil
}

func (on places) any(holds func(*place) bool) bool { return on.first(holds) != nil }

// where returns the places for which a condition holds.
func (on places) where(holds func(*place) bool) (some places) {
	for i := range on {
		if holds(&on[i]) {
			some = append(some, on[i])
		}
	}
	return some
}

// all reports whether all places have the same given value of a property.
func (on places) all(name, value string) bool {
	return len(on) > 0 && !on.any(func(p *place) bool { return p.get(name) != value })
}

// differs returns the first place whose value of a property differs from that of on[0], or nil.
func (on places) differs(name string) *place {
	return on.first(func(p *place) bool { return p.get(name) != on[0].get(name) })
}

// differsParameter does the same for a module parameter. If the place that differs does not set the parameter, it returns on[0], which
// does.
func (on places) differsParameter(name string) *place {
	at := on.first(func(p *place) bool { return p.parameter(name) != on[0].parameter(name) })
	if at != nil && at.parameter(name) == "" {
		return &on[0]
	}
	return at
}

// does reports whether a condition holds for a task of any variant.
func (on places) does(what func(*task) bool) bool {
	return on.any(func(p *place) bool { return p.does(what) })
}

func (p *place) does(what func(*task) bool) bool {
	return slices.ContainsFunc(p.tasks, func(one task) bool { return what(&one) })
}

// changes stands for the value of a property that a phase sets: no single value applies to the whole run.
const changes = "changes"

// unset holds the defaults of properties, as far as they are the same in all versions of OpenZFS.
var unset = map[string]string{"sync": "standard", "logbias": "latency", "atime": "on", "dedup": "off", "primarycache": "all",
	"secondarycache": "all", "special_small_blocks": "0"}

// get returns the value of a property: that of the dataset, that of the pool's root dataset, or the default. Empty if it is unknown.
func (p *place) get(name string) string {
	if p.changed[name] {
		return changes
	}
	return cmp.Or(string(p.Dataset.Properties[name]), string(p.Pool.RootProperties[name]), unset[name])
}

// parameter returns the value of a module parameter. Empty if it is not set.
func (p *place) parameter(name string) string {
	if p.changed[name] {
		return changes
	}
	return string(p.slot.Target.ZFS.ModuleParameters[name])
}

// field returns the field that sets a property of the place, or a module parameter: in the matrix, in the variant or in the target.
func (p *place) field(spec *v1alpha1.StorageBenchmarkSpec, name string) (found string) {
	value := cmp.Or(string(p.slot.Target.ZFS.ModuleParameters[name]), p.get(name))
	for _, one := range settingsOf(spec) {
		if one.name != name || !p.covers(spec, one.field) || one.value != value && found != "" {
			continue
		}
		found = wholePath(one.field)
	}
	return cmp.Or(found, targetField(spec, p.slot))
}

// wholePath removes the index of a matrix value from a field.
func wholePath(field string) string {
	if path, _, is := strings.Cut(field, "]["); is {
		return path + "]"
	}
	return field
}

// covers reports whether a field applies to this volume and variant.
func (p *place) covers(spec *v1alpha1.StorageBenchmarkSpec, field string) bool {
	at := slices.IndexFunc(spec.Variants, func(one v1alpha1.Variant) bool { return string(one.Name) == p.slot.Base })
	switch variant := fmt.Sprintf("spec.variants[%d].", at); {
	case strings.HasPrefix(field, "spec.phases["), strings.HasPrefix(field, "spec.variants[") && !strings.HasPrefix(field, variant):
		return false
	case strings.Contains(field, "volumes."):
		return strings.Contains(field, "volumes."+p.Name+".")
	}
	return strings.Contains(field, ".volumes[") == (p.Name != naming.VolumeData)
}

// poolField returns the field that sets the data, log, cache or special vdevs of the volume's pool.
func (p *place) poolField(spec *v1alpha1.StorageBenchmarkSpec, member string) string {
	for i, variant := range spec.Variants {
		pool := variant.Pool
		if string(variant.Name) != p.slot.Base || pool == nil || p.PoolOf != naming.VolumeData {
			continue
		}
		if member == "log" && pool.Log != nil || member == "cache" && pool.Cache != nil || member == "special" && pool.Special != nil ||
			member == "vdevs" && pool.Vdevs != nil {
			return fmt.Sprintf("spec.variants[%d].pool.%s", i, member)
		}
	}
	at := targetField(spec, p.slot) + ".zfs."
	for i, one := range p.slot.Target.ZFS.Volumes {
		if string(one.Name) == p.PoolOf {
			at += fmt.Sprintf("volumes[%d].", i)
		}
	}
	return at + "pool." + member
}
