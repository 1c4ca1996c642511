package foresee

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestEffectsThatAreAlike: comparisons whose variants do the same.
func TestEffectsThatAreAlike(t *testing.T) {
	type values = v1alpha1.MatrixValues
	compressed := func(change func(*effectSpec)) func(*effectSpec) {
		return func(s *effectSpec) { change(s); s.Phases[0].Fill.Compressibility = "60%" }
	}
	algorithms, scan := values{"off", "lz4", "zstd-3"}, v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}
	large := *ofSmall.DeepCopy()
	large.Metadata.FileSize = &v1alpha1.BlockSize{Quantity: resource.MustParse("64Ki")}
	const path = "warning: spec.matrix[dataset."
	foresee(t, map[string]foreseen{
		"algorithms":               {compressed(comparing("compression", algorithms, scan)), path + "compression]: any algorithm compresses"},
		"one of them and off":      {compressed(comparing("compression", values{"off", "lz4"}, scan)), ""},
		"algorithms on a database": {comparing("compression", algorithms, ofTables), ""},
		"unknown jobs":             {compressed(comparing("compression", algorithms, elsewhere)), ""},
		"direct":                   {comparing("direct", values{"disabled", "standard"}, scan), path + "direct]: no phase requests direct I/O"},
		"direct always":            {comparing("direct", values{"disabled", "always"}, scan), ""},
		"direct jobs":              {comparing("direct", values{"disabled", "standard"}, jobFile("rw=read", "direct=1")), ""},
		"atime":                    {comparing("atime", values{"on", "off"}, ofSmall), path + "atime]: metadata phases read no files"},
		"atime, files are read":    {comparing("atime", values{"on", "off"}, ofSmall, scan), ""},
		"recordsize":               {comparing("recordsize", values{"16k", "128k"}, ofSmall), path + "recordsize]: files of at most 4k"},
		"recordsize, larger files": {comparing("recordsize", values{"16k", "128k"}, large), ""},
	})
}

// TestCachesThatHoldNothing: a phase that expects its reads from memory, where no data stays, would be Invalid each time.
func TestCachesThatHoldNothing(t *testing.T) {
	warm := func(value string) func(*effectSpec) {
		return func(s *effectSpec) {
			s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{"primarycache": v1alpha1.PropertyValue(value)}
			s.Phases[1].Measure.Cache = v1alpha1.CacheWarm
		}
	}
	const field = "spec.phases[1].measure.cache: "
	foresee(t, map[string]foreseen{
		"all": {warm("all"), ""}, "none": {warm("none"), field + "primarycache: none"}, "metadata": {warm("metadata"), field + "primarycache: metadata"},
		"changed": {func(s *effectSpec) {
			warm("none")(s)
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "set", Operate: &v1alpha1.OperatePhase{PoolAction: v1alpha1.PoolAction{
				SetProperty: &v1alpha1.SetPropertyAction{Dataset: "data", Properties: v1alpha1.LiveProperties{"primarycache": "all"}}}}})
		}, ""},
	})
}
