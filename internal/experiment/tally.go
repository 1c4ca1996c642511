package experiment

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/runs"
)

// Tally is the progress of an experiment.
type Tally struct {
	Total   int
	Done    int
	Invalid int
	// GivenUp describes the runs that will not become valid.
	GivenUp []string
	// Over is true if no further run will be created.
	Over bool
	// Expired is true if the experiment ended because of spec.deadline or the admin's limit. In the latter case, Held is that limit.
	Expired bool
	Held    time.Duration
	// Next is the next run to create, and NextAttempt its attempt, unless Over is true.
	Next        *design.Slot
	NextAttempt int32
	// MeanDuration is the mean duration of the done runs, for the estimate.
	MeanDuration time.Duration
}

// giveUp counts runs as given up instead of done.
func (t *Tally) giveUp(words ...string) {
	t.Done -= len(words)
	t.GivenUp = append(t.GivenUp, words...)
}

// Count evaluates the runs of the current experiment. A group counts as one.
func Count(state State) Tally {
	state.Slots = slotsInUse(state)
	tally := Tally{Total: len(state.Slots)}
	var spent time.Duration
	hopeless := false
	for i := range state.Slots {
		attempts := attemptsAt(state, state.Slots[i].Index)
		for _, one := range attempts {
			switch ending := one.ending(); {
			case ending == nil:
			case ending.Valid:
				tally.Done++
				spent += one.took()
			default:
				tally.Invalid++
			}
		}
		hopeless = tally.countSlot(state, &state.Slots[i], attempts) || hopeless
	}
	if tally.Next != nil && tally.Invalid >= mostInvalid(tally.Total) {
		hopeless = true
		tally.GivenUp = slices.Insert(tally.GivenUp, 0, fmt.Sprintf("all further runs, because %d attempts are Invalid, the limit for an "+
			"experiment of %d runs (see its BenchmarkRuns for the reasons)", tally.Invalid, tally.Total))
	}
	if tally.Done > 0 {
		tally.MeanDuration = spent / time.Duration(tally.Done)
	}
	if tally.Expired = expired(state) && tally.Next != nil; tally.Expired && DeadlineAt(state).Equal(holdUntil(state)) {
		tally.Held = state.Limits.MaxHold
	}
	tally.Over = tally.Next == nil || hopeless || tally.Expired
	if state.SpecError != nil {
		tally.Over, tally.Next = false, nil
	}
	return tally
}

// mostInvalid is how many attempts may be Invalid before an experiment ends: all that the default of maxAttempts allows, but enough for the
// largest maxAttempts in a small experiment. Each attempt is a BenchmarkRun that stays until the experiment is superseded or deleted.
func mostInvalid(runs int) int { return max(2*runs, 64) }

// took is the time from the first start to the last end.
func (a attempt) took() time.Duration {
	var began, ended time.Time
	for _, run := range a.runs {
		if run.Status.StartedAt == nil || run.Status.FinishedAt == nil {
			return 0
		}
		if began.IsZero() || run.Status.StartedAt.Time.Before(began) {
			began = run.Status.StartedAt.Time
		}
		if run.Status.FinishedAt.After(ended) {
			ended = run.Status.FinishedAt.Time
		}
	}
	return ended.Sub(began)
}

// countSlot evaluates the attempts at one slot. hopeless is true if further attempts at any slot would fail as well.
func (t *Tally) countSlot(state State, slot *design.Slot, attempts []attempt) (hopeless bool) {
	last := int32(0)
	var failure *runs.Ending
	for _, one := range attempts {
		last, failure = one.number, one.ending()
		if failure != nil && failure.Valid {
			return false
		}
	}
	if last > 0 && failure == nil { // in progress, or stopped and to be recreated under its own name
		t.offer(slot, last)
		return false
	}
	if failure != nil && (last >= state.Benchmark.Spec.MaxAttempts || !failure.Retryable) {
		t.GivenUp = append(t.GivenUp, fmt.Sprintf("%s repetition %d (attempt %d of %d): %s", slot.Variant, slot.Repetition, last,
			state.Benchmark.Spec.MaxAttempts, failure.Message))
		return !failure.Retryable
	}
	t.offer(slot, last+1)
	return false
}

func (t *Tally) offer(slot *design.Slot, attempt int32) {
	if t.Next == nil {
		t.Next, t.NextAttempt = slot, attempt
	}
}

func expired(state State) bool {
	return !DeadlineAt(state).IsZero() && !state.Now.Before(DeadlineAt(state))
}

// DeadlineAt returns the time by which the whole experiment must end, because of its spec or the admin's limit. It is zero if neither
// applies yet.
func DeadlineAt(state State) time.Time {
	at := holdUntil(state)
	if begun := begunAt(state); state.Benchmark.Spec.Deadline != nil && !begun.IsZero() {
		if due := begun.Add(state.Benchmark.Spec.Deadline.Duration.Duration); at.IsZero() || due.Before(at) {
			return due
		}
	}
	return at
}

// begunAt returns the time at which the first run of the experiment was created. The status keeps it after that run is deleted: otherwise a
// deadline that deletes the only run would start again, forever.
func begunAt(state State) time.Time {
	var begun time.Time
	if status := state.Benchmark.Status; status.Experiment == state.Experiment && status.StartedAt != nil {
		begun = status.StartedAt.Time
	}
	for _, run := range state.Runs {
		created := run.CreationTimestamp.Time
		if run.Spec.Experiment == state.Experiment && (begun.IsZero() || created.Before(begun)) {
			begun = created
		}
	}
	return begun
}

// unsettled returns a run that is in progress or being torn down, or nil.
func unsettled(state State) *v1alpha1.BenchmarkRun {
	for i := range state.Runs {
		if !runs.Settled(&state.Runs[i]) || !state.Runs[i].DeletionTimestamp.IsZero() {
			return &state.Runs[i]
		}
	}
	return nil
}

// stopUnended deletes the runs without an outcome.
func stopUnended(state State, decision *Decision) {
	for i := range state.Runs {
		if runs.RecordedEnding(&state.Runs[i]) == nil {
			deleteRuns(decision, state.Runs[i:i+1])
		}
	}
}

// deleteRuns requests the deletion of runs and returns how many are left.
func deleteRuns(decision *Decision, runs []v1alpha1.BenchmarkRun) int {
	for _, run := range runs {
		if run.DeletionTimestamp.IsZero() {
			decision.do(Action{Kind: DeleteRun, Run: run.Name})
		}
	}
	return len(runs)
}

func runMessage(run *v1alpha1.BenchmarkRun) string {
	if ready := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Message
	}
	return "starting"
}

func findResults(state State, experiment string) *StoredExperiment {
	for i := range state.Results {
		if state.Results[i].Experiment == experiment && !state.Results[i].Foreign {
			return &state.Results[i]
		}
	}
	return nil
}
