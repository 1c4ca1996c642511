package observe

import (
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	million = 1_000_000
	// tolerance is how much of the read data may come from the wrong place before an expectation is contradicted: 5%. Less cannot be
	// distinguished from metadata, readahead and the reads of a shell. More visibly changes a throughput.
	tolerance = million / 20
)

// evidence shows where the read data came from: memory or devices.
type evidence struct {
	// delivered are independent figures of how many bytes came from devices to the page cache or past it. Each may contain the
	// reads of others, or those that a cache further down has served, so the smallest one is nearest to the truth.
	delivered []delivered
	arc       *arcEvidence
	none      string // why there is no evidence
	doubt     string // why all of these are only upper bounds, and what to do about it
}

// delivered is one such figure.
type delivered struct {
	source string
	bytes  int64
}

// arcEvidence has the counters of the ARC, which counts blocks.
type arcEvidence struct {
	demanded int64 // blocks of data that readers asked for
	fetched  int64 // blocks of data that were read from the pool, by demand or by prefetch
	// cached is how many of these a cache device served. ZFS counts its hits for data and metadata together, so this is an estimate between
	// cachedLeast and cachedMost.
	cached, cachedLeast, cachedMost int64

	direct int64 // bytes that bypassed the ARC (O_DIRECT of OpenZFS 2.3)
	record int64 // bytes of the largest block, 0 if unknown
}

// collectEvidence picks the changes that show where reads came from.
func (o *Observer) collectEvidence(sources map[string]sourceDetail) evidence {
	found := evidence{doubt: o.devices.doubt()}
	if o.zfs != nil {
		found.arc = newARCEvidence(sources, int64(min(o.zfs.recordSize, 1<<30)))
		if found.arc == nil {
			found.none = "the counters of the ARC are not available"
		}
		if o.mount != nil && o.mount.FSType == "zfs" || !o.devices.has(kindZvol) {
			return found // on a dataset there is no page cache, and devices read compressed bytes
		}
	}
	switch {
	case len(o.devices.top) == 0:
		found.none = "the devices below the volume are not known"
		return found
	case o.mount != nil && strings.Contains(o.mount.SuperOptions, "compress"):
		found.none = "the file system compresses, so that devices read fewer bytes than the workload"
		return found
	}
	if value, ok := sources["process"].Changes["readBytes"]; ok {
		found.delivered = append(found.delivered, delivered{"the processes of the workload", value})
	}
	levels := [][]*device{o.devices.top}
	if o.zfs == nil {
		levels = append(levels, o.devices.counted(), o.devices.leaves())
	}
	for _, level := range levels {
		names := strings.Join(namesOf(level), ", ")
		if sum, ok := sumOf(sources, level, "readBytes"); ok {
			found.delivered = append(found.delivered, delivered{names, sum})
		}
	}
	if len(found.delivered) == 0 && found.arc == nil {
		found.none = "neither the reads of the devices nor those of the processes are available"
	}
	return found
}

func newARCEvidence(sources map[string]sourceDetail, record int64) *arcEvidence {
	arc := sources["zfs.arc"].Changes
	for _, needed := range []string{"demand_data_hits", "demand_data_misses", "prefetch_data_misses"} {
		if _, found := arc[needed]; !found {
			return nil
		}
	}
	found := &arcEvidence{
		demanded: stats.Plus(stats.Plus(arc["demand_data_hits"], arc["demand_data_iohits"]), arc["demand_data_misses"]),
		fetched:  stats.Plus(arc["demand_data_misses"], arc["prefetch_data_misses"]),
		direct:   sources["zfs.pool"].Changes["direct_read_bytes"],
		record:   record,
	}
	found.shareHits(arc["l2_hits"], stats.Plus(arc["demand_metadata_misses"], arc["prefetch_metadata_misses"]))
	return found
}

// shareHits shares the hits of cache devices out between data and metadata, in the proportion in which the ARC missed them.
func (a *arcEvidence) shareHits(hits, metadataMisses int64) {
	a.cached = min(a.fetched, mulDiv(hits, a.fetched, stats.Plus(a.fetched, metadataMisses)))
	a.cachedLeast, a.cachedMost = min(a.fetched, max(0, hits-metadataMisses)), min(a.fetched, hits)
}

// vague reports whether the hits of cache devices may be of so much data or metadata that the estimate says nothing.
func (a *arcEvidence) vague() bool {
	return a != nil && mulDiv(a.cachedMost-a.cachedLeast, million, a.demanded) > tolerance
}

// doubt says why there is no share.
func (a *arcEvidence) doubt() string {
	return fmt.Sprintf("cacheHitPartsPerMillion is left out: ZFS does not say whether the hits of cache devices were data or metadata, so "+
		"between %d and %d of the %d blocks of data may have come from them", a.cachedLeast, a.cachedMost, a.demanded)
}

// fewestHits returns the same delta as if all hits of cache devices were of metadata, as far as they can be. Only the remaining ones
// contradict an expectation that data comes from the pool.
func (d Delta) fewestHits() Delta {
	if d.evidence.arc != nil {
		fewest := *d.evidence.arc
		fewest.cached = fewest.cachedLeast
		d.evidence.arc = &fewest
	}
	return d
}

