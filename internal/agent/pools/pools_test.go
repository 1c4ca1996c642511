package pools

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/naming"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

const diskA, diskB, diskC, diskD = "/dev/disk/by-id/a", "/dev/disk/by-id/b", "/dev/disk/by-id/c", "/dev/disk/by-id/d"

func mirrorOf(paths ...v1alpha1.DevicePath) v1alpha1.Vdev {
	return v1alpha1.Vdev{Type: "mirror", Devices: paths}
}

// wantedPool requests a mirror of disks a and b.
func wantedPool() *v1alpha1.BenchmarkPool {
	return &v1alpha1.BenchmarkPool{
		ObjectMeta: metav1.ObjectMeta{Name: "bench0", UID: "uid-1", Generation: 2, CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
			Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "node-a", PoolTemplate: v1alpha1.PoolTemplate{Ashift: 12,
			Vdevs: []v1alpha1.Vdev{mirrorOf(diskA, diskB)}, Properties: v1alpha1.Properties{"autotrim": "on"},
			RootProperties: v1alpha1.Properties{"recordsize": "8k"}}, DeletionPolicy: v1alpha1.DeletionDestroy},
	}
}

func freeDisk(path string) Disk {
	return Disk{Disk: host.Disk{Path: path, Number: "8:" + path, Kernel: "sd" + path[len(path)-1:], SizeBytes: 1 << 30}}
}

// absentState is a node with free disks and no pool.
func absentState() State {
	return State{Pool: wantedPool(), Policy: DevicePolicy{{Pattern: "/dev/disk/by-id/*"}},
		Disks: map[string]Disk{diskA: freeDisk(diskA), diskB: freeDisk(diskB), diskC: freeDisk(diskC), diskD: freeDisk(diskD)}}
}

func leaf(path string) zfs.VdevStatus {
	return zfs.VdevStatus{Name: path + "-part1", Path: path + "-part1", Type: "disk", Class: "normal", State: zfs.StateOnline}
}

func mirrored(name string, paths ...string) zfs.VdevStatus {
	vdev := zfs.VdevStatus{Name: name, Type: "mirror", Class: "normal", State: zfs.StateOnline}
	for _, path := range paths {
		vdev.Children = append(vdev.Children, leaf(path))
	}
	return vdev
}

// liveState is a node with exactly the requested pool.
func liveState() State {
	state := absentState()
	state.Pool.Status.GUID = "77"
	state.Live = &LivePool{
		PoolSummary: zfs.PoolSummary{Name: "bench0", GUID: "77", Health: zfs.StateOnline},
		Status:      zfs.Status{Pool: "bench0", State: zfs.StateOnline, Vdevs: []zfs.VdevStatus{mirrored("mirror-0", diskA, diskB)}},
		Properties: []zfs.Property{{Object: "bench0", Name: "autotrim", Value: "on", Source: "local"},
			{Object: "bench0", Name: "readonly", Value: "off", Source: "-"}},
		Datasets: []zfs.Dataset{{Name: "bench0", Type: "filesystem"}},
		DatasetProperties: []zfs.Property{{Object: "bench0", Name: "recordsize", Value: "8192", Source: "local"},
			{Object: "bench0", Name: naming.PropertyUID, Value: "uid-1", Source: "local"}, {Object: "bench0", Name: naming.PropertyName,
				Value: "bench0", Source: "local"},
			{Object: "bench0", Name: naming.PropertyGeneration, Value: "2", Source: "local"}, {Object: "bench0", Name: PropertySpec, Value: "2",
				Source: "local"},
			{Object: "bench0", Name: naming.PropertyDisks, Value: layoutMark(wantedPool()), Source: "local"}},
	}
	return state
}

func (l *LivePool) change(name, value, source string) {
	for _, properties := range [][]zfs.Property{l.Properties, l.DatasetProperties} {
		for i := range properties {
			if properties[i].Name == name {
				properties[i].Value, properties[i].Source = value, source
			}
		}
	}
}

// look imports the pool as the agent does to see whose it is.
func look(s *State) {
	s.Live.change("readonly", "on", "-")
	s.Live.Properties = append(s.Live.Properties, zfs.Property{Object: "bench0", Name: "altroot", Value: zfs.LookRoot, Source: "local"})
	s.HostName = "n1"
}

// elsewhere lets another host have the pool.
func elsewhere(s *State) {
	s.Disks[diskA] = hostOf(labelled(freeDisk(diskA), 77, host.PoolActive), "n2")
}

// follow raises the generation of the spec, which is already recorded on the pool.
func (s *State) follow(generation int64) {
	s.Pool.Generation = generation
	s.Live.change(PropertySpec, strconv.FormatInt(generation, 10), "local")
}

func poolKinds(decision Decision) string {
	var all []string
	for _, action := range decision.Actions {
		all = append(all, string(action.Kind))
	}
	return strings.Join(all, " ")
}

func rivalFor(change func(*v1alpha1.BenchmarkPool)) v1alpha1.BenchmarkPool {
	rival := wantedPool()
	rival.Name, rival.UID = "rival", "uid-0"
	rival.CreationTimestamp = metav1.NewTime(time.Unix(500, 0))
	change(rival)
	return *rival
}

// offline takes one side of the mirror offline and sets the state of the other.
func offline(other zfs.State, known ...string) func(*State) {
	return func(s *State) {
		sides := s.Live.Status.Vdevs[0].Children
		sides[0].State, sides[1].State, s.Offlined = other, zfs.StateOffline, known
	}
}

func deletedState(state State) State {
	state.Pool.DeletionTimestamp = &metav1.Time{Time: time.Unix(2000, 0)}
	return state
}

func labelled(disk Disk, guid uint64, state host.PoolState) Disk {
	disk.Pools, disk.AfterPool = []host.PoolLabel{{Name: "bench0", GUID: guid, State: state, Txg: 4}}, true
	disk.Refusal = &host.RefusedError{Path: disk.Path, Findings: []host.Finding{{Reason: host.PoolMember, Detail: "it has a label"}}}
	return disk
}

// takenOut is a disk with the label that ZFS writes when a disk leaves a pool.
func takenOut(disk Disk, guid uint64) Disk {
	disk = labelled(disk, guid, host.PoolActive)
	disk.Pools[0].Txg = 0
	return disk
}

func hostOf(disk Disk, host string) Disk {
	disk.Pools[0].HostName = host
	return disk
}

