package foresee

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
)

// TestKeptDatabases: a phase can keep only a database that exists by then, in the same form.
func TestKeptDatabases(t *testing.T) {
	tx := func(on v1alpha1.VolumeName, change func(*v1alpha1.PostgresWorkload)) v1alpha1.Phase {
		given := &v1alpha1.PostgresWorkload{DatabaseSize: &v1alpha1.Size{Quantity: resource.MustParse("1Gi")}}
		change(given)
		return v1alpha1.Phase{Name: "tx", Volume: on, Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Postgres: given}}}
	}
	fresh := tx("", func(*v1alpha1.PostgresWorkload) {})
	kept := func(on v1alpha1.VolumeName, change func(*v1alpha1.PostgresWorkload)) v1alpha1.Phase {
		return tx(on, func(given *v1alpha1.PostgresWorkload) {
			given.Keep = true
			change(given)
		})
	}
	asIs := func(*v1alpha1.PostgresWorkload) {}
	operate := func(name v1alpha1.PhaseName, action v1alpha1.PoolAction) v1alpha1.Phase {
		return v1alpha1.Phase{Name: name, Operate: &v1alpha1.OperatePhase{PoolAction: action}}
	}
	clone := operate("clone", v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", As: "cloned"}})
	taken := v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Dataset: "data", Name: "s"}}
	snapshot, beside := operate("snapshot", taken), tx("", asIs)
	beside.Measure.Operate = &taken
	onLog := func(g *v1alpha1.PostgresWorkload) { g.WALVolume = "log" }
	again := operate("again", v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "cloned", Snapshot: "t", As: "twice"}})
	second := operate("second", v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Recursive: true, Name: "t"}})
	copied := operate("copy", v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", As: "copied"}})
	ofOther := operate("clone", v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "other", Snapshot: "s", As: "cloned"}})
	for name, c := range map[string]struct {
		phases []v1alpha1.Phase
		says   string
	}{
		"kept": {[]v1alpha1.Phase{fresh, kept("", asIs), kept("data", asIs)}, ""},
		"the same size": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) {
			g.DatabaseSize.Quantity = resource.MustParse("1024Mi")
		})}, ""},
		"none":       {[]v1alpha1.Phase{kept("", asIs), fresh}, "there is no database on the volume by then"},
		"elsewhere":  {[]v1alpha1.Phase{fresh, kept("log", asIs)}, "there is no database on the volume by then"},
		"in a clone": {[]v1alpha1.Phase{fresh, snapshot, clone, kept("cloned", asIs)}, ""},
		"in a clone of an older snapshot": {[]v1alpha1.Phase{snapshot, fresh, clone, kept("cloned", asIs)},
			"phase clone makes the volume of data that had no database by then"},
		"in a clone of a snapshot beside it": {[]v1alpha1.Phase{beside, clone, kept("cloned", asIs)}, ""},
		"in a clone of another size": {[]v1alpha1.Phase{fresh, snapshot, clone, kept("cloned", func(g *v1alpha1.PostgresWorkload) {
			g.DatabaseSize = nil
		})}, "write the same"},
		"in a clone of a clone":       {[]v1alpha1.Phase{fresh, snapshot, clone, second, again, kept("twice", asIs)}, ""},
		"in a clone of a dataset":     {[]v1alpha1.Phase{ofOther, kept("cloned", asIs)}, ""},
		"in a clone with a log":       {[]v1alpha1.Phase{tx("", onLog), snapshot, clone, kept("cloned", asIs)}, "write the same walVolume"},
		"in a clone with its own log": {[]v1alpha1.Phase{tx("", onLog), snapshot, clone, kept("cloned", func(g *v1alpha1.PostgresWorkload) { g.WALVolume = "made" })}, ""},
		"in a copy":                   {[]v1alpha1.Phase{fresh, copied, kept("copied", asIs)}, ""},
		"in a copy from before":       {[]v1alpha1.Phase{copied, fresh, kept("copied", asIs)}, "phase copy makes the volume"},
		"another size":                {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) { g.DatabaseSize = nil })}, "write the same"},
		"other checks": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) { g.DataChecksums = ptr.To(false) })},
			"other dataChecksums"},
		"checks, said": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) { g.DataChecksums = ptr.To(true) })}, ""},
		"another volume": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) { g.WALVolume = "log" })},
			"write the same walVolume"},
	} {
		slot := design.Slot{Variant: "v", Phases: c.phases, Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
			Volumes: []v1alpha1.AdditionalVolume{{Name: "log"}}}}}
		switch err := checkDatabases(nil, &slot); {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "postgres.keep: ")):
			t.Errorf("%s: want %q, got %v", name, c.says, err)
		}
	}
}
