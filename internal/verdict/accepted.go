package verdict

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// ReadData returns the data of a ConfigMap, and whether it exists.
type ReadData func(configMap string) (data map[string]string, found bool, err error)

// ReadStandards reads the baseline and the calibration that a spec names. One that cannot be used is refused with a reason; only a
// read that fails is an error.
func ReadStandards(spec *v1alpha1.StorageBenchmarkSpec, read ReadData) (standards Standards, err error) {
	if spec.Baseline == nil && spec.Calibration == nil {
		return standards, nil
	}
	identity := sha256.New()
	if spec.Baseline != nil {
		of := accepted{"baseline", gate.ReasonBaselineMissing, gate.ReasonBaselineInvalid}
		standards.Baseline, standards.BaselineRefused, err = of.from(spec.Baseline.ConfigMap.Name, read, identity)
		if err != nil {
			return Standards{}, err
		}
	}
	if spec.Calibration != nil {
		of := accepted{"calibration", gate.ReasonCalibrationMissing, gate.ReasonCalibrationInvalid}
		standards.Calibration, standards.CalibrationRefused, err = of.from(spec.Calibration.ConfigMap.Name, read, identity)
		if err != nil {
			return Standards{}, err
		}
	}
	standards.Digest = hex.EncodeToString(identity.Sum(nil)[:8])
	return standards, nil
}

// accepted is a kind of accepted document: its name, and the reasons for a refusal if it is missing or unusable.
type accepted struct{ what, missing, broken string }

// from decodes the document of a ConfigMap, or refuses it, and adds the text to identity.
func (a accepted) from(configMap string, read ReadData, identity io.Writer) (*results.Baseline, *gate.Refusal, error) {
	data, found, err := read(configMap)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		_, _ = fmt.Fprintf(identity, "no %s ", a.what)
		return nil, &gate.Refusal{Reason: a.missing, Message: fmt.Sprintf(
			"ConfigMap %s with the %s does not exist: create it with 'kubectl storagebench %[2]s accept' and apply it", configMap, a.what)}, nil
	}
	text := data[results.KeyBaseline]
	_, _ = fmt.Fprintf(identity, "%s %d %s ", a.what, len(text), text)
	document, err := results.DecodeBaseline(data)
	if err != nil {
		return nil, &gate.Refusal{Reason: a.broken, Invalid: true,
			Message: fmt.Sprintf("ConfigMap %s has no usable %s: %v", configMap, a.what, err)}, nil
	}
	return &document, nil, nil
}
