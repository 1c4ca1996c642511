package benchmark

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/gate"
	"github.com/storagebench/storagebench/internal/plan"
	"github.com/storagebench/storagebench/internal/results"
)

// observeStandards reads the baseline and the calibration that the spec names, once the runs are over and they are needed.
func (r *Reconciler) observeStandards(ctx context.Context, observed *observation) error {
	spec := &observed.Benchmark.Spec
	if spec.Baseline == nil && spec.Calibration == nil || !plan.Count(observed.BenchmarkState).Over {
		return nil
	}
	hash := sha256.New()
	if spec.Baseline != nil {
		data, err := r.configMapData(ctx, observed.Benchmark.Namespace, spec.Baseline.ConfigMap.Name, hash.Write)
		if err != nil {
			return err
		}
		observed.Standards.Baseline, observed.Standards.BaselineRefused = readStandard(data, results.DecodeBaseline, refusals{
			what: "baseline", name: spec.Baseline.ConfigMap.Name, missing: gate.ReasonBaselineMissing, broken: gate.ReasonBaselineInvalid})
	}
	if spec.Calibration != nil {
		data, err := r.configMapData(ctx, observed.Benchmark.Namespace, spec.Calibration.ConfigMap.Name, hash.Write)
		if err != nil {
			return err
		}
		observed.Standards.Calibration, observed.Standards.CalibrationRefused = readStandard(data, results.DecodeCalibration, refusals{
			what: "calibration", name: spec.Calibration.ConfigMap.Name, missing: gate.ReasonCalibrationMissing, broken: gate.ReasonCalibrationInvalid})
	}
	observed.Standards.Digest = hex.EncodeToString(hash.Sum(nil)[:8])
	return nil
}

// configMapData reads a ConfigMap, nil if there is none, and adds what identifies its content to a hash.
func (r *Reconciler) configMapData(ctx context.Context, namespace, name string, add func([]byte) (int, error)) (map[string]string, error) {
	var stored corev1.ConfigMap
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &stored)
	if apierrors.IsNotFound(err) {
		_, _ = add([]byte("none "))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	if stored.Data == nil {
		stored.Data = map[string]string{}
	}
	for _, key := range []string{results.KeyBaseline, results.KeyCalibration} {
		_, _ = add([]byte(fmt.Sprintf("%s %d %s ", key, len(stored.Data[key]), stored.Data[key])))
	}
	return stored.Data, nil
}

// refusals are the words for a document that is not used.
type refusals struct{ what, name, missing, broken string }

func readStandard[T any](data map[string]string, decode func(map[string]string) (T, error), words refusals) (*T, *plan.Refusal) {
	if data == nil {
		return nil, &plan.Refusal{Reason: words.missing, Message: fmt.Sprintf(
			"there is no ConfigMap %s with the %s: make it with 'kubectl storagebench %s accept' and apply it, and the gate is judged again", words.name, words.what, words.what)}
	}
	document, err := decode(data)
	if err != nil {
		return nil, &plan.Refusal{Reason: words.broken, Invalid: true, Message: fmt.Sprintf("ConfigMap %s holds no usable %s: %v", words.name, words.what, err)}
	}
	return &document, nil
}

// judgedBy finds the benchmarks that name a ConfigMap as baseline or calibration.
func (r *Reconciler) judgedBy(ctx context.Context, object client.Object) []reconcile.Request {
	return r.selectBenchmarks(ctx, func(benchmark *v1alpha1.StorageBenchmark) bool {
		spec := &benchmark.Spec
		return benchmark.Namespace == object.GetNamespace() &&
			(spec.Baseline != nil && spec.Baseline.ConfigMap.Name == object.GetName() || spec.Calibration != nil && spec.Calibration.ConfigMap.Name == object.GetName())
	})
}
