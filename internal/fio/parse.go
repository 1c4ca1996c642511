package fio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Report is what fio reports at its end.
type Report struct {
	Version string
	Jobs    []JobReport
	// Notes are the lines that fio wrote around the JSON.
	Notes []string
	// JSON is fio's own document.
	JSON json.RawMessage
}

// JobReport has the figures of one job, or of all jobs of a group.
type JobReport struct {
	Name  string
	Group int
	// Error is the errno that ended the job, 0 for none.
	Error int
	// Errors is the number of failed operations, where fio counts them.
	Errors      int64
	Read, Write Direction
	Sync        Latency
}

// Direction has the figures of all reads or all writes.
type Direction struct {
	Bytes, Operations   int64
	RuntimeMilliseconds int64
	Latency             Latency
}

// ErrNoReport means that there is no whole JSON document in fio's output.
var ErrNoReport = errors.New("fio wrote no report")

const (
	maxNotes      = 50
	maxNoteLength = 400
	maxReportJobs = 4096
)

type wireReport struct {
	Version *string   `json:"fio version"`
	Jobs    []wireJob `json:"jobs"`
}

type wireJob struct {
	Name    string        `json:"jobname"`
	Group   int           `json:"groupid"`
	Error   int           `json:"error"`
	Errors  int64         `json:"total_err"`
	Read    wireDirection `json:"read"`
	Write   wireDirection `json:"write"`
	Sync    wireSync      `json:"sync"`
	Unified *struct{}     `json:"mixed"`
}

type wireDirection struct {
	Bytes      int64       `json:"io_bytes"`
	Operations int64       `json:"total_ios"`
	Runtime    int64       `json:"runtime"`
	Complete   wireLatency `json:"clat_ns"`
	Total      wireLatency `json:"lat_ns"`
}

type wireSync struct {
	Operations int64       `json:"total_ios"`
	Latency    wireLatency `json:"lat_ns"`
}

type wireLatency struct {
	Min  int64            `json:"min"`
	Max  int64            `json:"max"`
	Mean float64          `json:"mean"`
	N    int64            `json:"N"`
	Bins map[string]int64 `json:"bins"`
}

// Parse reads the output of fio 3.28 and newer with --output-format=json+, regardless of lines before and after the JSON.
func Parse(output []byte) (Report, error) {
	document, notes, err := cutDocument(output)
	if err != nil {
		return Report{}, err
	}
	var wire wireReport
	if err := json.Unmarshal(document, &wire); err != nil {
		return Report{}, fmt.Errorf("%w that can be read: %w", ErrNoReport, err)
	}
	switch {
	case wire.Version == nil || !strings.HasPrefix(*wire.Version, "fio-"):
		return Report{}, fmt.Errorf("%w: the JSON names no fio version", ErrNoReport)
	case len(wire.Jobs) == 0:
		return Report{}, fmt.Errorf("%w: it contains no job: %s", ErrNoReport, strings.Join(notes, "; "))
	case len(wire.Jobs) > maxReportJobs:
		return Report{}, fmt.Errorf("fio reports %d jobs: at most %d are read, use fewer sections", len(wire.Jobs), maxReportJobs)
	}
	report := Report{Version: strings.TrimPrefix(*wire.Version, "fio-"), Notes: notes, JSON: document}
	for i := range wire.Jobs {
		job, err := wire.Jobs[i].report()
		if err != nil {
			return Report{}, fmt.Errorf("job %.80q of fio's report: %w", wire.Jobs[i].Name, err)
		}
		report.Jobs = append(report.Jobs, job)
	}
	return report, nil
}

// cutDocument finds the JSON: the first line that is just '{' begins it. Messages of fio never look like that.
func cutDocument(output []byte) (document []byte, notes []string, err error) {
	start := 0
	if !bytes.HasPrefix(output, []byte("{\n")) && !bytes.HasPrefix(output, []byte(`{"`)) {
		if start = bytes.Index(output, []byte("\n{\n")) + 1; start == 0 {
			return nil, nil, fmt.Errorf("%w: %s", ErrNoReport, strings.Join(noteLines(output), "; "))
		}
	}
	clean := replaceNaN(output[start:])
	decoder := json.NewDecoder(bytes.NewReader(clean))
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		return nil, nil, fmt.Errorf("%w, or it was cut short: %w", ErrNoReport, err)
	}
	rest := clean[decoder.InputOffset():]
	return raw, noteLines(output[:start], rest), nil
}

