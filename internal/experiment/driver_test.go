package experiment

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/volume"
)

func sized(text string) *v1alpha1.Size { return &v1alpha1.Size{Quantity: resource.MustParse(text)} }

// onDriver is the state of a benchmark with a zfs target and the given provisioner.
func onDriver(provisioner string) State {
	state := testState()
	state.Benchmark.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Nodes: v1alpha1.NodeChoice{Count: 1}, Reset: v1alpha1.ResetPool,
		Dataset: &v1alpha1.DatasetTemplate{Provisioner: provisioner, Type: "Filesystem", Size: sized("1Gi")}}}
	return settle(state)
}

// openEBS is a cluster with the driver of the provisioner OpenEBS in the given state.
func openEBS(state volume.DriverState) map[string]volume.DriverState {
	return map[string]volume.DriverState{volume.ProvisionerOpenEBS: state}
}

func TestDriverIsMissing(t *testing.T) {
	installed := func(s *State) { s.Drivers = openEBS(volume.DriverState{Installed: true}) }
	oddSize := func(s *State) {
		installed(s)
		for i := range s.Slots {
			s.Slots[i].Target.ZFS.Dataset.Size = sized("1536Mi")
		}
	}
	runBenchmarkTests(t, []benchmarkTest{
		{"it is asked for and not there", onDriver("OpenEBS"), nil, []string{"ReleaseLease"}, PositionStalled, "DriverNotInstalled",
			"no CSIDriver zfs.csi.openebs.io: install OpenEBS ZFS LocalPV", nil},
		{"the way out", onDriver("OpenEBS"), nil, []string{"ReleaseLease"}, PositionStalled, "DriverNotInstalled", "write provisioner: Local",
			nil},
		{"a part of it is there", onDriver("OpenEBS"), func(s *State) { s.Drivers = openEBS(volume.DriverState{Lacks: "ZFSVolume"}) }, []string{"ReleaseLease"},
			PositionStalled, "DriverNotInstalled", "but not the kind ZFSVolume of zfs.openebs.io/v1: install", wakes(10 * time.Second)},
		{"it is there", onDriver("OpenEBS"), installed, []string{"CreateRun"}, PositionRunning, "Progressing", "", nil},
		{"it is left open and not there", onDriver(""), nil, []string{"CreateRun"}, PositionRunning, "Progressing", "", nil},
		{"it is left open and there, but cannot", onDriver(""), oddSize, []string{"ReleaseLease"}, PositionStalled, "NotSupported",
			"write provisioner: Local", nil},
		{"it is not wanted and cannot", onDriver("Local"), oddSize, []string{"CreateRun"}, PositionRunning, "Progressing", "", nil},
		{"a run that has begun goes on without it", withRun(onDriver("OpenEBS"), 1, nil), nil, nil, PositionRunning, "Progressing", "", nil},
	})
}

// TestWithoutAgent: a benchmark with a zfs target stops and says why, others continue.
func TestWithoutAgent(t *testing.T) {
	off := func(s *State) { s.WithoutAgent = true }
	for _, provisioner := range []string{"OpenEBS", "Local", ""} {
		runBenchmarkTests(t, []benchmarkTest{
			{"a target on pools, provisioner " + provisioner, onDriver(provisioner), off, []string{"ReleaseLease"}, PositionStalled,
				"AgentNotInstalled", "agent.enabled=true", nil},
		})
	}
	runBenchmarkTests(t, []benchmarkTest{
		{"the other way out", onDriver("Local"), off, []string{"ReleaseLease"}, PositionStalled, "AgentNotInstalled", "write target.storageClass",
			nil},
		{"a target on a StorageClass", settle(testState()), off, []string{"CreateRun"}, PositionRunning, "Progressing", "", nil},
	})
}

// TestClusterUnread: if the manager may read neither nodes nor StorageClasses, the message says which fields to set.
func TestClusterUnread(t *testing.T) {
	unread := func(s *State) { s.ClusterUnread = true }
	noNode := func(s *State) {
		unread(s)
		s.Nodes, s.Leases, s.Benchmark.Status.NodeName = nil, nil, ""
	}
	noClass := testState()
	noClass.Benchmark.Spec.Target.StorageClass.Name = ""
	noClass = settle(noClass)
	noClass.Classes = nil
	runBenchmarkTests(t, []benchmarkTest{
		{"both are named", settle(testState()), unread, []string{"CreateRun"}, PositionRunning, "Progressing", "", nil},
		{"no node", settle(testState()), noNode, nil, PositionWaiting, "NoNode", "is not allowed to read nodes: set podTemplate.nodeSelector", nil},
		{"no class", noClass, unread, []string{"ReleaseLease"}, PositionWaiting, "NoDefaultStorageClass",
			"is not allowed to list StorageClasses to find the default: set", nil},
	})
}

