package runner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/workload/engine"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// executor is an Executor that is a function.
type executor func(ctx context.Context, request workload.Request, progress func(results.Progress)) (results.PhaseDocument, error)

func (e executor) Execute(ctx context.Context, request workload.Request, progress func(results.Progress)) (results.PhaseDocument, error) {
	return e(ctx, request, progress)
}

var errStopped = errors.New("terminated")

func request(deadline time.Duration) workload.Request {
	phase := v1alpha1.Phase{Name: "read", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}}}
	if deadline > 0 {
		phase.Deadline = &v1alpha1.Duration{Duration: metav1.Duration{Duration: deadline}}
	}
	return workload.Request{Version: workload.RequestVersion, Run: results.RunIdentity{Namespace: "lab", Name: "a-1", UID: "u"},
		Phase: phase, VolumeMode: "Filesystem", Path: "/data"}
}

func valid(context.Context, workload.Request, func(results.Progress)) (results.PhaseDocument, error) {
	return results.PhaseDocument{Outcome: results.OutcomeValid, Metrics: map[string]int64{"readOperationsPerSecond": 100}}, nil
}

// outcome has the exit code, the log and the termination message of a pod.
type outcome struct {
	code        int
	log         string
	termination string
}

// run executes a request as in a pod, with a log and the file that kubelet creates.
func run(ctx context.Context, t *testing.T, e Executor, request workload.Request) outcome {
	t.Helper()
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	one := Runner{Executor: e, Log: &log, TerminationLog: path, Grace: 50 * time.Millisecond}
	code := one.Run(ctx, request)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return outcome{code, log.String(), string(text)}
}

// document reads a result exactly as the manager does.
func (o outcome) document(t *testing.T) results.PhaseDocument {
	t.Helper()
	receipt, err := results.ParseReceipt(o.termination)
	if err != nil {
		t.Fatalf("exit code %d: %v\n%s", o.code, err, o.log)
	}
	document, _, err := results.Collect(strings.NewReader(o.log), receipt)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestEveryEndGivesADocument(t *testing.T) {
	wrong := func(change func(*results.PhaseDocument)) executor {
		return func(ctx context.Context, r workload.Request, p func(results.Progress)) (results.PhaseDocument, error) {
			document, err := valid(ctx, r, p)
			change(&document)
			return document, err
		}
	}
	untilStopped := func(document results.PhaseDocument, err error) executor {
		return func(ctx context.Context, _ workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
			<-ctx.Done()
			return document, err
		}
	}
	good, _ := valid(t.Context(), workload.Request{}, nil)
	release := make(chan struct{})
	defer close(release)
	for _, test := range []struct {
		name     string
		executor executor
		signal   bool
		deadline time.Duration
		code     int
		outcome  results.Outcome
		reason   string
		says     string
	}{
		{name: "valid", executor: valid, code: ExitValid, outcome: results.OutcomeValid},
		{name: "invalid", executor: wrong(func(d *results.PhaseDocument) {
			d.Outcome, d.Reason, d.Message = results.OutcomeInvalid, "VolumeFull", "no space"
		}), code: ExitInvalid, outcome: results.OutcomeInvalid, reason: "VolumeFull", says: "no space"},
		{name: "a signal, and numbers that look good", executor: untilStopped(good, nil), signal: true,
			code: ExitInterrupted, outcome: results.OutcomeInvalid, reason: engine.ReasonInterrupted, says: "terminated"},
		{name: "a signal, and the executor says more", executor: untilStopped(results.PhaseDocument{
			Outcome: results.OutcomeInvalid, Reason: "Stopped", Message: "in the third round"}, nil), signal: true,
			code: ExitInterrupted, outcome: results.OutcomeInvalid, reason: "Stopped", says: "third round"},
		{name: "a signal, and an error", executor: untilStopped(results.PhaseDocument{}, errors.New("fio was stopped")), signal: true,
			code: ExitInterrupted, outcome: results.OutcomeInvalid, reason: engine.ReasonInterrupted, says: "fio was stopped"},
		{name: "a signal, and no end", executor: func(context.Context, workload.Request, func(results.Progress)) (results.PhaseDocument, error) {
			<-release
			return good, nil
		}, signal: true, code: ExitInterrupted, outcome: results.OutcomeInvalid, reason: engine.ReasonInterrupted,
			says: "did not stop within 50ms"},
		{name: "the deadline", executor: untilStopped(good, nil), deadline: time.Millisecond,
			code: ExitInvalid, outcome: results.OutcomeInvalid, reason: v1alpha1.ReasonPhaseDeadlineExceeded, says: "increase its deadline"},
		{name: "the deadline, and the executor says that it was interrupted", executor: untilStopped(results.PhaseDocument{
			Outcome: results.OutcomeInvalid, Reason: engine.ReasonInterrupted, Message: "in the third round"}, nil), deadline: time.Millisecond,
			code: ExitInvalid, outcome: results.OutcomeInvalid, reason: v1alpha1.ReasonPhaseDeadlineExceeded, says: "third round"},
		{name: "an unknown metric", executor: wrong(func(d *results.PhaseDocument) { d.Metrics["speed"] = 1 }),
			code: ExitInvalid, outcome: results.OutcomeInvalid, reason: ReasonResultRefused, says: `"speed" is not in the vocabulary`},
		{name: "no numbers", executor: wrong(func(d *results.PhaseDocument) { d.Metrics = nil }),
			code: ExitInvalid, outcome: results.OutcomeInvalid, reason: ReasonResultRefused, says: "no metrics"},
		{name: "the clock was set back", executor: wrong(func(d *results.PhaseDocument) {
			d.StartedAt = time.Now()
			d.FinishedAt = d.StartedAt.Add(-time.Hour)
		}), code: ExitInvalid, outcome: results.OutcomeInvalid, reason: ReasonResultRefused, says: "the clock was set back"},
		{name: "another run", executor: wrong(func(d *results.PhaseDocument) { d.Run.UID, d.Phase = "x", "y" }), code: ExitValid,
			outcome: results.OutcomeValid},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			if test.signal {
				cancel(errStopped)
			}
			defer cancel(nil)
			end := run(ctx, t, test.executor, request(test.deadline))
			document := end.document(t)
			if end.code != test.code || document.Outcome != test.outcome || document.Reason != test.reason ||
				!strings.Contains(document.Message, test.says) {
				t.Errorf("exit code %d, %s %s: %s", end.code, document.Outcome, document.Reason, document.Message)
			}
			if document.Run != request(0).Run || document.Phase != "read" || document.Kind != results.KindMeasure {
				t.Errorf("the document is that of %+v, %s %s", document.Run, document.Kind, document.Phase)
			}
		})
	}
}

