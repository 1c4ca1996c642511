package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/spelling"
)

// The limits of a walk through a dataset, because tenants control its contents.
const (
	// maxEntries is the largest number of files and folders of one walk.
	maxEntries = 1_000_000
	// maxDepth is the largest nesting depth. Each level has two open descriptors and one batch of names.
	maxDepth = 64
	// namesAtOnce is the batch size of folder reads.
	namesAtOnce = 128
	// maxShownName limits a name in a message, in bytes.
	maxShownName = 256
)

// walk visits the files and folders of a dataset, parents first, in the order of the file system. It follows no symlinks and stays
// in the file system. Its memory use does not depend on the contents.
type walk struct {
	device         string
	use            func(path string, info fs.FileInfo) error
	entries, depth int
	seen           int
}

// eachFile calls use for the root of a dataset, as ".", and for everything in it.
func eachFile(ctx context.Context, root *os.Root, use func(path string, info fs.FileInfo) error) error {
	return (&walk{use: use, entries: maxEntries, depth: maxDepth}).all(ctx, root)
}

func (w *walk) all(ctx context.Context, root *os.Root) error {
	info, err := root.Lstat(".")
	if err != nil {
		return err
	}
	w.device = deviceNumber(info)
	if err := w.use(".", info); err != nil {
		return err
	}
	return w.folder(ctx, root, ".", 1)
}

// folder visits one folder in batches of names.
func (w *walk) folder(ctx context.Context, folder *os.Root, path string, depth int) error {
	opened, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // only read from
	for {
		names, err := opened.Readdirnames(namesAtOnce)
		for _, name := range names {
			if err := w.entry(ctx, folder, name, filepath.Join(path, name), depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *walk) entry(ctx context.Context, folder *os.Root, name, path string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.seen++; w.seen > w.entries {
		return fmt.Errorf("it has more than %d files and folders, the limit of one operation: use a smaller dataset, "+
			"or use replicate, which copies any number: %w", w.entries, operations.ErrPermanent)
	}
	if path == ".zfs" { // the snapshots of the dataset
		return nil
	}
	info, err := folder.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // removed since the folder was read
		return nil
	}
	if err != nil {
		return err
	}
	if deviceNumber(info) != w.device {
		return nil
	}
	if !info.IsDir() {
		return w.use(path, info)
	}
	if depth >= w.depth {
		return fmt.Errorf("its folders are nested more than %d deep, the limit of one operation (%s): use a dataset without "+
			"such folders: %w",
			w.depth, shown(path), operations.ErrPermanent)
	}
	if err := w.use(path, info); err != nil {
		return err
	}
	return w.below(ctx, folder, name, path, info, depth)
}

// below visits a subfolder, if it is still the one that was read.
func (w *walk) below(ctx context.Context, folder *os.Root, name, path string, info fs.FileInfo, depth int) error {
	found, err := openFolder(folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	inner, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", found.Fd()))
	if err = errors.Join(err, found.Close()); err != nil {
		return err
	}
	defer func() { _ = inner.Close() }() // only read from
	opened, err := inner.Lstat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(info, opened) {
		return fmt.Errorf("folder %s was replaced while it was read: use a dataset that does not change", shown(path))
	}
	return w.folder(ctx, inner, path, depth+1)
}

// openFolder opens a folder and nothing else. A tenant may have put a pipe in its place, and opening that would block until there is a
// writer.
func openFolder(in *os.Root, name string) (*os.File, error) {
	return in.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

// shown shortens a path for messages, because tenants choose its length.
func shown(path string) string { return spelling.Shorten(path, maxShownName) }
