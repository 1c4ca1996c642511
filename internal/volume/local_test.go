package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func zfsRun(dataset *v1alpha1.DatasetTemplate) *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "ageing-0a1b2c3d-000", Namespace: "lab", UID: "run-uid"},
		Spec: v1alpha1.BenchmarkRunSpec{NodeName: "n1", Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
			Pool:    v1alpha1.PoolTemplate{Ashift: 12, Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}},
			Dataset: dataset}}},
	}
}

// TestOnNode follows the settings of a dataset into the pool, the PersistentVolume and the claim.
func TestOnNode(t *testing.T) {
	gib := &v1alpha1.Size{Quantity: resource.MustParse("1Gi")}
	for name, test := range map[string]struct {
		dataset        *v1alpha1.DatasetTemplate
		mounted        bool
		refquota, size string
		fsType         string
		mode           corev1.PersistentVolumeMode
	}{
		"the whole pool": {nil, true, "", "3Gi", "", "Filesystem"},
		"a part of it":   {&v1alpha1.DatasetTemplate{Size: gib}, true, "1073741824", "1Gi", "", "Filesystem"},
		"a limit of one's own": {&v1alpha1.DatasetTemplate{Size: gib, Properties: v1alpha1.Properties{"refquota": "2G"}}, true, "2G", "1Gi", "",
			"Filesystem"},
		"a device":         {&v1alpha1.DatasetTemplate{Type: "Volume", Size: gib}, false, "", "1Gi", "", "Block"},
		"ext4 on a device": {&v1alpha1.DatasetTemplate{Type: "Volume", Size: gib, FSType: "ext4"}, false, "", "1Gi", "ext4", "Filesystem"},
	} {
		run := zfsRun(test.dataset)
		wanted := RunVolumes(run)[0]
		labels := map[string]string{v1alpha1.LabelRunUID: "run-uid"}
		pool := Pool(run, wanted, labels)
		if pool.Spec.DeletionPolicy != v1alpha1.DeletionDestroy {
			t.Errorf("the pool of a run stays behind: deletionPolicy %q", pool.Spec.DeletionPolicy)
		}
		made := pool.Spec.Datasets[0]
		if pool.Spec.Namespace != "lab" || pool.Spec.NodeName != "n1" || string(pool.Spec.PoolName) != pool.Name ||
			made.Mounted != test.mounted ||
			string(made.Properties["refquota"]) != test.refquota || (made.Size != nil) != (made.Type == "Volume") {
			t.Errorf("%s: pool %+v", name, pool.Spec)
		}
		if test.dataset != nil && test.dataset.Properties != nil && len(test.dataset.Properties) != 1 {
			t.Errorf("%s: the run's own properties were changed: %v", name, test.dataset.Properties)
		}
		objects, err := Of(wanted).Objects(run, wanted, Site{Node: nodeOf(map[string]string{corev1.LabelHostname: "host-1"}), PoolBytes: 3 << 30,
			ClusterLabels: labels, Labels: labels, Owner: metav1.OwnerReference{UID: "run-uid"}})
		if err != nil || len(objects) != 2 {
			t.Fatalf("%s: %v %v", name, objects, err)
		}
		persistent, claim := objects[0].(*corev1.PersistentVolume), objects[1].(*corev1.PersistentVolumeClaim)
		path := "/var/lib/storagebench/volumes/" + pool.Name + "/data/data"
		if test.mode == "Block" || test.fsType != "" {
			path = "/dev/zvol/" + pool.Name + "/data"
		}
		fsType := ""
		if persistent.Spec.Local.FSType != nil {
			fsType = *persistent.Spec.Local.FSType
		}
		if persistent.Name != pool.Name || persistent.Spec.Local.Path != path || fsType != test.fsType ||
			*persistent.Spec.VolumeMode != test.mode ||
			persistent.Spec.Capacity.Storage().String() != test.size || persistent.Spec.PersistentVolumeReclaimPolicy != "Retain" {
			t.Errorf("%s: PersistentVolume %+v", name, persistent.Spec)
		}
		if claim.Name != run.Name || persistent.Spec.ClaimRef.Name != claim.Name || persistent.Spec.ClaimRef.Namespace != "lab" ||
			claim.Spec.VolumeName != persistent.Name ||
			*claim.Spec.StorageClassName != "" || *claim.Spec.VolumeMode != test.mode ||
			claim.Spec.Resources.Requests.Storage().Cmp(*persistent.Spec.Capacity.Storage()) != 0 {
			t.Errorf("%s: claim %+v", name, claim.Spec)
		}
	}
}

// TestOnAnothersPool: a volume on the pool of another volume has a claim and a PersistentVolume with its own name, for its own dataset on
// that pool.
func TestOnAnothersPool(t *testing.T) {
	run := zfsRun(nil)
	run.Spec.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data"}, {Name: "lost", PoolOf: "nothing"}}
	all := RunVolumes(run)
	log := all[1]
	if pools := Pools(all); len(pools) != 1 || pools[0].Name != "data" || log.Pool != &run.Spec.Target.ZFS.Pool || all[2].Pool == nil {
		t.Errorf("pools %+v of %+v", pools, all)
	}
	pool := Pool(run, all[0], nil)
	objects, err := Of(log).Objects(run, log, Site{Node: nodeOf(map[string]string{corev1.LabelHostname: "host-1"}), PoolBytes: 3 << 30})
	if err != nil || len(objects) != 2 {
		t.Fatal(objects, err)
	}
	persistent, claim := objects[0].(*corev1.PersistentVolume), objects[1].(*corev1.PersistentVolumeClaim)
	if path := persistent.Spec.Local.Path; path != "/var/lib/storagebench/volumes/"+pool.Name+"/log/data" {
		t.Errorf("path %s", path)
	}
	if persistent.Name == pool.Name || claim.Spec.VolumeName != persistent.Name || claim.Name != run.Name+"-log" ||
		persistent.Spec.ClaimRef.Name != claim.Name {
		t.Errorf("PersistentVolume %s for %s, claim %s on %s", persistent.Name, persistent.Spec.ClaimRef.Name, claim.Name, claim.Spec.VolumeName)
	}
	device := log
	device.Dataset = &v1alpha1.DatasetTemplate{Type: "Volume", Size: &v1alpha1.Size{Quantity: resource.MustParse("1Gi")}}
	if objects, err = Of(device).Objects(run, device, Site{Node: nodeOf(map[string]string{corev1.LabelHostname: "host-1"})}); err != nil ||
		objects[0].(*corev1.PersistentVolume).Spec.Local.Path != "/dev/zvol/"+pool.Name+"/log" {
		t.Errorf("device %+v %v", objects, err)
	}
}