func TestAbsentPool(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*State)
		want, reason string
		says         string
	}{
		"is made":         {func(*State) {}, "AddFinalizer CreatePool", v1alpha1.ReasonPoolChanging, "making pool bench0"},
		"nothing allowed": {func(s *State) { s.Policy = nil }, "", v1alpha1.ReasonPoolDeviceDenied, diskA},
		"allowed to another namespace": {func(s *State) { s.Policy = DevicePolicy{{Namespace: "lab", Pattern: "/dev/disk/by-id/*"}} }, "",
			v1alpha1.ReasonPoolDeviceDenied, "without a namespace"},
		"a namespace has no general grant": {func(s *State) { s.Pool.Spec.Namespace = "lab" }, "", v1alpha1.ReasonPoolDeviceDenied,
			"namespace lab"},
		"a disk is refused": {func(s *State) {
			disk := freeDisk(diskB)
			disk.Refusal = &host.RefusedError{Path: diskB, Findings: []host.Finding{{Reason: host.Mounted, Detail: "it is mounted at /data"}}}
			s.Disks[diskB] = disk
		}, "", v1alpha1.ReasonPoolDeviceRefused, "mounted at /data"},
		"a disk of larger sectors": {func(s *State) {
			disk := s.Disks[diskB]
			disk.LogicalSectorBytes, s.Pool.Spec.Ashift = 4096, 11
			s.Disks[diskB] = disk
		}, "", v1alpha1.ReasonPoolDeviceRefused, diskB + " has sectors of 4096 bytes, so blocks of 2048 (ashift 11) are not possible: create the " +
			"pool with ashift: 12"},
		"a disk of sectors as large as the blocks": {func(s *State) {
			disk := s.Disks[diskB]
			disk.LogicalSectorBytes = 4096
			s.Disks[diskB] = disk
		}, "AddFinalizer CreatePool", v1alpha1.ReasonPoolChanging, "making pool bench0"},
		"one disk by two names": {func(s *State) {
			disk := s.Disks[diskB]
			disk.Number = s.Disks[diskA].Number
			s.Disks[diskB] = disk
		}, "", v1alpha1.ReasonPoolDeviceRefused, "same disk"},
		"a disk not looked at":  {func(s *State) { delete(s.Disks, diskB) }, "", v1alpha1.ReasonPoolDeviceRefused, "not been checked"},
		"was there and is lost": {func(s *State) { s.Pool.Status.GUID = "77" }, "", v1alpha1.ReasonPoolLost, "guid 77"},
		"was there and can be imported": {func(s *State) {
			s.Pool.Status.GUID = "77"
			s.Importable = []zfs.Importable{{Name: "bench0", GUID: "78"}, {Name: "bench0", GUID: "77"}}
		}, "AddFinalizer ImportPool", v1alpha1.ReasonPoolChanging, "guid 77"},
		"the node has stopped with it": {func(s *State) { s.Stopped = maxStopped - 1 }, "AddFinalizer CreatePool", v1alpha1.ReasonPoolChanging,
			"making pool bench0"},
		"the node stops with it": {func(s *State) { s.Stopped = maxStopped }, "", v1alpha1.ReasonPoolStopsNode, "stopped 3 times"},
		"the node stops with its import": {func(s *State) {
			s.Stopped, s.Pool.Status.GUID = maxStopped, "77"
			s.Importable = []zfs.Importable{{Name: "bench0", GUID: "77"}}
		}, "", v1alpha1.ReasonPoolStopsNode, "remove /var/lib/storagebench/attempts/" + string(wantedPool().UID)},
		"a namesake on other disks": {func(s *State) { s.Importable = []zfs.Importable{{Name: "bench0", GUID: "78"}} }, "",
			v1alpha1.ReasonPoolNameTaken, "guid 78"},
		"made, but not recorded": {func(s *State) {
			s.Importable = []zfs.Importable{{Name: "bench0", GUID: "77"}}
			s.Disks[diskA], s.Disks[diskB] = labelled(freeDisk(diskA), 77, host.PoolActive), labelled(freeDisk(diskB), 77, host.PoolActive)
		}, "AddFinalizer ImportPool", v1alpha1.ReasonPoolChanging, "guid 77"},
		"another host had it last": {func(s *State) {
			s.Pool.Status.GUID, s.HostName, s.Importable = "77", "n1", []zfs.Importable{{Name: "bench0", GUID: "77"}}
			s.Disks[diskA] = hostOf(labelled(freeDisk(diskA), 77, host.PoolActive), "n2")
		}, "", v1alpha1.ReasonPoolLost, `last used by host "n2"`},
		"this host had it last": {func(s *State) {
			s.Pool.Status.GUID, s.HostName, s.Importable = "77", "n1", []zfs.Importable{{Name: "bench0", GUID: "77"}}
			s.Disks[diskA] = hostOf(labelled(freeDisk(diskA), 77, host.PoolActive), "n1")
		}, "AddFinalizer ImportPool", v1alpha1.ReasonPoolChanging, "guid 77"},
		"another host exported it": {func(s *State) {
			s.Pool.Status.GUID, s.HostName, s.Importable = "77", "n1", []zfs.Importable{{Name: "bench0", GUID: "77"}}
			s.Disks[diskA] = hostOf(labelled(freeDisk(diskA), 77, host.PoolExported), "n2")
		}, "AddFinalizer ImportPool", v1alpha1.ReasonPoolChanging, "guid 77"},
		"an exported namesake is no crash": {func(s *State) {
			s.Importable = []zfs.Importable{{Name: "bench0", GUID: "77"}}
			s.Disks[diskA], s.Disks[diskB] = labelled(freeDisk(diskA), 77, host.PoolExported), labelled(freeDisk(diskB), 77, host.PoolExported)
		}, "", v1alpha1.ReasonPoolNameTaken, "guid 77"},
	} {
		t.Run(name, func(t *testing.T) {
			state := absentState()
			test.change(&state)
			expectPool(t, Plan(state), test.want, test.reason, test.says)
		})
	}
}

func expectPool(t *testing.T, decision Decision, want, reason, says string) {
	t.Helper()
	if got := poolKinds(decision); got != want || decision.Reason != reason || !strings.Contains(decision.Message, says) {
		t.Errorf("actions %q, reason %s: %s\nwant %q, %s, with %q", got, decision.Reason, decision.Message, want, reason, says)
	}
}

func TestNewPoolsCarryTheirOwner(t *testing.T) {
	create := Plan(absentState()).Actions[1]
	want := zfs.PoolSpec{Name: "bench0", Ashift: 12, Layout: zfs.Layout{Data: []zfs.Vdev{{Type: zfs.Mirror, Devices: []string{diskA, diskB}}}},
		Properties: map[string]string{"autotrim": "on"},
		RootProperties: map[string]string{naming.PropertyUID: "uid-1", naming.PropertyName: "bench0",
			naming.PropertyGeneration: withoutProperties, PropertySpec: "2", naming.PropertyDisks: layoutMark(wantedPool()),
			"org.debian:periodic-scrub": "disable", "org.debian:periodic-trim": "disable"}}
	if diff := cmp.Diff(want, create.Create); diff != "" {
		t.Error(diff)
	}
	if len(create.Disks) != 2 || create.Disks[0].Path != diskA || create.Disks[1].Path != diskB {
		t.Errorf("disks %v are not those of the layout", create.Disks)
	}
}

// TestLatePropertiesAreNotSetByTheCreation: if the kernel refuses a property when the pool exists, it destroys the pool, and leaves labels.
func TestLatePropertiesAreNotSetByTheCreation(t *testing.T) {
	state := absentState()
	state.Pool.Spec.RootProperties = v1alpha1.Properties{"reservation": "1P", "quota": "1", "recordsize": "16M", "compression": "zstd",
		"dnodesize": "auto", "checksum": "blake3", "utf8only": "on", "normalization": "formD", "casesensitivity": "mixed", "version": "4"}
	made := Plan(state).Actions[1].Create.RootProperties
	maps.DeleteFunc(made, func(name, _ string) bool { return strings.Contains(name, ":") })
	want := map[string]string{"utf8only": "on", "normalization": "formD", "casesensitivity": "mixed", "version": "4"}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
}

