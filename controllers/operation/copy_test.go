package operation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestACopyStaysInside puts a link to the outside where a file is to be written.
func TestACopyStaysInside(t *testing.T) {
	one := acts()["copy"]
	w := newWorld(t, wanted("op", one.action))
	one.prepare(t, w)
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/../../outside", filepath.Join(w.node.root, "/mnt/copy/large")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	w.rest("op")
	if job := w.agent.jobs.look("12345678-op"); job == nil || job.Err == nil {
		t.Errorf("the copy went through a link: %+v", job)
	}
	if w.node.read(t, "/outside") != "secret" {
		t.Error("a file outside was written")
	}
}

// TestAnotherMountIsNotCopiedTo has something else where the dataset should be mounted.
func TestAnotherMountIsNotCopiedTo(t *testing.T) {
	one := acts()["copy"]
	w := newWorld(t, wanted("op", one.action))
	one.prepare(t, w)
	w.node.write(t, "/proc/1/mountinfo", strings.ReplaceAll(w.node.read(t, "/proc/1/mountinfo"), " / /mnt/copy", "9 / /mnt/copy"))
	if _, err := w.turn("op"); err == nil || !strings.Contains(err.Error(), "another file system") {
		t.Errorf("error %v", err)
	}
}
