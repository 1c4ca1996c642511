package design

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestNamesOfDisks: the target of each variant determines which disk a name means, and the spec is not changed.
func TestNamesOfDisks(t *testing.T) {
	const far = v1alpha1.DevicePath("/dev/disk/by-id/far")
	for name, c := range map[string]struct{ with, want, says string }{
		"a name":         {"spare", "/dev/disk/by-id/s", ""},
		"a path":         {"/dev/disk/by-id/p", "/dev/disk/by-id/p", ""},
		"a slip":         {"spar", "", "phase swap of variant \"default\": replaceDevice names disk \"spar\", which is not in zfs.disks of its target: did you mean spare?"},
		"a foreign name": {"elsewhere", "", "with its stable path, or write one of far, spare"},
	} {
		spec := runstest.ZFSSpec()
		spec.Target.ZFS.Disks = map[string]v1alpha1.DevicePath{"far": far, "spare": "/dev/disk/by-id/s"}
		spec.Phases = append(spec.Phases, v1alpha1.Phase{Name: "swap", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
			ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: "far", With: v1alpha1.DiskRef(c.with)}}}})
		slots, err := Expand(spec, 1)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: want %q, got %v", name, c.says, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := slots[0].Phases[len(slots[0].Phases)-1].Operate.ReplaceDevice
		if got.Device != v1alpha1.DiskRef(far) || string(got.With) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if written := spec.Phases[len(spec.Phases)-1].Operate.ReplaceDevice; written.Device != "far" || string(written.With) != c.with {
			t.Errorf("%s: the spec was changed: %+v", name, written)
		}
	}
	spec := runstest.ZFSSpec()
	spec.Phases = append(spec.Phases, v1alpha1.Phase{Name: "trim", Measure: &v1alpha1.MeasurePhase{Operate: &v1alpha1.PoolAction{
		Trim: &v1alpha1.TrimAction{Device: "far"}}}})
	if _, err := Expand(spec, 1); err == nil || !strings.Contains(err.Error(), "add it there, with its stable path") {
		t.Errorf("a target without names: %v", err)
	}
}
