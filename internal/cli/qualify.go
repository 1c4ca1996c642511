package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/qualify"
	"github.com/storagebench/storagebench/internal/results"
)

type qualifyOptions struct {
	waitOptions
	suite  qualify.Suite
	dryRun bool
	format string
	from   []string
}

// cards maps the values of -o to functions that render a card.
var cards = map[string]func(qualify.Card) (string, error){
	"text":     func(c qualify.Card) (string, error) { return c.Text(), nil },
	"markdown": func(c qualify.Card) (string, error) { return c.Markdown(), nil },
	formatHTML: qualify.Card.HTML,
	"json": func(c qualify.Card) (string, error) {
		text, err := json.MarshalIndent(c, "", "  ")
		return string(text) + "\n", err
	},
}

func (a *App) qualifyCommand() *cobra.Command {
	var options qualifyOptions
	command := &cobra.Command{
		Use:   "qualify STORAGECLASS|target/NAME",
		Short: "Measure whether storage is fit for databases, and print a card with the worst findings first",
		Long: `Measure whether a StorageClass, or the storage of a StorageTarget, is fit for databases. A fixed suite runs as two ordinary
StorageBenchmarks, one after another: fio workloads and a log with synchronous appends on an empty volume, filled to 80%, and after its data
was overwritten twice; then PostgreSQL. The card says of each finding what was measured, what it means and what to do. The limits are for
one node: a StorageTarget with nodes.count over 1 is refused.

The suite loads the storage: do not run it on storage that others depend on. It creates two StorageBenchmarks in the namespace, which
needs the cluster role edit there. Run the same command again to print the card of a finished suite. With other values of --size,
--duration or --repetitions, the suite is measured again. Delete both StorageBenchmarks to clean up, or to repeat the suite.

` + exitCodes(map[int]string{
			ExitPassed:       "all findings are good or warnings",
			ExitFailed:       "a finding is bad",
			ExitInconclusive: "something is unknown: it could not be measured",
			ExitTimeout:      outOfTime,
			ExitRefused:      "refused: the suite, a target with several nodes, or the results of --from; or a benchmark is stalled",
			ExitNotFound:     "a file of --from, a benchmark or its report does not exist",
			ExitUnavailable:  unavailable,
		}),
		Example: `  kubectl storagebench qualify fast
  kubectl storagebench qualify fast --size 100Gi -o html > card.html
  kubectl storagebench qualify target/mirror --dry-run > suite.yaml`,
		Args: exactlyOne("qualify needs a StorageClass, or a StorageTarget as target/NAME: kubectl storagebench qualify STORAGECLASS"),
		RunE: func(command *cobra.Command, names []string) error {
			options.suite.Of = names[0]
			if err := options.check(command.Flags()); err != nil {
				return err
			}
			return a.qualify(command.Context(), options)
		},
	}
	flags := command.Flags()
	options.addWaitFlags(flags)
	flags.StringVar(&options.suite.Size, "size", qualify.DefaultSize,
		"`SIZE` of the volumes. More than 4 times the memory of the node makes reads reach the disks, also those of PostgreSQL. "+
			"With target/NAME: the size that it has")
	flags.DurationVar(&options.suite.Duration, "duration", qualify.DefaultDuration,
		"`DURATION` of each measurement; PostgreSQL takes five times that")
	flags.IntVar(&options.suite.Repetitions, "repetitions", qualify.DefaultRepetitions, "`NUMBER` of repetitions")
	flags.BoolVar(&options.dryRun, "dry-run", false, "print the StorageBenchmarks, and apply nothing")
	flags.StringArrayVar(&options.from, "from", nil, "print the card of this results.json `FILE`, or StorageBenchmark, of the suite; "+
		"use it once for each part")
	a.addFormat(command, &options.format, []string{"text", "markdown", "json", formatHTML})
	return command
}

