package operation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/agent/operations"
)

// inMemory is an empty folder, in memory if the machine has a file system there.
func inMemory(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "storagebench-walk")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func openRoot(t *testing.T, folder string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// manyNames fills a folder with names of 255 bytes, many of them hard links to the same file: that is quick, and costs a tenant nothing.
func manyNames(t *testing.T, folder string, count int) {
	t.Helper()
	const linksOfAFile = 10_000 // file systems have a limit
	first := ""
	for i := range count {
		path := filepath.Join(folder, fmt.Sprintf("%0255d", i))
		var err error
		if i%linksOfAFile == 0 {
			first, err = path, os.WriteFile(path, nil, 0o600)
		} else {
			err = os.Link(first, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// highWater is how much the heap grows at most while a function runs.
type highWater struct{ before, peak uint64 }

func (h *highWater) look() {
	runtime.GC() // unused memory does not count
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	h.peak = max(h.peak, stats.HeapAlloc)
}

func measured(do func(look func())) (extraBytes uint64) {
	var h highWater
	for range 3 { // pools and finalizers of earlier tests keep memory until the second collection
		h.peak = 0
		h.look()
	}
	h.before = h.peak
	do(h.look)
	h.look()
	return h.peak - h.before
}

// TestAHugeFolderTakesNoMemory: reading a folder of 550,000 names at once would exceed the agent's memory limit of 256 MiB.
func TestAHugeFolderTakesNoMemory(t *testing.T) {
	const count, ceiling = 300_000, 4 << 20
	folder := inMemory(t)
	manyNames(t, folder, count)
	root := openRoot(t, folder)
	seen := 0
	used := measured(func(look func()) {
		if err := eachFile(t.Context(), root, func(path string, _ fs.FileInfo) error {
			if path != "." && len(path) != 255 {
				t.Errorf("path %s", path)
			}
			if seen++; seen%5000 == 0 {
				look()
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	if seen != count+1 {
		t.Errorf("%d entries were seen, want %d", seen, count+1)
	}
	if used > ceiling { // the check below shows that the measurement works
		t.Errorf("%d bytes were in use, want at most %d", used, ceiling)
	}
	// The same measurement detects a read of the whole folder.
	asAWhole := measured(func(look func()) {
		entries, err := os.ReadDir(folder)
		look()
		if err != nil || len(entries) != count {
			t.Errorf("%d entries: %v", len(entries), err)
		}
		runtime.KeepAlive(entries)
	})
	if asAWhole < 16*ceiling {
		t.Errorf("reading the folder as a whole takes %d bytes: this test proves nothing", asAWhole)
	}
	t.Logf("%d entries: %d KiB in pieces, %d KiB as a whole", count, used>>10, asAWhole>>10)
}

// deep creates nested folders with names of 255 bytes, and returns the innermost one.
func deep(t *testing.T, folder string, levels int) *os.Root {
	t.Helper()
	at := openRoot(t, folder)
	for level := range levels {
		name := fmt.Sprintf("%0255d", level)
		if err := at.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		inner, err := at.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = inner.Close() })
		at = inner
	}
	return at
}

func TestWalksHaveBounds(t *testing.T) {
	nothing := func(string, fs.FileInfo) error { return nil }
	folder := t.TempDir()
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]bool{299: false, 300: true} {
		err := (&walk{use: nothing, entries: limit, depth: maxDepth}).all(t.Context(), openRoot(t, folder))
		if (err == nil) != want {
			t.Errorf("limit %d: %v", limit, err)
		}
		if err != nil && (!operations.Permanent(err) || !strings.Contains(err.Error(), "more than 299 files and folders") ||
			!strings.Contains(err.Error(), "replicate")) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	// The path of the innermost folder is four times as long as a system call accepts.
	for levels, want := range map[int]bool{maxDepth - 1: true, maxDepth: false, maxDepth + 30: false} {
		folder, folders := t.TempDir(), 0
		deep(t, folder, levels)
		err := eachFile(t.Context(), openRoot(t, folder), func(path string, info fs.FileInfo) error {
			folders++
			if !info.IsDir() || path != "." && strings.Count(path, "/") != folders-2 {
				t.Errorf("folder %d at depth %d", folders, strings.Count(path, "/"))
			}
			return nil
		})
		if (err == nil) != want || want && folders != levels+1 {
			t.Errorf("%d levels: %d folders, %v", levels, folders, err)
		}
		if err != nil && (!operations.Permanent(err) || !strings.Contains(err.Error(), "more than 64 deep") || len(err.Error()) > 1000) {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := eachFile(ended, openRoot(t, folder), nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("a walk goes on after its end: %v", err)
	}
}

// TestAWalkStaysInside: a walk stays inside the dataset, whatever a tenant puts there.
func TestAWalkStaysInside(t *testing.T) {
	folder := t.TempDir()
	for _, path := range []string{"a/b", "c", ".zfs/snapshot/s"} {
		if err := os.MkdirAll(filepath.Join(folder, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"up": "..", "loop": ".", "root": "/", "a/b/to-a": "../../a", "broken": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]fs.FileMode{}
	root := openRoot(t, folder)
	if err := eachFile(t.Context(), root, func(path string, info fs.FileInfo) error {
		seen[path] = info.Mode().Type()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{".": fs.ModeDir, "a": fs.ModeDir, "a/b": fs.ModeDir, "c": fs.ModeDir, "pipe": fs.ModeNamedPipe,
		"up": fs.ModeSymlink, "loop": fs.ModeSymlink, "root": fs.ModeSymlink, "a/b/to-a": fs.ModeSymlink, "broken": fs.ModeSymlink}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// A folder is replaced by a link after it was read and before it is entered.
	info, err := root.Lstat("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.Rename("a", "was-a"), os.Symlink("c", filepath.Join(folder, "a"))); err != nil {
		t.Fatal(err)
	}
	w := &walk{use: func(path string, _ fs.FileInfo) error { return fmt.Errorf("it came to %s", path) }, entries: 9, depth: 9}
	if err := w.below(t.Context(), root, "a", "a", info, 1); err == nil || !strings.Contains(err.Error(), "folder a was replaced") {
		t.Errorf("error %v", err)
	}
	// Another file system.
	w = &walk{device: "9:9", use: w.use, entries: 99, depth: 9}
	if err := w.folder(t.Context(), root, ".", 1); err != nil || w.seen < 5 {
		t.Errorf("%d entries: %v", w.seen, err)
	}
}

// TestAWalkIsDoneWithChanges: files that are deleted during the walk are skipped, and all others are visited.
func TestAWalkIsDoneWithChanges(t *testing.T) {
	folder := t.TempDir()
	manyNames(t, folder, 1000)
	root, seen := openRoot(t, folder), 0
	if err := eachFile(t.Context(), root, func(path string, _ fs.FileInfo) error {
		if seen++; seen == 2 {
			entries, err := os.ReadDir(folder)
			for _, entry := range entries {
				err = errors.Join(err, os.Remove(filepath.Join(folder, entry.Name())))
			}
			return err
		}
		return nil
	}); err != nil || seen != 2 {
		t.Errorf("%d entries were seen: %v", seen, err)
	}
}

// TestHostileTreesAreCopied: nothing that a tenant puts into a dataset does harm, and everything that can be copied is copied.
func TestHostileTreesAreCopied(t *testing.T) {
	one := acts()["copy"]
	w := newWorld(t, wanted("op", one.action))
	prepareCopy(t, w)
	at := func(path string) string { return filepath.Join(w.node.root, "/mnt/data", path) }
	innermost := deep(t, at("."), maxDepth-1)
	if err := innermost.WriteFile(strings.Repeat("n", 255), []byte("deep"), 0o600); err != nil {
		t.Fatal(err)
	}
	manyNames(t, at("folder"), 500)
	for _, err := range []error{
		syscall.Mkfifo(at("pipe"), 0o600), os.Symlink(".", at("loop")), os.Symlink("/", at("root")), os.Link(at("large"), at("folder/hard")),
		os.WriteFile(at("sparse"), nil, 0o600), os.Truncate(at("sparse"), 64<<20), os.WriteFile(at("\xff\x1b[2J\n"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	operation := w.settle("op")
	expect(t, operation, "Succeeded", "Succeeded")
	for name, want := range map[string]int64{"copiedFiles": 2 + 1 + 500 + 1 + 1 + 1, "copiedFolders": 1 + maxDepth - 1, "skippedEntries": 4,
		"copiedBytes": 3001 + 4 + 3000 + 64<<20} {
		if got := metricOf(operation, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	copied := 0
	if err := eachFile(t.Context(), openRoot(t, filepath.Join(w.node.root, "/mnt/copy")), func(_ string, info fs.FileInfo) error {
		if copied++; !info.IsDir() && !info.Mode().IsRegular() {
			t.Errorf("a %s was copied", info.Mode())
		}
		return nil
	}); err != nil || copied != 1+506+maxDepth {
		t.Errorf("%d files and folders: %v", copied, err)
	}
}

// TestTreesBeyondTheBoundsAreRefused: they are refused before anything is written, and permanently.
func TestTreesBeyondTheBoundsAreRefused(t *testing.T) {
	for _, name := range []string{"copy", "layoutScore"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()[name].action))
			prepareCopy(t, w)
			deep(t, filepath.Join(w.node.root, "/mnt/data"), maxDepth)
			operation := w.settle("op")
			expect(t, operation, "Failed", "ActionFailed")
			if message := operation.Status.Conditions[0].Message; !strings.Contains(message, "more than 64 deep") ||
				!strings.Contains(message, "bench0/data") {
				t.Errorf("message %q", message)
			}
			if left, err := os.ReadDir(filepath.Join(w.node.root, "/mnt/copy")); err != nil || len(left) > 0 {
				t.Errorf("left are %v: %v", left, err)
			}
		})
	}
}

// TestASparseFileDoesNotHoldTheAgent: copying petabytes of holes ends when requested, and the sum of the sizes does not overflow.
func TestASparseFileDoesNotHoldTheAgent(t *testing.T) {
	one := acts()["copy"]
	w := newWorld(t, wanted("op", one.action))
	prepareCopy(t, w)
	for _, name := range []string{"sparse1", "sparse2", "sparse3"} {
		file := filepath.Join(w.node.root, "/mnt/data", name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		size := int64(8<<40) - 1
		for ; os.Truncate(file, size) != nil; size /= 2 { // the largest size that the file system of the test accepts
		}
	}
	for range 2 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	cancel(t, w, "op")
	expect(t, w.settle("op"), "Cancelled", "Cancelled")
	left, err := os.ReadDir(filepath.Join(w.node.root, "/mnt/copy"))
	if err != nil || slices.ContainsFunc(left, func(entry fs.DirEntry) bool { return strings.HasPrefix(entry.Name(), ".") }) {
		t.Errorf("left are %v: %v", left, err)
	}
	c := &copying{from: openRoot(t, filepath.Join(w.node.root, "/mnt/data")), total: math.MaxInt64 - 1<<30}
	if err := c.sum(t.Context()); err != nil || c.total != math.MaxInt64 {
		t.Errorf("total %d: %v", c.total, err)
	}
}

// TestNoPipeIsWaitedFor: a tenant has replaced a folder with a pipe, after the agent has looked at the folder. Opening a pipe for reading
// would wait for a writer, possibly forever.
func TestNoPipeIsWaitedFor(t *testing.T) {
	folder := t.TempDir()
	info, err := os.Lstat(folder)
	if err == nil {
		err = syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	root := openRoot(t, folder)
	pipe, err := root.Lstat("pipe")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&copying{from: root}).file(t.Context(), "pipe", pipe); err == nil || !strings.Contains(err.Error(), "was replaced") {
		t.Errorf("a pipe with the number of a file: %v", err)
	}
	for name, open := range map[string]func() error{
		"a walk": func() error {
			visit := &walk{use: func(string, fs.FileInfo) error { return nil }, entries: 9, depth: 9}
			return visit.below(t.Context(), root, "pipe", "pipe", info, 1)
		},
		"a copy": func() error { return (&copying{to: root}).publish("pipe/half", "pipe/file") },
		"a look into the folder for pods": func() error {
			_, err := someNames(root, "pipe")
			return err
		},
	} {
		ended := make(chan error, 1)
		go func() { ended <- open() }()
		select {
		case err := <-ended:
			if !errors.Is(err, syscall.ENOTDIR) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s waits for a pipe", name)
		}
	}
}
