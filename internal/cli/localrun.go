package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/verdict"
)

// errExperimentDeadline is the cause of a context that ends when the planner gives up the experiment.
var errExperimentDeadline = errors.New("spec.deadline has passed")

// localRun executes an experiment on this machine. As in the cluster, the planners decide what comes next, when phases and runs are over,
// and whether their results are valid. Only the actions differ.
type localRun struct {
	app       *App
	checked   *validated
	storage   *localStorage
	output    *localOutput
	screen    screen
	node      string
	state     experiment.State
	documents map[string]results.PhaseDocument
	// standards are the documents that compare gates use.
	standards verdict.Standards
	// kept are the folders retained by spec.retain.
	kept []string
	// disturbed is true if another run in the same folder was reported.
	disturbed bool
}

func newLocalRun(a *App, checked *validated, storage *localStorage, output *localOutput, standards verdict.Standards) *localRun {
	node, err := os.Hostname()
	if err != nil || node == "" {
		node = "localhost"
	}
	for i := range checked.slots { // results of different paths must not be compared, so the path becomes part of the target
		checked.slots[i].Target.StorageClass.Name = storage.String()
	}
	state := checked.state()
	state.Images.Runner = fieldOwner + " " + a.version()
	return &localRun{
		app: a, checked: checked, storage: storage, output: output, screen: a.newScreen(), node: node, state: state,
		documents: map[string]results.PhaseDocument{}, standards: standards,
	}
}

// execute runs until the planner has no next run, and assembles the results.
func (l *localRun) execute(ctx context.Context) (results.Experiment, error) {
	defer l.screen.clear()
	benchmark := l.checked.benchmark
	benchmark.Status.Experiment, benchmark.Status.StartedAt = l.checked.hash, &metav1.Time{Time: l.app.Now()}
	deadline := experiment.DeadlineAt(l.state)
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, deadline.Sub(l.app.Now()), errExperimentDeadline)
		defer cancel()
	}
	for {
		l.state.Now = l.app.Now()
		if errors.Is(context.Cause(ctx), errExperimentDeadline) {
			l.state.Now = latest(l.state.Now, deadline)
		}
		tally := experiment.Count(l.state)
		if tally.Over {
			return l.assemble(tally), nil
		}
		run, err := l.run(ctx, tally)
		switch {
		case errors.Is(context.Cause(ctx), errExperimentDeadline): // as in the cluster, the run in progress does not count
		case ctx.Err() != nil:
			return results.Experiment{}, exitf(ExitInterrupted, "%s after %d of %s: %s", interruptedBy(ctx), tally.Done,
				spelling.Count(tally.Total, "run"), l.left(err))
		case err != nil:
			return results.Experiment{}, err
		default:
			l.state.Runs = append(l.state.Runs, *run)
		}
	}
}

// interruptedBy begins the message about an experiment that was interrupted.
func interruptedBy(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errUnread) {
		return errUnread.Error() + ": interrupted"
	}
	return "interrupted"
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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
	if len(l.documents) > 0 {
		text += "\nThe documents of the finished phases are in " + l.output.folder
	}
	return text
}

// name is the name of the benchmark.
func (l *localRun) name() string {
	return l.checked.benchmark.Namespace + "/" + l.checked.benchmark.Name
}

// assemble computes the results. Local phases have no ConfigMaps, so the results name none.
func (l *localRun) assemble(tally experiment.Tally) results.Experiment {
	documents, derived := make(map[string]results.PhaseDocument, len(l.documents)), l.checked.gates.Derived()
	for name, document := range l.documents {
		documents[name] = document.Reduce(derived[document.Phase])
	}
	experiment := experiment.Assemble(experiment.Evidence{
		Now: l.app.Now(), Benchmark: l.checked.benchmark, Experiment: l.checked.hash,
		Runs: l.state.Runs, Documents: documents, Gates: l.checked.gates, Slots: l.checked.slots, Tally: tally,
		Standards: l.standards,
	})
	for i := range experiment.Runs {
		for j := range experiment.Runs[i].Phases {
			experiment.Runs[i].Phases[j].ConfigMap = ""
		}
	}
	return experiment
}

