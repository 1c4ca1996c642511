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

// claimEnding is that of the file beside the folder of a run. The process that works in the folder holds a lock on it, which the kernel
// takes back when the process ends, however it ends. So a file without its lock says that the run was killed.
const claimEnding = ".lock"

// claim is held by the process that works in a folder.
type claim struct{ file *os.File }

// claimFolder says that this process will work in a folder which does not exist yet.
func claimFolder(path string) (*claim, error) {
	file, err := os.OpenFile(path+claimEnding, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	held := &claim{file}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		// A file system without locks could not tell a killed run from one at work, so nothing of it is ever removed.
		return nil, held.release()
	}
	return held, nil
}

// release forgets the folder. Nil is no claim.
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

// leftoversIn are those in a folder. Each is locked until remove or release, so that no other process removes or uses it meanwhile.
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
		if !ownAndReal(name, 0) || !ownAndReal(path, fs.ModeDir) || mountedIn(mounts, path) {
			continue
		}
		file, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			_ = file.Close() // a run is at work there
			continue
		}
		found = append(found, leftover{path, usedBytes(path), &claim{file}})
	}
	return found, nil
}

// remove deletes the folder.
func (l leftover) remove() error {
	if err := os.RemoveAll(l.path); err != nil {
		return errors.Join(err, l.claim.file.Close())
	}
	return l.claim.release()
}

// leave lets it be found again.
func (l leftover) leave() { _ = l.claim.file.Close() }

// ownAndReal says whether a path is a file or folder of this user, and no link: in a folder like /tmp others could lay out either.
func ownAndReal(path string, kind fs.FileMode) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != kind {
		return false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}

// mountedIn: what someone has mounted there is not what a run has left.
func mountedIn(mounts []mountinfo.Mount, path string) bool {
	return slices.ContainsFunc(mounts, func(one mountinfo.Mount) bool { return strings.HasPrefix(one.Point+"/", path+"/") })
}

// usedBytes is what a folder takes on the disk, as far as it can be read.
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

// escapeGlob is a path as a pattern for itself.
func escapeGlob(path string) string { return globReplacer.Replace(path) }
