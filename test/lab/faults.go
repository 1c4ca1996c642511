package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/test/lab/proc"
	"github.com/storagebench/storagebench/test/lab/vm"
)

// Machine talks to the virtual machine of a node. The caller closes it.
func (l *Lab) Machine(ctx context.Context, node string) (*vm.Machine, error) {
	s, n, err := l.loadNode(node)
	if err != nil {
		return nil, err
	}
	machine, err := vm.Connect(ctx, l.machine(s, n).Folder)
	if err != nil {
		return nil, fmt.Errorf("node %s does not answer (%w): is it switched off? 'make lab-status' tells, 'lab node %s on' starts it", node, err,
			node)
	}
	return machine, nil
}

// DiskActions are the possible actions on a disk.
var DiskActions = []string{"fail", "fail-reads", "fail-writes", "hang", "heal", "unplug", "plug", "throttle"}

// Disk performs an action on a disk of a node. Throttle takes the operations and bytes per second, 0 for no limit.
func (l *Lab) Disk(ctx context.Context, node, disk, action string, limits ...int64) error {
	s, err := l.load()
	if err != nil {
		return err
	}
	known := s.Options.all()
	if !slices.ContainsFunc(known, func(one vm.Disk) bool { return one.Name == disk }) {
		return fmt.Errorf("there is no disk %q; there are %s", disk, diskNames(known))
	}
	if (action == "throttle") != (len(limits) == 2) {
		return fmt.Errorf("write: throttle IOPS BYTES_PER_SECOND, with 0 for no limit; the other actions take no numbers")
	}
	machine, err := l.Machine(ctx, node)
	if err != nil {
		return err
	}
	defer func() { _ = machine.Close() }()
	switch action {
	case "fail":
		return machine.FailDisk(ctx, disk, vm.FaultAll)
	case "fail-reads":
		return machine.FailDisk(ctx, disk, vm.FaultReads)
	case "fail-writes":
		return machine.FailDisk(ctx, disk, vm.FaultWrites)
	case "hang":
		return machine.FailDisk(ctx, disk, vm.FaultHang)
	case "heal":
		return machine.HealDisk(ctx, disk)
	case "unplug":
		return machine.Unplug(ctx, disk)
	case "plug":
		return machine.Plug(ctx, disk)
	case "throttle":
		return machine.SetThrottle(ctx, disk, limits[0], limits[1])
	}
	return fmt.Errorf("a disk cannot %q; it can %s", action, strings.Join(DiskActions, ", "))
}

func diskNames(disks []vm.Disk) string {
	names := make([]string, len(disks))
	for i, disk := range disks {
		names[i] = disk.Name
	}
	return strings.Join(names, ", ")
}

// NodeActions are the possible actions on a node.
var NodeActions = []string{"reset", "shutdown", "off", "on"}

// Node resets a node, shuts it down in order, cuts its power, or switches it on and waits until it is ready. Switching on a node that
// runs does nothing, unless its QEMU hangs: then its power is cut first.
func (l *Lab) Node(ctx context.Context, node, action string, log io.Writer) error {
	s, n, err := l.loadNode(node)
	if err != nil {
		return err
	}
	switch action {
	case "on":
		if err := l.endHung(ctx, node, log); err != nil {
			return err
		}
		parts, err := l.running()
		if err != nil || parts[part(node)] {
			return err
		}
		before, err := l.bootID(ctx, s, node)
		if err != nil {
			return err
		}
		if err := l.bootNode(ctx, s, n); err != nil {
			return err
		}
		return l.waitBooted(ctx, s, node, before, log)
	case "off":
		return l.stopNode(ctx, node, 0)
	case "shutdown":
		machine, err := l.Machine(ctx, node)
		if err != nil {
			return err
		}
		if err := errors.Join(machine.PowerDown(ctx), machine.Close()); err != nil { // others may talk to it meanwhile
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		return l.poll(ctx, func() (bool, string, error) {
			parts, err := l.running()
			return err == nil && !parts[part(node)], "node " + node + " does not shut down", err
		})
	case "reset":
		before, err := l.bootID(ctx, s, node)
		if err != nil {
			return err
		}
		machine, err := l.Machine(ctx, node)
		if err != nil {
			return err
		}
		if err := errors.Join(machine.Reset(ctx), machine.Close()); err != nil {
			return err
		}
		return l.waitBooted(ctx, s, node, before, log)
	}
	return fmt.Errorf("a node cannot %q; it can %s", action, strings.Join(NodeActions, ", "))
}

// answerTime is how long QEMU may take to answer. Usually it needs milliseconds; an unplugged disk keeps it busy for up to a minute.
const answerTime = 90 * time.Second

// endHung cuts the power of a node whose QEMU runs and does not answer, and writes to the log what its threads wait for.
func (l *Lab) endHung(ctx context.Context, node string, log io.Writer) error {
	processes, err := l.processes(node)
	if err != nil || len(processes) == 0 {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	machine, err := l.Machine(asking, node)
	if err == nil {
		return machine.Close()
	}
	if ctx.Err() != nil || asking.Err() == nil {
		return err
	}
	for _, process := range processes {
		_, _ = fmt.Fprintf(log, "node %s: QEMU hung: process %d did not answer for %s; its power is cut. Its threads:\n%s", node, process.PID,
			answerTime, process.Threads())
	}
	return l.stopNode(ctx, node, 0)
}

// Pause stops the process of a node, as if QEMU hung.
func (l *Lab) Pause(node string) error {
	processes, err := l.processes(node)
	if err != nil {
		return err
	}
	if len(processes) != 1 {
		return fmt.Errorf("node %s has %d processes, want one", node, len(processes))
	}
	return syscall.Kill(processes[0].PID, syscall.SIGSTOP)
}

// stopNode ends the process of a node: a power cut.
func (l *Lab) stopNode(ctx context.Context, node string, grace time.Duration) error {
	processes, err := l.processes(node)
	if err != nil {
		return err
	}
	return proc.Stop(ctx, l.Folder, processes, grace)
}

// processes returns the processes of a node: one, or none if it is off.
func (l *Lab) processes(node string) ([]proc.Process, error) {
	processes, err := proc.Find(l.Folder)
	return slices.DeleteFunc(processes, func(process proc.Process) bool { return process.Part != part(node) }), err
}

// bootID returns the ID of the present boot of a node, as the kubelet reports it.
func (l *Lab) bootID(ctx context.Context, s *state, node string) (string, error) {
	cluster, err := l.connect(s)
	if err != nil {
		return "", err
	}
	object, err := getNode(ctx, cluster, node)
	if err != nil {
		return "", err
	}
	return object.Status.NodeInfo.BootID, nil
}

// waitBooted waits until a node is ready in another boot than the given one.
func (l *Lab) waitBooted(ctx context.Context, s *state, node, before string, log io.Writer) error {
	cluster, err := l.connect(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	return l.poll(ctx, func() (bool, string, error) {
		object, err := getNode(ctx, cluster, node)
		if err != nil {
			return false, "", client.IgnoreNotFound(err)
		}
		booted := object.Status.NodeInfo.BootID != before && isReady(object)
		_, _ = fmt.Fprintf(log, "node %s: boot %s, ready %t\n", node, object.Status.NodeInfo.BootID, booted)
		return booted, "node " + node + " is not ready again; " + l.console(node), nil
	})
}