// TestClassesOfRunsAreNotTargets: targets must not name the StorageClass of a run, because the manager may create claims with it, and would
// do so for any user.
func TestClassesOfRunsAreNotTargets(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{}
	run.UID = "7c1f"
	named := func(name string) State {
		state := testState()
		state.Benchmark.Spec.Target.StorageClass.Name = name
		state.Classes = append(state.Classes, ClassState{Name: name})
		return settle(state)
	}
	ours := naming.RunPoolName(run, "log-2")
	runBenchmarkTests(t, []benchmarkTest{
		{"of a run", named(ours), nil, []string{"ReleaseLease"}, PositionStalled, "NotSupported", "names StorageClass " + ours, nil},
		{"a user's own", named("sb-fast"), nil, []string{"CreateRun"}, PositionRunning, "Progressing", "", nil},
	})
}

// TestDefaultProvisioner: all runs of an experiment get the provisioner of its first run.
func TestDefaultProvisioner(t *testing.T) {
	with := func(provisioner string) func(*v1alpha1.BenchmarkRun) {
		return func(run *v1alpha1.BenchmarkRun) {
			run.Spec.Target = design.ResolveTarget(run.Spec.Target, "n1", "", provisioner)
		}
	}
	for name, test := range map[string]struct {
		state     State
		installed bool
		want      string
	}{
		"no driver":              {onDriver(""), false, "Local"},
		"a driver":               {onDriver(""), true, "OpenEBS"},
		"it came meanwhile":      {withRun(onDriver(""), 1, with("Local")), true, "Local"},
		"it went meanwhile":      {withRun(onDriver(""), 1, with("OpenEBS")), false, "OpenEBS"},
		"named ones do not tell": {withRun(onDriver("Local"), 1, with("")), true, "OpenEBS"},
		"another target":         {testState(), true, "OpenEBS"},
	} {
		test.state.Drivers = openEBS(volume.DriverState{Installed: test.installed})
		if got := DefaultProvisioner(test.state); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	other := withRun(onDriver(""), 1, with("Local"))
	other.Runs[0].Spec.Experiment, other.Drivers = "earlier", openEBS(volume.DriverState{Installed: true})
	if got := DefaultProvisioner(other); got != volume.ProvisionerOpenEBS {
		t.Errorf("a run of another experiment decides: %s", got)
	}
}

func TestWhatADriverCannot(t *testing.T) {
	operate := func(action v1alpha1.PoolAction) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "act", Volume: "data", Operate: &v1alpha1.OperatePhase{PoolAction: action}}
	}
	for name, test := range map[string]struct {
		dataset v1alpha1.DatasetTemplate
		phase   v1alpha1.Phase
		says    string
	}{
		"plain": {v1alpha1.DatasetTemplate{Size: sized("64Mi"), Properties: v1alpha1.Properties{"recordsize": "8k",
			"sync": "always"}}, runstest.Phase("fill"), ""},
		"whole Gi":       {v1alpha1.DatasetTemplate{Size: sized("3Gi")}, runstest.Phase("fill"), ""},
		"half a Gi more": {v1alpha1.DatasetTemplate{Size: sized("1536Mi")}, runstest.Phase("fill"), "up to 2147483648"},
		"half a Mi":      {v1alpha1.DatasetTemplate{Size: sized("17000Ki")}, runstest.Phase("fill"), "up to 17825792"},
		"its own limit": {v1alpha1.DatasetTemplate{Properties: v1alpha1.Properties{"refquota": "1G"}}, runstest.Phase("fill"),
			"write size"},
		"a quota": {v1alpha1.DatasetTemplate{Properties: v1alpha1.Properties{"quota": "1G"}}, runstest.Phase("fill"),
			"cannot set quota"},
		"a sparse volume": {v1alpha1.DatasetTemplate{Type: "Volume", Properties: v1alpha1.Properties{"refreservation": "none",
			"volblocksize": "16k"}}, runstest.Phase("fill"), ""},
		"a reservation": {v1alpha1.DatasetTemplate{Type: "Volume", Properties: v1alpha1.Properties{"refreservation": "1G"}},
			runstest.Phase("fill"), "cannot set refreservation"},
		"a clone": {v1alpha1.DatasetTemplate{}, operate(v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "data"}}),
			"phase act: a clone of dataset data"},
		"a clone of what is above": {v1alpha1.DatasetTemplate{},
			operate(v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "parent", To: "copy"}}), "a clone of dataset parent"},
		"a clone beside it": {v1alpha1.DatasetTemplate{},
			operate(v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "copy", To: "parent/copy"}}), "write another path in to"},
		"properties of its volume": {v1alpha1.DatasetTemplate{},
			operate(v1alpha1.PoolAction{SetProperty: &v1alpha1.SetPropertyAction{Dataset: "data"}}), "remove setProperty"},
		"a clone elsewhere": {v1alpha1.DatasetTemplate{}, operate(v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "copy"}}), ""},
		"its end": {v1alpha1.DatasetTemplate{},
			operate(v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "data"}}), "destroyDataset"},
		"the end of what is above": {v1alpha1.DatasetTemplate{},
			operate(v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "parent", Recursive: true}}), "dataset parent"},
		"its end by its own name": {v1alpha1.DatasetTemplate{},
			operate(v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "parent/pvc-1"}}), "dataset parent/pvc-1 is"},
		"beside a measurement": {v1alpha1.DatasetTemplate{}, v1alpha1.Phase{Name: "act", Measure: &v1alpha1.MeasurePhase{
			Operate: &v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "parent"}}}}, "destroyDataset"},
		"beside several workloads": {v1alpha1.DatasetTemplate{}, v1alpha1.Phase{Name: "act", Measure: &v1alpha1.MeasurePhase{
			Operate: &v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "parent"}}, Workloads: []v1alpha1.NamedWorkload{
				{Name: "pages", OLTP: &v1alpha1.OLTPWorkload{}}, {Name: "log", Redo: &v1alpha1.RedoWorkload{}}}}}, "destroyDataset"},
		"the end of another": {v1alpha1.DatasetTemplate{},
			operate(v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "parents"}}), ""},
		"of the other volume": {v1alpha1.DatasetTemplate{},
			v1alpha1.Phase{Volume: "log",
				Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "log"}}}}, ""},
	} {
		test.dataset.Provisioner = volume.ProvisionerOpenEBS
		slot := &design.Slot{Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Dataset: &test.dataset}}, Phases: []v1alpha1.Phase{test.phase}}
		slot.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Dataset: &v1alpha1.DatasetTemplate{Provisioner: "Local"}}}
		got := ""
		if refusal := refusedVolume(State{Drivers: openEBS(volume.DriverState{Installed: true})}, slot); refusal != nil {
			got = refusal.problem
		}
		if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, want ...%q...", name, got, test.says)
		}
	}
}

