package poolseries

import (
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/zfs"
)

// MaxPoints is how many samples a series keeps. Beyond that, every second sample is dropped: counters are totals, so only resolution is
// lost.
const MaxPoints = 600

// Sample is one reading of a pool.
type Sample struct {
	At   time.Time
	Pool zfs.PoolSummary
	// Counters of the vdevs. Empty before OpenZFS 2.2.
	Counters []zfs.VdevCounters
	// Groups is the history of transaction groups, as far as the node keeps it.
	Groups []TransactionGroup
	// Gang counters since the module was loaded. Nil if this version has none.
	Gang *Gang
}

// TransactionGroup is a finished transaction group.
type TransactionGroup struct {
	Number                                            int64
	DirtyBytes, WrittenBytes                          int64
	OpenNanoseconds, WaitNanoseconds, SyncNanoseconds int64
}

// Recorder builds a series of samples.
type Recorder struct {
	first, last Sample
	count       int
	stride      int
	kept        []point
	groups      *TransactionGroups
	latest      int64
}

// point is a sample of the series.
type point struct {
	offset, allocated int64
	counters          []zfs.VdevCounters
}

// Add takes the next sample. An error means that the window is incomplete: the pool was imported again, or its disks changed.
func (r *Recorder) Add(sample Sample) error {
	if r.count == 0 {
		r.first, r.stride = sample, 1
		for _, group := range sample.Groups {
			r.latest = max(r.latest, group.Number)
		}
	} else if err := follows(r.last, sample); err != nil {
		return err
	}
	r.addGroups(sample.Groups)
	r.last = sample
	if r.count%r.stride == 0 {
		if len(r.kept) == MaxPoints {
			r.stride *= 2
			r.kept = everySecond(r.kept)
		}
		if r.count%r.stride == 0 {
			r.kept = append(r.kept, r.point(sample))
		}
	}
	r.count++
	return nil
}

func (r *Recorder) point(sample Sample) point {
	return point{offset: sample.At.Sub(r.first.At).Milliseconds(), allocated: sample.Pool.Allocated, counters: sample.Counters}
}

// follows checks that a sample continues the previous one.
func follows(before, after Sample) error {
	if before.Pool.GUID != after.Pool.GUID || len(before.Counters) != len(after.Counters) {
		return fmt.Errorf("the vdevs of pool %s have changed", after.Pool.Name)
	}
	for i, earlier := range before.Counters {
		now := after.Counters[i]
		if earlier.Vdev != now.Vdev {
			return fmt.Errorf("pool %s has vdev %s where %s was", after.Pool.Name, now.Vdev, earlier.Vdev)
		}
		if now.ReadOps < earlier.ReadOps || now.WriteOps < earlier.WriteOps || now.ReadBytes < earlier.ReadBytes ||
			now.WriteBytes < earlier.WriteBytes {
			return fmt.Errorf("the counters of %s fell: pool %s was imported again", now.Vdev, after.Pool.Name)
		}
	}
	return nil
}

// addGroups adds the transaction groups that ended since the last sample.
func (r *Recorder) addGroups(groups []TransactionGroup) {
	if len(groups) == 0 {
		return
	}
	if r.groups == nil {
		r.groups = &TransactionGroups{Stride: 1}
	}
	into := r.groups
	slices.SortFunc(groups, func(a, b TransactionGroup) int { return int(min(max(a.Number-b.Number, -1), 1)) })
	for _, group := range groups {
		if group.Number <= r.latest {
			continue
		}
		if r.latest > 0 {
			into.Missed += group.Number - r.latest - 1
		}
		r.latest = group.Number
		if into.Count%into.Stride == 0 {
			into.SyncMicroseconds = append(into.SyncMicroseconds, group.SyncNanoseconds/int64(time.Microsecond))
		}
		into.Count++
		into.DirtyBytes, into.WrittenBytes = into.DirtyBytes+group.DirtyBytes, into.WrittenBytes+group.WrittenBytes
		into.OpenNanoseconds, into.WaitNanoseconds = into.OpenNanoseconds+group.OpenNanoseconds, into.WaitNanoseconds+group.WaitNanoseconds
		into.SyncNanoseconds += group.SyncNanoseconds
		into.LongestSyncNanoseconds = max(into.LongestSyncNanoseconds, group.SyncNanoseconds)
		if len(into.SyncMicroseconds) > MaxPoints {
			into.SyncMicroseconds = everySecond(into.SyncMicroseconds)
			into.Stride *= 2
		}
	}
}

