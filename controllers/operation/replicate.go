package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// snapshotPrefix returns the prefix of the names of the snapshots that a replication takes.
func snapshotPrefix(operation *v1alpha1.PoolOperation) string {
	const part = 8
	uid := string(operation.UID)
	return "storagebench-" + uid[:min(part, len(uid))] + "-"
}

// observeReplication reads both sides, and what to clean up at the end: our snapshots of the source, and a partial receive.
func (r *Reconciler) observeReplication(ctx context.Context, state *operations.State) error {
	if err := r.lookUp(ctx, state.Live.Name, &state.Source); err != nil {
		return err
	}
	if state.ToLive != nil {
		state.Target.Name = operations.OperationDataset(state.ToPool, state.Operation.Spec.Action.Replicate.To)
		if err := r.lookUp(ctx, state.ToLive.Name, &state.Target); err != nil {
			return err
		}
	}
	if state.Operation.Status.StartedAt == nil || state.Job != nil && state.Job.Running || !state.Source.Exists {
		return nil
	}
	mine, err := r.ownSnapshots(ctx, *state)
	if err != nil {
		return err
	}
	for _, snapshot := range mine {
		state.Leftovers = append(state.Leftovers, snapshot.Name)
	}
	half, err := r.halfReceived(ctx, *state)
	if err == nil && half.begunBy(*state, mine) {
		state.Leftovers = append(state.Leftovers, "a partial receive in "+state.Target.Name)
	}
	return err
}

// ownSnapshots returns the snapshots of the source that this operation took.
func (r *Reconciler) ownSnapshots(ctx context.Context, state operations.State) ([]zfs.Dataset, error) {
	all, err := r.ZFS.Datasets(ctx, state.Source.Name)
	if err != nil {
		return nil, fmt.Errorf("list the snapshots of %s: %w", state.Source.Name, err)
	}
	var mine []zfs.Dataset
	for _, dataset := range all {
		if !strings.HasPrefix(dataset.Name, state.Source.Name+"@"+snapshotPrefix(state.Operation)) {
			continue
		}
		mark, err := r.mark(ctx, dataset.Name)
		if err != nil {
			return nil, err
		}
		if mark == string(state.Operation.UID) {
			mine = append(mine, dataset)
		}
	}
	return mine, nil
}

// proveBoth proves that both pools are ours, and that they are the pools that the operation started with.
func (r *Reconciler) proveBoth(ctx context.Context, state operations.State) error {
	if err := r.prove(ctx, state); err != nil {
		return err
	}
	if state.ToLive == nil {
		return fmt.Errorf("the pool of BenchmarkPool %s is not imported", state.Operation.Spec.Action.Replicate.ToPool)
	}
	if _, toGUID, _ := strings.Cut(state.Operation.Status.Handle, " "); toGUID != state.ToLive.GUID {
		return fmt.Errorf("BenchmarkPool %s has another pool than at the start: %w", state.Operation.Spec.Action.Replicate.ToPool,
			operations.ErrPermanent)
	}
	return retryable(guard.Prove(ctx, r.ZFS, state.ToPool, state.ToLive.GUID))
}

// replication sends one dataset.
type replication struct {
	*Reconciler
	state operations.State
	job   *job
	// sent counts bytes. whole is true if this agent has sent all of them.
	sent  atomic.Int64
	whole bool
	// broken is true if the stream was interrupted, as the spec requests. resent is the number of bytes that were therefore sent twice, or
	// -1 if it is unknown.
	broken bool
	resent int64
}

