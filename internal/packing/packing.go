// Package packing compresses the documents that are sent through logs, statuses and ConfigMaps, and refuses documents that were changed in
// transit. The agent and the runner use it, so it imports no other package of this module.
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

// The errors of documents, for errors.Is.
var (
	// ErrCorrupt means that the document was changed, or is not a document.
	ErrCorrupt = errors.New("result is corrupt")
	// ErrTooLarge means that the document is larger than its limit.
	ErrTooLarge = errors.New("result is too large")
	// ErrVersion means that the document has another version.
	ErrVersion = errors.New("result has another version")
)

// Digest returns the digest of the exact bytes of a document.
func Digest(document []byte) string {
	sum := sha256.Sum256(document)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Pack compresses a document; equal documents give equal bytes.
func Pack(document []byte) ([]byte, error) {
	if len(document) > MaxDocumentBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, but at most %d are allowed: shorten raw", ErrTooLarge, len(document), MaxDocumentBytes)
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

// Unpack decompresses a document that Pack has compressed.
func Unpack(gz []byte) ([]byte, error) { return UnpackAtMost(gz, MaxDocumentBytes) }

// gzipReaders are reused: each has buffers of 40 KiB.
var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// UnpackAtMost is Unpack with another limit. It refuses a document of more than most bytes, and stops decompressing at that point, however
// large the document would become.
func UnpackAtMost(gz []byte, most int64) ([]byte, error) {
	reader, _ := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(reader)
	if err := reader.Reset(bytes.NewReader(gz)); err != nil {
		return nil, fmt.Errorf("%w: it is not gzip: %w", ErrCorrupt, err)
	}
	// The last bytes give the size of the document. They may be wrong: a larger document is refused, so that the buffer never grows.
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
