package zfs

import (
	"fmt"
	"strings"
)

// Kind says why a command failed; errors.Is(err, zfs.Busy) finds it in an error.
type Kind string

// The kinds of failures.
const (
	Busy           Kind = "busy"
	NotFound       Kind = "not found"
	NoPartition    Kind = "partition not found"
	Exists         Kind = "exists already"
	NoSpace        Kind = "no space"
	DeviceInUse    Kind = "device in use"
	DeviceTooSmall Kind = "device too small"
	Permission     Kind = "permission denied"
	Suspended      Kind = "pool suspended"
	Unavailable    Kind = "pool unavailable"
	OtherHost      Kind = "pool in use by another host"
	HasDependents  Kind = "has dependents"
	NoReplicas     Kind = "no replicas left"
	InProgress     Kind = "in progress already"
	NotRunning     Kind = "not in progress"
	BadStream      Kind = "bad stream"
	Invalid        Kind = "invalid"
	Unsupported    Kind = "not supported"
	NotInstalled   Kind = "ZFS not installed"
	Timeout        Kind = "timeout"
	Cancelled      Kind = "cancelled"
	Unknown        Kind = "unknown failure"
)

// Error makes a Kind a target for errors.Is.
func (k Kind) Error() string { return string(k) }

// remedies say what the user can do.
var remedies = map[Kind]string{
	Busy:           "find its users (mounts in all namespaces, holders of zvols) and end that use first",
	Exists:         "choose another name, or check its owner",
	NoSpace:        "free space, or grow the pool",
	DeviceInUse:    "use another disk; force is never used",
	DeviceTooSmall: "use a larger disk",
	NoPartition:    "check udev on the node: it did not create the links of the partitions in time",
	Permission:     "run as root with access to /dev/zfs and the disks",
	Suspended:      "bring the pool's disks back, then run 'zpool clear'; 'dmesg' on the node shows what failed",
	Unavailable:    "bring the missing disks back",
	OtherHost:      "export it on the other host, or give this node the host id it had (zgenhostid); force is never used",
	HasDependents:  "remove its children, snapshots or clones first, or set recursive",
	NoReplicas:     "replace the failed disk first",
	NotInstalled:   "install OpenZFS on the node and load its module (modprobe zfs)",
	Timeout:        "see 'dmesg' and 'zpool status' on the node: a disk may hang",
}

// Error is a command that failed, or that was refused before it ran.
type Error struct {
	Kind Kind
	// Command as a person would type it, without the prefix of the runner.
	Command string
	// ExitCode of the program; -1 if it did not run to its end.
	ExitCode int
	// Stderr as the program wrote it, bounded.
	Stderr string
	// Err is the underlying error, such as context.DeadlineExceeded.
	Err error
}

// Error names the command, the reason for the failure, and a remedy.
func (e *Error) Error() string {
	var lines []string
	for line := range strings.Lines(e.Stderr) {
		// Never suggest force.
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "use '-f' to override") {
			lines = append(lines, line)
		}
	}
	said := strings.Join(lines, "; ")
	if said == "" && e.Err != nil {
		said = e.Err.Error()
	}
	text := fmt.Sprintf("%s: %s: %s", e.Command, e.Kind, said)
	if remedy := remedies[e.Kind]; remedy != "" {
		text += " (" + remedy + ")"
	}
	return text
}

// Is compares with a Kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// invalid returns the error for an argument that is refused before anything runs.
func invalid(format string, values ...any) error {
	return &Error{Kind: Invalid, Command: "arguments of a ZFS command", ExitCode: -1, Stderr: fmt.Sprintf(format, values...)}
}

