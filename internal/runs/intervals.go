package runs

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

const (
	// leastInterval is how long a workload must be measured before and after an operation.
	leastInterval = 10 * time.Second
	// startMargin is how long after its recorded start, which is in whole seconds, an operation may begin to work. endMargin is how late
	// its agent may notice its end.
	startMargin = 2 * time.Second
	endMargin   = 11 * time.Second
	// pointMargin exceeds the rounding error of points, whose times are in whole milliseconds.
	pointMargin = 10 * time.Millisecond
	// seriesPercent is how much of the bytes read and written must be in the series.
	seriesPercent = 90
)

// series is raw.series of a document.
type series struct {
	Points   []point `json:"points"`
	Measured []span  `json:"measured"`
}

type span struct{ FromMilliseconds, ToMilliseconds int64 }

type point struct {
	span

	ReadBytes, WrittenBytes, Operations int64
}

// measuredAfter is how long a workload must be measured after the operation beside it.
func measuredAfter(spec v1alpha1.MeasurePhase) time.Duration {
	if spec.AfterOperation == nil {
		return leastInterval
	}
	return max(leastInterval, spec.AfterOperation.Duration.Duration)
}

// surelyOver returns a time at which an operation had certainly ended. The recorded times are truncated to whole seconds.
func surelyOver(operation *v1alpha1.PoolOperation) time.Time {
	return operation.Status.FinishedAt.Add(time.Second)
}

// tellEnd tells the pod of a phase that lasts as long as the operation beside it when to end, once that is known.
func tellEnd(state State, i int) []Action {
	spec, phase := &state.Run.Spec.Phases[i], state.Phases[i]
	operation := phase.Companions[Beside]
	if !workload.EndsWithOperation(spec) || phase.EndTold || phase.Pod.Ended != nil || operation == nil ||
		operation.Status.Outcome != v1alpha1.OutcomeSucceeded || operation.Status.FinishedAt == nil {
		return nil
	}
	return []Action{{Kind: TellEnd, Phase: i, EndAt: surelyOver(operation).Add(measuredAfter(*spec.Measure))}}
}

// Intervals are the times before, during and after an operation in which its workload was measured. The gaps between them belong to none,
// because it is unknown whether the operation was working then.
func Intervals(operation *v1alpha1.PoolOperation, from, to time.Time, least time.Duration) (intervals map[string]results.Interval,
	problem string) {
	name := operate.Name(operation.Spec.Action)
	switch {
	case operation.Status.Outcome == v1alpha1.OutcomeFailed:
		return nil, fmt.Sprintf("the %s during the workload failed: %s", name, operationWords(operation))
	case operation.Status.StartedAt == nil:
		return nil, fmt.Sprintf("the %s during the workload never started: %s", name, operationWords(operation))
	case operation.Status.Outcome != v1alpha1.OutcomeSucceeded || operation.Status.FinishedAt == nil || !surelyOver(operation).Before(to):
		return nil, fmt.Sprintf("the %s had not finished when the workload ended: write a longer duration, or a shorter operation: %s", name,
			operationWords(operation))
	}
	began, after := operation.Status.StartedAt.Time, surelyOver(operation)
	switch {
	case began.Sub(from) < leastInterval:
		return nil, fmt.Sprintf("the %s began only %s into the measurement, but %s are needed: write a longer operateAfter", name,
			began.Sub(from).Round(time.Second), leastInterval)
	case to.Sub(after) < least:
		return nil, fmt.Sprintf("the measurement continued for only %s after the %s, but %s are needed: write a longer duration, or a "+
			"shorter operation",
			to.Sub(after).Truncate(time.Second), name, least)
	}
	return map[string]results.Interval{workload.Before: {From: from, To: began}, workload.During: atWork(operation),
		workload.After: {From: after, To: to}}, ""
}

// atWork returns the time in which an operation was certainly working. The recorded times are truncated to whole seconds.
func atWork(operation *v1alpha1.PoolOperation) results.Interval {
	began, ended := operation.Status.StartedAt.Time, operation.Status.FinishedAt.Time
	took, measured := operate.Measured(operation)
	if measured {
		return results.Interval{From: ended.Add(time.Second - took), To: ended}
	}
	if operation.Spec.Action.Copy != nil { // it was interrupted, or copied nothing
		return results.Interval{From: ended, To: ended}
	}
	during := results.Interval{From: began.Add(startMargin), To: ended.Add(-endMargin)}
	// A duration that reaches to the time at which the agent noticed the end is no more precise than that time. A duration that ZFS reports
	// is shorter.
	if took, known := operate.Duration(operation); known && took < ended.Sub(began) {
		during.To = began.Add(took - time.Second)
	}
	return during
}

