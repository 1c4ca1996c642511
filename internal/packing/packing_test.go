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
