package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/test/lab/toolroot"
)

// realQEMU starts a QEMU with the disks of the example, which never executes an instruction: -S.
func realQEMU(t *testing.T) (*Machine, Spec, *output) {
	t.Helper()
	tools := os.Getenv("LAB_TOOLROOT")
	if tools == "" {
		t.Skip("LAB_TOOLROOT is not set: it names an unpacked tree with QEMU, as test/lab/toolroot makes")
	}
	s := example()
	s.Folder, s.Tools, s.SwitchSocket, s.MemoryMiB = shortFolder(t), toolroot.Root(tools), "", 64
	s.Forwards = []Forward{{"127.0.0.1", 0, 22}}
	for n := range s.Disks {
		s.Disks[n].SizeBytes = 64 << 20
	}
	for _, path := range []*string{&s.Kernel, &s.Initrd, &s.RootImage, &s.Config} {
		*path = filepath.Join(s.Folder, filepath.Base(*path))
		if err := os.WriteFile(*path, make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time finds all there
		if err := s.Prepare(patient(t)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	command := s.Command(ctx)
	// No kernel is needed, and one of zeros would be refused.
	command.Args = append(withoutKernel(command.Args), "-S")
	machine, said := start(t, command, s.Folder)
	cancel() // the machine must outlive it
	return machine, s, said
}

func withoutKernel(arguments []string) []string {
	var kept []string
	for i := 0; i < len(arguments); i++ {
		switch arguments[i] {
		case "-kernel", "-initrd", "-append":
			i++
		default:
			kept = append(kept, arguments[i])
		}
	}
	return kept
}

// start runs the command until the end of the test and connects as soon as it listens.
func start(t *testing.T, command *exec.Cmd, folder string) (*Machine, *output) {
	t.Helper()
	said := &output{}
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var result error
	go func() {
		result = command.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
	})
	ticks := time.NewTicker(20 * time.Millisecond) // there is no notification when a socket appears
	defer ticks.Stop()
	for {
		machine, err := Connect(patient(t), folder)
		if err == nil {
			t.Cleanup(func() { _ = machine.Close() })
			return machine, said
		}
		select {
		case <-ticks.C:
		case <-ended:
			t.Fatalf("QEMU ended with %v: %s", result, said)
		}
	}
}

// output collects what QEMU prints. Its monitor command qemu-io also prints there how requests ended.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// request lets the device make a request as the guest would, and returns how it ended.
func request(t *testing.T, machine *Machine, said *output, disk, what string) string {
	t.Helper()
	before := len(said.String())
	command := map[string]string{"command-line": fmt.Sprintf("qemu-io -d %s/virtio-backend \"%s\"", devicePath(disk), what)}
	var answer string
	if err := machine.qmp.execute(patient(t), "human-monitor-command", command, &answer); err != nil {
		t.Fatal(err)
	}
	// QEMU prints through a pipe, so its output may come a little later: wait for something that is printed after it.
	end := fmt.Sprintf("end%d", before)
	command["command-line"] = fmt.Sprintf("qemu-io -d %s/virtio-backend \"help %s\"", devicePath(disk), end)
	if err := machine.qmp.execute(patient(t), "human-monitor-command", command, nil); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(said.String()[before:], end) {
		runtime.Gosched()
	}
	return answer + said.String()[before:]
}

func TestFaultsOfARealDisk(t *testing.T) {
	machine, _, said := realQEMU(t)
	requests := []string{"read 0 4k", "write 0 4k", "write -z 0 4k", "discard 0 4k"} // qemu-io does not say how a flush ended
	for _, test := range []struct {
		fault Fault
		fails []string
	}{
		{NoFault, nil},
		{FaultReads, requests[:1]},
		{FaultWrites, requests[1:]}, // each replaces the one before
		{FaultAll, requests},
		{FaultAll, requests},
		{NoFault, nil},
		{NoFault, nil},
	} {
		act := func() error { return machine.FailDisk(patient(t), "disk1", test.fault) }
		if test.fault == NoFault {
			act = func() error { return machine.HealDisk(patient(t), "disk1") }
		}
		if err := act(); err != nil {
			t.Fatal(err)
		}
		var failed []string
		for _, one := range requests {
			answer := request(t, machine, said, "disk1", one)
			if strings.Contains(answer, "Input/output error") {
				failed = append(failed, one)
			} else if strings.Contains(answer, "rror") {
				t.Errorf("%s: %s", one, answer)
			}
			if answer := request(t, machine, said, "disk2", one); strings.Contains(answer, "rror") {
				t.Errorf("the other disk: %s: %s", one, answer)
			}
		}
		if diff := cmp.Diff(test.fails, failed); diff != "" {
			t.Errorf("fault %q: %s", test.fault, diff)
		}
		expectDisk(t, machine, DiskState{Name: "disk1", Plugged: true, IOPS: 400, BytesPerSecond: 50_000_000, Fault: test.fault})
	}
	expectNodes(t, machine, "config", "file-disk1", "file-disk2", "root", "root-file", "throttle-disk1", "throttle-disk2")
}

// A request to a hanging disk must neither end nor be lost.
func TestARealDiskHangs(t *testing.T) {
	machine, _, said := realQEMU(t)
	for range 2 {
		if err := machine.FailDisk(patient(t), "disk1", FaultHang); err != nil {
			t.Fatal(err)
		}
		expectDisk(t, machine, DiskState{Name: "disk1", Plugged: true, IOPS: 400, BytesPerSecond: 50_000_000, Fault: FaultHang})
		before := len(said.String())
		request(t, machine, said, "disk1", "aio_write -P 7 0 4k")
		request(t, machine, said, "disk2", "read 0 4k")
		if text := said.String()[before:]; strings.Contains(text, "wrote") {
			t.Errorf("a request to a hanging disk ended: %s", text)
		}
		if err := machine.HealDisk(patient(t), "disk1"); err != nil {
			t.Fatal(err)
		}
		if answer := request(t, machine, said, "disk1", "read -P 7 0 4k"); strings.Contains(answer, "failed") {
			t.Errorf("the write was lost: %s", answer)
		}
		if text := said.String()[before:]; !strings.Contains(text, "wrote") {
			t.Errorf("the write did not end: %s", text)
		}
	}
	for _, next := range []Fault{FaultHang, FaultAll} { // one fault replaces the other, and the group of the hang does not stay
		if err := machine.FailDisk(patient(t), "disk1", next); err != nil {
			t.Fatal(err)
		}
	}
	if err := machine.HealDisk(patient(t), "disk1"); err != nil {
		t.Fatal(err)
	}
	expectNodes(t, machine, "config", "file-disk1", "file-disk2", "root", "root-file", "throttle-disk1", "throttle-disk2")
}

func TestLimitsOfARealDisk(t *testing.T) {
	machine, _, said := realQEMU(t)
	for _, limit := range []limits{{IOPS: 2000}, {BytesPerSecond: 1_000_000}, {}, {400, 50_000_000}} {
		if err := machine.SetThrottle(patient(t), "disk1", limit.IOPS, limit.BytesPerSecond); err != nil {
			t.Fatal(err)
		}
		expectDisk(t, machine, DiskState{Name: "disk1", Plugged: true, IOPS: limit.IOPS, BytesPerSecond: limit.BytesPerSecond})
	}
	if err := machine.SetThrottle(patient(t), "disk1", 0, 4_000_000); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	request(t, machine, said, "disk1", "read -q 0 4M")
	request(t, machine, said, "disk1", "read -q 0 4M") // waits for the one before: a second, less the 100 ms
	if took := time.Since(began); took < 800*time.Millisecond {
		t.Errorf("two reads of 4 MiB at 4 MB/s took %v", took)
	}
}

// Without a booted guest a disk is released only by a reset, which is a good test of both.
func TestPlugsOfARealDisk(t *testing.T) {
	machine, s, said := realQEMU(t)
	err := machine.Unplug(brief(t), "disk1")
	expectError(t, err, "the guest did not release disk disk1", "deadline exceeded", "has it booted", "reset")
	err = machine.Unplug(brief(t), "disk1") // the second time QEMU says that it is under way
	expectError(t, err, "did not release")
	if err := machine.Reset(patient(t)); err != nil {
		t.Fatal(err)
	}
	if err := machine.Unplug(patient(t), "disk1"); err != nil {
		t.Fatal(err)
	}
	gone := DiskState{Name: "disk1", IOPS: 400, BytesPerSecond: 50_000_000}
	expectDisk(t, machine, gone)
	for _, fault := range []Fault{FaultWrites, FaultReads} {
		if err := machine.FailDisk(patient(t), "disk1", fault); err != nil {
			t.Fatal(err)
		}
		gone.Fault = fault
		expectDisk(t, machine, gone)
	}
	for range 2 { // the second time there is nothing to do
		if err := machine.Plug(patient(t), "disk1"); err != nil {
			t.Fatal(err)
		}
	}
	gone.Plugged = true
	expectDisk(t, machine, gone)
	if answer := request(t, machine, said, "disk1", "read 0 4k"); !strings.Contains(answer, "Input/output error") {
		t.Errorf("the fault did not survive: %s", answer)
	}
	for property, want := range map[string]any{
		"serial": serialOf(s.Name, "disk1"), "logical_block_size": 512.0, "physical_block_size": 4096.0, "addr": 64.0, // 8 functions a slot
	} {
		var got any
		if err := machine.get(patient(t), devicePath("disk1"), property, &got); err != nil || got != want {
			t.Errorf("after Plug %s is %v, %v; expected %v", property, got, err, want)
		}
	}
}

func TestEndsOfARealMachine(t *testing.T) {
	machine, s, _ := realQEMU(t)
	if status, err := machine.Status(patient(t)); status != "prelaunch" || err != nil {
		t.Errorf("got %q, %v", status, err)
	}
	expectError(t, machine.PowerDown(brief(t)), "did not switch off")
	if err := machine.qmp.execute(patient(t), "quit", nil, nil); err != nil && !errors.Is(err, errGone) {
		t.Error(err)
	}
	expectError(t, machine.awaitEnd(patient(t)))
	_, err := Connect(patient(t), s.Folder)
	expectError(t, err, "is off")
}

// The next call cleans up after a process that died between two steps.
func TestLeftOversOfARealDisk(t *testing.T) {
	machine, _, said := realQEMU(t)
	ctx := patient(t)
	for _, fault := range Faults() {
		if err := machine.addFault(ctx, "disk1", fault, faultID("disk1", fault)); err != nil {
			t.Fatal(err)
		}
	}
	expectDisk(t, machine, DiskState{Name: "disk1", Plugged: true, IOPS: 400, BytesPerSecond: 50_000_000})
	if err := machine.FailDisk(ctx, "disk1", FaultHang); err != nil {
		t.Fatal(err)
	}
	if err := machine.HealDisk(ctx, "disk1"); err != nil {
		t.Fatal(err)
	}
	if answer := request(t, machine, said, "disk1", "read 0 4k"); strings.Contains(answer, "rror") {
		t.Error(answer)
	}
	expectNodes(t, machine, "config", "file-disk1", "file-disk2", "root", "root-file", "throttle-disk1", "throttle-disk2")
}

func TestPrepareRefuses(t *testing.T) {
	_, s, _ := realQEMU(t)
	ctx := context.WithoutCancel(t.Context())
	other := s
	other.RootImage = s.Kernel
	expectError(t, other.Prepare(ctx), overlayFile, "was made from the image "+s.RootImage, "delete it")
	other = s
	other.Disks = []Disk{{Name: "disk1", SizeBytes: 128 << 20, LogicalSector: 512, PhysicalSector: 512}}
	expectError(t, other.Prepare(ctx), "disk1.raw has 67108864 bytes", "delete it")
	other = s
	other.Config = filepath.Join(s.Folder, "missing.tar")
	expectError(t, other.Prepare(ctx), "missing.tar", "write the config first")
}

func expectDisk(t *testing.T, machine *Machine, want DiskState) {
	t.Helper()
	disks, err := machine.Disks(patient(t))
	if err != nil || len(disks) != 2 {
		t.Fatalf("got %v, %v", disks, err)
	}
	if diff := cmp.Diff(want, disks[0]); diff != "" {
		t.Error(diff)
	}
}

// expectNodes compares all block nodes and objects in QEMU, so that nothing is left behind.
func expectNodes(t *testing.T, machine *Machine, want ...string) {
	t.Helper()
	var nodes, objects []map[string]any
	if err := machine.qmp.execute(patient(t), "query-named-block-nodes", map[string]bool{"flat": true}, &nodes); err != nil {
		t.Fatal(err)
	}
	if err := machine.qmp.execute(patient(t), "qom-list", map[string]string{"path": "/objects"}, &objects); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, node := range nodes {
		if name := fmt.Sprint(node["node-name"]); !strings.HasPrefix(name, "#") {
			got[name] = true
		}
	}
	if diff := cmp.Diff(want, sortedKeys(got)); diff != "" {
		t.Error(diff)
	}
	for _, o := range objects {
		if name := fmt.Sprint(o["name"]); strings.HasPrefix(name, hangID("")) {
			t.Errorf("%s is left", name)
		}
	}
}
