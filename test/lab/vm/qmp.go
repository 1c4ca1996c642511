package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// qmp speaks QEMU's machine protocol, one command at a time. Events that arrive in between are kept until a caller waits
// for them.
type qmp struct {
	mutex      sync.Mutex
	connection net.Conn
	reader     *bufio.Reader
	last       int
	events     []event
	// partial is the beginning of a message whose rest had not come when a caller gave up waiting.
	partial []byte
	// broken is why the connection can no longer be used.
	broken error
}

// event is something that QEMU reports by itself.
type event struct {
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

// message is anything that QEMU sends.
type message struct {
	event
	Greeting json.RawMessage `json:"QMP"`
	ID       string          `json:"id"`
	Return   json.RawMessage `json:"return"`
	Error    *commandError   `json:"error"`
}

// commandError is QEMU's refusal of a command.
type commandError struct {
	Class       string `json:"class"`
	Description string `json:"desc"`
	command     string
}

func (e *commandError) Error() string {
	return fmt.Sprintf("QEMU refused %s: %s (%s)", e.command, e.Description, e.Class)
}

// maxEvents is how many events are kept for a waiter that may never come.
const maxEvents = 1000

// greet finishes the handshake on a new connection.
func greet(ctx context.Context, connection net.Conn) (*qmp, error) {
	q := &qmp{connection: connection, reader: bufio.NewReader(connection)}
	first, err := q.receive(ctx)
	if err != nil {
		return nil, err
	}
	if first.Greeting == nil {
		return nil, errors.New("it does not greet like QEMU's machine protocol")
	}
	return q, q.execute(ctx, "qmp_capabilities", nil, nil)
}

func (q *qmp) close() error { return q.connection.Close() }

// execute runs a command. The result is decoded into result, unless that is nil.
func (q *qmp) execute(ctx context.Context, command string, arguments, result any) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.last++
	id := strconv.Itoa(q.last)
	request := map[string]any{"execute": command, "id": id}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := q.send(ctx, request); err != nil {
		return fmt.Errorf("ask QEMU for %s: %w", command, err)
	}
	for {
		m, err := q.receive(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("wait for QEMU's answer to %s: %w", command, err)
		case m.Name != "":
			q.keep(m.event)
		case m.ID != id && (m.ID != "" || m.Error == nil):
			// The answer to a command whose caller no longer waits.
		case m.Error != nil: // without an ID: QEMU could not read the command
			m.Error.command = command
			return m.Error
		case result == nil:
			return nil
		default:
			if err := json.Unmarshal(m.Return, result); err != nil {
				return fmt.Errorf("read QEMU's answer to %s: %w", command, err)
			}
			return nil
		}
	}
}

// await waits for an event, which may have come already. The event is removed, so that the next caller gets the next one.
func (q *qmp) await(ctx context.Context, wanted func(event) bool) (event, error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for {
		if at := slices.IndexFunc(q.events, wanted); at >= 0 {
			found := q.events[at]
			q.events = slices.Delete(q.events, at, at+1)
			return found, nil
		}
		m, err := q.receive(ctx)
		if err != nil {
			return event{}, err
		}
		if m.Name != "" {
			q.keep(m.event)
		}
	}
}

func (q *qmp) keep(e event) {
	if q.events = append(q.events, e); len(q.events) > maxEvents {
		q.events = slices.Delete(q.events, 0, 1)
	}
}

func (q *qmp) send(ctx context.Context, request any) error {
	if q.broken != nil {
		return q.broken
	}
	defer q.obey(ctx)()
	err := json.NewEncoder(q.connection).Encode(request)
	if err != nil && ctx.Err() != nil {
		return q.fail(context.Cause(ctx)) // half a command may be written
	}
	if err != nil {
		return q.fail(err)
	}
	return nil
}

func (q *qmp) receive(ctx context.Context) (message, error) {
	if q.broken != nil {
		return message{}, q.broken
	}
	defer q.obey(ctx)()
	line, err := q.reader.ReadBytes('\n')
	line = append(q.partial, line...)
	q.partial = nil
	if err != nil && ctx.Err() != nil {
		q.partial = line
		return message{}, context.Cause(ctx)
	}
	if err != nil {
		return message{}, q.fail(err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, q.fail(fmt.Errorf("%q is not JSON: %w", line, err))
	}
	return m, nil
}

// obey lets the context interrupt reads and writes on the connection, until the returned function is called.
func (q *qmp) obey(ctx context.Context) func() {
	_ = q.connection.SetDeadline(time.Time{})
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = q.connection.SetDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	return func() {
		if !stop() {
			<-interrupted // now, because later it would interrupt another caller
		}
	}
}

// errGone means that the connection has ended, usually because QEMU has.
var errGone = errors.New("QEMU has closed the connection: the machine is off")

func (q *qmp) fail(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		err = errGone
	}
	q.broken = err
	return err
}
