package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/spelling"
)

func (a *App) suspendCommand() *cobra.Command {
	deletePool := false
	command := a.changeCommand(&cobra.Command{
		Use:     "suspend NAME",
		Aliases: []string{"cancel"},
		Short:   "Stop a StorageBenchmark and free its node; resume continues it",
		Long: `Stop a StorageBenchmark by spec.suspend, and free its node. The numbers of finished runs are kept. The run in progress is stopped,
and what was made for it is torn down: it starts over when the benchmark is resumed. No further scheduled experiment starts.

With reset: Dataset or None, the runs share a pool, and suspending deletes it. The command refuses to do so without --delete-pool.`,
		Example: "  kubectl storagebench suspend nightly",
		Args:    exactlyOne("suspend needs one name: kubectl storagebench suspend NAME"),
	}, func(ctx context.Context, cluster *Cluster, name string, connection Connection) error {
		return a.suspend(ctx, cluster, name, connection, deletePool)
	})
	command.Flags().BoolVar(&deletePool, "delete-pool", false, "delete the pool that the runs share, with what is on it")
	return command
}

func (a *App) resumeCommand() *cobra.Command {
	return a.changeCommand(&cobra.Command{
		Use:     "resume NAME",
		Short:   "Continue a suspended StorageBenchmark",
		Long:    "Continue a suspended StorageBenchmark: it joins the queue for its node, and starts the stopped run over.",
		Example: "  kubectl storagebench resume nightly",
		Args:    exactlyOne("resume needs one name: kubectl storagebench resume NAME"),
	}, a.resume)
}

// changeCommand completes a command that changes one benchmark.
func (a *App) changeCommand(command *cobra.Command, change func(context.Context, *Cluster, string, Connection) error) *cobra.Command {
	var connection Connection
	command.RunE = func(command *cobra.Command, names []string) error {
		cluster, err := a.connect(connection)
		if err != nil {
			return err
		}
		return change(command.Context(), cluster, names[0], connection)
	}
	connection.addFlags(command.Flags())
	command.ValidArgsFunction = a.completeNames(&connection, 1)
	return command
}

func (a *App) suspend(ctx context.Context, cluster *Cluster, name string, connection Connection, deletePool bool) error {
	already, shared := "", ""
	t, err := cluster.change(ctx, name, func(t *tracked) error {
		runs, err := cluster.runsOf(ctx, t)
		if err != nil {
			return err
		}
		already, shared = "", sharedPool(t, runs)
		switch {
		case t.benchmark.Spec.Suspend:
			already = "is suspended already: " + t.sentence()
		case t.complete() && t.benchmark.Spec.Schedule == nil:
			already = "has ended: there is nothing to stop"
		case shared != "" && !deletePool:
			return exitf(ExitRefused, "%s was not suspended, because this would be lost:\n  %s\nAllow it with --delete-pool", t.key, shared)
		default:
			t.benchmark.Spec.Suspend = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if already != "" {
		a.say("%s %s", t.key, clean(already))
		return nil
	}
	a.say("%s is suspended: its node is free when the run in progress is torn down", t.key)
	if progress := t.benchmark.Status.Progress; t.current() && progress != nil && !t.complete() {
		a.say("Kept: the numbers of %s", spelling.Count(int(progress.RunsDone), "valid run"))
		if progress.CurrentRun != "" {
			a.say("Lost: what run %s has measured so far; it starts over", progress.CurrentRun)
		}
	}
	if shared != "" {
		a.say("Lost: %s", clean(shared))
	}
	a.warnOfOwners(t.benchmark, "f:suspend", "spec.suspend: true")
	a.say("Continue it: kubectl storagebench resume %s%s", name, connection.flags(t.key.Namespace))
	return nil
}

// sharedPool describes the pool that runs or experiments pass on to each other, and that suspending deletes. It returns an empty string if
// there is none.
func sharedPool(t *tracked, runs []v1alpha1.BenchmarkRun) string {
	for i := range runs {
		zfs := runs[i].Spec.Target.ZFS
		if zfs != nil && zfs.KeepFor != "" {
			return "the pool that its experiments pass on to each other (keepFor: " + zfs.KeepFor + "), with its age: after resume, the next run " +
				"begins on a new one"
		}
		if naming.KeepsPools(zfs) && runs[i].Spec.Experiment == t.benchmark.Status.Experiment && !t.complete() {
			return fmt.Sprintf("the pool that its runs pass on to each other (reset: %s): after resume, the next run begins on a new one", zfs.Reset)
		}
	}
	return ""
}

func (a *App) resume(ctx context.Context, cluster *Cluster, name string, connection Connection) error {
	already := false
	t, err := cluster.change(ctx, name, func(t *tracked) error {
		already, t.benchmark.Spec.Suspend = !t.benchmark.Spec.Suspend, false
		return nil
	})
	if err != nil {
		return err
	}
	if already {
		a.say("%s is not suspended: %s", t.key, clean(t.sentence()))
		return nil
	}
	a.say("%s continues", t.key)
	a.warnOfOwners(t.benchmark, "f:suspend", "no spec.suspend")
	a.say("Follow its progress: %s", connection.watchHint(t.applied))
	return nil
}

// runsOf reads the attempts at the runs of a benchmark.
func (c *Cluster) runsOf(ctx context.Context, t *tracked) ([]v1alpha1.BenchmarkRun, error) {
	var found v1alpha1.BenchmarkRunList
	err := c.Client.List(ctx, &found, client.InNamespace(t.key.Namespace),
		client.MatchingLabels{v1alpha1.LabelBenchmarkUID: string(t.benchmark.UID)})
	return found.Items, explain("read the runs of StorageBenchmark "+t.key.String(), err)
}

// change reads a benchmark, lets a function check and change it, and writes it. If the benchmark has changed in the meantime, it retries a
// few times. It returns the benchmark as it was read, with the change.
func (c *Cluster) change(ctx context.Context, name string, decide func(*tracked) error) (*tracked, error) {
	var t *tracked
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		benchmark, err := c.find(ctx, name)
		if err != nil {
			return err
		}
		t = trackedOf(benchmark)
		before := benchmark.DeepCopy()
		if err := decide(t); err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(before, benchmark) {
			return nil
		}
		changed := benchmark.DeepCopy() // Patch overwrites it with the response, but decide has seen the older status
		return c.Client.Patch(ctx, changed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
			client.FieldOwner(fieldOwner))
	})
	if apierrors.IsConflict(err) {
		return t, exitf(ExitError, "change StorageBenchmark %s: it was changed again and again in the meantime: try again", c.key(name))
	}
	if known := new(exitError); err != nil && !errors.As(err, &known) {
		err = explain("change StorageBenchmark "+c.key(name).String(), err)
	}
	return t, err
}

// warnOfOwners warns of tools that have applied a field and may set it back the next time.
func (a *App) warnOfOwners(benchmark *v1alpha1.StorageBenchmark, field, write string) {
	var owners []string
	for _, entry := range benchmark.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil &&
			strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"`+field+`"`) {
			owners = append(owners, entry.Manager)
		}
	}
	if len(owners) > 0 {
		slices.Sort(owners)
		_, _ = fmt.Fprintln(a.Err, clean(fmt.Sprintf("Warning: %s has applied this field, and may set it back: write %s into its file too",
			strings.Join(owners, ", "), write)))
	}
}