func (a *App) qualify(ctx context.Context, options qualifyOptions) error {
	text, err := options.suite.Manifests()
	if err != nil {
		return exit(ExitUsage, err)
	}
	if options.dryRun {
		_, err := fmt.Fprintf(a.Out, "# %s. Each measurement takes %s.\n%s", options.suite.Subject(), options.suite.Duration, text)
		return err
	}
	if len(options.from) > 0 {
		return a.storedCard(ctx, options)
	}
	experiments, ended := a.runSuite(ctx, text, options)
	if len(experiments) == 0 {
		return ended
	}
	var troubles []string
	if ended != nil {
		troubles = []string{fmt.Sprintf("%s: %s", options.suite.Names()[len(experiments)], ended)}
	}
	judged := a.printCard(qualify.CardOf(options.suite.Subject(), troubles, experiments...), options.format)
	one, _ := exitCode(ended)
	other, _ := exitCode(judged)
	if ended == nil || worstCode([]int{one, other}) == other {
		return judged
	}
	return ended
}

// storedCard prints the card of stored results.
func (a *App) storedCard(ctx context.Context, options qualifyOptions) error {
	var experiments []results.Experiment
	for _, file := range options.from {
		one, err := a.experimentOf(ctx, file, options.Connection)
		if err != nil {
			return err
		}
		experiments = append(experiments, one)
	}
	if err := options.suite.Accepts(experiments...); err != nil {
		return exit(ExitRefused, err)
	}
	return a.printCard(qualify.CardOf(options.suite.SubjectOf(experiments...), nil, experiments...), options.format)
}

// runSuite executes the benchmarks one after another, because they may use the same storage, even on different nodes. Progress goes to the
// standard error if programs read the card. On an error it also returns the results of the benchmarks that ended before.
func (a *App) runSuite(ctx context.Context, text string, options qualifyOptions) ([]results.Experiment, error) {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return nil, err
	}
	ctx, cancel := options.limit(ctx)
	defer cancel()
	if err := measurable(ctx, cluster, options.suite); err != nil {
		return nil, err
	}
	progress := a.besideOutput(options.format)
	progress.say("%s: two StorageBenchmarks, one after another; each measurement takes %s", options.suite.Subject(), options.suite.Duration)
	var experiments []results.Experiment
	for _, document := range splitDocuments([]byte(text)) {
		one, err := parseManifest("the suite", document)
		if err != nil {
			return experiments, err
		}
		benchmarks, err := progress.applyAll(ctx, cluster, options.Connection, []*manifest{one}, false)
		if err != nil {
			return experiments, err
		}
		experiment, err := progress.ended(ctx, cluster, benchmarks, options)
		if err != nil {
			return experiments, err
		}
		experiments = append(experiments, experiment)
	}
	return experiments, nil
}

// measurable refuses a StorageTarget that the suite cannot judge. One that cannot be read is left to the manager: it may not exist yet.
func measurable(ctx context.Context, cluster *Cluster, suite qualify.Suite) error {
	name, is := suite.Target()
	if !is {
		return nil
	}
	var target v1alpha1.StorageTarget
	err := cluster.Client.Get(ctx, cluster.key(name), &target)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return explain("read StorageTarget "+cluster.key(name).String(), err)
	}
	if err := suite.Measures(target.Spec); err != nil {
		return exit(ExitRefused, err)
	}
	return nil
}

// ended waits for a benchmark and reads its results. It returns an error if the benchmark has no verdict, which ends the suite.
func (a *App) ended(ctx context.Context, cluster *Cluster, benchmarks []applied, options qualifyOptions) (results.Experiment, error) {
	all, cause := a.wait(ctx, cluster, benchmarks)
	for _, t := range all {
		if !t.complete() {
			code, _ := exitCode(a.conclude(all, cause, options.waitOptions))
			return results.Experiment{}, exit(cmp.Or(code, ExitError), errors.New(t.sentence()))
		}
	}
	experiment, _, err := storedExperiment(ctx, cluster, benchmarks[0].key.Name, options.Connection)
	return experiment, err
}

func (a *App) printCard(card qualify.Card, format string) error {
	text, err := cards[format](card)
	if err != nil {
		return exit(ExitError, err)
	}
	if format == "text" {
		a.say("\n%s", strings.TrimSuffix(text, "\n"))
	} else if _, err := fmt.Fprint(a.Out, text); err != nil {
		return err
	}
	return silent(map[qualify.Level]int{qualify.Bad: ExitFailed, qualify.Unknown: ExitInconclusive}[card.Verdict])
}
