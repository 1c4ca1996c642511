package run

import (
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	batchv1 "k8s.io/api/batch/v1"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/documents"
	"github.com/storagebench/storagebench/internal/results"
)

// observe reads the state of a run. It reads from the cache. Before a conclusion is drawn from the absence of an object, or from another
// holder of the Lease, the API server has to confirm it. It takes the turn if the state has an unpacked result.
func (r *Reconciler) observe(ctx context.Context, run *v1alpha1.BenchmarkRun, turn *documents.Turn) (runs.State, error) {
	state := runs.State{Now: r.Clock.Now(), Timings: r.Timings, Run: run, Owner: ownerUID(run),
		Phases: make([]runs.PhaseState, len(run.Spec.Phases))}
	if err := r.observeResults(ctx, &state); err != nil {
		return state, err
	}
	if err := r.observeLease(ctx, &state); err != nil {
		return state, err
	}
	if err := r.observeStorage(ctx, &state); err != nil {
		return state, err
	}
	jobs, err := r.observeJobs(ctx, &state)
	if err != nil {
		return state, err
	}
	if err := r.observePods(ctx, &state, jobs); err != nil {
		return state, err
	}
	if err := r.observeOperations(ctx, &state); err != nil {
		return state, err
	}
	if err := r.observeBoot(ctx, &state); err != nil {
		return state, err
	}
	if err := r.observeFile(ctx, &state); err != nil {
		return state, err
	}
	if err := r.observePeers(ctx, &state); err != nil {
		return state, err
	}
	return state, r.receive(ctx, &state, turn)
}

func ownerUID(run *v1alpha1.BenchmarkRun) string {
	if owner := metav1.GetControllerOf(run); owner != nil {
		return string(owner.UID)
	}
	return ""
}

func (r *Reconciler) observeLease(ctx context.Context, state *runs.State) error {
	var lease coordinationv1.Lease
	key := types.NamespacedName{Namespace: r.LeaseNamespace, Name: naming.LeaseName(state.Run.Spec.NodeName)}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		err := reader.Get(ctx, key, &lease)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read the Lease of node %s: %w", state.Run.Spec.NodeName, err)
		}
		state.LeaseHolder, state.LeaseHolderName = "", ""
		if err == nil {
			state.LeaseHolder = ptr.Deref(lease.Spec.HolderIdentity, "")
			state.LeaseHolderName = lease.Annotations[v1alpha1.AnnotationHolder]
		}
		if state.LeaseHolder == state.Owner {
			break
		}
	}
	return nil
}

// byObject is the index of events by the object that they are about.
const byObject = "about"

// indexEvents indexes the Warnings about claims and Jobs.
func indexEvents(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Event{}, byObject, aboutObject)
}

func aboutObject(object client.Object) []string {
	event, is := object.(*corev1.Event)
	if !is || event.InvolvedObject.Name == "" || event.Type != corev1.EventTypeWarning {
		return nil
	}
	return []string{event.InvolvedObject.Kind + "/" + event.InvolvedObject.Name}
}

// lastWarning returns the newest Warning event about an object, which is the only evidence of some failures.
func (r *Reconciler) lastWarning(ctx context.Context, namespace, kind, name string) (string, error) {
	var events corev1.EventList
	if err := r.Client.List(ctx, &events, client.InNamespace(namespace), client.MatchingFields{byObject: kind + "/" + name},
		client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list events of namespace %s: %w", namespace, err)
	}
	var newest *corev1.Event
	for i := range events.Items {
		event := &events.Items[i]
		if event.Type != corev1.EventTypeWarning || event.InvolvedObject.Kind != kind || event.InvolvedObject.Name != name {
			continue
		}
		if newest == nil || eventTime(newest).Before(eventTime(event)) {
			newest = event
		}
	}
	if newest == nil {
		return "", nil
	}
	return fmt.Sprintf("%s %s: %s: %s", kind, name, newest.Reason, strings.TrimSpace(newest.Message)), nil
}

