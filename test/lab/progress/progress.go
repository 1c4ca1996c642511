// Package progress tells a person what the lab is doing: one line when a step begins and one when it ends, with times,
// and the last lines of its log if it failed.
package progress

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// tailLines is how many lines of a failed step's log are shown.
const tailLines = 25

// Reporter prints the steps. It is safe for steps that run at the same time.
type Reporter struct {
	mutex   sync.Mutex
	out     io.Writer
	logs    string
	started time.Time
}

// New makes a Reporter that prints to out and keeps the output of each step in a file of the folder logs.
func New(out io.Writer, logs string) (*Reporter, error) {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for logs: %w", err)
	}
	return &Reporter{out: out, logs: logs, started: time.Now()}, nil
}

// Say prints a line with the time since the Reporter was made.
func (r *Reporter) Say(format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, _ = fmt.Fprintf(r.out, ">> %6.1fs  %s\n", time.Since(r.started).Seconds(), fmt.Sprintf(format, args...))
}

// Logs returns the folder of the logs.
func (r *Reporter) Logs() string { return r.logs }

// Step runs a step. The log goes to the file NAME.log, whose last lines are printed if the step fails.
func (r *Reporter) Step(name, what string, do func(log io.Writer) error) error {
	path := filepath.Join(r.logs, name+".log")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	r.Say("%s", what)
	began := time.Now()
	if err := do(file); err != nil {
		r.Say("FAILED: %s (after %.1f s): %v\n%s", what, time.Since(began).Seconds(), err, Tail(path))
		return fmt.Errorf("%s: %w", what, err)
	}
	r.Say("%s: done in %.1f s", what, time.Since(began).Seconds())
	return nil
}

// Tail returns the last lines of a log, indented, with its path.
func Tail(path string) string {
	content, err := os.ReadFile(path)
	text := strings.TrimRight(string(content), "\n")
	if err != nil || text == "" {
		return "   (nothing in " + path + ")"
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "   the last lines of " + path + ":\n   | " + strings.Join(lines, "\n   | ")
}
