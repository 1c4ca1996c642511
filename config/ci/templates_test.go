// Package ci tests the pipeline templates: they contain the same script, and the script does what they promise. It also tests the workflow
// of releases.
package ci

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin is the path of the real plugin.
var plugin string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "")
	if err == nil {
		plugin = filepath.Join(folder, "plugin")
		err = exec.CommandContext(context.Background(), "go", "build", "-o", plugin, "../../cmd/kubectl-storagebench").Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the plugin:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// at returns the value at a path of keys and indices in a YAML file.
func at(t *testing.T, file string, path ...any) any {
	t.Helper()
	var value any
	if err := yaml.UnmarshalStrict([]byte(read(t, file)), &value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				t.Fatalf("%s: nothing at %v", file, path)
			}
			value = list[step]
		}
	}
	return value
}

// TestTemplatesHaveTheScript: each template is a file to copy, so it must contain the whole script and set the variables that the script
// needs.
func TestTemplatesHaveTheScript(t *testing.T) {
	gate := read(t, "gate.sh")
	for _, test := range []struct {
		file      string
		script    []any
		variables []any
		others    string
	}{
		{"github/action.yml", []any{"runs", "steps", 0, "run"}, []any{"runs", "steps", 0, "env"}, ""},
		{"gitlab/storagebench.gitlab-ci.yml", []any{".storagebench", "script", 0}, []any{".storagebench", "variables"}, "MANIFEST NAMESPACE LOCAL"},
		{"tekton/task.yaml", []any{"spec", "steps", 0, "script"}, []any{"spec", "steps", 0, "env"}, "LOCAL"},
		{"argo-workflows/template.yaml", []any{"spec", "templates", 0, "script", "source"},
			[]any{"spec", "templates", 0, "script", "env"}, "LOCAL"},
	} {
		if at(t, test.file, test.script...) != gate {
			t.Errorf("%s does not have gate.sh at %v", test.file, test.script)
		}
		set := fmt.Sprint(at(t, test.file, test.variables...))
		for _, variable := range []string{"MANIFEST", "SUFFIX", "RESULTS", "TIMEOUT", "NAMESPACE", "LOCAL"} {
			if !strings.Contains(set, variable) && !strings.Contains(test.others, variable) {
				t.Errorf("%s does not set %s", test.file, variable)
			}
		}
	}
	if strings.Contains(gate, "{{") || strings.Contains(gate, "${{") {
		t.Error("Argo Workflows and GitHub would replace a part of gate.sh")
	}
}

