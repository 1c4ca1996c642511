package runs_test

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestSummarise: the record survives what it speaks of, and an unchanged world gives an unchanged status.
func TestSummarise(t *testing.T) {
	run := runstest.Run()
	now := time.Date(2026, 11, 21, 12, 0, 0, 123, time.UTC)
	state := runs.State{Now: now, Timings: runs.DefaultTimings(), Run: run, Owner: "bench-uid", LeaseHolder: "bench-uid",
		Claims: runs.Claims{Exists: true, Bound: true},
		Phases: []runs.PhaseState{{Executor: runs.ExecutorState{Exists: true, UID: "job-0", Created: now}}, {}}}
	step := func() {
		t.Helper()
		decision := runs.Plan(state)
		status := runs.Summarise(state, decision)
		run.Status = *status.DeepCopy()
		state.Now = state.Now.Add(time.Second)
		if again := runs.Summarise(state, runs.Plan(state)); decision.Ending == nil && len(decision.Actions) == 0 && !kstatus.Same(status, again) {
			t.Errorf("an unchanged world gives another status:\n%+v\n%+v", status, again)
		}
	}
	step()
	if len(run.Status.Phases) != 1 || run.Status.Phases[0].ExecutorUID != "job-0" || run.Status.CurrentPhase != "fill" {
		t.Fatalf("%+v", run.Status)
	}
	stored := func(name string) *runs.StoredResult {
		return &runs.StoredResult{ConfigMap: name, Digest: "sha256:1", Outcome: results.OutcomeValid, StoredAt: now}
	}
	state.Phases = []runs.PhaseState{{Stored: stored("c0")}, {Executor: runs.ExecutorState{Exists: true, UID: "job-1", Created: now}}}
	step()
	if len(run.Status.Phases) != 2 || run.Status.Phases[0].ExecutorUID != "job-0" || run.Status.Phases[0].Result != "c0" ||
		run.Status.CurrentPhase != "scan" {
		t.Fatalf("%+v", run.Status)
	}
	state.Phases = []runs.PhaseState{{Stored: stored("c0")}, {Stored: stored("c1")}}
	step()
	if run.Status.State != "Valid" || run.Status.FinishedAt == nil || runs.Settled(run) {
		t.Fatalf("%+v", run.Status)
	}
	finished := run.Status.FinishedAt.Time
	state.Claims, state.Phases = runs.Claims{}, make([]runs.PhaseState, 2) // all evidence is gone
	step()
	if !runs.Settled(run) || run.Status.Phases[1].Result != "c1" || !run.Status.FinishedAt.Time.Equal(finished) ||
		run.Status.State != "Valid" {
		t.Fatalf("%+v", run.Status)
	}
	if again := runs.Summarise(state, runs.Plan(state)); !kstatus.Same(run.Status, again) {
		t.Errorf("a settled run changes:\n%+v\n%+v", run.Status, again)
	}
}
