package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// acceptCommand is the command that creates a baseline.
const acceptCommand = "kubectl storagebench baseline accept"

// DecodeBaseline reads a baseline from the data of a ConfigMap, strictly: users edit it in Git, and a mistyped field would otherwise be
// silently ignored.
func DecodeBaseline(data map[string]string) (Baseline, error) {
	baseline, err := readBaseline(data)
	if err == nil {
		err = baseline.Validate()
	}
	if err != nil {
		return Baseline{}, fmt.Errorf("%s: %w", KeyBaseline, err)
	}
	return baseline, nil
}

// Encode writes the baseline as JSON with one metric in a few lines, for readable diffs in Git. The same baseline always gives the
// same bytes.
func (b Baseline) Encode() ([]byte, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	text, err := indentedForGit(b)
	if err == nil && len(text) > MaxBaselineBytes {
		err = fmt.Errorf("%w: the document takes %d bytes, but the limit is %d: use fewer variants, phases or repetitions", ErrTooLarge,
			len(text), MaxBaselineBytes)
	}
	return text, err
}

func readBaseline(data map[string]string) (baseline Baseline, err error) {
	text, found := data[KeyBaseline]
	switch {
	case !found && len(data) == 0:
		return baseline, fmt.Errorf("%w: the ConfigMap is empty: create one with '%s'", ErrMissing, acceptCommand)
	case !found:
		return baseline, fmt.Errorf("%w: the ConfigMap has no such key, only %.200s: create it with '%s'", ErrMissing,
			strings.Join(sortedKeys(data), ", "), acceptCommand)
	case len(text) > MaxBaselineBytes:
		return baseline, fmt.Errorf("%w: it has %d bytes, but the limit is %d", ErrTooLarge, len(text), MaxBaselineBytes)
	}
	// Check the version first: a document of another version may have other fields. This also finds trailing data.
	var head struct {
		Version string `json:"version"`
	}
	document := []byte(text)
	if err := json.Unmarshal(document, &head); err != nil {
		return baseline, fmt.Errorf("%w: it is not JSON: %w: recreate it with '%s'", ErrCorrupt, err, acceptCommand)
	}
	if head.Version != BaselineVersion {
		return baseline, fmt.Errorf("%w: it has version %.80q, but this program supports %q: accept results again with this release",
			ErrVersion, head.Version, BaselineVersion)
	}
	if err := LimitValues(document, maxBaselineJSONValues); err != nil {
		return baseline, err
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&baseline); err != nil {
		return baseline, fmt.Errorf("%w: %w: correct it, or recreate it with '%s'", ErrCorrupt, err, acceptCommand)
	}
	return baseline, nil
}

var (
	numbersOverLines = regexp.MustCompile(`\[\n\s*-?\d+(?:,\n\s*-?\d+)*\n\s*\]`)
	oneOverLines     = regexp.MustCompile(`\[\n\s*("(?:[^"\\]|\\.)*")\n\s*\]`)
	betweenNumbers   = regexp.MustCompile(`\s+`)
)

// indentedForGit writes lists of numbers, and lists of a single text, on one line: a diff then has a line for each metric. Texts are
// unchanged, because JSON texts contain no line breaks.
func indentedForGit(document any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	text := numbersOverLines.ReplaceAllFunc(out.Bytes(), func(list []byte) []byte {
		return bytes.ReplaceAll(betweenNumbers.ReplaceAll(list, nil), []byte(","), []byte(", "))
	})
	return oneOverLines.ReplaceAll(text, []byte("[$1]")), nil
}

// unique finds names that are empty, too long or duplicate.
type unique struct {
	what string
	seen map[string]bool
}

func (u *unique) add(name string) error {
	switch {
	case name == "" || len(name) > maxNameLength:
		return fmt.Errorf("%s has a name of %d characters: use 1 to %d", u.what, len(name), maxNameLength)
	case u.seen[name]:
		return fmt.Errorf("%s %.80q is a duplicate: remove one", u.what, name)
	case u.seen == nil:
		u.seen = map[string]bool{}
	}
	u.seen[name] = true
	return nil
}

func (a Accepted) validateAccepted() error {
	for _, field := range []struct{ name, value string }{
		{"benchmark.namespace", a.Benchmark.Namespace}, {"benchmark.name", a.Benchmark.Name}, {"experiment", a.Experiment},
	} {
		if field.value == "" || len(field.value) > maxNameLength {
			return fmt.Errorf("%s has %d characters: use 1 to %d", field.name, len(field.value), maxNameLength)
		}
	}
	switch {
	case !slices.Contains([]string{"Passed", "Failed", "Inconclusive", "Invalid"}, a.Verdict):
		return fmt.Errorf("verdict is %.80q: write Passed, Failed, Inconclusive or Invalid", a.Verdict)
	case a.AcceptedAt.IsZero():
		return errors.New("acceptedAt is missing: write the time, such as 2026-03-01T12:00:00Z")
	case len(a.Note) > maxNoteBytes:
		return fmt.Errorf("note has %d bytes: use at most %d", len(a.Note), maxNoteBytes)
	}
	return nil
}

func validateEnvironment(environment map[string][]string) error {
	for _, key := range sortedKeys(environment) {
		if key == "" || len(key) > maxEnvironmentKeyLength || len(environment[key]) == 0 {
			return fmt.Errorf("environment %.80q has a key of %d bytes and %d values: use keys up to %d bytes, and at least a value", key, len(key),
				len(environment[key]), maxEnvironmentKeyLength)
		}
		for _, value := range environment[key] {
			if len(value) > maxEnvironmentValueLength {
				return fmt.Errorf("environment %.80q has a value of %d bytes: use at most %d", key, len(value), maxEnvironmentValueLength)
			}
		}
	}
	return nil
}

// maxOmittedEntryBytes limits the entries of omitted.
const maxOmittedEntryBytes = 4096

func validateOmitted(omitted []string) error {
	if len(omitted) > maxOmitted {
		return fmt.Errorf("omitted has %d entries: use at most %d", len(omitted), maxOmitted)
	}
	for _, words := range omitted {
		if len(words) > maxOmittedEntryBytes {
			return fmt.Errorf("an entry of omitted has %d bytes: use at most %d", len(words), maxOmittedEntryBytes)
		}
	}
	return nil
}

// validateMetric compares with the vocabulary. A name that this release does not know may come from another release.
func validateMetric(name, unit, better string) error {
	metric, known := LookupMetric(name)
	switch {
	case known && metric.Unit != unit:
		return fmt.Errorf("it has the unit %.40q instead of %q: its values would be misread", unit, metric.Unit)
	case known && better != string(metric.Better):
		return fmt.Errorf("better is %.40q instead of %q: worse would count as better", better, metric.Better)
	case len(unit) > 40:
		return fmt.Errorf("it has a unit of %d bytes: use at most 40", len(unit))
	case !slices.Contains([]Direction{Higher, Lower, Neither}, Direction(better)):
		return fmt.Errorf("better is %.40q: write Higher, Lower or Neither", better)
	}
	return nil
}
