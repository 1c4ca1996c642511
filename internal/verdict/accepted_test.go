package verdict

import (
	"errors"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// TestReadStandards: a missing document waits for a person, a broken one is Invalid, and each state has a different digest.
func TestReadStandards(t *testing.T) {
	spec := &v1alpha1.StorageBenchmarkSpec{Baseline: &v1alpha1.Baseline{}, Calibration: &v1alpha1.Calibration{}}
	spec.Baseline.ConfigMap.Name, spec.Calibration.ConfigMap.Name = "accepted", "noise"
	digests := map[string]bool{}
	for name, test := range map[string]struct {
		data   map[string]map[string]string
		reason string
		broken bool
	}{
		"missing": {nil, gate.ReasonBaselineMissing, false},
		"empty":   {map[string]map[string]string{"accepted": {}}, gate.ReasonBaselineInvalid, true},
		"broken":  {map[string]map[string]string{"accepted": {results.KeyBaseline: "{"}}, gate.ReasonBaselineInvalid, true},
	} {
		standards, err := ReadStandards(spec, func(configMap string) (map[string]string, bool, error) {
			data, found := test.data[configMap]
			return data, found, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		refused := standards.BaselineRefused
		if refused == nil || refused.Reason != test.reason || refused.Invalid != test.broken || !strings.Contains(refused.Message, "ConfigMap accepted") {
			t.Errorf("%s: %+v", name, refused)
		}
		if other := standards.CalibrationRefused; other == nil || other.Reason != gate.ReasonCalibrationMissing ||
			!strings.Contains(other.Message, "kubectl storagebench calibration accept") {
			t.Errorf("%s: calibration: %+v", name, other)
		}
		digests[standards.Digest] = true
	}
	if len(digests) != 3 {
		t.Errorf("3 states have the digests %v", digests)
	}
	if none, err := ReadStandards(&v1alpha1.StorageBenchmarkSpec{}, nil); err != nil || none != (Standards{}) {
		t.Errorf("a spec without both: %+v, %v", none, err)
	}
	down := errors.New("connection refused")
	if _, err := ReadStandards(spec, func(string) (map[string]string, bool, error) { return nil, false, down }); !errors.Is(err, down) {
		t.Errorf("a read that fails: %v", err)
	}
}
