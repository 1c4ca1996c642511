//go:build linux

package engine

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// newTogether is a bench with a filled volume, and a folder for the volume log. No counters are judged: other tests use the same disk.
func newTogether(t *testing.T) (b *bench, log string) {
	t.Helper()
	b = newBench(t)
	b.executor.judgeLoad = func(observe.Load) (string, string) { return "", "" }
	b.executor.judgeQuiet = func(observe.Load) string { return "" }
	b.valid(fillPhase("50%"))
	return b, filepath.Join(filepath.Dir(b.request.Path), filepath.Base(b.request.Path)+"-log")
}

// together is a phase of several workloads, with those on the volume log in a folder of its own.
func (b *bench) together(log string, given ...v1alpha1.NamedWorkload) v1alpha1.Phase {
	b.t.Helper()
	if err := os.MkdirAll(log, 0o700); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = os.RemoveAll(log) })
	phase := v1alpha1.Phase{Name: "busy", Measure: &v1alpha1.MeasurePhase{Workloads: given}}
	b.partsOf(phase, log)
	return phase
}

// partsOf puts the workloads of a phase into the request.
func (b *bench) partsOf(phase v1alpha1.Phase, log string) {
	b.request.Parts = nil
	for _, part := range workload.PartsOf(&phase) {
		one := b.request
		if one.Phase = part.Phase; part.Phase.Volume == "log" {
			one.Path = log
		}
		b.request.Parts = append(b.request.Parts, workload.PartRequest{Name: part.Name, Archives: part.Archives, Request: one})
	}
}

func dataLoad(name string, updates int32, lasting float64) v1alpha1.NamedWorkload {
	return v1alpha1.NamedWorkload{Name: v1alpha1.VolumeName(name), OLTP: &v1alpha1.OLTPWorkload{Workers: 2, UpdatePercent: updates,
		Duration: seconds(lasting)}}
}

func logLoad(name string, lasting float64) v1alpha1.NamedWorkload {
	return v1alpha1.NamedWorkload{Name: v1alpha1.VolumeName(name), Volume: "log",
		Redo: &v1alpha1.RedoWorkload{Writers: 2, Duration: seconds(lasting)}}
}

// counted returns the number of operations of a workload as fio reports it, and when the workload ended.
func counted(t *testing.T, details Details) (ended time.Time, reads, writes int64) {
	t.Helper()
	if len(details.FIO) != 1 {
		t.Fatalf("%d reports of fio", len(details.FIO))
	}
	type direction struct {
		Total int64 `json:"total_ios"`
	}
	var report struct {
		Ended int64 `json:"timestamp_ms"`
		Jobs  []struct{ Read, Write direction }
	}
	if err := json.Unmarshal(details.FIO[0], &report); err != nil || len(report.Jobs) == 0 {
		t.Fatalf("%v: %s", err, details.FIO[0])
	}
	for _, job := range report.Jobs {
		reads, writes = reads+job.Read.Total, writes+job.Write.Total
	}
	return time.UnixMilli(report.Ended), reads, writes
}

