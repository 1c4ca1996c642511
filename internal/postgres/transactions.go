package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// pipeBytes is the largest pipe that unprivileged users may have. pgbench waits when one is full, so the larger the better.
const pipeBytes = 1 << 20

// transactions counts the transactions that pgbench logs. The logs are FIFOs: they take no space, however long the run.
type transactions struct {
	mutex     sync.Mutex
	latencies *histogram
	failed    int64
	broken    error
}

// logs are the FIFOs of one pgbench.
type logs struct {
	counted *transactions
	holders []*os.File // keep the FIFOs open for writing, so that readers wait for pgbench
	files   []*os.File
	readers sync.WaitGroup
}

// openLogs creates the FIFOs that pgbench opens as its logs: PREFIX.PID of its first thread, PREFIX.PID.N of the others.
func openLogs(prefix string, pid, threads int, counted *transactions) (*logs, error) {
	l := &logs{counted: counted}
	for thread := range threads {
		name := fmt.Sprintf("%s.%d", prefix, pid)
		if thread > 0 {
			name = fmt.Sprintf("%s.%d", name, thread)
		}
		if err := l.open(name); err != nil {
			l.close()
			return nil, fmt.Errorf("make the FIFO %s for pgbench: %w", filepath.Base(name), err)
		}
	}
	for _, file := range l.files {
		l.readers.Go(func() { counted.read(file) })
	}
	return l, nil
}

func (l *logs) open(name string) error {
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		return err
	}
	holder, err := os.OpenFile(name, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	l.holders = append(l.holders, holder)
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	l.files = append(l.files, file)
	widen(file)
	return nil
}

// widen makes a pipe larger if that is allowed; a small one works too.
func widen(file *os.File) {
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	const setPipeSize = 1031 // F_SETPIPE_SZ, which package syscall lacks
	_ = raw.Control(func(fd uintptr) { _, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, pipeBytes) })
}

// finish is called after pgbench has exited. It reads what is still in the FIFOs.
func (l *logs) finish() {
	for _, holder := range l.holders {
		_ = holder.Close() // nothing was written
	}
	l.holders = nil
	l.readers.Wait()
	l.close()
}

func (l *logs) close() {
	for _, file := range append(l.holders, l.files...) {
		_ = file.Close() // nothing was written
	}
}

// read counts the lines of one log. It continues after a malformed line, because pgbench would otherwise block forever.
func (t *transactions) read(log io.Reader) {
	buffer := make([]byte, 64<<10)
	kept := 0
	for {
		count, err := log.Read(buffer[kept:])
		end := bytes.LastIndexByte(buffer[:kept+count], '\n') + 1
		t.add(buffer[:end])
		kept = copy(buffer, buffer[end:kept+count])
		if kept == len(buffer) {
			t.fail(fmt.Errorf("pgbench logged a line of more than %d bytes", kept))
			kept = 0
		}
		if err != nil {
			if kept > 0 {
				t.fail(fmt.Errorf("pgbench logged %.100q and no end of the line", buffer[:kept]))
			}
			if !errors.Is(err, io.EOF) {
				t.fail(fmt.Errorf("read what pgbench logs: %w", err))
			}
			return
		}
	}
}

// add counts whole lines.
func (t *transactions) add(lines []byte) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for line := range bytes.Lines(lines) {
		latency, failed, err := parseTransaction(line)
		switch {
		case err != nil:
			t.broken = cmp.Or(t.broken, err)
		case failed:
			t.failed++
		default:
			t.latencies.add(latency)
		}
	}
}

func (t *transactions) fail(err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.broken = cmp.Or(t.broken, err)
}

// parseTransaction reads a line of pgbench -l: client, number, microseconds or how it failed, script, and when it ended.
func parseTransaction(line []byte) (microseconds int64, failed bool, err error) {
	fields := bytes.Fields(line)
	if len(fields) < 6 || len(fields) > 8 {
		return 0, false, fmt.Errorf("pgbench logged %.100q instead of a transaction", line)
	}
	for i, field := range fields {
		if i == 2 && !isDigit(field[0]) {
			switch string(field) {
			case "failed", "serialization", "deadlock": // since version 15
				failed = true
				continue
			}
		}
		number, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil || number < 0 {
			return 0, false, fmt.Errorf("pgbench logged %.100q instead of a transaction", line)
		}
		if i == 2 {
			microseconds = number
		}
	}
	return microseconds, failed, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// startHeld starts a program that does nothing yet, because its process number must be known before it runs: a shell waits for a line and
// then becomes the program. The program gets its arguments as arguments. The text for the shell is constant.
func startHeld(ctx context.Context, spec spec) (*process, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe to hold a program back: %w", err)
	}
	spec.argv = append([]string{shell, "-c", `read -r go && exec "$@"`, "sh"}, spec.argv...)
	spec.stdin = read
	p, err := start(ctx, spec)
	if err := errors.Join(err, read.Close()); err != nil {
		return nil, nil, errors.Join(err, write.Close())
	}
	return p, write, nil
}

// release lets a held program run.
func release(gate *os.File) error {
	_, err := gate.WriteString("go\n")
	return errors.Join(err, gate.Close())
}
