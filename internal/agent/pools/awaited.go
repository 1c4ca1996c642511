package pools

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// Awaits says whether the spec has datasets that operations create.
func Awaits(pool *v1alpha1.BenchmarkPool) bool {
	return slices.ContainsFunc(pool.Spec.Datasets, func(dataset v1alpha1.PoolDataset) bool { return dataset.Awaited })
}

// MadeByOperation says whether an operation created a dataset, and which one. The command that creates it sets the mark on it: an inherited
// or received one proves nothing.
func (l *LivePool) MadeByOperation(dataset string) (uid string) {
	return l.localMark(dataset, naming.PropertyOperation)
}

// finished says whether an awaited dataset is complete: its operation has succeeded. Before that it is neither mounted nor changed, because
// a replication still receives into it, and a copy still writes.
func (s State) finished(name string) bool {
	uid := s.Live.MadeByOperation(name)
	return uid != "" && s.Finished[uid]
}

// Arrived are the awaited datasets that are complete and mounted in their places, with the folder for pods.
func (s State) Arrived() (names []string) {
	for _, dataset := range s.Pool.Spec.Datasets {
		name, point := naming.DatasetName(s.Pool, dataset), naming.MountPoint(naming.PoolName(s.Pool), dataset.Path)
		mounted := slices.ContainsFunc(s.Live.Datasets, func(is zfs.Dataset) bool {
			return is.Name == name && is.Mounted && is.MountPoint == point
		})
		if dataset.Awaited && mounted && s.finished(name) && !slices.Contains(s.Unplaced, name) {
			names = append(names, name)
		}
	}
	return names
}
