package design

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/volume"
)

// TestDataComesFirst: reading or ageing data that was never written is refused before any run.
func TestDataComesFirst(t *testing.T) {
	fill, age := &v1alpha1.FillPhase{}, &v1alpha1.FragmentPhase{}
	measure := func(workload v1alpha1.Workload) *v1alpha1.MeasurePhase {
		return &v1alpha1.MeasurePhase{Workload: workload}
	}
	scan, read := measure(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}), measure(v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}})
	appends := measure(v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}})
	for name, c := range map[string]struct {
		phases []v1alpha1.Phase
		says   string
	}{
		"filled":       {[]v1alpha1.Phase{{Name: "f", Fill: fill}, {Name: "a", Fragment: age}, {Name: "s", Measure: scan}}, ""},
		"appends only": {[]v1alpha1.Phase{{Name: "w", Measure: appends}}, ""},
		"read": {[]v1alpha1.Phase{{Name: "r", Measure: read}, {Name: "f", Fill: fill}},
			`phase r of variant "v" works on the data of volume data`},
		"scanned": {[]v1alpha1.Phase{{Name: "w", Measure: appends}, {Name: "s", Measure: scan}}, "phase s "},
		"aged":    {[]v1alpha1.Phase{{Name: "a", Fragment: age}}, "add one before it, such as {name: fill, fill: {to: 50%}}"},
		"freed":   {[]v1alpha1.Phase{{Name: "d", Free: &v1alpha1.FreePhase{Share: "10%"}}, {Name: "f", Fill: fill}}, "phase d "},
		"filled and freed": {[]v1alpha1.Phase{{Name: "f", Fill: fill}, {Name: "d", Free: &v1alpha1.FreePhase{Share: "10%"}},
			{Name: "s", Measure: scan}}, ""},
		"another volume": {[]v1alpha1.Phase{{Name: "f", Fill: fill, Volume: "log"}, {Name: "s", Measure: scan}}, "volume data"},
		"its name":       {[]v1alpha1.Phase{{Name: "f", Fill: fill}, {Name: "s", Measure: scan, Volume: naming.VolumeData}}, ""},
	} {
		err := checkTarget(&Slot{Variant: "v", Phases: c.phases})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestArchiveOnAVolume: the archive of a log needs a volume of the target, with a file system.
func TestArchiveOnAVolume(t *testing.T) {
	for name, c := range map[string]struct {
		volume    v1alpha1.VolumeName
		dataset   string
		workloads bool
		says      string
	}{
		"another":      {"archive", "Filesystem", false, ""},
		"its own":      {"", "Filesystem", true, ""},
		"unknown":      {"other", "Filesystem", false, `works on volume "other", which the target does not have`},
		"a device":     {"archive", "Volume", false, "spec.phases[0].measure.workload.redo.archive"},
		"one of three": {"archive", "Volume", true, "spec.phases[0].measure.workloads[1].redo.archive"},
	} {
		redo := &v1alpha1.RedoWorkload{Duration: runstest.Lasting(time.Minute), Archive: &v1alpha1.RedoArchive{Volume: c.volume}}
		phase := v1alpha1.Phase{Name: "w", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Redo: redo}}}
		if c.workloads {
			other := &v1alpha1.RedoWorkload{Duration: runstest.Lasting(time.Minute)}
			phase.Measure = &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{{Name: "a", Volume: "archive", Redo: other},
				{Name: "log", Redo: redo}}}
		}
		target := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "archive",
			Dataset: &v1alpha1.DatasetTemplate{Type: c.dataset}}}}}
		mistakes := Mistakes(checkTarget(&Slot{Variant: "v", Target: target, Phases: []v1alpha1.Phase{phase}}))
		if (len(mistakes) == 0) != (c.says == "") || c.says != "" && !strings.Contains(mistakes[0].Field+": "+mistakes[0].Message, c.says) {
			t.Errorf("%s: %+v", name, mistakes)
		}
	}
}

