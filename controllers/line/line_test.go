package line

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/storagebench/storagebench/internal/experiment"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// entry is a benchmark that waits for some nodes.
func entry(namespace string, number int, turn int64, nodes ...string) Entry {
	uid, since := fmt.Sprintf("%s-%04d", namespace, number), noon.Add(time.Duration(number)*time.Second)
	return Entry{Key: types.NamespacedName{Namespace: namespace, Name: uid}, UID: uid, Created: since, Waits: true, Nodes: nodes,
		Place: experiment.Place{UID: uid, Name: namespace + "/" + uid, Turn: turn, Since: since}}
}

// join adds a benchmark as its controller does: it gets its turn, writes it, and the watch shows it.
func join(x *Index, namespace string, number int, nodes ...string) []types.NamespacedName {
	joining := entry(namespace, number, 0, nodes...)
	joining.Waits = false
	x.Put(joining)
	turn := x.Turn(joining)
	return x.Put(entry(namespace, number, turn, nodes...))
}

// serve gives a node to the next benchmark and lets it finish. It returns that benchmark, and how many were woken in total.
func serve(x *Index, node string) (name types.NamespacedName, woken int) {
	next := *x.lines[node][0]
	lease := experiment.LeaseState{Node: node, Holder: next.UID, HolderName: next.Key.String(), Turn: next.Place.Turn}
	woken += len(x.PutLease(lease))
	next.Waits = false
	woken += len(x.Put(next)) + len(x.RemoveLease(node)) + len(x.Remove(next.UID))
	return next.Key, woken
}

// TestNamespacesTakeTurns: one benchmark of a namespace behind 1,000 of another is the next one after the holder, and two namespaces
// with many get what their weights say.
func TestNamespacesTakeTurns(t *testing.T) {
	x := New(experiment.Limits{QueueWeights: map[string]int32{"c": 3}})
	for i := range 1000 {
		join(x, "a", i, "n1")
	}
	if first, _ := serve(x, "n1"); first.Name != "a-0000" {
		t.Errorf("%s is first", first)
	}
	holder := *x.lines["n1"][0]
	x.PutLease(experiment.LeaseState{Node: "n1", Holder: holder.UID, HolderName: holder.Key.String(), Turn: holder.Place.Turn})
	holder.Waits = false
	x.Put(holder)
	join(x, "b", 5000, "n1")
	if next := x.lines["n1"][0].Key; next.Namespace != "b" {
		t.Errorf("%s is next, not the one of b", next)
	}
	for i := range 900 {
		join(x, "c", 6000+i, "n1")
	}
	x.RemoveLease("n1")
	served := map[string]int{}
	for range 401 {
		name, _ := serve(x, "n1")
		served[name.Namespace]++
	}
	if served["b"] != 1 || served["a"] < 99 || served["a"] > 101 || served["c"] < 299 || served["c"] > 301 {
		t.Errorf("served %v, want c three times as often as a", served)
	}
}

// TestPriorityGoesFirst: a priority orders the queue before the turns do.
func TestPriorityGoesFirst(t *testing.T) {
	x := New(experiment.Limits{})
	for i := range 5 {
		join(x, "a", i, "n1")
	}
	urgent := entry("a", 9, 99*experiment.Round, "n1")
	urgent.Place.Priority = 1
	x.Put(urgent)
	if next := x.lines["n1"][0].Key.Name; next != "a-0009" {
		t.Errorf("%s is next", next)
	}
}

// TestSimultaneousJoins: benchmarks that join before a watch has shown the others get one turn after another.
func TestSimultaneousJoins(t *testing.T) {
	x := New(experiment.Limits{})
	for i := range 4 {
		if turn := x.Turn(entry("a", i, 0, "n1")); turn != int64(i)*experiment.Round {
			t.Errorf("number %d gets turn %d", i, turn)
		}
	}
	if turn := x.Turn(entry("b", 1, 0, "n1")); turn != 0 {
		t.Errorf("the first of another namespace gets turn %d", turn)
	}
}

