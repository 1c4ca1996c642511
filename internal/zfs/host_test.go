//go:build linux

package zfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for zpool and zfs.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as-program" {
		os.Exit(program(os.Args[3:]))
	}
	os.Exit(m.Run())
}

func program(args []string) int {
	switch args[0] {
	case "environment":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "args":
		fmt.Printf("%q\n", args[1:])
	case "fail":
		fmt.Fprintln(os.Stderr, args[1])
		return 1
	case "copy":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			return 1
		}
	case "much":
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 17 {
			if _, err := os.Stdout.Write(chunk); err != nil {
				return 1
			}
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		forever()
	case "hang":
		forever()
	}
	return 0
}

func forever() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR1)
	fmt.Println("ready")
	<-never
}

func testHost(t *testing.T) *Host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := NewHost(self, "as-program")
	host.grace = time.Second
	return host
}

func TestHostPassesArgumentsUntouched(t *testing.T) {
	host := testHost(t)
	output, err := host.Run(t.Context(), zpool("args", "a b", "$(id)", "*", "-x"))
	if err != nil || string(output) != `["a b" "$(id)" "*" "-x"]`+"\n" {
		t.Errorf("%s, %v", output, err)
	}
	t.Setenv("ZFS_COLOR", "1")
	output, err = host.Run(t.Context(), zpool("environment"))
	if want := "LC_ALL=C\nTZ=UTC\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"; err != nil || string(output) != want {
		t.Errorf("environment %q, %v", output, err)
	}
}

func TestHostKeepsWhatProgramsSay(t *testing.T) {
	_, err := testHost(t).Run(t.Context(), zpool("fail", "cannot open 'p': no such pool"))
	var failed *Error
	if !errors.Is(err, NotFound) || !errors.As(err, &failed) {
		t.Fatalf("%v", err)
	}
	if failed.ExitCode != 1 || failed.Command != "zpool fail cannot open 'p': no such pool" ||
		!strings.Contains(failed.Stderr, "no such pool") {
		t.Errorf("%+v", failed)
	}
}

func TestHostStreams(t *testing.T) {
	var out bytes.Buffer
	data := bytes.Repeat([]byte("stream"), 1<<20)
	output, err := testHost(t).Run(t.Context(), Command{Program: "zfs", Args: []string{"copy"}, Stdin: bytes.NewReader(data), Stdout: &out})
	if err != nil || len(output) != 0 || !bytes.Equal(out.Bytes(), data) {
		t.Errorf("%d bytes came through of %d, %v", out.Len(), len(data), err)
	}
}

// readyWriter signals that the program runs.
type readyWriter chan struct{}

func (w readyWriter) Write(data []byte) (int, error) {
	w <- struct{}{}
	return len(data), nil
}

func TestHostEndsPrograms(t *testing.T) {
	host := testHost(t)
	_, err := host.Run(t.Context(), Command{Program: "zpool", Args: []string{"hang"}, Timeout: 300 * time.Millisecond})
	if !errors.Is(err, Timeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	for _, how := range []string{"hang", "stubborn"} {
		ctx, cancel := context.WithCancel(t.Context())
		ready := make(readyWriter, 1)
		go func() {
			<-ready
			cancel()
		}()
		if _, err := host.Run(ctx, Command{Program: "zpool", Args: []string{how}, Stdout: ready}); !errors.Is(err, Cancelled) ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", how, err)
		}
		cancel()
	}
	if hanging := host.Hanging(); len(hanging) != 0 {
		t.Errorf("programs count as hanging: %v", hanging)
	}
}