// TestWALOnAVolume: the log of a database needs another volume of the target, which must exist when the phase begins and have a file
// system.
func TestWALOnAVolume(t *testing.T) {
	clone := v1alpha1.Phase{Name: "clone", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
		Copy: &v1alpha1.CopyAction{Dataset: "data", As: "later"}}}}
	field := "spec.phases[0].measure.workload.postgres.walVolume: "
	for name, c := range map[string]struct {
		volume, wal v1alpha1.VolumeName
		dataset     string
		class       bool
		says        string
	}{
		"another":      {"", "log", "Filesystem", false, ""},
		"vice versa":   {"log", "data", "Filesystem", false, ""},
		"the same":     {"log", "log", "Filesystem", false, field + `phase tx of variant "v": its log would be on volume log, the phase's own volume`},
		"data twice":   {"", "data", "Filesystem", false, field + `phase tx of variant "v": its log would be on volume data, the phase's own volume`},
		"unknown":      {"", "other", "Filesystem", false, field + `phase tx of variant "v" has its log on volume "other", which the target does not have`},
		"made later":   {"", "later", "Filesystem", false, field + `phase tx of variant "v" works on volume later, which phase clone makes later`},
		"a device":     {"", "log", "Volume", false, field + `phase tx of variant "v": its log would be on volume log, which is a device`},
		"without pool": {"", "log", "", true, field + `phase tx of variant "v" has its log on another volume, and only a zfs target has several`},
	} {
		phase := v1alpha1.Phase{Name: "tx", Volume: c.volume, Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
			Postgres: &v1alpha1.PostgresWorkload{WALVolume: c.wal}}}}
		slot := &Slot{Variant: "v", Phases: []v1alpha1.Phase{phase, clone}, Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
			Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Dataset: &v1alpha1.DatasetTemplate{Type: c.dataset}}}}}}
		if c.class {
			slot.Target, slot.Phases = v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}}, slot.Phases[:1]
		}
		mistakes := Mistakes(checkTarget(slot))
		if (len(mistakes) == 0) != (c.says == "") || c.says != "" && !strings.Contains(mistakes[0].Field+": "+mistakes[0].Message, c.says) {
			t.Errorf("%s: %+v", name, mistakes)
		}
	}
}

// TestOperateAfter: a phase is refused if the times before, during and after its operation could not be distinguished.
func TestOperateAfter(t *testing.T) {
	redo := &v1alpha1.RedoWorkload{Duration: runstest.Lasting(5 * time.Minute)}
	archived := redo.DeepCopy()
	archived.Archive = &v1alpha1.RedoArchive{}
	for name, c := range map[string]struct {
		workload v1alpha1.Workload
		after    time.Duration
		field    string
	}{
		"a log":      {v1alpha1.Workload{Redo: redo}, time.Minute, ""},
		"too late":   {v1alpha1.Workload{Redo: redo}, time.Hour, "spec.phases[0].measure.workload.redo"},
		"an archive": {v1alpha1.Workload{Redo: archived}, time.Minute, "spec.phases[0].measure.operateAfter"},
		"a fio job":  {v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[a]\nrw=read\n"}}, time.Minute, "spec.phases[0].measure.workload.fio"},
	} {
		phase := v1alpha1.Phase{Name: "w", Measure: &v1alpha1.MeasurePhase{Workload: c.workload, OperateAfter: runstest.Lasting(c.after),
			Operate: &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}}}
		mistakes := Mistakes(checkTarget(&Slot{Variant: "v", Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}, Phases: []v1alpha1.Phase{phase}}))
		if (len(mistakes) == 0) != (c.field == "") || c.field != "" && (mistakes[0].Field != c.field ||
			!strings.Contains(mistakes[0].Message, "operateAfter")) {
			t.Errorf("%s: %+v", name, mistakes)
		}
	}
}

// TestUntilOnNodes: until is refused on several nodes, because operations on them end at different times.
func TestUntilOnNodes(t *testing.T) {
	phase := v1alpha1.Phase{Name: "w", Measure: &v1alpha1.MeasurePhase{Operate: &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}},
		Workload:     v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{Duration: runstest.Lasting(5 * time.Minute)}},
		OperateAfter: runstest.Lasting(time.Minute), Until: v1alpha1.UntilOperationEnds, AfterOperation: runstest.Lasting(time.Minute)}}
	for count, wrong := range map[int32]bool{0: false, 1: false, 2: true} {
		target := &v1alpha1.ZFSTarget{Nodes: v1alpha1.NodeChoice{Count: count}}
		mistakes := Mistakes(checkTarget(&Slot{Variant: "v", Target: v1alpha1.Target{ZFS: target}, Phases: []v1alpha1.Phase{phase}}))
		if (len(mistakes) == 1) != wrong || wrong && (mistakes[0].Field != "spec.phases[0].measure.until" ||
			!strings.Contains(mistakes[0].Message, "or measure on one node")) {
			t.Errorf("%d nodes: %+v", count, mistakes)
		}
	}
}

