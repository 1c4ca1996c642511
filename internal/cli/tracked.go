package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

// tracked is the known state of a benchmark that the tool waits for.
type tracked struct {
	applied
	// benchmark is nil until it was seen.
	benchmark *v1alpha1.StorageBenchmark
	// already reports whether it was complete when it was first seen.
	already bool
	// gone reports whether it was deleted.
	gone bool
	// running is the phase in the status. live is the last progress of each run: a group has several runs at the same time.
	running runningPhase
	live    map[string]livePhase
	// outage is the reason why there is no new information, and noRates the reason why there is no progress of the phase.
	outage, noRates string
}

// livePhase is the last progress line of a phase's pod, and its time.
type livePhase struct {
	run, phase string
	at         time.Time
	results.Progress
}

// runningPhase is the phase in the status.
type runningPhase struct {
	run, phase string
	// since is when it was first seen. Zero if it was already running when the benchmark was first seen.
	since time.Time
	// invalid is the number of invalid runs when it started.
	invalid int32
}

// see records a newer state of the benchmark. If a phase has ended, it returns a line about that.
func (t *tracked) see(benchmark *v1alpha1.StorageBenchmark, now time.Time) (ended string, mood mood) {
	if t.benchmark != nil && t.benchmark.UID != benchmark.UID {
		t.gone = true // it was deleted, and another benchmark has its name
		return "", neutral
	}
	first := t.benchmark == nil
	t.benchmark = benchmark
	if first {
		t.already = t.complete()
	}
	if !t.current() || benchmark.Status.Progress == nil {
		return "", neutral
	}
	progress, before := benchmark.Status.Progress, t.running
	if progress.CurrentRun == before.run && progress.CurrentPhase == before.phase {
		return "", neutral
	}
	t.running = runningPhase{run: progress.CurrentRun, phase: progress.CurrentPhase, since: now, invalid: progress.RunsInvalid}
	if first {
		t.running.since = time.Time{}
	}
	if before.phase == "" || !benchmark.DeletionTimestamp.IsZero() { // deletion ends a phase early
		return "", neutral
	}
	return t.phaseEnd(before, now)
}

// phaseEnd describes the end of a phase, for example "run 1 of 2  fill  done in 12s".
func (t *tracked) phaseEnd(phase runningPhase, now time.Time) (string, mood) {
	text, how := t.phaseTitle(phase.run, phase.phase), good
	word := "done"
	if t.benchmark.Status.Progress.RunsInvalid > phase.invalid {
		word, how = "ended without usable numbers", doubtful
	}
	text += "  " + word
	if !phase.since.IsZero() {
		text += " in " + brief(now.Sub(phase.since))
	}
	return text, how
}

// phaseTitle identifies a phase by the position of its run, which is part of the name of the run.
func (t *tracked) phaseTitle(run, phase string) string {
	names := make([]string, len(t.benchmark.Spec.Phases))
	for i := range t.benchmark.Spec.Phases {
		names[i] = string(t.benchmark.Spec.Phases[i].Name)
	}
	status := &t.benchmark.Status
	for index := range status.Progress.RunsTotal {
		first := naming.RunName(t.benchmark.Name, status.Experiment, index, 1)
		if attempt, is := strings.CutPrefix(run, first); is {
			return phaseTitle(int(index)+1, int(status.Progress.RunsTotal), strings.TrimPrefix(attempt, "-"), phase, names)
		}
	}
	return phase
}

// current reports whether the status describes the applied spec, and not an earlier spec or experiment.
func (t *tracked) current() bool {
	if t.benchmark == nil {
		return false
	}
	status := &t.benchmark.Status
	return status.ObservedGeneration >= t.benchmark.Generation && (t.previousExperiment == "" || status.Experiment != t.previousExperiment)
}

// complete reports whether the verdict is set.
func (t *tracked) complete() bool {
	return t.current() && meta.IsStatusConditionTrue(t.benchmark.Status.Conditions, v1alpha1.ConditionComplete)
}

// stalled reports whether there will be no verdict until a user changes something.
func (t *tracked) stalled() bool {
	return t.current() && kstatus.Stuck(t.benchmark.Status.Conditions) != nil
}

