package results

import "testing"

// TestNodesJoinWorkloads: a metric of one of several workloads is combined over nodes like that of a single workload.
func TestNodesJoinWorkloads(t *testing.T) {
	if len(acrossByName) < 10 {
		t.Error("there are no exceptions to compare")
	}
	for _, name := range append(sortedKeys(acrossByName), "readBytes", "readLatencyP99Nanoseconds", "besidePartsPerMillion") {
		alone, known := LookupMetric(name)
		of, too := LookupMetric("log." + name)
		if !known || !too || alone.Across() != of.Across() {
			t.Errorf("%s: %s alone, %s of a workload", name, alone.Across(), of.Across())
		}
	}
}

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
