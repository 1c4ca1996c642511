package foresee

import (
	"cmp"
	"fmt"

	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// algorithmsAlike finds algorithms that are compared although all data is synthetic: its random part shrinks with none of them, and the
// rest with all.
func algorithmsAlike(c *comparison, on places) (field, message string) {
	algorithms := map[string]*place{}
	for i := range on {
		if value := on[i].get("compression"); value != "" && value != "off" && value != changes {
			algorithms[value] = &on[i]
		}
	}
	realData := func(one *task) bool { return databaseOf(&one.Phase) != nil || !one.file.known }
	if len(algorithms) < 2 || c.arrives || on.does(realData) || !on.compresses() && !on.does(fillsSpace) {
		return "", ""
	}
	at := cmp.Or(on.differs("compression"), &on[0])
	return at.field(c.spec, "compression"), "the space and speed of these algorithms do not differ as with real data, because what fill, " +
		"oltp and fio write is random but for a part that any algorithm compresses: compare one of them with off, or measure with postgres"
}

// directAlike finds direct=standard, which serves only requests for direct I/O, and no workload makes any.
func directAlike(c *comparison, on places) (field, message string) {
	requests := func(one *task) bool {
		return one.file.does(func(j job) bool { return j.has("direct") || j.Set["buffered"] == "0" })
	}
	at := on.differs("direct")
	if at == nil || on.does(requests) || on.any(func(p *place) bool { return p.get("direct") == "always" || p.get("direct") == changes }) {
		return "", ""
	}
	return at.field(c.spec, "direct"), "it has no effect, because no phase requests direct I/O on ZFS: write direct: always, or a fio job " +
		"with " +
		"direct=1"
}

// smallFiles finds settings that the files of metadata phases do not show: nothing reads them, and a file that is smaller than a record has
// one block of its own size.
func smallFiles(c *comparison, on places) (field, message string) {
	measures := func(one *task) bool { return one.Phase.Measure != nil && !isMetadata(one) }
	if !on.does(isMetadata) || on.does(measures) {
		return "", ""
	}
	if at := on.differs("atime"); at != nil {
		return at.field(c.spec, "atime"), "it has no effect, because metadata phases read no files: add a scan or a fio job that reads, or " +
			"remove it"
	}
	at := on.differs("recordsize")
	if at == nil || on.any(func(p *place) bool { return p.largestFile() > p.record() }) {
		return "", ""
	}
	return at.field(c.spec, "recordsize"), fmt.Sprintf("it has no effect, because files of at most %s have one block of their own size: "+
		"write a "+
		"larger fileSize", settings.Size(at.largestFile()))
}

// largestFile is the size of the files of the metadata phases.
func (p *place) largestFile() (largest uint64) {
	for i := range p.tasks {
		if isMetadata(&p.tasks[i]) {
			largest = max(largest, uint64(blockOf(p.tasks[i].Phase.Measure.Workload.Metadata.FileSize, 4<<10)))
		}
	}
	return largest
}