// TestFreeNeedsFiles: free is refused on a block device, where it is unknown which space is free.
func TestFreeNeedsFiles(t *testing.T) {
	for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
		target := v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{VolumeMode: mode}}
		err := checkTarget(&Slot{Variant: "v", Target: target, Phases: []v1alpha1.Phase{{Name: "f", Fill: &v1alpha1.FillPhase{}},
			{Name: "d", Free: &v1alpha1.FreePhase{Share: "10%"}}}})
		if block := mode == corev1.PersistentVolumeBlock; (err != nil) != block || block && !strings.Contains(err.Error(), "free needs a file system") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// TestReplicationsStayWithinTheTarget: a name that is not a volume of the target could be another user's BenchmarkPool, and the API server
// would refuse the phase's own pool only after a run has begun.
func TestReplicationsStayWithinTheTarget(t *testing.T) {
	to := func(on v1alpha1.VolumeName, pool string) *v1alpha1.PoolAction {
		return &v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: naming.RunDataset(string(on)),
			ToVolume: v1alpha1.VolumeName(pool), To: "copy"}}
	}
	operate := func(on v1alpha1.VolumeName, pool string) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "send", Volume: on, Operate: &v1alpha1.OperatePhase{PoolAction: *to(cmp.Or(on, "data"), pool)}}
	}
	beside := func(pool string) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "send", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}},
			Operate: to("data", pool)}}
	}
	several := []v1alpha1.AdditionalVolume{{Name: "log"}, {Name: "old"}}
	for name, c := range map[string]struct {
		volumes []v1alpha1.AdditionalVolume
		phase   v1alpha1.Phase
		says    []string
	}{
		"another volume":          {several, operate("", "log"), nil},
		"back to data":            {several, operate("log", "data"), nil},
		"beside a workload":       {several, beside("old"), nil},
		"another's pool":          {several, operate("", "bench0"), []string{`phase send of variant "v"`, `"bench0"`, "toVolume: log, old"}},
		"another's, beside":       {several, beside("bench0"), []string{"phase send", `"bench0"`, "toVolume: log, old"}},
		"a pool of a run":         {several, operate("", "sb-0a1b2c3d-log"), []string{`"sb-0a1b2c3d-log"`}},
		"itself":                  {several, operate("data", "data"), []string{"from volume data", "toVolume: log, old"}},
		"itself, by default":      {several, operate("", "data"), []string{"from volume data"}},
		"itself, another":         {several, operate("old", "old"), []string{"from volume old", "toVolume: data, log"}},
		"nothing":                 {several, operate("", ""), []string{`""`}},
		"no other volume to name": {nil, operate("", "log"), []string{"add one with a pool to target.zfs.volumes"}},
	} {
		target := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetPool, Volumes: c.volumes}}
		checkRefusal(t, name, checkTarget(&Slot{Variant: "v", Target: target, Phases: []v1alpha1.Phase{{Name: "f", Fill: &v1alpha1.FillPhase{}},
			c.phase}}), c.says)
	}
}

// TestVariantsBringTheirOwnVolumes: each variant is checked with its own resulting target.
func TestVariantsBringTheirOwnVolumes(t *testing.T) {
	replicate := v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: naming.RunDataset(naming.VolumeData), ToVolume: "log", To: "copy"}}
	for name, c := range map[string]struct {
		target v1alpha1.Target
		says   []string
	}{
		"the volume is there": {v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log"}}}}, nil},
		"it is called another": {v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "other"}}}},
			[]string{`variant "own"`, "toVolume: other"}},
		"no pools at all": {v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}}, []string{"phase send does replicate on a pool",
			`variant "own" has a storageClass target`}},
	} {
		spec := &v1alpha1.StorageBenchmarkSpec{
			Target:      v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log"}}}},
			Phases:      []v1alpha1.Phase{{Name: "send", Operate: &v1alpha1.OperatePhase{PoolAction: replicate}}},
			Variants:    []v1alpha1.Variant{{Name: "base"}, {Name: "own", Target: &c.target}},
			Repetitions: 1,
		}
		_, err := Expand(spec, 1)
		checkRefusal(t, name, err, c.says)
	}
}

