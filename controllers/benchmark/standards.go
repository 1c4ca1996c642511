package benchmark

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/verdict"
)

// observeStandards reads the baseline and the calibration that the spec names. They are needed only once the runs have finished.
func (r *Reconciler) observeStandards(ctx context.Context, observed *observation) error {
	if !experiment.Count(observed.State).Over {
		return nil
	}
	namespace := observed.Benchmark.Namespace
	var err error
	observed.Standards, err = verdict.ReadStandards(&observed.Benchmark.Spec, func(name string) (map[string]string, bool, error) {
		var stored corev1.ConfigMap
		if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &stored); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, false, nil
			}
			return nil, false, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
		}
		return stored.Data, true, nil
	})
	return err
}

// judgedBy returns the benchmarks that name a ConfigMap as baseline or calibration.
func (r *Reconciler) judgedBy(object client.Object) []types.NamespacedName {
	return r.Line.JudgedBy(client.ObjectKeyFromObject(object))
}