// TestHostKillsHelpers: a helper that ignores the request to end does not outlive the program that has started it.
func TestHostKillsHelpers(t *testing.T) {
	host := NewHost("/bin/sh", "-c", "trap '' TERM; sleep 600 & trap - TERM; echo $!; wait", "sh")
	host.grace = time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	helper := make(chan string, 1)
	go func() {
		var pid string
		_, _ = fmt.Fscanln(reader, &pid)
		helper <- pid
		cancel()
	}()
	if _, err := host.Run(ctx, Command{Program: "zpool", Stdout: writer}); !errors.Is(err, Cancelled) {
		t.Error(err)
	}
	stat, deadline := "/proc/"+<-helper+"/stat", time.After(10*time.Second)
	for {
		text, err := os.ReadFile(stat)
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(text), ") Z") {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("the helper is left: %s, %v", text, err)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestHostDoesNotWaitForTheUnkillable: a program that hangs in the kernel does not die. Its caller still gets an answer, and no more
// programs are started on that pool. Other pools are not affected.
func TestHostDoesNotWaitForTheUnkillable(t *testing.T) {
	host := testHost(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	ctx, unended := FollowUnended(cancelled)
	release := make(chan struct{})
	on := func(pool string) Command { return zpool("args", pool).onPool(pool) }
	hang := func(pool string) error {
		usual := host.grace
		host.grace = time.Millisecond // too short for programs that end
		defer func() { host.grace = usual }()
		return host.wait(ctx, on(pool), func() error { <-release; return nil })
	}
	for range hangingPerPool {
		if _, err := host.Run(t.Context(), on("stuck")); err != nil {
			t.Fatalf("before the limit: %v", err)
		}
		if err := hang("stuck"); !errors.Is(err, errUnkillable) {
			t.Fatalf("waiting for a program that never ends: %v", err)
		}
	}
	if _, err := host.Run(t.Context(), on("stuck")); !errors.Is(err, Suspended) ||
		!strings.Contains(err.Error(), "'zpool args stuck' hangs in the kernel since 2") {
		t.Errorf("with %d hanging programs another was started on the pool: %v", hangingPerPool, err)
	}
	for _, other := range []string{"fine", ""} {
		if _, err := host.Run(t.Context(), on(other)); err != nil {
			t.Errorf("pool %q does not go on: %v", other, err)
		}
	}
	for n := len(host.Hanging()); n < hangingOnNode; n++ {
		if err := hang(fmt.Sprint("pool", n)); !errors.Is(err, errUnkillable) {
			t.Fatal(err)
		}
	}
	if _, err := host.Run(t.Context(), on("fine")); !errors.Is(err, Suspended) {
		t.Errorf("with %d hanging programs on the node another was started: %v", hangingOnNode, err)
	}
	if !unended.Any() {
		t.Error("the unfinished programs are not reported")
	}
	close(release)
	unended.Wait()
	deadline := time.After(time.Minute)
	for len(host.Hanging()) > 0 || unended.Any() {
		select {
		case <-deadline:
			t.Fatal("programs that ended still count as hanging")
		case <-time.After(time.Millisecond):
		}
	}
	if err := failure(ctx, zpool("list"), errUnkillable, ""); !errors.Is(err, Timeout) {
		t.Errorf("%v is no timeout", err)
	}
}

// TestCommandsSayWhichPoolTheyAreAbout: only then does a hanging command not block the other pools.
func TestCommandsSayWhichPoolTheyAreAbout(t *testing.T) {
	for name, want := range map[string]string{"p": "p", "p/a": "p", "p/a@s": "p", "p@s": "p"} {
		if got := zfs("list", name).Pool; got != want {
			t.Errorf("zfs list %s is about %q, want %q", name, got, want)
		}
	}
}

func TestHostBoundsOutput(t *testing.T) {
	if output, err := testHost(t).Run(t.Context(), zpool("much")); err == nil || len(output) > 0 {
		t.Errorf("%d bytes without an error", len(output))
	}
}

func TestMissingProgram(t *testing.T) {
	for name, host := range map[string]*Host{"absolute": NewHost("/nonexistent/nsenter"), "in PATH": NewHost("no-such-program")} {
		if _, err := host.Run(t.Context(), zpool("list")); !errors.Is(err, NotInstalled) || !strings.Contains(err.Error(), "install OpenZFS") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
