package runs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

type runChange func(*runs.State)

func podEnded(ago time.Duration, receipt bool, failure error) runChange {
	return func(s *runs.State) {
		s.Phases[0].Pod.Ended, s.Phases[0].Pod.HasReceipt, s.Phases[0].ReceiveError = runstest.After(-ago), receipt, failure
	}
}

func received(s *runs.State) {
	podEnded(time.Second, true, nil)(s)
	s.Phases[0].Received = &results.PhaseDocument{Outcome: results.OutcomeValid}
}

func allStored(s *runs.State) {
	for i := range s.Phases {
		s.Phases[i] = runs.PhaseState{Stored: runstest.Result(fmt.Sprint("map-", i))}
	}
	s.Pods = 0
}

func leaseStolen(s *runs.State) { s.LeaseHolder, s.LeaseHolderName = runstest.Thief, "lab/thief" }

// rebootedSince says that phase i began in the first boot of the node, which is now in its second boot.
func rebootedSince(i int) runChange {
	return func(s *runs.State) { s.Phases[i].Executor.BootID, s.BootID = "b1", "b2" }
}
func volumeLost(s *runs.State)     { s.Claims.Lost = true }
func volumeGone(s *runs.State)     { s.Claims = runs.Claims{} }
func volumeDeleting(s *runs.State) { s.Claims.Deleting = true }
func unbound(problem string) runChange {
	return func(s *runs.State) { s.Claims.Bound, s.Claims.Problem = false, problem }
}
func fileMissing(s *runs.State) { s.Phases[0].FileProblem = "no job.fio" }
func evicted(s *runs.State) {
	s.Phases[0].Pod.Problem, s.Phases[0].Pod.Message = v1alpha1.ReasonPodEvicted, "out of memory"
}

// notYet says that the Job was created this long ago, and no container has started.
func notYet(ago time.Duration, pod runs.PodState, message string) runChange {
	return func(s *runs.State) {
		s.Phases[0].Executor.Created, s.Phases[0].Executor.Message, s.Phases[0].Pod = runstest.Noon.Add(-ago), message, pod
	}
}

func jobless(recorded bool) runChange {
	return func(s *runs.State) {
		s.Phases[0], s.Pods = runs.PhaseState{}, 0
		if !recorded {
			s.Run.Status.Phases = nil
		}
	}
}

// runCase is a run that is under way, with changes to its state and the expected decision.
type runCase struct {
	name    string
	changes []runChange
	actions []string
	reason  string
	ending  string // empty, "valid", "retry" or "final"
	says    string
	wake    time.Duration // from noon; zero for none
}

func (c runCase) check(t *testing.T) {
	state := runstest.Underway()
	for _, change := range c.changes {
		change(&state)
	}
	decision := runs.Plan(state)
	if problem := runstest.Problem(state, decision); problem != "" {
		t.Error(problem)
	}
	if got := runstest.Kinds(decision.Actions); !slices.Equal(got, c.actions) && len(got)+len(c.actions) > 0 {
		t.Errorf("actions %v, want %v", got, c.actions)
	}
	if decision.Reason != c.reason || !strings.Contains(decision.Message, c.says) {
		t.Errorf("%s: %q, want %s: ...%q...", decision.Reason, decision.Message, c.reason, c.says)
	}
	if got := endingWord(decision.Ending); got != c.ending {
		t.Errorf("ending %q, want %q", got, c.ending)
	}
	wake := time.Time{}
	if c.wake != 0 {
		wake = runstest.Noon.Add(c.wake)
	}
	if !decision.WakeAt.Equal(wake) {
		t.Errorf("wakes at %v, want %v", decision.WakeAt, wake)
	}
}

func nameTaken(object string) runChange { return func(s *runs.State) { s.Taken = object } }

func notAllowed(words string) runChange { return func(s *runs.State) { s.Refused = words } }
func startedAgo(ago time.Duration) runChange {
	return func(s *runs.State) { s.Run.Status.StartedAt = runstest.Stamp(-ago) }
}