// TestDatasetsExistByThen: an operation on a missing dataset is refused before the first run, instead of failing after each fill.
func TestDatasetsExistByThen(t *testing.T) {
	snapshot := func(dataset v1alpha1.DatasetPath, name v1alpha1.SnapshotName) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Dataset: dataset, Name: name}}
	}
	clone := func(snapshot v1alpha1.SnapshotName, to v1alpha1.DatasetPath) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: snapshot, To: to}}
	}
	score := func(dataset v1alpha1.DatasetPath) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{Dataset: dataset}}
	}
	set := func(dataset v1alpha1.DatasetPath) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{SetProperty: &v1alpha1.SetPropertyAction{Dataset: dataset}}
	}
	destroy := v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "copy"}}
	with := func(dataset v1alpha1.DatasetPath) v1alpha1.PoolAction {
		return v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: dataset, Recursive: true}}
	}
	forget := v1alpha1.PoolAction{DestroySnapshot: &v1alpha1.DestroySnapshotAction{Dataset: "data", Name: "s"}}
	files := v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", To: "copy"}}
	all := v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Name: "s", Recursive: true}}
	for name, c := range map[string]struct {
		actions []v1alpha1.PoolAction
		says    []string
	}{
		"the volume":            {[]v1alpha1.PoolAction{score("data")}, nil},
		"a wrong name":          {[]v1alpha1.PoolAction{score("date")}, []string{`phase p0 of variant "v"`, `dataset "date" does not exist`, "one of these: data"}},
		"a clone":               {[]v1alpha1.PoolAction{snapshot("data", "s"), clone("s", "copy"), score("copy")}, nil},
		"a clone, too early":    {[]v1alpha1.PoolAction{snapshot("data", "s"), score("copy"), clone("s", "copy")}, []string{"phase p1", `"copy"`}},
		"of no snapshot":        {[]v1alpha1.PoolAction{clone("s", "copy")}, []string{`data has no snapshot "s"`, "operate: {snapshot:"}},
		"of another's snapshot": {[]v1alpha1.PoolAction{snapshot("", "s"), clone("s", "copy")}, []string{"phase p1", "no snapshot"}},
		"of all":                {[]v1alpha1.PoolAction{all, clone("s", "copy")}, nil},
		"a snapshot twice":      {[]v1alpha1.PoolAction{all, snapshot("data", "s")}, []string{"phase p1", "choose another name"}},
		"a clone twice":         {[]v1alpha1.PoolAction{all, clone("s", "copy"), clone("s", "copy")}, []string{"phase p2", "another path"}},
		"again, after its end":  {[]v1alpha1.PoolAction{all, clone("s", "copy"), destroy, clone("s", "copy")}, nil},
		"gone":                  {[]v1alpha1.PoolAction{all, clone("s", "copy"), destroy, score("copy")}, []string{"phase p3"}},
		"never there":           {[]v1alpha1.PoolAction{destroy}, []string{"destroyDataset", `"copy"`}},
		"a snapshot's end":      {[]v1alpha1.PoolAction{snapshot("data", "s"), forget, snapshot("data", "s"), forget}, nil},
		"of no snapshot's end":  {[]v1alpha1.PoolAction{forget}, []string{`data has no snapshot "s"`}},
		"its second end":        {[]v1alpha1.PoolAction{all, forget, forget}, []string{"phase p2", "no snapshot"}},
		"of a cloned snapshot":  {[]v1alpha1.PoolAction{all, clone("s", "copy"), forget}, []string{"copy is a clone of this snapshot", "in an earlier phase"}},
		"after its clone":       {[]v1alpha1.PoolAction{all, clone("s", "copy"), destroy, forget}, nil},
		"with a snapshot":       {[]v1alpha1.PoolAction{files, all, destroy}, []string{"phase p2", "copy has snapshots", "recursive: true"}},
		"all of it":             {[]v1alpha1.PoolAction{files, all, with("copy"), files}, nil},
		"with a clone":          {[]v1alpha1.PoolAction{all, clone("s", "copy"), with("data")}, []string{"copy is a clone of a snapshot of data"}},
		"to a new one":          {[]v1alpha1.PoolAction{files, score("copy")}, nil},
		"from nowhere":          {[]v1alpha1.PoolAction{{Copy: &v1alpha1.CopyAction{Dataset: "copy", To: "data"}}}, []string{`dataset "copy" does not exist`}},
		"properties of a known one": {[]v1alpha1.PoolAction{all, clone("s", "copy"), {Copy: &v1alpha1.CopyAction{Dataset: "data", To: "copy",
			Properties: v1alpha1.LiveProperties{"sync": "always"}}}}, []string{"phase p2", "use setProperty in an earlier phase"}},
		"to itself": {[]v1alpha1.PoolAction{{Copy: &v1alpha1.CopyAction{Dataset: "data", ToVolume: "data", To: "data"}}},
			[]string{"copies dataset data to itself"}},
		"to another's pool": {[]v1alpha1.PoolAction{{Copy: &v1alpha1.CopyAction{Dataset: "data", ToVolume: "bench0", To: "x"}}},
			[]string{`volume "bench0"`, "in toVolume: data"}},
		"set on a clone":    {[]v1alpha1.PoolAction{all, clone("s", "copy"), set("copy")}, nil},
		"set on none":       {[]v1alpha1.PoolAction{set("copy")}, []string{"setProperty", `dataset "copy" does not exist`, "one of these: data"}},
		"no dataset at all": {[]v1alpha1.PoolAction{{Scrub: &v1alpha1.ScrubAction{}}}, nil},
	} {
		slot := &Slot{Variant: "v", Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetPool}}}
		for i, action := range c.actions {
			slot.Phases = append(slot.Phases, v1alpha1.Phase{Name: v1alpha1.PhaseName(fmt.Sprint("p", i)),
				Operate: &v1alpha1.OperatePhase{PoolAction: action}})
		}
		checkRefusal(t, name, checkTarget(slot), c.says)
	}
}

