package results

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	// BaselineVersion is the version of Baseline.
	BaselineVersion = "baseline.storagebench.dev/v1alpha1"
	// KeyBaseline is the key of a ConfigMap that holds a Baseline.
	KeyBaseline = "baseline.json"
	// MaxBaselineBytes leaves room in the 1 MiB of a ConfigMap for additions by kubectl and Git tools.
	MaxBaselineBytes = 700<<10 - 1
)

// MaxBaselineExperiments is the number of experiments that a Baseline keeps. The oldest are dropped first.
const MaxBaselineExperiments = 20

// Baseline is a set of accepted results. Later results are compared with it, and the noise of a node is determined from it. It keeps
// several experiments, because days differ by more than the runs of a single day show. Users keep it in Git, as a ConfigMap.
type Baseline struct {
	// Version is baseline.storagebench.dev/v1alpha1.
	Version string `json:"version" jsonschema:"enum=baseline.storagebench.dev/v1alpha1"`
	// Experiments are the sources of the values, in the order in which they were accepted.
	Experiments []Accepted `json:"experiments"`
	// SameVariants is true if all variants were declared equal. Then the noise is that between neighbouring runs of any variant.
	SameVariants bool `json:"sameVariants,omitempty"`
	// Environment has the distinct values of each key over all runs of all experiments.
	Environment map[string][]string `json:"environment,omitempty"`
	// Variants holds the values of the valid repetitions of each variant.
	Variants []BaselineVariant `json:"variants"`
	// Omitted lists the parts that did not fit.
	Omitted []string `json:"omitted,omitempty"`
}

// Accepted describes the results that a user accepted as a standard.
type Accepted struct {
	// Benchmark that was measured.
	Benchmark BenchmarkIdentity `json:"benchmark"`
	// Experiment is the hash of what was measured.
	Experiment string `json:"experiment"`
	// Verdict of the experiment.
	Verdict string `json:"verdict" jsonschema:"enum=Passed,enum=Failed,enum=Inconclusive,enum=Invalid"`
	// NodeName is the node on which it was measured. For several nodes it is a comma-separated list of names.
	NodeName string `json:"nodeName,omitempty"`
	// StorageClass that was measured.
	StorageClass string `json:"storageClass,omitempty"`
	// FinishedAt is when the last run ended.
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
	Name string `json:"name"`
	Kind string `json:"kind" jsonschema:"enum=fill,enum=fragment,enum=free,enum=measure,enum=operate"`
	// Order has, for each experiment, the positions of its runs in the order of execution over all variants. Only with sameVariants.
	Order   [][]int32        `json:"order,omitempty"`
	Metrics []BaselineMetric `json:"metrics"`
}

// BaselineMetric is one metric in all repetitions of all experiments.
type BaselineMetric struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Better is the direction in which the metric is better.
	Better string `json:"better" jsonschema:"enum=Higher,enum=Lower,enum=Neither"`
	// Values of the valid repetitions, in order: a list for each experiment, empty if it has none. Several nodes together count as one.
	Values [][]int64 `json:"values"`
}

// Newest returns the experiment that was accepted last.
func (b Baseline) Newest() Accepted { return b.Experiments[len(b.Experiments)-1] }

// Values returns the values of a metric in a variant and phase, for each experiment that has any. It returns an empty list if the baseline
// has none.
func (b Baseline) Values(variant, phase, metric string) [][]int64 {
	for _, v := range b.Variants {
		for _, p := range v.Phases {
			for _, m := range p.Metrics {
				if v.Name == variant && p.Name == phase && m.Name == metric {
					return slices.DeleteFunc(slices.Clone(m.Values), func(of []int64) bool { return len(of) == 0 })
				}
			}
		}
	}
	return nil
}

// Definition returns the definition of a variant. It is empty if the baseline has none.
func (b Baseline) Definition(variant string) string {
	for _, v := range b.Variants {
		if v.Name == variant {
			return v.Definition
		}
	}
	return ""
}

