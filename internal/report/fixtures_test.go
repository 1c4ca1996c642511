package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

var (
	start  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	finish = start.Add(2*time.Hour + 13*time.Minute + 5*time.Second)
)

// experiment has the given number of valid runs of each variant; each variant is slower than the one before.
func experiment(repetitions int32, variants ...string) results.Experiment {
	e := results.Experiment{
		Version:   results.PhaseVersion,
		Benchmark: results.RunIdentity{Namespace: "lab", Name: "ageing-8k", UID: "6a1f"}, Experiment: "3f9c2e", Generation: 2,
		State: results.StateComplete, Seed: 4711, Order: "Interleaved", Repetitions: repetitions, NodeName: "node-a", StorageClass: "fast",
		RunnerImage: "registry.example/storagebench/runner:v0.1.0", StartedAt: &start, FinishedAt: &finish,
		Environment: map[string][]string{"kernel": {"6.12.9"}, "fio": {"3.39"}},
		Notes:       []results.Note{{Phase: "aged-scan", Text: "readLatency: 812 operations are too few for P99 (1000), P999 (10000): measure longer", Results: 2, Of: 2 * repetitions}},
	}
	for repetition := range repetitions {
		for i, variant := range variants {
			e.Runs = append(e.Runs, measured(int32(len(e.Runs)), variant, repetition+1, int64(i)))
		}
	}
	e.Variants = results.Summarise(e.Runs)
	return e
}

func measured(index int32, variant string, repetition int32, slower int64) results.RunResult {
	speed := int64(1_288_490_188) - 150_000_000*slower + 7_000_000*int64(repetition)
	name := fmt.Sprintf("ageing-8k-3f9c2e-%d-1", index)
	return results.RunResult{
		Name: name, UID: fmt.Sprintf("uid-%d", index), Index: index, Variant: variant, Repetition: repetition, Attempt: 1,
		Seed: 100 + int64(index), Valid: true,
		StartedAt: &start, FinishedAt: &finish,
		Phases: []results.RunPhase{
			{Name: "fill", Kind: results.KindFill, Outcome: results.OutcomeValid, ConfigMap: name + "-fill",
				Metrics: map[string]int64{"writeBytesPerSecond": speed / 3, "filledBytes": 17179869184}},
			{Name: "aged-scan", Kind: results.KindMeasure, Outcome: results.OutcomeValid, ConfigMap: name + "-aged-scan",
				Metrics: map[string]int64{"readBytesPerSecond": speed, "readOperationsPerSecond": speed / 131072,
					"readLatencyP99Nanoseconds": 812_000 + 90_000*slower, "readBytes": 17179869184}},
		},
	}
}

func gate(name, verdict, reason, message string) results.GateResult {
	return results.GateResult{Name: name, Verdict: verdict, Reason: reason, Message: message,
		Definition: "phase('aged-scan').readBytesPerSecond >= 0.8 * phase('fresh-scan').readBytesPerSecond || false"}
}

// spoiled turns a run into a failed attempt.
func spoiled(run results.RunResult, attempt int32, reason, message string) results.RunResult {
	run = renamed(run, attempt)
	run.Valid, run.Reason, run.Message, run.Phases = false, reason, message, run.Phases[:1]
	return run
}

// renamed turns a run into another attempt at the same repetition.
func renamed(run results.RunResult, attempt int32) results.RunResult {
	run.Name, run.Attempt, run.Phases = fmt.Sprintf("%s%d", run.Name[:len(run.Name)-1], attempt), attempt, slices.Clone(run.Phases)
	for i := range run.Phases {
		run.Phases[i].ConfigMap = run.Name + "-" + run.Phases[i].Name
	}
	return run
}

