//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/postgres"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

const defaultDatabase = 1 << 30

// database is a real PostgreSQL under pgbench.
type database struct {
	given  v1alpha1.PostgresWorkload
	script []byte
	// taken is the space that the cluster takes on the volume, including its log if that is on the same volume. It is set only on ZFS,
	// whose cache keeps the data as compressed as on the disks; 0 otherwise.
	taken int64
}

func (d *database) prepare(_ context.Context, s *session) error {
	if d.given.Script == nil {
		return nil
	}
	var err error
	d.script, err = s.readPhaseFile()
	return err
}

func (d *database) options(s *session, seed int64) postgres.Options {
	scratch := s.executor.Scratch
	if scratch == "" {
		scratch = os.TempDir()
	}
	options := postgres.Options{
		Folder: filepath.Join(s.volume.path, namePrefix+"postgres"), Scratch: scratch, Mode: d.given.Mode, Script: d.script,
		DatabaseBytes: defaultDatabase, Clients: defaultWorkers, Duration: length(d.given.Duration, defaultDuration),
		RampUp:        length(d.given.RampUp, 0),
		DataChecksums: d.given.DataChecksums == nil || *d.given.DataChecksums, Settings: map[string]string{}, Seed: seed, Keep: d.given.Keep,
		Progress: s.progress.say,
	}
	if options.Mode == "" {
		options.Mode = postgres.TPCBLike
	}
	if d.given.DatabaseSize != nil {
		options.DatabaseBytes = d.given.DatabaseSize.Value()
	}
	if d.given.Clients > 0 {
		options.Clients = int(d.given.Clients)
	}
	if s.wal != nil {
		options.WALFolder = s.wal.folder()
	}
	options.Settings["checkpoint_timeout"] = fmt.Sprintf("%ds", workload.CheckpointTimeout(options.Duration)/time.Second)
	for name, value := range d.given.Settings {
		options.Settings[name] = string(value)
	}
	return options
}

func (d *database) round(ctx context.Context, s *session, _ int) (figures, error) {
	seed := s.random.next()
	options := d.options(s, seed)
	if err := d.hasRoom(s, options); err != nil {
		return figures{}, err
	}
	s.progress.stretch("postgres", 0, 1, 0, 0)
	var early error
	outcome, err := postgres.Run(ctx, options, func(event string) { early = errors.Join(early, s.databaseEvent(ctx, event)) })
	if err := errors.Join(early, err); err != nil {
		return figures{}, err
	}
	for name, value := range outcome.Environment {
		s.environment[name] = value
	}
	for _, note := range outcome.Notes {
		s.note("%s", note)
	}
	s.details.Postgres = outcome.Details
	s.recorder.addDatabase(outcome.Series, s.bracket.began)
	wall := s.bracket.ended.elapsed - s.bracket.began.elapsed
	sum := fio.Sum{Duration: time.Duration(outcome.Metrics["durationNanoseconds"])}
	// A client and its server process take turns, so no more CPUs than clients are busy.
	s.bracket.workers, s.bracket.loop = options.Clients, loop{workers: options.Clients}
	if s.volume.mount.FSType == "zfs" { // its cache keeps the data as compressed as on the disks
		if d.taken, err = s.takes(ctx, options.Folder); err != nil {
			return figures{}, err
		}
	}
	waited := time.Duration(outcome.Metrics["transactions"] * outcome.Metrics["transactionLatencyMeanNanoseconds"])
	return figures{sum: sum, operations: outcome.Metrics["transactions"], metrics: outcome.Metrics, waited: waited,
			throughput: float64(outcome.Metrics["transactionsPerSecond"]), seed: seed},
		s.compareClocks(sum.Duration, wall, 1, expectation{free: true})
}

// databaseEvent waits for the other nodes before the server's counters are read, and takes the other counters around the measured part.
func (s *session) databaseEvent(ctx context.Context, event string) error {
	switch event {
	case postgres.Ready:
		return s.awaitStart(ctx, 0)
	case postgres.Begin: // without a sync: writing out what the server still has in memory is part of the measurement
		if at := s.request.StartAt; at != nil {
			s.lags(*at) // reading the server's counters takes a moment
		}
		s.wal.begin()
		s.watchMemory()
		s.bracket.before, s.bracket.began = s.counters.Take(), s.clock.start()
	case postgres.End:
		s.bracket.ended = s.clock.start()
		s.bracket.after = s.counters.Take()
		s.unwatchMemory()
		s.wal.end()
	}
	return nil
}

// takes is the space that a folder takes on the volume.
func (s *session) takes(ctx context.Context, folder string) (int64, error) {
	if err := s.sync(ctx); err != nil { // data that is not written yet is not counted
		return 0, err
	}
	return allocatedBelow(folder)
}

// hasRoom refuses a file system that is shared with others and has too little room for a new database, and a volume that is too small for
// its log. A database that is kept already has its space.
func (d *database) hasRoom(s *session, options postgres.Options) error {
	room, err := s.volume.room()
	if err != nil {
		return err
	}
	if s.volume.shared && !options.Keep && options.DatabaseBytes*2 > room {
		return invalidf(ReasonVolumeFull,
			"a database of %d bytes needs about twice as much with its logs, but there is room for %d: reduce databaseSize, or enlarge the volume",
			options.DatabaseBytes, room)
	}
	return s.wal.roomFor(workload.WALBytes(&d.given))
}

// finish adds the figures of the database and of its log, and notes what the figures hardly contain: checkpoints, or reads from the
// storage.
func (d *database) finish(s *session, _ fio.Sum) error {
	if done := s.metrics[results.MetricCheckpoints]; done < 2 && d.given.Mode != postgres.SelectOnly {
		s.note("%d checkpoints were in the measured time, so their cost is hardly in the figures: measure for 3m or longer, or write a "+
			"smaller checkpoint_timeout or max_wal_size in settings", done)
	}
	s.noteFew("transaction", s.metrics["transactions"])
	memory, err := strconv.ParseInt(s.environment["memory.bytes"], 10, 64)
	if bytes := s.metrics["databaseBytes"]; err == nil && memory > 0 && bytes > 0 {
		s.metrics["databaseMemoryPartsPerMillion"] = int64(float64(bytes) / float64(memory) * 1e6)
		words := fmt.Sprintf("the database of %d bytes", bytes)
		if d.taken > 0 && d.taken < bytes {
			words += fmt.Sprintf(", which takes %d on the volume and in the cache of ZFS,", d.taken)
			bytes = d.taken
		}
		if bytes < memory {
			s.note("%s may fit in the memory of the node, which has %d: reads then do not reach the storage, and commits and checkpoints are "+
				"what is measured; increase databaseSize to measure reads", words, memory)
		}
	}
	s.addWAL()
	return nil
}