// TestWorkflowUsesTheAction copies the workflow and the action to the folders that the files name, and runs the workflow linter there.
func TestWorkflowUsesTheAction(t *testing.T) {
	tool, err := exec.CommandContext(t.Context(), "../../hack/tool", "actionlint").Output()
	if err != nil {
		t.Fatal(err)
	}
	lint := func(workflow string) (string, error) {
		repository := t.TempDir()
		for file, text := range map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".github/workflows/storage.yaml": workflow,
			".github/actions/storagebench/action.yml": read(t, "github/action.yml")} {
			path := filepath.Join(repository, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.CommandContext(t.Context(), strings.TrimSpace(string(tool)))
		command.Dir = repository
		said, err := command.CombinedOutput()
		return string(said), err
	}
	workflow := read(t, "github/workflow.yaml")
	if said, err := lint(workflow); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	if at(t, "github/workflow.yaml", "jobs", "gate", "if") != "github.event.pull_request.head.repo.full_name == github.repository" {
		t.Error("a fork's manifests are applied with the kubeconfig of the runner")
	}
	// The linter reads the action: it refuses unknown inputs and outputs.
	for _, wrong := range []string{strings.Replace(workflow, "manifest: ", "file: ", 1), strings.Replace(workflow, "outputs.verdict", "outputs.word", 1)} {
		if said, err := lint(wrong); err == nil || !strings.Contains(said, "storagebench") && !strings.Contains(said, `"word"`) {
			t.Errorf("%v\n%s", err, said)
		}
	}
}

// pipeline is a folder to run scripts in, with a manifest and a plugin that records its calls.
type pipeline struct {
	t           *testing.T
	folder      string
	environment []string
}

const manifest = `# in Git
---
apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata:
  name: gate
spec:
  target:
    storageClass: {size: 256Mi}
  phases:
  - name: fill
    fill: {to: 10%}
`

// another is a document that jobs would share.
const another = `apiVersion: v1
kind: ConfigMap
metadata:
  name: gate-baseline
`

// newPipeline makes a pipeline whose plugin validates like the real one, and answers the command run with an exit code. With "wait", it
// waits for a signal instead.
func newPipeline(t *testing.T, run string) *pipeline {
	t.Helper()
	p := &pipeline{t: t, folder: t.TempDir()}
	script := fmt.Sprintf(`#!/bin/sh
[ "$1" = validate ] || echo "$*" >>%[1]s/calls
case $1 in
  validate) exec %[2]s "$@" ;;
  suspend)
    [ ! -f %[1]s/absent ] || { echo does not exist >&2; exit 66; }
    [ "$3" = --delete-pool ] || exit 65 # the runs pass a pool on
    echo is suspended
    touch %[1]s/freed ;;
  report) mkdir -p "$4" && echo "# Passed" >"$4/report.md" && echo "<testsuites/>" >"$4/junit.xml" ;;
  run)
    cp "$2" %[1]s/applied
    [ %[3]s != wait ] || { trap 'echo terminated >>%[1]s/calls; exit 130' TERM; echo the plugin waits; while :; do sleep 0.02; done; }
    [ %[3]s != real ] || exec %[2]s "$@"
    [ %[3]s != 65 ] || echo the plugin refuses >&2
    exit %[3]s ;;
esac
`, p.folder, plugin, run)
	p.write("bin/kubectl-storagebench", script, 0o700)
	p.write("gate.yaml", manifest, 0o600)
	p.environment = append(os.Environ(), "PATH="+filepath.Join(p.folder, "bin")+":"+os.Getenv("PATH"), "MANIFEST=gate.yaml",
		"SUFFIX=job42-1", "RESULTS=results", "TMPDIR="+p.folder)
	return p
}

func (p *pipeline) write(name, text string, mode os.FileMode) {
	p.t.Helper()
	path := filepath.Join(p.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pipeline) file(name string) string {
	text, err := os.ReadFile(filepath.Join(p.folder, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func (p *pipeline) command(script string, environment ...string) *exec.Cmd {
	command := exec.CommandContext(p.t.Context(), "sh", "-e", "-c", script)
	command.Dir, command.Env = p.folder, append(p.environment, environment...)
	return command
}

func code(t *testing.T, command *exec.Cmd) (int, string) {
	t.Helper()
	said, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(said)
}

// TestGate: the script exits with the plugin's exit code. After a verdict it saves the reports; otherwise it frees the node.
func TestGate(t *testing.T) {
	for _, test := range []struct {
		run, verdict, last string
		code               int
	}{
		{"0", "Passed", "report gate-job42-1 --output-dir results --namespace stage", 0},
		{"1", "Failed", "report gate-job42-1 --output-dir results --namespace stage", 1},
		{"2", "Inconclusive", "report gate-job42-1 --output-dir results --namespace stage", 2},
		{"3", "Invalid", "report gate-job42-1 --output-dir results --namespace stage", 3},
		{"4", "None", "suspend gate-job42-1 --delete-pool --namespace stage", 4},
		{"65", "None", "suspend gate-job42-1 --delete-pool --namespace stage", 65}, // it may be Stalled
		{"66", "None", "suspend gate-job42-1 --delete-pool --namespace stage", 66},
		{"69", "None", "suspend gate-job42-1 --delete-pool --namespace stage", 69},
		{"137", "None", "suspend gate-job42-1 --delete-pool --namespace stage", 137},
	} {
		p := newPipeline(t, test.run)
		got, said := code(t, p.command(read(t, "gate.sh"), "NAMESPACE=stage", "TIMEOUT=5m"))
		if got != test.code || p.file("results/verdict") != test.verdict+"\n" {
			t.Errorf("%s: exit code %d, verdict %q\n%s", test.run, got, p.file("results/verdict"), said)
		}
		if _, err := os.Stat(filepath.Join(p.folder, "freed")); (err == nil) != strings.HasPrefix(test.last, "suspend") {
			t.Errorf("%s: whether the node is freed: %v", test.run, err)
		}
		calls := strings.Split(strings.TrimSpace(p.file("calls")), "\n")
		if !strings.HasPrefix(calls[0], "run ") || !strings.HasSuffix(calls[0], " --wait --timeout 5m --namespace stage") {
			t.Errorf("%s: %q", test.run, calls)
		}
		if last := calls[len(calls)-1]; last != test.last {
			t.Errorf("%s: %q", test.run, calls)
		}
		if want := strings.Replace(manifest, "  name: gate\nspec", "  name: gate-job42-1\nspec", 1); p.file("applied") != want {
			t.Errorf("%s: it applies\n%s", test.run, p.file("applied"))
		}
		if left, _ := filepath.Glob(filepath.Join(p.folder, "tmp.*")); len(left) > 0 {
			t.Errorf("%s leaves %q", test.run, left)
		}
	}
}

// TestGateRefuses: the script refuses an unusable manifest before it applies anything, with an exit code that is not a verdict's.
func TestGateRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"invalid":     strings.Replace(manifest, "10%", "110%", 1),
		"none":        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: gate\n",
		"two":         manifest + strings.TrimPrefix(strings.Replace(manifest, "  name: gate\nspec", "  name: other\nspec", 1), "# in Git\n"),
		"in one line": strings.Replace(manifest, "metadata:\n  name: gate\nspec", "metadata: {name: gate}\nspec", 1),
		"too long":    strings.Replace(manifest, "  name: gate\nspec", "  name: "+strings.Repeat("x", 60)+"\nspec", 1),
	} {
		p := newPipeline(t, "0")
		p.write("gate.yaml", text, 0o600)
		if got, said := code(t, p.command(read(t, "gate.sh"))); got != 65 || p.file("calls") != "" || p.file("results/verdict") != "None\n" {
			t.Errorf("%s: exit code %d, %q\n%s", name, got, p.file("calls"), said)
		}
	}
}

// TestGateAppliesNothingShared: of a file with other documents, nothing is applied, because a job at the same time could replace them. The
// message names them.
func TestGateAppliesNothingShared(t *testing.T) {
	target := "apiVersion: storagebench.dev/v1alpha1\nkind: StorageTarget\nmetadata: {name: disk}\nspec:\n  storageClass: {size: 1Gi}\n"
	for name, test := range map[string]struct{ text, says string }{
		"before":          {another + manifest, "line 1: ConfigMap gate-baseline"},
		"after a comment": {manifest + "--- # numbers\n" + another, "line 14: ConfigMap gate-baseline"},
		"a target":        {manifest + "---\n" + target, "line 14: StorageTarget"},
		"in one line":     {manifest + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", "line 14: a document without kind"},
		"two others":      {another + manifest + "---\n" + target, "line 18: StorageTarget"},
	} {
		p := newPipeline(t, "0")
		p.write("gate.yaml", test.text, 0o600)
		got, said := code(t, p.command(read(t, "gate.sh")))
		if got != 65 || p.file("calls") != "" || !strings.Contains(said, test.says) || !strings.Contains(said, "beforehand from the main branch") {
			t.Errorf("%s: exit code %d, %q\n%s", name, got, p.file("calls"), said)
		}
	}
	p := newPipeline(t, "0")
	p.write("gate.yaml", "--- # ours\n"+manifest+"---\n# the end\n", 0o600)
	if got, said := code(t, p.command(read(t, "gate.sh"))); got != 0 {
		t.Errorf("comments are no document: exit code %d\n%s", got, said)
	}
}

// TestGateKeepsToOneNamespace: the benchmark is applied, suspended and reported in one namespace: that of the file, or else NAMESPACE.
func TestGateKeepsToOneNamespace(t *testing.T) {
	for _, test := range []struct {
		file, variable, says string
		code                 int
	}{
		{"", "", "suspend gate-job42-1 --delete-pool", 4},
		{"", "stage", "suspend gate-job42-1 --delete-pool --namespace stage", 4},
		{"  namespace: stage\n", "", "suspend gate-job42-1 --delete-pool --namespace stage", 4},
		{"  namespace: stage # shared\n", "stage", "suspend gate-job42-1 --delete-pool --namespace stage", 4},
		{"  namespace: stage\n", "other", "is for the namespace stage, but NAMESPACE is other", 65},
		{"  namespace: 'stage'\n", "", "needs its namespace unquoted", 65},
		{"  \"namespace\" : stage\n", "", "needs its namespace unquoted", 65},
	} {
		p := newPipeline(t, "4")
		p.write("gate.yaml", strings.Replace(manifest, "  name: gate\n", "  name: gate\n"+test.file, 1), 0o600)
		got, said := code(t, p.command(read(t, "gate.sh"), "NAMESPACE="+test.variable))
		if calls := p.file("calls"); got != test.code || !strings.Contains(said+calls, test.says) || got == 65 && calls != "" {
			t.Errorf("%+v: exit code %d, %q\n%s", test, got, calls, said)
		}
		if named := strings.Contains(test.says, "--namespace"); named != strings.Contains(p.file("calls"), "--timeout 2h --namespace stage\n") {
			t.Errorf("%+v: %q", test, p.file("calls"))
		}
	}
}

// TestSuffixIsUnique: long suffixes that differ anywhere give different names, and the suffix of each template contains everything that
// differs between its jobs.
func TestSuffixIsUnique(t *testing.T) {
	names := map[string]bool{}
	for _, suffix := range []string{"12345678901-1-0-fast-storage-of-tests", "12345678901-1-0-slow-storage-of-tests", "12345678902-1-0-fast-storage-of-tests",
		"12345678901-1-0", "12345678901-1-1", "12345678901-2-0", "1-1-a_b-0", "1-1-ab-0", "1-1-AB-0", "12345678901-1-fast_storage-0",
		"12345678901-1-faststorage-0"} {
		p := newPipeline(t, "0")
		if got, said := code(t, p.command(read(t, "gate.sh"), "SUFFIX="+suffix)); got != 0 {
			t.Fatal(said)
		}
		names[strings.Fields(strings.SplitN(p.file("applied"), "\n  name: gate-", 2)[1])[0]] = true
	}
	if len(names) != 11 {
		t.Errorf("%v", names)
	}
	for file, parts := range map[string][]string{
		"github/action.yml":                 {"github.run_id", "github.run_attempt", "github.job ", "strategy.job-index", "inputs.suffix"},
		"gitlab/storagebench.gitlab-ci.yml": {"$CI_JOB_ID"}, "tekton/task.yaml": {"context.taskRun.uid", "context.task.retry-count"},
		"argo-workflows/template.yaml": {"{{pod.name}}"},
	} {
		for _, part := range parts {
			if !strings.Contains(read(t, file), part) {
				t.Errorf("%s: the name does not have %s", file, part)
			}
		}
	}
	for part, value := range map[string]any{"SUFFIX": at(t, "github/action.yml", "runs", "steps", 0, "env", "SUFFIX"),
		"artifact": at(t, "github/action.yml", "runs", "steps", 2, "with", "name")} {
		name := fmt.Sprint(value)
		if !strings.Contains(name, "github.job ") || !strings.Contains(name, "job-index") || !strings.Contains(name, "inputs.suffix") {
			t.Errorf("%s: two jobs would both have %s", part, name)
		}
		if strings.Contains(regexp.MustCompile(`\$\{\{.*?}}`).ReplaceAllString(name, ""), " ") {
			t.Errorf("%s: folding the lines has left a space outside of expressions: %s", part, name)
		}
	}
}

// TestGateWithoutAnswer: if the script cannot measure, its exit code is not a verdict's, and the verdict and the reports of an earlier
// job are gone.
func TestGateWithoutAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		environment string
		code        int
		says        string
	}{
		"no manifest":      {"MANIFEST=", 64, "set MANIFEST"},
		"a folder":         {"MANIFEST=bin", 64, "it is 'bin'"},
		"another file":     {"MANIFEST=none.yaml", 64, "it is 'none.yaml'"},
		"no room for temp": {"TMPDIR=/none", 70, "/none"},
		"an old verdict":   {"MANIFEST=bad.yaml", 65, "it is not YAML"},
	} {
		p := newPipeline(t, "0")
		for _, file := range []string{"verdict", "report.md", "report.html", "junit.xml", "results.json"} {
			p.write("results/"+file, "Passed\n", 0o600)
		}
		p.write("bad.yaml", "kind: [", 0o600)
		command := p.command(read(t, "gate.sh"), test.environment)
		var problems strings.Builder
		command.Stderr = &problems
		_ = command.Run()
		if got := command.ProcessState.ExitCode(); got != test.code || p.file("results/verdict") != "None\n" || p.file("calls") != "" ||
			!strings.Contains(problems.String(), test.says) {
			t.Errorf("%s: exit code %d, verdict %q, %q: %s", name, got, p.file("results/verdict"), p.file("calls"), problems.String())
		}
		if left, _ := os.ReadDir(filepath.Join(p.folder, "results")); len(left) != 1 {
			t.Errorf("%s: an earlier job has left %v", name, left)
		}
	}
}

// TestGateIsCancelled: the node is freed when the pipeline ends before the benchmark.
func TestGateIsCancelled(t *testing.T) {
	p := newPipeline(t, "wait")
	command := p.command(read(t, "gate.sh"))
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for begun := false; !begun; begun = lines.Text() == "the plugin waits" {
		if !lines.Scan() {
			t.Fatal("the plugin did not begin")
		}
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if got, calls := command.ProcessState.ExitCode(), p.file("calls"); got != 130 ||
		!strings.HasSuffix(calls, "terminated\nsuspend gate-job42-1 --delete-pool\n") {
		t.Errorf("exit code %d, %q", got, calls)
	}
}

// TestGateSuspendsQuietly: that a benchmark does not exist needs no message; anything else that suspend says is shown.
func TestGateSuspendsQuietly(t *testing.T) {
	for exists, says := range map[bool]string{false: "", true: "is suspended\n"} {
		p := newPipeline(t, "65")
		if !exists {
			p.write("absent", "", 0o600)
		}
		got, said := code(t, p.command(read(t, "gate.sh")))
		if got != 65 || !strings.HasSuffix(said, "the plugin refuses\n"+says) {
			t.Errorf("exists %v: exit code %d\n%s", exists, got, said)
		}
	}
}

// TestSummary: GitHub shows the report, and later steps get the verdict.
func TestSummary(t *testing.T) {
	show, _ := at(t, "github/action.yml", "runs", "steps", 1, "run").(string)
	p := newPipeline(t, "0")
	if got, said := code(t, p.command(read(t, "gate.sh"), "RESULTS=storagebench-results")); got != 0 {
		t.Fatal(said)
	}
	if got, said := code(t, p.command(show, "GITHUB_OUTPUT=output", "GITHUB_STEP_SUMMARY=summary")); got != 0 {
		t.Fatal(said)
	}
	if p.file("output") != "verdict=Passed\n" || p.file("summary") != "# Passed\n" {
		t.Errorf("%q, %q", p.file("output"), p.file("summary"))
	}
	// After a cancelled step there may be no results.
	empty := &pipeline{t: t, folder: t.TempDir()}
	if got, said := code(t, empty.command(show, "PATH="+os.Getenv("PATH"), "GITHUB_OUTPUT=output", "GITHUB_STEP_SUMMARY=summary")); got != 0 ||
		said != "" || empty.file("output") != "" {
		t.Errorf("%d %s", got, said)
	}
}

// TestGateLocally runs the whole script without a cluster: the real plugin, real numbers, real reports.
func TestGateLocally(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed; hack/ensure-workloads installs it")
	}
	for gate, want := range map[string]struct {
		code    int
		verdict string
	}{"1.0": {0, "Passed"}, "1e15": {1, "Failed"}} {
		p := newPipeline(t, "real")
		p.write("gate.yaml", another+strings.Replace(manifest, "    fill: {to: 10%}\n", `    fill: {to: 10%}
  - name: read
    measure: {workload: {oltp: {workers: 1, duration: 1s}}}
  repetitions: 1
  gates:
  - {name: reads, expression: "phase('read').readOperationsPerSecond > `+gate+`"}
`, 1), 0o600)
		if err := os.Mkdir(filepath.Join(p.folder, "volume"), 0o755); err != nil {
			t.Fatal(err)
		}
		got, said := code(t, p.command(read(t, "gate.sh"), "LOCAL=volume"))
		if got != want.code || p.file("results/verdict") != want.verdict+"\n" || !strings.Contains(p.file("results/report.md"), want.verdict) ||
			!strings.Contains(p.file("results/junit.xml"), "<testcase") {
			t.Errorf("%s: exit code %d, %q\n%s", gate, got, p.file("results/verdict"), said)
		}
	}
}
