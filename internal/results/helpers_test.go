package results

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"
)

var testStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// validPhase returns a valid document. Each test case breaks one thing in it.
func validPhase() PhaseDocument {
	return PhaseDocument{
		Version: PhaseVersion,
		Run:     RunIdentity{Namespace: "lab", Name: "ageing-8k-1", UID: "0d9c"},
		Phase:   "aged-scan", Kind: KindMeasure, Outcome: OutcomeValid,
		StartedAt: testStart, FinishedAt: testStart.Add(5 * time.Minute),
		Metrics:     map[string]int64{"readBytesPerSecond": 1 << 30, "readLatencyP99Nanoseconds": 812345},
		Seeds:       []int64{7, 11},
		Environment: map[string]string{"kernel": "6.12.9", "fio": "3.39"},
		Checks:      []Check{{Name: "coverage", Passed: true}},
		Raw:         json.RawMessage(`{"jobs":[1,2,3]}`),
	}
}

// noise returns JSON that hardly compresses.
func noise(size int) json.RawMessage {
	random := make([]byte, size/2+1)
	rand.NewChaCha8([32]byte{1}).Read(random)
	return json.RawMessage(`"` + hex.EncodeToString(random)[:size] + `"`)
}

func mustEmit(t testing.TB, d PhaseDocument) (string, Receipt) {
	t.Helper()
	var log bytes.Buffer
	receipt, err := Emit(&log, d)
	if err != nil {
		t.Fatalf("Emit: %v", err)
	}
	return log.String(), receipt
}
