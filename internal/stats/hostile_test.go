package stats

import (
	"math"
	"testing"
)

// hostile holds values that no function accepts as a series of measurements.
var hostile = map[string][]float64{
	"none":               nil,
	"not a number":       {1, 2, math.NaN(), 4, 5, 6, 7, 8},
	"infinite":           {1, 2, math.Inf(1), 4, 5, 6, 7, 8},
	"minus infinite":     {1, 2, math.Inf(-1), 4, 5, 6, 7, 8},
	"beyond all measure": {1, 2, 1e300, 4, 5, 6, 7, 8},
}

// functions returns the error of each function that takes values.
func functions(values []float64) map[string]error {
	good := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	failed := map[string]error{}
	_, failed["LogRatios before"] = LogRatios(values, good[:min(len(values), len(good))])
	_, failed["LogRatios after"] = LogRatios(good[:min(len(values), len(good))], values)
	_, failed["ConsecutiveShifts"] = ConsecutiveShifts(values)
	_, failed["NoiseFloor"] = NoiseFloor(values)
	_, failed["PairedShift"] = PairedShift(values, 0.95)
	_, failed["NewPaired"] = NewPaired(values, nil)
	_, failed["NewUnpaired from"] = NewUnpaired(values, good)
	_, failed["NewUnpaired to"] = NewUnpaired(good, values)
	_, failed["Joint of one"] = Joint([]Member{memberOf(values)}, 0.05)
	_, failed["Joint of two"] = Joint([]Member{memberOf(good), memberOf(values)}, 0.05)
	_, failed["Find"] = Changes(1).Find(values)
	return failed
}

// memberOf returns a member with each shift in its own repetition.
func memberOf(shifts []float64) Member {
	member := Member{Shifts: shifts}
	for i := range shifts {
		member.Repetitions = append(member.Repetitions, int32(i+1))
	}
	return member
}

func TestHostileValues(t *testing.T) {
	for name, values := range hostile {
		for function, err := range functions(values) {
			if err == nil {
				t.Errorf("%s takes %s", function, name)
			}
		}
	}
	for function, err := range functions([]float64{8, 7, 6, 5, 4, 3, 2, 1}) {
		if err != nil {
			t.Errorf("%s does not take good values: %v", function, err)
		}
	}
}

func TestHostileArguments(t *testing.T) {
	good, failed := []float64{1, 2, 3, 4, 5, 6, 7, 8}, map[string]error{}
	_, failed["pairs of different length"] = LogRatios(good, good[1:])
	_, failed["the logarithm of 0"] = LogRatios(good[:2], []float64{0, 1})
	_, failed["the logarithm of less"] = LogRatios([]float64{1, -1}, good[:2])
	_, failed["a ratio beyond numbers"] = LogRatios([]float64{5e-324}, []float64{1e150})
	_, failed["a ratio below numbers"] = LogRatios([]float64{1e150}, []float64{5e-324})
	_, failed["noise of one"] = NoiseFloor(good[:1])
	_, failed["shifts of one run"] = ConsecutiveShifts(good[:1])
	_, failed["shifts from 0"] = ConsecutiveShifts([]float64{0, 1})
	_, failed["delta NaN"] = must[*Ranked](t)(NewPaired(good, nil)).Test(math.NaN())
	_, failed["delta infinite"] = must[*Ranked](t)(NewUnpaired(good, good)).Test(math.Inf(1))
	_, failed["confidence 1"] = PairedShift(good, 1)
	_, failed["confidence NaN"] = PairedShift(good, math.NaN())
	_, failed["confidence in percent"] = PairedShift(good, 95)
	_, failed["confidence like a coin's"] = PairedShift(good, 0.4)
	_, failed["no p-values"] = Holm(nil)
	_, failed["a p-value NaN"] = Holm([]float64{0.1, math.NaN()})
	_, failed["a p-value above 1"] = Holm([]float64{1.1})
	_, failed["a p-value below 0"] = Holm([]float64{-0.1})
	for name, rule := range map[string]ChangeRule{
		"no rule":                   {},
		"parts of one":              {MinSize: 1, Significance: 0.05, Permutations: 99},
		"parts larger than all":     {MinSize: 5, Significance: 0.05, Permutations: 99},
		"parts beyond all":          {MinSize: math.MaxInt, Significance: 0.05, Permutations: 99},
		"too few permutations":      {MinSize: 2, Significance: 0.05, Permutations: 18},
		"significance NaN":          {MinSize: 2, Significance: math.NaN(), Permutations: 99},
		"everything is significant": {MinSize: 2, Significance: 1, Permutations: 99},
	} {
		_, failed[name] = rule.Find(good)
	}
	_, failed["a history too long"] = Changes(1).Find(make([]float64, maxHistory+1))
	for name, err := range failed {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzTests wants an error, or valid p-values and intervals.
func FuzzTests(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.5)
	f.Add(0.0, math.Inf(1), math.NaN(), -1.0, 1e308, 5e-324, 0.0)
	f.Add(1e150, -1e150, 1e150, -1e150, 1e150, 5e-324, 1e150)
	f.Add(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g, delta float64) {
		values := []float64{a, b, c, d, e, g}
		bad := check(values, 1) != nil
		paired, err := NewPaired(values, nil)
		wantsRanked(t, err, bad, paired, delta)
		outlying, err := NewPaired(values, []bool{false, true, false, false, true, false})
		wantsRanked(t, err, bad, outlying, delta)
		unpaired, err := NewUnpaired(values[:3], values[3:])
		wantsRanked(t, err, bad, unpaired, delta)
		joint, err := Joint([]Member{memberOf(values), memberOf(values[1:])}, 0.05)
		wantsJoint(t, err, bad, joint)
		noise, err := NoiseFloor(values)
		if (err != nil) != bad || !(noise.Floor >= 0) || noise.Known {
			t.Errorf("%v: %+v, %v", values, noise, err)
		}
		rule := ChangeRule{MinSize: 2, Significance: 0.1, Permutations: 19}
		if changes, err := rule.Find(values); (err != nil) != bad {
			t.Errorf("%v: %v, %v", values, changes, err)
		}
		ratios, err := LogRatios(values[:3], values[3:])
		if err == nil && check(ratios, 3) != nil {
			t.Errorf("%v: %v", values, ratios)
		}
	})
}

func wantsRanked(t *testing.T, err error, bad bool, ranked *Ranked, delta float64) {
	t.Helper()
	if (err != nil) != bad {
		t.Fatal(err)
	}
	if err != nil {
		return
	}
	got, err := ranked.Test(delta)
	if (err == nil) != finite(delta) {
		t.Fatal(err)
	}
	for _, p := range []float64{got.Less, got.Greater, got.TwoSided} {
		if err == nil && !(p >= got.Smallest && p <= 1 && got.Smallest > 0) {
			t.Fatalf("%+v", got)
		}
	}
	for _, level := range []float64{0.25, 0.025} {
		shift := ranked.Shift(level, level)
		i := shift.Interval
		if !(i.Low <= shift.Estimate && shift.Estimate <= i.High) || i.Known && math.IsInf(i.High-i.Low, 0) {
			t.Fatalf("%+v", shift)
		}
	}
}

func wantsJoint(t *testing.T, err error, bad bool, got JointTest) {
	t.Helper()
	if (err != nil) != bad {
		t.Fatal(err)
	}
	for _, p := range got.P {
		if !(p >= 1.0/64 && p <= 1) || !(got.Level >= 0 && got.Level <= 0.05) {
			t.Fatalf("%+v", got)
		}
	}
}
