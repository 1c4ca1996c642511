// Command refgen writes the reference of the API from the CRDs:
//
//	go run ./config/crd/refgen docs/reference/api.md
package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/config/crd"
)

//go:embed head.txt
var head string

var (
	// pageOrder is the order of the kinds on the page.
	pageOrder = []string{"StorageBenchmark", "StorageTarget", "BenchmarkRun", "BenchmarkPool", "PoolOperation"}
	// homes is the order in which the kinds are searched for structures: a structure that several kinds share is listed under the first of
	// them.
	homes = []string{"BenchmarkPool", "PoolOperation", "StorageBenchmark", "StorageTarget", "BenchmarkRun"}
	parts = []string{"spec", "status"}
)

type schema = apiextensions.JSONSchemaProps

func main() {
	page, err := generate()
	if err == nil {
		err = os.WriteFile(os.Args[len(os.Args)-1], page, 0o644) //nolint:gosec // a page for everybody
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "refgen:", err)
		os.Exit(1)
	}
}

// generate returns the page: a section for each kind, with a table for its spec and one for its status.
func generate() ([]byte, error) {
	files, err := crd.All()
	if err != nil {
		return nil, err
	}
	kinds := map[string]apiextensions.CustomResourceDefinitionSpec{}
	for name, text := range files {
		var definition apiextensions.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &definition); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		kinds[definition.Spec.Names.Kind] = definition.Spec
	}
	if found := slices.Sorted(maps.Keys(kinds)); !slices.Equal(found, slices.Sorted(slices.Values(pageOrder))) {
		return nil, fmt.Errorf("there are CRDs of %v, the page has %v", found, pageOrder)
	}
	w := &writer{places: map[string]string{}}
	for _, kind := range homes {
		for _, part := range parts {
			w.find(kind, part, kinds[kind].Versions[0].Schema.OpenAPIV3Schema.Properties[part])
		}
	}
	w.WriteString(head)
	for _, kind := range pageOrder {
		root := kinds[kind].Versions[0].Schema.OpenAPIV3Schema
		fmt.Fprintf(w, "\n## %s\n%s\n\nScope: %s. Short name: `%s`.\n",
			kind, prose(root.Description), kinds[kind].Scope, kinds[kind].Names.ShortNames[0])
		for _, part := range parts {
			fmt.Fprintf(w, "\n### %s %s\n| field | type | default | description |\n|---|---|---|---|\n", kind, part)
			w.fields(kind, part, root.Properties[part])
		}
	}
	return []byte(w.String()), nil
}

// writer writes the page. places maps each structure, identified by its fields, to the place where it is listed.
type writer struct {
	strings.Builder
	places map[string]string
}

// find records the places of the structures below a path, the topmost first.
func (w *writer) find(kind, path string, parent schema) {
	fresh := map[string]schema{}
	for _, name := range slices.Sorted(maps.Keys(parent.Properties)) {
		childPath, child := below(path, name, parent.Properties[name])
		if key := keyOf(child); w.places[key] == "" {
			w.places[key] = placeOf(kind, childPath)
			fresh[childPath] = child
		}
	}
	for _, childPath := range slices.Sorted(maps.Keys(fresh)) {
		w.find(kind, childPath, fresh[childPath])
	}
}

// fields writes a row for each field below a path, recursively.
func (w *writer) fields(kind, path string, parent schema) {
	for _, name := range slices.Sorted(maps.Keys(parent.Properties)) {
		field := parent.Properties[name]
		childPath, child := below(path, name, field)
		description, place := prose(field.Description), w.places[keyOf(child)]
		if slices.Contains(parent.Required, name) {
			description = "**Required.** " + description
		}
		elsewhere := len(child.Properties) > 1 && place != placeOf(kind, childPath)
		if elsewhere {
			description += " Fields: " + place + "."
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", childPath, typeOf(field), value(field.Default), description)
		if !elsewhere {
			w.fields(kind, childPath, child)
		}
	}
}

// below returns the path and the schema of a field, or those of its entries if it is a list or map.
func below(path, name string, field schema) (string, schema) {
	switch {
	case field.Items != nil:
		return path + "." + name + "[]", *field.Items.Schema
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return path + "." + name + ".NAME", *field.AdditionalProperties.Schema
	}
	return path + "." + name, field
}

// descriptions matches the descriptions in a schema. The CRDs have none below a field that has the same type as another one.
var descriptions = regexp.MustCompile(`"description":"(\\.|[^"\\])*",?`)

// keyOf identifies a structure by its fields.
func keyOf(of schema) string {
	text, _ := json.Marshal(of.Properties) // values read from JSON can be written
	return descriptions.ReplaceAllString(string(text), "")
}

func placeOf(kind, path string) string {
	part, _, _ := strings.Cut(path, ".")
	return fmt.Sprintf("`%s` of [%s](#%s-%s)", path, kind, strings.ToLower(kind), part)
}

func typeOf(field schema) string {
	switch {
	case field.Items != nil:
		return "list of " + grouped(typeOf(*field.Items.Schema)) + limit(field.MinItems, field.MaxItems)
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return "map of " + grouped(typeOf(*field.AdditionalProperties.Schema)) + limit(field.MinProperties, field.MaxProperties)
	case field.Enum != nil:
		var values []string
		for i := range field.Enum {
			values = append(values, value(&field.Enum[i]))
		}
		return strings.Join(values, ", ")
	case field.XIntOrString:
		return "integer or string"
	case field.Format == "date-time":
		return "time"
	case field.Minimum != nil && field.Maximum != nil:
		return fmt.Sprintf("%s, %.0f to %.0f", field.Type, *field.Minimum, *field.Maximum)
	}
	return field.Type
}

// grouped puts a type with a range or limit of its own in brackets, so that it is not taken for that of the list or map around it.
func grouped(inner string) string {
	if strings.Contains(inner, ",") {
		return "(" + inner + ")"
	}
	return inner
}

// limit says how many entries a list or map may have. One that may not be empty is not marked: it is left out instead.
func limit(least, most *int64) string {
	switch {
	case most == nil:
		return ""
	case least != nil && *least == *most:
		return fmt.Sprintf(", exactly %d", *most)
	case least != nil && *least > 1:
		return fmt.Sprintf(", %d to %d", *least, *most)
	}
	return fmt.Sprintf(", at most %d", *most)
}

func value(of *apiextensions.JSON) string {
	if of == nil {
		return ""
	}
	return "`" + strings.Trim(string(of.Raw), `"`) + "`"
}

// prose turns a description into one line that fits into a table cell.
func prose(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}
