package runs_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestSummarise: the status survives the objects that it records, and does not change if nothing has changed.
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

// TestACorruptResultIsNotRecorded: a corrupt result neither adds anything to the status nor removes anything from it.
func TestACorruptResultIsNotRecorded(t *testing.T) {
	state := runstest.Underway()
	state.Run.Status.Phases[0].Result, state.Run.Status.Phases[0].Digest = "c0", "sha256:1"
	corrupt := &runs.StoredResult{ConfigMap: "forged", Outcome: results.OutcomeInvalid, Reason: v1alpha1.ReasonResultCorrupt}
	state.Phases[0].Stored, state.Phases[1].Stored = corrupt, corrupt
	decision := runs.Plan(state)
	status := runs.Summarise(state, decision)
	if len(status.Phases) != 1 || status.Phases[0].Result != "c0" || status.Phases[0].Digest != "sha256:1" {
		t.Errorf("%+v", status.Phases)
	}
	if decision.Ending == nil || decision.Ending.Valid || !decision.Ending.Retryable || status.State != "Invalid" {
		t.Errorf("%+v", decision)
	}
}

// TestMinimalStatus: the stored status stays, the conditions come from the full status, and a run in progress ends.
func TestMinimalStatus(t *testing.T) {
	deleted := func(run *v1alpha1.BenchmarkRun) { run.DeletionTimestamp = runstest.Stamp(0) }
	ended := func(run *v1alpha1.BenchmarkRun) { runstest.Record(run, runstest.ValidEnding, false) }
	for name, test := range map[string]struct {
		change      func(*v1alpha1.BenchmarkRun)
		ends, valid bool
		reason      string
	}{
		"in progress": {func(*v1alpha1.BenchmarkRun) {}, true, false, v1alpha1.ReasonActionFailed},
		"deleted":     {deleted, false, false, v1alpha1.ReasonTeardownStuck},
		"has ended":   {ended, true, true, v1alpha1.ReasonTeardownStuck},
	} {
		run := runstest.Underway().Run
		test.change(run)
		full := *run.Status.DeepCopy()
		full.Phases = append(full.Phases, v1alpha1.RunPhaseStatus{Name: "scan", Digest: "forged"})
		kstatus.SetProgressing(&full.Conditions, 1, v1alpha1.ReasonTeardownStuck, "stuck")
		status := runs.MinimalStatus(runstest.Noon, run, full)
		if len(status.Phases) != 1 || status.Phases[0].ExecutorUID != "job-0" {
			t.Errorf("%s: %+v", name, status.Phases)
		}
		run.Status = status
		ending := runs.RecordedEnding(run)
		if (ending != nil) != test.ends || ending != nil && ending.Valid != test.valid {
			t.Errorf("%s: it ends with %+v", name, ending)
		}
		if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != test.reason {
			t.Errorf("%s: %+v", name, ready)
		}
		if again := runs.MinimalStatus(runstest.After(time.Hour).UTC(), run, status); !kstatus.Same(status, again) {
			t.Errorf("%s: it is written forever: %+v, then %+v", name, status, again)
		}
	}
}
