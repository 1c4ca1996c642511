package design

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// SpecError describes an error in a spec that the API server could not detect.
type SpecError struct {
	Reason  string
	Message string
}

func (e *SpecError) Error() string { return e.Message }

// Refuse returns the error for a spec that cannot be used. reason is the reason of the condition.
func Refuse(reason, format string, values ...any) *SpecError {
	return &SpecError{reason, fmt.Sprintf(format, values...)}
}

// Mistake is a SpecError of one field.
type Mistake struct {
	// Field is its path in the benchmark, such as spec.phases[1]. Empty if the mistake is not in a single field.
	Field string
	*SpecError
}

func (m *Mistake) Unwrap() error { return m.SpecError }

// RefuseField returns a mistake in one field. The message begins with the field.
func RefuseField(field, reason, format string, values ...any) error {
	return &Mistake{field, &SpecError{reason, field + ": " + fmt.Sprintf(format, values...)}}
}

// refusePhase returns a mistake in phase i of the variant.
func (s *Slot) refusePhase(i int, format string, values ...any) error {
	return &Mistake{s.PhaseField(i), Refuse(v1alpha1.ReasonSpecInvalid, format, values...)}
}

// PhaseField is the path in the spec of phase i of the variant.
func (s *Slot) PhaseField(i int) string {
	if i < len(s.written) {
		i = s.written[i]
	}
	return PhaseField(i)
}

// atMatrix adds to an error which value or path of the matrix is wrong.
func atMatrix(spec *v1alpha1.StorageBenchmarkSpec, path string, value v1alpha1.MatrixValue, err error) error {
	var wrong *SpecError
	if !errors.As(err, &wrong) {
		return err
	}
	if _, ofValue := errors.AsType[*unfit](err); !ofValue {
		return &Mistake{fmt.Sprintf("spec.matrix[%s]", path), wrong}
	}
	if at := slices.Index(spec.Matrix[path], value); at >= 0 {
		return &Mistake{fmt.Sprintf("spec.matrix[%s][%d]", path, at), wrong}
	}
	return &Mistake{"spec.matrixInclude", wrong}
}

// atSet adds the wrong path and its variant to an error.
func atSet(variant v1alpha1.Variant, at int, path string, err error) error {
	var wrong *SpecError
	if !errors.As(err, &wrong) {
		return err
	}
	return &Mistake{fmt.Sprintf("spec.variants[%d].set[%s]", at, path),
		Refuse(wrong.Reason, "variant %q: %s", variant.Name, wrong.Message)}
}

// PhaseField is the path of phase i of the spec.
func PhaseField(i int) string { return fmt.Sprintf("spec.phases[%d]", i) }

// Mistakes returns all mistakes in an error. It returns none if the error is of another kind.
func Mistakes(err error) []Mistake {
	switch known := err.(type) { //nolint:errorlint // this walks the tree itself
	case nil:
		return nil
	case *Mistake:
		return []Mistake{*known}
	case *SpecError:
		return []Mistake{{"", known}}
	case interface{ Unwrap() []error }:
		var all []Mistake
		for _, one := range known.Unwrap() {
			all = append(all, Mistakes(one)...)
		}
		return all
	}
	return Mistakes(errors.Unwrap(err))
}

// mostMentioned is how many mistakes a condition mentions. The kubectl plugin lists all.
const mostMentioned = 5

// Combined returns one SpecError for all mistakes in an error, or nil if the error is of another kind. Its message has the first
// mostMentioned mistakes.
func Combined(err error) *SpecError {
	all := Mistakes(err)
	if len(all) == 0 {
		return nil
	}
	var messages []string
	for _, one := range all[:min(mostMentioned, len(all))] {
		messages = append(messages, one.Message)
	}
	if more := len(all) - mostMentioned; more > 0 {
		messages = append(messages, fmt.Sprintf("and %d more: 'kubectl storagebench validate' lists all", more))
	}
	return &SpecError{all[0].Reason, strings.Join(messages, "; ")}
}

// Distinct filters out mistakes that another variant has as well and that differ only in the name of the variant.
type Distinct struct{ seen map[string]bool }

// Of returns the mistakes of a slot that no earlier slot had.
func (d *Distinct) Of(slot *Slot, err error) (news []error) {
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	for _, one := range Mistakes(err) {
		key := one.Field + "\n" + strings.ReplaceAll(one.Message, fmt.Sprintf("variant %q", slot.Variant), "")
		if !d.seen[key] {
			d.seen[key] = true
			news = append(news, &one)
		}
	}
	return news
}
