package experiment

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/spelling"
)

// ScheduledTime is the scheduled time that the current experiment belongs to. It is zero for the first experiment, which starts at once.
// The time is written to the status before anything starts. If the status is lost, it is read from the created objects.
func ScheduledTime(benchmark *v1alpha1.StorageBenchmark, runs []v1alpha1.BenchmarkRun, stored []StoredExperiment, now time.Time) time.Time {
	known := design.LastTime(benchmark)
	consider := func(at time.Time) {
		if at.After(known) && !at.After(now) { // the operator never writes a future time
			known = at
		}
	}
	for i := range runs {
		consider(TimeOf(runs[i].Annotations))
	}
	for i := range stored {
		consider(stored[i].ScheduledTime)
	}
	return known
}

// TimeOf returns the scheduled time in the annotations of a run or of results, or zero if there is none.
func TimeOf(annotations map[string]string) time.Time {
	at, err := time.Parse(time.RFC3339, annotations[v1alpha1.AnnotationScheduledTime])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// followSchedule computes the state of the schedule after all other decisions. A finished experiment gives way to the next one at its
// scheduled time. This is first written to the status, and the next reconciliation starts the new experiment.
func followSchedule(state State, decision *Decision) {
	before, spec := state.Benchmark.Status.Schedule, state.Benchmark.Spec.Schedule
	status := &v1alpha1.ScheduleStatus{LastTime: stampAt(state.ScheduledTime)}
	decision.Schedule = status
	if spec == nil {
		if status.LastTime == nil {
			decision.Schedule = nil
		}
		return
	}
	status.Cron, status.TimeZone, status.Since = spec.Cron, spec.TimeZone, stampAt(state.Now.Truncate(time.Second))
	if before != nil && before.Cron == spec.Cron && before.TimeZone == spec.TimeZone && before.Since != nil {
		status.Since = before.Since
	}
	times, err := readSchedule(spec)
	if err != nil || state.SpecError != nil || decision.Position == PositionDeleting {
		if before != nil {
			status.SkippedTimes, status.LastSkippedTime = before.SkippedTimes, before.LastSkippedTime
		}
		return
	}
	begun, over := latestOf(status.Since.Time, state.ScheduledTime), state.Now
	finished := decision.Position == PositionFinished
	if finished {
		over = overAt(state)
	}
	status.SkippedTimes, status.LastSkippedTime = int32(times.count(begun, over)), stampAt(times.latest(begun, over))
	switch {
	case state.Benchmark.Spec.Suspend:
		if finished {
			decision.Message += "; suspended: set spec.suspend to false to resume the schedule"
		}
	case finished:
		next(state, decision, times, latestOf(begun, over))
	default:
		decision.planNext(times, state.Now) // to report then that this time is skipped
	}
}

// next starts the next experiment if a scheduled time has passed since the end of the last one; otherwise it says when the next one starts.
// If several times have passed, the latest one counts.
func next(state State, decision *Decision, times timetable, since time.Time) {
	decision.planNext(times, state.Now)
	status, due := decision.Schedule, times.latest(since, state.Now)
	switch {
	case due.IsZero():
		if status.SkippedTimes > 0 {
			decision.Message += fmt.Sprintf("; skipped because the experiment was still running: %s of the schedule, the last %s",
				spelling.Count(int(status.SkippedTimes), "time"), times.say(status.LastSkippedTime.Time))
		}
		if status.NextTime != nil {
			decision.Message += "; the next experiment starts at " + times.say(status.NextTime.Time)
		}
	case state.Benchmark.Status.FinishedAt == nil || state.Benchmark.Status.Experiment != state.Experiment:
		decision.wake(state.Now.Add(time.Second)) // publish the verdict before its experiment gives way
	default:
		decision.say(PositionWaiting, v1alpha1.ReasonScheduled, "the time %s of spec.schedule has come: the next experiment starts",
			times.say(due))
		if missed := times.count(since, due) - 1; missed > 0 {
			decision.Message += fmt.Sprintf("; skipped: %s before it", spelling.Count(missed, "time"))
		}
		status.LastTime, status.SkippedTimes, status.LastSkippedTime = stampAt(due), 0, nil
	}
}

// planNext wakes the controller at the next scheduled time.
func (d *Decision) planNext(times timetable, now time.Time) {
	if at := times.next(now); !at.IsZero() {
		d.Schedule.NextTime = stampAt(at)
		d.wake(at)
	}
}

// overAt returns the time at which the experiment finished: its last run had ended and its results were first written. Rewriting the
// results for changed gates does not change this time.
func overAt(state State) time.Time {
	var over time.Time
	if stored := findResults(state, state.Experiment); stored != nil {
		over = stored.StoredAt
	}
	for i := range state.Runs {
		if run := &state.Runs[i]; run.Spec.Experiment == state.Experiment && run.Status.FinishedAt != nil {
			over = latestOf(over, run.Status.FinishedAt.Time)
		}
	}
	return over
}

func stampAt(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at.UTC()}
}
