package results

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// BaselineVersion is the version of Baseline.
	BaselineVersion = "baseline.storagebench.dev/v1alpha1"
	// KeyBaseline is the key of a ConfigMap that holds a Baseline.
	KeyBaseline = "baseline.json"
	// MaxBaselineBytes leaves room in the 1 MiB of a ConfigMap for what kubectl and Git tools add to it.
	MaxBaselineBytes = 700<<10 - 1
)

// Baseline is a set of accepted results to compare later ones with. It is kept in Git, in a ConfigMap.
type Baseline struct {
	// Version is baseline.storagebench.dev/v1alpha1.
	Version string `json:"version" jsonschema:"enum=baseline.storagebench.dev/v1alpha1"`
	// Accepted describes the origin of the values.
	Accepted
	// Environment has the distinct values of each key over all runs.
	Environment map[string][]string `json:"environment,omitempty"`
	// Variants with the values of their valid repetitions.
	Variants []BaselineVariant `json:"variants"`
	// Omitted lists what did not fit.
	Omitted []string `json:"omitted,omitempty"`
}

// Accepted describes the results that a user accepted as a standard.
type Accepted struct {
	// Benchmark that was measured.
	Benchmark BenchmarkIdentity `json:"benchmark"`
	// Experiment is the hash of what was measured.
	Experiment string `json:"experiment"`
	// Verdict on it.
	Verdict string `json:"verdict" jsonschema:"enum=Passed,enum=Failed,enum=Inconclusive,enum=Invalid"`
	// NodeName is where it was measured. For several nodes it is a comma-separated list of names.
	NodeName string `json:"nodeName,omitempty"`
	// StorageClass that was measured.
	StorageClass string `json:"storageClass,omitempty"`
	// FinishedAt is when the verdict was set.
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	// AcceptedAt is when the results were accepted.
	AcceptedAt time.Time `json:"acceptedAt"`
	// Note says who accepted them, and why.
	Note string `json:"note,omitempty"`
}

// BenchmarkIdentity identifies a benchmark, independent of its UID.
type BenchmarkIdentity struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// BaselineVariant is a variant with its phases.
type BaselineVariant struct {
	Name string `json:"name"`
	// Definition is a hash of what was measured: target, phases and pods.
	Definition string          `json:"definition,omitempty"`
	Phases     []BaselinePhase `json:"phases"`
}

// BaselinePhase is a phase with its metrics, primary ones first.
type BaselinePhase struct {
	Name    string           `json:"name"`
	Kind    string           `json:"kind" jsonschema:"enum=fill,enum=fragment,enum=measure,enum=operate"`
	Metrics []BaselineMetric `json:"metrics"`
}

// BaselineMetric is one metric in all repetitions.
type BaselineMetric struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Better is the direction in which the metric is better.
	Better string `json:"better" jsonschema:"enum=Higher,enum=Lower,enum=Neither"`
	// Values of the valid repetitions, in order. Several nodes count as one.
	Values []int64 `json:"values"`
}

// Values of a metric in a variant and phase. Empty if the baseline has none.
func (b Baseline) Values(variant, phase, metric string) []int64 {
	for _, v := range b.Variants {
		for _, p := range v.Phases {
			for _, m := range p.Metrics {
				if v.Name == variant && p.Name == phase && m.Name == metric {
					return m.Values
				}
			}
		}
	}
	return nil
}

// Definition of a variant. Empty if the baseline has none.
func (b Baseline) Definition(variant string) string {
	for _, v := range b.Variants {
		if v.Name == variant {
			return v.Definition
		}
	}
	return ""
}

// Summary is the metric in the format of results.
func (m BaselineMetric) Summary() MetricResult {
	sorted := slices.Sorted(slices.Values(m.Values))
	return MetricResult{Name: m.Name, Unit: m.Unit, Better: m.Better, Median: medianOfSorted(sorted), Min: sorted[0],
		Max:  sorted[len(sorted)-1],
		Runs: int32(len(sorted))}
}

