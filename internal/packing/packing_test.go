package packing

import (
	"bytes"
	"errors"
	"testing"
)

func TestPack(t *testing.T) {
	first, _ := Pack([]byte("same"))
	second, _ := Pack([]byte("same"))
	if !bytes.Equal(first, second) {
		t.Error("equal documents gave different bytes")
	}
	if text, err := Unpack(first); string(text) != "same" || err != nil {
		t.Errorf("unpacked %q: %v", text, err)
	}
	if _, err := Pack(make([]byte, MaxDocumentBytes+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a document over the limit: %v", err)
	}
}

// TestUnpackAtMost: neither a smaller limit nor a false size yields more bytes than allowed.
func TestUnpackAtMost(t *testing.T) {
	packed, _ := Pack(make([]byte, 100))
	lying := bytes.Clone(packed)
	copy(lying[len(lying)-4:], []byte{1, 0, 0, 0})
	for name, test := range map[string]struct {
		gz   []byte
		most int64
		want error
	}{
		"as many":          {packed, 100, nil},
		"fewer than it is": {packed, 99, ErrTooLarge},
		"said to be small": {lying, 100, ErrTooLarge},
	} {
		if text, err := UnpackAtMost(test.gz, test.most); !errors.Is(err, test.want) || (err == nil) != (len(text) == 100) {
			t.Errorf("%s: %d bytes, error %v, want %v", name, len(text), err, test.want)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	packed, _ := Pack([]byte(`{"version":1}`))
	f.Add(packed)
	f.Add(packed[:len(packed)-1])
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, gz []byte) {
		text, err := Unpack(gz)
		if len(text) > MaxDocumentBytes || err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	})
}
