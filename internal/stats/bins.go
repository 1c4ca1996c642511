package stats

import "math/bits"

// significantBits of a latency determine its bin.
const significantBits = 7

// Bin returns the beginning and the width of the bin in which fio, and we, count a latency. The width is 0 if the bin has a single one, and
// otherwise 0.8% to 1.6% of the latency.
func Bin(nanoseconds int64) (low, width int64) {
	shift := bits.Len64(uint64(max(0, nanoseconds))) - significantBits
	if shift <= 0 {
		return nanoseconds, 0
	}
	return nanoseconds >> shift << shift, 1 << shift
}
