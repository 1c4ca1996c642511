package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// errExperimentDeadline is the cause of a context that ends at spec.deadline.
var errExperimentDeadline = errors.New("spec.deadline has passed")

// localRun executes an experiment on this machine. The planner decides what comes next, when it is over and what follows, as in the
// cluster; only the actions differ.
type localRun struct {
	app       *App
	checked   *validated
	storage   *localStorage
	output    *localOutput
	screen    screen
	node      string
	state     experiment.State
	documents map[string]results.PhaseDocument
	// kept are the folders retained by spec.retain.
	kept []string
}

func newLocalRun(a *App, checked *validated, storage *localStorage, output *localOutput) *localRun {
	node, err := os.Hostname()
	if err != nil || node == "" {
		node = "localhost"
	}
	return &localRun{
		app: a, checked: checked, storage: storage, output: output, screen: a.newScreen(), node: node,
		state:     experiment.State{Benchmark: checked.benchmark, Experiment: checked.hash, Slots: checked.slots},
		documents: map[string]results.PhaseDocument{},
	}
}

// execute runs until the planner has no next run, and assembles the results.
func (l *localRun) execute(ctx context.Context) (results.Experiment, error) {
	defer l.screen.clear()
	benchmark := l.checked.benchmark
	benchmark.Status.Experiment, benchmark.Status.StartedAt = l.checked.hash, &metav1.Time{Time: l.app.Now()}
	if limit := benchmark.Spec.Deadline; limit != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit.Duration.Duration, errExperimentDeadline)
		defer cancel()
	}
	for {
		l.state.Now = l.app.Now()
		tally := experiment.Count(l.state)
		if tally.Over || errors.Is(context.Cause(ctx), errExperimentDeadline) {
			return l.assemble(tally), nil
		}
		run, err := l.run(ctx, tally)
		switch {
		case errors.Is(context.Cause(ctx), errExperimentDeadline): // as in the cluster, the run in progress does not count
		case ctx.Err() != nil:
			return results.Experiment{}, exitf(ExitInterrupted, "interrupted after %d of %s: %s", tally.Done, counted(tally.Total, "run"),
				l.left(err))
		case err != nil:
			return results.Experiment{}, err
		default:
			l.state.Runs = append(l.state.Runs, *run)
		}
	}
}

// left describes what an interrupted experiment leaves behind. err is the error of the interrupted run.
func (l *localRun) left(err error) string {
	text := "the workload has ended and the folder of the run is removed"
	if l.storage.mode == corev1.PersistentVolumeBlock {
		text = "the workload has ended; what it wrote is still on " + l.storage.path
	}
	if failed := (*exitError)(nil); errors.As(err, &failed) {
		text = failed.Error()
	}
	for _, path := range l.kept {
		text += "\nRetained by spec.retain: " + path
	}
	return text + "\nThe documents of the finished phases are in " + l.output.folder
}

// name is that of the benchmark.
func (l *localRun) name() string {
	return l.checked.benchmark.Namespace + "/" + l.checked.benchmark.Name
}

// assemble computes the results. There is no ConfigMap for a phase here, so none is named.
func (l *localRun) assemble(tally experiment.Tally) results.Experiment {
	tally.Expired = tally.Expired || !tally.Over
	experiment := experiment.Assemble(experiment.Evidence{
		Now: l.app.Now(), Benchmark: l.checked.benchmark, Experiment: l.checked.hash,
		Runs: l.state.Runs, Documents: l.documents, Gates: l.checked.gates, Tally: tally,
	})
	for i := range experiment.Runs {
		for j := range experiment.Runs[i].Phases {
			experiment.Runs[i].Phases[j].ConfigMap = ""
		}
	}
	return experiment
}

// run executes one run on its own storage and records its outcome, as the run controller does.
func (l *localRun) run(ctx context.Context, tally experiment.Tally) (*v1alpha1.BenchmarkRun, error) {
	run := runObject(l.checked.benchmark, l.checked.hash, tally.Next, tally.NextAttempt, l.node, fieldOwner+" "+l.app.version())
	run.Spec.Target.StorageClass.Name = l.storage.String()
	now := metav1.Time{Time: l.app.Now()}
	run.CreationTimestamp, run.Status.StartedAt = now, &now
	path, err := l.storage.make(run.Name)
	if err != nil {
		return nil, err
	}
	ending, err := l.phases(ctx, run, tally, path)
	if err := errors.Join(err, l.tidy(run, ending, path)); err != nil {
		return nil, err
	}
	end := metav1.Time{Time: l.app.Now()}
	run.Status.FinishedAt, run.Status.Retryable = &end, ending.Retryable
	valid := metav1.ConditionFalse
	if ending.Valid {
		valid = metav1.ConditionTrue
	}
	kstatus.Set(&run.Status.Conditions, 0, v1alpha1.ConditionComplete, metav1.ConditionTrue, ending.Reason, ending.Message)
	kstatus.Set(&run.Status.Conditions, 0, v1alpha1.ConditionValid, valid, ending.Reason, ending.Message)
	kstatus.Done(&run.Status.Conditions, 0, ending.Reason, ending.Message)
	return run, nil
}

