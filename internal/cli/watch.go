package cli

import (
	"context"
	"math"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitOptions are the flags of commands that wait for verdicts.
type waitOptions struct {
	Connection
	timeout time.Duration
}

func (o *waitOptions) addWaitFlags(flags *pflag.FlagSet) {
	o.addFlags(flags)
	flags.DurationVar(&o.timeout, "timeout", 0, "stop waiting after this `DURATION`, such as 90m (default: never)")
}

// check refuses a --timeout that would count as none.
func (o *waitOptions) check(flags *pflag.FlagSet) error {
	if flags.Changed("timeout") && o.timeout <= 0 {
		return exitf(ExitUsage, "--timeout needs a duration above 0, such as 90m")
	}
	return nil
}

// limit applies --timeout to a context.
func (o *waitOptions) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.timeout, errTimeout)
}

// besideOutput returns a copy of the tool that prints to the standard error if the output is for programs.
func (a *App) besideOutput(format string) *App {
	progress := *a
	if format != "text" {
		progress.Out, progress.Terminal = a.Err, nil
	}
	return &progress
}

// experimentID matches the name of an experiment. After any other text, the old verdict would count as that of the next experiment.
var experimentID = regexp.MustCompile(`^[0-9a-f]{8}$`)

func (a *App) watchCommand() *cobra.Command {
	var options waitOptions
	after := ""
	command := &cobra.Command{
		Use:   "watch NAME...",
		Short: "Show the progress of StorageBenchmarks until their verdict",
		Long: `Show the progress of StorageBenchmarks in the cluster until the verdict, which determines the exit code. Nothing is changed:
Ctrl-C ends only the waiting. With --after EXPERIMENT, wait for the experiment that follows it.

` + exitHelp,
		Example: `  kubectl storagebench watch quickstart
  kubectl storagebench watch nightly --timeout 2h`,
		Args: atLeastOne("watch needs a name: kubectl storagebench watch NAME"),
		RunE: func(command *cobra.Command, names []string) error {
			if err := options.check(command.Flags()); err != nil {
				return err
			}
			if after != "" && len(names) > 1 {
				return exitf(ExitUsage, "--after is for one benchmark: remove it, or watch one NAME")
			}
			if after != "" && !experimentID.MatchString(after) {
				return exitf(ExitUsage, "--after %s: write the 8 hexadecimal digits of an experiment, as rerun prints them", after)
			}
			return a.watch(command.Context(), names, after, options)
		},
	}
	options.addWaitFlags(command.Flags())
	command.Flags().StringVar(&after, "after", "", "wait for the experiment after this `EXPERIMENT`, as rerun prints it")
	command.ValidArgsFunction = a.completeNames(&options.Connection, math.MaxInt)
	return command
}

func (a *App) watch(ctx context.Context, names []string, after string, options waitOptions) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return err
	}
	var benchmarks []applied
	for _, name := range names {
		benchmark, err := cluster.find(ctx, name) // a benchmark that never existed must not be reported as deleted
		if err != nil {
			return err
		}
		benchmarks = append(benchmarks, applied{key: client.ObjectKeyFromObject(benchmark), previousExperiment: after})
	}
	return a.waitAndConclude(ctx, cluster, benchmarks, options)
}

// watchHint returns the command that follows a benchmark.
func (c Connection) watchHint(one applied) string {
	after := ""
	if one.previousExperiment != "" { // until the operator sees the change, the status has that experiment's verdict
		after = " --after " + clean(one.previousExperiment)
	}
	return "kubectl storagebench watch " + one.key.Name + after + c.flags(one.key.Namespace)
}

// waitAndConclude waits for the verdicts, at most for --timeout.
func (a *App) waitAndConclude(ctx context.Context, cluster *Cluster, benchmarks []applied, options waitOptions) error {
	ctx, cancel := options.limit(ctx)
	defer cancel()
	all, err := a.wait(ctx, cluster, benchmarks)
	return a.conclude(all, err, options)
}
