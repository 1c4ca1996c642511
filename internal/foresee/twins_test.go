package foresee

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestTwins: a value that is written in two ways compares a variant with itself.
func TestTwins(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	matrix := func(path string, values ...v1alpha1.MatrixValue) func(*spec) {
		return func(s *spec) { s.Matrix = v1alpha1.Matrix{path: values} }
	}
	const same = " are the same value, so that the variants would be the same: remove one"
	foresee(t, map[string]foreseen{
		"sizes": {matrix("dataset.recordsize", "8k", "8K", "16k", "8192"), "spec.matrix[dataset.recordsize]: 8k and 8K" + same +
			"\nspec.matrix[dataset.recordsize]: 8k and 8192" + same},
		"amounts":     {matrix("phases.fill.size", "1Gi", "1024Mi"), "spec.matrix[phases.fill.size]: 1Gi and 1024Mi" + same},
		"block sizes": {matrix("phases.scan.blockSize", "64Ki", "128Ki"), ""},
		"a duration": {func(s *spec) {
			s.Phases[1].Measure.Workload = v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}
			s.Matrix = v1alpha1.Matrix{"phases.scan.duration": {"60s", "1m", "2m"}}
		}, "spec.matrix[phases.scan.duration]: 60s and 1m" + same},
		"once for each value": {func(s *spec) {
			s.Matrix = v1alpha1.Matrix{"dataset.recordsize": {"8k", "8K"}, "phases.fill.to": {"50%", "60%"}}
		}, "spec.matrix[dataset.recordsize]: 8k and 8K" + same},
		"zip": {func(s *spec) {
			s.Matrix, s.MatrixMode = v1alpha1.Matrix{"dataset.recordsize": {"8k", "8K"}, "phases.fill.to": {"50%", "60%"}}, v1alpha1.MatrixZip
		}, ""},
		"of a volume": {func(s *spec) {
			s.Target.ZFS.Dataset.Size = &v1alpha1.Size{Quantity: resource.MustParse("20Gi")}
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data", Dataset: &v1alpha1.DatasetTemplate{}}}
			s.Matrix = v1alpha1.Matrix{"volumes.log.dataset.recordsize": {"1M", "1024k"}}
		}, "spec.matrix[volumes.log.dataset.recordsize]: 1M and 1024k" + same},
		"names": {matrix("dataset.checksum", "on", "fletcher4", "sha256"),
			"warning: spec.matrix[dataset.checksum]: on and fletcher4 are two names of the same value up to OpenZFS 2.4"},
		"different names": {matrix("dataset.checksum", "sha512", "fletcher4"), ""},
		"variants may be alike": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}}
			s.Matrix = v1alpha1.Matrix{"phases.fill.to": {"50%", "60%"}}
		}, ""},
	})
}

// TestTwinsOfWrongPaths: a path that cannot be set is reported, and its values are not compared, because none was set.
func TestTwinsOfWrongPaths(t *testing.T) {
	spec := runstest.ZFSSpec()
	spec.Matrix = v1alpha1.Matrix{"phases.raed.regions": {"1", "2"}}
	slots, err := design.Expand(spec, 1)
	if err == nil || len(slots) != 2 || slots[0].Complete() {
		t.Fatalf("%d slots, error %v", len(slots), err)
	}
	if f := Spec(spec, slots, nil); f.Err() != nil || len(f.Warnings) > 0 {
		t.Errorf("error %v, warnings %v", f.Err(), f.Warnings)
	}
}
