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
	// leastShifts is the number from which on a floor can cover 95%.
	leastShifts = 19
	million     = 1_000_000
)

// Calibration is by how much runs of the same thing differ on a node: a change that is no larger than that is none. It is kept in
// Git, in a ConfigMap.
type Calibration struct {
	// Version is calibration.storagebench.dev/v1alpha1.
	Version string `json:"version" jsonschema:"enum=calibration.storagebench.dev/v1alpha1"`
	// Accepted says what the floors are from.
	Accepted
	// SameVariants says that all variants were declared to be the same thing: then their runs are pairs too.
	SameVariants bool `json:"sameVariants,omitempty"`
	// Environment has the distinct values of each key over all runs.
	Environment map[string][]string `json:"environment,omitempty"`
	// Floors of noise, by phase and metric.
	Floors []NoiseFloor `json:"floors"`
	// Omitted says which metrics have no floor, in words.
	Omitted []string `json:"omitted,omitempty"`
}

// NoiseFloor is by how much one metric differs between runs of the same thing.
type NoiseFloor struct {
	Phase  string `json:"phase"`
	Metric string `json:"metric"`
	Unit   string `json:"unit,omitempty"`
	// NoisePartsPerMillion is the absolute shift, ln(B/A), that is seldom exceeded, rounded up.
	NoisePartsPerMillion int64 `json:"noisePartsPerMillion"`
	// Shifts is how many pairs of runs it is from.
	Shifts int32 `json:"shifts"`
	// CoveragePartsPerMillion is the chance that one more such pair stays within it, rounded down: 950000 or more from 19 shifts on.
	CoveragePartsPerMillion int64 `json:"coveragePartsPerMillion"`
}

// Floor of a metric in a phase; false if the calibration has none.
func (c Calibration) Floor(phase, metric string) (NoiseFloor, bool) {
	at := slices.IndexFunc(c.Floors, func(floor NoiseFloor) bool { return floor.Phase == phase && floor.Metric == metric })
	if at < 0 {
		return NoiseFloor{}, false
	}
	return c.Floors[at], true
}

// MakeCalibration makes a calibration of the results of an experiment, and says what a person should know before it is used. Pairs are
// consecutive repetitions of a variant, the first with the second, the third with the fourth. If all variants are declared to be the
// same thing, they are consecutive runs in the order of execution, whatever their variant: no run is in two pairs, for then they
// would not be independent and the coverage would not be true.
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
			fmt.Errorf("experiment %s of %s/%s has no metric with two pairs of valid runs: repeat a variant at least 4 times, better 38%s",
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

// asOne puts the runs of all variants into one, in the order of execution: neighbours have met the same circumstances.
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

// measure adds the floors of all metrics that are better one way, and says which have none and why.
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
		left = append(left, "what was 0 or not measured in a run: "+strings.Join(zero, ", "))
	}
	if len(few) > 0 {
		left = append(left, "what has fewer than two pairs of runs: "+strings.Join(few, ", "))
	}
	return left
}

// shiftsOf pools the shifts of all variants that have the phase; whole is false if a value is 0 or missing.
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
		// The share is a fraction of two small numbers: a millionth of a millionth more undoes its rounding.
		CoveragePartsPerMillion: int64(math.Floor(noise.Coverage*million + 1e-6)),
	}
}

// fewShifts warns of floors that are too low too often.
func (c Calibration) fewShifts() string {
	least := slices.MinFunc(c.Floors, func(a, b NoiseFloor) int { return int(a.Shifts - b.Shifts) })
	if least.Shifts >= leastShifts {
		return ""
	}
	return fmt.Sprintf("from %d shifts a floor covers %d%% of what equal things differ by, not 95%%: %d shifts are needed, which are %d "+
		"repetitions of one variant",
		least.Shifts, least.CoveragePartsPerMillion/(million/100), leastShifts, 2*leastShifts)
}

// Encode writes the calibration as JSON. The same calibration always gives the same bytes.
func (c Calibration) Encode() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	text, err := indentedForGit(c)
	if err == nil && len(text) > MaxBaselineBytes {
		err = fmt.Errorf("%w: the calibration takes %d bytes, at most %d fit: use fewer phases", ErrTooLarge, len(text), MaxBaselineBytes)
	}
	return text, err
}

// DecodeCalibration reads a calibration from the data of a ConfigMap.
func DecodeCalibration(data map[string]string) (Calibration, error) {
	var calibration Calibration
	err := decodeAccepted(data, acceptedKind{KeyCalibration, CalibrationVersion, "kubectl storagebench calibration accept"}, &calibration)
	if err == nil {
		err = calibration.Validate()
	}
	if err != nil {
		return Calibration{}, fmt.Errorf("%s: %w", KeyCalibration, err)
	}
	return calibration, nil
}

// Validate reports what is wrong with the calibration.
func (c Calibration) Validate() error {
	if c.Version != CalibrationVersion {
		return fmt.Errorf("%w: it has version %.80q, this program speaks %q", ErrVersion, c.Version, CalibrationVersion)
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
		return errors.New("phase or metric is missing: give both")
	case f.Shifts < 2:
		return fmt.Errorf("shifts is %d: give 2 or more", f.Shifts)
	case f.NoisePartsPerMillion < 0:
		return fmt.Errorf("noisePartsPerMillion is %d: it is never negative", f.NoisePartsPerMillion)
	case f.CoveragePartsPerMillion <= 0 || f.CoveragePartsPerMillion >= million:
		return fmt.Errorf("coveragePartsPerMillion is %d: give more than 0 and less than %d", f.CoveragePartsPerMillion, million)
	}
	return validateMetric(f.Metric, f.Unit, string(better))
}