// TestReplicasHaveSnapshots: the snapshots that replicate takes stay on the replica.
func TestReplicasHaveSnapshots(t *testing.T) {
	from, to := datasets{"": {}, "data": {}}, datasets{"": {}}
	send := &v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToVolume: "other", To: "copy"}}
	if problem := from.after(send, map[string]datasets{"other": to}); problem != "" {
		t.Fatal(problem)
	}
	destroy := &v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "copy"}}
	if problem := to.after(destroy, nil); !strings.Contains(problem, "copy has snapshots") {
		t.Errorf("got %q", problem)
	}
	destroy.DestroyDataset.Recursive = true
	if problem := to.after(destroy, nil); problem != "" || len(to) != 1 {
		t.Errorf("got %q, left %v", problem, to)
	}
}

// TestJobFilesAreReadFirst: job files that the runner would refuse are refused before the first run.
func TestJobFilesAreReadFirst(t *testing.T) {
	for name, c := range map[string]struct {
		fio  v1alpha1.FIOWorkload
		says []string
	}{
		"good":    {v1alpha1.FIOWorkload{JobFile: "[a]\nrw=read\nsize=1m\n"}, nil},
		"bad":     {v1alpha1.FIOWorkload{JobFile: "[a]\nrw=read\nexec_prerun=reboot\n"}, []string{`phase m of variant "v"`, "line 3", "exec_prerun"}},
		"unknown": {v1alpha1.FIOWorkload{JobFileFrom: &v1alpha1.ConfigMapKey{Name: "jobs", Key: "a"}}, nil},
	} {
		checkRefusal(t, name, checkTarget(&Slot{Variant: "v", Target: v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}},
			Phases: []v1alpha1.Phase{{Name: "m", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{FIO: &c.fio}}}}}), c.says)
	}
}

