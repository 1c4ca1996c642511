package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeBench returns a bench with a checkout that has one row, and with programs that record how they are called.
func fakeBench(t *testing.T, exitCode int) (b bench, calls func() []string) {
	t.Helper()
	folder := t.TempDir()
	write := func(path, text string, mode os.FileMode) {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil { //nolint:gosec // programs are executable
			t.Fatal(err)
		}
	}
	write("experiments/README.md", "| S99 | Does a scan survive? | [ageing-small](ageing-small) | `scan` |\n", 0o600)
	write("experiments/ageing-small/README.md", "# S99\n", 0o600)
	write("experiments/ageing-small/experiment.yaml", "# S99: it.\n# Shape: yes.\n", 0o600)
	write("experiments/ageing-small/lab/kustomization.yaml", "resources: []\n", 0o600)
	write("docs/README.md", "", 0o600)
	write("Makefile", "DISK_IOPS ?= 1000\nVERSION ?= 1\n", 0o600)
	results, err := filepath.Abs("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(folder, "calls")
	note := fmt.Sprintf("#!/bin/sh\necho \"$(basename $0) $*\" | sed 's#%s/##g' >>%s\n", folder, log)
	write("kubectl", note+"[ $1 != kustomize ] || printf 'kind: StorageBenchmark\\nname: it\\n---\\nkind: StorageTarget\\n'\n", 0o700)
	write("plugin", note+fmt.Sprintf("case $1 in run) exit %d;; report) mkdir -p $6; cp %s $6/results.json;; esac\n", exitCode, results), 0o700)
	b = bench{root: folder, kubectl: filepath.Join(folder, "kubectl"), plugin: filepath.Join(folder, "plugin"), namespace: "space",
		commit: "cd88eb7d1f3a", timeout: time.Minute, out: &bytes.Buffer{}}
	return b, func() []string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

// runOnly runs the only row of the checkout.
func runOnly(ctx context.Context, t *testing.T, b bench) error {
	t.Helper()
	rows, err := loadRows(b.root)
	if err != nil {
		t.Fatal(err)
	}
	return b.run(ctx, rows[0])
}

// TestRun: a verdict is kept, whatever it is, and the objects of the run are removed.
func TestRun(t *testing.T) {
	b, calls := fakeBench(t, 1)
	if err := runOnly(t.Context(), t, b); err != nil {
		t.Fatal(err)
	}
	const dist = "dist/catalogue/ageing-small/"
	removed := []string{
		"kubectl delete --namespace space --filename " + dist + "benchmark.yaml --ignore-not-found --timeout 5m",
		"kubectl delete --namespace space --filename " + dist + "storage.yaml --ignore-not-found --timeout 5m",
	}
	want := []string{"kubectl kustomize --load-restrictor LoadRestrictionsNone experiments/ageing-small/lab"}
	want = append(want, removed...)
	want = append(want,
		"kubectl apply --namespace space --filename "+dist+"storage.yaml",
		"plugin run "+dist+"benchmark.yaml --namespace space --wait --timeout 1m0s",
		"plugin report ageing-small --namespace space --output-dir "+dist+"report")
	want = append(want, removed...)
	if difference := cmp.Diff(want, calls()); difference != "" {
		t.Error(difference)
	}
	rows, err := loadRows(b.root)
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Result == nil || rows[0].Result.Verdict != "Failed" || rows[0].Result.Inputs != rows[0].Inputs {
		t.Fatalf("%+v", rows[0].Result)
	}
	for file, says := range map[string]string{
		"experiments/ageing-small/README.md": "**Failed**: ", "docs/catalogue.md": "Rows that have been run: 1 of 1.",
		dist + "benchmark.yaml": "kind: StorageBenchmark", dist + "storage.yaml": "kind: StorageTarget",
	} {
		text, err := os.ReadFile(filepath.Join(b.root, file))
		if err != nil || !strings.Contains(string(text), says) {
			t.Errorf("%s: %s, %v", file, text, err)
		}
	}
	if err := runOnly(t.Context(), t, b); err != nil { // a second time
		t.Fatal(err)
	}
	if rows, err = loadRows(b.root); err != nil || !rows[0].repeated() {
		t.Errorf("the first result is not kept: %+v, %v", rows[0].Earlier, err)
	}
	var out bytes.Buffer
	if err := plan(rows, "", "", selection{}, &out); err != nil || out.Len() > 0 {
		t.Errorf("the row would run again: %s, %v", out.String(), err)
	}
}

// TestRunWithoutVerdict: without a verdict nothing is kept, and nothing is left in the cluster.
func TestRunWithoutVerdict(t *testing.T) {
	b, calls := fakeBench(t, 4)
	if err := runOnly(t.Context(), t, b); err == nil || !strings.Contains(err.Error(), "S99 has no verdict") {
		t.Error(err)
	}
	all := calls()
	if last := all[len(all)-1]; !strings.HasPrefix(last, "kubectl delete") || strings.Contains(strings.Join(all, "\n"), "plugin report") {
		t.Error(all)
	}
	if _, err := os.Stat(filepath.Join(b.root, "experiments/ageing-small/lab", resultFile)); !os.IsNotExist(err) {
		t.Error("a result was kept:", err)
	}
}

// TestInputs: the inputs are the objects of the row and the lab's disks, even where only the Makefile describes them. Comments, the order of
// fields and the rest of the Makefile do not matter.
func TestInputs(t *testing.T) {
	const manifest, makefile = "# Shape: a\nkind: A\nspec: {size: 1, name: b}\n---\nkind: B\n", "DISK_IOPS ?= 1000\nVERSION ?= 1\n"
	inputs := func(manifest, makefile, settings string) string {
		t.Helper()
		b, _ := fakeBench(t, 0)
		for file, text := range map[string]string{
			"Makefile": makefile, "experiments/ageing-small/experiment.yaml": manifest, "experiments/ageing-small/lab/lab.env": settings,
		} {
			if err := os.WriteFile(filepath.Join(b.root, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := loadRows(b.root)
		if err != nil {
			t.Fatal(err)
		}
		return rows[0].Inputs
	}
	before := inputs(manifest, makefile, "")
	for name, c := range map[string]struct {
		manifest, makefile, settings string
		same                         bool
	}{
		"another version":  {manifest, "DISK_IOPS ?= 1000\nVERSION ?= 2\n", "", true},
		"other disks":      {manifest, "DISK_IOPS ?= 500\nVERSION ?= 1\n", "", false},
		"disks of the row": {manifest, makefile, "DISK_IOPS=500\n", false},
		"short":            {manifest, makefile, "# Short.\nSHORT=1\n", true},
		"another comment":  {"# Shape: b\nkind: A\nspec: {size: 1, name: b} # one\n---\nkind: B\n", makefile, "", true},
		"another order":    {"# Shape: a\nkind: A\nspec:\n  name: b\n  size: 1\n---\nkind: B\n", makefile, "", true},
		"another value":    {strings.Replace(manifest, "size: 1", "size: 2", 1), makefile, "", false},
		"a later document": {strings.Replace(manifest, "kind: B", "kind: C", 1), makefile, "", false},
	} {
		if same := inputs(c.manifest, c.makefile, c.settings) == before; same != c.same {
			t.Errorf("%s: the same inputs %t, want %t", name, same, c.same)
		}
	}
}
