package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/volume"
)

// KeptPool is a BenchmarkPool of the benchmark that outlives the run that created it.
type KeptPool struct {
	Name, Node string
	// RunUID is the UID of the run that uses the pool, or used it last.
	RunUID string
	// Lineage is the lineage of the experiments that pass the pool on to each other, and Age how much it has been used. They are empty if
	// the pool belongs to one experiment.
	Lineage string
	Age     *v1alpha1.PoolAge
	// Problem says why no run can use the pool. It is empty if the pool is ready and unchanged.
	Problem string
	// Deleting is true if the pool is being deleted, DeletedAt says since when.
	Deleting  bool
	DeletedAt time.Time
	// Message is the message of its agent.
	Message string
}

// KeptPoolOf reads a kept pool for the planner.
func KeptPoolOf(pool *v1alpha1.BenchmarkPool) KeptPool {
	kept := KeptPool{Name: pool.Name, Node: pool.Spec.NodeName, RunUID: pool.Labels[v1alpha1.LabelRunUID],
		Lineage: pool.Labels[v1alpha1.LabelLineage], Deleting: !pool.DeletionTimestamp.IsZero()}
	known := false
	kept.Age, known = runs.PoolAgeOf(pool)
	if kept.Deleting {
		kept.DeletedAt = pool.DeletionTimestamp.Time
	}
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	// A pool that has aged for many nights is not given up because of a temporary problem: the next run waits for it until its startDeadline.
	// A pool that waits for a person, because the node has stopped with it, is not given up either.
	stalled := meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionStalled)
	passing := kept.Lineage != "" && (!stalled || ready != nil && ready.Reason == v1alpha1.ReasonPoolStopsNode)
	switch {
	case ready == nil:
		kept.Problem = "its agent has not reconciled it"
	case !known:
		kept.Message, kept.Problem = ready.Message, "its annotation "+v1alpha1.AnnotationPoolAge+" was changed"
	case pool.Generation > 1:
		kept.Message, kept.Problem = ready.Message, "its spec was changed"
	default:
		kept.Message = ready.Message
		if ready.Status != metav1.ConditionTrue && !passing {
			kept.Problem = ready.Reason + ": " + ready.Message
		}
	}
	return kept
}

// user returns the run that uses a pool, or used it last, or nil if that run is gone.
func (p KeptPool) user(state State) *v1alpha1.BenchmarkRun {
	for i := range state.Runs {
		if p.RunUID != "" && string(state.Runs[i].UID) == p.RunUID {
			return &state.Runs[i]
		}
	}
	return nil
}

// lost says why the contents of a pool are unknown. It returns "" if its last run passes it on.
func (p KeptPool) lost(state State) string {
	user := p.user(state)
	switch {
	case p.Deleting:
		return "it is being deleted"
	case user == nil:
		return "the last run that used it is gone"
	case !runs.HandsOn(user):
		return fmt.Sprintf("run %s left it in an unknown state", user.Name)
	}
	return ""
}

// unfit says why the next run cannot use a pool. It returns "" if it can.
func (p KeptPool) unfit(state State) string { return cmp.Or(p.lost(state), p.Problem) }

// fit returns the wanted pools that the next run can use.
func fit(state State, wanted map[string]bool) map[string]bool {
	found := map[string]bool{}
	for _, pool := range state.Pools {
		if wanted[pool.Name] && pool.unfit(state) == "" {
			found[pool.Name] = true
		}
	}
	return found
}

// keepFor returns the wanted pools that the next run reuses: all of them, or none. With pools of different ages, the initial state of a
// repetition would be unknown.
func keepFor(state State, wanted map[string]bool) map[string]bool {
	if found := fit(state, wanted); len(found) == len(wanted) {
		return found
	}
	return nil
}

// giveBack deletes the kept pools that are not in keep, and says what it waits for, or "" if there is nothing to wait for. It leaves the
// pools of unfinished runs to those runs.
func giveBack(state State, decision *Decision, keep map[string]bool) (waiting string) {
	for _, pool := range state.Pools {
		user := pool.user(state)
		if user != nil && (!runs.Settled(user) || !user.DeletionTimestamp.IsZero()) {
			continue
		}
		if keep[pool.Name] {
			continue
		}
		why := pool.unfit(state)
		if !pool.Deleting {
			decision.do(Action{Kind: DeletePool, Pool: pool.Name, RunUID: pool.RunUID})
		}
		if waiting != "" {
			continue
		}
		waiting = "waiting until BenchmarkPool " + pool.Name + " is gone"
		switch {
		case pool.Deleting && pool.Message != "":
			waiting += ": " + pool.Message
		case why != "":
			waiting += ": it is not reused: " + why
		}
	}
	return waiting
}

// keptForNext deletes the pools that the next run does not reuse, and says what it waits for.
func keptForNext(state State, decision *Decision, next *design.Slot) (waiting string) {
	wanted := keptPoolNames(state, next.Variant, next.Target.ZFS, decision.NodeNames)
	return giveBack(state, decision, keepFor(state, wanted))
}

// giveBackBeside deletes, while runs are active, the pools that these runs cannot reuse. The runs recreate them.
func giveBackBeside(state State, decision *Decision) {
	wanted := map[string]bool{}
	for i := range state.Runs {
		if run := &state.Runs[i]; !runs.Settled(run) && run.Spec.Experiment == state.Experiment {
			maps.Copy(wanted, keptPoolNames(state, run.Spec.Variant, run.Spec.Target.ZFS, []string{run.Spec.NodeName}))
		}
	}
	giveBack(state, decision, fit(state, wanted))
}

// KeepsNode reports whether a kept pool prevents the release of its node, because its disks are not free. A pool blocks only its disks if
// it stays for the next experiment, if its agent could not destroy it within the grace period, or if its run is stuck.
func KeepsNode(state State, node string) bool {
	stay := between(state)
	return slices.ContainsFunc(state.Pools, func(pool KeptPool) bool {
		if stay[pool.Name] || pool.Node != node {
			return false
		}
		user := pool.user(state)
		gone := pool.Deleting && state.TeardownGrace > 0 && state.Now.Sub(pool.DeletedAt) >= state.TeardownGrace
		return !gone && (user == nil || !runs.Stuck(user))
	})
}

// SortKept sorts pools in a stable order.
func SortKept(pools []KeptPool) {
	slices.SortFunc(pools, func(a, b KeptPool) int { return cmp.Compare(a.Name, b.Name) })
}

// keptPoolNames returns the names of the pools of a variant on some nodes, or nil if they are not kept.
func keptPoolNames(state State, variant string, target *v1alpha1.ZFSTarget, nodes []string) map[string]bool {
	if !naming.KeepsPools(target) {
		return nil
	}
	names, within := map[string]bool{}, cmp.Or(lineageFor(state, &design.Slot{Target: v1alpha1.Target{ZFS: target}}), state.Experiment)
	for _, node := range nodes {
		for _, one := range volume.Pools(volume.TargetVolumes(v1alpha1.Target{ZFS: target})) {
			names[naming.KeptPoolName(string(state.Benchmark.UID), within, variant, node, one.Name)] = true
		}
	}
	return names
}
