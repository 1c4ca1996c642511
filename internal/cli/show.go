package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/workload"
)

// fewRuns is the largest number of runs that are all listed without --all. If there are more, show lists only those that are not valid, and
// plan lists the first ones.
const fewRuns = 20

type showOptions struct {
	Connection
	all    bool
	format string
}

func (a *App) showCommand() *cobra.Command {
	var options showOptions
	command := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a StorageBenchmark on one page: what it waits for, its runs, its gates",
		Long: `Show the state of a StorageBenchmark on one page: what it does or waits for, its conditions, its runs with their outcome and
reason, its gates and its primary metrics. The exit code does not depend on the verdict: use watch for that.`,
		Example: "  kubectl storagebench show quickstart",
		Args:    exactlyOne("show needs one name: kubectl storagebench show NAME"),
		RunE: func(command *cobra.Command, names []string) error {
			return a.show(command.Context(), names[0], options)
		},
	}
	options.addFlags(command.Flags())
	command.Flags().BoolVar(&options.all, "all", false, fmt.Sprintf("show all runs, even if there are more than %d", fewRuns))
	a.addFormat(command, &options.format, append(slices.Clone(structured), formatName))
	command.ValidArgsFunction = a.completeNames(&options.Connection, 1)
	return command
}

func (a *App) show(ctx context.Context, name string, options showOptions) error {
	cluster, benchmark, err := a.locate(ctx, options.Connection, name)
	if err != nil {
		return err
	}
	switch options.format {
	case formatJSON, formatYAML:
		return a.printDocument(forPrograms(benchmark), options.format)
	case formatName:
		a.sayName(benchmark)
		return nil
	}
	t, now := trackedOf(benchmark), a.Now()
	colour := a.Colour && a.onTerminal()
	head := clean(headLine(t, now))
	if t.complete() {
		head += ": " + tint(clean(string(benchmark.Status.Verdict)), moodOf(string(benchmark.Status.Verdict)), colour)
	}
	_, _ = fmt.Fprintln(a.Out, head)
	for _, line := range blockOf(t, now)[1:] { // the first is the head
		a.say("%s", clean(line))
	}
	a.sayDefinition(t)
	if !t.current() {
		return nil // the rest of the status is about an earlier spec
	}
	a.showConditions(benchmark.Status.Conditions, now)
	a.showRuns(ctx, cluster, t, options)
	outcome := statusOutcome(t)
	if len(outcome.gates) == 0 {
		outcome.gates = pendingGates(benchmark.Spec.Gates)
	}
	outcome.printDetails(a.Out)
	a.sayNext(t, options.Connection)
	return nil
}

// pendingGates returns gates without a verdict, with their definitions as messages.
func pendingGates(gates []v1alpha1.Gate) (pending []results.GateResult) {
	for _, one := range gates {
		pending = append(pending, results.GateResult{Name: string(one.Name), Verdict: none, Reason: none, Message: gate.Definition(one)})
	}
	return pending
}

// sayDefinition prints what is measured.
func (a *App) sayDefinition(t *tracked) {
	spec, status := &t.benchmark.Spec, &t.benchmark.Status
	fields := [][2]string{{"Target", targetWords(&spec.Target)}}
	var phases []string
	for i := range spec.Phases {
		phases = append(phases, phaseWords(&spec.Phases[i]))
	}
	fields = append(fields, [2]string{"Phases", strings.Join(phases, ", ")})
	repetitions := spelling.Count(int(spec.Repetitions), "repetition")
	if slots, err := design.Expand(spec, design.Seed(t.benchmark)); err == nil {
		names := design.VariantNames(slots)
		repetitions = fmt.Sprintf("%s: %s; %s of each", spelling.Count(len(names), "variant"), someOf(names), repetitions)
	}
	fields = append(fields, [2]string{"Runs", repetitions})
	if status.Experiment != "" {
		fields = append(fields, [2]string{"Experiment", fmt.Sprintf("%s, seed %d", status.Experiment, design.Seed(t.benchmark))})
	}
	if status.Queue != nil && status.Queue.Holder != "" {
		fields = append(fields, [2]string{"Waits for", status.Queue.Holder})
	}
	if status.Schedule != nil && status.Schedule.NextTime != nil {
		fields = append(fields, [2]string{"Next", status.Schedule.NextTime.UTC().Format(time.RFC3339)})
	}
	if status.Results != nil {
		fields = append(fields, [2]string{"Results", "ConfigMap " + status.Results.ConfigMap})
	}
	_, _ = fmt.Fprintln(a.Out)
	for _, field := range fields {
		a.say("%-11s %s", field[0]+":", clean(field[1]))
	}
}