// tidy removes the folder of a run unless spec.retain keeps it. The folder of an interrupted run is useless.
func (l *localRun) tidy(run *v1alpha1.BenchmarkRun, ending runs.Ending, path string) error {
	policy := run.Spec.Retain
	ended := ending.Reason != ""
	if ended && l.storage.mode == corev1.PersistentVolumeFilesystem &&
		(policy == v1alpha1.RetainAlways || policy == v1alpha1.RetainOnFailure && !ending.Valid) {
		l.kept = append(l.kept, path)
		return nil
	}
	return l.storage.remove(path)
}

// phases executes the phases in order until one invalidates the run.
func (l *localRun) phases(ctx context.Context, run *v1alpha1.BenchmarkRun, tally experiment.Tally, path string) (runs.Ending, error) {
	for i := range run.Spec.Phases {
		phase, view := &run.Spec.Phases[i], newLocalView(l, run, i, tally)
		document, spoilt := l.phase(ctx, run, phase, path, view)
		if ctx.Err() != nil {
			return runs.Ending{}, ctx.Err()
		}
		if document == nil {
			view.ended(results.PhaseDocument{}, spoilt)
			return *spoilt, nil
		}
		view.ended(document.phase, spoilt)
		name := naming.PhaseObjectName(run.Name, phase.Name)
		if err := l.output.phase(name, document.text); err != nil {
			return runs.Ending{}, err
		}
		l.documents[name] = document.phase
		started, finished := metav1.Time{Time: view.started}, metav1.Time{Time: l.app.Now()}
		run.Status.Phases = append(run.Status.Phases, v1alpha1.RunPhaseStatus{
			Name: phase.Name, StartedAt: &started, FinishedAt: &finished, Result: name, Digest: results.Digest(document.text)})
		if spoilt != nil {
			return *spoilt, nil
		}
	}
	return runs.Ending{Valid: true, Reason: v1alpha1.ReasonMeasured, Message: fmt.Sprintf("all %d phases have usable results",
		len(run.Spec.Phases))}, nil
}

// localDocument is a document with its exact bytes.
type localDocument struct {
	phase results.PhaseDocument
	text  []byte
}

// phase executes one phase. The document takes the same path as through the log of a pod, with all its checks.
func (l *localRun) phase(ctx context.Context, run *v1alpha1.BenchmarkRun, phase *v1alpha1.Phase, path string,
	view *localView) (*localDocument, *runs.Ending) {
	request := l.storage.request(workload.Request{
		Version: workload.RequestVersion,
		Run:     results.RunIdentity{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)},
		Phase:   *phase.DeepCopy(), Seed: run.Spec.Seed, VolumeSizeBytes: run.Spec.Target.StorageClass.Size.Value(),
		DataFiles: workload.DataFilesFor(run.Spec.Phases),
	}, path)
	limit := phase.Deadline.Duration.Duration
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	emitted, err := view.during(limited, func(progress func(results.Progress)) (results.PhaseDocument, error) {
		return l.app.Local.Executor.Execute(limited, request, progress)
	})
	spoil := func(reason string, retryable bool, format string, arguments ...any) *runs.Ending {
		return &runs.Ending{Reason: reason, Retryable: retryable, Message: fmt.Sprintf("phase %s: ", phase.Name) + fmt.Sprintf(format,
			arguments...)}
	}
	switch {
	case limited.Err() != nil && ctx.Err() == nil && (err != nil || emitted.Outcome != results.OutcomeValid):
		return nil, spoil(v1alpha1.ReasonPhaseDeadlineExceeded, true, "it did not finish within %s: increase its deadline or request less",
			brief(limit))
	case err != nil:
		return nil, spoil(v1alpha1.ReasonPodFailed, false, "it could not be executed: %v", err)
	}
	var log bytes.Buffer
	receipt, err := results.Emit(&log, emitted)
	if err != nil {
		return nil, spoil(v1alpha1.ReasonResultCorrupt, true, "%v", err)
	}
	collected, text, err := results.Collect(&log, receipt)
	switch {
	case err != nil:
		return nil, spoil(v1alpha1.ReasonResultCorrupt, true, "%v", err)
	case collected.Run != request.Run || collected.Phase != string(phase.Name):
		return nil, spoil(v1alpha1.ReasonResultForeign, true, "its result is that of phase %s of run %s", collected.Phase, collected.Run.Name)
	case collected.Outcome != results.OutcomeValid:
		return &localDocument{collected, text}, spoil(v1alpha1.ReasonPhaseInvalid, true, "%s: %s", collected.Reason, collected.Message)
	}
	return &localDocument{collected, text}, nil
}
