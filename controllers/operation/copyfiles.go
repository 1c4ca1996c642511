package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
)

// unixStat is the kernel's information about a file.
func unixStat(info fs.FileInfo) (*syscall.Stat_t, bool) {
	status, isUnix := info.Sys().(*syscall.Stat_t)
	return status, isUnix
}

// copying copies the files of one dataset to another.
type copying struct {
	from, to *os.Root
	// half is the name of the temporary file, in the folder of the final one. No other operation uses it.
	half   string
	target string
	job    *job
	buffer []byte
	// overwrite is true if existing files are overwritten.
	overwrite bool
	// bytes counts the copied bytes, and total the bytes to copy. files counts regular files, folders counts folders, and other counts
	// links, sockets and devices. found counts the files that an earlier attempt has copied, and overwritten the existing files that were
	// overwritten.
	bytes, total          int64
	files, folders, other int64
	found, overwritten    int64
	told                  time.Time
	now                   func() time.Time
}

// sum adds up the sizes of the files. It returns an error if the source exceeds the limits of a walk, before anything is created or
// written.
func (c *copying) sum(ctx context.Context) error {
	return eachFile(ctx, c.from, func(_ string, info fs.FileInfo) error {
		if size := info.Size(); info.Mode().IsRegular() {
			c.total += min(size, math.MaxInt64-c.total) // sparse files may claim any size
		}
		return nil
	})
}

func (c *copying) all(ctx context.Context) error {
	c.tell(true)
	err := eachFile(ctx, c.from, func(path string, info fs.FileInfo) error {
		switch {
		case path == ".":
			return c.discardHalf(path)
		case info.IsDir():
			c.folders++
			return c.folder(path, info)
		case info.Mode().IsRegular():
			c.files++
			return c.file(ctx, path, info)
		}
		c.other++
		return nil
	})
	c.tell(true)
	return err
}

// owner returns the owner and the permissions of a file.
func owner(path string, info fs.FileInfo) (user, group int, mode fs.FileMode, err error) {
	status, isUnix := unixStat(info)
	if !isUnix {
		return 0, 0, 0, fmt.Errorf("the node does not report the owner of %s", shown(path))
	}
	return int(status.Uid), int(status.Gid), info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky), nil
}

// folder creates a folder with the owner and the permissions of the original. An existing one is used.
func (c *copying) folder(path string, info fs.FileInfo) error {
	user, group, mode, err := owner(path, info)
	if err != nil {
		return err
	}
	if err := c.to.Mkdir(path, 0o700); errors.Is(err, fs.ErrExist) {
		if known, err := c.to.Lstat(path); err != nil || !known.IsDir() {
			return errors.Join(err, c.taken(path))
		}
	} else if err != nil {
		return err
	}
	return errors.Join(c.to.Lchown(path, user, group), c.to.Chmod(path, mode), c.discardHalf(path))
}

// discardHalf removes incomplete files of an earlier agent from a folder.
func (c *copying) discardHalf(folder string) error {
	if err := c.to.Remove(filepath.Join(folder, c.half)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// taken returns the error for an existing file at the target path that the operation must not overwrite.
func (c *copying) taken(path string) error {
	return fmt.Errorf("%s already exists in dataset %s and is not a copy of the current original; it stays as it is: copy data that does not "+
		"change, to an empty dataset: %w",
		shown(path), c.target, operations.ErrPermanent)
}

// copied reports whether an earlier attempt of this operation has copied a file completely: size and time equal those of the original. Any
// other existing file is an error.
func (c *copying) copied(path string, original fs.FileInfo) (bool, error) {
	known, err := c.to.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !known.Mode().IsRegular() || known.Size() != original.Size() || !known.ModTime().Equal(original.ModTime()):
		return false, c.taken(path)
	}
	return true, nil
}

// replaced handles a target file that may exist: it is overwritten if requested, and otherwise has to be a copy by an earlier attempt.
func (c *copying) replaced(ctx context.Context, path string, source io.Reader, original fs.FileInfo) (there bool, err error) {
	if c.overwrite {
		return c.rewrite(ctx, path, source, original)
	}
	if there, err = c.copied(path, original); there {
		c.found++
		c.bytes += original.Size()
		c.tell(false)
	}
	return there, err
}

// rewrite overwrites an existing file from its start, like a database that restores a file. It creates no file and follows no link.
func (c *copying) rewrite(ctx context.Context, path string, source io.Reader, original fs.FileInfo) (there bool, err error) {
	known, err := c.to.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	if !known.Mode().IsRegular() {
		return true, c.taken(path)
	}
	target, err := c.to.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return true, err
	}
	opened, err := target.Stat()
	if err == nil && !sameFile(known, opened) {
		err = c.taken(path)
	}
	if err != nil {
		return true, errors.Join(err, target.Close())
	}
	c.overwritten++
	before := c.bytes
	if err = c.contents(ctx, target, source); err == nil {
		err = target.Truncate(c.bytes - before)
	}
	return true, errors.Join(c.finish(err, target, path, original), target.Close())
}

