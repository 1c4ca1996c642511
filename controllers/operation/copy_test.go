package operation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
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

// TestASourceThatCannotBeCopiedCreatesNothing: a tenant has nested its folders too deep.
func TestASourceThatCannotBeCopiedCreatesNothing(t *testing.T) {
	one := acts()["copy elsewhere"]
	w := newWorld(t, wanted("op", one.action))
	one.prepare(t, w)
	if err := os.MkdirAll(filepath.Join(w.node.root, "/mnt/data", strings.Repeat("deep/", maxDepth+1)), 0o755); err != nil {
		t.Fatal(err)
	}
	operation := w.settle("op")
	expect(t, operation, "Failed", v1alpha1.ReasonActionFailed)
	if !strings.Contains(operation.Status.Conditions[0].Message, "nested more than 64 deep") || len(w.node.changes()) > 0 {
		t.Errorf("status %+v, commands %q", operation.Status, w.node.commands)
	}
}

// TestTheFolderForPodsIsNoFile: a dataset that the agent has just mounted holds the folder for pods, and counts as empty. A file in that
// folder counts.
func TestTheFolderForPodsIsNoFile(t *testing.T) {
	for name, test := range map[string]struct {
		put  string
		want string
	}{
		"only the folder": {"/mnt/copy/data", "Succeeded"},
		"a folder in it":  {"/mnt/copy/data/theirs", "Failed"},
		"another folder":  {"/mnt/copy/theirs", "Failed"},
	} {
		one := acts()["copy"]
		w := newWorld(t, wanted("op", one.action))
		one.prepare(t, w)
		if err := os.MkdirAll(filepath.Join(w.node.root, test.put), 0o755); err != nil {
			t.Fatal(err)
		}
		if operation := w.settle("op"); operation.Status.Outcome != test.want {
			t.Errorf("%s: %+v", name, operation.Status)
		}
	}
}

// half is the temporary file that an agent leaves if it dies while copying.
const half = ".storagebench-copy-12345678-op"

// TestACopyGoesOn: after the death of the agent, finished files stay and temporary ones are removed.
func TestACopyGoesOn(t *testing.T) {
	one := acts()["copy"]
	w := newWorld(t, wanted("op", one.action))
	one.prepare(t, w)
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(w.node.root, path) }
	// Other contents of the same length show that the file is not written again.
	w.node.write(t, "/mnt/copy/large", strings.Repeat("z", 3000))
	w.node.write(t, "/mnt/copy/"+half, "half")
	w.node.write(t, "/mnt/copy/folder/"+half, "half")
	long := time.Unix(1_700_000_000, 123_000)
	for _, path := range []string{"/mnt/data/large", "/mnt/copy/large", "/mnt/data/folder/small"} {
		if err := os.Chtimes(at(path), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(at("/mnt/data/folder/small"), 0o751|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	operation := w.settle("op")
	expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
	if metricOf(operation, "copiedBytes") != 3001 || metricOf(operation, "copiedFiles") != 2 || w.node.read(t, "/mnt/copy/large")[0] != 'z' {
		t.Errorf("metrics %+v", operation.Status.Metrics)
	}
	small, err := os.Stat(at("/mnt/copy/folder/small"))
	if err != nil || small.Mode() != 0o751|fs.ModeSetgid || !small.ModTime().Equal(long) {
		t.Errorf("%+v: %v", small, err)
	}
	noHalves(t, w)
}

func noHalves(t *testing.T, w *world) {
	t.Helper()
	for _, folder := range []string{"", "folder"} {
		if _, err := os.Lstat(filepath.Join(w.node.root, "/mnt/copy", folder, half)); err == nil {
			t.Errorf("half a file is left in folder %q", folder)
		}
	}
}

// TestACopyOverwritesNothing: files that others have put into the target since the operation began stay as they are.
func TestACopyOverwritesNothing(t *testing.T) {
	for name, put := range map[string]func(t *testing.T, w *world){
		"large": func(t *testing.T, w *world) { w.node.write(t, "/mnt/copy/large", "theirs") },
		"folder/small": func(t *testing.T, w *world) { // of the same size, but of another time
			w.node.write(t, "/mnt/copy/folder/small", "t")
			if err := os.Chtimes(filepath.Join(w.node.root, "/mnt/copy/folder/small"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		},
		"folder": func(t *testing.T, w *world) { w.node.write(t, "/mnt/copy/folder", "theirs") },
	} {
		t.Run(name, func(t *testing.T) {
			one := acts()["copy"]
			w := newWorld(t, wanted("op", one.action))
			one.prepare(t, w)
			if _, err := w.turn("op"); err != nil {
				t.Fatal(err)
			}
			put(t, w)
			before := w.node.read(t, filepath.Join("/mnt/copy", name))
			operation := w.settle("op")
			expect(t, operation, "Failed", v1alpha1.ReasonActionFailed)
			if message := operation.Status.Conditions[0].Message; !strings.Contains(message, name+" already exists in dataset bench0/copy") {
				t.Errorf("message %q", message)
			}
			if now := w.node.read(t, filepath.Join("/mnt/copy", name)); now != before {
				t.Errorf("it is %q now", now)
			}
			noHalves(t, w)
		})
	}
}

// TestNamesAreNotTaken: a file that comes at the last moment keeps its name.
func TestNamesAreNotTaken(t *testing.T) {
	for name, give := range map[string]func(folder int, from, to string) error{"rename": renameNew, "link": linkNew} {
		folder := t.TempDir()
		root, err := os.OpenRoot(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		c := &copying{to: root, half: half}
		for path, text := range map[string]string{half: "ours", "theirs": "theirs"} {
			if err := os.WriteFile(filepath.Join(folder, path), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		opened, err := root.Open(".")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = opened.Close() }()
		if err := give(int(opened.Fd()), half, "theirs"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(give(int(opened.Fd()), half, "ours"), c.discardHalf(".")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range []string{"ours", "theirs"} {
			if text, err := os.ReadFile(filepath.Join(folder, want)); string(text) != want {
				t.Errorf("%s: %s is %q: %v", name, want, text, err)
			}
		}
		if entries, _ := os.ReadDir(folder); len(entries) != 2 {
			t.Errorf("%s: %v", name, entries)
		}
	}
}
