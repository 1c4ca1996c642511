//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/results"
)

// The reasons of a phase that is Invalid.
const (
	ReasonWrongPlace     = "WrongPlace"
	ReasonNoData         = results.ReasonNoData
	ReasonNotPossible    = results.ReasonNotPossible
	ReasonJobRefused     = results.ReasonJobRefused
	ReasonVolumeFull     = results.ReasonVolumeFull
	ReasonQuotaExceeded  = results.ReasonQuotaExceeded
	ReasonIOError        = results.ReasonIOError
	ReasonReadOnly       = results.ReasonReadOnly
	ReasonKilled         = "WorkloadKilled"
	ReasonInterrupted    = "Interrupted"
	ReasonFailed         = "WorkloadFailed"
	ReasonNoNumbers      = "NoNumbers"
	ReasonNotAllocated   = "NotAllocated"
	ReasonTargetMissed   = "FillTargetMissed"
	ReasonNotCovered     = "NotCovered"
	ReasonMixMissed      = "MixMissed"
	ReasonNotConverged   = results.ReasonNotConverged
	ReasonCacheMismatch  = "CacheMismatch"
	ReasonCPUThrottled   = "CPUThrottled"
	ReasonForeignLoad    = results.ReasonForeignLoad
	ReasonDeviceBusy     = "DeviceBusy"
	ReasonPoolUnhealthy  = results.ReasonPoolUnhealthy
	ReasonClockStepped   = "ClockStepped"
	ReasonClocksDisagree = "ClocksDisagree"
	ReasonClocksApart    = "ClocksApart"
	ReasonLoopBroken     = "LatenciesImpossible"
)

// invalid is the error of a phase that did not do what was asked, with its reason in one word.
type invalid struct {
	reason string
	err    error
}

func (e *invalid) Error() string { return e.err.Error() }
func (e *invalid) Unwrap() error { return e.err }

func invalidf(reason, format string, args ...any) error {
	return &invalid{reason, fmt.Errorf(format, args...)}
}

// errnoReasons are the errors of failing storage, with what users can do about them.
var errnoReasons = []struct {
	errno          syscall.Errno
	reason, remedy string
}{
	{syscall.ENOSPC, ReasonVolumeFull, "the volume is full: fill less, or enlarge it"},
	{syscall.EDQUOT, ReasonQuotaExceeded, "the quota of the volume is used up: fill less, or increase it"},
	{syscall.EROFS, ReasonReadOnly, "the volume is read-only: see the kernel log of the node, file systems become read-only after errors"},
	{syscall.EIO, ReasonIOError, "the storage reported an I/O error: see the kernel's log of the node"},
	{syscall.ENODATA, ReasonIOError, "the storage reported a medium error: see the kernel's log of the node"},
	{syscall.EREMOTEIO, ReasonIOError, "the storage reported an I/O error: see the kernel's log of the node"},
	{syscall.ENXIO, ReasonIOError, "the device is gone: see the kernel's log of the node"},
	{syscall.ENODEV, ReasonIOError, "the device is gone: see the kernel's log of the node"},
}

// classify returns the reason and the message for the error that ended a phase.
func classify(ctx context.Context, err error) (reason, message string) {
	var known *invalid
	var killed *fio.KilledError
	switch {
	case ctx.Err() != nil:
		return ReasonInterrupted, fmt.Sprintf("the phase was stopped before its end: %v", context.Cause(ctx))
	case errors.As(err, &known):
		return known.reason, err.Error()
	case errors.Is(err, fio.ErrJobFile):
		return ReasonJobRefused, err.Error()
	case errors.As(err, &killed):
		return ReasonKilled, fmt.Sprintf("%v before it finished: check whether memory ran out, or what else killed it", err)
	}
	for _, each := range errnoReasons {
		if errors.Is(err, each.errno) {
			return each.reason, fmt.Sprintf("%s (%v)", each.remedy, err)
		}
	}
	return ReasonFailed, err.Error()
}
