package experiment

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	_ "time/tzdata"

	// the tests need the zones, wherever they run

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return moment
}

func TestTimetable(t *testing.T) {
	const berlin = "Europe/Berlin"
	for _, test := range []struct {
		name, cron, zone, after string
		want                    []string
	}{
		{"weekly", "0 3 * * 1", berlin, "2026-11-21T12:00:00Z", []string{"2026-11-23T02:00:00Z", "2026-11-30T02:00:00Z"}},
		{"exactly then is not after", "0 3 * * 1", "Etc/UTC", "2026-11-23T03:00:00Z", []string{"2026-11-30T03:00:00Z"}},
		{"no zone is UTC", "@daily", "", "2026-11-21T12:00:00Z", []string{"2026-11-22T00:00:00Z"}},
		{"summer begins: the hour moves in UTC", "0 3 * * *", berlin, "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		{"summer begins: what does not exist is left out", "30 2 * * *", berlin, "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		{"summer ends: what exists twice comes twice", "30 2 * * *", berlin, "2026-10-24T22:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		{"summer ends: the hour moves in UTC", "0 4 * * *", berlin, "2026-10-24T00:00:00Z",
			[]string{"2026-10-24T02:00:00Z", "2026-10-25T03:00:00Z"}},
		{"a leap day", "0 0 29 2 *", "Etc/UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"7 is Sunday", "0 0 * * 7", "Etc/UTC", "2026-11-21T12:00:00Z", []string{"2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"}},
		{"up to 7", "0 0 * * 6-7,3", "Etc/UTC", "2026-11-21T12:00:00Z", []string{"2026-11-22T00:00:00Z", "2026-11-25T00:00:00Z",
			"2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z"}},
		{"every second weekday up to 7", "0 0 * * 3-7/2", "Etc/UTC", "2026-11-21T12:00:00Z",
			[]string{"2026-11-22T00:00:00Z", "2026-11-25T00:00:00Z", "2026-11-27T00:00:00Z", "2026-11-29T00:00:00Z"}},
		{"names", "0 0 1 JAN,jul MON", "Etc/UTC", "2026-12-30T00:00:00Z", []string{"2027-01-01T00:00:00Z", "2027-01-04T00:00:00Z"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			times, err := readSchedule(&v1alpha1.Schedule{Cron: test.cron, TimeZone: test.zone})
			if err != nil {
				t.Fatal(err)
			}
			moment := at(test.after)
			for _, want := range test.want {
				if moment = times.next(moment); !moment.Equal(at(want)) {
					t.Fatalf("%v, want %s", moment.UTC(), want)
				}
			}
		})
	}
}

func TestScheduleThatIsWrong(t *testing.T) {
	for _, test := range []struct{ name, cron, zone, says string }{
		{"never", "0 0 30 2 *", "Etc/UTC", "never matches"},
		{"never either", "0 0 31 4,6,9,11 *", "Etc/UTC", "never matches"},
		{"no such zone", "@daily", "Europe/Atlantis", "such as Europe/Berlin"},
		{"the machine's zone", "@daily", "Local", "such as Europe/Berlin"},
		{"no such month", "0 0 1 XYZ *", "Etc/UTC", "'0 3 * * 1'"},
		{"backwards", "0 0 * * FRI-SUN", "Etc/UTC", "smaller first"},
		{"a step of nothing", "*/0 * * * *", "Etc/UTC", "'0 3 * * 1'"},
		{"a step of nothing to 7", "0 0 * * 1-7/0", "Etc/UTC", "'0 3 * * 1'"},
		{"an interval", "@every 1h", "Etc/UTC", "five fields"},
		{"a zone of its own", "TZ=Europe/Berlin 0 3 * * 1", "Etc/UTC", "in timeZone"},
		{"nothing", "", "Etc/UTC", "'0 3 * * 1'"},
	} {
		err := CheckSchedule(&v1alpha1.Schedule{Cron: test.cron, TimeZone: test.zone})
		wrong, is := err.(*design.SpecError) //nolint:errorlint // nothing else may come
		if !is || wrong.Reason != v1alpha1.ReasonScheduleInvalid || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if err := CheckSchedule(nil); err != nil {
		t.Error(err)
	}
}

// TestLatest compares latest with a search through all times.
func TestLatest(t *testing.T) {
	for _, cron := range []string{"* * * * *", "*/7 3 * * *", "30 2 * * *", "0 0 29 2 *", "0 5 1 1 *", "*/5 * 27 11 *"} {
		times, err := readSchedule(&v1alpha1.Schedule{Cron: cron, TimeZone: "Europe/Berlin"})
		if err != nil {
			t.Fatal(err)
		}
		since := at("2026-10-20T01:02:03Z")
		for _, span := range []time.Duration{-time.Hour, 0, time.Second, time.Minute, 7 * time.Minute, 3 * time.Hour, 24 * time.Hour,
			900 * time.Hour, 30000 * time.Hour} {
			until, want, steps := since.Add(span), time.Time{}, 0
			for next := times.next(since); !next.IsZero() && !next.After(until) && steps < 100_000; next = times.next(next) {
				want = next
				steps++
			}
			if steps == 100_000 {
				continue
			}
			if got := times.latest(since, until); !got.Equal(want) {
				t.Errorf("%q within %s: %v, want %v", cron, span, got, want)
			}
			if got := times.count(since, until); got != min(steps, maxSkipped) {
				t.Errorf("%q within %s: %d times, want %d", cron, span, got, steps)
			}
		}
	}
	times := timetable{counted{cron: mustTimes(t, "* * * * *").cron, calls: new(int)}, time.UTC}
	times.latest(at("2020-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"))
	if calls := *times.cron.(counted).calls; calls > 200 { //nolint:errcheck // it is one
		t.Errorf("%d steps for six years of minutes", calls)
	}
}

type counted struct {
	cron  interface{ Next(time.Time) time.Time }
	calls *int
}

func (c counted) Next(after time.Time) time.Time {
	*c.calls++
	return c.cron.Next(after)
}

func mustTimes(t *testing.T, cron string) timetable {
	t.Helper()
	times, err := readSchedule(&v1alpha1.Schedule{Cron: cron})
	if err != nil {
		t.Fatal(err)
	}
	return times
}

// hourly is the state of a benchmark that has been finished since noon, and runs again every hour: at 13:00, 14:00 and so on.
func hourly() State {
	state := finished()
	freeNode(&state)
	scheduled(&state, "0 * * * *", -20*time.Minute)
	return state
}

func scheduled(state *State, cron string, since time.Duration) {
	state.Benchmark.Spec.Schedule = &v1alpha1.Schedule{Cron: cron, TimeZone: "Etc/UTC"}
	state.Benchmark.Status.Schedule = &v1alpha1.ScheduleStatus{Cron: cron, TimeZone: "Etc/UTC", Since: runstest.Stamp(since)}
}

func clock(d time.Duration) func(*State) {
	return func(s *State) { s.Now = runstest.Noon.Add(d) }
}

func both(changes ...func(*State)) func(*State) {
	return func(s *State) {
		for _, change := range changes {
			change(s)
		}
	}
}

// stands checks the status of the schedule: the last and the next time, as durations after noon, and the number of skipped times.
func stands(last, next time.Duration, skipped int32) func(*testing.T, State, Decision) {
	return func(t *testing.T, _ State, d Decision) {
		t.Helper()
		if d.Schedule == nil {
			t.Fatal("no status")
		}
		same := func(what string, got *metav1.Time, want time.Duration) {
			if want == 0 && got != nil || want != 0 && (got == nil || !got.Time.Equal(runstest.Noon.Add(want))) {
				t.Errorf("%s time %v, want %s after noon", what, got, want)
			}
		}
		same("last", d.Schedule.LastTime, last)
		same("next", d.Schedule.NextTime, next)
		if d.Schedule.SkippedTimes != skipped || (skipped > 0) != (d.Schedule.LastSkippedTime != nil) {
			t.Errorf("skipped %d, the last %v, want %d", d.Schedule.SkippedTimes, d.Schedule.LastSkippedTime, skipped)
		}
		if next != 0 && !d.WakeAt.Equal(runstest.Noon.Add(next)) {
			t.Errorf("wakes at %v", d.WakeAt)
		}
	}
}

func TestSchedule(t *testing.T) {
	hour := time.Hour
	end := benchmarkTest{position: PositionFinished, reason: "Finished"}
	begin := benchmarkTest{position: PositionWaiting, reason: v1alpha1.ReasonScheduled}
	with := func(test benchmarkTest, name, says string, check func(*testing.T, State, Decision), change ...func(*State)) benchmarkTest {
		test.name, test.says, test.check = name, says, check
		if test.state.Benchmark == nil {
			test.state = hourly()
		}
		test.state.Benchmark = test.state.Benchmark.DeepCopy()
		test.change = both(change...)
		return test
	}
	under := benchmarkTest{state: withRun(testState(), 1, nil), position: PositionRunning, reason: "Progressing"}
	at12 := func(s *State) { scheduled(s, "0 * * * *", -time.Minute) }
	unsaid := func(s *State) { s.Benchmark.Status.FinishedAt = nil }
	runBenchmarkTests(t, []benchmarkTest{
		with(end, "it says when it goes on", "the next experiment starts at 2026-11-21T13:00:00Z", stands(0, hour, 1), clock(59*time.Minute)),
		with(begin, "the time has come", "the time 2026-11-21T13:00:00Z of spec.schedule has come", stands(hour, 2*hour, 0), clock(hour)),
		with(begin, "of several times the latest counts", "skipped: 2 times before it", stands(3*hour, 4*hour, 0),
			clock(3*hour+time.Minute)),
		with(end, "the verdict is published first", "", func(t *testing.T, _ State, d Decision) {
			if d.Schedule.LastTime != nil || !d.WakeAt.Equal(runstest.Noon.Add(hour+time.Second)) {
				t.Errorf("begins %v, wakes at %v", d.Schedule.LastTime, d.WakeAt)
			}
		}, clock(hour), unsaid),
		with(end, "suspended", "set spec.suspend to false", stands(0, 0, 1), clock(3*hour), suspended),
		with(end, "times before the schedule was seen do not count", "starts at 2026-11-21T16:00:00Z", stands(0, 4*hour, 0),
			clock(3*hour+time.Minute),
			func(s *State) { s.Benchmark.Status.Schedule = nil }),
		with(end, "nor those before it was changed", "starts at 2026-11-21T15:30:00Z", stands(0, 3*hour+30*time.Minute, 0),
			clock(3*hour+time.Minute),
			func(s *State) { s.Benchmark.Spec.Schedule.Cron = "30 * * * *" }),
		with(end, "in another zone the times are others", "starts at 2026-11-21T19:00:00+05:30", nil, clock(30*time.Minute),
			func(s *State) { s.Benchmark.Spec.Schedule.TimeZone = "Asia/Kolkata" }),
		with(end, "results that were written again do not end later", "", stands(0, 0, 1), clock(3*hour), suspended),
		with(end, "what came during the experiment is skipped",
			"skipped because the experiment was still running: 2 times of the schedule, the last 2026-11-21T12:00:00Z", stands(0, hour, 2),
			clock(time.Minute), func(s *State) { s.Benchmark.Status.Schedule.Since = runstest.Stamp(-hour - time.Minute) }),
		with(end, "also at the very end of its last run", "", stands(0, 2*hour, 2), clock(hour+10*time.Minute),
			func(s *State) { s.Runs[3].Status.FinishedAt = runstest.Stamp(hour) }),

		with(under, "under way: it wakes up to say what is skipped", "run 1 of 4", stands(0, hour, 0), at12, clock(-0),
			func(s *State) { s.Benchmark.Status.Schedule.Since = runstest.Stamp(0) }),
		with(under, "under way: skipped", "run 1 of 4", stands(0, 2*hour, 2), at12, clock(hour)),
		with(under, "under way: a hundred is enough", "run 1 of 4", stands(0, 201*hour, 100), at12, clock(200*hour)),
		with(under, "under way: without a schedule", "run 1 of 4", func(t *testing.T, _ State, d Decision) {
			if d.Schedule != nil || !d.WakeAt.IsZero() {
				t.Errorf("%+v", d)
			}
		}),
	})
}

// TestScheduleGoesOn: the next experiment follows at its scheduled time, and stays the same if its schedule is changed or its status is
// lost.
func TestScheduleGoesOn(t *testing.T) {
	state := hourly()
	state.Now = runstest.Noon.Add(time.Hour)
	first := state.Experiment
	state.Benchmark.Status.Schedule = Plan(state).Schedule
	state = settle(state)
	second := state.Experiment
	if second == first || !state.ScheduledTime.Equal(runstest.Noon.Add(time.Hour)) {
		t.Fatalf("experiment %s at %v after %s", second, state.ScheduledTime, first)
	}
	decision := Plan(state)
	if got := kinds(decision.Actions); decision.Reason != v1alpha1.ReasonSuperseded || len(got) != 4 ||
		!strings.HasPrefix(got[0], "DeleteRun") ||
		!strings.Contains(decision.Message, "the next scheduled experiment starts") {
		t.Fatalf("%v %s: %s", got, decision.Reason, decision.Message)
	}
	state.Runs = nil
	state = endedRuns(state, 0, 1, runstest.ValidEnding)
	for name, change := range map[string]func(*v1alpha1.StorageBenchmark){
		"the schedule is removed":   func(b *v1alpha1.StorageBenchmark) { b.Spec.Schedule = nil },
		"the schedule is another":   func(b *v1alpha1.StorageBenchmark) { b.Spec.Schedule.Cron = "5 5 * * *" },
		"the schedule is wrong":     func(b *v1alpha1.StorageBenchmark) { b.Spec.Schedule.Cron = "0 0 30 2 *" },
		"the status is lost":        func(b *v1alpha1.StorageBenchmark) { b.Status = v1alpha1.StorageBenchmarkStatus{} },
		"the status is an old one":  func(b *v1alpha1.StorageBenchmark) { b.Status.Schedule = &v1alpha1.ScheduleStatus{} },
		"the schedule is suspended": func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true },
	} {
		changed := state
		changed.Benchmark = state.Benchmark.DeepCopy()
		change(changed.Benchmark)
		changed = settle(changed)
		decision := Plan(changed)
		if changed.Experiment != second || decision.Schedule == nil || !decision.Schedule.LastTime.Time.Equal(runstest.Noon.Add(time.Hour)) {
			t.Errorf("%s: experiment %s at %v, want %s", name, changed.Experiment, decision.Schedule, second)
		}
		if slices.ContainsFunc(kinds(decision.Actions), func(kind string) bool { return strings.HasPrefix(kind, "DeleteRun") }) {
			t.Errorf("%s: %v", name, kinds(decision.Actions))
		}
	}
	// If only results are left, and no status, the scheduled time is read from them. A time in the future is ignored.
	state.Runs, state.Benchmark.Status = nil, v1alpha1.StorageBenchmarkStatus{}
	state.Results = []StoredExperiment{{ConfigMap: "a", Experiment: second, ScheduledTime: runstest.Noon.Add(time.Hour)},
		{ConfigMap: "b", ScheduledTime: runstest.Noon.Add(9 * time.Hour)}}
	if state = settle(state); state.Experiment != second {
		t.Errorf("experiment %s at %v, want %s", state.Experiment, state.ScheduledTime, second)
	}
}

func TestTimesAsText(t *testing.T) {
	for _, text := range []string{"", "2026-11-21T13:00:00Z"} {
		if got := design.TimeText(TimeOf(map[string]string{v1alpha1.AnnotationScheduledTime: text})); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := TimeOf(map[string]string{v1alpha1.AnnotationScheduledTime: "yesterday"}); !got.IsZero() {
		t.Errorf("%v", got)
	}
}
