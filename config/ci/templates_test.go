// Package ci tests the pipeline templates: they contain the same script, which runs the plugin as they promise. It also tests the workflow
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

// templates are the files to copy, with the places of the script and of the variables that it uses. Some set others only in comments.
var templates = []struct {
	file              string
	script, variables []any
	others            string
}{
	{"github/action.yml", []any{"runs", "steps", 0, "run"}, []any{"runs", "steps", 0, "env"}, ""},
	{"gitlab/storagebench.gitlab-ci.yml", []any{".storagebench", "script", 0}, []any{".storagebench", "variables"}, "MANIFEST NAMESPACE LOCAL"},
	{"tekton/task.yaml", []any{"spec", "steps", 0, "script"}, []any{"spec", "steps", 0, "env"}, "LOCAL"},
	{"argo-workflows/template.yaml", []any{"spec", "templates", 0, "script", "source"}, []any{"spec", "templates", 0, "script", "env"}, "LOCAL"},
}

// script returns the script of the templates.
func script(t *testing.T) string {
	t.Helper()
	text, _ := at(t, templates[0].file, templates[0].script...).(string)
	return text
}

// TestTemplatesHaveTheScript: all templates have the same script, and set the variables that it needs.
func TestTemplatesHaveTheScript(t *testing.T) {
	gate := script(t)
	for _, test := range templates {
		if at(t, test.file, test.script...) != gate {
			t.Errorf("%s has another script at %v", test.file, test.script)
		}
		set := fmt.Sprint(at(t, test.file, test.variables...))
		for _, variable := range []string{"MANIFEST", "SUFFIX", "RESULTS", "TIMEOUT", "NAMESPACE", "LOCAL"} {
			if !strings.Contains(set, variable) && !strings.Contains(test.others, variable) {
				t.Errorf("%s does not set %s", test.file, variable)
			}
			if !strings.Contains(gate, "$"+variable) {
				t.Errorf("the script does not use %s", variable)
			}
		}
	}
	if strings.Contains(gate, "{{") || strings.Contains(gate, "${{") {
		t.Error("Argo Workflows and GitHub would replace a part of the script")
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

// newPipeline makes a pipeline whose plugin records its arguments and ends with an exit code. With "wait" it waits for a signal, and with
// "real" it is the real one.
func newPipeline(t *testing.T, run string) *pipeline {
	t.Helper()
	p := &pipeline{t: t, folder: t.TempDir()}
	text := fmt.Sprintf(`#!/bin/sh
[ %[3]s != real ] || exec %[2]s "$@"
printf '%%s\n' "$@" >%[1]s/arguments
[ %[3]s != wait ] || { trap 'echo terminated; exit 130' TERM; echo the plugin waits; while :; do sleep 0.02; done; }
exit %[3]s
`, p.folder, plugin, run)
	p.write("bin/kubectl-storagebench", text, 0o700)
	p.write("gate.yaml", manifest, 0o600)
	p.environment = append(os.Environ(), "PATH="+filepath.Join(p.folder, "bin")+":"+os.Getenv("PATH"), "MANIFEST=gate.yaml",
		"SUFFIX=Job_42-1", "RESULTS=results", "TIMEOUT=5m")
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

// TestScript: the plugin gets each value as one argument, whatever is in it, and its exit code is that of the step.
func TestScript(t *testing.T) {
	for _, test := range []struct {
		environment []string
		want        string
		code        int
	}{
		{nil, "gate --suffix Job_42-1 --output-dir results --timeout 5m -- gate.yaml", 0},
		{[]string{"NAMESPACE=", "LOCAL="}, "gate --suffix Job_42-1 --output-dir results --timeout 5m -- gate.yaml", 1},
		{[]string{"NAMESPACE=stage"}, "gate --suffix Job_42-1 --output-dir results --timeout 5m --namespace stage -- gate.yaml", 3},
		{[]string{"LOCAL=/mnt/a disk", "MANIFEST=-x $(touch planted)"},
			"gate --suffix Job_42-1 --output-dir results --timeout 5m --local /mnt/a_disk -- -x_$(touch_planted)", 65},
	} {
		p := newPipeline(t, fmt.Sprint(test.code))
		got, said := code(t, p.command(script(t), test.environment...))
		arguments := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(p.file("arguments")), " ", "_"), "\n", " ")
		if got != test.code || arguments != test.want {
			t.Errorf("%v: exit code %d, %q\n%s", test.environment, got, arguments, said)
		}
		if _, err := os.Stat(filepath.Join(p.folder, "planted")); err == nil {
			t.Errorf("%v: a part of a value was executed", test.environment)
		}
	}
}

// TestSuffixIsUnique: the suffix of each template contains everything that differs between its jobs.
func TestSuffixIsUnique(t *testing.T) {
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

// TestScriptIsCancelled: the plugin gets the signal, because it has taken the place of the shell.
func TestScriptIsCancelled(t *testing.T) {
	p := newPipeline(t, "wait")
	command := p.command(script(t))
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
	if !lines.Scan() || lines.Text() != "terminated" {
		t.Errorf("the plugin was not asked to end: %q", lines.Text())
	}
	_ = command.Wait()
	if got := command.ProcessState.ExitCode(); got != 130 {
		t.Errorf("exit code %d", got)
	}
}

// TestSummary: GitHub shows the report, and later steps get the verdict.
func TestSummary(t *testing.T) {
	show, _ := at(t, "github/action.yml", "runs", "steps", 1, "run").(string)
	p := newPipeline(t, "0")
	p.write("storagebench-results/verdict", "Passed\n", 0o600)
	p.write("storagebench-results/report.md", "# Passed\n", 0o600)
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

// TestScriptLocally runs the script without a cluster: the real plugin, real numbers, real reports.
func TestScriptLocally(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed; hack/ensure-workloads installs it")
	}
	for gate, want := range map[string]struct {
		code    int
		verdict string
	}{"1.0": {0, "Passed"}, "1e15": {1, "Failed"}} {
		p := newPipeline(t, "real")
		p.write("gate.yaml", strings.Replace(manifest, "    fill: {to: 10%}\n", `    fill: {to: 10%}
  - name: read
    measure: {workload: {oltp: {workers: 1, duration: 1s}}}
  repetitions: 1
  gates:
  - {name: reads, expression: "phase('read').readOperationsPerSecond > `+gate+`"}
`, 1), 0o600)
		if err := os.Mkdir(filepath.Join(p.folder, "volume"), 0o755); err != nil {
			t.Fatal(err)
		}
		got, said := code(t, p.command(script(t), "LOCAL=volume"))
		if got != want.code || p.file("results/verdict") != want.verdict+"\n" || !strings.Contains(p.file("results/report.md"), want.verdict) ||
			!strings.Contains(p.file("results/junit.xml"), "<testcase") {
			t.Errorf("%s: exit code %d, %q\n%s", gate, got, p.file("results/verdict"), said)
		}
	}
}
