package volume

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

func nodeOf(labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}}
}

// TestDriven follows what a user asks of a dataset to the parent, the StorageClass and the claim.
func TestDriven(t *testing.T) {
	gib := &v1alpha1.Size{Quantity: resource.MustParse("1Gi")}
	for name, test := range map[string]struct {
		dataset    v1alpha1.DatasetTemplate
		parent     v1alpha1.Properties
		parameters map[string]string
		size       string
		mode       corev1.PersistentVolumeMode
	}{
		"the whole pool": {v1alpha1.DatasetTemplate{}, v1alpha1.Properties{},
			map[string]string{"fstype": "zfs", "quotatype": "refquota", "thinprovision": "yes"}, "4Gi", "Filesystem"},
		"properties": {v1alpha1.DatasetTemplate{Size: gib, Properties: v1alpha1.Properties{"recordsize": "8k", "compression": "lz4",
			"dedup": "off", "sync": "always", "special_small_blocks": "4k"}},
			v1alpha1.Properties{"recordsize": "8k", "compression": "lz4", "dedup": "off", "sync": "always", "special_small_blocks": "4k"},
			map[string]string{"fstype": "zfs", "quotatype": "refquota", "thinprovision": "yes", "recordsize": "8k", "compression": "lz4",
				"dedup": "off"}, "1Gi", "Filesystem"},
		"what the driver does not know": {v1alpha1.DatasetTemplate{Size: gib, Properties: v1alpha1.Properties{"compression": "zstd-fast-10",
			"dedup": "sha256"}},
			v1alpha1.Properties{"compression": "zstd-fast-10", "dedup": "sha256"},
			map[string]string{"fstype": "zfs", "quotatype": "refquota", "thinprovision": "yes"}, "1Gi", "Filesystem"},
		"a device": {v1alpha1.DatasetTemplate{Type: "Volume", Size: gib, Properties: v1alpha1.Properties{"volblocksize": "16k",
			"logbias": "throughput"}},
			v1alpha1.Properties{"logbias": "throughput"}, map[string]string{"volblocksize": "16k", "thinprovision": "no"}, "1Gi", "Block"},
		"a sparse device": {v1alpha1.DatasetTemplate{Type: "Volume", Size: gib, Properties: v1alpha1.Properties{"refreservation": "none",
			"recordsize": "8k"}},
			v1alpha1.Properties{"recordsize": "8k"}, map[string]string{"thinprovision": "yes"}, "1Gi", "Block"},
		"ext4 on a device": {v1alpha1.DatasetTemplate{Type: "Volume", Size: gib, FSType: "ext4"}, v1alpha1.Properties{},
			map[string]string{"fstype": "ext4", "thinprovision": "no"}, "1Gi", "Filesystem"},
	} {
		test.dataset.Provisioner = ProvisionerOpenEBS
		run := zfsRun(&test.dataset)
		wanted := RunVolumes(run)[0]
		pool := Pool(run, wanted, map[string]string{v1alpha1.LabelRunUID: "run-uid"})
		want := []v1alpha1.PoolDataset{{Path: "parent", Type: "Filesystem", Properties: test.parent}}
		if diff := cmp.Diff(want, pool.Spec.Datasets); diff != "" {
			t.Errorf("%s: parent (-want +got):\n%s", name, diff)
		}
		objects, err := Of(wanted).Objects(run, wanted, Site{Node: nodeOf(map[string]string{DriverNodeLabel: "node-id"}), PoolBytes: 3<<30 + 5,
			Labels: map[string]string{"a": "b"}, ClusterLabels: map[string]string{"c": "d"}, Owner: metav1.OwnerReference{UID: "run-uid"}})
		if err != nil || len(objects) != 2 {
			t.Fatalf("%s: %v %v", name, objects, err)
		}
		class, claim := objects[0].(*storagev1.StorageClass), objects[1].(*corev1.PersistentVolumeClaim)
		test.parameters["poolname"] = pool.Name + "/parent"
		if diff := cmp.Diff(test.parameters, class.Parameters); diff != "" {
			t.Errorf("%s: parameters (-want +got):\n%s", name, diff)
		}
		if class.Name != pool.Name || class.Provisioner != "zfs.csi.openebs.io" || class.Labels["c"] != "d" || *class.ReclaimPolicy != "Delete" ||
			*class.VolumeBindingMode != "Immediate" ||
			class.AllowedTopologies[0].MatchLabelExpressions[0].Key != "openebs.io/nodeid" ||
			class.AllowedTopologies[0].MatchLabelExpressions[0].Values[0] != "node-id" {
			t.Errorf("%s: class %+v", name, class)
		}
		if claim.Name != run.Name || claim.Labels["a"] != "b" || len(claim.OwnerReferences) != 1 || *claim.Spec.StorageClassName != class.Name ||
			*claim.Spec.VolumeMode != test.mode || claim.Spec.Resources.Requests.Storage().String() != test.size || claim.Spec.VolumeName != "" {
			t.Errorf("%s: claim %+v", name, claim)
		}
	}
}