func goldenCases() map[string]results.Experiment {
	passed := experiment(6, "r8k", "r128k")
	passed.Verdict, passed.Reason, passed.Message = "Passed", "Passed", "all 2 gates hold"
	passed.Gates = []results.GateResult{gate("keeps-80-percent", "Passed", "Holds",
		"aged-scan.readBytesPerSecond = 1288490188 (6 runs), fresh-scan.readBytesPerSecond = 1508490188 (6 runs)"),
		{Name: "p99", Verdict: "Passed", Reason: "Holds", Definition: "aged-scan.readLatencyP99Nanoseconds is at most 2M"}}

	failed := experiment(6, "default")
	failed.Verdict, failed.Reason, failed.Message = "Failed", "Failed", "the only gate failed: keeps-80-percent (DoesNotHold)"
	failed.Gates = []results.GateResult{gate("keeps-80-percent", "Failed", "DoesNotHold",
		"aged-scan.readBytesPerSecond = 1288490188 (6 runs), fresh-scan.readBytesPerSecond = 1728490188 (6 runs)")}

	for i := range passed.Runs {
		passed.Runs[i].Phases[1].Metrics["diskReadOperationsPerSecond"], passed.Runs[i].Phases[1].Metrics["diskReadRequestBytes"] = 12_345,
			104_857
		passed.Runs[i].Phases[1].Metrics["diskReadsPerReadMilli"],
			passed.Runs[i].Phases[1].Metrics["freeSpaceFragmentationPartsPerMillion"] = 1255, 230_000
	}
	passed.Variants = results.Summarise(passed.Runs)

	inconclusive := experiment(2, "r8k", "r128k")
	inconclusive.Verdict, inconclusive.Reason = "Inconclusive", "Inconclusive"
	inconclusive.Message = "the only gate could not be decided: no-regression (TooFewRuns)"
	inconclusive.Gates = []results.GateResult{gate("no-regression", "Inconclusive", "TooFewRuns", "n = 2, the smallest p is 0.25")}
	return map[string]results.Experiment{
		"groups": groupsCase(),
		"passed": passed, "failed": failed, "inconclusive": inconclusive, "invalid": invalidCase(), "superseded": supersededCase(),
	}
}

func invalidCase() results.Experiment {
	e := experiment(2, "r8k", "r128k")
	e.Verdict, e.Reason, e.Message = "Invalid", "RunsInvalid",
		"3 of 4 runs have usable numbers; given up: r128k repetition 2 (attempt 2 of 2): node-a stopped answering"
	first, last := e.Runs[0], e.Runs[3]
	retried := spoiled(first, 1, "PodEvicted", "the node was low on resource: ephemeral-storage | usage 91%")
	first = renamed(first, 2)
	gone := spoiled(last, 1, "PhaseInvalid", "phase fill is Invalid")
	gone.Phases[0].Outcome, gone.Phases[0].Reason, gone.Phases[0].Message = results.OutcomeInvalid, "NoSpace",
		"write: <No space left on device>"
	e.Runs = []results.RunResult{retried, first, e.Runs[1], e.Runs[2], gone, spoiled(last, 2, "PodLost", "node-a stopped answering")}
	e.Variants = results.Summarise(e.Runs)
	e.Gates = []results.GateResult{gate("keeps-80-percent", "Inconclusive", "RunsMissing",
		"would be Passed on the existing runs: aged-scan.readBytesPerSecond = 1288490188 (1 run)")}
	e.Environment["kernel"], e.Unlike = []string{"6.12.9", "6.12.11"}, []string{"kernel"}
	return e
}

func supersededCase() results.Experiment {
	e := experiment(1, "default")
	e.State, e.Reason, e.Message, e.Repetitions = results.StateSuperseded, "Superseded", "Generation 3 replaced generation 2.", 6
	return e
}

// groupsCase has two repetitions on two nodes at the same time. The second node is slower, and began one phase late.
func groupsCase() results.Experiment {
	e := experiment(2, "default")
	alone := e.Runs
	e.Runs = nil
	for i, run := range alone {
		for index, node := range []string{"node-a", "node-b"} {
			member := measured(run.Index, run.Variant, run.Repetition, int64(index))
			member.Name, member.NodeName = run.Name+"-"+string(rune('a'+index)), node
			member.Group = &results.RunGroup{Name: run.Name, Index: int32(index), Size: 2}
			for j := range member.Phases {
				member.Phases[j].StartedAt, member.Phases[j].FinishedAt = &start, &finish
				member.Phases[j].Metrics[results.MetricStartLag] = int64(i*index*j) * int64(3500*time.Millisecond)
			}
			e.Runs = append(e.Runs, member)
		}
	}
	e.NodeName, e.Groups, e.Variants = "node-a,node-b", results.Join(e.Runs), results.Summarise(e.Runs)
	e.Verdict, e.Reason, e.Message = "Passed", "Passed", "each repetition has a valid run; there are no gates"
	return e
}
