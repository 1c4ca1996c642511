package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeQEMU answers on a QMP socket as a test tells it to.
type fakeQEMU struct {
	folder   string
	greeting string
	// answer returns the lines that answer a command, in which ID stands for the command's ID.
	answer func(command string, arguments json.RawMessage) []string
}

const (
	greeting = `{"QMP": {"version": {}, "capabilities": ["oob"]}}`
	done     = `{"return": {}, "id": "ID"}`
	hangUp   = "hang up"
	// continued at the end of a line means that the line is not complete: no newline is sent.
	continued = "..."
)

// shortFolder returns a folder in which the path of a socket is short enough, whatever the name of the test.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "vm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func fake(t *testing.T, answer func(command string, arguments json.RawMessage) []string) *fakeQEMU {
	t.Helper()
	return fakeThatGreets(t, greeting, answer)
}

func fakeThatGreets(t *testing.T, greeting string, answer func(command string, arguments json.RawMessage) []string) *fakeQEMU {
	t.Helper()
	f := &fakeQEMU{folder: shortFolder(t), greeting: greeting, answer: answer}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", filepath.Join(f.folder, qmpFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			f.serve(connection)
		}
	}()
	return f
}

// serve talks to one client at a time, as QEMU does.
func (f *fakeQEMU) serve(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	if _, err := fmt.Fprintln(connection, f.greeting); err != nil {
		return
	}
	for lines := bufio.NewScanner(connection); lines.Scan(); {
		var request struct {
			Execute   string
			Arguments json.RawMessage
			ID        string
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil {
			return
		}
		said := []string{done}
		if request.Execute != "qmp_capabilities" {
			said = f.answer(request.Execute, request.Arguments)
		}
		for _, line := range said {
			if line == hangUp {
				return
			}
			whole, unfinished := strings.CutSuffix(strings.ReplaceAll(line, "ID", request.ID), continued)
			if !unfinished {
				whole += "\n"
			}
			if _, err := io.WriteString(connection, whole); err != nil {
				return
			}
		}
	}
}

func (f *fakeQEMU) connect(t *testing.T) *Machine {
	t.Helper()
	machine, err := Connect(patient(t), f.folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = machine.Close() })
	return machine
}

// patient is long enough for anything that works, and brief is for waiting for something that never comes.
func patient(t *testing.T) context.Context { return within(t, time.Minute) }
func brief(t *testing.T) context.Context   { return within(t, 100*time.Millisecond) }

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
