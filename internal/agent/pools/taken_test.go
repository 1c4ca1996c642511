package pools

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/naming"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// TestWaysOutOfATakenName: the message suggests another poolName, together with other disks if those of the spec are not available, and how
// to take over the pool of a deleted object.
func TestWaysOutOfATakenName(t *testing.T) {
	const again = "recreate this BenchmarkPool with another poolName"
	used := func(s *State) {
		disk := freeDisk(diskB)
		disk.Refusal = &host.RefusedError{Path: diskB,
			Findings: []host.Finding{{Reason: host.ActivePool, Detail: "it belongs to pool tank"}}}
		s.Disks[diskB] = disk
	}
	foreign := func(more ...func(*State)) State {
		state := liveState()
		state.Pool.Status.GUID = ""
		state.Live.change(naming.PropertyUID, "uid-0", "local")
		for _, change := range more {
			change(&state)
		}
		return state
	}
	rival := func(change func(*v1alpha1.BenchmarkPool)) func(*State) {
		return func(s *State) { s.Rivals = []v1alpha1.BenchmarkPool{rivalFor(change)} }
	}
	absent := absentState()
	absent.Importable = []zfs.Importable{{Name: "bench0", GUID: "78"}}
	for name, test := range map[string]struct {
		state State
		says  string
	}{
		"free disks":     {foreign(), "or " + again},
		"disks in use":   {foreign(used), again + " and other disks, because these are not available: "},
		"which, and why": {foreign(used), "it belongs to pool tank"},
		"denied disks":   {foreign(func(s *State) { s.Policy = nil }), "not available: the allowlist"},
		"taken over": {foreign(), "zfs set storagebench.dev:uid=uid-1 storagebench.dev:name=bench0 storagebench.dev:disks=" +
			layoutMark(wantedPool()) +
			" storagebench.dev:spec=0 storagebench.dev:generation=0 bench0"},
		"of an object that is there": {foreign(rival(func(p *v1alpha1.BenchmarkPool) { p.Status.GUID = "77" })),
			"it belongs to BenchmarkPool rival: it is left alone. Either delete BenchmarkPool rival, which destroys"},
		"of one that retains": {foreign(rival(func(p *v1alpha1.BenchmarkPool) {
			p.Status.GUID, p.Spec.DeletionPolicy = "77", v1alpha1.DeletionRetain
		})),
			"Either set spec.deletionPolicy: Destroy on BenchmarkPool rival and delete it"},
		"of a benchmark": {foreign(rival(func(p *v1alpha1.BenchmarkPool) { p.Labels = map[string]string{v1alpha1.LabelRun: "r"} })),
			"Either wait until BenchmarkPool rival is gone: its benchmark deletes it"},
		"of one that goes": {foreign(rival(func(p *v1alpha1.BenchmarkPool) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(2000, 0)}
		})), "it is being deleted"},
		"not imported": {absent, "zpool import -N -d /dev/disk/by-id 78"},
	} {
		t.Run(name, func(t *testing.T) { expectPool(t, Plan(test.state), "", v1alpha1.ReasonPoolNameTaken, test.says) })
	}
}

// TestWaysOutOfAConflict: the younger pool reports all claims, because changing the name alone may not help.
func TestWaysOutOfAConflict(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.BenchmarkPool)
		says   string
	}{
		"name and disks": {func(p *v1alpha1.BenchmarkPool) {
			p.Spec.PoolName = "bench0"
		}, "also claims " + diskA + ", " + diskB + ", the pool name bench0 on this node, and has priority. " +
			"Either recreate this BenchmarkPool with another poolName and other disks; or delete BenchmarkPool rival"},
		"the name": {func(p *v1alpha1.BenchmarkPool) { p.Spec.PoolName = "bench0"; p.Spec.Vdevs[0] = mirrorOf(diskC, diskD) },
			"with another poolName; or"},
		"a disk": {func(p *v1alpha1.BenchmarkPool) { p.Spec.PoolName = "other"; p.Spec.Vdevs[0] = mirrorOf(diskB, diskD) },
			"also claims " + diskB + " on this node, and has priority. Either use other disks; or"},
	} {
		t.Run(name, func(t *testing.T) {
			state := absentState()
			state.Rivals = []v1alpha1.BenchmarkPool{rivalFor(test.change)}
			expectPool(t, Plan(state), "", v1alpha1.ReasonPoolConflict, test.says)
		})
	}
}
