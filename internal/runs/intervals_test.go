package runs

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// pacedDocument is the document of a workload that reads and writes at known rates for 300 s, from 5 s after the start of the phase, with a
// point for each second.
func pacedDocument(t *testing.T, began time.Time, reads, writes func(second int) int64) results.PhaseDocument {
	t.Helper()
	paced := series{Measured: []span{{0, 300_000}}}
	metrics := map[string]int64{"readBytesPerSecond": 1, "writeBytesPerSecond": 1}
	for second := range 300 {
		one := point{span: span{int64(second) * 1000, int64(second+1) * 1000}, ReadBytes: reads(second), WrittenBytes: writes(second),
			Operations: 77}
		paced.Points = append(paced.Points, one)
		metrics["readBytes"] += one.ReadBytes
		metrics["writtenBytes"] += one.WrittenBytes
	}
	raw, err := json.Marshal(map[string]any{"series": paced})
	if err != nil {
		t.Fatal(err)
	}
	from := began.Add(5 * time.Second)
	return results.PhaseDocument{Outcome: results.OutcomeValid, StartedAt: began, FinishedAt: began.Add(310 * time.Second), Raw: raw,
		Measured: []results.Interval{{From: from, To: from.Add(300 * time.Second)}}, Metrics: metrics, Environment: map[string]string{}}
}

func scrubbedFor(began time.Time, starts, took, noticed int, outcome string) *v1alpha1.PoolOperation {
	operation := &v1alpha1.PoolOperation{Spec: v1alpha1.PoolOperationSpec{Action: v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}}}
	operation.Status.Outcome = outcome
	operation.Status.StartedAt = &metav1.Time{Time: began.Add(time.Duration(starts) * time.Second)}
	operation.Status.FinishedAt = &metav1.Time{Time: began.Add(time.Duration(starts+noticed) * time.Second)}
	if took > 0 {
		operation.Status.Metrics = []v1alpha1.OperationMetric{{Name: "durationSeconds", Value: int64(took)}}
	}
	return operation
}

// withinPhase is a phase with operateAfter, so that its operation lies within the workload.
var withinPhase = v1alpha1.MeasurePhase{OperateAfter: &v1alpha1.Duration{}}

// TestKnownIntervals: the known rates before, during and after an operation are computed from the series, and the seconds in which it is
// unknown whether the operation was working count for none of them.
func TestKnownIntervals(t *testing.T) {
	began := time.Unix(1000, 0).UTC()
	const mib = 1 << 20
	// The scrub starts 105 s into the phase, which is 100 s into the measurement, and works for 80 s.
	rate := func(second int) int64 {
		switch {
		case second < 100:
			return 100 * mib
		case second < 102, second >= 179 && second < 191:
			return 1 * mib // the scrub may have been working or not
		case second < 179:
			return 40 * mib
		}
		return 90 * mib
	}
	for name, took := range map[string]int{"a known duration": 80, "an unknown one": 0, "until it was noticed": 90} {
		document := pacedDocument(t, began, rate, func(second int) int64 { return rate(second) / 2 })
		joinBeside(&document, scrubbedFor(began, 105, took, 90, v1alpha1.OutcomeSucceeded), withinPhase)
		if document.Outcome != results.OutcomeValid || len(document.Omitted) > 0 {
			t.Fatalf("%s: %s: %s %q", name, document.Outcome, document.Message, document.Omitted)
		}
		for metric, want := range map[string]int64{"before.readBytesPerSecond": 100 * mib, "during.readBytesPerSecond": 40 * mib,
			"after.readBytesPerSecond": 90 * mib, "before.writeBytesPerSecond": 50 * mib, "during.writeBytesPerSecond": 20 * mib,
			"after.writeBytesPerSecond": 45 * mib, "before.durationNanoseconds": 100e9, "after.durationNanoseconds": 109e9} {
			if got := document.Metrics[metric]; got != want {
				t.Errorf("%s: %s is %d, want %d", name, metric, got, want)
			}
		}
		if long := document.Metrics["during.durationNanoseconds"]; long < 70e9 || long > 77e9 {
			t.Errorf("%s: the operation is said to have worked for %s", name, time.Duration(long))
		}
		if _, mixed := document.Metrics["during.metadataOperationsPerSecond"]; mixed {
			t.Errorf("%s: calls are taken for operations: %v", name, document.Metrics)
		}
	}
}

