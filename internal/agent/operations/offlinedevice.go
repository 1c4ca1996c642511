package operations

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/zfs"
)

// offlineDeviceKind always brings the disk back before it ends: a disk that is still offline counts as a leftover.
var offlineDeviceKind = traits{job: true, begin: beginOffline, stage: offlineStage}

func beginOffline(state State) (string, *obstacle) {
	device, status := string(state.Operation.Spec.Action.OfflineDevice.Device), state.Live.Status
	leaf, top, found := state.leaf(device)
	if !found {
		return "", refuses(v1alpha1.ReasonDeviceNotInPool, "%s is not a disk of pool %s", device, state.Live.Name)
	}
	direct := slices.ContainsFunc(top.Children, func(child zfs.VdevStatus) bool { return pools.Identity(child) == pools.Identity(leaf) })
	if !direct || !top.Bears(1) {
		return "", refuses(v1alpha1.ReasonNotSupported,
			"pool %s would lose data without %s: name a disk of a mirror, raidz or draid whose other disks are in order", state.Live.Name, device)
	}
	if doubts := pools.DoubtsWithout(status, leaf); len(doubts) > 0 {
		return "", refuses(v1alpha1.ReasonNotSupported,
			"%s may have the only good copy of some data of pool %s, which has %s: scrub the pool, see 'zpool status -v', and run 'zpool clear' "+
				"when all is well", device, state.Live.Name, strings.Join(doubts, ", "))
	}
	return pools.Identity(leaf), state.tooRecent(status.Scan)
}

// Offlined returns the current state of the disk that the operation takes offline.
func (s State) Offlined(status zfs.Status) (leaf zfs.VdevStatus, found bool) {
	leaves := status.Leaves()
	at := slices.IndexFunc(leaves, func(leaf zfs.VdevStatus) bool { return pools.Identity(leaf) == s.handleDetail() })
	if at < 0 {
		return zfs.VdevStatus{}, false
	}
	return leaves[at], true
}

// Offline reports whether the disk of the operation is offline now.
func (s State) Offline() bool {
	leaf, found := s.Offlined(s.Live.Status)
	return found && leaf.State == zfs.StateOffline
}

// Rebuild returns the resilver of the data that the disk has missed, or nil if ZFS has not begun one.
func (s State) Rebuild(status zfs.Status) *zfs.Progress {
	if scan := status.Scan; scan != nil && scan.Function == "resilver" && s.byUs(scan) {
		return scan
	}
	return nil
}

// TakenOffline returns the identity of the disk that a running operation may have taken offline, or "" if there is none.
func TakenOffline(operation *v1alpha1.PoolOperation) string {
	if operation.Spec.Action.OfflineDevice == nil || operation.Status.StartedAt == nil || operation.Status.Outcome != "" {
		return ""
	}
	return State{Operation: operation}.handleDetail()
}

// offlineStage never combines the work of two agent processes: a restarted agent does not know how long the disk was offline.
func offlineStage(state State) operationStage {
	stage := jobStage(state)
	if state.Live == nil {
		return stage
	}
	device, rebuild := state.Operation.Spec.Action.OfflineDevice.Device, state.Rebuild(state.Live.Status)
	if state.Job == nil && (state.Offline() || rebuild != nil) {
		return failedStage(v1alpha1.ReasonAgentDied, "the agent was restarted while %s was offline or rebuilt, so its times are unknown: create "+
			"another PoolOperation", device)
	}
	switch stop := state.stop(); {
	case stage.at == stageRunning:
		stage.stoppable = rebuild == nil || state.Offline()
		if rebuild != nil && rebuild.State == zfs.Running {
			stage.progress = state.progress(*rebuild)
		}
	case stage.at == stageDone && state.Job.Stopped && stop != nil && stop.outcome == v1alpha1.OutcomeFailed:
		return stopped("%s", stop.message)
	}
	return stage
}
