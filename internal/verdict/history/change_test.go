package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
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
			math.Abs(got.Share-want.share) > 0.02 || !got.Worse || got.Better {
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
	if found > 4 { // 1% is required for each metric, and the two metrics of a series are nearly one
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

// TestLevels: the current experiment is the last one, whether the series has it or not, and nothing before the given time counts.
func TestLevels(t *testing.T) {
	source := rand.New(rand.NewPCG(5, 6))
	series := weekly(append(noisy(source, 1_000_000, 15), noisy(source, 700_000, 4)...)...)
	update(series, 15, map[string]string{"kernel": "6.12.4"})
	n := len(series.Points) - 1
	for name, before := range map[string]*Series{"with it": series, "without it": {Points: series.Points[:n]}} {
		values, change, missing := Levels(before, series.Points[n], reads, time.Time{}, 3, 9)
		if missing != "" || len(values) != 19 || values[18] != float64(series.Points[n].Metrics[0].Median) ||
			!strings.HasSuffix(change(), "worse) since experiment e015 of 2026-06-15T03:00:00Z: kernel 6.12.1 -> 6.12.4") {
			t.Errorf("%s: %v %s %s", name, values, missing, change())
		}
		if len(before.Points) < n {
			t.Errorf("%s: the series was changed", name)
		}
	}
	values, change, missing := Levels(series, series.Points[n], latency, series.Points[15].FinishedAt, 3, 9)
	if missing != "" || len(values) != 4 || change() != "" {
		t.Errorf("since the change: %v %s %s", values, missing, change())
	}
	for i := range series.Points { // the last ten measure something else, and so does an earlier one; one has only another variant
		if i > 8 || i == 4 {
			series.Points[i].Definitions = map[string]string{"default": "b oltp 2"}
		}
		if i == 12 {
			series.Points[i].Definitions, series.Points[i].Metrics = nil, []Metric{{Path{"other", "scan", "readBytesPerSecond"}, 1, 6}}
		}
	}
	if values, _, missing := Levels(series, series.Points[n], reads, time.Time{}, 3, 9); missing != "" || len(values) != 9 {
		t.Errorf("since the definition changed: %v %s", values, missing)
	}
	if _, _, missing := Levels(series, series.Points[n], Path{"default", "scan", "writeBytesPerSecond"}, time.Time{}, 3, 9); !strings.Contains(missing,
		"was not measured in all runs of this experiment") {
		t.Error(missing)
	}
}

// TestLevelsOfStalledNights: if one of the newest experiments lacks a metric because a run stalled, older ones do not take its place.
func TestLevelsOfStalledNights(t *testing.T) {
	ofLog := Path{"default", "scan", "log.syncLatencyP99Nanoseconds"} // of one of several workloads
	without := func(path Path, nights ...int) func(*Series) {
		return func(series *Series) {
			for _, night := range nights {
				point := &series.Points[night]
				point.Metrics = slices.DeleteFunc(point.Metrics, func(metric Metric) bool { return metric.Path == path })
			}
		}
	}
	shortened := func(path Path, nights ...int) func(*Series) {
		return func(series *Series) {
			without(path, nights...)(series)
			for _, night := range nights {
				series.Points[night].MetricsOmitted = 1
			}
		}
	}
	firsts := func(count int) (nights []int) {
		for night := range count {
			nights = append(nights, night)
		}
		return nights
	}
	for name, test := range map[string]struct {
		path   Path
		change func(*Series)
		values int
		says   string
	}{
		"all nights have it":        {latency, func(*Series) {}, 43, ""},
		"the two nights before":     {latency, without(latency, 40, 41), 0, "was not measured in all runs of experiments e040, e041, and older"},
		"two more are needed":       {latency, without(latency, 40, 41), 0, "run 2 more"},
		"the night before":          {latency, without(latency, 41), 0, "in all runs of experiment e041, and older"},
		"two nights ago":            {latency, without(latency, 40), 0, "run 1 more"},
		"three nights ago":          {latency, without(latency, 39), 42, ""},
		"many nights":               {latency, without(latency, 34, 35, 36, 37, 38, 39, 41), 0, "e034, e035, e036, e037, e038 and 2 more"},
		"another metric":            {reads, without(latency, 40, 41), 43, ""},
		"a metric that is new":      {latency, without(latency, firsts(41)...), 2, ""},
		"a new metric that stalled": {latency, without(latency, append(firsts(40), 41)...), 0, "experiment e041"},
		"left out for its size":     {ofLog, shortened(ofLog, 40, 41), 41, ""},
		"others left out":           {latency, shortened(latency, 40, 41), 0, "experiments e040, e041"},
		"no room at all": {latency, func(series *Series) {
			shortened(latency, 41)(series)
			series.Points[41].Metrics = slices.Repeat([]Metric{{reads, 1, 6}}, maxMetrics)
		}, 42, ""},
		"another variant": {latency, func(series *Series) {
			series.Points[41].Metrics = []Metric{{Path{"other", "scan", "readBytesPerSecond"}, 1, 6}}
		}, 42, ""},
		"another definition": {latency, func(series *Series) {
			without(latency, 40, 41)(series)
			series.Points[41].Definitions = map[string]string{"default": "b"}
		}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			series := weekly(noisy(rand.New(rand.NewPCG(7, 8)), 1_000_000, 43)...)
			for i := range series.Points {
				series.Points[i].Metrics = append(series.Points[i].Metrics, Metric{ofLog, 1000, 6})
			}
			test.change(series)
			values, _, missing := Levels(series, series.Points[42], test.path, time.Time{}, 3, 9)
			g.Expect(values).To(gomega.HaveLen(test.values))
			g.Expect(missing).To(gomega.ContainSubstring(test.says))
			g.Expect(missing == "").To(gomega.Equal(test.says == ""), missing)
		})
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

// BenchmarkChanges is the worst case: all points, and more metrics than Changes searches, each with a change.
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
