package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// failing is a writer that accepts some writes, and then returns an error.
type failing struct {
	io.Writer
	accepts int
	err     error
}

func (f *failing) Write(text []byte) (int, error) {
	if f.accepts--; f.accepts < 0 {
		return 0, f.err
	}
	return f.Writer.Write(text)
}

// TestIncompleteOutput: output that could not be written is an error, said once, and a verdict is not lost.
func TestIncompleteOutput(t *testing.T) {
	valid, broken := here(t, ""), file(t, "broken.yaml", "kind: x\n")
	fromFile := file(t, "results.json", encoded(t, nightly()))
	for _, test := range []struct {
		arguments []string
		code      int
	}{
		{[]string{"validate", valid}, ExitError},
		{[]string{"validate", broken}, ExitFailed},
		{[]string{"plan", valid}, ExitError},
		{[]string{"plan", valid, "-o", "json"}, ExitError},
		{[]string{"baseline", "accept", "--from", fromFile}, ExitError},
		{[]string{"compare", fromFile, fromFile}, ExitError},
		{[]string{"--help"}, ExitError},
	} {
		app, out, said := testApp()
		app.Out = &failing{Writer: out, err: syscall.ENOSPC}
		code := app.Main(t.Context(), test.arguments)
		if code != test.code || strings.Count(said.String(), "no space left") != 1 {
			t.Errorf("%v: %d %s", test.arguments, code, said)
		}
	}
}

// TestLocalRunWithoutAReader: if the reader of the output goes away, a run cleans up like after Ctrl-C. A full disk for its log ends
// nothing, because the results are elsewhere.
func TestLocalRunWithoutAReader(t *testing.T) {
	for wrong, want := range map[error]int{syscall.EPIPE: ExitInterrupted, syscall.ENOSPC: ExitError} {
		volume, output := t.TempDir(), filepath.Join(t.TempDir(), "results")
		app, out, said := testApp()
		app.Out = &failing{out, 1, wrong}
		app.Local.Executor = &executor{execute: func(ctx context.Context, request workload.Request,
			_ func(results.Progress)) (results.PhaseDocument, error) {
			if request.Phase.Measure != nil && errors.Is(wrong, syscall.EPIPE) {
				<-ctx.Done()
			}
			return measured(request, 5000), nil
		}}
		code := app.Main(t.Context(), []string{"run", here(t, fastEnough), "--local", volume, "--output", output})
		if code != want || errors.Is(wrong, syscall.EPIPE) != strings.Contains(said.String(), "the reader of the output is gone: interrupted") {
			t.Errorf("%v: %d %s", wrong, code, said)
		}
		if _, err := os.Stat(filepath.Join(output, "results.json")); (err == nil) != errors.Is(wrong, syscall.ENOSPC) {
			t.Errorf("%v: %v", wrong, err)
		}
		empty(t, volume)
	}
}

// TestLocalOutputThatCannotBeWritten: the message names the flag for another folder.
func TestLocalOutputThatCannotBeWritten(t *testing.T) {
	for _, output := range []string{filepath.Join(file(t, "file", ""), "inside"), "/proc/results"} {
		app, _, said := testApp()
		app.Local.Executor = &executor{}
		code := app.Main(t.Context(), []string{"run", here(t, ""), "--local", t.TempDir(), "--output", output})
		if code != ExitError || !strings.Contains(said.String(), "the folder for the results: ") || !strings.Contains(said.String(), " with --output DIR") {
			t.Errorf("%s: %d %s", output, code, said)
		}
	}
}

// TestSignalsAtOnceCountAsOne: timeout(1) signals this program and then its process group. Only a later signal means: exit without cleanup.
func TestSignalsAtOnceCountAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, signalled := context.WithCancel(t.Context())
		defer signalled()
		kills := false
		secondSignalKills(ctx, func() { kills = true })
		for _, step := range []struct {
			after time.Duration
			kills bool
		}{{time.Hour, false}, {0, false}, {signalPause - 1, false}, {1, true}} {
			<-time.After(step.after)
			synctest.Wait()
			if kills != step.kills {
				t.Errorf("after another %s: a signal kills: %v", step.after, kills)
			}
			signalled()
		}
	})
}

// TestClosedPipe: the signal of a closed pipe does not kill a local run. It needs a process of its own, whose standard output is the pipe.
func TestClosedPipe(t *testing.T) {
	const variable = "STORAGEBENCH_TEST_CLOSED_PIPE"
	if folder := os.Getenv(variable); folder != "" {
		e := &executor{execute: func(ctx context.Context, request workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
			if request.Phase.Measure != nil {
				<-ctx.Done()
			}
			return measured(request, 1), nil
		}}
		app := &App{In: strings.NewReader(""), Out: os.Stdout, Err: os.Stderr, Now: time.Now, Local: Local{Executor: e}}
		os.Exit(app.Main(t.Context(), []string{"run", filepath.Join(folder, "here.yaml"), "--local", filepath.Join(folder, "volume"), "--output",
			filepath.Join(folder, "results")}))
	}
	folder := filepath.Dir(here(t, ""))
	volume := filepath.Join(folder, "volume")
	if err := os.Mkdir(volume, 0o700); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env, child.Stdout, child.Stderr = append(os.Environ(), variable+"="+folder), writer, writer
	err = child.Run()
	if exited := (*exec.ExitError)(nil); !errors.As(err, &exited) || exited.ExitCode() != ExitInterrupted {
		t.Errorf("%v instead of exit code %d", err, ExitInterrupted)
	}
	empty(t, volume)
}
