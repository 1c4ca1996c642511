package benchmark

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/write"
)

// act carries out the decision.
func (r *Reconciler) act(ctx context.Context, observed *observation, decision experiment.Decision) error {
	benchmark := observed.Benchmark
	for _, action := range decision.Actions {
		var err error
		switch action.Kind {
		case experiment.AddFinalizer:
			err = write.Finalizer(ctx, r.Client, benchmark, controllerutil.AddFinalizer)
		case experiment.RemoveBenchmarkFinalizer:
			err = client.IgnoreNotFound(write.Finalizer(ctx, r.Client, benchmark, controllerutil.RemoveFinalizer))
		case experiment.TakeLease:
			err = r.takeLease(ctx, observed, action.Node)
		case experiment.BreakLease:
			err = r.breakLease(ctx, observed, action.Node)
		case experiment.ReleaseLease:
			err = r.releaseLease(ctx, observed, action.Node)
		case experiment.CreateRun:
			run := r.buildRun(observed, action, decision.NodeNames, decision.DefaultClass)
			err = r.createRun(ctx, benchmark, run)
		case experiment.DeleteRun:
			err = r.deleteRun(ctx, observed, action.Run)
		case experiment.DeletePool:
			err = r.deletePool(ctx, benchmark, action.Pool, action.RunUID)
		case experiment.WriteResults:
			err = r.writeResults(ctx, observed, decision, action)
		case experiment.WriteHistory:
			err = r.writeHistory(ctx, observed)
		case experiment.DeleteResults:
			err = r.deleteResults(ctx, benchmark, action.ConfigMap)
		case experiment.DeleteBenchmark:
			err = client.IgnoreNotFound(r.Client.Delete(ctx, benchmark,
				client.Preconditions{UID: &benchmark.UID, ResourceVersion: &benchmark.ResourceVersion}))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", action.Kind, err)
		}
	}
	return nil
}

// takeLease takes a node by creating its Lease: of two attempts, the API server lets one succeed.
func (r *Reconciler) takeLease(ctx context.Context, observed *observation, node string) error {
	benchmark := observed.Benchmark
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.LeaseName(node), Namespace: r.LeaseNamespace,
			Labels: map[string]string{v1alpha1.LabelNodeLease: "true"},
			Annotations: map[string]string{
				v1alpha1.AnnotationNode:    node,
				v1alpha1.AnnotationHolder:  benchmark.Namespace + "/" + benchmark.Name,
				v1alpha1.AnnotationHeldFor: observed.Experiment,
			},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(string(benchmark.UID)),
			AcquireTime:    &metav1.MicroTime{Time: r.Clock.Now()},
		},
	}
	return client.IgnoreAlreadyExists(r.Client.Create(ctx, lease))
}

// releaseLease releases the node after a final check that none of our runs is still running.
func (r *Reconciler) releaseLease(ctx context.Context, observed *observation, node string) error {
	benchmark := observed.Benchmark
	var own v1alpha1.BenchmarkRunList
	if err := r.Live.List(ctx, &own, client.InNamespace(benchmark.Namespace),
		client.MatchingLabels{v1alpha1.LabelBenchmarkUID: string(benchmark.UID)}); err != nil {
		return fmt.Errorf("confirm that no run is running on node %s: %w", node, err)
	}
	for i := range own.Items {
		if !runs.Resting(&own.Items[i]) {
			return nil // the cache will show it, and the planner will decide again
		}
	}
	if keeps, err := r.keepsPools(ctx, observed, own.Items); err != nil || keeps {
		return err
	}
	return r.deleteLease(ctx, node, string(benchmark.UID))
}

// breakLease takes a node from a holder that is confirmed gone.
func (r *Reconciler) breakLease(ctx context.Context, observed *observation, node string) error {
	for _, lease := range observed.Leases {
		if lease.Node == node && lease.Abandoned {
			return r.deleteLease(ctx, node, lease.Holder)
		}
	}
	return nil
}

// deleteLease deletes the Lease of a node if the given holder still has it.
func (r *Reconciler) deleteLease(ctx context.Context, node, holder string) error {
	var lease coordinationv1.Lease
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: r.LeaseNamespace, Name: naming.LeaseName(node)}, &lease); err != nil {
		return client.IgnoreNotFound(err)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != holder {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, &lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}))
}

// createRun creates a run. It is a success if it already exists and belongs to this benchmark: the cache will show it.
func (r *Reconciler) createRun(ctx context.Context, benchmark *v1alpha1.StorageBenchmark, run *v1alpha1.BenchmarkRun) error {
	err := r.Client.Create(ctx, run)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var existing v1alpha1.BenchmarkRun
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(run), &existing); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(&existing, benchmark) {
		return fmt.Errorf("BenchmarkRun %s exists and does not belong to this benchmark: delete it, so that the run can be created", run.Name)
	}
	return nil
}

