package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// CalibrationVersion is the version of Calibration.
	CalibrationVersion = "calibration.storagebench.dev/v1alpha1"
	// KeyCalibration is the key of a ConfigMap that holds a Calibration.
	KeyCalibration = "calibration.json"
	// leastShifts is the number from which a floor can cover 95%.
	leastShifts = 19
	million     = 1_000_000
)

// Calibration is the difference between equal runs on a node: a change that is not larger is no change. It is kept in Git, in a
// ConfigMap.
type Calibration struct {
	// Version is calibration.storagebench.dev/v1alpha1.
	Version string `json:"version" jsonschema:"enum=calibration.storagebench.dev/v1alpha1"`
	// Accepted describes the origin of the floors.
	Accepted
	// SameVariants says that all variants were declared equal: then their runs form pairs too.
	SameVariants bool `json:"sameVariants,omitempty"`
	// Environment has the distinct values of each key over all runs.
	Environment map[string][]string `json:"environment,omitempty"`
	// Floors of noise, by phase and metric.
	Floors []NoiseFloor `json:"floors"`
	// Omitted lists the metrics without a floor.
	Omitted []string `json:"omitted,omitempty"`
}

// NoiseFloor is the difference of one metric between equal runs.
type NoiseFloor struct {
	Phase  string `json:"phase"`
	Metric string `json:"metric"`
	Unit   string `json:"unit,omitempty"`
	// NoisePartsPerMillion is the absolute shift, ln(B/A), that is rarely exceeded, rounded up.
	NoisePartsPerMillion int64 `json:"noisePartsPerMillion"`
	// Shifts is the number of pairs of runs.
	Shifts int32 `json:"shifts"`
	// CoveragePartsPerMillion is the chance that one more such pair stays within it, rounded down: 950000 or more from 19 shifts on.
	CoveragePartsPerMillion int64 `json:"coveragePartsPerMillion"`
}

// Floor of a metric in a phase. False if the calibration has none.
func (c Calibration) Floor(phase, metric string) (NoiseFloor, bool) {
	at := slices.IndexFunc(c.Floors, func(floor NoiseFloor) bool { return floor.Phase == phase && floor.Metric == metric })
	if at < 0 {
		return NoiseFloor{}, false
	}
	return c.Floors[at], true
}

// MakeCalibration builds a calibration from the results of an experiment, and returns warnings for the user. Pairs are consecutive
// repetitions of a variant, the first with the second, the third with the fourth. If all variants are declared equal, they are
// consecutive runs in the order of execution: no run is in two pairs, because then they would not be independent and the coverage
// would be wrong.
func MakeCalibration(e Experiment, options AcceptOptions) (calibration Calibration, warnings []string, err error) {
	if warnings, err = e.acceptable(options); err != nil {
		return Calibration{}, nil, err
	}
	variants, err := repeatedVariants(e.Runs)
	if err != nil {
		return Calibration{}, nil, err
	}
	if options.SameVariants {
		variants = asOne(variants)
	}
	calibration = Calibration{Version: CalibrationVersion, Accepted: e.accepted(options), SameVariants: options.SameVariants,
		Environment: e.Environment}
	left := calibration.measure(variants)
	if len(calibration.Floors) == 0 {
		return Calibration{}, nil,
			fmt.Errorf("experiment %s of %s/%s has no metric with two pairs of valid runs: use at least 4 repetitions of a variant, preferably 38%s",
				e.Experiment, e.Benchmark.Namespace, e.Benchmark.Name, alsoLeft(left))
	}
	for _, words := range left {
		calibration.Omitted = append(calibration.Omitted, shorten(words, maxAcceptedOmitted))
		warnings = append(warnings, "no floor for "+words)
	}
	if few := calibration.fewShifts(); few != "" {
		warnings = append(warnings, few)
	}
	return calibration, warnings, calibration.Validate()
}

func alsoLeft(left []string) string {
	if len(left) == 0 {
		return ""
	}
	return "; left out: " + shorten(strings.Join(left, "; "), maxShownBytes*4)
}

// asOne merges the runs of all variants, in the order of execution: neighbours ran under the same conditions.
func asOne(variants []repeatedVariant) []repeatedVariant {
	var one repeatedVariant
	for _, variant := range variants {
		one.runs = append(one.runs, variant.runs...)
		for _, phase := range variant.phases {
			if !slices.Contains(one.phases, phase) {
				one.phases = append(one.phases, phase)
			}
		}
	}
	slices.SortStableFunc(one.runs, byExecution)
	return []repeatedVariant{one}
}

