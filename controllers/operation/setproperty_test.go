package operation

import (
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
)

// refusing is a world in which ZFS refuses a recordsize of 2M. The spec of the pool says 8k.
func refusing(t *testing.T, properties v1alpha1.LiveProperties, has map[string]string) *world {
	t.Helper()
	w := newWorld(t, wanted("op", v1alpha1.PoolAction{SetProperty: &v1alpha1.SetPropertyAction{Dataset: "data", Properties: properties}}))
	pool := &v1alpha1.BenchmarkPool{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "bench0"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "data", Properties: v1alpha1.Properties{"recordsize": "8k"}}}
	if err := w.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.node.refuses = []string{"recordsize=2M"}
	w.node.pools[0].find("bench0/data").properties = maps.Clone(has)
	return w
}

// TestWhatZFSRefusesIsNotRecorded: this holds whenever the agent dies. Otherwise the pool would differ from its record, and no operation
// could begin to change that.
func TestWhatZFSRefusesIsNotRecorded(t *testing.T) {
	large, two := v1alpha1.LiveProperties{"recordsize": "2M"}, v1alpha1.LiveProperties{"recordsize": "2M", "sync": "disabled"}
	specified := map[string]string{"recordsize": "8192", "sync": "standard"}
	earlier := map[string]string{"recordsize": "16384", "sync": "standard", "logbias": "throughput",
		pools.PropertyChanged: "12345678-before,logbias=throughput,recordsize=16k"}
	for name, c := range map[string]struct {
		sets      v1alpha1.LiveProperties
		has       map[string]string
		cancelled bool
		mark      string
	}{
		"all":                         {large, specified, false, "12345678-op"},
		"one of two":                  {two, specified, false, "12345678-op,sync=disabled"},
		"what an earlier one has set": {large, earlier, false, "12345678-op,logbias=throughput,recordsize=16384"},
		"all, cancelled":              {large, specified, true, "12345678-op"},
		"one of two, cancelled":       {two, specified, true, "12345678-op,sync=disabled"},
		"an earlier one, cancelled":   {large, earlier, true, "12345678-op,logbias=throughput,recordsize=16384"},
	} {
		crashes := 0
		for at := 0; at <= 6; at++ {
			w := refusing(t, c.sets, c.has)
			w.node.diesAfter = at
			for range 3 {
				if _, err := w.turn("op"); err != nil && w.node.isDead() {
					crashes++
					break
				}
			}
			if c.cancelled && w.node.count("zfs set") > 0 && w.get("op").Status.Outcome == "" {
				cancel(t, w, "op")
			}
			operation := w.settle("op")
			if operation.Status.Outcome != v1alpha1.OutcomeFailed {
				t.Errorf("%s, crash after event %d: %+v", name, at, operation.Status)
			}
			if got := w.node.pools[0].find("bench0/data").properties[pools.PropertyChanged]; got != c.mark {
				t.Errorf("%s, crash after event %d: the mark is %q, want %q:\n%s", name, at, got, c.mark, strings.Join(w.node.commands, "\n"))
			}
			if count := w.node.count("zfs set recordsize=2M"); count != 1 {
				t.Errorf("%s, crash after event %d: tried %d times", name, at, count)
			}
		}
		if least := 5; crashes < least { // begin, finalizer, the values, the mark, the outcome
			t.Errorf("%s: %d crashes", name, crashes)
		}
	}
}
