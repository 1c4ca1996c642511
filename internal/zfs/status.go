package zfs

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State of a pool or vdev, as ZFS prints it.
type State string

// The states, best first.
const (
	StateOnline    State = "ONLINE"
	StateAvailable State = "AVAIL"
	StateInUse     State = "INUSE"
	StateDegraded  State = "DEGRADED"
	StateOffline   State = "OFFLINE"
	StateRemoved   State = "REMOVED"
	StateFaulted   State = "FAULTED"
	StateUnavail   State = "UNAVAIL"
	StateSuspended State = "SUSPENDED"
)

var badness = map[State]int{StateOnline: 0, StateAvailable: 0, StateInUse: 0, StateDegraded: 1, StateOffline: 2,
	StateRemoved: 3, StateFaulted: 4, StateUnavail: 5, StateSuspended: 6}

// worse returns the worse of two states. An unknown state counts as bad.
func worse(a, b State) State {
	rank := func(state State) int {
		if rank, known := badness[state]; known {
			return rank
		}
		return badness[StateUnavail]
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// Good reports whether a pool or vdev in this state is fully functional.
func (s State) Good() bool {
	rank, known := badness[s]
	return known && rank == 0
}

// Status is the state of a pool with all of its vdevs.
type Status struct {
	Pool string
	// GUID is empty where the text output of OpenZFS before 2.3 lacks it; see PoolSummary.
	GUID string
	// State of the pool as ZFS reports it. Without zed, it can be ONLINE while a disk is FAULTED: use Health to judge the pool.
	State State
	// Message and Action of ZFS, in words.
	Message, Action string
	// Scan is the last scrub or resilver, nil if there was none.
	Scan *Progress
	// Removal of a vdev, nil if there was none.
	Removal *Progress
	// Expansion of a raidz, nil if there was none.
	Expansion *Progress
	// DataErrors counts the files and blocks that are lost; -1 if ZFS cannot tell, as for a suspended pool.
	DataErrors int64
	// Vdevs are the top-level vdevs: data, special, dedup, log, cache, spare.
	Vdevs []VdevStatus
}

// VdevStatus is a vdev with the vdevs below it.
type VdevStatus struct {
	Name string
	// Type such as mirror, raidz, disk.
	Type string
	GUID string
	// Path of a disk's partition.
	Path string
	// Class is normal, special, dedup, log, l2cache or spare.
	Class string
	State State
	// Note of ZFS, such as "too many errors" or ERR_EXCEEDED.
	Note                                    string
	ReadErrors, WriteErrors, ChecksumErrors int64
	SizeBytes, AllocatedBytes               int64
	// Trim of a disk, nil if there was none.
	Trim     *Progress
	Children []VdevStatus
}

// Progress is the progress of long-running work.
type Progress struct {
	// Function is scrub, resilver, removal, expansion or trim.
	Function string
	// State is running, paused, finished or cancelled.
	State ProgressState
	// DoneBytes and TotalBytes; exact from OpenZFS 2.3 on, rounded before. Before 2.3, they are percent for a trim, and 0 for a scrub or
	// resilver that has ended.
	DoneBytes, TotalBytes int64
	// RepairedBytes are the bytes that a scrub repaired, or that a resilver rebuilt.
	RepairedBytes int64
	// Errors found that could not be repaired.
	Errors     int64
	Start, End time.Time
}

// ProgressState is the state of long-running work.
type ProgressState string

// The states of a progress.
const (
	Running  ProgressState = "running"
	Paused   ProgressState = "paused"
	Finished ProgressState = "finished"
	Stopped  ProgressState = "cancelled"
)

// Percent is how much is done, rounded down, so that 100 means that all is done.
func (p Progress) Percent() int {
	if p.State == Finished {
		return 100
	}
	if p.TotalBytes <= 0 || p.DoneBytes <= 0 {
		return 0
	}
	return int(min(100*float64(p.DoneBytes)/float64(p.TotalBytes), 99))
}

// Status looks at one pool.
func (c *Client) Status(ctx context.Context, version Version, pool string) (Status, error) {
	if err := checkPool(pool); err != nil {
		return Status{}, err
	}
	// The text output has exact counts of errors only with -p.
	command, parse := zpool("status", "-p", "-P", "-t", pool).onPool(pool), parseStatusText
	if version.JSON() {
		command, parse = zpool("status", "-j", "--json-int", "-P", "-t", pool).onPool(pool), parseStatusJSON
	}
	output, err := c.run.Run(ctx, command)
	if err != nil {
		return Status{}, err
	}
	status, err := parse(output)
	if err != nil {
		return Status{}, err
	}
	if status.Pool != pool {
		return Status{}, malformed(command.String(), "pool "+pool, status.Pool)
	}
	return status, nil
}

// Health is the worse of two states: the one that ZFS reports for the pool, and the one that follows from its vdevs. The latter is DEGRADED
// if a disk of a redundant vdev, a log, cache or spare is not good, and UNAVAIL if a vdev has lost more than its redundancy.
func (s Status) Health() State {
	health := s.State
	for _, vdev := range s.Vdevs {
		state := vdev.Health()
		switch {
		case state.Good():
		case vdev.Class == "log" || vdev.Serves() || state == StateDegraded:
			health = worse(health, StateDegraded)
		default:
			health = worse(health, StateUnavail)
		}
	}
	return health
}

// Health is the worse of two states: the one that ZFS reports for the vdev, and the one that follows from the vdevs below it.
func (v VdevStatus) Health() State {
	if len(v.Children) == 0 {
		return v.State
	}
	lost, hurt := 0, false
	for _, child := range v.Children {
		state := child.Health()
		hurt = hurt || !state.Good()
		if !state.Good() && state != StateDegraded {
			lost++
		}
	}
	switch {
	case lost > v.tolerated():
		return worse(v.State, StateUnavail)
	case hurt:
		return worse(v.State, StateDegraded)
	default:
		return v.State
	}
}

// Bears reports whether the vdev keeps its data if it loses the given number of further disks.
func (v VdevStatus) Bears(more int) bool {
	for _, child := range v.Children {
		if !child.Health().Good() {
			more++
		}
	}
	return len(v.Children) > 0 && more <= v.tolerated()
}

// tolerated returns how many children may be lost. The parity of a raidz is part of its name.
func (v VdevStatus) tolerated() int {
	for prefix, parity := range map[string]int{"raidz1": 1, "raidz2": 2, "raidz3": 3, "draid1": 1, "draid2": 2, "draid3": 3} {
		if strings.HasPrefix(v.Name, prefix) {
			return parity
		}
	}
	return len(v.Children) - 1
}

// Troubles describes the disks that are not good.
func (s Status) Troubles() []string {
	var troubles []string
	for _, disk := range s.Leaves() {
		if !disk.State.Good() {
			text := disk.Name + " is " + string(disk.State)
			if disk.Note != "" {
				text += " (" + disk.Note + ")"
			}
			troubles = append(troubles, text)
		}
	}
	return troubles
}

// Leaves are the disks, in the order of the tree.
func (s Status) Leaves() []VdevStatus {
	var leaves []VdevStatus
	for _, vdev := range s.Vdevs {
		leaves = append(leaves, vdev.Leaves()...)
	}
	return leaves
}

// Leaves are the disks of the vdev: the vdev itself if there is nothing below it.
func (v VdevStatus) Leaves() []VdevStatus {
	if len(v.Children) == 0 {
		return []VdevStatus{v}
	}
	var leaves []VdevStatus
	for _, child := range v.Children {
		leaves = append(leaves, child.Leaves()...)
	}
	return leaves
}

// Resilvering reports whether data is being rebuilt or waits to be rebuilt.
func (s Status) Resilvering() bool {
	if s.Scan != nil && s.Scan.Function == "resilver" && s.Scan.State == Running {
		return true
	}
	return slices.ContainsFunc(s.Vdevs, VdevStatus.replacing)
}

// replacing reports whether a device of the vdev is being replaced.
func (v VdevStatus) replacing() bool {
	return strings.HasPrefix(v.Name, "replacing-") || slices.ContainsFunc(v.Children, VdevStatus.replacing)
}

// unsigned formats an unsigned number, which the API keeps as text: guids do not fit into an int64. The text of 0 is empty.
func unsigned(value uint64) string {
	if value == 0 {
		return ""
	}
	return strconv.FormatUint(value, 10)
}
