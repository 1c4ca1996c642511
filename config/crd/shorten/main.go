// Command shorten removes repeated descriptions from a CRD: those below a field that has the same type as another field, where readers find
// them. For example, variants[].target has all fields of target. 'kubectl apply' stores a CRD in an annotation, which has a size limit.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// twins are pairs of fields: the second has the fields of the first, and maybe others. "items" is an element of a list.
var twins = [][2]string{
	{"spec.target", "spec.variants.items.target"},
	{"spec.target.zfs.pool", "spec.target.zfs.volumes.items.pool"},
	{"spec.target.zfs.pool", "spec.target.zfs.perNode.items.pool"},
	{"spec.phases.items.operate", "spec.phases.items.measure.operate"},
}

func main() {
	if err := shorten(os.Args[1], twins); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func shorten(path string, twins [][2]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	versions, _ := crd["spec"].(map[string]any)["versions"].([]any)
	for _, version := range versions {
		schema, _ := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		for _, twin := range twins {
			first, second := below(schema, twin[0]), below(schema, twin[1])
			if first == nil || second == nil {
				return fmt.Errorf("%s has no field %s or %s: change the list of twins", path, twin[0], twin[1])
			}
			for name := range properties(first) {
				if of, is := properties(second)[name].(map[string]any); is {
					plain(of)
				}
			}
		}
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte("---\n"), bytes.TrimPrefix(out, []byte("---\n"))...), 0o644) //nolint:gosec // a public file
}

func properties(schema map[string]any) map[string]any {
	fields, _ := schema["properties"].(map[string]any)
	return fields
}

func below(schema map[string]any, path string) map[string]any {
	for name := range strings.SplitSeq(path, ".") {
		if name == "items" {
			schema, _ = schema["items"].(map[string]any)
			continue
		}
		schema, _ = properties(schema)[name].(map[string]any)
	}
	return schema
}

// plain removes the descriptions of a schema, but keeps properties that are called description.
func plain(schema map[string]any) {
	delete(schema, "description")
	for _, property := range properties(schema) {
		if of, is := property.(map[string]any); is {
			plain(of)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if of, is := schema[name].(map[string]any); is {
			plain(of)
		}
	}
}