// TestTogether: two workloads on two volumes work at the same time, each has its own figures, and the time that counts is common to both.
func TestTogether(t *testing.T) {
	b, log := newTogether(t)
	phase := b.together(log, dataLoad("data", 0, 8), logLoad("redo", 8))
	phase.Measure.Workloads[0].OLTP.RampUp = seconds(1)
	document, details := b.valid(phase)
	data, redo := details.Workloads["data"], details.Workloads["redo"]
	oneEnded, reads, none := counted(t, data)
	otherEnded, noReads, writes := counted(t, redo)
	if apart := oneEnded.Sub(otherEnded).Abs(); apart > 4*time.Second { // each was at work for 8 s until then
		t.Errorf("the workloads ended %s apart by the clock of fio", apart)
	}
	for metric, want := range map[string]int64{"data.readOperations": reads, "redo.writeOperations": writes, "readOperations": reads,
		"writeOperations": writes} {
		if got := document.Metrics[metric]; got != want || want == 0 {
			t.Errorf("%s is %d, and fio counted %d", metric, got, want)
		}
	}
	if first, least := document.Metrics["nodeMemoryAvailableBytes"], document.Metrics["nodeMemoryAvailableLeastBytes"]; least <= 0 || first < least {
		t.Errorf("the node has %d bytes, and at least %d", first, least)
	}
	if none != 0 || noReads != 0 || document.Metrics["redo.readOperations"] != 0 || document.Metrics["data.writeOperations"] != 0 {
		t.Errorf("figures of one workload are in the other: %v", document.Metrics)
	}
	if of := document.Distributions; of["redo.writeLatency"].Count() == 0 || of["data.readLatency"].Count() == 0 || of["readLatency"].Count() != 0 {
		t.Errorf("distributions %v", slices.Sorted(maps.Keys(of)))
	}
	common := time.Duration(document.Metrics["durationNanoseconds"])
	if len(document.Measured) != 1 || document.Measured[0].Long() != common || common < 7*time.Second || common > 9*time.Second {
		t.Errorf("measured together for %s: %v", common, document.Measured)
	}
	for _, name := range []string{"redo.writeLatencyP50Nanoseconds", "data.readLatencyP50Nanoseconds", "data.durationNanoseconds"} {
		if document.Metrics[name] == 0 {
			t.Errorf("there is no %s: %v", name, document.Metrics)
		}
	}
	for name := range document.Metrics {
		if strings.Contains(name, "Latency") && !strings.Contains(name, ".") {
			t.Errorf("%s mixes the latencies of both", name)
		}
	}
	if len(data.JobFiles) != 2 || !strings.Contains(data.JobFiles[0], "runtime=1000ms") || len(redo.JobFiles) != 3 {
		t.Errorf("both have a ramp, and the logs are laid out before: %d and %d job files", len(data.JobFiles), len(redo.JobFiles))
	}
	if len(details.Latencies["redo.write"]) == 0 || len(redo.Samples) == 0 || data.Series == nil || redo.Series == nil {
		t.Errorf("histograms, samples or series are missing: %v", document.Omitted)
	}
	if found, _ := filepath.Glob(filepath.Join(b.request.Path, "storagebench.redo.*")); len(found) > 0 {
		t.Errorf("the logs are on the volume of the data: %v", found)
	}
}

// TestTogetherOnOneVolume: the logs are beside the data, and the counters of the devices belong to no workload.
func TestTogetherOnOneVolume(t *testing.T) {
	b, log := newTogether(t)
	redo := logLoad("redo", 8)
	redo.Volume = ""
	document, _ := b.valid(b.together(log, dataLoad("data", 20, 8), redo,
		v1alpha1.NamedWorkload{Name: "scan", Scan: &v1alpha1.RepeatedScan{}}))
	if document.Metrics["scan.readBytesPerSecond"] == 0 || document.Metrics["redo.writeOperations"] == 0 ||
		document.Metrics["data.writeOperations"] == 0 || document.Metrics["data.deviceReadBytes"] != 0 {
		t.Errorf("%v", document.Metrics)
	}
	sum := document.Metrics["scan.readBytes"] + document.Metrics["data.readBytes"]
	if got := document.Metrics["readBytes"]; got != sum {
		t.Errorf("%d bytes were read in all, and %d by each", got, sum)
	}
	if !strings.Contains(strings.Join(document.Notes, "\n"), "scan: the scan has read the data") {
		t.Errorf("%q", document.Notes)
	}
}

// TestAloneOnItsDisks: the counters of the disks of a pool belong to no workload, if others are on another dataset of that pool.
func TestAloneOnItsDisks(t *testing.T) {
	part := func(path, source string, disks ...string) workload.PartRequest {
		one := workload.PartRequest{Request: workload.Request{Path: path, Source: source}}
		for _, number := range disks {
			one.Disks = append(one.Disks, workload.Disk{Number: number})
		}
		return one
	}
	for name, c := range map[string]struct {
		one, other workload.PartRequest
		alone      bool
	}{
		"one volume":            {part("/data-a", ""), part("/data-a", ""), false},
		"two of unknown pools":  {part("/data-a", ""), part("/data-b", ""), true},
		"two pools":             {part("/data-a", "p/a", "8:0", "8:16"), part("/data-b", "q/b", "8:32"), true},
		"one pool":              {part("/data-a", "p/a"), part("/data-b", "p/b"), false},
		"a dataset and a zvol":  {part("/data-a", "p/a", "8:0"), part("/dev/storagebench-b", "", "8:16", "8:0"), false},
		"zvols of unknown ones": {part("/dev/storagebench-a", ""), part("/dev/storagebench-b", ""), true},
	} {
		third := part("/data-c", "r/c", "8:48")
		parts := []workload.PartRequest{c.one, third, c.other}
		if alone(parts, 0) != c.alone || alone(parts, 2) != c.alone || !alone(parts, 1) {
			t.Errorf("%s: %v %v %v", name, alone(parts, 0), alone(parts, 1), alone(parts, 2))
		}
	}
}

