package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// OperationDataset is the full name of a dataset of a pool. An empty path is the pool's root.
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

func (s State) targetTaken() *obstacle {
	if !s.Target.Exists {
		return nil
	}
	return refuses(v1alpha1.ReasonDatasetExists, "dataset %s already exists, and this operation did not create it: choose another path",
		s.Target.Name)
}

func progressOf(doneBytes, total int64) *v1alpha1.OperationProgress {
	progress := &v1alpha1.OperationProgress{DoneBytes: doneBytes, TotalBytes: total}
	if total > 0 && doneBytes > 0 {
		progress.Percent = int32(min(100*(float64(doneBytes)/float64(total)), 100))
	}
	return progress
}
