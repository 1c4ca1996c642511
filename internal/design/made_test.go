package design

import (
	"fmt"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
)

// TestVolumesThatPhasesMake: a volume that a phase makes must have an unused name, and can be used only after it is made and before it is
// destroyed.
func TestVolumesThatPhasesMake(t *testing.T) {
	name := 0
	next := func(phase v1alpha1.Phase) v1alpha1.Phase {
		phase.Name = v1alpha1.PhaseName(fmt.Sprint("p", name))
		name++
		return phase
	}
	fill := func(on v1alpha1.VolumeName) v1alpha1.Phase {
		return next(v1alpha1.Phase{Volume: on, Fill: &v1alpha1.FillPhase{To: "50%"}})
	}
	scan := func(on v1alpha1.VolumeName) v1alpha1.Phase {
		return next(v1alpha1.Phase{Volume: on, Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}})
	}
	operate := func(on v1alpha1.VolumeName, action v1alpha1.PoolAction) v1alpha1.Phase {
		return next(v1alpha1.Phase{Volume: on, Operate: &v1alpha1.OperatePhase{PoolAction: action}})
	}
	snapshot := func() v1alpha1.Phase {
		return operate("", v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Dataset: "data", Name: "s"}})
	}
	clone := func(as v1alpha1.VolumeName) v1alpha1.Phase {
		return operate("", v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", As: as}})
	}
	replicate := func(as v1alpha1.VolumeName) v1alpha1.Phase {
		return operate("", v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToVolume: "log", As: as}})
	}
	files := func(on v1alpha1.VolumeName, from v1alpha1.DatasetPath, as v1alpha1.VolumeName) v1alpha1.Phase {
		return operate(on, v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: from, As: as}})
	}
	destroy := func(on v1alpha1.VolumeName, path v1alpha1.DatasetPath) v1alpha1.Phase {
		return operate(on, v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: path}})
	}
	beside := scan("")
	beside.Measure.Operate = &v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", As: "fresh"}}
	sized := next(v1alpha1.Phase{Volume: "fresh", Fill: &v1alpha1.FillPhase{Size: &v1alpha1.Amount{}}})
	score := operate("fresh", v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{Dataset: "fresh"}})
	scoreOfOld := operate("", v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{Dataset: "fresh"}})
	type list = []v1alpha1.Phase
	many := list{fill("")}
	for i := range mostMade + 1 {
		many = append(many, files("", "data", v1alpha1.VolumeName(fmt.Sprint("v", i))))
	}
	for name, c := range map[string]struct {
		phases list
		says   []string
	}{
		"a clone":            {list{fill(""), snapshot(), clone("fresh"), scan("fresh"), score, scoreOfOld}, nil},
		"a replica":          {list{fill(""), replicate("fresh"), scan("fresh"), score}, nil},
		"a copy":             {list{fill(""), files("", "data", "fresh"), scan("fresh")}, nil},
		"a copy of a copy":   {list{fill(""), files("", "data", "fresh"), files("fresh", "fresh", "again"), scan("again")}, nil},
		"to measure writes":  {list{snapshot(), clone("fresh"), sized, scan("fresh")}, nil},
		"too early":          {list{fill(""), scan("fresh"), files("", "data", "fresh")}, []string{"works on volume fresh", "makes later", "move it after"}},
		"never":              {list{fill(""), scan("fresh")}, []string{`volume "fresh"`, "make it in an earlier phase with as"}},
		"destroyed":          {list{fill(""), files("", "data", "fresh"), destroy("", "fresh"), scan("fresh")}, []string{"is destroyed by the earlier phase"}},
		"destroyed, in time": {list{fill(""), files("", "data", "fresh"), scan("fresh"), destroy("fresh", "fresh"), scan("")}, nil},
		"the other's":        {list{fill(""), replicate("fresh"), destroy("log", "log"), scan("fresh")}, nil},
		"again":              {list{fill(""), files("", "data", "fresh"), files("", "data", "fresh")}, []string{"another volume has this name"}},
		"a name of the target": {list{fill(""), files("", "data", "log")}, []string{"makes volume log", "another volume has this name",
			"choose another one in as"}},
		"the name data": {list{fill(""), files("", "data", "data")}, []string{"another volume has this name"}},
		"a known dataset": {list{fill(""), operate("", v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", To: "fresh"}}),
			files("", "data", "fresh")}, []string{"dataset fresh exists by then", "another name in as"}},
		"beside a workload":      {list{fill(""), beside}, []string{"use 'to' instead of 'as', or make it in a phase with operate"}},
		"of nothing":             {list{snapshot(), clone("fresh"), scan("fresh")}, []string{"no earlier phase fills it"}},
		"of an earlier snapshot": {list{snapshot(), fill(""), clone("fresh"), scan("fresh")}, []string{"no earlier phase fills it"}},
		"of a device":            {list{files("disk", "disk", "fresh")}, []string{"dataset disk, which is a device"}},
		"a share of it":          {list{files("", "data", "fresh"), fill("fresh")}, []string{"of volume fresh, which shares its pool", ": write fill.size"}},
		"a share beside it":      {list{files("", "data", "fresh"), fill("")}, []string{"of volume data, which shares its pool", "give its dataset a size"}},
		"too many":               {many, []string{"and earlier phases make 8"}},
	} {
		target := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetPool, Volumes: []v1alpha1.AdditionalVolume{{Name: "log"},
			{Name: "disk", Dataset: &v1alpha1.DatasetTemplate{Type: naming.DatasetVolume}}}}}
		checkRefusal(t, name, checkTarget(&Slot{Variant: "v", Target: target, Phases: c.phases}), c.says)
	}
	driver := &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetPool, Dataset: &v1alpha1.DatasetTemplate{Provisioner: volume.ProvisionerOpenEBS}}
	checkRefused(t, "a driver's", checkTarget(&Slot{Variant: "v", Target: v1alpha1.Target{ZFS: driver},
		Phases: list{fill(""), files("", "data", "fresh")}}), v1alpha1.ReasonNotSupported, []string{"makes volume fresh on a pool of provisioner OpenEBS",
		"write provisioner: Local in the dataset of volume data, or 'to', not 'as'"})
	kept := &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetDataset}
	checkRefused(t, "a kept pool", checkTarget(&Slot{Variant: "v", Target: v1alpha1.Target{ZFS: kept},
		Phases: list{fill(""), files("", "data", "fresh")}}), v1alpha1.ReasonNotSupported, []string{"write reset: Pool"})
}

