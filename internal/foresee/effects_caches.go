package foresee

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/workload"
)

// inMemory is how much data the memory of a node is assumed to hold.
const inMemory = 64 << 30

// caches reports whether the ARC keeps the data of the volume, as far as memory allows.
func (p *place) caches() bool {
	limit := p.parameter("zfs_arc_max")
	return p.get("primarycache") == "all" && p.get("direct") != "always" && (limit == "" || limit == "0")
}

// declared returns the cache expectation of a phase. The default is Any.
func declared(one *task) v1alpha1.CacheExpectation {
	return cmp.Or(one.Phase.Measure.Cache, v1alpha1.CacheAny)
}

// ofPlace reports whether a task works on this volume, and not on one that a phase makes.
func (p *place) ofPlace(one *task) bool { return string(design.VolumeOf(&one.Phase)) == p.Name }

// justWritten finds jobs that read files which fio has only just written, and thus after the caches were emptied.
func justWritten(_ *comparison, on places) (field, message string) {
	for i := range on {
		of, name := on[i].freshRead()
		if of == nil {
			continue
		}
		cold := ""
		if declared(of) == v1alpha1.CacheCold {
			cold = ", and with cache: Cold the phase is then Invalid"
		}
		return on[i].phaseField(of) + JobFileField, fmt.Sprintf("job [%s] reads files that fio has just written, so that the ARC may hold "+
			"them%s: write filename=data and cache: Cold after a fill, or primarycache: metadata, or a small zfs_arc_max in "+
			"moduleParameters", name, cold)
	}
	return "", ""
}

// freshRead returns the first job that reads files which fio writes right before it and which the ARC may hold, unless its phase expects a
// warm cache. It follows the files from phase to phase, because they stay and a job of the same name uses them again. It skips kept pools,
// where the files may be those of an earlier run.
func (p *place) freshRead() (of *task, name string) {
	if p.isDevice() || !p.caches() || naming.KeepsPools(p.slot.Target.ZFS) {
		return nil, ""
	}
	made := map[string]bool{}
	for i := range p.tasks {
		of := &p.tasks[i]
		if !p.ofPlace(of) {
			continue
		}
		if !of.file.known {
			return nil, "" // it may make any file
		}
		for _, one := range of.file.jobs {
			around := p.isFiles() && one.direct() && p.get("direct") != "disabled"
			fits := of.file.laidOut > 0 && of.file.laidOut <= inMemory
			if one.Reads() && !one.ofFill() && !made[one.Name] && !around && fits && declared(of) != v1alpha1.CacheWarm {
				return of, one.Name
			}
			made[one.Name] = true
		}
	}
	return nil, ""
}

// readAgain finds oltp phases that expect all reads from disks, although the ARC may hold the blocks that they read a second time.
func readAgain(_ *comparison, on places) (field, message string) {
	for i := range on {
		p := &on[i]
		bytes := p.filled()
		if !p.caches() || bytes == 0 || bytes > inMemory {
			continue
		}
		for at := range p.tasks {
			of := &p.tasks[at]
			if p.ofPlace(of) && of.Phase.Measure != nil && of.Phase.Measure.Workload.OLTP != nil && declared(of) == v1alpha1.CacheCold {
				return p.phaseField(of) + ".measure.cache", "oltp reads blocks again, then from the ARC, and with more than 5% of such reads the " +
					"phase is Invalid: leave cache out and write a small zfs_arc_max in moduleParameters, or primarycache: metadata"
			}
		}
	}
	return "", ""
}

// filled returns the most space that the fills of the volume take. 0 if the spec does not show it.
func (p *place) filled() (bytes int64) {
	for i := range p.tasks {
		fill := p.tasks[i].Phase.Fill
		if fill == nil || !p.ofPlace(&p.tasks[i]) {
			continue
		}
		share, err := fill.To.Percent()
		switch {
		case fill.Size != nil:
			bytes = stats.Plus(bytes, fill.Size.Value())
		case err != nil || p.Dataset.Size == nil || fill.Of == "Pool":
			return 0
		default:
			bytes = max(bytes, part(share, p.Dataset.Size.Value()))
		}
	}
	return bytes
}

// readFromMemory finds settings that act only on reads from disks, although all data that is read may be in memory since the fill.
func readFromMemory(c *comparison, on places) (field, message string) {
	if c.arrives || on.any(func(p *place) bool { return !p.readsMemory() }) {
		return "", ""
	}
	field = on.diskSetting(c.spec)
	if field == "" {
		return "", ""
	}
	return field, fmt.Sprintf("it acts on reads from disks, and all %s of data may be in memory since the fill: write cache: Cold for a "+
		"scan, or a small zfs_arc_max in moduleParameters", quantity(on[0].filled()))
}

