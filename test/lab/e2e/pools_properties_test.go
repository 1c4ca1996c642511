package e2e

import (
	"fmt"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

// properties: requested properties are in effect, according to ZFS itself and to the counters. It is one benchmark, with a variant for each
// property.
func (p *pools) properties() {
	g := gomega.NewWithT(p.t)
	s := p.team()
	before := s.settled()
	benchmark := s.benchmark("properties", p.paths(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [$1]}], log: [{devices: [$2]}], ashift: 12}
    dataset: {size: 1Gi, properties: {recordsize: 8k, compression: "off"}}
variants:
- {name: base}
- {name: ashift9, set: {pool.ashift: 9}}
- {name: ashift13, set: {pool.ashift: 13}}
- {name: r128k, set: {dataset.recordsize: 128k}}
- {name: throughput, set: {dataset.logbias: throughput}}
- {name: uncached, set: {dataset.primarycache: metadata}}
- {name: lz4, set: {dataset.compression: lz4}}
phases:
- {name: fill, fill: {size: 64Mi, compressibility: 75%}}
- {name: warm, measure: {workload: {oltp: {workers: 1, duration: 10s}}}}
- {name: redo, measure: {workload: {redo: {duration: 5s}}}}
- {name: cold, operate: {exportImport: {}}}
- {name: read, measure: {workload: {oltp: {workers: 4, duration: 5s}}}}
gates: # the disks are read in the ramp already, and the sizes of their requests are counted from the start of the pod
- name: whole-records
  expression: "variant('r128k').phase('read').mode('diskReadRequestSize') > 4.0 * variant('base').phase('read').mode('diskReadRequestSize')"
`))
	experiment := s.completed(benchmark)
	property := func(variant, name string) string {
		for _, run := range experiment.Runs {
			if run.Variant == variant {
				return run.Volumes[0].Properties[name]
			}
		}
		return "no run"
	}
	metric := func(variant, phase, name string) int64 { return medianFor(p, experiment, variant, phase, name) }
	for _, want := range []struct{ variant, property, value string }{
		{"base", "pool.ashift", "12"}, {"ashift9", "pool.ashift", "9"}, {"ashift13", "pool.ashift", "13"},
		{"base", "recordsize", "8192"}, {"r128k", "recordsize", "131072"},
		{"base", "logbias", "latency"}, {"throughput", "logbias", "throughput"},
		{"base", "primarycache", "all"}, {"uncached", "primarycache", "metadata"},
		{"base", "compression", "off"}, {"lz4", "compression", "lz4"},
	} {
		g.Expect(property(want.variant, want.property)).To(gomega.Equal(want.value), want.variant)
	}
	// Blocks of 8 KiB: the metadata that is written with them takes whole sectors.
	show := func(what, a, b string, phase, name string) (int64, int64) {
		x, y := metric(a, phase, name), metric(b, phase, name)
		fmt.Printf("properties: %s: %s %s of %s is %d, of %s %d\n", what, phase, name, a, x, b, y)
		return x, y
	}
	small, large := show("ashift", "ashift9", "ashift13", "fill", "poolAllocatedBytes")
	g.Expect(large).To(gomega.BeNumerically(">", small))
	g.Expect(benchmark.Status.Verdict).To(gomega.Equal(v1alpha1.VerdictPassed), "%+v", experiment.Gates)
	hit, missed := show("primarycache", "base", "uncached", "warm", "diskReadsPerReadMilli")
	g.Expect(missed).To(gomega.BeNumerically(">", 10*max(hit, 10)))
	plain, packed := show("compression", "base", "lz4", "fill", "poolAllocatedBytes")
	g.Expect(float64(packed)).To(gomega.BeNumerically("<", 0.7*float64(plain)))
	logged, direct := p.writtenTo(experiment, "base", "redo", 2), p.writtenTo(experiment, "throughput", "redo", 2)
	fmt.Printf("properties: logbias: %d bytes to the log device with latency, %d with throughput\n", logged, direct)
	g.Expect(logged).To(gomega.BeNumerically(">", 1<<20))
	g.Expect(direct).To(gomega.BeNumerically("<", logged/4))
	s.leavesNothing(before, benchmark)
}

func medianFor(p *pools, experiment results.Experiment, variant, phase, name string) int64 {
	p.t.Helper()
	for _, found := range experiment.Variants {
		for _, of := range found.Phases {
			for _, metric := range of.Metrics {
				if found.Name == variant && of.Name == phase && metric.Name == name {
					return metric.Median
				}
			}
		}
	}
	p.t.Fatalf("variant %s has no %s in phase %s", variant, name, phase)
	return 0
}

// writtenTo returns how much was written to a disk while a phase ran, as its agent counted.
func (p *pools) writtenTo(experiment results.Experiment, variant, phase string, disk int) int64 {
	p.t.Helper()
	s := &space{t: p.t, name: teamNamespace}
	for _, run := range experiment.Runs {
		for _, of := range run.Phases {
			if run.Variant != variant || of.Name != phase {
				continue
			}
			stored := s.configMap(of.ConfigMap)
			series, err := poolseries.Unpack(stored.BinaryData[results.KeyPool], stored.Data[results.KeyPoolDigest])
			if err != nil {
				p.t.Fatal(err)
			}
			for _, vdev := range series.Vdevs {
				if vdev.Disk && vdev.Name == "virtio-"+p.node+"-"+p.disks[disk-1].Name {
					return vdev.Totals.WriteBytes
				}
			}
			p.t.Fatalf("disk %d is not among %+v", disk, series.Vdevs)
		}
	}
	p.t.Fatalf("variant %s has no phase %s", variant, phase)
	return 0
}
