package e2e

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/test/lab"
	"github.com/storagebench/storagebench/test/lab/vm"
)

// freeSeconds is how much a disk does at once after a pause, before its throttle takes hold.
const freeSeconds = 0.1

// defaultClass: what a user tries first, on whatever class is the default.
func defaultClass(t *testing.T) {
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	before := s.settled()
	benchmark := s.benchmark("first", `
target: {storageClass: {size: 256Mi}}
phases:
- {name: fill, fill: {to: 50%}}
- {name: oltp, measure: {workload: {oltp: {workers: 4, updatePercent: 25, duration: 10s}}}}
- {name: scan, measure: {workload: {scan: {regions: 4}}}}
- {name: redo, measure: {workload: {redo: {writers: 2, duration: 5s}}}}
gates:
- {name: three-reads-per-write, expression: "phase('oltp').readOperationsPerSecond >= 3.0 * phase('oltp').writeOperationsPerSecond"}
- {name: scans, expression: "phase('scan').readBytesPerSecond >= 1e6"}
`)
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	g.Expect(benchmark.Status.StorageClass).To(gomega.Equal(lab.PathClass))
	g.Expect(slices.Sorted(maps.Keys(o.documents))).To(gomega.Equal([]string{"fill", "oltp", "redo", "scan"}))
	for name, document := range o.documents {
		plausible(g, document, made.Files)
		g.Expect(document.Environment).To(gomega.HaveKeyWithValue("workload.direct", "true"), name)
	}
	g.Expect(o.documents["fill"].Metrics["allocatedBytes"]).To(gomega.BeNumerically("~", 128<<20, 2<<20))
	g.Expect(o.documents["scan"].Metrics["readBytes"]).To(gomega.BeNumerically("~", 128<<20, 2<<20), "all that was filled is read once")
	g.Expect(o.junitOf(g)).To(gomega.Equal(junit{Tests: 3}), o.junit) // the gates and the runs
	s.leavesNothing(before, benchmark)
}

// blockVolume: on a whole disk, random and sequential reads find the limits of the disk. An emulated machine reaches them with ease, even
// if other programs run at the same time, so that the disk is measured and not the machine. A busy machine may be slower, so a lower figure
// is measured again; a higher one is wrong at once.
func blockVolume(t *testing.T) {
	disk := needsBlockVolume(t, 300, 10<<20)
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	before := s.settled()
	for attempt := 1; ; attempt++ {
		o := s.wholeDisk(fmt.Sprintf("block-%d", attempt), disk)
		iops, bytes := o.documents["oltp"].Metrics["readOperationsPerSecond"], o.documents["scan"].Metrics["readBytesPerSecond"]
		fmt.Printf("block volume: %d IOPS of %d, %.1f of %.1f MB/s\n", iops, disk.IOPS, float64(bytes)/1e6, float64(disk.BytesPerSecond)/1e6)
		g.Expect(float64(iops)).To(gomega.BeNumerically("<=", (1+tolerance)*float64(disk.IOPS)))
		g.Expect(float64(bytes)).To(gomega.BeNumerically("<=", (1+tolerance)*float64(disk.BytesPerSecond)))
		if float64(iops) >= (1-tolerance)*float64(disk.IOPS) && float64(bytes) >= (1-tolerance)*float64(disk.BytesPerSecond) {
			break
		}
		if attempt == attempts {
			t.Fatalf("%d times less was measured than the disk does; the regions of the last scan reached from %d to %d bytes per second", attempts,
				o.documents["scan"].Metrics["slowestRegionReadBytesPerSecond"], o.documents["scan"].Metrics["fastestRegionReadBytesPerSecond"])
		}
	}
	s.leavesNothing(before)
}

// wholeDisk fills a block volume and reads it at random and in order.
func (s *space) wholeDisk(name string, disk vm.Disk) outcome {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	benchmark := s.benchmark(name, `
target: {storageClass: {name: `+lab.BlockClass+`, volumeMode: Block, size: 100Mi}}
phases:
- {name: fill, fill: {size: 100Mi}}
- {name: oltp, measure: {workload: {oltp: {workers: 4, rampUp: 2s, duration: 10s}}}}
- {name: scan, measure: {workload: {scan: {}}}}
gates:
- {name: reads, expression: "phase('oltp').readOperationsPerSecond >= 1.0"}
`)
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	for _, document := range o.documents {
		plausible(g, document, disk)
	}
	g.Expect(o.documents["scan"].Metrics["readBytes"]).To(gomega.BeEquivalentTo(100 << 20))
	random := o.documents["oltp"].Metrics // each read of 8 KiB is one read of the disk, which has a limit and so is always busy
	g.Expect(random["diskReadsPerReadMilli"]).To(gomega.BeNumerically("~", 1000, 50))
	g.Expect(random["diskReadRequestBytes"]).To(gomega.BeNumerically("~", 8<<10, 400))
	g.Expect(random["diskBusyPartsPerMillion"]).To(gomega.BeNumerically(">", 500_000))
	g.Expect(random["diskReadLatencyMeanNanoseconds"]).To(gomega.BeNumerically(">", 0))
	s.stop(benchmark)
	return o
}

