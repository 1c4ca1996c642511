package vm

import (
	"context"
	"fmt"
)

// Fault is a way in which a disk can be broken.
type Fault string

// The faults. A disk has at most one at a time.
const (
	// NoFault is a disk that works.
	NoFault Fault = ""
	// FaultAll fails every request with EIO.
	FaultAll Fault = "all"
	// FaultReads fails reads with EIO.
	FaultReads Fault = "reads"
	// FaultWrites fails writes and discards with EIO. Flushes succeed.
	FaultWrites Fault = "writes"
	// FaultHang makes reads, writes and discards wait until the disk is healed, and then does them. Flushes succeed. QEMU
	// also finishes waiting requests whenever its block nodes change, even for another disk, and at a reset; later
	// requests wait again.
	FaultHang Fault = "hang"
)

// Faults returns all faults that FailDisk knows.
func Faults() []Fault { return []Fault{FaultAll, FaultReads, FaultWrites, FaultHang} }

// FailDisk breaks a disk, from the next request on. It replaces the present fault, if there is one.
func (m *Machine) FailDisk(ctx context.Context, disk string, fault Fault) error {
	c, err := m.chain(ctx, disk)
	if err != nil {
		return err
	}
	id := faultID(disk, fault)
	if c.top == id {
		return nil
	}
	// A leftover with the same name may be incomplete.
	if err := m.removeFaults(ctx, c, func(node string) bool { return node == id }); err != nil {
		return err
	}
	if err := m.addFault(ctx, disk, fault, id); err != nil {
		return fmt.Errorf("make the fault %q of disk %s: %w", fault, disk, err)
	}
	if err := m.use(ctx, c, id); err != nil {
		return err
	}
	return m.removeFaults(ctx, c, func(node string) bool { return node != id })
}

// HealDisk makes a disk work again. It does nothing if the disk works.
func (m *Machine) HealDisk(ctx context.Context, disk string) error {
	c, err := m.chain(ctx, disk)
	if err != nil {
		return err
	}
	if err := m.use(ctx, c, throttleID(disk)); err != nil {
		return err
	}
	return m.removeFaults(ctx, c, func(string) bool { return true })
}

// use switches the device of the disk to another node; QEMU first finishes the requests in progress.
func (m *Machine) use(ctx context.Context, c chain, node string) error {
	if !c.plugged || c.top == node {
		return nil
	}
	if err := m.set(ctx, devicePath(c.disk), "drive", node); err != nil {
		return fmt.Errorf("let disk %s use %s: %w", c.disk, node, err)
	}
	return nil
}

// addFault adds the node of a fault, above the throttle, so that failed requests do not count against the limits.
func (m *Machine) addFault(ctx context.Context, disk string, fault Fault, id string) error {
	below := throttleID(disk)
	add := func(node map[string]any) error { return m.qmp.execute(ctx, "blockdev-add", node, nil) }
	switch fault {
	case FaultAll:
		return add(errorNode(id, below, []string{"read", "write", "write-zeroes", "discard", "flush"}))
	case FaultReads:
		return add(errorNode(id, below, []string{"read"}))
	case FaultWrites:
		return add(errorNode(id, below, []string{"write", "write-zeroes", "discard"}))
	case FaultHang:
		return m.addHang(ctx, disk, id)
	default:
		return fmt.Errorf("there is no such fault; there are: %q", Faults())
	}
}

// addHang adds a second throttle of one byte a second. QEMU makes a request wait for those before it, not for itself, so
// the guest's first request would pass. Therefore a read of 64 KiB goes first, and the guest's request waits 18 hours for it.
func (m *Machine) addHang(ctx context.Context, disk, id string) error {
	if err := m.removeHang(ctx, disk); err != nil {
		return err
	}
	group := object{Type: "throttle-group", ID: hangID(disk), Limits: &limits{BytesPerSecond: 1}}
	if err := m.qmp.execute(ctx, "object-add", group, nil); err != nil {
		return err
	}
	if err := m.qmp.execute(ctx, "blockdev-add", throttleNode(id, hangID(disk), throttleID(disk)), nil); err != nil {
		return err
	}
	read := map[string]string{"command-line": fmt.Sprintf("qemu-io %s \"read -q 0 64k\"", id)}
	return m.qmp.execute(ctx, "human-monitor-command", read, nil)
}

// removeFaults removes nodes that are no longer used.
func (m *Machine) removeFaults(ctx context.Context, c chain, which func(node string) bool) error {
	for _, node := range c.faults {
		if !which(node) {
			continue
		}
		if err := m.qmp.execute(ctx, "blockdev-del", map[string]string{"node-name": node}, nil); err != nil {
			return fmt.Errorf("remove the fault %s of disk %s: %w", node, c.disk, err)
		}
		if node != faultID(c.disk, FaultHang) {
			continue
		}
		if err := m.removeHang(ctx, c.disk); err != nil {
			return err
		}
	}
	return nil
}

// removeHang removes the throttle group of a hanging disk, if there is one.
func (m *Machine) removeHang(ctx context.Context, disk string) error {
	var objects []struct{ Name string }
	if err := m.qmp.execute(ctx, "qom-list", map[string]string{"path": "/objects"}, &objects); err != nil {
		return err
	}
	for _, o := range objects {
		if o.Name == hangID(disk) {
			return m.qmp.execute(ctx, "object-del", map[string]string{"id": hangID(disk)}, nil)
		}
	}
	return nil
}
