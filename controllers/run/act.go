package run

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	batchv1 "k8s.io/api/batch/v1"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/write"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

// Annotations of a stored result. They show its outcome without decoding it.
const (
	annotationDigest  = "storagebench.dev/digest"
	annotationOutcome = "storagebench.dev/outcome"
	annotationReason  = "storagebench.dev/reason"
	annotationMessage = "storagebench.dev/message"
	// annotationStartLag is the delay, in milliseconds, with which a phase of a group's run started.
	annotationStartLag = "storagebench.dev/start-lag-milliseconds"
)

// act carries out the decision and records in state what it has created. Objects are created, never applied: applying would adopt an object
// of another owner with the same name, and the run would later delete it as its own.
func (r *Reconciler) act(ctx context.Context, state *runs.State, actions []runs.Action) error {
	for _, action := range actions {
		var err error
		switch action.Kind {
		case runs.CreatePools:
			err = r.createPools(ctx, state.Run)
		case runs.TakePools:
			err = r.takePools(ctx, state.Run)
		case runs.SetParameters:
			err = r.setParameters(ctx, state.Run)
		case runs.RestoreParameter:
			err = r.cancel(ctx, state.Parameters[action.Parameter])
		case runs.CreateVolumes:
			err = r.createVolumes(ctx, state)
		case runs.ReportDatasets:
			err = r.reportDatasets(ctx, state)
		case runs.StartPhase:
			err = r.startPhase(ctx, state, action.Phase, action.StartAt)
		case runs.StartCompanion:
			err = r.create(ctx, state.Run, runs.CompanionOperation(*state, action.Phase, action.Companion))
		case runs.EndCompanion:
			err = r.cancel(ctx, state.Phases[action.Phase].Companions[action.Companion])
		case runs.TellEnd:
			err = r.tellEnd(ctx, state.Run, action)
		case runs.StoreResult:
			err = r.storeResult(ctx, state, action.Phase)
		case runs.DeleteJobsAndOperations:
			err = r.deleteJobsAndOperations(ctx, state.Run)
		case runs.DeleteVolumes:
			err = r.deleteVolumes(ctx, state.Run)
		case runs.DeletePools:
			err = r.deletePools(ctx, state.Run)
		case runs.RemoveRunFinalizer:
			err = client.IgnoreNotFound(write.Finalizer(ctx, r.Client, state.Run, controllerutil.RemoveFinalizer))
		}
		if err != nil {
			return fmt.Errorf("%s for run %s/%s: %w", action.Kind, state.Run.Namespace, state.Run.Name, err)
		}
	}
	return nil
}

// create creates an object of the run. If it already exists and belongs to this run, that is a success, because names are deterministic and
// the planner observes again.
func (r *Reconciler) create(ctx context.Context, run *v1alpha1.BenchmarkRun, object client.Object) error {
	err := r.Client.Create(ctx, object)
	switch {
	case refuses(err):
		return &refusedError{fmt.Sprintf("%s %s", r.kindOf(object), object.GetName()), err}
	case !apierrors.IsAlreadyExists(err):
		return err
	}
	existing := object.DeepCopyObject().(client.Object)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), existing); err != nil {
		return client.IgnoreNotFound(err)
	}
	if mine := naming.IsControlledBy(existing, run) || object.GetNamespace() == "" && ofRun(existing, run); !mine {
		return &takenError{fmt.Sprintf("%s %s", r.kindOf(object), object.GetName())}
	}
	return nil
}

// takenError means that an object of another owner has a name that the run needs.
type takenError struct{ object string }

func (e *takenError) Error() string {
	return e.object + " exists and does not belong to this run: delete or rename it, so that the run can continue"
}

// refuses reports whether the API server does not let the run create an object, because of a quota, a policy, or the object itself. If a
// webhook denies a request without a code, the API server returns BadRequest.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// refusedError means that the API server refuses to create an object.
type refusedError struct {
	object string
	err    error
}

func (e *refusedError) Error() string { return e.object + " cannot be created: " + e.err.Error() }

func (e *refusedError) Unwrap() error { return e.err }

