package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/test/lab/vm"
)

// tolerance is how far fio's figures may be from a limit.
const tolerance = 0.02

// Block sizes of the two measurements. 512 KiB is one request of the disk, because QEMU takes up to 254 pages at once. 1 MiB
// would be one request or two, depending on the layout of the memory.
const (
	smallBlock = 4 << 10
	largeBlock = 512 << 10
)

// TestThrottles: plain fio finds the limits of every disk, and those of a disk whose limits are changed while it runs.
func TestThrottles(t *testing.T) {
	long(t)
	s := newSpace(t, levelPrivileged)
	for _, node := range nodes {
		s.create(s.newPod("fio-"+node, on(node), privileged))
	}
	for _, node := range nodes {
		pod := s.ready("fio-" + node).Name
		for _, disk := range disks() {
			if disk.Slow() {
				continue // its service times are below its limits: TestServiceTimes
			}
			t.Run(node+"/"+disk.Name, func(t *testing.T) {
				s.in(t).readBack(pod, node, disk)
			})
		}
	}
	t.Run("changed", func(t *testing.T) {
		node, disk := nodes[0], disks()[0]
		t.Cleanup(func() {
			ctx, cancel := afterwards(t)
			defer cancel()
			if err := restoreDisk(ctx, node, disk); err != nil {
				t.Error(err)
			}
		})
		changed := disk
		changed.IOPS, changed.BytesPerSecond = 400, 20<<20
		if err := theLab.Disk(t.Context(), node, disk.Name, "throttle", changed.IOPS, changed.BytesPerSecond); err != nil {
			t.Fatal(err)
		}
		s.in(t).readBack("fio-"+node, node, changed)
	})
}

// attempts is how often a test tries to reach a limit: a machine that is busy with something else may be too slow for it. No attempt may
// exceed the limit.
const attempts = 4

// readBack measures both limits of a disk and compares them.
func (s *space) readBack(pod, node string, disk vm.Disk) {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	if disk.IOPS == 0 && disk.BytesPerSecond == 0 {
		s.t.Skip("this disk has no limits")
	}
	wantedIOPS := math.Min(limit(disk.IOPS), limit(disk.BytesPerSecond)/smallBlock)
	wantedBytes := math.Min(limit(disk.BytesPerSecond), limit(disk.IOPS)*largeBlock)
	for attempt := 1; ; attempt++ {
		iops, _ := s.fio(pod, device(node, disk.Name), "randread", smallBlock)
		_, bytes := s.fio(pod, device(node, disk.Name), "read", largeBlock)
		fmt.Printf("disk %s/%s: %.0f IOPS of %.0f, %.1f of %.1f MB/s\n", node, disk.Name, iops, wantedIOPS, bytes/1e6, wantedBytes/1e6)
		g.Expect(iops).To(gomega.BeNumerically("<=", (1+tolerance)*wantedIOPS), "IOPS above the limit")
		g.Expect(bytes).To(gomega.BeNumerically("<=", (1+tolerance)*wantedBytes), "bytes per second above the limit")
		if attempt < attempts && (iops < (1-tolerance)*wantedIOPS || bytes < (1-tolerance)*wantedBytes) {
			continue
		}
		g.Expect(iops).To(gomega.BeNumerically(">=", (1-tolerance)*wantedIOPS), "IOPS")
		g.Expect(bytes).To(gomega.BeNumerically(">=", (1-tolerance)*wantedBytes), "bytes per second")
		return
	}
}

// limit returns infinity if there is no limit.
func limit(value int64) float64 {
	if value == 0 {
		return math.Inf(1)
	}
	return float64(value)
}

// fio reads a disk for a few seconds and returns operations and bytes per second. The first seconds do not count: during them
// the throttle lets through a burst that it has saved up while the disk was idle.
func (s *space) fio(pod, device, pattern string, block int) (iops, bytes float64) {
	s.t.Helper()
	output := s.must(pod, `fio --name=limit --filename="$1" --readonly --direct=1 --ioengine=libaio --rw="$2" --bs="$3" --iodepth=16 \
		--norandommap --randrepeat=0 --time_based --ramp_time=2 --runtime=8 --output-format=json`, device, pattern, fmt.Sprint(block))
	var report struct {
		Jobs []struct {
			Error int `json:"error"`
			Read  struct {
				IOPS  float64 `json:"iops"`
				Bytes float64 `json:"bw_bytes"`
			} `json:"read"`
		} `json:"jobs"`
	}
	// Warnings come before the JSON.
	if err := json.Unmarshal([]byte(output[max(strings.Index(output, "{"), 0):]), &report); err != nil || len(report.Jobs) != 1 ||
		report.Jobs[0].Error != 0 {
		s.t.Fatalf("fio on %s (%v): %s", device, err, output)
	}
	return report.Jobs[0].Read.IOPS, report.Jobs[0].Read.Bytes
}