// replicate sends the dataset and its increments. It does not send again what the target already has, so it continues where an earlier
// agent stopped.
func (r *Reconciler) replicate(ctx context.Context, state operations.State, j *job) (operations.Result, error) {
	action := state.Operation.Spec.Action.Replicate
	if err := r.proveBoth(ctx, state); err != nil {
		return operations.Result{}, err
	}
	sending := &replication{Reconciler: r, state: state, job: j, whole: true}
	for number := int32(0); number <= action.Increments; number++ {
		if err := sending.step(ctx, number); err != nil {
			return operations.Result{}, fmt.Errorf("send %s to %s, part %d of %d: %w", state.Source.Name, state.Target.Name, number+1,
				action.Increments+1, err)
		}
	}
	target := operations.Object{Name: state.Target.Name}
	if err := r.lookUp(ctx, state.ToLive.Name, &target); err != nil {
		return operations.Result{}, retryable(err)
	}
	metrics := []v1alpha1.OperationMetric{{Name: "receivedSnapshots", Value: int64(action.Increments) + 1},
		{Name: "receivedReferencedBytes", Value: target.ReferencedBytes}}
	if sending.whole {
		metrics = append(metrics, v1alpha1.OperationMetric{Name: "sentBytes", Value: sending.sent.Load()})
	}
	if sending.whole && sending.broken && sending.resent >= 0 {
		metrics = append(metrics, v1alpha1.OperationMetric{Name: "resentBytes", Value: sending.resent})
	}
	message := fmt.Sprintf("dataset %s is sent to %s with %d increments", state.Source.Name, state.Target.Name, action.Increments)
	if sending.broken {
		message += "; its stream was broken off once and resumed"
	}
	if !sending.whole {
		message += "; it was interrupted and resumed, so the number of bytes sent is unknown"
	}
	return operations.Result{Message: message, Metrics: metrics}, nil
}

func (s *replication) snapshot(of string, number int32) string {
	return fmt.Sprintf("%s@%s%d", of, snapshotPrefix(s.state.Operation), number)
}

// step sends one snapshot to the target, if it is not there yet.
func (s *replication) step(ctx context.Context, number int32) error {
	uid := string(s.state.Operation.UID)
	source, arrived := operations.Object{Name: s.snapshot(s.state.Source.Name, number)},
		operations.Object{Name: s.snapshot(s.state.Target.Name, number)}
	target := operations.Object{Name: s.state.Target.Name}
	if err := errors.Join(s.lookUp(ctx, s.state.Live.Name, &source), s.lookUp(ctx, s.state.ToLive.Name, &arrived, &target)); err != nil {
		return retryable(err)
	}
	if source.Exists && source.Mark != uid {
		return fmt.Errorf("snapshot %s was not taken by this operation: %w", source.Name, zfs.Exists)
	}
	var half halfReceive
	if target.Exists {
		var err error
		if half, err = s.halfReceived(ctx, s.state); err != nil {
			return err
		}
		// The target did not exist when the operation started. If it has our snapshot, or a part of that, this operation created it.
		whole := source.Exists && arrived.Exists && source.GUID == arrived.GUID
		if target.Mark != uid && !half.is(source) && !whole {
			return fmt.Errorf("dataset %s was not created by this operation: choose another path: %w", target.Name, zfs.Exists)
		}
	}
	if arrived.Exists { // if there is a token, it belongs to a later snapshot
		s.whole = false
		if err := s.check(source, arrived); err != nil {
			return err
		}
		return s.claim(ctx, target)
	}
	if half.token != "" && !half.is(source) {
		return fmt.Errorf("dataset %s has a partial receive of %s (guid %s), which this operation does not send: abort that, or choose another "+
			"path: %w",
			target.Name, half.Snapshot, half.GUID, zfs.Exists)
	}
	if err := s.sendOne(ctx, number, source, half.token); err != nil {
		return err
	}
	if err := s.lookUp(ctx, s.state.ToLive.Name, &target); err != nil {
		return retryable(err)
	}
	return s.claim(ctx, target)
}

// sendOne takes the snapshot if it does not exist, and sends it or, after an interruption, the rest of it.
func (s *replication) sendOne(ctx context.Context, number int32, source operations.Object, token string) error {
	mark := map[string]string{naming.PropertyOperation: string(s.state.Operation.UID)}
	if err := s.proveBoth(ctx, s.state); err != nil {
		return err
	}
	if source.Exists {
		s.whole = false
	} else if err := s.ZFS.Snapshot(ctx, source.Name, false, mark); err != nil {
		return err
	}
	options := zfs.SendOptions{Snapshot: source.Name, Compressed: s.state.Operation.Spec.Action.Replicate.Compressed}
	properties := made(s.state)
	if number > 0 {
		options.From = s.snapshot(s.state.Source.Name, number-1)
		properties = nil
	}
	if token != "" {
		return s.send(ctx, zfs.SendOptions{Token: token}, properties)
	}
	if number > 0 || s.state.Operation.Spec.Action.Replicate.InterruptAt == "" {
		return s.send(ctx, options, properties)
	}
	return s.breakOff(ctx, options, properties)
}

