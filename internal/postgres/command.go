package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	maxOutput = 1 << 20
	maxLine   = 500
	// keptLines is how many lines are kept from the beginning and from the end of a program's output.
	keptLines = 20
	// hangs is how long a killed process may take to end. One that waits for dead storage may take forever.
	hangs = 30 * time.Second
)

// spec is a program to run. It gets arguments, never a command line for a shell.
type spec struct {
	argv        []string
	environment []string
	stdin       *os.File
	// line is called for each line of stderr, in order. May be nil.
	line func(string)
	// deathSignal is the signal that the kernel sends it when this process dies; default SIGKILL.
	deathSignal syscall.Signal
	// survives says that the end of the context does not kill it, because it is stopped gracefully elsewhere.
	survives bool
}

// process is a running program.
type process struct {
	name   string
	pid    int
	output limited
	said   transcript
	done   chan struct{}
	err    error // of the program; set before done is closed
}

// start starts a program in its own process group. The thread that starts it must live as long as the process, or the kernel sends the
// death signal too early: hence the locked thread.
func start(ctx context.Context, spec spec) (*process, error) {
	p := &process{name: filepath.Base(spec.argv[0]), done: make(chan struct{})}
	p.said.each = spec.line
	if spec.survives {
		ctx = context.WithoutCancel(ctx)
	}
	command := exec.CommandContext(ctx, spec.argv[0], spec.argv[1:]...)
	command.Env, command.Dir = spec.environment, "/"
	command.Stdout, command.Stderr = &p.output, &p.said
	if spec.stdin != nil {
		command.Stdin = spec.stdin
	}
	if spec.deathSignal == 0 {
		spec.deathSignal = syscall.SIGKILL
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: spec.deathSignal}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
			p.said.flush()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	p.pid = command.Process.Pid
	return p, nil
}

// wait waits for the end of a program that the context kills.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		timer := time.NewTimer(hangs)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
			return fmt.Errorf("%s (process %d) was killed but does not end: it waits for storage that does not respond", p.name, p.pid)
		}
	}
	if p.err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s was killed: %w", p.name, cause)
	}
	return &commandError{name: p.name, err: p.err, lines: p.said.lines()}
}

// run runs a program to its end and returns what it has printed.
func run(ctx context.Context, spec spec) (string, error) {
	p, err := start(ctx, spec)
	if err != nil {
		return "", err
	}
	if err := p.wait(ctx); err != nil {
		return "", err
	}
	return p.output.text()
}

// commandError is the failure of a program, with its output.
type commandError struct {
	name  string
	err   error
	lines []string
}

// Error names the program, its exit status and the lines of its output that matter.
func (e *commandError) Error() string {
	text := fmt.Sprintf("%s failed (%v)", e.name, e.err)
	if said := significant(e.lines); len(said) > 0 {
		text += ": " + strings.Join(said, " | ")
	}
	return text
}

// Unwrap returns the error of the process.
func (e *commandError) Unwrap() error { return e.err }

// limited keeps the beginning of an output and knows whether there was more.
type limited struct {
	kept bytes.Buffer
	more bool
}

// Write never fails: a program must not be stopped because of its output.
func (l *limited) Write(data []byte) (int, error) {
	room := min(len(data), maxOutput-l.kept.Len())
	l.more = l.more || room < len(data)
	l.kept.Write(data[:room])
	return len(data), nil
}

func (l *limited) text() (string, error) {
	if l.more {
		return "", fmt.Errorf("the program printed more than %d bytes", maxOutput)
	}
	return l.kept.String(), nil
}

// transcript keeps the first and the last lines of a program's output, shortened, and forwards each.
type transcript struct {
	each func(string)

	mutex       sync.Mutex
	partial     []byte
	first, last []string
}

var _ io.Writer = (*transcript)(nil)

// Write takes the next part of the text.
func (t *transcript) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; {
		end := bytes.IndexAny(rest, "\n\r")
		if end < 0 {
			t.add(rest)
			break
		}
		t.add(rest[:end])
		t.flush()
		rest = rest[end+1:]
	}
	return len(data), nil
}

func (t *transcript) add(text []byte) {
	t.partial = append(t.partial, text[:min(len(text), maxLine-len(t.partial))]...)
}

func (t *transcript) flush() {
	if len(t.partial) == 0 {
		return
	}
	line := strings.ToValidUTF8(string(t.partial), "?")
	t.partial = t.partial[:0]
	t.mutex.Lock()
	if len(t.first) < keptLines {
		t.first = append(t.first, line)
	} else {
		t.last = append(t.last, line)
		if len(t.last) > keptLines {
			t.last = t.last[1:]
		}
	}
	t.mutex.Unlock()
	if t.each != nil {
		t.each(line)
	}
}

// lines returns the lines that were kept.
func (t *transcript) lines() []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return append(append([]string(nil), t.first...), t.last...)
}
