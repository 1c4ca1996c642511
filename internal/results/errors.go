package results

import "errors"

// The ways in which a document can fail to arrive, for errors.Is.
var (
	// ErrMissing: there is no document at all.
	ErrMissing = errors.New("no result")
	// ErrTruncated: a part of the document is missing.
	ErrTruncated = errors.New("result is incomplete")
	// ErrCorrupt: the document is not what was sent, or not a document.
	ErrCorrupt = errors.New("result is corrupt")
	// ErrTooLarge: the document is larger than its bound.
	ErrTooLarge = errors.New("result is too large")
	// ErrVersion: the document is of another version.
	ErrVersion = errors.New("result has another version")
)
