package postgres

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func golden(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSummary(t *testing.T) {
	for name, want := range map[string]summary{
		"15.18-tpcb.out":         {2934, 0, true, 4, 2, 720.793138, 5.466, 5.921, 39.323},
		"15.18-serializable.out": {142, 1142, true, 8, 2, 73.051430, 13.875, 4.465, 79.992},
		"15.18-bad-sql.out":      {0, 0, true, 2, 2, 0, 0, 0, 0},
		"15.18-died.out":         {22997, 0, true, 4, 2, 15878.276444, 0.247, 0.820, 42.160}, // only its exit status shows the failure
		"handmade-13.out":        {15836, 0, true, 8, 2, 791.771332, 10.100, 6.247, 0},
		"handmade-14.out":        {412007, 0, true, 8, 2, 20621.004467, 0.388, 0.211, 21.332},
		"handmade-16.out":        {15790, 46, true, 8, 2, 790.120456, 10.129, 6.301, 18.020},
		"handmade-17.out":        {15790, 46, true, 8, 2, 790.120456, 10.129, 6.301, 18.020},
		"handmade-18.out":        {15790, 46, true, 8, 2, 790.120456, 10.129, 6.301, 18.020},
	} {
		got, err := parseSummary(golden(t, name))
		if err != nil || got != want {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "no number of transactions",
		"number of transactions actually processed: 5\n":                                                               "no rate",
		"number of transactions actually processed: 5\ntps = inf (without initial connection time)":                    "no valid number",
		"number of transactions actually processed: 5\ntps = -3 (without initial connection time)":                     "no valid number",
		"number of transactions actually processed: 5\ntps = 1 (including connections establishing)":                   "no rate",
		"number of transactions actually processed: 99999999999999999999\ntps = 1 (without initial connection time)\n": "no number of transactions",
	} {
		if _, err := parseSummary(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestCommitLatency reads what pgbench of each version prints with --report-per-command. It prints means without the number of times that a
// statement ran: a script with several has no mean that is known.
func TestCommitLatency(t *testing.T) {
	for text, want := range map[string]struct {
		mean float64
		why  string
	}{
		"statement latencies in milliseconds:\n         0.002  \\set aid random(1, 100000 * :scale)\n" +
			"         0.042  BEGIN;\n         3.125  END;\n": {3.125, ""},
		"statement latencies in milliseconds and failures:\n         0.055           0  BEGIN;\n         7.250           0  END;\n": {7.25, ""},
		"statement latencies in milliseconds, failures and retries:\n  0.055  0  0  BEGIN;\n  1.000  0  3  COMMIT;\n":               {1, ""},
		"  0.055  0  BEGIN;\n  21.000  0  COMMIT;\n  0.001  \\else\n  1.000  0  commit;\n":                                          {0, "with 2 statements"},
		"  0.055  0  BEGIN;\n  3.000  0  COMMIT;\n  0.001  \\else\n  0.000  0  END;\n":                                              {0, "with 2 statements"},
		"  0.055  0  SELECT 1;\n  0.000  0  COMMIT;\n":                                                                              {0, "never ran"},
		"         0.042           0  SELECT 'the end';\n  0.3  UPDATE pgbench_accounts SET filler = 'commit';\n":                    {0, ""},
		"": {0, ""},
	} {
		if mean, why := commitMilliseconds(text); mean != want.mean || (why == "") != (want.why == "") || !strings.Contains(why, want.why) {
			t.Errorf("%q: %g, %q", text, mean, why)
		}
	}
}

func TestProgress(t *testing.T) {
	for name, want := range map[string][]sample{
		"15.18-tpcb.err":         {{1, 670.9, 5.731, 5.187, 0}, {2, 685, 5.8, 4.649, 0}, {3, 776, 5.17, 4.637, 0}, {4, 788.6, 4.924, 6.052, 0}},
		"15.18-serializable.err": {{1, 68, 13.486, 3.782, 511}, {2, 73, 13.984, 4.542, 631}},
		"15.18-bad-sql.err":      nil,
		"handmade-13.err":        {{1, 785.9, 10.021, 5.925, 0}, {2, 0, 0, 0, 0}},
	} {
		var got []sample
		for line := range strings.Lines(golden(t, name)) {
			if sample, ok := parseProgress(strings.TrimSpace(line)); ok {
				got = append(got, sample)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %v", name, got)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %v instead of %v", name, got[i], want[i])
			}
		}
	}
}

func TestLoad(t *testing.T) {
	for name, want := range map[string]string{"15.18-load.err": "100 0s", "handmade-18-load.err": "98 140ms"} {
		var got []string
		for line := range strings.Lines(golden(t, name)) {
			if percent, left, ok := parseLoad(strings.TrimSpace(line)); ok {
				got = append(got, strconv.Itoa(percent)+" "+left.String())
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTransactions(t *testing.T) {
	for name, want := range map[string]struct {
		succeeded uint64
		failed    int64
	}{
		"15.18-tpcb.log": {60, 0}, "15.18-serializable.log": {13, 47}, "handmade-13.log": {2, 0},
	} {
		counted := &transactions{latencies: newHistogram()}
		counted.read(strings.NewReader(golden(t, name)))
		if counted.broken != nil || counted.latencies.total != want.succeeded || counted.failed != want.failed {
			t.Errorf("%s: %d succeeded, %d failed, %v", name, counted.latencies.total, counted.failed, counted.broken)
		}
	}
	for _, text := range []string{"1 2 3\n", "1 2 skipped 0 1 1\n", "1 2 -3 0 1 1\n", "1 2 3 0 1 1", strings.Repeat("1 ", 64<<10),
		"a b c d e f\n",
		"1 2 99999999999999999999 0 1 1\n"} {
		counted := &transactions{latencies: newHistogram()}
		counted.read(strings.NewReader(text))
		if counted.broken == nil || counted.latencies.total+uint64(counted.failed) > 0 {
			t.Errorf("%.40q is taken for a transaction", text)
		}
	}
}

func TestAnswers(t *testing.T) {
	numbers, err := parseCounters(golden(t, "15.18-counters.txt"))
	if err != nil || len(numbers) != 3 || numbers["wal"] != 28707488 || numbers["walBytes"] != 7545951 {
		t.Error(numbers, err)
	}
	pairs, err := parsePairs(golden(t, "15.18-settings.txt"))
	if err != nil || len(pairs) != 3 || pairs["postgres.shared_buffers"] != "128MB" {
		t.Error(pairs, err)
	}
	for _, answer := range []string{"a", "a|b", "a|1\na|2", "|1", "a|1.5", "a|", "a|99999999999999999999"} {
		if numbers, err := parseCounters(answer); err == nil {
			t.Errorf("%q: %v", answer, numbers)
		}
	}
	if _, err := (counters{"a": 1}).since(counters{"a": 2}); err == nil {
		t.Error("a counter may not fall")
	}
	if added, err := (counters{"a": 5, "b": 1}).since(counters{"a": 2}); err != nil || len(added) != 1 || added["a"] != 3 {
		t.Error(added, err)
	}
}

// TestStatisticsQuery: only from version 18 on does the server count the checkpoints that it has done. Its other counters contain those that
// were due and skipped.
func TestStatisticsQuery(t *testing.T) {
	for major, want := range map[int]string{
		13: "SELECT 'checkpointsTimed', (checkpoints_timed)::text", 16: "wal_fpi", 17: "(buffers_written)::text FROM pg_stat_checkpointer",
		18: "SELECT 'checkpoints', (num_done)::text FROM pg_stat_checkpointer",
	} {
		query := statisticsQuery(major)
		if !strings.Contains(query, want) || major == 13 && strings.Contains(query, "pg_stat_wal") {
			t.Errorf("version %d: %s", major, query)
		}
		if counted := strings.Contains(query, "'checkpoints'"); counted != (major >= 18) {
			t.Errorf("version %d counts checkpoints: %v", major, counted)
		}
	}
}

// TestCheckpointsOfTheLog counts the checkpoints in the log of a server, which has no line for one that was skipped.
func TestCheckpointsOfTheLog(t *testing.T) {
	var s server
	for _, line := range []string{
		"2026-11-21 14:44:16.323 UTC [26584] LOG:  checkpoint starting: time",
		"2026-11-21 14:44:46.323 UTC [26584] LOG:  checkpoint complete: wrote 46 buffers (0.3%); 0 WAL file(s) added, 0 removed, 0 recycled",
		"2026-11-21 14:44:47.323 UTC [26584] LOG:  checkpoint complete: wrote 9 buffers (0.1%), wrote 2 SLRU buffers; 0 WAL file(s) added",
		"2026-11-21 14:44:48.323 UTC [26599] WARNING:  checkpoint complete: wrote 1 buffers",
		"2026-11-21 14:44:48.323 UTC [26599] WARNING:  2026-11-21 14:44:48.323 UTC [26599] LOG:  checkpoint complete: wrote 1 buffers",
		"\t2026-11-21 14:44:48.323 UTC [26599] LOG:  checkpoint complete: wrote 1 buffers",
		"2026-11-21 14:44:59.249 UTC [26620] PANIC:  could not write to file \"pg_wal/xlogtemp.26620\": No space left on device",
	} {
		s.look(line)
	}
	if got := s.checkpoints.Load(); got != 2 || s.trouble.err() == nil {
		t.Errorf("%d checkpoints, and %v", got, s.trouble.err())
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": 15, "postgres (PostgreSQL) 13.0": 13, "postgres (PostgreSQL) 18beta1": 18,
		"postgres (PostgreSQL) 19devel": 19,
		"postgres (EnterpriseDB) 15":    0, "": 0, "(PostgreSQL) 99999": 0,
	} {
		if _, major, err := parseVersion(text); major != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d %v", text, major, err)
		}
	}
}

func TestPostmasterPID(t *testing.T) {
	full := "30217\n/data/postgres\n1795271123\n5432\n/run/socket\n\n 11616467        24\nready   \n"
	for text, want := range map[string]struct {
		pid   int
		ready bool
	}{
		full: {30217, true}, strings.Replace(full, "ready   ", "starting", 1): {30217, false}, full[:20]: {30217, false}, "": {}, "-3\n": {},
		"x": {},
	} {
		if pid, ready := parsePostmasterPID(text); pid != want.pid || ready != want.ready {
			t.Errorf("%q: %d %v", text, pid, ready)
		}
	}
	if pid, parent := parseStat("7 (a) b (c) S 3 4 5"); pid != 7 || parent != 3 {
		t.Error(pid, parent)
	}
}

func FuzzSummary(f *testing.F) {
	for _, name := range []string{"15.18-tpcb.out", "15.18-serializable.out", "15.18-bad-sql.out", "handmade-13.out", "handmade-18.out"} {
		f.Add(golden(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSummary(text)
		if err != nil {
			return
		}
		for _, number := range []float64{s.tps, s.latency, s.deviation, s.connectionTime} {
			if !(number >= 0) || math.IsInf(number, 0) {
				t.Errorf("%+v", s)
			}
		}
		if s.transactions < 0 || s.failed < 0 || s.transactions > 0 && s.tps == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func FuzzProgress(f *testing.F) {
	for _, name := range []string{"15.18-tpcb.err", "15.18-serializable.err", "handmade-13.err", "15.18-load.err", "handmade-18-load.err"} {
		for line := range strings.Lines(golden(f, name)) {
			f.Add(strings.TrimSpace(line))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		if s, ok := parseProgress(line); ok && !(s.seconds >= 0 && s.tps >= 0 && s.latency >= 0 && s.deviation >= 0 && s.failed >= 0) {
			t.Errorf("%+v", s)
		}
		if percent, left, ok := parseLoad(line); ok && (percent < 0 || percent > 100 || left < 0) {
			t.Error(percent, left)
		}
	})
}

// FuzzTransactions: a log that is read in pieces gives the same figures as one that is read at once.
func FuzzTransactions(f *testing.F) {
	for _, name := range []string{"15.18-tpcb.log", "15.18-serializable.log", "handmade-13.log"} {
		f.Add([]byte(golden(f, name)), 7)
	}
	f.Fuzz(func(t *testing.T, log []byte, piece int) {
		whole, pieces := &transactions{latencies: newHistogram()}, &transactions{latencies: newHistogram()}
		whole.read(bytes.NewReader(log))
		pieces.read(&slowly{log, max(1, piece%100)})
		if whole.latencies.total != pieces.latencies.total || whole.failed != pieces.failed || (whole.broken == nil) != (pieces.broken == nil) {
			t.Errorf("%d and %d, %d and %d, %v and %v", whole.latencies.total, pieces.latencies.total, whole.failed, pieces.failed, whole.broken,
				pieces.broken)
		}
		if lines := uint64(bytes.Count(log, []byte("\n"))); whole.latencies.total+uint64(whole.failed) > lines {
			t.Errorf("more transactions than lines")
		}
	})
}

// slowly reads a few bytes at a time.
type slowly struct {
	rest  []byte
	piece int
}

func (s *slowly) Read(into []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	count := copy(into[:min(len(into), s.piece)], s.rest)
	s.rest = s.rest[count:]
	return count, nil
}

func FuzzAnswers(f *testing.F) {
	f.Add(golden(f, "15.18-counters.txt"))
	f.Add(golden(f, "15.18-settings.txt"))
	f.Fuzz(func(t *testing.T, answer string) {
		pairs, err := parsePairs(answer)
		numbers, errNumbers := parseCounters(answer)
		if err != nil && errNumbers == nil || errNumbers == nil && len(pairs) != len(numbers) {
			t.Errorf("%v %v", pairs, numbers)
		}
	})
}

func FuzzSmallFiles(f *testing.F) {
	f.Add("30217\n/data/postgres\n1795271123\n5432\n/run/socket\n\n 11616467        24\nready   \n")
	f.Add("7 (a) b (c) S 3 4 5")
	f.Add("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n")
	f.Fuzz(func(t *testing.T, text string) {
		if pid, ready := parsePostmasterPID(text); pid < 0 || ready && pid == 0 {
			t.Error(pid, ready)
		}
		parseStat(text)
		if version, major, err := parseVersion(text); err == nil && (version == "" || major < 0) {
			t.Error(version, major)
		}
	})
}

func TestSeriesIsBounded(t *testing.T) {
	var s series
	for second := range 86400 {
		s.add(sample{seconds: float64(second + 1), tps: 100, latency: 10, failed: 1})
	}
	points := s.document()
	if len(points) < maxPoints/2 || len(points) > maxPoints {
		t.Fatalf("%d points", len(points))
	}
	var failed int64
	for _, point := range points {
		failed += point.Failed
		if point.TransactionsPerSecondMilli != 100_000 || point.LatencyMeanNanoseconds < 9_999_999 || point.LatencyMeanNanoseconds > 10_000_001 {
			t.Errorf("%+v", point)
		}
	}
	if failed != 86400 || points[len(points)-1].EndMilliseconds != 86_400_000 {
		t.Error(failed, points[len(points)-1])
	}
}

func TestProgressNeverFalls(t *testing.T) {
	last := -1
	p := newProgress(Options{Duration: time.Minute, RampUp: time.Second, Progress: func(percent int, _ string, left time.Duration) {
		if percent < last || percent > 99 || left < 0 {
			t.Errorf("%d after %d, %v left", percent, last, left)
		}
		last = percent
	}})
	p.began = time.Now().Add(-time.Minute)
	p.say("load")
	p.report("load", time.Hour)
	p.report("run", -59*time.Second)
	p.passed(time.Hour)
	p.say("stop")
	if last != 99 {
		t.Error(last)
	}
}
