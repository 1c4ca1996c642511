package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

const (
	// keyVerdict is the file with the verdict as one word.
	keyVerdict = "verdict"
	// longestSuffix limits the part of the name that is the job's. A digest replaces what is longer.
	longestSuffix = 24
	// afterwards limits what is done once there is a verdict, or none: a cancelled pipeline does not wait long.
	afterwards = time.Minute
)

type gateOptions struct {
	waitOptions
	suffix string
	folder string
	local  string
}

func (a *App) gateCommand() *cobra.Command {
	var options gateOptions
	command := &cobra.Command{
		Use:   "gate FILE",
		Short: "Run the StorageBenchmark of a file for a job of a pipeline, and save its reports",
		Long: `Run the StorageBenchmark of a file for a job of a pipeline. It gets the name NAME-SUFFIX, so that jobs do not replace each
other's benchmark. With a verdict, all formats of the report are saved. Without one, for example because the pipeline is cancelled, the
benchmark is suspended, which frees its node. A pool that its runs share (reset: Dataset or None) is deleted. The file 'verdict' has the
verdict as one word, or None.

The file may contain nothing else: jobs at the same time would replace each other's baseline, job file or StorageTarget. Apply these
beforehand. With --local everything happens on this machine, and nothing is shared.

` + exitHelp,
		Example: `  kubectl storagebench gate benchmarks/gate.yaml --suffix "$CI_JOB_ID" --timeout 2h
  kubectl storagebench gate benchmarks/gate.yaml --local /mnt/disk --output-dir results`,
		Args: exactlyOne("gate needs one file: kubectl storagebench gate FILE"),
		RunE: func(command *cobra.Command, files []string) error {
			if err := options.check(command.Flags()); err != nil {
				return err
			}
			return a.gate(command.Context(), files[0], options)
		},
	}
	flags := command.Flags()
	options.addWaitFlags(flags)
	flags.StringVar(&options.suffix, "suffix", "", "`TEXT` that only this job has, such as its number (default: from the time)")
	flags.StringVar(&options.folder, "output-dir", "storagebench-results", "save the reports and the verdict to `DIR`")
	flags.StringVar(&options.local, "local", "", "run on this machine, in `DIR`; the flags for a cluster are not used")
	return command
}

// gate measures, and writes the verdict whatever the end.
func (a *App) gate(ctx context.Context, file string, options gateOptions) error {
	if err := clearResults(options.folder); err != nil {
		return err
	}
	measure := a.gateInCluster
	if options.local != "" {
		measure = func(ctx context.Context, file string, options gateOptions) error {
			return a.runLocal(ctx, file, runOptions{local: options.local, output: options.folder})
		}
	}
	err := measure(ctx, file, options)
	if failed := saveVerdict(options.folder, err); failed != nil {
		return errors.Join(failed, err)
	}
	return err
}

// clearResults removes the results of an earlier job, which would stand beside the verdict of this one.
func clearResults(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return exit(ExitError, err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return exit(ExitError, err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range slices.AppendSeq([]string{keyVerdict}, maps.Values(reportKeys)) {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return exitf(ExitError, "remove the results of an earlier job: %w", err)
		}
	}
	return nil
}

func saveVerdict(folder string, err error) error {
	word, verdicts := "None", []v1alpha1.Verdict{v1alpha1.VerdictPassed, v1alpha1.VerdictFailed, v1alpha1.VerdictInconclusive,
		v1alpha1.VerdictInvalid}
	code, _ := exitCode(err)
	for _, verdict := range verdicts {
		if verdictCode(verdict) == code {
			word = string(verdict)
		}
	}
	return saveFile(folder, keyVerdict, word+"\n")
}

// gateInCluster runs the benchmark, and saves its reports or frees its node.
func (a *App) gateInCluster(ctx context.Context, file string, options gateOptions) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	one, err := a.gated(ctx, file, options)
	if err != nil {
		return err
	}
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return err
	}
	benchmarks, err := a.applyAll(ctx, cluster, options.Connection, []*manifest{one}, false)
	if err == nil {
		err = a.gateWaits(ctx, cluster, benchmarks, options)
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	there := cluster.in(cmp.Or(one.object.GetNamespace(), cluster.Namespace))
	if code, _ := exitCode(err); code <= ExitInvalid {
		if failed := a.saveReports(after, there, one.object.GetName(), options.folder, options.Connection); failed != nil {
			// The verdict stands nevertheless.
			_, _ = fmt.Fprintln(a.Err, cleanLines("The reports are not complete: "+failed.Error()))
		}
	} else {
		a.gateFrees(after, there, one.object.GetName(), options)
	}
	return err
}

