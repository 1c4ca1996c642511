package host

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestADiskAnswers(t *testing.T) {
	n := newFakeNode(t)
	if err := n.Answer(freePath); err != nil {
		t.Errorf("a good disk: %v", err)
	}
	if err := n.Answer("/dev/disk/by-id/none"); !errors.Is(err, Missing) {
		t.Errorf("a disk that is not there: %v", err)
	}
	n.must(os.Remove(n.path("/dev/vdb")))
	if err := n.Answer(freePath); err == nil || errors.Is(err, Silent) {
		t.Errorf("a disk that cannot be opened: %v", err)
	}
}

// TestAWipeEndsWithTheOneThatWaits: after a write that hung for an hour, no more writes may follow, because the disk may belong to others
// by then.
func TestAWipeEndsWithTheOneThatWaits(t *testing.T) {
	for name, stop := range map[string]func(n *fakeNode, wish *Wish){
		"given up": func(_ *fakeNode, wish *Wish) {
			up := make(chan struct{})
			close(up)
			wish.GivenUp = up
		},
		"": func(*fakeNode, *Wish) {},
	} {
		n := newFakeNode(t)
		n.write("vdb", 0, []byte("XFSB"))
		wish := Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}
		stop(n, &wish)
		_, err := n.Wipe(wish)
		data, readErr := os.ReadFile(n.path("/dev/vdb"))
		n.must(readErr)
		if written := !bytes.HasPrefix(data, []byte("XFSB")); written != (name == "") || written != (err == nil) {
			t.Errorf("%q: written: %v, %v", name, written, err)
		}
		if err != nil && !strings.Contains(err.Error(), "nothing more is written") {
			t.Error(err)
		}
	}
}

// TestAWipeAsksBeforeEachWrite: between two writes, the path can change to another disk, or the caller can give up.
func TestAWipeAsksBeforeEachWrite(t *testing.T) {
	n := newFakeNode(t)
	file, err := os.OpenFile(n.path("/dev/vdb"), os.O_RDWR, 0)
	n.must(err)
	defer file.Close() //nolint:errcheck // a file of the test
	n.write("vdb", 0, bytes.Repeat([]byte{7}, 4<<20))
	asked, stop := 0, errors.New("stop")
	err = zero(careful{File: file, may: func() error {
		if asked++; asked > 2 {
			return stop
		}
		return nil
	}}, 0, 4<<20)
	data, readErr := os.ReadFile(n.path("/dev/vdb"))
	n.must(readErr)
	if !errors.Is(err, stop) || data[2<<20-1] != 0 || data[2<<20] != 7 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
