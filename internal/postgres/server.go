package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	startPatience = 5 * time.Minute
	// cleanPatience is for a clean shutdown with its checkpoint, abandonPatience for a server whose data is no longer needed.
	cleanPatience   = 20 * time.Minute
	abandonPatience = 8 * time.Second
	forcePatience   = 8 * time.Second
)

// server is the running PostgreSQL.
type server struct {
	process *process
	data    string
	trouble trouble
	// checkpoints are those that the log reports as complete.
	checkpoints atomic.Int64
}

// completed matches the line of a checkpoint in the server's log (log_checkpoints), with the prefix that configuration sets. Messages
// of clients have another level.
var completed = regexp.MustCompile(`^\S+ \S+ \S+ \[\d+\] LOG:  checkpoint complete: `)

// look reads a line of the server's log.
func (s *server) look(line string) {
	s.trouble.look(line)
	if completed.MatchString(line) {
		s.checkpoints.Add(1)
	}
}

// trouble is the first line of the server's log that reports failing storage. It may come from a background process while all transactions
// succeed.
type trouble struct {
	mutex sync.Mutex
	line  string
}

func (t *trouble) look(line string) {
	if !failingStorage(line) {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.line == "" {
		t.line = line
	}
}

func (t *trouble) err() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.line == "" {
		return nil
	}
	return fmt.Errorf("the server said: %s", t.line)
}

// errServerDied is the cause if the server ends without being stopped.
var errServerDied = errors.New("the PostgreSQL server has died")

func (s *session) startServer(ctx context.Context) error {
	s.progress.say("start of the server")
	// SIGQUIT ends the server and its processes at once if this process is killed.
	started := &server{data: s.data}
	var err error
	started.process, err = start(ctx, spec{argv: []string{s.programs.path("postgres"), "-D", s.data},
		environment: minimalEnvironment(s.scratch),
		line:        started.look, survives: true, deathSignal: syscall.SIGQUIT})
	if err != nil {
		return err
	}
	s.server = started
	if err := s.server.ready(ctx); err != nil {
		return errors.Join(s.explain("start PostgreSQL in "+s.options.Folder, err), s.abandonServer())
	}
	return nil
}

// ready polls postmaster.pid, as pg_ctl does. There is nothing to wait on instead: the server sends no notification.
func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("the server was not ready within %v", startPatience))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-s.process.done:
			return errServerDied
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		text, err := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("see whether the server is ready: %w", err)
		}
		if pid, ready := parsePostmasterPID(string(text)); ready && pid == s.process.pid {
			return nil
		}
	}
}

// whileAlive returns a context that also ends when the server dies.
func (s *server) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	alive, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.process.done:
			cancel(errServerDied)
		case <-alive.Done():
		}
	}()
	return alive, func() { cancel(context.Canceled) }
}

// stopServer shuts the server down cleanly, so that it writes everything that it has not written yet.
func (s *session) stopServer(ctx context.Context) error {
	s.progress.say("stop of the server")
	began := time.Now()
	if err := s.server.stop(ctx, cleanPatience); err != nil {
		return s.explain("stop PostgreSQL", err)
	}
	if err := s.server.trouble.err(); err != nil {
		return s.explain("measure PostgreSQL", err)
	}
	s.details.StopNanoseconds = time.Since(began).Nanoseconds()
	return nil
}

// abandonServer stops the server after a failure, which is the error that counts. It returns an error only if the server does not end.
func (s *session) abandonServer() error {
	ctx, cancel := context.WithTimeout(context.Background(), abandonPatience)
	defer cancel()
	_ = s.server.stop(ctx, abandonPatience)
	select {
	case <-s.server.process.done:
		return nil
	default:
		return fmt.Errorf("PostgreSQL (process %d) does not end although it was killed: it waits for storage that does not respond",
			s.server.process.pid)
	}
}

// stop asks for a fast shutdown, then for an immediate one, then kills. Only the first is a success.
func (s *server) stop(ctx context.Context, patience time.Duration) error {
	if s.signal(ctx, syscall.SIGINT, patience) {
		if err := s.process.err; err != nil {
			return fmt.Errorf("%w: %w", errServerDied, err)
		}
		return nil
	}
	forced := fmt.Errorf("the server did not stop within %v", patience)
	if ctx.Err() != nil {
		forced = context.Cause(ctx)
	}
	later := context.WithoutCancel(ctx)
	if s.signal(later, syscall.SIGQUIT, forcePatience) {
		return forced
	}
	children := childrenOf(s.process.pid) // they have process groups of their own
	gone := s.signal(later, syscall.SIGKILL, time.Second)
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended already
	}
	if !gone {
		s.signal(later, syscall.SIGKILL, forcePatience)
	}
	return forced
}

// signal sends a signal and says whether the server ended in time. It sends none if the server has ended already.
func (s *server) signal(ctx context.Context, signal syscall.Signal, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.process.done:
		return true
	default:
	}
	_ = syscall.Kill(s.process.pid, signal)
	select {
	case <-s.process.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// childrenOf lists the processes of a parent.
func childrenOf(parent int) []int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var children []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		if pid, of := parseStat(string(text)); of == parent {
			children = append(children, pid)
		}
	}
	return children
}

// parseStat reads the process and its parent from /proc/PID/stat. The name between them may contain anything.
func parseStat(text string) (pid, parent int) {
	first, _, _ := strings.Cut(text, " ")
	rest := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(rest) < 2 {
		return 0, 0
	}
	pid, errPID := strconv.Atoi(first)
	parent, errParent := strconv.Atoi(rest[1])
	if errPID != nil || errParent != nil {
		return 0, 0
	}
	return pid, parent
}
