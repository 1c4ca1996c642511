package runs

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// Storable is the result of a phase as it is stored.
type Storable struct {
	Document *results.PhaseDocument
	Text     []byte
	Digest   string
	// Observed is the observation to store with it. Nil if there is none.
	Observed *v1alpha1.PoolOperation
	// StartLagMilliseconds is how late the workload of a group's run started. Nil for a single run.
	StartLagMilliseconds *int64
}

// Joined returns the received document of a phase in the form in which it is stored: with the results of its companions, if it has any.
func Joined(state State, i int) (Storable, error) {
	phase := state.Phases[i]
	storable := Storable{Document: phase.Received, Text: phase.ReceivedBytes, Digest: phase.ReceivedDigest}
	if wanted := Companions(state.Run, state.Run.Spec.Phases[i]); len(wanted) > 0 {
		whole := *phase.Received
		storable.Document, storable.Observed = &whole, join(&whole, state.Run, state.Run.Spec.Phases[i], phase.Companions, wanted)
		text, err := json.Marshal(whole)
		if err != nil {
			return Storable{}, err
		}
		storable.Text, storable.Digest = text, packing.Digest(text)
	}
	if lag, known := storable.Document.Metrics[results.MetricStartLag]; known {
		storable.StartLagMilliseconds = new(lag / int64(time.Millisecond))
	}
	return storable, nil
}

// join adds the results of the companions to the result of a phase, and returns the observation to store with it: the one of the phase's
// own pool.
func join(document *results.PhaseDocument, run *v1alpha1.BenchmarkRun, spec v1alpha1.Phase,
	companions map[Companion]*v1alpha1.PoolOperation, wanted []Companion) (observed *v1alpha1.PoolOperation) {
	document.Metrics, document.Environment = maps.Clone(document.Metrics), maps.Clone(document.Environment)
	if document.Metrics == nil {
		document.Metrics = map[string]int64{}
	}
	if document.Environment == nil {
		document.Environment = map[string]string{}
	}
	for _, companion := range wanted {
		operation := companions[companion]
		if companion == Beside {
			joinBeside(document, operation, *spec.Measure)
			if operation != nil && document.Outcome == results.OutcomeValid && agentWasAway(companions, operation) {
				document.Outcome, document.Reason = results.OutcomeInvalid, v1alpha1.ReasonAgentRestarted
				document.Message = fmt.Sprintf("the agent of the node was restarted during the phase, so it is not known when the %s ended",
					operate.Name(operation.Spec.Action))
			}
			continue
		}
		if companion == Emptying {
			document.Environment["emptied"] = "by export and import of the pool"
			continue
		}
		missing := joinObservation(document, operation, workloadsOn(run, spec, companion), slices.Contains(wanted, Beside))
		switch other, _ := companion.Observes(); {
		case missing != "" && other != "":
			document.Omit(fmt.Sprintf("disk metrics of the pool of volume %s: %s", other, missing))
		case missing != "":
			document.Omit("disk metrics of the pool: " + missing)
		case other == "":
			observed = operation
		}
	}
	return observed
}

// workloadsOn returns the names of the workloads on the pool that a companion observes: workloads that run together, or a write-ahead log
// on another volume. The empty name stands for the phase itself.
func workloadsOn(run *v1alpha1.BenchmarkRun, spec v1alpha1.Phase, companion Companion) (names []string) {
	if companion == Observation && len(workload.PartsOf(&spec)) == 0 {
		names = append(names, "")
	}
	for _, part := range workload.Named(&spec) {
		if ObservationOf(run, spec, part.Phase.Volume) == companion {
			names = append(names, part.Name)
		}
	}
	return names
}

