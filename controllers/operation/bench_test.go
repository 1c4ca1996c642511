//go:build linux

package operation

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/test/bench/machine"
)

const (
	observedSeconds = 60
	// mostPerSample limits the commands for a sample, including those of the operation's turns: about seven were counted.
	mostPerSample = 8
)

// countingRunner counts all commands: the fake node records only those that change something.
type countingRunner struct {
	zfs.Runner
	commands atomic.Int32
}

func (c *countingRunner) Run(ctx context.Context, command zfs.Command) ([]byte, error) {
	c.commands.Add(1)
	return c.Runner.Run(ctx, command)
}

// observedFor lets an operation observe a pool once a second for a minute, and returns the commands that it has run.
func observedFor(t *testing.T) (commands int, processor time.Duration) {
	t.Helper()
	w := newWorld(t, wanted("op", v1alpha1.PoolAction{
		Observe: &v1alpha1.ObserveAction{Duration: seconds(observedSeconds), Interval: seconds(1)}}))
	counted := &countingRunner{Runner: w.node}
	w.agent.ZFS = zfs.New(counted)
	before := machine.ProcessorTime()
	expect(t, w.settle("op"), "Succeeded", "Succeeded")
	return int(counted.commands.Load()), machine.ProcessorTime() - before
}

// TestObservationCommands: a sample per second costs only a few commands, but more than none.
func TestObservationCommands(t *testing.T) {
	if commands, _ := observedFor(t); commands < observedSeconds || commands > mostPerSample*observedSeconds {
		t.Errorf("%d commands in %d seconds: want 1 to %d a second", commands, observedSeconds, mostPerSample)
	}
}

// TestBenchAgent prints what an observation costs (make bench-agent), on a simulated ZFS.
func TestBenchAgent(t *testing.T) {
	if os.Getenv("STORAGEBENCH_BENCH") != "agent" {
		t.Skip("run it with 'make bench-agent'")
	}
	commands, processor := observedFor(t)
	fmt.Printf("%-52s %d\n%-52s %s\n", "observation at 1 s: commands per minute", commands,
		"  processor time per minute, with the simulated node", processor.Round(time.Microsecond))
}
