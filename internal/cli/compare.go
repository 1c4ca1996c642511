package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

type compareOptions struct {
	Connection
	all    bool
	format string
}

func (a *App) compareCommand() *cobra.Command {
	var options compareOptions
	command := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare the numbers of two finished experiments, without a verdict",
		Long: `Compare two finished experiments, metric by metric: their medians, and how much B differs from A with an interval. Each of them is
a StorageBenchmark, NAME@EXPERIMENT for one of its earlier experiments, or a results.json as 'run --local' and 'report --output-dir'
write it, or the folder with it.

It gives no verdict: a gate does, with a tolerance that was chosen before.`,
		Example: `  kubectl storagebench compare ageing-8k ageing-16k
  kubectl storagebench compare nightly@5c1f0a92 nightly
  kubectl storagebench compare before after`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) != 2 {
				return exitf(ExitUsage, "compare needs two experiments: kubectl storagebench compare A B")
			}
			return nil
		},
		RunE: func(command *cobra.Command, sides []string) error {
			return a.compare(command.Context(), sides[0], sides[1], options)
		},
	}
	options.addFlags(command.Flags())
	command.Flags().BoolVar(&options.all, "all", false, "all metrics instead of the primary ones")
	a.addFormat(command, &options.format, structured)
	command.ValidArgsFunction = a.completeNames(&options.Connection, 2)
	return command
}

func (a *App) compare(ctx context.Context, nameA, nameB string, options compareOptions) error {
	sideA, err := a.experimentOf(ctx, nameA, options.Connection)
	if err != nil {
		return err
	}
	sideB, err := a.experimentOf(ctx, nameB, options.Connection)
	if err != nil {
		return err
	}
	c := &comparedPair{a: sideA, b: sideB, all: options.all}
	if c.collect(); len(c.rows) == 0 {
		return c.nothingInCommon()
	}
	if options.format != formatText {
		return a.printDocument(c.document(), options.format)
	}
	for i, side := range []results.Experiment{sideA, sideB} {
		a.say("%c: %s", 'A'+i, clean(originOf(side)))
	}
	c.print(a)
	a.say("\nEach interval covers only the runs of these two experiments, not how days differ, and of 20 metrics that did\n" +
		"not change, one interval excludes 0 by chance. For a verdict use a gate that compares with a variant, a baseline or the history.")
	return nil
}

// experimentOf reads the results in a file, of a benchmark, or of NAME@EXPERIMENT.
func (a *App) experimentOf(ctx context.Context, given string, connection Connection) (results.Experiment, error) {
	options := acceptOptions{Connection: connection}
	if file := resultsIn(given); file != given {
		if !strings.ContainsRune(given, filepath.Separator) { // it might also be the name of a StorageBenchmark
			_, _ = fmt.Fprintf(a.Err, "%s is a folder here: its results.json is used\n", clean(given))
		}
		given = file
	}
	name, of, earlier := strings.Cut(given, "@")
	if isFile(given) {
		options.from = given
	}
	if isFile(given) || !earlier {
		experiment, _, err := a.finishedExperiment(ctx, []string{given}, options)
		return experiment, err
	}
	cluster, benchmark, err := a.locate(ctx, connection, name)
	if err != nil {
		return results.Experiment{}, err
	}
	known := storedResults(&benchmark.Status)
	at := slices.IndexFunc(known, func(one v1alpha1.ResultsReference) bool { return one.Experiment == of })
	if at < 0 {
		var names []string
		for _, one := range known {
			names = append(names, one.Experiment)
		}
		return results.Experiment{}, exitf(ExitNotFound, "StorageBenchmark %s has no results of experiment %s: it has those of %s",
			cluster.key(name), of, cmp.Or(someOf(names), "none"))
	}
	var stored corev1.ConfigMap
	if err := cluster.Client.Get(ctx, cluster.key(known[at].ConfigMap), &stored); err != nil {
		return results.Experiment{}, explain("read the results in ConfigMap "+known[at].ConfigMap, err)
	}
	return experimentIn(&stored)
}

// originOf says where and when an experiment was made.
func originOf(e results.Experiment) string {
	text := fmt.Sprintf("%s/%s, experiment %s: %s", e.Benchmark.Namespace, e.Benchmark.Name, e.Experiment, cmp.Or(e.Verdict, "no verdict"))
	if e.State != results.StateComplete {
		text += " (" + e.State + ")"
	}
	if e.FinishedAt != nil {
		text += ", finished " + e.FinishedAt.UTC().Format(time.RFC3339)
	}
	if e.NodeName != "" {
		text += ", on " + e.NodeName
	}
	return text
}

