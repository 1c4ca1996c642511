package postgres

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func goldenLines(t *testing.T, name string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(golden(t, name)), "\n")
}

func TestDiagnoses(t *testing.T) {
	for name, want := range map[string]struct {
		cause error
		words string
	}{
		"15.18-server-full.log":        {syscall.ENOSPC, "doing: the volume is full"},
		"15.18-server-bad-setting.log": {syscall.EINVAL, "doing: a setting has a value"},
		"15.18-bad-sql.err":            {nil, "doing: failed"},
	} {
		err := diagnose("doing", errors.New("failed"), goldenLines(t, name))
		if want.cause != nil && !errors.Is(err, want.cause) || !strings.HasPrefix(err.Error(), want.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for line, want := range map[string]error{
		`PANIC:  could not write to file "pg_wal/xlogtemp.1": Disk quota exceeded`:              syscall.EDQUOT,
		`PANIC:  could not fsync file "base/5/2619": Input/output error`:                        syscall.EIO,
		`FATAL:  could not open file "pg_wal/0001": Read-only file system`:                      syscall.EROFS,
		`WARNING:  page verification failed, calculated checksum 1 but expected 2`:              syscall.EBADMSG,
		`FATAL:  could not map anonymous shared memory: Cannot allocate memory`:                 syscall.ENOMEM,
		`LOG:  server process (PID 7) was terminated by signal 9: Killed`:                       syscall.ENOMEM,
		`initdb: error: cannot be run as root`:                                                  syscall.EPERM,
		`FATAL:  8 is outside the valid range for parameter "checkpoint_timeout" (30 .. 86400)`: syscall.EINVAL,
		`ERROR:  could not extend file "base/16385/16398": wrote only 4096 of 8192 bytes at block 3544
HINT:  Check free disk space.`: syscall.ENOSPC,
	} {
		if err := diagnose("doing", errors.New("failed"), []string{line}); !errors.Is(err, want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestSignificant(t *testing.T) {
	for name, want := range map[string][]string{
		"15.18-server-full.log": {`PANIC:  could not write to file "pg_wal/xlogtemp.26620": No space left on device`,
			"was terminated by signal 6"},
		"15.18-bad-sql.err":     {`ERROR:  syntax error at or near "SELEC"`, "LINE 1: SELEC 2;", "Run was aborted"},
		"15.18-bad-command.err": {`bad2.sql:1: unexpected function name (randm)`, "error found here"},
		"15.18-died.err":        {"client 1 aborted in command 1", "Run was aborted"},
		"15.18-tpcb.err":        {"progress: 4.0 s"}, // nothing of weight: the last line
	} {
		got := significant(goldenLines(t, name))
		if len(got) != len(want) || !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := significant(nil); got != nil {
		t.Error(got)
	}
}

func TestTroubleOfTheServer(t *testing.T) {
	var quiet, loud trouble
	for _, line := range goldenLines(t, "15.18-bad-sql.err") {
		quiet.look(line)
	}
	for _, line := range goldenLines(t, "15.18-server-full.log") {
		loud.look(line)
	}
	if quiet.err() != nil || loud.err() == nil || !strings.Contains(loud.err().Error(), "PANIC") {
		t.Error(quiet.err(), loud.err())
	}
}

// TestDistrust: figures that do not fit together are refused.
func TestDistrust(t *testing.T) {
	good := func() measurement {
		m := measurement{summary: summary{transactions: 2, failed: 1, clients: 3, tps: 1}, counted: &transactions{latencies: newHistogram(),
			failed: 1}}
		m.counted.latencies.add(1)
		m.counted.latencies.add(2)
		return m
	}
	for want, change := range map[string]func(*measurement){
		"":                         func(*measurement) {},
		"counters":                 func(m *measurement) { m.counted.broken = errors.New("counters") },
		"no transaction succeeded": func(m *measurement) { m.summary.transactions = 0 },
		"pgbench counted 2 trans":  func(m *measurement) { m.counted.latencies.add(1) },
		"pgbench counted 2":        func(m *measurement) { m.counted.failed = 0 },
		"pgbench ran 4 clients":    func(m *measurement) { m.summary.clients = 4 },
		"the write-ahead log":      func(m *measurement) { m.walBytes = -1 },
	} {
		m := good()
		change(&m)
		if err := m.check(3); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
