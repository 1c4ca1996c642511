package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	diskReadsPerRead = "diskReadsPerReadMilli"
	// servedByCache is a number of disk reads per 1,000 reads: with fewer, a cache has served a part of the reads. unlikeCache is the
	// smallest difference between two such numbers that counts.
	servedByCache, unlikeCache = 800, 200
)

// cacheWarnings name the gates whose phases or variants read more from a cache in one place than in another. A difference may then come
// from what was in memory by chance, such as before and after a copy of the data, and not from the storage.
func cacheWarnings(e results.Experiment) (warnings []string) {
	for _, gate := range e.Gates {
		if slices.ContainsFunc(gate.Metrics, func(of results.GateMetric) bool { return strings.HasSuffix(of.Metric, diskReadsPerRead) }) {
			continue // it judges the cache itself
		}
		for _, variant := range e.Variants {
			if text := unlikeReads(cachedReads(e.Variants, gate, variant.Name)); text != "" {
				warnings = append(warnings, fmt.Sprintf("gate %s compares reads from a cache with reads from disks: %s. The difference may come from "+
					"the cache.", gate.Name, text))
				break
			}
		}
	}
	return warnings
}

// cachedRead is the part of a workload's reads that its disks had to read: requests and bytes, per 1,000.
type cachedRead struct {
	workload, where string
	requests, bytes int64
}

// cachedReads returns the reads of all workloads in all phases and variants that a gate compares with a variant.
func cachedReads(variants []results.VariantResult, gate results.GateResult, judged string) (reads []cachedRead) {
	for _, variant := range variants {
		for _, of := range gate.Metrics {
			if of.Variant == "" && variant.Name != judged || of.Variant != "" && !naming.IsVariant(variant.Name, of.Variant) {
				continue
			}
			for _, metric := range metricsOf([]results.VariantResult{variant}, of.Phase) {
				workload, isShare := strings.CutSuffix(metric, diskReadsPerRead)
				if !isShare {
					continue
				}
				requests, _ := find(variant, of.Phase, metric)
				fromDisks, _ := find(variant, of.Phase, workload+"diskReadBytesPerSecond")
				all, _ := find(variant, of.Phase, workload+"readBytesPerSecond")
				if all.Median > 0 {
					reads = append(reads, cachedRead{workload, of.Phase + " of variant " + variant.Name, requests.Median,
						int64(1000 * float64(fromDisks.Median) / float64(all.Median))})
				}
			}
		}
	}
	return reads
}

// unlikeReads describes the two places that differ most. Empty if none differ enough. Both requests and bytes have to differ: requests
// alone may differ because the disks read ahead in larger ones, and bytes alone because the data is compressed.
func unlikeReads(reads []cachedRead) (text string) {
	widest := int64(unlikeCache)
	for _, less := range reads {
		for _, more := range reads {
			wide := min(more.requests-less.requests, more.bytes-less.bytes)
			if less.workload == more.workload && less.requests < servedByCache && less.bytes < servedByCache && wide >= widest {
				widest = wide
				text = fmt.Sprintf("for 100 reads, the disks read %d times in phase %s, and %d times in phase %s", less.requests/10, less.where,
					more.requests/10, more.where)
			}
		}
	}
	return text
}
