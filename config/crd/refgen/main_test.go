package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "docs/reference/api.md"

// TestPageIsUpToDate checks that the page in the repository matches the CRDs.
func TestPageIsUpToDate(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is out of date, run 'make manifests' (-want +got):\n%s", page, diff)
	}
}

func TestRows(t *testing.T) {
	text, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"\n| `spec.repetitions` | integer, 1 to 50 | `6` | ",
		"\n| `spec.order` | `Interleaved`, `Sequential` | `Interleaved` | ",
		"\n| `spec.phases[]` | list of object, at most 16 |  | **Required.** ",
		"\n| `spec.matrix.NAME` | map of (list of string, at most 16), at most 6 |  | ",
		"\n| `spec.vdevs[].devices[]` | list of string, at most 16 |  | **Required.** ",
		" Fields: `spec.vdevs[]` of [BenchmarkPool](#benchmarkpool-spec). |\n",
	} {
		if !strings.Contains(string(text), row) {
			t.Errorf("there is no row %q", row)
		}
	}
}
