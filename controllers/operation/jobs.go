package operation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/zfs"
)

// jobs are the background jobs of this agent, by the UID of their operation. Each runs in its own goroutine, and ends when its work and all
// programs that the work has started have ended.
type jobs struct {
	mutex sync.Mutex
	all   map[types.UID]*job
	// changed triggers a reconcile of an operation whose job has begun its work or has ended.
	changed chan event.GenericEvent
	closing bool
}

type job struct {
	// name of the operation.
	name string
	// stop requests an early end. cancel enforces it.
	stop   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}

	// working triggers a reconcile once the work itself has begun.
	working func()

	mutex   sync.Mutex
	state   operations.Job
	stopped sync.Once
}

// work is the function that a job runs. It returns early when its context ends. Work that can return a result after an early end watches
// stop instead.
type work struct {
	// graceful says that the work ends by itself after stop.
	graceful bool
	do       func(ctx context.Context, j *job) (operations.Result, error)
}

// report reports the progress of the job.
func (j *job) report(progress v1alpha1.OperationProgress) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.state.Progress == nil {
		go j.working()
	}
	j.state.Progress = &progress
}

// hangs reports that a program of the job hangs in the kernel, although the work has ended.
func (j *job) hangs(err error) {
	message := "waiting for a program that hangs in the kernel and may still take effect"
	if err != nil {
		message += ": " + err.Error()
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	progress := v1alpha1.OperationProgress{}
	if j.state.Progress != nil {
		progress = *j.state.Progress
	}
	progress.Message = spelling.Shorten(message, 256)
	j.state.Progress = &progress
}

// look returns the state of an operation's job, or nil if there is none.
func (j *jobs) look(operation types.UID) *operations.Job {
	j.mutex.Lock()
	found := j.all[operation]
	j.mutex.Unlock()
	if found == nil {
		return nil
	}
	found.mutex.Lock()
	defer found.mutex.Unlock()
	return new(found.state)
}

// start starts a job. It replaces an earlier job of the operation, which has ended.
func (j *jobs) start(operation *v1alpha1.PoolOperation, now clock.PassiveClock, what work) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.closing {
		return errors.New("the agent is about to stop")
	}
	if j.all == nil {
		j.all = map[types.UID]*job{}
	}
	// It outlives the reconcile that starts it.
	ctx, unended := zfs.FollowUnended(context.Background())
	ctx, cancel := context.WithCancel(ctx)
	reference := &v1alpha1.PoolOperation{}
	reference.Name = operation.Name
	begun := &job{name: operation.Name, stop: make(chan struct{}), cancel: cancel, done: make(chan struct{}),
		working: func() { j.announce(reference) }, state: operations.Job{Running: true}}
	j.all[operation.UID] = begun
	if !what.graceful {
		go func() {
			select {
			case <-begun.stop:
				cancel()
			case <-begun.done:
			}
		}()
	}
	go func() {
		result, err := what.do(ctx, begun)
		cancel()
		if unended.Any() { // it may still take effect, such as a disk that goes offline when it responds again
			begun.hangs(err)
			unended.Wait()
		}
		begun.finish(result, err, now.Now())
		j.announce(reference)
	}()
	return nil
}

// keep records the measurements of a finished command as a finished job.
func (j *jobs) keep(operation *v1alpha1.PoolOperation, result operations.Result, at time.Time) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.all == nil {
		j.all = map[types.UID]*job{}
	}
	ended := &job{name: operation.Name, stop: make(chan struct{}), cancel: func() {}, done: make(chan struct{})}
	ended.finish(result, nil, at)
	j.all[operation.UID] = ended
}

func (j *job) finish(result operations.Result, err error, at time.Time) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	select {
	case <-j.stop:
		j.state.Stopped = true
	default:
	}
	j.state.Running, j.state.Result, j.state.Err, j.state.EndedAt = false, result, err, at
	close(j.done)
}

// announce triggers a reconcile, without waiting for it.
func (j *jobs) announce(operation *v1alpha1.PoolOperation) {
	if j.changed == nil {
		return
	}
	const patience = time.Minute // the reconciler also checks periodically
	select {
	case j.changed <- event.GenericEvent{Object: operation}:
	case <-time.After(patience):
	}
}

// stop requests the end of an operation's job.
func (j *jobs) stop(operation types.UID) {
	j.mutex.Lock()
	found := j.all[operation]
	j.mutex.Unlock()
	if found != nil {
		found.stopped.Do(func() { close(found.stop) })
	}
}

// dropPatience is how long a job may take to end. A job that hangs in the kernel is left behind: its context has ended, so it does nothing
// more when it returns from the kernel.
const dropPatience = 30 * time.Second

// drop ends the job of an operation and forgets it.
func (j *jobs) drop(operation types.UID) {
	j.mutex.Lock()
	found := j.all[operation]
	delete(j.all, operation)
	j.mutex.Unlock()
	if found != nil {
		found.end()
	}
}

// end ends a job and waits for it, with a time limit.
func (j *job) end() {
	j.cancel()
	timer := time.NewTimer(dropPatience)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
	}
}

// abandon ends the job of an operation and forgets it, without waiting for one that hangs in the kernel.
func (j *jobs) abandon(operation types.UID) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if found := j.all[operation]; found != nil {
		found.cancel()
	}
	delete(j.all, operation)
}

// only ends the jobs of earlier operations of that name, which no longer exist.
func (j *jobs) only(name string, alive types.UID) {
	j.mutex.Lock()
	var gone []types.UID
	for uid, each := range j.all {
		if each.name == name && uid != alive {
			gone = append(gone, uid)
		}
	}
	j.mutex.Unlock()
	for _, uid := range gone {
		j.drop(uid)
	}
}

// stopAll ends all jobs, waits for them, and returns the operations of the running ones with their progress.
func (j *jobs) stopAll() (interrupted map[string]*v1alpha1.OperationProgress) {
	j.mutex.Lock()
	j.closing = true
	open := slices.Collect(maps.Values(j.all))
	j.mutex.Unlock()
	interrupted = map[string]*v1alpha1.OperationProgress{}
	for _, each := range open {
		select {
		case <-each.done:
			continue
		default:
		}
		each.end()
		each.mutex.Lock()
		interrupted[each.name] = each.state.Progress
		each.mutex.Unlock()
	}
	return interrupted
}

// percent returns 0 if the total is unknown, and at most 99, because the work is unfinished.
func percent(done, whole int64) int32 {
	if whole <= 0 {
		return 0
	}
	return int32(min(100*(float64(done)/float64(whole)), 99))
}