// TestNotTogether: a workload that begins late has the storage for itself at the end, so no number counts.
func TestNotTogether(t *testing.T) {
	b, log := newTogether(t)
	late := filepath.Join(t.TempDir(), "fio")
	script := "#!/bin/sh\nfor last; do :; done\n[ -f \"$last\" ] && grep -q '^runtime' \"$last\" && grep -q redo-0 \"$last\" && sleep 2\nexec fio \"$@\"\n"
	if err := os.WriteFile(late, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b.executor.FIO = late
	document := b.execute(b.together(log, dataLoad("data", 0, 3), logLoad("redo", 3)))
	if document.Outcome != results.OutcomeInvalid || document.Reason != results.ReasonNotTogether ||
		!strings.Contains(document.Message, "together for") {
		t.Errorf("%s %s: %s", document.Outcome, document.Reason, document.Message)
	}
}

// TestTogetherFails: the failure of one workload ends the others at once, and is the message of the phase.
func TestTogetherFails(t *testing.T) {
	b, log := newTogether(t)
	began := time.Now()
	scan := v1alpha1.NamedWorkload{Name: "scan", Volume: "log", Scan: &v1alpha1.RepeatedScan{}}
	b.refused(b.together(log, dataLoad("data", 0, 60), scan), ReasonNoData, "workload scan: there is no data on the volume")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the other workload went on for %s", took)
	}
	b.refused(b.together(log, dataLoad("data", 0, 2), logLoad("redo", 4)), ReasonNotPossible, "write the same duration")
}

// TestTogetherIsBounded: the details of several workloads fit into a document.
func TestTogetherIsBounded(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	noise := make([]byte, 2*maxCompressed)
	_, _ = random.Read(noise)
	report, _ := json.Marshal(noise)
	details := Details{Workloads: map[string]Details{"a": {FIO: []json.RawMessage{report}}, "b": {FIO: []json.RawMessage{report},
		Unavailable: []string{"stays"}}}}
	raw, omitted := details.encode()
	if compressedBytes(raw) > maxCompressed || len(omitted) == 0 || !strings.Contains(string(raw), "stays") {
		t.Errorf("%d bytes, omitted %q", compressedBytes(raw), omitted)
	}
	if len(details.Workloads["a"].FIO) != 1 {
		t.Error("the details themselves were changed")
	}
}

// degraded are the counters of a pool that lacks a disk.
type degraded struct{ counters }

func (degraded) PoolState() string { return "DEGRADED" }

// TestTogetherBesideAnOperation: beside the replacement of a disk, its pool may lack a disk, but no other pool may.
func TestTogetherBesideAnOperation(t *testing.T) {
	for name, c := range map[string]struct {
		operate *v1alpha1.PoolAction
		other   string
		reason  string
	}{
		"beside a replacement": {&v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{}}, "data", ""},
		"of another pool":      {&v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{}}, "log", ReasonPoolUnhealthy},
		"without an operation": {nil, "data", ReasonPoolUnhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			b, log := newTogether(t)
			log = map[string]string{"data": b.request.Path, "log": log}[c.other]
			b.executor.observe = func(target observe.Target) (counters, error) {
				made, err := observe.New(target)
				if c.other == "log" && target.Path == b.request.Path {
					return made, err
				}
				return degraded{made}, err
			}
			phase := v1alpha1.Phase{Name: "busy", Measure: &v1alpha1.MeasurePhase{Operate: c.operate,
				Workloads: []v1alpha1.NamedWorkload{dataLoad("data", 0, 2), logLoad("redo", 2)}}}
			if err := os.MkdirAll(log, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(log) })
			b.partsOf(phase, log)
			document := b.execute(phase)
			late := c.reason == "" && document.Reason == results.ReasonNotTogether // on a busy machine: it has worked on that pool
			if document.Reason != c.reason && !late {
				t.Errorf("%s %s", document.Reason, document.Message)
			}
		})
	}
}
