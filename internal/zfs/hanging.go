package zfs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// hangingPerPool is how many programs may hang in the kernel on one pool before no more are started on it, because the next would hang
	// too.
	hangingPerPool = 2
	// hangingOnNode limits the hanging programs of all pools: each is a process that takes memory.
	hangingOnNode = 24
)

// Hanging is a program that does not end although it was killed.
type Hanging struct {
	// Pool that the program works on; empty if it works on all pools.
	Pool    string
	Command string
	Since   time.Time
}

// String names the program, and says since when it hangs.
func (h Hanging) String() string {
	return fmt.Sprintf("'%s' hangs in the kernel since %s", h.Command, h.Since.UTC().Format(time.RFC3339))
}

// hangs are the programs of a host that hang.
type hangs struct {
	mutex sync.Mutex
	all   map[*Hanging]bool
}

func (h *hangs) list() []Hanging {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var all []Hanging
	for each := range h.all {
		all = append(all, *each)
	}
	slices.SortFunc(all, func(a, b Hanging) int { return a.Since.Compare(b.Since) })
	return all
}

// refuse returns an error if a command must not be started.
func (h *hangs) refuse(command Command) error {
	all := h.list()
	var same []string
	for _, each := range all {
		if each.Pool == command.Pool {
			same = append(same, each.String())
		}
	}
	refusal := &Error{Kind: Suspended, Command: command.String(), ExitCode: -1}
	switch {
	case len(same) >= hangingPerPool:
		refusal.Stderr = "not started: " + strings.Join(same, ", ")
	case len(all) >= hangingOnNode:
		refusal.Stderr = fmt.Sprintf("not started: %d earlier commands hang in the kernel, the first of them: %s", len(all), all[0])
	default:
		return nil
	}
	return refusal
}

// add records a program that hangs, until the program ends.
func (h *hangs) add(ctx context.Context, command Command, ended <-chan struct{}) {
	hanging := &Hanging{Pool: command.Pool, Command: command.String(), Since: time.Now()}
	h.mutex.Lock()
	if h.all == nil {
		h.all = map[*Hanging]bool{}
	}
	h.all[hanging] = true
	h.mutex.Unlock()
	NoteUnended(ctx, ended)
	go func() {
		<-ended
		h.mutex.Lock()
		defer h.mutex.Unlock()
		delete(h.all, hanging)
	}()
}

// Unended are the programs that were started under a context and have not ended although Run has returned: they may still change a pool or
// a disk.
type Unended struct {
	mutex sync.Mutex
	ended []<-chan struct{}
}

type unendedKey struct{}

// FollowUnended returns a context that records the programs that do not end.
func FollowUnended(ctx context.Context) (context.Context, *Unended) {
	unended := &Unended{}
	return context.WithValue(ctx, unendedKey{}, unended), unended
}

// NoteUnended records in a context that a program has not ended.
func NoteUnended(ctx context.Context, ended <-chan struct{}) {
	if unended, followed := ctx.Value(unendedKey{}).(*Unended); followed {
		unended.add(ended)
	}
}

func (u *Unended) add(ended <-chan struct{}) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.ended = append(u.ended, ended)
}

// Any reports whether there is such a program.
func (u *Unended) Any() bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return slices.ContainsFunc(u.ended, func(ended <-chan struct{}) bool {
		select {
		case <-ended:
			return false
		default:
			return true
		}
	})
}

// Wait returns when all of them have ended.
func (u *Unended) Wait() {
	u.mutex.Lock()
	all := slices.Clone(u.ended)
	u.mutex.Unlock()
	for _, ended := range all {
		<-ended
	}
}
