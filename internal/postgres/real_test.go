package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/test/program"
)

// unprivileged is the user that runs PostgreSQL if the tests run as root: it refuses root.
const unprivileged = 65534

// folderVariable hands the child of a test its folder.
const folderVariable = "STORAGEBENCH_TEST_FOLDER"

// stageVariable tells the child at which stage its volume has to be full.
const stageVariable = "STORAGEBENCH_TEST_STAGE"

// asUser skips the test where there is no PostgreSQL. As root it runs the test again as another user and returns false in the parent; if it
// returns true, the test has to run here, in the returned folder.
func asUser(t *testing.T, uid uint32) (string, bool) {
	t.Helper()
	if _, err := programFolder(filepath.SplitList(os.Getenv("PATH")), installFolders); err != nil {
		t.Skipf("SKIP: no PostgreSQL here: %v", err)
	}
	if folder := os.Getenv(folderVariable); folder != "" {
		return folder, true
	}
	if os.Geteuid() != 0 {
		if uid != unprivileged {
			t.Skip("SKIP: only root can become a user without a name")
		}
		return quickFolder(t, os.Geteuid()), true
	}
	output, err := child(t, uid, quickFolder(t, int(uid))).CombinedOutput()
	t.Logf("as user %d:\n%s", uid, output)
	if err != nil {
		t.Errorf("as user %d: %v", uid, err)
	}
	return "", false
}

// quickFolder returns a folder in memory, if there is enough: the tests are about behaviour, and a dozen clusters would wait long for a
// disk.
func quickFolder(t *testing.T, uid int) string {
	t.Helper()
	const memory, enough = "/dev/shm", 2 << 30
	var stat syscall.Statfs_t
	if err := syscall.Statfs(memory, &stat); err != nil || int64(stat.Bavail)*stat.Bsize < enough {
		return shortFolder(t, uid, "/tmp")
	}
	return shortFolder(t, uid, memory)
}

// shortFolder returns a folder whose path is short enough for a socket.
func shortFolder(t *testing.T, uid int, parent string) string {
	t.Helper()
	folder, err := os.MkdirTemp(parent, "sbpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chown(folder, uid, uid); err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	return folder
}

// child returns a command that runs this test again, as another user. That user can read the copy of the program, but not the folder of go
// test.
func child(t *testing.T, uid uint32, folder string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(shortFolder(t, 0, "/tmp"), "test")
	if err := program.CopySelf(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, "-test.run=^"+t.Name()+"$", "-test.v", "-test.parallel=8")
	command.Env = append(os.Environ(), folderVariable+"="+folder)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		command.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	return command
}

// small is a measurement of two seconds.
func small(t *testing.T, folder string) Options {
	t.Helper()
	options := Options{Folder: filepath.Join(folder, "volume"), Scratch: filepath.Join(folder, "s"), Mode: TPCBLike, DatabaseBytes: 20 << 20,
		Clients: 3, Duration: 2 * time.Second, DataChecksums: true, Seed: -7}
	if err := os.MkdirAll(options.Scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	return options
}

// nothingLeft fails if a process works in the folder of the cluster, or scratch is not empty.
func nothingLeft(t *testing.T, options Options) {
	t.Helper()
	if left := workersIn(filepath.Join(options.Folder, dataName)); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left, err := os.ReadDir(options.Scratch); err != nil || len(left) > 0 {
		t.Errorf("left in scratch: %v %v", left, err)
	}
}

func workersIn(folder string) []string {
	var left []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	if len(links) == 0 { // this test is one of them
		return []string{"unknown: there are no processes in /proc"}
	}
	for _, link := range links {
		if where, err := os.Readlink(link); err == nil && strings.HasPrefix(where, folder) {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			left = append(left, link+" "+string(name))
		}
	}
	return left
}

func TestRealModes(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	script := []byte("\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\\sleep 1 ms\n")
	for _, test := range []struct {
		mode   string
		script []byte
		set    map[string]string
	}{
		{TPCBLike, nil, map[string]string{"wal_level": "minimal", "shared_buffers": "16MB", "checkpoint_timeout": "30s"}},
		{SelectOnly, nil, nil},
		{Script, script, map[string]string{"synchronous_commit": "off"}},
	} {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			options := small(t, filepath.Join(folder, test.mode))
			options.Mode, options.Script, options.Settings = test.mode, test.script, test.set
			if test.mode == SelectOnly {
				options.RampUp = time.Second
				options.DataChecksums = false
			}
			measureOnce(t, options)
		})
	}
}

