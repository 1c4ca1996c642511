package workload

import "github.com/storagebench/storagebench/api/v1alpha1"

// noReads is why a workload that only writes, or reads through a cache of its own, tells nothing about caches.
const noReads = "where the reads of this workload came from is not known: write cache: Any"

func redo(w *v1alpha1.Workload) (Traits, bool) {
	if w.Redo == nil {
		return Traits{}, false
	}
	return Traits{Name: "redo", Spec: w.Redo, Duration: length(w.Redo.Duration), HidesCache: noReads}, true
}
