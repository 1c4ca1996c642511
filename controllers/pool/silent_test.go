package pool

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// hangingNode is a node on which a disk does not respond, or a command does not end.
type hangingNode struct {
	*fakeNode
	mutex sync.Mutex
	// silent are the disks that do not respond until their channel is closed.
	silent map[string]chan struct{}
	asked  atomic.Int32
	// command hangs until the channel until is closed.
	command string
	until   chan struct{}
}

func (n *hangingNode) Answer(path string) error {
	n.mutex.Lock()
	wait := n.silent[path]
	n.mutex.Unlock()
	if wait != nil {
		n.asked.Add(1)
		<-wait
	}
	return nil
}

// waiting reports whether a command waits for a silent disk.
func (n *hangingNode) waiting() bool { return n.asked.Load() > 0 }

func (n *hangingNode) Check(wish host.Wish) (host.Disk, error) {
	if err := n.Answer(wish.Path); err != nil {
		return host.Disk{}, err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.fakeNode.Check(wish)
}

func (n *hangingNode) Run(ctx context.Context, command zfs.Command) ([]byte, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.command != "" && strings.HasPrefix(command.String(), n.command) {
		zfs.NoteUnended(ctx, n.until)
		return nil, &zfs.Error{Kind: zfs.Timeout, Command: command.String(), ExitCode: -1, Err: context.DeadlineExceeded}
	}
	return n.fakeNode.Run(ctx, command)
}

func (n *hangingNode) ran(prefix string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return slices.ContainsFunc(n.all, func(command string) bool { return strings.HasPrefix(command, prefix) })
}

// onDisks is a BenchmarkPool on some disks.
func onDisks(name string, paths ...v1alpha1.DevicePath) *v1alpha1.BenchmarkPool {
	pool := wanted(name)
	pool.Spec.Vdevs[0].Devices = paths
	return pool
}

func (w *world) hanging() (*hangingNode, *guard.Bounded) {
	node := &hangingNode{fakeNode: w.node, silent: map[string]chan struct{}{}}
	looks := &guard.Bounded{Disks: node, Patience: 20 * time.Millisecond}
	w.agent.Disks, w.agent.ZFS, w.agent.Turns = looks, zfs.New(node), &guard.Turns{Patience: 20 * time.Millisecond}
	return node, looks
}

func (n *hangingNode) silence(path string) (heal func()) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	wait := make(chan struct{})
	n.silent[path] = wait
	return func() {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		delete(n.silent, path)
		close(wait)
	}
}

func (w *world) turn(name string) (ctrl.Result, error) {
	return w.agent.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
}

// pollers are the goroutines by which gomega waits.
const pollers = 2

// soon waits until a condition is true.
func soon(t *testing.T, fact func() bool) {
	t.Helper()
	gomega.NewWithT(t).Eventually(fact).WithTimeout(time.Minute).WithPolling(time.Millisecond).Should(gomega.BeTrue())
}

// none waits until no check hangs and no goroutine is left over.
func none(t *testing.T, looks *guard.Bounded, goroutines int) {
	t.Helper()
	soon(t, func() bool { return len(looks.Hanging()) == 0 && runtime.NumGoroutine() <= goroutines+pollers })
}

func message(pool *v1alpha1.BenchmarkPool) string {
	return meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady).Message
}

