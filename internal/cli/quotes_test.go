package cli

import (
	"strings"
	"testing"
)

// TestScalarsOfAnotherType: scalars that YAML reads as another type are reported with a remedy, and hide no other mistake.
func TestScalarsOfAnotherType(t *testing.T) {
	code, said := validate(t, file(t, "b.yaml", `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: on, labels: {a: 1}}
spec:
  target:
    zfs:
      nodes: {matchLabels: {disktype: nvme}}
      pool: {vdevs: [{type: mirror, devices: [/dev/disk/by-id/nvme-A, /dev/disk/by-id/nvme-B]}]}
      dataset: {properties: {compression: &off off, atime: *off, recordsze: 8k}}
      moduleParameters: {zfs_arc_maxx: 0x10}
  phases:
  - {name: fill, fill: {to: 80}}
  - {name: read, measure: {workload: {oltp: {workers: "4", duration: 10s}}}}
  gates:
  - {name: g, bound: {metric: reed.readOperationsPerSecond, max: 0.8}}
  matrix:
    pool.ashift: [9, "12"]
`))
	for _, line := range []string{
		`b.yaml:3: metadata.name: on is read as a boolean: write "on" in quotes`,
		`b.yaml:3: metadata.labels.a: 1 is read as a number: write "1" in quotes`,
		`b.yaml:9: spec.target.zfs.dataset.properties.compression: off is read as a boolean: write "off" in quotes`,
		`b.yaml:9: spec.target.zfs.dataset.properties.atime: off is read as a boolean: write "off" in quotes`,
		`b.yaml:9: spec.target.zfs.dataset.properties.recordsze: `,
		`b.yaml:10: spec.target.zfs.moduleParameters.zfs_arc_maxx: 0x10 is read as a number: write "0x10" in quotes`,
		`b.yaml:12: spec.phases[0].fill.to: Invalid value: "80": write a share between 0% and 100% with its percent sign`,
		`b.yaml:13: spec.phases[1].measure.workload.oltp.workers: "4" is read as text: write 4 without quotes`,
		`b.yaml:15: spec.gates[0].bound.max: 0.8 is read as a number: write it with a unit, such as "10ms", or "0.8" in quotes, which is in the unit of the metric`,
		`b.yaml:17: spec.matrix[pool.ashift][0]: 9 is read as a number: write "9" in quotes`,
	} {
		if !strings.Contains(said, "\n  "+line) {
			t.Errorf("does not say %q: %s", line, said)
		}
	}
	if code != ExitFailed || strings.Contains(said, `write "80"`) {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestQuotedScalarsLetGatesSpeak: gates are checked although another field has a value of the wrong type.
func TestQuotedScalarsLetGatesSpeak(t *testing.T) {
	code, said := validate(t, file(t, "b.yaml", `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: it}
spec:
  target: {storageClass: {size: 1Gi}}
  phases:
  - {name: fill, fill: {to: 50%}}
  - {name: off, measure: {workload: {oltp: {duration: 10s}}}}
  gates:
  - {name: slow, bound: {metric: off.readBytesPerSecond, min: 10ms}}
`))
	for _, line := range []string{
		`b.yaml:8: spec.phases[1].name: off is read as a boolean: write "off" in quotes`,
		"b.yaml:10: spec.gates[0]: ",
	} {
		if !strings.Contains(said, "\n  "+line) {
			t.Errorf("does not say %q: %s", line, said)
		}
	}
	if code != ExitFailed {
		t.Error(code)
	}
}
