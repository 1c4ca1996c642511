package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
)

// stepFinish writes the results of a finished experiment, releases the node and prunes old results.
func stepFinish(state State, decision *Decision) bool {
	if !decision.Tally.Over {
		if at := DeadlineAt(state); !at.IsZero() {
			decision.wake(at)
		}
		return false
	}
	if current := unsettled(state); current != nil {
		if decision.Tally.Expired {
			stopUnended(state, decision)
		}
		if stepStuck(state, decision) {
			return true
		}
		decision.Current = current
		decision.say(PositionRunning, v1alpha1.ReasonCleaningUp, "the last run has finished and is being torn down: %s", runMessage(current))
		return true
	}
	decision.Fingerprint = fingerprint(state)
	name := naming.ResultsName(state.Benchmark.Name, state.Experiment)
	stored := findResults(state, state.Experiment)
	// Results that announce further repetitions are not final: the deadline may expire before the first of these repetitions has ended.
	written := stored != nil && stored.Fingerprint == decision.Fingerprint && !stored.Extended
	// Once the results are written, the experiment stays Finished even while a pool that is no longer kept is being deleted.
	if waiting := giveBack(state, &Decision{}, between(state)); waiting != "" && !written {
		decision.say(PositionRunning, v1alpha1.ReasonCleaningUp, "the last run has finished and is being torn down: %s", waiting)
		release(state, decision)
		return true
	}
	for _, other := range state.Results {
		if other.Foreign && other.ConfigMap == name {
			decision.say(PositionStalled, v1alpha1.ReasonNameTaken,
				"ConfigMap %s exists and does not belong to this benchmark: delete or rename it, so that the results can be written there", name)
			decision.wake(state.Now.Add(runs.ForeignRecheck))
			releaseIfIdle(state, decision)
			return true
		}
	}
	if !written {
		releaseBeforeResults(state, decision)
		decision.do(Action{Kind: WriteResults, Experiment: state.Experiment, ConfigMap: name, Fingerprint: decision.Fingerprint})
		decision.say(PositionRunning, v1alpha1.ReasonProgressing, "writing the results to ConfigMap %s", name)
		return true
	}
	decision.say(PositionFinished, v1alpha1.ReasonFinished, "the results are in ConfigMap %s", name)
	releaseIfIdle(state, decision)
	sayKept(state, decision)
	keepHistory(state, decision)
	pruneResults(state, decision)
	expire(state, decision)
	return true
}

// releaseBeforeResults releases the nodes before the results are written, because a namespace can prevent the writing forever, for example
// with a quota. With adaptive, the nodes stay held until the hold is over, because further repetitions may follow the results.
func releaseBeforeResults(state State, decision *Decision) {
	over := holdUntil(state)
	if state.Benchmark.Spec.Adaptive == nil || !over.IsZero() && !state.Now.Before(over) {
		releaseIfIdle(state, decision)
	} else if !over.IsZero() {
		decision.wake(over)
	}
}

// fingerprint identifies the inputs of the results. It changes if the runs, the gates or the standards change.
func fingerprint(state State) string {
	var runs []string
	for _, run := range state.Runs {
		if run.Spec.Experiment != state.Experiment {
			continue
		}
		line := []string{run.Name, string(run.UID)}
		for _, phase := range run.Status.Phases {
			line = append(line, phase.Digest)
		}
		runs = append(runs, strings.Join(line, " "))
	}
	slices.Sort(runs)
	return naming.Digest(struct {
		Runs      []string
		Gates     []v1alpha1.Gate
		Standards string   `json:",omitempty"`
		Allowed   []string `json:",omitempty"`
	}{runs, state.Benchmark.Spec.Gates, state.Standards.Digest, allowedDifferences(&state.Benchmark.Spec)})
}

// allowedDifferences are all differences that the spec allows.
func allowedDifferences(spec *v1alpha1.StorageBenchmarkSpec) []string {
	var allowed []string
	if spec.Baseline != nil {
		allowed = append(append(allowed, "baseline"), spec.Baseline.AllowDifferences...)
	}
	if spec.Calibration != nil {
		allowed = append(append(allowed, "calibration"), spec.Calibration.AllowDifferences...)
	}
	return allowed
}

// FoldKey identifies results in the list of those merged into the history.
func FoldKey(stored StoredExperiment) string { return stored.Experiment + ":" + stored.Fingerprint }

// Foldable lists the results to merge into the history. Superseded experiments have no verdict, and extended ones have none yet.
func Foldable(state State) []StoredExperiment {
	var foldable []StoredExperiment
	for _, stored := range state.Results {
		if !stored.Foreign && stored.Verdict != "" && !stored.Extended {
			foldable = append(foldable, stored)
		}
	}
	return foldable
}

// keepHistory adds missing results to the history. The verdict does not need it, so a name conflict is only reported.
func keepHistory(state State, decision *Decision) {
	missing := slices.ContainsFunc(Foldable(state), func(stored StoredExperiment) bool {
		return !slices.Contains(state.History.Folded, FoldKey(stored))
	})
	name := naming.HistoryName(state.Benchmark.Name)
	switch {
	case state.History.Foreign:
		decision.Message += fmt.Sprintf("; no history is kept: ConfigMap %s belongs to another owner: delete or rename it", name)
		decision.wake(state.Now.Add(runs.ForeignRecheck))
	case missing:
		decision.do(Action{Kind: WriteHistory, ConfigMap: name})
	}
}

// ResultsHistory is the number of earlier experiments whose results are retained.
func ResultsHistory(spec *v1alpha1.StorageBenchmarkSpec) int {
	if spec.ResultsHistory == nil { // not defaulted by the API server
		return 10
	}
	return int(*spec.ResultsHistory)
}

// pruneResults deletes the oldest results beyond the retained history.
func pruneResults(state State, decision *Decision) {
	old := History(state)
	for _, stored := range old[min(ResultsHistory(&state.Benchmark.Spec), len(old)):] {
		decision.do(Action{Kind: DeleteResults, Experiment: stored.Experiment, ConfigMap: stored.ConfigMap})
	}
}

func newestFirst(a, b StoredExperiment) int {
	return cmp.Or(b.StoredAt.Compare(a.StoredAt), cmp.Compare(a.Experiment, b.Experiment))
}

// History lists the stored results of earlier experiments, newest first.
func History(state State) []StoredExperiment {
	var old []StoredExperiment
	for _, stored := range state.Results {
		if stored.Experiment != state.Experiment && !stored.Foreign {
			old = append(old, stored)
		}
	}
	slices.SortFunc(old, newestFirst)
	return old
}

// expire deletes a benchmark whose ttlAfterFinished is over. Users have that time to read the results, even if the results could only be
// written long after the last run.
func expire(state State, decision *Decision) {
	ttl := state.Benchmark.Spec.TTLAfterFinished
	if state.Benchmark.Status.FinishedAt == nil || ttl == nil || holds(state) {
		return
	}
	due := overAt(state).Add(ttl.Duration.Duration)
	if state.Now.Before(due) {
		decision.wake(due)
		return
	}
	decision.do(Action{Kind: DeleteBenchmark})
}
