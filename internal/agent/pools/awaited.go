package pools

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// MadeByOperation says whether an operation created a dataset, and which one. The command that creates it sets the mark on it: an inherited
// or received one proves nothing.
func (l *LivePool) MadeByOperation(dataset string) (uid string) {
	return l.localMark(dataset, naming.PropertyOperation)
}

// Unfinished reports whether the pool has awaited datasets whose operations alone can tell whether they are complete.
func (s State) Unfinished() bool {
	return slices.ContainsFunc(s.Pool.Spec.Datasets, func(dataset v1alpha1.PoolDataset) bool {
		return dataset.Awaited && s.Live.MadeByOperation(naming.DatasetName(s.Pool, dataset)) != "" && !s.finished(dataset)
	})
}

// finished says whether an awaited dataset is complete: its operation has succeeded, or the agent has waited for that before, and has set
// its mount point. Until then it is neither mounted nor changed: a replication still receives into it, or a copy still writes.
func (s State) finished(dataset v1alpha1.PoolDataset) bool {
	name, point := naming.DatasetName(s.Pool, dataset), naming.MountPoint(naming.PoolName(s.Pool), dataset.Path)
	uid := s.Live.MadeByOperation(name)
	return uid != "" && (s.Finished[uid] || slices.ContainsFunc(s.Live.Datasets, func(is zfs.Dataset) bool {
		return is.Name == name && is.MountPoint == point
	}))
}

// Arrived are the awaited datasets that are complete and mounted in their places, with the folder for pods.
func (s State) Arrived() (names []string) {
	for _, dataset := range s.Pool.Spec.Datasets {
		name, point := naming.DatasetName(s.Pool, dataset), naming.MountPoint(naming.PoolName(s.Pool), dataset.Path)
		mounted := slices.ContainsFunc(s.Live.Datasets, func(is zfs.Dataset) bool {
			return is.Name == name && is.Mounted && is.MountPoint == point
		})
		if dataset.Awaited && mounted && s.finished(dataset) && !slices.Contains(s.Unplaced, name) {
			names = append(names, name)
		}
	}
	return names
}