// joinObservation adds the metrics of a pool, or returns the reason why there are none. The metrics are prefixed with the names of the
// workloads on that pool. If there are several, each gets the metrics for the work of the disks for all of them.
func joinObservation(document *results.PhaseDocument, operation *v1alpha1.PoolOperation, workloads []string,
	beside bool) (missing string) {
	switch {
	case operation == nil:
		return "its PoolOperation was deleted"
	case operation.Status.Outcome == "":
		return "its agent did not finish the observation in time"
	case len(operation.Status.Data) == 0:
		ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
		return ptr.Deref(ready, metav1.Condition{Message: "its agent reported nothing"}).Message
	}
	series, err := poolseries.Unpack(operation.Status.Data, operation.Status.DataDigest)
	if err != nil {
		return err.Error()
	}
	for _, missing := range slices.Concat(series.Missing, series.Omitted) {
		document.Omit(missing)
	}
	if document.Outcome != results.OutcomeValid {
		return ""
	}
	metrics := diskMetrics(series, caused(*document, workloads), beside)
	if _, known := metrics["diskReadOperationsPerSecond"]; !known {
		document.Omit("rates of the disks: too few samples within the measured time")
	}
	joinBytes(metrics, series, document, workloads, beside)
	if gang, counted := metrics[metricGang]; counted { // counted for all pools of the node, so not for one of several workloads
		document.Metrics[metricGang] = max(document.Metrics[metricGang], gang)
		delete(metrics, metricGang)
	}
	if foreign := foreignWork(series); foreign != "" && !beside {
		document.Outcome, document.Reason, document.Message = results.OutcomeInvalid, results.ReasonForeignLoad, foreign
	}
	for _, name := range workloads {
		prefix := strings.TrimPrefix(name+".", ".")
		document.Distributions = withRequestSizes(document.Distributions, series, prefix)
		for metric, value := range metrics {
			document.Metrics[prefix+metric] = value
		}
	}
	return ""
}

// caused returns the document as if only the given workloads had run, at their own rates, in the time in which all workloads ran together.
func caused(document results.PhaseDocument, workloads []string) results.PhaseDocument {
	if slices.Contains(workloads, "") {
		return document
	}
	var common time.Duration
	for _, interval := range document.Times() {
		common += interval.Long()
	}
	metrics := map[string]int64{}
	for _, name := range workloads {
		lasted := time.Duration(document.Metrics[name+".durationNanoseconds"])
		for _, count := range []string{"readOperations", "writeOperations", "readBytes", "writtenBytes"} {
			metrics[count] += int64(math.Round(perSecond(document.Metrics[name+"."+count], lasted) * common.Seconds()))
		}
	}
	document.Metrics = metrics
	return document
}

// agentWasAway reports whether the agent was restarted during an operation whose end it only notices later. An operation that measures its
// own work ends with its agent.
func agentWasAway(companions map[Companion]*v1alpha1.PoolOperation, operation *v1alpha1.PoolOperation) bool {
	if _, measured := operate.Measured(operation); measured {
		return false
	}
	for companion, observation := range companions {
		if _, observes := companion.Observes(); !observes || observation == nil {
			continue
		}
		ready := meta.FindStatusCondition(observation.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.Reason == v1alpha1.ReasonAgentRestarted {
			return true
		}
	}
	return false
}

// perCopied marks the metrics for the work of the disks per copied byte. They are left out beside a workload, because the disks also work
// for the workload.
const perCopied = "PerCopied"

// joinBeside invalidates the result if the requested operation did not run during the workload: all the time, or within it if operateAfter
// is set. It adds the metrics of the operation.
func joinBeside(document *results.PhaseDocument, operation *v1alpha1.PoolOperation, spec v1alpha1.MeasurePhase) {
	invalid := func(message string) {
		if document.Outcome == results.OutcomeValid {
			document.Outcome, document.Reason, document.Message = results.OutcomeInvalid, v1alpha1.ReasonOperationDidNotOverlap, message
		}
	}
	if operation == nil {
		invalid("the operation during the workload was deleted, or the workload ended before it could start")
		return
	}
	times := document.Times()
	share, problem := BesideShare(operation, times[0].From, times[len(times)-1].To)
	if spec.OperateAfter != nil {
		problem = joinIntervals(document, operation, spec)
	}
	if problem != "" {
		invalid(problem)
	}
	document.Environment["beside"] = operate.Name(operation.Spec.Action)
	document.Environment["beside.outcome"] = operation.Status.Outcome
	if operate.Continuous(&operation.Spec.Action) {
		document.Metrics["besidePartsPerMillion"] = share
	}
	for name, value := range operationMetrics(operation.Status.Metrics) {
		if _, taken := document.Metrics[name]; !taken && name != operate.MetricDurationNanoseconds && !strings.Contains(name, perCopied) {
			document.Metrics[name] = value
		}
	}
}
