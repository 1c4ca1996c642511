package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

const (
	maxManifestBytes = 8 << 20
	kindBenchmark    = "StorageBenchmark"
	kindTarget       = "StorageTarget"
	kindConfigMap    = "ConfigMap"
)

// manifest is one document of a file.
type manifest struct {
	file   string
	object *unstructured.Unstructured
	// positions finds the line of a field.
	positions *yaml.Node
}

func (m *manifest) isBenchmark() bool { return m.ours() && m.object.GetKind() == kindBenchmark }

func (m *manifest) isTarget() bool { return m.ours() && m.object.GetKind() == kindTarget }

func (m *manifest) isConfigMap() bool {
	return m.object.GetAPIVersion() == "v1" && m.object.GetKind() == kindConfigMap
}

// ours reports whether the manifest belongs to this project's API group, in any version.
func (m *manifest) ours() bool {
	group, _, _ := strings.Cut(m.object.GetAPIVersion(), "/")
	return group == v1alpha1.GroupVersion.Group
}

func (m *manifest) String() string {
	name := cmp.Or(m.object.GetName(), "without a name")
	return m.object.GetKind() + " " + name
}

// errNoManifest says that a file contains no manifest.
var errNoManifest = errors.New("it contains no manifest: write a StorageBenchmark, such as config/samples/quickstart.yaml")

// readManifests reads all documents of a file. "-" is the standard input. With an error it also returns the manifests that it could read.
func readManifests(file string, stdin io.Reader) ([]*manifest, error) {
	text, err := readFile(file, stdin)
	if err != nil {
		return nil, err
	}
	var all []*manifest
	var wrong []error
	for _, document := range splitDocuments(text) {
		one, err := parseManifest(file, document)
		if err != nil {
			wrong = append(wrong, err)
		}
		if one != nil {
			all = append(all, one)
		}
	}
	if len(wrong) > 0 {
		return all, exit(ExitRefused, errors.Join(wrong...))
	}
	if len(all) == 0 {
		return nil, exitf(ExitRefused, "%s: %w", file, errNoManifest)
	}
	return all, nil
}

func readFile(file string, stdin io.Reader) ([]byte, error) {
	source := stdin
	if file != "-" {
		opened, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, exitf(ExitNotFound, "%s: no such file", file)
		}
		if err != nil {
			return nil, exit(ExitError, err)
		}
		defer func() { _ = opened.Close() }()
		if info, err := opened.Stat(); err == nil && info.IsDir() {
			return nil, exitf(ExitRefused, "%s is a folder: name a file in it", file)
		}
		source = opened
	}
	text, err := io.ReadAll(io.LimitReader(source, maxManifestBytes+1))
	if err != nil {
		return nil, exitf(ExitError, "read %s: %w", file, err)
	}
	if len(text) > maxManifestBytes {
		return nil, exitf(ExitRefused, "%s is larger than %d MiB: use a file of manifests", file, maxManifestBytes>>20)
	}
	return text, nil
}

// splitDocuments splits at lines of "---", which may have a comment. Each document starts with one empty line for each line of the file
// before it, so that line numbers are those of the file.
func splitDocuments(text []byte) [][]byte {
	var documents [][]byte
	var current bytes.Buffer
	line := 0
	for part := range bytes.Lines(text) {
		line++
		if documentStart.Match(part) {
			documents = append(documents, bytes.Clone(current.Bytes()))
			current.Reset()
			current.WriteString(strings.Repeat("\n", line))
			continue
		}
		current.Write(part)
	}
	return append(documents, current.Bytes())
}

// documentStart matches a line that begins a document, as kubectl reads it.
var documentStart = regexp.MustCompile(`^---\s*(#|$)`)

// parseManifest returns nil for an empty document.
func parseManifest(file string, text []byte) (*manifest, error) {
	wrong := func(err error) error { return exit(ExitRefused, errors.New(notYAML(file, err))) }
	asJSON, err := sigsyaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, wrong(err)
	}
	var positions, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&positions); err != nil && !errors.Is(err, io.EOF) {
		return nil, wrong(err)
	}
	// The first parser ignores a second document, such as one after "--- !map" or "...".
	if err := decoder.Decode(&second); err == nil {
		return nil, exitf(ExitRefused, "%s:%d: a second manifest begins here: write --- on a line of its own before it", file, second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, wrong(err)
	}
	if string(asJSON) == "null" {
		return nil, nil
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(asJSON, &fields); err != nil {
		return nil, exitf(ExitRefused, "%s: a manifest is a map of apiVersion, kind, metadata and spec: %w", file, err)
	}
	one := &manifest{file: file, object: &unstructured.Unstructured{Object: fields}, positions: &positions}
	for _, field := range []string{"apiVersion", "kind"} {
		if value, _ := fields[field].(string); value == "" {
			return nil, exitf(ExitRefused, "%s: %s is missing: write apiVersion: %s and kind: %s", one.at(""), field, v1alpha1.GroupVersion,
				kindBenchmark)
		}
	}
	return one, nil
}

// yamlError matches the message of the parser, with its line number if known.
var yamlError = regexp.MustCompile(`(?s)^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s+)?(?:line (\d+): )?(.*)$`)

// notYAML formats the message "FILE:LINE: it is not YAML: ...".
func notYAML(file string, err error) string {
	parts := yamlError.FindStringSubmatch(err.Error())
	if parts == nil {
		return fmt.Sprintf("%s: it is not YAML: %v", file, err)
	}
	if parts[1] != "" {
		file += ":" + parts[1]
	}
	return fmt.Sprintf("%s: it is not YAML: %s", file, parts[2])
}

// at returns FILE:LINE of a field, or of the existing part of its path.
func (m *manifest) at(path string) string {
	return fmt.Sprintf("%s:%d", m.file, m.line(path))
}

func (m *manifest) line(path string) int { return lineOf(m.positions, path) }