// phrases are messages of OpenZFS by kind, in the order in which they are searched. Each contains a space, or is a whole word that no
// quoted name contains, because quoted parts are removed before.
var phrases = []struct {
	text string
	kind Kind
}{
	{"currently suspended", Suspended},
	{"is suspended", Suspended},
	{"I/O is suspended", Suspended},
	{"modules are not loaded", NotInstalled},
	{"module is not loaded", NotInstalled},
	{"failed to execute", NotInstalled},
	{"failed to initialize libzfs", NotInstalled},
	{"in use from other system", OtherHost},
	{"imported on a different host", OtherHost},
	{"last accessed by another system", OtherHost},
	{"was previously in use from another system", OtherHost},
	{"is currently imported on host", OtherHost},
	{"dependent clones", HasDependents},
	{"has children", HasDependents},
	{"has dependents", HasDependents},
	{"snapshot is cloned", HasDependents},
	{"must specify -F to overwrite", Exists},
	{"permission denied", Permission},
	{"Permission denied", Permission},
	{"must be superuser", Permission},
	{"Operation not permitted", Permission},
	{"currently scrubbing", InProgress},
	{"currently error scrubbing", InProgress},
	{"currently trimming", InProgress},
	{"currently resilvering", InProgress},
	{"currently sequentially resilvering", InProgress},
	{"currently initializing", InProgress},
	{"device removal in progress", InProgress},
	{"removal already in progress", InProgress},
	{"expansion in progress", InProgress},
	{"export in progress", InProgress},
	{"scrub is paused", InProgress},
	{"there is no active", NotRunning},
	{"not in progress", NotRunning},
	{"no valid replicas", NoReplicas},
	{"insufficient replicas", NoReplicas},
	{"too small", DeviceTooSmall},
	{"less than the minimum size", DeviceTooSmall},
	{"is in use", DeviceInUse},
	{"is part of", DeviceInUse},
	{"is a member of", DeviceInUse},
	{"is a member (", DeviceInUse},
	{"is currently mounted", DeviceInUse},
	{"contains a filesystem", DeviceInUse},
	{"contains a corrupt primary EFI label", DeviceInUse},
	{"does not contain an EFI label", DeviceInUse},
	{"vdevs cannot be used more than once", DeviceInUse},
	{"is busy", Busy},
	{"has active shared spare", Busy},
	{"failed to detect device partitions", NoPartition},
	{"missing link: ", NoPartition},
	{"no such pool", NotFound},
	{"dataset does not exist", NotFound},
	{"parent does not exist", NotFound},
	{"could not find any snapshots to destroy", NotFound},
	{"no such device in pool", NotFound},
	{"cannot resolve path", NotFound},
	{"no such pool available", NotFound},
	{"No such file or directory", NotFound},
	{"already exists", Exists},
	{"pool or dataset exists", Exists},
	{"already mounted", Exists},
	{"out of space", NoSpace},
	{"No space left", NoSpace},
	{"quota exceeded", NoSpace},
	{"size is greater than available space", NoSpace},
	{"pool is unavailable", Unavailable},
	{"one or more devices is currently unavailable", Unavailable},
	{"one or more devices are missing", Unavailable},
	{"I/O error", Unavailable},
	{"invalid stream", BadStream},
	{"invalid backup stream", BadStream},
	{"resume token is corrupt", BadStream},
	{"incomplete stream", BadStream},
	{"checksum mismatch", BadStream},
	{"not supported", Unsupported},
	{"unsupported", Unsupported},
	{"support trim operations", Unsupported},
	{"invalid", Invalid},
	{"not a valid", Invalid},
	{"must be ", Invalid},
	{"read-only property", Invalid},
	{"mismatched replication level", Invalid},
	{"bad numeric value", Invalid},
	{"missing ", Invalid},
}

// classify finds the kind of a failure in the messages of a program under LC_ALL=C.
func classify(stderr string) Kind {
	said := withoutQuotes(stderr)
	for _, phrase := range phrases {
		if strings.Contains(said, phrase.text) {
			return phrase.kind
		}
	}
	// "cannot create 'x': destination 'y' exists" ends a line with the word alone.
	for line := range strings.SplitSeq(said, "\n") {
		if strings.HasSuffix(strings.TrimSpace(line), " exists") {
			return Exists
		}
	}
	return Unknown
}

// withoutQuotes removes 'names', so that a dataset called "out of space" does not decide the kind. An apostrophe within a word, as in
// "doesn't", does not begin a quote.
func withoutQuotes(text string) string {
	var kept strings.Builder
	quoted := false
	for at, char := range text {
		switch {
		case char == '\n':
			quoted = false
			kept.WriteRune(char)
		case char == '\'' && (quoted || at == 0 || !isLetter(text[at-1])):
			quoted = !quoted
		case !quoted:
			kept.WriteRune(char)
		}
	}
	return kept.String()
}

func isLetter(char byte) bool {
	return char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z'
}