// MakeBaseline makes a baseline of the results of an experiment, and says what a person should know before it is used. Only what is
// Complete has one.
func MakeBaseline(e Experiment, options AcceptOptions) (baseline Baseline, warnings []string, err error) {
	if warnings, err = e.acceptable(options); err != nil {
		return Baseline{}, nil, err
	}
	variants, err := repeatedVariants(e.Runs)
	if err != nil {
		return Baseline{}, nil, err
	}
	baseline = Baseline{Version: BaselineVersion, Accepted: e.accepted(options), Environment: e.Environment}
	for _, variant := range variants {
		if made := baselineVariant(variant); len(made.Phases) > 0 {
			made.Definition = e.definition(made.Name)
			baseline.Variants = append(baseline.Variants, made)
		}
	}
	for _, variant := range e.Variants {
		if !slices.ContainsFunc(baseline.Variants, func(made BaselineVariant) bool { return made.Name == variant.Name }) {
			warnings = append(warnings, fmt.Sprintf("variant %s has no valid run with metrics and is not included", variant.Name))
		}
	}
	if len(baseline.Variants) == 0 {
		return Baseline{}, nil, fmt.Errorf("experiment %s of %s/%s has no valid run with metrics: there is nothing to compare with",
			e.Experiment, e.Benchmark.Namespace, e.Benchmark.Name)
	}
	warnings = append(warnings, fewValues(baseline)...)
	omitted, err := baseline.fit(MaxBaselineBytes)
	if err != nil {
		return Baseline{}, nil, err
	}
	for _, words := range omitted {
		warnings = append(warnings, "it did not fit completely, and lacks "+words)
	}
	return baseline, warnings, baseline.Validate()
}

func (e Experiment) definition(variant string) string {
	for _, v := range e.Variants {
		if v.Name == variant {
			return v.Definition
		}
	}
	return ""
}

func (e Experiment) accepted(options AcceptOptions) Accepted {
	return Accepted{
		Benchmark:  BenchmarkIdentity{Namespace: e.Benchmark.Namespace, Name: e.Benchmark.Name},
		Experiment: e.Experiment, Verdict: e.Verdict, NodeName: e.NodeName, StorageClass: e.StorageClass, FinishedAt: e.FinishedAt,
		AcceptedAt: options.AcceptedAt.UTC().Truncate(time.Second), Note: options.Note,
	}
}

func baselineVariant(variant repeatedVariant) BaselineVariant {
	made := BaselineVariant{Name: variant.name}
	for _, name := range variant.phases {
		phase := BaselinePhase{Name: name}
		for _, run := range variant.runs {
			if found, usable := run.phase(name); usable {
				phase.Kind = found.Kind
			}
		}
		for _, metric := range metricsOf(variant.runs, name) {
			phase.Metrics = append(phase.Metrics, BaselineMetric{Name: metric.Name, Unit: metric.Unit, Better: string(metric.Better),
				Values: valuesOf(variant.runs, name, metric.Name)})
		}
		made.Phases = append(made.Phases, phase)
	}
	return made
}

// usefulValues is the number from which on a rank test against as many values can be significant after a correction for a few metrics.
const usefulValues = 6

// fewValues warns of variants with too few repetitions.
func fewValues(b Baseline) []string {
	var warnings []string
	for _, variant := range b.Variants {
		for _, phase := range variant.Phases {
			if most := mostValues(phase); phase.Kind == KindMeasure && most < usefulValues {
				warnings = append(warnings,
					fmt.Sprintf("variant %s has %d valid repetitions of phase %s: with fewer than %d a comparison is rarely conclusive",
						variant.Name, most, phase.Name, usefulValues))
			}
		}
	}
	return warnings
}

func mostValues(phase BaselinePhase) int {
	most := 0
	for _, metric := range phase.Metrics {
		most = max(most, len(metric.Values))
	}
	return most
}

// fit omits metrics until the document fits: first those without a better direction, then those that are not primary.
func (b *Baseline) fit(limitBytes int) (omitted []string, err error) {
	steps := []struct {
		words string
		drop  func(Metric) bool
	}{
		{"metrics that have no better direction", func(m Metric) bool { return m.Better == Neither || m.Better == "" }},
		{"metrics that are not primary", func(m Metric) bool { return !m.Primary }},
	}
	for {
		text, err := indentedForGit(b)
		if err != nil || len(text) <= limitBytes {
			return b.Omitted, err
		}
		if len(steps) == 0 {
			return nil,
				fmt.Errorf("%w: the baseline takes %d bytes with primary metrics alone, but the limit is %d: use fewer variants, phases or repetitions",
					ErrTooLarge, len(text), limitBytes)
		}
		if count := b.drop(steps[0].drop); count > 0 {
			b.Omitted = append(b.Omitted, fmt.Sprintf("%s (%d)", steps[0].words, count))
		}
		steps = steps[1:]
	}
}

