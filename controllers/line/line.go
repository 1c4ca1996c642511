// Package line keeps the queues for nodes in memory: who holds each node, and who waits for it in which order. It is computed from the
// events of benchmarks and Leases, once for each change, and contains nothing that these objects do not say. After a restart, the same
// events rebuild it. Like any cache, it may be outdated: only the creation of a Lease decides who gets a node.
package line

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/internal/experiment"
)

// Entry is what the queues need to know about a benchmark.
type Entry struct {
	Key     types.NamespacedName
	UID     string
	Created time.Time
	// Waits is true if it is in the queues of its nodes, at its Place.
	Waits bool
	Place experiment.Place
	Nodes []string
	// Limited is true if it waits for a share of the limits of its namespace.
	Limited bool
	// Reason is why it is not Ready. Documents are the ConfigMaps that it is judged by, as NAMESPACE/NAME.
	Reason    string
	Documents []string
}

func (e *Entry) same(other *Entry) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.Key == other.Key && e.Waits == other.Waits && e.Place == other.Place && e.Limited == other.Limited &&
		e.Reason == other.Reason && slices.Equal(e.Nodes, other.Nodes) && slices.Equal(e.Documents, other.Documents)
}

// Index is the state of all queues.
type Index struct {
	limits experiment.Limits

	mutex sync.Mutex
	// entries by UID and by name.
	entries map[string]*Entry
	names   map[types.NamespacedName]*Entry
	// lines are the entries that wait for a node, in order.
	lines map[string][]*Entry
	// leases by node, and the nodes that a holder has.
	leases map[string]experiment.LeaseState
	held   map[string]map[string]bool
	// shares are, by namespace, the entries that wait for nodes, and those that wait for a share of the limits, in order of creation.
	shares map[string]*share
	// joining are entries whose place was assigned, but has not appeared in an event yet.
	joining map[string]*Entry
	// reasons and documents find entries by their Reason and Documents.
	reasons, documents map[string]map[string]*Entry
}

type share struct {
	waiting map[string]*Entry
	limited []*Entry
}

// New returns an empty Index.
func New(limits experiment.Limits) *Index {
	return &Index{limits: limits, entries: map[string]*Entry{}, names: map[types.NamespacedName]*Entry{},
		lines:  map[string][]*Entry{},
		leases: map[string]experiment.LeaseState{}, held: map[string]map[string]bool{}, shares: map[string]*share{},
		joining: map[string]*Entry{}, reasons: map[string]map[string]*Entry{}, documents: map[string]map[string]*Entry{}}
}

// Put adds or replaces a benchmark, and returns those whose turn or share may have come, or whose exact place has changed.
func (x *Index) Put(entry Entry) []types.NamespacedName {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if entry.Waits {
		delete(x.joining, entry.UID)
	}
	if old := x.entries[entry.UID]; old.same(&entry) {
		return nil
	}
	return x.replace(x.entries[entry.UID], &entry)
}

// Remove removes a benchmark that no longer exists.
func (x *Index) Remove(uid string) []types.NamespacedName {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	delete(x.joining, uid)
	old := x.entries[uid]
	if old == nil {
		return nil
	}
	wake := x.replace(old, nil)
	for node := range x.held[uid] { // no other event tells the next benchmark that the holder is gone
		wake = append(wake, keys(x.head(node, 1))...)
	}
	return wake
}

