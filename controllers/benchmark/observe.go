package benchmark

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/trim"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// observation is the planner's State, with data that the planner does not need: the compiled gates and the written results.
type observation struct {
	experiment.State
	gates *gate.Set
	// written are the results of the current experiment, read if the status does not contain them yet. document is their ConfigMap.
	written  *results.Experiment
	document *corev1.ConfigMap
	// changed is true if an action has changed the State. again is true if another reconcile should soon look at the caches again.
	changed, again bool
}

// noteResults adds to the results that the cache shows those of the current experiment, which were just written or read.
func (o *observation) noteResults(stored *corev1.ConfigMap, decoded *results.Experiment) {
	own := storedExperiment(stored)
	own.Experiment = o.Experiment // its name says so, whatever its label says
	o.Results = append(slices.DeleteFunc(o.Results, func(other experiment.StoredExperiment) bool { return other.ConfigMap == stored.Name }),
		own)
	o.written, o.document = decoded, stored
}

// observe reads the state of a benchmark.
func (r *Reconciler) observe(ctx context.Context, benchmark *v1alpha1.StorageBenchmark) (*observation, error) {
	observed := &observation{State: experiment.State{
		Now: r.Clock.Now(), Benchmark: benchmark, Limits: r.Limits, TeardownGrace: r.TeardownGrace, Images: r.Images,
	}}
	var runs v1alpha1.BenchmarkRunList
	if err := r.Client.List(ctx, &runs, client.InNamespace(benchmark.Namespace),
		client.MatchingLabels{v1alpha1.LabelBenchmarkUID: string(benchmark.UID)}); err != nil {
		return nil, fmt.Errorf("list the runs of benchmark %s/%s: %w", benchmark.Namespace, benchmark.Name, err)
	}
	observed.Runs = slices.DeleteFunc(runs.Items, func(run v1alpha1.BenchmarkRun) bool { return !ofBenchmark(&run, benchmark) })
	slices.SortFunc(observed.Runs, experiment.CompareRuns)
	if err := r.observeResults(ctx, observed); err != nil {
		return nil, err
	}
	observed.ScheduledTime = experiment.ScheduledTime(benchmark, observed.Runs, observed.Results, observed.Now)
	targets, err := r.storageTargets(ctx, benchmark)
	if err != nil {
		return nil, err
	}
	if run := experiment.Identify(&observed.State, targets); run != "" {
		if err := r.useTarget(ctx, &observed.State, run); err != nil {
			return nil, err
		}
	}
	if observed.gates, err = experiment.Understand(&observed.State); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context, *observation) error{
		r.observeClasses, r.observeDrivers, r.observeKept, r.observeNodesAndLeases, r.readBack, r.observeHistory,
		r.observeStandards,
	} {
		if err := step(ctx, observed); err != nil {
			return nil, err
		}
	}
	return observed, nil
}

// ofBenchmark reports whether a run belongs to the benchmark. A run without an owner was orphaned ('kubectl delete --cascade=orphan') and
// still runs; tenants may not create runs or change their labels.
func ofBenchmark(run, benchmark client.Object) bool {
	return naming.IsControlledBy(run, benchmark) || metav1.GetControllerOf(run) == nil &&
		run.GetLabels()[v1alpha1.LabelBenchmarkUID] == string(benchmark.GetUID())
}

// storageTargets reads the StorageTargets that the benchmark refers to.
func (r *Reconciler) storageTargets(ctx context.Context, benchmark *v1alpha1.StorageBenchmark) (map[string]v1alpha1.Target, error) {
	found := map[string]v1alpha1.Target{}
	for _, name := range design.TargetNames(&benchmark.Spec) {
		var target v1alpha1.StorageTarget
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: benchmark.Namespace, Name: name}, &target)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read StorageTarget %s/%s: %w", benchmark.Namespace, name, err)
		}
		found[name] = target.Spec
	}
	return found, nil
}

// useTarget reads the target of a run, which the cache does not keep, and uses it for the StorageTargets of the spec.
func (r *Reconciler) useTarget(ctx context.Context, state *experiment.State, name string) error {
	var run v1alpha1.BenchmarkRun
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: state.Benchmark.Namespace, Name: name}, &run); err != nil {
		return fmt.Errorf("read the target of run %s/%s: %w", state.Benchmark.Namespace, name, err)
	}
	experiment.UseTarget(state, run.Spec.Target)
	return nil
}

