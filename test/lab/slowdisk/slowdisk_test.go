package slowdisk

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const size = 1 << 20

// client speaks the protocol as QEMU does.
type client struct {
	t    *testing.T
	conn net.Conn
}

// serveDisk serves a file of 1 MiB and connects to it.
func serveDisk(t *testing.T, disk Disk) *client {
	t.Helper()
	disk.Path = filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk.Path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- disk.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	conn, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &client{t, conn}
	c.negotiate()
	return c
}

func (c *client) send(values ...any) {
	c.t.Helper()
	if err := send(c.conn, values...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) receive(value any) {
	c.t.Helper()
	if err := receive(c.conn, value); err != nil {
		c.t.Fatal(err)
	}
}

// negotiate asks for structured replies, which are refused, and then for the export.
func (c *client) negotiate() {
	var hello struct {
		Server, Option uint64
		Flags          uint16
	}
	if c.receive(&hello); hello.Server != magicServer || hello.Option != magicOption || hello.Flags != 3 {
		c.t.Fatalf("the server says %+v", hello)
	}
	const structuredReplies = 8
	c.send(uint32(3), uint64(magicOption), uint32(structuredReplies), uint32(0))
	if kind, _ := c.answer(); kind != answerUnsupported {
		c.t.Errorf("structured replies: answer %#x", kind)
	}
	c.send(uint64(magicOption), uint32(optionGo), uint32(6), uint32(0), uint16(0))
	kind, info := c.answer()
	if kind != answerInfo || len(info) != 12 || binary.BigEndian.Uint64(info[2:]) != size {
		c.t.Fatalf("the export: answer %#x, %v", kind, info)
	}
	if kind, _ := c.answer(); kind != answerAcknowledged {
		c.t.Fatalf("the end of the options: answer %#x", kind)
	}
}

func (c *client) answer() (kind uint32, content []byte) {
	var header struct {
		Magic                uint64
		Option, Kind, Length uint32
	}
	if c.receive(&header); header.Magic != magicAnswer {
		c.t.Fatalf("an answer with magic %#x", header.Magic)
	}
	content = make([]byte, header.Length)
	c.receive(content)
	return header.Kind, content
}

// do makes one request and waits for its reply.
func (c *client) do(kind uint16, offset, length int, data []byte) (got []byte, code uint32, took time.Duration) {
	c.t.Helper()
	begun := time.Now()
	c.ask(7, kind, offset, length, data)
	cookie, code := c.reply()
	if cookie != 7 {
		c.t.Errorf("a reply with cookie %d", cookie)
	}
	if kind == kindRead && code == 0 {
		got = make([]byte, length)
		c.receive(got)
	}
	return got, code, time.Since(begun)
}

func (c *client) ask(cookie uint64, kind uint16, offset, length int, data []byte) {
	c.send(uint32(magicRequest), uint16(0), kind, cookie, uint64(offset), uint32(length), data)
}

func (c *client) reply() (cookie uint64, code uint32) {
	var header struct {
		Magic, Code uint32
		Cookie      uint64
	}
	if c.receive(&header); header.Magic != magicReply {
		c.t.Fatalf("a reply with magic %#x", header.Magic)
	}
	return header.Cookie, header.Code
}

// TestContents writes data, reads it, and overwrites a part with zeroes.
func TestContents(t *testing.T) {
	c := serveDisk(t, Disk{})
	data := bytes.Repeat([]byte("storage "), 1024)
	if _, code, _ := c.do(kindWrite, 4096, len(data), data); code != 0 {
		t.Errorf("write: %d", code)
	}
	if got, code, _ := c.do(kindRead, 4096, len(data), nil); code != 0 || !bytes.Equal(got, data) {
		t.Errorf("read: %d, %d bytes, equal: %t", code, len(got), bytes.Equal(got, data))
	}
	if _, code, _ := c.do(kindZeroes, 8192, 4096, nil); code != 0 {
		t.Errorf("write zeroes: %d", code)
	}
	if got, _, _ := c.do(kindRead, 8192, 4096, nil); !bytes.Equal(got, make([]byte, 4096)) {
		t.Error("what was set to zeroes reads differently")
	}
	if got, _, _ := c.do(kindRead, 4096, 4096, nil); !bytes.Equal(got, data[:4096]) {
		t.Error("zeroes reached further than they should")
	}
	if _, code, _ := c.do(99, 0, 0, nil); code == 0 {
		t.Error("an unknown request succeeded")
	}
}

// TestServiceTimes checks lower bounds, which hold on every machine.
func TestServiceTimes(t *testing.T) {
	const delay, flush, unaligned = 30 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond
	c := serveDisk(t, Disk{Delay: delay, FlushDelay: flush, UnalignedDelay: unaligned, SectorBytes: 4096})
	for _, test := range []struct {
		name           string
		kind           uint16
		offset, length int
		want           time.Duration
	}{
		{"read", kindRead, 0, 4096, delay},
		{"read of half a sector", kindRead, 0, 512, delay},
		{"write", kindWrite, 8192, 4096, delay},
		{"write of half a sector", kindWrite, 8192, 512, delay + unaligned},
		{"write across two sectors", kindWrite, 512, 4096, delay + unaligned},
		{"flush", kindFlush, 0, 0, flush},
	} {
		var data []byte
		if test.kind == kindWrite {
			data = make([]byte, test.length)
		}
		if _, code, took := c.do(test.kind, test.offset, test.length, data); code != 0 || took < test.want {
			t.Errorf("%s: error %d, took %s, want at least %s", test.name, code, took, test.want)
		}
	}
}

// TestBesideEachOther: requests that wait do not hold up others. A read without delay returns before a flush that takes longer than the
// test may.
func TestBesideEachOther(t *testing.T) {
	c := serveDisk(t, Disk{FlushDelay: time.Hour})
	c.ask(1, kindFlush, 0, 0, nil)
	c.ask(2, kindRead, 0, 512, nil)
	if cookie, _ := c.reply(); cookie != 2 {
		t.Errorf("the first reply is that of request %d", cookie)
	}
}

// TestHeads: requests wait for a head in the order in which they come, whatever their kind, and one that begins where the last one ended
// needs no seek.
func TestHeads(t *testing.T) {
	const ms = time.Millisecond
	disk := Disk{Delay: 5 * ms, FlushDelay: 2 * ms, SeekDelay: 20 * ms}
	read := func(offset int64) request { return request{kind: kindRead, offset: offset, length: 4096} }
	write := func(offset int64) request { return request{kind: kindWrite, offset: offset, length: 4096} }
	for _, test := range []struct {
		name  string
		heads int
		asked []request
		want  []time.Duration
	}{
		{"no heads", 0, []request{read(8192), write(0), {kind: kindFlush}}, []time.Duration{5 * ms, 5 * ms, 2 * ms}},
		{"one head", 1, []request{read(0), write(4096), {kind: kindFlush}, write(8192), read(0)},
			[]time.Duration{5 * ms, 10 * ms, 12 * ms, 17 * ms, 42 * ms}},
		{"two heads", 2, []request{read(0), write(0), read(4096), write(8192)}, []time.Duration{5 * ms, 5 * ms, 10 * ms, 30 * ms}},
	} {
		t.Run(test.name, func(t *testing.T) {
			now, heads := time.Now(), make([]head, test.heads)
			for i, asked := range test.asked {
				if got := disk.ends(heads, asked, now).Sub(now); got != test.want[i] {
					t.Errorf("request %d ends after %s, want %s", i, got, test.want[i])
				}
			}
			later := now.Add(time.Hour)
			if got := disk.ends(heads, request{kind: kindFlush}, later).Sub(later); got != 2*ms {
				t.Errorf("an hour later a flush takes %s", got)
			}
		})
	}
}

// TestInLine: with one head, two writes take twice as long as one.
func TestInLine(t *testing.T) {
	const delay = 30 * time.Millisecond
	c := serveDisk(t, Disk{Delay: delay, Heads: 1})
	begun := time.Now()
	c.ask(1, kindWrite, 0, 4, []byte("data"))
	c.ask(2, kindWrite, 4, 4, []byte("more"))
	for range 2 {
		if cookie, code := c.reply(); code != 0 {
			t.Errorf("request %d: error %d", cookie, code)
		}
	}
	if took := time.Since(begun); took < 2*delay {
		t.Errorf("two writes took %s, want at least %s", took, 2*delay)
	}
}

// TestOutside: a request beyond the end ends the connection, not the server.
func TestOutside(t *testing.T) {
	c := serveDisk(t, Disk{})
	c.ask(1, kindRead, size, 512, nil)
	if n, err := c.conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes (%v), want the end of the connection", n, err)
	}
}

// conversation is a connection whose client has already sent everything.
type conversation struct {
	io.Reader
	io.Writer
}

func FuzzProtocol(f *testing.F) {
	var good bytes.Buffer
	_ = send(&good, uint32(3), uint64(magicOption), uint32(optionGo), uint32(6), uint32(0), uint16(0),
		uint32(magicRequest), uint16(0), uint16(kindWrite), uint64(1), uint64(0), uint32(4), []byte("data"))
	f.Add(good.Bytes())
	f.Fuzz(func(t *testing.T, said []byte) {
		one := conversation{bytes.NewReader(said), io.Discard}
		var once sync.Once
		for goesOn, err := negotiate(one, size); goesOn && err == nil; {
			var asked request
			if asked, err = readRequest(one, size); err != nil {
				break
			}
			if asked.offset < 0 || asked.length < 0 || asked.offset+asked.length > size {
				once.Do(func() { t.Errorf("%+v is outside", asked) })
			}
		}
	})
}
