//go:build unix

package zfs

import (
	"os/exec"
	"syscall"
)

// isolate gives a process a group of its own, so that helpers such as mount end with it, and another root if there is one.
func isolate(process *exec.Cmd, root string) {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Chroot: root}
	if root != "" {
		process.Dir = "/"
	}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGTERM) }
}