func (r *Reconciler) kindOf(object client.Object) string {
	kind, err := apiutil.GVKForObject(object, r.Client.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return kind.Kind
}

// startPhase creates the Job or PoolOperation of a phase, after a final check that the benchmark still holds the node.
func (r *Reconciler) startPhase(ctx context.Context, state *runs.State, i int, at time.Time) error {
	var lease coordinationv1.Lease
	key := types.NamespacedName{Namespace: r.LeaseNamespace, Name: naming.LeaseName(state.Run.Spec.NodeName)}
	if err := r.Live.Get(ctx, key, &lease); err != nil {
		return fmt.Errorf("confirm that the benchmark holds node %s: %w", state.Run.Spec.NodeName, err)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != state.Owner {
		return fmt.Errorf("node %s was just taken by %s", state.Run.Spec.NodeName, lease.Annotations[v1alpha1.AnnotationHolder])
	}
	if state.Run.Spec.Phases[i].Operate != nil {
		operation := runs.PhaseOperation(*state, i)
		runs.Mark(operation, at, state.BootID)
		if err := r.create(ctx, state.Run, operation); err != nil || operation.UID == "" {
			return err
		}
		return state.Phases[i].ExecuteByOperation(state.Run, state.Run.Spec.Phases[i], operation)
	}
	job, err := buildJob(state.Run, state.Run.Spec.Phases[i], state.Pools, at)
	if err != nil {
		return err
	}
	runs.Mark(job, at, state.BootID)
	if err := r.create(ctx, state.Run, job); err != nil {
		return err
	}
	if job.UID != "" {
		state.Phases[i].Executor = runs.JobExecutor(job, "")
	}
	return nil
}

// storeResult stores a received document in a ConfigMap of the run, together with the results of its companions.
func (r *Reconciler) storeResult(ctx context.Context, state *runs.State, i int) error {
	run, spec := state.Run, state.Run.Spec.Phases[i]
	for companion, observation := range state.Phases[i].Companions {
		if _, observes := companion.Observes(); !observes {
			continue
		}
		// The cache keeps no data of operations.
		fresh, err := readOperation(ctx, r.Live, run, observation.Name)
		if err != nil {
			return err
		}
		state.Phases[i].Companions[companion] = fresh
	}
	result, err := runs.Joined(*state, i)
	if err != nil {
		return err
	}
	binary, text, _, err := results.StoredPhase(result.Text, result.Digest)
	if err != nil {
		return err
	}
	if result.Observed != nil {
		binary[results.KeyPool], text[results.KeyPoolDigest] = result.Observed.Status.Data, result.Observed.Status.DataDigest
	}
	if spec.Operate != nil && spec.Operate.MetaslabMap != nil {
		fresh, err := readOperation(ctx, r.Live, run, naming.RunOperationName(run, spec))
		if err != nil {
			return err
		}
		if fresh != nil && len(fresh.Status.Data) > 0 {
			binary[results.KeyMetaslabs], text[results.KeyMetaslabsDigest] = fresh.Status.Data, fresh.Status.DataDigest
		}
	}
	labels := runs.Labels(run)
	labels[v1alpha1.LabelPhase] = result.Document.Phase
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.PhaseObjectName(run.Name, spec.Name), Namespace: run.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{ownerReference(run)},
			Annotations: map[string]string{
				annotationDigest:  text[results.KeyDigest],
				annotationOutcome: string(result.Document.Outcome),
				annotationReason:  result.Document.Reason,
				annotationMessage: spelling.Shorten(result.Document.Message, 512),
			},
		},
		Immutable:  new(true),
		Data:       text,
		BinaryData: binary,
	}
	if lag := result.StartLagMilliseconds; lag != nil {
		stored.Annotations[annotationStartLag] = strconv.FormatInt(*lag, 10)
	}
	if err := r.create(ctx, run, stored); err != nil {
		return err
	}
	r.Stored.Keep(stored)
	r.Memory.Note(run, storedFact(spec.Name), true)
	return nil
}

// deleteJobsAndOperations deletes all Jobs of the run in one write, and all its operations, for any purpose. Jobs are deleted in the
// foreground: otherwise a pod would remain, and load the node, as long as a tenant's finalizer keeps the Job.
func (r *Reconciler) deleteJobsAndOperations(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	if err := r.deleteOperations(ctx, run); err != nil {
		return err
	}
	if err := r.deleteRelabelledJobs(ctx, run); err != nil {
		return err
	}
	if r.Memory.Noted(run, jobsEnding) { // the cache will show it
		return nil
	}
	if err := r.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(run.Namespace),
		client.MatchingLabels{v1alpha1.LabelRunUID: string(run.UID)}, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return err
	}
	r.Memory.Note(run, jobsEnding, true)
	return nil
}

// deleteRelabelledJobs deletes, each by its name, the Jobs of a run from which a tenant has removed the run's label.
func (r *Reconciler) deleteRelabelledJobs(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	for _, phase := range run.Spec.Phases {
		var job batchv1.Job
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: naming.PhaseObjectName(run.Name, phase.Name)}, &job)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil || !naming.IsControlledBy(&job, run) || !job.DeletionTimestamp.IsZero() ||
			job.Labels[v1alpha1.LabelRunUID] == string(run.UID) {
			continue
		}
		if err := r.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(run.Namespace),
			client.MatchingFields{metav1.ObjectNameField: job.Name}, client.Preconditions{UID: &job.UID},
			client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			return err
		}
	}
	return nil
}