// TestASilentDiskStopsNoOtherPool: its own pool reports it, ZFS does not search it, and other pools are created and destroyed meanwhile.
func TestASilentDiskStopsNoOtherPool(t *testing.T) {
	before := runtime.NumGoroutine()
	w := newWorld(t, onDisks("stuck", diskA, diskB), onDisks("fine", diskC, diskD))
	node, looks := w.hanging()
	heal := node.silence(diskA)
	for range 20 {
		stuck := w.settle("stuck")
		w.expectReady(stuck, v1alpha1.ReasonPoolDeviceRefused)
		if told := message(stuck); !strings.Contains(told, diskA) || !strings.Contains(told, "respond") || !strings.Contains(told, "unplug it") {
			t.Fatalf("it says %q", told)
		}
	}
	if node.ran("zpool import") || node.ran("zpool create") {
		t.Errorf("ZFS was sent to the silent disk: %q", w.node.all)
	}
	if more := runtime.NumGoroutine() - before; more > 10 || len(looks.Hanging()) != 1 {
		t.Errorf("%d more goroutines, hanging are %v", more, looks.Hanging())
	}
	fine := w.settle("fine")
	w.expectReady(fine, v1alpha1.ReasonPoolReady)
	w.delete(fine)
	if w.settle("fine") != nil {
		t.Error("the other pool is not destroyed")
	}
	heal()
	none(t, looks, before)
	w.expectReady(w.settle("stuck"), v1alpha1.ReasonPoolReady)
}

// TestASilentPoolIsNotDestroyed: the kernel would wait for its disk while it holds the lock on all pools. The pool can be released.
func TestASilentPoolIsNotDestroyed(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	node, looks := w.hanging()
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolReady)
	heal := node.silence(diskB)
	w.delete(pool)
	result, err := w.turn("bench0") // records the guids
	for err == nil && result.RequeueAfter < time.Second {
		result, err = w.turn("bench0")
	}
	if err != nil || result.RequeueAfter != silentRecheck {
		t.Errorf("%v, comes back in %s", err, result.RequeueAfter)
	}
	pool = w.object("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolUnhealthy)
	if told := message(pool); !strings.Contains(told, diskB) ||
		!strings.Contains(told, "kubectl annotate benchmarkpool bench0 storagebench.dev/release-pool=node-a") {
		t.Errorf("it says %q", told)
	}
	if node.ran("zpool destroy") || node.ran("zpool export") || node.ran("zfs unmount") {
		t.Errorf("commands %q", w.node.commands)
	}
	heal()
	soon(t, func() bool { return len(looks.Hanging()) == 0 })
	if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed {
		t.Errorf("after its disk answers again, left are %+v and %+v", left, w.node.pools[0])
	}
}

// TestASilentDiskThatHasLeftKeepsNoPool: an operation has removed the disk because it was dying. The object waits only for its label.
func TestASilentDiskThatHasLeftKeepsNoPool(t *testing.T) {
	w := newWorld(t, withAuxiliaries())
	node, looks := w.hanging()
	pool := w.settle("bench0")
	w.node.pools[0].remove(diskC)
	heal := node.silence(diskC)
	w.settle("bench0")
	w.delete(pool)
	left := w.settle("bench0")
	if !w.node.pools[0].destroyed || left == nil || !strings.Contains(message(left), diskC) {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
	heal()
	soon(t, func() bool { return len(looks.Hanging()) == 0 })
	if left := w.settle("bench0"); left != nil {
		t.Errorf("after its disk answers again, left is %+v", left)
	}
}

// TestASilentPoolIsNotImported: the pool is not imported, and the agent concludes nothing from not finding it.
func TestASilentPoolIsNotImported(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	node, looks := w.hanging()
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolReady)
	w.node.reset()
	w.node.all = nil
	heal := node.silence(diskA)
	pool := w.settle("bench0")
	w.expectReady(pool, v1alpha1.ReasonPoolDeviceRefused)
	w.delete(pool)
	w.expectReady(w.settle("bench0"), v1alpha1.ReasonPoolUnhealthy)
	if node.ran("zpool import") || w.node.pools[0].destroyed {
		t.Errorf("commands %q", w.node.all)
	}
	heal()
	soon(t, func() bool { return len(looks.Hanging()) == 0 })
	if left := w.settle("bench0"); left != nil || !w.node.pools[0].destroyed {
		t.Errorf("left are %+v and %+v", left, w.node.pools[0])
	}
}

