package plan

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// KeepsPools says whether the pools of a target are kept from one repetition to the next.
func KeepsPools(target *v1alpha1.ZFSTarget) bool {
	return target != nil && (target.Reset == v1alpha1.ResetDataset || target.Reset == v1alpha1.ResetNone)
}

// keptPoolName is the name of a pool that repetitions of a variant use one after another on a node. The experiment stands for the whole
// target: a changed spec gets another pool.
func keptPoolName(benchmarkUID, experiment, variant, node, volume string) string {
	return clusterName(volume, benchmarkUID, experiment, variant, node)
}

// keptPoolNames are the names of the pools of a variant on some nodes; none if they are not kept.
func keptPoolNames(state BenchmarkState, variant string, target *v1alpha1.ZFSTarget, nodes []string) map[string]bool {
	if !KeepsPools(target) {
		return nil
	}
	names := map[string]bool{}
	for _, node := range nodes {
		for _, volume := range volumeNames(target) {
			names[keptPoolName(string(state.Benchmark.UID), state.Experiment, variant, node, volume)] = true
		}
	}
	return names
}

// KeptFor says whether a BenchmarkPool is one that is kept for repetitions such as this run, whichever of them has it now. Its spec is the
// run's as long as nobody has changed it: that gives it another generation.
func KeptFor(pool *v1alpha1.BenchmarkPool, run *v1alpha1.BenchmarkRun) bool {
	for _, label := range []string{v1alpha1.LabelBenchmarkUID, v1alpha1.LabelExperiment} {
		if own := run.Labels[label]; own == "" || pool.Labels[label] != own {
			return false
		}
	}
	target := run.Spec.Target.ZFS
	return KeepsPools(target) && pool.Labels[v1alpha1.LabelReset] == string(target.Reset) && pool.Labels[v1alpha1.LabelNamespace] == run.Namespace &&
		pool.Spec.NodeName == run.Spec.NodeName && pool.Generation <= 1
}

// HandsOn says whether a run leaves its pools in a known state for the next one: it is over, is valid, and nothing of it is left.
func HandsOn(run *v1alpha1.BenchmarkRun) bool {
	ending := recordedEnding(run)
	return ending != nil && ending.Valid && Settled(run) && run.DeletionTimestamp.IsZero()
}

// checkReset refuses what cannot be done on a pool that is kept.
func checkReset(slot *Slot) error {
	target := slot.Target.ZFS
	if !KeepsPools(target) {
		return nil
	}
	refuse := func(reason, format string, values ...any) error {
		return &SpecError{reason, fmt.Sprintf("variant %q has reset: %s, and ", slot.Variant, target.Reset) + fmt.Sprintf(format, values...)}
	}
	if usesProvisioner(target, ProvisionerOpenEBS) {
		return refuse(v1alpha1.ReasonNotSupported, "provisioner: OpenEBS: only datasets of the agent can be kept; write provisioner: Local, or reset: Pool")
	}
	for i := range slot.Phases {
		for _, action := range operationsOf(&slot.Phases[i]) {
			if leavesTraces(action) {
				return refuse(v1alpha1.ReasonNotSupported, "phase %s does %s, which would change the pool for the repetitions after it: write reset: Pool, or remove it",
					slot.Phases[i].Name, OperationName(*action))
			}
		}
	}
	return nil
}

// leavesTraces says whether an operation makes or removes something beside the data of the workload: a dataset, a snapshot or a disk.
func leavesTraces(action *v1alpha1.PoolAction) bool {
	return action.Snapshot != nil || action.Clone != nil || action.DestroyDataset != nil || action.Replicate != nil || action.Copy != nil ||
		action.AddVdev != nil || action.RemoveVdev != nil || action.ReplaceDevice != nil
}

// operationsOf are the operations of a phase: the one that it is, and the one beside it.
func operationsOf(phase *v1alpha1.Phase) []*v1alpha1.PoolAction {
	var actions []*v1alpha1.PoolAction
	if phase.Operate != nil {
		actions = append(actions, &phase.Operate.PoolAction)
	}
	if phase.Measure != nil && phase.Measure.Operate != nil {
		actions = append(actions, phase.Measure.Operate)
	}
	return actions
}

// checkKept refuses an experiment in which a kept pool could not be kept. Variants may need the same disks, so the pool of one goes before
// another's run is made: repetitions have to follow each other.
func checkKept(spec *v1alpha1.StorageBenchmarkSpec, variants []Slot) error {
	at := slices.IndexFunc(variants, func(slot Slot) bool { return KeepsPools(slot.Target.ZFS) })
	if at < 0 {
		return nil
	}
	reset := variants[at].Target.ZFS.Reset
	switch {
	case len(variants) > 1 && spec.Repetitions > 1 && spec.Order != v1alpha1.OrderSequential:
		return &SpecError{v1alpha1.ReasonSpecInvalid, fmt.Sprintf(
			"variant %q has reset: %s, which keeps its pool from one repetition to the next, and in the order Interleaved other variants come between: write order: Sequential, or reset: Pool",
			variants[at].Variant, reset)}
	case spec.Retain != "" && spec.Retain != v1alpha1.RetainNever:
		return &SpecError{v1alpha1.ReasonSpecInvalid, fmt.Sprintf(
			"variant %q has reset: %s, and a run that is retained (retain: %s) could not hand its pool on: write retain: Never, or reset: Pool",
			variants[at].Variant, reset, spec.Retain)}
	}
	return nil
}