func (r *Reconciler) observeClasses(ctx context.Context, observed *observation) error {
	if r.WithoutClusterReads {
		observed.ClusterUnread, observed.Classes = true, experiment.NamedClasses(observed.Slots)
		return nil
	}
	var classes storagev1.StorageClassList
	if err := r.Client.List(ctx, &classes); err != nil {
		return fmt.Errorf("list storage classes: %w", err)
	}
	for _, class := range classes.Items {
		observed.Classes = append(observed.Classes, experiment.ClassState{
			Name: class.Name, Default: class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true",
		})
	}
	return nil
}

// abandoned checks with the API server whether a holder is gone (vanished), and whether none of its runs and pods can still be running
// (abandoned).
func (r *Reconciler) abandoned(ctx context.Context, lease *experiment.LeaseState) (vanished, abandoned bool, err error) {
	key, err := splitName(lease.HolderName)
	if err != nil {
		return false, false, err
	}
	var holder v1alpha1.StorageBenchmark
	if err := r.Live.Get(ctx, key, &holder); client.IgnoreNotFound(err) != nil {
		return false, false, fmt.Errorf("look for benchmark %s, which holds node %s: %w", key, lease.Node, err)
	} else if err == nil && string(holder.UID) == lease.Holder {
		return false, false, nil
	}
	left, err := r.liveRuns(ctx, key.Namespace, lease.Holder)
	if err != nil {
		return true, false, fmt.Errorf("look for runs of the vanished benchmark %s: %w", key, err)
	}
	if slices.ContainsFunc(left, func(run v1alpha1.BenchmarkRun) bool { return !runs.Resting(&run) }) {
		return true, false, nil
	}
	// Normally, a run goes only after its pods. If its finalizer was removed, wait for the pods, but no longer than any benchmark may hold a
	// node: anyone who may create pods can also label them.
	if held := r.Clock.Now().Sub(lease.Since); r.Limits.MaxHold > 0 && held >= r.Limits.MaxHold {
		return true, true, nil
	}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(key.Namespace),
		client.MatchingLabels{v1alpha1.LabelBenchmarkUID: lease.Holder}); err != nil {
		return true, false, fmt.Errorf("look for pods of the vanished benchmark %s: %w", key, err)
	}
	return true, !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	}), nil
}

// liveRuns lists the runs of a benchmark from the API server, a few at a time and trimmed like those in the cache: the specs of all of them
// may not fit into the memory.
func (r *Reconciler) liveRuns(ctx context.Context, namespace, benchmarkUID string) (all []v1alpha1.BenchmarkRun, err error) {
	const atATime = 50
	for next, more := "", true; more; more = next != "" {
		var list v1alpha1.BenchmarkRunList
		if err := r.Live.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelBenchmarkUID: benchmarkUID},
			client.Limit(atATime), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if _, err := trim.Run(&list.Items[i]); err != nil {
				return nil, err
			}
		}
		all, next = append(all, list.Items...), list.Continue
	}
	return all, nil
}

// LeaseState returns the contents of a Lease.
func LeaseState(lease *coordinationv1.Lease) *experiment.LeaseState {
	state := &experiment.LeaseState{
		Node:       lease.Annotations[v1alpha1.AnnotationNode],
		Holder:     ptr.Deref(lease.Spec.HolderIdentity, ""),
		HolderName: lease.Annotations[v1alpha1.AnnotationHolder],
		Since:      lease.CreationTimestamp.Time,
		Experiment: lease.Annotations[v1alpha1.AnnotationHeldFor],
	}
	if turn, err := strconv.ParseInt(lease.Annotations[v1alpha1.AnnotationTurn], 10, 64); err == nil {
		state.Turn = turn
	}
	if lease.Spec.AcquireTime != nil {
		state.Since = lease.Spec.AcquireTime.Time
	}
	return state
}

