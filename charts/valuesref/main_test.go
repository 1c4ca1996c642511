package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const folder = "../storagebench"

// TestPageIsUpToDate checks that the page in the repository matches values.yaml.
func TestPageIsUpToDate(t *testing.T) {
	want, err := generate(filepath.Join(folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the page of the chart is out of date, run 'make manifests' (-want +got):\n%s", diff)
	}
	if rows := strings.Count(want, "\n| `"); rows < 60 {
		t.Errorf("only %d rows", rows)
	}
}

func TestRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "values.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`# The page.

# The image.
image:
  # Its tag, a|b.
  # Empty: the release.
  tag: ""

# What it takes.
resources:
  limits: {memory: 1Gi}

part:
  # A list.
  list: [1, two]
`)
	page, err := generate(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "| `image.tag` | `\"\"` | Its tag, a\\|b. Empty: the release. |\n" +
		"| `resources` | `{\"limits\":{\"memory\":\"1Gi\"}}` | What it takes. |\n" +
		"| `part.list` | `[1,\"two\"]` | A list. |\n"
	if diff := cmp.Diff(want, strings.TrimPrefix(page, head)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, bad := range []string{"silent: 1\n", "part:\n  silent: 1\n", "empty: {}\n", "a: [\n"} {
		write(bad)
		if page, err := generate(path); err == nil {
			t.Errorf("%q gives %q", bad, page)
		}
	}
}
