package operations

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/operate"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/zfs"
)

var operationStart = time.Unix(2000, 0).UTC()

func wantedOperation(action v1alpha1.PoolAction) *v1alpha1.PoolOperation {
	return &v1alpha1.PoolOperation{
		ObjectMeta: metav1.ObjectMeta{Name: "op", UID: "uid-op", Generation: 1, CreationTimestamp: metav1.NewTime(operationStart)},
		Spec:       v1alpha1.PoolOperationSpec{NodeName: "node-a", Pool: "bench0", Action: action},
	}
}

// operationState is a node whose pool is ready, and an operation that has not begun.
func operationState(action v1alpha1.PoolAction) State {
	pool := wantedPool()
	kstatus.SetReady(&pool.Status.Conditions, pool.Generation, v1alpha1.ReasonPoolReady, "ready")
	live := livePool()
	live.Name, live.GUID = "bench0", "700"
	return State{Operation: wantedOperation(action), Now: operationStart, Agent: "life-1",
		Policy: pools.DevicePolicy{{Pattern: "/dev/disk/by-id/*"}}, Pool: pool,
		Live:  &Pool{PoolSummary: live.PoolSummary, LoadGUID: "9", Status: live.Status},
		Disks: map[string]pools.Disk{diskA: freeDisk(diskA), diskB: freeDisk(diskB), diskC: freeDisk(diskC), diskD: freeDisk(diskD)}}
}

// begun is operationState a minute after the operation has started.
func begun(action v1alpha1.PoolAction, detail string) State {
	state := operationState(action)
	state.Operation.Status.StartedAt = &metav1.Time{Time: operationStart}
	state.Operation.Status.Handle = strings.TrimSpace("700 " + detail)
	state.Operation.Status.Attempts = state.attempts()
	state.Operation.Finalizers = []string{v1alpha1.FinalizerTeardown}
	state.Now = operationStart.Add(time.Minute)
	return state
}

// decided is a decision in short form.
type decided struct {
	Actions, Outcome, Reason, Message string
}

func (d decided) diff(t *testing.T, decision Decision) {
	t.Helper()
	var kinds []string
	for _, action := range decision.Actions {
		kinds = append(kinds, string(action.Kind))
	}
	got := decided{strings.Join(kinds, " "), decision.Outcome, decision.Reason, d.Message}
	if diff := cmp.Diff(d, got); diff != "" || !strings.Contains(decision.Message, d.Message) {
		t.Errorf("(-want +got)\n%smessage %q", diff, decision.Message)
	}
	if decision.Outcome == "" && !decision.Settled && decision.Recheck <= 0 {
		t.Errorf("no recheck: %+v", decision)
	}
}

var (
	scrubAction   = v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	trimAction    = v1alpha1.PoolAction{Trim: &v1alpha1.TrimAction{}}
	replaceAction = v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: diskA, With: diskD}}
	removeAction  = v1alpha1.PoolAction{RemoveVdev: &v1alpha1.RemoveVdevAction{Device: diskA}}
	addAction     = v1alpha1.PoolAction{AddVdev: &v1alpha1.AddVdevAction{Type: "mirror", Devices: []v1alpha1.DiskRef{diskC, diskD}}}
	offlineAction = v1alpha1.PoolAction{OfflineDevice: &v1alpha1.OfflineDeviceAction{Device: diskA,
		Duration: &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Hour}}}}
	exportAction  = v1alpha1.PoolAction{ExportImport: &v1alpha1.ExportImportAction{}}
	observeAction = v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{}}
	copyAction    = v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "a", To: "b"}}
	overAction    = v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "a", To: "b", Overwrite: true}}
	setAction     = v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_txg_timeout", Value: "9"}}
	mapAction     = v1alpha1.PoolAction{MetaslabMap: &v1alpha1.MetaslabMapAction{}}
	txgGrant      = ParameterAllowlist{{Name: "zfs_txg_timeout", Values: []ParameterValues{{Min: 1, Max: 60}}}}
	destroyAction = v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "data"}}
	forgetAction  = v1alpha1.PoolAction{DestroySnapshot: &v1alpha1.DestroySnapshotAction{Dataset: "data", Name: "s"}}
)

func scan(function string, state zfs.ProgressState, start, end time.Duration) *zfs.Progress {
	at := func(offset time.Duration) time.Time {
		if offset == 0 {
			return time.Time{}
		}
		return operationStart.Add(offset)
	}
	return &zfs.Progress{Function: function, State: state, Start: at(start), End: at(end), DoneBytes: 50, TotalBytes: 100}
}

