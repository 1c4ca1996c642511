package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/test/lab/vm"
)

// emulation is how much longer a request may take than on the disk itself, in the guest and in QEMU, without KVM.
const emulation = 8 * time.Millisecond

// TestServiceTimes: plain fio finds how long a disk with service times takes for a request, alone and with others in parallel.
func TestServiceTimes(t *testing.T) {
	long(t)
	at := slices.IndexFunc(made.Disks, vm.Disk.Slow)
	if at < 0 {
		t.Skip("no disk of this lab has service times: make one with LAB_FLAGS='--disk 1:delay=20ms,flush=10ms,unaligned=30ms'")
	}
	disk := made.Disks[at]
	random := disk.Delay + disk.SeekDelay
	eight := random
	if disk.Heads > 0 {
		eight = random * time.Duration(max(8/disk.Heads, 1))
	}
	s := newSpace(t, levelPrivileged)
	s.create(s.newPod("fio", on(nodes[0]), privileged))
	pod := s.ready("fio").Name
	for _, test := range []struct {
		name, arguments string
		want            time.Duration
	}{
		{"a read", "--rw=randread --bs=4k", random},
		{"eight reads at once", "--rw=randread --bs=4k --iodepth=8", eight},
		{"a write", "--rw=randwrite --bs=4k", random},
		{"a write of half a sector", "--rw=randwrite --bs=512 --blockalign=4k", random + disk.UnalignedDelay},
		{"a flush", "--rw=randwrite --bs=4k --fdatasync=1 --ioengine=psync", disk.FlushDelay},
	} {
		t.Run(test.name, func(t *testing.T) { s.in(t).takes(pod, device(nodes[0], disk.Name), test.arguments, test.want) })
	}
}

// takes measures a latency and compares it. A machine that is busy with something else may be slower, but none is faster than the disk.
func (s *space) takes(pod, device, arguments string, want time.Duration) {
	s.t.Helper()
	for attempt := 1; ; attempt++ {
		got := s.meanLatency(pod, device, arguments)
		fmt.Printf("%s, fio %s: %s of %s\n", device, arguments, got.Round(10*time.Microsecond), want)
		switch {
		case got < want:
			s.t.Fatalf("fio %s takes %s, less than the %s of the disk", arguments, got, want)
		case got <= want+emulation:
			return
		case attempt == attempts:
			s.t.Fatalf("fio %s takes %s, want at most %s more than %s", arguments, got, emulation, want)
		}
	}
}

// meanLatency returns the mean latency of fio's requests during a few seconds: of its flushes if it makes some, otherwise of its reads and
// writes.
func (s *space) meanLatency(pod, device, arguments string) time.Duration {
	s.t.Helper()
	output := s.must(pod, `fio --name=latency --filename="$1" --direct=1 --ioengine=libaio --norandommap --randrepeat=0 --time_based \
		--runtime=5 --output-format=json `+arguments, device)
	type side struct {
		Latency struct {
			Mean    float64 `json:"mean"`
			Samples int     `json:"N"`
		} `json:"lat_ns"`
	}
	var report struct {
		Jobs []struct {
			Error int  `json:"error"`
			Read  side `json:"read"`
			Write side `json:"write"`
			Sync  side `json:"sync"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal([]byte(output[max(strings.Index(output, "{"), 0):]), &report); err != nil || len(report.Jobs) != 1 ||
		report.Jobs[0].Error != 0 {
		s.t.Fatalf("fio %s on %s (%v): %s", arguments, device, err, output)
	}
	for _, side := range []side{report.Jobs[0].Sync, report.Jobs[0].Write, report.Jobs[0].Read} {
		if side.Latency.Samples > 20 {
			return time.Duration(side.Latency.Mean)
		}
	}
	s.t.Fatalf("fio %s on %s counted no latencies: %s", arguments, device, output)
	return 0
}
