package pools

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// TestASilentDiskIsNoAbsence: nothing is created, imported or released while the contents of a disk are unknown.
func TestASilentDiskIsNoAbsence(t *testing.T) {
	silent := func(s *State, path string) {
		disk := s.Disks[path]
		disk.Refusal = &host.RefusedError{Path: path, Findings: []host.Finding{{Reason: host.Silent, Detail: "it does not respond"}}}
		s.Disks[path] = disk
	}
	was := func(s *State) { s.Pool.Status.GUID = "77" }
	for name, test := range map[string]struct {
		deleted bool
		change  func(s *State)
		reason  string
		says    string
	}{
		"never made": {false, func(s *State) { silent(s, diskA) }, v1alpha1.ReasonPoolDeviceRefused, "neither created nor imported: " +
			diskA},
		"made": {false, func(s *State) { was(s); silent(s, diskB) }, v1alpha1.ReasonPoolDeviceRefused, diskB},
		"one that was added": {false, func(s *State) { was(s); s.Pool.Status.Joining = []v1alpha1.DevicePath{diskD}; silent(s, diskD) },
			v1alpha1.ReasonPoolDeviceRefused, diskD},
		"deleted, never made": {true, func(s *State) { silent(s, diskA) }, v1alpha1.ReasonPoolUnhealthy, "kubectl annotate benchmarkpool"},
		"deleted": {true, func(s *State) { was(s); silent(s, diskA) }, v1alpha1.ReasonPoolUnhealthy,
			"kubectl annotate benchmarkpool"},
		"another's disk": {false, func(s *State) { silent(s, diskD) }, v1alpha1.ReasonPoolChanging, "making pool"},
		"deleted, half made": {true, func(s *State) {
			begun := takenOut(s.Disks[diskA], 77)
			begun.Pools[0].CreateTxg = 4
			s.Disks[diskA] = begun
		}, v1alpha1.ReasonPoolChanging, "labels of its unfinished creation, such as on " + diskA},
		"deleted, none is there": {true, func(*State) {}, v1alpha1.ReasonPoolChanging, "nothing of the pool is left"},
		"importable all the same": {false, func(s *State) {
			was(s)
			s.Importable = []zfs.Importable{{Name: "bench0", GUID: "77", State: "DEGRADED"}}
			silent(s, diskA)
		}, v1alpha1.ReasonPoolDeviceRefused, diskA},
	} {
		state := absentState()
		state.Pool.Finalizers = []string{v1alpha1.FinalizerTeardown}
		test.change(&state)
		if test.deleted {
			state = deletedState(state)
		}
		decision := Plan(state)
		acts := len(decision.Actions) > 0
		if decision.Reason != test.reason || !strings.Contains(decision.Message, test.says) ||
			acts != (test.reason == v1alpha1.ReasonPoolChanging) {
			t.Errorf("%s: %s: %s, actions %v", name, decision.Reason, decision.Message, decision.Actions)
		}
	}
}
