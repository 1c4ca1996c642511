package results

import "testing"

// TestMetricsOfJobs: a job of a job file has the metrics of a phase, but people gate on totals first.
func TestMetricsOfJobs(t *testing.T) {
	for name, want := range map[string]bool{
		"r.readBytesPerSecond": true, "log-1.x.syncLatencyP99Nanoseconds": true, "readBytesPerSecond": true,
		".readBytesPerSecond": false, "r.speed": false, "a b.readBytesPerSecond": false, "r.": false, ".": false, "": false,
	} {
		metric, known := LookupMetric(name)
		if known != want || known && (metric.Name != name || metric.Unit == "") || metric.Primary != (name == "readBytesPerSecond") {
			t.Errorf("%q: %+v, %v", name, metric, known)
		}
	}
}
