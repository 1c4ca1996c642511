package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/plan"
)

// unixStat is what the kernel tells of a file.
func unixStat(info fs.FileInfo) (*syscall.Stat_t, bool) {
	status, isUnix := info.Sys().(*syscall.Stat_t)
	return status, isUnix
}

// copying is the copy of the files of one dataset to another.
type copying struct {
	from, to *os.Root
	job      *job
	buffer   []byte
	// bytes and files done; skipped are links, sockets, devices.
	bytes, total          int64
	files, folders, other int64
	told                  time.Time
	now                   func() time.Time
}

// copy begins from the beginning each time: what an earlier agent has written is written again.
func (r *Reconciler) copy(ctx context.Context, state plan.OperationState, j *job) (plan.OperationResult, error) {
	if err := r.prove(ctx, state); err != nil {
		return plan.OperationResult{}, err
	}
	if _, target, _ := strings.Cut(state.Operation.Status.Handle, " "); target != state.Target.GUID {
		return plan.OperationResult{}, fmt.Errorf("dataset %s is another than when the operation began: %w", state.Target.Name, plan.ErrPermanent)
	}
	from, err := r.open(state.Source.Name)
	if err != nil {
		return plan.OperationResult{}, err
	}
	defer func() { _ = from.Close() }() // only read from
	to, err := r.open(state.Target.Name)
	if err != nil {
		return plan.OperationResult{}, err
	}
	const bufferBytes = 1 << 20
	copier := &copying{from: from, to: to, job: j, buffer: make([]byte, bufferBytes), now: r.Clock.Now}
	err = errors.Join(copier.all(ctx), to.Close())
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = errors.Join(err, plan.ErrPermanent)
	}
	if err != nil {
		return plan.OperationResult{}, fmt.Errorf("copy the files of %s to %s: %w", state.Source.Name, state.Target.Name, err)
	}
	return plan.OperationResult{
		Message: fmt.Sprintf("%d files of %s are copied to %s; %d others (links, devices, sockets) are left out", copier.files, state.Source.Name, state.Target.Name, copier.other),
		Metrics: []v1alpha1.OperationMetric{{Name: "copiedBytes", Value: copier.bytes}, {Name: "copiedFiles", Value: copier.files},
			{Name: "copiedFolders", Value: copier.folders}, {Name: "skippedEntries", Value: copier.other}},
	}, nil
}

func (c *copying) all(ctx context.Context) error {
	err := eachFile(c.from, func(_ string, info fs.FileInfo) error {
		if info.Mode().IsRegular() {
			c.total += info.Size()
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	c.tell(true)
	err = eachFile(c.from, func(path string, info fs.FileInfo) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case path == ".":
			return nil
		case info.IsDir():
			c.folders++
			if err := c.to.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			return c.same(path, info)
		case info.Mode().IsRegular():
			c.files++
			return c.file(ctx, path, info)
		}
		c.other++
		return nil
	})
	if err != nil {
		return err
	}
	c.tell(true)
	folder, err := c.to.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// same gives a copy the owner and the rights of the original.
func (c *copying) same(path string, info fs.FileInfo) error {
	status, isUnix := unixStat(info)
	if !isUnix {
		return fmt.Errorf("the node does not tell the owner of %s", path)
	}
	return errors.Join(c.to.Lchown(path, int(status.Uid), int(status.Gid)), c.to.Chmod(path, info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)))
}

func (c *copying) file(ctx context.Context, path string, info fs.FileInfo) error {
	// What the walk has seen may be another file by now: a link is not followed, and a pipe not waited for.
	source, err := c.from.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // only read from
	opened, err := source.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, opened) {
		return fmt.Errorf("%s was replaced while it was copied: copy what is at rest", path)
	}
	target, err := c.to.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = c.contents(ctx, target, source)
	return errors.Join(err, target.Sync(), target.Close(), c.same(path, opened))
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
			Message: fmt.Sprintf("copies: %d files so far", c.files)})
	}
}
