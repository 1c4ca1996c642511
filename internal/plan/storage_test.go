package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestRunOnPools covers what a run on pools waits for, makes and removes.
func TestRunOnPools(t *testing.T) {
	ready := PoolsState{Needed: true, Exist: true, Some: true, Ready: true}
	broken := PoolsState{Needed: true, Exist: true, Some: true, Broken: true, Reason: "Unhealthy", Message: "BenchmarkPool sb-1-data: DEGRADED"}
	making := PoolsState{Needed: true, Exist: true, Some: true, Reason: "PoolChanging", Message: "BenchmarkPool sb-1-data: making"}
	longAgo := func(s *RunState) { s.Run.Status.StartedAt = stamp(-10 * time.Minute) }
	fillStored := func(s *RunState) {
		s.Phases[0] = PhaseState{Stored: validResult("m")}
		s.Phases[0].Stored.StoredAt = noon.Add(-time.Minute)
	}
	drifted := PoolsState{Needed: true, Exist: true, Some: true, Broken: true, Reason: v1alpha1.ReasonPoolDrifted, Message: "BenchmarkPool sb-1-data: the disks differ"}
	replacing := func(s *RunState) {
		s.Run.Spec.Phases[0].Operate = &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{}}}
	}
	lastReceived := func(s *RunState) {
		received(s)
		fill := s.Phases[0]
		fillStored(s)
		s.Phases[1] = fill
	}
	deleted := func(s *RunState) { s.Run.DeletionTimestamp = &metav1.Time{Time: noon} }
	for _, test := range []struct {
		name    string
		pools   PoolsState
		changes []runChange
		actions []string
		reason  string
		ending  string
		says    string
		wake    time.Duration
	}{
		{"none is made yet", PoolsState{Needed: true}, []runChange{jobless(false), volumeGone}, []string{"CreatePools"}, "PreparingVolume", "", "making the pools", 10 * time.Minute},
		{"one of two is made", PoolsState{Needed: true, Some: true}, []runChange{jobless(false), volumeGone}, []string{"CreatePools"}, "PreparingVolume", "", "", 10 * time.Minute},
		{"the name is taken", PoolsState{Needed: true, Foreign: "sb-1-data"}, []runChange{jobless(false), volumeGone}, nil, "NameTaken", "", "BenchmarkPool sb-1-data exists", foreignRecheck},
		{"an earlier one is going", PoolsState{Needed: true, Some: true, Exist: true, Deleting: true}, []runChange{jobless(false), volumeGone}, nil, "PreparingVolume", "", "earlier pool", 10 * time.Minute},
		{"they are being made", making, []runChange{jobless(false), volumeGone}, nil, "PreparingVolume", "", "PoolChanging: BenchmarkPool sb-1-data: making", 10 * time.Minute},
		{"they are never ready", broken, []runChange{jobless(false), volumeGone, longAgo}, nil, "PoolNotReady", "final", "not ready within 10m0s: Unhealthy", 0},
		{"they are ready", ready, []runChange{jobless(false), volumeGone}, []string{"CreateVolume", "StartPhase 0"}, "PhaseRunning", "", "", 0},
		{"without the node nothing is made", PoolsState{Needed: true}, []runChange{jobless(false), volumeGone, leaseStolen}, nil, "Queued", "", "", 0},
		{"ready for the second phase", ready, []runChange{fillStored}, []string{"StartPhase 1"}, "PhaseRunning", "", "", 0},
		{"not ready for the second phase", making, []runChange{fillStored, longAgo}, nil, "PreparingVolume", "", "waits for its pools", 9 * time.Minute},
		{"broken during a phase", broken, nil, nil, "PoolNotReady", "retry", "DEGRADED", 0},
		{"changing during a phase", making, nil, nil, "PhaseRunning", "", "", 50 * time.Minute},
		{"deleted during a phase", PoolsState{Needed: true, Some: true, Exist: true, Deleting: true, Ready: true}, nil, nil, "PoolLost", "retry", "deleted", 0},
		{"gone during a phase", PoolsState{Needed: true}, nil, nil, "PoolLost", "retry", "deleted", 0},
		{"a result of a broken pool is none", broken, []runChange{received}, nil, "PoolNotReady", "retry", "DEGRADED", 0},
		{"not even the last", broken, []runChange{lastReceived}, nil, "PoolNotReady", "retry", "DEGRADED", 0},
		{"nor one of a pool that goes", PoolsState{Needed: true, Some: true, Exist: true, Deleting: true, Ready: true}, []runChange{received}, nil, "PoolLost", "retry", "deleted", 0},
		{"a phase may change the disks itself", drifted, []runChange{replacing, received}, []string{"StoreResult 0"}, "PhaseRunning", "", "", 0},
		{"but they have to be good", broken, []runChange{replacing, received}, nil, "PoolNotReady", "retry", "DEGRADED", 0},
		{"and nobody else may", drifted, []runChange{received}, nil, "PoolNotReady", "retry", "differ", 0},
		{"they go after the volumes", ready, []runChange{deleted, jobless(false)}, []string{"DeleteVolume"}, "TearingDown", "", "", 0},
		{"a volume that is left half goes too", ready, []runChange{deleted, jobless(false), func(s *RunState) { s.Volume = VolumeState{Some: true} }}, []string{"DeleteVolume"}, "TearingDown", "", "", 0},
		{"then they go", ready, []runChange{deleted, jobless(false), volumeGone}, []string{"DeletePools"}, "TearingDown", "", "", 0},
		{"also those that are left half", PoolsState{Needed: true, Some: true}, []runChange{deleted, jobless(false), volumeGone}, []string{"DeletePools"}, "TearingDown", "", "", 0},
		{"and are waited for", PoolsState{Needed: true, Some: true, Exist: true, Deleting: true, Reason: "PoolInUse", Message: "by a pod"}, []runChange{deleted, jobless(false), volumeGone}, nil, "TearingDown", "", "PoolInUse: by a pod", 0},
		{"then the object goes", PoolsState{Needed: true}, []runChange{deleted, jobless(false), volumeGone}, []string{"RemoveFinalizer"}, "TearingDown", "", "", 0},
	} {
		onPools := func(s *RunState) { s.Pools = test.pools }
		t.Run(test.name, runCase{changes: append([]runChange{onPools}, test.changes...), actions: test.actions, reason: test.reason,
			ending: test.ending, says: test.says, wake: test.wake}.check)
	}
}

