package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/history"
)

// leastShare is the smallest change to report: steady metrics have significant changes of no importance.
const leastShare = 0.01

// historySeed makes the reported changes reproducible.
const historySeed = 1

type historyOptions struct {
	Connection
	last int
}

func (a *App) historyCommand() *cobra.Command {
	var options historyOptions
	command := &cobra.Command{
		Use:   "history NAME",
		Short: "Print the history of a StorageBenchmark, and where it changed",
		Long: `Print the primary metrics of all complete experiments of a StorageBenchmark, oldest first, and the points at which they
changed, with the known changes of the environment.

` + exitHelp,
		Example: `  kubectl storagebench history weekly
  kubectl storagebench history weekly --last 5`,
		Args: exactlyOne("history needs one name: kubectl storagebench history NAME"),
		RunE: func(command *cobra.Command, names []string) error {
			if options.last < 1 {
				return exitf(ExitUsage, "--last %d: write a number of experiments of at least 1", options.last)
			}
			return a.history(command.Context(), names[0], options)
		},
	}
	options.addFlags(command.Flags())
	command.Flags().IntVar(&options.last, "last", 20, "print the last `N` experiments; changes are detected in all")
	command.ValidArgsFunction = a.completeNames(&options.Connection, 1)
	return command
}

func (a *App) history(ctx context.Context, name string, options historyOptions) error {
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return err
	}
	key := cluster.key(name)
	benchmark, err := cluster.find(ctx, name)
	if err != nil {
		return err
	}
	var stored corev1.ConfigMap
	err = cluster.Client.Get(ctx, cluster.key(naming.HistoryName(name)), &stored)
	if apierrors.IsNotFound(err) {
		return exitf(ExitNotFound, "StorageBenchmark %s has no history yet: it gets one with its first complete experiment", key)
	}
	if err != nil {
		return explain("read the history in ConfigMap "+naming.HistoryName(name), err)
	}
	series, err := history.Decode([]byte(stored.Data[history.Key]))
	if err == nil && series.Benchmark.UID != string(benchmark.UID) {
		err = errors.New("it belongs to another object of that name")
	}
	if err != nil {
		return exitf(ExitNotFound,
			"ConfigMap %s/%s is not the history of this StorageBenchmark: %w: delete or rename it, and the operator rewrites the history",
			stored.Namespace, stored.Name, err)
	}
	return a.printHistory(series, options.last)
}

// printHistory prints a line for each metric of each experiment, then the changes.
func (a *App) printHistory(series *history.Series, last int) error {
	rows := newTable(a.Out, "EXPERIMENT", "FINISHED", "VERDICT", "VARIANT", "PHASE", "METRIC", "MEDIAN (RUNS)")
	for _, point := range series.Points[max(0, len(series.Points)-last):] {
		cells := []string{point.Experiment, point.FinishedAt.UTC().Format(time.RFC3339), point.Verdict}
		for _, metric := range point.Metrics {
			rows.row(slices.Concat(cells, []string{metric.Variant, metric.Phase, metric.Metric,
				fmt.Sprintf("%s (n=%d)", amount(metric.Metric, metric.Median), metric.Runs)})...)
			cells = []string{"", "", ""}
		}
	}
	rows.end()
	_, _ = fmt.Fprintln(a.Out)
	if n := len(series.Points); n < history.LeastPoints {
		a.say("%d of %d experiments: changes are detected from %d on", n, history.LeastPoints, history.LeastPoints)
		return nil
	}
	changes, omitted, err := history.Changes(series, historySeed)
	if err != nil {
		return exit(ExitError, err)
	}
	found := len(changes)
	changes = slices.DeleteFunc(changes, func(change history.Change) bool { return math.Abs(change.Share) < leastShare })
	if small := found - len(changes); small > 0 {
		a.say("%d changes of less than 1%% are not shown.", small)
	}
	if len(changes) == 0 {
		a.say("No changes in %d experiments.", len(series.Points))
	} else {
		rows = newTable(a.Out, "CHANGED WITH", "FINISHED", "VARIANT", "PHASE", "METRIC", "FROM", "TO", "CHANGE", "IS", "BESIDE IT")
		for _, change := range changes {
			rows.row(change.Experiment, change.Since.UTC().Format(time.RFC3339), change.Variant, change.Phase, change.Metric,
				amount(change.Metric, int64(change.From)), amount(change.Metric, int64(change.To)), change.Percent(), direction(change), change.Cause())
		}
		rows.end()
	}
	if omitted > 0 {
		a.say("%d more metrics were not evaluated: they would take too long.", omitted)
	}
	return nil
}

// amount formats one value of a metric with a readable unit.
func amount(name string, value int64) string {
	metric, _ := results.LookupMetric(name)
	unit := stepFor(results.MetricResult{Name: name, Unit: metric.Unit, Median: value, Min: value, Max: value})
	return unit.write(value) + unit.suffix
}

func direction(change history.Change) string {
	switch {
	case change.Worse:
		return "worse"
	case change.Better:
		return "better"
	}
	return ""
}
