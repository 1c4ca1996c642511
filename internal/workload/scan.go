package workload

import "github.com/storagebench/storagebench/api/v1alpha1"

// OneFile is why several streams of a scan read one file: fio pauses between two files, while the other streams go on.
const OneFile = "several streams read the data of one file, and an oltp workload with layout: FilePerWorker needs several: write layout: " +
	"SharedFile there, or streams: 1"

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
	traits := Traits{Name: "scan", Spec: w.Scan, ReadsFill: true, Moves: moves, Yields: reads + "|" + regions}
	if streams := w.Scan.Streams; streams != nil && *streams > 1 {
		traits.OneFile = OneFile
	}
	return traits, true
}