func TestOperationsBegin(t *testing.T) {
	other := func(action v1alpha1.PoolAction, change func(*v1alpha1.PoolOperation)) func(*State) {
		return func(s *State) {
			another := wantedOperation(action)
			another.Name, another.UID = "other", "uid-0"
			change(another)
			s.Others = append(s.Others, *another, *s.Operation)
		}
	}
	same := func(*v1alpha1.PoolOperation) {}
	begins := decided{"AddFinalizer", "", v1alpha1.ReasonOperationRunning, "begins"}
	for name, entry := range map[string]struct {
		action v1alpha1.PoolAction
		change func(*State)
		want   decided
	}{
		"at once":            {scrubAction, func(*State) {}, begins},
		"of a newer release": {v1alpha1.PoolAction{}, func(*State) {}, decided{"", "", v1alpha1.ReasonNotSupported, "upgrade the agent"}},
		"no pool": {scrubAction, func(s *State) {
			s.Pool, s.Live = nil, nil
		}, decided{"", "", v1alpha1.ReasonPoolNotReady, "it does not exist"}},
		"pool being deleted": {scrubAction, func(s *State) { s.Pool.DeletionTimestamp = &metav1.Time{Time: operationStart} },
			decided{"", "", v1alpha1.ReasonPoolNotReady, "being deleted"}},
		"pool not imported": {scrubAction, func(s *State) { s.Live = nil }, decided{"", "", v1alpha1.ReasonPoolNotReady, "not imported"}},
		"pool read-only": {replaceAction, func(s *State) { s.Live.ReadOnly = true; unhealthy(s) },
			decided{"", "", v1alpha1.ReasonPoolNotReady, "imported read-only"}},
		"drifted, to replace":    {replaceAction, notReadyFor(v1alpha1.ReasonPoolDrifted), begins},
		"other disks, to trim":   {trimAction, notReadyFor(v1alpha1.ReasonPoolDisksDiffer), begins},
		"drifted, to trim":       {trimAction, notReadyFor(v1alpha1.ReasonPoolDrifted), decided{"", "", v1alpha1.ReasonPoolNotReady, "Drifted"}},
		"rebuilding, to observe": {observeAction, notReadyFor(v1alpha1.ReasonPoolRebuilding), begins},
		"rebuilding, to snapshot": {trimAction, notReadyFor(v1alpha1.ReasonPoolRebuilding), decided{"", "", v1alpha1.ReasonPoolNotReady,
			"Rebuilding"}},
		"unhealthy, to scrub":   {scrubAction, unhealthy, begins},
		"unhealthy, to replace": {replaceAction, unhealthy, begins},
		"unhealthy, to observe": {observeAction, unhealthy, begins},
		"unhealthy, to trim":    {trimAction, unhealthy, decided{"", "", v1alpha1.ReasonPoolNotReady, "Unhealthy"}},
		"cancelled": {scrubAction, func(s *State) {
			s.Operation.Spec.Cancel = true
		}, decided{"", v1alpha1.OutcomeCancelled, v1alpha1.ReasonCancelled, "before it started"}},
		"deleted": {scrubAction, func(s *State) { s.Operation.DeletionTimestamp = &metav1.Time{Time: operationStart} },
			decided{"RemoveFinalizer", "", v1alpha1.ReasonCancelled, ""}},
		"too late": {scrubAction, func(s *State) { s.Live = nil; s.Now = operationStart.Add(6 * time.Hour) },
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDeadlineExceeded, "did not start"}},
		"another of the same moment": {scrubAction, other(trimAction, same), decided{"", "", v1alpha1.ReasonQueued, "PoolOperation other"}},
		"another on another pool":    {scrubAction, other(trimAction, func(o *v1alpha1.PoolOperation) { o.Spec.Pool = "bench1" }), begins},
		"another that has ended": {scrubAction,
			other(trimAction, func(o *v1alpha1.PoolOperation) { o.Status.Outcome = v1alpha1.OutcomeFailed }), begins},
		"another that goes": {scrubAction,
			other(trimAction, func(o *v1alpha1.PoolOperation) { o.DeletionTimestamp = &metav1.Time{Time: operationStart} }), begins},
		"a younger one": {scrubAction,
			other(trimAction, func(o *v1alpha1.PoolOperation) { o.CreationTimestamp = metav1.NewTime(operationStart.Add(1)) }), begins},
		"a younger one that has begun": {scrubAction, other(trimAction, younger), decided{"", "", v1alpha1.ReasonQueued, "which is older"}},
		"an observation":               {scrubAction, other(observeAction, younger), begins},
		"a replication to this pool": {scrubAction, other(v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{ToPool: "bench0"}},
			func(o *v1alpha1.PoolOperation) { o.Spec.Pool = "bench1" }),
			decided{"", "", v1alpha1.ReasonQueued, "which is older"}},
		"the same parameter": {setAction, func(s *State) {
			s.Parameter = ParameterState{Grants: txgGrant, Found: true}
			other(setAction, func(o *v1alpha1.PoolOperation) { o.Spec.Pool = "bench1" })(s)
		}, decided{"", "", v1alpha1.ReasonQueued, "which is older"}},
		"a scrub that runs": {scrubAction, func(s *State) { s.Live.Status.Scan = scan("scrub", zfs.Running, -time.Hour, 0) },
			decided{"", "", v1alpha1.ReasonScanRunning, "already"}},
		"a scrub that just ended": {scrubAction, func(s *State) {
			s.Live.Status.Scan = scan("scrub", zfs.Finished, -time.Hour, -time.Second)
		}, decided{"", "", v1alpha1.ReasonScanRunning, "just finished"}},
		"a scrub of before": {scrubAction, func(s *State) {
			s.Live.Status.Scan = scan("scrub", zfs.Finished, -time.Hour, -time.Minute)
		}, begins},
		"users of the pool": {exportAction, func(s *State) { s.Users = []string{"kubelet"} },
			decided{"", "", v1alpha1.ReasonPoolInUse, "kubelet"}},
		"disk of the pool itself": {v1alpha1.PoolAction{AddVdev: &v1alpha1.AddVdevAction{Devices: []v1alpha1.DiskRef{diskA}}}, func(*State) {},
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDeviceInPool, "nothing was done"}},
		"disk under another name": {replaceAction, alias, decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDeviceInPool, diskD}},
		"disk that is not granted": {addAction, func(s *State) {
			s.Policy = nil
		}, decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonPoolDeviceDenied, "allowlist"}},
		"disk that another claims": {addAction, rival, decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonPoolConflict, "rival"}},
		"disk that is refused":     {addAction, refusedDisk, decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonPoolDeviceRefused, "mounted"}},
		"disk to trim not there": {v1alpha1.PoolAction{Trim: &v1alpha1.TrimAction{Device: diskD}}, func(*State) {},
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDeviceNotInPool, diskD}},
		"offline, a disk of a mirror": {offlineAction, func(*State) {}, begins},
		"offline, of another pool": {offlineAction, func(s *State) { s.Live.Status.Vdevs[0].Children[0] = leaf(diskC) },
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDeviceNotInPool, "not a disk of pool bench0"}},
		"offline, of a stripe": {offlineAction, func(s *State) { s.Live.Status.Vdevs = s.Live.Status.Vdevs[0].Children },
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonNotSupported, "name a disk of a mirror"}},
		"offline, the last good one": {offlineAction, func(s *State) { s.Live.Status.Vdevs[0].Children[1].State = zfs.StateFaulted },
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonNotSupported, "would lose data"}},
		"offline, others have errors": {offlineAction, func(s *State) { s.Live.Status.Vdevs[0].Children[1].ChecksumErrors = 1 },
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonNotSupported, "the only good copy"}},
		"offline, unhealthy": {offlineAction, unhealthy, decided{"", "", v1alpha1.ReasonPoolNotReady, "Unhealthy"}},
		"offline, during a scrub": {offlineAction, func(s *State) { s.Live.Status.Scan = scan("scrub", zfs.Running, -time.Hour, 0) },
			decided{"", "", v1alpha1.ReasonScanRunning, "already"}},
		"copy of what is no folder": {copyAction, copied("volume", true), decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonNotSupported,
			"replicate"}},
		"copy onto files": {copyAction, copied("filesystem", false),
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonTargetNotEmpty, "empty"}},
		"copy":              {copyAction, copied("filesystem", true), begins},
		"copy to a new one": {copyAction, func(s *State) { copied("filesystem", true)(s); s.Target = Object{Name: "bench0/b"} }, begins},
		"copy over files":   {overAction, copied("filesystem", false), begins},
		"copy with properties": {v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "a", To: "b", Properties: v1alpha1.LiveProperties{"sync": "always"}}},
			copied("filesystem", true), decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonDatasetExists, "use setProperty"}},
		"parameter within its bounds": {setAction, func(s *State) { s.Parameter = ParameterState{Grants: txgGrant, Found: true} }, begins},
		"parameter beyond its bounds": {v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_txg_timeout",
			Value: "61"}},
			func(s *State) { s.Parameter = ParameterState{Grants: txgGrant, Found: true} },
			decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonParameterNotAllowed, "zfs_txg_timeout only to 1..60, in plain digits, not to 61"}},
		"parameter not on the list": {setAction, func(s *State) {
			s.Parameter.Found = true
		}, decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonParameterNotAllowed, "--allow-parameter=zfs_txg_timeout=9"}},
	} {
		t.Run(name, func(t *testing.T) {
			state := operationState(entry.action)
			entry.change(&state)
			decision := Plan(state)
			entry.want.diff(t, decision)
			if decision.Begin != (entry.want.Message == "begins") {
				t.Errorf("begin is %v", decision.Begin)
			}
		})
	}
}

