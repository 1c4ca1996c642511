package workload

import "github.com/storagebench/storagebench/api/v1alpha1"

func scan(w *v1alpha1.Workload) (Traits, bool) {
	if w.Scan == nil {
		return Traits{}, false
	}
	moves := func(filled int64) int64 {
		if some := w.Scan.RandomRegions; some != nil && w.Scan.Regions > 0 {
			return filled / int64(w.Scan.Regions) * int64(*some)
		}
		return filled
	}
	return Traits{Name: "scan", Spec: w.Scan, ReadsFill: true, Moves: moves, Yields: reads + "|" + regions}, true
}
