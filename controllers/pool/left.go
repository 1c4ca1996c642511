package pool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/spelling"
)

// clearLeft clears the labels of disks that have left our live pool. A disk whose label cannot be cleared is remembered, and does not stop
// the work on the pool: a tenant may prevent the agent from finding out who uses a disk, and a failing disk accepts no writes.
func (r *Reconciler) clearLeft(ctx context.Context, state *observed, action pools.Action) error {
	state.cleared = map[string]error{}
	for _, disk := range action.Disks {
		if err := guard.Prove(ctx, r.ZFS, state.Pool, action.GUID); err != nil {
			return err
		}
		err := r.clearLabel(ctx, disk.Path, action.GUID, action.Auxiliary)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if state.cleared[disk.Path] = err; err != nil {
			log.FromContext(ctx).Info("a disk that has left its pool keeps its label for now", "disk", disk.Path, "because", err.Error())
		}
	}
	return nil
}

// remembered returns the disks that have left the pool and may still have a label of it, and words for the message. The status lists them
// after the vdevs of the pool, so that the object continues to claim them and the agent finds them when the object is deleted.
func remembered(state observed, decision pools.Decision) (vdevs []v1alpha1.VdevStatus, words string) {
	var why []string
	for _, left := range decision.Left {
		err, tried := state.cleared[left.Vdev.Name]
		if tried && err == nil {
			continue
		}
		vdevs = append(vdevs, left.Vdev)
		if err != nil {
			left.Why = err.Error()
		}
		if left.Why != "" {
			why = append(why, fmt.Sprintf("%s (%s)", left.Vdev.Name, left.Why))
		}
	}
	if len(why) > 0 {
		words = "; disks that have left the pool and may still have its label: " + objects.SomeOf(why)
	}
	return vdevs[:min(len(vdevs), maxVdevs)], words
}

// tellLost emits an event for each disk whose label stays for good. The status no longer lists these disks.
func (r *Reconciler) tellLost(pool *v1alpha1.BenchmarkPool, decision pools.Decision) {
	for _, what := range decision.Lost {
		r.Recorder.Eventf(pool, nil, corev1.EventTypeWarning, v1alpha1.ReasonPoolLeftBehind, "ClearLabels", "%s", spelling.Shorten(what, 900))
	}
}
