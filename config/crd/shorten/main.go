// Command shorten removes from a CRD the descriptions below some fields that have the same type as another one, where they are read:
// variants[].target is a whole target, and 'kubectl apply' keeps a CRD in an annotation, which has a limit.
package main

import (
	"bytes"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// twins of a field have its type. Below them, "items" is an element of a list.
var twins = [][]string{{"spec", "variants", "items", "target"}}

func main() {
	if err := shorten(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func shorten(path string) error {
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
			field := below(schema, twin)
			if field == nil {
				return fmt.Errorf("%s has no field %v: change the list of twins", path, twin)
			}
			own := field["description"]
			plain(field)
			field["description"] = own
		}
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte("---\n"), bytes.TrimPrefix(out, []byte("---\n"))...), 0o644) //nolint:gosec // a public file
}

func below(schema map[string]any, path []string) map[string]any {
	for _, name := range path {
		if name == "items" {
			schema, _ = schema["items"].(map[string]any)
			continue
		}
		properties, _ := schema["properties"].(map[string]any)
		schema, _ = properties[name].(map[string]any)
	}
	return schema
}

// plain removes the descriptions of a schema. A property may be called description.
func plain(schema map[string]any) {
	delete(schema, "description")
	if properties, has := schema["properties"].(map[string]any); has {
		for _, property := range properties {
			if of, is := property.(map[string]any); is {
				plain(of)
			}
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if of, is := schema[name].(map[string]any); is {
			plain(of)
		}
	}
}
