package results

import (
	"errors"

	"github.com/storagebench/storagebench/internal/packing"
)

// The ways in which a document can fail to arrive, for errors.Is.
var (
	// ErrMissing: there is no document at all.
	ErrMissing = errors.New("no result")
	// ErrTruncated: a part of the document is missing.
	ErrTruncated = errors.New("result is incomplete")
	// ErrCorrupt is that of all packed documents.
	ErrCorrupt = packing.ErrCorrupt
	// ErrTooLarge is that of all packed documents.
	ErrTooLarge = packing.ErrTooLarge
	// ErrVersion is that of all packed documents.
	ErrVersion = packing.ErrVersion
)
