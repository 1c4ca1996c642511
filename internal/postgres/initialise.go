package postgres

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const checkpointPatience = time.Hour

// load has the scale and the size of the database, and how long its creation took.
type load struct {
	scale, databaseBytes int64
	load, checkpoint     time.Duration
	settled              bool
}

// initialise loads the database and finishes all background work: tables are vacuumed, statistics collected, and everything is written out.
func (s *session) initialise(ctx context.Context) (load, error) {
	result := load{scale: s.options.scale()}
	doing := fmt.Sprintf("load the database (scale %d, %d bytes asked)", result.scale, s.options.DatabaseBytes)
	if _, err := s.ask(ctx, queryPatience, "CREATE ROLE "+owner+" LOGIN", "CREATE DATABASE "+database+" OWNER "+owner); err != nil {
		return load{}, s.explain(doing, err)
	}
	began := time.Now()
	argv := []string{s.programs.path("pgbench"), "--initialize", "--quiet", "--scale", strconv.FormatInt(result.scale, 10),
		"--host", s.scratch, "--port", "5432", "--username", owner, database}
	if _, err := run(ctx, spec{argv: argv, environment: minimalEnvironment(s.scratch), line: s.showLoad}); err != nil {
		return load{}, s.explain(doing, err)
	}
	result.load = time.Since(began)
	return s.settle(ctx, doing, result)
}

// resume uses the database of an earlier run, and resets settings that its script has made permanent. Views, functions or a search_path of
// the script could run code as any user who connects. So only the owner connects to that database, and the superuser stays in the database
// postgres, which no script can reach. The commands of the superuser that concern the kept database (settings, CHECKPOINT, sizes, counters)
// call none of its functions, and autovacuum calls functions of indexes as the owner of the table. Event triggers require a superuser.
func (s *session) resume(ctx context.Context) (load, error) {
	result := load{scale: s.options.scale()}
	const doing = "use the existing database"
	if _, err := s.ask(ctx, queryPatience, "ALTER ROLE "+owner+" RESET ALL", "ALTER DATABASE "+database+" RESET ALL",
		"ALTER ROLE "+owner+" IN DATABASE "+database+" RESET ALL"); err != nil {
		return load{}, s.explain(doing, err)
	}
	found, err := s.askOwner(ctx, tablesQuery)
	if err != nil {
		return load{}, s.explain(doing, err)
	}
	if found["tables"] != int64(len(pgbenchTables)) || found["hidden"] > 0 {
		return load{}, fmt.Errorf("%s: its tables are not those that pgbench has made: an earlier script has replaced or hidden one, or set it "+
			"UNLOGGED: put a postgres phase without keep before this one", doing)
	}
	if found, err = s.askOwner(ctx, "SELECT 'scale', count(*) FROM public.pgbench_branches UNION ALL "+
		"SELECT 'checksums', (current_setting('data_checksums') = 'on')::int"); err != nil {
		return load{}, s.explain(doing, err)
	}
	if found["scale"] != result.scale {
		return load{}, fmt.Errorf("%s: it has scale %d, and a database of %d bytes has %d: write the same databaseSize", doing, found["scale"],
			s.options.DatabaseBytes, result.scale)
	}
	if (found["checksums"] == 1) != s.options.DataChecksums {
		return load{}, fmt.Errorf("%s: its data checksums are not as asked: write the same dataChecksums", doing)
	}
	return s.settle(ctx, doing, result)
}

// pgbenchTables are the tables that pgbench -i creates, in the schema public.
var pgbenchTables = []string{"pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"}

// tablesQuery counts the pgbenchTables that are ordinary, logged tables, and the tables that hide one of them: a schema with the name of
// the owner comes before public.
var tablesQuery = "SELECT what, count(*) FROM (SELECT CASE WHEN n.nspname = '" + owner + "' THEN 'hidden' " +
	"WHEN n.nspname = 'public' AND c.relkind = 'r' AND c.relpersistence = 'p' THEN 'tables' ELSE 'others' END " +
	"FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace " +
	"WHERE c.relname IN ('" + strings.Join(pgbenchTables, "', '") + "')) AS found(what) GROUP BY what"

// askOwner runs a query in the database as its owner, and returns the answer as numbers by name.
func (s *session) askOwner(ctx context.Context, query string) (counters, error) {
	answer, err := s.askAs(ctx, owner, database, queryPatience, query)
	if err != nil {
		return nil, err
	}
	return parseCounters(answer)
}

// settle waits for autovacuum and writes everything out.
func (s *session) settle(ctx context.Context, doing string, result load) (load, error) {
	s.progress.say("checkpoint")
	var err error
	if result.settled, err = s.until(ctx, settlePatience,
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"); err != nil {
		return load{}, s.explain(doing, err)
	}
	began := time.Now()
	if _, err := s.ask(ctx, checkpointPatience, "CHECKPOINT"); err != nil {
		return load{}, s.explain(doing, err)
	}
	result.checkpoint = time.Since(began)
	result.databaseBytes, err = s.databaseSize(ctx)
	if err != nil {
		return load{}, s.explain(doing, err)
	}
	if result.databaseBytes < s.options.DatabaseBytes {
		return load{}, fmt.Errorf("%s: the database has only %d bytes: this version of pgbench writes smaller rows than expected", doing,
			result.databaseBytes)
	}
	return result, nil
}

func (s *session) databaseSize(ctx context.Context) (int64, error) {
	answer, err := s.ask(ctx, queryPatience, "SELECT 'size', pg_database_size('"+database+"')")
	if err != nil {
		return 0, err
	}
	numbers, err := parseCounters(answer)
	if err != nil {
		return 0, err
	}
	return numbers["size"], nil
}

func (s *session) showLoad(line string) {
	if percent, left, ok := parseLoad(line); ok {
		s.progress.report(fmt.Sprintf("load %d%%", percent), left)
	}
}

// loadPattern is a line of pgbench -i: since version 17 it names the table.
var loadPattern = regexp.MustCompile(`^\d+ of \d+ tuples \((\d{1,3})%\)(?: of \S+)? done \(elapsed \d+\.\d+ s, remaining (\d+\.\d+) s\)`)

// parseLoad reads the progress of pgbench -i.
func parseLoad(line string) (percent int, left time.Duration, ok bool) {
	match := loadPattern.FindStringSubmatch(line)
	if match == nil {
		return 0, 0, false
	}
	percent, err := strconv.Atoi(match[1])
	if err != nil || percent > 100 {
		return 0, 0, false
	}
	seconds, err := strconv.ParseFloat(match[2], 64)
	if err != nil || seconds > math.MaxInt32 {
		return 0, 0, false
	}
	return percent, time.Duration(seconds * float64(time.Second)), true
}
