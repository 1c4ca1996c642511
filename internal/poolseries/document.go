// Package poolseries holds the result of observing a pool: counters over a window as a bounded series, histograms of request sizes
// and latencies, transaction groups.
package poolseries

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/zfs"
)

// Version of the documents. It changes when a reader of the earlier version would fail.
const Version = 1

// MaxPackedBytes is the maximum size of a document in a status, compressed and before base64 encoding.
const MaxPackedBytes = 280 << 10

// Document is the observation of a pool over a window.
type Document struct {
	// Version of this document.
	Version int `json:"version"`
	// Pool is the name of the zpool.
	Pool string `json:"pool"`
	// GUID of the zpool.
	GUID string `json:"guid"`
	// ZFSVersion of the node's tools and module.
	ZFSVersion string `json:"zfsVersion"`
	// StartedAt is when the first sample was taken.
	StartedAt time.Time `json:"startedAt"`
	// EndedAt is when the last sample was taken.
	EndedAt time.Time `json:"endedAt"`
	// Before is the space at the first sample.
	Before Space `json:"before"`
	// After is the space after the last sample, once the pool has written and freed what was pending. Absent if it could not.
	After *Space `json:"after,omitempty"`
	// Series are the samples: one more than there are intervals.
	Series Series `json:"series"`
	// Vdevs are the counters of each vdev.
	Vdevs []Vdev `json:"vdevs,omitempty"`
	// RequestSizes counts requests by size within the window; the first entry is the pool.
	RequestSizes []Histogram `json:"requestSizes,omitempty"`
	// Latencies counts requests by latency within the window; the first entry is the pool.
	Latencies []Histogram `json:"latencies,omitempty"`
	// TransactionGroups of the pool that ended within the window.
	TransactionGroups *TransactionGroups `json:"transactionGroups,omitempty"`
	// Gang counts gang blocks of all pools of the node.
	Gang *Gang `json:"gang,omitempty"`
	// Missing lists what this node cannot report.
	Missing []string `json:"missing,omitempty"`
	// Omitted lists what did not fit.
	Omitted []string `json:"omitted,omitempty"`
}

// Space is how full a pool is.
type Space struct {
	// SizeBytes of the pool.
	SizeBytes int64 `json:"sizeBytes"`
	// AllocatedBytes of the pool.
	AllocatedBytes int64 `json:"allocatedBytes"`
	// FragmentationPercent of its free space. Absent if ZFS reports none.
	FragmentationPercent *int64 `json:"fragmentationPercent,omitempty"`
}

// Series are lists of equal length, one entry per sample.
type Series struct {
	// OffsetMilliseconds since startedAt.
	OffsetMilliseconds []int64 `json:"offsetMilliseconds"`
	// AllocatedBytes of the pool.
	AllocatedBytes []int64 `json:"allocatedBytes"`
}

// Vdev are the counters of a vdev since the first sample, one entry per sample of the series.
type Vdev struct {
	// Name as in 'zpool get'.
	Name string `json:"name"`
	// TopLevel vdevs add up to the pool.
	TopLevel bool `json:"topLevel,omitempty"`
	// Disk says that the vdev is a disk of the pool, and no cache device or spare.
	Disk bool `json:"disk,omitempty"`
	// Totals over the window.
	Totals Counters `json:"totals"`
	// ReadOperations so far.
	ReadOperations []int64 `json:"readOperations,omitempty"`
	// WriteOperations so far.
	WriteOperations []int64 `json:"writeOperations,omitempty"`
	// ReadBytes so far.
	ReadBytes []int64 `json:"readBytes,omitempty"`
	// WriteBytes so far.
	WriteBytes []int64 `json:"writeBytes,omitempty"`
}

// Counters of one vdev over the window.
type Counters struct {
	// ReadOperations of the vdev.
	ReadOperations int64 `json:"readOperations"`
	// WriteOperations of the vdev.
	WriteOperations int64 `json:"writeOperations"`
	// TrimOperations of the vdev.
	TrimOperations int64 `json:"trimOperations"`
	// ReadBytes of the vdev.
	ReadBytes int64 `json:"readBytes"`
	// WriteBytes of the vdev.
	WriteBytes int64 `json:"writeBytes"`
	// TrimBytes of the vdev.
	TrimBytes int64 `json:"trimBytes"`
	// Errors of reads, writes and checksums together.
	Errors int64 `json:"errors"`
}

// Histogram counts requests.
type Histogram struct {
	// Vdev is the name of the vdev.
	Vdev string `json:"vdev"`
	// Bounds of the rows: for sizes the minimum bytes of each row, for latencies the maximum nanoseconds.
	Bounds []int64 `json:"bounds"`
	// Columns by kind of request, with a count for each bound. Kinds without requests are omitted.
	Columns map[string][]int64 `json:"columns"`
}

