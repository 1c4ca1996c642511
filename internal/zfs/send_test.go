package zfs_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/internal/zfs/zfstest"
)

func TestReplicateCountsWhatPasses(t *testing.T) {
	fake := &zfstest.Fake{}
	fake.Answer("zfs send", "0123456789")
	var sent atomic.Int64
	if err := zfs.New(fake).Replicate(t.Context(), zfs.SendOptions{Snapshot: "p/a@s"}, "q/b", nil, &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Load() != 10 || len(fake.Commands()) != 2 {
		t.Errorf("%d bytes counted, ran %q", sent.Load(), fake.Commands())
	}
}

func TestReplicateNamesTheSideThatFailed(t *testing.T) {
	fake := &zfstest.Fake{}
	fake.Fail("zfs send", zfs.NotFound, "cannot open 'p/a@s': dataset does not exist")
	if err := zfs.New(fake).Replicate(t.Context(), zfs.SendOptions{Snapshot: "p/a@s"}, "q/b", nil, nil); !errors.Is(err, zfs.NotFound) {
		t.Errorf("a missing snapshot: %v", err)
	}
	fake = &zfstest.Fake{}
	fake.Answer("zfs send", "stream")
	fake.Fail("zfs receive", zfs.NoSpace, "cannot receive new filesystem stream: out of space")
	if err := zfs.New(fake).Replicate(t.Context(), zfs.SendOptions{Snapshot: "p/a@s"}, "q/b", nil, nil); !errors.Is(err, zfs.NoSpace) {
		t.Errorf("a full pool: %v", err)
	}
}

// abruptRunner is a sender that breaks off, and a receiver that must notice.
type abruptRunner struct{ received error }

func (r *abruptRunner) Run(_ context.Context, command zfs.Command) ([]byte, error) {
	if command.Stdin != nil {
		_, r.received = io.Copy(io.Discard, command.Stdin)
		return nil, &zfs.Error{Kind: zfs.BadStream, Command: command.String(), Err: r.received}
	}
	if _, err := command.Stdout.Write([]byte("half a str")); err != nil {
		return nil, err
	}
	return nil, &zfs.Error{Kind: zfs.Suspended, Command: command.String()}
}

func TestHalfAStreamIsNotTakenForAWhole(t *testing.T) {
	runner := &abruptRunner{}
	err := zfs.New(runner).Replicate(t.Context(), zfs.SendOptions{Snapshot: "p/a@s"}, "q/b", nil, nil)
	if runner.received == nil {
		t.Error("the receiver saw the regular end of a stream that broke off")
	}
	if !errors.Is(err, zfs.Suspended) {
		t.Errorf("%v, want the failure of the sender", err)
	}
}

// TestAStreamThatIsBrokenOff: the requested number of bytes reaches the receiver, which must notice the break. A stream that is shorter
// stays whole.
func TestAStreamThatIsBrokenOff(t *testing.T) {
	for limit, want := range map[int64]error{1: zfs.ErrBrokenOff, 7: zfs.ErrBrokenOff, 9: zfs.ErrBrokenOff, 10: nil, 11: nil, 0: nil} {
		fake, received := &zfstest.Fake{}, &receiver{}
		fake.Answer("zfs send", "0123456789")
		received.Runner = fake
		var sent atomic.Int64
		err := zfs.New(received).Replicate(t.Context(), zfs.SendOptions{Snapshot: "p/a@s", BreakAfter: limit}, "q/b", nil, &sent)
		if whole := "0123456789"; want != nil {
			whole = whole[:limit]
			if received.text != whole || sent.Load() != limit {
				t.Errorf("after %d bytes: %q arrived, %d counted", limit, received.text, sent.Load())
			}
		} else if received.text != whole {
			t.Errorf("a limit of %d: %q arrived", limit, received.text)
		}
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("after %d bytes: %v, want %v", limit, err, want)
		}
	}
}

// receiver keeps the text that it receives, and fails if the stream does not end by itself.
type receiver struct {
	zfs.Runner
	text string
}

