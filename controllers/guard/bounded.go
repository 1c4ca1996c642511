package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/storagebench/storagebench/internal/host"
)

const (
	// lookPatience is how long a disk may take to respond. A disk of a storage array needs some seconds to fail over to another
	// path.
	lookPatience = 30 * time.Second
	// Reading all contents of a disk, or wiping it, may take this many times as long, because the disk has just responded.
	contentsPatience, wipePatience = 4, 10
	// hangingLooks limits the number of hanging checks: each is a thread that is stuck in the kernel.
	hangingLooks = 256
)

// ErrSilent means that a disk does not respond.
var ErrSilent = errors.New("a disk does not respond")

// IsSilent reports whether an error means that a disk does not respond.
func IsSilent(err error) bool { return errors.Is(err, host.Silent) }

// Bounded checks disks with a time limit. A check of a disk that does not respond hangs in the kernel and cannot be stopped. Bounded leaves
// it behind, and starts no other check of that disk, by any path, until the hanging one ends. When the hanging check returns from the
// kernel, it does nothing more: see host.Wish.GivenUp.
type Bounded struct {
	Disks
	// Patience overrides lookPatience.
	Patience time.Duration

	mutex   sync.Mutex
	hanging map[*Look]string // the keys of the checked disks
}

// Look is a hanging check.
type Look struct {
	What  string
	Since time.Time
}

// String describes the check, with its start time.
func (l Look) String() string {
	return fmt.Sprintf("%s, started at %s, has not finished yet", l.What, l.Since.UTC().Format(time.RFC3339))
}

// Hanging returns the hanging checks, oldest first.
func (b *Bounded) Hanging() []Look {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var all []Look
	for look := range b.hanging {
		all = append(all, *look)
	}
	slices.SortFunc(all, func(x, y Look) int { return x.Since.Compare(y.Since) })
	return all
}

func (b *Bounded) patience() time.Duration {
	if b.Patience > 0 {
		return b.Patience
	}
	return lookPatience
}

// Check first verifies that the disk responds.
func (b *Bounded) Check(wish host.Wish) (host.Disk, error) {
	return b.responding(wish, contentsPatience, b.Disks.Check)
}

// Wipe first verifies that the disk responds. A wipe that takes too long writes nothing more.
func (b *Bounded) Wipe(wish host.Wish) (host.Disk, error) {
	return b.responding(wish, wipePatience, b.Disks.Wipe)
}

// responding calls a function for a disk after verifying that it responds. If the disk does not respond, or stops responding, it returns
// the disk as identified before.
func (b *Bounded) responding(wish host.Wish, times time.Duration, do func(host.Wish) (host.Disk, error)) (host.Disk, error) {
	known, err := b.Identify(wish.Path)
	if err == nil {
		err = b.answer(wish.Path, known)
	}
	if IsSilent(err) {
		return known, err
	}
	disk, err := within(b, key(wish.Path, known), wish.Path, times*b.patience(), func(givenUp <-chan struct{}) (host.Disk, error) {
		wish := wish
		wish.GivenUp = givenUp
		return do(wish)
	})
	if IsSilent(err) {
		return known, err
	}
	return disk, err
}

// Identify opens nothing, but the kernel may block on a disk that it is about to remove.
func (b *Bounded) Identify(path string) (host.Disk, error) {
	disk, err := within(b, path, path, b.patience(), func(<-chan struct{}) (host.Disk, error) { return b.Disks.Identify(path) })
	disk.Path = path
	return disk, err
}

// Verify opens nothing either.
func (b *Bounded) Verify(checked host.Disk) error {
	_, err := within(b, checked.Path, checked.Path, b.patience(), func(<-chan struct{}) (struct{}, error) {
		return struct{}{}, b.Disks.Verify(checked)
	})
	return err
}

