package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// claimEnding is the suffix of the lock file beside the folder of a run. The process that uses the folder holds a lock on the file. The
// kernel releases the lock even if the process is killed, so a lock file without a lock shows that the run was killed.
const claimEnding = ".lock"

// claim is a held lock on a folder.
type claim struct{ file *os.File }

// claimFolder claims a folder for this process. The folder does not exist yet.
func claimFolder(path string) (*claim, error) {
	file, err := os.OpenFile(path+claimEnding, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	held := &claim{file}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		// On a file system without locks, a killed run cannot be distinguished from a running one. Remove the lock file, so that the folder
		// is never removed as a leftover.
		return nil, held.release()
	}
	return held, nil
}

// release removes the claim. A nil claim has nothing to remove.
func (c *claim) release() error {
	if c == nil {
		return nil
	}
	return errors.Join(os.Remove(c.file.Name()), c.file.Close())
}

// leftover is the folder of a run that was killed.
type leftover struct {
	path  string
	bytes int64
	claim *claim
}

// leftoversIn returns the leftovers in a folder. Each stays locked until remove or leave is called, so that no other process removes or
// uses it meanwhile.
func leftoversIn(folder string) ([]leftover, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	claims, err := filepath.Glob(filepath.Join(escapeGlob(folder), localPrefix+"*"+claimEnding))
	if err != nil || len(claims) == 0 {
		return nil, err
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	mounts, err := mountinfo.Parse(string(text))
	if err != nil {
		return nil, err
	}
	var found []leftover
	for _, name := range claims {
		path := strings.TrimSuffix(name, claimEnding)
		if mountedIn(mounts, path) {
			continue
		}
		if file, _ := lockClaim(path, unix.LOCK_EX); file != nil {
			found = append(found, leftover{path, usedBytes(path), &claim{file}})
		}
	}
	return found, nil
}

// lockClaim locks the lock file of an existing folder of a run, and returns nil if that is not possible: in an active run, or if the files
// are not what a run of this user makes.
func lockClaim(path string, how int) (file *os.File, active bool) {
	name := path + claimEnding
	if !ownAndReal(name, 0) || !ownAndReal(path, fs.ModeDir) {
		return nil, false
	}
	file, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false
	}
	if err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, errors.Is(err, unix.EWOULDBLOCK)
	}
	return file, false
}

// activeBeside returns the folder of another active run of this user beside the folder of a run. Empty if there is none.
func activeBeside(own string) string {
	claims, _ := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(own)), localPrefix+"*"+claimEnding)) // the pattern is valid
	for _, name := range claims {
		path := strings.TrimSuffix(name, claimEnding)
		if path == own {
			continue
		}
		file, active := lockClaim(path, unix.LOCK_SH) // runs that look at the same time do not take each other for an active one
		if active {
			return path
		}
		_ = file.Close() // a nil file returns an error
	}
	return ""
}

// remove deletes the folder.
func (l leftover) remove() error {
	if err := os.RemoveAll(l.path); err != nil {
		return errors.Join(err, l.claim.file.Close())
	}
	return l.claim.release()
}

// leave unlocks a leftover and keeps it, so that the next run finds it again.
func (l leftover) leave() { _ = l.claim.file.Close() }

// ownAndReal reports whether a path is a file or folder of this user and not a link: in a folder such as /tmp, others could plant one.
func ownAndReal(path string, kind fs.FileMode) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != kind {
		return false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}

// mountedIn reports whether something is mounted in a folder. A mount does not come from a run.
func mountedIn(mounts []mountinfo.Mount, path string) bool {
	return slices.ContainsFunc(mounts, func(one mountinfo.Mount) bool { return strings.HasPrefix(one.Point+"/", path+"/") })
}

// usedBytes returns the disk space of the readable files in a folder.
func usedBytes(folder string) (sum int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not counted
		}
		if info, err := entry.Info(); err == nil {
			if stat, known := info.Sys().(*syscall.Stat_t); known {
				sum += stat.Blocks * 512
			}
		}
		return nil
	})
	return sum
}

var globReplacer = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// escapeGlob turns a path into a pattern that matches only this path.
func escapeGlob(path string) string { return globReplacer.Replace(path) }