// phaseWords describes a phase with its action or its workload, for example "read (oltp)".
func phaseWords(phase *v1alpha1.Phase) string {
	does := workload.KindOf(phase)
	if traits, measures := workload.PhaseTraits(phase); measures {
		does = traits.Name
	}
	if actions := operate.Of(phase); phase.Operate != nil && len(actions) > 0 {
		does = operate.Name(*actions[0])
	}
	if parts := workload.PartsOf(phase); len(parts) > 0 {
		var names []string
		for _, part := range parts {
			names = append(names, part.Name)
		}
		does = "together: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s (%s)", phase.Name, does)
}

// someOf lists at most six names, and the number of the others.
func someOf(names []string) string {
	return spelling.Some(names, 6)
}

func targetWords(target *v1alpha1.Target) string {
	switch {
	case target.Ref != nil:
		return "StorageTarget " + target.Ref.Name
	case target.StorageClass != nil:
		class := "the default StorageClass"
		if name := target.StorageClass.Name; name != "" {
			class = "StorageClass " + name
		}
		return fmt.Sprintf("a volume of %s of %s", target.StorageClass.Size.String(), class)
	case target.ZFS != nil:
		return "ZFS pools on " + nodeWords(target)
	}
	return "unknown to this release"
}

// nodeWords describes the nodes of a zfs target, for example "2 nodes with LABEL=VALUE".
func nodeWords(target *v1alpha1.Target) string {
	return fmt.Sprintf("%s with %s", spelling.Count(max(1, int(target.ZFS.Nodes.Count)), "node"),
		metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: target.ZFS.Nodes.MatchLabels}))
}

func (a *App) showConditions(conditions []metav1.Condition, now time.Time) {
	if len(conditions) == 0 {
		return
	}
	table := newTable(a.Out, "CONDITION", "STATUS", "REASON", "FOR", "MESSAGE")
	for _, one := range conditions {
		table.row(one.Type, string(one.Status), one.Reason, brief(now.Sub(one.LastTransitionTime.Time)), one.Message)
	}
	table.end()
}

// showRuns prints the attempts at runs in their order. An error does not end the command, because the page is useful without them too.
func (a *App) showRuns(ctx context.Context, cluster *Cluster, t *tracked, options showOptions) {
	all, err := cluster.runsOf(ctx, t)
	if err != nil {
		a.say("\n%s", clean("Its runs are not shown: "+err.Error()))
		return
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(x, y v1alpha1.BenchmarkRun) int {
		return cmp.Or(cmp.Compare(x.Spec.Index, y.Spec.Index), cmp.Compare(x.Spec.Attempt, y.Spec.Attempt), strings.Compare(x.Name, y.Name))
	})
	shown := all
	if len(all) > fewRuns && !options.all {
		shown = slices.DeleteFunc(slices.Clone(all), func(run v1alpha1.BenchmarkRun) bool {
			return meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionValid)
		})
	}
	if len(shown) > 0 {
		table := newTable(a.Out, "RUN", "VARIANT", "REP", "TRY", "NODE", "OUTCOME", "PHASE", "TOOK", "REASON")
		for i := range shown {
			table.row(runRow(&shown[i], a.Now())...)
		}
		table.end()
	}
	var aged []results.RunResult
	for i := range all {
		aged = append(aged, results.RunResult{PoolAge: experiment.PoolAge(&all[i])})
	}
	if words := results.AgeOf(aged).Words(); words != "" {
		a.say("\n%s", strings.ToUpper(words[:1])+words[1:])
	}
	if hidden := len(all) - len(shown); hidden > 0 {
		a.say("\n%s are not shown: add --all", spelling.Count(hidden, "valid run"))
	}
}

// runRow returns the cells of an attempt: its outcome, or its state and what it waits for.
func runRow(run *v1alpha1.BenchmarkRun, now time.Time) []string {
	spec, status := &run.Spec, &run.Status
	outcome, why := cmp.Or(status.State, none), meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if valid := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionValid); valid != nil {
		why = valid
	}
	reason := none
	if why != nil {
		reason = why.Reason + ": " + why.Message
	}
	took := none
	if status.StartedAt != nil {
		end := now
		if status.FinishedAt != nil {
			end = status.FinishedAt.Time
		}
		took = brief(end.Sub(status.StartedAt.Time))
	}
	return []string{run.Name, spec.Variant, fmt.Sprint(spec.Repetition), fmt.Sprint(spec.Attempt), spec.NodeName, outcome,
		cmp.Or(status.CurrentPhase, none), took, reason}
}

// sayNext suggests the next command.
func (a *App) sayNext(t *tracked, connection Connection) {
	flags := t.key.Name + connection.flags(t.key.Namespace)
	switch {
	case t.benchmark.Status.Results != nil && t.complete():
		a.say("\nReport: kubectl storagebench report %s", flags)
	case t.current() && t.benchmark.Spec.Suspend && !t.complete():
		a.say("\nContinue it: kubectl storagebench resume %s", flags)
	case t.stalled():
		a.say("\nCorrect its file and run it again: docs/troubleshooting.md explains each reason")
	}
}