// TestRealWait: what the server does while a caller waits for other nodes is not counted, and what it does afterwards is.
func TestRealWait(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	programs, err := findPrograms(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const written = 1 << 20
	for event, counted := range map[string]bool{Ready: false, Begin: true} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			options := small(t, filepath.Join(folder, event))
			options.Mode, options.DatabaseBytes = SelectOnly, 1
			outcome, err := Run(t.Context(), options, func(now string) {
				if now != event {
					return
				}
				scratch, _ := filepath.Glob(filepath.Join(options.Scratch, "*"))
				beside := &session{programs: programs, scratch: strings.Join(scratch, "")}
				if _, err := beside.ask(t.Context(), queryPatience, "CREATE TABLE public.filler AS SELECT generate_series(1, 100000)", "CHECKPOINT"); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			m := outcome.Metrics
			if m["walBytes"] > written != counted || m["checkpoints"] > 0 != counted {
				t.Errorf("%d checkpoints, and %d bytes of write-ahead log", m["checkpoints"], m["walBytes"])
			}
			nothingLeft(t, options)
		})
	}
}

// TestRealBranches: pgbench does not tell how often each COMMIT of a script ran.
func TestRealBranches(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	options := small(t, folder)
	options.Mode, options.DatabaseBytes = Script, 1
	options.Script = []byte("BEGIN;\nUPDATE pgbench_branches SET bbalance = 1 WHERE bid = 1;\n" +
		"\\if random(1, 100) = 101\nEND;\n\\else\nCOMMIT;\n\\endif\n")
	outcome, err := Run(t.Context(), options, nil)
	if err != nil {
		t.Fatal(err)
	}
	commit, told := outcome.Metrics["commitLatencyMeanNanoseconds"]
	if notes := strings.Join(outcome.Notes, "\n"); told || !strings.Contains(notes, "ends transactions with 2 statements") {
		t.Errorf("a commit takes %d ns, and the notes say %q", commit, notes)
	}
}

// TestRealKeep: a kept database is the same one, with the settings of the second phase, and without settings that SQL has made permanent.
func TestRealKeep(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	options := small(t, folder)
	options.Keep = true
	fails := func(change func(*Options), words string) {
		t.Helper()
		wrong := options
		change(&wrong)
		if _, err := Run(t.Context(), wrong, nil); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("want an error about %q, got %v", words, err)
		}
		nothingLeft(t, options)
	}
	fails(func(*Options) {}, "there is no database to keep")
	identity := func() string {
		control, err := os.ReadFile(filepath.Join(options.Folder, dataName, "global", "pg_control"))
		if err != nil || len(control) < 8 {
			t.Fatalf("the control file: %v", err)
		}
		return string(control[:8]) // the system identifier
	}
	first := options
	first.Keep, first.Settings = false, map[string]string{"shared_buffers": "16MB"}
	made := measureOnce(t, first)
	is := identity()
	if err := os.WriteFile(filepath.Join(options.Folder, dataName, "postgresql.auto.conf"), []byte("fsync = off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(func(o *Options) { o.DatabaseBytes *= 2 }, "write the same databaseSize")
	fails(func(o *Options) { o.DataChecksums = false }, "write the same dataChecksums")
	fails(func(o *Options) { o.WALFolder = filepath.Join(folder, "wal") }, "write the same walVolume")
	kept, err := Run(t.Context(), options, nil)
	if err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, options)
	if identity() != is {
		t.Error("it is another cluster")
	}
	if fsync, buffers := kept.Environment["postgres.fsync"], kept.Environment["postgres.shared_buffers"]; fsync != "on" || buffers != "128MB" {
		t.Errorf("fsync %q, shared_buffers %q", fsync, buffers)
	}
	if kept.Metrics["databaseBytes"] < made.Metrics["databaseBytes"] || kept.Metrics["transactions"] == 0 {
		t.Errorf("kept %v, made %v", kept.Metrics, made.Metrics)
	}
	if _, initialised := kept.Metrics["initialiseNanoseconds"]; initialised {
		t.Error("it was initialised again")
	}
}

