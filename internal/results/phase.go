package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// PhaseVersion is the version of both documents, PhaseDocument and Experiment.
const PhaseVersion = "results.storagebench.dev/v1alpha1"

// Outcome says whether the numbers of a phase can be used.
type Outcome string

// The values of Outcome.
const (
	// OutcomeValid: the phase did what was asked and its numbers can be used.
	OutcomeValid Outcome = "Valid"
	// OutcomeInvalid: it did not, and its numbers are kept only for inspection.
	OutcomeInvalid Outcome = "Invalid"
)

// The kinds of a phase, named like the members of v1alpha1.Phase.
const (
	KindFill     = "fill"
	KindFragment = "fragment"
	KindFree     = "free"
	KindMeasure  = "measure"
	KindOperate  = "operate"
)

// Bounds of a PhaseDocument. They keep the summary of a phase well inside a ConfigMap.
const (
	maxNameLength             = 253
	maxMessageLength          = 4096
	maxSeeds                  = 1024
	maxEnvironment            = 256
	maxMeasured               = 64
	maxEnvironmentKeyLength   = 128
	maxEnvironmentValueLength = 1024
	maxChecks                 = 64
	maxCheckMessageLength     = 1024
	maxOmitted                = 16
	maxOmittedLength          = 512
	maxNotes                  = 32
	maxNoteLength             = 512
	// maxMetrics is enough for the metrics of about a hundred jobs of a fio job file.
	maxMetrics = 4096
	// maxEnvironmentBytes bounds keys and values together, and maxRemarkBytes checks and notes. With 16 disks, they take half of that.
	maxEnvironmentBytes = 64 << 10
	maxRemarkBytes      = 48 << 10
)

// reasonPattern matches the reasons that Kubernetes accepts in a condition, except those with punctuation.
var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Check is the result of one check by a runner, such as that every block was written.
type Check struct {
	Name    string `json:"name"`
	Passed  bool   `json:"passed"`
	Message string `json:"message,omitempty"`
}

// EnvironmentWorkloadFile is the key of the digest of a job file or script that a phase read from a ConfigMap: the file is a part of the
// measured workload.
const EnvironmentWorkloadFile = "workload.file"

// Interval is a stretch of time by the node's clock.
type Interval struct {
	// From is its beginning.
	From time.Time `json:"from"`
	// To is its end.
	To time.Time `json:"to"`
}

// Long is the length of the interval.
func (i Interval) Long() time.Duration { return i.To.Sub(i.From) }

