// Command valuesref writes the README.md of the chart from its values.yaml:
//
//	go run ./charts/valuesref charts/storagebench
package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed head.txt
var head string

func main() {
	folder := os.Args[len(os.Args)-1]
	page, err := generate(filepath.Join(folder, "values.yaml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "README.md"), []byte(page), 0o644) //nolint:gosec // a page for all
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "valuesref:", err)
		os.Exit(1)
	}
}

// generate returns the page: a row for each value without documented values below it.
func generate(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var page strings.Builder
	page.WriteString(head)
	if err := rows(&page, "", document.Content[0]); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return page.String(), nil
}

// rows writes the rows of a mapping. The comment above a value describes it; a section of the chart is described by the comments of its
// values.
func rows(page *strings.Builder, above string, mapping *yaml.Node) error {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name, says := above+key.Value, comment(key.HeadComment)
		if says == "" || value.Kind == yaml.MappingNode && described(value) {
			if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
				return fmt.Errorf("line %d: %s has no comment above it", key.Line, name)
			}
			if err := rows(page, name+".", value); err != nil {
				return err
			}
			continue
		}
		var content any
		if err := value.Decode(&content); err != nil {
			return fmt.Errorf("line %d: %w", value.Line, err)
		}
		standard, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("line %d: %w", value.Line, err)
		}
		fmt.Fprintf(page, "| `%s` | `%s` | %s |\n", name, standard, strings.ReplaceAll(says, "|", `\|`))
	}
	return nil
}

// described reports whether the values of a mapping have their own comments. The values of Kubernetes maps have none.
func described(mapping *yaml.Node) bool {
	return len(mapping.Content) > 0 && mapping.Content[0].HeadComment != ""
}

// comment returns a comment as one line.
func comment(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
	}
	return strings.Join(lines, " ")
}