// TestRealKeptTraps: nothing that a script has left runs as the superuser, and a database that is no longer pgbench's is refused.
func TestRealKeptTraps(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	const trap = `CREATE SCHEMA IF NOT EXISTS s;
CREATE OR REPLACE FUNCTION s.trap() RETURNS int LANGUAGE plpgsql AS $$
BEGIN COPY (SELECT 1) TO PROGRAM 'touch TRACE'; RETURN 1; EXCEPTION WHEN OTHERS THEN RETURN 1; END $$;
`
	for name, test := range map[string]struct{ script, refused string }{
		"path": {trap + "CREATE OR REPLACE VIEW s.pgbench_branches AS SELECT * FROM s.trap() AS bid;\n" +
			"ALTER DATABASE bench SET search_path = s, public;\n", ""},
		"view": {trap + "DO $$ BEGIN ALTER TABLE pgbench_branches RENAME TO b; EXCEPTION WHEN OTHERS THEN NULL; END $$;\n" +
			"CREATE OR REPLACE VIEW public.pgbench_branches AS SELECT * FROM s.trap() AS bid;\n", "its tables are not those"},
		"hidden": {"CREATE SCHEMA IF NOT EXISTS bench;\nCREATE TABLE IF NOT EXISTS bench.pgbench_tellers (tid int);\n",
			"its tables are not those"},
		"unlogged": {"ALTER TABLE pgbench_history SET UNLOGGED;\n", "its tables are not those"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := small(t, filepath.Join(folder, name))
			trace := filepath.Join(folder, name, "trace")
			options.Mode, options.Clients, options.DatabaseBytes = Script, 1, 1
			options.Script = []byte(strings.ReplaceAll(test.script, "TRACE", trace))
			if _, err := Run(t.Context(), options, nil); err != nil {
				t.Fatal(err)
			}
			options.Keep, options.Mode, options.Script = true, TPCBLike, nil
			_, err := Run(t.Context(), options, nil)
			if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("kept: %v", err)
			}
			if _, err := os.Lstat(trace); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a function of the script ran as the superuser: %v", err)
			}
			nothingLeft(t, options)
		})
	}
}

// TestRealWALApart: the log is in the other folder and nowhere else. Leftovers of an attempt in either folder are useless, and are
// replaced.
func TestRealWALApart(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	options := small(t, folder)
	options.WALFolder = filepath.Join(folder, "wal")
	measureOnce(t, options)
	wal := filepath.Join(options.WALFolder, walName)
	if leads, err := os.Readlink(filepath.Join(options.Folder, dataName, "pg_wal")); err != nil || leads != wal {
		t.Errorf("the log is in %q: %v", leads, err)
	}
	segments := func() (found []string) {
		for _, one := range []string{wal, options.Folder} {
			names, err := filepath.Glob(filepath.Join(one, "0000000*"))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, names...)
		}
		return found
	}
	before := segments()
	if len(before) == 0 || !strings.HasPrefix(before[len(before)-1], wal) {
		t.Fatalf("segments %q", before)
	}
	stray := filepath.Join(wal, "0000000100000000000000FF")
	write(t, stray, "of another cluster")
	if err := os.RemoveAll(filepath.Join(options.Folder, dataName)); err != nil {
		t.Fatal(err)
	}
	measureOnce(t, options)
	if slices.Contains(segments(), stray) || len(segments()) == 0 {
		t.Errorf("segments %q", segments())
	}
	options.WALFolder = ""
	measureOnce(t, options)
	if info, err := os.Lstat(filepath.Join(options.Folder, dataName, "pg_wal")); err != nil || !info.IsDir() {
		t.Errorf("a cluster without another volume has its log elsewhere: %v", err)
	}
}

func measureOnce(t *testing.T, options Options) Outcome {
	t.Helper()
	var events []string
	last := -1
	options.Progress = func(percent int, rate string, left time.Duration) {
		if percent < last || percent > 100 || left < 0 || rate == "" {
			t.Errorf("progress %d%% %q %v after %d%%", percent, rate, left, last)
		}
		last = percent
	}
	outcome, err := Run(t.Context(), options, func(event string) { events = append(events, event) })
	if err != nil {
		t.Fatalf("%s: %v", options.Mode, err)
	}
	if fmt.Sprint(events) != "[ready begin end]" {
		t.Errorf("%s: events %v", options.Mode, events)
	}
	nothingLeft(t, options)
	plausible(t, options, outcome)
	return outcome
}

