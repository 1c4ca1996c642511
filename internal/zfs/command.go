package zfs

import (
	"context"
	"io"
	"strings"
	"time"
)

// The programs that are run.
const (
	zpoolProgram = "zpool"
	zfsProgram   = "zfs"
	zdbProgram   = "zdb"
)

// Command is one run of a program.
type Command struct {
	// Program is zpool, zfs, zdb or uname.
	Program string
	// Args behind the program's name.
	Args []string
	// Stdin of the program, nothing if nil.
	Stdin io.Reader
	// Stdout takes the output as it comes; if nil, Run returns it. After a Timeout it may still be written to.
	Stdout io.Writer
	// Timeout instead of the runner's own.
	Timeout time.Duration
}

// String is the command as a person would type it.
func (c Command) String() string {
	return strings.Join(append([]string{c.Program}, c.Args...), " ")
}

// Runner runs commands. Host does so on this node; zfstest.Fake in tests.
type Runner interface {
	Run(ctx context.Context, command Command) ([]byte, error)
}

func zpool(args ...string) Command { return Command{Program: zpoolProgram, Args: args} }

func zfs(args ...string) Command { return Command{Program: zfsProgram, Args: args} }
