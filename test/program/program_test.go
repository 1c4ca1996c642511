package program

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// TestRunsAtOnce: a written program can be run at once, even if other programs are started in parallel.
func TestRunsAtOnce(t *testing.T) {
	folder := t.TempDir()
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			path := filepath.Join(folder, strconv.Itoa(i))
			if err := Script(path, "#!/bin/sh\nexit 0\n"); err != nil {
				t.Error(err)
				return
			}
			if err := exec.CommandContext(t.Context(), path).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestCopySelf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test")
	if err := CopySelf(path); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), path, "-test.list=^TestCopySelf$").CombinedOutput(); err != nil ||
		string(output) != "TestCopySelf\n" {
		t.Errorf("%v: %s", err, output)
	}
}
