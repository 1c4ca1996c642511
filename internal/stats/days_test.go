package stats

import (
	"math"
	"testing"
)

func TestVarianceOfDays(t *testing.T) {
	got, err := VarianceOfDays([]Day{{1, 1, 1}, {3, 3, 3}, {5, 4.5, 5.5}})
	if err != nil || math.Abs(got.Levels-4) > 1e-12 || got.LevelFreedom != 2 || math.Abs(got.LevelShare-1.0/3) > 1e-12 ||
		math.Abs(got.Within-0.5/6) > 1e-12 || got.WithinFreedom != 6 {
		t.Errorf("%+v, %v", got, err)
	}
	joined := got.Join(Days{Levels: 1, LevelFreedom: 2, LevelShare: 1})
	if joined.Levels != 2.5 || joined.LevelFreedom != 4 || math.Abs(joined.LevelShare-2.0/3) > 1e-12 ||
		joined.Within != got.Within || (Days{}).Join(Days{}) != (Days{}) {
		t.Errorf("%+v", joined)
	}
	for _, days := range [][]Day{nil, {{}}, {{math.NaN()}}} {
		if _, err := VarianceOfDays(days); err == nil {
			t.Errorf("%v has a variance", days)
		}
	}
}

func TestCompareDays(t *testing.T) {
	before := []Day{{1, 1}, {3, 3}, {5, 5}}
	variation, err := VarianceOfDays(before)
	if err != nil {
		t.Fatal(err)
	}
	test, err := CompareDays(before, Day{7, 7}, variation)
	if err != nil || test.Estimate != 4 || test.Freedom != 2 || math.Abs(test.Error-math.Sqrt(4.0/3+4)) > 1e-12 {
		t.Errorf("%+v, %v", test, err)
	}
	// Levels that lie close together by chance vary at least as much as their runs make them vary, and a level of fewer runs is known less
	// well.
	alike, err := CompareDays([]Day{{-1, 1}, {1, -1}}, Day{0}, Days{LevelFreedom: 1, Within: 2, WithinFreedom: 2})
	if err != nil || math.Abs(alike.Error-math.Sqrt(1.0/2+1+1)) > 1e-12 {
		t.Errorf("%+v, %v", alike, err)
	}
	// Levels of many runs vary less than levels of six runs.
	six := Day{-1, 1, -1, 1, -1, 1}
	fewer, err := CompareDays([]Day{six}, six, Days{Levels: 1, LevelFreedom: 9, Within: 6, WithinFreedom: 370})
	if err != nil || math.Abs(fewer.Error-2) > 1e-12 {
		t.Errorf("%+v, %v", fewer, err)
	}
	if _, err := CompareDays(before[:1], Day{7}, Days{}); err == nil {
		t.Error("a comparison without any variation")
	}
	if _, err := CompareDays(nil, Day{7}, variation); err == nil {
		t.Error("a comparison with nothing")
	}
	if _, err := CompareDays(before, nil, variation); err == nil {
		t.Error("a comparison of nothing")
	}
}
