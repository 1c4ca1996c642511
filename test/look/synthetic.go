package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/results"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const manifest = `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: synthetic}
spec:
  seed: 4711
  phases:
  - {name: read, measure: {workload: {oltp: {workers: 16, updatePercent: 20, duration: 5m}}, operateAfter: {scrub: {}}}}
`

// synthetic has the synthetic pages by name: an experiment, and the function that makes the documents of its phases.
var synthetic = map[string]func() (results.Experiment, func(pictures.Wanted) pictures.Phase){
	"everything": func() (results.Experiment, func(pictures.Wanted) pictures.Phase) {
		return everything(plainNames), document
	},
	"hostile": func() (results.Experiment, func(pictures.Wanted) pictures.Phase) {
		return everything(hostileNames), document
	},
	"compare": func() (results.Experiment, func(pictures.Wanted) pictures.Phase) { return compared(), document },
	"nodes":   func() (results.Experiment, func(pictures.Wanted) pictures.Phase) { return onNodes(), document },
	"nothing": func() (results.Experiment, func(pictures.Wanted) pictures.Phase) {
		return results.Experiment{State: results.StateIncomplete}, document
	},
}

// names has the names that a user chooses.
type names struct {
	namespace, benchmark, gate, message, node string
	records, levels                           []string
	phase                                     func(string) string
}

var plainNames = names{namespace: "lab", benchmark: "synthetic", gate: "", node: "node-a",
	message: "synthetic figures, made to show a report: 1 of 5 gates failed: no-worse (Worse)",
	records: []string{"8k", "16k", "32k", "128k"}, levels: []string{"45%", "60%", "75%", "90%"},
	phase: func(phase string) string { return phase }}

// hostileNames are as long as allowed and wide, cannot be broken into lines, and try to be markup.
var hostileNames = names{namespace: strings.Repeat("n", 63), benchmark: strings.Repeat("MW", 31),
	gate: "<script>alert(1)</script>&\"'\u202e",
	node: strings.Repeat("node-with-a-long-name.", 11), message: strings.Repeat("W", 300) + " " + strings.Repeat("<b>synthetic</b> ", 60),
	records: []string{"8k", strings.Repeat("W", 60), "数据库数据库数据库数据库", "</svg><script>alert(2)</script>"},
	levels:  []string{"45%", strings.Repeat("m", 40), "\u202e90%", "<img src=x onerror=alert(3)>"},
	phase:   func(phase string) string { return phase + "-" + strings.Repeat("WM", 27) }}

// everything returns an experiment with a matrix of two paths, all kinds of gates, phases of all workloads, and runs that are not valid.
func everything(n names) results.Experiment {
	e := frame(n)
	for repetition := range int32(6) {
		for i, record := range n.records {
			for j, level := range n.levels {
				e.Runs = append(e.Runs, n.run(variantName(record, level), repetition, i, j, len(e.Runs)))
			}
		}
	}
	for i, reason := range []string{"PodLost", "CPUThrottled", "OperationDidNotOverlap"} {
		lost := e.Runs[i*5]
		lost.Valid, lost.Reason, lost.Message, lost.Phases = false, reason, "the figures of this attempt are in no number: "+n.message,
			lost.Phases[:1]
		e.Runs[i*5].Attempt = 2
		e.Runs = append(e.Runs, lost)
	}
	e.Variants = results.Summarise(e.Runs)
	for i := range e.Variants {
		at := i // in the order of the runs
		e.Variants[i].Matrix = map[string]string{"dataset.recordsize": n.records[at/len(n.levels)], "phases.fill.to": n.levels[at%len(n.levels)]}
	}
	e.Gates = gates(n, e.Variants)
	return e
}

func frame(n names) results.Experiment {
	finish := start.Add(9 * time.Hour)
	return results.Experiment{Version: results.PhaseVersion, Benchmark: results.RunIdentity{Namespace: n.namespace, Name: n.benchmark,
		UID: "u"},
		Experiment: "5e7f0a11", State: results.StateComplete, Verdict: "Failed", Reason: "Failed", Message: n.message, Seed: 4711,
		Order: "Interleaved", Repetitions: 6, NodeName: n.node, StorageClass: "zfs", RunnerImage: "registry.example/storagebench/runner:v1",
		StartedAt: &start, FinishedAt: &finish, Omitted: []string{"seeds of single runs"},
		Environment: map[string][]string{"kernel": {"6.12.9", "6.12.11"}, "fio": {"3.39"}, "zfs.version": {"2.3.9"}, "cpu.model": {n.node},
			"mount.options": {"rw,relatime,xattr,posixacl,casesensitive"}, "warning.governor": {"The CPU governor is powersave: " + n.message},
			"device.0.scheduler": {"mq-deadline"}, "device.0.model": {strings.Repeat("MODEL", 8)}}}
}

func variantName(record, level string) string {
	return "dataset.recordsize=" + record + ",phases.fill.to=" + level
}

// run returns a run whose figures get worse with the level, and better with larger records.
func (n names) run(variant string, repetition int32, record, level, index int) results.RunResult {
	random := rand.New(rand.NewPCG(uint64(index), 7))
	noise := func(value float64) int64 { return int64(value * math.Exp(0.03*random.NormFloat64())) }
	rate := float64(40+25*record-9*level) * (1 << 20)
	latency := 4e13 / rate
	name := fmt.Sprintf("synthetic-5e7f0a11-%03d", index)
	phase := func(of string, kind string, metrics map[string]int64) results.RunPhase {
		return results.RunPhase{Name: n.phase(of), Kind: kind, Outcome: results.OutcomeValid, ConfigMap: name + "-" + of, Metrics: metrics}
	}
	return results.RunResult{Name: name, UID: name, Index: int32(index), Variant: variant, Repetition: repetition + 1, Attempt: 1,
		Seed:     int64(index),
		NodeName: n.node, Valid: true, StartedAt: &start, FinishedAt: &start,
		Volumes: []results.RunVolume{{Name: "data", Pool: "sb", ZFSVersion: "2.3.9", Properties: map[string]string{"recordsize": "8k",
			"compression": "off", "pool.ashift": "12"}}},
		Preflight: []results.PreflightResult{{Check: "scheduler", State: "Warning", Messages: []string{"sda has the scheduler mq-deadline"}}},
		Phases: []results.RunPhase{
			phase("fill", results.KindFill, map[string]int64{"writeBytesPerSecond": noise(rate), "filledBytes": 8 << 30}),
			phase("read", results.KindMeasure, map[string]int64{"readBytesPerSecond": noise(rate), "readLatencyP50Nanoseconds": noise(latency / 8),
				"readLatencyP99Nanoseconds": noise(latency), "readLatencyMaxNanoseconds": noise(9 * latency),
				"readLatencyMeanNanoseconds": noise(latency / 6),
				"writeLatencyP99Nanoseconds": noise(3 * latency), "writeLatencyP999Nanoseconds": noise(6 * latency),
				"diskReadsPerReadMilli": noise(1300),
				"diskReadRequestBytes":  noise(90e3), "layoutScorePartsPerMillion": noise(8e5 - 1e5*float64(level)),
				"gangBlocks":                            int64(level * level * 40),
				"freeSpaceFragmentationPartsPerMillion": noise(2e5 + 1e5*float64(level)), "diskReadOperationsPerSecond": noise(rate / 9e4)}),
			phase("scan", results.KindMeasure, map[string]int64{"readBytesPerSecond": noise(4 * rate)}),
			phase("redo", results.KindMeasure, map[string]int64{"writeOperationsPerSecond": noise(rate / 8e3),
				"writeLatencyP99Nanoseconds": noise(latency)}),
			phase("tx", results.KindMeasure, map[string]int64{"transactionsPerSecond": noise(rate / 4e4),
				"transactionLatencyP99Nanoseconds": noise(latency),
				"transactionLatencyP50Nanoseconds": noise(latency / 5)}),
			phase("map", results.KindOperate, nil),
		}}
}

// gates returns gates of all kinds.
func gates(n names, variants []results.VariantResult) []results.GateResult {
	least, most := int64(20_000_000), int64(2_000_000)
	rate := results.GateMetric{Phase: n.phase("read"), Metric: "readBytesPerSecond"}
	tail := results.GateMetric{Phase: n.phase("read"), Metric: "readLatencyP99Nanoseconds"}
	scan := results.GateMetric{Phase: n.phase("scan"), Metric: "readBytesPerSecond"}
	compare := results.GateResult{Name: "no-worse" + n.gate, Verdict: "Failed", Reason: "Worse", Metrics: []results.GateMetric{rate},
		Definition: "read.readBytesPerSecond is at most 5% worse than that of " + variants[0].Name, Message: n.message}
	for i, variant := range variants[1:] {
		compare.Comparisons = append(compare.Comparisons, comparison(variant, variants[0], i))
	}
	return []results.GateResult{
		{Name: "fast" + n.gate, Verdict: "Passed", Reason: "Holds", Metrics: []results.GateMetric{rate}, AtLeast: &least,
			Definition: "read.readBytesPerSecond is at least 20M", Message: "read.readBytesPerSecond = 41.2M (96 runs), at least 20M"},
		{Name: "tail" + n.gate, Verdict: "Passed", Reason: "Holds", Metrics: []results.GateMetric{tail}, AtMost: &most,
			Definition: "read.readLatencyP99Nanoseconds is at most 2M"},
		{Name: "keeps" + n.gate, Verdict: "Inconclusive", Reason: "TooFewRuns", Metrics: []results.GateMetric{rate, scan},
			Definition: "phase('read').readBytesPerSecond >= 0.2 * phase('scan').readBytesPerSecond || false",
			Message:    "n = 2, the smallest p is 0.25"},
		{Name: "preflight" + n.gate, Verdict: "Invalid", Reason: "RunsInvalid", Message: n.message}, compare}
}

// comparison compares the medians, with an interval that gets wider; every fifth comparison has too few runs for an interval.
func comparison(variant, base results.VariantResult, at int) results.Comparison {
	median := func(of results.VariantResult) float64 {
		for _, metric := range of.Phases[1].Metrics {
			if metric.Name == "readBytesPerSecond" {
				return float64(metric.Median)
			}
		}
		return math.NaN()
	}
	change := int64(1e6 * (median(variant)/median(base) - 1))
	low, high := change-14_000-3_000*int64(at), change+12_000+2_000*int64(at)
	one := results.Comparison{Variant: variant.Name, Verdict: "Inconclusive", ChangePartsPerMillion: change,
		ConfidencePartsPerMillion:       968_750,
		WorseProbabilityPartsPerMillion: 15_625, Runs: 6, BaselineRuns: 6, TolerancePartsPerMillion: 50_000}
	if at%5 == 4 {
		one.Verdict = "Invalid"
		return one
	}
	one.LowPartsPerMillion, one.HighPartsPerMillion = &low, &high
	switch {
	case high < -50_000:
		one.Verdict = "Failed"
	case low > -50_000:
		one.Verdict = "Passed"
	}
	return one
}

// compared returns an experiment with three variants and many runs: one variant is slower than the others.
func compared() results.Experiment {
	n := plainNames
	n.message = "synthetic figures, made to show a report: the only gate failed: no-worse (Worse)"
	e := frame(n)
	for repetition := range int32(20) {
		for i, variant := range []string{"before", "after", "after-tuned"} {
			e.Runs = append(e.Runs, n.run(variant, repetition, 3, 2*i%3, len(e.Runs)))
		}
	}
	e.Variants = results.Summarise(e.Runs)
	for i := range e.Runs {
		for j := range e.Runs[i].Phases {
			delete(e.Runs[i].Phases[j].Metrics, "gangBlocks")
		}
	}
	e.Gates = gates(n, e.Variants)[4:]
	return e
}

// onNodes returns an experiment with repetitions that run on two nodes at the same time.
func onNodes() results.Experiment {
	n := plainNames
	e := frame(n)
	for repetition := range int32(3) {
		for i, node := range []string{"node-a", "node-b"} {
			n.node = node
			run := n.run("default", repetition, 2, i, len(e.Runs))
			run.Group = &results.RunGroup{Name: fmt.Sprintf("synthetic-5e7f0a11-%03d", repetition), Index: int32(i), Size: 2}
			for j := range run.Phases {
				run.Phases[j].StartedAt, run.Phases[j].FinishedAt = &start, &start
				if run.Phases[j].Metrics != nil {
					run.Phases[j].Metrics[results.MetricStartLag] = int64(i) * 3_500_000_000
				}
			}
			e.Runs = append(e.Runs, run)
		}
	}
	e.NodeName, e.Groups, e.Variants = "node-a,node-b", results.Join(e.Runs), results.Summarise(e.Runs)
	return e
}
