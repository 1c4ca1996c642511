package design

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestVolumesThatShareAPool: anything that cannot work on a pool with several volumes is refused before anything runs, and the error says
// what to write instead.
func TestVolumesThatShareAPool(t *testing.T) {
	gib := &v1alpha1.Size{Quantity: resource.MustParse("1Gi")}
	dataset := func(provisioner string, size *v1alpha1.Size) *v1alpha1.DatasetTemplate {
		return &v1alpha1.DatasetTemplate{Type: "Filesystem", Provisioner: provisioner, Size: size}
	}
	fill := func(volume v1alpha1.VolumeName, fill v1alpha1.FillPhase) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "f", Volume: volume, Fill: &fill}
	}
	operate := func(action v1alpha1.PoolAction) []v1alpha1.Phase {
		return []v1alpha1.Phase{fill("", v1alpha1.FillPhase{Size: &v1alpha1.Amount{}}),
			{Name: "t", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Dataset: "data", Name: "s"}}}},
			{Name: "o", Operate: &v1alpha1.OperatePhase{PoolAction: action}},
			{Name: "s", Volume: "log", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}}}
	}
	half, sized := v1alpha1.FillPhase{To: "50%"}, dataset("Local", gib)
	for name, c := range map[string]struct {
		data, log *v1alpha1.DatasetTemplate
		poolOf    v1alpha1.VolumeName
		phases    []v1alpha1.Phase
		reason    string
		says      []string
	}{
		"as it should be": {sized, sized, "data", []v1alpha1.Phase{fill("log", half), fill("data", half)}, "", nil},
		"by default":      {nil, nil, "data", []v1alpha1.Phase{fill("log", v1alpha1.FillPhase{Size: &v1alpha1.Amount{}})}, "", nil},
		"on nothing": {nil, nil, "wal", nil, v1alpha1.ReasonSpecInvalid,
			[]string{`volume log of variant "v" lies on the pool of "wal"`, "write one of these in poolOf: data"}},
		"on itself": {nil, nil, "log", nil, v1alpha1.ReasonSpecInvalid, []string{`"log"`, "in poolOf: data"}},
		"the driver's": {dataset("OpenEBS", nil), dataset("OpenEBS", nil), "data", nil, v1alpha1.ReasonNotSupported,
			[]string{"volumes data and log lie on one pool", "write provisioner: Local in the dataset of each"}},
		"the driver's below": {dataset("OpenEBS", nil), sized, "data", nil, v1alpha1.ReasonNotSupported, []string{"write provisioner: Local"}},
		"the driver's above": {sized, dataset("OpenEBS", gib), "data", nil, v1alpha1.ReasonNotSupported, []string{"write provisioner: Local"}},
		"a share of what is left": {sized, nil, "data", []v1alpha1.Phase{fill("log", half)}, v1alpha1.ReasonSpecInvalid,
			[]string{`phase f of variant "v" fills 50% of volume log, which shares its pool`, "give its dataset a size, or write fill.size"}},
		"of the first, too": {nil, sized, "data", []v1alpha1.Phase{fill("", half)}, v1alpha1.ReasonSpecInvalid, []string{"of volume data"}},
		"a share of the pool": {sized, sized, "data", []v1alpha1.Phase{fill("log", v1alpha1.FillPhase{To: "50%", Of: "Pool"})},
			v1alpha1.ReasonSpecInvalid, []string{"write of: Volume, and give its dataset a size"}},
		"sent to itself": {sized, sized, "data", operate(v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToVolume: "log",
			To: "copy"}})[:3], v1alpha1.ReasonSpecInvalid, []string{"from volume data to log, which lies on the same pool: use clone or copy"}},
		"onto its neighbour that is gone": {sized, sized, "data", append(operate(v1alpha1.PoolAction{
			DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "log"}})[:3], v1alpha1.Phase{Name: "c", Operate: &v1alpha1.OperatePhase{
			PoolAction: v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", To: "log"}}}}),
			v1alpha1.ReasonSpecInvalid, []string{"dataset log is declared in the target", "choose another path"}},
		"copied": {sized, sized, "data", operate(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", To: "log"}}), "", nil},
		"copied, to the volume": {sized, sized, "data", operate(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", ToVolume: "log",
			To: "log"}}), "", nil},
		"copied beside it": {sized, sized, "data", operate(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", To: "copy"}}),
			v1alpha1.ReasonSpecInvalid, []string{"phase s", "no earlier phase fills it"}},
		"copied to itself": {sized, sized, "data", operate(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", ToVolume: "log",
			To: "data"}})[:3], v1alpha1.ReasonSpecInvalid, []string{"copies dataset data to itself"}},
		"onto its neighbour": {sized, sized, "data", operate(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", To: "log",
			Properties: v1alpha1.LiveProperties{"sync": "always"}}}), v1alpha1.ReasonSpecInvalid, []string{"dataset log exists by then"}},
	} {
		target := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetPool, Dataset: c.data,
			Volumes: []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: c.poolOf, Dataset: c.log}}}}
		err := checkTarget(&Slot{Variant: "v", Target: target, Phases: c.phases})
		checkRefused(t, name, err, c.reason, c.says)
	}
}
