package operations

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
)

// PropertyBegun names, on the root dataset of a pool, the newest operations that have begun to change it. A restore of etcd may bring an
// operation back as it was before its start. Its own object then does not show that its command has run, but the pool does: it keeps the
// mark as long as the data, also on another node, and loses it with the data.
//
// The mark is written after status.startedAt and before the command. So an operation that the mark names and that has no startedAt is back
// from a backup, and not one whose agent died in between.
const PropertyBegun = "storagebench.dev:begun"

// begunKept is how many operations the mark names: as many as fit into a value. Operations on a pool begin in the order of their creation,
// so one that was created before the oldest of them had its turn before. The others are named because times of creation have whole seconds:
// an operation may be created in the second in which another one was created and has begun.
const begunKept = 10

// beginning is an operation in the mark.
type beginning struct {
	uid types.UID
	// created is the time of its creation in seconds.
	created int64
}

func (b beginning) compare(other beginning) int {
	return cmp.Or(cmp.Compare(b.created, other.created), cmp.Compare(b.uid, other.uid)) // as queues do
}

func (s State) beginning() beginning {
	return beginning{s.Operation.UID, s.Operation.CreationTimestamp.Unix()}
}

// isIt reports whether a beginning is that of this operation.
func (s State) isIt(known beginning) bool { return known.uid == s.Operation.UID }

// begun returns the operations in the mark of a pool, the oldest first. readable is false if others have changed the mark.
func (p *Pool) begun() (known []beginning, readable bool) {
	mark, found := p.marked().Property(p.Name, PropertyBegun)
	if !found || !mark.Local() {
		return nil, true
	}
	for word := range strings.SplitSeq(mark.Value, ",") {
		uid, seconds, _ := strings.Cut(word, "@")
		created, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			return nil, false
		}
		known = append(known, beginning{types.UID(uid), created})
	}
	slices.SortFunc(known, beginning.compare)
	return known, true
}

// replayed refuses an operation that has, or may have, begun before: an object from a backup would do its work a second time, on data that
// is newer than the request.
func (s State) replayed() *obstacle {
	_, live := s.Destination()
	if !s.kind().once || live == nil {
		return nil
	}
	known, readable := live.begun()
	unmark := fmt.Sprintf("run 'zfs inherit %s %s' on node %s", PropertyBegun, live.Name, s.Operation.Spec.NodeName)
	switch {
	case !readable:
		return waits(v1alpha1.ReasonPoolOlderSpec, operationSoon, "the property %s of pool %s is not readable, so this %s may have run before: "+
			"if it has not, %s", PropertyBegun, live.Name, operate.Name(s.Operation.Spec.Action), unmark)
	case slices.ContainsFunc(known, s.isIt):
		again := refuses(v1alpha1.ReasonPoolOlderSpec, "this %s has begun before, as pool %s shows, and does not run again: a backup of the "+
			"cluster from before its start has been restored. If it is still needed, delete this PoolOperation and create another one",
			operate.Name(s.Operation.Spec.Action), live.Name)
		again.before = true
		return again
	case len(known) >= begunKept && s.beginning().compare(known[0]) < 0:
		again := refuses(v1alpha1.ReasonPoolOlderSpec, "this %s may have begun before: it is older than the last %d operations that have "+
			"changed pool %s, and a backup of the cluster may have been restored. If it is still needed, delete this PoolOperation and create "+
			"another one. If the clock of the cluster was set back, %s", operate.Name(s.Operation.Spec.Action), len(known), live.Name, unmark)
		again.before = true
		return again
	}
	return nil
}

// noteBegun returns the action that adds the operation to the mark of the pool, or nil if it is not needed.
func (s State) noteBegun() *Action {
	pool, live := s.Destination()
	if !s.kind().once || live == nil {
		return nil
	}
	known, _ := live.begun()
	if slices.ContainsFunc(known, s.isIt) {
		return nil
	}
	known = append(known, s.beginning())
	slices.SortFunc(known, beginning.compare)
	var words []string
	for _, one := range known[max(0, len(known)-begunKept):] {
		words = append(words, fmt.Sprintf("%s@%d", one.uid, one.created))
	}
	return &Action{Kind: NoteBegun, Pool: pool, GUID: live.GUID, Mark: strings.Join(words, ",")}
}
