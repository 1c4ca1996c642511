//go:build !unix

package zfs

import (
	"errors"
	"os/exec"
)

// isolate makes the start fail: there is no ZFS here. The plugin links this package for its names and limits, and starts nothing.
func isolate(process *exec.Cmd, _ string) {
	process.Err = errors.New("the programs of ZFS run on Linux only")
}
