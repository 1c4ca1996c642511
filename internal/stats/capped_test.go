package stats

import (
	"math"
	"testing"
)

// TestCapped: sums and products stop at the largest number.
func TestCapped(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct{ a, b, sum, product int64 }{
		{2, 3, 5, 6}, {0, 7, 7, 0}, {7, 0, 7, 0}, {most, 0, most, 0}, {most, 1, most, most}, {most / 2, 3, most/2 + 3, most}, {most, most, most, most},
	} {
		if sum, product := Plus(c.a, c.b), Times(c.a, c.b); sum != c.sum || product != c.product {
			t.Errorf("%d and %d: sum %d, product %d", c.a, c.b, sum, product)
		}
	}
}