// joinIntervals adds the rates before, during and after the operation, from the series of the workload. It returns the reason if the phase
// is Invalid.
func joinIntervals(document *results.PhaseDocument, operation *v1alpha1.PoolOperation, spec v1alpha1.MeasurePhase) (problem string) {
	times := document.Times()
	end := times[len(times)-1].To
	seen, zero := seriesOf(document, end)
	if seen != nil {
		end = seen.end(zero, end)
	}
	intervals, problem := Intervals(operation, times[0].From, end, measuredAfter(spec))
	if problem != "" {
		return problem
	}
	if during := intervals[workload.During]; during.Long() > 0 {
		document.Operated = &during
	}
	if seen == nil {
		document.Omit("the rates before, during and after the operation: there is no series over time")
		return ""
	}
	if missing := seen.missing(document); missing != "" {
		document.Omit("the rates before, during and after the operation: " + missing)
		return ""
	}
	for name, interval := range intervals {
		enough := time.Duration(math.MaxInt64)
		if name == workload.After && spec.Until == v1alpha1.UntilOperationEnds {
			enough = measuredAfter(spec) // how long the pod measures until it learns of the end says nothing about the storage
		}
		if !seen.rates(document, name, interval, zero, enough) {
			document.Omit(fmt.Sprintf("the rates %s the operation: no point of the series lies in that time", name))
		}
	}
	return ""
}

// seriesOf returns the series of a document and the time at which it begins, or nil if there is none. The last round ends with the measured
// time.
func seriesOf(document *results.PhaseDocument, end time.Time) (found *series, zero time.Time) {
	const mostValues = 1 << 20 // of all raw output: a pod may print a longer list than any honest one
	if results.LimitValues(document.Raw, mostValues) != nil {
		return nil, time.Time{}
	}
	var raw struct{ Series *series }
	if err := json.Unmarshal(document.Raw, &raw); err != nil || raw.Series == nil || len(raw.Series.Measured) == 0 {
		return nil, time.Time{}
	}
	return raw.Series, end.Add(-time.Duration(raw.Series.Measured[len(raw.Series.Measured)-1].ToMilliseconds) * time.Millisecond)
}

// end returns the time at which the workload ended. The measured time continues until its writes have reached the devices.
func (s *series) end(zero, measured time.Time) time.Time {
	if len(s.Points) == 0 {
		return measured
	}
	last := zero.Add(time.Duration(s.Points[len(s.Points)-1].ToMilliseconds)*time.Millisecond + pointMargin)
	if last.Before(measured) {
		return last
	}
	return measured
}

// missing returns a reason if the series does not account for everything that was read and written.
func (s *series) missing(document *results.PhaseDocument) string {
	var seen, done int64
	for _, point := range s.Points {
		seen += point.ReadBytes + point.WrittenBytes
	}
	if done = document.Metrics["readBytes"] + document.Metrics["writtenBytes"]; done == 0 {
		return ""
	}
	if share := float64(seen) / float64(done) * 100; share < seriesPercent || share > 200-seriesPercent {
		return fmt.Sprintf("the series over time has %.0f%% of what was read and written", share)
	}
	return ""
}

// rates adds the rates of the points that lie entirely in an interval, and stops once these points cover enough time. It returns false if
// there is no such point.
func (s *series) rates(document *results.PhaseDocument, name string, interval results.Interval, zero time.Time, enough time.Duration) bool {
	var sum point
	var long time.Duration
	for _, point := range s.Points {
		from := zero.Add(time.Duration(point.FromMilliseconds) * time.Millisecond)
		to := zero.Add(time.Duration(point.ToMilliseconds) * time.Millisecond)
		if from.Before(interval.From) || to.After(interval.To) || long >= enough {
			continue
		}
		long += to.Sub(from)
		sum.ReadBytes, sum.WrittenBytes, sum.Operations = sum.ReadBytes+point.ReadBytes, sum.WrittenBytes+point.WrittenBytes,
			sum.Operations+point.Operations
	}
	if long <= 0 {
		return false
	}
	document.Metrics[name+".durationNanoseconds"] = long.Nanoseconds()
	for metric, count := range map[string]int64{"readBytesPerSecond": sum.ReadBytes, "writeBytesPerSecond": sum.WrittenBytes,
		"metadataOperationsPerSecond": sum.Operations} {
		if _, whole := document.Metrics[metric]; whole { // only metrics that the workload as a whole has
			document.Metrics[name+"."+metric] = int64(float64(count)/long.Seconds() + 0.5)
		}
	}
	return true
}
