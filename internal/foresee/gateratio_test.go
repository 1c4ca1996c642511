package foresee

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestRatiosOfLayouts: the compression ratio includes the space of padding, parity and copies, so no gate should compare layouts by it.
func TestRatiosOfLayouts(t *testing.T) {
	type devices = []v1alpha1.DevicePath
	raidz := []v1alpha1.Vdev{{Type: "raidz1", Devices: devices{"/dev/disk/by-id/x", "/dev/disk/by-id/y", "/dev/disk/by-id/z"}}}
	judging := func(one v1alpha1.Gate, changes ...func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) {
			one.Name, s.Gates, s.Phases[0].Fill.Compressibility = "g", []v1alpha1.Gate{one}, "60%"
			for _, change := range changes {
				change(s)
			}
		}
	}
	ofRaidz := func(s *effectSpec) { s.Target.ZFS.Pool.Vdevs = raidz }
	copied := func(s *effectSpec) { s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"copies": "2"} }
	compressed := func(s *effectSpec) { s.Matrix = v1alpha1.Matrix{"dataset.compression": {"off", "lz4"}} }
	layouts := func(s *effectSpec) {
		s.Variants = []v1alpha1.Variant{{Name: "plain"}, {Name: "raidz", Pool: &v1alpha1.PoolOverride{Vdevs: raidz}}}
	}
	const metric = "fill.compressionRatioMilli"
	bound := v1alpha1.Gate{Bound: &v1alpha1.BoundGate{Metric: metric, Min: "1800"}}
	against := func(variant v1alpha1.VariantParts) v1alpha1.Gate {
		return v1alpha1.Gate{Ratio: &v1alpha1.RatioGate{Of: metric, ToVariant: variant, Min: "2x"}}
	}
	history := v1alpha1.Gate{Compare: &v1alpha1.CompareGate{Metric: metric, To: "History"}}
	expression := func(text string) v1alpha1.Gate { return v1alpha1.Gate{Expression: text} }
	const twice = "variant('dataset.compression=lz4').phase('fill').compressionRatioMilli > " +
		"2.0 * variant('dataset.compression=off').phase('fill').compressionRatioMilli"
	const warns = "warning: spec.gates[0]."
	foresee(t, map[string]foreseen{
		"a bound":                {judging(bound), ""},
		"a bound, raidz":         {judging(bound, ofRaidz), warns + "bound.metric: all of them (raidz1 of 3): compare it with a variant of the same layout"},
		"a bound, copies":        {judging(bound, copied), warns + "bound.metric: (copies: 2): compare"},
		"a bound, raidz, copies": {judging(bound, ofRaidz, copied), warns + "bound.metric: (raidz1 of 3 with copies: 2): compare"},
		"compressions":           {judging(against("dataset.compression=off"), ofRaidz, compressed), ""},
		"of each layout":         {judging(against("dataset.compression=off"), layouts, compressed), ""},
		"layouts":                {judging(against("plain"), layouts), warns + "ratio: (raidz1 of 3): compare"},
		"a history":              {judging(history, ofRaidz), ""},
		"an expression":          {judging(expression("phase('fill').compressionRatioMilli > 1800.0"), ofRaidz), warns + "expression: (raidz1 of 3): compare"},
		"of two variants":        {judging(expression(twice), ofRaidz, compressed), ""},
		"other metrics":          {judging(expression("phase('fill').filledBytes > 1.0"), ofRaidz), ""},
	})
}
