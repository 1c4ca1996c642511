//go:build linux

package zfs

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// defaultTimeout is ample for commands that only read state or set properties; longer commands have a timeout of their own.
	defaultTimeout = 2 * time.Minute
	// defaultGrace is how long a program may take to end after a signal.
	defaultGrace = 5 * time.Second
	stderrLimit  = 16 << 10
)

// Host runs the programs of this node.
type Host struct {
	// root is the path here of the file system in which the command is started; empty for our own file system.
	root string
	// prefix is put before every command.
	prefix  []string
	timeout time.Duration
	grace   time.Duration
	hanging hangs
}

// NewHost returns a runner for a program that runs on the node itself. A prefix is put before every command.
func NewHost(prefix ...string) *Host {
	return &Host{prefix: prefix, timeout: defaultTimeout, grace: defaultGrace}
}

// FromPod returns a runner for a privileged pod with hostPID. It starts the node's own nsenter, which every distribution has. nsenter runs
// the node's programs in the node's mount and UTS namespaces, so the node sees their mounts.
func FromPod() *Host {
	host := NewHost("/usr/bin/nsenter", "--mount=/proc/1/ns/mnt", "--uts=/proc/1/ns/uts", "--")
	host.root = "/proc/1/root"
	return host
}

// environment is the whole environment of a program: messages in English, times in UTC, no colours, no settings of ours.
func environment() []string {
	return []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// Run runs a command to its end, or ends it at its deadline. A program that hangs in the kernel, as those of a suspended pool do, cannot be
// ended: Run returns anyway, with Timeout.
func (h *Host) Run(ctx context.Context, command Command) ([]byte, error) {
	if err := h.hanging.refuse(command); err != nil {
		return nil, err
	}
	timeout := command.Timeout
	if timeout <= 0 {
		timeout = h.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	stdout, stderr := &boundedBuffer{limit: outputLimit}, &boundedBuffer{limit: stderrLimit}
	argv := append(append([]string{}, h.prefix...), append([]string{command.Program}, command.Args...)...)
	process := exec.CommandContext(ctx, argv[0], argv[1:]...)
	process.Env = environment()
	process.Stdin = command.Stdin
	process.Stdout = stdout
	if command.Stdout != nil {
		process.Stdout = command.Stdout
	}
	process.Stderr = stderr
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Chroot: h.root} // helpers such as mount are in the group too
	if h.root != "" {
		process.Dir = "/"
	}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGTERM) }
	process.WaitDelay = h.grace
	if err := process.Start(); err != nil {
		return nil, &Error{Kind: notStarted(err), Command: command.String(), ExitCode: -1, Stderr: err.Error(), Err: err}
	}
	if err := h.wait(ctx, command, func() error { return reap(ctx, process) }); err != nil {
		return nil, failure(ctx, command, err, stderr.String())
	}
	if stdout.full() {
		return nil, &Error{Kind: Unknown, Command: command.String(), Stderr: fmt.Sprintf("more than %d bytes of output", outputLimit)}
	}
	return stdout.Bytes(), nil
}

// Hanging returns the programs that do not end although they were killed, the oldest first.
func (h *Host) Hanging() []Hanging { return h.hanging.list() }

// reap waits for a program, and kills helpers that outlive a stopped one. It does so before the number of the program is free again for
// other processes.
func reap(ctx context.Context, program *exec.Cmd) error {
	for {
		var seen unix.Siginfo
		if err := unix.Waitid(unix.P_PID, program.Process.Pid, &seen, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if ctx.Err() != nil {
		_ = syscall.Kill(-program.Process.Pid, syscall.SIGKILL)
	}
	return program.Wait()
}

var errUnkillable = errors.New("the program does not end although it was killed")

// wait waits for a program, but not for one that cannot die: the goroutine that waits for such a program stays until the kernel returns.
func (h *Host) wait(ctx context.Context, command Command, ended func() error) error {
	var result error
	done := make(chan struct{})
	go func() {
		result = ended()
		close(done)
	}()
	select {
	case <-done:
		return result
	case <-ctx.Done():
	}
	patience := time.NewTimer(2 * h.grace)
	defer patience.Stop()
	select {
	case <-done:
		return result
	case <-patience.C:
		h.hanging.add(ctx, command, done)
		return errUnkillable
	}
}

func notStarted(err error) Kind {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT) {
		return NotInstalled
	}
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
		return Permission
	}
	return Unknown
}

// failure converts the unsuccessful end of a program to an Error.
func failure(ctx context.Context, command Command, err error, stderr string) error {
	failed := &Error{Command: command.String(), ExitCode: -1, Stderr: stderr, Err: err}
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		failed.ExitCode = exit.ExitCode()
	}
	switch {
	case errors.Is(err, errUnkillable):
		failed.Kind, failed.Err = Timeout, errors.Join(context.Cause(ctx), err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		failed.Kind, failed.Err = Timeout, ctx.Err()
	case ctx.Err() != nil:
		failed.Kind, failed.Err = Cancelled, ctx.Err()
	case failed.ExitCode == 127:
		failed.Kind = NotInstalled
	default:
		failed.Kind = classify(stderr)
	}
	return failed
}
