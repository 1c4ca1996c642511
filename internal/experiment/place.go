package experiment

import (
	"cmp"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// PlacesShown is how many places of a queue are reported exactly. A benchmark further back only reports that at least this many are ahead:
// its place changes whenever a benchmark finishes, and each change would be a write.
const PlacesShown = 10

// Round is the number of turns by which a namespace with weight 1 advances with each benchmark that joins a queue.
const Round = 1000

// Place is a position in the queue.
type Place struct {
	UID string
	// Name is NAMESPACE/NAME.
	Name string
	// Priority decides first, then Turn, which gives the namespaces their turns, then Since, the time of joining, and finally the UID.
	Priority int32
	Turn     int64
	Since    time.Time
}

// Compare orders places: the one to be served first comes first. The order is the same for all nodes; otherwise two benchmarks on several
// nodes could wait for each other.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(other.Priority, p.Priority), cmp.Compare(p.Turn, other.Turn), p.Since.Compare(other.Since),
		cmp.Compare(p.UID, other.UID))
}

// Before reports whether a place comes before another.
func (p Place) Before(other Place) bool { return p.Compare(other) < 0 }

// NextTurn is the turn of a benchmark that joins a queue now: the turn of the benchmark being served, or, if others of its namespace have
// already joined, one step behind the last of them. A namespace cannot get ahead by submitting more benchmarks or by joining earlier.
func NextTurn(served int64, last *int64, weight int64) int64 {
	if last == nil {
		return served
	}
	return max(served, *last+max(1, Round/max(1, weight)))
}

// PlaceOf is the place of a queued benchmark.
func PlaceOf(benchmark *v1alpha1.StorageBenchmark, limits Limits) Place {
	place := Place{UID: string(benchmark.UID), Name: benchmark.Namespace + "/" + benchmark.Name,
		Priority: limits.priority(benchmark.Namespace, benchmark.Spec.Priority)}
	if queue := benchmark.Status.Queue; queue != nil {
		place.Turn, place.Since = queue.Turn, queue.Since.Time
	}
	return place
}

// Waits reports whether a benchmark is in a queue.
func Waits(benchmark *v1alpha1.StorageBenchmark) bool {
	return benchmark.Status.Queue != nil && benchmark.DeletionTimestamp.IsZero() && !benchmark.Spec.Suspend
}

// Joins reports whether a decision gives the benchmark a new place, because it had none or had one in the queues of other nodes.
func Joins(state State, decision Decision) bool {
	status := state.Benchmark.Status
	return decision.InLine && (status.Queue == nil || status.NodeName != decision.NodeName)
}