// observeResults lists the ConfigMaps with results, metadata only.
func (r *Reconciler) observeResults(ctx context.Context, observed *observation) error {
	benchmark := observed.Benchmark
	ofRuns, err := labels.NewRequirement(v1alpha1.LabelRun, selection.DoesNotExist, nil)
	if err != nil {
		return err
	}
	selector := labels.SelectorFromSet(labels.Set{v1alpha1.LabelBenchmarkUID: string(benchmark.UID)}).Add(*ofRuns)
	var stored metav1.PartialObjectMetadataList
	stored.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := r.Client.List(ctx, &stored, client.InNamespace(benchmark.Namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list the results of benchmark %s/%s: %w", benchmark.Namespace, benchmark.Name, err)
	}
	for i := range stored.Items {
		item := &stored.Items[i]
		switch {
		case !naming.IsControlledBy(item, benchmark) || !item.DeletionTimestamp.IsZero():
		case item.Name == naming.HistoryName(benchmark.Name):
			observed.History = historyState(item, benchmark)
		case hasResults(item, benchmark):
			observed.Results = append(observed.Results, storedExperiment(item))
		}
	}
	return nil
}

// hashPattern matches the values that the status may hold as the hash of an experiment or as a fingerprint.
var hashPattern = regexp.MustCompile(`^[0-9a-f]{1,16}$`)

// hasResults reports whether a ConfigMap of a benchmark contains the results of an experiment: its name must follow from its label. Other
// ConfigMaps could make the status invalid, with a label that is too long or with the same label twice.
func hasResults(document, benchmark metav1.Object) bool {
	hash := document.GetLabels()[v1alpha1.LabelExperiment]
	return hashPattern.MatchString(hash) && document.GetName() == naming.ResultsName(benchmark.GetName(), hash)
}

// storedExperiment reads the metadata of a ConfigMap with results. It ignores annotations that were changed to values that the status may
// not hold.
func storedExperiment(document metav1.Object) experiment.StoredExperiment {
	annotations := document.GetAnnotations()
	stored := experiment.StoredExperiment{
		ConfigMap: document.GetName(), Experiment: document.GetLabels()[v1alpha1.LabelExperiment],
		StoredAt:      document.GetCreationTimestamp().Time,
		Extended:      annotations[annotationExtended] == "true",
		ScheduledTime: experiment.TimeOf(annotations),
	}
	if fingerprint := annotations[v1alpha1.AnnotationFingerprint]; hashPattern.MatchString(fingerprint) {
		stored.Fingerprint = fingerprint
	}
	switch verdict := v1alpha1.Verdict(annotations[v1alpha1.AnnotationVerdict]); verdict {
	case v1alpha1.VerdictPassed, v1alpha1.VerdictFailed, v1alpha1.VerdictInconclusive, v1alpha1.VerdictInvalid:
		stored.Verdict = string(verdict)
	}
	return stored
}

// readBack reads the results of the current experiment if the status or the cache does not contain them yet. It does not look for results
// that were never reported: creating them will show whether the name is free.
func (r *Reconciler) readBack(ctx context.Context, observed *observation) error {
	benchmark, name := observed.Benchmark, naming.ResultsName(observed.Benchmark.Name, observed.Experiment)
	at := slices.IndexFunc(observed.Results, func(stored experiment.StoredExperiment) bool { return stored.ConfigMap == name })
	reported := benchmark.Status.Results != nil && benchmark.Status.Results.Experiment == observed.Experiment
	if at >= 0 && reported && benchmark.Status.Results.Fingerprint == observed.Results[at].Fingerprint {
		return nil
	}
	if ready := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady); at < 0 &&
		(!experiment.Count(observed.State).Over || !reported && (ready == nil || ready.Reason != v1alpha1.ReasonNameTaken)) {
		return nil
	}
	var stored corev1.ConfigMap
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: benchmark.Namespace, Name: name}, &stored)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the results in ConfigMap %s: %w", name, err)
	case !naming.IsControlledBy(&stored, benchmark):
		observed.Results = append(observed.Results, experiment.StoredExperiment{ConfigMap: name, Foreign: true})
		return nil
	}
	decoded, err := decodeResults(&stored)
	if err != nil {
		decoded = nil
		delete(stored.Annotations, v1alpha1.AnnotationFingerprint) // they were edited and are rewritten
	}
	observed.noteResults(&stored, decoded)
	return nil
}
