package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSteady(t *testing.T) {
	for name, c := range map[string]struct {
		values         []float64
		reached, known bool
		spread, slope  float64
	}{
		"nothing":                    {nil, false, false, 0, 0},
		"four rounds":                {[]float64{10, 10, 10, 10}, false, false, 0, 0},
		"flat":                       {[]float64{10, 10, 10, 10, 10}, true, true, 0, 0},
		"only the last five count":   {[]float64{99, 1, 10, 10, 10, 10, 10}, true, true, 0, 0},
		"range at its limit":         {[]float64{9, 11, 10, 11, 9}, true, true, 0.2, 0},
		"range beyond":               {[]float64{8.9, 11, 10, 11, 9}, false, true, 2.1 / 9.98, 0.02 * 4 / 9.98},
		"rising by less than a line": {[]float64{9.6, 9.8, 10, 10.2, 10.4}, true, true, 0.08, 0.08},
		"rising by too much":         {[]float64{9.4, 9.7, 10, 10.3, 10.6}, false, true, 0.12, 0.12},
		"falling by too much":        {[]float64{10.6, 10.3, 10, 9.7, 9.4}, false, true, 0.12, 0.12},
		"nothing was done":           {[]float64{0, 0, 0, 0, 0}, false, false, 0, 0},
		"not a number":               {[]float64{1, 1, math.NaN(), 1, 1}, false, false, 0, 0},
		"beyond all numbers":         {[]float64{1, 1, math.Inf(1), 1, 1}, false, false, 0, 0},
	} {
		got := SNIA().Judge(c.values)
		if got.Reached != c.reached || got.Known != c.known || math.Abs(got.Range-c.spread) > 1e-9 || math.Abs(got.Slope-c.slope) > 1e-9 {
			t.Errorf("%s: %+v, %s", name, got, got)
		}
	}
}

// TestWorkedExample compares with lines that were computed by hand: y = 2x + 1, and the same with one point moved by 1 each way.
func TestWorkedExample(t *testing.T) {
	if got := slope([]float64{1, 3, 5, 7, 9}); got != 2 {
		t.Errorf("slope %g", got)
	}
	if got := slope([]float64{1, 4, 5, 6, 9}); math.Abs(got-1.8) > 1e-12 { // (-2*-4 -1*-1 +0 +1*1 +2*4)/10 = 1.8
		t.Errorf("slope %g", got)
	}
}

// TestDriftIsSeen: decays of known shapes, with 1% of noise in each round. The rule of SNIA alone calls all of them steady far from their
// end. The default does so only if little is left, and it still calls flat series steady, and those that have decayed in time.
func TestDriftIsSeen(t *testing.T) {
	decay := func(above, rounds float64) func(float64) float64 {
		return func(round float64) float64 { return 1 + above*math.Exp(-round/rounds) }
	}
	for name, c := range map[string]struct {
		shape func(float64) float64
		// atLeast and atMost bound the share of series that become steady. left is how much of the decay may be left in most of them.
		atLeast, atMost, left float64
	}{
		"flat":                 {func(float64) float64 { return 1 }, 1, 1, 0},
		"falls for a while":    {decay(1, 3), 0.98, 1, 0.02},
		"rises for a while":    {decay(-0.5, 3), 0.98, 1, 0.02},
		"falls, 10 rounds":     {decay(1, 10), 0, 0.02, 1},
		"falls, 15 rounds":     {decay(1, 15), 0, 0.02, 1},
		"falls by more":        {decay(2, 20), 0, 0.02, 2},
		"rises, 10 rounds":     {decay(-0.5, 10), 0, 0.02, 1},
		"rises, 20 rounds":     {decay(-0.5, 20), 0, 0.02, 1},
		"falls as a power":     {func(round float64) float64 { return 1 + 1/(1+round/5) }, 0, 0.02, 1},
		"falls on and on":      {func(round float64) float64 { return 1 - 0.03*round }, 0, 0.02, 1},
		"falls too slowly yet": {decay(1, 200), 0.98, 1, 1}, // no measured value shows it; the drift is in the result
	} {
		const series = 200
		random := rand.New(rand.NewPCG(7, 11))
		steady, far := 0, 0
		for range series {
			var rates []float64
			for round := range MaxRounds {
				rates = append(rates, c.shape(float64(round))*math.Exp(0.01*random.NormFloat64()))
				if !DefaultSteady().Judge(rates).Reached {
					continue
				}
				steady++
				if math.Abs(c.shape(float64(round))-1) > c.left {
					far++
				}
				break
			}
		}
		if share := float64(steady) / series; share < c.atLeast || share > c.atMost || far > series/50 {
			t.Errorf("%s: %.1f%% are steady, %d of %d with more than %.0f%% left", name, 100*share, far, series, 100*c.left)
		}
	}
}

// TestDriftByHand: lines that rise or fall by 1 per round, over the later half of 20, 5 and 12 rounds.
func TestDriftByHand(t *testing.T) {
	var rising, falling []float64
	for i := range 20 {
		rising, falling = append(rising, 90+float64(i)), append(falling, 110-float64(i))
	}
	for _, c := range []struct {
		values []float64
		want   float64
	}{{rising, 10 / 104.5}, {falling, -10 / 95.5}, {rising[:5], 5.0 / 92}, {rising[:12], 6 / 98.5}} {
		got := DefaultSteady().Judge(c.values)
		if math.Abs(got.Drift-c.want) > 1e-12 || got.Reached || !SNIA().Judge(c.values).Reached {
			t.Errorf("%v: %+v, want a drift of %g", c.values, got, c.want)
		}
	}
}

func FuzzSteady(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 4.0, 5.0)
	f.Add(0.0, math.Inf(1), math.NaN(), -1.0, 1e308)
	f.Fuzz(func(t *testing.T, a, b, c, d, e float64) {
		got := SNIA().Judge([]float64{a, b, c, d, e})
		if got.Reached && (!got.Known || !(got.Range <= 0.2) || !(got.Slope <= 0.1)) {
			t.Errorf("%+v", got)
		}
	})
}