func TestRun(t *testing.T) {
	waiting := runs.PodState{Exists: true, Name: "pod"}
	for _, test := range []runCase{
		{name: "a phase is under way", reason: "PhaseRunning", says: "phase fill (1 of 2) is under way", wake: 50 * time.Minute},
		{name: "nothing is made yet", changes: []runChange{jobless(false), volumeGone}, actions: []string{"CreateVolumes", "StartPhase 0"},
			reason: "PhaseRunning"},
		{name: "the volume is made, the Job is not", changes: []runChange{jobless(false)}, actions: []string{"StartPhase 0"},
			reason: "PhaseRunning"},
		{name: "an earlier volume is still going", changes: []runChange{jobless(false), volumeDeleting}, reason: "PreparingVolume",
			says: "earlier volume", wake: 10 * time.Minute},
		{name: "an earlier volume does not go", changes: []runChange{jobless(false), volumeDeleting, startedAgo(10 * time.Minute)},
			reason: "PreparingVolume", ending: "retry", says: "earlier volume"},
		{name: "the claim's name is taken", changes: []runChange{jobless(false), func(s *runs.State) {
			s.Claims = runs.Claims{Foreign: true}
		}, startedAgo(time.Minute)}, reason: "NameTaken", says: "belongs to another owner", wake: 10 * time.Second},
		{name: "and stays taken", changes: []runChange{jobless(false), func(s *runs.State) { s.Claims = runs.Claims{Foreign: true} },
			startedAgo(10 * time.Minute)}, reason: "NameTaken", ending: "retry", says: "belongs to another owner"},
		{name: "the Job's name is taken", changes: []runChange{jobless(false), nameTaken("Job x"), startedAgo(time.Minute)}, reason: "NameTaken",
			says: "Job x belongs to another owner", wake: 10 * time.Second},
		{name: "a quota refuses the Job", changes: []runChange{jobless(false), notAllowed("Job x: exceeded quota"), startedAgo(time.Minute)},
			reason: "ActionFailed", says: "exceeded quota", wake: 10 * time.Second},
		{name: "and goes on to", changes: []runChange{jobless(false), notAllowed("Job x: exceeded quota"), startedAgo(10 * time.Minute)},
			reason: "ActionFailed", ending: "retry", says: "exceeded quota"},
		{name: "or the result", changes: []runChange{received, podEnded(10*time.Minute, true, nil), notAllowed("ConfigMap x: exceeded quota")},
			reason: "ActionFailed", ending: "retry", says: "exceeded quota"},
		{name: "the name of a result is taken", changes: []runChange{received, nameTaken("ConfigMap x"), startedAgo(5 * time.Hour)},
			reason: "NameTaken", says: "ConfigMap x belongs to another owner", wake: 10 * time.Second},
		{name: "and is not given back", changes: []runChange{received, podEnded(10*time.Minute, true, nil), nameTaken("ConfigMap x")},
			reason: "NameTaken", ending: "retry", says: "ConfigMap x belongs to another owner"},
		{name: "the name of the volume is taken", changes: []runChange{jobless(false), func(s *runs.State) {
			s.Claims = runs.Claims{Foreign: true}
		}}, reason: "NameTaken", says: "belongs to another owner", wake: runs.ForeignRecheck},
		{name: "the node has no holder", changes: []runChange{jobless(false), func(s *runs.State) { s.LeaseHolder = "" }}, reason: "Queued",
			says: "to take node n1"},
		{name: "another has the node", changes: []runChange{jobless(false), leaseStolen}, reason: "Queued", says: "lab/thief"},
		{name: "a Job that was never recorded is made again", changes: []runChange{jobless(false)}, actions: []string{"StartPhase 0"},
			reason: "PhaseRunning"},
		{name: "a recorded Job is gone", changes: []runChange{jobless(true)}, reason: "ExecutorLost", ending: "retry", says: "again would measure"},
		{name: "a recorded Job and its volume are gone", changes: []runChange{jobless(true), volumeGone}, reason: "VolumeLost", ending: "retry",
			says: "was deleted"},

		{name: "the volume is lost", changes: []runChange{volumeLost}, reason: "VolumeLost", ending: "retry", says: "has lost its volume"},
		{name: "the volume is deleted", changes: []runChange{volumeGone}, reason: "VolumeLost", ending: "retry"},
		{name: "the volume is being deleted", changes: []runChange{volumeDeleting}, reason: "VolumeLost", ending: "retry"},
		{name: "the volume's name passed to another", changes: []runChange{func(s *runs.State) { s.Claims = runs.Claims{Foreign: true} }},
			reason: "VolumeLost", ending: "retry"},
		{name: "a volume that is lost before the first Job is no loss", changes: []runChange{jobless(false), volumeLost},
			actions: []string{"StartPhase 0"}, reason: "PhaseRunning"},

		{name: "a document was received", changes: []runChange{received}, actions: []string{"StoreResult 0"}, reason: "PhaseRunning"},
		{name: "received wins over eviction", changes: []runChange{received, evicted}, actions: []string{"StoreResult 0"},
			reason: "PhaseRunning"},
		{name: "received wins over a stolen node", changes: []runChange{received, leaseStolen}, actions: []string{"StoreResult 0"},
			reason: "PhaseRunning"},
		{name: "received wins over a lost volume", changes: []runChange{received, volumeGone}, actions: []string{"StoreResult 0"},
			reason: "PhaseRunning"},
		{name: "received wins over a failed Job", changes: []runChange{received, func(s *runs.State) { s.Phases[0].Executor.Failed = true }},
			actions: []string{"StoreResult 0"}, reason: "PhaseRunning"},
		{name: "stored wins over received", changes: []runChange{received, func(s *runs.State) { s.Phases[0].Stored = runstest.Result("m") }},
			actions: []string{"StartPhase 1"}, reason: "PhaseRunning", says: "phase scan (2 of 2)"},
		{name: "stored wins over everything", changes: []runChange{evicted, leaseStolen, volumeGone, allStored}, reason: "Measured",
			ending: "valid", says: "all 2 phases"},
		{name: "stored as invalid", changes: []runChange{func(s *runs.State) {
			s.Phases[0].Stored = &runs.StoredResult{Outcome: results.OutcomeInvalid, Reason: "NotConverged", Message: "after 25 rounds"}
		}}, reason: "PhaseInvalid", ending: "retry", says: "NotConverged: after 25 rounds"},
		{name: "the workload is refused", changes: []runChange{func(s *runs.State) {
			s.Phases[0].Stored = &runs.StoredResult{Outcome: results.OutcomeInvalid, Reason: results.ReasonJobRefused, Message: "line 3"}
		}}, reason: "PhaseInvalid", ending: "final", says: "JobRefused: line 3"},
		{name: "the operation takes longer than the longest time", changes: []runChange{func(s *runs.State) {
			s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Measure = nil, &v1alpha1.MeasurePhase{Until: v1alpha1.UntilOperationEnds}
			s.Phases[0].Stored = &runs.StoredResult{Outcome: results.OutcomeInvalid, Reason: v1alpha1.ReasonOperationDidNotOverlap}
		}}, reason: "PhaseInvalid", ending: "final", says: "OperationDidNotOverlap"},
		{name: "the operation does not overlap", changes: []runChange{func(s *runs.State) {
			s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Measure = nil, &v1alpha1.MeasurePhase{}
			s.Phases[0].Stored = &runs.StoredResult{Outcome: results.OutcomeInvalid, Reason: v1alpha1.ReasonOperationDidNotOverlap}
		}}, reason: "PhaseInvalid", ending: "retry", says: "OperationDidNotOverlap"},
		{name: "the operation is refused", changes: []runChange{func(s *runs.State) {
			s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Operate = nil, &v1alpha1.OperatePhase{}
			s.Phases[0].Stored = &runs.StoredResult{Outcome: results.OutcomeInvalid, Reason: v1alpha1.ReasonDatasetNotFound, Message: "b0/x"}
		}}, reason: "PhaseInvalid", ending: "final", says: "DatasetNotFound: b0/x"},
		{name: "the agent of the operation dies", changes: []runChange{func(s *runs.State) {
			s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Operate = nil, &v1alpha1.OperatePhase{}
			s.Phases[0].Stored = &runs.StoredResult{Outcome: results.OutcomeInvalid, Reason: v1alpha1.ReasonAgentDied}
		}}, reason: "PhaseInvalid", ending: "retry"},
		{name: "stored as invalid wins over a lost volume", changes: []runChange{volumeGone, func(s *runs.State) {
			s.Phases[0].Stored = &runs.StoredResult{Outcome: results.OutcomeInvalid, Reason: "NotConverged"}
		}}, reason: "PhaseInvalid", ending: "retry"},
		{name: "a volume lost between phases", changes: []runChange{volumeGone, func(s *runs.State) {
			s.Phases[0].Stored = runstest.Result("m")
		}}, reason: "VolumeLost", ending: "retry"},

		{name: "the node is stolen", changes: []runChange{leaseStolen}, reason: "LeaseLost", ending: "retry", says: "lab/thief"},
		{name: "the node is stolen and the pod evicted", changes: []runChange{leaseStolen, evicted}, reason: "LeaseLost", ending: "retry"},
		{name: "the Lease is gone, without another holder", changes: []runChange{func(s *runs.State) { s.LeaseHolder = "" }},
			reason: "PhaseRunning", wake: 50 * time.Minute},
		{name: "the node is rebooted in the middle of a phase", changes: []runChange{rebootedSince(0)}, reason: "NodeRebooted", ending: "retry",
			says: "after phase fill had started (boot b1 then, b2 now)"},
		{name: "the node is rebooted, and the pod starts again", changes: []runChange{rebootedSince(0), received}, reason: "NodeRebooted",
			ending: "retry"},
		{name: "the node is rebooted between phases",
			changes: []runChange{rebootedSince(0), func(s *runs.State) { s.Phases[0].Stored = runstest.Result("m") }}, reason: "NodeRebooted",
			ending: "retry"},
		{name: "the node is rebooted after the last phase", changes: []runChange{rebootedSince(0), allStored}, reason: "Measured",
			ending: "valid"},
		{name: "the same boot", changes: []runChange{rebootedSince(0), func(s *runs.State) { s.BootID = "b1" }, received},
			actions: []string{"StoreResult 0"}, reason: "PhaseRunning"},
		{name: "a node that does not tell its boot", changes: []runChange{rebootedSince(0), func(s *runs.State) { s.BootID = "" }, received},
			actions: []string{"StoreResult 0"}, reason: "PhaseRunning"},
		{name: "evicted while running", changes: []runChange{evicted}, reason: "PodEvicted", ending: "retry", says: "out of memory"},
		{name: "evicted and ended", changes: []runChange{evicted, podEnded(time.Second, false, nil)}, reason: "PodEvicted", ending: "retry"},
		{name: "lost with its node", changes: []runChange{func(s *runs.State) {
			s.Phases[0].Pod.Problem, s.Phases[0].Pod.Message = v1alpha1.ReasonPodLost, "node no longer exists"
		}}, reason: "PodLost", ending: "retry", says: "is lost: node no longer exists"},
		{name: "the Job is being deleted", changes: []runChange{func(s *runs.State) { s.Phases[0].Executor.Deleting = true }}, reason: "ExecutorLost",
			ending: "retry"},
		{name: "the pod is being deleted", changes: []runChange{func(s *runs.State) { s.Phases[0].Pod.Deleting = true }}, reason: "PodLost",
			ending: "retry"},
		{name: "the pod was deleted and has been stopped", changes: []runChange{func(s *runs.State) {
			ended := s.Now
			s.Phases[0].Pod.Deleting, s.Phases[0].Pod.Ended, s.Phases[0].Pod.ExitCode = true, &ended, 143
		}}, reason: "PodLost", ending: "retry", says: "deleted before it had ended"},
		{name: "the pod failed by itself and is being deleted", changes: []runChange{func(s *runs.State) {
			ended := s.Now
			s.Phases[0].Pod.Deleting, s.Phases[0].Pod.Ended, s.Phases[0].Pod.ExitCode = true, &ended, 3
		}}, reason: "PodFailed", ending: "retry", says: "exit code 3"},
		{name: "the work cannot be done at all", changes: []runChange{podEnded(0, false, nil), func(s *runs.State) {
			s.Phases[0].Pod.Hopeless, s.Phases[0].Pod.Message = true, "fio is not installed"
		}}, reason: "PodFailed", ending: "final", says: "it could not be executed: fio is not installed"},
		{name: "a pod deleted before its start is replaced",
			changes: []runChange{notYet(time.Minute, runs.PodState{Exists: true, Deleting: true}, "")}, reason: "PhaseRunning",
			wake: 9 * time.Minute},
		{name: "the Job failed without a pod", changes: []runChange{func(s *runs.State) {
			s.Phases[0].Executor.Failed, s.Phases[0].Executor.Message, s.Phases[0].Pod = true, "BackoffLimitExceeded", runs.PodState{}
		}}, reason: "PodLost", ending: "retry", says: "BackoffLimitExceeded"},
		{name: "the Job succeeded without a pod", changes: []runChange{func(s *runs.State) {
			s.Phases[0].Executor.Succeeded, s.Phases[0].Pod = true,
				runs.PodState{}
		}}, reason: "PodLost", ending: "retry", says: "there is no message"},

		{name: "ended well without a receipt", changes: []runChange{podEnded(time.Second, false, nil)}, reason: "ResultMissing", ending: "retry",
			says: "is runner:1 a storagebench runner?"},
		{name: "failed", changes: []runChange{podEnded(time.Second, false, nil), func(s *runs.State) {
			s.Phases[0].Pod.ExitCode, s.Phases[0].Pod.Message = 3, "disk full"
		}}, reason: "PodFailed", ending: "retry", says: "exit code 3: disk full"},
		{name: "failed without words", changes: []runChange{podEnded(time.Second, false, nil),
			func(s *runs.State) { s.Phases[0].Pod.ExitCode = 137 }}, reason: "PodFailed", ending: "retry", says: "there is no message"},
		{name: "the result belongs to another run", changes: []runChange{podEnded(0, true, fmt.Errorf("%w: run x", runs.ErrForeign))},
			reason: "ResultForeign", ending: "retry"},
		{name: "corrupt, in grace", changes: []runChange{podEnded(30*time.Second-1, true, results.ErrCorrupt)}, reason: "ResultUnreadable",
			wake: 30 * time.Second / 8},
		{name: "corrupt, grace over", changes: []runChange{podEnded(30*time.Second, true, results.ErrCorrupt)}, reason: "ResultCorrupt",
			ending: "retry"},
		{name: "truncated", changes: []runChange{podEnded(time.Minute, true, fmt.Errorf("x: %w", results.ErrTruncated))}, reason: "ResultCorrupt",
			ending: "retry"},
		{name: "missing", changes: []runChange{podEnded(time.Minute, true, results.ErrMissing)}, reason: "ResultCorrupt", ending: "retry"},
		{name: "too large", changes: []runChange{podEnded(time.Minute, true, results.ErrTooLarge)}, reason: "ResultCorrupt", ending: "retry"},
		{name: "another version", changes: []runChange{podEnded(time.Minute, true, results.ErrVersion)}, reason: "ResultCorrupt",
			ending: "retry"},
		{name: "unreadable, in grace", changes: []runChange{podEnded(10*time.Minute-1, true, errors.New("refused"))}, reason: "ResultUnreadable",
			says: "refused", wake: 30 * time.Second / 8},
		{name: "unreadable, grace over", changes: []runChange{podEnded(10*time.Minute, true, errors.New("refused"))}, reason: "ResultUnreadable",
			ending: "retry", says: "could not be read for 10m0s"},

		{name: "deadline in a moment", changes: []runChange{func(s *runs.State) { s.Phases[0].Pod.Started = runstest.After(-time.Hour + 1) }},
			reason: "PhaseRunning", wake: 1},
		{name: "deadline exactly", changes: []runChange{func(s *runs.State) { s.Phases[0].Pod.Started = runstest.After(-time.Hour) }},
			reason: "PhaseDeadlineExceeded", ending: "retry", says: "within 1h0m0s"},
		{name: "start deadline in a moment", changes: []runChange{notYet(10*time.Minute-1, waiting, "")}, reason: "PhaseRunning", wake: 1},
		{name: "start deadline exactly", changes: []runChange{notYet(10*time.Minute, waiting, "")}, reason: "PodNotStarted", ending: "final",
			says: "is starting"},
		{name: "image, waiting", changes: []runChange{notYet(time.Minute, runs.PodState{Exists: true, Problem: "ImagePullFailed",
			Message: "not found"}, "")}, reason: "ImagePullFailed", says: "cannot start: not found", wake: 9 * time.Minute},
		{name: "image, over", changes: []runChange{notYet(time.Hour, runs.PodState{Exists: true, Problem: "ImagePullFailed",
			Message: "not found"}, ""), unbound("no space")}, reason: "ImagePullFailed", ending: "final"},
		{name: "rejected by the kubelet",
			changes: []runChange{notYet(time.Hour, runs.PodState{Exists: true, Problem: "PodRejected", Message: "root"}, "")}, reason: "PodRejected",
			ending: "final"},
		{name: "the volume has a problem, which explains the pod's",
			changes: []runChange{notYet(time.Hour, runs.PodState{Exists: true, Problem: "PodUnschedulable"}, ""), unbound("no space")},
			reason:  "VolumeNotBound", ending: "final", says: "no space"},
		{name: "the volume has a problem, waiting", changes: []runChange{notYet(time.Minute, waiting, ""), unbound("no space")},
			reason: "VolumeNotBound", wake: 9 * time.Minute},
		{name: "unschedulable", changes: []runChange{notYet(time.Hour, runs.PodState{Exists: true, Problem: "PodUnschedulable",
			Message: "0/3 nodes"}, "")}, reason: "PodUnschedulable", ending: "final", says: "0/3 nodes"},
		{name: "admission refuses the pod", changes: []runChange{notYet(time.Hour, runs.PodState{}, "quota")}, reason: "PodRejected",
			ending: "final", says: "quota"},
		{name: "the file is missing, waiting", changes: []runChange{notYet(time.Minute, waiting, ""), fileMissing}, reason: "PodRejected",
			says: "cannot start: no job.fio", wake: 9 * time.Minute},
		{name: "the file is missing, over", changes: []runChange{notYet(time.Hour, waiting, ""), fileMissing, unbound("")}, reason: "PodRejected",
			ending: "final", says: "no job.fio"},
		{name: "the file is missing, and the pod is not even scheduled",
			changes: []runChange{notYet(time.Hour, runs.PodState{Exists: true, Problem: "PodUnschedulable", Message: "0/3 nodes"}, ""), fileMissing},
			reason:  "PodUnschedulable", ending: "final"},
		{name: "the file is gone while the phase runs", changes: []runChange{fileMissing}, reason: "PhaseRunning", wake: 50 * time.Minute},
		{name: "no pod at all", changes: []runChange{notYet(time.Hour, runs.PodState{}, "")}, reason: "PodNotStarted", ending: "final",
			says: "no pod has been created"},
		{name: "the volume is not bound, without a reason", changes: []runChange{notYet(time.Hour, waiting, ""), unbound("")},
			reason: "PodNotStarted", ending: "final", says: "is not bound yet"},
	} {
		t.Run(test.name, test.check)
	}
}