// TransactionGroups of a pool.
type TransactionGroups struct {
	// Count of those that ended.
	Count int64 `json:"count"`
	// Missed are those that the node's history dropped before they were read.
	Missed int64 `json:"missed"`
	// DirtyBytes of all.
	DirtyBytes int64 `json:"dirtyBytes"`
	// WrittenBytes of all.
	WrittenBytes int64 `json:"writtenBytes"`
	// OpenNanoseconds is the total time in which they accepted writes.
	OpenNanoseconds int64 `json:"openNanoseconds"`
	// WaitNanoseconds is the total time in which they waited for the previous one.
	WaitNanoseconds int64 `json:"waitNanoseconds"`
	// SyncNanoseconds is the total time in which they were written.
	SyncNanoseconds int64 `json:"syncNanoseconds"`
	// LongestSyncNanoseconds of one.
	LongestSyncNanoseconds int64 `json:"longestSyncNanoseconds"`
	// Stride is n if every n-th one is listed.
	Stride int64 `json:"stride,omitempty"`
	// SyncMicroseconds of the listed ones, in order.
	SyncMicroseconds []int64 `json:"syncMicroseconds,omitempty"`
}

// Gang counts gang blocks: blocks for which there was no free segment large enough.
type Gang struct {
	// Writes of gang blocks.
	Writes int64 `json:"writes"`
	// Multilevel are gang blocks whose parts are gang blocks themselves.
	Multilevel int64 `json:"multilevel"`
	// Allocations of all kinds.
	Allocations int64 `json:"allocations"`
}

// Histograms converts the counts of a window to a part of the document.
func Histograms(added []zfs.Histogram) []Histogram {
	var histograms []Histogram
	for _, histogram := range added {
		columns := map[string][]int64{}
		for name, counts := range histogram.Columns {
			if slices.ContainsFunc(counts, func(count int64) bool { return count > 0 }) {
				columns[name] = counts
			}
		}
		histograms = append(histograms, Histogram{Vdev: histogram.Vdev, Bounds: histogram.Bounds, Columns: columns})
	}
	return histograms
}

// Pack compresses the document. Parts that do not fit are omitted, the largest and least important first, and listed in the document. Equal
// documents give equal bytes.
func (d Document) Pack() (packed []byte, digest string, err error) {
	return pack(&d, &d.Omitted, []omission{
		{"histograms of vdevs other than the pool", func() {
			d.RequestSizes, d.Latencies = d.RequestSizes[:min(1, len(d.RequestSizes))], d.Latencies[:min(1, len(d.Latencies))]
		}},
		{"series of vdevs", func() {
			d.Vdevs = slices.Clone(d.Vdevs)
			for i := range d.Vdevs {
				d.Vdevs[i].ReadOperations, d.Vdevs[i].WriteOperations, d.Vdevs[i].ReadBytes, d.Vdevs[i].WriteBytes = nil, nil, nil, nil
			}
		}},
		{"vdevs other than top-level ones", func() {
			d.Vdevs = slices.DeleteFunc(slices.Clone(d.Vdevs), func(v Vdev) bool { return !v.TopLevel })
		}},
	})
}

// omission is a part that can be omitted.
type omission struct {
	words string
	apply func()
}

func pack(document any, omitted *[]string, omissions []omission) (packed []byte, digest string, err error) {
	for {
		text, err := json.Marshal(document)
		if err != nil {
			return nil, "", fmt.Errorf("write the document: %w", err)
		}
		if packed, err = packing.Pack(text); err == nil && len(packed) <= MaxPackedBytes {
			return packed, packing.Digest(text), nil
		}
		if len(omissions) == 0 {
			return nil, "", fmt.Errorf("the document has %d bytes, but the limit is %d: observe a smaller pool, or a shorter time: %w", len(packed),
				MaxPackedBytes, packing.ErrTooLarge)
		}
		omissions[0].apply()
		*omitted = append(*omitted, omissions[0].words)
		omissions = omissions[1:]
	}
}

// Unpack reads the output of Pack.
func Unpack(packed []byte, digest string) (Document, error) {
	var document Document
	err := unpack(packed, digest, &document, &document.Version)
	return document, err
}

// unpack reads a document of the agent and checks its version.
func unpack(packed []byte, digest string, document any, version *int) error {
	text, err := packing.Unpack(packed)
	if err != nil {
		return err
	}
	if got := packing.Digest(text); got != digest {
		return fmt.Errorf("%w: the observation has digest %s, but its agent reported %.80q", packing.ErrCorrupt, got, digest)
	}
	if err := json.Unmarshal(text, document); err != nil {
		return fmt.Errorf("%w: the observation is not JSON: %w", packing.ErrCorrupt, err)
	}
	if *version != Version {
		return fmt.Errorf("%w: the observation has version %d, but this program supports %d: use the agent image of the same release as the "+
			"manager", packing.ErrVersion, *version, Version)
	}
	return nil
}
