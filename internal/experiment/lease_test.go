package experiment

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// contest is a set of benchmarks that want several nodes each, with their views of each other, which may be outdated.
type contest struct {
	t      *rapid.T
	now    time.Time
	wishes [][]string
	status []v1alpha1.StorageBenchmarkStatus
	leases map[string]string
	// seen are views from some moves ago.
	seen []view
	// had are the benchmarks that have held all of their nodes, in the order in which they did.
	had []int
	// limits apply to each of the two namespaces.
	limits Limits
	most   map[string]int
	told   []bool // whether its namespace has no share left
	// fresh is true if all views are up to date, strict if they always have been.
	fresh, strict bool
}

type view struct {
	status []v1alpha1.StorageBenchmarkStatus
	leases map[string]string
}

func newContest(t *rapid.T, fresh bool) *contest {
	c := &contest{t: t, now: runstest.Noon, leases: map[string]string{}, fresh: fresh, strict: fresh}
	nodes := []string{"n1", "n2", "n3", "n4"}
	for range rapid.IntRange(2, 6).Draw(t, "benchmarks") {
		var wish []string
		for _, node := range nodes {
			if rapid.Bool().Draw(t, node) {
				wish = append(wish, node)
			}
		}
		if len(wish) == 0 {
			wish = nodes[:1]
		}
		c.wishes, c.status = append(c.wishes, wish), append(c.status, v1alpha1.StorageBenchmarkStatus{})
	}
	c.told, c.most = make([]bool, len(c.wishes)), map[string]int{}
	c.limits = []Limits{{}, {BenchmarksPerNamespace: 1}, {BenchmarksPerNamespace: 2, NodesPerNamespace: 4},
		{NodesPerNamespace: 4}}[rapid.IntRange(0, 3).Draw(t, "limits")]
	return c
}

func (c *contest) uid(i int) string { return fmt.Sprintf("uid-%d", i) }

// benchmark returns benchmark i. The benchmarks are alternately in one of two namespaces, and were created in the order of their numbers.
func (c *contest) benchmark(i int) *v1alpha1.StorageBenchmark {
	return &v1alpha1.StorageBenchmark{Status: c.status[i], ObjectMeta: metav1.ObjectMeta{
		Namespace: []string{"a", "b"}[i%2], UID: types.UID(c.uid(i)),
		CreationTimestamp: metav1.Time{Time: runstest.Noon.Add(time.Duration(i) * time.Second)}}}
}

// neighbours returns the other benchmarks of the namespace that are not served yet.
func (c *contest) neighbours(i int, old view) (neighbours []Neighbour) {
	for k := i % 2; k < len(c.wishes); k += 2 {
		holds := slices.Contains(slices.Collect(maps.Values(old.leases)), c.uid(k))
		if k == i || slices.Contains(c.had, k) && !holds {
			continue
		}
		neighbour := Neighbour{UID: c.uid(k), Name: c.uid(k), Created: c.benchmark(k).CreationTimestamp.Time, Holds: holds,
			Nodes: len(c.wishes[k])}
		if queue := old.status[k].Queue; queue != nil {
			neighbour.Since = &queue.Since.Time
		}
		if holds || neighbour.Since != nil || c.told[k] {
			neighbours = append(neighbours, neighbour)
		}
	}
	return neighbours
}

// state is the view of a benchmark: its own current status, and a possibly outdated view of the others and the Leases.
func (c *contest) state(i int) (State, Decision) {
	old := view{status: c.status, leases: c.leases}
	if !c.fresh && len(c.seen) > 0 {
		old = c.seen[len(c.seen)-1-rapid.IntRange(0, min(4, len(c.seen)-1)).Draw(c.t, "lag")]
	}
	state := State{Now: c.now, Benchmark: c.benchmark(i), Limits: c.limits, Neighbours: c.neighbours(i, old),
		Slots: []design.Slot{{Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Nodes: v1alpha1.NodeChoice{Count: int32(len(c.wishes[i]))}}}}}}
	for _, node := range []string{"n1", "n2", "n3", "n4"} {
		if holder := old.leases[node]; holder == c.uid(i) || holder != "" && slices.Contains(c.wishes[i], node) {
			state.Leases = append(state.Leases, LeaseState{Node: node, Holder: holder, HolderName: holder})
		}
	}
	for k, status := range old.status {
		shared := slices.ContainsFunc(c.wishes[k], func(node string) bool { return slices.Contains(c.wishes[i], node) })
		if k != i && shared && status.Queue != nil {
			state.Waiting = append(state.Waiting, Place{UID: c.uid(k), Turn: status.Queue.Turn, Since: status.Queue.Since.Time})
		}
	}
	return state, Decision{NodeNames: c.wishes[i]}
}