// readsMemory reports whether all data that phases read from the volume may be in memory. It is false if they read none.
func (p *place) readsMemory() bool {
	bytes := p.filled()
	emptied := slices.ContainsFunc(p.slot.Phases, func(phase v1alpha1.Phase) bool {
		return slices.ContainsFunc(operate.Of(&phase), func(action *v1alpha1.PoolAction) bool { return action.ExportImport != nil })
	})
	elsewhere := func(one *task) bool {
		return readsData(one) && (declared(one) != v1alpha1.CacheAny || databaseOf(&one.Phase) != nil ||
			one.file.does(func(j job) bool { return !j.ofFill() || j.direct() }))
	}
	return bytes > 0 && bytes <= inMemory && p.caches() && !emptied && p.does(readsData) && !p.does(elsewhere)
}

// prefetchSetting returns the field of the first setting of prefetching that differs. Empty if there is none.
func (on places) prefetchSetting(spec *v1alpha1.StorageBenchmarkSpec) string {
	names := map[string]bool{}
	for i := range on {
		for name := range on[i].slot.Target.ZFS.ModuleParameters {
			if name == "zfs_prefetch_disable" || strings.HasPrefix(name, "zfetch_") {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if at := on.differsParameter(name); at != nil {
			return at.field(spec, name)
		}
	}
	if at := on.differs("prefetch"); at != nil {
		return at.field(spec, "prefetch")
	}
	return ""
}

// diskSetting returns the field of the first setting that differs and acts only on reads from disks. Empty if there is none. Checksums and
// layouts act on writes too, so they count only if no phase measures writes.
func (on places) diskSetting(spec *v1alpha1.StorageBenchmarkSpec) string {
	if field := on.prefetchSetting(spec); field != "" {
		return field
	}
	if on.does(writesData) {
		return ""
	}
	if at := on.differs("checksum"); at != nil {
		return at.field(spec, "checksum")
	}
	layout := func(p *place) string { return layoutOf(p.Pool.Vdevs) }
	if at := on.first(func(p *place) bool { return layout(p) != layout(&on[0]) }); at != nil {
		return at.poolField(spec, "vdevs")
	}
	return ""
}

// A cache device is empty at first. With the default of any OpenZFS version, it is fed at least feedRate bytes a second. A ramp of
// enoughRamp is always long enough.
const (
	feedRate   = 8 << 20
	enoughRamp = 5 * time.Minute
)

// cacheCold finds comparisons with and without cache devices in which these are still empty, or are only scanned: scans are prefetched,
// and prefetches do not read from cache devices.
func cacheCold(c *comparison, on places) (field, message string) {
	all := c.sharing(on)
	with := all.where(func(p *place) bool { return len(p.Pool.Cache) > 0 })
	if len(with) == 0 || len(with) == len(all) {
		return "", ""
	}
	again := func(one *task) bool { return readsData(one) && !isScan(one) }
	passed := with.first(func(p *place) bool {
		return p.parameter("l2arc_noprefetch") != "0" && p.parameter("zfs_prefetch_disable") != "1"
	})
	field = with[0].poolField(c.spec, "cache")
	switch {
	case with.does(again) && !with.any((*place).warmsCache):
		return field, fmt.Sprintf("the cache devices are empty at first and are filled little by little (l2arc_write_max), so that few reads "+
			"come from them: write a rampUp of %ds or longer (fio: ramp_time)", int(with[0].feedTime().Seconds()))
	case !with.does(again) && with.does(isScan) && passed != nil:
		return field, "scans read hardly anything from the cache devices, because ZFS prefetches their data, and prefetches do not use " +
			"cache devices: " +
			`write l2arc_noprefetch: "0" in moduleParameters and scan twice, or read with oltp`
	}
	return "", ""
}

// feedTime returns how long it takes to feed all data to a cache device, but at most enoughRamp.
func (p *place) feedTime() time.Duration {
	if bytes := p.filled(); bytes > 0 {
		return min(enoughRamp, max(1, time.Duration(bytes/feedRate))*time.Second)
	}
	return enoughRamp
}

// warmsCache reports whether a phase begins to measure after reads have fed the cache devices long enough.
func (p *place) warmsCache() bool {
	fed := time.Duration(0)
	for i := range p.tasks {
		one := &p.tasks[i]
		if !readsData(one) || isScan(one) {
			continue
		}
		traits, _ := workload.PhaseTraits(&one.Phase)
		if fed+traits.RampUp >= p.feedTime() || one.file.does(func(j job) bool { return j.has("ramp_time") }) {
			return true
		}
		fed += traits.RampUp + max(traits.Duration, traits.Guess)
	}
	return false
}
