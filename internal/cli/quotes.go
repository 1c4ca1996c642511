package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// quotes corrects scalars that YAML reads as another type than the schema requires, such as off in place of a string. Otherwise the API
// server would report only these scalars, and no other mistakes.
type quotes struct {
	positions *yaml.Node
	problems  []problem
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
	case int64, float64:
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
	instead := fmt.Sprintf("write %q in quotes", written)
	switch {
	case strings.HasSuffix(at, ".bound.min") || strings.HasSuffix(at, ".bound.max"): // 10 of a latency would be 10 nanoseconds
		instead = fmt.Sprintf(`write it with a unit, such as "10ms", or %q in quotes, which is in the unit of the metric`, written)
	case strings.HasSuffix(at, ".fill.to"):
		instead = "write " + written + "%"
	}
	q.problems = append(q.problems, problem{at, fmt.Sprintf("%s is read as %s: %s", written, readAs, instead)})
	return written
}

// bare returns a number or a boolean without its quotes, and notes a problem, if the schema requires one.
func (q *quotes) bare(at, value string, want *schema.Structural) any {
	var meant any
	var err error
	switch want.Type {
	case "integer":
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

// unlessOther omits problems of fields for which there is a better message: 80 has to become 80%, not "80".
func (q *quotes) unlessOther(others []problem) (left []problem) {
	plain := strings.NewReplacer("[", ".", "]", "") // the API server writes no brackets around the name of an entry
	for _, one := range q.problems {
		if !slices.ContainsFunc(others, func(other problem) bool { return plain.Replace(other.field) == plain.Replace(one.field) }) {
			left = append(left, one)
		}
	}
	return left
}
