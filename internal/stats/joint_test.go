package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomFamily returns members that share the noise of their repetitions. They have outlying pairs, may have ties, and lack some
// repetitions.
func randomFamily(r *rand.Rand, size, n int, ties bool) []Member {
	common, members := sample(r, n, ties), make([]Member, size)
	for i := range members {
		own := sample(r, n, ties)
		for repetition := range n {
			if n > 2 && r.IntN(9) == 0 {
				continue
			}
			members[i].Shifts = append(members[i].Shifts, common[repetition]+own[repetition]+2.5*float64(i%3-1))
			members[i].Outlying = append(members[i].Outlying, r.IntN(6) == 0)
			members[i].Repetitions = append(members[i].Repetitions, int32(repetition+1))
		}
		if len(members[i].Shifts) == 0 {
			members[i] = Member{Shifts: []float64{1}, Outlying: []bool{false}, Repetitions: []int32{1}}
		}
	}
	return members
}

func chanceOf(t *testing.T, member Member, flips uint) float64 {
	shifts := slices.Clone(member.Shifts)
	for i := range shifts {
		if holds(flips, int(member.Repetitions[i]-1)) {
			shifts[i] *= -1
		}
	}
	return must[Tails](t)(must[*Ranked](t)(NewPaired(shifts, member.Outlying)).Test(0)).Greater
}

// TestJointCounts compares Joint with a plain implementation of its definition.
func TestJointCounts(t *testing.T) {
	r, decided, levels := seeded(21), 0, map[float64]bool{}
	for turn := range 300 {
		n := 4 + r.IntN(5)
		members := randomFamily(r, 1+r.IntN(5), n, turn%2 == 0)
		got := must[JointTest](t)(Joint(members, 0.05))
		order, p := make([]int, len(members)), make([]float64, len(members))
		for i := range members {
			order[i], p[i] = i, chanceOf(t, members[i], 0)
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return map[bool]int{true: -1, false: 1}[p[a] < p[b] || p[a] == p[b] && a < b]
		})
		var before float64
		for step, at := range order {
			asBad := 0
			for flips := range uint(1) << n {
				for _, other := range order[step:] {
					if chanceOf(t, members[other], flips) <= p[at]*(1+1e-12) {
						asBad++
						break
					}
				}
			}
			before = max(before, p[at], float64(asBad)/math.Ldexp(1, n))
			if !near(got.P[at], before) {
				t.Fatalf("turn %d: %d of %v has %g, want %g: %+v", turn, at, p, got.P[at], before, members)
			}
			if within := p[at] <= got.Level*(1+1e-12); within != (got.P[at] <= 0.05) {
				t.Fatalf("turn %d: %d of %v has %g, the level of one is %g", turn, at, p, got.P[at], got.Level)
			} else if within {
				decided++
			}
			levels[got.Level] = true
		}
	}
	if decided < 20 || len(levels) < 3 {
		t.Errorf("%d members decided, levels %v: the cases show nothing", decided, levels)
	}
}

// TestJointKeepsPower: Joint finds a comparison that is worse in all six repetitions among any number of comparisons, whereas Holm finds
// none from four comparisons on.
func TestJointKeepsPower(t *testing.T) {
	repetitions := []int32{1, 2, 3, 4, 5, 6}
	worse := Member{Shifts: []float64{0.050, 0.052, 0.049, 0.051, 0.048, 0.053}, Repetitions: repetitions}
	same := Member{Shifts: []float64{-0.050, -0.052, -0.049, -0.051, -0.048, -0.053}, Repetitions: repetitions}
	for count := 2; count <= 40; count++ {
		alike, alone := make([]Member, count), make([]Member, count)
		for i := range count {
			alike[i], alone[i] = worse, same
		}
		alone[count/2] = worse
		if got := must[JointTest](t)(Joint(alike, 0.05)); !near(slices.Max(got.P), 1.0/64) {
			t.Errorf("%d alike: %+v", count, got)
		}
		if got := must[JointTest](t)(Joint(alone, 0.05)); !near(got.P[count/2], 2.0/64) || got.P[0] < 0.5 {
			t.Errorf("one of %d: %+v", count, got)
		}
	}
}

// TestJointKeepsItsLevel for a family that is at its limits, with correlated and with independent members. The lower end of the rate checks
// that Joint does not keep its level by deciding nothing.
func TestJointKeepsItsLevel(t *testing.T) {
	r := seeded(22)
	for _, c := range []struct {
		n           int
		correlation float64
	}{{6, 0}, {6, 0.9}, {10, 0}, {10, 0.9}, {16, 0.5}} {
		wrong, turns := 0, 300
		if c.n > maxAllFlips {
			turns = 25
		}
		for range turns {
			members := make([]Member, 8)
			for repetition := range c.n {
				common := r.NormFloat64()
				for i := range members {
					shift := math.Sqrt(c.correlation)*common + math.Sqrt(1-c.correlation)*r.NormFloat64()
					members[i].Shifts = append(members[i].Shifts, shift)
					members[i].Repetitions = append(members[i].Repetitions, int32(repetition))
				}
			}
			if slices.Min(must[JointTest](t)(Joint(members, 0.05)).P) <= 0.05 {
				wrong++
			}
		}
		rate, most := float64(wrong)/float64(turns), 0.05+3*math.Sqrt(0.05*0.95/float64(turns))
		if rate > most || rate < 0.005 && c.n > 6 {
			t.Errorf("%+v: %.3f wrong, at most %.3f", c, rate, most)
		}
	}
}

func TestJointRefuses(t *testing.T) {
	for name, members := range map[string][]Member{
		"none":                  nil,
		"no shifts":             {{}},
		"no number":             {{Shifts: []float64{math.NaN()}, Repetitions: []int32{1}}},
		"shifts of nothing":     {{Shifts: []float64{1}}},
		"outlying of something": {{Shifts: []float64{1}, Repetitions: []int32{1}, Outlying: []bool{true, true}}},
	} {
		if got, err := Joint(members, 0.05); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
