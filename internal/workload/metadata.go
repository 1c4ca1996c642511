package workload

import (
	"cmp"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// filesPerSecond is roughly how many files can be created per second, and removed per second at the end.
const filesPerSecond = 2000

func metadata(w *v1alpha1.Workload) (Traits, bool) {
	if w.Metadata == nil {
		return Traits{}, false
	}
	return Traits{Name: "metadata", Version: 3, Spec: w.Metadata, Duration: length(w.Metadata.Duration), Dated: true, Files: true,
		HidesCache: noReads, Yields: files, Setup: creation(w.Metadata)}, true
}

// creation returns roughly how long it takes to create the files of all workers, before the measurement.
func creation(given *v1alpha1.MetadataWorkload) time.Duration {
	all := int64(cmp.Or(given.Workers, 4)) * int64(cmp.Or(given.FilesPerWorker, 1000))
	return time.Duration(all) * time.Second / filesPerSecond
}
