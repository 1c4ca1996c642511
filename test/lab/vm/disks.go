package vm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DiskState is the present state of a data disk.
type DiskState struct {
	Name string `json:"name"`
	// Plugged is false after Unplug. An unplugged disk keeps its fault, and has it again when it is plugged in.
	Plugged        bool  `json:"plugged"`
	IOPS           int64 `json:"iops"`
	BytesPerSecond int64 `json:"bytesPerSecond"`
	Fault          Fault `json:"fault,omitempty"`
}

// unplugTime is how long a guest may take to release a disk: under software emulation it takes seconds.
const unplugTime = time.Minute

// Disks lists the data disks by name.
func (m *Machine) Disks(ctx context.Context) ([]DiskState, error) {
	chains, err := m.chains(ctx)
	if err != nil {
		return nil, err
	}
	var states []DiskState
	for _, c := range chains {
		var l limits
		if err := m.get(ctx, "/objects/"+limitID(c.disk), "limits", &l); err != nil {
			return nil, fmt.Errorf("look at the limits of disk %s: %w", c.disk, err)
		}
		_, fault, _ := faultOf(c.top)
		states = append(states, DiskState{Name: c.disk, Plugged: c.plugged, IOPS: l.IOPS,
			BytesPerSecond: l.BytesPerSecond, Fault: fault})
	}
	return states, nil
}

// SetThrottle changes both limits of a disk at once and at any time; 0 removes a limit.
func (m *Machine) SetThrottle(ctx context.Context, disk string, iops, bytesPerSecond int64) error {
	if err := checkLimits(disk, iops, bytesPerSecond); err != nil {
		return err
	}
	if _, err := m.chain(ctx, disk); err != nil {
		return err
	}
	if err := m.set(ctx, "/objects/"+limitID(disk), "limits", limits{iops, bytesPerSecond}); err != nil {
		return fmt.Errorf("limit disk %s to %d requests and %d bytes a second: %w", disk, iops, bytesPerSecond, err)
	}
	return nil
}

// Unplug removes the disk and waits until the guest has released it. It does nothing if the disk is unplugged already.
func (m *Machine) Unplug(ctx context.Context, disk string) error {
	c, err := m.chain(ctx, disk)
	if err != nil || !c.plugged {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, unplugTime)
	defer cancel()
	err = m.qmp.execute(ctx, "device_del", map[string]string{"id": deviceID(disk)}, nil)
	var refused *commandError
	switch {
	case errors.As(err, &refused) && refused.Class == "DeviceNotFound":
		return nil // released just now, after an earlier Unplug
	case errors.As(err, &refused) && strings.Contains(refused.Description, "in the process of unplug"):
		// An earlier Unplug gave up waiting; the guest may still do it.
	case err != nil:
		return fmt.Errorf("unplug disk %s: %w", disk, err)
	}
	ended, err := m.qmp.await(ctx, func(e event) bool {
		var data struct{ Device string }
		ours := json.Unmarshal(e.Data, &data) == nil && data.Device == deviceID(disk)
		return ours && (e.Name == "DEVICE_DELETED" || e.Name == "DEVICE_UNPLUG_GUEST_ERROR")
	})
	if err != nil {
		return fmt.Errorf("the guest did not release disk %s: %w; has it booted, and does no request to the disk hang? "+
			"It will once it can, or at its next reset", disk, err)
	}
	if ended.Name != "DEVICE_DELETED" {
		return fmt.Errorf("the guest refused to release disk %s: look into its kernel's log", disk)
	}
	return nil
}

// Plug plugs an unplugged disk in again, as it was. It does nothing if the disk is plugged in already.
func (m *Machine) Plug(ctx context.Context, disk string) error {
	c, err := m.chain(ctx, disk)
	if err != nil || c.plugged {
		return err
	}
	device, err := readDevice(m.folder, disk)
	if err != nil {
		return err
	}
	device.Drive = c.top
	if err := m.qmp.execute(ctx, "device_add", device, nil); err != nil {
		return fmt.Errorf("plug in disk %s: %w", disk, err)
	}
	return nil
}

// chain is the present structure of a disk.
type chain struct {
	disk    string
	plugged bool
	// top is the node that the device uses, or would use.
	top string
	// faults are the nodes of faults, including those that a killed process has created but not inserted, or taken out but not removed.
	faults []string
}

// chains asks QEMU for all disks, sorted by name.
func (m *Machine) chains(ctx context.Context) ([]chain, error) {
	var nodes []struct {
		Name string `json:"node-name"`
	}
	if err := m.qmp.execute(ctx, "query-named-block-nodes", map[string]bool{"flat": true}, &nodes); err != nil {
		return nil, err
	}
	var devices []struct{ Name string }
	if err := m.qmp.execute(ctx, "qom-list", map[string]string{"path": "/machine/peripheral"}, &devices); err != nil {
		return nil, err
	}
	faults := map[string][]string{}
	var chains []chain
	for _, node := range nodes {
		if disk, _, is := faultOf(node.Name); is {
			faults[disk] = append(faults[disk], node.Name)
		} else if disk, is := strings.CutPrefix(node.Name, throttleID("")); is {
			chains = append(chains, chain{disk: disk, top: node.Name})
		}
	}
	for i := range chains {
		c := &chains[i]
		c.faults = faults[c.disk]
		c.plugged = slices.ContainsFunc(devices, func(d struct{ Name string }) bool { return d.Name == deviceID(c.disk) })
		if c.plugged {
			if err := m.get(ctx, devicePath(c.disk), "drive", &c.top); err != nil {
				return nil, fmt.Errorf("look at the device of disk %s: %w", c.disk, err)
			}
		} else if len(c.faults) > 0 {
			c.top = slices.Min(c.faults)
		}
	}
	slices.SortFunc(chains, func(a, b chain) int { return cmp.Compare(a.disk, b.disk) })
	return chains, nil
}

// chain asks QEMU for one disk.
func (m *Machine) chain(ctx context.Context, disk string) (chain, error) {
	chains, err := m.chains(ctx)
	if err != nil {
		return chain{}, fmt.Errorf("look for disk %s: %w", disk, err)
	}
	known := map[string]chain{}
	for _, c := range chains {
		known[c.disk] = c
	}
	if c, found := known[disk]; found {
		return c, nil
	}
	return chain{}, noSuchDisk(disk, known)
}

func devicePath(disk string) string { return "/machine/peripheral/" + deviceID(disk) }

// get and set read and change a property of one of QEMU's objects.
func (m *Machine) get(ctx context.Context, path, property string, value any) error {
	return m.qmp.execute(ctx, "qom-get", map[string]string{"path": path, "property": property}, value)
}

func (m *Machine) set(ctx context.Context, path, property string, value any) error {
	return m.qmp.execute(ctx, "qom-set", map[string]any{"path": path, "property": property, "value": value}, nil)
}
