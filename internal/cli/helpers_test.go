package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; if this is as it should be, run 'go test ./internal/cli -update' (-want +got):\n%s", path, diff)
	}
}

// noon is the time of all tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// written is a buffer that can be read while it is written.
type written struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (w *written) Write(text []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.Write(text)
}

func (w *written) String() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.String()
}

// testApp returns a tool whose clock stands at noon, without a terminal.
func testApp() (app *App, out, errors *written) {
	out, errors = &written{}, &written{}
	return &App{In: strings.NewReader(""), Out: out, Err: errors, Now: func() time.Time { return noon }, Version: "v1.2.3"}, out, errors
}

// file writes a file that is removed after the test, and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// executor is a fake PhaseExecutor that records its requests.
type executor struct {
	execute  func(context.Context, workload.Request, func(results.Progress)) (results.PhaseDocument, error)
	requests []workload.Request
	unready  error
	warnings []string
}

func (e *executor) Ready(context.Context) error { return e.unready }

func (e *executor) Warnings(context.Context, string, bool) []string { return e.warnings }

func (e *executor) Execute(ctx context.Context, request workload.Request, progress func(results.Progress)) (results.PhaseDocument, error) {
	e.requests = append(e.requests, request)
	if e.execute == nil {
		return measured(request, 3200), nil
	}
	return e.execute(ctx, request, progress)
}

// measured returns a valid document of a phase.
func measured(request workload.Request, reads int64) results.PhaseDocument {
	document := results.PhaseDocument{
		Version: results.PhaseVersion, Run: request.Run, Phase: string(request.Phase.Name), Kind: results.KindFill,
		Outcome: results.OutcomeValid, StartedAt: noon, FinishedAt: noon.Add(time.Second), Metrics: map[string]int64{"filledBytes": 128 << 20},
	}
	if request.Phase.Measure != nil {
		document.Kind = results.KindMeasure
		document.Metrics = map[string]int64{"readOperationsPerSecond": reads, "readBytesPerSecond": reads * 8192}
	}
	return document
}

// invalid returns a document that says why its numbers cannot be used.
func invalid(request workload.Request, reason, message string) results.PhaseDocument {
	document := measured(request, 1)
	document.Outcome, document.Reason, document.Message = results.OutcomeInvalid, reason, message
	return document
}

// fixedUID makes names that depend on it the same in each run of a test.
func fixedUID(t *testing.T) {
	t.Helper()
	before := newUID
	newUID = func() types.UID { return "11111111-2222-3333-4444-555555555555" }
	t.Cleanup(func() { newUID = before })
}

func progressOf(percent int32, rate, message string, left int64) results.Progress {
	return results.Progress{Percent: percent, Rate: rate, Message: message, SecondsLeft: left}
}
