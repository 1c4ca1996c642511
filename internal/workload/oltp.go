package workload

import "github.com/storagebench/storagebench/api/v1alpha1"

// LayoutFilePerWorker is the layout of an oltp workload in which each worker has files of its own.
const LayoutFilePerWorker = "FilePerWorker"

func oltp(w *v1alpha1.Workload) (Traits, bool) {
	if w.OLTP == nil {
		return Traits{}, false
	}
	traits := Traits{
		Name: "oltp", Spec: w.OLTP, Duration: length(w.OLTP.Duration), RampUp: length(w.OLTP.RampUp), ReadsFill: true, Dated: true,
		Yields: reads,
		Files:  w.OLTP.Layout == LayoutFilePerWorker && w.OLTP.Workers > 1,
	}
	if w.OLTP.Layout == LayoutFilePerWorker {
		traits.DataFiles = w.OLTP.Workers
	}
	if w.OLTP.UpdatePercent > 0 {
		traits.Writes = "data"
		traits.Yields += "|" + writes
	}
	return traits, true
}
