package workload

import "github.com/storagebench/storagebench/api/v1alpha1"

func metadata(w *v1alpha1.Workload) (Traits, bool) {
	if w.Metadata == nil {
		return Traits{}, false
	}
	return Traits{Name: "metadata", Spec: w.Metadata, Duration: length(w.Metadata.Duration), Dated: true, Files: true, HidesCache: noReads,
		Yields: files}, true
}