func (r *Reconciler) deleteRun(ctx context.Context, observed *observation, name string) error {
	for i := range observed.Runs {
		if run := &observed.Runs[i]; run.Name == name {
			return client.IgnoreNotFound(r.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID}))
		}
	}
	return nil
}

func (r *Reconciler) deleteResults(ctx context.Context, benchmark *v1alpha1.StorageBenchmark, name string) error {
	var stored corev1.ConfigMap
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: benchmark.Namespace, Name: name}, &stored); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(&stored, benchmark) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, &stored, client.Preconditions{UID: &stored.UID}))
}

// buildRun is the run for a slot, or one of its group, with all values resolved.
func (r *Reconciler) buildRun(observed *observation, action experiment.Action, nodes []string, defaultClass string) *v1alpha1.BenchmarkRun {
	benchmark, slot, node := observed.Benchmark, action.Slot, nodes[action.Member]
	target := experiment.ResolveTarget(slot.Target, node, defaultClass, experiment.DefaultProvisioner(observed.State))
	name := naming.RunName(benchmark.Name, observed.Experiment, slot.Index, action.Attempt)
	group := experiment.GroupOf(name, action.Member, nodes)
	if group != nil {
		name = naming.MemberName(name, action.Member)
	}
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: benchmark.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelBenchmark:    naming.BenchmarkLabel(benchmark.Name),
				v1alpha1.LabelBenchmarkUID: string(benchmark.UID),
				v1alpha1.LabelExperiment:   observed.Experiment,
			},
			Annotations:     scheduledTime(observed.ScheduledTime),
			Finalizers:      []string{v1alpha1.FinalizerTeardown},
			OwnerReferences: []metav1.OwnerReference{ownerReference(benchmark)},
		},
		Spec: v1alpha1.BenchmarkRunSpec{
			Benchmark: benchmark.Name, Experiment: observed.Experiment,
			Index: slot.Index, Variant: slot.Variant, Repetition: slot.Repetition, Attempt: action.Attempt, Seed: slot.Seed,
			NodeName: node, Group: group, RunnerImage: r.image(observed), Target: target, Phases: slot.Phases,
			Retain: benchmark.Spec.Retain, PodTemplate: *benchmark.Spec.PodTemplate.DeepCopy(),
		},
	}
}

// image is the runner image of the experiment: that of its first run, because an upgrade of the operator during an experiment must
// not change the runner.
func (r *Reconciler) image(observed *observation) string {
	for _, run := range observed.Runs {
		if run.Spec.Experiment == observed.Experiment {
			return run.Spec.RunnerImage
		}
	}
	if r.PostgresImage != "" && slices.ContainsFunc(observed.Slots, usesPostgres) {
		return r.PostgresImage
	}
	return r.RunnerImage
}

// usesPostgres checks all slots, so that the runs of one experiment differ only in their variant.
func usesPostgres(slot experiment.Slot) bool {
	return slices.ContainsFunc(slot.Phases, func(phase v1alpha1.Phase) bool {
		traits, _ := workload.PhaseTraits(&phase)
		return traits.Postgres
	})
}

// rehearse lets the API server validate every variant with a dry run, so that an invalid value is found before the first run and
// not in the middle of the experiment.
func (r *Reconciler) rehearse(ctx context.Context, observed *observation) error {
	seen := map[string]bool{}
	for i := range observed.Slots {
		slot := &observed.Slots[i]
		if seen[slot.Variant] {
			continue
		}
		seen[slot.Variant] = true
		run := r.buildRun(observed, experiment.Action{Slot: slot, Attempt: 1}, rehearsalNodes(slot), "rehearsal")
		run.Name += "-rehearsal"
		err := r.Client.Create(ctx, run, client.DryRunAll)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return &experiment.SpecError{Reason: v1alpha1.ReasonSpecInvalid, Message: fmt.Sprintf("variant %q cannot be run: %v", slot.Variant, err)}
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("dry run of variant %q: %w", slot.Variant, err)
		}
	}
	return nil
}

// rehearsalNodes are placeholders for nodes that are not chosen yet.
func rehearsalNodes(slot *experiment.Slot) []string {
	nodes := []string{"rehearsal"}
	for len(nodes) < slot.NodeCount() {
		nodes = append(nodes, fmt.Sprintf("rehearsal-%d", len(nodes)))
	}
	return nodes
}

// scheduledTime marks what belongs to a scheduled time.
func scheduledTime(at time.Time) map[string]string {
	if at.IsZero() {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationScheduledTime: experiment.TimeText(at)}
}

func ownerReference(benchmark *v1alpha1.StorageBenchmark) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "StorageBenchmark", Name: benchmark.Name, UID: benchmark.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}
