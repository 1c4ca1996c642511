package results

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/storagebench/storagebench/internal/packing"
)

const (
	// MaxCompressedBytes bounds the compressed form of a document, which travels through the log and is kept in a ConfigMap.
	MaxCompressedBytes = 512 << 10

	resultPrefix = "storagebench-result "
	// partBytes make lines of 4000 characters: container runtimes split lines at 16 KiB, some log shippers at 4 KiB.
	partBytes = 3000
	maxParts  = MaxCompressedBytes/partBytes + 1
	// maxReceiptBytes is far below the 4096 bytes of a termination message.
	maxReceiptBytes = 512
)

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Receipt describes an emitted document, so that the reader of a log knows whether it has all of it.
type Receipt struct {
	Version string `json:"version"`
	// Digest is "sha256:<hex>" of the uncompressed JSON.
	Digest    string `json:"digest"`
	SizeBytes int64  `json:"sizeBytes"`
	Parts     int    `json:"parts"`
}

// Emit writes the document as lines for a log. If the document is too large with Raw, Emit leaves Raw out and says so in Omitted: hours of
// measuring must not be lost because of a tool's own output.
func Emit(w io.Writer, d PhaseDocument) (Receipt, error) {
	d.Version = PhaseVersion
	d.StartedAt, d.FinishedAt = d.StartedAt.UTC(), d.FinishedAt.UTC()
	if err := d.Validate(); err != nil {
		return Receipt{}, err
	}
	document, gz, err := encodePhase(d)
	if errors.Is(err, ErrTooLarge) && len(d.Raw) > 0 {
		document, gz, err = encodePhase(d.withoutRaw(fmt.Sprintf("raw output of %d bytes: too large for the log", len(d.Raw))))
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("result of phase %q of run %s/%s: %w", d.Phase, d.Run.Namespace, d.Run.Name, err)
	}
	receipt := Receipt{
		Version: PhaseVersion, Digest: packing.Digest(document), SizeBytes: int64(len(document)),
		Parts: (len(gz) + partBytes - 1) / partBytes,
	}
	return receipt, writeParts(w, gz, receipt.Parts)
}

func encodePhase(d PhaseDocument) (document, gz []byte, err error) {
	if document, err = json.Marshal(d); err != nil {
		return nil, nil, err
	}
	if gz, err = packing.Pack(document); err != nil {
		return nil, nil, err
	}
	if len(gz) > MaxCompressedBytes {
		return nil, nil, fmt.Errorf("%w: it takes %d bytes compressed, at most %d travel through a log: shorten raw", ErrTooLarge, len(gz),
			MaxCompressedBytes)
	}
	return document, gz, nil
}

func (d PhaseDocument) withoutRaw(why string) PhaseDocument {
	d.Raw = nil
	d.Omitted = append(append([]string(nil), d.Omitted...), why)
	return d
}

// writeParts begins with a newline, in case the output of a tool has ended in the middle of a line.
func writeParts(w io.Writer, gz []byte, parts int) error {
	var out bytes.Buffer
	out.WriteByte('\n')
	for part := range parts {
		chunk := gz[part*partBytes : min((part+1)*partBytes, len(gz))]
		fmt.Fprintf(&out, "%s%d/%d %s\n", resultPrefix, part+1, parts, base64.StdEncoding.EncodeToString(chunk))
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the result to the log: %w", err)
	}
	return nil
}

// Encode writes the receipt as one line for /dev/termination-log.
func (r Receipt) Encode() (string, error) {
	if err := r.validate(); err != nil {
		return "", err
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// ParseReceipt reads a receipt that Encode wrote.
func ParseReceipt(message string) (Receipt, error) {
	if message == "" {
		return Receipt{}, fmt.Errorf("%w: the termination message is empty: see the log of the pod", ErrMissing)
	}
	if len(message) > maxReceiptBytes {
		return Receipt{}, fmt.Errorf("%w: the termination message has %d bytes, a receipt at most %d: see the log of the pod",
			ErrCorrupt, len(message), maxReceiptBytes)
	}
	var receipt Receipt
	if err := json.Unmarshal([]byte(message), &receipt); err != nil {
		return Receipt{}, fmt.Errorf("%w: the termination message %.100q is not a receipt: see the log of the pod", ErrCorrupt, message)
	}
	if err := receipt.validate(); err != nil {
		return Receipt{}, err
	}
	return receipt, nil
}

func (r Receipt) validate() error {
	switch {
	case r.Version != PhaseVersion:
		return fmt.Errorf("%w: the receipt has version %.60q, this program speaks %q: use the runner image of the same release as the manager",
			ErrVersion, r.Version, PhaseVersion)
	case !digestPattern.MatchString(r.Digest):
		return fmt.Errorf("%w: the receipt has digest %.80q: it should be sha256: and 64 hexadecimal digits", ErrCorrupt, r.Digest)
	case r.SizeBytes > packing.MaxDocumentBytes:
		return fmt.Errorf("%w: the receipt states %d bytes, but at most %d are read", ErrTooLarge, r.SizeBytes, packing.MaxDocumentBytes)
	case r.Parts > maxParts:
		return fmt.Errorf("%w: the receipt states %d parts, but at most %d are read", ErrTooLarge, r.Parts, maxParts)
	case r.SizeBytes < 1 || r.Parts < 1:
		return fmt.Errorf("%w: the receipt states %d bytes in %d parts: both should be at least 1", ErrCorrupt, r.SizeBytes, r.Parts)
	}
	return nil
}
