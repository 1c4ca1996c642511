package volume

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
)

// addEarlier adds a kept pool of an earlier repetition that this run has not taken over yet.
func addEarlier(state *Pools, pool *v1alpha1.BenchmarkPool) {
	state.Exist, state.Ready = false, false
	if !pool.DeletionTimestamp.IsZero() {
		state.Deleting = true
	}
	if state.Earlier == nil {
		state.Earlier = &EarlierPool{Name: pool.Name, RunName: pool.Labels[v1alpha1.LabelRun], RunUID: pool.Labels[v1alpha1.LabelRunUID]}
	}
}

// addKept records from which run a kept pool was taken over. A new pool has none.
func addKept(state *Pools, wanted RunVolume, pool *v1alpha1.BenchmarkPool) {
	name, uid := pool.Annotations[v1alpha1.AnnotationKeptFrom], pool.Annotations[v1alpha1.AnnotationKeptFromUID]
	if name == "" || uid == "" {
		return
	}
	if state.KeptFrom == nil {
		state.KeptFrom = map[string]results.RunIdentity{}
	}
	state.KeptFrom[wanted.Name] = results.RunIdentity{Namespace: pool.Labels[v1alpha1.LabelNamespace], Name: name, UID: uid}
}

// handedOn says whether the agent has reset a kept pool for a run: a status about an earlier run does not apply.
func handedOn(run *v1alpha1.BenchmarkRun, pool *v1alpha1.BenchmarkPool) bool {
	return !slices.ContainsFunc(naming.RunMarks(pool), func(mark naming.Setting) bool {
		return !slices.ContainsFunc(pool.Status.Properties, func(is v1alpha1.EffectiveProperty) bool {
			return is.Dataset == mark.Dataset && is.Name == mark.Name && is.Value == string(run.UID)
		})
	})
}

// KeptFor says whether a BenchmarkPool is kept for repetitions such as this run, whichever uses it now. Its spec is unchanged while
// its generation is.
func KeptFor(pool *v1alpha1.BenchmarkPool, run *v1alpha1.BenchmarkRun) bool {
	for _, label := range []string{v1alpha1.LabelBenchmarkUID, v1alpha1.LabelExperiment} {
		if own := run.Labels[label]; own == "" || pool.Labels[label] != own {
			return false
		}
	}
	target := run.Spec.Target.ZFS
	return naming.KeepsPools(target) && pool.Labels[v1alpha1.LabelReset] == string(target.Reset) &&
		pool.Labels[v1alpha1.LabelNamespace] == run.Namespace &&
		pool.Spec.NodeName == run.Spec.NodeName && pool.Generation <= 1
}
