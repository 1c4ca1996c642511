package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/bench"
	"github.com/storagebench/storagebench/test/lab"
	"github.com/storagebench/storagebench/test/lab/vm"
)

// benchVariable is the environment variable with the name of the requested bench. Benches take minutes, and prove nothing new about a
// cluster.
const benchVariable = "BENCH"

func onlyAsBench(t *testing.T, name string) {
	t.Helper()
	if os.Getenv(benchVariable) != name {
		t.Skipf("a bench that takes minutes: 'make bench-%s' runs it", name)
	}
}

// truthSettings are the limits that the product must find. An emulated machine must reach them with ease: otherwise the machine is measured
// instead of the disk.
var truthSettings = []struct{ iops, bytesPerSecond int64 }{{400, 16 << 20}, {150, 6 << 20}}

// truthSeconds is how long each phase works. After a pause a disk does some work at once, before its throttle takes hold, and each worker
// has a request in flight at the end: with this duration, both together are less than 1% of the total.
const truthSeconds = 20

// truthPoints are the figures that phases measure, each with the limit that it must reach: operations or bytes per second.
var truthPoints = []struct {
	phase, name string
	metrics     []string
	operations  bool
}{
	{"fill", "fill, 128 KiB writes", []string{"writeBytesPerSecond"}, false},
	{"scan", "scan, 128 KiB reads", []string{"readBytesPerSecond"}, false},
	{"reads", "oltp, 8 KiB reads", []string{"readOperationsPerSecond"}, true},
	{"updates", "oltp, 8 KiB, 100% updates", []string{"readOperationsPerSecond", "writeOperationsPerSecond"}, true},
	{"large", "oltp, 128 KiB, 50% updates", []string{"readBytesPerSecond", "writeBytesPerSecond"}, false},
	{"writes", "fio, 4 KiB random writes", []string{"writeOperationsPerSecond"}, true},
}

// truthWorkers of the random reads have one request in flight each.
const truthWorkers = 8

// truthTargets are the ways in which the disks are measured: directly, and through a file system.
var truthTargets = []struct{ name, target string }{
	{"block", "{name: " + lab.BlockClass + ", volumeMode: Block, size: %d}"},
	{"files", "{name: " + lab.PathClass + ", size: %d}"},
}

// TestTruth lets the product measure disks whose limits are known, and compares.
func TestTruth(t *testing.T) {
	onlyAsBench(t, "truth")
	disks := []vm.Disk{needsBlockVolume(t, truthSettings[0].iops, truthSettings[0].bytesPerSecond), made.Files}
	installOperator(t)
	s := newSpace(t, levelRestricted)
	for at, target := range truthTargets {
		t.Run(target.name, func(t *testing.T) { s.in(t).truths(target.name, target.target, disks[at]) })
	}
}

// truths measures a disk with each of the limits.
func (s *space) truths(name, target string, disk vm.Disk) {
	t := s.t
	var points []bench.Point
	started := time.Now()
	for _, setting := range truthSettings {
		disk.IOPS, disk.BytesPerSecond = setting.iops, setting.bytesPerSecond
		breakDisk(t, nodes[0], disk, "throttle", disk.IOPS, disk.BytesPerSecond)
		points = append(points, s.truth(name, target, disk)...)
	}
	fmt.Printf("\nA StorageBenchmark (%s) on disk %s of node %s, whose limits are known (%.0f s):\n\n%s\n", name, disk.Name, nodes[0],
		time.Since(started).Seconds(), bench.Table(points, tolerance))
	for _, point := range points {
		if !point.Within(tolerance) {
			t.Errorf("%s: measured %.0f %s at a limit of %.0f, which is %+.2f%% and may be %.0f%%", point.Name, point.Measured, point.Unit,
				point.Limit, 100*point.Error(), 100*tolerance)
		}
	}
}

// truth runs one benchmark, and reads from its results what a user would read.
func (s *space) truth(name, target string, disk vm.Disk) []bench.Point {
	s.t.Helper()
	size := disk.BytesPerSecond * truthSeconds
	benchmark := s.benchmark(fmt.Sprintf("truth-%s-%d", name, disk.IOPS), "target: {storageClass: "+fmt.Sprintf(target, size+8<<20)+"}"+
		fmt.Sprintf(`
phases:
- {name: fill, fill: {size: %d}}
- {name: scan, measure: {workload: {scan: {}}}}
- {name: reads, measure: {workload: {oltp: {workers: 8, rampUp: 2s, duration: %ds}}}}
- {name: updates, measure: {workload: {oltp: {workers: 8, updatePercent: 100, rampUp: 2s, duration: %[2]ds}}}}
- {name: large, measure: {workload: {oltp: {workers: 8, blockSize: 128Ki, updatePercent: 50, rampUp: 2s, duration: %[2]ds}}}}
- name: writes
  measure:
    workload:
      fio:
        jobFile: |
          [writes]
          rw=randwrite
          bs=4k
          direct=1
          numjobs=8
          norandommap
          size=%[3]d
          time_based
          ramp_time=2s
          runtime=%[2]ds
`, size, truthSeconds, size/8)) // of eight jobs
	o := s.ended(benchmark, v1alpha1.VerdictPassed)
	var points []bench.Point
	for _, wanted := range truthPoints {
		point := bench.Point{Name: wanted.name, Unit: "MB/s", Limit: float64(disk.BytesPerSecond) / 1e6}
		scale := 1e-6
		if wanted.operations {
			point.Unit, point.Limit, scale = "IOPS", float64(disk.IOPS), 1
		}
		for _, metric := range wanted.metrics {
			value, found := medianOf(o, wanted.phase, metric)
			if !found {
				s.t.Fatalf("phase %s has no %s: %s", wanted.phase, metric, o.report)
			}
			point.Measured += scale * float64(value)
		}
		points = append(points, point)
	}
	// All workers wait all the time, so the throttle determines how long each of them waits.
	waits, found := medianOf(o, "reads", "readLatencyMeanNanoseconds")
	if !found {
		s.t.Fatalf("phase reads has no mean latency: %s", o.report)
	}
	points = append(points, bench.Point{Name: "oltp, 8 KiB reads, mean latency", Unit: "ms", Limit: 1e3 * truthWorkers / float64(disk.IOPS),
		Measured: float64(waits) / 1e6})
	s.stop(benchmark)
	return points
}

