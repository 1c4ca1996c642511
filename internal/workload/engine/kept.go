//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// takeOver assigns a volume that an earlier run has left, and the data on it, to this run. It has to be the volume of that run.
func (v *volume) takeOver(there bool, before, run results.RunIdentity) error {
	switch m := v.marker; {
	case !there:
		return wrongPlace("the data of run %s/%s was expected on the volume %s, but it carries no marker: it is another volume", before.Namespace,
			before.Name, v.path)
	case m.Run != before:
		return wrongPlace("the data of run %s/%s (%s) was expected on the volume %s, but it contains that of %s/%s (%s): it is another volume",
			before.Namespace, before.Name, before.UID, v.path, m.Run.Namespace, m.Run.Name, m.Run.UID)
	}
	if err := v.sameAsMarked(); err != nil {
		return err
	}
	v.marker.Run = run
	return v.mark()
}

// fillKept fills a volume that still has the data of the previous run. The phase says how much data there has to be in all: existing data
// stays as it is, and only what is missing is written.
func (s *session) fillKept(ctx context.Context, f *filling, phase v1alpha1.FillPhase) error {
	capacity, err := s.volume.capacity()
	if err != nil {
		return err
	}
	missing, err := s.missing(ctx, f, phase, capacity)
	if err != nil {
		return err
	}
	if missing {
		if phase.Size != nil {
			rest := phase.Size.Value() - f.had*int64(f.files)
			phase.Size = &v1alpha1.Amount{Quantity: *resource.NewQuantity(rest, resource.BinarySI)}
		}
		if s.volume.block {
			return s.fillDevice(ctx, f, phase)
		}
		return s.fillFolder(ctx, f, phase)
	}
	s.metrics["volumeBytes"] = capacity
	s.check("filled", true, "%d bytes of data exist from the previous run, and no more are requested: nothing was written",
		f.had*int64(f.files))
	if s.volume.block {
		return nil
	}
	if s.metrics["allocatedBytes"], err = s.usedAfterSync(ctx); err != nil {
		return err
	}
	return s.verifyAllocation(f)
}

// missing reports whether there is less data than a fill asks for.
func (s *session) missing(ctx context.Context, f *filling, phase v1alpha1.FillPhase, capacity int64) (bool, error) {
	there := f.had * int64(f.files)
	if phase.Size != nil {
		return there < phase.Size.Value(), nil
	}
	share, err := parseShare(phase.To)
	if err != nil {
		return false, err
	}
	target := int64(share * float64(capacity))
	if s.volume.block {
		return there < min(target, s.volume.area().bytes)/f.blockSize*f.blockSize, nil
	}
	used, err := s.usedAfterSync(ctx)
	return target-used > f.tolerance(capacity), err
}

// findKeptLogs looks for the logs of the previous run. They are used again if their number and their sizes fit this workload. On a device
// they are always recreated, because nothing distinguishes them from other data.
func (r *redo) findKeptLogs(s *session) (bool, error) {
	if s.request.KeepsDataOf == nil || s.volume.block {
		return false, nil
	}
	var logs []extent
	for i := range r.writers() + 1 {
		info, err := os.Lstat(logPath(s, i))
		switch {
		case i == r.writers():
			if !errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("look for the logs of the previous run: %w", err)
		case !info.Mode().IsRegular() || info.Size() < smallestLog || len(logs) > 0 && info.Size() != logs[0].bytes:
			return false, nil
		default:
			logs = append(logs, extent{logPath(s, i), 0, info.Size()})
		}
	}
	r.logs = logs
	s.note("the logs are those of the previous run: they were not recreated")
	return true, nil
}

// logPath is the file of a writer's log.
func logPath(s *session, writer int) string {
	return filepath.Join(s.volume.path, fmt.Sprintf("%sredo.%02d", namePrefix, writer))
}
