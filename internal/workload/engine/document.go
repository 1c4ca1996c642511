//go:build linux

package engine

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	maxMessage     = 4000
	maxEnvironment = 250
	maxNotes       = 32
	maxNote        = 500
	maxChecks      = 64
	// These are below the bounds of a document: the manager adds metrics and facts that the agent has found. Notes have less than 16 KiB.
	maxMetrics          = 3072
	maxEnvironmentBytes = 60 << 10
	maxCheckBytes       = 28 << 10
	// maxCompressed bounds Details, so that the whole document stays below 256 KiB when compressed.
	maxCompressed = 208 << 10
	keptSamples   = 4000
)

// Details is the raw part of a document: what the metrics were made from.
type Details struct {
	// JobFiles that fio was given, in their order.
	JobFiles []string `json:"jobFiles,omitempty"`
	// Rounds of a fragment phase, or of a measure phase until steady state.
	Rounds []Round `json:"rounds,omitempty"`
	// Regions of a scan, in the order in which they were read.
	Regions []Region `json:"regions,omitempty"`
	// Latencies by operation, as histograms.
	Latencies map[string][]fio.Bin `json:"latencies,omitempty"`
	// Samples are latencies over time; SamplesSeen is how many there were to choose from. With a window, each is the largest latency of a
	// writer in such a window.
	Samples                  []fio.Sample `json:"samples,omitempty"`
	SamplesSeen              int64        `json:"samplesSeen,omitempty"`
	SampleWindowMilliseconds int64        `json:"sampleWindowMilliseconds,omitempty"`
	// Series is the rate over time.
	Series *Series `json:"series,omitempty"`
	// Counters of the system around the workload. Unavailable says which counters are unknown.
	Counters    json.RawMessage `json:"counters,omitempty"`
	Unavailable []string        `json:"unavailable,omitempty"`
	// Postgres has the details of a postgres workload.
	Postgres json.RawMessage `json:"postgres,omitempty"`
	// FIO are the reports of fio, one for each job file that was measured.
	FIO []json.RawMessage `json:"fio,omitempty"`
	// Workloads are the details of each of several workloads that ran together, by their names.
	Workloads map[string]Details `json:"workloads,omitempty"`
}

// Round is one pass.
type Round struct {
	Seed                 int64 `json:"seed,omitempty"`
	Operations           int64 `json:"operations"`
	Bytes                int64 `json:"bytes"`
	DurationNanoseconds  int64 `json:"durationNanoseconds"`
	ThroughputMilli      int64 `json:"throughputMilli"`
	RangePartsPerMillion int64 `json:"rangePartsPerMillion,omitempty"`
	SlopePartsPerMillion int64 `json:"slopePartsPerMillion,omitempty"`
	DriftPartsPerMillion int64 `json:"driftPartsPerMillion,omitempty"`
}

// Region is a part of the data that was read in one go.
type Region struct {
	Index       int   `json:"index"`
	Offset      int64 `json:"offset"`
	Bytes       int64 `json:"bytes"`
	Nanoseconds int64 `json:"nanoseconds"`
	// Stream that read it, from 0, if there are several.
	Stream int `json:"stream,omitempty"`
}

// softReasons are the reasons of phases whose measurements are correct, but do not answer the question that was asked. Their numbers are
// kept for inspection.
var softReasons = []string{ReasonCacheMismatch, ReasonNotConverged, ReasonClockStepped, ReasonCPUThrottled, ReasonForeignLoad,
	results.ReasonNotTogether}

// document returns everything that is known. Its times are the time of day at which the phase began, plus monotonic time.
func (s *session) document(ctx context.Context, failure error) results.PhaseDocument {
	d := results.PhaseDocument{
		Version: results.PhaseVersion, Run: s.request.Run, Phase: string(s.request.Phase.Name), Kind: s.kind,
		Outcome: results.OutcomeValid, StartedAt: s.began.day.UTC(), FinishedAt: s.began.day.Add(s.ended.elapsed - s.began.elapsed).UTC(),
		Measured: s.measured, Metrics: s.metrics, Distributions: s.distributions, Seeds: s.random.used,
	}
	if failure == nil && ctx.Err() != nil {
		failure = ctx.Err() // the context ended at the last moment
	}
	if failure == nil && s.kind == results.KindMeasure && len(s.metrics) == 0 {
		failure = invalidf(ReasonNoNumbers, "the workload ended without any number")
	}
	if failure == nil && !s.passed() {
		failure = invalidf(ReasonFailed, "a check failed: see checks")
	}
	if failure != nil {
		reason, message := classify(ctx, failure)
		d.Outcome, d.Reason, d.Message = results.OutcomeInvalid, reason, spelling.Shorten(message, maxMessage)
		if !slices.Contains(softReasons, reason) {
			d.Metrics, d.Distributions = onlyErrors(s.metrics), nil
		}
	}
	s.bound(&d)
	raw, omitted := s.details.encode()
	d.Raw, d.Omitted = raw, append(d.Omitted, omitted...)
	return d
}

// bound keeps the parts of a document within its bounds, however many disks and jobs there are.
func (s *session) bound(d *results.PhaseDocument) {
	var metrics, checks []string
	d.Environment, d.Omitted = boundEnvironment(s.environment)
	d.Metrics, metrics = boundMetrics(d.Metrics)
	d.Checks, checks = boundChecks(s.checks)
	d.Omitted = slices.Concat(d.Omitted, metrics, checks)
	d.Notes = s.notes[:min(len(s.notes), maxNotes)]
	if more := len(s.notes) - maxNotes; more > 0 {
		d.Omitted = append(d.Omitted, fmt.Sprintf("%d notes", more))
	}
}

