package results

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPhaseValidate(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(*PhaseDocument)
		want  string // part of the message; empty means valid
	}{
		{"as it is", func(*PhaseDocument) {}, ""},
		{"invalid with reason", func(d *PhaseDocument) { d.Outcome, d.Reason, d.Metrics = OutcomeInvalid, "NotConverged", nil }, ""},
		{"instant", func(d *PhaseDocument) { d.FinishedAt = d.StartedAt }, ""},
		{"other version", func(d *PhaseDocument) { d.Version = "v2" }, "use the runner image of the same release"},
		{"no namespace", func(d *PhaseDocument) { d.Run.Namespace = "" }, "run.namespace"},
		{"no uid", func(d *PhaseDocument) { d.Run.UID = "" }, "run.uid"},
		{"long phase", func(d *PhaseDocument) { d.Phase = strings.Repeat("p", 300) }, "phase has 300"},
		{"unknown kind", func(d *PhaseDocument) { d.Kind = "Measure" }, `kind is "Measure"`},
		{"unknown outcome", func(d *PhaseDocument) { d.Outcome = "Passed" }, `outcome is "Passed"`},
		{"invalid without reason", func(d *PhaseDocument) { d.Outcome = OutcomeInvalid }, "without a reason"},
		{"reason in words", func(d *PhaseDocument) { d.Reason = "not converged" }, "CamelCase"},
		{"valid measure without metrics", func(d *PhaseDocument) { d.Metrics = nil }, "no metrics"},
		{"no start", func(d *PhaseDocument) { d.StartedAt = time.Time{} }, "startedAt"},
		{"backwards", func(d *PhaseDocument) { d.FinishedAt = d.StartedAt.Add(-1) }, "before startedAt"},
		{"unknown metric", func(d *PhaseDocument) { d.Metrics["iops"] = 1 }, `"iops" is not in the vocabulary`},
		{"negative metric", func(d *PhaseDocument) { d.Metrics["readBytes"] = -1 }, "readBytes is -1"},
		{"many seeds", func(d *PhaseDocument) { d.Seeds = make([]int64, maxSeeds+1) }, "seeds"},
		{"long message", func(d *PhaseDocument) { d.Message = strings.Repeat("m", maxMessageLength+1) }, "message bytes"},
		{"long value", func(d *PhaseDocument) { d.Environment["kernel"] = strings.Repeat("v", 2000) }, `"kernel"`},
		{"long note", func(d *PhaseDocument) { d.Notes = []string{strings.Repeat("n", maxNoteLength+1)} }, "note"},
		{"many notes", func(d *PhaseDocument) { d.Notes = make([]string, maxNotes+1) }, "notes"},
		{"long omission", func(d *PhaseDocument) { d.Omitted = []string{strings.Repeat("o", maxOmittedLength+1)} }, "omitted"},
		{"large environment", func(d *PhaseDocument) {
			for i := range maxEnvironmentBytes / maxEnvironmentValueLength {
				d.Environment[fmt.Sprint(i)] = strings.Repeat("v", maxEnvironmentValueLength)
			}
		}, "the environment has"},
		{"large checks and notes", func(d *PhaseDocument) {
			d.Checks = slices.Repeat([]Check{{Name: "c", Message: strings.Repeat("m", maxCheckMessageLength)}}, maxRemarkBytes/maxCheckMessageLength-8)
			d.Notes = slices.Repeat([]string{strings.Repeat("n", maxNoteLength)}, maxNotes)
		}, "checks and notes have"},
		{"many metrics", func(d *PhaseDocument) {
			for i := range maxMetrics {
				d.Metrics[fmt.Sprintf("job%d.readBytes", i)] = 1
			}
		}, "metrics: at most"},
		{"nameless check", func(d *PhaseDocument) { d.Checks = []Check{{}} }, "check"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := validPhase()
			c.spoil(&d)
			err := d.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
}

func TestPhaseValidateNamesTheVersion(t *testing.T) {
	d := validPhase()
	d.Version = "other"
	if err := d.Validate(); !errors.Is(err, ErrVersion) {
		t.Errorf("got %v, want ErrVersion", err)
	}
}
