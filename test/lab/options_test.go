package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/test/lab/vm"
)

var plainDisk = vm.Disk{SizeBytes: 4 << 30, IOPS: 2000, BytesPerSecond: 100 << 20, LogicalSector: 512, PhysicalSector: 4096}

func TestNewOptions(t *testing.T) {
	options, err := NewOptions(2, 2, 1, plainDisk, []string{"2:size=8Gi,iops=100,bps=0,logical=4096,physical=4096"})
	if err != nil {
		t.Fatal(err)
	}
	want := []vm.Disk{
		{Name: "disk1", SizeBytes: 4 << 30, IOPS: 2000, BytesPerSecond: 100 << 20, LogicalSector: 512, PhysicalSector: 4096},
		{Name: "disk2", SizeBytes: 8 << 30, IOPS: 100, LogicalSector: 4096, PhysicalSector: 4096},
		{Name: "volume1", SizeBytes: 4 << 30, IOPS: 2000, BytesPerSecond: 100 << 20, LogicalSector: 512, PhysicalSector: 4096},
		{Name: "files", SizeBytes: 8 << 30, IOPS: 2000, BytesPerSecond: 100 << 20, LogicalSector: 512, PhysicalSector: 4096},
	}
	if difference := cmp.Diff(want, options.all()); difference != "" {
		t.Error(difference)
	}
}

func TestServiceTimesOfADisk(t *testing.T) {
	options, err := NewOptions(1, 1, 0, plainDisk, []string{"1:delay=5ms,flush=1ms,unaligned=8ms,heads=2,seek=4ms"})
	if err != nil {
		t.Fatal(err)
	}
	want := plainDisk
	want.Name, want.Delay, want.FlushDelay, want.UnalignedDelay = "disk1", 5*time.Millisecond, time.Millisecond, 8*time.Millisecond
	want.Heads, want.SeekDelay = 2, 4*time.Millisecond
	if diff := cmp.Diff(want, options.Disks[0]); diff != "" || !want.Slow() {
		t.Error(diff)
	}
}

func TestNewOptionsRefuses(t *testing.T) {
	type parts struct {
		nodes, disks, volumes int
		alike                 vm.Disk
		overrides             []string
	}
	for name, test := range map[string]struct {
		change func(*parts)
		words  string
	}{
		"no node":         {func(p *parts) { p.nodes = 0 }, "choose 1 to 9"},
		"many nodes":      {func(p *parts) { p.nodes = 10 }, "choose 1 to 9"},
		"many disks":      {func(p *parts) { p.disks = 20; p.volumes = 1 }, "at most 20"},
		"small disk":      {func(p *parts) { p.alike.SizeBytes = 1 << 20 }, "at least 64Mi"},
		"odd size":        {func(p *parts) { p.alike.SizeBytes++ }, "multiple of 4096"},
		"odd sector":      {func(p *parts) { p.alike.LogicalSector = 1024 }, "choose 512 or 4096"},
		"sectors swapped": {func(p *parts) { p.alike.LogicalSector, p.alike.PhysicalSector = 4096, 512 }, "larger physical"},
		"no number":       {func(p *parts) { p.overrides = []string{"size=1Gi"} }, "NUMBER:KEY=VALUE"},
		"no such disk":    {func(p *parts) { p.overrides = []string{"5:iops=1"} }, "from 1 to 2"},
		"no such key":     {func(p *parts) { p.overrides = []string{"1:speed=1"} }, "there are size, iops, bps"},
		"no value":        {func(p *parts) { p.overrides = []string{"1:iops"} }, "not a number"},
		"negative":        {func(p *parts) { p.overrides = []string{"1:iops=-1"} }, "at least 0"},
		"no duration":     {func(p *parts) { p.overrides = []string{"1:delay=5"} }, "not a duration like 5ms"},
		"fraction":        {func(p *parts) { p.overrides = []string{"1:iops=0.5"} }, "whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parts{nodes: 1, disks: 2, volumes: 1, alike: plainDisk}
			test.change(&p)
			_, err := NewOptions(p.nodes, p.disks, p.volumes, p.alike, p.overrides)
			if err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v, want an error with %q", err, test.words)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, name := range []string{"", "Lab", "a b", "../a", "-a", "a-", strings.Repeat("a", 21)} {
		if _, err := Open(name); err == nil {
			t.Errorf("a lab can be called %q", name)
		}
	}
}
