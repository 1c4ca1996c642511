package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/test/lab/proc"
)

// Soak brings the lab up and down again and again, and fails if anything is left behind: a process, a mount, or a file
// outside the lab's folder.
func (l *Lab) Soak(ctx context.Context, rounds int, options Options, out io.Writer) error {
	for round := 1; round <= rounds; round++ {
		before, err := surroundings()
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := l.Up(ctx, options, UntilAddons, out); err != nil {
			return fmt.Errorf("round %d, up: %w", round, err)
		}
		up := time.Since(begun)
		if works, err := l.Status(ctx, io.Discard); err != nil || !works {
			return fmt.Errorf("round %d: the lab is up but does not work (%w): see 'make lab-status'", round, err)
		}
		begun = time.Now()
		if err := l.Down(ctx); err != nil {
			return fmt.Errorf("round %d, down: %w", round, err)
		}
		down := time.Since(begun)
		after, err := surroundings()
		if err != nil {
			return err
		}
		if left := without(after, before); len(left) > 0 {
			return fmt.Errorf("round %d left behind: %s", round, strings.Join(left, "; "))
		}
		if processes, err := proc.Find(l.Folder); err != nil || len(processes) > 0 {
			return fmt.Errorf("round %d left processes behind: %v (%w)", round, processes, err)
		}
		_, _ = fmt.Fprintf(out, "soak: round %d of %d is clean (up %.0f s, down %.1f s)\n", round, rounds, up.Seconds(), down.Seconds())
	}
	return nil
}

// surroundings lists what is in the places where a lab might leave something: mounts, and the files beside its folder, in the folder for
// temporary files and in the one for shared memory.
func surroundings() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	found := strings.Split(strings.TrimSpace(string(mounts)), "\n")
	base, err := home()
	if err != nil {
		return nil, err
	}
	// Other programs use the shared folders too, so only files with our name count there. The lab's processes
	// leave nothing else in them, because their TMPDIR is in the lab's folder.
	for _, pattern := range []string{base + "/*", os.TempDir() + "/*storagebench*", "/var/tmp/*storagebench*", "/dev/shm/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	return found, nil
}

// without returns the entries that only the first list has.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return slices.Contains(other, one) })
}