// TestRootPropertiesComeFirst: the root of a new pool gets its properties before a dataset is made or mounted, also those that are the
// default of this OpenZFS, and each once.
func TestRootPropertiesComeFirst(t *testing.T) {
	state := liveState()
	state.Pool.Spec.RootProperties = v1alpha1.Properties{"relatime": "off", "compression": "on", "quota": "none", "utf8only": "on"}
	state.Pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "later"}}
	state.Live.change(naming.PropertyGeneration, withoutProperties, "local")
	want := []naming.Setting{{Dataset: "bench0", Name: "compression", Value: "on"}, {Dataset: "bench0", Name: "quota", Value: "none"},
		{Dataset: "bench0", Name: "relatime", Value: "off"}, {Dataset: "bench0", Name: naming.PropertyGeneration, Value: "0"}}
	decision := Plan(state)
	expectPool(t, decision, "AddFinalizer SetProperties", v1alpha1.ReasonPoolChanging, "setting the properties of pool bench0")
	if diff := cmp.Diff(want, decision.Actions[1].Settings); diff != "" {
		t.Error(diff)
	}
	state.Live.change(naming.PropertyGeneration, "0", "local")
	if next := Plan(state); next.Actions[1].Kind != CreateDataset {
		t.Errorf("then: %+v", next.Actions)
	}
}

// TestMayOpen: a withdrawn grant leaves a pool its own disks, and nothing else.
func TestMayOpen(t *testing.T) {
	pool := wantedPool()
	pool.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskA, diskB, diskC, diskD)}
	pool.Status.GUID, pool.Status.Joining = "77", []v1alpha1.DevicePath{diskB}
	pool.Status.Vdevs = []v1alpha1.VdevStatus{{Name: "mirror-0"}, {Name: diskA + "-part1"}, {Name: diskC, State: StateLeft}}
	for path, want := range map[string]bool{diskA: true, diskB: true, diskC: false, diskD: false} {
		if got := (DevicePolicy{}).MayOpen(pool, path); got != want {
			t.Errorf("%s without a grant: %v", path, got)
		}
		if !(DevicePolicy{{Pattern: path}}).MayOpen(pool, path) {
			t.Errorf("%s is not opened, although it is granted", path)
		}
	}
}

// TestMultihost: it is set on new pools if the agent says so.
func TestMultihost(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		state := absentState()
		state.Multihost = wanted
		if made := Plan(state).Actions[1].Create; made.Multihost != wanted {
			t.Errorf("multihost %v makes %+v", wanted, made)
		}
	}
}

// TestSnapdir: pods cannot look into snapshots where this version of ZFS can prevent it.
func TestSnapdir(t *testing.T) {
	for _, test := range []struct {
		programs int
		module   string
		wanted   bool
	}{
		{2, "zfs-kmod-2.2.7-1", false}, {3, "zfs-kmod-2.3.9-1", true}, {4, "zfs-kmod-2.4.0-1", true},
		{3, "zfs-kmod-2.2.7-1", false}, {2, "zfs-kmod-2.3.9-1", false}, {3, "", false}, // upgraded without a reboot, or unknown
	} {
		state := absentState()
		state.Version = zfs.Version{Major: 2, Minor: test.programs, Kernel: test.module}
		if made := Plan(state).Actions[1].Create; made.NoSnapdir != test.wanted {
			t.Errorf("programs of OpenZFS 2.%d with %q make %+v", test.programs, test.module, made)
		}
	}
}

// TestRivals: if two objects want the same name or disk, at most one of them acts, whichever is planned first.
func TestRivals(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.BenchmarkPool)
		refused bool
	}{
		"older, same name and disks": {func(*v1alpha1.BenchmarkPool) {}, true},
		"older, one disk":            {func(p *v1alpha1.BenchmarkPool) { p.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskC, diskB)} }, true},
		"older, same name only": {func(p *v1alpha1.BenchmarkPool) { p.Spec.PoolName = "bench0"; p.Spec.Vdevs[0] = mirrorOf(diskC, diskD) },
			true},
		"older, nothing in common":   {func(p *v1alpha1.BenchmarkPool) { p.Spec.Vdevs[0] = mirrorOf(diskC, diskD) }, false},
		"older, on another node":     {func(p *v1alpha1.BenchmarkPool) { p.Spec.NodeName = "node-b" }, false},
		"older, but may not have it": {func(p *v1alpha1.BenchmarkPool) { p.Spec.Namespace = "other" }, false},
		"younger":                    {func(p *v1alpha1.BenchmarkPool) { p.CreationTimestamp = metav1.NewTime(time.Unix(1500, 0)) }, false},
		"as old, uid decides":        {func(p *v1alpha1.BenchmarkPool) { p.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0)) }, true},
		"younger, but has the disk":  {holding(1500), true},
		"older, a log device of its pool": {func(p *v1alpha1.BenchmarkPool) {
			p.Spec.Vdevs[0] = mirrorOf(diskC, diskD)
			p.Spec.Log = []v1alpha1.AuxiliaryVdev{{Devices: []v1alpha1.DevicePath{diskA}}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := absentState(), absentState()
			rival := rivalFor(test.change)
			mine.Rivals = []v1alpha1.BenchmarkPool{rival}
			decision := Plan(mine)
			if refused := decision.Reason == v1alpha1.ReasonPoolConflict; refused != test.refused {
				t.Fatalf("refused is %v: %s", refused, decision.Message)
			}
			if test.refused && len(decision.Actions) > 0 {
				t.Errorf("a refused pool acts: %s", poolKinds(decision))
			}
			theirs.Pool, theirs.Rivals = &rival, []v1alpha1.BenchmarkPool{*wantedPool()}
			if other := Plan(theirs); shares(rival) && len(decision.Actions) > 0 && len(other.Actions) > 0 {
				t.Errorf("both act: %s and %s", poolKinds(decision), poolKinds(other))
			}
		})
	}
}

func holding(created int64) func(*v1alpha1.BenchmarkPool) {
	return func(p *v1alpha1.BenchmarkPool) {
		p.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
		p.Status.Vdevs = []v1alpha1.VdevStatus{{Name: diskA + "-part1"}}
		p.Status.GUID = "99"
	}
}

func shares(rival v1alpha1.BenchmarkPool) bool {
	devices := objects.SpecDevices(&rival)
	return rival.Spec.NodeName == "node-a" && (slices.Contains(devices, diskA) || slices.Contains(devices, diskB))
}

// TestRivalHoldsADiskThatItsSpecDoesNotName: a vdev that was removed from the spec holds data as long as it is in the pool.
func TestRivalHoldsADiskThatItsSpecDoesNotName(t *testing.T) {
	state := absentState()
	rival := rivalFor(func(p *v1alpha1.BenchmarkPool) {
		p.Spec.Vdevs[0] = mirrorOf(diskC, diskD)
		p.CreationTimestamp = metav1.NewTime(time.Unix(9000, 0))
		p.Status.Vdevs = []v1alpha1.VdevStatus{{Name: diskC + "-part1"}, {Name: diskD + "-part1"}, {Name: diskA + "-part1"}}
	})
	state.Rivals = []v1alpha1.BenchmarkPool{rival}
	expectPool(t, Plan(state), "", v1alpha1.ReasonPoolConflict, "BenchmarkPool rival also claims "+diskA)
}

