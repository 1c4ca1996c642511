package operation

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func TestAnInterruptedReplicationGoesOn(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["replicate"].action))
	w.node.interrupted = 2
	operation := w.settle("op")
	expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
	checkReplication(t, w, operation)
	if w.node.count("zfs send -t 1-0-a-b") != 2 || w.lives != 1 {
		t.Errorf("commands %q", w.node.commands)
	}
	// Not all bytes were counted: no number instead of a wrong one.
	if sent := metricOf(operation, "sentBytes"); sent != -1 {
		t.Errorf("%d bytes were sent", sent)
	}
}

// TestAStreamIsBrokenOffOnce: received data is not sent again, except the block that was in transit.
func TestAStreamIsBrokenOffOnce(t *testing.T) {
	for share, want := range map[v1alpha1.Share]struct{ resent, sent int64 }{
		"50%": {lostBytes, 100 + 50 + 200}, "100%": {-1, 300}, "0%": {1, 1 + 300},
	} {
		action := acts()["replicate, interrupted"].action
		action.Replicate.InterruptAt = share
		w := newWorld(t, wanted("op", action))
		operation := w.settle("op")
		expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
		checkReplication(t, w, operation)
		if resent, sent := metricOf(operation, "resentBytes"), metricOf(operation, "sentBytes"); resent != want.resent || sent != want.sent {
			t.Errorf("at %s: %d bytes were sent twice, %d in all, want %+v", share, resent, sent, want)
		}
		resumed := map[v1alpha1.Share]int{"50%": 1}[share]
		if w.node.count("zfs send -t 1-0-a-b") != resumed {
			t.Errorf("at %s: commands %q", share, w.node.commands)
		}
	}
}

// interruptedReplication is a world in which operation op has tried three times to send, and was interrupted each time.
func interruptedReplication(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, wanted("op", acts()["replicate"].action))
	w.node.interrupted = 1000
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.rest("op")
	}
	return w
}

func TestACancelledReplicationLeavesNoHalves(t *testing.T) {
	w := interruptedReplication(t)
	if w.node.pools[1].find("bench1/received").token == "" {
		t.Fatal("there is no half a receive to test with")
	}
	cancel(t, w, "op")
	expect(t, w.settle("op"), "Cancelled", v1alpha1.ReasonCancelled)
	for _, pool := range w.node.pools {
		for _, dataset := range pool.datasets {
			if strings.Contains(dataset.name, "@") || dataset.name == "bench1/received" {
				t.Errorf("left is %+v", dataset)
			}
		}
	}
}

func TestAnotherPoolDoesNotReceive(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["replicate"].action))
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	w.node.pools[1].guid = "999"
	expect(t, w.settle("op"), "Failed", v1alpha1.ReasonActionFailed)
	if len(w.node.commands) > 0 {
		t.Errorf("commands %q", w.node.commands)
	}
}

// TestARunDoesNotReachOtherNamespaces: an operation that was made for a run changes no pool of another namespace, nor an admin's.
func TestARunDoesNotReachOtherNamespaces(t *testing.T) {
	for namespace, want := range map[string]string{"lab": "Succeeded", "team-b": "Failed", "": "Failed"} {
		operation := wanted("op", acts()["replicate"].action)
		operation.Labels = map[string]string{v1alpha1.LabelNamespace: "lab"}
		w := newWorld(t, operation)
		for name, made := range map[string]string{"bench0": "lab", "bench1": namespace} {
			pool := readyPool(name)
			if err := w.client.Get(t.Context(), keyOf(pool), pool); err != nil {
				t.Fatal(err)
			}
			pool.Spec.Namespace = made
			if err := w.client.Update(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
		}
		reason := map[string]string{"Succeeded": v1alpha1.ReasonSucceeded, "Failed": v1alpha1.ReasonPoolNotAllowed}[want]
		expect(t, w.settle("op"), want, reason)
		if want == "Failed" && len(w.node.commands) > 0 {
			t.Errorf("a pool of namespace %q: commands %q", namespace, w.node.commands)
		}
	}
}

// TestSnapshotsOfOthersStay: a foreign snapshot whose name looks like that of a replication stays.
func TestSnapshotsOfOthersStay(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["replicate"].action))
	w.node.pools[0].datasets = append(w.node.pools[0].datasets, w.node.dataset("bench0/data@storagebench-12345678-9", "snapshot"))
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	if w.node.pools[0].find("bench0/data@storagebench-12345678-9") == nil {
		t.Error("another user's snapshot was destroyed")
	}
}

// TestObstaclesOfAReplication: the obstacle appears between the start of the replication and its first command.
func TestObstaclesOfAReplication(t *testing.T) {
	for name, put := range map[string]func(add func(pool int, name, mark string)){
		"a dataset": func(add func(int, string, string)) { add(1, "bench1/received", "uid-other") },
		"a snapshot at the source": func(add func(int, string, string)) {
			add(0, "bench0/data@storagebench-12345678-0", "uid-other")
		},
		"another snapshot at the target": func(add func(int, string, string)) {
			add(0, "bench0/data@storagebench-12345678-0", "12345678-op")
			add(1, "bench1/received", "12345678-op")
			add(1, "bench1/received@storagebench-12345678-0", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()["replicate"].action))
			if _, err := w.turn("op"); err != nil {
				t.Fatal(err)
			}
			put(func(pool int, name, mark string) {
				made := w.node.dataset(name, map[bool]string{true: "snapshot", false: "filesystem"}[strings.Contains(name, "@")])
				made.properties["storagebench.dev:operation"] = mark
				w.node.pools[pool].datasets = append(w.node.pools[pool].datasets, made)
			})
			expect(t, w.settle("op"), "Failed", v1alpha1.ReasonActionFailed)
			if w.node.count("zfs receive") > 0 || w.node.count("zfs send") > 0 {
				t.Errorf("commands %q", w.node.commands)
			}
		})
	}
}
