package gate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// otherWords replaces words that other tools use in the names of metrics, in this order.
var otherWords = []struct {
	word *regexp.Regexp
	ours string
}{
	{regexp.MustCompile(`^[pP]([0-9]+)(Read|Write|Sync|Transaction|Commit)Latency`), "${2}LatencyP$1"},
	{regexp.MustCompile(`^[pP]([0-9]+)Latency`), "LatencyP$1"},
	{regexp.MustCompile(`^(read|write|sync)(P[0-9]+|Mean|Max|Avg|Average)`), "${1}Latency$2"},
	{regexp.MustCompile(`(Latency.*?)(Avg|Average)`), "${1}Mean"},
	{regexp.MustCompile(`(Avg|Average)Latency`), "LatencyMean"},
	{regexp.MustCompile(`(Latency.*?|Mean|Max|P[0-9]+|duration)(Milliseconds|Microseconds|Seconds|Millis|Micros|Nanos|Ms|Us|Ns)$`),
		"${1}Nanoseconds"},
	{regexp.MustCompile(`^(read|write|sync)LatencyNanoseconds$`), "${1}LatencyMeanNanoseconds"},
	{regexp.MustCompile(`PerSec$`), "PerSecond"},
	{regexp.MustCompile(`^(tps|TPS)$`), "transactionsPerSecond"},
	{regexp.MustCompile(`(IOPS|Iops|iops)$`), "OperationsPerSecond"},
	{regexp.MustCompile(`(IOs?|Ops)(PerSecond)?$`), "Operations$2"},
	{regexp.MustCompile(`^(read|write)s(PerSecond)?$`), "${1}Operations$2"},
	{regexp.MustCompile(`([KMG]i?B(PerSecond|ps)|Bandwidth|Throughput)$`), "BytesPerSecond"},
}

// quantities are words in the names of metrics that say what is counted.
var quantities = []string{"bytes", "operations", "latency", "transactions"}

// MeantMetric returns the metric among names that was most likely meant. It returns "" if there is none, or if it would be one of another
// quantity.
func MeantMetric(given string, names []string) string {
	of, name := "", given
	if at := strings.LastIndexByte(given, '.'); at >= 0 {
		of, name = given[:at+1], given[at+1:]
	}
	for _, one := range otherWords {
		name = one.word.ReplaceAllString(name, one.ours)
	}
	if strings.HasPrefix(name, "Latency") { // reads or writes?
		ends := slices.DeleteFunc(slices.Clone(names), func(one string) bool { return !strings.Contains(one, name) })
		if len(ends) == 0 {
			return ""
		}
		return of + ends[0]
	}
	best := spelling.Nearest(name, names)
	for _, quantity := range quantities {
		if strings.Contains(strings.ToLower(name), quantity) && !strings.Contains(strings.ToLower(best), quantity) {
			return ""
		}
	}
	if best == "" || of+best == given { // it exists, but not for that job or time
		return ""
	}
	return of + best
}
