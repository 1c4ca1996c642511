package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict"
)

const baselineSuffix = "-baseline"

func (a *App) baselineCommand() *cobra.Command {
	return group("baseline", "Accept results as the standard for later ones, as a file for Git", a.baselineAcceptCommand(),
		a.baselineShowCommand(), a.baselineDiffCommand())
}

func (a *App) baselineAcceptCommand() *cobra.Command {
	of := acceptance{what: "baseline", suffix: baselineSuffix, make: results.MakeBaseline,
		named: func(spec *v1alpha1.StorageBenchmarkSpec) string {
			if spec.Baseline == nil {
				return ""
			}
			return spec.Baseline.ConfigMap.Name
		}}
	return a.acceptCommand(of, &cobra.Command{
		Short: "Print a ConfigMap with the baseline of a finished StorageBenchmark",
		Long: `Print a ConfigMap with the metrics of a finished StorageBenchmark, to commit and apply with it. spec.baseline refers to it.
The results are added to those in the ConfigMap of that name, or in --add-to: a baseline keeps up to 20 experiments, as days differ.
Results of --from are added only to --add-to. --replace starts over. Nothing is changed in the cluster. Warnings and hints are printed to
the standard error.

` + exitCodes(acceptExits),
		Example: `  kubectl storagebench baseline accept nightly --note "kernel 6.12.9, accepted by ann" > baseline.yaml
  kubectl storagebench baseline accept nightly --replace --note "other disks" > baseline.yaml
  kubectl storagebench baseline accept --from results/results.json --add-to old.yaml > baseline.yaml`,
	})
}

func (a *App) baselineShowCommand() *cobra.Command {
	all := false
	command := a.showAcceptedCommand("baseline", func(baseline results.Baseline) { a.showBaseline(baseline, all) })
	command.Example += "\n  kubectl storagebench baseline show nightly-baseline --all"
	command.Flags().BoolVar(&all, "all", false, "all metrics instead of the primary ones, and the environment")
	return command
}

// showAcceptedCommand prints a baseline or a calibration as the given table.
func (a *App) showAcceptedCommand(kind string, table func(results.Baseline)) *cobra.Command {
	var connection Connection
	var format string
	example := fmt.Sprintf("kubectl storagebench %s show %s.yaml", kind, kind)
	command := &cobra.Command{
		Use:     "show FILE|NAME",
		Short:   "Print a " + kind + ", in a file or in a ConfigMap of the cluster, as a table",
		Example: "  " + example,
		Args:    exactlyOne(kind + " show needs one file, or the name of one ConfigMap: " + example),
		RunE: func(command *cobra.Command, names []string) error {
			accepted, err := a.readAccepted(command.Context(), names[0], connection)
			if err != nil {
				return err
			}
			if format != formatText {
				return a.printDocument(accepted, format)
			}
			table(accepted)
			return nil
		},
	}
	connection.addFlags(command.Flags())
	a.addFormat(command, &format, structured)
	return command
}

func (a *App) showBaseline(baseline results.Baseline, all bool) {
	a.sayAccepted(baseline)
	table := newTable(a.Out, "VARIANT", "PHASE", "METRIC", "MEDIAN (MIN..MAX, RUNS)")
	for _, variant := range baseline.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if known, _ := results.LookupMetric(metric.Name); all || known.Primary {
					table.row(variant.Name, phase.Name, metric.Name, report.Figures(metric.Summary()))
				}
			}
		}
	}
	table.end()
	if all {
		a.sayEnvironment(baseline.Environment)
	}
}

