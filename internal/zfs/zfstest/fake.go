// Package zfstest has a fake for the programs of a node.
package zfstest

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/storagebench/storagebench/internal/zfs"
)

// Fake records every command and returns the prepared answers.
type Fake struct {
	mutex    sync.Mutex
	commands []zfs.Command
	answers  []answer
}

type answer struct {
	prefix string
	output string
	err    error
}

var _ zfs.Runner = (*Fake)(nil)

// Answer prepares an output for commands that begin with prefix. The latest match is used.
func (f *Fake) Answer(prefix, output string) { f.add(answer{prefix: prefix, output: output}) }

// Fail prepares a failure of a kind for commands that begin with prefix, with the message of the program.
func (f *Fake) Fail(prefix string, kind zfs.Kind, stderr string) {
	f.add(answer{prefix: prefix, err: &zfs.Error{Kind: kind, Command: prefix, ExitCode: 1, Stderr: stderr}})
}

func (f *Fake) add(prepared answer) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.answers = append(f.answers, prepared)
}

// Run records a command and returns its answer; a command without one succeeds and prints nothing.
func (f *Fake) Run(ctx context.Context, command zfs.Command) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, &zfs.Error{Kind: zfs.Cancelled, Command: command.String(), ExitCode: -1, Err: err}
	}
	if command.Stdin != nil {
		if _, err := io.Copy(io.Discard, command.Stdin); err != nil {
			return nil, &zfs.Error{Kind: zfs.BadStream, Command: command.String(), ExitCode: 1, Err: err}
		}
	}
	found := f.record(command)
	if found.err != nil {
		return nil, found.err
	}
	if command.Stdout != nil {
		_, err := io.WriteString(command.Stdout, found.output)
		return nil, err
	}
	return []byte(found.output), nil
}

func (f *Fake) record(command zfs.Command) answer {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.commands = append(f.commands, command)
	for at := len(f.answers) - 1; at >= 0; at-- {
		if strings.HasPrefix(command.String(), f.answers[at].prefix) {
			return f.answers[at]
		}
	}
	return answer{}
}

// Commands returns the commands that were run so far, as a person would type them.
func (f *Fake) Commands() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var commands []string
	for _, command := range f.commands {
		commands = append(commands, command.String())
	}
	return commands
}

// Argv returns the programs that were run so far, with their arguments.
func (f *Fake) Argv() [][]string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var all [][]string
	for _, command := range f.commands {
		all = append(all, append([]string{command.Program}, command.Args...))
	}
	return all
}