// drop removes metrics, and phases and variants without metrics.
func (b *Baseline) drop(out func(Metric) bool) int {
	count := 0
	for i := range b.Variants {
		for j := range b.Variants[i].Phases {
			phase := &b.Variants[i].Phases[j]
			before := len(phase.Metrics)
			phase.Metrics = slices.DeleteFunc(phase.Metrics, func(m BaselineMetric) bool {
				metric, _ := LookupMetric(m.Name)
				return out(metric)
			})
			count += before - len(phase.Metrics)
		}
		b.Variants[i].Phases = slices.DeleteFunc(b.Variants[i].Phases, func(p BaselinePhase) bool { return len(p.Metrics) == 0 })
	}
	b.Variants = slices.DeleteFunc(b.Variants, func(v BaselineVariant) bool { return len(v.Phases) == 0 })
	return count
}

// Encode writes the baseline as JSON with one metric in a few lines, for readable diffs in Git. The same baseline always gives the
// same bytes.
func (b Baseline) Encode() ([]byte, error) {
	return encodeAccepted(b, "use fewer variants, phases or repetitions")
}

// DecodeBaseline reads a baseline from the data of a ConfigMap.
func DecodeBaseline(data map[string]string) (Baseline, error) {
	return decodeAccepted[Baseline](data, acceptedKind{KeyBaseline, BaselineVersion, "kubectl storagebench baseline accept"})
}

// Validate reports what is wrong with the baseline.
func (b Baseline) Validate() error {
	if b.Version != BaselineVersion {
		return fmt.Errorf("%w: it has version %.80q, but this program supports %q", ErrVersion, b.Version, BaselineVersion)
	}
	if err := errors.Join(b.validateAccepted(), validateEnvironment(b.Environment), validateOmitted(b.Omitted)); err != nil {
		return err
	}
	if len(b.Variants) == 0 {
		return errors.New("it has no variants: there is nothing to compare with; accept the results again")
	}
	variants := unique{what: "variant"}
	for _, variant := range b.Variants {
		if err := errors.Join(variants.add(variant.Name), variant.validate()); err != nil {
			return err
		}
	}
	return nil
}

func (v BaselineVariant) validate() error {
	if len(v.Phases) == 0 {
		return fmt.Errorf("variant %.80q has no phases: remove it", v.Name)
	}
	phases := unique{what: fmt.Sprintf("variant %.80q: phase", v.Name)}
	for _, phase := range v.Phases {
		if err := phases.add(phase.Name); err != nil {
			return err
		}
		if err := phase.validate(); err != nil {
			return fmt.Errorf("variant %.80q: phase %.80q: %w", v.Name, phase.Name, err)
		}
	}
	return nil
}

func (p BaselinePhase) validate() error {
	if !slices.Contains([]string{KindFill, KindFragment, KindMeasure, KindOperate}, p.Kind) {
		return fmt.Errorf("kind is %.80q: write fill, fragment, measure or operate", p.Kind)
	}
	if len(p.Metrics) == 0 {
		return errors.New("it has no metrics: remove it")
	}
	metrics := unique{what: "metric"}
	for _, metric := range p.Metrics {
		if err := metrics.add(metric.Name); err != nil {
			return err
		}
		if err := metric.validate(); err != nil {
			return fmt.Errorf("metric %.80q: %w", metric.Name, err)
		}
	}
	return nil
}

// maxBaselineValues is the most runs that a benchmark can have.
const maxBaselineValues = 512

func (m BaselineMetric) validate() error {
	if err := validateMetric(m.Name, m.Unit, m.Better); err != nil {
		return err
	}
	if len(m.Values) == 0 || len(m.Values) > maxBaselineValues {
		return fmt.Errorf("it has %d values: use 1 to %d, or remove it", len(m.Values), maxBaselineValues)
	}
	for i, value := range m.Values {
		if value < 0 {
			return fmt.Errorf("value %d is %d: metrics are never negative", i+1, value)
		}
	}
	return nil
}
