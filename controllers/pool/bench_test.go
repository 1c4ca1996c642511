//go:build linux

package pool

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/bench/machine"
)

const (
	benchPools = 50
	// benchDatasets of each pool: 500 on the node.
	benchDatasets = 10
	// mostIdleCommands is the limit for one turn of an idle pool: its list, status, properties and datasets. More commands would disturb
	// measurements on the node.
	mostIdleCommands = 10
)

// crowded is a node with many pools, all of them Ready.
func crowded(t *testing.T, count int) (w *world, names []string) {
	t.Helper()
	w = newWorld(t)
	for i := range count {
		name := fmt.Sprintf("bench%02d", i)
		pool := onDisks(name, v1alpha1.DevicePath(fmt.Sprintf("/dev/disk/by-id/%02d-a", i)), v1alpha1.DevicePath(fmt.Sprintf("/dev/disk/by-id/%02d-b", i)))
		for dataset := range benchDatasets - 1 {
			pool.Spec.Datasets = append(pool.Spec.Datasets, v1alpha1.PoolDataset{Path: v1alpha1.DatasetPath(fmt.Sprintf("d%d", dataset))})
		}
		if err := w.client.Create(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
		w.expectReady(w.settle(name), v1alpha1.ReasonPoolReady)
	}
	return w, names
}

// look is one turn of each pool, as happens every minute on an idle node.
func (w *world) look(names []string) {
	w.t.Helper()
	for _, name := range names {
		if result, err := w.turn(name); err != nil || result.RequeueAfter < time.Second {
			w.t.Fatalf("%s is looked at again after %s: %v", name, result.RequeueAfter, err)
		}
	}
}

// TestIdleCommands: what a pool costs while nothing happens does not grow with the number of pools or datasets, and changes nothing.
func TestIdleCommands(t *testing.T) {
	var each []int
	for _, count := range []int{1, 5} {
		w, names := crowded(t, count)
		w.node.all, w.node.commands = nil, nil
		w.look(names)
		if len(w.node.commands) > 0 || len(w.node.all) == 0 || len(w.node.all) > mostIdleCommands*count {
			t.Errorf("%d pools: %d commands, and these change something: %v; want at most %d for each pool, and at least one:\n%s", count,
				len(w.node.all), w.node.commands, mostIdleCommands, strings.Join(w.node.all, "\n"))
		}
		each = append(each, len(w.node.all)/count)
	}
	if each[0] != each[1] {
		t.Errorf("commands for each pool: %d of 1 pool, %d of 5", each[0], each[1])
	}
}

// TestBenchAgent prints what 50 pools cost the agent (make bench-agent). ZFS is simulated: the commands are counted, and their own time is
// not in the figures.
func TestBenchAgent(t *testing.T) {
	if os.Getenv("STORAGEBENCH_BENCH") != "agent" {
		t.Skip("run it with 'make bench-agent'")
	}
	w, names := crowded(t, benchPools)
	w.node.all, w.node.commands = nil, nil
	const minutes = 10
	processor, began := machine.ProcessorTime(), time.Now()
	for range minutes {
		w.look(names)
	}
	took, used := time.Since(began), machine.ProcessorTime()-processor
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Printf("%s\nsimulated ZFS: %d pools, %d datasets, %d idle minutes\n\n", machine.Describe(t.Context()), benchPools,
		benchPools*benchDatasets, minutes)
	programs := map[string]int{}
	for _, command := range w.node.all {
		programs[strings.Join(strings.Fields(command)[:2], " ")]++
	}
	row := func(what string, value any) { fmt.Printf("%-52s %v\n", what, value) }
	row("commands of zpool, zfs and others per minute", len(w.node.all)/minutes)
	for _, program := range slices.Sorted(maps.Keys(programs)) {
		row("  "+program, programs[program]/minutes)
	}
	row("processor time per idle minute", (used / minutes).Round(time.Microsecond))
	row("  as a share of one core", fmt.Sprintf("%.3f%%", 100*used.Seconds()/(60*minutes)))
	row("heap of the agent, with the simulated node and API", fmt.Sprintf("%.1f MiB", float64(memory.HeapAlloc)/(1<<20)))
	quiet := took / (minutes * benchPools)
	row("mean turn of a pool", quiet.Round(time.Microsecond))

	node, _ := w.hanging()
	defer node.silence("/dev/disk/by-id/00-a")()
	// Idle turns open no disk. A turn that destroys a pool first checks that the disks respond.
	w.delete(onDisks(names[0]))
	var slowest time.Duration
	for _, name := range names {
		began := time.Now()
		if _, err := w.turn(name); err != nil {
			t.Log(name, err)
		}
		if took := time.Since(began); name != names[0] {
			slowest = max(slowest, took)
		} else {
			row("turn of the pool whose disk is silent (patience 20ms)", took.Round(time.Microsecond))
		}
	}
	if !node.waiting() {
		t.Error("the silent disk was not asked")
	}
	row("slowest turn of another pool meanwhile", slowest.Round(time.Microsecond))
	if slowest > 10*time.Second {
		t.Errorf("another pool waited %s for the silent disk", slowest)
	}
}
