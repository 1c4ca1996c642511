//go:build unix

package zfs

import (
	"os/exec"
	"syscall"
)

// isolate gives a process a process group of its own, so that helpers such as mount end with it, and another root if one is given.
func isolate(process *exec.Cmd, root string) {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Chroot: root}
	if root != "" {
		process.Dir = "/"
	}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGTERM) }
}
