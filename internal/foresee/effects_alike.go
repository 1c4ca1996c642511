package foresee

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// algorithmsAlike finds compression algorithms that are compared although all data is synthetic: no algorithm shrinks its random part,
// and every algorithm shrinks the rest.
func algorithmsAlike(c *comparison, on places) (field, message string) {
	algorithms := map[string]*place{}
	for i := range on {
		if value := on[i].get("compression"); value != "" && value != "off" && value != changes {
			algorithms[value] = &on[i]
		}
	}
	others := func(one *task) bool { return databaseOf(&one.Phase) != nil || !one.file.known }
	if len(algorithms) < 2 || c.arrives || on.does(others) || !on.compresses() && !on.does(fillsSpace) {
		return "", ""
	}
	at := cmp.Or(on.differs("compression"), &on[0])
	return at.field(c.spec, "compression"), "these algorithms differ less here than with real data, because what fill, " +
		"oltp and fio write is random but for a part that any algorithm compresses: compare one of them with off"
}

// directAlike finds a comparison of direct between standard and disabled, although no workload requests direct I/O. standard acts only on
// such requests.
func directAlike(c *comparison, on places) (field, message string) {
	requests := func(one *task) bool {
		return one.file.does(func(j job) bool { return j.has("direct") || j.Set["buffered"] == "0" })
	}
	at := on.differs("direct")
	if at == nil || on.does(requests) || on.any(func(p *place) bool { return p.get("direct") == "always" || p.get("direct") == changes }) {
		return "", ""
	}
	return at.field(c.spec, "direct"), "it has no effect, because no phase requests direct I/O on ZFS: write direct: always, or a fio job " +
		"with direct=1"
}

// specialAlike finds values of special_small_blocks that all act like 0, because no phase writes blocks that small.
func specialAlike(c *comparison, on places) (field, message string) {
	with, largest := on.where(func(p *place) bool { return len(p.Pool.Special) > 0 }), uint64(0)
	acts := func(p *place) bool {
		value := p.get("special_small_blocks")
		limit, _ := settings.Bytes(value)
		largest = max(largest, limit)
		return !p.isFiles() || value == changes || limit > 0 && p.storesSmall(limit)
	}
	at := with.differs("special_small_blocks")
	if at == nil || c.arrives || with.any(acts) {
		return "", ""
	}
	return at.field(c.spec, "special_small_blocks"), fmt.Sprintf("its values act alike, because no phase writes blocks of at most %s: add "+
		"a metadata phase, whose files have blocks of their own size, or remove it", settings.Size(largest))
}

// storesSmall reports whether a phase may write blocks of at most limit bytes, possibly after compression.
func (p *place) storesSmall(limit uint64) bool {
	return p.record() <= limit || p.does(func(one *task) bool {
		percent, _ := written(one)
		least, _ := p.compressed(percent)
		shrinks := p.get("compression") != "off" && (compressible(one, p.record()) || p.inSectors(least) <= limit)
		file := isMetadata(one) && uint64(blockOf(one.Phase.Measure.Workload.Metadata.FileSize, 4<<10)) <= limit
		return shrinks || file || databaseOf(&one.Phase) != nil || one.file.does(func(j job) bool { return !j.ofFill() })
	})
}

// clonesAlike finds a comparison of zfs_bclone_enabled: no phase makes the system call that clones blocks.
func clonesAlike(c *comparison, on places) (field, message string) {
	const name = "zfs_bclone_enabled"
	if at := on.differsParameter(name); at != nil {
		return at.field(c.spec, name), "it has no effect, because nothing clones the blocks of a file: copy reads and writes all data, and " +
			"workloads copy no files: remove it"
	}
	return "", ""
}

// levelsOfVolume finds fill levels that are compared for ageing, although they are shares of a volume and not of its pool.
func levelsOfVolume(_ *comparison, on places) (field, message string) {
	var first v1alpha1.Share
	for i := range on {
		p := &on[i]
		at := slices.IndexFunc(p.tasks, func(one task) bool { return one.Phase.Fill != nil && one.Phase.Fill.To != "" })
		shared := len(volume.On(volume.TargetVolumes(p.slot.Target), p.PoolOf)) > 1 // then the pool cannot be filled to a level
		aged := p.does(func(one *task) bool { return one.Phase.Fragment != nil })
		if at < 0 || shared || !aged || !p.isFiles() || p.Dataset.Size == nil {
			continue
		}
		fill := p.tasks[at].Phase.Fill
		if first = cmp.Or(first, fill.To); fill.To != first && fill.Of != "Pool" {
			return p.phaseField(&p.tasks[at]) + ".fill.to", "it is a share of the volume: if the pool is much larger, it stays nearly empty and " +
				"does not age: write a size close to that of the pool, or remove size from the dataset and write of: Pool"
		}
	}
	return "", ""
}

// smallFiles finds a comparison of recordsize that metadata phases cannot show: a file that is smaller than a record has one block of its
// own size.
func smallFiles(c *comparison, on places) (field, message string) {
	at := on.differs("recordsize")
	if at == nil || !on.onlyMetadata() || on.any(func(p *place) bool { return p.largestFile() > p.record() }) {
		return "", ""
	}
	return at.field(c.spec, "recordsize"), fmt.Sprintf("it has no effect, because files of at most %s have one block of their own size: "+
		"write a larger fileSize", settings.Size(at.largestFile()))
}

// largestFile returns the largest file size of the metadata phases.
func (p *place) largestFile() (largest uint64) {
	for i := range p.tasks {
		if isMetadata(&p.tasks[i]) {
			largest = max(largest, uint64(blockOf(p.tasks[i].Phase.Measure.Workload.Metadata.FileSize, 4<<10)))
		}
	}
	return largest
}
