package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/workload"
)

// PhaseExecutor executes one phase on this machine, with the runner's code.
type PhaseExecutor interface {
	// Execute returns the document of the phase, with outcome Invalid if the phase did not do what was requested. An error means
	// that there is no document and that a retry would fail. When the context ends, Execute stops everything that it has started,
	// and only then returns. progress may be called from any goroutine.
	Execute(ctx context.Context, request workload.Request, progress func(results.Progress)) (results.PhaseDocument, error)
	// Ready returns an error if this machine lacks what every phase needs.
	Ready(ctx context.Context) error
	// Warnings returns sentences about what makes the results on a folder or device worse than its storage is, such as a file system in
	// memory. The documents of the phases have them too.
	Warnings(ctx context.Context, path string, device bool) []string
}

// DiskCheck decides whether a disk of this machine may be overwritten.
type DiskCheck interface {
	// Accept returns the size of a disk that is blank and unused and has this serial number, and a function that checks that the
	// path still leads to this disk.
	Accept(path, serial string) (bytes int64, verify func() error, err error)
}

// Local holds what run --local needs.
type Local struct {
	// Executor executes the phases. Without it, run --local is refused.
	Executor PhaseExecutor
	// Disks guards devices. Without it, no device is accepted.
	Disks DiskCheck
}

// localNamespace is the namespace of a local benchmark without one.
const localNamespace = "local"

// runLocal executes the only StorageBenchmark of a file on this machine.
func (a *App) runLocal(ctx context.Context, file string, options runOptions) error {
	ctx, a, done := a.whileRead(ctx)
	defer done()
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	defer secondSignalKills(ctx, stop)()
	if a.Local.Executor == nil {
		return exitf(ExitError, "run --local needs Linux, and this program is built for %s: run it on a Linux machine, or in a cluster",
			runtime.GOOS)
	}
	checked, standards, err := a.localExperiment(ctx, file, options)
	if err != nil {
		return err
	}
	if err := a.Local.Executor.Ready(ctx); err != nil {
		return exitf(ExitError, "%w", err)
	}
	if err := a.clearLeftovers(options); err != nil {
		return err
	}
	storage, err := a.Local.storageFor(options.local, options.serial)
	if err != nil {
		return err
	}
	if err := storage.suits(checked); err != nil {
		return err
	}
	output, err := newLocalOutput(options.output, checked)
	if err != nil {
		return err
	}
	defer output.removeEmpty()
	a.warnBefore(ctx, checked, storage)
	run := newLocalRun(a, checked, storage, output, standards)
	experiment, err := run.execute(ctx)
	if err != nil {
		return err
	}
	written, err := output.finish(experiment, checked.benchmark, run.documents)
	if err != nil {
		return err
	}
	experimentOutcome(experiment).print(a)
	a.say("\nReport: %s\nAll results: %s", written, output.folder)
	for _, path := range run.kept {
		a.say("Retained by spec.retain: %s", path)
	}
	return silent(verdictCode(v1alpha1.Verdict(experiment.Verdict)))
}

// warnBefore says what is known about a run before it begins.
func (a *App) warnBefore(ctx context.Context, checked *validated, storage *localStorage) {
	if spec := checked.benchmark.Spec; spec.Adaptive != nil {
		_, _ = fmt.Fprintf(a.Err, "--local ignores spec.adaptive: each variant has %d repetitions\n", spec.Repetitions)
	}
	for _, warning := range a.Local.Executor.Warnings(ctx, storage.path, storage.mode == corev1.PersistentVolumeBlock) {
		_, _ = fmt.Fprintln(a.Err, "Warning:", clean(warning))
	}
}

// clearLeftovers reports folders of killed runs, or removes them with --remove-leftovers.
func (a *App) clearLeftovers(options runOptions) error {
	if info, err := os.Stat(options.local); err != nil || !info.IsDir() {
		return nil //nolint:nilerr // storageFor says what is wrong with it
	}
	found, err := leftoversIn(options.local)
	if err != nil {
		return exitf(ExitError, "look for what killed runs have left in %s: %w", options.local, err)
	}
	var problems []error
	for _, one := range found {
		size := report.Bytes(one.bytes)
		if !options.removeLeftovers {
			_, _ = fmt.Fprintf(a.Err, "A run that was killed has left %s, with %s: add --remove-leftovers to remove it\n", clean(one.path), size)
			one.leave()
			continue
		}
		if err := one.remove(); err != nil {
			problems = append(problems, exitf(ExitError, "remove what a killed run has left: %w", err))
			continue
		}
		_, _ = fmt.Fprintf(a.Err, "Removed %s of a run that was killed, with %s\n", clean(one.path), size)
	}
	return errors.Join(problems...)
}

// endingSignals returns the signals that end a local run gracefully, among them SIGHUP from a closed terminal, except under nohup.
func endingSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// signalPause is the time in which further signals mean the same as the first: timeout(1) signals this program and then its process group.
const signalPause = time.Second

// secondSignalKills calls stop, which ends the handling of signals, a pause after the first signal has ended ctx: from then on, a second
// Ctrl-C ends this program at once.
func secondSignalKills(ctx context.Context, stop func()) (undo func() bool) {
	return context.AfterFunc(ctx, func() { time.AfterFunc(signalPause, stop) })
}

