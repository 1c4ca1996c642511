package cli

import (
	"strings"
	"testing"
)

// TestRulesAcrossFieldsSayWhere: a wrong word is reported once, at its line, and not by a rule about the whole spec.
func TestRulesAcrossFieldsSayWhere(t *testing.T) {
	const class = "  target: {storageClass: {size: 1Gi}}\n"
	const pool = `  target: {zfs: {nodes: {matchLabels: {a: b}}, pool: {vdevs: [{devices: [/dev/disk/by-id/a]}]}, dataset: {provisioner: Local}}}
`
	const phases = "  phases:\n  - {name: fill, fill: {to: 50%}}\n  - {name: read, measure: {workload: {oltp: {duration: 30s}}}}\n"
	for name, c := range map[string]struct{ spec, says string }{
		"a volume": {pool + phases + "  - {name: scan, volume: clonde, measure: {workload: {scan: {}}}}\n",
			`9: spec.phases[2]: phase scan of variant "default" works on volume "clonde", which the target does not have`},
		"a phase in the matrix": {class + phases + "  matrix:\n    phases.raed.workers: [\"1\", \"2\"]\n",
			`10: spec.matrix[phases.raed.workers]: the path "phases.raed.workers" cannot be set: there is no phase "raed" in this variant, only fill, read`},
		"a phase in a variant": {class + phases + "  variants:\n  - {name: a}\n  - {name: b, set: {phases.raed.workers: \"1\"}}\n",
			`11: spec.variants[1].set[phases.raed.workers]: variant "b": the path "phases.raed.workers" cannot be set: there is no phase "raed"`},
		"a target in the matrix": {class + phases + "  matrix:\n    dataset.recordsize: [8k, 16k]\n",
			`10: spec.matrix[dataset.recordsize]: the path "dataset.recordsize" cannot be set: it changes a zfs target`},
		"lengths of a zip": {class + phases + "  matrixMode: Zip\n  matrix:\n    phases.read.workers: [\"1\", \"2\"]\n    phases.fill.to: [50%]\n",
			`10: spec.matrix: "phases.fill.to" has 1 values and "phases.read.workers" has 2`},
		"another variant": {class + "  phases:\n  - {name: fill, onlyFor: [c], fill: {to: 50%}}\n  variants:\n  - {name: a}\n  - {name: b}\n",
			"6: spec.phases: Invalid value: onlyFor of a phase names a variant that is not in spec.variants"},
		"a gate": {class + phases + "  gates:\n  - {name: g, bound: {metric: raed.readOperationsPerSecond, min: 1k/s}}\n",
			`10: spec.gates[0]: gate "g"`},
	} {
		code, said := validate(t, file(t, "b.yaml", "apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata: {name: it}\nspec:\n"+
			c.spec))
		if code != ExitFailed || strings.Count(said, "\n  b.yaml:") != 1 || !strings.Contains(said, "\n  b.yaml:"+c.says) {
			t.Errorf("%s: exit code %d: %s", name, code, said)
		}
	}
}

// TestRulesAcrossFieldsStay: a rule is reported if no other problem says where the mistake is. No run is planned if a single field is
// wrong.
func TestRulesAcrossFieldsStay(t *testing.T) {
	volume := problem{"spec.phases", "Invalid value: a phase names a volume that is not in target.zfs.volumes: use data"}
	for _, found := range [][]problem{nil, {{"spec.phases[1]", "another mistake"}}, {{"spec.gates[0]", "which the target does not have"}}} {
		if all := placed([]problem{volume}, found); len(all) != 1+len(found) || all[0] != volume {
			t.Error(all)
		}
	}
	if onlyAcross([]problem{volume, {"spec.repetitions", "Invalid value: 0"}}) || !onlyAcross([]problem{volume}) {
		t.Error("the planner reads a spec that is wrong, or none")
	}
}

// TestAListHidesNoItems: a problem of a field hides those below it, but a problem of a list hides neither those of its items nor those of
// fields with the same prefix.
func TestAListHidesNoItems(t *testing.T) {
	before := []problem{{"spec.phases", "onlyFor"}, {"spec.matrix", "twice"}, {"spec.target", "two targets"}, {"spec.schedule", "no time"}}
	more := []problem{{"spec.phases[1]", "no data"}, {"spec.matrixMode", "alone"}, {"spec.target.zfs", "below"}, {"spec.schedule", "again"}}
	if left := withoutCovered(before, more); len(left) != 2 || left[0] != more[0] || left[1] != more[1] {
		t.Error(left)
	}
}

// TestAGateOfAWrongFormIsSaidOnce: the API's pattern reports a malformed value, so the gate does not report it again.
func TestAGateOfAWrongFormIsSaidOnce(t *testing.T) {
	before := []problem{{"spec.gates[1].bound.max", `Invalid value: "100 MB/s": write a number`}, {"spec.gates[2].bound.max", "write quotes"}}
	more := []problem{{"spec.gates[1]", "max"}, {"spec.gates[2]", "max"}, {"spec.gates[10]", "max"}}
	if left := withoutCovered(before, more); len(left) != 2 || left[0] != more[1] || left[1] != more[2] {
		t.Error(left)
	}
}