// TestRivalHasRecordedADisk: until the pool is imported, nothing shows whether a recorded disk is in it. A younger object does not keep an
// older one from a disk by recording it: if the disk is in a pool, its label shows that.
func TestRivalHasRecordedADisk(t *testing.T) {
	for created, want := range map[int64]string{500: v1alpha1.ReasonPoolConflict, 9000: v1alpha1.ReasonPoolChanging} {
		state := absentState()
		state.Rivals = []v1alpha1.BenchmarkPool{rivalFor(func(p *v1alpha1.BenchmarkPool) {
			p.Spec.Vdevs[0], p.Spec.PoolName = mirrorOf(diskC, diskD), "bench1"
			p.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
			p.Status.Joining = []v1alpha1.DevicePath{diskA}
		})}
		if decision := Plan(state); decision.Reason != want {
			t.Errorf("of %d: %s: %s", created, decision.Reason, decision.Message)
		}
	}
}

func TestRivalByAnotherNameOfTheDisk(t *testing.T) {
	state := absentState()
	rival := rivalFor(func(p *v1alpha1.BenchmarkPool) { p.Spec.Vdevs[0] = mirrorOf("/dev/disk/by-id/alias", diskC) })
	alias := freeDisk("/dev/disk/by-id/alias")
	alias.Number = state.Disks[diskA].Number
	state.Disks[alias.Path] = alias
	state.Rivals = []v1alpha1.BenchmarkPool{rival}
	expectPool(t, Plan(state), "", v1alpha1.ReasonPoolConflict, "BenchmarkPool rival also claims "+diskA)
}