// TestEachLineOfAJobFileIsAMistake: each wrong line is a separate mistake, so that an editor can jump to it.
func TestEachLineOfAJobFileIsAMistake(t *testing.T) {
	job := &v1alpha1.FIOWorkload{JobFile: "[a]\nrw=trim\n\nexec_prerun=reboot\n"}
	wrong := Mistakes(checkTarget(&Slot{Variant: "v", Target: v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}},
		Phases: []v1alpha1.Phase{{Name: "m", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{FIO: job}}}}}))
	for i, line := range []string{"2", "4"} {
		if len(wrong) != 2 || wrong[i].Field != "spec.phases[0].measure.workload.fio.jobFile[line "+line+"]" ||
			!strings.HasPrefix(wrong[i].Message, `phase m of variant "v": line `+line+" of the fio job file: ") ||
			strings.Contains(wrong[i].Message, "\n") {
			t.Errorf("%+v", wrong)
		}
	}
}

// TestAClassHasOneVolume: the phases of a storageClass target can only name the volume data.
func TestAClassHasOneVolume(t *testing.T) {
	for volume, says := range map[v1alpha1.VolumeName][]string{"": nil, "data": nil, "log": {`volume "log"`, "write volume: data"}} {
		checkRefusal(t, string(volume), checkTarget(&Slot{Variant: "v", Target: v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}},
			Phases: []v1alpha1.Phase{{Name: "f", Volume: volume, Fill: &v1alpha1.FillPhase{}}}}), says)
	}
}

func checkRefusal(t *testing.T, name string, err error, says []string) {
	t.Helper()
	checkRefused(t, name, err, v1alpha1.ReasonSpecInvalid, says)
}

func checkRefused(t *testing.T, name string, err error, reason string, says []string) {
	t.Helper()
	if len(says) == 0 {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	var refused *SpecError
	if !errors.As(err, &refused) || refused.Reason != reason {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, part := range says {
		if !strings.Contains(refused.Message, part) {
			t.Errorf("%s: %q does not say %q", name, refused.Message, part)
		}
	}
}

// together is a phase that reads one volume while it writes a log to another.
func together(reads, log v1alpha1.VolumeName) v1alpha1.Phase {
	return v1alpha1.Phase{Name: "busy", Measure: &v1alpha1.MeasurePhase{Workloads: []v1alpha1.NamedWorkload{
		{Name: "reads", Volume: reads, OLTP: &v1alpha1.OLTPWorkload{Duration: runstest.Lasting(time.Minute)}},
		{Name: "log", Volume: log, Redo: &v1alpha1.RedoWorkload{Duration: runstest.Lasting(time.Minute)}},
	}}}
}

func TestWhatIsNotDoneYet(t *testing.T) {
	phases := []v1alpha1.Phase{runstest.Phase("fill")}
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
			(*p)[0].Measure = &v1alpha1.MeasurePhase{
				Workload: v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}}, Operate: &v1alpha1.PoolAction{}}
		}, ""},
		"postgres on a device": {func(z *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			z.Dataset = &v1alpha1.DatasetTemplate{Type: naming.DatasetVolume}
			(*p)[0].Measure = &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{}}}
		}, "needs a file system"},
		"fio without a size": {func(_ *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) { (*p)[0].Measure = unsized() },
			"job [a] does not say how large its file is: write size=64m"},
		"fio without a size on a device": {func(z *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			z.Dataset, (*p)[0].Measure = &v1alpha1.DatasetTemplate{Type: naming.DatasetVolume}, unsized()
		}, ""},
		"cold redo": {func(_ *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			(*p)[0].Measure = &v1alpha1.MeasurePhase{Cache: v1alpha1.CacheCold, Workload: v1alpha1.Workload{Redo: &v1alpha1.RedoWorkload{}}}
		}, "write cache: Any"},
		"no such volume": {func(_ *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) { (*p)[0].Volume = "log" }, `volume "log"`},
		"workloads together": {func(z *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			z.Volumes, *p = []v1alpha1.AdditionalVolume{{Name: "log"}}, append(*p, together("data", "log"))
		}, ""},
		"workloads on no such volume": {func(_ *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) { *p = append(*p, together("data", "log")) },
			`volume "log"`},
		"workloads on a device": {func(z *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			z.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Dataset: &v1alpha1.DatasetTemplate{Type: naming.DatasetVolume}}}
			*p = append(*p, v1alpha1.Phase{Name: "fill-log", Volume: "log", Fill: &v1alpha1.FillPhase{}}, together("log", "data"))
			(*p)[2].Volume = "log"
			(*p)[2].Measure.Workloads[0].OLTP.Workers, (*p)[2].Measure.Workloads[0].OLTP.Layout = 4, "FilePerWorker"
		}, "workload reads: oltp needs a file system"},
		"workloads without data": {func(z *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			z.Volumes, *p = []v1alpha1.AdditionalVolume{{Name: "log"}}, append(*p, together("log", "data"))
		}, "works on the data of volume log"},
		"workloads elsewhere": {func(z *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			z.Volumes, *p = []v1alpha1.AdditionalVolume{{Name: "log"}}, append(*p, together("data", "data"))
			(*p)[1].Volume = "log"
		}, "write volume: data in the phase"},
		"workloads apart": {func(_ *v1alpha1.ZFSTarget, p *[]v1alpha1.Phase) {
			*p = append(*p, together("data", "data"))
			(*p)[1].Measure.Workloads[1].Redo.Duration = runstest.Lasting(time.Hour)
		}, "write the same duration"},
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
	target := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Pool: pool("/dev/a"),
		Volumes: []v1alpha1.AdditionalVolume{{Name: "log", Pool: ptr.To(pool("/dev/l"))}},
		PerNode: []v1alpha1.NodePool{{NodeName: "n2", Pool: pool("/dev/b")}}}}
	for node, disk := range map[string]v1alpha1.DevicePath{"n1": "/dev/a", "n2": "/dev/b"} {
		got := ResolveTarget(target, node, "", volume.ProvisionerLocal).ZFS
		if got.Pool.Vdevs[0].Devices[0] != disk || got.PerNode != nil || got.Dataset.Provisioner != volume.ProvisionerLocal ||
			got.Volumes[0].Dataset.Type != "Filesystem" {
			t.Errorf("on node %s: %+v", node, got)
		}
	}
	if target.ZFS.Dataset != nil || len(target.ZFS.PerNode) != 1 {
		t.Error("the spec itself was changed")
	}
	if class := ResolveTarget(v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{}}, "n1", "fast",
		"").StorageClass.Name; class != "fast" {
		t.Errorf("class %q", class)
	}
}

