package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	series := weekly(append(noisy(source, 1_000_000, 20), noisy(source, 800_000, 12)...)...)
	update(series, 20, map[string]string{"kernel": "6.12.4", "zfs.version": "2.3.9", "node": "node-a", "new": "x"})
	changes, omitted, err := Changes(series, 7)
	if err != nil || omitted != 0 || len(changes) != 2 {
		t.Fatalf("%v %d: %v", err, omitted, changes)
	}
	for i, want := range []struct {
		path  Path
		share float64
	}{{reads, -0.2}, {latency, 0.25}} {
		got := changes[i]
		if got.Path != want.path || got.Experiment != "e020" || got.Before != "e019" || !got.Since.Equal(monday.AddDate(0, 0, 140)) ||
			math.Abs(got.Share-want.share) > 0.02 || !got.Worse || got.Better || got.Ago != 12 {
			t.Errorf("%+v", got)
		}
		if says := "worse) since experiment e020 of 2026-07-20T03:00:00Z: kernel 6.12.1 -> 6.12.4, zfs.version 2.3.8 -> 2.3.9"; !strings.HasSuffix(got.String(), says) {
			t.Errorf("%s", got)
		}
	}
	again, _, err := Changes(series, 7)
	if err != nil || !reflect.DeepEqual(changes, again) {
		t.Errorf("the same seed gives %v and %v", changes, again)
	}
}

func TestChangesThatAreNone(t *testing.T) {
	source, found := rand.New(rand.NewPCG(3, 4)), 0
	const tries = 60
	for range tries {
		changes, _, err := Changes(weekly(noisy(source, 1_000_000, 30)...), 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) > 0 {
			found++
		}
	}
	if found > 4 { // 1% each is asked for, and the two figures of a series are nearly one
		t.Errorf("%d of %d histories of mere noise have changes", found, tries)
	}
	if changes, _, err := Changes(weekly(make([]int64, 0)...), 1); err != nil || changes != nil {
		t.Errorf("%v %v", changes, err)
	}
}

// TestLeastPoints: nine values cannot show the clearest of changes, ten can.
func TestLeastPoints(t *testing.T) {
	for n := 6; n <= 12; n++ {
		values := make([]int64, n)
		for i := range values {
			values[i] = int64(1000 + i) // distinct, without a jump of their own
			if i >= n/2 {
				values[i] = int64(9000 + i)
			}
		}
		found := false
		for seed := range uint64(5) {
			changes, err := changesOf(weekly(values...), reads, seed)
			if err != nil {
				t.Fatal(err)
			}
			found = found || len(changes) > 0
		}
		if found != (n >= LeastPoints) {
			t.Errorf("%d values: change found: %v", n, found)
		}
	}
}

func TestJudge(t *testing.T) {
	source := rand.New(rand.NewPCG(5, 6))
	level := func(parts ...[]int64) *Series {
		var all []int64
		for _, part := range parts {
			all = append(all, part...)
		}
		return weekly(all...)
	}
	good, bad := func(n int) []int64 { return noisy(source, 1_000_000, n) }, func(n int) []int64 { return noisy(source, 700_000, n) }
	for _, test := range []struct {
		name      string
		series    *Series
		path      Path
		tolerance float64
		want      Outcome
		says      string
	}{
		{"too few", level(good(5), bad(4)), reads, 0.05, TooFew, "run 1 more"},
		{"nothing", weekly(1), Path{"default", "scan", "writeBytesPerSecond"}, 0.05, TooFew, "was not measured in this experiment"},
		{"no change", level(good(20)), reads, 0.05, Unchanged, "has not changed in 20 experiments"},
		{"worse", level(good(15), bad(4)), reads, 0.05, Worse, "nothing in the environment is known to have changed"},
		{"worse the other way round", level(good(15), bad(4)), latency, 0.05, Worse, "since experiment e015"},
		{"better", level(bad(15), good(4)), reads, 0.05, Better, "since experiment e015"},
		{"tolerated", level(good(15), bad(4)), reads, 0.5, Unchanged, "within the tolerance of 50%"},
		{"long ago", level(good(15), bad(11)), reads, 0.05, Unchanged, "no change in the last 10 experiments"},
		{"one outlier is no change yet", level(good(15), bad(1)), reads, 0.05, Unchanged, "has not changed"},
	} {
		n := len(test.series.Points) - 1
		current := test.series.Points[n]
		for name, before := range map[string]*Series{"with it": test.series, "without it": {Points: test.series.Points[:n]}} {
			got, err := Judge(before, current, test.path, test.tolerance, 9)
			if err != nil || got.Outcome != test.want || !strings.Contains(got.Sentence, test.says) {
				t.Errorf("%s, %s: %v %s: %s", test.name, name, err, got.Outcome, got.Sentence)
			}
			if len(before.Points) < n {
				t.Errorf("%s: the series was changed", test.name)
			}
		}
	}
}

// TestJudgeSeveral: recent changes count together, older ones not at all.
func TestJudgeSeveral(t *testing.T) {
	change := func(experiment string, ago int, from, to float64) Change {
		one := Change{Path: reads, Experiment: experiment, Ago: ago, Causes: []string{"of " + experiment}}
		one.level(from, to)
		return one
	}
	for _, test := range []struct {
		name    string
		changes []Change
		want    Outcome
		share   float64
		since   string
	}{
		{"down and up again", []Change{change("a", 9, 100, 70), change("b", 4, 70, 98)}, Unchanged, -0.02, "b"},
		{"a small step hides no large one", []Change{change("a", 9, 100, 70), change("b", 4, 70, 71)}, Worse, -0.29, "a"},
		{"in small steps", []Change{change("a", 9, 100, 97), change("b", 4, 97, 93)}, Worse, -0.07, "b"},
		{"what was long ago is normal", []Change{change("a", 11, 100, 70), change("b", 10, 70, 80)}, Better, 80.0/70 - 1, "b"},
	} {
		got := judge(test.changes, 0.05)
		if got.Outcome != test.want || math.Abs(got.Share-test.share) > 1e-9 || got.Experiment != test.since || got.Causes[0] != "of "+
			test.since {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

func TestShare(t *testing.T) {
	for _, test := range []struct{ from, to, want float64 }{{2, 1, -0.5}, {0, 0, 0}, {0, 3, math.Inf(1)}, {5, 5, 0}} {
		if got := share(test.from, test.to); got != test.want {
			t.Errorf("from %v to %v is %v, want %v", test.from, test.to, got, test.want)
		}
	}
	if got := causesText([]string{"a", "b", "c", "d", "e", "f", "g", "h"}); got != "a, b, c, d, e, f and 2 more" {
		t.Error(got)
	}
}

// BenchmarkChanges is the most that is done: all points, and more figures than are looked at, each with a change.
func BenchmarkChanges(b *testing.B) {
	source := rand.New(rand.NewPCG(7, 8))
	series := &Series{}
	for i := range MaxPoints {
		point := Point{Experiment: fmt.Sprint("e", i), FinishedAt: monday.Add(time.Duration(i) * time.Hour)}
		for k := range 74 {
			point.Metrics = append(point.Metrics, Metric{Path{fmt.Sprint("v", k), "scan", "readBytesPerSecond"},
				noisy(source, int64(1_000_000-i/50*200_000), 1)[0], 6})
		}
		series.Append(point)
	}
	for b.Loop() {
		if changes, omitted, err := Changes(series, 1); err != nil || omitted != 10 || len(changes) < 64 {
			b.Fatal(len(changes), omitted, err)
		}
	}
}
