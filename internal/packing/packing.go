// Package packing compresses the documents that travel through logs, statuses and ConfigMaps, and refuses documents that were changed on
// the way. The agent and the runner use it, so it imports no other package of this module.
package packing

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxDocumentBytes bounds the uncompressed JSON of a document.
const MaxDocumentBytes = 8 << 20

// What can be wrong with a document, for errors.Is.
var (
	// ErrCorrupt: the document is not what was sent, or not a document.
	ErrCorrupt = errors.New("result is corrupt")
	// ErrTooLarge: the document is larger than its bound.
	ErrTooLarge = errors.New("result is too large")
	// ErrVersion: the document is of another version.
	ErrVersion = errors.New("result has another version")
)

// Digest of the exact bytes of a document.
func Digest(document []byte) string {
	sum := sha256.Sum256(document)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Pack compresses a document; equal documents give equal bytes.
func Pack(document []byte) ([]byte, error) {
	if len(document) > MaxDocumentBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are kept: shorten raw", ErrTooLarge, len(document), MaxDocumentBytes)
	}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(document); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Unpack decompresses what Pack compressed.
func Unpack(gz []byte) ([]byte, error) { return UnpackAtMost(gz, MaxDocumentBytes) }

// gzipReaders are reused: each has buffers of 40 KiB.
var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// UnpackAtMost refuses a document of more than most bytes, and stops there, whatever the compressed data would grow to.
func UnpackAtMost(gz []byte, most int64) ([]byte, error) {
	reader, _ := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(reader)
	if err := reader.Reset(bytes.NewReader(gz)); err != nil {
		return nil, fmt.Errorf("%w: it is not gzip: %w", ErrCorrupt, err)
	}
	// The last bytes say how large the document is. They may be wrong: a larger document is refused, so that the buffer never grows.
	most = min(most, int64(binary.LittleEndian.Uint32(gz[len(gz)-4:])))
	out := bytes.NewBuffer(make([]byte, 0, most+1+bytes.MinRead))
	if _, err := out.ReadFrom(io.LimitReader(reader, most+1)); err != nil {
		return nil, fmt.Errorf("%w: it does not decompress: %w", ErrCorrupt, err)
	}
	if int64(out.Len()) > most {
		return nil, fmt.Errorf("%w: it decompresses to more than %d bytes", ErrTooLarge, most)
	}
	return out.Bytes(), nil
}
