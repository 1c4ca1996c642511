package foresee

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// intentLog: sync, logbias and a log vdev matter only for synchronous writes. ZFS also makes a few of these at the end of each phase.
func intentLog(c *comparison, on places) (field, message string) {
	if why := logUnused(on); why != "" {
		for _, name := range []string{"sync", "logbias"} {
			if at := on.differs(name); at != nil {
				return at.field(c.spec, name), why
			}
		}
	}
	sharing := c.sharing(on)
	why := logUnused(sharing)
	if why == "" && sharing.all("logbias", "throughput") && !sharing.any(func(p *place) bool { return p.Dataset.FSType != "" }) {
		why = "it has almost no effect, because with logbias: throughput ZFS writes to the data disks instead of the log devices: remove logbias"
	}
	has := func(p *place) bool { return len(p.Pool.Log) > 0 }
	if with := on.first(has); why != "" && with != nil && on.any(func(p *place) bool { return !has(p) }) {
		return with.poolField(c.spec, "log"), why
	}
	return "", ""
}

// logUnused says why no measurement uses the intent log. Empty if one may use it.
func logUnused(on places) string {
	switch {
	case len(on) == 0:
		return ""
	case on.all("sync", "disabled"):
		return "it has no effect, because with sync: disabled ZFS writes no intent log: remove sync: disabled"
	case on.any(func(p *place) bool {
		return p.get("sync") == "always" || p.get("sync") == changes || p.Dataset.FSType != ""
	}) ||
		on.does(syncs):
		return ""
	}
	return "it has almost no effect, because no phase measures synchronous writes (fill, oltp and scan make none): add redo, postgres, " +
		"metadata with sync: File, or fio with fsync=1 or sync=dsync"
}

// shortest is how long writes should last, so that the data that ZFS still holds in memory at their end is only a small part of them.
const shortest = 10 * time.Minute

// unflushed: with sync: disabled, a device answers a flush at once. Only on a file system can the runner wait for the transaction group.
func unflushed(c *comparison, on places) (field, message string) {
	briefly := func(one *task) bool {
		traits, measures := workload.PhaseTraits(&one.Phase)
		lasts := max(traits.Duration, traits.Guess)
		bySize := lasts == 0 && len(one.file.jobs) > 0 // it ends when all its data is written
		return measures && writesData(one) && lasts < shortest && !bySize && (traits.File == nil || one.file.known)
	}
	at := on.first(func(p *place) bool {
		return !p.isFiles() && p.get("sync") == "disabled" && p.parameter("zfs_dirty_data_max") == "" && p.does(briefly)
	})
	if at == nil {
		return "", ""
	}
	return at.field(c.spec, "sync"), "with sync: disabled, a dataset of type Volume answers the flush at the end of a phase at once, so " +
		"that up to zfs_dirty_data_max of writes (at most 4Gi by default) count before they are on the disks: write a duration of 10m or " +
		"longer, or type: Filesystem"
}

// attributes: no workload sets extended attributes. They are what a larger dnode has room for.
func attributes(c *comparison, on places) (field, message string) {
	const only = "no workload sets extended attributes (only nodes with SELinux do, for its labels): "
	if at := on.differs("xattr"); at != nil {
		return at.field(c.spec, "xattr"), "it has almost no effect, because " + only + "remove it"
	}
	files := func(one *task) bool { // larger dnodes of many files are more metadata
		return isMetadata(one) || one.file.does(func(j job) bool { return j.has("nrfiles") })
	}
	if at := on.differs("dnodesize"); at != nil && !on.does(files) {
		return at.field(c.spec, "dnodesize"), "it has almost no effect, because no phase works on many files, and " + only + "add a metadata " +
			"phase, or remove it"
	}
	return "", ""
}

