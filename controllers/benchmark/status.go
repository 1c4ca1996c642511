package benchmark

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

// The limits of the summary in the status.
const (
	maxSummary        = 128
	maxSummaryMetrics = 8
	// maxMetricName leaves room for metrics of jobs in a fio file: the name of such a job may have 64 bytes.
	maxMetricName = 128
)

// summarise computes the status from the observation and the decision only, so that an unchanged world results in an unchanged status and
// no write.
func summarise(observed *observation, decision experiment.Decision) v1alpha1.StorageBenchmarkStatus {
	benchmark := observed.Benchmark
	status := *benchmark.Status.DeepCopy()
	if status.Experiment != observed.Experiment {
		status = v1alpha1.StorageBenchmarkStatus{Conditions: status.Conditions, NodeName: status.NodeName, NodeNames: status.NodeNames}
	}
	status.ObservedGeneration = benchmark.Generation
	status.Experiment = observed.Experiment
	status.TargetDigest = observed.TargetDigest
	status.Seed = new(design.Seed(benchmark))
	status.NodeName, status.NodeNames, status.StorageClass = decision.NodeName, nil, decision.StorageClass
	if len(decision.NodeNames) > 1 {
		status.NodeNames = decision.NodeNames
	}
	if image := experiment.ImageInUse(observed.State); image != "" {
		status.RunnerImage = image
	}
	status.Progress = progress(decision)
	status.Queue = queueStatus(observed, decision)
	status.History = earlierResults(observed)
	status.Schedule, status.HoldUntil = decision.Schedule, decision.HoldUntil
	for _, run := range observed.Runs {
		if run.Spec.Experiment == observed.Experiment && (status.StartedAt == nil || run.CreationTimestamp.Before(status.StartedAt)) {
			status.StartedAt = run.CreationTimestamp.DeepCopy()
		}
	}
	status.State = stateWord(decision)
	if decision.Position == experiment.PositionFinished {
		finish(observed, decision, &status)
	} else {
		progressConditions(benchmark.Generation, decision, &status)
	}
	return status
}

// least returns a minimal status, which can always be written: it makes the object smaller, and nothing in it comes from objects of a
// tenant. Otherwise, labels that leave no room for the next status, or objects that make it invalid, would keep the old one forever, and
// with it the place in the queues.
func least(benchmark *v1alpha1.StorageBenchmark, full v1alpha1.StorageBenchmarkStatus, why string) v1alpha1.StorageBenchmarkStatus {
	status := v1alpha1.StorageBenchmarkStatus{Experiment: full.Experiment, HoldUntil: full.HoldUntil}
	if ready := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		status.Conditions = []metav1.Condition{*ready} // keeps its transition time
	}
	kstatus.Set(&status.Conditions, benchmark.Generation, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonActionFailed, why)
	return status
}

// stateWord returns a one-word summary for people.
func stateWord(decision experiment.Decision) string {
	switch decision.Position {
	case experiment.PositionQueued:
		if decision.Ahead >= experiment.PlacesShown {
			return string(decision.Position)
		}
		return fmt.Sprintf("Queued(%d)", decision.Ahead+1)
	case experiment.PositionWaiting, experiment.PositionStalled:
		return decision.Reason
	default:
		return string(decision.Position)
	}
}

func progressConditions(generation int64, decision experiment.Decision, status *v1alpha1.StorageBenchmarkStatus) {
	status.Verdict, status.FinishedAt, status.Results, status.Gates, status.Summary, status.SummaryOmitted = "", nil, nil, nil, nil, 0
	if decision.Position == experiment.PositionStalled {
		kstatus.SetStalled(&status.Conditions, generation, decision.Reason, decision.Message)
	} else {
		kstatus.SetProgressing(&status.Conditions, generation, decision.Reason, decision.Message)
	}
	kstatus.Set(&status.Conditions, generation, v1alpha1.ConditionComplete, metav1.ConditionFalse, decision.Reason, "some runs are unfinished")
	kstatus.Set(&status.Conditions, generation, v1alpha1.ConditionPassed, metav1.ConditionUnknown, decision.Reason, "there is no verdict yet")
}

// finish sets the verdict from the written results. If they were not read, the status already has it.
func finish(observed *observation, decision experiment.Decision, status *v1alpha1.StorageBenchmarkStatus) {
	generation := observed.Benchmark.Generation
	if written := observed.written; written != nil {
		status.Verdict = v1alpha1.Verdict(written.Verdict)
		if written.FinishedAt != nil {
			status.FinishedAt = &metav1.Time{Time: *written.FinishedAt}
		}
		status.Results = &v1alpha1.ResultsReference{
			Experiment: observed.Experiment, ConfigMap: naming.ResultsName(observed.Benchmark.Name, observed.Experiment),
			Verdict: written.Verdict, FinishedAt: status.FinishedAt, Fingerprint: decision.Fingerprint,
			Omitted: spelling.Shorten(strings.Join(written.Omitted, "; "), 256),
		}
		status.Gates = gateStatuses(written.Gates)
		status.Summary, status.SummaryOmitted = summary(written.Variants)
		passed := map[v1alpha1.Verdict]metav1.ConditionStatus{
			v1alpha1.VerdictPassed: metav1.ConditionTrue, v1alpha1.VerdictFailed: metav1.ConditionFalse,
		}[status.Verdict]
		passed = cmp.Or(passed, metav1.ConditionUnknown)
		reason := cmp.Or(written.Reason, v1alpha1.ReasonFinished)
		kstatus.Set(&status.Conditions, generation, v1alpha1.ConditionPassed, passed, reason, written.Message)
	}
	message := decision.Message
	if passed := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPassed); passed != nil {
		passed.ObservedGeneration = generation
		message = fmt.Sprintf("%s: %s; %s", status.Verdict, passed.Message, decision.Message)
	}
	if observed.Benchmark.Spec.GatePolicy == v1alpha1.GatesEnforce && status.Verdict != v1alpha1.VerdictPassed {
		kstatus.SetStalled(&status.Conditions, generation, v1alpha1.ReasonNotPassed, message)
	} else {
		kstatus.SetReady(&status.Conditions, generation, v1alpha1.ReasonFinished, message)
	}
	kstatus.Set(&status.Conditions, generation, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonFinished, decision.Message)
}

