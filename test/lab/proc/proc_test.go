package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLife starts two parts of one lab and one of another, and stops the first two, one of them against its will.
func TestLife(t *testing.T) {
	folder := t.TempDir()
	mine, other := filepath.Join(folder, "mine"), filepath.Join(folder, "other")
	log := filepath.Join(folder, "log")
	fifo := filepath.Join(folder, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	started, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = started.Close() }()
	for _, part := range []struct{ lab, name, script string }{
		{mine, "willing", "printf . >" + fifo + "; sleep 60"},
		{mine, "stubborn", "trap '' TERM; printf . >" + fifo + "; while :; do sleep 1; done"},
		{other, "foreign", "sleep 60"},
	} {
		if err := Start(exec.Command("/bin/sh", "-c", part.script), part.lab, part.name, log); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		rest, _ := Find(other)
		_ = Stop(t.Context(), other, rest, time.Second)
	}()
	for range 2 { // until the shells have set their traps
		if _, err := started.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Find(mine)
	if err != nil {
		t.Fatal(err)
	}
	both := func(found []Process) bool { // with or without their children, which come and go
		parts := map[string]bool{}
		for _, process := range found {
			parts[process.Part] = true
		}
		return len(parts) == 2 && parts["willing"] && parts["stubborn"]
	}
	if !both(found) {
		t.Fatalf("found %v, want willing and stubborn (and their children)", found)
	}
	for _, process := range found {
		if threads := process.Threads(); unix.Kill(process.PID, 0) == nil && !strings.Contains(threads, "sh: ") && !strings.Contains(threads, "sleep: ") {
			t.Errorf("threads of %v: %q", process, threads)
		}
	}
	if err := Stop(t.Context(), other, found, time.Second); err != nil {
		t.Fatal(err)
	}
	if still, _ := Find(mine); !both(still) {
		t.Fatalf("stopping them in the name of another lab left %v of %v", still, found)
	}
	if err := Stop(t.Context(), mine, found, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	left, err := Find(mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range left { // a shell may just have started another sleep
		if process.Part != "stubborn" {
			t.Errorf("%v is still there", process)
		}
	}
	if err := Stop(t.Context(), mine, left, time.Second); err != nil {
		t.Fatal(err)
	}
	if rest, _ := Find(other); len(rest) == 0 {
		t.Error("the process of another lab was stopped too")
	}
}
