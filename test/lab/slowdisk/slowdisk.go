// Package slowdisk serves a file as a disk with service times, over the NBD protocol. QEMU's throttle limits how much a disk does in
// a second; here each request takes its time, as on a disk with a head or behind a slow link. Without heads, all requests are served at
// the same time. With heads, as many are served as there are heads, and the others wait in one queue, reads and writes alike.
package slowdisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Disk is a file with service times.
type Disk struct {
	// Path of the file. It is opened for each connection, so it need not exist before the machine is prepared.
	Path string
	// Delay is how long a read or write takes at least.
	Delay time.Duration
	// FlushDelay is how long a flush takes at least.
	FlushDelay time.Duration
	// UnalignedDelay is how much longer a write takes if it does not begin and end at sectors of SectorBytes: the disk first reads
	// what it must not change.
	UnalignedDelay time.Duration
	SectorBytes    int64
	// Heads is how many requests are served at the same time; 0 serves all at once.
	Heads int
	// SeekDelay is how much longer a read or write takes if it does not begin where the last one of its head ended.
	SeekDelay time.Duration
}

// Serve answers connections until the context ends.
func (d Disk) Serve(ctx context.Context, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return listener.Close()
	})
	group.Go(func() error {
		for {
			connection, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return nil // the context has ended
			}
			if err != nil {
				return err
			}
			group.Go(func() error {
				d.talkTo(ctx, connection)
				return nil
			})
		}
	})
	return group.Wait()
}

// talkTo serves one connection. A client that goes away, or violates the protocol, does not end the others.
func (d Disk) talkTo(ctx context.Context, connection net.Conn) {
	if err := d.talk(ctx, connection); err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(os.Stderr, "slow disk %s: %v\n", d.Path, err)
	}
}

// talk serves one connection to its end.
func (d Disk) talk(ctx context.Context, connection net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	defer func() { _ = connection.Close() }()
	file, err := os.OpenFile(d.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if goesOn, err := negotiate(connection, info.Size()); err != nil || !goesOn {
		return err
	}
	heads := make([]head, d.Heads)
	var working sync.WaitGroup
	defer working.Wait()
	var replies sync.Mutex
	for {
		asked, err := readRequest(connection, info.Size())
		if errors.Is(err, io.EOF) || asked.kind == kindDisconnect {
			return nil
		}
		if err != nil {
			return err
		}
		ends := d.ends(heads, asked, time.Now())
		working.Go(func() {
			data, code := serve(file, asked)
			if !wait(ctx, time.Until(ends)) {
				return
			}
			replies.Lock()
			defer replies.Unlock()
			if err := reply(connection, asked, data, code); err != nil {
				cancel()
			}
		})
	}
}

// head serves one request at a time.
type head struct {
	free time.Time // when its last request ends
	at   int64     // where on the disk that one ends
}

// ends returns when a request that comes now is done, and gives it to the head that is free first.
func (d Disk) ends(heads []head, asked request, now time.Time) time.Time {
	if len(heads) == 0 {
		return now.Add(d.takes(asked))
	}
	next := &heads[0]
	for i := range heads {
		if heads[i].free.Before(next.free) {
			next = &heads[i]
		}
	}
	begins := now
	if next.free.After(now) {
		begins = next.free
	}
	next.free = begins.Add(d.takes(asked))
	if asked.kind == kindRead || asked.kind == kindWrite {
		if asked.offset != next.at {
			next.free = next.free.Add(d.SeekDelay)
		}
		next.at = asked.offset + asked.length
	}
	return next.free
}

// takes returns the service time of a request, without a seek.
func (d Disk) takes(asked request) time.Duration {
	switch asked.kind {
	case kindRead:
		return d.Delay
	case kindWrite, kindZeroes:
		if d.SectorBytes > 0 && (asked.offset%d.SectorBytes != 0 || asked.length%d.SectorBytes != 0) {
			return d.Delay + d.UnalignedDelay
		}
		return d.Delay
	case kindFlush:
		return d.FlushDelay
	default:
		return 0
	}
}

func wait(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// serve executes a request. As with the other disks of a lab, the host's kernel decides when to write, even after a flush.
func serve(file *os.File, asked request) (data []byte, code uint32) {
	var err error
	switch asked.kind {
	case kindRead:
		data = make([]byte, asked.length)
		_, err = file.ReadAt(data, asked.offset)
	case kindWrite:
		_, err = file.WriteAt(asked.data, asked.offset)
	case kindZeroes, kindTrim:
		err = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, asked.offset, asked.length)
	case kindFlush:
	default:
		err = syscall.EINVAL
	}
	if err == nil {
		return data, 0
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		number = syscall.EIO
	}
	return nil, uint32(number)
}
