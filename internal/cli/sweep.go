package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/sweep"
)

// readTimeout limits the time to read the results of a place.
const readTimeout = 15 * time.Second

// mostAttempts limits how many failed attempts of a place are printed. JSON has all.
const mostAttempts = 4

// mostOthers limits how many StorageBenchmarks of others are named.
const mostOthers = 4

type sweepOptions struct {
	waitOptions
	file     string
	nodes    string
	devices  []string
	parallel int
	dryRun   bool
	format   string
}

func (a *App) sweepCommand() *cobra.Command {
	var options sweepOptions
	command := &cobra.Command{
		Use:   "sweep -f FILE --nodes SELECTOR",
		Short: "Run the same experiment on many nodes or disks, and name those that fail requests or are unlike the others",
		Long: `Run the StorageBenchmark of a file on every node with some labels, or on several disks of one node, one after another or some
at a time, and compare what was measured. Each place gets a StorageBenchmark of its own, NAME-NODE, with a digest if that is too long. With
--devices, each device takes the place of the one in spec.target.zfs.pool.vdevs. It needs the right to list nodes, also with --dry-run.
Limits of the admin, such as benchmarksPerNamespace, also limit --parallel.

` + sweep.Rule + `
A place whose storage has failed requests is named too, even if a later attempt worked.
A place that has already ended is not measured again.

` + exitCodes(map[int]string{
			ExitPassed:       "there is no outlier, and no storage has failed",
			ExitFailed:       "there is an outlier, or the storage of a place has failed",
			ExitInconclusive: "unknown: a place has no numbers, there are too few places or runs, or they differ too much",
			ExitTimeout:      outOfTime,
			ExitRefused:      "the manifest is refused, or a StorageBenchmark of others would be overwritten",
			ExitNotFound:     "the file does not exist",
			ExitUnavailable:  unavailable,
		}),
		Example: `  kubectl storagebench sweep -f scan.yaml --nodes disktype=nvme
  kubectl storagebench sweep -f scan.yaml --nodes kubernetes.io/os=linux --parallel 4 -o json
  kubectl storagebench sweep -f disk.yaml --nodes kubernetes.io/hostname=node-a --devices /dev/disk/by-id/nvme-A,/dev/disk/by-id/nvme-B`,
		Args: noArgument("write the file with -f %s"),
		RunE: func(command *cobra.Command, _ []string) error {
			if options.file == "" || options.nodes == "" {
				return exitf(ExitUsage, "sweep needs a file and the labels of nodes: kubectl storagebench sweep -f FILE --nodes LABEL=VALUE")
			}
			if options.parallel < 1 {
				return exitf(ExitUsage, "--parallel %d: write at least 1", options.parallel)
			}
			if err := options.check(command.Flags()); err != nil {
				return err
			}
			return a.sweep(command.Context(), options)
		},
	}
	flags := command.Flags()
	options.addWaitFlags(flags)
	flags.StringVarP(&options.file, "filename", "f", "", "`FILE` with one StorageBenchmark, and what it uses")
	flags.StringVar(&options.nodes, "nodes", "", "`SELECTOR` of nodes by their labels, such as disktype=nvme")
	flags.StringSliceVar(&options.devices, "devices", nil, "`PATHS` of devices of the one node, each measured by itself")
	flags.IntVar(&options.parallel, "parallel", 1, "`NUMBER` of places at a time; the next ones begin when all of these have ended")
	flags.BoolVar(&options.dryRun, "dry-run", false, "print the StorageBenchmarks, and apply nothing")
	a.addFormat(command, &options.format, structured)
	return command
}

func (a *App) sweep(ctx context.Context, options sweepOptions) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	selector, err := labels.Parse(options.nodes)
	if err != nil {
		return exitf(ExitUsage, "--nodes: %w", err)
	}
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := cluster.Client.List(ctx, &nodes, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return explain("list the nodes", err)
	}
	places, err := sweep.Places(nodes.Items, options.devices)
	if err != nil {
		return exit(ExitUsage, err)
	}
	shared, copies, err := a.copiesOf(options.file, places)
	if err != nil {
		return err
	}
	if options.dryRun {
		return a.printManifests(append(shared, copies...))
	}
	ctx, cancel := options.limit(ctx)
	defer cancel()
	if err := ownCopies(ctx, cluster, copies, options.Connection); err != nil {
		return err
	}
	all, err := a.besideOutput(options.format).measurePlaces(ctx, cluster, shared, copies, places, options)
	if err != nil && !slices.ContainsFunc(all, func(one sweep.Result) bool { return one.Experiment != nil }) {
		return err
	}
	judged := a.printSweep(sweep.Judge(all), len(places), options.format)
	return cmp.Or(err, judged)
}

