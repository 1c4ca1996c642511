// Package proc starts the processes of a lab and finds them again, without files that could be wrong: every process
// carries the lab's folder in its environment, and the kernel knows the rest.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	labVariable  = "STORAGEBENCH_LAB_FOLDER"
	partVariable = "STORAGEBENCH_LAB_PART"
)

// Process is a running part of a lab.
type Process struct {
	PID int
	// Part is the name it was started under, like kube-apiserver or node-n1.
	Part string
}

// Start starts a part of the lab in its own session, so that it outlives this program and its terminal. Its output is appended to a file.
func Start(command *exec.Cmd, lab, part, log string) error {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if command.Env == nil {
		command.Env = os.Environ()
	}
	temporary := filepath.Join(lab, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}
	command.Env = append(command.Env, labVariable+"="+lab, partVariable+"="+part, "TMPDIR="+temporary)
	command.Stdout, command.Stderr, command.Dir = file, file, "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", part, err)
	}
	go func() { _ = command.Wait() }() // no zombie, as long as this program lives
	return nil
}

// Find lists the living processes of a lab, sorted by part.
func Find(lab string) ([]Process, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if part, belongs := partOf(pid, lab); belongs {
			found = append(found, Process{PID: pid, Part: part})
		}
	}
	slices.SortFunc(found, func(a, b Process) int { return strings.Compare(a.Part, b.Part) })
	return found, nil
}

// partOf returns which part of the lab a process is, and whether it belongs to the lab. The environment of a zombie is empty.
func partOf(pid int, lab string) (part string, belongs bool) {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", false // gone, or another process
	}
	for variable := range strings.SplitSeq(string(environment), "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		switch name {
		case labVariable:
			belongs = value == lab
		case partVariable:
			part = value
		}
	}
	return part, belongs
}

// Threads describes what each thread of the process waits for in the kernel, one per line: its name, its state, and where it sleeps. It is
// for a process that hangs.
func (p Process) Threads() string {
	folders, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", p.PID))
	var lines strings.Builder
	for _, folder := range folders {
		// A thread that has ended meanwhile has no files.
		read := func(file string) string {
			content, _ := os.ReadFile(filepath.Join(folder, file))
			return strings.TrimSpace(string(content))
		}
		_, state, _ := strings.Cut(read("stat"), ") ")
		fmt.Fprintf(&lines, "  %s: %.1s, in %s, system call %s\n", read("comm"), state, read("wchan"), read("syscall"))
	}
	return lines.String()
}

// Stop asks processes of a lab to end and kills those that have not after the grace time. It returns once all are gone.
func Stop(ctx context.Context, lab string, processes []Process, grace time.Duration) error {
	var errs []error
	deadline := time.Now().Add(grace)
	handles := map[int]Process{}
	for _, process := range processes {
		// The handle refers to this process even if its PID is reused later. So it is enough to check once that it belongs to the lab.
		handle, err := unix.PidfdOpen(process.PID, 0)
		if err != nil {
			continue
		}
		defer func() { _ = unix.Close(handle) }()
		if _, belongs := partOf(process.PID, lab); !belongs {
			continue
		}
		handles[handle] = process
		errs = append(errs, signal(handle, process, unix.SIGTERM))
	}
	for handle, process := range handles {
		if wait(ctx, handle, time.Until(deadline)) {
			continue
		}
		errs = append(errs, signal(handle, process, unix.SIGKILL))
		if !wait(ctx, handle, 10*time.Second) {
			errs = append(errs, fmt.Errorf("process %d (%s) does not end", process.PID, process.Part))
		}
	}
	return errors.Join(errs...)
}

func signal(handle int, process Process, number unix.Signal) error {
	if err := unix.PidfdSendSignal(handle, number, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to process %d (%s): %w", unix.SignalName(number), process.PID, process.Part, err)
	}
	return nil
}

// wait reports whether the process ended within the time.
func wait(ctx context.Context, handle int, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for {
		left := min(time.Until(deadline), 200*time.Millisecond) // short, to notice the end of the context
		polled := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
		count, err := unix.Poll(polled, int(max(left.Milliseconds(), 0)))
		if err == nil && count > 0 {
			return true
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
	}
}
