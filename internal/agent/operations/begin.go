package operations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/operate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// obstacle says why an operation cannot start, permanently or temporarily.
type obstacle struct {
	final           bool
	reason, message string
	// before says that the operation has, or may have, run before.
	before bool
	// recheck is when to check again if no watch reports a change.
	recheck time.Duration
}

func waits(reason string, recheck time.Duration, format string, values ...any) *obstacle {
	return &obstacle{reason: reason, message: fmt.Sprintf(format, values...), recheck: recheck}
}

// isMeant refuses to destroy an object with another guid than in the spec. An unknown guid counts as another one.
func isMeant(meant v1alpha1.GUID, what, guid string) *obstacle {
	switch {
	case meant == "" || string(meant) == guid:
		return nil
	case guid == "":
		return refuses(v1alpha1.ReasonNotSupported,
			"the ZFS of this node does not report the guid of %s, so it may not be the one with guid %s: "+
				"update to OpenZFS 2.3, or remove guid", what, meant)
	}
	return refuses(v1alpha1.ReasonGUIDMismatch,
		"%s has guid %s, but the spec names guid %s: create another PoolOperation for the existing object", what, guid, meant)
}

func refuses(reason, format string, values ...any) *obstacle {
	return &obstacle{final: true, reason: reason, message: fmt.Sprintf(format, values...)}
}

// lateOperation ends an operation of any kind that did not start in time: an object that it was to destroy may have become valuable since.
func lateOperation(state State) Decision {
	if state.Operation.Spec.Cancel {
		return cancelledOperation()
	}
	message := fmt.Sprintf("it did not start within its deadline of %s, and nothing was done: if it is still needed, create another "+
		"PoolOperation, with a longer spec.deadline",
		state.deadline())
	if waited := meta.FindStatusCondition(state.Operation.Status.Conditions, v1alpha1.ConditionReady); waited != nil && waited.Message != "" {
		message += "; last seen: " + waited.Message
	}
	return Decision{Outcome: v1alpha1.OutcomeFailed, Reason: v1alpha1.ReasonDeadlineExceeded, Message: message}
}

func cancelledOperation() Decision {
	return Decision{Outcome: v1alpha1.OutcomeCancelled, Reason: v1alpha1.ReasonCancelled, Message: "cancelled before it started"}
}

// waitingOperation starts the operation as soon as nothing prevents it.
func waitingOperation(state State) Decision {
	if state.Operation.Spec.Cancel {
		return cancelledOperation()
	}
	kind := state.kind()
	detail, obstacle := "", state.queueObstacle()
	if obstacle == nil {
		obstacle = state.poolObstacle(kind)
	}
	if obstacle == nil {
		obstacle = state.replayed()
	}
	if obstacle == nil {
		detail, obstacle = kind.begin(state)
	}
	switch {
	case obstacle == nil:
		return Decision{Begin: true, Handle: strings.TrimSpace(state.Live.GUID + " " + detail), Attempts: state.attempts(),
			Reason:  v1alpha1.ReasonOperationRunning,
			Message: "begins", Progress: kind.total(state), Actions: []Action{{Kind: AddOperationFinalizer}}, Recheck: pools.AtOnce}
	case obstacle.final:
		message := obstacle.message
		if !obstacle.before {
			message += "; nothing was done"
		}
		return Decision{Outcome: v1alpha1.OutcomeFailed, Reason: obstacle.reason, Message: message}
	}
	return Decision{Reason: obstacle.reason, Message: obstacle.message, Recheck: obstacle.recheck}
}

// poolObstacle requires the pools to exist, to be ours and to be in order.
func (s State) poolObstacle(kind traits) *obstacle {
	if foreign := s.foreignPool(s.Pool, s.ToPool); foreign != nil {
		return foreign
	}
	if another := s.anotherPool(); another != nil {
		return another
	}
	if problem := s.notReady(s.Operation.Spec.Pool, s.Pool, s.Live, kind); problem != nil {
		return problem
	}
	if to := operate.ToPool(&s.Operation.Spec.Action); to != "" {
		return s.notReady(to, s.ToPool, s.ToLive, traits{})
	}
	return nil
}

// foreignPool refuses pools that were not created for the namespace of the operation's run. The manager creates no such operation. If a
// tenant managed to create one, it still must not reach the pools of others.
func (s State) foreignPool(pools ...*v1alpha1.BenchmarkPool) *obstacle {
	namespace := s.Operation.Labels[v1alpha1.LabelNamespace]
	for _, pool := range pools {
		if namespace != "" && pool != nil && pool.Spec.Namespace != namespace {
			return refuses(v1alpha1.ReasonPoolNotAllowed,
				"BenchmarkPool %s was not created for namespace %s, to which the run of this operation belongs: use a pool of that namespace",
				pool.Name, namespace)
		}
	}
	return nil
}