// localExperiment reads, defaults and validates the benchmark like the API server and the manager, with the documents that its gates use.
func (a *App) localExperiment(ctx context.Context, file string, options runOptions) (*validated, verdict.Standards, error) {
	manifests, err := readManifests(file, a.In)
	if err != nil {
		return nil, verdict.Standards{}, err
	}
	for _, with := range options.with {
		more, err := readManifests(with, a.In)
		if err != nil {
			return nil, verdict.Standards{}, err
		}
		if slices.ContainsFunc(more, (*manifest).isBenchmark) {
			return nil, verdict.Standards{}, exitf(ExitRefused,
				"--with %s has a StorageBenchmark: name files of ConfigMaps and StorageTargets", with)
		}
		manifests = append(manifests, more...)
	}
	checked, err := a.localBenchmark(ctx, file, manifests, options)
	if err != nil {
		return nil, verdict.Standards{}, err
	}
	if slices.ContainsFunc(checked.benchmark.Spec.Gates, gate.AsksHistory) {
		_, _ = fmt.Fprintln(a.Err, "A local run keeps no history: gates to History will not pass. Compare with a baseline: to: Baseline")
	}
	standards, err := a.standardsIn(manifests, &checked.benchmark.Spec)
	return checked, standards, err
}

// standardsIn reads the documents that the gates use. One that is in none of the files can only be named: nothing is applied here.
func (a *App) standardsIn(manifests []*manifest, spec *v1alpha1.StorageBenchmarkSpec) (verdict.Standards, error) {
	standards, err := verdict.ReadStandards(spec, func(name string) (map[string]string, bool, error) {
		for _, one := range manifests {
			if one.isConfigMap() && one.object.GetName() == name {
				return one.configMapData(), true, nil
			}
		}
		_, _ = fmt.Fprintf(a.Err,
			"ConfigMap %s of the benchmark is in no file: gates that need it will not pass. Name its file with --with\n", clean(name))
		return nil, false, nil
	})
	for what, refused := range map[string]*gate.Refusal{"baseline": standards.BaselineRefused, "calibration": standards.CalibrationRefused} {
		if refused != nil && !refused.Invalid { // it is missing
			absent, _, _ := strings.Cut(refused.Message, ":")
			refused.Message = fmt.Sprintf("%s in the files: make it with 'kubectl storagebench %s accept --from', and name its file with --with",
				absent, what)
		}
	}
	return standards, err
}

// localBenchmark validates the only benchmark of the manifests.
func (a *App) localBenchmark(ctx context.Context, file string, manifests []*manifest, options runOptions) (*validated, error) {
	if err := applicable(manifests, options.Namespace); err != nil {
		return nil, err
	}
	var one *manifest
	for _, candidate := range manifests {
		if !candidate.isBenchmark() {
			continue
		}
		if one != nil {
			return nil, exitf(ExitRefused, "%s: it contains several StorageBenchmarks: --local runs one at a time, use one file for each", file)
		}
		one = candidate
	}
	if one.object.GetNamespace() == "" {
		one.object.SetNamespace(options.Namespace)
	}
	if one.object.GetNamespace() == "" {
		one.object.SetNamespace(localNamespace)
	}
	// As in a cluster, every new object has a new seed, unless spec.seed is set.
	one.object.SetUID(newUID())
	known, err := loadSchemas()
	if err != nil {
		return nil, err
	}
	checked, problems := known.checkBenchmark(ctx, one, known.othersIn(ctx, manifests))
	if len(problems) > 0 {
		text := one.String() + " is not valid:"
		for _, wrong := range problems {
			text += "\n  " + one.at(wrong.field) + ": " + wrong.String()
		}
		return nil, exit(ExitRefused, errors.New(text))
	}
	if checked.missing != "" {
		return nil, exitf(ExitRefused, "%s: StorageTarget %s is in none of the files: name its file with --with", one.at("spec.target"),
			checked.missing)
	}
	if len(checked.slots) == 0 {
		return nil, exitf(ExitRefused, "%s: --local needs spec.target.storageClass: %s", one.at("spec.target"), checked.notes[0])
	}
	if slices.ContainsFunc(checked.slots, func(slot design.Slot) bool { return slot.Target.StorageClass == nil }) {
		return nil, exitf(ExitRefused, "%s: --local needs spec.target.storageClass: pools need the agents of a cluster",
			one.at("spec.target"))
	}
	return checked, refuseHere(checked)
}

var newUID = uuid.NewUUID

// refuseHere refuses workloads that cannot run here, such as one whose file is in a ConfigMap of a cluster.
func refuseHere(checked *validated) error {
	for i := range checked.slots {
		for j := range checked.slots[i].Phases {
			phase := &checked.slots[i].Phases[j]
			traits, _ := workload.PhaseTraits(phase)
			if traits.File != nil && traits.Inline == nil {
				return exitf(ExitRefused, "phase %s: a script of %s in a ConfigMap cannot be used with --local: choose another mode", phase.Name,
					traits.Name)
			}
			if traits.RefusesRoot && os.Geteuid() == 0 {
				return exitf(ExitRefused, "phase %s: %s refuses to run as root: run this as another user who may write to --local", phase.Name,
					traits.Name)
			}
			if traits.File != nil { // readFiles did not find it
				return exitf(ExitRefused, "phase %s: ConfigMap %s with the key %s is not in the file: with --local, add it to the file of the "+
					"benchmark, or name its file with --with", phase.Name, traits.File.Name, traits.File.Key)
			}
		}
	}
	return nil
}
