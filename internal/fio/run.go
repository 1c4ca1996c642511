//go:build linux

package fio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// maxOutputBytes limits how much of fio's report is read.
	maxOutputBytes = 12 << 20
	// maxMessageBytes limits how much is kept of what fio prints.
	maxMessageBytes = 8 << 10
	// patience is how long a killed fio may take to end before it is left to the kernel.
	patience = 10 * time.Second
	// watchEvery is how often the watcher is called.
	watchEvery = time.Second
	// exitSignalled is fio's exit code after a signal that made it end its jobs.
	exitSignalled = 128
)

// Program runs fio.
type Program struct {
	// Path of the program, or its name to be looked up.
	Path string
	// Scratch is a writable folder for the job file and the report.
	Scratch string
}

// Usage is how many bytes fio has asked the kernel to read and write so far, and by how many calls.
type Usage struct{ ReadBytes, WrittenBytes, Operations int64 }

// KilledError means that a signal from outside has ended fio.
type KilledError struct{ Signal syscall.Signal }

func (e *KilledError) Error() string {
	return fmt.Sprintf("fio was ended by signal %d (%v)", e.Signal, e.Signal)
}

// Version returns the version of fio, such as 3.33.
func (p Program) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it has not told its version within a minute"))
	defer cancel()
	command := p.command(ctx, "/", "--version")
	version, messages := &tail{limit: maxMessageBytes}, &tail{limit: maxMessageBytes}
	command.Stdout, command.Stderr = version, messages
	_, err := execute(ctx, command, nil)
	if ctx.Err() != nil {
		return "", stopped(ctx, err)
	}
	if err != nil {
		if notes := noteLines([]byte(messages.String())); len(notes) > 0 {
			err = fmt.Errorf("%w: %s", err, firstError(notes))
		}
		return "", fmt.Errorf("%s --version: %w: install fio, or use the runner image", p.Path, err)
	}
	return strings.TrimPrefix(strings.TrimSpace(version.String()), "fio-"), nil
}

// Run runs the job file to its end and returns the report, which exists even with some errors. While fio runs, watch is called once a
// second. If it returns true, fio ends early and reports what it has done. When the context ends, fio and everything that it has started
// are killed.
func (p Program) Run(ctx context.Context, file File, watch func(Usage) (enough bool)) (Report, error) {
	text, err := file.Text()
	if err != nil {
		return Report{}, err
	}
	folder, err := os.MkdirTemp(p.Scratch, "fio-")
	if err != nil {
		return Report{}, fmt.Errorf("scratch space for fio's job file: %w: mount a writable folder there", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	job, output := filepath.Join(folder, "job.fio"), filepath.Join(folder, "report.json")
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		return Report{}, fmt.Errorf("scratch space for fio's job file: %w", err)
	}
	command := p.command(ctx, folder, "--output-format=json+", "--output="+output, job)
	messages := &tail{limit: maxMessageBytes}
	command.Stdout, command.Stderr = messages, messages
	asked, ended := execute(ctx, command, watch)
	if ctx.Err() != nil {
		return Report{}, stopped(ctx, ended)
	}
	return readReport(output, ended, messages.String(), asked)
}

// stopped is the error of a fio whose context has ended.
func stopped(ctx context.Context, ended error) error {
	cause := context.Cause(ctx)
	if errors.Is(ended, errHangs) {
		cause = fmt.Errorf("%w; %w", cause, ended)
	}
	return fmt.Errorf("fio was stopped: %w", cause)
}

// command runs in its own process group, so that all of it can be killed, and in the given folder, because fio leaves files in its working
// directory.
func (p Program) command(ctx context.Context, folder string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, p.Path, args...)
	command.Dir = folder
	command.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + folder}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = patience / 2 // for its output; less than for its end, to tell these apart
	return command
}

// execute starts the command and waits for its end. asked says that fio was asked to end early. The thread is locked, because Pdeathsig
// applies when the thread that started the process ends, not the whole program. A process that hangs in the kernel is abandoned.
func execute(ctx context.Context, command *exec.Cmd, watch func(Usage) bool) (asked bool, err error) {
	started, done := make(chan error, 1), make(chan error, 1) // buffered: the receiver may be gone
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			done <- command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return false, err
	}
	return attend(ctx, command.Process, done, watch)
}