// TestOperatePhase: a PoolOperation plays the Job and the pod of its phase.
func TestOperatePhase(t *testing.T) {
	begun := func(s *RunState) { s.Phases[0].Pod = PodState{Exists: true, Started: after(-time.Minute)} }
	for name, test := range map[string]struct {
		change         runChange
		actions        []string
		reason, ending string
		says           string
		wake           time.Duration
	}{
		"waits for its turn":      {func(*RunState) {}, nil, "PhaseRunning", "", "Queued: behind another", 9 * time.Minute},
		"is at work":              {begun, nil, "PhaseRunning", "", "Queued: behind another", 59 * time.Minute},
		"never begins":            {func(s *RunState) { s.Now = noon.Add(time.Hour) }, nil, "PodNotStarted", "final", "the operation of phase fill did not start within 10m0s: Queued", 0},
		"is deleted":              {func(s *RunState) { s.Phases[0].Job.Deleting = true }, nil, "JobLost", "retry", "PoolOperation sb-", 0},
		"is gone":                 {func(s *RunState) { s.Phases[0] = PhaseState{} }, nil, "JobLost", "retry", "PoolOperation sb-", 0},
		"takes too long":          {func(s *RunState) { begun(s); s.Now = noon.Add(2 * time.Hour) }, nil, "PhaseDeadlineExceeded", "retry", "", 0},
		"has ended":               {func(s *RunState) { begun(s); received(s) }, []string{"StoreResult 0"}, "PhaseRunning", "", "", 0},
		"is not there, first one": {func(s *RunState) { s.Phases[0], s.Run.Status.Phases = PhaseState{}, nil }, []string{"StartPhase 0"}, "PhaseRunning", "", "", 0},
	} {
		operating := func(s *RunState) {
			s.Pools = PoolsState{Needed: true, Exist: true, Some: true, Ready: true}
			s.Run.Spec.Phases[0].Fill, s.Run.Spec.Phases[0].Operate = nil, &v1alpha1.OperatePhase{}
			s.Phases[0] = PhaseState{Operation: true, Job: JobState{Exists: true, UID: "job-0", Created: noon.Add(-time.Minute), Message: "Queued: behind another"}}
		}
		t.Run(name, runCase{changes: []runChange{operating, test.change}, actions: test.actions, reason: test.reason,
			ending: test.ending, says: test.says, wake: test.wake}.check)
	}
}

// TestOperationsRestAsNoPod: a pod that is left without its Job is not kept for the sake of an operation that has ended.
func TestOperationsRestAsNoPod(t *testing.T) {
	state := underwayRun()
	state.Phases[0] = PhaseState{Operation: true, Job: JobState{Exists: true, Succeeded: true}, Pod: PodState{Ended: after(-time.Minute)}}
	if state.Pods = 1; !restless(state) {
		t.Error("a pod is left")
	}
	if state.Pods = 0; restless(state) {
		t.Error("nobody is left")
	}
}

