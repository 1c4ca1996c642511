//go:build !linux

package cli

import "errors"

var errLinux = errors.New("run --local needs Linux: run it on a Linux machine, or in a cluster")

func freeBytes(string) (int64, error) { return 0, errLinux }

type claim struct{}

func claimFolder(string) (*claim, error) { return nil, errLinux }

func (c *claim) release() error { return nil }

type leftover struct {
	path  string
	bytes int64
}

func leftoversIn(string) ([]leftover, error) { return nil, errLinux }

func activeBeside(string) string { return "" }

func (leftover) remove() error { return errLinux }

func (leftover) leave() {}
