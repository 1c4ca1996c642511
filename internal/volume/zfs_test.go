package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

func zfsRun(dataset *v1alpha1.DatasetTemplate) *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "ageing-0a1b2c3d-000", Namespace: "lab", UID: "run-uid"},
		Spec: v1alpha1.BenchmarkRunSpec{NodeName: "n1", Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
			Pool:    v1alpha1.PoolTemplate{Ashift: 12, Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}},
			Dataset: dataset}}},
	}
}

// TestOnNode follows what a user asks of a dataset to the pool, the PersistentVolume and the claim.
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
		persistent, claim := OnNode(run, wanted, labels, "host-1", 3<<30), OnNodeClaim(run, wanted, labels, metav1.OwnerReference{UID: "run-uid"},
			3<<30)
		path := "/var/lib/storagebench/volumes/" + pool.Name + "/volume/data"
		if test.mode == "Block" || test.fsType != "" {
			path = "/dev/zvol/" + pool.Name + "/volume"
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

func TestPoolsState(t *testing.T) {
	run := zfsRun(nil)
	run.Spec.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Pool: run.Spec.Target.ZFS.Pool}}
	pool := func(changes ...func(*v1alpha1.BenchmarkPool)) *v1alpha1.BenchmarkPool {
		made := Pool(run, RunVolumes(run)[0], map[string]string{v1alpha1.LabelRunUID: "run-uid"})
		made.Generation = 2
		kstatus.Done(&made.Status.Conditions, 2, v1alpha1.ReasonPoolReady, "ready")
		for _, change := range changes {
			change(made)
		}
		return made
	}
	going := func(p *v1alpha1.BenchmarkPool) { p.DeletionTimestamp = &metav1.Time{} }
	deleted := func(p *v1alpha1.BenchmarkPool) { now := metav1.Now(); p.DeletionTimestamp = &now }
	foreign := func(p *v1alpha1.BenchmarkPool) { p.Labels = map[string]string{v1alpha1.LabelRunUID: "another"} }
	unseen := func(p *v1alpha1.BenchmarkPool) { p.Status.Conditions = nil }
	earlier := func(p *v1alpha1.BenchmarkPool) { p.Generation = 3 }
	broken := func(p *v1alpha1.BenchmarkPool) {
		kstatus.Stall(&p.Status.Conditions, 2, v1alpha1.ReasonPoolUnhealthy, "DEGRADED")
	}
	for name, test := range map[string]struct {
		pools                                        []*v1alpha1.BenchmarkPool
		exist, some, ready, broken, deleting, isThem bool
		reason                                       string
	}{
		"none":                 {[]*v1alpha1.BenchmarkPool{nil, nil}, false, false, false, false, false, true, ""},
		"one of two":           {[]*v1alpha1.BenchmarkPool{pool(), nil}, false, true, false, false, false, true, ""},
		"both":                 {[]*v1alpha1.BenchmarkPool{pool(), pool(going)}, true, true, true, false, false, true, ""},
		"one goes":             {[]*v1alpha1.BenchmarkPool{pool(), pool(deleted)}, true, true, true, false, true, true, ""},
		"one is another's":     {[]*v1alpha1.BenchmarkPool{pool(), pool(foreign)}, false, true, false, false, false, false, ""},
		"no agent":             {[]*v1alpha1.BenchmarkPool{pool(unseen), pool()}, true, true, false, false, false, true, "PoolNotReady"},
		"an earlier spec's":    {[]*v1alpha1.BenchmarkPool{pool(earlier), pool()}, true, true, false, false, false, true, "PoolNotReady"},
		"one is out of order":  {[]*v1alpha1.BenchmarkPool{pool(), pool(broken)}, true, true, false, true, false, true, "Unhealthy"},
		"and one is not there": {[]*v1alpha1.BenchmarkPool{nil, pool(broken)}, false, true, false, true, false, true, "Unhealthy"},
	} {
		got := PoolsState(run, test.pools, nil)
		if !got.Needed || got.Exist != test.exist || got.Some != test.some || got.Ready != test.ready || got.Broken != test.broken ||
			got.Deleting != test.deleting ||
			(got.Foreign == "") != test.isThem || got.Reason != test.reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestJoin(t *testing.T) {
	whole, half := VolumeState{Exists: true, Bound: true}, VolumeState{Some: true}
	if got := Join([]VolumeState{whole, whole}); !got.Exists || !got.Bound || !got.Left() {
		t.Errorf("both: %+v", got)
	}
	if got := Join([]VolumeState{whole, {}}); got.Exists || !got.Left() {
		t.Errorf("one: %+v", got)
	}
	if got := Join([]VolumeState{{}, half}); got.Exists || !got.Left() {
		t.Errorf("what is below a claim: %+v", got)
	}
	if got := Join([]VolumeState{{}, {}}); got.Left() || got.Bound {
		t.Errorf("none: %+v", got)
	}
	if got := Join([]VolumeState{whole, {Exists: true, Lost: true, Problem: "p", Deleting: true}}); !got.Lost || got.Problem != "p" ||
		!got.Deleting || got.Bound {
		t.Errorf("one is lost: %+v", got)
	}
}
