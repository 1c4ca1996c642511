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

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/history"
)

// leastShare is the smallest change that is reported: very steady metrics have statistically significant changes that do not matter.
const leastShare = 0.01

// maxGaps limits the lines about metrics that were not examined.
const maxGaps = 20

// historySeed makes the reported changes reproducible.
const historySeed = 1

type historyOptions struct {
	Connection
	last   int
	format string
}

func (a *App) historyCommand() *cobra.Command {
	var options historyOptions
	command := &cobra.Command{
		Use:   "history NAME",
		Short: "Print the history of a StorageBenchmark, and where it changed",
		Long: `Print the primary metrics of all complete experiments of a StorageBenchmark, oldest first, and the points at which they
changed, with the known changes of the environment.

` + exitCodes(map[int]string{
			ExitPassed:      "the history was printed",
			ExitRefused:     "the stored history cannot be read",
			ExitNotFound:    "the benchmark or its history does not exist",
			ExitUnavailable: unavailable,
		}),
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
	a.addFormat(command, &options.format, structured)
	command.ValidArgsFunction = a.completeNames(&options.Connection, 1)
	return command
}

func (a *App) history(ctx context.Context, name string, options historyOptions) error {
	cluster, benchmark, err := a.locate(ctx, options.Connection, name)
	if err != nil {
		return err
	}
	key := cluster.key(name)
	var stored corev1.ConfigMap
	err = cluster.Client.Get(ctx, cluster.key(naming.HistoryName(name)), &stored)
	if apierrors.IsNotFound(err) {
		return exitf(ExitNotFound, "StorageBenchmark %s has no history yet: it gets one with its first complete experiment", key)
	}
	if err != nil {
		return explain("read the history in ConfigMap "+naming.HistoryName(name), err)
	}
	series, err := history.Decode([]byte(stored.Data[history.Key]))
	code := ExitRefused
	if err == nil && series.Benchmark.UID != string(benchmark.UID) {
		code, err = ExitNotFound, errors.New("it belongs to another object of that name")
	}
	if err != nil {
		return exitf(code,
			"ConfigMap %s/%s is not the history of this StorageBenchmark: %w: delete or rename it, and the operator rewrites the history",
			stored.Namespace, stored.Name, err)
	}
	changes, small, omitted, err := changesIn(series)
	if err != nil {
		return err
	}
	shown := series.Points[max(0, len(series.Points)-options.last):]
	if options.format != formatText {
		return a.printDocument(historyFor(series, shown, changes, omitted), options.format)
	}
	a.printHistory(shown)
	a.printChanges(len(series.Points), changes, small, omitted)
	a.printGaps(series)
	return nil
}

// historyDocument is the history for programs.
type historyDocument struct {
	Benchmark   results.RunIdentity `json:"benchmark"`
	Experiments []history.Point     `json:"experiments"`
	Changes     []historyChange     `json:"changes"`
	// NotExamined are metrics in which changes, or late ones, cannot be seen. Omitted is the number of metrics that would take too long.
	NotExamined []history.Gap `json:"notExamined"`
	Omitted     int           `json:"omitted,omitempty"`
}

// historyChange is a point of change. Share is missing if From is 0.
type historyChange struct {
	history.Path
	Experiment string    `json:"experiment"`
	Since      time.Time `json:"since"`
	From       float64   `json:"from"`
	To         float64   `json:"to"`
	Share      *float64  `json:"share,omitempty"`
	Direction  string    `json:"direction"`
	Causes     []string  `json:"causes,omitempty"`
}

func historyFor(series *history.Series, shown []history.Point, changes []history.Change, omitted int) historyDocument {
	document := historyDocument{series.Benchmark, shown, []historyChange{}, append([]history.Gap{}, series.Gaps()...), omitted}
	for _, change := range changes {
		one := historyChange{change.Path, change.Experiment, change.Since.UTC(), change.From, change.To, nil, direction(change), change.Causes}
		if !math.IsInf(change.Share, 0) && !math.IsNaN(change.Share) {
			one.Share = &change.Share
		}
		document.Changes = append(document.Changes, one)
	}
	return document
}

// changesIn returns the changes that are worth reporting. small is the number of smaller changes, and omitted the number of metrics that
// were not examined.
func changesIn(series *history.Series) (changes []history.Change, small, omitted int, err error) {
	if len(series.Points) < history.LeastPoints {
		return nil, 0, 0, nil
	}
	changes, omitted, err = history.Changes(series, historySeed)
	if err != nil {
		return nil, 0, 0, exit(ExitError, err)
	}
	found := len(changes)
	changes = slices.DeleteFunc(changes, func(change history.Change) bool { return math.Abs(change.Share) < leastShare })
	return changes, found - len(changes), omitted, nil
}

// printHistory prints a line for each metric of each experiment.
func (a *App) printHistory(points []history.Point) {
	rows := newTable(a.Out, "EXPERIMENT", "FINISHED", "VERDICT", "VARIANT", "PHASE", "METRIC", "MEDIAN (RUNS)")
	for _, point := range points {
		cells := []string{point.Experiment, point.FinishedAt.UTC().Format(time.RFC3339), point.Verdict}
		for _, metric := range point.Metrics {
			rows.row(slices.Concat(cells, []string{metric.Variant, metric.Phase, metric.Metric,
				fmt.Sprintf("%s (n=%d)", amount(metric.Metric, metric.Median), metric.Runs)})...)
			cells = []string{"", "", ""}
		}
	}
	rows.end()
	_, _ = fmt.Fprintln(a.Out)
}

func (a *App) printChanges(points int, changes []history.Change, small, omitted int) {
	if points < history.LeastPoints {
		a.say("%d of %d experiments: changes are detected from %d on", points, history.LeastPoints, history.LeastPoints)
		return
	}
	if small > 0 {
		a.say("%d changes of less than 1%% are not shown.", small)
	}
	if len(changes) == 0 {
		a.say("No changes in %d experiments.", points)
	} else {
		rows := newTable(a.Out, "CHANGED WITH", "FINISHED", "VARIANT", "PHASE", "METRIC", "FROM", "TO", "CHANGE", "IS", "BESIDE IT")
		for _, change := range changes {
			rows.row(change.Experiment, change.Since.UTC().Format(time.RFC3339), change.Variant, change.Phase, change.Metric,
				amount(change.Metric, int64(change.From)), amount(change.Metric, int64(change.To)), change.Percent(), direction(change), change.Cause())
		}
		rows.end()
	}
	if omitted > 0 {
		a.say("%d more metrics were not evaluated: they would take too long.", omitted)
	}
}

// printGaps names the metrics for which no change does not mean that all is well.
func (a *App) printGaps(series *history.Series) {
	if len(series.Points) < history.LeastPoints {
		return // printChanges has said so
	}
	gaps := series.Gaps()
	for _, gap := range gaps[:min(maxGaps, len(gaps))] {
		a.say("Not examined: %s: %s.", clean(gap.String()), clean(gap.Reason))
	}
	if more := len(gaps) - maxGaps; more > 0 {
		a.say("%d more metrics are not examined: -o json lists them.", more)
	}
}

// amount formats one value of a metric with a readable unit.
func amount(name string, value int64) string {
	metric, _ := results.LookupMetric(name)
	return report.Amount(name, metric.Unit, value)
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
