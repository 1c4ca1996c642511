package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const twoDocuments = `# a comment
apiVersion: v1
kind: ConfigMap
metadata: {name: jobs}
data:
  job: |
    [read]
    ---
---
---
apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata:
  name: b
spec:
  phases:
  - name: fill
    fill:
      to: 50%
  matrix:
    phases.fill.to: [1%, 2%]
`

func TestManifestsKeepTheirLines(t *testing.T) {
	manifests, err := readManifests(file(t, "two.yaml", twoDocuments), nil)
	if err != nil || len(manifests) != 2 {
		t.Fatal(len(manifests), err)
	}
	if !manifests[0].isConfigMap() || manifests[0].isBenchmark() || !manifests[1].isBenchmark() {
		t.Error(manifests)
	}
	for field, line := range map[string]int{
		"": 11, "kind": 12, "metadata.name": 14, "spec.phases[0].fill.to": 19, "spec.phases[0].fill.size": 18, "spec.phases[7]": 16,
		"spec.matrix[phases.fill.to]": 21, "spec.matrix[phases.fill.to][1]": 21, "spec.gates[0].name": 15, "status": 11,
	} {
		if got := lineOf(manifests[1].positions, field); got != line {
			t.Errorf("%s: line %d instead of %d", field, got, line)
		}
	}
}

// TestNoDocumentIsDropped: further documents of a file are read like the first one, or refused.
func TestNoDocumentIsDropped(t *testing.T) {
	const one, other = "apiVersion: v1\nkind: A\n", "apiVersion: v1\nkind: B\n"
	for mark, line := range map[string]int{
		"---\n": 0, "--- # the other\n": 0, "---\t\n": 0, "---\r\n": 0, "---#x\n": 0, "--- !!map\n": 3, "--- &a\n": 3, "...\n---\n": 0,
		"---\n--- !!map\n": 0, "---\nnull\n--- !!map\n": 5,
	} {
		path := file(t, "two.yaml", one+mark+other)
		manifests, err := readManifests(path, nil)
		switch {
		case line == 0:
			if err != nil || len(manifests) != 2 || manifests[1].object.GetKind() != "B" {
				t.Errorf("%q: %d manifests: %v", mark, len(manifests), err)
			}
		case err == nil || err.Error() != fmt.Sprintf("%s:%d: a second manifest begins here: write --- on a line of its own before it", path, line):
			t.Errorf("%q: %d manifests: %v", mark, len(manifests), err)
		}
	}
	if _, err := readManifests(file(t, "two.yaml", one+"...\n"+other), nil); err == nil || !strings.Contains(err.Error(), "it is not YAML") {
		t.Error(err)
	}
}

// TestLinesOfATextInAManifest: a line of a text has a line of its own in the file if the text is a literal block.
func TestLinesOfATextInAManifest(t *testing.T) {
	manifests, err := readManifests(file(t, "two.yaml", twoDocuments), nil)
	if err != nil {
		t.Fatal(err)
	}
	for field, line := range map[string]int{"data.job[line 1]": 7, "data.job[line 2]": 8, "data.job[line 3]": 6, "data.job[line 0]": 6,
		"data.job[1]": 6, "metadata.name[line 1]": 4} {
		if got := lineOf(manifests[0].positions, field); got != line {
			t.Errorf("%s: line %d instead of %d", field, got, line)
		}
	}
	if text, single := valueAt(manifests[0].positions, "data.job[line 1]"); text != "[read]" || !single {
		t.Error(text, single)
	}
}

func TestPathSteps(t *testing.T) {
	for path, want := range map[string][]string{
		"": nil, "a": {"a"}, "a.b[1].c": {"a", "b", "1", "c"}, "a[x.y].b": {"a", "x.y", "b"}, "[a][b]": {"a", "b"}, "a[b": {"a", "b"},
		"a..b": {"a", "", "b"},
	} {
		if got := pathSteps(path); !slices.Equal(got, want) {
			t.Errorf("%q: %q", path, got)
		}
	}
}

func TestFilesThatAreNoManifests(t *testing.T) {
	for text, says := range map[string]string{
		"":                          "it contains no manifest",
		"# nothing\n---\n":          "it contains no manifest",
		"a: b\n":                    "apiVersion is missing: write apiVersion: storagebench.dev/v1alpha1",
		"apiVersion: v1\n":          ":1: kind is missing",
		"- a\n":                     ": it is a list: a manifest is a map",
		"a: [\n":                    ":1: it is not YAML: did not find",
		"a: 1\na: 2\n":              `:2: it is not YAML: key "a" already set in map`,
		"a: \t1\n\tb: 2\n":          "it is not YAML",
		"a:\n\t- {b: c}\n":          ":2: it is not YAML: there is a tab: write spaces instead",
		"a: {b: '{{'}\nc: {{d: 1}}": ":2: it is not YAML: a map cannot be the name of a field: write { instead of {{",
		"hello world\n":             ": it is text: a manifest is a map",
		"12\n":                      ": it is a single value: a manifest is a map",
		"# a\n[global]\n; b\nrw=read\n[a]\nsize=1m\n": ": it is a job file of fio: make a manifest of it with kubectl storagebench init --from /",
		strings.Repeat("#", 9e6):                      "is larger than 8 MiB",
		"apiVersion: 1\nkind: 2":                      "apiVersion is missing",
		"a: &a [*a]\nkind: ":                          "it is not YAML",
		"apiVersion: {}\nkind: x":                     "apiVersion is missing",
	} {
		path := file(t, "file.yaml", text)
		_, err := readManifests(path, nil)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, err := readManifests("missing.yaml", nil); err == nil || err.Error() != "missing.yaml: no such file" {
		t.Error(err)
	}
	if all, err := readManifests("-", strings.NewReader(twoDocuments)); err != nil || len(all) != 2 || all[0].at("kind") != "-:3" {
		t.Error(all, err)
	}
}

func FuzzManifests(f *testing.F) {
	f.Add([]byte(twoDocuments), "spec.phases[0].fill")
	f.Add([]byte("a: &x {b: *x}\n"), "a.b.b.b")
	f.Add([]byte("--- \n---\nkind: [\xff]"), "[[")
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		lines := strings.Count(string(text), "\n") + 1
		for _, document := range splitDocuments(text) {
			one, err := parseManifest("f", document)
			if one == nil || err != nil {
				continue
			}
			if line := lineOf(one.positions, path); line < 1 || line > lines {
				t.Errorf("line %d of %d", line, lines)
			}
		}
	})
}
