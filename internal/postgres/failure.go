package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// diagnosis is what a message of PostgreSQL means, and what users can do about it.
type diagnosis struct {
	text  string
	cause error
	words string
}

// storageDiagnoses are those of failing storage. Such a line in the server's log invalidates any measurement.
var storageDiagnoses = []diagnosis{
	{"No space left on device", syscall.ENOSPC, "the volume is full: reduce databaseSize or max_wal_size, or enlarge the volume"},
	{"Check free disk space", syscall.ENOSPC, "the volume is full: reduce databaseSize or max_wal_size, or enlarge the volume"},
	{"Disk quota exceeded", syscall.EDQUOT,
		"the quota of the volume is used up: reduce databaseSize or max_wal_size, or increase the quota"},
	{"Input/output error", syscall.EIO, "the storage has reported an I/O error: see the kernel log of the node"},
	{"Read-only file system", syscall.EROFS,
		"the volume is read-only: see the kernel log of the node, file systems become read-only after errors"},
	{"page verification failed", syscall.EBADMSG, "a checksum is wrong: the storage returned other data than was written"},
	{"invalid page in block", syscall.EBADMSG, "a page is damaged: the storage returned other data than was written"},
}

// otherDiagnoses are checked after storageDiagnoses, causes before their consequences.
var otherDiagnoses = []diagnosis{
	{"could not map anonymous shared memory", syscall.ENOMEM,
		"there is not enough memory: reduce shared_buffers, or increase the memory of the pod"},
	{"was terminated by signal 9", syscall.ENOMEM,
		"a process of the server was killed, probably for lack of memory: reduce shared_buffers, or increase the memory of the pod"},
	{"out of memory", syscall.ENOMEM, "there is not enough memory: reduce shared_buffers or clients, or increase the memory of the pod"},
	{"could not resize shared memory segment", syscall.ENOMEM, "/dev/shm is full: enlarge it"},
	{"invalid value for parameter", syscall.EINVAL, "a setting has a value that this PostgreSQL does not accept: correct it in settings"},
	{"is outside the valid range for parameter", syscall.EINVAL, "a setting is out of its range: correct it in settings"},
	{"requires a numeric value", syscall.EINVAL, "a setting needs a number: correct it in settings"},
	{"cannot be run as root", syscall.EPERM, "PostgreSQL does not run as root: run it as another user"},
	{"cannot be executed by", syscall.EPERM, "PostgreSQL does not run as root: run it as another user"},
	{"Permission denied", syscall.EACCES, "the user of this process has no write access: set fsGroup or the owner of the volume"},
	{"Operation not permitted", syscall.EPERM, "the file system denies an operation that PostgreSQL needs"},
}

// failingStorage reports whether a line of the server's log reports failing storage. Mistakes of a script do not count.
func failingStorage(line string) bool {
	return slices.ContainsFunc(storageDiagnoses, func(known diagnosis) bool { return strings.Contains(line, known.text) })
}

// weighty matches the lines of the programs and of the server that say what went wrong.
var weighty = regexp.MustCompile(`(?i)\b(error|fatal|panic|hint|detail|aborted|terminated by signal|invalid value|outside the valid range|requires a)\b|^LINE \d+:`) //nolint:lll // a pattern is one line

// consequences matches the lines that all other connections report after one process of the server has died.
var consequences = regexp.MustCompile(`The postmaster has commanded this server process|In a moment you should be able to reconnect|Failed process was running`) //nolint:lll // a pattern is one line

// explain returns an error that says what failed and why, and what PostgreSQL itself said. The errno of the cause can be found with
// errors.Is.
func (s *session) explain(doing string, err error) error {
	var lines []string
	if failed, is := errors.AsType[*commandError](err); is {
		lines = failed.lines
	}
	if s.server != nil {
		s.awaitLog(err)
		lines = append(lines, s.server.process.said.lines()...)
		if said := significant(s.server.process.said.lines()); len(said) > 0 && weighty.MatchString(said[0]) {
			err = fmt.Errorf("%w; the server said: %s", err, strings.Join(said, " | "))
		}
	}
	return diagnose(doing, err, lines)
}

// awaitLog gives a dying server a moment to log the reason: pgbench notices the closed connections first.
func (s *session) awaitLog(err error) {
	if !errors.Is(err, errServerDied) && !lostConnection(err) {
		return
	}
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-s.server.process.done:
	case <-timer.C:
	}
}

func lostConnection(err error) bool {
	var failed *commandError
	if !errors.As(err, &failed) {
		return false
	}
	text := strings.Join(failed.lines, "\n")
	for _, sign := range []string{"server closed the connection", "the backend died", "terminating connection", "could not connect",
		"Connection refused",
		"No such file or directory"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func diagnose(doing string, err error, lines []string) error {
	text := strings.Join(lines, "\n") + "\n" + err.Error()
	for _, known := range slices.Concat(storageDiagnoses, otherDiagnoses) {
		if strings.Contains(text, known.text) {
			return fmt.Errorf("%s: %s (%w): %w", doing, known.words, known.cause, err)
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// significant chooses up to four lines that say what went wrong, each kind once; without such lines, the last one.
func significant(lines []string) []string {
	var chosen []string
	seen := map[string]bool{}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		key := differences.ReplaceAllString(line, "#")
		if !weighty.MatchString(line) || consequences.MatchString(line) || seen[key] || len(chosen) == 4 {
			continue
		}
		seen[key] = true
		chosen = append(chosen, line)
	}
	if len(chosen) == 0 && len(lines) > 0 {
		chosen = lines[len(lines)-1:]
	}
	return chosen
}

// differences are the parts that vary between lines of one kind: time, process, client.
var differences = regexp.MustCompile(`\d+`)
