package pools

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// MadeByOperation returns the UID of the operation that created a dataset, or "" if none did. The command that creates the dataset sets the
// mark on it. An inherited or received mark proves nothing.
func (l *LivePool) MadeByOperation(dataset string) (uid string) {
	return l.localMark(dataset, naming.PropertyOperation)
}

// Unfinished reports whether the pool has awaited datasets for which only the status of their operations can show whether they are
// complete.
func (s State) Unfinished() bool {
	return slices.ContainsFunc(s.Pool.Spec.Datasets, func(dataset v1alpha1.PoolDataset) bool {
		return dataset.Awaited && s.Live.MadeByOperation(naming.DatasetName(s.Pool, dataset)) != "" && !s.finished(dataset)
	})
}

// finished reports whether an awaited dataset is complete: its operation has succeeded, or the agent has already set its mount point, which
// it does only after that success. Until then the agent neither mounts nor changes the dataset: a replication may still receive into it, or
// a copy may still write to it.
func (s State) finished(dataset v1alpha1.PoolDataset) bool {
	name, point := naming.DatasetName(s.Pool, dataset), naming.MountPoint(naming.PoolName(s.Pool), dataset.Path)
	uid := s.Live.MadeByOperation(name)
	return uid != "" && (s.Finished[uid] || slices.ContainsFunc(s.Live.Datasets, func(is zfs.Dataset) bool {
		return is.Name == name && is.MountPoint == point
	}))
}

// Arrived returns the awaited datasets that are complete and mounted in their places, with the folder for pods.
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
