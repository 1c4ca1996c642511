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
	"strconv"
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
	if len(wrong) > 0 && jobFile.Match(text) {
		return nil, exitf(ExitRefused, "%s: it is a job file of fio: make a manifest of it with kubectl storagebench init --from %[1]s", file)
	}
	if len(wrong) > 0 {
		return all, exit(ExitRefused, errors.Join(wrong...))
	}
	if len(all) == 0 {
		return nil, exitf(ExitRefused, "%s: %w", file, errNoManifest)
	}
	return all, nil
}

// jobFile matches the beginning of a job file of fio: a section with an option, perhaps after comments.
var jobFile = regexp.MustCompile(`^\s*(?:[#;][^\n]*\s+)*\[[^\]\n]+\]\s+(?:[#;][^\n]*\s+)*[a-z_0-9]+(?:=|\s)`)

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
	wrong := func(err error) error { return exit(ExitRefused, errors.New(notYAML(file, text, err))) }
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
		is := map[byte]string{'"': "text", '[': "a list"}[asJSON[0]]
		return nil, exitf(ExitRefused, "%s: it is %s: a manifest is a map of apiVersion, kind, metadata and spec", file,
			cmp.Or(is, "a single value"))
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

// notYAML formats the message "FILE:LINE: it is not YAML: ...". If the message of the parser does not say what to write, notYAML does.
func notYAML(file string, text []byte, err error) string {
	parts := yamlError.FindStringSubmatch(err.Error())
	message, line := err.Error(), 0
	if parts != nil {
		message = parts[2]
		line, _ = strconv.Atoi(parts[1])
	}
	lines := strings.Split(string(text), "\n")
	inLine := func(what string) bool { return line > 0 && line <= len(lines) && strings.Contains(lines[line-1], what) }
	switch {
	case strings.HasPrefix(message, "invalid map key: map"):
		message = "a map cannot be the name of a field: write { instead of {{, and render a template first"
		var positions yaml.Node
		if yaml.Unmarshal(text, &positions) == nil {
			line = lineOfMapKey(&positions)
		}
	case strings.Contains(message, "cannot start any token") && inLine("\t"):
		message = "there is a tab: write spaces instead"
	}
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	return fmt.Sprintf("%s: it is not YAML: %s", file, message)
}

// lineOfMapKey returns the line of the first field whose name is a map, or 0.
func lineOfMapKey(node *yaml.Node) int {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.MappingNode {
			return child.Line
		}
		if line := lineOfMapKey(child); line > 0 {
			return line
		}
	}
	return 0
}

// at returns FILE:LINE of a field, or of the existing part of its path.
func (m *manifest) at(path string) string {
	return fmt.Sprintf("%s:%d", m.file, m.line(path))
}

func (m *manifest) line(path string) int { return lineOf(m.positions, path) }