func unhealthy(s *State) {
	kstatus.SetStalled(&s.Pool.Status.Conditions, s.Pool.Generation, v1alpha1.ReasonPoolUnhealthy, "a disk is lost")
}

func notReadyFor(reason string) func(*State) {
	return func(s *State) {
		kstatus.SetStalled(&s.Pool.Status.Conditions, s.Pool.Generation, reason, "so it is")
	}
}

func younger(o *v1alpha1.PoolOperation) {
	o.CreationTimestamp = metav1.NewTime(operationStart.Add(time.Hour))
	o.Status.StartedAt = &metav1.Time{Time: operationStart}
}

func alias(s *State) {
	disk := s.Disks[diskD]
	disk.Number = s.Disks[diskB].Number
	s.Disks[diskD] = disk
}

func rival(s *State) {
	other := wantedPool()
	other.Name, other.UID, other.Spec.PoolName = "rival", "uid-0", "rival"
	other.Spec.Vdevs = []v1alpha1.Vdev{mirrorOf(diskC)}
	s.Rivals = []v1alpha1.BenchmarkPool{*other}
}

func refusedDisk(s *State) {
	disk := s.Disks[diskC]
	disk.Refusal = &host.RefusedError{Path: diskC, Findings: []host.Finding{{Reason: host.Mounted, Detail: "it is mounted"}}}
	s.Disks[diskC] = disk
}

