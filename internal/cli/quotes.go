package cli

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/storagebench/storagebench/internal/results"
)

// quotes corrects scalars that YAML reads as another type than the schema requires, such as off in place of a string. Otherwise the API
// server would report only these scalars, and no other mistakes.
type quotes struct {
	positions *yaml.Node
	problems  []problem
	// unitless are the problems of numbers without a unit.
	unitless []problem
}

// member returns the schema of a field, of an entry of a map, or of an element of a list. It returns nil if there is none.
func member(of *schema.Structural, step string) *schema.Structural {
	if one, found := of.Properties[step]; found {
		return &one
	}
	if more := of.AdditionalProperties; more != nil {
		return more.Structural
	}
	return of.Items
}

// metadataSchema returns a schema for the fields of the metadata that users write.
func metadataSchema() *schema.Structural {
	text := schema.Structural{Generic: schema.Generic{Type: "string"}}
	texts := schema.Structural{AdditionalProperties: &schema.StructuralOrBool{Structural: &text}}
	return &schema.Structural{Properties: map[string]schema.Structural{
		"name": text, "namespace": text, "labels": texts, "annotations": texts,
	}}
}

// object corrects a manifest in place.
func (q *quotes) object(fields map[string]any, kind *schema.Structural) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		next := member(kind, name)
		if name == "metadata" {
			next = metadataSchema()
		}
		fields[name] = q.corrected(name, fields[name], next)
	}
}

// corrected returns the value that was probably meant.
func (q *quotes) corrected(at string, value any, want *schema.Structural) any {
	if want == nil || want.XIntOrString {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			inner := at + "." + name
			if strings.ContainsAny(name, ".[") {
				inner = at + "[" + name + "]"
			}
			value[name] = q.corrected(inner, value[name], member(want, name))
		}
	case []any:
		for i := range value {
			value[i] = q.corrected(fmt.Sprintf("%s[%d]", at, i), value[i], want.Items)
		}
	case bool:
		return q.text(at, value, want, "a boolean")
	case float64:
		if want.Type == "integer" && value != math.Trunc(value) {
			return q.whole(at, value, want)
		}
		return q.text(at, value, want, "a number")
	case int64:
		return q.text(at, value, want, "a number")
	case string:
		return q.bare(at, value, want)
	}
	return value
}

// text returns a boolean or a number as it was written, and notes a problem, if the schema requires a string.
func (q *quotes) text(at string, value any, want *schema.Structural, readAs string) any {
	if want.Type != "string" {
		return value
	}
	written, single := valueAt(q.positions, at)
	if !single {
		written = fmt.Sprint(value)
	}
	if meant := switchAt(at, written); meant != "" {
		q.problems = append(q.problems, problem{at, fmt.Sprintf("%s is read as %s: write %q in quotes", written, readAs, meant)})
		return meant
	}
	readAs = fmt.Sprintf("%s is read as %s: ", written, readAs)
	if instead := withUnit(written, want); instead != "" {
		q.unitless = append(q.unitless, problem{at, readAs + instead})
		return written
	}
	instead, meant := q.limit(at, written)
	q.problems = append(q.problems, problem{at, readAs + instead})
	return meant
}

// exampleBounds are bounds of metrics in a unit that is too small for people: 10 of a latency would be 10 nanoseconds.
var exampleBounds = map[string]string{results.UnitNanoseconds: "10ms", results.UnitBytesPerSecond: "100MB/s", results.UnitBytes: "10GB",
	results.UnitPartsPerMillion: "1.5%", results.UnitMilli: "1.5x"}