// gateWaits shows progress until the benchmark has ended. Without a verdict it is about to be suspended, so nothing is said about how to do
// that.
func (a *App) gateWaits(ctx context.Context, cluster *Cluster, benchmarks []applied, options gateOptions) error {
	ctx, cancel := options.limit(ctx)
	defer cancel()
	all, cause := a.wait(ctx, cluster, benchmarks)
	for _, t := range all {
		if !t.ended() {
			a.say("\n%s: %s: %s", t.key, options.why(cause), t.sentence())
			return silent(t.codeAfter(cause))
		}
	}
	return a.conclude(all, cause, options.waitOptions)
}

// gated returns the only manifest of the file, valid and under the name of this job.
func (a *App) gated(ctx context.Context, file string, options gateOptions) (*manifest, error) {
	manifests, err := readManifests(file, a.In)
	if err != nil {
		return nil, err
	}
	var one *manifest
	for _, other := range manifests {
		switch {
		case !other.isBenchmark():
			return nil, exitf(ExitRefused, "%s: a gate applies only a StorageBenchmark, because jobs at the same time would replace each other's "+
				"%s: remove it, and apply it beforehand, from the main branch", other.at("kind"), other)
		case one != nil:
			return nil, exitf(ExitRefused, "%s: a gate runs one StorageBenchmark, and this is a second one: give each job one", other.at("kind"))
		case other.object.GetName() == "":
			return nil, exitf(ExitRefused, "%s: %s has no metadata.name: set it", other.at("metadata"), other.object.GetKind())
		}
		one = other
	}
	one.object.SetName(one.object.GetName() + "-" + jobSuffix(cmp.Or(options.suffix, a.Now().UTC().Format(time.RFC3339Nano))))
	known, err := loadSchemas()
	if err != nil {
		return nil, err
	}
	judged := known.judgeOne(ctx, one, others{}, assumedSpeed)
	a.sayJudgement(judged)
	if !judged.valid() {
		return nil, silent(ExitRefused)
	}
	return one, nil
}

// jobSuffix makes a part of a name of what identifies a job. Different jobs have different ones, also if their texts are long, or differ
// only in characters that names cannot have.
func jobSuffix(given string) string {
	suffix := naming.Like(given)
	if suffix == given && len(suffix) <= longestSuffix {
		return suffix
	}
	digest := naming.Digest(given)
	kept := suffix[max(0, len(suffix)-(longestSuffix-len(digest)-1)):]
	return strings.TrimLeft(kept+"-"+digest, "-")
}

// gateFrees suspends the benchmark, also one that is Stalled: it would begin by itself as soon as it has what it lacks.
func (a *App) gateFrees(ctx context.Context, cluster *Cluster, name string, options gateOptions) {
	err := a.suspend(ctx, cluster, name, options.Connection, true)
	if code, _ := exitCode(err); code == ExitPassed || code == ExitNotFound {
		return // it was not applied, or was deleted
	}
	_, _ = fmt.Fprintln(a.Err, cleanLines(fmt.Sprintf("%s is not suspended and may still use its node: %v\nDelete it: kubectl delete "+
		"storagebenchmark %s%s", cluster.key(name), err, name, options.flags(cluster.Namespace))))
}
