package plan

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestDataComesFirst: what nobody has written can be neither read nor aged, and saying so takes no run.
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
		"filled":         {[]v1alpha1.Phase{{Name: "f", Fill: fill}, {Name: "a", Fragment: age}, {Name: "s", Measure: scan}}, ""},
		"appends only":   {[]v1alpha1.Phase{{Name: "w", Measure: appends}}, ""},
		"read":           {[]v1alpha1.Phase{{Name: "r", Measure: read}, {Name: "f", Fill: fill}}, `phase r of variant "v" works on the data of volume data`},
		"scanned":        {[]v1alpha1.Phase{{Name: "w", Measure: appends}, {Name: "s", Measure: scan}}, "phase s "},
		"aged":           {[]v1alpha1.Phase{{Name: "a", Fragment: age}}, "put one before it, such as {name: fill, fill: {to: 50%}}"},
		"another volume": {[]v1alpha1.Phase{{Name: "f", Fill: fill, Volume: "log"}, {Name: "s", Measure: scan}}, "volume data"},
		"its name":       {[]v1alpha1.Phase{{Name: "f", Fill: fill}, {Name: "s", Measure: scan, Volume: VolumeData}}, ""},
	} {
		err := checkTarget(&Slot{Variant: "v", Phases: c.phases})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
