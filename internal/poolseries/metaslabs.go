package poolseries

import (
	"time"

	"github.com/storagebench/storagebench/internal/zfs"
)

// MetaslabMap is the distribution of the free space of a pool.
type MetaslabMap struct {
	// Version of this document.
	Version int `json:"version"`
	// Pool is the name of the zpool.
	Pool string `json:"pool"`
	// GUID of the zpool.
	GUID string `json:"guid"`
	// ZFSVersion of the node's tools and module.
	ZFSVersion string `json:"zfsVersion"`
	// TakenAt is when it was read.
	TakenAt time.Time `json:"takenAt"`
	// FreeBytes of all metaslabs.
	FreeBytes int64 `json:"freeBytes"`
	// FreeSegments counts free segments by the power of two of their size. No segment is in two metaslabs.
	FreeSegments map[int]int64 `json:"freeSegments"`
	// Metaslabs in the order of their position on the vdevs.
	Metaslabs []Metaslab `json:"metaslabs,omitempty"`
	// Omitted lists what did not fit.
	Omitted []string `json:"omitted,omitempty"`
}

// Metaslab is a slice of a top-level vdev.
type Metaslab struct {
	// Vdev is the number of the top-level vdev.
	Vdev int64 `json:"vdev"`
	// Index on the vdev.
	Index int64 `json:"index"`
	// Offset on the vdev in bytes.
	Offset int64 `json:"offset"`
	// FreeBytes in it.
	FreeBytes int64 `json:"freeBytes"`
	// FragmentationPercent as last written. Absent if ZFS reports none.
	FragmentationPercent *int64 `json:"fragmentationPercent,omitempty"`
	// FreeSegments counts free segments by the power of two of their size, as last written. A metaslab that was never used is one segment.
	FreeSegments map[int]int64 `json:"freeSegments,omitempty"`
}

// NewMetaslabMap adds up metaslabs.
func NewMetaslabMap(pool, guid, version string, takenAt time.Time, metaslabs []zfs.Metaslab) MetaslabMap {
	made := MetaslabMap{Version: Version, Pool: pool, GUID: guid, ZFSVersion: version, TakenAt: takenAt.UTC(), FreeSegments: map[int]int64{}}
	for _, metaslab := range metaslabs {
		made.FreeBytes += metaslab.FreeBytes
		for power, count := range metaslab.FreeSegments {
			made.FreeSegments[power] += count
		}
		made.Metaslabs = append(made.Metaslabs, Metaslab(metaslab))
	}
	return made
}

// Segments returns the number of free segments, and the power of two of the largest one, or -1 if there is none.
func (m MetaslabMap) Segments() (count int64, largest int) {
	largest = -1
	for power, number := range m.FreeSegments {
		count += number
		largest = max(largest, power)
	}
	return count, largest
}

// Pack compresses the document. Parts that do not fit are omitted and listed in the document.
func (m MetaslabMap) Pack() (packed []byte, digest string, err error) {
	return pack(&m, &m.Omitted, []omission{
		{"free segments of single metaslabs", func() {
			bare := make([]Metaslab, len(m.Metaslabs))
			for i, metaslab := range m.Metaslabs {
				bare[i], bare[i].FreeSegments = metaslab, nil
			}
			m.Metaslabs = bare
		}},
		{"single metaslabs", func() { m.Metaslabs = nil }},
	})
}

// UnpackMetaslabs reads the output of Pack.
func UnpackMetaslabs(packed []byte, digest string) (MetaslabMap, error) {
	var document MetaslabMap
	err := unpack(packed, digest, &document, &document.Version)
	return document, err
}
