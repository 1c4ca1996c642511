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
	// ErrNoRoom: the results of an experiment together take more memory than there is for them.
	ErrNoRoom = errors.New("the results of the experiment are too large together")
	// ErrCorrupt, ErrTooLarge and ErrVersion are the errors of package packing.
	ErrCorrupt  = packing.ErrCorrupt
	ErrTooLarge = packing.ErrTooLarge
	ErrVersion  = packing.ErrVersion
)