func plausible(t *testing.T, options Options, outcome Outcome) {
	t.Helper()
	m := outcome.Metrics
	for name := range m {
		if _, known := results.LookupMetric(name); !known {
			t.Errorf("%s is not in the vocabulary", name)
		}
	}
	t.Logf("%s: %d transactions/s, mean %d ns, p99 %d ns, max %d ns, %d bytes of log a transaction, database %d bytes", options.Mode,
		m["transactionsPerSecond"], m["transactionLatencyMeanNanoseconds"], m["transactionLatencyP99Nanoseconds"],
		m["transactionLatencyMaxNanoseconds"], m["walBytesPerTransaction"], m["databaseBytes"])
	expected := 14 // and the percentiles for which there are enough transactions
	for name, share := range map[string]int64{"P50": 500_000, "P95": 950_000, "P99": 990_000, "P999": 999_000} {
		_, there := m["transactionLatency"+name+"Nanoseconds"]
		if told := m["transactions"] >= stats.NeededFor(share); told {
			expected++
		} else if there {
			t.Errorf("%s: %s of %d transactions", options.Mode, name, m["transactions"])
		}
	}
	if commit, there := m["commitLatencyMeanNanoseconds"]; there {
		expected++
		if options.Mode != TPCBLike || commit <= 0 || commit >= m["transactionLatencyMeanNanoseconds"] {
			t.Errorf("%s: a commit takes %d ns", options.Mode, commit)
		}
	} else if options.Mode == TPCBLike {
		t.Error("no latency of commits")
	}
	if len(m) != expected || m["transactions"] < 1 || m["databaseBytes"] < options.DatabaseBytes || m["failedTransactions"] != 0 {
		t.Errorf("%s: %v", options.Mode, m)
	}
	// pgbench's own time begins with its connections, which take long on a busy machine. The time by which it divides begins after them.
	if took := time.Duration(m["durationNanoseconds"]); took < options.Duration/2 || took > options.Duration*3 {
		t.Errorf("measured %v", took)
	}
	if wal := m["walBytesPerTransaction"]; (options.Mode == TPCBLike) != (wal > 300) {
		t.Errorf("%s: %d bytes of write-ahead log for each transaction", options.Mode, wal)
	}
	var details Details
	if err := json.Unmarshal(outcome.Details, &details); err != nil {
		t.Fatal(err)
	}
	if difference := details.PgbenchLatencyMeanNanoseconds - m["transactionLatencyMeanNanoseconds"]; difference < -1500 || difference > 1500 {
		t.Errorf("the mean differs from pgbench's by %d ns", difference)
	}
	commits := details.Server["commits"]
	if commits < m["transactions"] || commits > m["transactions"]+100 {
		t.Errorf("the server counts %d commits, pgbench %d", commits, m["transactions"])
	}
	checksums := map[bool]string{true: "on", false: "off"}[options.DataChecksums]
	if outcome.Environment["postgres.data_checksums"] != checksums || outcome.Environment["postgres.fsync"] != "on" {
		t.Errorf("environment: %v", outcome.Environment)
	}
	for name, value := range options.Settings {
		if outcome.Environment["postgres."+name] != value {
			t.Errorf("%s is %s instead of %s", name, outcome.Environment["postgres."+name], value)
		}
	}
}

func TestRealScriptErrors(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	for name, test := range map[string]struct{ script, want string }{
		"sql":      {"SELECT 1;\nSELEC 2;\n", `syntax error at or near "SELEC" | LINE 1: SELEC 2;`},
		"function": {"\\set a randm(1,2)\nSELECT 1;\n", `script:1: unexpected function name (randm)`},
		"program":  {"COPY pgbench_branches TO PROGRAM 'cat > /tmp/storagebench'", "must be superuser"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := small(t, filepath.Join(folder, name))
			options.Mode, options.Script, options.DatabaseBytes = Script, []byte(test.script), 1
			_, err := Run(t.Context(), options, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), options.Scratch) {
				t.Errorf("%q: %v", test.script, err)
			}
			nothingLeft(t, options)
		})
	}
}

func TestRealBadSetting(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	options := small(t, folder)
	options.Settings = map[string]string{"wal_sync_method": "often"}
	_, err := Run(t.Context(), options, nil)
	if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), `invalid value for parameter "wal_sync_method": "often"`) {
		t.Error(err)
	}
	nothingLeft(t, options)
}

// TestRealCancel cancels at each stage.
func TestRealCancel(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	for _, stage := range []string{"initdb", "start", "load", "checkpoint", "ramp-up", "measure"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			cancelAt(t, filepath.Join(folder, stage), stage)
		})
	}
}

func cancelAt(t *testing.T, folder, stage string) {
	t.Helper()
	options := small(t, folder)
	options.Duration, options.RampUp, options.DatabaseBytes = time.Minute, time.Minute, 40<<20
	if stage == "measure" {
		options.RampUp = 0
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("a key was pressed")
	options.Progress = func(_ int, rate string, _ time.Duration) {
		if strings.HasPrefix(rate, stage) || stage == "measure" && strings.Contains(rate, "transactions/s") {
			cancel(reason)
		}
	}
	began := time.Now()
	_, err := Run(ctx, options, nil)
	if !errors.Is(err, reason) || !strings.HasPrefix(err.Error(), "stopped: a key was pressed") {
		t.Errorf("%s: %v", stage, err)
	}
	t.Logf("cancelled at %s, over after %v", stage, time.Since(began).Round(time.Millisecond))
	nothingLeft(t, options)
}

// TestRealUnnamedUser: initdb wants a name for the user.
func TestRealUnnamedUser(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, 64999)
	if !here {
		return
	}
	options := small(t, folder)
	options.Mode = SelectOnly
	library, err := filepath.Glob(wrapperLibraries[0])
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := Run(t.Context(), options, nil)
	if len(library) > 0 {
		if err != nil {
			t.Fatal(err)
		}
		plausible(t, options, outcome)
	} else if err == nil || !strings.Contains(err.Error(), "initdb needs a name for user 64999") {
		t.Error(err)
	}
	t.Log(err)
	nothingLeft(t, options)
}
