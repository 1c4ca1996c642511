package benchmark

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// crowd is a cluster in which benchmarks get a turn only if a watch or a deadline wakes them.
type crowd struct {
	t      *rapid.T
	now    time.Time
	limits experiment.Limits
	index  *line.Index
	// exist are the benchmarks as the API server has them, shown are those that the watch has delivered.
	exist, shown map[types.NamespacedName]*v1alpha1.StorageBenchmark
	leases       map[string]experiment.LeaseState
	slots        map[types.NamespacedName][]design.Slot
	// benchmarkEvents and leaseEvents are the events that the watches have not delivered yet. due are the benchmarks whose turn has come.
	benchmarkEvents, leaseEvents []func()
	due, later                   map[types.NamespacedName]bool
	// places are the benchmarks that only get a new place.
	places, delayed        map[types.NamespacedName]bool
	turns, served, written int
}

func newCrowd(t *rapid.T) *crowd {
	limits := []experiment.Limits{{}, {BenchmarksPerNamespace: 1}, {BenchmarksPerNamespace: 2, NodesPerNamespace: 4}, {NodesPerNamespace: 4},
		{QueueWeights: map[string]int32{"a": 3}, MaxPriority: map[string]int32{"b": 2}}}[rapid.IntRange(0, 4).Draw(t, "limits")]
	c := &crowd{t: t, now: noon, limits: limits, index: line.New(limits), exist: map[types.NamespacedName]*v1alpha1.StorageBenchmark{},
		shown: map[types.NamespacedName]*v1alpha1.StorageBenchmark{}, leases: map[string]experiment.LeaseState{},
		slots: map[types.NamespacedName][]design.Slot{}, due: map[types.NamespacedName]bool{}, later: map[types.NamespacedName]bool{},
		places: map[types.NamespacedName]bool{}, delayed: map[types.NamespacedName]bool{}}
	for i := range rapid.IntRange(2, 14).Draw(t, "benchmarks") {
		c.create(i)
	}
	return c
}

var crowdNodes = []string{"n1", "n2", "n3", "n4"}

// create adds a benchmark that wants some nodes.
func (c *crowd) create(i int) {
	wish := slices.DeleteFunc(slices.Clone(crowdNodes), func(string) bool { return rapid.Bool().Draw(c.t, "not wanted") })
	if len(wish) == 0 {
		wish = crowdNodes[:1]
	}
	benchmark := &v1alpha1.StorageBenchmark{
		ObjectMeta: metav1.ObjectMeta{Namespace: []string{"a", "b"}[i%2], Name: fmt.Sprint("b", i), UID: types.UID(fmt.Sprint("uid-", i)),
			Finalizers: []string{v1alpha1.FinalizerTeardown}, CreationTimestamp: metav1.Time{Time: noon.Add(time.Duration(i) * time.Second)}},
		Spec:   v1alpha1.StorageBenchmarkSpec{Priority: rapid.Int32Range(0, 2).Draw(c.t, "priority"), Repetitions: 1},
		Status: v1alpha1.StorageBenchmarkStatus{NodeName: experiment.JoinNodes(wish), NodeNames: wish, Experiment: "0a1b2c3d"}}
	key := client.ObjectKeyFromObject(benchmark)
	c.slots[key] = []design.Slot{{Variant: "v", Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
		Dataset: &v1alpha1.DatasetTemplate{Provisioner: "Local"}, Nodes: v1alpha1.NodeChoice{Count: int32(len(wish))}}}}}
	c.write(key, benchmark)
}

// write changes a benchmark, or deletes it, and lets the watch show it later.
func (c *crowd) write(key types.NamespacedName, benchmark *v1alpha1.StorageBenchmark) {
	c.exist[key] = benchmark
	if benchmark == nil {
		delete(c.exist, key)
	}
	c.benchmarkEvents = append(c.benchmarkEvents, func() {
		before := c.shown[key]
		if c.shown[key] = benchmark; benchmark == nil {
			delete(c.shown, key)
			c.wake(c.index.Remove(string(before.UID)))
			return
		}
		if before == nil || ownChange().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: benchmark}) {
			c.due[key] = true
		}
		c.wake(c.index.Put(EntryOf(benchmark, c.limits)))
		if before != nil && (&Reconciler{Limits: c.limits}).mayExceed(before, benchmark) {
			c.delayed[key] = true
		}
	})
}

