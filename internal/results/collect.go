package results

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/packing"
)

// maxLineBytes is the longest line that can be a part. Longer lines come from something else and are skipped.
const maxLineBytes = 16 << 10

// Collect finds the document of a receipt in a log, and returns it with its exact uncompressed bytes. Other lines, repeated parts
// and any order are allowed.
func Collect(log io.Reader, receipt Receipt) (PhaseDocument, []byte, error) {
	gz, err := Gather(log, receipt)
	if err != nil {
		return PhaseDocument{}, nil, err
	}
	return Open(gz, receipt)
}

// Gather does the first half of Collect, which may wait for the log, but takes little memory: it returns the document as it was compressed.
func Gather(log io.Reader, receipt Receipt) (gz []byte, err error) {
	if err := receipt.validate(); err != nil {
		return nil, err
	}
	return collectParts(log, receipt.Parts)
}

// Open does the second half of Collect.
func Open(gz []byte, receipt Receipt) (PhaseDocument, []byte, error) {
	document, err := packing.UnpackAtMost(gz, receipt.SizeBytes)
	if err != nil {
		return PhaseDocument{}, nil, err
	}
	if digest := packing.Digest(document); digest != receipt.Digest {
		return PhaseDocument{}, nil, fmt.Errorf("%w: it has digest %s, but the receipt has %s", ErrCorrupt, digest, receipt.Digest)
	}
	phase, err := decodePhase(document)
	if err != nil {
		return PhaseDocument{}, nil, err
	}
	if err := phase.Validate(); err != nil {
		return PhaseDocument{}, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return phase, document, nil
}

// collectParts returns the joined parts in order.
func collectParts(log io.Reader, total int) ([]byte, error) {
	parts, found := make([][]byte, total), 0
	err := eachLine(log, func(line string) error {
		number, data, ok := parsePart(line, total)
		switch {
		case !ok:
			return nil
		case parts[number-1] == nil:
			parts[number-1] = data
			found++
		case !bytes.Equal(parts[number-1], data):
			return fmt.Errorf("%w: part %d/%d is in the log twice, with different contents", ErrCorrupt, number, total)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if found == 0 {
		return nil, fmt.Errorf("%w: none of its %d parts is in the log", ErrMissing, total)
	}
	if found < total {
		return nil, fmt.Errorf("%w: %d of its %d parts are in the log, the first missing one is %d: the log was cut or rotated away",
			ErrTruncated, found, total, firstMissing(parts))
	}
	return bytes.Join(parts, nil), nil
}

func firstMissing(parts [][]byte) int {
	for i, part := range parts {
		if part == nil {
			return i + 1
		}
	}
	return 0
}

// parsePart parses "storagebench-result 1/12 BASE64", at any position of the line: a tool may have written before it. An invalid part is
// ignored; if it really was one, it is found missing later.
func parsePart(line string, total int) (number int, data []byte, ok bool) {
	start := strings.LastIndex(line, resultPrefix)
	if start < 0 {
		return 0, nil, false
	}
	position, encoded, _ := strings.Cut(strings.TrimRight(line[start+len(resultPrefix):], "\r\n"), " ")
	first, last, _ := strings.Cut(position, "/")
	number, err := strconv.Atoi(first)
	if err != nil || last != strconv.Itoa(total) || number < 1 || number > total {
		return 0, nil, false
	}
	data, err = base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(data) == 0 || len(data) > partBytes {
		return 0, nil, false
	}
	return number, data, true
}

// IsPart reports whether a line of a log is a part of a result, which means nothing to people.
func IsPart(line string) bool { return strings.Contains(line, resultPrefix) }

// eachLine calls a function for every line that is not too long. A bufio.Scanner would stop at the first line that is.
func eachLine(log io.Reader, visit func(line string) error) error {
	reader := bufio.NewReaderSize(log, maxLineBytes)
	long := false
	for {
		line, err := reader.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = true
			continue
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("reading the log: %w", err)
		}
		if !long {
			if visitErr := visit(string(line)); visitErr != nil {
				return visitErr
			}
		}
		if last {
			return nil
		}
		long = false
	}
}

// decodePhase checks the version first: a document of another version may have other fields.
func decodePhase(document []byte) (PhaseDocument, error) {
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return PhaseDocument{}, fmt.Errorf("%w: it is not JSON: %w", ErrCorrupt, err)
	}
	if err := (PhaseDocument{Version: head.Version}).validateVersion(); err != nil {
		return PhaseDocument{}, err
	}
	if err := LimitValues(cutMember(document, `"raw":`), maxPhaseValues); err != nil {
		return PhaseDocument{}, err
	}
	var phase PhaseDocument
	if err := json.Unmarshal(document, &phase); err != nil {
		return PhaseDocument{}, fmt.Errorf("%w: it is not a result document: %w", ErrCorrupt, err)
	}
	return phase, nil
}