// sayAccepted prints the origin of a baseline: the experiments that were accepted.
func (a *App) sayAccepted(baseline results.Baseline) {
	for _, of := range baseline.Experiments {
		a.say("%s/%s, experiment %s: %s", of.Benchmark.Namespace, of.Benchmark.Name, of.Experiment, of.Verdict)
		if of.NodeName != "" {
			a.say("Node: %s", of.NodeName)
		}
		if of.StorageClass != "" {
			a.say("StorageClass: %s", of.StorageClass)
		}
		if of.FinishedAt != nil {
			a.say("Finished: %s", of.FinishedAt.UTC().Format(time.RFC3339))
		}
		a.say("Accepted: %s", of.AcceptedAt.UTC().Format(time.RFC3339))
		if of.Note != "" {
			a.say("Note: %s", clean(of.Note))
		}
	}
	for _, words := range baseline.Omitted {
		a.say("Left out: %s", clean(words))
	}
}

func (a *App) sayEnvironment(environment map[string][]string) {
	table := newTable(a.Out, "ENVIRONMENT", "VALUE")
	for _, key := range slices.Sorted(maps.Keys(environment)) {
		table.row(key, strings.Join(environment[key], " | "))
	}
	table.end()
}

// diffOptions are the flags of baseline diff.
type diffOptions struct {
	acceptOptions
	baseline string
	allow    []string
}

func (a *App) baselineDiffCommand() *cobra.Command {
	var options diffOptions
	command := &cobra.Command{
		Use:   "diff NAME",
		Short: "Show whether gates can compare the results with the baseline, and what differs",
		Long: `Compare the environment and the definitions of a finished StorageBenchmark with those of its baseline. The definition of a
variant is a hash of its target, phases and pods; as a KEY it is called definition. With differences that
spec.baseline.allowDifferences does not allow, gates cannot compare with the baseline. They never compare an experiment with itself.

` + exitCodes(map[int]string{
			ExitPassed:      "there are no differences, or only allowed ones",
			ExitFailed:      "a difference is not allowed, or the baseline has no other experiment",
			ExitRefused:     "the results or the baseline cannot be read",
			ExitNotFound:    "a file, the benchmark, its report or the baseline does not exist",
			ExitUnavailable: unavailable,
		}),
		Example: `  kubectl storagebench baseline diff nightly
  kubectl storagebench baseline diff --from results/results.json --baseline baseline.yaml --allow kernel`,
		Args: nameOrFile("baseline diff needs one name, or --from FILE with --baseline: kubectl storagebench baseline diff NAME", &options.from),
		RunE: func(command *cobra.Command, names []string) error {
			return a.diffBaseline(command.Context(), names, options)
		},
	}
	options.addFlags(command.Flags())
	command.Flags().StringVar(&options.from, "from", "",
		"use the results.json in `FILE`, or in a folder that run --local has written, instead of those of a StorageBenchmark")
	command.Flags().StringVar(&options.baseline, "baseline", "",
		"compare with the baseline in this `FILE|NAME` instead of the one in spec.baseline")
	command.Flags().StringArrayVar(&options.allow, "allow", nil,
		"an additional `KEY` that may differ, besides spec.baseline.allowDifferences, such as kernel or zfs.parameter.*")
	command.ValidArgsFunction = a.completeNames(&options.Connection, 1)
	return command
}

func (a *App) diffBaseline(ctx context.Context, names []string, options diffOptions) error {
	experiment, benchmark, err := a.finishedExperiment(ctx, names, options.acceptOptions)
	if err != nil {
		return err
	}
	allow := options.allow
	if benchmark != nil && benchmark.Spec.Baseline != nil {
		allow = slices.Concat(benchmark.Spec.Baseline.AllowDifferences, allow)
		if options.baseline == "" {
			options.baseline = benchmark.Spec.Baseline.ConfigMap.Name
		}
	}
	if options.baseline == "" {
		return exitf(ExitUsage, "there is no baseline to compare with: set spec.baseline.configMap.name, or use --baseline FILE|NAME")
	}
	baseline, err := a.readAccepted(ctx, options.baseline, options.Connection)
	if err != nil {
		return err
	}
	return silent(a.sayDifferences(baseline, experiment, allow))
}