// breakOff sends part of the stream, breaks it off as if the sender had died, and then sends the rest.
func (s *replication) breakOff(ctx context.Context, options zfs.SendOptions, properties map[string]string) error {
	share, err := s.state.Operation.Spec.Action.Replicate.InterruptAt.Percent()
	if err != nil {
		return fmt.Errorf("interruptAt: %w: %w", err, operations.ErrPermanent)
	}
	size, err := s.ZFS.SendSize(ctx, options)
	if err != nil {
		return err
	}
	part := options
	part.BreakAfter = max(int64(share/100*float64(size)), 1)
	if err := s.send(ctx, part, properties); !errors.Is(err, zfs.ErrBrokenOff) {
		return err // the stream was shorter than its estimate, or has failed by itself
	}
	half, err := s.halfReceived(ctx, s.state)
	if err != nil {
		return err
	}
	s.broken, s.resent = true, s.sent.Load()-half.Bytes
	switch {
	case half.token == "": // nothing of the stream has arrived
		return s.send(ctx, options, properties)
	case half.Snapshot != options.Snapshot:
		return fmt.Errorf("the partial receive in %s is of %s, not of %s: %w", s.state.Target.Name, half.Snapshot, options.Snapshot, zfs.Exists)
	case half.Bytes == 0:
		s.resent = -1
	}
	return s.send(ctx, zfs.SendOptions{Token: half.token}, properties)
}

// claim sets the properties and the mark of the target, if the receive has not done so. The mark comes last, because it shows that all
// properties are set.
func (s *replication) claim(ctx context.Context, target operations.Object) error {
	uid := string(s.state.Operation.UID)
	if target.Mark == uid {
		return nil
	}
	if err := s.proveBoth(ctx, s.state); err != nil {
		return err
	}
	for _, name := range []string{"canmount", "mountpoint", naming.PropertyOperation} { // in this order, none of them mounts the target
		value, wanted := made(s.state)[name]
		if !wanted {
			continue
		}
		if err := s.ZFS.SetProperty(ctx, target.Name, name, value); err != nil {
			return err
		}
	}
	return nil
}

// check verifies that the received snapshot equals the sent one. If the source snapshot is gone, this was verified earlier.
func (s *replication) check(source, arrived operations.Object) error {
	if source.Exists && source.GUID != arrived.GUID {
		return fmt.Errorf("%s (guid %s) is not %s (guid %s): %w", arrived.Name, arrived.GUID, source.Name, source.GUID, zfs.Exists)
	}
	return nil
}

// send runs one send and receive, and reports progress. An interruption is not a refusal: it leaves a resume token.
func (s *replication) send(ctx context.Context, options zfs.SendOptions, properties map[string]string) error {
	size, err := s.ZFS.SendSize(ctx, options)
	if err != nil {
		return err
	}
	if err := s.proveBoth(ctx, s.state); err != nil {
		return err
	}
	before := s.sent.Load()
	finished := make(chan struct{})
	defer close(finished)
	tell := func() {
		done := s.sent.Load()
		total := max(before+size, done)
		s.job.report(v1alpha1.OperationProgress{DoneBytes: done, TotalBytes: total, Percent: percent(done, total),
			Message: "sending to " + s.state.Target.Name})
	}
	tell()
	go func() {
		ticks := s.Clock.NewTicker(time.Second)
		defer ticks.Stop()
		for {
			select {
			case <-finished:
				return
			case <-ticks.C():
				tell()
			}
		}
	}()
	err = s.ZFS.Replicate(ctx, options, s.state.Target.Name, properties, &s.sent)
	if errors.Is(err, zfs.BadStream) {
		return retryable(err) // an interrupted stream is bad too
	}
	return err
}

// cleanUpReplication discards our partial receive and destroys our snapshots of the source. Received data stays.
func (r *Reconciler) cleanUpReplication(ctx context.Context, state operations.State) error {
	mine, err := r.ownSnapshots(ctx, state)
	if err != nil {
		return err
	}
	half, err := r.halfReceived(ctx, state)
	if err != nil {
		return err
	}
	if half.begunBy(state, mine) {
		if err := r.proveBoth(ctx, state); err != nil {
			return err
		}
		if err := r.ZFS.AbortReceive(ctx, state.Target.Name); err != nil {
			return err
		}
	}
	for _, snapshot := range mine {
		if err := r.prove(ctx, state); err != nil {
			return err
		}
		if err := r.ZFS.DestroySnapshot(ctx, snapshot.Name, false); err != nil && !errors.Is(err, zfs.NotFound) {
			return err
		}
	}
	return nil
}
