package workload

import "github.com/storagebench/storagebench/api/v1alpha1"

// noReads says why a phase cannot declare a Cold or Warm cache for a workload that only writes, or that reads through a cache of its own.
const noReads = "the source of the reads of this workload is unknown: write cache: Any"

// SmallestLog is the least space that a writer of a redo workload needs for its log.
const SmallestLog = 4 << 20

func redo(w *v1alpha1.Workload) (Traits, bool) {
	if w.Redo == nil {
		return Traits{}, false
	}
	yields := writes + "|" + appends
	if w.Redo.Sync == "fdatasync" {
		yields += "|" + syncs
	}
	return Traits{Name: "redo", Spec: w.Redo, Duration: length(w.Redo.Duration), Dated: true, HidesCache: noReads, Writes: "logs",
		Yields: yields}, true
}
