package sim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/internal/results"
)

func TestHappyPath(t *testing.T) {
	t.Parallel()
	l := newLab(t, Options{})
	l.claim("fast")
	l.settle()
	var claim corev1.PersistentVolumeClaim
	if l.get(&claim, "data"); claim.Status.Phase != corev1.ClaimPending {
		t.Fatalf("the claim does not wait for a pod: %+v", claim.Status)
	}
	job := l.job("scan")
	l.settle()
	l.wantJob("scan", batchv1.JobComplete, "CompletionsReached")
	if l.get(&claim, "data"); claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != "pvc-"+string(claim.UID) {
		t.Errorf("the claim is not bound: %+v", claim)
	}
	pod := l.pod()
	if pod.Spec.NodeName != "node-1" || len(pod.Finalizers) > 0 || pod.Labels[batchv1.JobNameLabel] != "scan" {
		t.Errorf("pod is %+v", pod.ObjectMeta)
	}
	document, err := l.collect()
	l.must(err)
	if document.Run.UID != "run-uid" || document.Phase != "scan" || document.Kind != "measure" || document.Outcome != results.OutcomeValid {
		t.Errorf("document is %+v", document)
	}
	if rate := document.Metrics["readBytesPerSecond"]; rate < 99_000_000 || rate > 101_000_000 {
		t.Errorf("readBytesPerSecond is %d", rate)
	}
	executions := l.Executions()
	if len(executions) != 1 || executions[0].PodUID != pod.UID || executions[0].JobUID != job.UID || executions[0].Phase != "scan" ||
		executions[0].RunUID != "run-uid" || executions[0].Seed != 7 || !executions[0].Ended || executions[0].ExitCode != 0 {
		t.Errorf("executions are %+v", executions)
	}
	limited, err := l.log(pod, corev1.PodLogOptions{LimitBytes: ptr.To[int64](11)})
	if err != nil || limited != "storagebenc" {
		t.Errorf("limited log is %q (%v)", limited, err)
	}
	last, err := l.log(pod, corev1.PodLogOptions{TailLines: ptr.To[int64](1)})
	if err != nil || !strings.HasPrefix(last, "storagebench-result ") {
		t.Errorf("last line of the log is %q (%v)", last, err)
	}
	l.wantNothing(job)
}

// TestStates checks the state after each pass.
func TestStates(t *testing.T) {
	t.Parallel()
	l := newLab(t, Options{})
	l.claim("fast")
	l.job("scan")
	var states []string
	for {
		changed, err := l.Step(t.Context())
		l.must(err)
		if !changed {
			break
		}
		state := "no pod"
		if pod := l.pod(); pod != nil {
			state = string(pod.Status.Phase)
		}
		states = append(states, state)
	}
	if seen := slices.Compact(slices.Clone(states)); !slices.Equal(seen, []string{"Pending", "Running", "Succeeded"}) {
		t.Errorf("states are %v", states)
	}
}

// TestSpeed logs what an experiment of 6 runs with 2 phases costs, and what a pass costs in which nothing changes. How long
// these take depends on the machine, so it is only logged.
func TestSpeed(t *testing.T) {
	l := newLab(t, Options{})
	l.claim("fast")
	started := time.Now()
	steps := 0
	const phases = 12
	for i := range phases {
		l.job("scan-" + string(rune('a'+i)))
		for {
			changed, err := l.Step(t.Context())
			l.must(err)
			steps++
			if !changed {
				break
			}
		}
	}
	t.Logf("%d phases in %v, %d steps", phases, time.Since(started), steps)
	started = time.Now()
	for range 100 {
		if changed, err := l.Step(t.Context()); err != nil || changed {
			t.Fatal(changed, err)
		}
	}
	t.Logf("100 idle steps in %v", time.Since(started))
}

// TestRun runs passes in parallel with a test that does not wait for them, on an API server that other tests use.
func TestRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Cluster.Run(ctx) }()
	l.claim("fast")
	const phases = 3
	for i := range phases {
		job := l.job("scan-" + string(rune('a'+i)))
		l.completes(job)
	}
	cancel()
	l.must(<-ended)
	if executions := l.Executions(); len(executions) != phases {
		t.Errorf("executions are %+v", executions)
	}
}
