package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// validate runs the command and returns the exit code and the output, without the folder of the file.
func validate(t *testing.T, path string, flags ...string) (int, string) {
	t.Helper()
	app, out, errors := testApp()
	code := app.Main(t.Context(), append([]string{"validate", path}, flags...))
	return code, strings.ReplaceAll(out.String()+errors.String(), filepath.Dir(path)+"/", "")
}

func TestSamplesAndExperimentsAreValid(t *testing.T) {
	count := 0
	for _, pattern := range []string{"../../config/samples/*.yaml", "../../experiments/*/*.yaml", "../../experiments/*/lab/target.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if filepath.Base(path) == "kustomization.yaml" {
				continue
			}
			count++
			if code, said := validate(t, path); code != 0 || !strings.Contains(said, "is valid") {
				t.Errorf("%s: exit code %d: %s", path, code, said)
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d files", count)
	}
}

// TestExperimentsAreValid: each folder of experiments has a benchmark of its name, the storage that it refers to, and an explanation.
func TestExperimentsAreValid(t *testing.T) {
	benchmarks, err := filepath.Glob("../../experiments/*/experiment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, benchmark := range benchmarks {
		folder := filepath.Dir(benchmark)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, filepath.Join(folder, "lab", "target.yaml"))
			app, out, errors := testApp()
			code := app.Main(t.Context(), append([]string{"validate"}, files...))
			said := out.String() + errors.String()
			if code != ExitPassed || !strings.Contains(said, "StorageBenchmark "+filepath.Base(folder)+" is valid: ") {
				t.Errorf("exit code %d: %s", code, said)
			}
			for _, unwanted := range []string{"is in none of the files", "cannot be decided", "warning"} {
				if strings.Contains(said, unwanted) {
					t.Errorf("says %q: %s", unwanted, said)
				}
			}
			if text := read(t, filepath.Join(folder, "README.md")); strings.Count(text, "\n") < 10 {
				t.Errorf("README.md has little to say: %s", text)
			}
		})
	}
	if len(benchmarks) < 41 {
		t.Errorf("only %d folders", len(benchmarks))
	}
}

// TestValidate compares the output for good and bad files with golden files.
func TestValidate(t *testing.T) {
	paths, err := filepath.Glob("testdata/validate/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		want := ExitFailed
		if strings.HasPrefix(filepath.Base(path), "valid") {
			want = ExitPassed
		}
		code, said := validate(t, path)
		if code != want {
			t.Errorf("%s: exit code %d", path, code)
		}
		golden(t, "validate/"+strings.TrimSuffix(filepath.Base(path), ".yaml")+".txt", said)
	}
}

// TestValidateGoesOn: one bad file does not hide another.
func TestValidateGoesOn(t *testing.T) {
	app, out, _ := testApp()
	code := app.Main(t.Context(), []string{"validate", "missing.yaml", "../../config/samples/quickstart.yaml", "testdata/validate/gate.yaml"})
	for _, says := range []string{"missing.yaml: no such file", "quickstart is valid: 2 runs", "gate.yaml:"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("does not say %q:\n%s", says, out)
		}
	}
	if code != ExitFailed {
		t.Error(code)
	}
}

// TestValidateGoesOnInAFile: one bad document does not hide another.
func TestValidateGoesOnInAFile(t *testing.T) {
	code, said := validate(t, file(t, "two.yaml", "kind: StorageBenchmark\n---\n"+read(t, "../../config/samples/quickstart.yaml")+
		"---\nkind: StorageTarget\n"))
	for _, says := range []string{"two.yaml:1: apiVersion is missing", "quickstart is valid: 2 runs", "two.yaml:19: apiVersion is missing"} {
		if !strings.Contains(said, says) {
			t.Errorf("does not say %q:\n%s", says, said)
		}
	}
	if code != ExitFailed {
		t.Error(code)
	}
}

