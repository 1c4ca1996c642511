package experiment

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestKeptDatabases: a database is kept only where one is by then, and of the same form.
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
	clone := v1alpha1.Phase{Name: "clone", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
		Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", As: "cloned"}}}}
	for name, c := range map[string]struct {
		phases []v1alpha1.Phase
		says   string
	}{
		"kept": {[]v1alpha1.Phase{fresh, kept("", asIs), kept("data", asIs)}, ""},
		"the same size": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) {
			g.DatabaseSize.Quantity = resource.MustParse("1024Mi")
		})}, ""},
		"none":         {[]v1alpha1.Phase{kept("", asIs), fresh}, "there is no database on the volume by then"},
		"elsewhere":    {[]v1alpha1.Phase{fresh, kept("log", asIs)}, "there is no database on the volume by then"},
		"in a clone":   {[]v1alpha1.Phase{fresh, clone, kept("cloned", asIs)}, ""},
		"another size": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) { g.DatabaseSize = nil })}, "write the same"},
		"other checks": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) { g.DataChecksums = ptr.To(false) })},
			"other dataChecksums"},
		"checks, said": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) { g.DataChecksums = ptr.To(true) })}, ""},
		"another volume": {[]v1alpha1.Phase{fresh, kept("", func(g *v1alpha1.PostgresWorkload) { g.WALVolume = "log" })},
			"write the same walVolume"},
	} {
		slot := Slot{Variant: "v", Phases: c.phases, Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
			Volumes: []v1alpha1.AdditionalVolume{{Name: "log"}}}}}
		switch err := checkDatabases(nil, &slot); {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "postgres.keep: ")):
			t.Errorf("%s: want %q, got %v", name, c.says, err)
		}
	}
}