func TestNoDocument(t *testing.T) {
	for _, test := range []struct {
		name     string
		executor executor
		says     string
	}{
		{"an error", func(context.Context, workload.Request, func(results.Progress)) (results.PhaseDocument, error) {
			return results.PhaseDocument{}, errors.New("there is no fio")
		}, "there is no fio"},
		{"a crash", func(context.Context, workload.Request, func(results.Progress)) (results.PhaseDocument, error) {
			panic("index out of range")
		}, "a bug in storagebench: index out of range"},
		{"a very long error", func(context.Context, workload.Request, func(results.Progress)) (results.PhaseDocument, error) {
			return results.PhaseDocument{}, errors.New(strings.Repeat("ü", 9000))
		}, "üüü..."},
	} {
		end := run(t.Context(), t, test.executor, request(0))
		if end.code != ExitFailed || !strings.Contains(end.termination, test.says) || len(end.termination) > 4096 {
			t.Errorf("%s: exit code %d, %q", test.name, end.code, end.termination)
		}
		if strings.Contains(end.log, "storagebench-result") {
			t.Errorf("%s: there is a document in the log", test.name)
		}
		if test.name == "a crash" && !strings.Contains(end.log, "runner_test.go") {
			t.Errorf("the log does not say where it crashed:\n%s", end.log)
		}
	}
}

// TestIncompleteRequest: a document without a run could not be assigned to any run.
func TestIncompleteRequest(t *testing.T) {
	one := request(0)
	one.Run = results.RunIdentity{}
	if end := run(t.Context(), t, executor(valid), one); end.code != ExitFailed || !strings.Contains(end.termination, "run.namespace") {
		t.Errorf("exit code %d, %q", end.code, end.termination)
	}
}

func TestWithoutKubelet(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "termination-log")
	one := Runner{Executor: executor(valid), Log: io.Discard, TerminationLog: missing}
	if code := one.Run(t.Context(), request(0)); code != ExitValid {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a termination message was made where no kubelet wants one: %v", err)
	}
	one.TerminationLog = t.TempDir() // cannot be written
	if code := one.Run(t.Context(), request(0)); code != ExitFailed {
		t.Errorf("without a receipt the exit code is %d", code)
	}
}

// broken is a log whose reader is gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestLogBroken(t *testing.T) {
	one := Runner{Executor: executor(valid), Log: broken{}}
	if code := one.Run(t.Context(), request(0)); code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
}

// TestProgress: many goroutines report progress, but the log has few lines, and none after the result.
func TestProgress(t *testing.T) {
	late := make(chan struct{})
	var work sync.WaitGroup
	talk := func(_ context.Context, _ workload.Request, progress func(results.Progress)) (results.PhaseDocument, error) {
		for range 8 {
			work.Go(func() {
				for percent := range int32(200) {
					progress(results.Progress{Percent: percent / 2, Rate: "1 MiB/s", Message: "reading"})
				}
			})
		}
		work.Wait()
		progress(results.Progress{Percent: 100, Message: "counting"})
		work.Go(func() {
			<-late
			progress(results.Progress{Percent: 100, Message: "too late"})
		})
		return valid(t.Context(), workload.Request{}, nil)
	}
	var log bytes.Buffer
	one := Runner{Executor: executor(talk), Log: &log}
	if code := one.Run(t.Context(), request(0)); code != ExitValid {
		t.Fatalf("exit code %d", code)
	}
	close(late)
	work.Wait()
	var said []string
	for line := range strings.Lines(log.String()) {
		if progress, is := results.ParseProgress(line); is {
			said = append(said, progress.Message)
		}
	}
	if len(said) < 2 || said[0] != "reading" || said[len(said)-1] != "counting" || len(said) > 10 {
		t.Errorf("progress: %q", said)
	}
	if !strings.HasPrefix(log.String(), "storagebench runner: measure phase read of run lab/a-1 on /data (Filesystem)\n") {
		t.Errorf("the log begins with %.100q", log.String())
	}
}

// TestPause: a day of progress stays far below the size at which logs are rotated.
func TestPause(t *testing.T) {
	lines := 0
	for after := time.Duration(0); after < 24*time.Hour; after += pause(after) {
		lines++
	}
	text := results.Progress{Percent: 50, Rate: "12345 reads/s, 3456 writes/s, 123.4 MiB/s", Message: "round 12 of at most 25",
		SecondsLeft: 12345}.Line()
	if total := lines * (len(text) + 50); total > 4<<20 {
		t.Errorf("a day has %d lines, %d bytes", lines, total)
	}
	if pause(0) != shortestPause || pause(5*time.Minute) != 5*time.Second || pause(time.Hour) != longestPause {
		t.Errorf("pauses: %s %s %s", pause(0), pause(5*time.Minute), pause(time.Hour))
	}
}
