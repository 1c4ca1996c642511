// Command schemagen writes the JSON Schemas of the result documents from the Go types:
//
//	go run ./internal/results/schemagen docs/schemas
//
// Run it in the root of the module: the descriptions are the comments in the source.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/invopop/jsonschema"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	modulePath = "github.com/storagebench/storagebench"
	// schemaBase is the prefix of identifiers; nothing is served there.
	schemaBase = "https://storagebench.dev/schemas/"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schemagen DIRECTORY")
		os.Exit(2)
	}
	if err := run(".", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(root, directory string) error {
	schemas, err := generate(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	for name, text := range schemas {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the schemas by file name; root is the root of the module.
func generate(root string) (map[string][]byte, error) {
	documents := []struct {
		file, title string
		value       any
	}{
		{"phase.schema.json", "What a runner says about one executed phase", results.PhaseDocument{}},
		{"results.schema.json", "Everything that is known of one experiment", results.Experiment{}},
		{"baseline.schema.json", "Accepted results: what later ones are compared with, and how much the same thing differs", results.Baseline{}},
		{"poolseries.schema.json", "What an Observe operation has seen of a pool", poolseries.Document{}},
		{"metaslabs.schema.json", "Where a MetaslabMap operation has found free space", poolseries.MetaslabMap{}},
	}
	comments, err := commentsOf(root)
	if err != nil {
		return nil, err
	}
	schemas := map[string][]byte{}
	for _, document := range documents {
		reflector := &jsonschema.Reflector{BaseSchemaID: "", Anonymous: true, CommentMap: comments}
		schema := reflector.Reflect(document.value)
		schema.ID = jsonschema.ID(schemaBase + document.file)
		schema.Title = document.title
		text, err := indented(schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document.file, err)
		}
		schemas[document.file] = text
	}
	return schemas, nil
}

// commentsOf reads the comments of the packages with documents. The library has to run in the root of the module.
func commentsOf(root string) (map[string]string, error) {
	before, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(root); err != nil {
		return nil, err
	}
	defer func() { _ = os.Chdir(before) }()
	reflector := &jsonschema.Reflector{}
	for _, folder := range []string{"./internal/results", "./internal/poolseries"} {
		if err := reflector.AddGoComments(modulePath, folder, jsonschema.WithFullComment()); err != nil {
			return nil, fmt.Errorf("reading the comments in %s: %w", folder, err)
		}
	}
	return reflector.CommentMap, nil
}

func indented(schema *jsonschema.Schema) ([]byte, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
