package results

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sequence returns a passed experiment of repetitions of one variant with these rates.
func sequence(rates ...int64) Experiment {
	e := complete(0)
	for i, rate := range rates {
		e.Runs = append(e.Runs, repetition(int32(i), int32(i+1), "default", map[string]int64{"readBytesPerSecond": rate, "readBytes": rate}))
	}
	return e
}

// partsPerMillion returns the shift from one value to another in parts per million, rounded up.
func partsPerMillion(from, to float64) int64 {
	return int64(math.Ceil(1e6 * math.Abs(math.Log(to/from))))
}

func TestMakeCalibration(t *testing.T) {
	steady := make([]int64, 38)
	for i := range steady {
		steady[i] = 1000 + int64(i%2)*int64(i) // shifts of ln(1 + i/1000), i = 1, 3 .. 37
	}
	for _, c := range []struct {
		name     string
		rates    []int64
		want     NoiseFloor
		warnings []string
	}{
		// The pairs are 1000 with 1100, and 2000 with 1900: differences between pairs do not count.
		{"four", []int64{1000, 1100, 2000, 1900}, NoiseFloor{"scan", "readBytesPerSecond", partsPerMillion(1000, 1100), 2,
			666666},
			[]string{"with 2 shifts a floor covers 66% of the differences between equal runs, not 95%: it needs 19 shifts, from 38 repetitions of " +
				"one variant"}},
		{"five", []int64{1000, 1100, 2000, 1900, 9}, NoiseFloor{"scan", "readBytesPerSecond", partsPerMillion(1000, 1100), 2,
			666666},
			[]string{"with 2 shifts a floor covers 66% of the differences between equal runs, not 95%: it needs 19 shifts, from 38 repetitions of " +
				"one variant"}},
		{"no noise", []int64{7, 7, 7, 7, 7, 7}, NoiseFloor{"scan", "readBytesPerSecond", 0, 3, 750000},
			[]string{"with 3 shifts a floor covers 75% of the differences between equal runs, not 95%: it needs 19 shifts, from 38 repetitions of " +
				"one variant"}},
		{"enough", steady, NoiseFloor{"scan", "readBytesPerSecond", partsPerMillion(1000, 1037), 19, 950000}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, warnings, err := MakeCalibration(sequence(c.rates...), accepted)
			if err != nil {
				t.Fatal(err)
			}
			floors, _ := got.Floors()
			if diff := cmp.Diff([]NoiseFloor{c.want}, floors); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			text, err := got.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := DecodeBaseline(map[string]string{KeyBaseline: string(text)})
			if err != nil || !cmp.Equal(got, back) {
				t.Errorf("error %v (-want +got):\n%s", err, cmp.Diff(got, back))
			}
			if floor, found := back.Floor("scan", "readBytesPerSecond"); !found || floor != c.want {
				t.Errorf("Floor gives %v %v", floor, found)
			}
			if _, found := back.Floor("scan", "readBytes"); found {
				t.Error("there is a floor for what has no better direction")
			}
		})
	}
}

func TestCalibrationNeedsPairs(t *testing.T) {
	for _, rates := range [][]int64{{1}, {1, 2}, {1, 2, 3}} {
		_, _, err := MakeCalibration(sequence(rates...), accepted)
		if err == nil || !strings.Contains(err.Error(), "use at least 4 repetitions") {
			t.Errorf("%d runs: %v", len(rates), err)
		}
	}
}

// TestCalibrationPoolsVariants: each variant has its own pairs, unless the variants are declared to be the same thing.
func TestCalibrationPoolsVariants(t *testing.T) {
	e := complete(4) // 1000 1100 1010 1110 1020 1120 1030 1130, in turn r8k and r128k
	apart, _, err := MakeCalibration(e, accepted)
	if err != nil {
		t.Fatal(err)
	}
	if floor, _ := apart.Floor("scan", "readBytesPerSecond"); floor.Shifts != 4 || floor.NoisePartsPerMillion != partsPerMillion(1000, 1010) {
		t.Errorf("apart: %+v", floor)
	}
	options := accepted
	options.SameVariants = true
	same, _, err := MakeCalibration(e, options)
	if err != nil {
		t.Fatal(err)
	}
	if floor, _ := same.Floor("scan", "readBytesPerSecond"); floor.Shifts != 4 || floor.NoisePartsPerMillion != partsPerMillion(1000, 1100) ||
		!same.SameVariants {
		t.Errorf("as the same: %+v", floor)
	}
	// Two runs of each of two variants, one of them not valid: one pair, and one run without a partner.
	few := complete(2)
	few.Runs[3].Valid = false
	if _, _, err := MakeCalibration(few, options); err == nil {
		t.Error("one pair was enough")
	}
	// With one run of a third variant, there are two pairs if all variants are the same thing, and still one otherwise.
	few.Runs = append(few.Runs, repetition(4, 1, "third", map[string]int64{"readBytesPerSecond": 1100}))
	third, _, err := MakeCalibration(few, options)
	if err != nil {
		t.Fatal(err)
	}
	if floor, _ := third.Floor("scan", "readBytesPerSecond"); floor.Shifts != 2 || floor.NoisePartsPerMillion != partsPerMillion(1000, 1100) {
		t.Errorf("with a third: %+v", floor)
	}
	if _, _, err := MakeCalibration(few, accepted); err == nil {
		t.Error("one pair was enough")
	}
}

func TestCalibrationLeavesOutAndSaysSo(t *testing.T) {
	e := complete(6)
	e.Runs[0].Phases[0].Metrics["writeBytesPerSecond"] = 5 // in one run only
	got, warnings, err := MakeCalibration(e, accepted)
	want := []string{"metrics that were 0 or not measured in a run: scan.ioErrors"}
	floors, left := got.Floors()
	if err != nil || !cmp.Equal(left, want) || len(warnings) != 3 || warnings[1] != "no floor for "+want[0] ||
		warnings[0] != "phase scan of variant r8k leaves out what only some of its runs have: writeBytesPerSecond" {
		t.Errorf("left out %q, warnings %q, error %v", left, warnings, err)
	}
	if _, found := got.Floor("scan", "readLatencyMeanNanoseconds"); !found || len(floors) != 2 {
		t.Errorf("floors are %+v", floors)
	}
	for _, name := range []string{"writeBytesPerSecond", "ioErrors", "readBytes"} {
		if floor, found := got.Floor("scan", name); found {
			t.Errorf("%s has the floor %+v", name, floor)
		}
	}
}
