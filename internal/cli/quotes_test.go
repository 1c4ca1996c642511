package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		`b.yaml:12: spec.phases[0].fill.to: 80 is read as a number: write 80%`,
		`b.yaml:13: spec.phases[1].measure.workload.oltp.workers: "4" is read as text: write 4 without quotes`,
		`b.yaml:15: spec.gates[0].bound.max: 0.8 is read as a number: write 0.8/s, or with another unit, such as 5k/s`,
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

// TestLimitsWithoutUnits: how to write the limit of a gate depends on its metric, and no hint contradicts another.
func TestLimitsWithoutUnits(t *testing.T) {
	for gate, want := range map[string]string{
		"bound: {metric: read.readBytesPerSecond, min: 100}":                                 "bound.min: 100 is read as a number: write it with a unit, such as 100MB/s",
		"bound: {metric: read.readLatencyP99Nanoseconds, max: 10}":                           "bound.max: 10 is read as a number: write it with a unit, such as 10ms",
		"bound: {metric: read.readOperationsPerSecond, min: 500}":                            "bound.min: 500 is read as a number: write 500/s, or with another unit, such as 5k/s",
		"bound: {metric: read.ioErrors, max: 5}":                                             `bound.max: 5 is read as a number: write "5" in quotes`,
		"bound: {metric: read.readLatencyP99Nanoseconds, max: 0}":                            `bound.max: 0 is read as a number: write "0" in quotes`,
		"ratio: {of: read.readBytesPerSecond, to: fill.writeBytesPerSecond, min: 80}":        "ratio.min: 80 is read as a number: write 80%",
		"ratio: {of: read.readBytesPerSecond, to: fill.writeBytesPerSecond, min: 0.8}":       `ratio.min: 0.8 is read as a number: write "0.8" in quotes`,
		"bound: {metric: read.readBytesPersecond, min: 100}":                                 "bound.min: 100 is read as a number: write it with the unit of the metric, such as 10ms, 100MB/s or 5k/s, or, if it is a count, in quotes",
		"compare: {metric: read.readBytesPerSecond, to: Variant, variant: a, tolerance: 10}": "compare.tolerance: 10 is read as a number: write 10%",
	} {
		code, said := validate(t, file(t, "b.yaml", `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: it}
spec:
  target: {storageClass: {size: 1Gi}}
  phases: [{name: fill, fill: {to: 50%}}, {name: read, measure: {workload: {oltp: {duration: 10s}}}}]
  gates: [{name: g, `+gate+`}]
`))
		if code != ExitFailed || !strings.Contains(said, "  b.yaml:7: spec.gates[0]."+want+"\n") || strings.Contains(said, "times as much") {
			t.Errorf("%s: %d %s", gate, code, said)
		}
	}
}

// TestNumbersWithoutUnits: a number in place of a quantity gets a unit, and a fraction in place of a whole number is reported once, also if
// another field has a value of the wrong type.
func TestNumbersWithoutUnits(t *testing.T) {
	_, said := validate(t, file(t, "b.yaml", `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: it}
spec:
  target: {storageClass: {size: 256}}
  repetitions: 0.5
  deadline: 10
  phases:
  - {name: fill, fill: {to: 0.5}}
  - {name: more, fill: {to: 80}}
  - {name: some, fill: {size: 10}}
  - {name: none, fill: {to: off}}
  - {name: age, fragment: {until: Rounds, rounds: 0.5, blockSize: 8}}
  - name: read
    measure:
      workload: {oltp: {workers: "4", duration: 10, blockSize: 512, updatePercent: 0.25}}
      steadyState: {maxRange: 5}
  gates:
  - {name: same, compare: {metric: read.readBytesPerSecond, to: Baseline, tolerance: 5}}
  baseline: {configMap: {name: b}}
`))
	want := []string{
		"5: spec.target.storageClass.size: 256 is read as a number: write it with its unit, such as 20Gi",
		"6: spec.repetitions: write a whole number, such as 1, instead of 0.5",
		"7: spec.deadline: 10 is read as a number: write it with its unit, such as 10s",
		"9: spec.phases[0].fill.to: 0.5 is read as a number: write 50%",
		"10: spec.phases[1].fill.to: 80 is read as a number: write 80%",
		"11: spec.phases[2].fill.size: 10 is read as a number: write it with its unit, such as 20Gi",
		`12: spec.phases[3].fill.to: Invalid value: "off": fill to more than 0%, such as 80%, or remove the fill phase`,
		`12: spec.phases[3].fill.to: Invalid value: "off": write a share between 0% and 100% with its percent sign, such as 80% or 2.5%`,
		"13: spec.phases[4].fragment.blockSize: 8 is read as a number: write it with its unit, such as 8Ki",
		"13: spec.phases[4].fragment.rounds: write a whole number, such as 1, instead of 0.5",
		"16: spec.phases[5].measure.workload.oltp.duration: 10 is read as a number: write it with its unit, such as 10s",
		`16: spec.phases[5].measure.workload.oltp.blockSize: 512 is read as a number: write "512" in quotes`,
		"16: spec.phases[5].measure.workload.oltp.updatePercent: write a whole number, such as 25, instead of 0.25",
		`16: spec.phases[5].measure.workload.oltp.workers: "4" is read as text: write 4 without quotes`,
		"17: spec.phases[5].measure.steadyState.maxRange: 5 is read as a number: write 5%",
		"19: spec.gates[0].compare.tolerance: 5 is read as a number: write 5%",
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(said), "  b.yaml:", ""), "\n")[1:]
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
