package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHints: typical mistakes of newcomers are refused with what to write instead, and without errors that only follow from them.
func TestHints(t *testing.T) {
	const pool, dataset = "spec.target.zfs.pool", "spec.target.zfs.dataset"
	for name, c := range map[string]struct {
		pool, dataset, more string // added to the pool, to the dataset and to the spec
		phase               string // in place of the measure phase
		want                []string
	}{
		"names from elsewhere": {pool: "l2arc: [/dev/disk/by-id/c], slog: [{devices: [/dev/disk/by-id/d]}]", want: []string{
			pool + ".l2arc: unknown field: write cache", pool + ".slog: unknown field: write log"}},
		"cache as a vdev": {pool: "cache: [{devices: [/dev/disk/by-id/c]}]", want: []string{
			pool + ".cache[0]: cache is a list of disks: write cache: [DISK]"}},
		"log as a disk": {pool: "log: [/dev/disk/by-id/c]", want: []string{
			pool + ".log[0]: write a map of fields instead of text, such as log: [{type: stripe, devices: [DISK]}]"}},
		"ashift too small": {pool: "ashift: 8", want: []string{pool + ".ashift: Invalid value: 8: write a number between 9 and 16"}},
		"property beside the pool's": {pool: "recordsize: 8k, autotrim: on", want: []string{
			pool + ".autotrim: unknown field: write it under pool.properties",
			pool + ".recordsize: unknown field: write it under dataset.properties"}},
		"a class of vdevs": {pool: "dedup: [{devices: [/dev/disk/by-id/c]}]", want: []string{
			pool + ".dedup: unknown field: write one of ashift, cache, log, "}},
		"a vdev without its list": {pool: "type: mirror", want: []string{
			pool + ".type: unknown field: write it in a vdev, such as vdevs: [{type: mirror, devices: ["}},
		"property of datasets": {pool: "properties: {recordsize: 8k}", want: []string{
			pool + ".properties.recordsize: it is a property of datasets: write it in rootProperties"}},
		"property of pools": {dataset: "properties: {autotrim: 'on', ashift: '12'}", want: []string{
			dataset + ".properties.ashift: it is a property of the pool: write pool.ashift",
			dataset + ".properties.autotrim: it is a property of the pool: write pool.properties.autotrim"}},
		"property beside properties": {dataset: "recordsize: 16k, ashift: 12", want: []string{
			dataset + ".ashift: unknown field: write pool.ashift",
			dataset + ".recordsize: unknown field: write it under dataset.properties"}},
		"yes": {dataset: "properties: {dedup: yes, atime: no, sync: off}", want: []string{
			dataset + `.properties.atime: no is read as a boolean: write "off" in quotes`,
			dataset + `.properties.dedup: yes is read as a boolean: write "on" in quotes`,
			dataset + `.properties.sync: off is read as a boolean: write "off" in quotes`}},
		"GB":       {dataset: "size: 20GB", want: []string{dataset + `.size: Invalid value: "20GB": GB is not a valid unit: write 20Gi or 20G`}},
		"bytes":    {dataset: "size: 20000kB", want: []string{dataset + `.size: Invalid value: "20000kB": kB is not a valid unit: write 20000Ki or 20000k`}},
		"not near": {dataset: "size: much", want: []string{dataset + `.size: Invalid value: "much": write a size of at least 16Mi as a quantity`}},
		"block in KB": {phase: "{name: r, measure: {workload: {oltp: {blockSize: 8KB}}}}", want: []string{
			`spec.phases[1].measure.workload.oltp.blockSize: Invalid value: "8KB": KB is not a valid unit: write 8Ki`}},
		"properties of a variant": {more: "variants: [{name: a, properties: {recordsize: 8k}}, {name: b, recordsize: 8k}, {name: c, type: Volume}]",
			want: []string{"spec.variants[0].properties: unknown field: write dataset.properties",
				"spec.variants[1].recordsize: unknown field: write it under dataset.properties",
				"spec.variants[2].type: unknown field: write dataset.type"}},
		"nothing else in the dataset": {more: "variants: [{name: a, dataset: {recordsize: 8k}}]", want: []string{
			"spec.variants[0].dataset.recordsize: unknown field: write it under dataset.properties"}},
		"paths": {more: "matrix: {recordsize: [8k, 16k], pool.recordsize: [8k, 16k], dataset.ashift: ['9', '12']}", want: []string{
			"spec.matrix[dataset.ashift]: did you mean pool.ashift?",
			"spec.matrix[pool.recordsize]: did you mean dataset.recordsize?",
			"spec.matrix[recordsize]: did you mean dataset.recordsize?"}},
		"path of a variant": {more: "variants: [{name: a, set: {pool.properties.ashift: '12'}}]", want: []string{
			"spec.variants[0].set[pool.properties.ashift]: did you mean pool.ashift?"}},
		"no near path": {more: "matrix: {something: [8k, 16k]}", want: []string{"spec.matrix: Invalid value: write each path as storageClass.name"}},
		"comparison": {more: "gates: [{name: g, compare: {metric: r.readBytesPerSecond, to: a, tolerance: 5%}}]", want: []string{
			`spec.gates[0].compare.to: Unsupported value: "a": supported values: "Baseline", "Variant", "History"; to compare with a variant ` +
				"write to: Variant, variant: a"}},
		"value in other letters": {dataset: "type: filesystem", want: []string{
			dataset + `.type: Unsupported value: "filesystem": supported values: "Filesystem", "Volume": write Filesystem`}},
		"list of operations": {phase: "{name: r, measure: {workload: {oltp: {}}, operate: [{snapshot: {dataset: data, name: s}}]}}", want: []string{
			"spec.phases[1].measure.operate: write a map of fields instead of a list"}},
		"one value for fields": {more: "adaptive: true", want: []string{
			"spec.adaptive: write a map of fields instead of true or false, such as adaptive: {maxRepetitions: 12}"}},
		"list for fields": {more: "matrix: [a]", want: []string{
			"spec.matrix: write a map of fields instead of a list, such as matrix: {storageClass.name: [fast, slow]}"}},
		"percent of a percentage": {phase: "{name: r, measure: {workload: {oltp: {updatePercent: 25%}}}}", want: []string{
			"spec.phases[1].measure.workload.oltp.updatePercent: write 25 instead of 25%: it is in percent"}},
		"names twice": {phase: "{name: fill, measure: {workload: {oltp: {}}}}", want: []string{
			"spec.phases[1]: fill is the name of another one: give each a name of its own"}},
		"values twice": {more: "baseline: {configMap: {name: b}, allowDifferences: [kernel, kernel]}", want: []string{
			`spec.baseline.allowDifferences[1]: Duplicate value: "kernel": remove one of them`}},
		"unknown operation": {phase: "{name: r, operate: {rollback: {}}}", want: []string{
			"spec.phases[1].operate.rollback: unknown field: write one of "}},
		"settings of PostgreSQL": {phase: "{name: r, measure: {workload: {postgres: {settings: {full_page_write: 'off', max_wal_size: 8Gi}}}}}",
			want: []string{
				"spec.phases[1].measure.workload.postgres.settings.full_page_write: this setting cannot be set here: did you mean full_page_writes?",
				`spec.phases[1].measure.workload.postgres.settings.max_wal_size: "8Gi" is not one of its values: write a size in kB, MB, GB or TB, such as 8GB`}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.phase == "" {
				c.phase = "{name: r, measure: {workload: {oltp: {}}}}"
			}
			code, said := validate(t, file(t, "b.yaml", fmt.Sprintf(`apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: it}
spec:
  target: {zfs: {nodes: {matchLabels: {a: b}}, pool: {vdevs: [{devices: [/dev/disk/by-id/a]}], %s}, dataset: {%s}}}
  phases: [{name: fill, fill: {to: 50%%}}, %s]
  %s
`, c.pool, c.dataset, c.phase, c.more)))
			lines := strings.Split(strings.TrimSpace(said), "\n")[1:]
			for i := range lines {
				_, lines[i], _ = strings.Cut(strings.TrimPrefix(lines[i], "  b.yaml:"), ": ")
				if i < len(c.want) && strings.HasPrefix(lines[i], c.want[i]) {
					lines[i] = c.want[i] // long lists need not be repeated here
				}
			}
			if diff := cmp.Diff(c.want, lines); diff != "" || code != ExitFailed {
				t.Errorf("exit code %d (-want +got):\n%s", code, diff)
			}
		})
	}
}

// TestHintsForTargets: a StorageTarget gets the same hints.
func TestHintsForTargets(t *testing.T) {
	code, said := validate(t, file(t, "t.yaml", `apiVersion: storagebench.dev/v1alpha1
kind: StorageTarget
metadata: {name: it}
spec: {zfs: {nodes: {matchLabels: {a: b}}, pool: {vdevs: [{type: raidz, devices: [/dev/disk/by-id/a]}], properties: {ashift: "12"}}}}
`))
	for _, line := range []string{`"draid3": write raidz1`, "spec.zfs.pool.properties.ashift: it is a field of the pool: write pool.ashift"} {
		if code != ExitFailed || !strings.Contains(said, line) {
			t.Errorf("exit code %d, and not %q: %s", code, line, said)
		}
	}
}
