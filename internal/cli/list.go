package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// The values of list -o.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

type listOptions struct {
	Connection
	everywhere bool
	format     string
}

func (a *App) listCommand() *cobra.Command {
	var options listOptions
	command := &cobra.Command{
		Use:   "list",
		Short: "List StorageBenchmarks with their verdict, progress and place in the queue",
		Example: `  kubectl storagebench list
  kubectl storagebench list -A -o wide`,
		Args: noArgument("for one of them write kubectl storagebench show %s"),
		RunE: func(command *cobra.Command, _ []string) error {
			if options.everywhere && options.Namespace != "" {
				return exitf(ExitUsage, "--all-namespaces and --namespace contradict each other: use one of them")
			}
			return a.list(command.Context(), options)
		},
	}
	options.addFlags(command.Flags())
	command.Flags().BoolVarP(&options.everywhere, "all-namespaces", "A", false, "list those of all namespaces")
	a.addFormat(command, &options.format, []string{formatTable, formatWide, formatJSON, formatYAML, formatName})
	return command
}

func (a *App) list(ctx context.Context, options listOptions) error {
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return err
	}
	in, where := client.InNamespace(cluster.Namespace), "namespace "+cluster.Namespace
	if options.everywhere {
		in, where = client.InNamespace(""), "the cluster"
	}
	var found v1alpha1.StorageBenchmarkList
	if err := cluster.Client.List(ctx, &found, in); err != nil {
		return explain("list the StorageBenchmarks of "+where, err)
	}
	slices.SortFunc(found.Items, func(x, y v1alpha1.StorageBenchmark) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	switch options.format {
	case formatJSON, formatYAML:
		return a.printList(&found, options.format)
	case formatName:
		for i := range found.Items {
			a.sayName(&found.Items[i])
		}
		return nil
	}
	if len(found.Items) == 0 {
		_, _ = fmt.Fprintf(a.Err, "There are no StorageBenchmarks in %s.\n", clean(where))
		return nil
	}
	a.printTable(found.Items, options)
	return nil
}

func (a *App) printTable(all []v1alpha1.StorageBenchmark, options listOptions) {
	head := []string{"NAME", "VERDICT", "STATE", "RUNS", "PHASE", "ENDS", "AGE"}
	if options.everywhere {
		head = slices.Insert(head, 0, "NAMESPACE")
	}
	if options.format == formatWide {
		head = append(head, "NODE", "CLASS", "WAITS FOR", "REPORT", "MESSAGE")
	}
	table := newTableHere(a.Out, head...)
	now := a.Now()
	for i := range all {
		t := trackedOf(&all[i])
		cells := rowOf(t, now)
		if options.everywhere {
			cells = slices.Insert(cells, 0, t.key.Namespace)
		}
		if options.format == formatWide {
			cells = append(cells, wideRowOf(t)...)
		}
		table.row(cells...)
	}
	table.end()
}

// rowOf returns the columns of a benchmark. It ignores a status that describes an earlier spec.
func rowOf(t *tracked, now time.Time) []string {
	age := brief(now.Sub(t.benchmark.CreationTimestamp.Time))
	if !t.current() {
		return []string{t.key.Name, none, "Applied", none, none, none, age}
	}
	status := &t.benchmark.Status
	progress, end := none, none
	var phase string
	if p := status.Progress; p != nil {
		progress, phase = fmt.Sprintf("%d/%d", p.RunsDone, p.RunsTotal), p.CurrentPhase
		if p.RunsInvalid > 0 {
			progress += fmt.Sprintf(" (%d invalid)", p.RunsInvalid)
		}
		if p.EstimatedEnd != nil && !t.complete() {
			end = "any moment"
			if left := p.EstimatedEnd.Sub(now); left >= time.Second {
				end = "in " + brief(left)
			}
		}
	}
	return []string{t.key.Name, cmp.Or(string(status.Verdict), none), cmp.Or(status.State, none), progress, cmp.Or(phase, none), end, age}
}

func wideRowOf(t *tracked) []string {
	if !t.current() {
		return []string{none, none, none, none, t.sentence()}
	}
	status := &t.benchmark.Status
	holder, report := "", ""
	if status.Queue != nil {
		holder = status.Queue.Holder
	}
	if status.Results != nil {
		report = status.Results.ConfigMap
	}
	return []string{cmp.Or(status.NodeName, none), cmp.Or(status.StorageClass, none), cmp.Or(holder, none), cmp.Or(report, none), t.sentence()}
}