// Seen returns the UIDs of the BenchmarkPools that the action names, as they were when first seen. A UID is empty until a BenchmarkPool of
// that name exists.
func (s State) Seen() (pool, toPool string) {
	first := func(recorded string, now *v1alpha1.BenchmarkPool) string {
		if recorded == "" && now != nil {
			return string(now.UID)
		}
		return recorded
	}
	return first(s.Operation.Status.PoolUID, s.Pool), first(s.Operation.Status.ToPoolUID, s.ToPool)
}

// anotherPool refuses BenchmarkPools that were recreated under the same name while the operation waited: the request was not meant
// for them, and their data may be valuable.
func (s State) anotherPool() *obstacle {
	refuse := func(name, seen string, now *v1alpha1.BenchmarkPool) *obstacle {
		if seen == "" || now != nil && string(now.UID) == seen {
			return nil
		}
		instead := "no pool has that name now"
		if now != nil {
			instead = fmt.Sprintf("the pool of that name now has UID %s", now.UID)
		}
		return refuses(v1alpha1.ReasonPoolLost,
			"BenchmarkPool %s with UID %s, which this operation waited for, is gone, and %s: create another PoolOperation for the existing pool",
			name, seen, instead)
	}
	if another := refuse(s.Operation.Spec.Pool, s.Operation.Status.PoolUID, s.Pool); another != nil {
		return another
	}
	if to := operate.ToPool(&s.Operation.Spec.Action); to != "" {
		return refuse(to, s.Operation.Status.ToPoolUID, s.ToPool)
	}
	return nil
}

func (s State) notReady(name string, pool *v1alpha1.BenchmarkPool, live *Pool, kind traits) *obstacle {
	not := func(format string, values ...any) *obstacle {
		return waits(v1alpha1.ReasonPoolNotReady, 0, "waiting for BenchmarkPool "+name+": "+format, values...)
	}
	if pool == nil {
		return not("it does not exist")
	}
	if pool.Spec.NodeName != s.Operation.Spec.NodeName {
		return not("it is on node %s, this operation is for node %s", pool.Spec.NodeName, s.Operation.Spec.NodeName)
	}
	if !pool.DeletionTimestamp.IsZero() {
		return not("it is being deleted")
	}
	if older := olderSpec(pool, live); older != "" { // a restored status may still say that the pool is ready
		return waits(v1alpha1.ReasonPoolOlderSpec, operationSoon, "%s", older)
	}
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != pool.Generation {
		return not("its agent has not reconciled it yet")
	}
	// PoolDisksDiffer, as after an operation that changed the disks, means that everything else is in order. An operation that changes disks
	// may also repair the drift.
	allowed := []string{v1alpha1.ReasonPoolDisksDiffer}
	if kind.disks {
		allowed = append(allowed, v1alpha1.ReasonPoolDrifted)
	}
	if kind.unhealthy {
		allowed = append(allowed, v1alpha1.ReasonPoolUnhealthy, v1alpha1.ReasonPoolRebuilding)
	}
	if ready.Status != metav1.ConditionTrue && !slices.Contains(allowed, ready.Reason) {
		return not("%s: %s", ready.Reason, ready.Message)
	}
	if live == nil {
		// The status of the pool will soon report this.
		return waits(v1alpha1.ReasonPoolNotReady, operationSoon, "waiting for BenchmarkPool %s: its pool is not imported", name)
	}
	if live.ReadOnly {
		return waits(v1alpha1.ReasonPoolNotReady, operationSoon, "waiting for BenchmarkPool %s: its pool is imported read-only", name)
	}
	return nil
}

// Queued reports whether an operation that has not started waits for another one. It needs only the Operation and the Others.
func (s State) Queued() bool { return s.queueObstacle() != nil }

// queueObstacle lets only one operation at a time change a pool, oldest first, and only one at a time set a given module parameter.
func (s State) queueObstacle() *obstacle {
	for i := range s.Others {
		other := &s.Others[i]
		if other.UID == s.Operation.UID || other.Status.Outcome != "" || !collide(s.Operation, other) || !before(other, s.Operation) {
			continue
		}
		return waits(v1alpha1.ReasonQueued, 0, "waiting for PoolOperation %s, which is older", other.Name)
	}
	return nil
}

// before reports whether the first operation has to run before the second one, which has not started.
func before(a, b *v1alpha1.PoolOperation) bool {
	if a.Status.StartedAt != nil {
		return true
	}
	if !a.DeletionTimestamp.IsZero() {
		return false
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// collide reports whether two operations must not run at the same time.
func collide(a, b *v1alpha1.PoolOperation) bool {
	if first, second := a.Spec.Action.ModuleParameter, b.Spec.Action.ModuleParameter; first != nil && second != nil {
		return first.Name == second.Name
	}
	if kindOf(a.Spec.Action).concurrent || kindOf(b.Spec.Action).concurrent {
		return false
	}
	pools := poolsOf(b)
	return slices.ContainsFunc(poolsOf(a), func(pool string) bool { return slices.Contains(pools, pool) })
}

func poolsOf(operation *v1alpha1.PoolOperation) []string {
	pools := []string{operation.Spec.Pool}
	if to := operate.ToPool(&operation.Spec.Action); to != "" {
		pools = append(pools, to)
	}
	return pools
}
