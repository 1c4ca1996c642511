package stats

// Binomial is the chance that at most k of n values lie below the true median: P(K <= k) for n tosses of a fair coin.
func Binomial(n, k int) float64 {
	chance, sum := 1.0, 0.0
	for range n {
		chance /= 2
	}
	for i := 0; i <= k && i <= n; i++ {
		sum += chance
		chance = chance * float64(n-i) / float64(i+1)
	}
	return min(1, sum)
}

// MedianOutside is the position, counted from one end, of the sorted value beyond which the true median lies with a chance of at most level
// on that side. It is 0 if there are too few values. It makes no assumption about their distribution.
func MedianOutside(n int, level float64) int {
	outside := 0
	for outside < n && Binomial(n, outside) <= level*(1+closeness) {
		outside++
	}
	return outside
}