// note adds a note for the readers of the numbers.
func (s *session) note(format string, values ...any) {
	s.notes = append(s.notes, spelling.Shorten(fmt.Sprintf(format, values...), maxNote))
}

// onlyErrors keeps only the number of I/O errors, so that no number can be mistaken for a result.
func onlyErrors(metrics map[string]int64) map[string]int64 {
	if count := metrics["ioErrors"]; count > 0 {
		return map[string]int64{"ioErrors": count}
	}
	return nil
}

// diskFact matches the keys of facts about one of several disks, also below the name of a workload.
var diskFact = regexp.MustCompile(`(^|\.)(device|partition)\.[0-9]+\.`)

// boundEnvironment leaves out facts about single disks first: there may be hundreds.
func boundEnvironment(all map[string]string) (kept map[string]string, omitted []string) {
	keys, bytes := lastOnes(all, diskFact.MatchString), 0
	kept = map[string]string{}
	for i, key := range keys {
		short, value := spelling.Shorten(key, 128), spelling.Shorten(all[key], 1024)
		if bytes += len(short) + len(value); len(kept) == maxEnvironment || bytes > maxEnvironmentBytes {
			return kept, []string{fmt.Sprintf("%d entries of the environment", len(keys)-i)}
		}
		kept[short] = value
	}
	return kept, nil
}

// boundMetrics leaves out metrics of single jobs and workloads, the last ones first.
func boundMetrics(all map[string]int64) (kept map[string]int64, omitted []string) {
	if len(all) <= maxMetrics {
		return all, nil
	}
	kept = map[string]int64{}
	for _, name := range lastOnes(all, func(name string) bool { return strings.Contains(name, ".") })[:maxMetrics] {
		kept[name] = all[name]
	}
	return kept, []string{fmt.Sprintf("%d metrics of single jobs", len(all)-maxMetrics)}
}

// lastOnes returns the sorted keys, with those for which last is true behind all others.
func lastOnes[V any](all map[string]V, last func(string) bool) []string {
	var first, behind []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if last(key) {
			behind = append(behind, key)
		} else {
			first = append(first, key)
		}
	}
	return append(first, behind...)
}

// boundChecks leaves out checks that have passed, the last ones first.
func boundChecks(all []results.Check) (kept []results.Check, omitted []string) {
	kept = slices.Clone(all)
	bytes := 0
	for _, check := range all {
		bytes += len(check.Name) + len(check.Message)
	}
	for i := len(kept) - 1; i >= 0 && (len(kept) > maxChecks || bytes > maxCheckBytes); i-- {
		if kept[i].Passed {
			bytes -= len(kept[i].Name) + len(kept[i].Message)
			kept = slices.Delete(kept, i, i+1)
		}
	}
	if more := len(all) - len(kept); more > 0 {
		omitted = []string{fmt.Sprintf("%d checks that have passed", more)}
	}
	return kept, omitted
}

// omissions are the parts that can be left out of a document, the least important first.
var omissions = []struct {
	words string
	apply func(*Details) bool
}{
	{"reports of fio, but the last", func(d *Details) bool {
		if len(d.FIO) < 2 {
			return false
		}
		d.FIO = d.FIO[len(d.FIO)-1:]
		return true
	}},
	{"all reports of fio", func(d *Details) bool { found := len(d.FIO) > 0; d.FIO = nil; return found }},
	{"job files, but the last", func(d *Details) bool {
		if len(d.JobFiles) < 2 {
			return false
		}
		d.JobFiles = d.JobFiles[len(d.JobFiles)-1:]
		return true
	}},
	{"the series over time", func(d *Details) bool { found := d.Series != nil; d.Series = nil; return found }},
	{"latency samples", func(d *Details) bool { found := len(d.Samples) > 0; d.Samples = nil; return found }},
	{"all job files", func(d *Details) bool { found := len(d.JobFiles) > 0; d.JobFiles = nil; return found }},
}

// encode returns the details as JSON. If they are too large, it leaves out the least important parts first: the numbers are in the metrics
// anyway.
func (d Details) encode() (raw json.RawMessage, omitted []string) {
	d.Workloads = maps.Clone(d.Workloads)
	for i := 0; ; i++ {
		text, err := json.Marshal(d)
		switch {
		case err != nil: // a report that is not JSON; it was parsed before, so this cannot happen
			return nil, append(omitted, "all raw output: "+spelling.Shorten(err.Error(), 200))
		case compressedBytes(text) <= maxCompressed:
			return text, omitted
		case i == len(omissions):
			return nil, append(omitted, "all raw output: it is too large")
		}
		if d.omit(omissions[i].apply) {
			omitted = append(omitted, omissions[i].words+": too large")
		}
	}
}

// omit leaves a part out of the details, and out of those of each workload. It reports whether there was such a part.
func (d *Details) omit(apply func(*Details) bool) bool {
	found := apply(d)
	for name, one := range d.Workloads {
		found = apply(&one) || found
		d.Workloads[name] = one
	}
	return found
}

func compressedBytes(text []byte) int {
	var count counter
	writer := gzip.NewWriter(&count)
	_, _ = io.Copy(writer, bytes.NewReader(text)) // a counter does not fail
	_ = writer.Close()
	return int(count)
}

type counter int

func (c *counter) Write(data []byte) (int, error) {
	*c += counter(len(data))
	return len(data), nil
}