// TestRunPoolNames: the names are unique, and valid names of zpools.
func TestRunPoolNames(t *testing.T) {
	run := runstest.Underway().Run
	run.UID = "u1"
	data, log := naming.RunPoolName(run, naming.VolumeData), naming.RunPoolName(run, "log")
	run.UID = "u2"
	if other := naming.RunPoolName(run, naming.VolumeData); data == log || data == other || !strings.HasPrefix(data, "sb-") ||
		len(naming.RunPoolName(run, strings.Repeat("x", 20))) > 40 {
		t.Error(data, log, other)
	}
	for _, name := range []string{data, log, naming.KeptPoolName("u1", "e", "v", "n", "log-2")} {
		// Names of pools, PersistentVolumes and StorageClasses as the policies expect them: "sb-", 64 bits of hash, the volume.
		if !runClass.MatchString(name) || len(strings.SplitN(name, "-", 3)[1]) != 16 {
			t.Errorf("%s does not carry 64 bits of hash", name)
		}
	}
	if tooShort := "sb-1a2b3c4d-data"; runClass.MatchString(tooShort) {
		t.Errorf("%s is taken for the class of a run", tooShort)
	}
}

// TestTheDefaultDriverSharesNoPool: a target without a provisioner and with two volumes on one pool is refused if the cluster has the
// driver.
func TestTheDefaultDriverSharesNoPool(t *testing.T) {
	target := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data"}}}}
	for provisioner, refuses := range map[string]bool{volume.ProvisionerOpenEBS: true, volume.ProvisionerLocal: false} {
		slot := &design.Slot{Target: design.ResolveTarget(target, "", "", provisioner)}
		if got := refusedVolume(State{Drivers: openEBS(volume.DriverState{Installed: true})}, slot); (got != nil) != refuses {
			t.Errorf("%s: %+v", provisioner, got)
		}
	}
}