// copiedFor is a copy that spent some time on preparation before it copied.
func copiedFor(began time.Time, starts, prepared int, took time.Duration) *v1alpha1.PoolOperation {
	ends := prepared + int(took.Seconds())
	operation := scrubbedFor(began, starts, ends, ends, v1alpha1.OutcomeSucceeded)
	operation.Spec.Action = v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{}}
	operation.Status.Metrics = append(operation.Status.Metrics, v1alpha1.OperationMetric{Name: "durationNanoseconds", Value: int64(took)})
	return operation
}

// TestIntervalsOfACopy: the time in which a copy prepares its work, for example counts files, belongs neither to the time before nor to the
// time during the copy.
func TestIntervalsOfACopy(t *testing.T) {
	began := time.Unix(1000, 0).UTC()
	const mib, took = 1 << 20, 80*time.Second + 900*time.Millisecond
	// It starts 100 s into the measurement, counts for 40 s, and then copies, starting at most a second later.
	rate := func(second int) int64 {
		switch {
		case second < 100:
			return 100 * mib
		case second < 140 || second == 220:
			return 1 * mib
		case second < 220:
			return 40 * mib
		}
		return 90 * mib
	}
	document := pacedDocument(t, began, rate, rate)
	joinBeside(&document, copiedFor(began, 105, 40, took), withinPhase)
	want := map[string]int64{"before.readBytesPerSecond": 100 * mib, "during.readBytesPerSecond": 40 * mib,
		"after.readBytesPerSecond": 90 * mib, "before.durationNanoseconds": 100e9, "during.durationNanoseconds": 79e9,
		"after.durationNanoseconds": 79e9, "besidePartsPerMillion": int64(took) * 1e6 / 300e9}
	for metric := range want {
		if got := document.Metrics[metric]; got != want[metric] {
			t.Errorf("%s is %d, want %d", metric, got, want[metric])
		}
	}
	if document.Operated == nil || document.Operated.Long() != took-time.Second {
		t.Errorf("it was at work in %v", document.Operated)
	}
	interrupted := copiedFor(began, 105, 40, took)
	if got := tookOf(interrupted); got != took {
		t.Errorf("it is said to have taken %s", got)
	}
	interrupted.Status.Metrics = interrupted.Status.Metrics[:1]
	if got := tookOf(interrupted); got != 0 {
		t.Errorf("interrupted, it is said to have taken %s", got)
	}
	document = pacedDocument(t, began, rate, rate)
	joinBeside(&document, interrupted, withinPhase)
	if _, told := document.Metrics["during.readBytesPerSecond"]; told || len(document.Omitted) == 0 || document.Outcome != results.OutcomeValid {
		t.Errorf("interrupted: %s %v, omitted %q", document.Outcome, document.Metrics, document.Omitted)
	}
}