// TestAStuckPoolIsReleased: it is released at once, while its worker waits for a disk and holds the turn. No disk is checked and no command
// runs.
func TestAStuckPoolIsReleased(t *testing.T) {
	w := newWorld(t, wanted("bench0"))
	node, looks := w.hanging()
	w.delete(w.settle("bench0"))
	looks.Patience = time.Hour
	heal := node.silence(diskA)
	stuck := make(chan error)
	go func() {
		for {
			result, err := w.turn("bench0")
			if err != nil || result.RequeueAfter != 10*time.Millisecond {
				stuck <- err
				return
			}
		}
	}()
	soon(t, func() bool { return len(w.agent.Turns.Held()) == 1 && node.waiting() })
	node.mutex.Lock()
	commands := len(w.node.all)
	node.mutex.Unlock()
	w.release()
	begun := time.Now()
	if _, err := w.turn("bench0"); err != nil {
		t.Fatal(err)
	}
	if spent := time.Since(begun); spent > 5*time.Second {
		t.Errorf("the release took %s", spent)
	}
	node.mutex.Lock()
	if len(w.node.all) != commands || len(w.node.folders) > 0 || w.node.pools[0].destroyed {
		t.Errorf("commands %q, folders %q", w.node.all[commands:], w.node.folders)
	}
	node.mutex.Unlock()
	heal()
	if err := <-stuck; err == nil {
		t.Error("the worker that was stuck did not notice that its object has been released")
	}
	if w.settle("bench0") != nil || w.node.pools[0].destroyed || !w.node.pools[0].imported {
		t.Errorf("left is %+v: the pool that was released is to stay", w.node.pools[0])
	}
}

// TestAHangingCommandKeepsItsDisks: a hanging 'zpool create' may still take its disks hours later. Another pool on these disks waits,
// others do not.
func TestAHangingCommandKeepsItsDisks(t *testing.T) {
	rival := onDisks("rival", diskA, "/dev/disk/by-id/e")
	rival.CreationTimestamp = metav1.NewTime(time.Unix(10, 0)) // it has the better claim
	w := newWorld(t, onDisks("stuck", diskA, diskB), onDisks("fine", diskC, diskD))
	node, _ := w.hanging()
	node.command, node.until = "zpool create", make(chan struct{})
	if _, err := w.turn("stuck"); !errors.Is(err, zfs.Timeout) {
		t.Fatal(err)
	}
	node.mutex.Lock()
	node.command = ""
	node.mutex.Unlock()
	if err := w.client.Create(t.Context(), rival); err != nil {
		t.Fatal(err)
	}
	result, err := w.turn("rival")
	if err != nil || result.RequeueAfter != busyRecheck || node.ran("zpool create") {
		t.Fatalf("%v, comes back in %s; commands %q", err, result.RequeueAfter, w.node.commands)
	}
	waiting := w.object("rival")
	w.expectReady(waiting, v1alpha1.ReasonActionFailed)
	if told := message(waiting); !strings.Contains(told, "waiting for BenchmarkPool stuck, which has been using") {
		t.Errorf("it says %q", told)
	}
	w.expectReady(w.settle("fine"), v1alpha1.ReasonPoolReady)
	close(node.until)
	soon(t, func() bool { return len(w.agent.Turns.Held()) == 0 })
	w.expectReady(w.settle("rival"), v1alpha1.ReasonPoolReady)
	w.expectReady(w.settle("stuck"), v1alpha1.ReasonPoolConflict)
}

// TestOnlyGrantedDisksAreLookedOn: with a folder behind -d, zpool would open every disk of the node.
func TestOnlyGrantedDisksAreLookedOn(t *testing.T) {
	w := newWorld(t, wanted("bench0"), onDisks("denied", "/dev/disk/by-id/other"))
	w.agent.Policy = w.agent.Policy[:0]
	w.expectReady(w.settle("denied"), v1alpha1.ReasonPoolDeviceDenied)
	for _, command := range w.node.all {
		if strings.HasPrefix(command, "zpool import") {
			t.Errorf("%s", command)
		}
	}
}