// localTurn is the run in progress.
type localTurn struct {
	*localRun
	state runs.State
	tally experiment.Tally
	// path is the storage of the run.
	path string
	// view shows the running phase. Nil if there is none.
	view  *localView
	phase int
}

// run executes one run on its own storage. Like the run controller, it repeatedly plans from the current state, acts and updates the
// status. When the context ends, it deletes the run as in a cluster.
func (l *localRun) run(ctx context.Context, tally experiment.Tally) (*v1alpha1.BenchmarkRun, error) {
	run := experiment.NewRun(l.state, experiment.Action{Slot: tally.Next, Attempt: tally.NextAttempt}, []string{l.node}, "")
	run.UID, run.CreationTimestamp = types.UID(string(l.checked.benchmark.UID)+"/"+run.Name), metav1.Time{Time: l.app.Now()}
	owner := string(l.checked.benchmark.UID)
	turn := &localTurn{localRun: l, tally: tally, state: runs.State{Run: run, Now: l.app.Now(), Owner: owner, LeaseHolder: owner,
		Phases: make([]runs.PhaseState, len(run.Spec.Phases))}}
	for !runs.Settled(run) {
		turn.state.Now = latest(turn.state.Now, l.app.Now())
		if ctx.Err() != nil && run.DeletionTimestamp.IsZero() {
			run.DeletionTimestamp = &metav1.Time{Time: l.app.Now()}
		}
		decision := runs.Plan(turn.state)
		if over, err := turn.act(decision); over || err != nil {
			return run, errors.Join(ctx.Err(), err)
		}
		run.Status = runs.Summarise(turn.state, decision)
		turn.show(decision)
		if decision.Ending == nil && run.DeletionTimestamp.IsZero() && len(decision.Actions) == 0 {
			if turn.view == nil {
				return nil, exitf(ExitError, "run %s: %s: --local cannot wait for that", run.Name, decision.Message)
			}
			turn.work(ctx, decision.WakeAt)
		}
	}
	if turn.state.Claims.Exists && l.storage.mode == corev1.PersistentVolumeFilesystem {
		l.kept = append(l.kept, turn.path)
		return run, l.storage.release()
	}
	return run, nil
}

// act carries out a decision. over is true if the run is gone or an action failed.
func (l *localTurn) act(decision runs.Decision) (over bool, err error) {
	for _, action := range decision.Actions {
		switch action.Kind {
		case runs.CreateVolumes:
			l.path, err = l.storage.make(l.state.Run.Name)
			l.state.Claims = runs.Claims{Exists: err == nil, Bound: err == nil}
		case runs.StartPhase:
			l.startPhase(action.Phase)
		case runs.StoreResult:
			err = l.storeResult(action.Phase)
		case runs.DeleteJobsAndOperations: // no phase is running at this point
			l.forget()
		case runs.DeleteVolumes:
			err = l.storage.remove(l.path)
			l.state.Claims = runs.Claims{}
		case runs.RemoveRunFinalizer:
			over = true
		default:
			err = exitf(ExitError, "--local cannot do %s", action.Kind)
		}
		if err != nil {
			return true, err
		}
	}
	if decision.Ending != nil {
		l.forget()
	}
	return over, nil
}

// forget drops the executors of the phases, which have ended.
func (l *localTurn) forget() {
	for i := range l.state.Phases {
		l.state.Phases[i].Executor = runs.ExecutorState{}
	}
}

