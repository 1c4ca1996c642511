package netswitch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

var (
	broadcast = address{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	group     = address{0x33, 0x33, 0, 0, 0, 1}
)

func machine(n byte) address { return address{0x52, 0x54, 0, 0, 0, n} }

func frameOf(to, from address, text string) []byte {
	frame := append(append([]byte{}, to[:]...), from[:]...)
	return append(append(frame, 0x08, 0x00), text...)
}

// start serves on a unix socket and returns a function that connects a port.
func start(t *testing.T) func() net.Conn {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "switch"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the switch ended with %v", err)
		}
	})
	return func() net.Conn {
		connection, err := net.Dial("unix", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		if err := connection.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return connection
	}
}

func send(t *testing.T, connection net.Conn, frame []byte) {
	t.Helper()
	if err := writeFrame(connection, frame); err != nil {
		t.Fatalf("send: %v", err)
	}
}

func expect(t *testing.T, connection net.Conn, want []byte) {
	t.Helper()
	for {
		got, err := readFrame(connection)
		if err == nil && bytes.HasSuffix(got, []byte(hello)) {
			continue // came too late for meet
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("received %q, %v; expected %q", got, err, want)
		}
		return
	}
}

const hello = "hello"

// meet makes sure that the switch knows all connections, by a broadcast from each that all others receive.
func meet(t *testing.T, connections ...net.Conn) {
	t.Helper()
	for i, from := range connections {
		for {
			send(t, from, frameOf(broadcast, machine(byte(i+1)), hello))
			if reachesAll(t, connections, i) {
				break
			}
		}
	}
}

func reachesAll(t *testing.T, connections []net.Conn, from int) bool {
	t.Helper()
	all := true
	for i, connection := range connections {
		if i == from {
			continue
		}
		if err := connection.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		got, err := readFrame(connection)
		if err := connection.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		all = all && err == nil && bytes.HasSuffix(got, []byte(hello))
	}
	return all
}

func TestSwitch(t *testing.T) {
	connect := start(t)
	one, two, three := connect(), connect(), connect()
	meet(t, one, two, three)

	t.Run("a known address gets the frame alone", func(t *testing.T) {
		send(t, one, frameOf(machine(2), machine(1), "for two"))
		send(t, one, frameOf(broadcast, machine(1), "for all"))
		expect(t, two, frameOf(machine(2), machine(1), "for two"))
		expect(t, two, frameOf(broadcast, machine(1), "for all"))
		expect(t, three, frameOf(broadcast, machine(1), "for all"))
	})
	t.Run("unknown and group addresses are flooded", func(t *testing.T) {
		for _, to := range []address{machine(77), group} {
			send(t, two, frameOf(to, machine(2), "who?"))
			expect(t, one, frameOf(to, machine(2), "who?"))
			expect(t, three, frameOf(to, machine(2), "who?"))
		}
	})
	t.Run("a frame never returns to its port", func(t *testing.T) {
		send(t, one, frameOf(machine(1), machine(1), "for me"))
		send(t, two, frameOf(machine(1), machine(2), "next"))
		expect(t, one, frameOf(machine(1), machine(2), "next"))
	})
	t.Run("an address that moves is learnt again", func(t *testing.T) {
		send(t, three, frameOf(broadcast, machine(2), "moved"))
		expect(t, one, frameOf(broadcast, machine(2), "moved"))
		expect(t, two, frameOf(broadcast, machine(2), "moved"))
		send(t, one, frameOf(machine(2), machine(1), "where?"))
		expect(t, three, frameOf(machine(2), machine(1), "where?"))
	})
}

func TestAPortThatLeavesIsForgotten(t *testing.T) {
	connect := start(t)
	one, two, three := connect(), connect(), connect()
	meet(t, one, two, three)
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	// Until the switch has noticed, the frame goes to the port that left; afterwards it is flooded.
	for received := false; !received; {
		send(t, one, frameOf(machine(2), machine(1), "gone?"))
		if err := three.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := readFrame(three)
		received = err == nil
	}
}

func TestNonsenseClosesOnlyItsPort(t *testing.T) {
	connect := start(t)
	one, two, bad := connect(), connect(), connect()
	meet(t, one, two, bad)
	if _, err := bad.Write(binary.BigEndian.AppendUint32(nil, maxFrame+1)); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); !errors.Is(err, io.EOF); { // after the frames that were queued for it
		if _, err = readFrame(bad); err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("the port that sent nonsense got %v, expected to be closed", err)
		}
	}
	send(t, one, frameOf(machine(2), machine(1), "still here"))
	expect(t, two, frameOf(machine(2), machine(1), "still here"))
}

func TestASlowPortDoesNotHoldUpOthers(t *testing.T) {
	connect := start(t)
	one, two, slow := connect(), connect(), connect()
	meet(t, one, two, slow)
	// Far more than the queue and the socket's buffers hold, and slow reads none of it.
	payload := string(make([]byte, 60000))
	for i := range 3 * queueLength {
		send(t, one, frameOf(machine(3), machine(1), payload))
		if i%64 == 0 {
			send(t, one, frameOf(machine(2), machine(1), "through"))
			expect(t, two, frameOf(machine(2), machine(1), "through"))
		}
	}
}

func TestServeEndsWhenTheListenerFails(t *testing.T) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "switch"))
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestFloodedFramesOverPipes(t *testing.T) {
	f := &fabric{ports: map[*port]struct{}{}, heard: map[address]*port{}}
	ctx, cancel := context.WithCancel(t.Context())
	outside, inside := net.Pipe()
	listening := &port{queue: make(chan []byte, 1), done: make(chan struct{})}
	f.ports[listening] = struct{}{}
	served := make(chan struct{})
	go func() { f.serve(ctx, inside); close(served) }()
	send(t, outside, frameOf(broadcast, machine(1), "piped"))
	if got := <-listening.queue; !bytes.Equal(got, frameOf(broadcast, machine(1), "piped")) {
		t.Errorf("got %q", got)
	}
	cancel()
	<-served
	if len(f.ports) != 1 || len(f.heard) != 0 {
		t.Errorf("%d ports and %d addresses are left", len(f.ports), len(f.heard))
	}
}

func TestInventedAddressesAreBounded(t *testing.T) {
	f := &fabric{ports: map[*port]struct{}{}, heard: map[address]*port{}}
	p := &port{}
	f.ports[p] = struct{}{}
	for i := range maxAddresses + 100 {
		f.learn(p, address{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)})
	}
	if len(f.heard) != maxAddresses {
		t.Errorf("%d addresses were learnt", len(f.heard))
	}
}

// FuzzFraming reads frames from any bytes: frames that are read, and written again, give the same bytes. Nothing else is accepted.
func FuzzFraming(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 13})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	var two bytes.Buffer
	for _, text := range []string{"", "hello"} {
		if err := writeFrame(&two, frameOf(broadcast, machine(1), text)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(two.Bytes())
	f.Fuzz(func(t *testing.T, stream []byte) {
		reader := bytes.NewReader(stream)
		var again bytes.Buffer
		for {
			frame, err := readFrame(reader)
			if err != nil {
				break
			}
			if len(frame) < headerLength || len(frame) > maxFrame {
				t.Fatalf("a frame of %d bytes was taken", len(frame))
			}
			if err := writeFrame(&again, frame); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(stream, again.Bytes()) {
			t.Fatalf("%x was read as %x", stream, again.Bytes())
		}
	})
}