func TestLivePool(t *testing.T) {
	const keep = "AddFinalizer"
	for name, test := range map[string]struct {
		change       func(*State)
		want, reason string
		says         string
	}{
		"as asked":                {func(*State) {}, keep, v1alpha1.ReasonPoolReady, "as specified"},
		"foreign, without a mark": {func(s *State) { s.Live.DatasetProperties = nil }, "", v1alpha1.ReasonPoolNameTaken, "no mark"},
		"foreign, of an earlier life": {func(s *State) { s.Live.change(naming.PropertyUID, "uid-0", "local") }, "", v1alpha1.ReasonPoolNameTaken,
			"uid-0"},
		"foreign, an inherited mark": {func(s *State) { s.Live.change(naming.PropertyUID, "uid-1", "inherited from x") }, "",
			v1alpha1.ReasonPoolNameTaken, "no mark"},
		"an object without uid": {func(s *State) { s.Pool.UID = types.UID(""); s.Live.change(naming.PropertyUID, "", "local") }, "",
			v1alpha1.ReasonPoolNameTaken, "left alone"},
		"read-only, the agent's look": {look, keep + " ReimportPool", v1alpha1.ReasonPoolChanging, "read-only"},
		"read-only, the agent's look, and another host has it now": {func(s *State) { look(s); elsewhere(s) }, keep, v1alpha1.ReasonPoolLost,
			`last used by host "n2"`},
		"read-only by hand": {func(s *State) { s.Live.change("readonly", "on", "-") }, keep, v1alpha1.ReasonPoolUnhealthy, "by hand on node node-a"},
		"read-only by hand, below another folder": {func(s *State) { look(s); s.Live.change("altroot", "/mnt", "local") }, keep,
			v1alpha1.ReasonPoolUnhealthy, "by hand on node node-a"},
		"read-only by hand, and a disk has left": {func(s *State) {
			s.Live.change("readonly", "on", "-")
			s.Pool.Status.Vdevs = []v1alpha1.VdevStatus{{Name: diskC + "-part1"}}
			s.Disks[diskC] = takenOut(freeDisk(diskC), 77)
		}, keep, v1alpha1.ReasonPoolUnhealthy, "by hand on node node-a"},
		"a disk is faulted": {func(s *State) { s.Live.Status.Vdevs[0].Children[1].State = zfs.StateFaulted }, keep, v1alpha1.ReasonPoolUnhealthy,
			diskB + "-part1 is FAULTED"},
		"resilvering": {func(s *State) {
			s.Live.Status.State = zfs.StateDegraded
			s.Live.Status.Scan = &zfs.Progress{Function: "resilver", State: zfs.Running}
		}, keep, v1alpha1.ReasonPoolRebuilding, "rebuilding"},
		"a disk is offline":                  {offline(zfs.StateOnline), keep, v1alpha1.ReasonPoolUnhealthy, diskB + "-part1 is OFFLINE"},
		"a disk is offline for an operation": {offline(zfs.StateOnline, diskB+"-part1"), keep, v1alpha1.ReasonPoolRebuilding, "a PoolOperation has taken"},
		"another one is for an operation":    {offline(zfs.StateOnline, diskC+"-part1"), keep, v1alpha1.ReasonPoolUnhealthy, diskB + "-part1 is OFFLINE"},
		"another one fails meanwhile": {func(s *State) {
			offline(zfs.StateOnline, diskB+"-part1")(s)
			s.Live.Status.Vdevs = append(s.Live.Status.Vdevs, mirrored("mirror-1", diskC, diskD))
			s.Live.Status.Vdevs[1].Children[0].State = zfs.StateFaulted
		}, keep, v1alpha1.ReasonPoolUnhealthy, diskC + "-part1 is FAULTED"},
		"the other side fails meanwhile": {offline(zfs.StateFaulted, diskB+"-part1"), keep, v1alpha1.ReasonPoolUnhealthy, diskA + "-part1 is FAULTED"},
		"drift is reported": {func(s *State) { s.Live.change("recordsize", "131072", "local") }, keep, v1alpha1.ReasonPoolDrifted,
			"recordsize of bench0 is 131072 (local), requested is 8k"},
		"drift is repaired": {func(s *State) { s.Live.change("autotrim", "off", "default"); s.Pool.Spec.Drift = "Repair" },
			keep + " SetProperties", v1alpha1.ReasonPoolChanging,
			"autotrim of pool bench0 is off"},
		"a new generation is set": {func(s *State) { s.follow(3); s.Pool.Spec.RootProperties["recordsize"] = "16k" },
			keep + " SetProperties", v1alpha1.ReasonPoolChanging, "16k"},
		"a new generation of other things": {func(s *State) { s.follow(3) }, keep + " SetProperties", v1alpha1.ReasonPoolChanging, ""},
		"an unknown property": {func(s *State) { s.Pool.Spec.RootProperties["recsize"] = "8k" }, keep, v1alpha1.ReasonPoolDrifted,
			"does not exist"},
		"a dataset is missing": {func(s *State) { s.Pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "p/q"}, {Path: "p"}} },
			keep + " CreateDataset", v1alpha1.ReasonPoolChanging, "bench0/p"},
		"a dataset of other type": {func(s *State) {
			s.Pool.Spec.Datasets = []v1alpha1.PoolDataset{{Path: "p", Type: "Volume"}}
			s.Live.Datasets = append(s.Live.Datasets, zfs.Dataset{Name: "bench0/p", Type: "filesystem"})
		}, keep, v1alpha1.ReasonPoolDrifted, "is a filesystem"},
		"grows by a mirror": {func(s *State) {
			s.Pool.Spec.Vdevs = append(s.Pool.Spec.Vdevs, mirrorOf(diskC, diskD))
		}, keep + " RecordDisks GrowPool", v1alpha1.ReasonPoolChanging, diskC},
		"grows by a log": {func(s *State) {
			s.Pool.Spec.Log = []v1alpha1.AuxiliaryVdev{{Devices: []v1alpha1.DevicePath{diskC}}}
		}, keep + " RecordDisks GrowPool", v1alpha1.ReasonPoolChanging, diskC},
		"grows by what is denied": {func(s *State) {
			s.Policy = DevicePolicy{{Pattern: diskA}, {Pattern: diskB}}
			s.Pool.Spec.Cache = []v1alpha1.DevicePath{diskC}
		}, keep, v1alpha1.ReasonPoolDeviceDenied, diskC},
		"a mirror has lost a side": {func(s *State) { s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA)} }, keep,
			v1alpha1.ReasonPoolDisksDiffer, "a mirror lacks " + diskB},
		"a vdev was taken out": {func(s *State) {
			s.Pool.Spec.Vdevs = append(s.Pool.Spec.Vdevs, mirrorOf(diskC, diskD))
			s.Live.change(naming.PropertyDisks, layoutMark(s.Pool), "local")
			s.follow(3)
			s.Live.change(naming.PropertyGeneration, "3", "local")
		}, keep, v1alpha1.ReasonPoolDisksDiffer,
			"the pool lacks " + diskC + ", " + diskD},
		"a mirror gets another side": {func(s *State) {
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskA, diskB, diskC)}
		}, keep + " RecordDisks AttachDisk", v1alpha1.ReasonPoolChanging, "attaching " + diskC},
		"a disk becomes a mirror": {func(s *State) {
			s.Live.change(naming.PropertyDisks, "of the single disk", "local")
			s.Live.Status.Vdevs = []zfs.VdevStatus{leaf(diskA)}
		}, keep + " RecordDisks AttachDisk", v1alpha1.ReasonPoolChanging, "attaching " + diskB},
		"a mirror becomes a disk": {func(s *State) {
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{diskB}}}
		}, keep + " DetachDisk", v1alpha1.ReasonPoolChanging, "detaching " + diskA},
		"a side stays that has shown errors": {func(s *State) {
			s.Live.Status.Vdevs[0].Children[1].ChecksumErrors = 2
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{diskB}}}
		}, keep, v1alpha1.ReasonPoolUnhealthy, "errors on " + diskB},
		"data is lost already": {func(s *State) {
			s.Live.Status.DataErrors = 1
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{diskB}}}
		}, keep, v1alpha1.ReasonPoolUnhealthy, "data errors"},
		"two names of one side": {func(s *State) {
			alias := freeDisk("/dev/disk/by-id/alias")
			alias.Number = s.Disks[diskA].Number
			s.Disks[alias.Path] = alias
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskA, "/dev/disk/by-id/alias")}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, diskA + " and /dev/disk/by-id/alias are the same disk"},
		"both sides of a mirror as vdevs": {func(s *State) {
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{diskA}}, {Devices: []v1alpha1.DevicePath{diskB}}}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, diskB + " is in mirror-0 with disks of another vdev"},
		"both sides of a mirror as a stripe": {func(s *State) {
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{diskA, diskB}}}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, diskA + " is in mirror-0, not in a stripe"},
		"one side alone, the other in a new mirror": {func(s *State) {
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{diskA}}, mirrorOf(diskB, diskC)}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, diskB + " is in mirror-0 with disks of another vdev"},
		"a mirror of four as two mirrors": {func(s *State) {
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA, diskB, diskC, diskD)}
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskA, diskB), mirrorOf(diskC, diskD)}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, diskC + " is in mirror-0 with disks of another vdev"},
		"a raidz as a mirror": {func(s *State) {
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("raidz1-0", diskA, diskB)}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, diskA + " is in raidz1-0, not in a mirror"},
		"first the mirror, then the next": {func(s *State) {
			s.Live.Status.Vdevs = []zfs.VdevStatus{leaf(diskA)}
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskA, diskB), mirrorOf(diskC, diskD)}
		}, keep + " RecordDisks AttachDisk", v1alpha1.ReasonPoolChanging, "attaching " + diskB},
		"the disks are noted": {func(s *State) { s.Live.change(naming.PropertyDisks, "of an earlier layout", "local") }, keep + " SetProperties",
			v1alpha1.ReasonPoolChanging,
			"its disks match the spec"},
		"disks differ, and properties are set all the same": {func(s *State) {
			s.follow(3)
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA, diskC)}
		}, keep + " SetProperties", v1alpha1.ReasonPoolChanging, ""},
		"read-only, in the middle of a resilver": {func(s *State) {
			look(s)
			s.Live.Status.Scan = &zfs.Progress{Function: "resilver", State: zfs.Running}
		}, keep + " ReimportPool", v1alpha1.ReasonPoolChanging, "read-only"},
		"a new disk that died": {func(s *State) {
			replacing := mirrored("replacing-0", diskA, diskC)
			replacing.Children[1].State = zfs.StateFaulted
			s.Live.Status.Vdevs[0].Children[0] = replacing
		}, keep, v1alpha1.ReasonPoolUnhealthy, diskC + "-part1 is FAULTED"},
		"a side too many, which was not to be removed": {func(s *State) {
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA, diskB, diskC)}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, "which the spec does not list"},
		"a side was replaced": {func(s *State) {
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA, diskC)}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, diskC + "-part1, which the spec does not list"},
		"a side was replaced, and a property changed": {func(s *State) { // the run that replaced the disk would take it for its own
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA, diskC)}
			s.Live.change("recordsize", "131072", "local")
		}, keep, v1alpha1.ReasonPoolDrifted, "recordsize of bench0 is 131072"},
		"a raidz does not grow by a disk": {func(s *State) {
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("raidz1-0", diskA, diskB)}
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{{Type: "raidz1", Devices: []v1alpha1.DevicePath{diskA, diskB, diskC}}}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, diskC + " of a raidz1"},
		"an attached side is rebuilt": {func(s *State) {
			s.Live.Status.Scan = &zfs.Progress{Function: "resilver", State: zfs.Running}
		}, keep, v1alpha1.ReasonPoolRebuilding, "rebuilding"},
		"a disk was replaced": {func(s *State) { s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA, diskC)} }, keep,
			v1alpha1.ReasonPoolDisksDiffer, diskC},
		"a replaced stripe does not grow": {func(s *State) {
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{diskA}}}
			s.Live.Status.Vdevs = []zfs.VdevStatus{leaf(diskC)}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, "does not list"},
		"by another name of the disk": {func(s *State) {
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA, diskC)}
			alias := freeDisk(diskC)
			alias.Number = s.Disks[diskB].Number
			s.Disks[diskC] = alias
		}, keep, v1alpha1.ReasonPoolReady, "as specified"},
		"disks in other vdevs": {func(s *State) {
			s.Pool.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskA, diskB), mirrorOf(diskC, diskD)}
			s.Live.Status.Vdevs = []zfs.VdevStatus{mirrored("mirror-0", diskA, diskC), mirrored("mirror-1", diskB, diskD)}
		}, keep, v1alpha1.ReasonPoolDisksDiffer, "not in the same mirror"},
		"a log that is data": {func(s *State) {
			s.Pool.Spec.Log = []v1alpha1.AuxiliaryVdev{{Devices: []v1alpha1.DevicePath{diskC}}}
			s.Live.Status.Vdevs = append(s.Live.Status.Vdevs, leaf(diskC))
		}, keep, v1alpha1.ReasonPoolDisksDiffer, "class normal, not log"},
	} {
		t.Run(name, func(t *testing.T) {
			state := liveState()
			test.change(&state)
			expectPool(t, Plan(state), test.want, test.reason, test.says)
		})
	}
}

