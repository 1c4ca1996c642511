package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSettle waits for as long as udev has events to process.
func TestSettle(t *testing.T) {
	root := t.TempDir()
	NewFake(root).Settle() // a node without udev
	queue := filepath.Join(root, "run", "udev", "queue")
	if err := os.MkdirAll(filepath.Dir(queue), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(queue, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	settled := make(chan struct{})
	go func() {
		NewFake(root).Settle()
		close(settled)
	}()
	select {
	case <-settled:
		t.Fatal("it did not wait")
	case <-time.After(10 * time.Millisecond): // while the file is there, it must not return at any time
	}
	if err := os.Remove(queue); err != nil {
		t.Fatal(err)
	}
	<-settled
}