// PhaseDocument is the report of a runner about one executed phase.
type PhaseDocument struct {
	// Version is results.storagebench.dev/v1alpha1.
	Version string `json:"version" jsonschema:"enum=results.storagebench.dev/v1alpha1"`
	// Run that the phase belongs to.
	Run RunIdentity `json:"run"`
	// Phase by its name in the benchmark.
	Phase string `json:"phase"`
	// Kind of the phase.
	Kind string `json:"kind" jsonschema:"enum=fill,enum=fragment,enum=free,enum=measure,enum=operate"`
	// Outcome says whether the numbers can be used.
	Outcome Outcome `json:"outcome" jsonschema:"enum=Valid,enum=Invalid"`
	// Reason in one CamelCase word; always there if the outcome is Invalid.
	Reason string `json:"reason,omitempty"`
	// Message for a person.
	Message string `json:"message,omitempty"`
	// StartedAt is when the workload began.
	StartedAt time.Time `json:"startedAt"`
	// FinishedAt is when it ended.
	FinishedAt time.Time `json:"finishedAt"`
	// Measured are the times that the metrics of a measure phase come from: one, or one for each round that counts.
	Measured []Interval `json:"measured,omitempty"`
	// Operated is the time in which an operation beside the workload was certainly at work, if the operation began after the workload
	// began, and ended before the workload ended.
	Operated *Interval `json:"operated,omitempty"`
	// Metrics by name; the unit is part of the name.
	Metrics map[string]int64 `json:"metrics,omitempty"`
	// Distributions by name, of the same times as the metrics.
	Distributions map[string]Distribution `json:"distributions,omitempty"`
	// Seeds of everything random, in the order of their use.
	Seeds []int64 `json:"seeds,omitempty"`
	// Environment holds the facts that the metrics depend on: kernel, versions, effective settings.
	Environment map[string]string `json:"environment,omitempty"`
	// Checks that were made.
	Checks []Check `json:"checks,omitempty"`
	// Notes are remarks for readers of the metrics, such as why one is missing.
	Notes []string `json:"notes,omitempty"`
	// Omitted describes the parts that did not fit.
	Omitted []string `json:"omitted,omitempty"`
	// Raw is the output of the tool that measured, such as fio.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Times returns the times that the metrics come from: the whole phase, unless Measured is set.
func (d PhaseDocument) Times() []Interval {
	if len(d.Measured) > 0 {
		return d.Measured
	}
	return []Interval{{From: d.StartedAt, To: d.FinishedAt}}
}

// Omit records a part that the document lacks, if there is room.
func (d *PhaseDocument) Omit(words string) {
	if len(words) > maxOmittedLength {
		words = strings.ToValidUTF8(words[:maxOmittedLength], "")
	}
	if len(d.Omitted) < maxOmitted {
		d.Omitted = append(slices.Clip(d.Omitted), words)
	}
}

// Validate reports everything that is wrong with the document.
func (d PhaseDocument) Validate() error {
	problems := []error{d.validateVersion(), d.validateNames(), d.validateOutcome(), d.validateTimes(), d.validateMetrics(),
		d.validateDistributions(), d.validateBounds(), d.validateSizes()}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("result of phase %q of run %s/%s: %w", d.Phase, d.Run.Namespace, d.Run.Name, err)
	}
	return nil
}

func (d PhaseDocument) validateVersion() error {
	if d.Version != PhaseVersion {
		return fmt.Errorf("%w: it has version %q, this program speaks %q: use the runner image of the same release as the manager",
			ErrVersion, d.Version, PhaseVersion)
	}
	return nil
}

func (d PhaseDocument) validateNames() error {
	names := []struct{ field, value string }{
		{"run.namespace", d.Run.Namespace}, {"run.name", d.Run.Name}, {"run.uid", d.Run.UID}, {"phase", d.Phase},
	}
	for _, name := range names {
		if name.value == "" || len(name.value) > maxNameLength {
			return fmt.Errorf("%s has %d characters: give it 1 to %d", name.field, len(name.value), maxNameLength)
		}
	}
	if !slices.Contains([]string{KindFill, KindFragment, KindFree, KindMeasure, KindOperate}, d.Kind) {
		return fmt.Errorf("kind is %q: write fill, fragment, free, measure or operate", d.Kind)
	}
	return nil
}

func (d PhaseDocument) validateOutcome() error {
	switch {
	case d.Outcome != OutcomeValid && d.Outcome != OutcomeInvalid:
		return fmt.Errorf("outcome is %q: write Valid or Invalid", d.Outcome)
	case d.Outcome == OutcomeInvalid && d.Reason == "":
		return errors.New("outcome is Invalid without a reason: give one CamelCase word, such as NotConverged")
	case d.Reason != "" && !reasonPattern.MatchString(d.Reason):
		return fmt.Errorf("reason is %.80q: write one CamelCase word of at most 64 letters and digits, such as NotConverged", d.Reason)
	case d.Outcome == OutcomeValid && d.Kind == KindMeasure && len(d.Metrics) == 0:
		// Without this a broken runner would look like a good run of a benchmark without gates.
		return errors.New("outcome is Valid but there are no metrics: a measure phase without numbers is Invalid")
	}
	return nil
}