// limit says how to write a number that the schema requires as text, and what was probably meant. For the limit of a gate, that depends on
// the metric.
func (q *quotes) limit(at, written string) (instead, meant string) {
	instead = fmt.Sprintf("write %q in quotes", written)
	number, err := strconv.ParseFloat(written, 64)
	parent, side := cutLast(at, ".")
	if err != nil || number == 0 || side != "min" && side != "max" { // 0 is the same in each unit
		return instead, written
	}
	if strings.HasSuffix(parent, ".ratio") && number >= 10 { // 80 would be 80 times as much
		return "write " + written + "%", written + "%"
	}
	if !strings.HasSuffix(parent, ".bound") {
		return instead, written
	}
	path, _ := valueAt(q.positions, parent+".metric")
	_, name := cutLast(path, ".")
	metric, known := results.LookupMetric(name)
	switch example := exampleBounds[metric.Unit]; {
	case !known:
		instead = "write it with the unit of the metric, such as 10ms, 100MB/s or 5k/s, or, if it is a count, in quotes"
	case example != "":
		instead = "write it with a unit, such as " + example
	case metric.Unit == results.UnitPerSecond:
		instead = fmt.Sprintf("write %s/s, or with another unit, such as 5k/s", written)
	}
	return instead, written
}

// cutLast cuts a text around the last separator.
func cutLast(text, separator string) (before, after string) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, ""
	}
	return text[:at], text[at+len(separator):]
}

// withUnit says how to write a number with its unit, if the schema requires one. The rules of the field say which one.
func withUnit(written string, want *schema.Structural) string {
	number, err := strconv.ParseFloat(written, 64)
	if err != nil {
		return ""
	}
	for _, rule := range want.XValidations {
		switch asks := func(word string) bool { return strings.Contains(rule.Message, word) }; {
		case asks("percent sign"):
			share := written
			if number > 0 && number < 1 { // 0.5 is half of it, not half a percent
				share = plainNumber(math.Round(number*1e4) / 100)
			}
			return "write " + share + "%"
		case asks("write a duration"):
			return "write it with its unit, such as 10s"
		case asks("write a block size") && written != "512":
			return "write it with its unit, such as 8Ki"
		case asks("as a quantity"):
			return "write it with its unit, such as 20Gi"
		}
	}
	return ""
}

// whole returns a whole number in place of a fraction, and notes a problem: the API server would report several, one without its field.
func (q *quotes) whole(at string, value float64, want *schema.Structural) any {
	meant := math.Ceil(value)
	if strings.HasSuffix(strings.ToLower(at), "percent") && value < 1 {
		meant = math.Ceil(value * 100)
	}
	if bounds := want.ValueValidation; bounds != nil && bounds.Minimum != nil {
		meant = max(meant, *bounds.Minimum)
	}
	if bounds := want.ValueValidation; bounds != nil && bounds.Maximum != nil {
		meant = min(meant, *bounds.Maximum)
	}
	q.problems = append(q.problems, problem{at, fmt.Sprintf("write a whole number, such as %.0f, instead of %v", meant, value)})
	return int64(meant)
}

// bare returns a number or a boolean without its quotes, and notes a problem, if the schema requires one.
func (q *quotes) bare(at, value string, want *schema.Structural) any {
	var meant any
	var err error
	switch want.Type {
	case "integer":
		share, percent := strings.CutSuffix(value, "%")
		if meant, err = strconv.ParseInt(share, 10, 64); err == nil && percent && strings.HasSuffix(strings.ToLower(at), "percent") {
			q.problems = append(q.problems, problem{at, fmt.Sprintf("write %s instead of %s: it is in percent", share, value)})
			return meant
		}
		meant, err = strconv.ParseInt(value, 10, 64)
	case "boolean":
		meant, err = strconv.ParseBool(value)
	default:
		return value
	}
	if err != nil {
		return value
	}
	q.problems = append(q.problems, problem{at, fmt.Sprintf("%q is read as text: write %v without quotes", value, meant)})
	return meant
}

// with adds the problems to those of the API server, one for each field: a missing unit explains most, and missing quotes explain least.
func (q *quotes) with(others []problem) []problem {
	all := append(slices.Clone(q.unitless), without(others, q.unitless)...)
	return append(all, without(q.problems, all)...)
}

// without omits the problems of fields that have another one.
func without(problems, others []problem) (left []problem) {
	plain := strings.NewReplacer("[", ".", "]", "") // the API server writes no brackets around the name of an entry
	for _, one := range problems {
		if !slices.ContainsFunc(others, func(other problem) bool { return plain.Replace(other.field) == plain.Replace(one.field) }) {
			left = append(left, one)
		}
	}
	return left
}
