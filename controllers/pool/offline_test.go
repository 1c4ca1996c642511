package pool

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
)

// offlining takes a disk offline.
func offlining() *v1alpha1.PoolOperation {
	return &v1alpha1.PoolOperation{ObjectMeta: metav1.ObjectMeta{Name: "op"},
		Spec: v1alpha1.PoolOperationSpec{NodeName: "node-a", Pool: "bench0", Action: v1alpha1.PoolAction{
			OfflineDevice: &v1alpha1.OfflineDeviceAction{Device: diskA}}}}
}

func (w *world) begin(operation *v1alpha1.PoolOperation, pool *v1alpha1.BenchmarkPool) {
	w.t.Helper()
	operation.Status.StartedAt, operation.Status.PoolUID = &metav1.Time{Time: time.Unix(3000, 0)}, string(pool.UID)
	operation.Status.Handle = fmt.Sprintf("%s %d", pool.Status.GUID, leafGUID(diskA))
	if err := w.client.Update(w.t.Context(), operation); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) end(operation *v1alpha1.PoolOperation) {
	w.t.Helper()
	operation.Status.Outcome = v1alpha1.OutcomeFailed
	if err := w.client.Update(w.t.Context(), operation); err != nil {
		w.t.Fatal(err)
	}
}

// TestARetainedPoolWaitsForItsDisk: without the object, no agent would find the pool to bring its disk back. A user can still release the
// pool, and ZFS is not asked then, because it may hang.
func TestARetainedPoolWaitsForItsDisk(t *testing.T) {
	for _, releases := range []bool{false, true} {
		operation := offlining()
		w := newWorld(t, retained("bench0"), operation)
		pool := w.settle("bench0")
		w.begin(operation, pool)
		w.node.version = "none"
		w.delete(pool)
		waiting := w.settle("bench0")
		w.expectReady(waiting, v1alpha1.ReasonPoolRebuilding)
		if told := w.message(waiting); !strings.Contains(told, "kubectl annotate benchmarkpool bench0") {
			t.Errorf("no way out: %s", told)
		}
		if releases {
			w.release()
		} else {
			w.end(operation)
		}
		if left := w.settle("bench0"); left != nil || w.node.pools[0].destroyed {
			t.Errorf("released: %v: left is %+v", releases, left)
		}
	}
}

// TestADiskThatIsOfflineGoesWithItsPool: the label of an offline disk would still say that the pool is in use, and the next pool would not
// get the disk. A disk that an operation has taken offline does not make its pool unhealthy.
func TestADiskThatIsOfflineGoesWithItsPool(t *testing.T) {
	operation := offlining()
	w := newWorld(t, wanted("bench0"), operation)
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	w.node.pools[0].offline = diskA
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolUnhealthy)
	w.begin(operation, pool)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolRebuilding)
	w.end(operation)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolUnhealthy)

	online := []pools.Action{{Kind: pools.OnlineDisk, GUID: "700", Member: diskA}}
	state, err := w.agent.observe(t.Context(), w.settle("bench0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.agent.act(t.Context(), &state, online); err == nil || w.node.pools[0].offline == "" {
		t.Error("a disk was brought back to a pool that is to stay")
	}
	w.delete(pool)
	w.node.pools[0].datasets["bench0"][naming.PropertyUID] = "uid-other"
	if err := w.agent.act(t.Context(), &state, online); !errors.Is(err, guard.ErrNotOurs) {
		t.Errorf("of another owner: %v", err)
	}
	w.node.pools[0].datasets["bench0"][naming.PropertyUID] = "uid-bench0"
	if left := w.settle("bench0"); left != nil || len(w.node.pools[0].labels) > 0 {
		t.Errorf("left are %+v and labels on %v", left, w.node.pools[0].labels)
	}
}
