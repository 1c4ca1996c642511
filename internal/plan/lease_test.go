package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// contest is some benchmarks that want some nodes each, and what they see of each other, which may be old.
type contest struct {
	t      *rapid.T
	now    time.Time
	wishes [][]string
	status []v1alpha1.StorageBenchmarkStatus
	leases map[string]string
	// seen are what was there some moves ago.
	seen []view
	// had are those who had all their nodes, in that order.
	had []int
	// fresh says that all see what there is; strict that they always have.
	fresh, strict bool
}

type view struct {
	status []v1alpha1.StorageBenchmarkStatus
	leases map[string]string
}

func newContest(t *rapid.T, fresh bool) *contest {
	c := &contest{t: t, now: noon, leases: map[string]string{}, fresh: fresh, strict: fresh}
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
	return c
}

func (c *contest) uid(i int) string { return fmt.Sprintf("uid-%d", i) }

// state is what a benchmark sees: its own status as it is, of the others and the Leases perhaps an older view.
func (c *contest) state(i int) (BenchmarkState, BenchmarkDecision) {
	old := view{status: c.status, leases: c.leases}
	if !c.fresh && len(c.seen) > 0 {
		old = c.seen[len(c.seen)-1-rapid.IntRange(0, min(4, len(c.seen)-1)).Draw(c.t, "lag")]
	}
	state := BenchmarkState{Now: c.now, Benchmark: &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{UID: types.UID(c.uid(i))}, Status: c.status[i]}}
	for _, node := range []string{"n1", "n2", "n3", "n4"} {
		if holder := old.leases[node]; holder == c.uid(i) || holder != "" && slices.Contains(c.wishes[i], node) {
			state.Leases = append(state.Leases, LeaseState{Node: node, Holder: holder, HolderName: holder})
		}
	}
	for k, status := range old.status {
		shared := slices.ContainsFunc(c.wishes[k], func(node string) bool { return slices.Contains(c.wishes[i], node) })
		if k != i && shared && status.Queue != nil {
			state.Waiting = append(state.Waiting, Place{UID: c.uid(k), Since: status.Queue.Since.Time})
		}
	}
	return state, BenchmarkDecision{NodeNames: c.wishes[i]}
}

// turn is one turn of a benchmark's controller. Who has all nodes ends at once, and is not seen again.
func (c *contest) turn(i int) {
	if slices.Contains(c.had, i) {
		return
	}
	c.now = c.now.Add(time.Second)
	state, decision := c.state(i)
	waits := stepLease(state, &decision)
	for _, action := range decision.Actions {
		holder := c.leases[action.Node]
		switch {
		case action.Kind == TakeLease && holder == "": // else the API server says that it exists
			c.leases[action.Node] = c.uid(i)
		case action.Kind == ReleaseLease && holder == c.uid(i): // else it is not ours any more
			delete(c.leases, action.Node)
		}
	}
	status := v1alpha1.StorageBenchmarkStatus{NodeNames: c.wishes[i]}
	if decision.InLine {
		status.Queue = &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(c.now)}
		if c.status[i].Queue != nil {
			status.Queue.Since = c.status[i].Queue.Since
		}
	}
	c.remember()
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

// inOrder: where everybody sees everything, nobody is served before one who joined a common line earlier.
func (c *contest) inOrder(i int) {
	for k, status := range c.status {
		shared := slices.ContainsFunc(c.wishes[k], func(node string) bool { return slices.Contains(c.wishes[i], node) })
		if c.strict && k != i && shared && status.Queue != nil && status.Queue.Since.Before(&c.status[i].Queue.Since) {
			c.t.Fatalf("benchmark %d had %v before benchmark %d, which had joined the line earlier", i, c.wishes[i], k)
		}
	}
}

// TestEverybodyGetsNodes: whatever nodes each benchmark wants, whatever each sees of the others, and whoever takes a Lease away: in the
// end each has had all of its nodes. Nobody ever has all while somebody else has one of them, for a Lease has one holder.
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
					t.Fatalf("nobody gets on: %v have %v, Leases %v", c.wishes, c.had, c.leases)
				}
				for i := range c.wishes {
					c.turn(i)
				}
			}
		})
	}
}
