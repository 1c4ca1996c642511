//go:build linux

// Command report measures what the end of a large experiment costs: reading the documents of its phases, judging its gates, and
// writing its results and reports. Each size has a process of its own, so that its peak memory is its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/documents"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/test/bench/machine"
)

const (
	// mostBytes is the memory that 10,000 runs may take. Their time is only reported, because other work on the machine makes it longer;
	// the goal is 10 s.
	mostBytes = 300 << 20
	// maxResultsBytes is the manager's limit.
	maxResultsBytes = 500 << 10
)

func main() {
	one := flag.Int("one", 0, "measure only this number of runs, in this process")
	flag.Parse()
	ctx := context.Background()
	var err error
	if *one > 0 {
		var row measured
		row, err = measure(ctx, *one)
		fmt.Print(row)
	} else {
		err = compare(ctx, []string{"1000", "10000"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// compare prints a table with a row for each number of runs.
func compare(ctx context.Context, sizes []string) error {
	fmt.Printf("%s\n\n", machine.Describe(ctx))
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "runs\tread documents\tgates\tresults.json\treport.md, junit.xml\ttogether\tprocessor time\tpeak memory\t")
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var broken error
	for _, size := range sizes {
		command := exec.CommandContext(ctx, program, "-one", size)
		command.Stderr = os.Stderr
		row, err := command.Output()
		_, _ = fmt.Fprint(table, string(row))
		if err != nil {
			broken = errors.Join(broken, fmt.Errorf("%s runs: %w", size, err))
		}
	}
	return errors.Join(table.Flush(), broken)
}

// measured has the costs of one experiment.
type measured struct {
	runs                       int
	read, judge, write, render time.Duration
	// processor is the time of all threads: the time on one core if nothing else runs.
	processor time.Duration
	peak      int64
}

func (m measured) together() time.Duration { return m.read + m.judge + m.write + m.render }

func (m measured) String() string {
	cells := []string{fmt.Sprint(m.runs)}
	for _, took := range []time.Duration{m.read, m.judge, m.write, m.render, m.together(), m.processor} {
		cells = append(cells, took.Round(time.Millisecond).String())
	}
	return strings.Join(append(cells, fmt.Sprintf("%d MiB", m.peak>>20)), "\t") + "\t\n"
}

// measure goes through the end of an experiment as the manager does. It fails if there is no verdict, or if a limit is exceeded.
func measure(ctx context.Context, count int) (measured, error) {
	m := measured{runs: count}
	stored, err := newStore()
	if err != nil {
		return m, err
	}
	evidence, err := newEvidence(stored.runs(count))
	if err != nil {
		return m, err
	}
	digests := map[string]string{}
	for _, run := range evidence.Runs {
		digests[run.Status.Phases[0].Result] = run.Status.Phases[0].Digest
	}
	lap, before := time.Now(), machine.ProcessorTime()
	next := func() time.Duration {
		took := time.Since(lap)
		lap = time.Now()
		return took
	}
	loaded, err := documents.Phases(ctx, stored, "bench", digests, evidence.Gates.Derived(), func() {})
	if err != nil {
		return m, err
	}
	defer loaded.Free()
	if loaded.Refused > 0 {
		return m, fmt.Errorf("%d documents were refused", loaded.Refused)
	}
	evidence.Documents = loaded.Phases
	m.read = next()
	complete := experiment.Assemble(evidence)
	m.judge = next()
	if _, _, err := complete.Encode(maxResultsBytes); err != nil {
		return m, err
	}
	m.write = next()
	rendered := report.Render(complete)
	m.render = next()
	m.processor = machine.ProcessorTime() - before
	if m.peak, err = machine.PeakBytes(); err != nil {
		return m, err
	}
	switch {
	case complete.State != results.StateComplete || complete.Verdict != "Passed" || len(complete.Runs) != count ||
		!strings.Contains(rendered.Markdown, "not-slower"):
		return m, fmt.Errorf("%d runs: %s %s: %+v: want all runs and a verdict", len(complete.Runs), complete.State, complete.Verdict, complete.Gates)
	case m.peak > mostBytes:
		err = fmt.Errorf("%d runs took %d MiB: at most %d MiB are allowed", count, m.peak>>20, mostBytes>>20)
	}
	return m, err
}

func newEvidence(runs []v1alpha1.BenchmarkRun) (experiment.Evidence, error) {
	benchmark := &v1alpha1.StorageBenchmark{}
	benchmark.Name, benchmark.Namespace, benchmark.UID = "bench", "bench", "uid"
	benchmark.Spec = v1alpha1.StorageBenchmarkSpec{
		Order: v1alpha1.OrderInterleaved, Repetitions: repetitions,
		Phases: []v1alpha1.Phase{{Name: "read", Measure: &v1alpha1.MeasurePhase{}}},
		Gates: []v1alpha1.Gate{
			{Name: "fast", Bound: &v1alpha1.BoundGate{Metric: "read.readBytesPerSecond", Min: "1B/s"}},
			{Name: "prompt", Expression: "phase('read').readLatencyP99Nanoseconds < 1e9"},
			{Name: "not-slower", Compare: &v1alpha1.CompareGate{Metric: "read.readBytesPerSecond", To: "Variant", Variant: "old", Tolerance: "5%"}},
			{Name: "tail", Compare: &v1alpha1.CompareGate{Metric: "read.readLatencyP99Nanoseconds", To: "Variant", Variant: "old", Tolerance: "20%"}},
		},
	}
	gates, err := gate.Compile(benchmark.Spec.Gates, benchmark.Spec.Phases, variants(len(runs)))
	return experiment.Evidence{Now: began, Benchmark: benchmark, Experiment: "0123abcd", Runs: runs, Gates: gates,
		Tally: experiment.Tally{Total: len(runs), Done: len(runs), Over: true}}, err
}
