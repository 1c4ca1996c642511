package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
)

type rerunOptions struct {
	waitOptions
	wait           bool
	evenIfRunning  bool
	deleteRetained bool
}

func (a *App) rerunCommand() *cobra.Command {
	var options rerunOptions
	command := &cobra.Command{
		Use:   "rerun NAME",
		Short: "Start a StorageBenchmark over; says what is lost before it does",
		Long: `Start another experiment of a StorageBenchmark, by the annotation ` + v1alpha1.AnnotationRerun + `. Nothing of the spec changes.
The results of the earlier experiment are kept, as many as spec.resultsHistory says; its runs and the documents of their phases are deleted.

The command refuses if an experiment is running (--even-if-running) or if spec.retain has kept volumes (--delete-retained).

` + exitHelp,
		Example: `  kubectl storagebench rerun nightly --wait`,
		Args:    exactlyOne("rerun needs one name: kubectl storagebench rerun NAME"),
		RunE: func(command *cobra.Command, names []string) error {
			if command.Flags().Changed("timeout") && (!options.wait || options.timeout <= 0) {
				return exitf(ExitUsage, "--timeout needs --wait and a duration above 0, such as 90m")
			}
			return a.rerun(command.Context(), names[0], options)
		},
	}
	flags := command.Flags()
	options.addWaitFlags(flags)
	flags.BoolVarP(&options.wait, "wait", "w", false, "show progress until the verdict, which determines the exit code")
	flags.BoolVar(&options.evenIfRunning, "even-if-running", false, "end an experiment that is in progress without a verdict")
	flags.BoolVar(&options.deleteRetained, "delete-retained", false, "delete the volumes and pods of earlier runs that spec.retain has kept")
	command.ValidArgsFunction = a.completeNames(&options.Connection, 1)
	return command
}

func (a *App) rerun(ctx context.Context, name string, options rerunOptions) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return err
	}
	var found losses
	t, err := cluster.change(ctx, name, func(t *tracked) error {
		if options.wait && t.benchmark.Spec.Suspend {
			return exitf(ExitRefused, "%s was not started over: it is suspended, so that there is nothing to wait for\n"+
				"Resume it first: kubectl storagebench resume %s%s", t.key, name, options.flags(t.key.Namespace))
		}
		all, err := cluster.runsOf(ctx, t)
		if err != nil {
			return err
		}
		found = lossesOf(t, all)
		if err := found.refusal(t, options); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&t.benchmark.ObjectMeta, v1alpha1.AnnotationRerun, a.Now().UTC().Format(time.RFC3339Nano))
		return nil
	})
	if err != nil {
		return err
	}
	a.say("%s starts over", t.key)
	for _, one := range found.all() {
		a.say("%s", clean(one))
	}
	if t.benchmark.Spec.Suspend {
		a.say("It is suspended: kubectl storagebench resume %s%s", name, options.flags(t.key.Namespace))
	}
	a.warnOfOwners(t.benchmark, "f:"+v1alpha1.AnnotationRerun, "the new value of the annotation "+v1alpha1.AnnotationRerun)
	next := applied{key: t.key, previousExperiment: t.benchmark.Status.Experiment}
	if options.wait {
		return a.waitAndConclude(ctx, cluster, []applied{next}, options.waitOptions)
	}
	a.say("Follow its progress: %s", options.watchHint(next))
	return nil
}

// losses describes the data that is lost if another experiment starts.
type losses struct {
	// progress is about an experiment without a verdict, and retained about volumes and pods that spec.retain has kept. Empty if there
	// are none.
	progress, retained string
	// others are losses that the spec requests.
	others []string
}

func lossesOf(t *tracked, all []v1alpha1.BenchmarkRun) (found losses) {
	status := &t.benchmark.Status
	var kept []string
	begun, ended := false, false
	for i := range all {
		run, ending := &all[i], runs.RecordedEnding(&all[i])
		if ending != nil && runs.Retains(run.Spec.Retain, *ending) {
			kept = append(kept, run.Name)
		}
		if run.Spec.Experiment == status.Experiment {
			begun, ended = true, ended || ending != nil
		}
	}
	if begun && !t.complete() {
		found.progress = fmt.Sprintf("Experiment %s ends without a verdict: %s", status.Experiment, t.runsDone())
		if progress := status.Progress; progress != nil && progress.CurrentRun != "" {
			found.progress += ", and what run " + progress.CurrentRun + " has measured so far is lost"
		}
	}
	if len(kept) > 0 {
		found.retained = "The retained volumes and pods of earlier runs are deleted: " + someOf(kept)
	}
	if len(all) > 0 {
		found.others = append(found.others, "The runs of the earlier experiment and the documents of their phases are deleted, not its results")
	}
	stored, limit := storedResults(status), experiment.ResultsHistory(&t.benchmark.Spec)
	if ended && !t.complete() && status.Results == nil { // its results will be stored, and count too
		stored = append([]v1alpha1.ResultsReference{{Experiment: status.Experiment,
			ConfigMap: naming.ResultsName(t.key.Name, status.Experiment)}}, stored...)
	}
	for _, old := range stored[min(limit, len(stored)):] {
		found.others = append(found.others, fmt.Sprintf("At the end of the new experiment, the results of experiment %s in ConfigMap "+
			"%s are deleted: spec.resultsHistory is %d", old.Experiment, old.ConfigMap, limit))
	}
	return found
}

// storedResults returns the results of the last complete experiment and of earlier ones, newest first.
func storedResults(status *v1alpha1.StorageBenchmarkStatus) []v1alpha1.ResultsReference {
	if status.Results == nil {
		return status.History
	}
	return append([]v1alpha1.ResultsReference{*status.Results}, status.History...)
}

// all returns a sentence for each loss.
func (l losses) all() (sentences []string) {
	for _, one := range append([]string{l.progress, l.retained}, l.others...) {
		if one != "" {
			sentences = append(sentences, one)
		}
	}
	return sentences
}

// refusal returns an error with the flags that accept the losses, or nil if they are accepted already.
func (l losses) refusal(t *tracked, options rerunOptions) error {
	var why, flags []string
	if l.progress != "" && !options.evenIfRunning {
		why, flags = append(why, l.progress), append(flags, "--even-if-running")
	}
	if l.retained != "" && !options.deleteRetained {
		why, flags = append(why, l.retained), append(flags, "--delete-retained")
	}
	if len(why) == 0 {
		return nil
	}
	return exitf(ExitRefused, "%s was not started over, because this would be lost:\n  %s\nAllow it with %s", t.key,
		strings.Join(why, "\n  "), strings.Join(flags, " "))
}
