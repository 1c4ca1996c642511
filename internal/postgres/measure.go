package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/storagebench/storagebench/internal/stats"
)

const (
	maxThreads = 16
	// overrun is how long the last transactions may take after the time is up.
	overrun = 15 * time.Minute
)

// measurement is the result of the measured part.
type measurement struct {
	summary   summary
	counted   *transactions
	walBytes  int64
	statistic counters
	series    *series
	threads   int
	began     time.Time
	// commit is the mean latency of commits in milliseconds; 0 if it is not known, and noCommit then says why, unless there are none.
	commit   float64
	noCommit string
}

func (s *session) rampUp(ctx context.Context) error {
	seconds := wholeSeconds(s.options.RampUp)
	if seconds == 0 {
		return nil
	}
	argv, err := s.benchArguments(seconds, s.options.rampUpSeed())
	if err != nil {
		return err
	}
	ctx, cancel := withOverrun(ctx, seconds)
	defer cancel()
	_, err = run(ctx, spec{argv: argv, environment: minimalEnvironment(s.scratch), line: s.showRate("ramp-up, ", seconds, nil)})
	if err != nil {
		return s.explain("ramp up", s.withoutScratch(err))
	}
	s.progress.passed(time.Duration(seconds) * time.Second)
	// A server process adds what it has counted when it ends, which may be after pgbench. Then the measurement would contain it.
	if _, err := s.until(ctx, queryPatience, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "+
		"AND pid <> pg_backend_pid()"); err != nil {
		return s.explain("ramp up", err)
	}
	return nil
}

// measure runs pgbench between two readings of the server's counters.
func (s *session) measure(ctx context.Context, measured func(string)) (measurement, error) {
	seconds := wholeSeconds(s.options.Duration)
	argv, err := s.benchArguments(seconds, uint64(s.options.Seed))
	if err != nil {
		return measurement{}, err
	}
	result := measurement{counted: &transactions{latencies: newHistogram()}, series: &series{}, threads: s.threads()}
	measured(Ready)
	before, err := s.statistics(ctx)
	if err != nil {
		return measurement{}, s.explain("measure", err)
	}
	position, err := s.position(ctx)
	if err != nil {
		return measurement{}, s.explain("measure", err)
	}
	result.began = time.Now()
	text, err := s.bench(ctx, argv, seconds, &result, measured)
	if err != nil {
		return measurement{}, s.explain("measure", s.withoutScratch(err))
	}
	result.walBytes, err = s.position(ctx)
	if err != nil {
		return measurement{}, s.explain("measure", err)
	}
	result.walBytes -= position
	s.progress.passed(time.Duration(seconds) * time.Second)
	if result.summary, err = parseSummary(text); err != nil {
		return measurement{}, err
	}
	result.commit, result.noCommit = commitMilliseconds(text)
	if err := result.check(s.options.Clients); err != nil {
		return measurement{}, err
	}
	if result.statistic, err = s.statisticsSince(ctx, before); err != nil {
		return measurement{}, s.explain("measure", err)
	}
	return result, nil
}

// bench runs pgbench with logs. It calls Begin when everything but pgbench is ready, and End after pgbench has ended.
func (s *session) bench(ctx context.Context, argv []string, seconds int64, result *measurement, measured func(string)) (string, error) {
	ctx, cancel := withOverrun(ctx, seconds)
	defer cancel()
	prefix := filepath.Join(s.scratch, "transactions")
	argv = append([]string{argv[0], "--log", "--log-prefix", prefix}, argv[1:]...)
	pgbench, gate, err := startHeld(ctx, spec{argv: argv, environment: minimalEnvironment(s.scratch),
		line: s.showRate("", seconds, result.series)})
	if err != nil {
		return "", err
	}
	pgbench.name = "pgbench"
	logs, err := openLogs(prefix, pgbench.pid, result.threads, result.counted)
	if err != nil {
		_ = gate.Close() // the shell exits
		_ = pgbench.wait(ctx)
		return "", err
	}
	measured(Begin)
	err = release(gate)
	err = errors.Join(pgbench.wait(ctx), err)
	measured(End)
	logs.finish()
	if err != nil {
		return "", err
	}
	return pgbench.output.text()
}

