package vm

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/test/lab/slowdisk"
)

var update = flag.Bool("update", false, "write the golden files")

// example returns a valid machine that does not exist.
func example() Spec {
	return Spec{
		Name: "n1", Folder: "/lab/nodes/n1", Tools: "/tools", Index: 0x102,
		Kernel: "/image/vmlinuz", Initrd: "/image/initrd", RootImage: "/image/root.raw", Config: "/lab/nodes/n1/config.tar",
		CPUs: 2, MemoryMiB: 2048, SwitchSocket: "/lab/switch.sock",
		Forwards: []Forward{{"127.0.0.2", 10250, 10250}, {"127.0.0.2", 22, 22}},
		Disks: []Disk{
			{Name: "disk1", SizeBytes: 4 << 30, IOPS: 400, BytesPerSecond: 50_000_000, LogicalSector: 512, PhysicalSector: 4096},
			{Name: "disk2", SizeBytes: 4 << 30, LogicalSector: 4096, PhysicalSector: 4096},
		},
	}
}

// TestArguments compares the whole command line with a golden file, one argument a line.
func TestArguments(t *testing.T) {
	s := example()
	arguments := s.arguments([]string{"-accel", "tcg"})
	data := s.Tools.QemuData()
	if !slices.Equal(arguments[:len(data)], data) {
		t.Errorf("the arguments begin with %q, expected where QEMU's files are, %q", arguments[:len(data)], data)
	}
	got := strings.Join(arguments[len(data):], "\n") + "\n"
	golden := filepath.Join("testdata", "arguments.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s\nif this is meant, run: go test -C test/lab ./vm -update", diff)
	}
}

// TestSlowDisks: QEMU looks for a disk with service times at the socket by which SlowDisks names it.
func TestSlowDisks(t *testing.T) {
	s := example()
	s.Disks[1].Delay, s.Disks[1].UnalignedDelay = 5*time.Millisecond, 8*time.Millisecond
	s.Disks[1].Heads, s.Disks[1].SeekDelay = 2, 3*time.Millisecond
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	served := s.SlowDisks()
	const socket = "/lab/nodes/n1/disk2.sock"
	want := slowdisk.Disk{Path: "/lab/nodes/n1/disk2.raw", Delay: 5 * time.Millisecond, UnalignedDelay: 8 * time.Millisecond, SectorBytes: 4096,
		Heads: 2, SeekDelay: 3 * time.Millisecond}
	if len(served) != 1 || served[socket] != want {
		t.Errorf("served are %+v", served)
	}
	all := strings.Join(s.arguments(nil), "\n")
	if !strings.Contains(all, `"path":"`+socket+`"`) || strings.Contains(all, "disk2.raw") || !strings.Contains(all, "disk1.raw") {
		t.Error(all)
	}
	for _, test := range []struct {
		change func(*Disk)
		words  string
	}{
		{func(d *Disk) { d.Delay = time.Minute }, "choose at most 5s"},
		{func(d *Disk) { d.Heads = 17 }, "choose at most 16"},
		{func(d *Disk) { d.Heads = 0 }, "needs both heads and how long they take"},
		{func(d *Disk) { d.Delay, d.UnalignedDelay, d.SeekDelay = 0, 0, 0 }, "needs both heads and how long they take"},
	} {
		bad := example()
		bad.Disks = slices.Clone(s.Disks)
		test.change(&bad.Disks[1])
		if err := bad.validate(); err == nil || !strings.Contains(err.Error(), test.words) {
			t.Errorf("got %v, want an error with %q", err, test.words)
		}
	}
}

func TestWithoutASwitchThereIsNoSecondCard(t *testing.T) {
	s := example()
	s.SwitchSocket, s.Forwards = "", nil
	all := strings.Join(s.arguments(nil), " ")
	for _, absent := range []string{"eth1", "stream", "hostfwd"} {
		if strings.Contains(all, absent) {
			t.Errorf("%s in %s", absent, all)
		}
	}
}

