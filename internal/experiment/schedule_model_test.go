package experiment

import (
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// timeOf returns the scheduled time for which the runs of an experiment were created.
func (w *world) timeOf(state State, experiment string) time.Time {
	for _, run := range state.Runs {
		if run.Spec.Experiment == experiment {
			return TimeOf(run.Annotations)
		}
	}
	return state.ScheduledTime
}

// begin records that runs are created for a scheduled time, and checks that this time is not before that of earlier runs.
func (w *world) begin(at time.Time) {
	if n := len(w.begun); n > 0 && at.Before(w.begun[n-1]) && len(w.results)+len(w.runs) > 0 {
		w.t.Fatalf("runs are made for %v, after those for %v", at, w.begun[n-1])
	}
	if !slices.Contains(w.begun, at) {
		w.begun = append(w.begun, at)
	}
	schedulesTried[len(w.begun)]++
}

// schedulesTried counts the created runs by the number of scheduled times that had begun by then.
var schedulesTried = map[int]int{}

// scheduled reports whether at is the next scheduled time that the benchmark waits for.
func (w *world) scheduled(at time.Time) bool {
	return w.last.Schedule != nil && w.last.Schedule.NextTime != nil && w.last.Schedule.NextTime.Time.Equal(at)
}

// checkSchedule fails if the next experiment begins when it must not.
func (w *world) checkSchedule(state State, decision Decision) {
	status := decision.Schedule
	if status == nil {
		if state.Benchmark.Spec.Schedule != nil {
			w.t.Fatalf("a schedule without a status")
		}
		return
	}
	if status.NextTime != nil && !status.NextTime.After(w.now) {
		w.t.Fatalf("the next time %v is not after %v", status.NextTime, w.now)
	}
	begins := status.LastTime != nil && !status.LastTime.Time.Equal(state.ScheduledTime)
	if !begins {
		return
	}
	stored := findResults(state, state.Experiment)
	switch {
	case decision.Reason != v1alpha1.ReasonScheduled:
		w.t.Fatalf("a next experiment begins without a word: %s", decision.Message)
	case state.Benchmark.Spec.Suspend || state.Benchmark.Spec.Schedule == nil || state.SpecError != nil:
		w.t.Fatalf("a next experiment begins although the benchmark is suspended, unscheduled or stalled")
	case unsettled(state) != nil || stored == nil || !Count(state).Over:
		w.t.Fatalf("a next experiment begins before the end of the last")
	case status.LastTime.After(w.now) || !status.LastTime.After(stored.StoredAt) || !status.LastTime.After(state.ScheduledTime):
		w.t.Fatalf("a next experiment begins for %v, the last was over at %v", status.LastTime, stored.StoredAt)
	}
}

func verdictIf(judged bool) string {
	if judged {
		return "Passed"
	}
	return ""
}