func (c *crowd) wake(keys []types.NamespacedName) {
	for _, key := range keys {
		if c.index.Urgency(key) == line.Behind {
			c.places[key] = true
			continue
		}
		c.due[key] = true
	}
}

// writePlaces writes the new places, as far as the watch has delivered the last versions.
func (c *crowd) writePlaces() {
	for key := range c.places {
		benchmark := c.shown[key]
		if benchmark != c.exist[key] {
			continue // a conflict: another attempt follows
		}
		delete(c.places, key)
		if benchmark == nil {
			continue
		}
		status, moved := (&Reconciler{Line: c.index, Limits: c.limits}).movedStatus(benchmark)
		if moved && !kstatus.Same(benchmark.Status, status) {
			observed, quiet := c.observed(key), len(c.benchmarkEvents)+len(c.leaseEvents) == 0 && !c.due[key] && !c.delayed[key]
			if quiet {
				c.written++
			}
			if want := summarise(observed, experiment.Plan(observed.State)); quiet && !kstatus.Same(status, want) {
				c.t.Fatalf("%s gets the place %+v, want %+v", key, status, want)
			}
			changed := benchmark.DeepCopy()
			changed.Status = status
			c.write(key, changed)
		}
	}
}

func (c *crowd) setLease(node string, lease *experiment.LeaseState) {
	if lease == nil {
		delete(c.leases, node)
		c.leaseEvents = append(c.leaseEvents, func() { c.wake(c.index.RemoveLease(node)) })
		return
	}
	c.leases[node] = *lease
	c.leaseEvents = append(c.leaseEvents, func() { c.wake(c.index.PutLease(*lease)) })
}

// show lets one of the watches deliver its next event. It reports whether there was one.
func (c *crowd) show() bool {
	events := []*[]func(){&c.benchmarkEvents, &c.leaseEvents}
	if rapid.Bool().Draw(c.t, "lease first") {
		slices.Reverse(events)
	}
	for _, some := range events {
		if len(*some) > 0 {
			first := (*some)[0]
			*some = (*some)[1:]
			first()
			return true
		}
	}
	return false
}

// observed is what the controller would observe.
func (c *crowd) observed(key types.NamespacedName) *observation {
	benchmark := c.exist[key]
	uid, wanted := string(benchmark.UID), experiment.StatusNodes(benchmark.Status)
	observed := &observation{State: experiment.State{Now: c.now, Benchmark: benchmark, Experiment: "0a1b2c3d", Slots: c.slots[key],
		Limits: c.limits, Leases: c.index.Leases(uid), Waiting: c.index.Ahead(uid, wanted)}}
	if c.limits.PerNamespace() {
		observed.Neighbours = c.index.Neighbours(uid, key.Namespace)
	}
	for _, node := range crowdNodes {
		observed.Nodes = append(observed.Nodes, experiment.NodeState{Name: node})
		if lease, held, _ := c.index.Lease(node); held && lease.Holder != uid && slices.Contains(wanted, node) {
			observed.Leases = append(observed.Leases, lease)
		}
	}
	return observed
}

