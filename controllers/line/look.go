package line

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
)

// Ahead returns the places of the first benchmarks in the queues of some nodes, without the given one: as many as have an exact place.
func (x *Index) Ahead(uid string, nodes []string) []experiment.Place {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	var places []experiment.Place
	for _, node := range nodes {
		for _, entry := range x.head(node, experiment.PlacesShown+1) {
			if entry.UID != uid && !slices.ContainsFunc(places, func(place experiment.Place) bool { return place.UID == entry.UID }) {
				places = append(places, entry.Place)
			}
		}
	}
	slices.SortFunc(places, experiment.Place.Compare)
	return places[:min(len(places), experiment.PlacesShown)]
}

// Length returns the number of benchmarks that wait for a node, without the given one, plus one if the node is held.
func (x *Index) Length(uid, node string) int {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	count := len(x.lines[node])
	if own := x.entries[uid]; own != nil && own.Waits && slices.Contains(own.Nodes, node) {
		count--
	}
	if _, held := x.leases[node]; held {
		count++
	}
	return count
}

// Leases returns the Leases that a benchmark holds.
func (x *Index) Leases(uid string) []experiment.LeaseState {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	var leases []experiment.LeaseState
	for _, node := range slices.Sorted(maps.Keys(x.held[uid])) {
		leases = append(leases, x.leases[node])
	}
	return leases
}

// Lease returns the Lease on a node. known is false if its holder no longer exists.
func (x *Index) Lease(node string) (lease experiment.LeaseState, held, known bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	lease, held = x.leases[node]
	return lease, held, x.entries[lease.Holder] != nil
}

// Turn assigns a turn to a benchmark that joins the queues of some nodes, and remembers the turn until an event shows it. So if two
// benchmarks join at the same time, the second gets a later turn than the first.
func (x *Index) Turn(entry Entry) int64 {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	delete(x.joining, entry.UID)
	served, namespace := int64(0), entry.Key.Namespace
	var last *int64
	note := func(turn int64) {
		if last == nil || turn > *last {
			last = &turn
		}
	}
	for _, node := range entry.Nodes {
		lease, held := x.leases[node]
		switch {
		case held && strings.HasPrefix(lease.HolderName, namespace+"/") && lease.Holder != entry.UID:
			note(lease.Turn)
			served = max(served, lease.Turn)
		case held:
			served = max(served, lease.Turn)
		case len(x.lines[node]) > 0:
			served = max(served, x.lines[node][0].Place.Turn)
		}
	}
	shared := func(other *Entry) bool {
		return other.UID != entry.UID && other.Key.Namespace == namespace && slices.ContainsFunc(other.Nodes, func(node string) bool {
			return slices.Contains(entry.Nodes, node)
		})
	}
	if share := x.shares[namespace]; share != nil {
		for _, other := range share.waiting {
			if shared(other) {
				note(other.Place.Turn)
			}
		}
	}
	for _, other := range x.joining {
		if shared(other) {
			note(other.Place.Turn)
		}
	}
	entry.Place.Turn = experiment.NextTurn(served, last, x.limits.Weight(namespace))
	x.joining[entry.UID] = &entry
	return entry.Place.Turn
}

// Neighbours returns the other benchmarks of a namespace that use part of its limits, and the oldest that waits for a share of them. A
// holder that no longer exists counts as long as its Lease exists.
func (x *Index) Neighbours(uid, namespace string) []experiment.Neighbour {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	var all []experiment.Neighbour
	add := func(entry *Entry) {
		held := len(x.held[entry.UID])
		neighbour := experiment.Neighbour{UID: entry.UID, Name: entry.Key.Name, Created: entry.Created, Holds: held > 0,
			Nodes: max(held, len(entry.Nodes))}
		if entry.Waits {
			neighbour.Since = &entry.Place.Since
		}
		all = append(all, neighbour)
	}
	for holder, nodes := range x.held {
		entry := x.entries[holder]
		switch {
		case holder == uid:
		case entry != nil && entry.Key.Namespace == namespace:
			add(entry)
		case entry == nil && slices.ContainsFunc(slices.Collect(maps.Keys(nodes)), func(node string) bool {
			return strings.HasPrefix(x.leases[node].HolderName, namespace+"/")
		}):
			all = append(all, experiment.Neighbour{UID: holder, Holds: true, Nodes: len(nodes)})
		}
	}
	if share := x.shares[namespace]; share != nil {
		for other, entry := range share.waiting {
			if other != uid && x.held[other] == nil {
				add(entry)
			}
		}
		for _, entry := range share.limited[:min(2, len(share.limited))] {
			if entry.UID != uid && x.held[entry.UID] == nil && !entry.Waits {
				add(entry)
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b experiment.Neighbour) int { return cmp.Compare(a.UID, b.UID) })
	return all
}

// Urgency is how urgently a benchmark needs to be reconciled.
type Urgency int

// The urgencies. For a benchmark that is Behind, because it is Queued behind others, a change of the queues only changes the place that its
// status shows.
const (
	Behind Urgency = iota
	Usual
	NextOne
	Holder
)

// Urgency returns how urgently a benchmark needs to be reconciled.
func (x *Index) Urgency(key types.NamespacedName) Urgency {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	entry := x.names[key]
	switch {
	case entry == nil:
		return Usual
	case len(x.held[entry.UID]) > 0:
		return Holder
	case !entry.Waits:
		return Usual
	case slices.ContainsFunc(entry.Nodes, func(node string) bool { return x.lines[node][0] == entry }):
		return NextOne
	case entry.Reason != v1alpha1.ReasonQueued:
		return Usual
	}
	return Behind
}

// Key finds a benchmark by its UID.
func (x *Index) Key(uid string) []types.NamespacedName {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if entry := x.entries[uid]; entry != nil {
		return []types.NamespacedName{entry.Key}
	}
	return nil
}

// For finds the benchmarks that wait for a node, in order.
func (x *Index) For(node string) []types.NamespacedName {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	return keys(x.lines[node])
}

// Because finds the benchmarks that are not ready for one of the given reasons.
func (x *Index) Because(reasons ...string) (found []types.NamespacedName) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	for _, reason := range reasons {
		for _, entry := range x.reasons[reason] {
			found = append(found, entry.Key)
		}
	}
	return found
}

// JudgedBy finds the benchmarks that are judged by a ConfigMap.
func (x *Index) JudgedBy(document types.NamespacedName) (found []types.NamespacedName) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	for _, entry := range x.documents[document.String()] {
		found = append(found, entry.Key)
	}
	return found
}

// Lengths returns the numbers of waiting benchmarks by node.
func (x *Index) Lengths() map[string]int {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	lengths := make(map[string]int, len(x.lines))
	for node, entries := range x.lines {
		lengths[node] = len(entries)
	}
	return lengths
}