func endingWord(ending *runs.Ending) string {
	switch {
	case ending == nil:
		return ""
	case ending.Valid:
		return "valid"
	case ending.Retryable:
		return "retry"
	}
	return "final"
}

// TestTeardown covers the order in which objects are deleted, retention, and the deletion of runs.
func TestTeardown(t *testing.T) {
	job := runs.PhaseState{Executor: runs.ExecutorState{Exists: true, UID: "j"}}
	rested := runs.PhaseState{Executor: runs.ExecutorState{Exists: true, Succeeded: true},
		Pod: runs.PodState{Exists: true, Ended: runstest.After(-time.Hour)}}
	dying := runs.PhaseState{Executor: runs.ExecutorState{Exists: true, Deleting: true}}
	there, going := runs.Claims{Exists: true, Bound: true}, runs.Claims{Exists: true, Deleting: true}
	for _, test := range []struct {
		name    string
		retain  v1alpha1.RetainPolicy
		ending  *runs.Ending
		deleted bool
		phase   runs.PhaseState
		pods    int
		volume  runs.Claims
		actions []string
		settled bool
		reason  string
	}{
		{"Jobs go first", "Never", &runstest.ValidEnding, false, rested, 1, there, []string{"DeleteJobsAndOperations"}, false, "TearingDown"},
		{"then one waits for them", "Never", &runstest.ValidEnding, false, dying, 1, there, nil, false, "TearingDown"},
		{"and for their pods", "Never", &runstest.ValidEnding, false, runs.PhaseState{}, 1, there, nil, false, "TearingDown"},
		{"then the volume goes", "Never", &runstest.ValidEnding, false, runs.PhaseState{}, 0, there, []string{"DeleteVolumes"}, false,
			"TearingDown"},
		{"and is waited for", "Never", &runstest.ValidEnding, false, runs.PhaseState{}, 0, going, nil, false, "TearingDown"},
		{"then it is settled", "Never", &runstest.ValidEnding, false, runs.PhaseState{}, 0, runs.Claims{}, nil, true, "Measured"},
		{"a foreign volume is left alone", "Never", &runstest.InvalidEnding, false, runs.PhaseState{}, 0, runs.Claims{Foreign: true}, nil,
			true, "PodEvicted"},
		{"but not what the run's own has left behind", "Never", &runstest.InvalidEnding, false, runs.PhaseState{}, 0,
			runs.Claims{Foreign: true, Some: true}, []string{"DeleteVolumes"}, false, "TearingDown"},
		{"which the driver may still have", "Never", &runstest.InvalidEnding, false, runs.PhaseState{}, 0,
			runs.Claims{Foreign: true, Some: true, Deleting: true, Unwatched: "ZFSVolume x"}, nil, false, "TearingDown"},
		{"OnFailure cleans up after a valid run", "OnFailure", &runstest.ValidEnding, false, rested, 1, there, []string{"DeleteJobsAndOperations"}, false,
			"TearingDown"},
		{"OnFailure keeps an invalid one", "OnFailure", &runstest.InvalidEnding, false, rested, 1, there, nil, true, "PodEvicted"},
		{"Always keeps a valid one", "Always", &runstest.ValidEnding, false, rested, 1, there, nil, true, "Measured"},
		{"what is kept must not go on working", "Always", &runstest.InvalidEnding, false, job, 1, there, []string{"DeleteJobsAndOperations"}, false,
			"TearingDown"},
		{"nor must a pod without a Job", "Always", &runstest.InvalidEnding, false, runs.PhaseState{}, 1, there, nil, false, "TearingDown"},
		{"after which the volume is still kept", "Always", &runstest.InvalidEnding, false, runs.PhaseState{}, 0, there, nil, true, "PodEvicted"},
		{"deletion: Jobs", "Always", &runstest.ValidEnding, true, rested, 1, there, []string{"DeleteJobsAndOperations"}, false, "TearingDown"},
		{"deletion without an end: Jobs", "Never", nil, true, job, 1, there, []string{"DeleteJobsAndOperations"}, false, "TearingDown"},
		{"deletion: pods", "Always", nil, true, runs.PhaseState{}, 2, there, nil, false, "TearingDown"},
		{"deletion: volume", "Always", &runstest.ValidEnding, true, runs.PhaseState{}, 0, there, []string{"DeleteVolumes"}, false, "TearingDown"},
		{"deletion: wait for the volume", "Always", &runstest.ValidEnding, true, runs.PhaseState{}, 0, going, nil, false, "TearingDown"},
		{"deletion: the object", "Always", nil, true, runs.PhaseState{}, 0, runs.Claims{}, []string{"RemoveFinalizer"}, true,
			"TearingDown"},
		{"deletion leaves a foreign volume", "Never", nil, true, runs.PhaseState{}, 0, runs.Claims{Foreign: true},
			[]string{"RemoveFinalizer"}, true, "TearingDown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := runstest.Underway()
			state.Phases[0], state.Pods, state.Claims = test.phase, test.pods, test.volume
			state.Run.Spec.Retain = test.retain
			if test.ending != nil {
				runstest.Record(state.Run, *test.ending, false)
			}
			if test.deleted {
				state.Run.DeletionTimestamp = &metav1.Time{Time: runstest.Noon}
			}
			decision := runs.Plan(state)
			if got := runstest.Kinds(decision.Actions); strings.Join(got, ",") != strings.Join(test.actions, ",") {
				t.Errorf("actions %v, want %v", got, test.actions)
			}
			if decision.Settled != test.settled || decision.Reason != test.reason || decision.Message == "" {
				t.Errorf("settled %v, %s: %q; want %v, %s", decision.Settled, decision.Reason, decision.Message, test.settled, test.reason)
			}
			if !test.deleted && (decision.Ending == nil || *decision.Ending != *test.ending) {
				t.Errorf("the recorded ending became %+v", decision.Ending)
			}
		})
	}
}

// TestRecordIsTheTruth: the recorded ending of a run does not change when the evidence is gone.
func TestRecordIsTheTruth(t *testing.T) {
	state := runstest.Underway()
	allStored(&state)
	state.Claims = runs.Claims{}
	runstest.Record(state.Run, runstest.InvalidEnding, true)
	if decision := runs.Plan(state); *decision.Ending != runstest.InvalidEnding || !decision.Settled {
		t.Errorf("got %+v", decision)
	}
	state.Run.Status.Conditions = state.Run.Status.Conditions[:1] // Complete without Valid: written by an older version, or forged
	if decision := runs.Plan(state); decision.Ending == nil || !decision.Ending.Valid {
		t.Errorf("without the condition Valid the results decide, got %+v", decision)
	}
}
