package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	queryPatience = 2 * time.Minute
	// settlePatience is how long to wait for autovacuum to finish after the load, and for connections to close.
	settlePatience = 5 * time.Minute
)

// ask runs SQL as the superuser, each command by itself, and returns psql's output.
func (s *session) ask(ctx context.Context, patience time.Duration, commands ...string) (string, error) {
	return s.askAs(ctx, superuser, "postgres", patience, commands...)
}

// askAs is ask as any user in any database. Names without a schema refer to PostgreSQL's own objects, whatever a script has set
// permanently.
func (s *session) askAs(ctx context.Context, user, database string, patience time.Duration, commands ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the server did not answer within %v", patience))
	defer cancel()
	argv := []string{s.programs.path("psql"), "--no-psqlrc", "--no-password", "--tuples-only", "--no-align", "--quiet", "--field-separator",
		"|",
		"--set", "ON_ERROR_STOP=1", "--host", s.scratch, "--port", "5432", "--username", user, "--dbname", database}
	for _, command := range commands {
		argv = append(argv, "--command", command)
	}
	return run(ctx, spec{argv: argv, environment: append(minimalEnvironment(s.scratch), "PGOPTIONS=-c search_path=pg_catalog")})
}

// parsePairs reads lines of NAME|VALUE, each name once.
func parsePairs(answer string) (map[string]string, error) {
	pairs := map[string]string{}
	for line := range strings.SplitSeq(answer, "\n") {
		if line == "" {
			continue
		}
		name, value, found := strings.Cut(line, "|")
		if _, twice := pairs[name]; !found || name == "" || twice {
			return nil, fmt.Errorf("psql answered %.100q instead of a name and a value", line)
		}
		pairs[name] = value
	}
	return pairs, nil
}

// counters are numbers of the server that only grow.
type counters map[string]int64

// parseCounters reads whole numbers; those of type numeric may end in .0.
func parseCounters(answer string) (counters, error) {
	pairs, err := parsePairs(answer)
	if err != nil {
		return nil, err
	}
	result := counters{}
	for name, value := range pairs {
		whole, fraction, _ := strings.Cut(value, ".")
		number, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || strings.Trim(fraction, "0") != "" {
			return nil, fmt.Errorf("psql answered %s|%.100s instead of a whole number", name, value)
		}
		result[name] = number
	}
	return result, nil
}

// since returns the difference of counters. It fails if a counter decreased, because it was reset.
func (c counters) since(before counters) (counters, error) {
	added := counters{}
	for name, value := range c {
		earlier, found := before[name]
		if !found {
			continue
		}
		if value < earlier {
			return nil, fmt.Errorf("the counter %s of the server fell from %d to %d during the measurement: it was reset", name, earlier,
				value)
		}
		added[name] = value - earlier
	}
	return added, nil
}

// position in the write-ahead log, in bytes.
func (s *session) position(ctx context.Context) (int64, error) {
	answer, err := s.ask(ctx, queryPatience, "SELECT 'wal', pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")
	if err != nil {
		return 0, err
	}
	numbers, err := parseCounters(answer)
	if err == nil && len(numbers) != 1 {
		err = errors.New("psql did not tell the position in the write-ahead log")
	}
	return numbers["wal"], err
}

// statistics asks for the counters of checkpoints, write-ahead log and buffers.
func (s *session) statistics(ctx context.Context) (counters, error) {
	answer, err := s.ask(ctx, queryPatience, statisticsQuery(s.programs.major))
	if err != nil {
		return nil, err
	}
	numbers, err := parseCounters(answer)
	if _, told := numbers["checkpoints"]; err == nil && !told {
		numbers["checkpoints"] = s.server.checkpoints.Load()
	}
	return numbers, err
}

// statisticsQuery selects the counters from where each version keeps them. Before version 18, the counters of checkpoints contain those
// that were skipped because nothing was written since the last one, so the checkpoints are counted in the log.
func statisticsQuery(major int) string {
	var parts []string
	from := func(source string, columns ...string) { // pairs of label and column
		for i := 0; i < len(columns); i += 2 {
			parts = append(parts, fmt.Sprintf("SELECT '%s', (%s)::text FROM %s", columns[i], columns[i+1], source))
		}
	}
	switch {
	case major >= 18:
		from("pg_stat_checkpointer", "checkpoints", "num_done", "checkpointsTimed", "num_timed", "checkpointsRequested", "num_requested",
			"checkpointBuffers", "buffers_written")
	case major == 17:
		from("pg_stat_checkpointer", "checkpointsTimed", "num_timed", "checkpointsRequested", "num_requested",
			"checkpointBuffers", "buffers_written")
	default:
		from("pg_stat_bgwriter", "checkpointsTimed", "checkpoints_timed", "checkpointsRequested", "checkpoints_req",
			"checkpointBuffers", "buffers_checkpoint")
	}
	if major >= 14 {
		from("pg_stat_wal", "walRecords", "wal_records", "walFullPageImages", "wal_fpi", "walBytes", "wal_bytes", "walBuffersFull",
			"wal_buffers_full")
	}
	from("pg_stat_database WHERE datname = '"+database+"'", "commits", "xact_commit", "rollbacks", "xact_rollback", "blocksRead", "blks_read",
		"blocksHit", "blks_hit", "deadlocks", "deadlocks")
	return strings.Join(parts, " UNION ALL ")
}

// until repeats a query until the answer is 0, because the server does not report when its processes have finished. It reports whether the
// answer became 0 in time.
func (s *session) until(ctx context.Context, patience time.Duration, query string) (bool, error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		answer, err := s.ask(ctx, queryPatience, query)
		if err != nil || strings.TrimSpace(answer) == "0" {
			return err == nil, err
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-deadline.C:
			return false, nil
		case <-ticker.C:
		}
	}
}

// environment returns the settings of the server with all defaults applied, its version, and the seeds.
func (s *session) environment(ctx context.Context) (map[string]string, error) {
	shown := append([]string{"block_size", "wal_block_size", "wal_segment_size", "data_checksums", "fsync", "max_connections", "autovacuum",
		"io_method", "huge_pages_status", "server_encoding"}, settingNames...)
	answer, err := s.ask(ctx, queryPatience,
		"SELECT 'postgres.' || name, current_setting(name) FROM pg_settings WHERE name IN ('"+strings.Join(shown, "','")+"')")
	if err != nil {
		return nil, s.explain("read the settings of PostgreSQL", err)
	}
	result, err := parsePairs(answer)
	if err != nil {
		return nil, err
	}
	result["postgres.version"] = s.programs.version
	result["postgres.seed"] = strconv.FormatInt(s.options.Seed, 10)
	if s.options.RampUp > 0 {
		result["postgres.rampUpSeed"] = strconv.FormatUint(s.options.rampUpSeed(), 10)
	}
	return result, nil
}
