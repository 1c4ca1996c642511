package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// output remembers the first error of a writer, because most lines are printed without a look at it.
type output struct {
	to io.Writer
	// failed is called with each error. Nil does nothing.
	failed func(error)

	mutex sync.Mutex
	err   error
}

func (o *output) Write(text []byte) (int, error) {
	n, err := o.to.Write(text)
	if err == nil {
		return n, nil
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.err == nil {
		o.err = err
	}
	if o.failed != nil {
		o.failed(err)
	}
	return n, err
}

// problem returns the first error, or nil.
func (o *output) problem() error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.err
}

// errUnread is the cause of a context that ended because its reader is gone.
var errUnread = errors.New("the reader of the output is gone")

// whileRead returns a context that ends when the reader of the output is gone, as in 'run --local | head', and a copy of the tool that
// notices it. Otherwise the signal of the closed pipe would kill this program before it cleans up. Another error of the output, such as a
// full disk, ends nothing: the results go elsewhere.
func (a *App) whileRead(ctx context.Context) (context.Context, *App, context.CancelFunc) {
	// Go then returns an error instead of dying. The signal is not ignored, because the programs of the workload would inherit that. It stays
	// caught until this program ends, because the last message may go to the same pipe.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	noticing := *a
	noticing.Out = &output{to: a.Out, failed: func(err error) {
		if errors.Is(err, syscall.EPIPE) {
			cancel(errUnread)
		}
	}}
	return ctx, &noticing, func() { cancel(nil) }
}