// idle reports whether the experiment that does not count has ended, and no newer one has begun.
func (t *tracked) idle() bool {
	if t.benchmark == nil || t.current() {
		return false
	}
	status := &t.benchmark.Status
	return status.ObservedGeneration >= t.benchmark.Generation && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionComplete)
}

// ended reports whether there is nothing left to wait for.
func (t *tracked) ended() bool { return t.gone || t.complete() || t.stalled() }

// placeless reports whether no node fits. The benchmark may wait forever for such a node.
func (t *tracked) placeless() bool {
	if !t.current() {
		return false
	}
	ready := meta.FindStatusCondition(t.benchmark.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonNoNode
}

// code returns the exit code of a benchmark that has ended, otherwise ExitTimeout.
func (t *tracked) code() int {
	switch {
	case t.gone:
		return ExitNotFound
	case t.complete():
		return verdictCode(t.benchmark.Status.Verdict)
	case t.stalled():
		return ExitRefused
	}
	return ExitTimeout
}

// codeAfter is code once waiting has ended, with the cause of its end.
func (t *tracked) codeAfter(cause error) int {
	if !t.ended() && !errors.Is(cause, errTimeout) {
		return ExitInterrupted
	}
	return t.code()
}

// sentence describes the current state, or what the benchmark waits for, in the operator's words.
func (t *tracked) sentence() string {
	if t.gone {
		return "it was deleted"
	}
	if t.idle() {
		return fmt.Sprintf("experiment %s has ended; no newer one has begun", t.previousExperiment)
	}
	if !t.current() {
		return "waiting for the operator to observe it"
	}
	ready := meta.FindStatusCondition(t.benchmark.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "waiting for the operator"
	}
	switch ready.Reason {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonQueued, v1alpha1.ReasonSuspended, v1alpha1.ReasonFinished, v1alpha1.ReasonNotPassed:
		return ready.Message
	}
	return ready.Reason + ": " + ready.Message
}

// passedMessage returns the message of the verdict.
func (t *tracked) passedMessage() string {
	if passed := meta.FindStatusCondition(t.benchmark.Status.Conditions, v1alpha1.ConditionPassed); passed != nil {
		return passed.Message
	}
	return ""
}

// phase returns the progress of the current phase, on several nodes that of the slowest. It returns false before the first progress line.
func (t *tracked) phase() (livePhase, bool) {
	if !t.current() || t.benchmark.Status.Progress == nil {
		return livePhase{}, false
	}
	progress := t.benchmark.Status.Progress
	var slowest livePhase
	is, nodes := false, 0
	for _, run := range slices.Sorted(maps.Keys(t.live)) {
		live := t.live[run]
		if !inGroup(run, progress.CurrentRun) || live.phase == "" || live.phase != progress.CurrentPhase {
			continue
		}
		if nodes++; !is || live.Percent < slowest.Percent {
			slowest, is = live, true
		}
	}
	slowest.run = progress.CurrentRun
	if nodes > 1 {
		slowest.Message = strings.TrimSpace(fmt.Sprintf("%s (the slowest of %d nodes)", slowest.Message, nodes))
	}
	return slowest, is
}

// inGroup reports whether a run is the one in the status, or belongs to the group in the status.
func inGroup(run, current string) bool {
	letter, is := strings.CutPrefix(run, current+"-")
	return run == current || is && len(letter) == 1 && letter >= "a"
}

// say records a progress line of a run's pod. Lines of earlier phases are discarded.
func (t *tracked) say(live livePhase) {
	for run, earlier := range t.live {
		if earlier.phase != live.phase {
			delete(t.live, run)
		}
	}
	if t.live == nil {
		t.live = map[string]livePhase{}
	}
	t.live[live.run], t.noRates = live, ""
}

// runsDone describes the progress of the runs, for example "1 of 2 runs done, 1 invalid".
func (t *tracked) runsDone() string {
	if !t.current() || t.benchmark.Status.Progress == nil {
		return ""
	}
	progress := t.benchmark.Status.Progress
	text := fmt.Sprintf("%d of %s done", progress.RunsDone, spelling.Count(int(progress.RunsTotal), "run"))
	if progress.RunsInvalid > 0 {
		text += fmt.Sprintf(", %d invalid", progress.RunsInvalid)
	}
	return text
}
