package build

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/storagebench/storagebench/test/lab/progress"
)

func testStore(t *testing.T) *store {
	t.Helper()
	t.Setenv("STORAGEBENCH_CACHE", t.TempDir())
	report, err := progress.New(io.Discard, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(report)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fill is a build that writes one file.
func fill(content string) func(string, io.Writer) error {
	return func(dir string, _ io.Writer) error {
		return os.WriteFile(filepath.Join(dir, "content"), []byte(content), 0o644)
	}
}

// mustNotBuild is a build that should not be needed.
func mustNotBuild(t *testing.T) func(string, io.Writer) error {
	return func(string, io.Writer) error {
		t.Error("it is built again")
		return nil
	}
}

func TestEveryInputChangesTheKey(t *testing.T) {
	base := recipe{"thing", []string{"one", "two"}}
	if base.folder() != (recipe{"thing", []string{"one", "two"}}).folder() {
		t.Error("the same recipe has two keys")
	}
	for _, other := range []recipe{
		{"other", []string{"one", "two"}}, {"thing", []string{"one", "2"}}, {"thing", []string{"two", "one"}},
		{"thing", []string{"onetwo"}}, {"thing", []string{"on", "etwo"}}, {"thing", nil},
	} {
		if other.folder() == base.folder() {
			t.Errorf("%v has the key of %v", other, base)
		}
	}
	more := debian{nodeTree.variant, append([]string{"vim"}, nodeTree.packages...)}
	if (recipe{"t", more.options()}).folder() == (recipe{"t", nodeTree.options()}).folder() {
		t.Error("another package does not change the key")
	}
}

func TestAnArtifactIsBuiltOnceAndAgainIfItsRecipeChanges(t *testing.T) {
	s := testStore(t)
	first, err := s.artifact(t.Context(), recipe{"thing", []string{"1"}}, "make a thing", fill("one"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.artifact(t.Context(), recipe{"thing", []string{"1"}}, "make a thing", mustNotBuild(t))
	if err != nil || again != first {
		t.Errorf("second time: %s, %v; want %s", again, err, first)
	}
	other, err := s.artifact(t.Context(), recipe{"thing", []string{"2"}}, "make a thing", fill("two"))
	if err != nil || other == first {
		t.Errorf("another recipe: %s, %v", other, err)
	}
	if content, err := os.ReadFile(filepath.Join(other, "content")); string(content) != "two" {
		t.Errorf("content %q, %v", content, err)
	}
}

func TestWhatAKilledBuildLeftIsRemovedByTheNext(t *testing.T) {
	s := testStore(t)
	r, older, busy := recipe{"thing", []string{"1"}}, recipe{"thing", []string{"0"}}, recipe{"thing", []string{"2"}}
	for _, killed := range []recipe{r, older, busy} {
		left := filepath.Join(s.dir, killed.folder()+building+"123", "usr")
		if err := os.MkdirAll(left, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(left, "half"), nil, 0o444), os.Chmod(left, 0o555)); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := s.lock(t.Context(), filepath.Join(s.dir, busy.folder()), "make another thing")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	t.Cleanup(func() { _ = removeAll(filepath.Join(s.dir, busy.folder()+building+"123")) })

	if _, err := s.artifact(t.Context(), r, "make a thing", fill("whole")); err != nil {
		t.Fatal(err)
	}
	for killed, want := range map[string]bool{r.folder(): false, older.folder(): false, busy.folder(): true} {
		if got := isDir(filepath.Join(s.dir, killed+building+"123")); got != want {
			t.Errorf("%s is there: %v, want %v", killed, got, want)
		}
	}
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	s := testStore(t)
	r := recipe{"thing", nil}
	broken := errors.New("broken")
	_, err := s.artifact(t.Context(), r, "make a thing", func(dir string, log io.Writer) error {
		return errors.Join(fill("half")(dir, log), broken)
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "make a thing") {
		t.Errorf("error %v", err)
	}
	left, err := os.ReadDir(s.dir)
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0].Name(), "lock") {
		t.Errorf("left: %v, want the lock only: %v", left, err)
	}
}

func TestTwoLabsBuildOnce(t *testing.T) {
	s := testStore(t)
	var built sync.Map
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			_, err := s.artifact(t.Context(), recipe{"thing", nil}, "make a thing", func(dir string, log io.Writer) error {
				if _, twice := built.LoadOrStore("thing", true); twice {
					t.Error("built twice")
				}
				return fill("one")(dir, log)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestWaitingForAnotherLabCanBeInterrupted(t *testing.T) {
	s := testStore(t)
	r := recipe{"thing", nil}
	unlock, err := s.lock(t.Context(), filepath.Join(s.dir, r.folder()), "make a thing")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.artifact(ctx, r, "make a thing", mustNotBuild(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
