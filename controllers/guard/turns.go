package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// turnPatience is how long to wait for a turn, counted from the time at which its holder took it. So callers do not wait for a holder that
// is stuck.
const turnPatience = 15 * time.Second

// Turns are locks that serialize the checks and changes of a pool. A turn covers a set of names: those of pools and of disks. Two turns
// with a common name never overlap in time. All names of a turn are taken atomically, which rules out deadlocks.
type Turns struct {
	// Patience overrides turnPatience.
	Patience time.Duration

	mutex sync.Mutex
	held  map[string]*Turn
}

// Turn is a turn that was taken.
type Turn struct {
	turns   *Turns
	who     string
	names   []string
	since   time.Time
	ended   chan struct{}
	unended *zfs.Unended
}

// BusyError names the holder of the turn.
type BusyError struct {
	Who, Name string
	Since     time.Time
}

// Error names the holder, and the time since which it has the turn.
func (e *BusyError) Error() string {
	return fmt.Sprintf("waiting for %s, which has been using %s since %s", e.Who, e.Name, e.Since.UTC().Format(time.RFC3339))
}

// Take waits for a turn. If its holder is stuck, Take returns a BusyError, and the caller retries later. Programs that are started with the
// returned context keep the turn until they end, even after a call of End: a program that hangs in the kernel may still change a disk.
func (t *Turns) Take(ctx context.Context, who string, names ...string) (context.Context, *Turn, error) {
	patience := cmp.Or(t.Patience, turnPatience)
	for {
		under, unended := zfs.FollowUnended(ctx)
		turn, holder, name := t.try(&Turn{turns: t, who: who, names: names, since: time.Now(), ended: make(chan struct{}), unended: unended})
		if turn != nil {
			return under, turn, nil
		}
		timer := time.NewTimer(time.Until(holder.since.Add(patience)))
		select {
		case <-holder.ended:
			timer.Stop()
		case <-timer.C:
			return ctx, nil, &BusyError{Who: holder.who, Name: name, Since: holder.since}
		case <-ctx.Done():
			timer.Stop()
			return ctx, nil, ctx.Err()
		}
	}
}

// try takes all names, or returns a holder of one of them.
func (t *Turns) try(wanted *Turn) (taken, holder *Turn, name string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, name := range wanted.names {
		if holder := t.held[name]; holder != nil {
			return nil, holder, name
		}
	}
	if t.held == nil {
		t.held = map[string]*Turn{}
	}
	for _, name := range wanted.names {
		t.held[name] = wanted
	}
	return wanted, nil, ""
}

// End releases the turn: at once or, if programs are still running under it, when the last of them has ended.
func (turn *Turn) End() {
	if !turn.unended.Any() {
		turn.free()
		return
	}
	go func() {
		turn.unended.Wait()
		turn.free()
	}()
}

func (turn *Turn) free() {
	turn.turns.mutex.Lock()
	defer turn.turns.mutex.Unlock()
	for _, name := range turn.names {
		delete(turn.turns.held, name)
	}
	close(turn.ended)
}

// HeldTurn describes a turn for people.
type HeldTurn struct {
	Who   string
	Since time.Time
	// Hanging is true if one of its programs hangs in the kernel.
	Hanging bool
}

// Held returns the taken turns, oldest first.
func (t *Turns) Held() []HeldTurn {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	seen := map[*Turn]bool{}
	var all []HeldTurn
	for _, turn := range t.held {
		if !seen[turn] {
			seen[turn] = true
			all = append(all, HeldTurn{Who: turn.who, Since: turn.since, Hanging: turn.unended.Any()})
		}
	}
	slices.SortFunc(all, func(a, b HeldTurn) int { return a.Since.Compare(b.Since) })
	return all
}

// TurnNames returns the names that a turn for some BenchmarkPools has to cover: the names of the objects and their pools, and every disk
// that they claim, by its path and by its kernel device number. Two objects that claim the same pool name or the same disk, by any paths,
// have a name in common.
func TurnNames(disks Disks, further []string, claimants ...*v1alpha1.BenchmarkPool) []string {
	var names []string
	paths := slices.Clone(further)
	for _, pool := range claimants {
		names = append(names, "BenchmarkPool "+pool.Name, "pool "+naming.PoolName(pool))
		paths = append(paths, objects.ClaimedDevices(pool)...)
	}
	for _, path := range paths {
		names = append(names, "disk "+path)
		if disk, _ := disks.Identify(path); disk.Number != "" { // a refused disk has its number too
			names = append(names, "device "+disk.Number)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Busy reports whether an error means that another holder has the turn.
func Busy(err error) bool {
	_, busy := err.(*BusyError) //nolint:errorlint // Take never wraps it
	return busy
}

// Covers reports whether the taken names include all names that are needed now: an object may have changed while it waited for its turn.
func Covers(taken, needed []string) bool {
	return !slices.ContainsFunc(needed, func(name string) bool { return !slices.Contains(taken, name) })
}

// StablePaths returns those of the given paths that are links in /dev/disk/by-*, by which the agent knows disks, sorted and without
// duplicates.
func StablePaths(paths []string) []string {
	stable := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !strings.HasPrefix(path, "/dev/disk/by-") })
	slices.Sort(stable)
	return slices.Compact(stable)
}

// PoolDisks returns the disks that commands on a pool wait for: those of the live pool and those that may be joining it or, without a live
// pool, all that the object claims and that may be opened. A disk that has left a live pool is not included, even if the spec still lists
// it: a broken disk would block the pool forever.
func PoolDisks(pool *v1alpha1.BenchmarkPool, policy pools.DevicePolicy, live *zfs.Status) []string {
	claimed := slices.DeleteFunc(StablePaths(objects.ClaimedDevices(pool)), func(path string) bool { return !policy.MayOpen(pool, path) })
	if live == nil {
		return claimed
	}
	paths := objects.Texts(pool.Status.Joining)
	for _, leaf := range pools.Disks(*live) {
		own := StablePaths(pools.LeafPaths(leaf))
		if !slices.ContainsFunc(own, host.Stable) { // it may be any of them
			own = append(own, claimed...)
		}
		paths = append(paths, own...)
	}
	return StablePaths(paths)
}

// Answering checks that the disks of a pool respond. Call it before a command that waits for them while it holds the kernel's lock on all
// pools: a silent disk would then block every pool of the node. A missing or failing disk counts as responding.
func Answering(disks Disks, paths []string) error {
	errs := make([]error, len(paths))
	var all sync.WaitGroup
	for i, path := range paths {
		all.Go(func() { errs[i] = disks.Answer(path) })
	}
	all.Wait()
	var silent []string
	for _, err := range errs {
		if IsSilent(err) {
			silent = append(silent, err.Error())
		}
	}
	if len(silent) > 0 {
		return fmt.Errorf("%w: %s", ErrSilent, strings.Join(silent, "; "))
	}
	return nil
}