func (r *receiver) Run(ctx context.Context, command zfs.Command) ([]byte, error) {
	if command.Stdin == nil {
		return r.Runner.Run(ctx, command)
	}
	text, err := io.ReadAll(command.Stdin)
	r.text = string(text)
	if err != nil {
		return nil, &zfs.Error{Kind: zfs.BadStream, Command: command.String(), Err: err}
	}
	return nil, nil
}

func TestResumeToken(t *testing.T) {
	fake := &zfstest.Fake{}
	fake.Answer("zfs get", "q/b\treceive_resume_token\t1-ab-cd-ef\t-\n")
	if token, err := zfs.New(fake).ResumeToken(t.Context(), "q/b"); err != nil || token != "1-ab-cd-ef" {
		t.Errorf("%q, %v", token, err)
	}
	long, err := os.ReadFile("testdata/2.3.9/get-token")
	if err != nil {
		t.Fatal(err)
	}
	fake.Answer("zfs get", string(long))
	token, err := zfs.New(fake).ResumeToken(t.Context(), "sbz/part2")
	if err != nil || len(token) < 200 {
		t.Errorf("%q, %v", token, err)
	}
	fake.Answer("zfs send", "full\tsbz/fs@big\t6987592\nsize\t6987592\n")
	if left, err := zfs.New(fake).SendSize(t.Context(), zfs.SendOptions{Token: token}); err != nil || left != 6987592 {
		t.Errorf("%d bytes left, %v", left, err)
	}
	fake.Answer("zfs get", "q/b\treceive_resume_token\t-\t-\n")
	if token, err := zfs.New(fake).ResumeToken(t.Context(), "q/b"); err != nil || token != "" {
		t.Errorf("%q, %v, want none", token, err)
	}
}

// saying is a runner that prints a text, and may fail after that.
type saying struct {
	text string
	err  error
}

func (s saying) Run(_ context.Context, command zfs.Command) ([]byte, error) {
	if _, err := io.WriteString(command.Stdout, s.text); err != nil {
		return nil, err
	}
	return nil, s.err
}

// TestResumed: the token names the snapshot with which it continues, even if that is not there to be sent.
func TestResumed(t *testing.T) {
	printed, err := os.ReadFile("testdata/2.3.9/send-resumed")
	if err != nil {
		t.Fatal(err)
	}
	text, want := string(printed), zfs.Resumed{Snapshot: "sbz/fs@big", GUID: "13625853374441104423", Bytes: 0x5b8538}
	contents, _, _ := strings.Cut(text, "full\t")
	gone := &zfs.Error{Kind: zfs.Exists, ExitCode: 1, Stderr: "cannot resume send: 'sbz/fs@big' used in the initial send no longer exists"}
	late := &zfs.Error{Kind: zfs.Timeout, ExitCode: -1}
	for name, c := range map[string]struct {
		says saying
		want zfs.Resumed
		err  error
	}{
		"it can be sent":          {saying{text, nil}, want, nil},
		"it is not there":         {saying{contents, gone}, want, nil},
		"nothing is printed":      {saying{"", late}, zfs.Resumed{}, zfs.Timeout},
		"half is printed":         {saying{"resume token contents:\n\ttoguid = 0xbd18c173811ea427\n", late}, zfs.Resumed{}, zfs.Timeout},
		"it says no guid":         {saying{"\ttoname = sbz/fs@big\n", nil}, zfs.Resumed{}, zfs.Unknown},
		"its guid is no number":   {saying{"\ttoguid = x\n\ttoname = sbz/fs@big\n", nil}, zfs.Resumed{}, zfs.Unknown},
		"its bytes are no number": {saying{"\ttoguid = 0x1\n\ttoname = p/a@s\n\tbytes = -1\n", nil}, zfs.Resumed{}, zfs.Unknown},
		"a name that looks like": {saying{"\ttoguid = 0x1\n\ttoname = p/a toguid = 0x2@s\n", nil},
			zfs.Resumed{Snapshot: "p/a toguid = 0x2@s", GUID: "1"}, nil},
	} {
		got, err := zfs.New(c.says).Resumed(t.Context(), "1-ab-cd-ef")
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := zfs.New(saying{}).Resumed(t.Context(), "p/a@s"); !errors.Is(err, zfs.Invalid) {
		t.Errorf("what is no token: %v", err)
	}
}