// TestIntervalsRefused: an operation that does not lie within the measured time makes the phase Invalid.
func TestIntervalsRefused(t *testing.T) {
	began := time.Unix(1000, 0).UTC()
	flat := func(int) int64 { return 1 << 20 }
	never := scrubbedFor(began, 105, 0, 90, v1alpha1.OutcomeSucceeded)
	never.Status.StartedAt = nil
	untilOver := withinPhase
	untilOver.Until, untilOver.AfterOperation = v1alpha1.UntilOperationEnds, &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Minute}}
	for name, c := range map[string]struct {
		operation *v1alpha1.PoolOperation
		says      string
	}{
		"too early":     {scrubbedFor(began, 14, 80, 90, v1alpha1.OutcomeSucceeded), "began only 9s into the measurement"},
		"in time":       {scrubbedFor(began, 15, 80, 90, v1alpha1.OutcomeSucceeded), ""},
		"too late":      {scrubbedFor(began, 205, 80, 90, v1alpha1.OutcomeSucceeded), "continued for only 9s after the scrub"},
		"cut off":       {scrubbedFor(began, 105, 80, 90, v1alpha1.OutcomeCancelled), "had not finished when the workload ended"},
		"failed":        {scrubbedFor(began, 105, 80, 90, v1alpha1.OutcomeFailed), "failed"},
		"never started": {never, "never started"},
		"after the end": {scrubbedFor(began, 105, 300, 300, v1alpha1.OutcomeSucceeded), "had not finished when the workload ended"},
		"deleted":       {nil, "the workload ended before it could start"},
	} {
		document := pacedDocument(t, began, flat, flat)
		joinBeside(&document, c.operation, withinPhase)
		if (document.Outcome == results.OutcomeInvalid) != (c.says != "") || !strings.Contains(document.Message, c.says) {
			t.Errorf("%s: %s %q", name, document.Outcome, document.Message)
		}
		if _, told := document.Metrics["during.readBytesPerSecond"]; told != (c.says == "") {
			t.Errorf("%s: %v", name, document.Metrics)
		}
	}
	for starts, says := range map[int]string{153: "", 155: "continued for only 59s after the scrub, but 1m0s are needed: write a longer duration"} {
		document := pacedDocument(t, began, flat, flat)
		joinBeside(&document, scrubbedFor(began, starts, 80, 90, v1alpha1.OutcomeSucceeded), untilOver)
		if (document.Outcome == results.OutcomeInvalid) != (says != "") || !strings.Contains(document.Message, says) {
			t.Errorf("from %d on, until a minute after it: %s %q", starts, document.Outcome, document.Message)
		}
	}
	late := scrubbedFor(began, 205, 80, 90, v1alpha1.OutcomeSucceeded)
	flushed := pacedDocument(t, began, flat, flat) // its writes reached the devices a minute after the last point
	flushed.Measured[0].To = flushed.Measured[0].To.Add(time.Minute)
	flushed.Raw = bytes.Replace(flushed.Raw, []byte(`"measured":[{"FromMilliseconds":0,"ToMilliseconds":300000}]`),
		[]byte(`"measured":[{"FromMilliseconds":0,"ToMilliseconds":360000}]`), 1)
	if joinBeside(&flushed, late, withinPhase); !strings.Contains(flushed.Message, "continued for only 9s after the scrub") {
		t.Errorf("a flush after the workload counts: %s %q", flushed.Outcome, flushed.Message)
	}
	for name, spoil := range map[string]func(*results.PhaseDocument){
		"no series":     func(d *results.PhaseDocument) { d.Raw = json.RawMessage(`{}`) },
		"half of it":    func(d *results.PhaseDocument) { d.Metrics["readBytes"] *= 3 },
		"a short scrub": nil,
	} {
		document, operation := pacedDocument(t, began, flat, flat), scrubbedFor(began, 105, 80, 90, v1alpha1.OutcomeSucceeded)
		if spoil != nil {
			spoil(&document)
		} else {
			operation = scrubbedFor(began, 105, 2, 3, v1alpha1.OutcomeSucceeded)
		}
		before := maps.Clone(document.Metrics)
		joinBeside(&document, operation, withinPhase)
		if _, told := document.Metrics["during.readBytesPerSecond"]; told || len(document.Omitted) == 0 || len(before) == 0 {
			t.Errorf("%s: %v, omitted %q", name, document.Metrics, document.Omitted)
		}
	}
}

// TestTimeAfterIsThatAsked: the rate after the operation covers exactly the requested time, however late the pod learns of the end of the
// operation.
func TestTimeAfterIsThatAsked(t *testing.T) {
	began := time.Unix(1000, 0).UTC()
	rate := func(second int) int64 {
		if second < 251 { // the scrub ended after 190 s, and one minute after it is requested
			return 10 << 20
		}
		return 20 << 20
	}
	for _, until := range []v1alpha1.MeasureUntil{"", v1alpha1.UntilOperationEnds} {
		spec := withinPhase
		if spec.Until = until; until != "" {
			spec.AfterOperation = &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Minute}}
		}
		document := pacedDocument(t, began, rate, rate)
		joinBeside(&document, scrubbedFor(began, 105, 80, 90, v1alpha1.OutcomeSucceeded), spec)
		want, long := int64(10<<20), int64(60e9)
		if until == "" {
			want, long = (60*10<<20+49*20<<20+54)/109, 109e9
		}
		if got := document.Metrics["after.readBytesPerSecond"]; got != want || document.Metrics["after.durationNanoseconds"] != long {
			t.Errorf("until %q: %d in %d ns, want %d in %d", until, got, document.Metrics["after.durationNanoseconds"], want, long)
		}
	}
}