// errHangs means that fio waits for storage that does not respond.
var errHangs = fmt.Errorf("fio hangs in the kernel: it is still running %s after it was killed", patience)

// attend calls the watcher until fio has ended, or is abandoned.
func attend(ctx context.Context, fio *os.Process, done <-chan error, watch func(Usage) bool) (asked bool, err error) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var enough <-chan time.Time
	stop := ctx.Done()
	for {
		select {
		case err := <-done:
			return asked, err
		case <-stop:
			stop, enough = nil, time.After(patience)
		case <-enough:
			return asked, errHangs
		case <-ticker.C:
			usage, err := readUsage(fio.Pid)
			if err == nil && watch != nil && watch(usage) && !asked {
				asked = fio.Signal(syscall.SIGINT) == nil // fio ends its jobs, and reports
			}
		}
	}
}

// readUsage works for fio because thread=1 keeps all of its workers in one process.
func readUsage(pid int) (Usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return Usage{}, err
	}
	var usage Usage
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ": ")
		var number int64
		if _, err := fmt.Sscan(value, &number); err != nil {
			continue
		}
		switch name {
		case "rchar":
			usage.ReadBytes = number
		case "wchar":
			usage.WrittenBytes = number
		case "syscr", "syscw":
			usage.Operations += number
		}
	}
	return usage, nil
}

func readReport(path string, ended error, messages string, asked bool) (Report, error) {
	output, err := readBounded(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Report{}, err
	}
	var exit *exec.ExitError
	if errors.As(ended, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return Report{}, &KilledError{Signal: status.Signal()}
		}
	} else if ended != nil {
		return Report{}, fmt.Errorf("starting fio: %w: install fio, or use the runner image", ended)
	}
	report, parseErr := Parse(output)
	report.Notes = append(report.Notes, noteLines([]byte(messages))...)
	asked = asked && (ended == nil || exit != nil && exit.ExitCode() == exitSignalled)
	switch {
	case parseErr == nil && report.Err() != nil:
		return report, report.Err()
	case parseErr != nil && ended != nil:
		return Report{}, failed(ended, append(report.Notes, noteLines(output)...))
	case parseErr != nil:
		return Report{}, parseErr
	case asked:
		return report, nil
	case signalled(report.Notes):
		return report, &KilledError{Signal: syscall.SIGTERM}
	case ended != nil:
		return report, failed(ended, report.Notes)
	}
	return report, nil
}

// ErrJobFile means that fio does not accept a job file: another attempt would fail too.
var ErrJobFile = errors.New("fio cannot use the job file")

// MissesFiles reports whether fio has ended because it would have had to create files that it may not create, or to enlarge them.
func MissesFiles(err error) bool {
	return err != nil && strings.Contains(err.Error(), "file creation disallowed")
}

// failed returns the error of a fio that has ended with an error and reports none in its jobs.
func failed(ended error, notes []string) error {
	if mentions(notes, "failed parsing") {
		return fmt.Errorf("%w: %s", ErrJobFile, strings.Join(notes[:min(len(notes), 3)], "; "))
	}
	return fmt.Errorf("fio failed: %w: %s", ended, firstError(notes))
}

// signalled reports whether a signal ended fio early: after SIGTERM and SIGINT, its report looks as if all was well.
func signalled(notes []string) bool { return mentions(notes, "terminating on signal") }

func mentions(notes []string, words string) bool {
	return slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, words) })
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	output, err := io.ReadAll(io.LimitReader(file, maxOutputBytes+1))
	if err == nil && len(output) > maxOutputBytes {
		return nil, fmt.Errorf("fio's report has more than %d bytes: use fewer sections", maxOutputBytes)
	}
	return output, err
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	kept  bytes.Buffer
}

func (t *tail) Write(data []byte) (int, error) {
	t.kept.Write(data)
	if extra := t.kept.Len() - t.limit; extra > 0 {
		t.kept.Next(extra)
	}
	return len(data), nil
}

func (t *tail) String() string { return t.kept.String() }
