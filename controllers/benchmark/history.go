package benchmark

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/verdict/history"
)

// observeHistory looks for a history that the cache does not show: one of another owner, or a new one. Before the first verdict it does not
// look, because there is none: creating it will show whether the name is free.
func (r *Reconciler) observeHistory(ctx context.Context, observed *observation) error {
	if observed.History.Exists || observed.Benchmark.Status.Verdict == "" || len(experiment.Foldable(observed.State)) == 0 {
		return nil
	}
	stored, err := r.liveHistory(ctx, observed.Benchmark)
	if err != nil || stored == nil {
		return err
	}
	observed.History = historyState(stored, observed.Benchmark)
	return nil
}

func historyState(document, benchmark metav1.Object) experiment.HistoryState {
	if !naming.IsControlledBy(document, benchmark) {
		return experiment.HistoryState{Foreign: true}
	}
	return experiment.HistoryState{Exists: true, Folded: strings.Fields(document.GetAnnotations()[v1alpha1.AnnotationFolded])}
}

// liveHistory reads the ConfigMap with the history. It returns nil if there is none.
func (r *Reconciler) liveHistory(ctx context.Context, benchmark *v1alpha1.StorageBenchmark) (*corev1.ConfigMap, error) {
	var stored corev1.ConfigMap
	name := naming.HistoryName(benchmark.Name)
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: benchmark.Namespace, Name: name}, &stored)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the history in ConfigMap %s: %w", name, err)
	}
	return &stored, nil
}

// historyBefore returns the history for gates that compare with it, or nil if there are no such gates or no history.
func (r *Reconciler) historyBefore(ctx context.Context, observed *observation) (*history.Series, error) {
	if !slices.ContainsFunc(observed.Benchmark.Spec.Gates, gate.AsksHistory) {
		return nil, nil
	}
	stored, err := r.liveHistory(ctx, observed.Benchmark)
	if err != nil || stored == nil || !naming.IsControlledBy(stored, observed.Benchmark) {
		return nil, err
	}
	series, err := history.Decode([]byte(stored.Data[history.Key]))
	if err != nil {
		return nil, nil //nolint:nilerr // it was edited: it is recreated from the retained results
	}
	return series, nil
}

// writeHistory merges the stored results into the history. A deleted or edited history is recreated from the retained results.
func (r *Reconciler) writeHistory(ctx context.Context, observed *observation) error {
	var existing *corev1.ConfigMap
	if !observed.History.Exists { // most likely there is none yet
		if err := r.mergeHistory(ctx, observed, nil); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	existing, err := r.liveHistory(ctx, observed.Benchmark)
	if err != nil {
		return err
	}
	if existing != nil && !naming.IsControlledBy(existing, observed.Benchmark) {
		observed.History, observed.changed = experiment.HistoryState{Foreign: true}, true
		return nil
	}
	return client.IgnoreAlreadyExists(r.mergeHistory(ctx, observed, existing)) // the next reconcile finds its owner
}

// mergeHistory merges the stored results into the given ConfigMap, or into a new one.
func (r *Reconciler) mergeHistory(ctx context.Context, observed *observation, existing *corev1.ConfigMap) error {
	benchmark := observed.Benchmark
	var text string
	var known, folded []string
	if existing != nil {
		text, known = existing.Data[history.Key], strings.Fields(existing.Annotations[v1alpha1.AnnotationFolded])
	}
	series, continued := history.Continue(text,
		results.RunIdentity{Namespace: benchmark.Namespace, Name: benchmark.Name, UID: string(benchmark.UID)})
	for _, stored := range experiment.Foldable(observed.State) {
		key := experiment.FoldKey(stored)
		folded = append(folded, key)
		if !continued || !slices.Contains(known, key) {
			if err := r.fold(ctx, observed, series, stored); err != nil {
				return err
			}
		}
	}
	encoded, err := series.Encode()
	if err != nil {
		return err
	}
	return r.applyHistory(ctx, benchmark, existing, string(encoded), strings.Join(folded, " "))
}

// fold appends the point of stored results to the series. Missing, unreadable and incomplete results have no point.
func (r *Reconciler) fold(ctx context.Context, observed *observation, series *history.Series, stored experiment.StoredExperiment) error {
	benchmark, document := observed.Benchmark, observed.document
	if document == nil || document.Name != stored.ConfigMap { // this reconcile has neither written nor read it
		document = &corev1.ConfigMap{}
		if err := r.Live.Get(ctx, types.NamespacedName{Namespace: benchmark.Namespace, Name: stored.ConfigMap}, document); err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("read the results in ConfigMap %s for the history: %w", stored.ConfigMap, err)
		}
	}
	experiment, err := decodeResults(document)
	if err != nil || !naming.IsControlledBy(document, benchmark) {
		return nil //nolint:nilerr // they were edited: there is nothing to keep
	}
	if point, complete := history.PointOf(experiment, map[string]string{"spec": document.Annotations[v1alpha1.AnnotationQuestion]}); complete {
		series.Append(point)
	}
	return nil
}

// applyHistory creates the ConfigMap, or replaces the contents of ours if they differ.
func (r *Reconciler) applyHistory(ctx context.Context, benchmark *v1alpha1.StorageBenchmark, existing *corev1.ConfigMap, text,
	folded string) error {
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.HistoryName(benchmark.Name), Namespace: benchmark.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelBenchmark:    naming.BenchmarkLabel(benchmark.Name),
				v1alpha1.LabelBenchmarkUID: string(benchmark.UID),
			},
			Annotations:     map[string]string{v1alpha1.AnnotationFolded: folded},
			OwnerReferences: []metav1.OwnerReference{experiment.OwnerReference(benchmark)},
		},
		Data: map[string]string{history.Key: text},
	}
	if existing == nil {
		return r.Client.Create(ctx, wanted)
	}
	if maps.Equal(existing.Data, wanted.Data) && existing.Annotations[v1alpha1.AnnotationFolded] == folded &&
		existing.Labels[v1alpha1.LabelBenchmarkUID] == string(benchmark.UID) {
		return nil // an earlier reconcile wrote it, and the cache does not show it yet
	}
	existing.Labels, existing.Annotations, existing.Data = wanted.Labels, wanted.Annotations, wanted.Data
	return r.Client.Update(ctx, existing)
}