func TestSettingsEndWithTheMark(t *testing.T) {
	state := liveState()
	state.follow(3)
	state.Pool.Spec.RootProperties["recordsize"] = "16k"
	want := []naming.Setting{{Dataset: "bench0", Name: "recordsize", Value: "16k"}, {Dataset: "bench0", Name: naming.PropertyGeneration,
		Value: "3"}}
	if diff := cmp.Diff(want, Plan(state).Actions[1].Settings); diff != "" {
		t.Error(diff)
	}
}

func TestDeletedPool(t *testing.T) {
	gone := func(path string) Disk {
		return Disk{Disk: host.Disk{Path: path},
			Refusal: &host.RefusedError{Path: path, Findings: []host.Finding{{Reason: host.Missing}}}}
	}
	for name, test := range map[string]struct {
		state        State
		change       func(*State)
		want, reason string
		says         string
	}{
		"ours and unused":   {liveState(), func(*State) {}, "DestroyPool", v1alpha1.ReasonPoolChanging, "destroying"},
		"a disk is offline": {liveState(), offline(zfs.StateOnline, diskB+"-part1"), "OnlineDisk", v1alpha1.ReasonPoolChanging, "online before"},
		"guid not recorded": {liveState(), func(s *State) { s.Pool.Status.GUID = "" }, "", v1alpha1.ReasonPoolChanging, "recording"},
		"in use": {liveState(), func(s *State) { s.Users = []string{"dataset bench0 is mounted at /x"} }, "", v1alpha1.ReasonPoolInUse,
			"mounted at /x"},
		"volumes of others": {liveState(), func(s *State) { s.Live.Datasets = append(s.Live.Datasets, zfs.Dataset{Name: "bench0/p/pvc-1"}) }, "",
			v1alpha1.ReasonPoolDatasetsRemain, "pvc-1"},
		"made by an operation": {liveState(), func(s *State) {
			s.Live.Datasets = append(s.Live.Datasets, zfs.Dataset{Name: "bench0/clone"})
			s.Live.DatasetProperties = append(s.Live.DatasetProperties, zfs.Property{Object: "bench0/clone", Name: naming.PropertyOperation,
				Value: "uid-op", Source: "local"})
		}, "DestroyPool", v1alpha1.ReasonPoolChanging, "destroying"},
		"volumes below a clone": {liveState(), func(s *State) {
			s.Live.Datasets = append(s.Live.Datasets, zfs.Dataset{Name: "bench0/clone/pvc-1"})
			s.Live.DatasetProperties = append(s.Live.DatasetProperties, zfs.Property{Object: "bench0/clone/pvc-1", Name: naming.PropertyOperation,
				Value: "uid-op", Source: "inherited from bench0/clone"})
		}, "", v1alpha1.ReasonPoolDatasetsRemain, "pvc-1"},
		"suspended": {liveState(), func(s *State) { s.Live.Status.State = zfs.StateSuspended }, "", v1alpha1.ReasonPoolUnhealthy,
			v1alpha1.AnnotationReleasePool},
		"read-only, the agent's look": {liveState(), look, "ReimportPool", v1alpha1.ReasonPoolChanging, "read-only"},
		"read-only, the agent's look, and another host has it now": {liveState(), func(s *State) { look(s); elsewhere(s) }, "",
			v1alpha1.ReasonPoolLost, `last used by host "n2"`},
		"read-only by hand": {liveState(), func(s *State) { s.Live.change("readonly", "on", "-") }, "", v1alpha1.ReasonPoolUnhealthy,
			v1alpha1.AnnotationReleasePool},
		"released": {liveState(), func(s *State) {
			s.Pool.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: "node-a"}
		}, "RemoveFinalizer", v1alpha1.ReasonPoolLeftBehind, diskA},
		"retained": {liveState(), func(s *State) { s.Pool.Spec.DeletionPolicy = v1alpha1.DeletionRetain }, "RemoveFinalizer",
			v1alpha1.ReasonPoolLeftBehind, diskA},
		"retained, and an operation has a disk offline": {liveState(), func(s *State) {
			s.Pool.Spec.DeletionPolicy, s.Offlined = v1alpha1.DeletionRetain, []string{"501"}
		}, "", v1alpha1.ReasonPoolRebuilding, v1alpha1.AnnotationReleasePool},
		"released, and an operation has a disk offline": {liveState(), func(s *State) {
			s.Pool.Annotations, s.Offlined = map[string]string{v1alpha1.AnnotationReleasePool: "node-a"}, []string{"501"}
		}, "RemoveFinalizer", v1alpha1.ReasonPoolLeftBehind, diskA},
		"released for elsewhere": {liveState(), func(s *State) {
			s.Pool.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: "node-b"}
		}, "DestroyPool", v1alpha1.ReasonPoolChanging, ""},
		"no finalizer": {liveState(), func(s *State) { s.Pool.Finalizers = nil }, "", v1alpha1.ReasonPoolChanging, ""},
		"foreign, nothing made": {liveState(), func(s *State) { s.Live.change(naming.PropertyUID, "uid-0", "local"); s.Pool.Status.GUID = "" },
			"RemoveFinalizer", v1alpha1.ReasonPoolChanging, ""},
		"never made": {absentState(), func(*State) {}, "RemoveFinalizer", v1alpha1.ReasonPoolChanging, "nothing"},
		"destroyed and cleared": {absentState(), func(s *State) { s.Pool.Status.GUID = "77" }, "RemoveFinalizer", v1alpha1.ReasonPoolChanging,
			"nothing"},
		"not imported": {absentState(), func(s *State) {
			s.Pool.Status.GUID = "77"
			s.Importable = []zfs.Importable{{Name: "bench0", GUID: "77"}}
		}, "ImportPool", v1alpha1.ReasonPoolChanging, "to destroy it"},
		"not imported, and another host had it last": {absentState(), func(s *State) {
			s.Pool.Status.GUID, s.HostName, s.Importable = "77", "n1", []zfs.Importable{{Name: "bench0", GUID: "77"}}
			s.Disks[diskA] = hostOf(labelled(freeDisk(diskA), 77, host.PoolActive), "n2")
		}, "", v1alpha1.ReasonPoolLost, `last used by host "n2"`},
		"labels are left": {absentState(), func(s *State) {
			s.Pool.Status.GUID = "77"
			s.Disks[diskB] = labelled(freeDisk(diskB), 77, host.PoolDestroyed)
		}, "ClearLabels", v1alpha1.ReasonPoolChanging, "labels"},
		"another pool's labels are left": {absentState(), func(s *State) {
			s.Pool.Status.GUID = "77"
			s.Disks[diskB] = labelled(freeDisk(diskB), 78, host.PoolDestroyed)
		}, "RemoveFinalizer", v1alpha1.ReasonPoolChanging, "nothing"},
		"cannot be imported": {absentState(), func(s *State) {
			s.Pool.Status.GUID = "77"
			s.Disks[diskA], s.Disks[diskB] = labelled(freeDisk(diskA), 77, host.PoolActive), gone(diskB)
		}, "", v1alpha1.ReasonPoolLost, "missing: " + diskB},
		// A recorded disk whose command did not run has no label of the pool. It is left alone and not waited for.
		"a recorded disk is blank": {absentState(), func(s *State) {
			s.Pool.Status.GUID, s.Pool.Status.Joining = "77", []v1alpha1.DevicePath{diskC}
		}, "RemoveFinalizer", v1alpha1.ReasonPoolChanging, "nothing"},
		"a recorded disk has another pool": {absentState(), func(s *State) {
			s.Pool.Status.GUID, s.Pool.Status.Joining = "77", []v1alpha1.DevicePath{diskC}
			s.Disks[diskC] = labelled(freeDisk(diskC), 78, host.PoolDestroyed)
		}, "RemoveFinalizer", v1alpha1.ReasonPoolChanging, "nothing"},
		"a recorded disk is gone": {absentState(), func(s *State) {
			s.Pool.Status.GUID, s.Pool.Status.Joining = "77", []v1alpha1.DevicePath{diskC}
			s.Disks[diskC] = gone(diskC)
		}, "RemoveFinalizer", v1alpha1.ReasonPoolChanging, "nothing"},
		"labels are left on a recorded disk": {absentState(), func(s *State) {
			s.Pool.Status.GUID, s.Pool.Status.Joining = "77", []v1alpha1.DevicePath{diskC}
			s.Disks[diskC] = labelled(freeDisk(diskC), 77, host.PoolDestroyed)
		}, "ClearLabels", v1alpha1.ReasonPoolChanging, "labels"},
		"a disk was taken out of it": {absentState(), func(s *State) {
			s.Pool.Status.GUID = "77"
			s.Disks[diskA], s.Disks[diskB] = labelled(freeDisk(diskA), 77, host.PoolDestroyed), takenOut(freeDisk(diskB), 77)
		}, "ClearLabels", v1alpha1.ReasonPoolChanging, "labels"},
		"the last one was taken out of it": {absentState(), func(s *State) {
			s.Pool.Status.GUID, s.Disks[diskB] = "77", takenOut(freeDisk(diskB), 77)
		}, "ClearLabels", v1alpha1.ReasonPoolChanging, "taken out"},
		"a disk was taken out of another pool": {absentState(), func(s *State) {
			s.Pool.Status.GUID, s.Disks[diskB] = "77", takenOut(freeDisk(diskB), 78)
		}, "RemoveFinalizer", v1alpha1.ReasonPoolChanging, "nothing"},
		"a disk was taken out of it, and has a file system": {absentState(), func(s *State) {
			disk := takenOut(freeDisk(diskB), 77)
			disk.Findings = append(disk.Findings, host.Finding{Reason: host.Signature, Detail: "ext4"})
			s.Pool.Status.GUID, s.Disks[diskB] = "77", disk
		}, "RemoveFinalizer", v1alpha1.ReasonPoolChanging, "other contents"},
		"disks are gone": {absentState(), func(s *State) { s.Pool.Status.GUID = "77"; s.Disks[diskB] = gone(diskB) }, "", v1alpha1.ReasonPoolLost,
			v1alpha1.AnnotationReleasePool},
	} {
		t.Run(name, func(t *testing.T) {
			test.change(&test.state)
			expectPool(t, Plan(deletedState(test.state)), test.want, test.reason, test.says)
		})
	}
}

