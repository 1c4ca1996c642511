// Package netswitch is an Ethernet switch for virtual machines: each connection to its socket is a port, and speaks the
// framing of QEMU's stream network, which is the length in 4 bytes, most significant first, and then the frame.
//
// It exists because nodes must reach each other, and bridges of the host would need privileges and leave traces there.
package netswitch

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

const (
	// headerLength is both addresses and the type: less is no Ethernet frame.
	headerLength = 14
	// maxFrame is QEMU's NET_BUFSIZE, the longest frame that it sends or takes.
	maxFrame = 4096 + 65536
	// queueLength is how many frames may wait for a port; more are dropped, as a switch with full buffers does.
	queueLength = 1024
	// maxAddresses bounds the memory that a guest which invents addresses can take.
	maxAddresses = 16384
)

type address [6]byte

// port is one connection.
type port struct {
	queue chan []byte
	done  chan struct{}
}

// fabric knows all ports, and from which port each address was last heard.
type fabric struct {
	mutex sync.RWMutex
	ports map[*port]struct{}
	heard map[address]*port
}

// Serve switches frames between all connections, until the context ends, which is no error, or the listener fails. It closes the listener,
// and returns when all ports are closed.
func Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var ports sync.WaitGroup
	defer ports.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	f := &fabric{ports: map[*port]struct{}{}, heard: map[address]*port{}}
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = connection.Close()
			}
			return nil
		}
		if err != nil {
			return errors.Join(fmt.Errorf("accept a port on %s: %w", listener.Addr(), err), listener.Close())
		}
		ports.Go(func() { f.serve(ctx, connection) })
	}
}

// serve serves a port until it is closed. A connection that breaks or sends something invalid ends only itself: QEMU connects again.
func (f *fabric) serve(ctx context.Context, connection net.Conn) {
	p := &port{queue: make(chan []byte, queueLength), done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	f.mutex.Lock()
	f.ports[p] = struct{}{}
	f.mutex.Unlock()

	var writer sync.WaitGroup
	writer.Go(func() {
		p.write(connection)
		_ = connection.Close() // wakes the reader
	})
	reader := bufio.NewReaderSize(connection, 1<<16)
	for {
		frame, err := readFrame(reader)
		if err != nil {
			break
		}
		f.forward(p, frame)
	}
	f.leave(p)
	close(p.done)
	_ = connection.Close() // wakes the writer
	writer.Wait()
}

// leave forgets the port, so that frames for its addresses are flooded until they are heard elsewhere.
func (f *fabric) leave(p *port) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.ports, p)
	for a, at := range f.heard {
		if at == p {
			delete(f.heard, a)
		}
	}
}

// forward learns who sent the frame and gives it to the port of its destination, or to all others.
func (f *fabric) forward(from *port, frame []byte) {
	destination, source := address(frame[:6]), address(frame[6:12])
	f.learn(from, source)
	f.mutex.RLock()
	defer f.mutex.RUnlock()
	if to, known := f.heard[destination]; known && !destination.group() {
		if to != from {
			to.offer(frame)
		}
		return
	}
	for to := range f.ports {
		if to != from {
			to.offer(frame)
		}
	}
}

func (f *fabric) learn(from *port, source address) {
	f.mutex.RLock()
	at, known := f.heard[source]
	full := len(f.heard) >= maxAddresses
	f.mutex.RUnlock()
	if source.group() || at == from || (full && !known) {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if _, connected := f.ports[from]; connected {
		f.heard[source] = from
	}
}

// group reports whether an address stands for several machines, such as broadcast: such addresses are never learned.
func (a address) group() bool { return a[0]&1 == 1 }

// offer never waits: a guest that does not read must not hold up the others.
func (p *port) offer(frame []byte) {
	select {
	case p.queue <- frame:
	default:
	}
}

// write sends the queued frames, and combines those that are queued at the same time into one write.
func (p *port) write(connection io.Writer) {
	buffered := bufio.NewWriterSize(connection, 1<<16)
	for {
		select {
		case <-p.done:
			return
		case frame := <-p.queue:
			if writeFrame(buffered, frame) != nil || (len(p.queue) == 0 && buffered.Flush() != nil) {
				return
			}
		}
	}
}

// readFrame reads one frame into its own memory, because several ports may hold it.
func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n < headerLength || n > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes: expected %d to %d; is the other side a QEMU stream network?",
			n, headerLength, maxFrame)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	return frame, nil
}

func writeFrame(w io.Writer, frame []byte) error {
	if _, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(frame)))); err != nil {
		return err
	}
	_, err := w.Write(frame)
	return err
}
