package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/storagebench/storagebench/test/lab/progress"
)

const (
	keyLength = 16
	// building marks the folder of an artifact that is not finished.
	building = ".building-"
	lockFile = ".lock"
)

// recipe says how an artifact is made: two recipes with the same parts make the same artifact.
type recipe struct {
	name  string
	parts []string
}

// folder is the name of the artifact in the cache: its name and a short hash of all its inputs.
func (r recipe) folder() string {
	hash := sha256.New()
	for _, part := range append([]string{r.name}, r.parts...) {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return r.name + "-" + hex.EncodeToString(hash.Sum(nil))[:keyLength]
}

// store keeps what was built. Labs on the same machine share it, and may use it at the same time.
type store struct {
	dir    string
	report *progress.Reporter
}

func openStore(report *progress.Reporter) (*store, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "lab")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	return &store{dir: dir, report: report}, nil
}

// cacheDir is where hack/tool keeps what it builds, too.
func cacheDir() (string, error) {
	if dir := os.Getenv("STORAGEBENCH_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "storagebench"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the cache: %w; set STORAGEBENCH_CACHE", err)
	}
	return filepath.Join(home, ".cache", "storagebench"), nil
}

// artifact returns the folder of what the recipe makes. If it does not exist, build is called with an empty folder to fill;
// what describes this step.
func (s *store) artifact(ctx context.Context, r recipe, what string, build func(dir string, log io.Writer) error) (string, error) {
	final := filepath.Join(s.dir, r.folder())
	if isDir(final) {
		return final, nil
	}
	unlock, err := s.lock(ctx, final, what)
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(final) { // another process made it meanwhile
		return final, nil
	}
	err = s.report.Step(r.name, what, func(log io.Writer) error {
		if err := s.removeLeftovers(r.name, final); err != nil {
			return err
		}
		dir, err := os.MkdirTemp(s.dir, r.folder()+building)
		if err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(dir, 0o755), build(dir, log)); err != nil {
			return errors.Join(err, removeAll(dir))
		}
		return os.Rename(dir, final) // in one step: there is no half artifact
	})
	if err != nil {
		return "", err
	}
	return final, nil
}

// lock waits until no other process builds what will be in the folder final.
func (s *store) lock(ctx context.Context, final, what string) (unlock func(), err error) {
	file, err := os.OpenFile(final+lockFile, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	release := func() { _ = file.Close() }
	if tryLock(file) {
		return release, nil
	}
	s.report.Say("%s: waiting for another lab that is at it", what)
	locked := make(chan error, 1)
	go func() { locked <- syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }()
	select {
	case err := <-locked:
		if err != nil {
			release()
			return nil, fmt.Errorf("lock %s: %w", final, err)
		}
		return release, nil
	case <-ctx.Done():
		return nil, ctx.Err() // the file stays open until the process ends: closing it would not end the wait
	}
}

func tryLock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// removeLeftovers removes what killed builds of artifacts of this name left: of the one whose lock is held, and of
// older recipes unless they are in use right now.
func (s *store) removeLeftovers(name, held string) error {
	leftovers, err := filepath.Glob(filepath.Join(s.dir, name+"-*"+building+"*"))
	if err != nil {
		return err
	}
	for _, leftover := range leftovers {
		owner, _, _ := strings.Cut(leftover, building)
		if owner == held {
			if err := removeAll(leftover); err != nil {
				return err
			}
			continue
		}
		lock, err := os.OpenFile(owner+lockFile, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		if tryLock(lock) {
			err = removeAll(leftover)
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

// removeAll removes a folder that may contain folders without write permission, as Debian trees do.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an interrupted build left: %w", err)
	}
	return os.RemoveAll(dir)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