func TestSameValue(t *testing.T) {
	for _, test := range []struct {
		wanted, is string
		want       bool
	}{
		{"8k", "8192", true}, {"8K", "8192", true}, {"1M", "1048576", true}, {"1.5G", "1610612736", true}, {"8KiB", "8192", true},
		{"8k", "8193", false},
		{"none", "0", true}, {"0", "none", true}, {"lz4", "lz4", true}, {"on", "off", false}, {"lz4", "8192", false},
		{"9007199254740993", "9007199254740992", false},
		{"off", "0", false}, {"none", "off", false}, {"", "0", false},
	} {
		if got := zfs.SameValue(test.wanted, test.is); got != test.want {
			t.Errorf("%q and %q the same: %v", test.wanted, test.is, got)
		}
	}
}

func TestDeviceGrants(t *testing.T) {
	for _, text := range []string{"", "*", "/dev/sdb", "lab=", "lab=/dev/sdb", "=/dev/disk/by-id/x", "/dev/disk/by-id/[", "lab=*"} {
		if grant, err := ParseDeviceGrant(text); err == nil {
			t.Errorf("%q became %+v", text, grant)
		}
	}
	grant, err := ParseDeviceGrant("lab=/dev/disk/by-id/nvme-*")
	if err != nil {
		t.Fatal(err)
	}
	policy := DevicePolicy{grant}
	for path, want := range map[string]bool{"/dev/disk/by-id/nvme-1": true, "/dev/disk/by-id/ata-1": false,
		"/dev/disk/by-id/nvme-1/../ata-1": false} {
		if policy.Allows("lab", path) != want || policy.Allows("", path) || policy.Allows("other", path) {
			t.Errorf("%s is wrongly granted", path)
		}
	}
}