// copiesOf copies the only benchmark of a file for each place. The other manifests of the file are shared.
func (a *App) copiesOf(file string, places []sweep.Place) (shared, copies []*manifest, err error) {
	manifests, err := readManifests(file, a.In)
	if err != nil {
		return nil, nil, err
	}
	if err := applicable(manifests, ""); err != nil {
		return nil, nil, err
	}
	var one *manifest
	for _, m := range manifests {
		switch {
		case !m.isBenchmark():
			shared = append(shared, m)
		case one != nil:
			return nil, nil, exitf(ExitUsage, "%s: a sweep repeats one StorageBenchmark, and this is a second one: remove it", m.at("metadata.name"))
		default:
			one = m
		}
	}
	for _, place := range places {
		made, err := sweep.Copy(one.object, place)
		if err != nil {
			return nil, nil, exitf(ExitRefused, "%s: %w", one.at("spec"), err)
		}
		copies = append(copies, &manifest{file: file, object: made, positions: one.positions})
	}
	return shared, copies, nil
}

func (a *App) printManifests(all []*manifest) error {
	for i, one := range all {
		text, err := sigsyaml.Marshal(one.object.Object)
		if err != nil {
			return exit(ExitError, err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := a.Out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// measurePlaces applies a few copies at a time, and waits until they have ended. A place that cannot be measured does not stop the others.
// Even with an error it returns a result for each place: places that were not measured are Missing.
func (a *App) measurePlaces(ctx context.Context, cluster *Cluster, shared, copies []*manifest, places []sweep.Place,
	options sweepOptions) (all []sweep.Result, err error) {
	for from := 0; from < len(copies); from += options.parallel {
		some := copies[from:min(from+options.parallel, len(copies))]
		problem := ownCopies(ctx, cluster, some, options.Connection) // again: others may have come during the earlier places
		var benchmarks []applied
		if problem == nil {
			benchmarks, problem = a.applyAll(ctx, cluster, options.Connection, append(slices.Clone(shared), some...), false)
		}
		if problem != nil {
			return append(all, notMeasured(places[len(all):], problem.Error())...), problem
		}
		tracked, cause := a.waitUntil(ctx, cluster, benchmarks, atEnd)
		for i, t := range tracked {
			all = append(all, resultAt(ctx, cluster, places[from+i], t, options.Connection))
		}
		if cause != nil {
			err = a.conclude(slices.DeleteFunc(tracked, atEnd), cause, options.waitOptions)
			break
		}
		a.say("%d of %d places have ended", len(all), len(copies))
	}
	return append(all, notMeasured(places[len(all):], "the sweep was ended before its turn")...), err
}

// ownCopies refuses to overwrite StorageBenchmarks that do not belong to this sweep. NAME-NODE is not unique: it may have been chosen by
// hand, and scan on node a-b and scan-a on node b have the same.
func ownCopies(ctx context.Context, cluster *Cluster, copies []*manifest, connection Connection) error {
	var others []string
	var first string
	for _, one := range copies {
		key := client.ObjectKey{Namespace: cmp.Or(one.object.GetNamespace(), cluster.Namespace), Name: one.object.GetName()}
		var existing v1alpha1.StorageBenchmark
		err := cluster.Client.Get(ctx, key, &existing)
		if apierrors.IsNotFound(err) && !isUnknownKind(err) {
			continue
		}
		if err != nil {
			return explain("look for StorageBenchmark "+key.String(), err)
		}
		if existing.Labels[sweep.Label] == one.object.GetLabels()[sweep.Label] {
			continue
		}
		if others = append(others, key.String()); len(others) == 1 {
			first = key.Name + connection.flags(key.Namespace)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return exitf(ExitRefused, "%s: the sweep would overwrite StorageBenchmarks that are not its own: %s. Give the StorageBenchmark in the "+
		"file another name, or delete the existing ones, such as: kubectl delete storagebenchmark %s", copies[0].at("metadata.name"),
		spelling.Some(others, mostOthers), first)
}

// atEnd reports whether there is no point in waiting longer: the benchmark has ended, or no node fits.
func atEnd(t *tracked) bool { return t.ended() || t.placeless() }

func notMeasured(places []sweep.Place, why string) (all []sweep.Result) {
	for _, place := range places {
		all = append(all, sweep.Result{Place: place, Missing: why})
	}
	return all
}

// resultAt reads the results of a place, of the same benchmark that was waited for: the file may name its namespace.
func resultAt(ctx context.Context, cluster *Cluster, place sweep.Place, t *tracked, connection Connection) sweep.Result {
	result := sweep.Result{Place: place, Missing: t.sentence()}
	if !t.complete() {
		return result
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout) // read finished results even after an interrupt
	defer cancel()
	experiment, _, err := storedExperiment(ctx, cluster.in(t.key.Namespace), t.key.Name, connection)
	if err != nil {
		result.Missing = err.Error()
		return result
	}
	result.Experiment = &experiment
	return result
}

// printSweep prints the outliers first, then the most distant value of each other place.
func (a *App) printSweep(table sweep.Table, places int, format string) error {
	outliers, named := 0, map[string]bool{}
	for _, value := range table.Values {
		if value.Outlier {
			outliers++
			named[value.String()] = true
		}
	}
	if format == formatText {
		a.saySweep(table, places, len(named))
	} else if err := a.printDocument(table, format); err != nil {
		return err
	}
	switch {
	case outliers > 0 || len(table.Failed) > 0:
		return silent(ExitFailed)
	case len(table.Missing) > 0 || table.Unclear:
		return silent(ExitInconclusive)
	}
	return nil
}

func (a *App) saySweep(table sweep.Table, places, outlying int) {
	counts := fmt.Sprintf("%s, %d unlike the others, %d without results", spelling.Count(places, "place"), outlying, len(table.Missing))
	if len(table.Failed) > 0 {
		counts += fmt.Sprintf(", %d with failed storage", len(table.Failed))
	}
	a.say("\n%s. %s", counts, sweep.Rule)
	if table.Unclear {
		a.say("Outliers cannot be found where a value is unknown: fewer than 2 places with 3 repetitions have the metric, too few " +
			"places have more than 0 of it, or the places differ so much that none stands out.")
	}
	for _, place := range slices.Sorted(maps.Keys(table.Failed)) {
		a.say("FAILED   %s: %s", place, spelling.Some(table.Failed[place], mostAttempts))
	}
	for _, value := range table.Values {
		if value.Outlier {
			a.say("OUTLIER  %s: %s %s: %s", value.Place, value.Path(), pictures.Write(value.Metric, float64(value.Median)), value.Words())
		}
	}
	for _, place := range slices.Sorted(maps.Keys(table.Missing)) {
		a.say("MISSING  %s: %s", place, table.Missing[place])
	}
	if len(table.Values) == 0 {
		return
	}
	a.say("")
	rows, seen := newTable(a.Out, "PLACE", "", "FURTHEST FROM THE OTHERS", "VALUE", "AGAINST THE MEDIAN OF ALL"), map[string]bool{}
	for _, value := range table.Values {
		if place := value.String(); !seen[place] {
			seen[place] = true
			rows.row(place, wordOf(value, table), value.Path(), pictures.Write(value.Metric, float64(value.Median)), value.Words())
		}
	}
	rows.end()
}

// wordOf returns the word for the value of a place. It is "alike" only if everything was compared, and no request failed.
func wordOf(value sweep.Value, table sweep.Table) string {
	_, missing := table.Missing[value.String()]
	switch {
	case value.Outlier:
		return "OUTLIER"
	case len(table.Failed[value.String()]) > 0:
		return "FAILED"
	case missing:
		return "MISSING"
	case value.Unclear:
		return "unknown"
	}
	return "alike"
}
