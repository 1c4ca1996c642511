package design

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// volumesBenchmark returns a benchmark that has a pool with all kinds of devices, another volume on its own pool, and other disks on node
// b.
func volumesBenchmark(variants string) *v1alpha1.StorageBenchmark {
	pool := func(letter string) string {
		disk := func(n int) string { return fmt.Sprintf(`"/dev/disk/by-id/%s%d"`, letter, n) }
		return fmt.Sprintf(`{"vdevs": [{"devices": [%s]}], "log": [{"devices": [%s]}], "cache": [%s], "special": [{"devices": [%s]}],
			"ashift": 12}`, disk(1), disk(2), disk(3), disk(4))
	}
	benchmark := runstest.Benchmark()
	benchmark.Spec.Repetitions, benchmark.Spec.Gates, benchmark.Spec.Variants = 1, nil, nil
	benchmark.Spec.Target = v1alpha1.Target{}
	document := fmt.Sprintf(`{"target": {"zfs": {"nodes": {"matchLabels": {"a": "b"}}, "pool": %s,
		"dataset": {"size": "1Gi"}, "perNode": [{"nodeName": "b", "pool": %s}], "volumes": [{"name": "wal", "pool": %s}, {"name": "log", "poolOf": "data"},
		{"name": "old", "poolOf": "wal"}]}}, "variants": %s}`,
		pool("a"), pool("b"), pool("w"), variants)
	if err := json.Unmarshal([]byte(document), &benchmark.Spec); err != nil {
		panic(err)
	}
	return benchmark
}

// TestVariantsReachEveryVolume: an override changes the volume that it names, on every node, and nothing else.
func TestVariantsReachEveryVolume(t *testing.T) {
	all := func(pool v1alpha1.PoolTemplate) string {
		return fmt.Sprintf("%d%d%d%d ashift %d %v", len(pool.Vdevs), len(pool.Log), len(pool.Cache), len(pool.Special), pool.Ashift,
			pool.Properties)
	}
	const same = "1111 ashift 12 map[]"
	for _, test := range []struct {
		variants, data, other, wal, dataset string
	}{
		{`[{"name": "a", "volumes": [{"name": "log", "dataset": {"properties": {"sync": "always"}}}], "set": {"volumes.log.dataset.atime": "off"}}]`,
			same, same, same, "map[] map[atime:off sync:always]"},
		{`[{"name": "a"}]`, same, same, same, "map[]"},
		{`[{"name": "a", "pool": {"log": []}}]`, "1011 ashift 12 map[]", "1011 ashift 12 map[]", same, "map[]"},
		{`[{"name": "a", "pool": {"cache": [], "special": []}}]`, "1100 ashift 12 map[]", "1100 ashift 12 map[]", same, "map[]"},
		{`[{"name": "a", "volumes": [{"name": "wal", "pool": {"ashift": 9, "log": [], "properties": {"autotrim": "on"}}}]}]`,
			same, same, "1011 ashift 9 map[autotrim:on]", "map[]"},
		{`[{"name": "a", "volumes": [{"name": "wal", "dataset": {"properties": {"recordsize": "8k"}}}]}]`,
			same, same, same, "map[recordsize:8k]"},
		{`[{"name": "a", "volumes": [{"name": "wal", "pool": {"special": [{"devices": ["/dev/disk/by-id/x"]}, {"devices": ["/dev/disk/by-id/y"]}]}}]}]`,
			same, same, "1112 ashift 12 map[]", "map[]"},
		{`[{"name": "a", "set": {"volumes.wal.pool.ashift": "13", "volumes.data.pool.ashift": "9"}}]`,
			"1111 ashift 9 map[]", "1111 ashift 9 map[]", "1111 ashift 13 map[]", "map[]"},
	} {
		benchmark := volumesBenchmark(test.variants)
		zfs := mustExpand(t, &benchmark.Spec, 1)[0].Target.ZFS
		properties := func(i int) (properties v1alpha1.Properties) {
			if dataset := zfs.Volumes[i].Dataset; dataset != nil {
				properties = dataset.Properties
			}
			return properties
		}
		got := []string{all(zfs.Pool), all(zfs.PerNode[0].Pool), all(*zfs.Volumes[0].Pool), fmt.Sprint(properties(0), " ", properties(1))}
		want := []string{test.data, test.other, test.wal, test.dataset}
		if !strings.Contains(test.dataset, " map[") {
			want[3] += " map[]"
		}
		if zfs.Volumes[1].Pool != nil || zfs.Volumes[2].Pool != nil {
			t.Errorf("%s: volumes on the pools of others have their own", test.variants)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", test.variants, diff)
		}
		if benchmark.Spec.Target.ZFS.Pool.Ashift != 12 || len(benchmark.Spec.Target.ZFS.Volumes[0].Pool.Log) != 1 {
			t.Errorf("%s: expanding has changed the spec", test.variants)
		}
	}
}

func TestVariantsOfVolumesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		variants string
		matrix   v1alpha1.Matrix
		reason   string
		message  string
	}{
		"unknown volume": {`[{"name": "a", "volumes": [{"name": "arch", "pool": {"ashift": 9}}]}]`, nil, v1alpha1.ReasonSpecInvalid,
			`volumes of variant "a": there is no volume "arch": write one of data, wal, log, old`},
		"unknown volume in the matrix": {`[]`, v1alpha1.Matrix{"volumes.arch.pool.ashift": {"9"}}, v1alpha1.ReasonMatrixInvalid,
			`there is no volume "arch": write one of data, wal, log, old`},
		"the pool of another volume": {`[{"name": "a", "volumes": [{"name": "log", "pool": {"ashift": 9}}]}]`, nil, v1alpha1.ReasonSpecInvalid,
			`volumes of variant "a": volume log lies on the pool of volume data, and this changes the pool of both: write pool in place of volumes.log.pool`},
		"the pool of another volume in the matrix": {`[]`, v1alpha1.Matrix{"volumes.old.pool.ashift": {"9"}}, v1alpha1.ReasonMatrixInvalid,
			`volume old lies on the pool of volume wal, and this changes the pool of both: write volumes.wal.pool in place of volumes.old.pool`},
		"two spellings in the matrix": {`[]`, v1alpha1.Matrix{"volumes.data.pool.ashift": {"9"}, "pool.ashift": {"12"}},
			v1alpha1.ReasonMatrixInvalid, `"pool.ashift" and "volumes.data.pool.ashift" set the same field`},
		"two spellings in set": {`[{"name": "a", "set": {"dataset.atime": "on", "volumes.data.dataset.atime": "off"}}]`, nil,
			v1alpha1.ReasonMatrixInvalid, `set the same field`},
		"devices that perNode has too": {`[{"name": "a", "pool": {"special": [{"devices": ["/dev/disk/by-id/x"]}]}}]`, nil,
			v1alpha1.ReasonSpecInvalid, "replaces devices of the pool"},
	} {
		benchmark := volumesBenchmark(test.variants)
		benchmark.Spec.Matrix = test.matrix
		_, err := Expand(&benchmark.Spec, 1)
		wrong := Combined(err)
		if wrong == nil || wrong.Reason != test.reason || !strings.Contains(wrong.Message, test.message) {
			t.Errorf("%s: got %v, want ...%s...", name, err, test.message)
		}
	}
}

// TestRemovedDevicesAreAnotherExperiment: an empty list of devices gives another hash than no list.
func TestRemovedDevicesAreAnotherExperiment(t *testing.T) {
	with, without := volumesBenchmark(`[{"name": "a", "pool": {"ashift": 12, "log": []}}]`), volumesBenchmark(`[{"name": "a", "pool": {"ashift": 12}}]`)
	if ID(with) == ID(without) {
		t.Error("the log is measured in one and not in the other, with the same hash")
	}
	if ID(with) != ID(with.DeepCopy()) {
		t.Error("a copy is another experiment")
	}
}