// measure adds the floors of all metrics with a better direction, and lists those without a floor and the reason.
func (c *Calibration) measure(variants []repeatedVariant) (left []string) {
	var zero, few []string
	for _, phase := range asOne(variants)[0].phases {
		for _, metric := range metricsOf(asOne(variants)[0].runs, phase) {
			if metric.Better == Neither {
				continue
			}
			shifts, whole := shiftsOf(variants, phase, metric.Name)
			noise, err := stats.NoiseFloor(shifts)
			switch {
			case !whole:
				zero = append(zero, phase+"."+metric.Name)
			case err != nil:
				few = append(few, phase+"."+metric.Name)
			default:
				c.Floors = append(c.Floors, floorOf(phase, metric, noise))
			}
		}
	}
	if len(zero) > 0 {
		left = append(left, "metrics that were 0 or not measured in a run: "+strings.Join(zero, ", "))
	}
	if len(few) > 0 {
		left = append(left, "metrics with fewer than two pairs of runs: "+strings.Join(few, ", "))
	}
	return left
}

// shiftsOf pools the shifts of all variants that have the phase. whole is false if a value is 0 or missing.
func shiftsOf(variants []repeatedVariant, phase, metric string) (shifts []float64, whole bool) {
	for _, variant := range variants {
		if !slices.Contains(variant.phases, phase) {
			continue
		}
		var values []float64
		for _, value := range valuesOf(variant.runs, phase, metric) {
			values = append(values, float64(value))
		}
		if len(values) != len(variant.runs) || slices.Contains(values, 0) {
			return nil, false
		}
		if len(values) < 2 {
			continue
		}
		pooled, err := stats.ConsecutiveShifts(values)
		if err != nil {
			return nil, false
		}
		shifts = append(shifts, pooled...)
	}
	return shifts, true
}

func floorOf(phase string, metric Metric, noise stats.Noise) NoiseFloor {
	return NoiseFloor{
		Phase: phase, Metric: metric.Name, Unit: metric.Unit, Shifts: int32(noise.Shifts),
		NoisePartsPerMillion: int64(math.Ceil(noise.Floor * million)),
		// The share is a fraction of two small numbers: this correction of 1e-12 undoes its rounding.
		CoveragePartsPerMillion: int64(math.Floor(noise.Coverage*million + 1e-6)),
	}
}

// fewShifts warns of floors that are exceeded too often.
func (c Calibration) fewShifts() string {
	least := slices.MinFunc(c.Floors, func(a, b NoiseFloor) int { return int(a.Shifts - b.Shifts) })
	if least.Shifts >= leastShifts {
		return ""
	}
	return fmt.Sprintf("with %d shifts a floor covers %d%% of the differences between equal runs, not 95%%: it needs %d shifts, from %d "+
		"repetitions of one variant",
		least.Shifts, least.CoveragePartsPerMillion/(million/100), leastShifts, 2*leastShifts)
}

// Encode writes the calibration as JSON. The same calibration always gives the same bytes.
func (c Calibration) Encode() ([]byte, error) {
	return encodeAccepted(c, "use fewer phases")
}

// DecodeCalibration reads a calibration from the data of a ConfigMap.
func DecodeCalibration(data map[string]string) (Calibration, error) {
	return decodeAccepted[Calibration](data, acceptedKind{KeyCalibration, CalibrationVersion, "kubectl storagebench calibration accept"})
}

// Validate reports what is wrong with the calibration.
func (c Calibration) Validate() error {
	if c.Version != CalibrationVersion {
		return fmt.Errorf("%w: it has version %.80q, but this program supports %q", ErrVersion, c.Version, CalibrationVersion)
	}
	if err := errors.Join(c.validateAccepted(), validateEnvironment(c.Environment), validateOmitted(c.Omitted)); err != nil {
		return err
	}
	if len(c.Floors) == 0 {
		return errors.New("it has no floors: accept the results of repeated runs again")
	}
	floors := unique{what: "the floor of"}
	for _, floor := range c.Floors {
		name := floor.Phase + "." + floor.Metric
		if err := floors.add(name); err != nil {
			return err
		}
		if err := floor.validate(); err != nil {
			return fmt.Errorf("the floor of %.120q: %w", name, err)
		}
	}
	return nil
}

func (f NoiseFloor) validate() error {
	better := Neither
	if metric, known := LookupMetric(f.Metric); known {
		better = metric.Better
	}
	switch {
	case f.Phase == "" || f.Metric == "":
		return errors.New("phase or metric is missing: set both")
	case f.Shifts < 2:
		return fmt.Errorf("shifts is %d: use 2 or more", f.Shifts)
	case f.NoisePartsPerMillion < 0:
		return fmt.Errorf("noisePartsPerMillion is %d: it is never negative", f.NoisePartsPerMillion)
	case f.CoveragePartsPerMillion <= 0 || f.CoveragePartsPerMillion >= million:
		return fmt.Errorf("coveragePartsPerMillion is %d: use more than 0 and less than %d", f.CoveragePartsPerMillion, million)
	}
	return validateMetric(f.Metric, f.Unit, string(better))
}
