package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	suite = "trixie"
	// stopGrace is how long an interrupted command may take to clean up.
	stopGrace = 20 * time.Second
)

// debian is a Debian tree, as a list of packages.
type debian struct {
	// variant is mmdebstrap's: extract unpacks and runs no maintainer scripts, which is enough for trees that are not booted.
	variant  string
	packages []string
}

// options is everything that decides what will be in the tree.
func (d debian) options() []string {
	options := []string{
		"--variant=" + d.variant,
		"--components=main,contrib", // OpenZFS is in contrib
		"--architectures=amd64",
		"--include=" + strings.Join(d.packages, ","),
		"--dpkgopt=force-unsafe-io",
	}
	if d.variant == "extract" { // there, path-exclude sends every package through a slow filter
		return options
	}
	for _, dir := range []string{"doc", "info", "locale", "man", "bash-completion", "lintian", "bug"} {
		options = append(options, "--dpkgopt=path-exclude=/usr/share/"+dir+"/*")
	}
	return options
}

// make builds the tree and writes it to target: a tarball, or nothing except what the hooks take out of it.
func (d debian) make(ctx context.Context, log io.Writer, target string, extra ...string) error {
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		return fmt.Errorf("the lab's machines are Debian, made by mmdebstrap, and there is none here: install it, for example with 'apt-get "+
			"install mmdebstrap': %w", err)
	}
	args := append(d.options(), extra...)
	args = append(args, suite, target)
	if mirror := os.Getenv("LAB_DEBIAN_MIRROR"); mirror != "" {
		args = append(args, mirror)
	}
	cmd := command(ctx, "mmdebstrap", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C") // the tree has no other locale
	return run(cmd, log)
}

// command returns a command that is stopped gently, with all its children, when ctx ends.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	return gently(cmd)
}

// gently gives a command a process group of its own. When the context ends, the group is asked to stop and gets some time for it.
func gently(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// run runs a command with its output in the log.
func run(cmd *exec.Cmd, log io.Writer) error {
	fmt.Fprintf(log, "$ %s\n", strings.Join(cmd.Args, " "))
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", cmd.Args[0], err)
	}
	return nil
}
