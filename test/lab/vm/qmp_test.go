package vm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// always answers every command with the same lines.
func always(lines ...string) func(string, json.RawMessage) []string {
	return func(string, json.RawMessage) []string { return lines }
}

func TestEventsBetweenAnswers(t *testing.T) {
	machine := fake(t, always(
		`{"event": "NIC_RX_FILTER_CHANGED", "data": {}}`,
		`{"return": {"status": "wrong"}, "id": "of an earlier command"}`,
		`{"return": {"status": "running"}, "id": "ID"}`,
		`{"event": "RESET", "data": {"guest": false}}`,
	)).connect(t)
	for range 3 {
		if status, err := machine.Status(patient(t)); status != "running" || err != nil {
			t.Fatalf("got %q, %v", status, err)
		}
	}
	for range 3 { // one came with each answer, and none was lost
		if _, err := machine.qmp.await(patient(t), func(e event) bool { return e.Name == "RESET" }); err != nil {
			t.Fatal(err)
		}
	}
	_, err := machine.qmp.await(brief(t), func(e event) bool { return e.Name == "RESET" })
	expectError(t, err, "deadline exceeded")
}

func TestEventsAreBounded(t *testing.T) {
	q := &qmp{}
	for range maxEvents + 10 {
		q.keep(event{Name: "BLOCK_IO_ERROR"})
	}
	if len(q.events) != maxEvents {
		t.Errorf("%d events are kept", len(q.events))
	}
}

func TestRefusals(t *testing.T) {
	for name, line := range map[string]string{
		"of the command":                 `{"error": {"class": "GenericError", "desc": "too hot"}, "id": "ID"}`,
		"of what QEMU could not decode":  `{"error": {"class": "GenericError", "desc": "too hot"}}`,
		"after the event that caused it": "{\"event\": \"X\"}\n" + `{"error": {"class": "GenericError", "desc": "too hot"}, "id": "ID"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fake(t, always(strings.Split(line, "\n")...)).connect(t).Status(patient(t))
			expectError(t, err, "refused query-status", "too hot", "GenericError")
			var refused *commandError
			if !errors.As(err, &refused) || refused.Class != "GenericError" {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestBrokenConversations(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"hung up":          {hangUp, "the machine is off"},
		"not JSON":         {"hello", "is not JSON"},
		"unexpected shape": {`{"return": 5, "id": "ID"}`, "read QEMU's answer to query-status"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fake(t, always(test.line)).connect(t).Status(patient(t))
			expectError(t, err, test.want)
		})
	}
	t.Run("it stays broken", func(t *testing.T) {
		machine := fake(t, always(hangUp)).connect(t)
		for range 2 {
			_, err := machine.Status(patient(t))
			expectError(t, err, "the machine is off")
		}
	})
}

// Giving up on one command leaves the connection usable, even in the middle of a line.
func TestGivingUp(t *testing.T) {
	machine := fake(t, func(command string, _ json.RawMessage) []string {
		if command == "system_reset" {
			return []string{`{"return": {}, ` + continued}
		}
		return []string{`"id": "2"}`, `{"return": {"status": "paused"}, "id": "ID"}`}
	}).connect(t)
	expectError(t, machine.Reset(brief(t)), "system_reset", "deadline exceeded")
	if status, err := machine.Status(patient(t)); status != "paused" || err != nil {
		t.Errorf("got %q, %v", status, err)
	}
}

func TestConnectFails(t *testing.T) {
	t.Run("never started", func(t *testing.T) {
		_, err := Connect(patient(t), shortFolder(t))
		expectError(t, err, "is off", "power it on")
	})
	t.Run("long path", func(t *testing.T) {
		_, err := Connect(patient(t), "/"+strings.Repeat("x", 120))
		expectError(t, err, "choose a shorter folder")
	})
	t.Run("held by another", func(t *testing.T) {
		f := fake(t, always(done))
		f.connect(t)
		_, err := Connect(brief(t), f.folder)
		expectError(t, err, "deadline exceeded", "another program")
	})
	t.Run("no greeting", func(t *testing.T) {
		f := fakeThatGreets(t, `{"return": {}}`, always(done))
		_, err := Connect(patient(t), f.folder)
		expectError(t, err, "does not greet")
	})
}

func TestEnds(t *testing.T) {
	t.Run("power down", func(t *testing.T) {
		expectError(t, fake(t, always(done, `{"event": "SHUTDOWN"}`, hangUp)).connect(t).PowerDown(patient(t)))
	})
	t.Run("a guest that does not obey", func(t *testing.T) {
		err := fake(t, always(done)).connect(t).PowerDown(brief(t))
		expectError(t, err, "did not switch off", "cut the power", consoleFile)
	})
}

func TestDisksThatAreNotThere(t *testing.T) {
	machine := fake(t, func(command string, _ json.RawMessage) []string {
		switch command {
		case "query-named-block-nodes":
			return []string{`{"return": [{"node-name": "throttle-disk1"}, {"node-name": "root"}], "id": "ID"}`}
		case "qom-get":
			return []string{`{"return": "throttle-disk1", "id": "ID"}`}
		default:
			return []string{`{"return": [{"name": "data-disk1"}], "id": "ID"}`}
		}
	}).connect(t)
	for name, err := range map[string]error{
		"throttle": machine.SetThrottle(patient(t), "disk9", 1, 1),
		"fail":     machine.FailDisk(patient(t), "disk9", FaultAll),
		"heal":     machine.HealDisk(patient(t), "disk9"),
		"plug":     machine.Plug(patient(t), "disk9"),
		"unplug":   machine.Unplug(patient(t), "disk9"),
	} {
		t.Run(name, func(t *testing.T) { expectError(t, err, `no disk "disk9"`, "there are: disk1") })
	}
	expectError(t, machine.SetThrottle(patient(t), "disk1", -5, 0), "limit of -5")
	expectError(t, machine.FailDisk(patient(t), "disk1", "tired"), `the fault "tired" of disk disk1`, `"hang"`)
}