// TestFewAreWoken: however long the queue is, a completion wakes only its head, and a newcomer behind the head wakes no others.
func TestFewAreWoken(t *testing.T) {
	for _, length := range []int{20, 2000} {
		x := New(experiment.Limits{})
		for i := range length {
			if woken := join(x, "a", i, "n1"); i > experiment.PlacesShown && len(woken) > 0 {
				t.Fatalf("number %d wakes %v", i, woken)
			}
		}
		name, woken := serve(x, "n1")
		if woken < experiment.PlacesShown || woken > 2*experiment.PlacesShown {
			t.Errorf("%d queued: the completion of %s wakes %d", length, name, woken)
		}
	}
}

// TestNextOfANamespace: the oldest of those that wait for a share is woken when one is free.
func TestNextOfANamespace(t *testing.T) {
	x := New(experiment.Limits{})
	holder := entry("a", 0, 0, "n1")
	x.Put(holder)
	for i := 3; i > 0; i-- {
		limited := entry("a", i, 0)
		limited.Waits, limited.Limited = false, true
		x.Put(limited)
	}
	all := x.Neighbours("a-0003", "a")
	if len(all) != 2 || all[0].UID != "a-0000" || all[0].Since == nil || all[1].UID != "a-0001" {
		t.Errorf("neighbours %+v", all)
	}
	if woken := x.Remove("a-0000"); len(woken) != 1 || woken[0].Name != "a-0001" {
		t.Errorf("woken %v", woken)
	}
}

// TestIndexIsDerived: whatever the order of events, the index equals one that is built from the objects that exist in the end.
func TestIndexIsDerived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, exist, leases := New(experiment.Limits{}), map[string]Entry{}, map[string]experiment.LeaseState{}
		nodes := []string{"n1", "n2", "n3"}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			namespace, number := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), rapid.IntRange(0, 14).Draw(t, "number")
			one := entry(namespace, number, rapid.Int64Range(0, 3).Draw(t, "turn"), rapid.SampledFrom([][]string{{"n1"}, {"n2"}, {"n1", "n3"},
				nodes}).Draw(t, "nodes")...)
			node := rapid.SampledFrom(nodes).Draw(t, "node")
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				x.Remove(one.UID)
				delete(exist, one.UID)
			case 1:
				lease := experiment.LeaseState{Node: node, Holder: one.UID, HolderName: one.Key.String()}
				x.PutLease(lease)
				leases[node] = lease
			case 2:
				x.RemoveLease(node)
				delete(leases, node)
			default:
				one.Waits, one.Limited = rapid.Bool().Draw(t, "waits"), rapid.Bool().Draw(t, "limited")
				one.Reason = rapid.SampledFrom([]string{"", "NoNode", "Queued"}).Draw(t, "reason")
				x.Put(one)
				exist[one.UID] = one
			}
		}
		again := New(experiment.Limits{})
		for _, one := range exist {
			again.Put(one)
		}
		for _, lease := range leases {
			again.PutLease(lease)
		}
		if some, other := said(x, nodes), said(again, nodes); some != other {
			t.Fatalf("after the events\n%s\nfrom what exists\n%s", some, other)
		}
		for _, one := range exist { // objects that do not exist leave nothing behind
			x.Remove(one.UID)
		}
		for node := range leases {
			x.RemoveLease(node)
		}
		if left := len(x.entries) + len(x.names) + len(x.lines) + len(x.leases) + len(x.held) + len(x.shares) + len(x.reasons) +
			len(x.documents); left > 0 {
			t.Fatalf("%d things are left: %+v", left, x)
		}
	})
}

// said returns the contents of an index as text.
func said(x *Index, nodes []string) (text string) {
	for _, node := range nodes {
		lease, held, known := x.Lease(node)
		text += fmt.Sprintln(node, keys(x.lines[node]), lease, held, known)
	}
	for _, uid := range slices.Sorted(maps.Keys(x.entries)) {
		key := x.entries[uid].Key
		text += fmt.Sprintln(uid, len(x.Ahead(uid, nodes)), x.Length(uid, "n1"), x.Leases(uid), x.Urgency(key))
		for _, neighbour := range x.Neighbours(uid, key.Namespace) {
			text += fmt.Sprintln("  ", neighbour.UID, neighbour.Holds, neighbour.Nodes, neighbour.Since != nil)
		}
	}
	return text + fmt.Sprint(len(x.Because("NoNode", "Queued")))
}
