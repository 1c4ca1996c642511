package operation

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/zfs"
)

// slowNode takes its time before and after it reads the counters of the vdevs.
type slowNode struct {
	*fakeNode
	before, after time.Duration
}

func (n *slowNode) Run(ctx context.Context, command zfs.Command) ([]byte, error) {
	slow := command.Program == "zpool" && command.Args[0] == "get" && command.Args[len(command.Args)-1] == "all-vdevs"
	if slow {
		n.clock.Step(n.before)
		defer n.clock.Step(n.after)
	}
	return n.fakeNode.Run(ctx, command)
}

// TestSamplesOfASlowNode: a sample is assigned to the middle of the time that reading its counters took. One that took too long is dropped,
// unless it is the first or last of the window.
func TestSamplesOfASlowNode(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		// readings have the time that passes before and after the counters are read, and until the next reading.
		readings [][3]time.Duration
		longest  time.Duration
		want     []int64
	}{
		"at once":           {[][3]time.Duration{{0, 0, 2 * second}, {0, 0, 2 * second}, {0, 0, 0}}, 0, []int64{0, 2000, 4000}},
		"in the middle":     {[][3]time.Duration{{0, 0, 2 * second}, {second, 0, second}, {0, 0, 0}}, 0, []int64{0, 2500, 4000}},
		"a long one":        {[][3]time.Duration{{0, 0, 2 * second}, {second, second, second}, {0, 0, 0}}, 0, []int64{0, 3000, 5000}},
		"one took too long": {[][3]time.Duration{{0, 0, 2 * second}, {2 * second, second, second}, {0, 0, 0}}, 0, []int64{0, 6000}},
		"first and last":    {[][3]time.Duration{{2 * second, 2 * second, second}, {3 * second, 3 * second, 0}}, 0, []int64{0, 6000}},
		"the last in time":  {[][3]time.Duration{{0, 0, 2 * second}, {2 * second, 2 * second, 0}}, 4 * second, []int64{0, 4000}},
		"no time between":   {[][3]time.Duration{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, 0, []int64{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &slowNode{fakeNode: newNode(t)}
			agent := &Reconciler{ZFS: zfs.New(node), Root: node.root, Clock: node.clock}
			w := &window{Reconciler: agent, pool: &operations.Pool{PoolSummary: zfs.PoolSummary{Name: "bench0", GUID: node.pools[0].guid}},
				interval: 2 * second, longest: c.longest}
			if err := w.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, reading := range c.readings {
				node.before, node.after = reading[0], reading[1]
				asked := i == 0 || i == len(c.readings)-1 && c.longest == 0
				if err := w.sample(t.Context(), asked); err != nil {
					t.Fatal(err)
				}
				node.clock.Step(reading[2])
			}
			document, err := w.recorder.Document(w.pool.Status)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, document.Series.OffsetMilliseconds); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSpaceAfter: space that a pool frees once it is synced does not count as in use after a window. If it cannot be synced, the space is
// unknown.
func TestSpaceAfter(t *testing.T) {
	for name, c := range map[string]struct {
		stuck   bool
		want    int64
		missing string
	}{
		"synced": {false, 100, ""},
		"stuck":  {true, -1, "without the space in use afterwards"},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			node.pools[0].pending, node.pools[0].stuck = 70, c.stuck
			agent := &Reconciler{ZFS: zfs.New(node), Root: node.root, Clock: node.clock}
			w := &window{Reconciler: agent, interval: time.Second,
				pool: &operations.Pool{PoolSummary: zfs.PoolSummary{Name: "bench0", GUID: node.pools[0].guid},
					LoadGUID: strconv.Itoa(node.pools[0].loads)}}
			if err := w.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := w.sample(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				node.clock.Step(time.Second)
			}
			result, err := w.result(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			operation := &v1alpha1.PoolOperation{Status: v1alpha1.PoolOperationStatus{Metrics: result.Metrics}}
			if got := metricOf(operation, "allocatedBytesAfter"); got != c.want {
				t.Errorf("the space in use is %d, want %d", got, c.want)
			}
			if strings.Contains(result.Message, "without the space") != (c.missing != "") || !strings.Contains(result.Message, c.missing) {
				t.Errorf("the message is %q", result.Message)
			}
		})
	}
}

// TestAnObservationIsReportedAtOnce: a phase waits for its first sample, so it is written without waiting for the next interval. Before
// that, nothing says that samples are taken.
func TestAnObservationIsReportedAtOnce(t *testing.T) {
	w := newWorld(t, wanted("op", v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}))
	w.agent.jobs.changed = make(chan event.GenericEvent)
	for range 2 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		if began := w.get("op").Status; began.StartedAt == nil || began.Progress != nil {
			t.Fatalf("before the first sample: %+v", began)
		}
	}
	if woken := <-w.agent.jobs.changed; woken.Object.GetName() != "op" {
		t.Errorf("woken is %s", woken.Object.GetName())
	}
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	if progress := w.get("op").Status.Progress; progress == nil || progress.Message != "observing until spec.cancel is set" {
		t.Errorf("after the first sample: %+v", progress)
	}
}