// latencyTruths are the figures that show the service times of a disk through OpenZFS. Appends and commits change a part of a record:
// with primarycache: metadata, each would read its record first, so they have a benchmark of their own.
var latencyTruths = []struct {
	benchmark, properties, phases string
	points                        []latencyPoint
}{
	{"reads", "primarycache: metadata", `
- {name: fill, fill: {size: 64Mi}}
- {name: reads, measure: {workload: {oltp: {workers: 1, blockSize: 16Ki, rampUp: 2s, duration: 20s}}}}`, []latencyPoint{
		{"a read of a record", "reads", "readLatencyMeanNanoseconds", false},
		{"the median read", "reads", "readLatencyP50Nanoseconds", false},
	}},
	{"commits", "primarycache: all", `
- {name: log, measure: {workload: {redo: {writers: 1, duration: 20s}}}}
- name: tx
  measure:
    workload:
      postgres: {databaseSize: 16Mi, clients: 1, rampUp: 5s, duration: 40s, settings: {full_page_writes: "off", checkpoint_timeout: 5min}}`,
		[]latencyPoint{
			{"an append to a log", "log", "writeLatencyMeanNanoseconds", true},
			{"the median append", "log", "writeLatencyP50Nanoseconds", true},
			{"a commit of PostgreSQL", "tx", "commitLatencyMeanNanoseconds", true},
		}},
}

// latencyPoint is a latency that equals the service time of the disk: for a request and, if it is synced, also for a flush.
type latencyPoint struct {
	name, phase, metric string
	synced              bool
}

// TestTruthOfLatencies lets the product measure a disk whose service times are known, through OpenZFS: a read that misses the cache takes as
// long as the disk, and a synchronous write as long as a write to the intent log and a flush.
func TestTruthOfLatencies(t *testing.T) {
	onlyAsBench(t, "truth")
	at := slices.IndexFunc(made.Disks, vm.Disk.Slow)
	if at < 0 {
		t.Skip("no disk of this lab has service times: make one with LAB_FLAGS='--disk 1:delay=20ms,flush=10ms,unaligned=30ms'")
	}
	p := &pools{t: t, node: nodes[0], disks: takeDisks(t, nodes[0], at+1)}
	installOperator(t, "--set", "agent.enabled=true", "--set", "agent.allowDevices={"+teamNamespace+"="+p.on(at+1)+"}")
	p.agentAvailable()
	s := p.team()
	for _, truth := range latencyTruths {
		benchmark := s.benchmark(truth.benchmark, fmt.Sprintf(`
target:
  zfs:
    nodes: {matchLabels: {storagebench.dev/lab: "true"}}
    pool: {vdevs: [{devices: [%s]}]}
    dataset: {properties: {recordsize: 16k, compression: "off", %s}}
phases:%s
`, p.on(at+1), truth.properties, truth.phases))
		o := s.ended(benchmark, v1alpha1.VerdictPassed)
		for _, point := range truth.points {
			point.check(t, o, p.disks[at])
		}
		s.stop(benchmark)
	}
}

func (point latencyPoint) check(t *testing.T, o outcome, disk vm.Disk) {
	t.Helper()
	got, found := medianOf(o, point.phase, point.metric)
	if !found {
		t.Fatalf("phase %s has no %s: %s", point.phase, point.metric, o.report)
	}
	want, most, took := disk.Delay, emulation, time.Duration(got)
	if point.synced { // a second request
		want, most = want+disk.FlushDelay, 2*emulation
	}
	fmt.Printf("%-30s %8s of the disk, measured %8s\n", point.name, want, took.Round(10*time.Microsecond))
	if took < want || took > want+most {
		t.Errorf("%s: measured %s, want %s and at most %s more, which the emulated machine may take", point.name, took, want, most)
	}
}

// medianOf returns a figure from the place from which the report takes it.
func medianOf(o outcome, phase, metric string) (int64, bool) {
	for _, variant := range o.experiment.Variants {
		for _, measured := range variant.Phases {
			for _, figure := range measured.Metrics {
				if measured.Name == phase && figure.Name == metric {
					return figure.Median, true
				}
			}
		}
	}
	return 0, false
}
