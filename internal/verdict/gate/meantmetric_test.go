package gate

import (
	"testing"

	"github.com/storagebench/storagebench/internal/results"
)

// TestMeantMetric: a wrong name gets a metric of the same quantity, or none.
func TestMeantMetric(t *testing.T) {
	var all []string
	for _, metric := range results.Metrics() {
		all = append(all, metric.Name)
	}
	scan := []string{"readBytesPerSecond", "readLatencyMaxNanoseconds", "readLatencyMeanNanoseconds", "readLatencyP99Nanoseconds", "readBytes"}
	for _, test := range []struct {
		given string
		names []string
		want  string
	}{
		{"readOpsPerSecond", all, "readOperationsPerSecond"}, {"readOpsPerSec", all, "readOperationsPerSecond"},
		{"readIOPS", all, "readOperationsPerSecond"}, {"writeIops", all, "writeOperationsPerSecond"}, {"readOps", all, "readOperations"},
		{"readIOsPerSecond", all, "readOperationsPerSecond"}, {"readsPerSecond", all, "readOperationsPerSecond"},
		{"writesPerSec", all, "writeOperationsPerSecond"}, {"jobs.log.writeIOPS", all, "jobs.log.writeOperationsPerSecond"},
		{"readOpsPerSecond", scan, ""}, // a scan has only bytes
		{"readLatencyAvgNanoseconds", all, "readLatencyMeanNanoseconds"}, {"readAverageNanoseconds", all, "readLatencyMeanNanoseconds"},
		{"readLatencyMilliseconds", all, "readLatencyMeanNanoseconds"}, {"readLatencyP99Milliseconds", all, "readLatencyP99Nanoseconds"},
		{"readLatencyP999Us", all, "readLatencyP999Nanoseconds"}, {"readLatency", scan, ""},
		{"readP99", all, "readLatencyP99Nanoseconds"}, {"p99ReadLatency", all, "readLatencyP99Nanoseconds"},
		{"p99Latency", scan, "readLatencyP99Nanoseconds"}, {"p50Latency", scan, ""},
		{"readBandwidth", all, "readBytesPerSecond"}, {"writeThroughput", all, "writeBytesPerSecond"}, {"readMBps", all, "readBytesPerSecond"},
		{"readMiBPerSecond", all, "readBytesPerSecond"}, {"readBytesPerSeconds", all, "readBytesPerSecond"},
		{"readBytesPerSecnd", all, "readBytesPerSecond"}, {"readbytespersecond", all, "readBytesPerSecond"},
		{"tps", all, "transactionsPerSecond"}, {"durationSeconds", all, "durationNanoseconds"}, {"nothingLikeIt", all, ""},
		{"during.readLatencyP99Nanoseconds", all, ""}, {"during.readLatencyP99Nanosecond", all, "during.readLatencyP99Nanoseconds"}, {"", all, ""},
	} {
		if got := MeantMetric(test.given, test.names); got != test.want {
			t.Errorf("%s: %q, want %q", test.given, got, test.want)
		}
	}
}