// sameFile reports whether an opened file is the regular file that was found before. By now, its inode number may belong to a pipe, which
// would block the reader until there is a writer.
func sameFile(seen, opened fs.FileInfo) bool {
	return os.SameFile(seen, opened) && opened.Mode().IsRegular()
}

func (c *copying) file(ctx context.Context, path string, info fs.FileInfo) error {
	// The file may have been replaced since the walk: do not follow links, and do not wait for pipes.
	source, err := c.from.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // opened read-only
	opened, err := source.Stat()
	if err != nil {
		return err
	}
	if !sameFile(info, opened) {
		return fmt.Errorf("%s was replaced while it was copied: copy data that does not change", shown(path))
	}
	if there, err := c.replaced(ctx, path, source, opened); there || err != nil {
		return err
	}
	half := filepath.Join(filepath.Dir(path), c.half)
	if err := c.write(ctx, half, source, opened); err != nil {
		return errors.Join(err, c.discardHalf(filepath.Dir(path)))
	}
	err = c.publish(half, path)
	if errors.Is(err, fs.ErrExist) {
		err = c.taken(path)
	}
	return errors.Join(err, c.discardHalf(filepath.Dir(path)))
}

// write creates a file with the contents, the owner, the permissions and the time of the original. It does not sync each file: many syncs
// would go through the intent log, which causes additional writes. ZFS keeps the order of writes, so after a crash of the node no file has
// its final name without its contents.
func (c *copying) write(ctx context.Context, path string, source io.Reader, original fs.FileInfo) error {
	target, err := c.to.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(c.finish(c.contents(ctx, target, source), target, path, original), target.Close())
}

// finish gives a written file the owner, the permissions and the time of the original. The time is set after everything that changes it.
func (c *copying) finish(err error, target *os.File, path string, original fs.FileInfo) error {
	if err != nil {
		return err
	}
	user, group, mode, err := owner(path, original)
	if err != nil {
		return err
	}
	return errors.Join(target.Chown(user, group), target.Chmod(mode), c.to.Chtimes(path, time.Time{}, original.ModTime()))
}

// publish gives a file its final name, and never replaces an existing file.
func (c *copying) publish(half, path string) error {
	folder, err := openFolder(c.to, filepath.Dir(path))
	if err != nil {
		return err
	}
	at := int(folder.Fd()) //nolint:gosec // a file descriptor
	err = renameNew(at, filepath.Base(half), filepath.Base(path))
	if errors.Is(err, unix.EINVAL) { // OpenZFS before 2.2
		err = linkNew(at, filepath.Base(half), filepath.Base(path))
	}
	if err != nil {
		err = fmt.Errorf("name %s: %w", shown(path), err)
	}
	return errors.Join(err, folder.Close())
}

func renameNew(folder int, from, to string) error {
	return unix.Renameat2(folder, from, folder, to, unix.RENAME_NOREPLACE)
}

// linkNew does not remove the old name. Like renameNew, it replaces nothing.
func linkNew(folder int, from, to string) error {
	return unix.Linkat(folder, from, folder, to, 0)
}

func (c *copying) contents(ctx context.Context, target io.Writer, source io.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		count, err := source.Read(c.buffer)
		if count > 0 {
			if _, err := target.Write(c.buffer[:count]); err != nil {
				return err
			}
			c.bytes += int64(count)
			c.tell(false)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// tell reports progress once a second.
func (c *copying) tell(always bool) {
	if now := c.now(); always || now.Sub(c.told) >= time.Second {
		c.told = now
		c.job.report(v1alpha1.OperationProgress{DoneBytes: c.bytes, TotalBytes: max(c.total, c.bytes), Percent: percent(c.bytes, c.total),
			Message: fmt.Sprintf("copying: %d files so far", c.files)})
	}
}
