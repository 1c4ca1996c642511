package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// Metrics returns the metrics of a phase: the same for the same kind, name and seed, and within 1% of round numbers.
func Metrics(request workload.Request) map[string]int64 {
	noisy := func(metric string, value int64) int64 {
		hash := fnv.New64a()
		fmt.Fprintf(hash, "%s/%s/%d", metric, request.Phase.Name, request.Seed)
		return value + value*(int64(hash.Sum64()%2001)-1000)/100_000
	}
	var round map[string]int64
	switch workload.KindOf(&request.Phase) {
	case results.KindFill:
		round = map[string]int64{"writeBytesPerSecond": 200_000_000, "filledBytes": 8 << 30}
	case results.KindFragment:
		round = map[string]int64{"writeBytesPerSecond": 50_000_000, "writeOperationsPerSecond": 6_000, "rounds": 5}
	case results.KindMeasure:
		round = map[string]int64{
			"readBytesPerSecond": 100_000_000, "readOperationsPerSecond": 12_000, "readLatencyP99Nanoseconds": 900_000,
			"writeBytesPerSecond": 40_000_000, "writeOperationsPerSecond": 5_000, "writeLatencyP99Nanoseconds": 1_500_000,
			"durationNanoseconds": 60_000_000_000, "readBytes": 6_000_000_000,
		}
	}
	metrics := map[string]int64{}
	for name, value := range round {
		metrics[name] = value
		if strings.Contains(name, "PerSecond") || strings.Contains(name, "Latency") {
			metrics[name] = noisy(name, value)
		}
	}
	for _, part := range request.Parts { // each of several workloads is as fast as if it were alone
		for name, value := range round {
			metrics[part.Name+"."+name] = noisy(part.Name+"."+name, value)
		}
	}
	if request.StartAt != nil { // simulated workloads do not wait, and are never late
		metrics[results.MetricStartLag] = 0
	}
	return metrics
}

// document returns the result of a phase according to the script.
func document(request workload.Request, script Script, started, finished time.Time) results.PhaseDocument {
	if request.StartAt != nil { // the nodes of a group would wait for each other, and measure together
		finished = started
	}
	d := results.PhaseDocument{
		Version: results.PhaseVersion, Run: request.Run, Phase: string(request.Phase.Name), Kind: workload.KindOf(&request.Phase),
		Outcome: results.OutcomeValid, StartedAt: started, FinishedAt: latest(started, finished), Metrics: Metrics(request),
		Seeds:       []int64{request.Seed},
		Environment: map[string]string{"kernel": "6.12.0-sim", "runner": "sim"},
		Checks:      []results.Check{{Name: "workload-ran", Passed: true}},
		Raw:         []byte(`{"simulated":true}`),
	}
	maps.Copy(d.Metrics, script.Metrics)
	switch script.Outcome {
	case ForeignRun:
		d.Run.UID, d.Run.Name = "00000000-0000-0000-0000-000000000000", "another-run"
	case ForeignPhase:
		d.Phase = "another-" + d.Phase
	case Truncate:
		d.Raw = incompressible()
	}
	if script.Document != nil {
		script.Document(&d)
	}
	return d
}

// output returns what a container leaves behind when it ends: its whole log and its termination message.
func output(request workload.Request, script Script, started, finished time.Time) (log, message string, err error) {
	head := opening(script)
	if script.Outcome == NoResult || (script.Outcome == Fail && script.Document == nil) {
		return head, script.Message, nil
	}
	d := document(request, script, started, finished)
	var out bytes.Buffer
	receipt, err := results.Emit(&out, d)
	if err != nil {
		return "", "", fmt.Errorf("the script of phase %q makes a result that cannot be written: %w", request.Phase.Name, err)
	}
	emitted := out.String()
	switch script.Outcome {
	case WrongDigest:
		d.Message += " (a document that was never sent)"
		if receipt, err = results.Emit(io.Discard, d); err != nil {
			return "", "", err
		}
	case Truncate:
		emitted = cut(emitted)
	case LogGone:
		head, emitted = "", ""
	}
	message, err = receipt.Encode()
	return head + emitted, message, err
}

// opening returns the part of the log before the result.
func opening(script Script) string {
	lines := append([]string{"storagebench runner (simulated)", results.Progress{Percent: 50, Message: "halfway"}.Line()}, script.Log...)
	return strings.Join(lines, "\n") + "\n"
}

// cut drops the second half of the lines that were emitted.
func cut(emitted string) string {
	half := emitted[:len(emitted)/2]
	return half[:strings.LastIndex(half, "\n")+1]
}

// incompressible returns raw output so large that the document takes several lines of the log.
func incompressible() []byte {
	digest := sha256.Sum256(nil)
	var text strings.Builder
	for range 400 {
		text.WriteString(hex.EncodeToString(digest[:]))
		digest = sha256.Sum256(digest[:])
	}
	return []byte(strconv.Quote(text.String()))
}