func TestWhatIsNotDoneYet(t *testing.T) {
	phases := []v1alpha1.Phase{testPhase("fill")}
	for name, test := range map[string]struct {
		change func(*v1alpha1.ZFSTarget, *[]v1alpha1.Phase)
		says   string
	}{
		"plain": {func(*v1alpha1.ZFSTarget, *[]v1alpha1.Phase) {}, ""},
		"the agent's": {func(z *v1alpha1.ZFSTarget, _ *[]v1alpha1.Phase) {
			z.Dataset = &v1alpha1.DatasetTemplate{Provisioner: "Local"}
		}, ""},
		"several nodes": {func(z *v1alpha1.ZFSTarget, _ *[]v1alpha1.Phase) { z.Nodes.Count = 2 }, ""},
		"reset":         {func(z *v1alpha1.ZFSTarget, _ *[]v1alpha1.Phase) { z.Reset = "None" }, ""},
		"parameters": {func(z *v1alpha1.ZFSTarget, _ *[]v1alpha1.Phase) {
			z.ModuleParameters = v1alpha1.ModuleParameters{"zfs_x": "1"}
		}, ""},
		"the driver's": {func(z *v1alpha1.ZFSTarget, _ *[]v1alpha1.Phase) {
			z.Dataset = &v1alpha1.DatasetTemplate{Provisioner: "OpenEBS"}
		}, ""},
		"operate": {func(_ *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) { (*p)[0].Operate = &v1alpha1.OperatePhase{} }, ""},
		"beside": {func(_ *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			(*p)[0].Measure = &v1alpha1.MeasurePhase{Operate: &v1alpha1.PoolAction{}}
		}, ""},
		"no such volume": {func(_ *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) { (*p)[0].Volume = "log" }, `volume "log"`},
		"a further one": {func(z *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			z.Volumes, (*p)[0].Volume = []v1alpha1.AdditionalVolume{{Name: "log"}}, "log"
		}, ""},
	} {
		target, own := &v1alpha1.ZFSTarget{Nodes: v1alpha1.NodeChoice{Count: 1}, Reset: v1alpha1.ResetPool}, slices.Clone(phases)
		test.change(target, &own)
		err := checkTarget(&Slot{Variant: "v", Target: v1alpha1.Target{ZFS: target}, Phases: own})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want ...%s...", name, err, test.says)
		}
	}
}

func TestTargetIsResolved(t *testing.T) {
	pool := func(disk v1alpha1.DevicePath) v1alpha1.PoolTemplate {
		return v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{disk}}}}
	}
	target := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Pool: pool("/dev/a"), Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Pool: pool("/dev/l")}},
		PerNode: []v1alpha1.NodePool{{NodeName: "n2", Pool: pool("/dev/b")}}}}
	for node, disk := range map[string]v1alpha1.DevicePath{"n1": "/dev/a", "n2": "/dev/b"} {
		got := ResolveTarget(target, node, "", ProvisionerLocal).ZFS
		if got.Pool.Vdevs[0].Devices[0] != disk || got.PerNode != nil || got.Dataset.Provisioner != ProvisionerLocal || got.Volumes[0].Dataset.Type != "Filesystem" {
			t.Errorf("on node %s: %+v", node, got)
		}
	}
	if target.ZFS.Dataset != nil || len(target.ZFS.PerNode) != 1 {
		t.Error("the spec itself was changed")
	}
	if class := ResolveTarget(v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}}, "n1", "fast", "").StorageClass.Name; class != "fast" {
		t.Errorf("class %q", class)
	}
}

// TestRunPoolNames: they are unique, and names of zpools.
func TestRunPoolNames(t *testing.T) {
	run := underwayRun().Run
	run.UID = "u1"
	data, log := RunPoolName(run, VolumeData), RunPoolName(run, "log")
	run.UID = "u2"
	if other := RunPoolName(run, VolumeData); data == log || data == other || !strings.HasPrefix(data, "sb-") || len(RunPoolName(run, strings.Repeat("x", 20))) > 40 {
		t.Error(data, log, other)
	}
	for _, name := range []string{data, log, keptPoolName("u1", "e", "v", "n", "log-2")} {
		// Pool, PersistentVolume and StorageClass, as policies know them: "sb-", 64 bits, the volume.
		if !runClass.MatchString(name) || len(strings.SplitN(name, "-", 3)[1]) != 16 {
			t.Errorf("%s does not carry 64 bits of hash", name)
		}
	}
	if tooShort := "sb-1a2b3c4d-data"; runClass.MatchString(tooShort) {
		t.Errorf("%s is taken for the class of a run", tooShort)
	}
}

// TestRunVolumeInResults: what is set on the dataset hides what it would inherit, whatever comes first.
func TestRunVolumeInResults(t *testing.T) {
	property := func(dataset, name, value string) v1alpha1.EffectiveProperty {
		return v1alpha1.EffectiveProperty{Dataset: dataset, Name: name, Value: value}
	}
	properties := []v1alpha1.EffectiveProperty{property("sb-1/volume", "recordsize", "8192"), property("", "ashift", "12"), property("sb-1", "recordsize", "131072"), property("sb-1", "atime", "off")}
	want := map[string]string{"recordsize": "8192", "pool.ashift": "12", "atime": "off"}
	for range 2 {
		if got := runVolume(v1alpha1.RunVolumeStatus{Name: "data", Pool: "sb-1", Properties: properties}); !maps.Equal(got.Properties, want) || got.Name != "data" {
			t.Errorf("got %+v", got)
		}
		slices.Reverse(properties)
	}
}
