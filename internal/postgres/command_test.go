package postgres

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shellScript(t *testing.T, text string) spec {
	t.Helper()
	return spec{argv: []string{shell, "-c", text}, environment: minimalEnvironment("")}
}

func TestRunKeepsWhatProgramsSay(t *testing.T) {
	output, err := run(t.Context(), shellScript(t, "echo out; echo err >&2"))
	if err != nil || output != "out\n" {
		t.Error(output, err)
	}
	_, err = run(t.Context(), shellScript(t, "echo x: error: it is broken >&2; exit 3"))
	if err == nil || err.Error() != "sh failed (exit status 3): x: error: it is broken" {
		t.Error(err)
	}
	if _, err = run(t.Context(), shellScript(t, "head -c 2000000 /dev/zero")); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}

// within reports whether a fact came true before the deadline.
func within(deadline time.Duration, fact func() bool) bool {
	over, look := time.After(deadline), time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for !fact() {
		select {
		case <-look.C:
		case <-over:
			return fact()
		}
	}
	return true
}

// TestCancelKillsTheGroup: the processes that a program has started are killed with it.
func TestCancelKillsTheGroup(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	child := make(chan int, 1)
	reason := errors.New("enough")
	spec := shellScript(t, "sleep 600 & echo $! >&2; wait")
	spec.line = func(line string) {
		pid, _ := strconv.Atoi(line)
		child <- pid
		cancel(reason)
	}
	began := time.Now()
	if _, err := run(ctx, spec); !errors.Is(err, reason) {
		t.Error(err)
	}
	pid := <-child
	// It has closed its files, or run would have waited longer; the rest of its end is the kernel's work.
	var state []byte
	ended := func() bool {
		state, _ = os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return len(state) == 0 || strings.Contains(string(state), ") Z")
	}
	if !within(3*time.Second, ended) {
		t.Errorf("process %d is left: %s", pid, state)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("that took %v", took)
	}
}

func TestTranscriptIsBounded(t *testing.T) {
	var seen int
	said := transcript{each: func(string) { seen++ }}
	for i := range 1_000 {
		text := strconv.Itoa(i) + strings.Repeat(" long", 1000) + "\r\n\xff"
		for _, piece := range strings.SplitAfter(text, " ") {
			_, _ = said.Write([]byte(piece))
		}
	}
	said.flush()
	lines := said.lines()
	if len(lines) != 2*keptLines || seen != 1_001 {
		t.Fatal(len(lines), seen)
	}
	if !strings.HasPrefix(lines[0], "0 long") || lines[2*keptLines-1] != "?" || !strings.HasPrefix(lines[2*keptLines-2], "?999 long") ||
		len(lines[3]) > maxLine+3 {
		t.Errorf("%.10q %.10q", lines[0], lines[2*keptLines-2])
	}
}

func FuzzTranscript(f *testing.F) {
	f.Add([]byte("a\nb\r\nc"), 2)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		var said transcript
		cut := min(len(text), max(0, at))
		_, _ = said.Write(text[:cut])
		_, _ = said.Write(text[cut:])
		said.flush()
		for _, line := range said.lines() {
			if line == "" || len(line) > 3*maxLine || strings.ContainsAny(line, "\r\n") {
				t.Errorf("%q", line)
			}
		}
		significant(said.lines())
	})
}

// TestHeldProgram: the process number of a held program is known before it runs, and its logs are read to their ends.
func TestHeldProgram(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "log")
	program := `i=0; while [ $i -lt 20000 ]; do echo "0 $i 5 0 1 1"; i=$((i+1)); done > "$1.$$"; echo "1 1 7 0 1 1" > "$1.$$.1"`
	held, gate, err := startHeld(t.Context(), spec{argv: []string{shell, "-c", program, "sh", prefix}, environment: minimalEnvironment("")})
	if err != nil {
		t.Fatal(err)
	}
	counted := &transactions{latencies: newHistogram()}
	logs, err := openLogs(prefix, held.pid, 2, counted)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(release(gate), held.wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	logs.finish()
	if counted.broken != nil || counted.latencies.total != 20_001 || counted.latencies.largest != 7 {
		t.Error(counted.broken, counted.latencies.total, counted.latencies.largest)
	}
	if _, err := openLogs(prefix, held.pid, 1, counted); !errors.Is(err, syscall.EEXIST) {
		t.Error(err)
	}
}

// TestHeldProgramThatNeverRuns: closing the gate without releasing the program ends it.
func TestHeldProgramThatNeverRuns(t *testing.T) {
	held, gate, err := startHeld(t.Context(), spec{argv: []string{shell, "-c", "exit 0"}, environment: minimalEnvironment("")})
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	if err := held.wait(t.Context()); err == nil {
		t.Error("it ran")
	}
}

func TestProgramFolder(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"pg/9/bin", "pg/15/bin", "pg/17/bin", "path"} {
		for _, name := range programNames {
			if folder != "pg/17/bin" || name != "pgbench" {
				write(t, filepath.Join(root, folder, name), "x")
				if err := os.Chmod(filepath.Join(root, folder, name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	pattern := []string{filepath.Join(root, "pg/*/bin")}
	if found, err := programFolder([]string{"path", root}, pattern); err != nil || found != filepath.Join(root, "pg/15/bin") {
		t.Error(found, err)
	}
	if found, err := programFolder([]string{filepath.Join(root, "path")}, pattern); err != nil || found != filepath.Join(root, "path") {
		t.Error(found, err)
	}
	if _, err := programFolder([]string{root}, nil); err == nil || !strings.Contains(err.Error(), "use the postgres image") {
		t.Error(err)
	}
}
