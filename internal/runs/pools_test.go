package runs_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
)

func zfsRun(dataset *v1alpha1.DatasetTemplate) *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "ageing-0a1b2c3d-000", Namespace: "lab", UID: "run-uid"},
		Spec: v1alpha1.BenchmarkRunSpec{NodeName: "n1", Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
			Pool:    v1alpha1.PoolTemplate{Ashift: 12, Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}},
			Dataset: dataset}}},
	}
}

func TestPoolsOf(t *testing.T) {
	run := zfsRun(nil)
	run.Spec.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Pool: &run.Spec.Target.ZFS.Pool}}
	pool := func(changes ...func(*v1alpha1.BenchmarkPool)) *v1alpha1.BenchmarkPool {
		made := volume.Pool(run, volume.RunVolumes(run)[0], map[string]string{v1alpha1.LabelRunUID: "run-uid"})
		made.Generation = 2
		kstatus.SetReady(&made.Status.Conditions, 2, v1alpha1.ReasonPoolReady, "ready")
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
		kstatus.SetStalled(&p.Status.Conditions, 2, v1alpha1.ReasonPoolUnhealthy, "DEGRADED")
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
		got := runs.PoolsOf(run, test.pools, nil)
		if !got.Needed || got.Exist != test.exist || got.Some != test.some || got.Ready != test.ready || got.Broken != test.broken ||
			got.Deleting != test.deleting ||
			(got.Foreign == "") != test.isThem || got.Reason != test.reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestDisksOfPools: the runner gets all disks of the pool or none, and no disk that is no longer in the pool.
func TestDisksOfPools(t *testing.T) {
	run := zfsRun(nil)
	seen := func(device, number string) v1alpha1.PreflightStatus {
		return v1alpha1.PreflightStatus{Device: v1alpha1.DevicePath(device), Number: number, Serial: "S" + number}
	}
	for name, test := range map[string]struct {
		log       string
		preflight []v1alpha1.PreflightStatus
		want      []workload.Disk
	}{
		"not seen":           {"", nil, nil},
		"one of two":         {"", []v1alpha1.PreflightStatus{seen("/dev/disk/by-id/a", "8:0")}, nil},
		"an earlier release": {"", []v1alpha1.PreflightStatus{seen("/dev/disk/by-id/a", "8:0"), seen("/dev/disk/by-id/b", "")}, nil},
		"with a log": {"/dev/disk/by-id/log", []v1alpha1.PreflightStatus{seen("/dev/disk/by-id/a", "8:0"), seen("/dev/disk/by-id/b", "8:16"),
			seen("/dev/disk/by-id/cache", "8:64"), seen("/dev/disk/by-id/log", "8:48")}, []workload.Disk{
			{Path: "/dev/disk/by-id/a", Number: "8:0", Serial: "S8:0"}, {Path: "/dev/disk/by-id/b", Number: "8:16", Serial: "S8:16"},
			{Path: "/dev/disk/by-id/log", Number: "8:48", Serial: "S8:48"}}},
		"a log that is not seen": {"/dev/disk/by-id/log", []v1alpha1.PreflightStatus{seen("/dev/disk/by-id/a", "8:0"),
			seen("/dev/disk/by-id/b", "8:16")}, nil},
		"both, and one that was replaced": {"", []v1alpha1.PreflightStatus{seen("/dev/disk/by-id/old", "8:32"), seen("/dev/disk/by-id/a", "8:0"),
			seen("/dev/disk/by-id/b", "8:16")}, []workload.Disk{{Path: "/dev/disk/by-id/a", Number: "8:0", Serial: "S8:0"},
			{Path: "/dev/disk/by-id/b", Number: "8:16", Serial: "S8:16"}}},
	} {
		pool := volume.Pool(run, volume.RunVolumes(run)[0], map[string]string{v1alpha1.LabelRunUID: "run-uid"})
		pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}},
			{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/b"}}}
		if test.log != "" {
			pool.Spec.Log = []v1alpha1.AuxiliaryVdev{{Devices: []v1alpha1.DevicePath{v1alpha1.DevicePath(test.log)}}}
			pool.Spec.Cache = []v1alpha1.DevicePath{"/dev/disk/by-id/cache"}
		}
		pool.Status.Preflight = test.preflight
		if diff := cmp.Diff(test.want, runs.PoolsOf(run, []*v1alpha1.BenchmarkPool{pool}, nil).Disks["data"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPoolsOfDriver: a dataset of a driver is unread until the agent has reported it, and the agent is asked for it once.
func TestPoolsOfDriver(t *testing.T) {
	run := zfsRun(&v1alpha1.DatasetTemplate{Provisioner: volume.ProvisionerOpenEBS, Properties: v1alpha1.Properties{"sync": "always"}})
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
		pool := volume.Pool(run, volume.RunVolumes(run)[0], map[string]string{v1alpha1.LabelRunUID: "run-uid"})
		kstatus.SetReady(&pool.Status.Conditions, 0, v1alpha1.ReasonPoolReady, "ready")
		pool.Annotations, pool.Status.Properties = map[string]string{v1alpha1.AnnotationReport: c.annotation}, c.properties
		got := runs.PoolsOf(run, []*v1alpha1.BenchmarkPool{pool}, map[string]string{"data": c.persistent})
		if (len(got.Unread) > 0) != c.unread || (got.Unasked["data"] == "parent/pvc-1") != c.unasked || len(got.Differing) != c.differing ||
			(got.Volumes == nil) != c.unread ||
			(got.Datasets["data"] == dataset) != (c.persistent != "") {
			t.Errorf("%s: %+v", test, got)
		}
		if !c.unread && (len(got.Volumes[0].Properties) != 1 || got.Volumes[0].Properties[0].Dataset != dataset) {
			t.Errorf("%s: of the volume are reported %+v", test, got.Volumes[0].Properties)
		}
	}
}

// TestVolumesOnOnePool: each volume has its own dataset and the disks of the pool, and only the properties of its own dataset.
func TestVolumesOnOnePool(t *testing.T) {
	run := zfsRun(nil)
	run.Spec.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data", Dataset: &v1alpha1.DatasetTemplate{
		Type: "Filesystem", Properties: v1alpha1.Properties{"recordsize": "8k"}}}, {Name: "arch", Pool: &run.Spec.Target.ZFS.Pool}}
	var pools []*v1alpha1.BenchmarkPool
	for _, one := range volume.Pools(volume.RunVolumes(run)) {
		pool := volume.Pool(run, one, map[string]string{v1alpha1.LabelRunUID: "run-uid"})
		kstatus.SetReady(&pool.Status.Conditions, 0, v1alpha1.ReasonPoolReady, "ready")
		pool.Status.Preflight = []v1alpha1.PreflightStatus{{Device: "/dev/disk/by-id/a", Number: "8:0"}}
		for _, dataset := range append([]string{""}, "/data", "/log") {
			pool.Status.Properties = append(pool.Status.Properties, v1alpha1.EffectiveProperty{Dataset: pool.Name + dataset, Name: "recordsize",
				Value: "of " + dataset})
		}
		pools = append(pools, pool)
	}
	if len(pools) != 2 || len(pools[0].Spec.Datasets) != 2 || len(pools[1].Spec.Datasets) != 1 {
		t.Fatalf("pools %+v", pools)
	}
	if log := pools[0].Spec.Datasets[1]; log.Path != "log" || !log.Mounted || log.Properties["recordsize"] != "8k" {
		t.Errorf("dataset %+v", log)
	}
	got := runs.PoolsOf(run, pools, nil)
	if !got.Ready || len(got.Volumes) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, name := range []string{"data", "log"} {
		one := got.Volumes[i]
		if string(one.Name) != name || one.Pool != pools[0].Name || len(one.Properties) != 2 || one.Properties[1].Dataset != pools[0].Name+"/"+name {
			t.Errorf("volume %s: %+v", name, one)
		}
		if got.Datasets[name] != pools[0].Name+"/"+name || len(got.Disks[name]) != 1 {
			t.Errorf("volume %s is in dataset %s on disks %v", name, got.Datasets[name], got.Disks[name])
		}
	}
	if got.Datasets["arch"] != pools[1].Name+"/arch" || got.Volumes[2].Pool != pools[1].Name {
		t.Errorf("volume arch: %+v", got)
	}
}