// accessTimes: relatime is a form of atime that updates the time of a file once a day, or after a change. Most releases have it on.
func accessTimes(c *comparison, on places) (field, message string) {
	files := on.where((*place).isFiles)
	if at := files.differs("relatime"); at != nil && files.all("atime", "off") {
		return at.field(c.spec, "relatime"), "it has no effect with atime: off: write atime: on, or remove relatime"
	}
	often := func(p *place) bool { return p.get("relatime") == "off" || p.get("relatime") == changes }
	const small = "add a fio job that reads many small files (nrfiles)"
	switch at := files.differs("atime"); {
	case at != nil && files.onlyMetadata():
		return at.field(c.spec, "atime"), "it has no effect, because metadata phases read no files: write relatime: off, and " + small
	case at != nil && !files.any(often) && !files.does(writesData):
		return at.field(c.spec, "atime"), "it has almost no effect where relatime is on, as it is by default in newer releases of OpenZFS: a " +
			"file then gets a new access time after a change, or once a day: write relatime: off, and " + small
	}
	return "", ""
}

// specialUnused: special_small_blocks needs a special vdev. It is enough if one variant has one: the others may lack it for comparison.
func specialUnused(c *comparison, on places) (field, message string) {
	set := func(p *place) bool { small, _ := settings.Bytes(p.get("special_small_blocks")); return small > 0 }
	at := on.first(set)
	has := func(p *place) bool { return set(p) && len(p.Pool.Special) > 0 }
	if at == nil || len(at.slot.Target.ZFS.PerNode) > 0 || on.any(has) {
		return "", ""
	}
	return at.field(c.spec, "special_small_blocks"), "it has no effect, because the pool has no special vdev: add pool.special, or remove it"
}

// specialTakesAll finds datasets whose records all go to the special vdev, because even after compression none of them is larger than
// special_small_blocks.
func specialTakesAll(c *comparison, on places) (field, message string) {
	at := on.first(func(p *place) bool {
		small, _ := settings.Bytes(p.get("special_small_blocks"))
		return p.isFiles() && p.record() > 512 && small >= p.stored() && len(p.Pool.Special) > 0
	})
	if at == nil {
		return "", ""
	}
	what, smaller := "recordsize "+settings.Size(at.record()), at.record()/2
	if stored := at.stored(); stored < at.record() {
		what += ", compressed to at most " + settings.Size(stored)
		for smaller*5/4 >= stored {
			smaller /= 2
		}
	}
	return at.field(c.spec, "special_small_blocks"), fmt.Sprintf("with %s, the special vdev takes all data: write a smaller value, such as %s",
		what, settings.Size(smaller))
}

// record returns the size of a record, or of a block of a zvol. 0 if it is unknown.
func (p *place) record() uint64 {
	name, otherwise := "recordsize", "128k"
	if p.Dataset.Type == settings.Volume {
		name, otherwise = "volblocksize", ""
	}
	bytes, _ := settings.Bytes(cmp.Or(p.get(name), otherwise))
	return bytes
}

// cacheUnused: a cache device holds data that memory evicts, if primarycache and secondarycache allow it. It is enough if one variant uses
// it: the others may not, for comparison.
func cacheUnused(c *comparison, on places) (field, message string) {
	all := c.sharing(on)
	with := all.first(func(p *place) bool { return len(p.Pool.Cache) > 0 })
	if with == nil || all.does(isMetadata) {
		return "", ""
	}
	useful := func(p *place) bool {
		first, second := p.get("primarycache"), p.get("secondarycache")
		return len(p.Pool.Cache) > 0 && second != "none" && first != "none" && first != "metadata"
	}
	if all.any(useful) {
		return "", ""
	}
	for _, one := range []struct{ name, value, gets string }{{"secondarycache", "none", "nothing"}, {"primarycache", "none", "nothing"},
		{"primarycache", "metadata", "no data"}} {
		if with.get(one.name) == one.value {
			return with.field(c.spec, one.name), fmt.Sprintf("the cache devices get %s with %s: %s: remove it, or remove pool.cache", one.gets,
				one.name, one.value)
		}
	}
	return "", ""
}

