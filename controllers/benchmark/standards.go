package benchmark

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/storagebench/storagebench/internal/experiment"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/gate"
	"github.com/storagebench/storagebench/internal/results"
)

// observeStandards reads the baseline and the calibration of the spec, once the runs have finished and they are needed.
func (r *Reconciler) observeStandards(ctx context.Context, observed *observation) error {
	spec := &observed.Benchmark.Spec
	if spec.Baseline == nil && spec.Calibration == nil || !experiment.Count(observed.State).Over {
		return nil
	}
	var err error
	standards, hash := &observed.Standards, sha256.New()
	if spec.Baseline != nil {
		of := standard[results.Baseline]{"baseline", results.KeyBaseline, results.DecodeBaseline, gate.ReasonBaselineMissing,
			gate.ReasonBaselineInvalid}
		if standards.Baseline, standards.BaselineRefused, err = of.read(ctx, r, observed.Benchmark.Namespace, spec.Baseline.ConfigMap.Name,
			hash); err != nil {
			return err
		}
	}
	if spec.Calibration != nil {
		of := standard[results.Calibration]{"calibration", results.KeyCalibration, results.DecodeCalibration, gate.ReasonCalibrationMissing,
			gate.ReasonCalibrationInvalid}
		if standards.Calibration, standards.CalibrationRefused, err = of.read(ctx, r, observed.Benchmark.Namespace,
			spec.Calibration.ConfigMap.Name, hash); err != nil {
			return err
		}
	}
	standards.Digest = hex.EncodeToString(hash.Sum(nil)[:8])
	return nil
}

// standard is a kind of accepted document: its name, its ConfigMap key, and the reasons if it is missing or unusable.
type standard[T any] struct {
	what, key       string
	decode          func(map[string]string) (T, error)
	missing, broken string
}

// read reads the document from a ConfigMap, or says why there is none, and adds its identity to a hash.
func (s standard[T]) read(ctx context.Context, r *Reconciler, namespace, name string, identity io.Writer) (*T, *gate.Refusal, error) {
	var stored corev1.ConfigMap
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &stored)
	if apierrors.IsNotFound(err) {
		_, _ = fmt.Fprintf(identity, "no %s ", s.key)
		return nil, &gate.Refusal{Reason: s.missing, Message: fmt.Sprintf(
			"ConfigMap %s with the %s does not exist: create it with 'kubectl storagebench %[2]s accept' and apply it",
			name, s.what)}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	_, _ = fmt.Fprintf(identity, "%s %d %s ", s.key, len(stored.Data[s.key]), stored.Data[s.key])
	document, err := s.decode(stored.Data)
	if err != nil {
		return nil, &gate.Refusal{Reason: s.broken, Invalid: true, Message: fmt.Sprintf("ConfigMap %s has no usable %s: %v", name, s.what,
			err)}, nil
	}
	return &document, nil, nil
}

// judgedBy finds the benchmarks that name a ConfigMap as baseline or calibration.
func (r *Reconciler) judgedBy(ctx context.Context, object client.Object) []reconcile.Request {
	return r.selectBenchmarks(ctx, func(benchmark *v1alpha1.StorageBenchmark) bool {
		spec := &benchmark.Spec
		return benchmark.Namespace == object.GetNamespace() &&
			(spec.Baseline != nil && spec.Baseline.ConfigMap.Name == object.GetName() || spec.Calibration != nil &&
				spec.Calibration.ConfigMap.Name == object.GetName())
	})
}
