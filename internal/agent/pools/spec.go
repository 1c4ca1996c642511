package pools

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// PropertySpec is the newest generation of the object that the agent has acted on. It is written before the first change for that
// generation. An object with a lower generation comes from a backup of etcd, and its spec is older than the pool.
const PropertySpec = "storagebench.dev:spec"

// heldSuffix is appended to the generation once an older spec has been seen. Without it, two changes of any kind to the restored
// object would make its old layout look new.
const heldSuffix = ":held"

// newestSpec returns the newest generation that a pool was changed for. held is true if an older generation was seen since, or if the mark
// is not readable.
func (l *LivePool) newestSpec() (generation int64, held bool) {
	mark, found := l.Property(l.Name, PropertySpec)
	if !found || !mark.Local() {
		return 0, false
	}
	text, held := strings.CutSuffix(mark.Value, heldSuffix)
	generation, err := strconv.ParseInt(text, 10, 64)
	if err != nil || generation < 0 {
		return math.MaxInt64, true
	}
	return generation, held
}

// OlderSpec returns why nothing is changed: the spec of the object is older than the pool, and no user has accepted the spec. It returns ""
// if the spec is not older or is accepted. Operations ask too: they were made for the pool as it was.
func OlderSpec(pool *v1alpha1.BenchmarkPool, live *LivePool) string {
	newest, held := live.newestSpec()
	own := pool.Generation
	older := newest > own || held
	if !older || acceptsSpec(pool) {
		return ""
	}
	return fmt.Sprintf("the spec of BenchmarkPool %s is of generation %d, but pool %s was changed for %s: "+
		"a backup of the cluster has been restored, and nothing is changed. Compare the spec with 'zpool status %s' on node %s and correct it, "+
		"then accept it: kubectl annotate --overwrite benchmarkpool %s %s=%d",
		pool.Name, own, live.Name, generationWords(newest), live.Name, pool.Spec.NodeName, pool.Name, v1alpha1.AnnotationAcceptSpec, own)
}

// olderSpec stops the work on a spec that is older than the pool, until a user accepts the spec. It returns nil if the spec is not older or
// is accepted.
func olderSpec(state State) *Decision {
	why := OlderSpec(state.Pool, state.Live)
	if why == "" {
		return nil
	}
	decision := stall(v1alpha1.ReasonPoolOlderSpec, "%s", why)
	if newest, held := state.Live.newestSpec(); !held {
		decision.Actions = []Action{state.noteSpec(strconv.FormatInt(newest, 10) + heldSuffix)}
	}
	return &decision
}

// beginSpec records on the pool the generation of the spec that the pool is about to be changed for.
func beginSpec(state State) *Decision {
	newest, held := state.Live.newestSpec()
	if own := state.Pool.Generation; newest == own && !held {
		return nil
	}
	return new(act("noting on pool "+state.Live.Name+" which generation of the spec it follows",
		state.noteSpec(strconv.FormatInt(state.Pool.Generation, 10))))
}

func (s State) noteSpec(value string) Action {
	return Action{Kind: SetPoolProperties, GUID: s.Live.GUID,
		Settings: []naming.Setting{{Dataset: s.Live.Name, Name: PropertySpec, Value: value}}}
}

// acceptsSpec reports whether a user has accepted the current spec.
func acceptsSpec(pool *v1alpha1.BenchmarkPool) bool {
	return pool.Annotations[v1alpha1.AnnotationAcceptSpec] == strconv.FormatInt(pool.Generation, 10)
}

func generationWords(generation int64) string {
	if generation == math.MaxInt64 {
		return "an unreadable one in its property " + PropertySpec
	}
	return fmt.Sprintf("generation %d before", generation)
}