func noteLines(texts ...[]byte) []string {
	var notes []string
	for _, text := range texts {
		for line := range strings.Lines(string(text[:min(len(text), 64<<10)])) {
			line = strings.TrimSpace(strings.ToValidUTF8(line, "?"))
			if line != "" && len(notes) < maxNotes {
				notes = append(notes, line[:min(len(line), maxNoteLength)])
			}
		}
	}
	return notes
}

var notANumber = regexp.MustCompile(`(?m)^(\s*"[a-zA-Z0-9_ .<>=]*" : )-?(?:nan|inf)(,?)$`)

// replaceNaN replaces the NaN that old versions write for the mean of no values, to get valid JSON.
func replaceNaN(document []byte) []byte {
	if !bytes.Contains(document, []byte("nan")) && !bytes.Contains(document, []byte("inf")) {
		return document
	}
	return notANumber.ReplaceAll(document, []byte("${1}0${2}"))
}

func (w wireJob) report() (JobReport, error) {
	if w.Unified != nil {
		return JobReport{}, errors.New("it mixes reads and writes into one figure: remove unified_rw_reporting")
	}
	read, err := w.Read.direction()
	if err != nil {
		return JobReport{}, fmt.Errorf("reads: %w", err)
	}
	write, err := w.Write.direction()
	if err != nil {
		return JobReport{}, fmt.Errorf("writes: %w", err)
	}
	sync, err := w.Sync.Latency.latency()
	if err != nil {
		return JobReport{}, fmt.Errorf("syncs: %w", err)
	}
	if w.Errors < 0 {
		return JobReport{}, fmt.Errorf("total_err is %d", w.Errors)
	}
	return JobReport{Name: w.Name, Group: w.Group, Error: w.Error, Errors: w.Errors, Read: read, Write: write, Sync: sync}, nil
}

// maxCounter keeps sums over all jobs within an int64.
const maxCounter = math.MaxInt64 / maxReportJobs

func (w wireDirection) direction() (Direction, error) {
	for name, value := range map[string]int64{"io_bytes": w.Bytes, "total_ios": w.Operations, "runtime": w.Runtime} {
		if value < 0 || value > maxCounter {
			return Direction{}, fmt.Errorf("%s is %d", name, value)
		}
	}
	chosen := w.Total
	if len(w.Total.Bins) == 0 && len(w.Complete.Bins) > 0 { // a report made without lat_percentiles
		chosen = w.Complete
	}
	latency, err := chosen.latency()
	return Direction{Bytes: w.Bytes, Operations: w.Operations, RuntimeMilliseconds: w.Runtime, Latency: latency}, err
}

func (w wireLatency) latency() (Latency, error) {
	if w.N == 0 {
		return Latency{}, nil
	}
	switch {
	case w.N < 0 || w.N > maxCounter:
		return Latency{}, fmt.Errorf("there are %d latencies", w.N)
	case w.Min < 0 || w.Max < w.Min:
		return Latency{}, fmt.Errorf("the latencies reach from %d to %d ns", w.Min, w.Max)
	case !(w.Mean >= 0 && w.Mean <= math.MaxInt64):
		return Latency{}, fmt.Errorf("the mean latency is %g ns", w.Mean)
	}
	latency := Latency{Count: w.N, Min: w.Min, Max: w.Max, totals: w.Mean * float64(w.N), bins: make(map[int64]int64, len(w.Bins))}
	for text, count := range w.Bins {
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil || value < 0 || count < 0 || count > maxCounter {
			return Latency{}, fmt.Errorf("the bin %.40q has %d latencies", text, count)
		}
		latency.bins[value] += count
	}
	latency.openLast()
	return latency, nil
}
