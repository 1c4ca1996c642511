package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const planTarget = `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: pools}
spec:
  target:
    zfs:
      nodes: {matchLabels: {storagebench.dev/lab: "true"}, count: 2}
      pool: {vdevs: [{type: mirror, devices: [/dev/disk/by-id/a, /dev/disk/by-id/b]}], log: [{devices: [/dev/disk/by-id/l]}]}
      perNode: [{nodeName: node-b, pool: {vdevs: [{type: mirror, devices: [/dev/disk/by-id/x, /dev/disk/by-id/y]}]}}]
      volumes: [{name: wal, pool: {vdevs: [{devices: [/dev/disk/by-id/w]}]}, dataset: {size: 1Gi}}]
      dataset: {size: 1Gi}
  variants:
  - {name: plain}
  - {name: nolog, pool: {log: []}}
  repetitions: 12
  phases:
  - {name: fill, fill: {to: 50%}}
  - {name: read, measure: {workload: {oltp: {workers: 4, duration: 10s}}}}
  - {name: wider, volume: wal, operate: {addVdev: {devices: [/dev/disk/by-id/n]}}}
`

// TestPlan: the order, time, space and devices are those of the planner.
func TestPlan(t *testing.T) {
	var said strings.Builder
	for _, path := range []string{file(t, "pools.yaml", planTarget), "../../config/samples/quickstart.yaml", "testdata/validate/valid-matrix.yaml"} {
		code, out, errors := called(t, newHub(t), "plan", path)
		if code != ExitPassed || errors != "" {
			t.Fatal(path, code, errors)
		}
		name := path[strings.LastIndex(path, "/")+1:]
		fmt.Fprintf(&said, "$ plan %s\n%s\n", name, strings.ReplaceAll(out, path, name))
	}
	golden(t, "plan.txt", said.String())
	_, out, _ := called(t, newHub(t), "plan", "--all", file(t, "pools.yaml", planTarget))
	if !strings.Contains(out, "\n24 ") || strings.Contains(out, "add --all") {
		t.Error(out)
	}
}

// TestPlanOfTargetsOfVariants: each variant has its devices on the nodes of its own target.
func TestPlanOfTargetsOfVariants(t *testing.T) {
	const base = `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: targets}
spec:
  seed: SEED
  target: {storageClass: {name: fast, size: 1Gi}}
  variants:
  - {name: class}
  - name: one
    target:
      zfs: {nodes: {matchLabels: {disks: one}}, pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}, dataset: {size: 1Gi}}
  - name: two
    target:
      zfs:
        nodes: {matchLabels: {disks: two}}
        pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}
        perNode: [{nodeName: node-b, pool: {vdevs: [{devices: [/dev/disk/by-id/b]}]}}]
        dataset: {size: 1Gi}
  repetitions: 2
  phases:
  - {name: fill, fill: {to: 50%}}
  - {name: read, measure: {workload: {oltp: {workers: 4, duration: 10s}}}}
`
	for seed := range 8 { // the order decides which target is the first
		code, out, errors := called(t, newHub(t), "plan", file(t, "t.yaml", strings.Replace(base, "SEED", fmt.Sprint(seed), 1)))
		if code != ExitPassed || errors != "" {
			t.Fatal(seed, code, errors)
		}
		for _, says := range []string{"by-id/a   each         1 node with disks=one   data", "by-id/a   each other   1 node with disks=two   data",
			"by-id/b   node-b       1 node with disks=two   data"} {
			if strings.Count(out, says) != 1 {
				t.Errorf("seed %d: does not say %q:\n%s", seed, says, out)
			}
		}
	}
}

// TestPlanWarns: plan prints the warnings of validate, and a folder stands for all files in it.
func TestPlanWarns(t *testing.T) {
	text := strings.Replace(planTarget, "dataset: {size: 1Gi}\n  variants", "dataset: {size: 1Gi, properties: {newprop: \"on\"}}\n  variants", 1)
	path := file(t, "pools.yaml", text)
	_, validated, _ := called(t, newHub(t), "validate", path)
	code, out, errors := called(t, newHub(t), "plan", filepath.Dir(path))
	if code != ExitPassed || !strings.Contains(validated, "warning: ") || !strings.HasPrefix(out, validated) {
		t.Errorf("%d %s\n%s%s", code, errors, validated, out)
	}
}

// TestPlanOfAFolder: a kustomization is not applied, and the files in its folder are planned as they are.
func TestPlanOfAFolder(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kustomization.yaml", "resources: [b.yaml]\n")
	write("target.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	if code, out, errors := called(t, newHub(t), "plan", folder); code != ExitRefused || !strings.Contains(out, "run kubectl kustomize") ||
		!strings.Contains(errors, "no StorageBenchmark in it") {
		t.Errorf("%d %s%s", code, out, errors)
	}
	write("b.yaml", planTarget)
	for _, format := range []string{"text", "json"} {
		if code, out, errors := called(t, newHub(t), "plan", folder, "-o", format); code != ExitPassed || !strings.Contains(out, "pools") ||
			strings.Contains(out, "run kubectl kustomize") != (format == "text") {
			t.Errorf("%s: %d %s%s", format, code, out, errors)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, test := range []struct {
		name, text string
		code       int
		says       string
	}{
		{"invalid", strings.Replace(planTarget, "to: 50%", "to: 500%", 1), ExitRefused, "StorageBenchmark pools is not valid: spec.phases[0].fill.to"},
		{"other kinds", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", ExitRefused, "no StorageBenchmark in it"},
		{"an invalid target", planTarget + "---\napiVersion: storagebench.dev/v1alpha1\nkind: StorageTarget\nmetadata: {name: x}\nspec: {}\n",
			ExitRefused, "StorageTarget x is not valid"},
		{"no manifest", "", ExitRefused, "it contains no manifest"},
	} {
		code, out, errors := called(t, newHub(t), "plan", file(t, "b.yaml", test.text))
		if code != test.code || !strings.Contains(errors, test.says) {
			t.Errorf("%s: %d %s%s", test.name, code, out, errors)
		}
	}
}