// everySecond keeps every second sample, in place: the agent's memory is small.
func everySecond[T any](values []T) []T {
	half := values[:0]
	for at := 0; at < len(values); at += 2 {
		half = append(half, values[at])
	}
	clear(values[len(half):])
	return half
}

// Elapsed returns the time from the first sample to the last.
func (r *Recorder) Elapsed() time.Duration { return r.last.At.Sub(r.first.At) }

// Document returns the series. It includes the last sample even if that is not on the grid. Top-level vdevs and disks are looked up in the
// tree of the pool, where names include folders and partitions.
func (r *Recorder) Document(status zfs.Status) (Document, error) {
	if r.count < 2 {
		return Document{}, fmt.Errorf("%d samples: a window needs two", r.count)
	}
	kept := r.kept
	if last := r.point(r.last); kept[len(kept)-1].offset != last.offset {
		kept = append(slices.Clone(kept), last)
	}
	document := Document{Version: Version, Pool: r.last.Pool.Name, GUID: r.last.Pool.GUID, StartedAt: r.first.At.UTC(),
		EndedAt: r.last.At.UTC(),
		Before:  SpaceOf(r.first.Pool), TransactionGroups: r.groups}
	for _, point := range kept {
		document.Series.OffsetMilliseconds = append(document.Series.OffsetMilliseconds, point.offset)
		document.Series.AllocatedBytes = append(document.Series.AllocatedBytes, point.allocated)
	}
	tops, disks := namesOf(status)
	for at := range r.first.Counters {
		vdev := r.vdev(at, kept)
		vdev.TopLevel, vdev.Disk = tops[vdev.Name], disks[vdev.Name]
		document.Vdevs = append(document.Vdevs, vdev)
	}
	if before, after := r.first.Gang, r.last.Gang; before != nil && after != nil {
		document.Gang = &Gang{Writes: after.Writes - before.Writes, Multilevel: after.Multilevel - before.Multilevel,
			Allocations: after.Allocations - before.Allocations}
	}
	return document, nil
}

func (r *Recorder) vdev(at int, kept []point) Vdev {
	first, last := r.first.Counters[at], r.last.Counters[at]
	vdev := Vdev{Name: first.Vdev, Totals: Counters{
		ReadOperations: last.ReadOps - first.ReadOps, WriteOperations: last.WriteOps - first.WriteOps,
		TrimOperations: last.TrimOps - first.TrimOps,
		ReadBytes:      last.ReadBytes - first.ReadBytes, WriteBytes: last.WriteBytes - first.WriteBytes,
		TrimBytes: last.TrimBytes - first.TrimBytes,
		Errors:    last.ReadErrors + last.WriteErrors + last.ChecksumErrors - first.ReadErrors - first.WriteErrors - first.ChecksumErrors,
	}}
	for _, point := range kept {
		now := point.counters[at]
		vdev.ReadOperations = append(vdev.ReadOperations, now.ReadOps-first.ReadOps)
		vdev.WriteOperations = append(vdev.WriteOperations, now.WriteOps-first.WriteOps)
		vdev.ReadBytes = append(vdev.ReadBytes, now.ReadBytes-first.ReadBytes)
		vdev.WriteBytes = append(vdev.WriteBytes, now.WriteBytes-first.WriteBytes)
	}
	return vdev
}

// SpaceOf returns the space of a pool as zpool list reports it.
func SpaceOf(pool zfs.PoolSummary) Space {
	return Space{SizeBytes: pool.Size, AllocatedBytes: pool.Allocated, FragmentationPercent: pool.FragmentationPercent}
}

// namesOf maps the counter names to the vdevs of a tree. ZFS counts the requests of cache devices and spares too, but they are no disks of
// the pool: what is written to a cache device is no write of the workload, and a read from it has not come from the pool.
func namesOf(status zfs.Status) (tops, disks map[string]bool) {
	tops, disks = map[string]bool{}, map[string]bool{}
	for _, vdev := range status.Vdevs {
		if vdev.Serves() {
			continue
		}
		tops[counterName(vdev.Name)] = true
		for _, leaf := range vdev.Leaves() {
			disks[counterName(leaf.Name)] = true
		}
	}
	return tops, disks
}