// Summary returns the metric in the format of results, over all experiments.
func (m BaselineMetric) Summary() MetricResult {
	sorted := slices.Sorted(slices.Values(slices.Concat(m.Values...)))
	return MetricResult{Name: m.Name, Unit: m.Unit, Better: m.Better, Median: medianOfRuns(m.Name, sorted), Min: sorted[0],
		Max:  sorted[len(sorted)-1],
		Runs: int32(len(sorted))}
}

// MakeBaseline makes a baseline from the results of an experiment, and returns warnings for the user. The experiment must be Complete.
func MakeBaseline(e Experiment, options AcceptOptions) (baseline Baseline, warnings []string, err error) {
	if baseline, warnings, err = accept(e, options); err != nil {
		return Baseline{}, nil, err
	}
	if days := len(baseline.Experiments); days == 1 {
		warnings = append(warnings, "with a single experiment, gates are Inconclusive unless they set acceptSingleDay: how days differ is "+
			"not known; accept the results of other days too")
	}
	return baseline, append(warnings, fewValues(baseline)...), nil
}

// accept makes the document for an experiment, and adds it to the baseline in the options, if any.
func accept(e Experiment, options AcceptOptions) (baseline Baseline, warnings []string, err error) {
	if warnings, err = e.acceptable(options); err != nil {
		return Baseline{}, nil, err
	}
	variants, err := repeatedVariants(e.Runs)
	if err != nil {
		return Baseline{}, nil, err
	}
	baseline = Baseline{Version: BaselineVersion, Experiments: []Accepted{e.accepted(options)}, SameVariants: options.SameVariants,
		Environment: e.Environment}
	for _, variant := range variants {
		made, lacking := baselineVariant(variant, options.SameVariants)
		warnings = append(warnings, lacking...)
		if len(made.Phases) > 0 {
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
	if options.AddTo != nil {
		if baseline, err = options.AddTo.with(baseline); err != nil {
			return Baseline{}, nil, err
		}
	}
	omitted, err := baseline.fit(MaxBaselineBytes)
	if err != nil {
		return Baseline{}, nil, err
	}
	for _, words := range omitted {
		warnings = append(warnings, "it did not fit completely; omitted: "+words)
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

// baselineVariant returns the metrics that all runs of a variant have. It leaves out metrics that some runs lack: a stalled run, for
// example, lacks a percentile, and the remaining values may be only those of the good runs.
func baselineVariant(variant repeatedVariant, ordered bool) (made BaselineVariant, lacking []string) {
	made = BaselineVariant{Name: variant.name}
	for _, name := range variant.phases {
		phase := BaselinePhase{Name: name}
		var order []int32
		var some []string
		for _, run := range variant.runs {
			if found, usable := run.phase(name); usable {
				phase.Kind = found.Kind
				order = append(order, run.Index)
			}
		}
		if ordered {
			phase.Order = [][]int32{order}
		}
		for _, metric := range metricsOf(variant.runs, name) {
			values := valuesOf(variant.runs, name, metric.Name)
			if len(values) < len(order) {
				some = append(some, metric.Name)
				continue
			}
			phase.Metrics = append(phase.Metrics, BaselineMetric{Name: metric.Name, Unit: metric.Unit, Better: string(metric.Better),
				Values: [][]int64{values}})
		}
		if len(some) > 0 {
			lacking = append(lacking, fmt.Sprintf("phase %s of variant %s leaves out what only some of its runs have: %s",
				name, variant.name, spelling.Some(some, maxNamed)))
		}
		if len(phase.Metrics) > 0 {
			made.Phases = append(made.Phases, phase)
		}
	}
	return made, lacking
}

// maxNamed is the number of metrics that a sentence names.
const maxNamed = 4

// usefulValues is the least number of values with which a rank test against as many can be significant, corrected for a few metrics.
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
		most = max(most, len(metric.Values[len(metric.Values)-1]))
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

// drop removes metrics, and then phases and variants without metrics. It returns the number of removed metrics.
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

// Validate reports what is wrong with the baseline.
func (b Baseline) Validate() error {
	if b.Version != BaselineVersion {
		return fmt.Errorf("%w: it has version %.80q, but this program supports %q", ErrVersion, b.Version, BaselineVersion)
	}
	if len(b.Experiments) == 0 || len(b.Experiments) > MaxBaselineExperiments {
		return fmt.Errorf("it has %d experiments: use 1 to %d", len(b.Experiments), MaxBaselineExperiments)
	}
	experiments := unique{what: "experiment"}
	for _, accepted := range b.Experiments {
		if err := errors.Join(accepted.validateAccepted(), experiments.add(accepted.Experiment)); err != nil {
			return err
		}
	}
	if err := errors.Join(validateEnvironment(b.Environment), validateOmitted(b.Omitted)); err != nil {
		return err
	}
	if len(b.Variants) == 0 {
		return errors.New("it has no variants: there is nothing to compare with; accept the results again")
	}
	variants := unique{what: "variant"}
	for _, variant := range b.Variants {
		if err := errors.Join(variants.add(variant.Name), variant.validate(len(b.Experiments), b.SameVariants)); err != nil {
			return err
		}
	}
	return nil
}

func (v BaselineVariant) validate(experiments int, ordered bool) error {
	if len(v.Phases) == 0 {
		return fmt.Errorf("variant %.80q has no phases: remove it", v.Name)
	}
	phases := unique{what: fmt.Sprintf("variant %.80q: phase", v.Name)}
	for _, phase := range v.Phases {
		if err := phases.add(phase.Name); err != nil {
			return err
		}
		if err := phase.validate(experiments, ordered); err != nil {
			return fmt.Errorf("variant %.80q: phase %.80q: %w", v.Name, phase.Name, err)
		}
	}
	return nil
}

func (p BaselinePhase) validate(experiments int, ordered bool) error {
	if !slices.Contains([]string{KindFill, KindFragment, KindFree, KindMeasure, KindOperate}, p.Kind) {
		return fmt.Errorf("kind is %.80q: write fill, fragment, free, measure or operate", p.Kind)
	}
	if len(p.Metrics) == 0 {
		return errors.New("it has no metrics: remove it")
	}
	if ordered && len(p.Order) != experiments || !ordered && len(p.Order) > 0 {
		return fmt.Errorf("order has %d lists: use one for each of the %d experiments with sameVariants, and none without it", len(p.Order),
			experiments)
	}
	metrics := unique{what: "metric"}
	for _, metric := range p.Metrics {
		if err := metrics.add(metric.Name); err != nil {
			return err
		}
		if err := metric.validate(experiments); err != nil {
			return fmt.Errorf("metric %.80q: %w", metric.Name, err)
		}
	}
	return nil
}

// maxBaselineValues is the most runs that a benchmark can have.
const maxBaselineValues = 512

func (m BaselineMetric) validate(experiments int) error {
	if err := validateMetric(m.Name, m.Unit, m.Better); err != nil {
		return err
	}
	if len(m.Values) != experiments {
		return fmt.Errorf("it has %d lists of values: use one for each of the %d experiments", len(m.Values), experiments)
	}
	count := 0
	for i, values := range m.Values {
		if count += len(values); len(values) > maxBaselineValues {
			return fmt.Errorf("list %d has %d values: use at most %d", i+1, len(values), maxBaselineValues)
		}
		for j, value := range values {
			if value < 0 {
				return fmt.Errorf("value %d of list %d is %d: metrics are never negative", j+1, i+1, value)
			}
		}
	}
	if count == 0 {
		return errors.New("it has no values: remove it")
	}
	return nil
}
