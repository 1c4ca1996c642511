package experiment

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
)

// KeptPool is a BenchmarkPool of the benchmark that outlives the run that made it.
type KeptPool struct {
	Name string
	// RunUID is the run that has it, or had it last.
	RunUID string
	// Problem says in words why no run is to go on with it; empty if it is ready and as it was made.
	Problem string
	// Deleting says that it is being deleted, DeletedAt since when.
	Deleting  bool
	DeletedAt time.Time
	// Message is what its agent says.
	Message string
}

// user is the run that has a pool, or had it last; nil if it is gone.
func (p KeptPool) user(state State) *v1alpha1.BenchmarkRun {
	for i := range state.Runs {
		if p.RunUID != "" && string(state.Runs[i].UID) == p.RunUID {
			return &state.Runs[i]
		}
	}
	return nil
}

// unfit says why the next run cannot go on with a pool; empty if it can.
func (p KeptPool) unfit(state State) string {
	user := p.user(state)
	switch {
	case p.Deleting:
		return "it is being deleted"
	case user == nil:
		return "the run that had it last is gone"
	case !runs.HandsOn(user):
		return fmt.Sprintf("run %s has left it in an unknown state", user.Name)
	}
	return p.Problem
}

// keepFor returns those of the wanted pools that the next run goes on with: all of them, or none. Pools of unlike age would make a
// repetition of no known condition.
func keepFor(state State, wanted map[string]bool) map[string]bool {
	fit := 0
	for _, pool := range state.Pools {
		if wanted[pool.Name] && pool.unfit(state) == "" {
			fit++
		}
	}
	if fit < len(wanted) {
		return nil
	}
	return wanted
}

// giveBack deletes the kept pools that nobody is to go on with, and says in words what is waited for; empty if there are none. Those that a
// run has which is not over are that run's affair.
func giveBack(state State, decision *Decision, keep map[string]bool) (waiting string) {
	for _, pool := range state.Pools {
		user := pool.user(state)
		if user != nil && (!runs.Settled(user) || !user.DeletionTimestamp.IsZero()) {
			continue
		}
		why := pool.unfit(state)
		if keep[pool.Name] && why == "" {
			continue
		}
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
			waiting += ": it is not handed on: " + why
		}
	}
	return waiting
}

// keptForNext gives back what the next run does not go on with, and says what it has to wait for.
func keptForNext(state State, decision *Decision, next *Slot) (waiting string) {
	wanted := keptPoolNames(state, next.Variant, next.Target.ZFS, decision.NodeNames)
	return giveBack(state, decision, keepFor(state, wanted))
}

// giveBackBeside gives back, beside runs that are at work, what they cannot go on with: they recreate it.
func giveBackBeside(state State, decision *Decision) {
	wanted := map[string]bool{}
	for i := range state.Runs {
		if run := &state.Runs[i]; !runs.Settled(run) && run.Spec.Experiment == state.Experiment {
			maps.Copy(wanted, keptPoolNames(state, run.Spec.Variant, run.Spec.Target.ZFS, []string{run.Spec.NodeName}))
		}
	}
	giveBack(state, decision, wanted)
}

// KeepsNode says whether a kept pool is in the way of giving the node back: its disks would not be free. One that its agent could not
// destroy for so long, and one whose run is stuck, keeps its disks alone.
func KeepsNode(state State) bool {
	return slices.ContainsFunc(state.Pools, func(pool KeptPool) bool {
		user := pool.user(state)
		gone := pool.Deleting && state.TeardownGrace > 0 && state.Now.Sub(pool.DeletedAt) >= state.TeardownGrace
		return !gone && (user == nil || !runs.Stuck(user))
	})
}

// SortKept puts pools into an order that does not change.
func SortKept(pools []KeptPool) {
	slices.SortFunc(pools, func(a, b KeptPool) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}