// TestReuseIsARight: a namespace gives up old contents only where its grant says so, and then only file systems.
func TestReuseIsARight(t *testing.T) {
	for text, want := range map[string]host.Right{
		"lab=/dev/disk/by-id/*":         host.NoContents,
		"lab=/dev/disk/by-id/*:reuse":   host.FileSystems,
		"other=/dev/disk/by-id/*:reuse": host.NoContents,
		"lab=/dev/disk/by-id/b:reuse":   host.NoContents,
	} {
		grant, err := ParseDeviceGrant(text)
		if err != nil {
			t.Fatal(err)
		}
		policy := DevicePolicy{{Namespace: "lab", Pattern: "/dev/disk/by-id/*"}, {Pattern: "/dev/disk/by-id/*"}, grant}
		if got := policy.Right("lab", diskA); got != want || policy.Right("", diskA) != host.AnyContents {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
		state := absentState()
		state.Policy, state.Pool.Spec.Namespace, state.Pool.Spec.Reuse = policy, "lab", &v1alpha1.DeviceReuse{Serials: []string{"1234"}}
		decision := Plan(state)
		if denied := decision.Reason == v1alpha1.ReasonPoolDeviceDenied; denied != (want == host.NoContents) {
			t.Errorf("%s: %s: %s", text, decision.Reason, decision.Message)
		} else if denied && !strings.Contains(decision.Message, "':reuse'") {
			t.Errorf("%s: the message names no way out: %s", text, decision.Message)
		}
	}
	for _, text := range []string{"/dev/disk/by-id/*:reuse", "lab=:reuse"} {
		if grant, err := ParseDeviceGrant(text); err == nil {
			t.Errorf("%q became %+v", text, grant)
		}
	}
}

func FuzzDeviceGrant(f *testing.F) {
	f.Add("/dev/disk/by-id/nvme-*")
	f.Add("lab=/dev/disk/by-path/pci-*")
	f.Add("=x")
	f.Fuzz(func(t *testing.T, text string) {
		grant, err := ParseDeviceGrant(text)
		if err != nil {
			return
		}
		policy := DevicePolicy{grant}
		for _, path := range []string{"/dev/sda", "/dev/disk/by-label/root", "/dev/disk/by-uuid/1"} {
			if policy.Allows(grant.Namespace, path) {
				t.Errorf("%q grants %s", text, path)
			}
		}
		if policy.Allows(grant.Namespace+"x", diskA) {
			t.Errorf("%q grants to another namespace", text)
		}
	})
}

// TestADiskThatLeftThePoolIsNotIt: its label names the pool, but it holds none of the pool's data any more.
func TestADiskThatLeftThePoolIsNotIt(t *testing.T) {
	disk := freeDisk(diskA)
	disk.Pools = []host.PoolLabel{{Name: "bench0", GUID: 77, State: host.PoolActive}}
	if got := carried(disk, "77"); got != noLabel {
		t.Errorf("it carries %v", got)
	}
}

func TestDatasetsAreMounted(t *testing.T) {
	const ours = "/var/lib/storagebench/volumes/bench0/lab"
	for name, test := range map[string]struct {
		mounted bool
		is      zfs.Dataset
		want    string
	}{
		"at another place":       {true, zfs.Dataset{MountPoint: ""}, "SetProperties canmount=noauto mountpoint=" + ours},
		"not mounted":            {true, zfs.Dataset{MountPoint: ours}, "MountDataset"},
		"mounted":                {true, zfs.Dataset{MountPoint: ours, Mounted: true}, ""},
		"mounted no more":        {false, zfs.Dataset{MountPoint: ours, Mounted: true}, "SetProperties mountpoint=none"},
		"a user's own place":     {false, zfs.Dataset{MountPoint: "/x", Mounted: true}, ""},
		"never to be mounted":    {false, zfs.Dataset{}, ""},
		"another user's, wanted": {true, zfs.Dataset{MountPoint: "/x", Mounted: true}, "UnmountDataset"},
	} {
		pool := wantedPool()
		pool.Spec.PoolName = "bench0"
		test.is.Name = "bench0/lab"
		decision := mountWanted(State{Pool: pool, Live: &LivePool{}}, v1alpha1.PoolDataset{Path: "lab", Mounted: test.mounted}, test.is)
		got := ""
		if decision != nil {
			got = string(decision.Actions[0].Kind)
			for _, setting := range decision.Actions[0].Settings {
				got += " " + setting.Name + "=" + setting.Value
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	volume := v1alpha1.PoolDataset{Path: "lab", Type: naming.DatasetVolume, Mounted: true}
	if decision := mountWanted(State{Pool: wantedPool(), Live: &LivePool{}}, volume, zfs.Dataset{Name: "bench0/lab"}); decision != nil {
		t.Errorf("a volume is mounted: %+v", decision)
	}
}

// TestMountsWithinOthers: a dataset is not mounted where pods can write.
func TestMountsWithinOthers(t *testing.T) {
	dataset := func(path v1alpha1.DatasetPath, mounted bool, properties v1alpha1.Properties) v1alpha1.PoolDataset {
		return v1alpha1.PoolDataset{Path: path, Mounted: mounted, Properties: properties}
	}
	for name, test := range map[string]struct {
		datasets []v1alpha1.PoolDataset
		root     v1alpha1.Properties
		want     string
	}{
		"beside each other": {[]v1alpha1.PoolDataset{dataset("a", true, nil), dataset("ab", true, nil), dataset("c", false, nil),
			dataset("c/d", true, nil)}, nil, ""},
		"within another": {[]v1alpha1.PoolDataset{dataset("a/b", true, nil), dataset("a", true, nil)}, nil, "dataset a/b lies below a"},
		"would inherit it": {[]v1alpha1.PoolDataset{dataset("a", true, nil), dataset("a/b/c", false, nil)}, nil,
			"dataset a/b/c lies below a"},
		"programs": {[]v1alpha1.PoolDataset{dataset("a", true, v1alpha1.Properties{"exec": "on"})}, nil,
			"remove exec from the properties of dataset a"},
		"programs of the root": {nil, v1alpha1.Properties{"setuid": "on"}, "remove setuid from spec.rootProperties"},
		"partitions":           {[]v1alpha1.PoolDataset{dataset("a", false, v1alpha1.Properties{"volmode": "full"})}, nil, "remove volmode"},
		"a look at snapshots":  {[]v1alpha1.PoolDataset{dataset("a", false, v1alpha1.Properties{"snapdir": "hidden"})}, nil, "remove snapdir"},
	} {
		pool := wantedPool()
		pool.Spec.Datasets = test.datasets
		if test.root != nil {
			pool.Spec.RootProperties = test.root
		}
		decision := unsafeDatasets(State{Pool: pool})
		if test.want == "" != (decision == nil) || decision != nil && (decision.Reason != v1alpha1.ReasonSpecInvalid ||
			!strings.Contains(decision.Message, test.want)) {
			t.Errorf("%s: %+v, want %q", name, decision, test.want)
		}
		if absent := Plan(State{Pool: pool}); test.want != "" && (absent.Reason != v1alpha1.ReasonSpecInvalid || len(absent.Actions) > 0) {
			t.Errorf("%s: before the pool is there: %+v", name, absent)
		}
	}
	state := State{Pool: wantedPool(), Live: &LivePool{PoolSummary: zfs.PoolSummary{Name: "bench0"}},
		Nested: []string{"bench0/a/b/c", "bench0/a/b"}}
	decision := nestedMounts(state)
	if decision == nil || len(decision.Actions) != 2 || decision.Actions[0].Kind != UnmountDataset ||
		decision.Actions[0].Dataset.Name != "bench0/a/b/c" {
		t.Errorf("nested mounts: %+v", decision)
	}
}

// TestMountsAreProven: a dataset that ZFS reports as mounted, but that the node does not show with its folder for pods, is mounted again.
// ZFS itself mounts nothing.
func TestMountsAreProven(t *testing.T) {
	pool := wantedPool()
	pool.Spec.PoolName = "bench0"
	is := zfs.Dataset{Name: "bench0/lab", MountPoint: naming.MountPoint("bench0", "lab"), Mounted: true}
	mounted := v1alpha1.PoolDataset{Path: "lab", Mounted: true}
	decision := mountWanted(State{Pool: pool, Live: &LivePool{}, Unplaced: []string{is.Name}}, mounted, is)
	if decision == nil || decision.Actions[0].Kind != MountDataset {
		t.Errorf("not at its place: %+v", decision)
	}
	auto := &LivePool{DatasetProperties: []zfs.Property{{Object: is.Name, Name: "canmount", Value: "on"}}}
	decision = mountWanted(State{Pool: pool, Live: auto}, mounted, is)
	if want := (naming.Setting{Dataset: is.Name, Name: "canmount", Value: "noauto"}); decision == nil ||
		decision.Actions[0].Settings[0] != want {
		t.Errorf("canmount=on: %+v", decision)
	}
}
