package operation

import (
	"context"
	"errors"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
)

// untilCancelled is work that runs until its context ends.
var untilCancelled = work{do: func(ctx context.Context, j *job) (operations.Result, error) {
	j.report(v1alpha1.OperationProgress{DoneBytes: 7})
	<-ctx.Done()
	return operations.Result{}, ctx.Err()
}}

func TestAJobIsStopped(t *testing.T) {
	var all jobs
	all.changed = make(chan event.GenericEvent)
	operation := wanted("op", v1alpha1.PoolAction{})
	if err := all.start(operation, clock.RealClock{}, untilCancelled); err != nil {
		t.Fatal(err)
	}
	if job := all.look(operation.UID); job == nil || !job.Running {
		t.Fatalf("%+v", job)
	}
	all.stop(operation.UID)
	all.stop(operation.UID)
	for range 2 { // its work begins, and ends
		if woken := <-all.changed; woken.Object.GetName() != "op" {
			t.Errorf("woken is %s", woken.Object.GetName())
		}
	}
	if job := all.look(operation.UID); job.Running || !job.Stopped || !errors.Is(job.Err, context.Canceled) || job.Progress.DoneBytes != 7 ||
		job.EndedAt.IsZero() {
		t.Errorf("%+v", job)
	}
	all.stop("unknown")
	all.drop("unknown")
}

func TestNoJobOutlivesTheAgent(t *testing.T) {
	var all jobs
	operation := wanted("op", v1alpha1.PoolAction{})
	if err := all.start(operation, clock.RealClock{}, untilCancelled); err != nil {
		t.Fatal(err)
	}
	all.stopAll()
	if job := all.look(operation.UID); job.Running || job.Stopped {
		t.Errorf("%+v", job)
	}
	if err := all.start(operation, clock.RealClock{}, untilCancelled); err == nil {
		t.Error("a job begins while the agent ends")
	}
}

// TestAHangingJobIsAbandoned: a job that hangs in the kernel does not notice the request to end.
func TestAHangingJobIsAbandoned(t *testing.T) {
	var all jobs
	operation, hangs, told := wanted("op", v1alpha1.PoolAction{}), make(chan struct{}), make(chan struct{})
	defer close(hangs)
	if err := all.start(operation, clock.RealClock{}, work{do: func(ctx context.Context, _ *job) (operations.Result, error) {
		<-ctx.Done()
		close(told)
		<-hangs
		return operations.Result{}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	all.abandon("unknown")
	all.abandon(operation.UID)
	<-told
	if job := all.look(operation.UID); job != nil {
		t.Errorf("%+v", job)
	}
	all.only("op", "")
	all.stopAll()
}