// sayDifferences prints the differences, allowed ones separately, and returns the exit code.
func (a *App) sayDifferences(baseline results.Baseline, experiment results.Experiment, allow []string) int {
	for _, of := range baseline.Experiments {
		a.say("Baseline of %s/%s, experiment %s, accepted %s", of.Benchmark.Namespace, of.Benchmark.Name, of.Experiment,
			of.AcceptedAt.UTC().Format(time.RFC3339))
	}
	a.say("Results of %s/%s, experiment %s", experiment.Benchmark.Namespace, experiment.Benchmark.Name, experiment.Experiment)
	baseline = baseline.Without(experiment.Experiment) // gates do not compare an experiment with itself either
	if len(baseline.Experiments) == 0 {
		a.say("\nThe baseline has only the numbers of this experiment, which cannot be compared with itself: it is for later experiments.")
		return ExitFailed
	}
	allowed, refused, unused := differencesTo(baseline, experiment, allow)
	list := func(title string, differences []results.Difference) {
		if len(differences) == 0 {
			return
		}
		a.say("\n%s:", title)
		for _, difference := range differences {
			a.say("  %s", clean(difference.String()))
		}
	}
	list("Allowed differences", allowed)
	list("Differs", refused)
	if len(unused) > 0 {
		a.say("\nAllowed, but without differences: %s", strings.Join(unused, ", "))
	}
	missing, measured := notInBaseline(baseline, experiment)
	if len(missing) > 0 {
		a.say("\nMeasured, but not in the baseline: %s", strings.Join(missing, ", "))
	}
	if len(refused) > 0 {
		a.say("\nThese results cannot be compared with the baseline: accept new ones as the baseline, or list what may differ in " +
			"spec.baseline.allowDifferences.")
		return ExitFailed
	}
	if len(missing) == measured {
		a.say("\nThese results cannot be compared with the baseline: it has none of their phases. Accept new ones as the baseline, or give " +
			"variants and phases their earlier names.")
		return ExitFailed
	}
	a.say("\nThese results can be compared with the baseline.")
	return ExitPassed
}

// differencesTo returns the differences to a baseline as gates see them: those that are allowed and the others, and the patterns that allow
// nothing.
func differencesTo(baseline results.Baseline, experiment results.Experiment, allow []string) (allowed, refused []results.Difference,
	unused []string) {
	unused = slices.Clone(allow)
	add := func(key string, difference results.Difference) {
		if !results.DifferenceAllowed(key, allow) {
			refused = append(refused, difference)
			return
		}
		allowed = append(allowed, difference)
		unused = slices.DeleteFunc(unused, func(pattern string) bool { return results.DifferenceAllowed(key, []string{pattern}) })
	}
	for _, difference := range results.Differences(baseline.Environment, experiment.Environment, nil) {
		add(difference.Key, difference)
	}
	for _, variant := range experiment.Variants {
		measured := slices.ContainsFunc(baseline.Variants, func(v results.BaselineVariant) bool { return v.Name == variant.Name })
		if then := baseline.Definition(variant.Name); measured && then != variant.Definition {
			add(verdict.DefinitionKey, results.Difference{Key: fmt.Sprintf("%s (variant %s)", verdict.DefinitionKey, variant.Name),
				Baseline: unlessEmpty(then), Current: unlessEmpty(variant.Definition)})
		}
	}
	return allowed, refused, unused
}

// unlessEmpty lists a value, or nothing if it is not known.
func unlessEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// notInBaseline lists the measured phases that the baseline lacks, and counts all: a gate would find no metrics for the missing ones.
func notInBaseline(baseline results.Baseline, experiment results.Experiment) (missing []string, measured int) {
	for _, variant := range experiment.Variants {
		measured += len(variant.Phases)
		for _, phase := range variant.Phases {
			known := func(v results.BaselineVariant) bool {
				return v.Name == variant.Name && slices.ContainsFunc(v.Phases, func(p results.BaselinePhase) bool { return p.Name == phase.Name })
			}
			if !slices.ContainsFunc(baseline.Variants, known) {
				missing = append(missing, fmt.Sprintf("phase %s of variant %s", phase.Name, variant.Name))
			}
		}
	}
	return missing, measured
}
