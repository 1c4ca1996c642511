// Package postgres measures a real PostgreSQL on a volume: it creates a cluster there, starts a server that can only be reached through a
// private socket, loads it with pgbench, measures it with pgbench, and stops it. It needs no root, no network, no terminal and no writable
// folders except Folder and Scratch. It needs the programs initdb, postgres, pgbench and psql, all of one version from 13 on, and /bin/sh,
// which initdb needs too.
package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The modes of Options.
const (
	TPCBLike   = "TPCBLike"
	SelectOnly = "SelectOnly"
	Script     = "Script"
)

// The events that Run reports, once each and in this order.
const (
	// Ready is after the ramp-up, before the server's counters are read. A caller who waits for others waits here, so that what the server
	// does meanwhile is not counted.
	Ready = "ready"
	// Begin and End are immediately before and after the measured part.
	Begin = "begin"
	End   = "end"
)

// Options say what to measure.
type Options struct {
	// Folder on the volume; created if missing. Leftovers of an earlier attempt in it are removed, unless Keep is set. Anything else is not
	// touched.
	Folder string
	// WALFolder is like Folder, but on the volume of the write-ahead log. Empty if the log is in the folder of the cluster.
	WALFolder string
	// Scratch is a writable folder outside the volume, for the socket, the script and FIFOs: some KiB.
	Scratch string
	// Mode is TPCBLike, SelectOnly or Script.
	Mode string
	// Script is the pgbench script of the mode Script. It runs as the owner of the database, not as a superuser.
	Script []byte
	// DatabaseBytes is rounded up to a whole scale of pgbench.
	DatabaseBytes int64
	// Clients of pgbench.
	Clients int
	// Duration of the measured part and RampUp before it, each rounded up to whole seconds.
	Duration, RampUp time.Duration
	// DataChecksums of the cluster.
	DataChecksums bool
	// Keep uses the database that an earlier Run has left in Folder and WALFolder. It has to have the same size and checksums.
	Keep bool
	// Settings of postgresql.conf. Only those that the API allows are accepted.
	Settings map[string]string
	// Seed of pgbench's random numbers. The ramp-up has another, so that it does not warm exactly the rows that are measured.
	Seed int64
	// Progress may be nil. The percentage never falls.
	Progress func(percent int, rate string, left time.Duration)
}

// Outcome is the result of a measurement. A Run that fails has none.
type Outcome struct {
	// Metrics by their names in the vocabulary of results.
	Metrics map[string]int64
	// Environment has versions and seeds, and the settings as the server reports them.
	Environment map[string]string
	// Series is the rate over time. The Details contain it too.
	Series []Point
	// Details is a Details document.
	Details json.RawMessage
	// Notes say which metrics are left out, and why.
	Notes []string
}

// session is the state of one Run.
type session struct {
	options  Options
	programs programs
	data     string // the folder of the cluster
	scratch  string // a private folder below Options.Scratch
	server   *server
	progress *progress
	details  Details
}

// Run measures. It calls measured with Ready, Begin and End. When it returns, no process that it has started is left, unless its error says
// so; the stopped cluster stays in Folder for inspection.
func Run(ctx context.Context, options Options, measured func(event string)) (Outcome, error) {
	if err := options.check(); err != nil {
		return Outcome{}, err
	}
	programs, err := findPrograms(ctx)
	if err != nil {
		return Outcome{}, err
	}
	scratch, err := makeScratch(options.Scratch)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // leftovers are harmless
	if measured == nil {
		measured = func(string) {}
	}
	prepare := options.prepareFolders
	if options.Keep {
		prepare = options.findFolders
	}
	if err := prepare(); err != nil {
		return Outcome{}, err
	}
	s := &session{options: options, programs: programs, scratch: scratch, data: filepath.Join(options.Folder, dataName)}
	s.progress = newProgress(options)
	return s.run(ctx, measured)
}

func (s *session) run(ctx context.Context, measured func(string)) (Outcome, error) {
	begin := s.createCluster
	if s.options.Keep {
		begin = s.takeCluster
	}
	if err := begin(ctx); err != nil {
		return Outcome{}, stopped(ctx, err)
	}
	if err := s.startServer(ctx); err != nil {
		return Outcome{}, stopped(ctx, err)
	}
	outcome, err := s.work(ctx, measured)
	if err != nil {
		return Outcome{}, errors.Join(stopped(ctx, err), s.abandonServer())
	}
	if err := s.stopServer(ctx); err != nil {
		return Outcome{}, stopped(ctx, err)
	}
	outcome.Details, err = json.Marshal(s.details)
	return outcome, err
}

// work does everything that needs the running server.
func (s *session) work(ctx context.Context, measured func(string)) (Outcome, error) {
	alive, cancel := s.server.whileAlive(ctx)
	defer cancel()
	initialise := s.initialise
	if s.options.Keep {
		initialise = s.resume
	}
	loaded, err := initialise(alive)
	if err != nil {
		return Outcome{}, err
	}
	environment, err := s.environment(alive)
	if err != nil {
		return Outcome{}, err
	}
	if err := s.rampUp(alive); err != nil {
		return Outcome{}, err
	}
	measurement, err := s.measure(alive, measured)
	if err != nil {
		return Outcome{}, err
	}
	metrics := measurement.metrics()
	metrics["databaseBytes"] = loaded.databaseBytes
	if !s.options.Keep {
		metrics["initialiseNanoseconds"] = (loaded.load + loaded.checkpoint).Nanoseconds()
	}
	s.describe(loaded, measurement)
	outcome := Outcome{Metrics: metrics, Environment: environment, Series: s.details.Series}
	if measurement.noCommit != "" {
		outcome.Notes = append(outcome.Notes, measurement.noCommit)
	}
	return outcome, nil
}

// stopped puts the cause of a cancelled context before the error that followed from it.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("stopped: %w; %w", context.Cause(ctx), err)
}

// makeScratch creates a private folder. The path of a socket has at most 107 bytes.
func makeScratch(parent string) (string, error) {
	folder, err := os.MkdirTemp(parent, "pg-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the socket of PostgreSQL: %w", err)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	if longest := len(filepath.Join(folder, ".s.PGSQL.5432")); longest > 107 {
		return "", errors.Join(fmt.Errorf("the scratch folder %s is too deep for a socket (%d bytes of 107): choose a shorter path", parent,
			longest),
			os.Remove(folder))
	}
	return folder, nil
}
