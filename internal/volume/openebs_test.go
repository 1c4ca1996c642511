package volume

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func nodeOf(labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}}
}

// TestOpenEBS follows the settings of a dataset into the parent dataset, the StorageClass and the claim.
func TestOpenEBS(t *testing.T) {
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

// TestSiteIsNotFit: the error says what the node lacks, and what to do.
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
	if objects, err := Of(wanted).Objects(run, wanted, Site{}); err != nil || len(objects) != 1 || Of(wanted).BackingObject() != nil {
		t.Errorf("a class of the user's: %v %v", objects, err)
	}
}

func TestEffectiveDifferences(t *testing.T) {
	sized := func(text string) *v1alpha1.Size { return &v1alpha1.Size{Quantity: resource.MustParse(text)} }
	const root, dataset = "sb-1-data", "sb-1-data/parent/pvc-1"
	reported := func(object string, values ...string) (properties []v1alpha1.EffectiveProperty) {
		for i := 0; i < len(values); i += 2 {
			properties = append(properties, v1alpha1.EffectiveProperty{Dataset: object, Name: values[i], Value: values[i+1], Source: "local"})
		}
		return properties
	}
	asked := v1alpha1.DatasetTemplate{Size: sized("1Gi"), Properties: v1alpha1.Properties{"recordsize": "8k", "sync": "always"}}
	good := []string{"recordsize", "8192", "sync", "always", "refquota", "1073741824", "quota", "0", "compression", "on"}
	changed := func(name, value string) []string {
		values := slices.Clone(good)
		values[slices.Index(values, name)+1] = value
		return values
	}
	for name, test := range map[string]struct {
		dataset v1alpha1.DatasetTemplate
		is      []string
		want    []string
		unread  bool
	}{
		"not reported": {asked, nil, nil, true},
		"as asked":     {asked, good, nil, false},
		"dropped": {asked, changed("sync", "standard"), []string{"sync of " + dataset + " is standard (local), requested is always"},
			false},
		"a quota instead": {asked, changed("refquota", "0"), []string{"refquota of " + dataset + " is 0 (local), requested is 1073741824"},
			false},
		"a surprise": {asked, changed("compression", "lz4"), []string{"compression of " + dataset + " is lz4 (local), requested is on"},
			false},
		"not there": {asked, good[2:], []string{"recordsize of " + dataset + " does not exist, requested is 8k"}, false},
		"two": {asked, append(changed("sync", "standard"), "logbias", "throughput"),
			[]string{"logbias of " + dataset + " is throughput (local), requested is latency",
				"sync of " + dataset + " is standard (local), requested is always"}, false},
		"the whole pool": {v1alpha1.DatasetTemplate{}, []string{"compression", "on", "refquota", "1"}, nil, false},
		"a volume":       {v1alpha1.DatasetTemplate{Type: "Volume", Size: sized("64Mi")}, []string{"volsize", "67108864"}, nil, false},
		"a volume too small": {v1alpha1.DatasetTemplate{Type: "Volume", Size: sized("64Mi")}, []string{"volsize", "1"},
			[]string{"volsize of " + dataset + " is 1 (local), requested is 67108864"}, false},
		"limits of the root": {v1alpha1.DatasetTemplate{}, []string{"quota", "0"}, nil, false},
		"no limit is no wish": {v1alpha1.DatasetTemplate{Properties: v1alpha1.Properties{"refreservation": "none"}},
			[]string{"refreservation", "0"}, nil, false},
	} {
		pool := &v1alpha1.BenchmarkPool{Spec: v1alpha1.BenchmarkPoolSpec{PoolName: root}}
		pool.Status.Properties = append(reported(root, "compression", "on", "logbias", "latency", "quota", "1G"),
			reported(dataset, test.is...)...)
		got, read := effectiveDifferences(RunVolume{Dataset: &test.dataset}, pool, dataset)
		if !slices.Equal(got, test.want) || read == test.unread {
			t.Errorf("%s: %q %t, want %q", name, got, read, test.want)
		}
	}
}