func TestCommasInPaths(t *testing.T) {
	s := example()
	s.Folder = "/lab/a,b"
	all := strings.Join(s.arguments(nil), "\n")
	for _, part := range []string{"path=/lab/a,,b/qmp.sock", "path=/lab/a,,b/console.log", `"filename":"/lab/a,b/disk1.raw"`} {
		if !strings.Contains(all, part) {
			t.Errorf("no %s in\n%s", part, all)
		}
	}
}

func TestMistakesInASpec(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Spec)
		wants  []string
	}{
		"none":          {func(*Spec) {}, nil},
		"name":          {func(s *Spec) { s.Name = "N 1" }, []string{`machine name "N 1"`, "lower-case"}},
		"too much":      {func(s *Spec) { s.CPUs = 0 }, []string{"n1 has 0 CPUs", "at least 1 CPU"}},
		"many disks":    {func(s *Spec) { s.Disks = make([]Disk, 25) }, []string{"25 disks", "at most 24"}},
		"relative path": {func(s *Spec) { s.Kernel = "vmlinuz" }, []string{`kernel of machine n1 is "vmlinuz"`, "absolute"}},
		"long folder":   {func(s *Spec) { s.Folder = "/" + strings.Repeat("x", 100) }, []string{"110 characters", "shorter folder"}},
		"long switch":   {func(s *Spec) { s.SwitchSocket = "/" + strings.Repeat("x", 107) }, []string{"108 characters", "shorter folder"}},
		"same disks":    {func(s *Spec) { s.Disks[1].Name = "disk1" }, []string{`two disks "disk1"`}},
		"disk name":     {func(s *Spec) { s.Disks[0].Name = "a--b" }, []string{`disk name "a--b"`}},
		"long serial": {func(s *Spec) {
			s.Disks[0].Name = "abcdefghijklmnopqr"
		}, []string{"n1-abcdefghijklmnopqr", "21 characters", "shorter"}},
		"odd sector": {func(s *Spec) { s.Disks[0].PhysicalSector = 520 }, []string{"disk1 has sectors of 520", "power of two"}},
		"sectors": {func(s *Spec) {
			s.Disks[1].PhysicalSector = 512
		}, []string{"disk2 has logical sectors of 4096 bytes in physical ones of 512"}},
		"size": {func(s *Spec) {
			s.Disks[0].SizeBytes++
		}, []string{"disk1 has 4294967297 bytes", "multiple of its physical sector of 4096"}},
		"negative limit":  {func(s *Spec) { s.Disks[0].IOPS = -1 }, []string{"disk1 has a limit of -1", "0 for none"}},
		"enormous limit":  {func(s *Spec) { s.Disks[0].BytesPerSecond = maxLimit + 1 }, []string{"disk1 has a limit of"}},
		"all are told of": {func(s *Spec) { s.Name, s.Config = "", "x" }, []string{"machine name", "config of machine"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := example()
			test.change(&s)
			expectError(t, s.validate(), test.wants...)
		})
	}
}

// The longest names that validate lets through must fit where QEMU takes at most 31 characters.
func TestNamesOfNodesFit(t *testing.T) {
	longest := strings.Repeat("x", maxSerial-len(serialOf("m", "")))
	for _, fault := range Faults() {
		name := faultID(longest, fault)
		if len(name) > 31 {
			t.Errorf("%s has %d characters", name, len(name))
		}
		if disk, is, found := faultOf(name); disk != longest || is != fault || !found {
			t.Errorf("%s was read as %s of %s", name, is, disk)
		}
	}
	if disk, fault, is := faultOf(faultID("a-b-c", FaultHang)); disk != "a-b-c" || fault != FaultHang || !is {
		t.Errorf("got %s of %s", fault, disk)
	}
	if _, fault, is := faultOf(throttleID("disk1")); is {
		t.Errorf("a throttle was read as fault %s", fault)
	}
}

func expectError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if (err == nil) != (len(parts) == 0) {
		t.Fatalf("got %v, expected %q", err, parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in: %v", part, err)
		}
	}
}
