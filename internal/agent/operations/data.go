package operations

import (
	"cmp"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// OperationDataset returns the full name of a dataset of a pool. An empty path means the root dataset.
func OperationDataset(pool *v1alpha1.BenchmarkPool, path v1alpha1.DatasetPath) string {
	if path == "" {
		return naming.PoolName(pool)
	}
	return naming.PoolName(pool) + "/" + string(path)
}

// ours reports whether this operation created an object.
func (s State) ours(object Object) bool {
	return object.Exists && object.Mark == string(s.Operation.UID)
}

func (s State) sourceMissing() *obstacle {
	if s.Source.Exists {
		return nil
	}
	return refuses(v1alpha1.ReasonDatasetNotFound, "dataset %s does not exist", s.Source.Name)
}

func (s State) snapshotMissing() *obstacle {
	if s.Snapshot.Exists {
		return nil
	}
	return refuses(v1alpha1.ReasonSnapshotNotFound, "there is no snapshot %s", s.Snapshot.Name)
}

// targetTaken refuses a target that exists, or that the spec of its pool declares: pods wrote the contents of a clone or replica, and the
// node may mount a declared volume.
func (s State) targetTaken() *obstacle {
	pool := cmp.Or(s.ToPool, s.Pool)
	declared := pool != nil && slices.ContainsFunc(pool.Spec.Datasets, func(dataset v1alpha1.PoolDataset) bool {
		return !dataset.Awaited && naming.DatasetName(pool, dataset) == s.Target.Name
	})
	switch {
	case s.Target.Exists:
		return refuses(v1alpha1.ReasonDatasetExists, "dataset %s already exists, and this operation did not create it: choose another path",
			s.Target.Name)
	case declared:
		return refuses(v1alpha1.ReasonDatasetExists, "dataset %s is declared by BenchmarkPool %s, and only the agent creates it: choose another "+
			"path", s.Target.Name, pool.Name)
	}
	return nil
}

func progressOf(doneBytes, total int64) *v1alpha1.OperationProgress {
	progress := &v1alpha1.OperationProgress{DoneBytes: doneBytes, TotalBytes: total}
	if total > 0 && doneBytes > 0 {
		progress.Percent = int32(min(100*(float64(doneBytes)/float64(total)), 100))
	}
	return progress
}