// comparedPair is two experiments side by side.
type comparedPair struct {
	a, b results.Experiment
	all  bool
	rows []comparedMetric
	// lone are the phases and primary metrics that only one of the experiments has.
	lone []string
}

// comparedMetric is one metric of both. Its fields are also the output for programs.
type comparedMetric struct {
	Variant string               `json:"variant"`
	Phase   string               `json:"phase"`
	Metric  string               `json:"metric"`
	A       results.MetricResult `json:"a"`
	B       results.MetricResult `json:"b"`
	// Change of B against A as a share, such as -0.1. Missing if the two are not comparable.
	Change *comparedChange `json:"change,omitempty"`
	// NotComparable says why.
	NotComparable string `json:"notComparable,omitempty"`
	words         string
}

// comparedChange has no interval if there are too few runs.
type comparedChange struct {
	Share      float64  `json:"share"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	Confidence float64  `json:"confidence,omitempty"`
}

// comparedDocument is a comparison for programs.
type comparedDocument struct {
	A       results.RunIdentity `json:"a"`
	AOf     string              `json:"aExperiment"`
	B       results.RunIdentity `json:"b"`
	BOf     string              `json:"bExperiment"`
	Metrics []comparedMetric    `json:"metrics"`
	Mind    []string            `json:"mind"`
}

func (c *comparedPair) document() comparedDocument {
	return comparedDocument{c.a.Benchmark, c.a.Experiment, c.b.Benchmark, c.b.Experiment, c.rows, append([]string{}, c.unlike()...)}
}

func (c *comparedPair) collect() {
	c.lone = append(onlyIn("A", c.a, c.b), onlyIn("B", c.b, c.a)...)
	for _, variant := range c.a.Variants {
		for _, phase := range variant.Phases {
			other := phaseIn(c.b, variant.Name, phase.Name)
			if other == nil {
				continue
			}
			for _, metric := range phase.Metrics {
				c.compareMetric(variant.Name, phase.Name, metric, other)
			}
		}
	}
}

// nothingInCommon says what each of the experiments has.
func (c *comparedPair) nothingInCommon() error {
	others := comparedPair{a: c.a, b: c.b, all: true}
	if others.collect(); len(others.rows) > 0 {
		return exitf(ExitNotFound, "the experiments have no primary metric in common: add --all for the others")
	}
	return exitf(ExitNotFound, "the experiments have no metric of the same variant and phase in common\n  A: %s\n  B: %s", phasesOf(c.a),
		phasesOf(c.b))
}

// phasesOf lists the phases of each variant.
func phasesOf(e results.Experiment) string {
	var all []string
	for _, variant := range e.Variants {
		var names []string
		for _, phase := range variant.Phases {
			names = append(names, phase.Name)
		}
		all = append(all, fmt.Sprintf("variant %s: %s", variant.Name, cmp.Or(strings.Join(names, ", "), none)))
	}
	return clean(cmp.Or(strings.Join(all, "; "), "no variant"))
}

// onlyIn lists the phases and primary metrics that only one of the experiments has. If they were not listed, storage that is too slow for a
// percentile would look the same as faster storage.
func onlyIn(name string, one, other results.Experiment) (lone []string) {
	for _, variant := range one.Variants {
		for _, phase := range variant.Phases {
			there := phaseIn(other, variant.Name, phase.Name)
			if there == nil {
				lone = append(lone, fmt.Sprintf("phase %s of variant %s only in %s", phase.Name, variant.Name, name))
				continue
			}
			for _, metric := range phase.Metrics {
				if results.IsPrimary(metric.Name) && indexOf(metric.Name, there) < 0 {
					lone = append(lone, fmt.Sprintf("%s of phase %s of variant %s only in %s", metric.Name, phase.Name, variant.Name, name))
				}
			}
		}
	}
	return lone
}

func indexOf(metric string, phase *results.PhaseResult) int {
	return slices.IndexFunc(phase.Metrics, func(one results.MetricResult) bool { return one.Name == metric })
}

func (c *comparedPair) compareMetric(variant, phase string, metric results.MetricResult, other *results.PhaseResult) {
	at := indexOf(metric.Name, other)
	if at < 0 || !c.all && !results.IsPrimary(metric.Name) {
		return
	}
	row := comparedMetric{Variant: variant, Phase: phase, Metric: metric.Name, A: metric, B: other.Metrics[at]}
	shift, unknown := gate.Across(c.a, c.b, variant, phase, metric.Name)
	if row.NotComparable, row.words = unknown, "not comparable: "+unknown; unknown == "" {
		row.words, row.Change = changeWords(shift), changeOf(shift)
	}
	c.rows = append(c.rows, row)
}

// changeOf converts the logarithms of a shift to shares.
func changeOf(shift stats.Shift) *comparedChange {
	change := &comparedChange{Share: math.Expm1(shift.Estimate)}
	if shift.Interval.Known {
		low, high := math.Expm1(shift.Interval.Low), math.Expm1(shift.Interval.High)
		change.Low, change.High, change.Confidence = &low, &high, shift.Interval.Confidence
	}
	return change
}

func (c *comparedPair) print(a *App) {
	table := newTable(a.Out, "VARIANT", "PHASE", "METRIC", "BETTER", "A: MEDIAN (MIN..MAX, RUNS)", "B: MEDIAN (MIN..MAX, RUNS)",
		"B AGAINST A (INTERVAL)")
	for _, row := range c.rows {
		known, _ := results.LookupMetric(row.Metric)
		better := strings.ToLower(cmp.Or(strings.TrimPrefix(string(known.Better), string(results.Neither)), none))
		table.row(row.Variant, row.Phase, row.Metric, better, report.Figures(row.A), report.Figures(row.B), row.words)
	}
	table.end()
	for i, note := range c.unlike() {
		if i == 0 {
			a.say("\nDifferences to consider:")
		}
		a.say("  %s", clean(note))
	}
}

// changeWords formats a change, for example "-10.0% (-12.1%..-8.0%, 97%)".
func changeWords(change stats.Shift) string {
	share := func(logarithm float64) string { return fmt.Sprintf("%+.1f%%", 100*math.Expm1(logarithm)) }
	if !change.Interval.Known {
		return share(change.Estimate) + " (too few runs for an interval)"
	}
	return fmt.Sprintf("%s (%s..%s, %.0f%%)", share(change.Estimate), share(change.Interval.Low), share(change.Interval.High),
		math.Floor(100*change.Interval.Confidence))
}

func phaseIn(e results.Experiment, variant, phase string) *results.PhaseResult {
	for i := range e.Variants {
		if e.Variants[i].Name != variant {
			continue
		}
		for j := range e.Variants[i].Phases {
			if one := &e.Variants[i].Phases[j]; one.Name == phase {
				return one
			}
		}
	}
	return nil
}

// unlike lists other differences between the experiments, because they may be the cause of a change.
func (c *comparedPair) unlike() []string {
	notes := slices.Concat(doubts("A", c.a), doubts("B", c.b), c.lone)
	for _, variant := range c.a.Variants {
		for _, other := range c.b.Variants {
			if variant.Name == other.Name && variant.Definition != other.Definition && variant.Definition != "" && other.Definition != "" {
				notes = append(notes, "target, phases or pods of variant "+variant.Name+" differ")
			}
		}
	}
	notes = append(notes, c.environment()...)
	if slices.ContainsFunc(c.rows, func(row comparedMetric) bool {
		known, _ := results.LookupMetric(row.Metric)
		return known.Binned()
	}) {
		notes = append(notes, "percentiles come from bins that are up to 1.6% wide: less than 3% means nothing")
	}
	return notes
}

// doubts says why the numbers of a side are not those of a complete and valid experiment.
func doubts(name string, e results.Experiment) (notes []string) {
	if e.State != results.StateComplete {
		notes = append(notes, fmt.Sprintf("%s is %s: its medians are of the runs that ended", name, cmp.Or(e.State, "without a state")))
	}
	if e.Verdict == string(v1alpha1.VerdictInvalid) {
		notes = append(notes, name+" is Invalid: too few of its runs can be trusted")
	}
	return notes
}

// environment lists the differences between the environments. If only one side has several keys with the same prefix, they share a line.
func (c *comparedPair) environment() (notes []string) {
	differences := results.Differences(c.a.Environment, c.b.Environment, nil)
	prefix := func(one results.Difference) string {
		side := "A"
		switch {
		case len(one.Baseline) > 0 && len(one.Current) > 0:
			return ""
		case len(one.Baseline) == 0:
			side = "B"
		}
		dot := strings.LastIndexByte(one.Key, '.')
		if dot < 0 {
			return ""
		}
		return fmt.Sprintf("only in %s: %s.*", side, one.Key[:dot])
	}
	keys := map[string]int{}
	for _, one := range differences {
		keys[prefix(one)]++
	}
	for _, one := range differences {
		switch shared := prefix(one); {
		case shared == "" || keys[shared] == 1:
			notes = append(notes, fmt.Sprintf("%s: %s in A, %s in B", one.Key, cmp.Or(strings.Join(one.Baseline, " | "), "none"),
				cmp.Or(strings.Join(one.Current, " | "), "none")))
		case keys[shared] > 1:
			notes = append(notes, fmt.Sprintf("%s (%d keys)", shared, keys[shared]))
			keys[shared] = 0
		}
	}
	return notes
}