// TestACopyOfTheDataIsData: what a fill wrote and a copy brought to another volume can be measured there.
func TestACopyOfTheDataIsData(t *testing.T) {
	fill := v1alpha1.Phase{Name: "f", Fill: &v1alpha1.FillPhase{}}
	files := func(action v1alpha1.CopyAction) v1alpha1.Phase {
		return v1alpha1.Phase{Name: "c", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{Copy: &action}}}
	}
	scan := v1alpha1.Phase{Name: "s", Volume: "fresh", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}}
	whole := v1alpha1.CopyAction{Dataset: "data", ToVolume: "fresh", To: "fresh"}
	nothing := []string{"volume fresh", "copies data to it"}
	for name, c := range map[string]struct {
		phases []v1alpha1.Phase
		says   []string
	}{
		"copied":                 {[]v1alpha1.Phase{fill, files(whole), scan}, nil},
		"not copied":             {[]v1alpha1.Phase{fill, scan}, nothing},
		"nothing to copy":        {[]v1alpha1.Phase{files(whole), fill, scan}, nothing},
		"later":                  {[]v1alpha1.Phase{fill, scan, files(whole)}, nothing},
		"beside it":              {[]v1alpha1.Phase{fill, files(v1alpha1.CopyAction{Dataset: "data", ToVolume: "fresh", To: "old"}), scan}, nothing},
		"on the pool it is from": {[]v1alpha1.Phase{fill, files(v1alpha1.CopyAction{Dataset: "data", To: "fresh"}), scan}, nothing},
	} {
		target := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetPool, Volumes: []v1alpha1.AdditionalVolume{{Name: "fresh"}}}}
		checkRefusal(t, name, checkTarget(&Slot{Variant: "v", Target: target, Phases: c.phases}), c.says)
	}
}

// unsized is a fio job without a size.
func unsized() *v1alpha1.MeasurePhase {
	return &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[a]\nrw=randwrite"}}}
}
