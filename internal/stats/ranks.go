package stats

import "math"

// exactValues is the largest number of values for which distributions of ranks are counted. Beyond it, a normal distribution is used, which
// is off by less than 0.0015, and 0.0005 in the tails.
const exactValues = 80

// rankSums counts, for each sum, the ways to take this number of ranks: ways(k, s) = sum over ranks r of ways(k-1, s-r), where each rank is
// used once.
func rankSums(ranks []int, take int) []float64 {
	var total int
	for _, rank := range ranks {
		total += rank
	}
	ways := make([][]float64, take+1)
	for k := range ways {
		ways[k] = make([]float64, total+1)
	}
	ways[0][0] = 1
	seen := 0
	for i, rank := range ranks {
		seen += rank
		for k := min(i+1, take); k > 0; k-- { // downwards, so that a rank is not taken twice
			for sum := rank; sum <= seen; sum++ {
				ways[k][sum] += ways[k-1][sum-rank]
			}
		}
	}
	return ways[take]
}

// signedRanksBelow is P(W <= w) for each sum w of positive signed ranks of n values without ties, if both signs are equally likely: p(n, w)
// = (p(n-1, w) + p(n-1, w-n)) / 2.
func signedRanksBelow(n int) []float64 {
	most := n * (n + 1) / 2
	if n > exactValues {
		size := float64(n)
		return normalSums(most, math.Sqrt(size*(size+1)*(2*size+1)/24))
	}
	chances := make([]float64, most+1)
	chances[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := rank * (rank + 1) / 2; sum >= 0; sum-- {
			chances[sum] /= 2
			if sum >= rank {
				chances[sum] += chances[sum-rank] / 2
			}
		}
	}
	return accumulate(chances, 1)
}

// mannWhitneyBelow is P(U <= u) for each u of samples of m and n values without ties. U is the rank sum of one sample, less the smallest
// possible one.
func mannWhitneyBelow(m, n int) []float64 {
	if m+n > exactValues {
		return normalSums(m*n, math.Sqrt(float64(m)*float64(n)*float64(m+n+1)/12))
	}
	m, n = min(m, n), max(m, n)
	ranks := make([]int, m+n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	smallest := m * (m + 1) / 2
	return accumulate(rankSums(ranks, m)[smallest:smallest+m*n+1], choose(m+n, m))
}

// normalSums is P(S <= s) for s from 0 to most, for a sum that is approximately normal around most/2, with continuity correction.
func normalSums(most int, deviation float64) []float64 {
	below := make([]float64, most+1)
	for sum := range below {
		below[sum] = normalBelow((float64(sum) + 0.5 - float64(most)/2) / deviation)
	}
	return below
}

func accumulate(counts []float64, all float64) []float64 {
	below := make([]float64, len(counts))
	var sum float64
	for i, count := range counts {
		sum += count
		below[i] = sum / all
	}
	return below
}

// choose is the number of ways to take k of n; infinite if that is too large for a float64.
func choose(n, k int) float64 {
	k = min(k, n-k)
	ways := 1.0
	for i := 1; i <= k; i++ {
		ways = ways * float64(n-k+i) / float64(i)
	}
	return ways
}
