//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/workload"
)

// walVolume is a separate volume for the write-ahead log of a database. Its place is verified like that of the phase, and its counters are
// taken at the same moments. It is nil if the log is on the volume of the phase; begin, end and roomFor then do nothing.
type walVolume struct {
	*session

	// shares says that it is on the same disks as the volume of the phase.
	shares        bool
	before, after observe.Snapshot
}

// prepareWAL verifies the place of the write-ahead log, if that is on a separate volume.
func (s *session) prepareWAL(ctx context.Context) error {
	request := s.request.WAL
	if request == nil {
		return nil
	}
	wal := s.executor.newSession(*request, s.kind, nil)
	err := wal.preparePlace(ctx)
	if err == nil && wal.volume.path == s.volume.path {
		err = wrongPlace("%s is the volume of the phase too: the write-ahead log needs another one", wal.volume.path)
	}
	s.adoptChecks(wal)
	if err != nil {
		return fmt.Errorf("the volume of the write-ahead log: %w", err)
	}
	s.gatherEnvironment(workload.WAL, wal.environment, false)
	s.wal = &walVolume{session: wal, shares: shareDisks(s.request, *request)}
	return nil
}

// checkWAL looks at the pool of the write-ahead log, if that is not the one of the phase.
func (s *session) checkWAL(when string) error {
	if s.wal == nil || s.wal.shares {
		return nil
	}
	err := s.wal.checkPool(when)
	s.adoptChecks(s.wal.session)
	return err
}

// adoptChecks takes the checks of the volume of the write-ahead log.
func (s *session) adoptChecks(wal *session) {
	for _, check := range wal.checks {
		s.check(workload.WAL+"."+check.Name, check.Passed, "%s", check.Message)
	}
}

// folder is where PostgreSQL creates its log.
func (w *walVolume) folder() string { return filepath.Join(w.volume.path, namePrefix+"postgres") }

// roomFor refuses a volume that the log can fill, because PostgreSQL would stop. Leftovers of an earlier attempt count as free space.
func (w *walVolume) roomFor(bytes int64) error {
	if w == nil {
		return nil
	}
	room, err := w.volume.room()
	left, leftErr := allocatedBelow(w.folder())
	if err := errors.Join(err, leftErr); err != nil {
		return err
	}
	if room += left; room < bytes {
		return invalidf(ReasonVolumeFull, "the write-ahead log needs up to %d bytes, which are max_wal_size and a quarter, and there is room "+
			"for %d on its volume: write a smaller max_wal_size in settings, or enlarge the volume", bytes, room)
	}
	return nil
}

func (w *walVolume) begin() {
	if w != nil {
		w.before = w.counters.Take()
	}
}

func (w *walVolume) end() {
	if w != nil {
		w.after = w.counters.Take()
	}
}

// addWAL adds the counters of the devices of the write-ahead log to the figures of the phase.
func (s *session) addWAL() {
	if s.wal == nil {
		return
	}
	delta := s.wal.counters.Between(s.wal.before, s.wal.after).WithApplication(observe.Application{Lasting: s.lasting()})
	s.details.Workloads = map[string]Details{workload.WAL: {Counters: delta.Details, Unavailable: delta.Unavailable}}
	if s.wal.shares {
		s.note("the counters of the devices of the write-ahead log are left out: the database is on the same disks")
		return
	}
	for name, value := range delta.Metrics {
		if ofVolume(name) {
			s.metrics[workload.WAL+"."+name] = value
		}
	}
}
