package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// judged runs validate in a folder.
func judged(t *testing.T, folder string, arguments ...string) (code int, out string) {
	t.Helper()
	t.Chdir(folder)
	app, said, errors := testApp()
	app.Version = "v1.2.3"
	code = app.Main(t.Context(), append([]string{"validate"}, arguments...))
	if errors.String() != "" {
		t.Errorf("%v: %s", arguments, errors)
	}
	return code, said.String()
}

// TestFindings compares the documents for programs with golden files, for good and bad manifests.
func TestFindings(t *testing.T) {
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"json", "sarif"} {
		code, said := judged(t, "testdata/validate", "-o", format, "missing.yaml", "fields.yaml", "gate.yaml", "kinds.yaml", "valid-others.yaml")
		t.Chdir(home)
		golden(t, "validate/findings."+format, said)
		if code != ExitFailed || !json.Valid([]byte(said)) {
			t.Errorf("%s: exit code %d", format, code)
		}
	}
}

// TestNoFindings: without findings there is an empty list. A long list also contains the mistakes that the text for people omits.
func TestNoFindings(t *testing.T) {
	folder := t.TempDir()
	valid := read(t, "../../config/samples/quickstart.yaml")
	if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(valid), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := judged(t, folder, "-o", "json", "a.yaml"); code != ExitPassed || said != "[]\n" {
		t.Errorf("exit code %d: %s", code, said)
	}
	var document struct{ Runs []struct{ Results []any } }
	code, said := judged(t, folder, "-o", "sarif", "a.yaml")
	if err := json.Unmarshal([]byte(said), &document); err != nil || code != ExitPassed || len(document.Runs) != 1 ||
		document.Runs[0].Results == nil || len(document.Runs[0].Results) != 0 {
		t.Errorf("exit code %d: %v: %s", code, err, said)
	}
	var unknown strings.Builder
	for i := range 2 * maxProblems {
		fmt.Fprintf(&unknown, "\n  unknown%d: 1", i)
	}
	many := strings.Replace(valid, "spec:", "spec:"+unknown.String(), 1)
	if err := os.WriteFile(filepath.Join(folder, "b.yaml"), []byte(many), 0o600); err != nil {
		t.Fatal(err)
	}
	var found []remark
	code, said = judged(t, folder, "-o", "json", "b.yaml")
	if err := json.Unmarshal([]byte(said), &found); err != nil || code != ExitFailed || len(found) != 2*maxProblems {
		t.Errorf("exit code %d: %d: %v", code, len(found), err)
	}
	app, _, errors := testApp()
	if code := app.Main(t.Context(), []string{"validate", "-o", "xml", "a.yaml"}); code != ExitUsage ||
		!strings.Contains(errors.String(), "write one of text, json, sarif") {
		t.Errorf("exit code %d: %s", code, errors)
	}
}

// TestRemarksOnATerminal: file names and values cannot move the cursor, and characters that are special only to HTML stay readable.
func TestRemarksOnATerminal(t *testing.T) {
	app, out, _ := testApp()
	app.Terminal = func() (int, int, bool) { return 80, 24, true }
	code := app.Main(t.Context(), []string{"validate", "-o", "json", "<a>\u009b2J.yaml"})
	if code != ExitFailed || !strings.Contains(out.String(), "<a>") || strings.Contains(out.String(), "\u009b") {
		t.Errorf("%d %q", code, out)
	}
}

// TestValidateFolder: a folder stands for the manifests in it, but not for those in its subfolders.
func TestValidateFolder(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"b/a.yaml": read(t, "../../config/samples/quickstart.yaml"), "b/kustomization.yaml": "resources: [a.yaml]",
		"b/notes.md": "# no manifest", "b/c/wrong.yaml": "kind: none", "empty/c.txt": "",
		"overlay/kustomization.yml": "resources: [../b]"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, said := judged(t, folder, "b"); code != ExitPassed || !strings.Contains(said, filepath.Join("b", "a.yaml")+":") ||
		strings.Count(said, "\n") != 2 || !strings.Contains(said, "run kubectl kustomize b | ") {
		t.Errorf("exit code %d: %s", code, said)
	}
	code, said := judged(t, folder, "b", "empty", "overlay", "-o", "json")
	var found []remark
	if err := json.Unmarshal([]byte(said), &found); err != nil || code != ExitFailed || len(found) != 3 {
		t.Fatalf("exit code %d: %v: %s", code, err, said)
	}
	for i, want := range []remark{{File: "b", Severity: severityNote, Message: "its kustomization is not applied"},
		{File: "empty", Severity: severityError, Message: "the folder has no .yaml"},
		{File: "overlay", Severity: severityError, Message: "its kustomization is not applied"}} {
		if found[i].File != want.File || found[i].Severity != want.Severity || !strings.HasPrefix(found[i].Message, want.Message) {
			t.Errorf("%+v, want %+v", found[i], want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	for text, want := range map[string]remark{
		"a.yaml:7: it is not YAML: tab": {Line: 7, Message: "it is not YAML: tab"}, "a.yaml: no such file": {Message: "no such file"},
		"cannot read": {Message: "cannot read"}, "a.yamlx": {Message: "a.yamlx"},
	} {
		want.File, want.Severity = "a.yaml", severityError
		if diff := cmp.Diff(want, unreadable("a.yaml", exitf(ExitRefused, "%s", text))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestURIOf(t *testing.T) {
	for path, want := range map[string]string{"./a b.yaml": "a%20b.yaml", "c/../d.yaml": "d.yaml", "/x/y.yaml": "file:///x/y.yaml", "-": "-",
		"a:b.yaml": "./a:b.yaml"} {
		if got := uriOf(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
