package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

const (
	// Lines of progress come at most once in shortestPause at first, and in a long phase once in longestPause. The log must
	// stay far below the 10 MiB at which kubelet rotates it: a rotation may take a part of the result away.
	shortestPause = 900 * time.Millisecond // whoever tells every second shall be heard
	longestPause  = 10 * time.Second
	// pauseShare is which part of the time so far a pause takes.
	pauseShare = 60
	// maxNews is how often something new may shorten a pause.
	maxNews = 1000
)

// log writes whole lines, from several goroutines. After the result it is silent.
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

// say writes for a person. A log that cannot be written is not worth ending the phase for; the result tells.
func (l *log) say(format string, arguments ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, _ = fmt.Fprintf(l.out, format+"\n", arguments...)
}

// progress writes a line if the last one is long enough ago, or something new is being done.
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

// pause between two lines of progress, so long after the start.
func pause(after time.Duration) time.Duration {
	return min(max(after/pauseShare, shortestPause), longestPause)
}

// result writes the document. Nothing of a workload that could not be stopped comes after it.
func (l *log) result(document results.PhaseDocument) (results.Receipt, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.closed = true
	return results.Emit(l.out, document)
}

// writeTermination writes to the file that kubelet has put there, and makes none.
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

// bounded cuts a text to so many bytes, at the border of a character.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "?")
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "..."
}