// TestValidateWithStorageTargets: a StorageTarget may be in another file. Without it, only the benchmark's own fields are checked.
func TestValidateWithStorageTargets(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("apiVersion: storagebench.dev/v1alpha1\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	class := write("class.yaml", "kind: StorageTarget\nmetadata: {name: disks}\nspec: {storageClass: {size: 1Gi, volumeMode: Block}}")
	pages := write("files.yaml", "kind: StorageTarget\nmetadata: {name: disks}\nspec: {storageClass: {size: 1Gi}}")
	benchmark := write("benchmark.yaml", "kind: StorageBenchmark\nmetadata: {name: it}\nspec:\n  target: {ref: {name: disks}}\n"+
		"  phases: [{name: small, measure: {workload: {metadata: {}}}}]")
	elsewhere := write("elsewhere.yaml", "kind: StorageTarget\nmetadata: {name: disks, namespace: other}\nspec: {storageClass: {size: 1Gi, volumeMode: Block}}")
	ours := write("ours.yaml", "kind: StorageBenchmark\nmetadata: {name: it, namespace: lab}\nspec:\n  target: {ref: {name: disks}}\n"+
		"  phases: [{name: small, measure: {workload: {metadata: {}}}}]")
	wrong := write("wrong.yaml", "kind: StorageTarget\nmetadata: {name: pools}\nspec:\n  zfs:\n    nodes: {matchLabels: {a: b}}\n"+
		"    pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}\n    dataset: {properties: {recordsze: 8k}}")
	for _, c := range []struct {
		files []string
		code  int
		says  string
	}{
		{[]string{wrong}, ExitFailed, "did you mean recordsize?"},
		{[]string{ours, elsewhere}, ExitPassed, "StorageTarget disks is in none of the files"},
		{[]string{ours, elsewhere, pages}, ExitPassed, "6 runs"},
		{[]string{ours, pages, elsewhere}, ExitPassed, "6 runs"},
		{[]string{benchmark, elsewhere}, ExitFailed, "phase small"},
		{[]string{benchmark}, ExitPassed, "StorageTarget disks is in none of the files"},
		{[]string{benchmark, pages}, ExitPassed, "6 runs"},
		{[]string{benchmark, class}, ExitFailed, "phase small"},
	} {
		app, out, errors := testApp()
		if code := app.Main(t.Context(), append([]string{"validate"}, c.files...)); code != c.code ||
			!strings.Contains(out.String()+errors.String(), c.says) {
			t.Errorf("exit code %d, want %d and %q: %s%s", code, c.code, c.says, out, errors)
		}
	}
}

// TestHostileTextIsHarmless: text in a manifest cannot control a terminal.
func TestHostileTextIsHarmless(t *testing.T) {
	path := file(t, "evil.yaml",
		"apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata: {name: \"\\e]0;evil\\a\\u202Ex\"}\n")
	code, said := validate(t, path)
	if code != ExitFailed || strings.ContainsAny(said, "\x1b\a\u202e\u009b") {
		t.Errorf("%d %q", code, said)
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain µ 漢": "plain µ 漢", "\x1b[2Jgone": "[2Jgone", "a\tb\nc\r": "a b c ", "bad\xff": "bad?", "\u202eabc\u200b\u2028": "abc",
		"\u009b31m": "31m",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestWrongManifests: a manifest that cannot work is refused without a cluster, at the wrong line, with what to write instead. The first
// line of each file has the expected line and message.
func TestWrongManifests(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		first, _, _ := strings.Cut(read(t, path), "\n")
		code, said := validate(t, path)
		if want := filepath.Base(path) + ":" + strings.TrimPrefix(first, "# "); code != ExitFailed || !strings.Contains(said, want) {
			t.Errorf("exit code %d, and not %q: %s", code, want, said)
		}
	}
	if len(files) < 21 {
		t.Errorf("only %d files", len(files))
	}
}

// TestExamplesOfValidate: an example with files of this repository names all the files that it needs.
func TestExamplesOfValidate(t *testing.T) {
	found := 0
	for line := range strings.Lines((&App{}).validateCommand().Example) {
		command, _, _ := strings.Cut(line, ">")
		arguments := []string{"validate"}
		for _, word := range strings.Fields(command) {
			if strings.HasPrefix(word, "experiments/") {
				arguments = append(arguments, "../../"+word)
			}
		}
		if len(arguments) == 1 {
			continue
		}
		found++
		app, out, errors := testApp()
		if code := app.Main(t.Context(), arguments); code != ExitPassed || strings.Contains(out.String(), "is in none of the files") {
			t.Errorf("%s%d %s%s", line, code, out, errors)
		}
	}
	if found == 0 {
		t.Error("no example has files of this repository")
	}
}

// TestValidateSkipsNamedKustomizations: DIR/*.yaml is checked like DIR. If there is nothing else to check, that is an error.
func TestValidateSkipsNamedKustomizations(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kustomization := write("kustomization.yaml", "resources: [b.yaml]\n")
	benchmark := write("b.yaml", read(t, "../../config/samples/quickstart.yaml"))
	for _, test := range []struct {
		files []string
		code  int
		says  []string
	}{
		{[]string{benchmark, kustomization}, ExitPassed, []string{folder + ": note: its kustomization is not applied", "is valid"}},
		{[]string{kustomization}, ExitFailed, []string{folder + ": its kustomization is not applied"}},
		{[]string{filepath.Join(t.TempDir(), "kustomization.yaml")}, ExitFailed, []string{"no such file"}},
	} {
		code, out, errors := called(t, newHub(t), append([]string{"validate"}, test.files...)...)
		for _, says := range test.says {
			if code != test.code || !strings.Contains(out+errors, says) {
				t.Errorf("%v: %d, not %q: %s%s", test.files, code, says, out, errors)
			}
		}
	}
}

// TestEachKindHasASchema: the schemas are found by the kinds in the CRDs, and all of them compile.
func TestEachKindHasASchema(t *testing.T) {
	known, err := loadSchemas()
	if err != nil || len(known) != len(ownCRDs()) {
		t.Fatal(known, err)
	}
	for _, definition := range ownCRDs() {
		if compiled, err := known[definition.Spec.Names.Kind](); err != nil || compiled.structural == nil {
			t.Errorf("%s: %v", definition.Spec.Names.Kind, err)
		}
	}
}
