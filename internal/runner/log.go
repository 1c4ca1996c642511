package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

const (
	// Lines of progress are written at most once per shortestPause at first, and in a long phase once per longestPause. The log
	// must stay far below the 10 MiB at which kubelet rotates it: a rotation may remove a part of the result.
	shortestPause = 900 * time.Millisecond // progress every second must get through
	longestPause  = 10 * time.Second
	// The pause is 1/pauseShare of the elapsed time.
	pauseDivisor = 60
	// maxNews is how often a new activity may shorten a pause.
	maxNews = 1000
)

// log writes whole lines, from several goroutines. It writes no progress after the result.
type log struct {
	out   io.Writer
	began time.Time

	mutex   sync.Mutex
	last    time.Time
	message string
	news    int
	closed  bool
}

func newLog(out io.Writer) *log { return &log{out: out, began: time.Now()} }

// say writes a line for people. A failing log is no reason to end the phase; the result will report it.
func (l *log) say(format string, arguments ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, _ = fmt.Fprintf(l.out, format+"\n", arguments...)
}

// progress writes a line if the last one is old enough, or if the activity is new.
func (l *log) progress(progress results.Progress) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	isNew := (progress.Message != l.message || l.last.IsZero()) && l.news < maxNews
	if l.closed || (!isNew && now.Sub(l.last) < pause(now.Sub(l.began))) {
		return
	}
	if isNew {
		l.news++
	}
	l.last, l.message = now, progress.Message
	_, _ = fmt.Fprintln(l.out, progress.Line())
}

// pause between two lines of progress, depending on the time since the start.
func pause(after time.Duration) time.Duration {
	return min(max(after/pauseDivisor, shortestPause), longestPause)
}

// result writes the document. No progress of a workload that could not be stopped follows it.
func (l *log) result(document results.PhaseDocument) (results.Receipt, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.closed = true
	return results.Emit(l.out, document)
}

// writeTermination writes to the file that kubelet has created. It does not create the file.
func writeTermination(path, text string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the termination message cannot be written: %w", err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("the termination message cannot be written: %w", err)
	}
	return nil
}
