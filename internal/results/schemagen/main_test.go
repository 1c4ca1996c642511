package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	root    = "../../.."
	checked = root + "/docs/schemas/"
)

func TestSchemasAreUpToDate(t *testing.T) {
	schemas, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range schemas {
		got, err := os.ReadFile(filepath.Join(checked, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date, run 'go run ./internal/results/schemagen docs/schemas' (-want +got):\n%s", name, diff)
		}
	}
}

func compile(t *testing.T, name string) *validator.Schema {
	t.Helper()
	compiler := validator.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(checked + name)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)

func phaseText(t *testing.T) string {
	t.Helper()
	var log bytes.Buffer
	receipt, err := results.Emit(&log, results.PhaseDocument{
		Run: results.RunIdentity{Namespace: "lab", Name: "r", UID: "u"}, Phase: "scan", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
		StartedAt: start, FinishedAt: start.Add(time.Minute), Metrics: map[string]int64{"readBytesPerSecond": 12345},
		Seeds: []int64{1}, Environment: map[string]string{"kernel": "6.12"}, Checks: []results.Check{{Name: "coverage", Passed: true}},
		Raw: json.RawMessage(`{"fio version":"fio-3.39"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, document, err := results.Collect(io.Reader(&log), receipt)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

func experimentText(t *testing.T) string {
	t.Helper()
	e := results.Experiment{
		Benchmark: results.RunIdentity{Namespace: "lab", Name: "b", UID: "u"}, Experiment: "abc", Generation: 1, State: results.StateComplete,
		Verdict: "Passed", StartedAt: &start, Gates: []results.GateResult{{Name: "g", Verdict: "Passed"}},
		Environment: map[string][]string{"kernel": {"6.12"}},
		Runs: []results.RunResult{{Name: "r", UID: "u", Variant: "default", Repetition: 1, Attempt: 1, Valid: true, Phases: []results.RunPhase{{
			Name: "scan", Kind: results.KindMeasure, Outcome: results.OutcomeValid, Metrics: map[string]int64{"readBytesPerSecond": 12345},
		}}}},
	}
	e.Variants = results.Summarise(e.Runs)
	text, _, err := e.Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// acceptedTexts returns a baseline and a calibration of four runs. The calibration declares all variants to be the same.
func acceptedTexts(t *testing.T) (baseline, calibration string) {
	t.Helper()
	e := results.Experiment{
		Version: results.PhaseVersion, Benchmark: results.RunIdentity{Namespace: "lab", Name: "b"}, Experiment: "abc",
		State:   results.StateComplete,
		Verdict: "Passed", Environment: map[string][]string{"kernel": {"6.12"}}, FinishedAt: &start,
	}
	for i := range int32(4) {
		e.Runs = append(e.Runs, results.RunResult{Variant: "default", Index: i, Repetition: i + 1, Valid: true, Phases: []results.RunPhase{{
			Name: "scan", Kind: results.KindMeasure, Outcome: results.OutcomeValid, Metrics: map[string]int64{"readBytesPerSecond": 12345,
				"ioErrors": 0}}}})
	}
	options := results.AcceptOptions{AcceptedAt: start, Note: "why"}
	b, _, err := results.MakeBaseline(e, options)
	if err != nil {
		t.Fatal(err)
	}
	options.SameVariants = true
	c, _, err := results.MakeCalibration(e, options)
	if err != nil {
		t.Fatal(err)
	}
	ofBaseline, baselineErr := b.Encode()
	ofCalibration, calibrationErr := c.Encode()
	if err := errors.Join(baselineErr, calibrationErr); err != nil {
		t.Fatal(err)
	}
	return string(ofBaseline), string(ofCalibration)
}

func TestDocumentsFollowTheirSchemas(t *testing.T) {
	phase, experiment := phaseText(t), experimentText(t)
	baseline, calibration := acceptedTexts(t)
	cases := []struct {
		name, schema, document string
		old, replacement       string
		valid                  bool
	}{
		{"phase", "phase.schema.json", phase, "", "", true},
		{"phase with a float", "phase.schema.json", phase, "12345", "123.5", false},
		{"phase with an unknown field", "phase.schema.json", phase, `"phase":`, `"fase":1,"phase":`, false},
		{"phase of another version", "phase.schema.json", phase, "v1alpha1", "v9", false},
		{"phase of unknown outcome", "phase.schema.json", phase, `"Valid"`, `"Good"`, false},
		{"phase without a time", "phase.schema.json", phase, "2026-03-01T", "yesterday ", false},
		{"experiment", "results.schema.json", experiment, "", "", true},
		{"experiment without a verdict", "results.schema.json", experiment, `"verdict": "Passed",`, "", false},
		{"experiment with a float", "results.schema.json", experiment, `"median": 12345`, `"median": 123.5`, false},
		{"experiment with an unknown field", "results.schema.json", experiment, `"state":`, `"status": 1, "state":`, false},
		{"baseline", "baseline.schema.json", baseline, "", "", true},
		{"baseline of another version", "baseline.schema.json", baseline, "v1alpha1", "v9", false},
		{"baseline without a time", "baseline.schema.json", baseline, `"acceptedAt": "2026-03-01T`, `"acceptedAt": "yesterday `, false},
		{"baseline without values", "baseline.schema.json", baseline, `"values"`, `"value"`, false},
		{"calibration", "baseline.schema.json", calibration, "", "", true},
		{"calibration with a float", "baseline.schema.json", calibration, `12345`, `123.5`, false},
		{"calibration with an unknown field", "baseline.schema.json", calibration, `"sameVariants":`, `"floors": [], "sameVariants":`, false},
		{"experiment in an unknown state", "results.schema.json", experiment, `"Complete"`, `"Done"`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := c.document
			if c.old != "" {
				text = strings.Replace(text, c.old, c.replacement, 1)
			}
			if !c.valid && text == c.document {
				t.Fatalf("%q is not in the document", c.old)
			}
			value, err := validator.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := compile(t, c.schema).Validate(value); (err == nil) != c.valid {
				t.Errorf("validation says %v, want valid = %t", err, c.valid)
			}
		})
	}
}

// TestExamplesInTheDocumentation: examples that users copy must follow the schemas.
func TestExamplesInTheDocumentation(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/reference/results.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```json\n")[1:]
	schemas := []string{"results.schema.json", "phase.schema.json"}
	if len(blocks) != len(schemas) {
		t.Fatalf("docs/reference/results.md has %d JSON examples, want %d", len(blocks), len(schemas))
	}
	for i, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		value, err := validator.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatalf("example %d: %v", i+1, err)
		}
		if err := compile(t, schemas[i]).Validate(value); err != nil {
			t.Errorf("example %d: %v", i+1, err)
		}
	}
}
