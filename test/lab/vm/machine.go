package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
)

// Machine is a running virtual machine.
type Machine struct {
	folder string
	qmp    *qmp
}

// Connect connects to the machine whose files are in the folder. QEMU talks to one client at a time: Connect waits until all
// others have closed, so close soon.
func Connect(ctx context.Context, folder string) (*Machine, error) {
	path := filepath.Join(folder, qmpFile)
	if err := checkSocket(path); err != nil {
		return nil, err
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("the machine in %s is off: power it on (%w)", folder, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reach the machine in %s: %w", folder, err)
	}
	q, err := greet(ctx, connection)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w; does another program hold the connection, or is QEMU stuck?", err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reach the machine in %s: %w", folder, err), connection.Close())
	}
	return &Machine{folder: folder, qmp: q}, nil
}

// Close ends the connection, not the machine.
func (m *Machine) Close() error { return m.qmp.close() }

// Status returns QEMU's word for the state of the machine: running; paused; prelaunch before its first instruction; io-error when it was
// stopped because a disk of the host is full; guest-panicked and more.
func (m *Machine) Status(ctx context.Context) (string, error) {
	var answer struct {
		Status string `json:"status"`
	}
	err := m.qmp.execute(ctx, "query-status", nil, &answer)
	return answer.Status, err
}

// Reset presses the reset button: the guest reboots without being asked.
func (m *Machine) Reset(ctx context.Context) error {
	if err := m.qmp.execute(ctx, "system_reset", nil, nil); err != nil {
		return err
	}
	if _, err := m.qmp.await(ctx, func(e event) bool { return e.Name == "RESET" }); err != nil {
		return fmt.Errorf("wait for the machine's reset: %w", err)
	}
	return nil
}

// PowerDown presses the power button and waits until the machine is off. A guest that still boots, or is stuck, does not
// obey; the context says how long to wait.
func (m *Machine) PowerDown(ctx context.Context) error {
	if err := m.qmp.execute(ctx, "system_powerdown", nil, nil); err != nil {
		return err
	}
	if err := m.awaitEnd(ctx); err != nil {
		return fmt.Errorf("the guest did not switch off: %w; look into %s, press again, or cut the power", err,
			filepath.Join(m.folder, consoleFile))
	}
	return nil
}

// awaitEnd waits until QEMU has closed the connection, which it does after it has closed all disks.
func (m *Machine) awaitEnd(ctx context.Context) error {
	_, err := m.qmp.await(ctx, func(event) bool { return false })
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}