// failedGate: numbers that are valid, but not good enough.
func failedGate(t *testing.T) {
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	before := s.settled()
	benchmark := s.benchmark("strict", `
target: {storageClass: {size: 64Mi}}
phases:
- {name: fill, fill: {to: 50%}}
- {name: oltp, measure: {workload: {oltp: {workers: 2, duration: 5s}}}}
gates:
- {name: reads, expression: "phase('oltp').readOperationsPerSecond >= 1.0"}
- {name: miracle, expression: "phase('oltp').readOperationsPerSecond >= 1e8"}
`)
	o := s.ended(benchmark, v1alpha1.VerdictFailed)
	g.Expect(o.experiment.Runs[0].Valid).To(gomega.BeTrue(), o.experiment.Runs[0].Message)
	verdicts := map[string]v1alpha1.Verdict{}
	for _, gate := range benchmark.Status.Gates {
		verdicts[string(gate.Name)] = gate.Verdict
		g.Expect(gate.Message).To(gomega.ContainSubstring(fmt.Sprint(o.documents["oltp"].Metrics["readOperationsPerSecond"])),
			"the figure is reported")
	}
	g.Expect(verdicts).To(gomega.Equal(map[string]v1alpha1.Verdict{"reads": v1alpha1.VerdictPassed, "miracle": v1alpha1.VerdictFailed}))
	g.Expect(o.junitOf(g)).To(gomega.Equal(junit{Tests: 3, Failures: 1}), o.junit)
	s.leavesNothing(before, benchmark)
}

// plausible checks that something was done, that it was not more than the disk allows, and that amounts, rates and times agree with each
// other.
func plausible(g *gomega.WithT, document results.PhaseDocument, disk vm.Disk) {
	m := document.Metrics
	g.Expect(document.Outcome).To(gomega.Equal(results.OutcomeValid), "%s: %s", document.Reason, document.Message)
	for _, check := range document.Checks {
		g.Expect(check.Passed).To(gomega.BeTrue(), "%s of phase %s: %s", check.Name, document.Phase, check.Message)
	}
	seconds := float64(m["durationNanoseconds"]) / 1e9
	operations, bytes := m["readOperations"]+m["writeOperations"], m["readBytes"]+m["writtenBytes"]
	g.Expect(seconds).To(gomega.BeNumerically(">", 0.1), document.Phase)
	g.Expect(seconds).To(gomega.BeNumerically("<=", document.FinishedAt.Sub(document.StartedAt).Seconds()+0.01), document.Phase)
	g.Expect(operations).To(gomega.BeNumerically(">", 0), document.Phase)
	g.Expect(float64(operations)).To(gomega.BeNumerically("<=", limit(disk.IOPS)*(seconds*(1+tolerance)+freeSeconds)), document.Phase)
	g.Expect(float64(bytes)).To(gomega.BeNumerically("<=", limit(disk.BytesPerSecond)*(seconds*(1+tolerance)+freeSeconds)), document.Phase)
	g.Expect(m["ioErrors"]).To(gomega.BeZero(), document.Phase)
	for rate, amount := range map[string]string{"readBytesPerSecond": "readBytes", "readOperationsPerSecond": "readOperations",
		"writeBytesPerSecond": "writtenBytes", "writeOperationsPerSecond": "writeOperations"} {
		g.Expect(m[rate]).To(gomega.BeNumerically("~", float64(m[amount])/seconds, 1), "%s of phase %s", rate, document.Phase)
	}
	for _, of := range []string{"read", "write"} {
		if m[of+"Operations"] > 0 {
			quantiles := []int64{1}
			for _, percent := range []int64{50, 95, 99} {
				latency, known := m[fmt.Sprintf("%sLatencyP%dNanoseconds", of, percent)]
				g.Expect(known).To(gomega.Equal(m[of+"Operations"] >= stats.NeededFor(percent*10_000)),
					"P%d of %d %s operations of phase %s", percent, m[of+"Operations"], of, document.Phase)
				if known {
					quantiles = append(quantiles, latency)
				}
			}
			quantiles = append(quantiles, m[of+"LatencyMaxNanoseconds"])
			g.Expect(slices.IsSorted(quantiles)).To(gomega.BeTrue(), "%s latencies of phase %s: %v", of, document.Phase, quantiles)
		}
	}
	fmt.Printf("%s: %d operations and %.1f MiB in %.2f s\n", document.Phase, operations, float64(bytes)/(1<<20), seconds)
}

// junit is what a CI system counts.
type junit struct{ Tests, Failures, Errors, Skipped int }

func (o outcome) junitOf(g *gomega.WithT) junit {
	var suites struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Errors   int `xml:"errors,attr"`
			Skipped  int `xml:"skipped,attr"`
		} `xml:"testsuite"`
	}
	g.Expect(xml.Unmarshal([]byte(o.junit), &suites)).To(gomega.Succeed())
	g.Expect(suites.Suites).To(gomega.HaveLen(1))
	return junit(suites.Suites[0])
}
