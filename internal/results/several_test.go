package results

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// day returns one more experiment of the same thing, with rates that are higher by this number.
func day(name string, higher int64) Experiment {
	e := complete(6)
	e.Experiment = name
	for i := range e.Runs {
		e.Runs[i].Phases[0].Metrics["readBytesPerSecond"] += higher
	}
	return e
}

// added accepts experiments one after the other.
func added(t *testing.T, options AcceptOptions, experiments ...Experiment) Baseline {
	t.Helper()
	for _, e := range experiments {
		baseline, _, err := MakeBaseline(e, options)
		if err != nil {
			t.Fatal(err)
		}
		options.AddTo = &baseline
	}
	return *options.AddTo
}

func TestAddDays(t *testing.T) {
	second := day("second", 500)
	delete(second.Runs[0].Phases[0].Metrics, "readBytes") // in one of the six runs of a variant
	for _, at := range []int{1, 3, 5, 7, 9, 11} {
		delete(second.Runs[at].Phases[0].Metrics, "readBytes")
		second.Runs[at].Phases[0].Metrics["writeBytesPerSecond"] = 7
	}
	second.Environment["device.0.name"] = []string{"sdb"}
	got := added(t, accepted, day("first", 0), second, day("third", 700))
	if names := experimentsOf(got); names != "first second third" || got.Newest().Experiment != "third" {
		t.Errorf("experiments %s", names)
	}
	if values := got.Values("r8k", "scan", "readBytesPerSecond"); len(values) != 3 || values[1][0] != 1500 || values[2][5] != 1750 {
		t.Errorf("values %v", values)
	}
	for metric, want := range map[string][]int{"readBytes": {6, 0, 6}, "writeBytesPerSecond": {0, 6, 0}} {
		for _, phase := range got.Variants[1].Phases {
			for day, count := range want {
				if values := phase.values(metric, day); len(values) != count {
					t.Errorf("%s on day %d: %v", metric, day, values)
				}
			}
		}
	}
	if values := got.Values("r128k", "scan", "readBytes"); len(values) != 2 {
		t.Errorf("a day without values counts: %v", values)
	}
	if names := got.Environment["device.0.name"]; !cmp.Equal(names, []string{"sdb"}) || len(got.Environment["kernel"]) != 1 {
		t.Errorf("environment %v", got.Environment)
	}
	if days := got.Days("scan", "readBytesPerSecond"); days.LevelFreedom != 2 || days.Levels < 0.02 || days.Levels > 0.1 {
		t.Errorf("days %+v", days)
	}
	text, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := DecodeBaseline(map[string]string{KeyBaseline: string(text)}); err != nil || !cmp.Equal(back, got) {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(got, back))
	}
	// An experiment that is accepted again is replaced, and the first document stays unchanged.
	again := added(t, AcceptOptions{AcceptedAt: accepted.AcceptedAt, AddTo: &got}, day("first", 100))
	if names := experimentsOf(again); names != "second third first" || experimentsOf(got) != "first second third" ||
		again.Values("r8k", "scan", "readBytesPerSecond")[2][0] != 1100 || got.Validate() != nil {
		t.Errorf("%s, before %s", names, experimentsOf(got))
	}
}

func experimentsOf(b Baseline) string {
	var names []string
	for _, of := range b.Experiments {
		names = append(names, of.Experiment)
	}
	return strings.Join(names, " ")
}

func TestDaysAreBounded(t *testing.T) {
	var all []Experiment
	for i := range MaxBaselineExperiments + 3 {
		all = append(all, day(fmt.Sprint("e", i), int64(i)))
	}
	got := added(t, accepted, all...)
	if n := len(got.Experiments); n != MaxBaselineExperiments || got.Experiments[0].Experiment != "e3" ||
		len(got.Values("r8k", "scan", "readBytesPerSecond")) != MaxBaselineExperiments {
		t.Errorf("%d experiments from %s on", n, got.Experiments[0].Experiment)
	}
}

// TestAddRefuses: results of another machine, or of another thing, are not another day.
func TestAddRefuses(t *testing.T) {
	base := added(t, accepted, day("first", 0))
	for want, change := range map[string]func(*Experiment, *AcceptOptions){
		"kernel: baseline 6.12.9, now 6.13: start over with --replace": func(e *Experiment, _ *AcceptOptions) {
			e.Environment["kernel"] = []string{"6.13"}
		},
		"variant r8k differs from the baseline": func(e *Experiment, _ *AcceptOptions) { e.Variants[0].Definition = "other" },
		"declares all variants equal":           func(_ *Experiment, o *AcceptOptions) { o.SameVariants = true },
	} {
		e, options := day("second", 0), AcceptOptions{AcceptedAt: accepted.AcceptedAt, AddTo: &base}
		change(&e, &options)
		if _, _, err := MakeBaseline(e, options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestNoiseOfSeveralDays: both runs of a pair are of the same day, and all days count.
func TestNoiseOfSeveralDays(t *testing.T) {
	for _, same := range []bool{false, true} {
		options := accepted
		options.SameVariants = same
		one, other := complete(4), complete(4)
		other.Experiment = "other"
		for i := range other.Runs {
			other.Runs[i].Phases[0].Metrics["readBytesPerSecond"] *= 100
		}
		got := added(t, options, one, other)
		want := partsPerMillion(1000, 1010)
		if same {
			want = partsPerMillion(1000, 1100)
		}
		floor, found := got.Floor("scan", "readBytesPerSecond")
		if !found || floor.Shifts != 8 || math.Abs(float64(floor.NoisePartsPerMillion-want)) > 1 || got.Validate() != nil {
			t.Errorf("same variants %v: %+v, %v", same, floor, got.Validate())
		}
	}
}
