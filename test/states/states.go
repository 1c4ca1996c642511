// Package states stores the states of objects as the controllers write them, for the tests that show them to GitOps tools. Those tests are
// in their own module (test/gitops), which needs nothing from the product but these files.
package states

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Folder contains a folder of states for each kind. The path is relative to a package two folders below the root.
const Folder = "../../test/gitops/testdata"

var update = flag.Bool("update-states", false, "write the files of test/gitops/testdata")

// Check compares an object with its file.
func Check(t *testing.T, kind, name string, object any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	fields["apiVersion"], fields["kind"] = "storagebench.dev/v1alpha1", kind
	if status, is := fields["status"].(map[string]any); is {
		conditions, _ := status["conditions"].([]any)
		for _, condition := range conditions {
			if fields, is := condition.(map[string]any); is {
				fields["lastTransitionTime"] = "2026-11-21T12:00:00Z" // that of the test
			}
		}
	}
	written, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(Folder, kind, name+".json")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(written, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; -update-states writes it", err)
	}
	if difference := cmp.Diff(string(kept), string(written)+"\n"); difference != "" {
		t.Errorf("%s differs; -update-states writes it again, then go test -C test/gitops:\n%s", file, difference)
	}
}