// turn is one turn of the controller. A benchmark that holds all of its nodes finishes and releases them.
func (c *crowd) turn(key types.NamespacedName) {
	c.turns++
	delete(c.due, key)
	benchmark := c.exist[key]
	if benchmark == nil {
		return
	}
	c.now = c.now.Add(time.Second)
	observed := c.observed(key)
	decision := experiment.Plan(observed.State)
	if decision.Position != experiment.PositionQueued && decision.Reason != v1alpha1.ReasonNamespaceLimit {
		c.finish(key, benchmark)
		return
	}
	if experiment.Joins(observed.State, decision) {
		entry := EntryOf(benchmark, c.limits)
		entry.Nodes = decision.NodeNames
		observed.Turn = c.index.Turn(entry)
	}
	for _, action := range decision.Actions {
		held, taken := c.leases[action.Node]
		switch {
		case action.Kind == experiment.TakeLease && !taken:
			c.setLease(action.Node, &experiment.LeaseState{Node: action.Node, Holder: string(benchmark.UID), HolderName: key.String(),
				Turn: turnOf(benchmark)})
		case action.Kind == experiment.ReleaseLease && held.Holder == string(benchmark.UID):
			c.setLease(action.Node, nil)
		}
	}
	c.later[key] = !decision.WakeAt.IsZero()
	if status := summarise(observed, decision); !kstatus.Same(benchmark.Status, status) {
		changed := benchmark.DeepCopy()
		changed.Status = status
		c.write(key, changed)
	}
}

func (c *crowd) finish(key types.NamespacedName, benchmark *v1alpha1.StorageBenchmark) {
	for _, node := range experiment.StatusNodes(benchmark.Status) {
		if c.leases[node].Holder != string(benchmark.UID) {
			c.due[key] = true // a Lease was lost, and the watch has not shown it
			return
		}
	}
	for _, node := range experiment.StatusNodes(benchmark.Status) {
		c.setLease(node, nil)
	}
	c.served++
	c.write(key, nil)
}

// pick chooses a benchmark whose turn is due.
func (c *crowd) pick() (types.NamespacedName, bool) {
	due := slices.SortedFunc(maps.Keys(c.due), func(a, b types.NamespacedName) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	if len(due) == 0 {
		return types.NamespacedName{}, false
	}
	return rapid.SampledFrom(due).Draw(c.t, "turn"), true
}

// TestWokenEnough: although each change wakes only a few benchmarks, and late, every benchmark gets all of its nodes.
func TestWokenEnough(t *testing.T) {
	served, places := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t)
		for c.turns < 3000 {
			if rapid.IntRange(0, 60).Draw(t, "loss") == 0 && c.turns < 200 {
				if node := rapid.SampledFrom(crowdNodes).Draw(t, "lost"); c.leases[node].Node != "" {
					c.setLease(node, nil)
				}
			}
			key, due := c.pick()
			switch {
			case len(c.places) > 0 && rapid.IntRange(0, 9).Draw(t, "places") == 0:
				c.writePlaces()
			case due && (rapid.Bool().Draw(t, "a turn first") || len(c.benchmarkEvents)+len(c.leaseEvents) == 0):
				c.turn(key)
			case c.show():
			case len(c.delayed) > 0:
				maps.Copy(c.due, c.delayed)
				clear(c.delayed)
			case len(c.places) > 0:
				c.writePlaces()
			default:
				if len(c.exist) == 0 {
					served, places = served+c.served, places+c.written
					return
				}
				for key, waits := range c.later {
					c.due[key] = waits && c.exist[key] != nil
				}
				maps.DeleteFunc(c.due, func(_ types.NamespacedName, due bool) bool { return !due })
				clear(c.later)
				if len(c.due) == 0 {
					t.Fatalf("none is woken, and %d of %d still wait: %s", len(c.exist), len(c.slots), c.tell())
				}
			}
		}
		t.Fatalf("no end after %d turns: %s", c.turns, c.tell())
	})
	if served < 100 || places < 10 {
		t.Errorf("only %d benchmarks were served, and %d new places were written: nothing is shown", served, places)
	}
}

func (c *crowd) tell() (text string) {
	for key, benchmark := range c.exist {
		text += fmt.Sprintf("\n%s wants %v: %s %+v", key, experiment.StatusNodes(benchmark.Status), benchmark.Status.State, benchmark.Status.Queue)
	}
	return text + fmt.Sprintf("\nLeases %v", c.leases)
}