// secondaryUnused: secondarycache says what cache devices hold. It is enough if one variant has one.
func secondaryUnused(c *comparison, on places) (field, message string) {
	all := c.sharing(on)
	at := on.differs("secondarycache")
	if at == nil || len(all) == 0 || all.any(func(p *place) bool { return len(p.Pool.Cache) > 0 }) {
		return "", ""
	}
	return at.field(c.spec, "secondarycache"), "it has no effect, because the pool has no cache device: add pool.cache, or remove it"
}

// nothingPrefetched: only reads are prefetched. When ZFS reads a record to change a part of it, it prefetches nothing.
func nothingPrefetched(c *comparison, on places) (field, message string) {
	reads := func(one *task) bool { return readsData(one) || isMetadata(one) || one.Archives != "" }
	measures := func(one *task) bool { return one.Phase.Measure != nil }
	if c.arrives || !on.does(measures) || on.does(reads) {
		return "", ""
	}
	field = on.prefetchSetting(c.spec)
	if field == "" {
		return "", ""
	}
	return field, "it has almost no effect, because only reads are prefetched, and no phase measures reads: add a scan or oltp"
}

// paddedBlocks finds volumes whose blocks take at least twice the space on raidz that large blocks take: each block has its own parity, and
// is padded. If variants differ in that, they probably measure it.
func paddedBlocks(c *comparison, on places) (field, message string) {
	at := &on[0]
	differs := func(p *place) bool {
		return p.isFiles() || p.sector() != at.sector() || layoutOf(p.Pool.Vdevs) != layoutOf(at.Pool.Vdevs)
	}
	block := at.record()
	if block == 0 || len(at.slot.Target.ZFS.PerNode) > 0 || on.differs("volblocksize") != nil || on.any(differs) {
		return "", ""
	}
	large := 2 * at.onRaidz(16<<20)
	takes, enough := at.onRaidz(block), 2*block
	if large == 0 || takes < large {
		return "", ""
	}
	for at.onRaidz(enough) >= large {
		enough *= 2
	}
	return at.field(c.spec, "volblocksize"), fmt.Sprintf("on %s with sectors of %s, parity and padding make a block %.3g times as large, "+
		"and a large block only %.3g times: write volblocksize: %s or larger, or use mirrors", layoutOf(at.Pool.Vdevs[:1]),
		settings.Size(at.sector()), takes, large/2, settings.Size(enough))
}

// onRaidz returns how much space a block takes on raidz, as a multiple of its size: each row of data sectors has its parity sectors, and
// the block is padded to a multiple of the parity and one sector. 0 if the pool has no raidz, or uneven ones.
func (p *place) onRaidz(block uint64) float64 {
	vdevs := p.Pool.Vdevs
	if len(vdevs) == 0 || !strings.HasPrefix(string(vdevs[0].Type), "raidz") ||
		slices.ContainsFunc(vdevs, func(one v1alpha1.Vdev) bool {
			return one.Type != vdevs[0].Type || len(one.Devices) != len(vdevs[0].Devices)
		}) {
		return 0
	}
	parity, disks := uint64(vdevs[0].Type[len("raidz")]-'0'), uint64(len(vdevs[0].Devices))
	if disks <= parity {
		return 0
	}
	sectors := p.inSectors(block) / p.sector()
	all := sectors + parity*((sectors+disks-parity-1)/(disks-parity))
	all = (all + parity) / (parity + 1) * (parity + 1)
	return float64(all*p.sector()) / float64(block)
}

// nothingTwice: dedup stores a record once that is written twice.
func nothingTwice(c *comparison, on places) (field, message string) {
	at := on.first(func(p *place) bool { return p.get("dedup") != "off" && p.get("dedup") != changes })
	twice := func(p *place) bool {
		return p.record() < chunk || slices.ContainsFunc(p.tasks, func(one task) bool { return duplicates(&one, p.record()) })
	}
	if at == nil || c.arrives || on.any(twice) {
		return "", ""
	}
	return at.field(c.spec, "dedup"), "it only costs time, because no phase writes the same record twice (the data of fill, oltp, redo and " +
		"metadata is random): to see what it saves, add a fio job with dedupe_percentage and with blocks of at least a record"
}
