// Package openebs has the benchmarks that test volumes on pools, whether the agent makes the volumes, the stand-in for the OpenEBS driver,
// or the real driver in a cluster of yours.
package openebs

import (
	"context"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/internal/volume"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Row is a dataset that a workload can get from a pool, with the values that the results must show.
type Row struct {
	Name string
	// Dataset as in the spec, without the provisioner.
	Dataset string
	// FileSystem that the runner finds; empty for a device.
	FileSystem string
	// Property that is in effect, with its value.
	Property, Value string
}

// Rows are the datasets that a workload can get.
var Rows = []Row{
	{"dataset", `size: 512Mi, properties: {recordsize: 8k, compression: "off", sync: always}`, "zfs", "recordsize", "8192"},
	{"raw-volume", `type: Volume, size: 256Mi, properties: {volblocksize: 16k, logbias: throughput}`, "", "volblocksize", "16384"},
	{"ext4-volume", `type: Volume, size: 256Mi, fsType: ext4`, "ext4", "pool.ashift", "12"},
}

// Spec returns the spec of the benchmark of a row, on one disk.
func (r Row) Spec(provisioner, disk string) string {
	return fmt.Sprintf(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [%s]}], ashift: 12}
    dataset: {provisioner: %s, %s}
phases:
- {name: fill, fill: {size: 64Mi}}
- {name: age, fragment: {blockSize: 8Ki, until: Rounds, rounds: 1}}
- {name: score, operate: {layoutScore: {dataset: data}}}
- {name: cold, operate: {exportImport: {}}}
- {name: read, measure: {workload: {oltp: {workers: 4, duration: 10s}}, operate: {snapshot: {dataset: data, name: meanwhile}}}}
gates:
- {name: reads, expression: "phase('read').readOperationsPerSecond >= 1"}
- {name: scored, expression: "phase('score').layoutScorePartsPerMillion >= 0"}
repetitions: 1
`, disk, provisioner, r.Dataset)
}

// Left lists the objects outside their namespaces that runs on pools have left behind: pools, classes, PersistentVolumes and the driver's
// objects.
func Left(ctx context.Context, cluster client.Client) (left []string, err error) {
	var pools v1alpha1.BenchmarkPoolList
	var classes storagev1.StorageClassList
	var persistent corev1.PersistentVolumeList
	for _, list := range []client.ObjectList{&pools, &classes, &persistent} {
		if err := cluster.List(ctx, list); err != nil {
			return nil, err
		}
	}
	for _, pool := range pools.Items {
		if strings.HasPrefix(pool.Name, "sb-") {
			left = append(left, "BenchmarkPool "+pool.Name)
		}
	}
	for _, class := range classes.Items {
		if strings.HasPrefix(class.Parameters["poolname"], "sb-") {
			left = append(left, "StorageClass "+class.Name)
		}
	}
	for _, one := range persistent.Items {
		if strings.HasPrefix(one.Spec.StorageClassName, "sb-") || strings.HasPrefix(one.Name, "sb-") {
			left = append(left, "PersistentVolume "+one.Name)
		}
	}
	volumes := &unstructured.UnstructuredList{}
	volumes.SetGroupVersionKind(schema.GroupVersionKind{Group: volume.DriverGroup, Version: volume.DriverVersion, Kind: "ZFSVolumeList"})
	if err := cluster.List(ctx, volumes); err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	for _, volume := range volumes.Items {
		if pool, _, _ := unstructured.NestedString(volume.Object, "spec", "poolName"); strings.HasPrefix(pool, "sb-") {
			left = append(left, "ZFSVolume "+volume.GetName())
		}
	}
	return left, nil
}