// startPhase records that the phase is running. work executes it later, when the planner waits for it.
func (l *localTurn) startPhase(i int) {
	now := l.app.Now()
	l.phase, l.view = i, newLocalView(l.localRun, l.state.Run, i, l.tally)
	name := naming.PhaseObjectName(l.state.Run.Name, l.state.Run.Spec.Phases[i].Name)
	l.state.Phases[i].Executor = runs.ExecutorState{Exists: true, UID: name, Created: now}
	l.state.Phases[i].Pod = runs.PodState{Exists: true, Started: &now}
}

// storeResult writes the document of a phase.
func (l *localTurn) storeResult(i int) error {
	phase := &l.state.Phases[i]
	name := naming.PhaseObjectName(l.state.Run.Name, l.state.Run.Spec.Phases[i].Name)
	if err := l.output.phase(name, phase.ReceivedBytes); err != nil {
		return err
	}
	l.documents[name] = *phase.Received
	phase.Stored = &runs.StoredResult{ConfigMap: name, Digest: phase.ReceivedDigest, Outcome: phase.Received.Outcome,
		Reason: phase.Received.Reason, Message: phase.Received.Message, StoredAt: l.app.Now()}
	return nil
}

// show reports the end of a phase, once the planner has decided whether its result is valid.
func (l *localTurn) show(decision runs.Decision) {
	if l.view == nil {
		return
	}
	phase := l.state.Phases[l.phase]
	var document results.PhaseDocument
	if phase.Received != nil {
		document = *phase.Received
	}
	if stored := phase.Stored != nil && phase.Stored.Outcome == results.OutcomeValid; stored || decision.Ending != nil {
		ending := decision.Ending
		if stored {
			ending = nil
		}
		l.view.ended(document, ending)
		l.view = nil
	}
}

// besideAnother reports whether another run is active in the same folder, and says so once.
func (l *localTurn) besideAnother() bool {
	another := activeBeside(l.path)
	if another != "" && !l.disturbed {
		l.disturbed = true
		l.screen.clear()
		_, _ = fmt.Fprintf(l.app.Err, "Warning: another run is active in this folder (%s): both measure the load of the other\n", clean(another))
	}
	return another != ""
}

// work executes the started phase until it ends or until the planner has to decide again. The document passes the same checks as one from
// the log of a pod.
func (l *localTurn) work(ctx context.Context, due time.Time) {
	spec, phase := l.state.Run.Spec.Phases[l.phase], &l.state.Phases[l.phase]
	request, err := runs.Request(l.state.Run, spec, l.state.Pools)
	request = l.storage.request(request, l.path)
	limited, cancel := context.WithTimeout(ctx, due.Sub(l.app.Now()))
	defer cancel()
	var emitted results.PhaseDocument
	before := l.besideAnother()
	if err == nil {
		emitted, err = l.view.during(limited, func(progress func(results.Progress)) (results.PhaseDocument, error) {
			return l.app.Local.Executor.Execute(limited, request, progress)
		})
	}
	if after := l.besideAnother(); (before || after) && emitted.Environment != nil {
		emitted.Environment["warning.anotherRun"] = "Another run was active in the same folder: both measured the load of the other."
	}
	if limited.Err() != nil && (err != nil || emitted.Outcome != results.OutcomeValid) {
		if ctx.Err() == nil {
			l.state.Now = latest(l.app.Now(), due)
		}
		return
	}
	phase.Pod.Ended = new(latest(l.state.Now, l.app.Now()))
	if err != nil {
		phase.Pod.Hopeless, phase.Pod.Message = true, err.Error()
		return
	}
	var log bytes.Buffer
	receipt, err := results.Emit(&log, emitted)
	phase.Pod.HasReceipt = true
	if err != nil {
		phase.ReceiveError = fmt.Errorf("%w: %w", results.ErrCorrupt, err)
		return
	}
	document, text, err := results.Collect(&log, receipt)
	if phase.ReceiveError = err; err == nil {
		phase.Receive(l.state.Run, spec.Name, document, text, receipt.Digest)
	}
}
