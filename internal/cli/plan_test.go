package cli

import (
	"fmt"
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

// TestPlan: order, time, space and devices are what the planner says.
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

func TestPlanRefuses(t *testing.T) {
	for _, test := range []struct {
		name, text string
		code       int
		says       string
	}{
		{"invalid", strings.Replace(planTarget, "to: 50%", "to: 500%", 1), ExitRefused, "StorageBenchmark pools is not valid: spec.phases[0].fill.to"},
		{"other kinds", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", ExitRefused, "no StorageBenchmark in it"},
		{"no manifest", "", ExitRefused, "it contains no manifest"},
	} {
		code, out, errors := called(t, newHub(t), "plan", file(t, "b.yaml", test.text))
		if code != test.code || !strings.Contains(errors, test.says) {
			t.Errorf("%s: %d %s%s", test.name, code, out, errors)
		}
	}
}