// TestDataOfOtherProvisioners: a driver keeps the files of a volume in another folder of its dataset, so that workloads would not find them
// in a copy.
func TestDataOfOtherProvisioners(t *testing.T) {
	const driver, local = volume.ProvisionerOpenEBS, volume.ProvisionerLocal
	act := func(action v1alpha1.PoolAction) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "act", Operate: &v1alpha1.OperatePhase{PoolAction: action}}
	}
	sends := act(v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToVolume: "log", As: "sent"}})
	makes := act(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", ToVolume: "log", As: "fresh"}})
	copies := act(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", ToVolume: "log", To: "log"}})
	beside := act(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", ToVolume: "log", To: "copy"}})
	for _, c := range []struct {
		data, log string
		phase     v1alpha1.Phase
		says      string
	}{
		{driver, local, sends, "makes volume sent of a dataset of provisioner OpenEBS, whose data workloads would not find there: write " +
			"provisioner: Local in the dataset of volume data, or 'to', not 'as'"},
		{driver, local, makes, "makes volume fresh of a dataset of provisioner OpenEBS"},
		{driver, local, copies, "copies the data of volume data to volume log, but workloads would not find it there, because the provisioners are OpenEBS " +
			"and Local: write the same one"},
		{local, driver, copies, "copies the data of volume data to volume log, but workloads would not find it there, because the provisioners are Local and OpenEBS"},
		{driver, driver, copies, ""},
		{local, local, copies, ""},
		{local, local, sends, ""},
		{local, local, makes, ""},
		{driver, local, beside, ""},
	} {
		for _, left := range []string{"", c.data, c.log} { // if the cluster chooses the provisioner, the error comes only after that
			written := func(provisioner string) *v1alpha1.DatasetTemplate {
				if provisioner == left {
					provisioner = ""
				}
				return &v1alpha1.DatasetTemplate{Type: "Filesystem", Provisioner: provisioner}
			}
			slot := &Slot{Variant: "v", Phases: []v1alpha1.Phase{c.phase}, Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetPool,
				Dataset: written(c.data), Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Dataset: written(c.log)}}}}}
			name := fmt.Sprintf("%s to %s, %q left out: %s", c.data, c.log, left, operate.Name(c.phase.Operate.PoolAction))
			if says := []string{`phase act of variant "v" `, c.says}; c.says != "" && left == "" {
				checkRefusal(t, name, checkTarget(slot), says)
			} else {
				checkRefusal(t, name, checkTarget(slot), nil)
			}
			slot.Target = ResolveTarget(slot.Target, "", "", left)
			refused := map[string]string{}
			for _, wanted := range volume.TargetVolumes(slot.Target) {
				if problem := CannotProvide(slot, wanted); problem != "" {
					refused[wanted.Dataset.Provisioner] = problem
				}
			}
			if (len(refused) > 0) != (c.says != "") || len(refused) > 0 && !strings.Contains(refused[driver], "phase act "+c.says) {
				t.Errorf("%s: %v, want %q", name, refused, c.says)
			}
		}
	}
}