func (x *Index) replace(old, entry *Entry) []types.NamespacedName {
	var nodes []string
	for _, one := range []*Entry{old, entry} {
		if one != nil && one.Waits {
			nodes = append(nodes, one.Nodes...)
		}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	before := make([][]*Entry, len(nodes))
	for i, node := range nodes {
		before[i] = slices.Clone(x.head(node, experiment.PlacesShown))
	}
	x.take(old)
	x.add(entry)
	var wake []types.NamespacedName
	for i, node := range nodes {
		wake = append(wake, moved(before[i], x.head(node, experiment.PlacesShown))...)
	}
	if namespace := cmp.Or(old, entry).Key.Namespace; old == nil || entry == nil || old.Waits != entry.Waits || old.Limited != entry.Limited {
		wake = append(wake, x.nextLimited(namespace)...)
	}
	return wake
}

// moved returns the benchmarks whose place in the head of a queue has changed, and the one that was pushed out of the head.
func moved(before, after []*Entry) (wake []types.NamespacedName) {
	for i, entry := range after {
		if i >= len(before) || before[i].UID != entry.UID {
			wake = append(wake, entry.Key)
		}
	}
	if len(after) == len(before) && len(after) == experiment.PlacesShown {
		if last := before[len(before)-1]; !slices.ContainsFunc(after, func(entry *Entry) bool { return entry.UID == last.UID }) {
			wake = append(wake, last.Key)
		}
	}
	return wake
}

// take removes an entry from all queues.
func (x *Index) take(entry *Entry) {
	if entry == nil {
		return
	}
	delete(x.entries, entry.UID)
	if x.names[entry.Key] == entry {
		delete(x.names, entry.Key)
	}
	remove(x.reasons, entry.Reason, entry)
	for _, name := range entry.Documents {
		remove(x.documents, name, entry)
	}
	share := x.share(entry.Key.Namespace)
	delete(share.waiting, entry.UID)
	share.limited = without(share.limited, entry, byCreation)
	if len(share.waiting) == 0 && len(share.limited) == 0 {
		delete(x.shares, entry.Key.Namespace)
	}
	if !entry.Waits {
		return
	}
	for _, node := range entry.Nodes {
		if x.lines[node] = without(x.lines[node], entry, byPlace); len(x.lines[node]) == 0 {
			delete(x.lines, node)
		}
	}
}

// add adds an entry to its queues.
func (x *Index) add(entry *Entry) {
	if entry == nil {
		return
	}
	x.entries[entry.UID], x.names[entry.Key] = entry, entry
	insert(x.reasons, entry.Reason, entry)
	for _, name := range entry.Documents {
		insert(x.documents, name, entry)
	}
	if entry.Limited {
		share := x.share(entry.Key.Namespace)
		share.limited = with(share.limited, entry, byCreation)
	}
	if !entry.Waits {
		return
	}
	x.share(entry.Key.Namespace).waiting[entry.UID] = entry
	for _, node := range entry.Nodes {
		x.lines[node] = with(x.lines[node], entry, byPlace)
	}
}

func (x *Index) share(namespace string) *share {
	if x.shares[namespace] == nil {
		x.shares[namespace] = &share{waiting: map[string]*Entry{}}
	}
	return x.shares[namespace]
}

// PutLease notes who holds a node, and returns the affected benchmarks: the holder, the previous holder, the next one, and those that wait
// for the node out of order because they already hold others.
func (x *Index) PutLease(lease experiment.LeaseState) []types.NamespacedName {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	old, held := x.leases[lease.Node]
	if held {
		x.free(old)
	}
	x.leases[lease.Node] = lease
	if x.held[lease.Holder] == nil {
		x.held[lease.Holder] = map[string]bool{}
	}
	x.held[lease.Holder][lease.Node] = true
	if held && old == lease {
		return nil
	}
	return append(x.concerned(lease), x.concerned(old)...)
}

// RemoveLease notes that a node is free.
func (x *Index) RemoveLease(node string) []types.NamespacedName {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	old, held := x.leases[node]
	if !held {
		return nil
	}
	x.free(old)
	delete(x.leases, node)
	return x.concerned(old)
}

func (x *Index) free(lease experiment.LeaseState) {
	delete(x.held[lease.Holder], lease.Node)
	if len(x.held[lease.Holder]) == 0 {
		delete(x.held, lease.Holder)
	}
}

func (x *Index) concerned(lease experiment.LeaseState) []types.NamespacedName {
	if lease.Node == "" {
		return nil
	}
	wake := keys(x.head(lease.Node, 1))
	if holder := x.entries[lease.Holder]; holder != nil {
		wake = append(wake, holder.Key)
	}
	for uid := range x.held {
		if entry := x.entries[uid]; entry != nil && entry.Waits && slices.Contains(entry.Nodes, lease.Node) {
			wake = append(wake, entry.Key)
		}
	}
	namespace, _, _ := strings.Cut(lease.HolderName, "/")
	return append(wake, x.nextLimited(namespace)...)
}

// nextLimited returns the benchmark of a namespace that gets the next share of its limits: the oldest one that waits for a share.
func (x *Index) nextLimited(namespace string) []types.NamespacedName {
	if share := x.shares[namespace]; share != nil && len(share.limited) > 0 {
		return keys(share.limited[:1])
	}
	return nil
}

func (x *Index) head(node string, count int) []*Entry {
	return x.lines[node][:min(count, len(x.lines[node]))]
}

func keys(entries []*Entry) []types.NamespacedName {
	all := make([]types.NamespacedName, len(entries))
	for i, entry := range entries {
		all[i] = entry.Key
	}
	return all
}

func insert(index map[string]map[string]*Entry, key string, entry *Entry) {
	if key == "" {
		return
	}
	if index[key] == nil {
		index[key] = map[string]*Entry{}
	}
	index[key][entry.UID] = entry
}

func remove(index map[string]map[string]*Entry, key string, entry *Entry) {
	if delete(index[key], entry.UID); len(index[key]) == 0 {
		delete(index, key)
	}
}

func byPlace(a, b *Entry) int { return a.Place.Compare(b.Place) }

func byCreation(a, b *Entry) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

func with(entries []*Entry, entry *Entry, order func(a, b *Entry) int) []*Entry {
	at, _ := slices.BinarySearchFunc(entries, entry, order)
	return slices.Insert(entries, at, entry)
}

func without(entries []*Entry, entry *Entry, order func(a, b *Entry) int) []*Entry {
	if at, found := slices.BinarySearchFunc(entries, entry, order); found && entries[at].UID == entry.UID {
		return slices.Delete(entries, at, at+1)
	}
	return entries
}
