//go:build !linux

package cli

import (
	"context"
	"errors"
	"io/fs"
)

var errOnlyLinux = errors.New("run --local works on Linux only: run in a cluster")

func freeBytes(string) (int64, error) { return 0, errOnlyLinux }

func (l Local) device(context.Context, string, string, fs.FileInfo) (*localStorage, error) {
	return nil, exit(ExitError, errOnlyLinux)
}
