package sim

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// always returns options with the same script for every pod.
func always(script Script) Options {
	return Options{Behaviour: func(workload.Request, *corev1.Pod) Script { return script }}
}

// started makes a claim and a Job and lets everything happen.
func started(t *testing.T, options Options) (*lab, *batchv1.Job) {
	t.Helper()
	t.Parallel()
	l := newLab(t, options)
	l.claim("fast")
	job := l.job("scan")
	l.settle()
	return l, job
}

func TestResultsThatDoNotArrive(t *testing.T) {
	t.Parallel()
	cases := map[Outcome]error{
		Truncate: results.ErrTruncated, WrongDigest: results.ErrCorrupt, NoResult: results.ErrMissing, LogGone: results.ErrMissing,
	}
	for outcome, want := range cases {
		t.Run(string(outcome), func(t *testing.T) {
			l, job := started(t, always(Script{Outcome: outcome}))
			l.wantJob("scan", batchv1.JobComplete, "")
			if _, err := l.collect(); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			l.wantNothing(job)
		})
	}
}

func TestForeignResults(t *testing.T) {
	t.Parallel()
	for _, outcome := range []Outcome{ForeignRun, ForeignPhase} {
		t.Run(string(outcome), func(t *testing.T) {
			l, _ := started(t, always(Script{Outcome: outcome}))
			document, err := l.collect()
			l.must(err)
			if (document.Run.UID == "run-uid") == (outcome == ForeignRun) || (document.Phase == "scan") == (outcome == ForeignPhase) {
				t.Errorf("document is of run %s, phase %s", document.Run.UID, document.Phase)
			}
		})
	}
}

func TestChangedResult(t *testing.T) {
	l, _ := started(t, always(Script{Metrics: map[string]int64{"readBytesPerSecond": 5}, Document: func(d *results.PhaseDocument) {
		d.Outcome, d.Reason = results.OutcomeInvalid, "NotConverged"
	}}))
	document, err := l.collect()
	l.must(err)
	if document.Reason != "NotConverged" || document.Metrics["readBytesPerSecond"] != 5 || document.Metrics["readBytes"] == 0 {
		t.Errorf("document is %+v", document)
	}
}

// TestPodsThatEndBadly: the Job fails, and the pod, if it is still there, says why.
func TestPodsThatEndBadly(t *testing.T) {
	t.Parallel()
	cases := []struct {
		script     Script
		podIsGone  bool
		reason     string
		exitCode   int32
		executions int
	}{
		{Script{Outcome: Fail, ExitCode: 3, Message: "no space left on device"}, false, "", 3, 1},
		{Script{Outcome: Evict}, false, "Evicted", 137, 1},
		{Script{Outcome: Reject}, false, "OutOfcpu", 0, 0},
		{Script{Outcome: Kill}, true, "", 0, 1},
		{Script{Outcome: LoseNode}, true, "", 0, 1},
		{Script{Outcome: Lose}, true, "", 0, 1},
	}
	for _, c := range cases {
		t.Run(string(c.script.Outcome), func(t *testing.T) {
			l, job := started(t, always(c.script))
			l.wantJob("scan", batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
			if executions := l.Executions(); len(executions) != c.executions || (c.executions == 1 && !executions[0].Ended) {
				t.Errorf("executions are %+v", executions)
			}
			pod := l.pod()
			if (pod == nil) != c.podIsGone {
				t.Fatalf("pod is %+v", pod)
			}
			if pod != nil {
				if pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != c.reason {
					t.Errorf("pod status is %+v", pod.Status)
				}
				if c.exitCode != 0 {
					end := pod.Status.ContainerStatuses[0].State.Terminated
					if end.ExitCode != c.exitCode || end.Message != c.script.Message {
						t.Errorf("container ended with %+v", end)
					}
				}
			}
			l.wantNothing(job)
		})
	}
}

// TestPodsThatDoNotStart: the Job stays active, and the pod says why.
func TestPodsThatDoNotStart(t *testing.T) {
	t.Parallel()
	cases := []struct {
		script             Script
		condition, waiting string
		claim              corev1.PersistentVolumeClaimPhase
	}{
		{Script{Outcome: ImagePull}, "", "ImagePullBackOff", corev1.ClaimBound},
		{Script{Outcome: NeverStart}, "", "ContainerCreating", corev1.ClaimBound},
		{Script{Outcome: Unschedulable, Message: "0/1 nodes are available: 1 node(s) had untolerated taint"}, "untolerated taint", "",
			corev1.ClaimPending},
		{Script{Outcome: NeverBind}, "", "", corev1.ClaimPending},
	}
	for _, c := range cases {
		t.Run(string(c.script.Outcome), func(t *testing.T) {
			l, job := started(t, always(c.script))
			pod := l.pod()
			if pod.Status.Phase != corev1.PodPending || waitingReason(pod) != c.waiting {
				t.Errorf("pod status is %+v", pod.Status)
			}
			if c.condition != "" && !strings.Contains(pod.Status.Conditions[0].Message, c.condition) {
				t.Errorf("conditions are %+v", pod.Status.Conditions)
			}
			var claim corev1.PersistentVolumeClaim
			if l.get(&claim, "data"); claim.Status.Phase != c.claim {
				t.Errorf("claim is %s", claim.Status.Phase)
			}
			var now batchv1.Job
			if l.get(&now, "scan"); now.Status.Active != 1 || len(now.Status.Conditions) != 0 {
				t.Errorf("Job status is %+v", now.Status)
			}
			if len(l.Executions()) != 0 {
				t.Error("something was executed")
			}
			l.wantNothing(job)
		})
	}
}

func TestHoldAndChange(t *testing.T) {
	l, job := started(t, always(Script{Hold: true, Outcome: Fail}))
	if pod := l.pod(); pod.Status.Phase != corev1.PodRunning {
		t.Fatalf("pod status is %+v", pod.Status)
	}
	l.settle()
	if l.Release(func(e Execution) bool { return e.Phase == "another" }) != 0 || l.Release(nil) != 1 {
		t.Error("released the wrong executions")
	}
	l.settle()
	l.wantJob("scan", batchv1.JobFailed, "")

	l.SetBehaviour(func(workload.Request, *corev1.Pod) Script { return Script{Outcome: Unschedulable} })
	second := l.job("again")
	l.settle()
	l.SetBehaviour(nil)
	l.settle()
	l.wantJob("again", batchv1.JobComplete, "")
	l.wantNothing(job, second)
}

func TestLogUnreadable(t *testing.T) {
	l, _ := started(t, always(Script{LogFailures: 2}))
	for attempt := range 2 {
		if _, err := l.collect(); err == nil {
			t.Errorf("attempt %d: the log could be read", attempt)
		} else if attempt == 0 {
			t.Log(err)
		}
	}
	_, err := l.collect()
	l.must(err)
}