// arcShare returns the part of the demanded blocks that was fetched from devices, in millionths. The hit rate would be misleading: a block
// that was just prefetched from a disk is a hit.
func (e evidence) arcShare() (int64, bool) {
	if e.arc == nil || e.arc.demanded <= 0 {
		return 0, false
	}
	return min(million, mulDiv(max(0, e.arc.fetched-e.arc.cached), million, e.arc.demanded)), true
}

// memoryVerdict says how much of the read data came from devices.
type memoryVerdict struct {
	known       bool
	fromDevices int64 // millionths; an upper bound if there is a doubt
	text, doubt string
}

// judgeMemory takes the smallest of all upper limits for the data that came from devices.
func judgeMemory(read int64, delta Delta) memoryVerdict {
	if read <= 0 {
		return memoryVerdict{text: "the workload read nothing"}
	}
	verdict := memoryVerdict{fromDevices: million, text: delta.evidence.none, doubt: delta.evidence.doubt}
	consider := func(share int64, text string) {
		share = min(share, million)
		if !verdict.known || share < verdict.fromDevices {
			verdict.known, verdict.fromDevices, verdict.text = true, share, text
		}
	}
	if delta.evidence.none != "" {
		return verdict
	}
	for _, figure := range delta.evidence.delivered {
		consider(mulDiv(figure.bytes, million, read), fmt.Sprintf("%s read %s from devices", figure.source, size(figure.bytes)))
	}
	if arc := delta.evidence.arc; arc != nil {
		share, text := arc.judge(delta.evidence, read)
		consider(share, text)
	}
	if hits, found := delta.Metrics["cacheHitPartsPerMillion"]; found && !verdict.known {
		consider(million-hits, "according to its metrics")
	}
	if !verdict.known {
		verdict.text = "there are no counters of the devices or of a cache"
	}
	return verdict
}

// judge returns an upper limit for the data that came from the pool, computed in two ways. By blocks: the share of the demanded blocks that
// were fetched. By bytes: the fetched blocks cannot hold more than a record each. The latter also detects reads that the dbuf cache served,
// which the ARC does not see.
func (a *arcEvidence) judge(e evidence, read int64) (share int64, text string) {
	fetched := max(0, a.fetched-a.cached)
	buffered := max(0, read-a.direct)
	text = fmt.Sprintf("the ARC was asked for %d blocks and %d were fetched from the pool", a.demanded, fetched)
	bytes := buffered
	if part, found := e.arcShare(); found {
		bytes = mulDiv(buffered, part, million)
	} else if fetched == 0 {
		bytes = 0
	}
	if a.record > 0 {
		if most := mulDiv(fetched, a.record, 1); most < bytes {
			bytes = most
			text += fmt.Sprintf(", of at most %s each", size(a.record))
		}
	}
	if a.direct > 0 {
		text += fmt.Sprintf(", and %s were read past it", size(a.direct))
	}
	return mulDiv(min(read, stats.Plus(bytes, a.direct)), million, read), text
}

// JudgeCache reports whether the reads of a workload were served from the expected place: Cold from devices, Warm from memory, each with a
// tolerance of 5%. Any is always met. An expectation that cannot be checked is not met. A request for direct I/O is no evidence, because
// file systems may ignore it. If an invisible cache may have served reads, Cold cannot be confirmed, but Warm can.
func JudgeCache(expectation string, applicationReadBytes int64, delta Delta) (ok bool, message string) {
	if expectation == "Cold" {
		delta = delta.fewestHits()
	}
	verdict := judgeMemory(applicationReadBytes, delta)
	stated := verdict.state(applicationReadBytes)
	switch expectation {
	case "Any", "":
		if !verdict.known {
			return true, "the source of the reads is unknown: " + verdict.text
		}
		if verdict.doubt != "" {
			stated += "; " + verdict.doubt
		}
		return true, stated
	case "Cold", "Warm":
	default:
		return false, fmt.Sprintf("the expectation %q is unknown: use Cold, Warm or Any", spelling.Shorten(expectation, 40))
	}
	if !verdict.known {
		return false, fmt.Sprintf("expected a %s cache, which can't be checked: %s; declare Any if it does not matter",
			strings.ToLower(expectation), verdict.text)
	}
	if expectation == "Cold" {
		if million-verdict.fromDevices > tolerance {
			return false, "expected a cold cache, but " + stated +
				"; read much more than fits into memory, empty the caches before, or declare Warm or Any"
		}
		if verdict.doubt != "" {
			return false, "expected a cold cache, which can't be checked: " + verdict.doubt + ", or declare Any if it does not matter"
		}
		return true, "the cache was cold as expected: " + stated
	}
	if verdict.fromDevices > tolerance {
		return false, "expected a warm cache, but " + stated + "; read everything once before, use less data than memory, or declare Cold or Any"
	}
	return true, "the cache was warm as expected: " + stated
}

// state returns the verdict in words.
func (v memoryVerdict) state(read int64) string {
	most, least := "", ""
	if v.doubt != "" {
		most, least = "at most ", "at least "
	}
	return fmt.Sprintf("of %s that the workload read, %s%s came from devices and %s%s from memory: %s", size(read),
		most, percent(v.fromDevices), least, percent(million-v.fromDevices), v.text)
}

// percent writes millionths with one decimal.
func percent(millionths int64) string {
	return fmt.Sprintf("%d.%d%%", millionths/10_000, millionths%10_000/1_000)
}

// size writes bytes for a person.
func size(bytes int64) string {
	value, units := float64(bytes), []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	unit := 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
