// Package program makes files that a test is about to run.
package program

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// Script writes a program that a shell or another interpreter runs.
func Script(path, body string) error { return write(path, strings.NewReader(body)) }

// CopySelf puts the running test's own program where another user can run it.
func CopySelf(path string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = self.Close() }()
	return write(path, self)
}

// write prevents forks while the file is open: a child that a parallel test starts just then would hold the file open for writing, and the
// kernel refuses to run such a file ("text file busy").
func write(path string, content io.Reader) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