func gateStatuses(gates []results.GateResult) []v1alpha1.GateStatus {
	var statuses []v1alpha1.GateStatus
	for _, gate := range gates {
		statuses = append(statuses, v1alpha1.GateStatus{
			Name: v1alpha1.GateName(gate.Name), Verdict: v1alpha1.Verdict(gate.Verdict),
			Reason: gate.Reason, Message: spelling.Shorten(gate.Message, 1024), Comparisons: gateComparisons(gate.Comparisons),
		})
	}
	return statuses
}

func gateComparisons(evidence []results.Comparison) []v1alpha1.GateComparison {
	var all []v1alpha1.GateComparison
	for _, c := range evidence {
		all = append(all, v1alpha1.GateComparison{
			Variant: spelling.Shorten(c.Variant, 512), Verdict: v1alpha1.Verdict(c.Verdict), ChangePartsPerMillion: c.ChangePartsPerMillion,
			LowPartsPerMillion: c.LowPartsPerMillion, HighPartsPerMillion: c.HighPartsPerMillion,
			ConfidencePartsPerMillion:       c.ConfidencePartsPerMillion,
			WorseProbabilityPartsPerMillion: c.WorseProbabilityPartsPerMillion, WithinProbabilityPartsPerMillion: c.WithinProbabilityPartsPerMillion,
			Runs: c.Runs, BaselineRuns: c.BaselineRuns, TolerancePartsPerMillion: c.TolerancePartsPerMillion,
			NoisePartsPerMillion: c.NoisePartsPerMillion,
		})
	}
	return all
}

// summary returns the primary metrics of as many variants and phases as fit into the status, and how many were omitted.
func summary(variants []results.VariantResult) (entries []v1alpha1.PhaseSummary, omitted int32) {
	for _, variant := range variants {
		for _, phase := range variant.Phases {
			entry := v1alpha1.PhaseSummary{Variant: variant.Name, Phase: v1alpha1.PhaseName(phase.Name)}
			for _, metric := range phase.Metrics {
				if results.IsPrimary(metric.Name) && len(metric.Name) <= maxMetricName && len(entry.Metrics) < maxSummaryMetrics {
					entry.Metrics = append(entry.Metrics, v1alpha1.MetricSummary{
						Name: metric.Name, Median: metric.Median, Min: metric.Min, Max: metric.Max, Runs: metric.Runs})
				}
			}
			switch {
			case len(entry.Metrics) == 0:
			case len(entries) == maxSummary:
				omitted++
			default:
				entries = append(entries, entry)
			}
		}
	}
	return entries, omitted
}

func progress(decision experiment.Decision) *v1alpha1.ProgressStatus {
	tally := decision.Tally
	status := &v1alpha1.ProgressStatus{RunsTotal: int32(tally.Total), RunsDone: int32(tally.Done), RunsInvalid: int32(tally.Invalid)}
	if current := decision.Current; current != nil {
		status.CurrentRun, status.CurrentPhase = naming.GroupName(current), current.Status.CurrentPhase
		if tally.MeanDuration > 0 {
			remaining := tally.Total - tally.Done
			end := current.CreationTimestamp.Add(tally.MeanDuration * time.Duration(max(1, remaining)))
			status.EstimatedEnd = &metav1.Time{Time: end.Truncate(time.Second)}
		}
	}
	return status
}

// queueStatus keeps the place in the queue across restarts of the manager. Only the first benchmarks of a queue get their position, because
// it changes with every completion. Only the next one gets the holder of the node.
func queueStatus(observed *observation, decision experiment.Decision) *v1alpha1.QueueStatus {
	if !decision.InLine {
		return nil
	}
	status := &v1alpha1.QueueStatus{Since: metav1.NewMicroTime(observed.Now), Turn: observed.Turn}
	if !experiment.Joins(observed.State, decision) {
		status.Since, status.Turn = observed.Benchmark.Status.Queue.Since, observed.Benchmark.Status.Queue.Turn
	}
	status.Position = position(decision)
	for _, lease := range observed.Leases {
		if decision.Ahead == 0 && lease.Holder != string(observed.Benchmark.UID) && status.Holder == "" {
			status.Holder = lease.HolderName
		}
	}
	return status
}

// position is the place in the queue, or 0 if it is not shown exactly.
func position(decision experiment.Decision) int32 {
	if decision.Ahead < experiment.PlacesShown {
		return int32(decision.Ahead + 1)
	}
	return 0
}

func earlierResults(observed *observation) []v1alpha1.ResultsReference {
	var references []v1alpha1.ResultsReference
	for _, stored := range experiment.History(observed.State) {
		if len(references) == 100 {
			break
		}
		references = append(references, v1alpha1.ResultsReference{
			Experiment: stored.Experiment, ConfigMap: stored.ConfigMap, Verdict: stored.Verdict,
			Fingerprint: stored.Fingerprint, FinishedAt: &metav1.Time{Time: stored.StoredAt}})
	}
	return references
}