func eventTime(event *corev1.Event) time.Time {
	if !event.LastTimestamp.IsZero() {
		return event.LastTimestamp.Time
	}
	if !event.EventTime.IsZero() {
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

// observeJobs reads the Job or PoolOperation of each phase, and returns the phases by the UIDs of their Jobs.
func (r *Reconciler) observeJobs(ctx context.Context, state *runs.State) (map[types.UID]int, error) {
	byUID := map[types.UID]int{}
	for i, phase := range state.Run.Spec.Phases {
		key := types.NamespacedName{Namespace: state.Run.Namespace, Name: naming.PhaseObjectName(state.Run.Name, phase.Name)}
		recorded := runs.Recorded(state.Run, phase.Name)
		if phase.Operate != nil {
			if err := r.observeOperation(ctx, state, i, recorded); err != nil {
				return nil, err
			}
			continue
		}
		readers := []client.Reader{r.Client}
		if recorded && state.Phases[i].Stored == nil && !ending(state.Run) {
			readers = append(readers, r.Live)
		}
		for _, reader := range readers {
			var job batchv1.Job
			err := reader.Get(ctx, key, &job)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read Job %s: %w", key, err)
			}
			if err == nil && naming.IsControlledBy(&job, state.Run) {
				message, err := r.jobMessage(ctx, &job)
				if err != nil {
					return nil, err
				}
				state.Phases[i].Executor = runs.JobExecutor(&job, message)
				byUID[job.UID] = i
				break
			}
		}
	}
	return byUID, nil
}

// jobMessage returns why a Job has no pod. Admission errors appear only in an event.
func (r *Reconciler) jobMessage(ctx context.Context, job *batchv1.Job) (string, error) {
	if job.Status.Active > 0 || len(job.Status.Conditions) > 0 {
		return "", nil
	}
	return r.lastWarning(ctx, job.Namespace, "Job", job.Name)
}

// observePods lists the pods of a run. The API server has to confirm an absence that has consequences: that a finished Job has no pod, that
// a teardown without pods is stuck and, only once, that all Jobs and pods are gone.
func (r *Reconciler) observePods(ctx context.Context, state *runs.State, jobs map[types.UID]int) error {
	if err := r.listPods(ctx, r.Client, state, jobs); err != nil {
		return err
	}
	switch {
	case !ending(state.Run) && podsDoubtful(state), ending(state.Run) && len(jobs) > 0 && state.Pods == 0 && runs.TeardownOverdue(*state):
		return r.listPods(ctx, r.Live, state, jobs)
	case !ending(state.Run) || len(jobs) > 0 || state.Pods > 0 || r.Memory.Noted(state.Run, podsGone):
		return nil
	}
	if left, err := r.liveJobs(ctx, state, jobs); err != nil || left {
		return err
	}
	if err := r.listPods(ctx, r.Live, state, jobs); err != nil {
		return err
	}
	if state.Pods == 0 { // and without Jobs there will be no others
		r.Memory.Note(state.Run, podsGone, true)
	}
	return nil
}

// Facts about a run that is being torn down. Nothing is created for it any more.
const (
	podsGone   = "no Jobs and pods exist"
	jobsEnding = "all Jobs are being deleted"
)

// ending reports whether a run is being torn down, or will be, so that nothing is created for it any more.
func ending(run *v1alpha1.BenchmarkRun) bool {
	return !run.DeletionTimestamp.IsZero() || runs.RecordedEnding(run) != nil
}

// liveJobs adds the Jobs of a run that the cache does not show.
func (r *Reconciler) liveJobs(ctx context.Context, state *runs.State, byUID map[types.UID]int) (left bool, err error) {
	var jobs batchv1.JobList
	if err := r.Live.List(ctx, &jobs, client.InNamespace(state.Run.Namespace),
		client.MatchingLabels{v1alpha1.LabelRunUID: string(state.Run.UID)}); err != nil {
		return false, fmt.Errorf("list the Jobs of run %s/%s: %w", state.Run.Namespace, state.Run.Name, err)
	}
	all := true
	for i := range jobs.Items {
		job := &jobs.Items[i]
		for k, phase := range state.Run.Spec.Phases {
			if job.Name == naming.PhaseObjectName(state.Run.Name, phase.Name) && naming.IsControlledBy(job, state.Run) {
				state.Phases[k].Executor, byUID[job.UID], left = runs.JobExecutor(job, ""), k, true
				all = all && !job.DeletionTimestamp.IsZero()
			}
		}
	}
	if left {
		r.Memory.Note(state.Run, jobsEnding, all)
	}
	return left, nil
}

func (r *Reconciler) listPods(ctx context.Context, reader client.Reader, state *runs.State, jobs map[types.UID]int) error {
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, client.InNamespace(state.Run.Namespace),
		client.MatchingLabels{v1alpha1.LabelRun: state.Run.Name}); err != nil {
		return fmt.Errorf("list the pods of run %s/%s: %w", state.Run.Namespace, state.Run.Name, err)
	}
	state.Pods, state.PodsAtWork = len(pods.Items), runs.PodsAtWork(state.Run, jobs, pods.Items)
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for i := range pods.Items { // newest first, so that the oldest, which has measured, takes precedence
		owner := metav1.GetControllerOf(&pods.Items[i])
		if owner == nil {
			continue
		}
		if phase, ours := jobs[owner.UID]; ours {
			state.Phases[phase].Pod = runs.PodOf(&pods.Items[i])
		}
	}
	return nil
}

// podsDoubtful reports whether the cache shows no ended pod for a finished Job, which the API server should confirm.
func podsDoubtful(state *runs.State) bool {
	return slices.ContainsFunc(state.Phases, func(phase runs.PhaseState) bool {
		return (phase.Executor.Failed || phase.Executor.Succeeded) && phase.Pod.Ended == nil
	})
}

