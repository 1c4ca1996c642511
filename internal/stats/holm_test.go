package stats

import (
	"math/bits"
	"testing"
)

func TestHolm(t *testing.T) {
	for name, c := range map[string]struct{ p, want []float64 }{
		"one stays":           {[]float64{0.04}, []float64{0.04}},
		"Holm's steps":        {[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		"R's p.adjust":        {[]float64{0.01, 0.02, 0.03, 0.04, 0.05}, []float64{0.05, 0.08, 0.09, 0.09, 0.09}},
		"never above 1":       {[]float64{0.6, 0.9, 1}, []float64{1, 1, 1}},
		"none":                {[]float64{0, 0}, []float64{0, 0}},
		"equal ones together": {[]float64{0.02, 0.02, 0.02}, []float64{0.06, 0.06, 0.06}},
	} {
		for i, got := range must[[]float64](t)(Holm(c.p)) {
			if !near(got, c.want[i]) {
				t.Errorf("%s: p-value %d is %g, not %g", name, i+1, got, c.want[i])
			}
		}
	}
}

// TestHolmIsClosedTesting: Holm's method rejects a hypothesis exactly if Bonferroni's test rejects each group that contains it.
func TestHolmIsClosedTesting(t *testing.T) {
	r := seeded(12)
	for range 3000 {
		p := make([]float64, 1+r.IntN(7))
		for i := range p {
			p[i] = float64(r.IntN(50)) / 49 * r.Float64()
		}
		got := must[[]float64](t)(Holm(p))
		for i := range p {
			var want float64
			subsets(len(p), -1, func(set uint) {
				if !holds(set, i) {
					return
				}
				smallest := 1.0
				for j := range p {
					if holds(set, j) {
						smallest = min(smallest, p[j])
					}
				}
				want = max(want, min(1, float64(bits.OnesCount(set))*smallest))
			})
			if !near(got[i], want) {
				t.Fatalf("%v: p-value %d is %g, not %g", p, i+1, got[i], want)
			}
		}
	}
}