// Untouched reads both ends of a disk.
func (b *Bounded) Untouched(checked host.Disk) error {
	_, err := within(b, key(checked.Path, checked), checked.Path, contentsPatience*b.patience(), func(<-chan struct{}) (struct{}, error) {
		return struct{}{}, b.Disks.Untouched(checked)
	})
	return err
}

// StillUnused needs a time limit because it reads what all processes of the node have open. A search that hangs keeps no other disks.
func (b *Bounded) StillUnused(checked []host.Disk) error {
	var paths []string
	for _, disk := range checked {
		paths = append(paths, disk.Path)
	}
	what := "the search for users of " + strings.Join(paths, ", ")
	_, err := within(b, what, what, contentsPatience*b.patience(), func(<-chan struct{}) (struct{}, error) {
		return struct{}{}, b.Disks.StillUnused(checked)
	})
	return err
}

// Answer reads one block of a disk.
func (b *Bounded) Answer(path string) error {
	known, err := b.Identify(path)
	if err != nil {
		return err
	}
	return b.answer(path, known)
}

func (b *Bounded) answer(path string, known host.Disk) error {
	_, err := within(b, key(path, known), path, b.patience(), func(<-chan struct{}) (struct{}, error) {
		return struct{}{}, b.Disks.Answer(path)
	})
	return err
}

// PoolUsers needs a time limit because it reads the mounts of the node and opens volumes.
func (b *Bounded) PoolUsers(pool string, own ...string) ([]string, error) {
	return within(b, "users of pool "+pool, "the search for users of pool "+pool, contentsPatience*b.patience(),
		func(<-chan struct{}) ([]string, error) { return b.Disks.PoolUsers(pool, own...) })
}

// RemoveFolders needs a time limit because it walks a folder that may be the mount point of a pool that does not respond.
func (b *Bounded) RemoveFolders(top, folder string) error {
	_, err := within(b, folder, folder, b.patience(), func(<-chan struct{}) (struct{}, error) {
		return struct{}{}, b.Disks.RemoveFolders(top, folder)
	})
	return err
}

// key identifies the disk that a path leads to, by its kernel device number, which does not depend on the path, or by the path if the
// number is unknown.
func key(path string, known host.Disk) string {
	if known.Number != "" {
		return "device " + known.Number
	}
	return path
}

// within calls a function with a time limit.
func within[T any](b *Bounded, key, what string, patience time.Duration, do func(givenUp <-chan struct{}) (T, error)) (T, error) {
	var none T
	if err := b.refuse(key, what); err != nil {
		return none, err
	}
	type result struct {
		value T
		err   error
	}
	begun, done, givenUp := time.Now(), make(chan result, 1), make(chan struct{})
	go func() {
		value, err := do(givenUp)
		done <- result{value, err}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got := <-done:
		return got.value, got.err
	case <-timer.C:
	}
	close(givenUp)
	b.leave(key, &Look{What: what, Since: begun}, func() { <-done })
	return none, silent(what, fmt.Sprintf("it has not responded within %s", patience))
}

// leave records a hanging check until the check ends.
func (b *Bounded) leave(key string, hangs *Look, ended func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.hanging == nil {
		b.hanging = map[*Look]string{}
	}
	b.hanging[hangs] = key
	go func() {
		ended()
		b.mutex.Lock()
		defer b.mutex.Unlock()
		delete(b.hanging, hangs)
	}()
}

// refuse returns an error if a check must not be started.
func (b *Bounded) refuse(key, what string) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for hangs, at := range b.hanging {
		if at == key {
			return silent(what, "it does not respond: "+hangs.String())
		}
	}
	if len(b.hanging) >= hangingLooks {
		return silent(what, fmt.Sprintf("it was not checked: %d disk checks of this node hang in the kernel", len(b.hanging)))
	}
	return nil
}

func silent(what, detail string) error {
	return &host.RefusedError{Path: what, Findings: []host.Finding{{Reason: host.Silent,
		Detail: detail +
			". See 'dmesg' on the node, and bring the disk back or unplug it; it is checked again as soon as the kernel ends that request"}}}
}