// TestSiteIsNotFit: what a node lacks is said, with the way out.
func TestSiteIsNotFit(t *testing.T) {
	for provisioner, says := range map[string]string{
		"OpenEBS": "node n1 has no label openebs.io/nodeid: run the OpenEBS ZFS LocalPV driver there, or write provisioner: Local",
		"Local":   "node n1 has no label kubernetes.io/hostname, which a local PersistentVolume needs",
	} {
		run := zfsRun(&v1alpha1.DatasetTemplate{Provisioner: provisioner})
		wanted := RunVolumes(run)[0]
		if _, err := Of(wanted).Objects(run, wanted, Site{Node: nodeOf(nil)}); err == nil || err.Error() != says {
			t.Errorf("%s: %v", provisioner, err)
		}
	}
	run := testRun()
	wanted := RunVolumes(run)[0]
	if objects, err := Of(wanted).Objects(run, wanted, Site{}); err != nil || len(objects) != 1 || Of(wanted).Behind() != nil {
		t.Errorf("a class of the user's: %v %v", objects, err)
	}
}

// TestDrivenPools: a dataset of the driver is unread until the agent has reported it, and is asked for once.
func TestDrivenPools(t *testing.T) {
	run := zfsRun(&v1alpha1.DatasetTemplate{Provisioner: ProvisionerOpenEBS, Properties: v1alpha1.Properties{"sync": "always"}})
	name := naming.RunPoolName(run, "data")
	dataset := name + "/parent/pvc-1"
	is := func(of, value string) v1alpha1.EffectiveProperty {
		return v1alpha1.EffectiveProperty{Dataset: of, Name: "sync", Value: value, Source: "inherited"}
	}
	for test, c := range map[string]struct {
		persistent, annotation string
		properties             []v1alpha1.EffectiveProperty
		unread, unasked        bool
		differing              int
	}{
		"not made":       {"", "", nil, true, false, 0},
		"not asked for":  {"pvc-1", "", nil, true, true, 0},
		"an earlier one": {"pvc-1", "parent/pvc-0", nil, true, true, 0},
		"asked for":      {"pvc-1", "parent/pvc-1", nil, true, false, 0},
		"as it should": {"pvc-1", "parent/pvc-1", []v1alpha1.EffectiveProperty{is(name+"/parent", "always"), is(dataset, "always")}, false,
			false, 0},
		"otherwise": {"pvc-1", "parent/pvc-1", []v1alpha1.EffectiveProperty{is(dataset, "standard")}, false, false, 1},
	} {
		pool := Pool(run, RunVolumes(run)[0], map[string]string{v1alpha1.LabelRunUID: "run-uid"})
		kstatus.Done(&pool.Status.Conditions, 0, v1alpha1.ReasonPoolReady, "ready")
		pool.Annotations, pool.Status.Properties = map[string]string{v1alpha1.AnnotationReport: c.annotation}, c.properties
		got := PoolsState(run, []*v1alpha1.BenchmarkPool{pool}, map[string]string{"data": c.persistent})
		if (len(got.Unread) > 0) != c.unread || got.Unasked != c.unasked || len(got.Differing) != c.differing ||
			(got.Volumes == nil) != c.unread ||
			(got.Datasets["data"] == dataset) != (c.persistent != "") {
			t.Errorf("%s: %+v", test, got)
		}
		if !c.unread && (len(got.Volumes[0].Properties) != 1 || got.Volumes[0].Properties[0].Dataset != dataset) {
			t.Errorf("%s: of the volume are reported %+v", test, got.Volumes[0].Properties)
		}
	}
}