func (d PhaseDocument) validateTimes() error {
	if d.StartedAt.IsZero() || d.FinishedAt.IsZero() {
		return errors.New("startedAt or finishedAt is missing: give both")
	}
	if d.FinishedAt.Before(d.StartedAt) {
		return fmt.Errorf("finishedAt %s is before startedAt %s: the clock was set back, measure again",
			d.FinishedAt.Format(time.RFC3339), d.StartedAt.Format(time.RFC3339))
	}
	for _, interval := range d.Measured {
		if interval.To.Before(interval.From) {
			return fmt.Errorf("measured ends at %s, before it begins at %s: the clock was set back, measure again",
				interval.To.Format(time.RFC3339Nano), interval.From.Format(time.RFC3339Nano))
		}
	}
	return nil
}

func (d PhaseDocument) validateMetrics() error {
	if len(d.Metrics) > maxMetrics {
		return fmt.Errorf("there are %d metrics: at most %d fit, drop some", len(d.Metrics), maxMetrics)
	}
	for _, name := range sortedKeys(d.Metrics) {
		if _, known := LookupMetric(name); !known {
			return fmt.Errorf("metric %.80q is not in the vocabulary: use a name from results.Metrics or add it there", name)
		}
		if d.Metrics[name] < 0 {
			return fmt.Errorf("metric %s is %d: metrics are never negative, leave out what is not known", name, d.Metrics[name])
		}
	}
	return nil
}

func (d PhaseDocument) validateBounds() error {
	counts := []struct {
		field       string
		count, most int
	}{
		{"message bytes", len(d.Message), maxMessageLength}, {"seeds", len(d.Seeds), maxSeeds},
		{"measured intervals", len(d.Measured), maxMeasured},
		{"environment entries", len(d.Environment), maxEnvironment}, {"checks", len(d.Checks), maxChecks},
		{"omitted entries", len(d.Omitted), maxOmitted}, {"notes", len(d.Notes), maxNotes},
	}
	for _, c := range counts {
		if c.count > c.most {
			return fmt.Errorf("there are %d %s: at most %d fit, shorten or drop some", c.count, c.field, c.most)
		}
	}
	for _, key := range sortedKeys(d.Environment) {
		if key == "" || len(key) > maxEnvironmentKeyLength || len(d.Environment[key]) > maxEnvironmentValueLength {
			return fmt.Errorf("environment %.80q has a key of %d or a value of %d bytes: give keys 1 to %d and values at most %d",
				key, len(key), len(d.Environment[key]), maxEnvironmentKeyLength, maxEnvironmentValueLength)
		}
	}
	for _, check := range d.Checks {
		if check.Name == "" || len(check.Name) > maxNameLength || len(check.Message) > maxCheckMessageLength {
			return fmt.Errorf("check %.80q: give it a name of 1 to %d and a message of at most %d bytes", check.Name, maxNameLength,
				maxCheckMessageLength)
		}
	}
	for _, words := range d.Notes {
		if len(words) > maxNoteLength {
			return fmt.Errorf("a note has %d bytes: give it at most %d", len(words), maxNoteLength)
		}
	}
	for _, words := range d.Omitted {
		if len(words) > maxOmittedLength {
			return fmt.Errorf("an entry of omitted has %d bytes: give it at most %d", len(words), maxOmittedLength)
		}
	}
	return nil
}

// validateSizes bounds texts together: each of them may be long, but not all of them.
func (d PhaseDocument) validateSizes() error {
	environment, remarks := 0, 0
	for key, value := range d.Environment {
		environment += len(key) + len(value)
	}
	for _, check := range d.Checks {
		remarks += len(check.Name) + len(check.Message)
	}
	for _, words := range d.Notes {
		remarks += len(words)
	}
	switch {
	case environment > maxEnvironmentBytes:
		return fmt.Errorf("the environment has %d bytes: at most %d fit, shorten or drop entries", environment, maxEnvironmentBytes)
	case remarks > maxRemarkBytes:
		return fmt.Errorf("checks and notes have %d bytes together: at most %d fit, shorten or drop some", remarks, maxRemarkBytes)
	}
	return nil
}