func copied(kind string, empty bool) func(*State) {
	return func(s *State) {
		s.Source = Object{Name: "bench0/a", Exists: true, Dataset: zfs.Dataset{Type: kind}}
		s.Target = Object{Name: "bench0/b", Exists: true, Dataset: zfs.Dataset{Type: "filesystem", GUID: "5"}, Empty: empty}
	}
}

// TestWhatArrivedIsNamed: what a replication has received completely before its end stays, and the message says so.
func TestWhatArrivedIsNamed(t *testing.T) {
	for mark, named := range map[string]bool{"uid-op": true, "kubelet": false} {
		state := begun(v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "a", ToPool: "bench1", To: "copy"}}, "701")
		state.Operation.Spec.Cancel = true
		state.Target = Object{Name: "bench1/copy", Exists: true, Mark: mark}
		decision := Plan(state)
		if decision.Outcome != v1alpha1.OutcomeCancelled || strings.Contains(decision.Message, "stays in bench1/copy") != named {
			t.Errorf("mark %s: %s: %s", mark, decision.Outcome, decision.Message)
		}
	}
}

func TestOperationsGoOn(t *testing.T) {
	replacing := func(s *State) {
		leaves := &s.Live.Status.Vdevs[0].Children
		(*leaves)[0] = zfs.VdevStatus{Name: "replacing-0", State: zfs.StateOnline, Children: []zfs.VdevStatus{leaf(diskA), leaf(diskD)}}
	}
	failedJob := func(err error) func(*State) {
		return func(s *State) { s.Job = &Job{Err: err, EndedAt: s.Now} }
	}
	set := func(record ParameterRecord) func(*State) {
		return func(s *State) {
			s.Parameter = ParameterState{Grants: txgGrant, Found: true, Record: &record}
			if record.SameBoot && !record.Restored {
				s.Leftovers = []string{"zfs_txg_timeout was 5 before"}
			}
		}
	}
	away := func(job *Job) func(*State) {
		return func(s *State) {
			s.Live.Status.Vdevs[0].Children[0].State, s.Job = zfs.StateOffline, job
			if job == nil {
				s.Leftovers = []string{diskA + " is offline"}
			}
		}
	}
	rebuilt := func(state zfs.ProgressState, job *Job) func(*State) {
		return func(s *State) { s.Live.Status.Scan, s.Job = scan("resilver", state, time.Second, 0), job }
	}
	const runs, takes, isRunning = "AddFinalizer Run", "AddFinalizer NoteBegun RecordDisks Run", v1alpha1.ReasonOperationRunning
	const runsOnce = "AddFinalizer NoteBegun Run"
	for name, entry := range map[string]struct {
		action v1alpha1.PoolAction
		detail string
		change func(*State)
		want   decided
		// cancelled, overdue and deleted are the results if the operation has to end early for that reason.
		cancelled, overdue, deleted string
	}{
		"scrub not begun": {scrubAction, "", func(s *State) { s.Live.Status.Scan = scan("scrub", zfs.Finished, -time.Hour, -time.Minute) },
			decided{runs, "", isRunning, "scrubbing"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"scrub begun a coarse moment before": {scrubAction, "", func(s *State) {
			s.Live.Status.Scan = scan("scrub", zfs.Running, -time.Second, 0)
		},
			decided{"", "", isRunning, "scrubbing"}, "Stop", "Stop", "Stop"},
		"scrub paused": {scrubAction, "", func(s *State) { s.Live.Status.Scan = scan("scrub", zfs.Paused, time.Second, 0) },
			decided{"", "", isRunning, "paused"}, "Stop", "Stop", "Stop"},
		"scrub ended, in text": {scrubAction, "", func(s *State) { s.Live.Status.Scan = scan("scrub", zfs.Finished, 0, time.Second) },
			decided{"", "Succeeded", v1alpha1.ReasonSucceeded, "no errors"}, "Succeeded", "Succeeded", "RemoveFinalizer"},
		"of a newer release": {v1alpha1.PoolAction{}, "", func(*State) {},
			decided{"", "Failed", v1alpha1.ReasonNotSupported, "does not know it"}, "Failed", "Failed", "RemoveFinalizer"},
		"scrub stopped elsewhere": {scrubAction, "", func(s *State) {
			s.Live.Status.Scan = scan("scrub", zfs.Stopped, time.Second, 2*time.Second)
		},
			decided{"", "Failed", v1alpha1.ReasonStoppedElsewhere, "outside of this operation"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"scrub overtaken by a resilver": {scrubAction, "", func(s *State) { s.Live.Status.Scan = scan("resilver", zfs.Running, time.Second, 0) },
			decided{"", "", v1alpha1.ReasonScanRunning, "the scrub follows"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"pool not imported": {scrubAction, "", func(s *State) {
			s.Live = nil
		}, decided{"", "", v1alpha1.ReasonPoolNotReady, "not imported"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"another pool": {scrubAction, "", func(s *State) {
			s.Live.GUID = "701"
		}, decided{"", "Failed", v1alpha1.ReasonPoolLost, "guid 700"}, "Failed", "Failed", "RemoveFinalizer"},
		"pool deleted": {scrubAction, "", func(s *State) {
			s.Pool, s.Live = nil, nil
		}, decided{"", "Failed", v1alpha1.ReasonPoolLost, "gone"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"trim of disks that cannot": {trimAction, "", func(*State) {}, decided{runs, "", isRunning, "trimming"}, "Cancelled", "Failed",
			"RemoveFinalizer"},
		"trim of an earlier time": {trimAction, "", trimmed(zfs.Finished, -time.Hour), decided{runs, "", isRunning, "trimming"}, "Cancelled",
			"Failed", "RemoveFinalizer"},
		"trim at work": {trimAction, "", trimmed(zfs.Running, time.Second), decided{"", "", isRunning, "1 of 1"}, "Stop", "Stop",
			"Stop"},
		"trim done": {trimAction, "", trimmed(zfs.Finished, time.Second), decided{"", "Succeeded", v1alpha1.ReasonSucceeded,
			"1 disk of"}, "Succeeded", "Succeeded", "RemoveFinalizer"},
		"replace not begun": {replaceAction, diskA + "-part1", func(*State) {}, decided{takes, "", isRunning, "replacing"}, "Cancelled",
			"Failed", "RemoveFinalizer"},
		"replace, refused meanwhile": {replaceAction, diskA + "-part1", func(s *State) { s.Policy = nil },
			decided{"", "Failed", v1alpha1.ReasonPoolDeviceDenied, "allowlist"}, "Failed", "Failed", "RemoveFinalizer"},
		"replace at work": {replaceAction, diskA + "-part1", replacing, decided{"", "", isRunning, "rebuilding"}, "runs to its end", "may continue",
			"RemoveFinalizer"},
		"replace done": {replaceAction, diskA + "-part1", func(s *State) { s.Live.Status.Vdevs[0].Children[0] = leaf(diskD) },
			decided{"", "Succeeded", v1alpha1.ReasonSucceeded, "has replaced"}, "Succeeded", "Succeeded", "RemoveFinalizer"},
		"replace, both gone": {replaceAction, diskA + "-part1", func(s *State) {
			s.Live.Status.Vdevs[0].Children = []zfs.VdevStatus{leaf(diskB)}
		},
			decided{"", "Failed", v1alpha1.ReasonDeviceNotInPool, "neither"}, "Failed", "Failed", "RemoveFinalizer"},
		"removal not begun": {removeAction, "mirror-0", func(*State) {}, decided{runsOnce, "", isRunning, "removing"}, "Cancelled", "Failed",
			"RemoveFinalizer"},
		"removal at work": {removeAction, "mirror-0", func(s *State) { s.Live.Status.Removal = scan("removal", zfs.Running, time.Second, 0) },
			decided{"", "", isRunning, "removing"}, "Stop", "Stop", "Stop"},
		"removal stopped": {removeAction, "mirror-0", func(s *State) {
			s.Live.Status.Removal = scan("removal", zfs.Stopped, time.Second, 2*time.Second)
		},
			decided{"", "Failed", v1alpha1.ReasonStoppedElsewhere, "outside of this operation"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"log removed at once": {removeAction, "mirror-7", func(*State) {}, decided{"", "Succeeded", v1alpha1.ReasonSucceeded, "was removed from pool"},
			"Succeeded", "Succeeded", "RemoveFinalizer"},
		"vdev not added": {addAction, "", func(*State) {}, decided{takes, "", isRunning, "adding"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"vdev added": {addAction, "", func(s *State) {
			s.Live.Status.Vdevs[0].Children = []zfs.VdevStatus{leaf(diskC), leaf(diskD)}
		},
			decided{"", "Succeeded", v1alpha1.ReasonSucceeded, "drift"}, "Succeeded", "Succeeded", "RemoveFinalizer"},
		"offline not begun": {offlineAction, diskA + "-part1", func(*State) {}, decided{runs, "", isRunning, "offlineDevice"}, "Cancelled", "Failed",
			"RemoveFinalizer"},
		"offline now": {offlineAction, diskA + "-part1", away(&Job{Running: true}), decided{"", "", isRunning, ""}, "Stop", "Stop", "Stop"},
		"offline, then rebuilt": {offlineAction, diskA + "-part1", rebuilt(zfs.Running, &Job{Running: true}), decided{"", "", isRunning, ""},
			"runs to its end", "may continue", "RemoveFinalizer"},
		"offline, back": {offlineAction, diskA + "-part1", rebuilt(zfs.Finished, &Job{}), decided{"", "Succeeded", v1alpha1.ReasonSucceeded, ""},
			"Succeeded", "Succeeded", "RemoveFinalizer"},
		"offline, stopped": {offlineAction, diskA + "-part1", rebuilt(zfs.Finished, &Job{Stopped: true}),
			decided{"", "Succeeded", v1alpha1.ReasonSucceeded, ""}, "Succeeded", "Failed", "RemoveFinalizer"},
		"offline, the pool is gone": {offlineAction, diskA + "-part1", func(s *State) { s.Pool, s.Live = nil, nil },
			decided{"", "Failed", v1alpha1.ReasonPoolLost, diskA + " of pool bench0 may be offline"}, "may be offline", "may be offline",
			"RemoveFinalizer"},
		"offline, the agent has died": {offlineAction, diskA + "-part1", away(nil), decided{"CleanUp", "", v1alpha1.ReasonCleaningUp, "is offline"},
			"CleanUp", "CleanUp", "CleanUp"},
		"offline, the agent has died, back": {offlineAction, diskA + "-part1", rebuilt(zfs.Running, nil),
			decided{"", "Failed", v1alpha1.ReasonAgentDied, "its times are unknown"}, "Failed", "Failed", "RemoveFinalizer"},
		"export not begun": {exportAction, "9", func(*State) {}, decided{runs, "", isRunning, "exporting"}, "Cancelled", "Failed",
			"RemoveFinalizer"},
		"exported": {exportAction, "9", func(s *State) { s.Live = nil }, decided{"", "", isRunning, "import follows"},
			"runs to its end", "may continue", "RemoveFinalizer"},
		"imported again": {exportAction, "8", func(*State) {}, decided{"", "Succeeded", v1alpha1.ReasonSucceeded, "caches are empty"},
			"Succeeded", "Succeeded", "RemoveFinalizer"},
		"used meanwhile": {exportAction, "9", func(s *State) {
			s.Users = []string{"kubelet"}
		}, decided{"", "", v1alpha1.ReasonPoolInUse, "kubelet"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"dataset there": {destroyAction, "5", dataset("5", 0), decided{runsOnce, "", isRunning, "destroying"}, "Cancelled", "Failed",
			"RemoveFinalizer"},
		"dataset freeing": {destroyAction, "5", dataset("6", 30), decided{"", "", isRunning, "30 bytes"}, "runs to its end", "may continue",
			"RemoveFinalizer"},
		"dataset gone, its command not": {destroyAction, "5", func(s *State) {
			dataset("6", 0)(s)
			s.Job = &Job{Running: true}
		}, decided{"", "", isRunning, "destroying"}, "runs to its end", "may continue", "RemoveFinalizer"},
		"dataset freed": {destroyAction, "5", dataset("6", 0), decided{"", "Succeeded", v1alpha1.ReasonSucceeded, "free"}, "Succeeded",
			"Succeeded", "RemoveFinalizer"},
		"snapshot there": {forgetAction, "5", taken("5", 0), decided{runsOnce, "", isRunning, "destroying bench0/data@s"}, "Cancelled", "Failed",
			"RemoveFinalizer"},
		"snapshot freeing": {forgetAction, "5", taken("6", 30), decided{"", "", isRunning, "snapshot bench0/data@s is destroyed"},
			"runs to its end", "may continue", "RemoveFinalizer"},
		"snapshot freed": {forgetAction, "5", taken("6", 0), decided{"", "Succeeded", v1alpha1.ReasonSucceeded, "its space is free"}, "Succeeded",
			"Succeeded", "RemoveFinalizer"},
		"job not begun": {mapAction, "", func(*State) {}, decided{runs, "", isRunning, "metaslabMap"}, "Cancelled", "Failed",
			"RemoveFinalizer"},
		"job at work": {mapAction, "", func(s *State) { s.Job = &Job{Running: true} }, decided{"", "", isRunning, "is running"}, "Stop", "Stop",
			"Stop"},
		"job refused": {mapAction, "", failedJob(zfs.NotFound), decided{"", "Failed", v1alpha1.ReasonActionFailed, "not found"}, "Failed",
			"Failed", "RemoveFinalizer"},
		"job to try again": {mapAction, "", failedJob(zfs.Busy), decided{"", "", v1alpha1.ReasonActionFailed, "retried"}, "Cancelled",
			"Failed", "RemoveFinalizer"},
		"job again": {mapAction, "", func(s *State) {
			s.Job = &Job{Err: zfs.Busy, EndedAt: s.Now.Add(-operationSoon)}
		}, decided{runs, "", isRunning, "retrying after"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"half a receive left": {mapAction, "", func(s *State) {
			s.Job, s.Leftovers = &Job{Err: zfs.NoSpace}, []string{"half a receive"}
		}, decided{"CleanUp", "", v1alpha1.ReasonCleaningUp, "half a receive"}, "CleanUp", "CleanUp", "CleanUp"},
		"observed by this life": {observeAction, "life-1", func(s *State) { s.Job = &Job{Running: true} },
			decided{"", "", isRunning, "is running"}, "Stop", "Stop", "Stop"},
		"observed by another life": {observeAction, "life-0", func(*State) {},
			decided{"", "Failed", v1alpha1.ReasonAgentRestarted, "restarted"}, "Failed", "Failed", "RemoveFinalizer"},
		"observation disturbed": {observeAction, "life-1", failedJob(zfs.Busy),
			decided{"", "Failed", v1alpha1.ReasonObservationInterrupted, "incomplete"}, "Failed", "Failed", "RemoveFinalizer"},
		"observation stopped": {observeAction, "life-1", func(s *State) { s.Job = &Job{Stopped: true} },
			decided{"", "Succeeded", v1alpha1.ReasonSucceeded, ""}, "Succeeded", "Failed", "RemoveFinalizer"},
		"parameter not set": {setAction, "", func(*State) {}, decided{runs, "", isRunning, "setting"}, "Cancelled", "Failed", "RemoveFinalizer"},
		"parameter half set": {setAction, "", set(ParameterRecord{SameBoot: true, Earlier: "5"}),
			decided{runs, "", isRunning, "setting"}, "CleanUp", "CleanUp", "CleanUp"},
		"parameter set": {setAction, "", set(ParameterRecord{SameBoot: true, Applied: true, Earlier: "5"}),
			decided{"", "", isRunning, "instead of 5"}, "CleanUp", "CleanUp", "CleanUp"},
		"parameter restored": {setAction, "", set(ParameterRecord{SameBoot: true, Applied: true, Restored: true, Earlier: "5"}),
			decided{"", "Failed", v1alpha1.ReasonParameterInterrupted, "before the operation ended"}, "Succeeded", "Failed", "RemoveFinalizer"},
		"parameter of another boot": {setAction, "", set(ParameterRecord{Applied: true, Earlier: "5"}),
			decided{"", "Failed", v1alpha1.ReasonParameterInterrupted, "rebooted"}, "Failed", "Failed", "RemoveFinalizer"},
	} {
		t.Run(name, func(t *testing.T) {
			state := func() State {
				made := begun(entry.action, entry.detail)
				entry.change(&made)
				return made
			}
			entry.want.diff(t, Plan(state()))
			early := state()
			early.Operation.Spec.Cancel = true
			expectShort(t, "cancelled", Plan(early), entry.cancelled)
			late := state()
			late.Now = operationStart.Add(7 * time.Hour)
			if late.Job != nil {
				late.Job.EndedAt = late.Now
			}
			expectShort(t, "overdue", Plan(late), entry.overdue)
			gone := state()
			gone.Operation.DeletionTimestamp = &metav1.Time{Time: operationStart}
			expectShort(t, "deleted", Plan(gone), entry.deleted)
		})
	}
}

// expectShort compares with an action, an outcome or a part of the message.
func expectShort(t *testing.T, when string, decision Decision, want string) {
	t.Helper()
	if decision.Outcome == want || len(decision.Actions) > 0 && string(decision.Actions[len(decision.Actions)-1].Kind) == want ||
		strings.Contains(want, " ") && strings.Contains(decision.Message, want) {
		return
	}
	t.Errorf("%s: %+v, want %s", when, decision, want)
}

func trimmed(state zfs.ProgressState, moment time.Duration) func(*State) {
	return func(s *State) {
		s.Live.Status.Vdevs[0].Children[0].Trim = scan("trim", state, moment, 0)
		if state == zfs.Finished {
			s.Live.Status.Vdevs[0].Children[0].Trim = scan("trim", state, 0, moment)
		}
	}
}

func dataset(guid string, freeing int64) func(*State) {
	return func(s *State) {
		s.Source = Object{Name: "bench0/data", Exists: true, Dataset: zfs.Dataset{GUID: guid}}
		s.Live.FreeingBytes = freeing
		s.Operation.Status.Progress = &v1alpha1.OperationProgress{TotalBytes: 100}
	}
}

// taken is a snapshot of the dataset data.
func taken(guid string, freeing int64) func(*State) {
	return func(s *State) {
		dataset("7", freeing)(s)
		s.Snapshot = Object{Name: "bench0/data@s", Exists: true, Dataset: zfs.Dataset{GUID: guid}}
	}
}

// TestUnknownAmounts: an amount that OpenZFS before 2.3 does not print is left out. It is not 0 bytes.
func TestUnknownAmounts(t *testing.T) {
	scrub, removal := begun(scrubAction, ""), begun(removeAction, "mirror-7")
	for bytes, known := range map[int64]bool{0: false, 50: true} {
		ended := scan("scrub", zfs.Finished, 0, time.Second)
		ended.DoneBytes, ended.TotalBytes = bytes, bytes
		scrub.Live.Status.Scan, removal.Live.Status.Removal = ended, ended
		for name, decision := range map[string]Decision{"scannedBytes": Plan(scrub), "copiedBytes": Plan(removal)} {
			metrics := decision.Result.Metrics
			at := slices.IndexFunc(metrics, func(one v1alpha1.OperationMetric) bool { return one.Name == name })
			if decision.Outcome != v1alpha1.OutcomeSucceeded || (at >= 0) != known || known && metrics[at].Value != bytes {
				t.Errorf("%d bytes: %s: %+v", bytes, name, decision)
			}
		}
	}
}

// TestAnOutcomeIsTheEnd: a finished operation does nothing, whatever its kind and the state of the node.
func TestAnOutcomeIsTheEnd(t *testing.T) {
	for _, action := range []v1alpha1.PoolAction{scrubAction, trimAction, replaceAction, removeAction, addAction, offlineAction, exportAction, observeAction,
		copyAction, setAction, mapAction, destroyAction, forgetAction} {
		for _, outcome := range []string{v1alpha1.OutcomeSucceeded, v1alpha1.OutcomeFailed, v1alpha1.OutcomeCancelled} {
			state := begun(action, "")
			state.Operation.Status.Outcome = outcome
			state.Operation.Spec.Cancel = outcome == v1alpha1.OutcomeCancelled
			decision := Plan(state)
			if !decision.Settled || decision.Begin || decision.Outcome != "" || len(decision.Actions) != 1 ||
				decision.Actions[0].Kind != RemoveOperationFinalizer {
				t.Errorf("%s after %s: %+v", operate.Name(action), outcome, decision)
			}
			state.Operation.Finalizers = nil
			if decision := Plan(state); len(decision.Actions) > 0 {
				t.Errorf("%s after %s without finalizer: %+v", operate.Name(action), outcome, decision)
			}
		}
	}
}

func TestParameterEndsInTime(t *testing.T) {
	action := v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_txg_timeout", Value: "9",
		Duration: &v1alpha1.Duration{Duration: metav1.Duration{Duration: 2 * time.Minute}}}}
	state := begun(action, "")
	state.Parameter = ParameterState{Grants: txgGrant, Found: true, Record: &ParameterRecord{SameBoot: true, Applied: true, Earlier: "5"}}
	state.Leftovers = []string{"zfs_txg_timeout was 5 before"}
	if decision := Plan(state); decision.Recheck != operationSoon || len(decision.Actions) > 0 {
		t.Errorf("half-way: %+v", decision)
	}
	state.Now = operationStart.Add(2 * time.Minute)
	expectShort(t, "at its end", Plan(state), "CleanUp")
	state.Parameter.Record.Restored, state.Leftovers = true, nil
	expectShort(t, "restored", Plan(state), v1alpha1.OutcomeSucceeded)
	// A later turn does not change the outcome.
	state.Now = operationStart.Add(9 * time.Hour)
	expectShort(t, "seen late", Plan(state), v1alpha1.OutcomeSucceeded)
}

func TestPermanentErrors(t *testing.T) {
	for err, want := range map[error]bool{zfs.Exists: true, zfs.NoSpace: true, zfs.Invalid: true, zfs.Busy: false, zfs.Timeout: false,
		zfs.Suspended: false,
		zfs.Cancelled: false, zfs.InProgress: false, errors.New("x"): false, ErrPermanent: true} {
		if got := Permanent(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestACopyKnowsItsTarget: a copy continues only into the dataset that it started with or has created.
func TestACopyKnowsItsTarget(t *testing.T) {
	target := func(guid, mark string) Object {
		return Object{Name: "bench1/b", Exists: guid != "", Dataset: zfs.Dataset{GUID: guid}, Mark: mark}
	}
	elsewhere := wantedPool()
	elsewhere.Name = "bench1"
	for name, c := range map[string]struct {
		handle string
		pool   bool
		target Object
		says   string
	}{
		"as it began":      {"5", false, target("5", ""), ""},
		"another":          {"5", false, target("6", "uid-op"), "not the one"},
		"gone":             {"5", false, target("", ""), "not the one"},
		"to be made":       {"new", false, target("", ""), ""},
		"made":             {"new", false, target("6", "uid-op"), ""},
		"made by others":   {"new", false, target("6", "uid-0"), "created by others"},
		"elsewhere":        {"701 5", true, target("5", ""), ""},
		"elsewhere, made":  {"701 new", true, target("6", "uid-op"), ""},
		"on a newer pool":  {"702 5", true, target("5", ""), "another pool than at the start"},
		"elsewhere, other": {"701 5", true, target("6", ""), "not the one"},
	} {
		state := begun(copyAction, c.handle)
		state.Target = c.target
		if c.pool {
			state.ToPool, state.ToLive = elsewhere, &Pool{PoolSummary: zfs.PoolSummary{Name: "bench1", GUID: "701"}}
		}
		if got := state.OtherTarget(); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}
