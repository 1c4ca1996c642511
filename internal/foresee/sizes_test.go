package foresee

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestSizes: sizes that no storage has would overflow, so that a fill "to 50% of -3298534883296Mi" was refused for no good reason.
func TestSizes(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	size := func(text string) v1alpha1.Size { return v1alpha1.Size{Quantity: resource.MustParse(text)} }
	class := func(s *spec, text string) {
		s.Target = v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{Name: "fast", Size: size(text)}}
	}
	dataset := func(s *spec, text string) { s.Target.ZFS.Dataset.Size = new(size(text)) }
	filled := func(s *spec, text string) {
		s.Phases[0].Fill = &v1alpha1.FillPhase{Size: &v1alpha1.Amount{Quantity: resource.MustParse(text)}}
	}
	const says = `it is larger than any storage (variant "default"): write at most 4Ei`
	foresee(t, map[string]foreseen{
		"a class":            {func(s *spec) { class(s, "8Ei") }, "spec.target.storageClass.size: " + says},
		"beyond 64 bits":     {func(s *spec) { class(s, "900Ei") }, "spec.target.storageClass.size: " + says},
		"a class that fits":  {func(s *spec) { class(s, "4Ei") }, ""},
		"a dataset":          {func(s *spec) { dataset(s, "5Ei") }, "spec.target.zfs.dataset.size: " + says},
		"a fill":             {func(s *spec) { filled(s, "7Ei") }, "spec.phases[0].fill.size: " + says},
		"the largest, twice": {func(s *spec) { dataset(s, "4Ei"); filled(s, "4Ei") }, ""},
		"too many fills": {func(s *spec) {
			dataset(s, "4Ei")
			filled(s, "4Ei")
			s.Phases = append(s.Phases, v1alpha1.Phase{Name: "more", Fill: s.Phases[0].Fill})
		}, "spec.phases[2]: with what was written before, the volume would hold"},
		"a database": {func(s *spec) {
			s.Phases[1].Measure.Workload = v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{DatabaseSize: new(size("5Ei"))}}
		}, "spec.phases[1].measure.workload.postgres.databaseSize: " + says},
		"of the matrix": {func(s *spec) {
			class(s, "1Gi")
			s.Matrix = v1alpha1.Matrix{"storageClass.size": {"1Gi", "5Ei"}}
		}, `spec.target.storageClass.size: it is larger than any storage (variant "storageClass.size=5Ei")`},
	})
}

// TestWritable: a dataset that the runner cannot write to, or not as much as it should hold, is refused before anything runs.
func TestWritable(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	set := func(s *spec, name, value string) {
		s.Target.ZFS.Dataset.Size = &v1alpha1.Size{Quantity: resource.MustParse("20Gi")}
		s.Target.ZFS.Dataset.Properties = v1alpha1.Properties{name: v1alpha1.PropertyValue(value)}
	}
	const small = "the dataset cannot become as large as its size, 20Gi: write a smaller size"
	foresee(t, map[string]foreseen{
		"readonly": {func(s *spec) { set(s, "readonly", "on") }, "spec.target.zfs.dataset.properties.readonly: the runner writes to each volume"},
		"writable": {func(s *spec) { set(s, "readonly", "off") }, ""},
		"inherited": {func(s *spec) { s.Target.ZFS.Pool.RootProperties = v1alpha1.Properties{"readonly": "on"} },
			"spec.target.zfs.pool.rootProperties.readonly: the runner writes"},
		"a volume that nothing uses": {func(s *spec) {
			set(s, "atime", "on")
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "spare", PoolOf: "data",
				Dataset: &v1alpha1.DatasetTemplate{Properties: v1alpha1.Properties{"readonly": "on"}}}}
		}, ""},
		"quota":        {func(s *spec) { set(s, "quota", "10G") }, "spec.target.zfs.dataset.properties.quota: " + small + ", and remove quota"},
		"refquota":     {func(s *spec) { set(s, "refquota", "21474836479") }, "spec.target.zfs.dataset.properties.refquota: " + small},
		"enough quota": {func(s *spec) { set(s, "quota", "20G") }, ""},
		"no quota":     {func(s *spec) { set(s, "quota", "none") }, ""},
		"quota of 0":   {func(s *spec) { set(s, "quota", "0") }, ""},
	})
}