func (r *Reconciler) observeResults(ctx context.Context, state *runs.State) error {
	var stored metav1.PartialObjectMetadataList
	stored.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := r.Client.List(ctx, &stored, client.InNamespace(state.Run.Namespace),
		client.MatchingLabels{v1alpha1.LabelRun: state.Run.Name}); err != nil {
		return fmt.Errorf("list the results of run %s/%s: %w", state.Run.Namespace, state.Run.Name, err)
	}
	for i := range stored.Items {
		noteStored(state, &stored.Items[i])
	}
	for k, phase := range state.Run.Spec.Phases {
		if state.Phases[k].Stored != nil || !r.Memory.Noted(state.Run, storedFact(phase.Name)) {
			continue
		}
		// An earlier reconcile has stored a result that the cache does not show yet. Without this read, the log would be read again, and the
		// result stored again.
		var item metav1.PartialObjectMetadata
		item.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		key := types.NamespacedName{Namespace: state.Run.Namespace, Name: naming.PhaseObjectName(state.Run.Name, phase.Name)}
		if err := r.Live.Get(ctx, key, &item); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read the result %s: %w", key, err)
		}
		noteStored(state, &item)
	}
	return nil
}

// storedFact returns the name of the fact that the result of a phase was stored.
func storedFact(phase v1alpha1.PhaseName) string {
	return "the result of " + string(phase) + " is stored"
}

// noteStored records a ConfigMap of the run: the result of a phase, or the one that tells the pod of a phase when to end.
func noteStored(state *runs.State, item *metav1.PartialObjectMetadata) {
	if !naming.IsControlledBy(item, state.Run) {
		return
	}
	for k, phase := range state.Run.Spec.Phases {
		if item.Name == naming.PhaseEndName(state.Run.Name, phase.Name) {
			state.Phases[k].EndTold = true
		}
		if item.Name != naming.PhaseObjectName(state.Run.Name, phase.Name) {
			continue
		}
		state.Phases[k].Stored = storedResult(item)
	}
}

// digestPattern matches the digest of a document.
var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// maxLag is the longest lag in milliseconds that a duration can hold.
const maxLag = math.MaxInt64 / int64(time.Millisecond)

// storedResult reads the annotations of a stored result. If they have values that the manager does not write, the result is corrupt: others
// have changed the annotations, or created the ConfigMap, and the values could make the status invalid.
func storedResult(item *metav1.PartialObjectMetadata) *runs.StoredResult {
	stored := &runs.StoredResult{ConfigMap: item.Name, StoredAt: item.CreationTimestamp.Time}
	digest := item.Annotations[annotationDigest]
	text, late := item.Annotations[annotationStartLag]
	lag, err := strconv.ParseInt(text, 10, 64)
	if !digestPattern.MatchString(digest) || late && (err != nil || lag < 0 || lag > maxLag) {
		stored.Outcome, stored.Reason = results.OutcomeInvalid, v1alpha1.ReasonResultCorrupt
		stored.Message = fmt.Sprintf("ConfigMap %s was not created by storagebench, or its annotations were changed", item.Name)
		return stored
	}
	stored.Digest, stored.Outcome = digest, results.Outcome(item.Annotations[annotationOutcome])
	stored.Reason, stored.Message = item.Annotations[annotationReason], item.Annotations[annotationMessage]
	if late {
		stored.StartLagMilliseconds = &lag
	}
	return stored
}

// receive reads the result of a phase that has ended and is not stored yet. A forged result takes tens of MiB until it is stored, so only a
// few reconciles have one at the same time. The log is read before the turn, because that may take a minute.
func (r *Reconciler) receive(ctx context.Context, state *runs.State, turn *documents.Turn) error {
	for i := range state.Phases {
		phase := &state.Phases[i]
		if phase.Operation || phase.Stored != nil || phase.Pod.Ended == nil || !phase.Pod.HasReceipt || !state.Run.DeletionTimestamp.IsZero() {
			continue
		}
		receipt, err := results.ParseReceipt(phase.Pod.Message)
		if err != nil {
			phase.ReceiveError = err
			continue
		}
		gz, err := r.gather(ctx, state.Run.Namespace, phase.Pod.Name, receipt)
		if err != nil {
			phase.ReceiveError = err
			continue
		}
		if err := turn.Take(ctx); err != nil {
			return err
		}
		document, raw, err := results.Open(gz, receipt)
		if err != nil {
			phase.ReceiveError = err
			continue
		}
		phase.Receive(state.Run, state.Run.Spec.Phases[i].Name, document, raw, receipt.Digest)
	}
	return nil
}

// gather reads the result from the log of a pod, still compressed.
func (r *Reconciler) gather(ctx context.Context, namespace, pod string, receipt results.Receipt) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	log, err := r.Logs.ReadLog(ctx, namespace, pod, runs.ContainerName)
	if err != nil {
		return nil, fmt.Errorf("read the log of pod %s/%s: %w", namespace, pod, err)
	}
	defer func() { _, _ = io.Copy(io.Discard, io.LimitReader(log, 1<<20)); _ = log.Close() }()
	return results.Gather(log, receipt)
}