// benchArguments returns the arguments of pgbench. It sets --no-vacuum, because the load has vacuumed the database, and a vacuum would
// become part of the measurement.
func (s *session) benchArguments(seconds int64, seed uint64) ([]string, error) {
	argv := []string{s.programs.path("pgbench"), "--no-vacuum", "--client", strconv.Itoa(s.options.Clients), "--jobs",
		strconv.Itoa(s.threads()),
		"--time", strconv.FormatInt(seconds, 10), "--progress", "1", "--report-per-command", "--random-seed", strconv.FormatUint(seed, 10),
		"--host", s.scratch, "--port", "5432", "--username", owner}
	switch s.options.Mode {
	case SelectOnly:
		argv = append(argv, "--builtin", "select-only")
	case Script:
		path := filepath.Join(s.scratch, "script")
		if err := os.WriteFile(path, s.options.Script, 0o600); err != nil {
			return nil, fmt.Errorf("hand the script to pgbench: %w", err)
		}
		// Without a weight, an @ in the path would start one.
		argv = append(argv, "--file", path+"@1", "--scale", strconv.FormatInt(s.options.scale(), 10))
	default:
		argv = append(argv, "--builtin", "tpcb-like")
	}
	return append(argv, database), nil
}

// threads returns the number of threads of pgbench: as many as there are CPUs, but at most one for each client, and at most maxThreads.
func (s *session) threads() int { return min(s.options.Clients, runtime.GOMAXPROCS(0), maxThreads) }

func withOverrun(ctx context.Context, seconds int64) (context.Context, context.CancelFunc) {
	limit := time.Duration(seconds)*time.Second + overrun
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("pgbench did not end within %v: transactions hang", limit))
}

// showRate returns a function that handles pgbench's lines of progress.
func (s *session) showRate(prefix string, seconds int64, series *series) func(string) {
	return func(line string) {
		sample, ok := parseProgress(line)
		if !ok {
			return
		}
		if series != nil {
			series.add(sample)
		}
		passed := time.Duration(min(sample.seconds, float64(seconds)) * float64(time.Second))
		s.progress.report(fmt.Sprintf("%s%.0f transactions/s, %.3f ms", prefix, sample.tps, sample.latency), -passed)
	}
}

// statisticsSince waits until pgbench's connections are closed, because they report their counts at their end.
func (s *session) statisticsSince(ctx context.Context, before counters) (counters, error) {
	gone, err := s.until(ctx, settlePatience, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = '"+
		database+"'")
	if err != nil {
		return nil, err
	}
	if !gone {
		return nil, fmt.Errorf("connections of pgbench are still open after %v", settlePatience)
	}
	after, err := s.statistics(ctx)
	if err != nil {
		return nil, err
	}
	return after.since(before)
}

// check compares pgbench's summary with its logs. If they differ, the metrics are not reliable, and the measurement fails.
func (m measurement) check(clients int) error {
	counted := m.counted
	switch {
	case counted.broken != nil:
		return counted.broken
	case m.summary.transactions == 0:
		return errors.New("no transaction succeeded: measure longer, or check the script")
	case uint64(m.summary.transactions) != counted.latencies.total || m.summary.failed != counted.failed:
		return fmt.Errorf("pgbench counted %d transactions and %d failed ones, its logs have %d and %d: the metrics are not reliable",
			m.summary.transactions, m.summary.failed, counted.latencies.total, counted.failed)
	case m.summary.clients != int64(clients):
		return fmt.Errorf("pgbench ran %d clients instead of %d", m.summary.clients, clients)
	case m.walBytes < 0:
		return fmt.Errorf("the write-ahead log went back by %d bytes", -m.walBytes)
	}
	return nil
}

func (m measurement) metrics() map[string]int64 {
	latencies := m.counted.latencies
	metrics := map[string]int64{
		"transactionsPerSecond":                          int64(math.Round(m.summary.tps)),
		"transactions":                                   m.summary.transactions,
		"failedTransactions":                             m.summary.failed,
		"durationNanoseconds":                            int64(math.Round(float64(m.summary.transactions) / m.summary.tps * 1e9)),
		"transactionLatencyMeanNanoseconds":              int64(math.Round(latencies.average() * 1000)),
		"transactionLatencyStandardDeviationNanoseconds": int64(math.Round(latencies.deviation() * 1000)),
		"transactionLatencyMaxNanoseconds":               latencies.largest * 1000,
		"walBytes":                                       m.walBytes,
		"walBytesPerTransaction":                         int64(math.Round(float64(m.walBytes) / float64(m.summary.transactions))),
		"checkpoints":                                    m.statistic["checkpoints"],
		"checkpointsRequested":                           m.statistic["checkpointsRequested"],
		"checkpointBuffers":                              m.statistic["checkpointBuffers"],
	}
	if m.commit > 0 {
		metrics["commitLatencyMeanNanoseconds"] = int64(math.Round(m.commit * 1e6))
	}
	for _, one := range stats.Percentiles {
		if m.summary.transactions >= stats.NeededFor(one.PartsPerMillion) {
			metrics["transactionLatency"+one.Suffix+"Nanoseconds"] = latencies.quantile(uint64(one.PartsPerMillion/1000)) * 1000
		}
	}
	return metrics
}
