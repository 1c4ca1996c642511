package stats

const (
	million = 1_000_000
	// leastBeyond is the number of values that must lie beyond a percentile. With fewer, it is little more than the largest value.
	leastBeyond = 10
)

// Percentiles are the reported percentiles of latencies, each with the share of the values below it in parts per million.
var Percentiles = []struct {
	Suffix          string
	PartsPerMillion int64
}{{"P50", 500_000}, {"P95", 950_000}, {"P99", 990_000}, {"P999", 999_000}}

// NeededFor is the number of values that a percentile needs.
func NeededFor(partsPerMillion int64) int64 {
	beyond := max(million-partsPerMillion, 1)
	return (leastBeyond*million + beyond - 1) / beyond
}

// ShareOfTen is the share, in parts per million, that leastBeyond of that many values are. The size of a smaller share is unknown.
func ShareOfTen(count int64) int64 {
	if count <= leastBeyond {
		return million
	}
	return (leastBeyond*million + count - 1) / count
}
