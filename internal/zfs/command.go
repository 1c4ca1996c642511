package zfs

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"
)

// The programs that this package runs.
const (
	zpoolProgram = "zpool"
	zfsProgram   = "zfs"
	zdbProgram   = "zdb"
)

// outputLimit keeps a runaway program from filling the agent's memory.
const outputLimit = 16 << 20

// Command is one run of a program.
type Command struct {
	// Program is zpool, zfs, zdb or uname.
	Program string
	// Args after the name of the program.
	Args []string
	// Pool is the pool that the command is about. Empty if it is about all pools. Too many hanging commands prevent further ones on the
	// same pool.
	Pool string
	// Stdin of the program, nothing if nil.
	Stdin io.Reader
	// Stdout receives the output as it comes; if nil, Run returns the output. The program may still write to it after a Timeout.
	Stdout io.Writer
	// Timeout replaces the runner's own, unless it is 0.
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

// onPool sets the pool that a command is about.
func (c Command) onPool(pool string) Command {
	c.Pool = pool
	return c
}

// zfs returns a command on the dataset or snapshot that its last argument names.
func zfs(args ...string) Command {
	return Command{Program: zfsProgram, Args: args, Pool: poolOf(args[len(args)-1])}
}

// poolOf returns the pool of a dataset or snapshot.
func poolOf(name string) string {
	if end := strings.IndexAny(name, "/@"); end >= 0 {
		return name[:end]
	}
	return name
}

// boundedBuffer keeps the first bytes of an output. It is locked: an unkillable program may still write to it.
type boundedBuffer struct {
	mutex   sync.Mutex
	buffer  bytes.Buffer
	limit   int
	dropped bool
}

var _ io.Writer = (*boundedBuffer)(nil)

func (b *boundedBuffer) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	keep := min(len(data), b.limit-b.buffer.Len())
	b.buffer.Write(data[:keep])
	b.dropped = b.dropped || keep < len(data)
	return len(data), nil
}

// Bytes returns the bytes that were kept.
func (b *boundedBuffer) Bytes() []byte {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return bytes.Clone(b.buffer.Bytes())
}

// String returns the bytes that were kept.
func (b *boundedBuffer) String() string { return string(b.Bytes()) }

func (b *boundedBuffer) full() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.dropped
}