// turn is one reconciliation of a benchmark. A benchmark that has all of its nodes finishes at once.
func (c *contest) turn(i int) {
	if slices.Contains(c.had, i) {
		return
	}
	c.now = c.now.Add(time.Second)
	state, decision := c.state(i)
	c.told[i] = stepShare(state, &decision)
	waits := c.told[i] || stepLease(state, &decision)
	for _, action := range decision.Actions {
		holder := c.leases[action.Node]
		switch {
		case action.Kind == TakeLease && holder == "": // otherwise creating it fails with AlreadyExists
			c.leases[action.Node] = c.uid(i)
		case action.Kind == ReleaseLease && holder == c.uid(i): // otherwise it is not ours any more
			delete(c.leases, action.Node)
		}
	}
	status := v1alpha1.StorageBenchmarkStatus{NodeNames: c.wishes[i]}
	if decision.InLine {
		status.Queue = &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(c.now), Turn: rapid.Int64Range(0, 3).Draw(c.t, "place")}
		if c.status[i].Queue != nil {
			status.Queue = c.status[i].Queue
		}
	}
	c.remember()
	c.count()
	if has := c.has(i); !waits && slices.Equal(has, c.wishes[i]) {
		c.inOrder(i)
		c.had = append(c.had, i)
		for _, node := range has {
			delete(c.leases, node)
		}
	} else if waits {
		c.status[i] = status
		return
	}
	if slices.Contains(c.had, i) {
		c.status[i] = v1alpha1.StorageBenchmarkStatus{}
	}
}

// count notes how many nodes a namespace has had at once.
func (c *contest) count() {
	nodes := map[string]int{}
	for _, holder := range c.leases {
		for i := range c.wishes {
			if c.uid(i) == holder {
				nodes[c.benchmark(i).Namespace]++
			}
		}
	}
	for namespace, count := range nodes {
		if c.most[namespace] = max(c.most[namespace], count); c.strict && c.limits.NodesPerNamespace > 0 && count > c.limits.NodesPerNamespace {
			c.t.Fatalf("namespace %s has %d nodes at once", namespace, count)
		}
	}
}

func (c *contest) has(i int) []string {
	var has []string
	for _, node := range []string{"n1", "n2", "n3", "n4"} {
		if c.leases[node] == c.uid(i) {
			has = append(has, node)
		}
	}
	return has
}

func (c *contest) remember() {
	leases := map[string]string{}
	for node, holder := range c.leases {
		leases[node] = holder
	}
	c.seen = append(c.seen, view{slices.Clone(c.status), leases})
}

// inOrder checks that, with complete views, no benchmark is served before another one that joined a common queue earlier and is ahead of it
// there.
func (c *contest) inOrder(i int) {
	for k, status := range c.status {
		shared := slices.ContainsFunc(c.wishes[k], func(node string) bool { return slices.Contains(c.wishes[i], node) })
		if c.strict && k != i && shared && status.Queue != nil && status.Queue.Since.Before(&c.status[i].Queue.Since) &&
			PlaceOf(c.benchmark(k), c.limits).Before(PlaceOf(c.benchmark(i), c.limits)) {
			c.t.Fatalf("benchmark %d had %v before benchmark %d, which is before it in the queue", i, c.wishes[i], k)
		}
	}
}

// TestEverybodyGetsNodes: whatever nodes each benchmark wants, however outdated the views are, and even if Leases are taken away, each
// benchmark finally gets all of its nodes. No benchmark ever has all of them while another holds one, because a Lease has one holder.
func TestEverybodyGetsNodes(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		explore(t, "2000", func(t *rapid.T) {
			c := newContest(t, fresh)
			for range rapid.IntRange(0, 40).Draw(t, "moves") {
				c.turn(rapid.IntRange(0, len(c.wishes)-1).Draw(t, "turn"))
				if !fresh && rapid.IntRange(0, 9).Draw(t, "loss") == 0 {
					delete(c.leases, rapid.SampledFrom([]string{"n1", "n2", "n3", "n4"}).Draw(t, "lost"))
				}
			}
			c.fresh = true // caches catch up in the end
			for round := 0; len(c.had) < len(c.wishes); round++ {
				if round > 100 {
					t.Fatalf("no progress: %v have %v, Leases %v, %+v, without a share %v", c.wishes, c.had, c.leases, c.limits, c.told)
				}
				for i := range c.wishes {
					c.turn(i)
				}
			}
		})
	}
}
