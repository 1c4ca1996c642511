package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// The exit codes. Codes up to 3 are verdicts. The others mean that there is none: 4 after --timeout, and codes from 64 on for other
// reasons.
const (
	// ExitPassed: all gates hold. For validate: all files are valid. For report: the report was printed.
	ExitPassed = 0
	// ExitFailed: a gate does not hold. For validate: a file is not valid. For baseline diff: there is a difference that is not
	// allowed, or no other experiment. For doctor: there is a problem.
	ExitFailed = 1
	// ExitInconclusive: the gates cannot be decided, because the measurements are too few or too scattered, or because there are none.
	ExitInconclusive = 2
	// ExitInvalid: there are measurements, but they cannot be used.
	ExitInvalid = 3
	// ExitTimeout: --timeout expired before the verdict.
	ExitTimeout = 4
	// ExitUsage: the command line is wrong.
	ExitUsage = 64
	// ExitRefused: the manifest, the results or the device are refused, or the benchmark is stalled: it needs a change by a user.
	ExitRefused = 65
	// ExitNotFound: a file, a benchmark or its report does not exist.
	ExitNotFound = 66
	// ExitUnavailable: the cluster cannot be reached, does not have storagebench, or denies access.
	ExitUnavailable = 69
	// ExitError: anything else, such as a folder that cannot be written.
	ExitError = 70
	// ExitInterrupted: Ctrl-C or SIGTERM.
	ExitInterrupted = 130
)

// exitHelp lists the exit codes of the commands that end with a verdict.
const exitHelp = `Exit codes:
  0    Passed: all gates hold
  1    Failed: a gate does not hold
  2    Inconclusive: the measurements do not decide: too few, too scattered, or none
  3    Invalid: the measurements cannot be used
  4    --timeout expired before the verdict
  64   the command line is wrong
  65   refused: the manifest, the folder or the device; or the benchmark is stalled
  66   a file or a benchmark does not exist
  69   ` + unavailable + `
  70   any other error
  130  interrupted`

const (
	unavailable = "the cluster cannot be reached, has no storagebench, or denies access"
	outOfTime   = "--timeout expired before the end"
)

// acceptExits are the exit codes of the accept commands.
var acceptExits = map[int]string{
	ExitPassed:      "the ConfigMap was printed",
	ExitRefused:     "the results cannot be accepted, or a document cannot be read",
	ExitNotFound:    "a file, a benchmark, its report or a ConfigMap does not exist",
	ExitUnavailable: unavailable,
}

// exitCodes lists the exit codes of a command without a verdict: its own meanings, and the codes that all commands have.
func exitCodes(own map[int]string) string {
	all := maps.Clone(own)
	all[ExitUsage], all[ExitError], all[ExitInterrupted] = "the command line is wrong", "any other error", "interrupted"
	var text strings.Builder
	text.WriteString("Exit codes:")
	for _, code := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "\n  %-4d %s", code, all[code])
	}
	return text.String()
}

// exitError is an error with its exit code. Without a cause it only sets the code: the reason was already printed.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitError) Unwrap() error { return e.cause }

// exit adds an exit code to an error.
func exit(code int, cause error) error { return &exitError{code, cause} }

// exitf is exit with a formatted message.
func exitf(code int, format string, arguments ...any) error {
	return exit(code, fmt.Errorf(format, arguments...))
}

// silent returns an error that only sets the exit code, because the reason was already printed. It returns nil for ExitPassed.
func silent(code int) error {
	if code == ExitPassed {
		return nil
	}
	return &exitError{code: code}
}

// exitCode returns the exit code of an error. text reports whether the text of the error still has to be printed.
func exitCode(err error) (code int, text bool) {
	var known *exitError
	switch {
	case err == nil:
		return ExitPassed, false
	case errors.As(err, &known):
		return known.code, known.cause != nil
	case errors.Is(err, context.Canceled):
		return ExitInterrupted, true
	}
	return ExitError, true
}

// verdictCode returns the exit code of a verdict. A missing or unknown verdict does not count as passed.
func verdictCode(verdict v1alpha1.Verdict) int {
	switch verdict {
	case v1alpha1.VerdictPassed:
		return ExitPassed
	case v1alpha1.VerdictFailed:
		return ExitFailed
	case v1alpha1.VerdictInvalid:
		return ExitInvalid
	default:
		return ExitInconclusive
	}
}

// worstCode combines the exit codes of several benchmarks. A failed gate takes precedence, then a missing verdict, then the verdicts
// Invalid and Inconclusive.
func worstCode(codes []int) int {
	rank := func(code int) int {
		switch {
		case code == ExitFailed:
			return 5
		case code >= ExitUsage:
			return 4
		case code == ExitTimeout:
			return 3
		case code == ExitInvalid:
			return 2
		case code == ExitInconclusive:
			return 1
		}
		return 0
	}
	worst := ExitPassed
	for _, code := range codes {
		if rank(code) > rank(worst) {
			worst = code
		}
	}
	return worst
}
