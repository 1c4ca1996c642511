package guard

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/storagebench/storagebench/internal/zfs/device"
)

const (
	// lookPatience is how long a disk may take to answer. A disk of a storage array that changes over to another path takes some seconds.
	lookPatience = 30 * time.Second
	// A look at all of a disk's contents, and what wipes it, may take so many times as long: the disk has answered right before.
	contentsPatience, wipePatience = 4, 10
	// hangingLooks limits the hanging checks: each is a thread stuck in the kernel.
	hangingLooks = 256
)

// ErrSilent says that a disk does not answer.
var ErrSilent = errors.New("a disk does not answer")

// IsSilent says whether a look has failed because the disk does not answer.
func IsSilent(err error) bool { return errors.Is(err, device.Silent) }

// Bounded looks at disks for a limited time. A look at a disk that does not answer hangs in the kernel, and nothing ends it: it is left
// behind, and until it ends no other look at that disk is begun, by whatever path. What it would still do then, it does not: see
// device.Wish.GivenUp.
type Bounded struct {
	Disks
	// Patience instead of lookPatience.
	Patience time.Duration

	mutex   sync.Mutex
	hanging map[*Look]string // the keys of what is looked at
}

// Look is a look that hangs.
type Look struct {
	What  string
	Since time.Time
}

// String says what hangs, and since when.
func (l Look) String() string {
	return fmt.Sprintf("%s, asked at %s, has not answered yet", l.What, l.Since.UTC().Format(time.RFC3339))
}

// Hanging are the looks that hang, the oldest first.
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

// Check makes sure first that the disk answers.
func (b *Bounded) Check(wish device.Wish) (device.Disk, error) {
	known, refusal := b.Identify(wish.Path)
	if refusal == nil {
		refusal = b.answer(wish.Path, known)
	}
	if IsSilent(refusal) {
		return known, refusal
	}
	disk, err := within(b, key(wish.Path, known), wish.Path, contentsPatience*b.patience(),
		func(<-chan struct{}) (device.Disk, error) { return b.Disks.Check(wish) })
	return seen(disk, known, err)
}

// Wipe makes sure first that the disk answers. One that takes too long writes nothing more.
func (b *Bounded) Wipe(wish device.Wish) (device.Disk, error) {
	known, refusal := b.Identify(wish.Path)
	if refusal == nil {
		refusal = b.answer(wish.Path, known)
	}
	if IsSilent(refusal) {
		return known, refusal
	}
	disk, err := within(b, key(wish.Path, known), wish.Path, wipePatience*b.patience(), func(givenUp <-chan struct{}) (device.Disk, error) {
		wish := wish
		wish.GivenUp = givenUp
		return b.Disks.Wipe(wish)
	})
	return seen(disk, known, err)
}

// seen is the disk as it was seen, or at least as it is known.
func seen(disk, known device.Disk, err error) (device.Disk, error) {
	if IsSilent(err) {
		return known, err
	}
	return disk, err
}

// Identify opens nothing, but the kernel may not tell of a disk that it is about to give up.
func (b *Bounded) Identify(path string) (device.Disk, error) {
	disk, err := within(b, path, path, b.patience(), func(<-chan struct{}) (device.Disk, error) { return b.Disks.Identify(path) })
	disk.Path = path
	return disk, err
}

// Verify opens nothing either.
func (b *Bounded) Verify(checked device.Disk) error {
	_, err := within(b, checked.Path, checked.Path, b.patience(), func(<-chan struct{}) (struct{}, error) {
		return struct{}{}, b.Disks.Verify(checked)
	})
	return err
}

// Answer asks a disk for one block.
func (b *Bounded) Answer(path string) error {
	known, err := b.Identify(path)
	if err != nil {
		return err
	}
	return b.answer(path, known)
}

func (b *Bounded) answer(path string, known device.Disk) error {
	_, err := within(b, key(path, known), path, b.patience(), func(<-chan struct{}) (struct{}, error) {
		return struct{}{}, b.Disks.Answer(path)
	})
	return err
}

// PoolUsers reads what the kernel knows of mounts, and opens volumes.
func (b *Bounded) PoolUsers(pool string, own ...string) ([]string, error) {
	return within(b, "users of pool "+pool, "the search for users of pool "+pool, contentsPatience*b.patience(),
		func(<-chan struct{}) ([]string, error) { return b.Disks.PoolUsers(pool, own...) })
}

// RemoveFolders walks a folder on which a pool may be mounted that does not answer.
func (b *Bounded) RemoveFolders(top, folder string) error {
	_, err := within(b, folder, folder, b.patience(), func(<-chan struct{}) (struct{}, error) {
		return struct{}{}, b.Disks.RemoveFolders(top, folder)
	})
	return err
}

// key is the disk that a path leads to: the kernel's number of it, whatever the path.
func key(path string, known device.Disk) string {
	if known.Number != "" {
		return "device " + known.Number
	}
	return path
}

// within does something for as long as it is waited for.
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
	return none, silent(what, fmt.Sprintf("it has not answered within %s", patience))
}

// leave notes a look that hangs, until it ends.
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

// refuse says why a look is not begun.
func (b *Bounded) refuse(key, what string) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for hangs, at := range b.hanging {
		if at == key {
			return silent(what, "it does not answer: "+hangs.String())
		}
	}
	if len(b.hanging) >= hangingLooks {
		return silent(what, fmt.Sprintf("it was not looked at: %d looks at disks of this node hang in the kernel", len(b.hanging)))
	}
	return nil
}

func silent(what, detail string) error {
	return &device.RefusedError{Path: what, Findings: []device.Finding{{Reason: device.Silent,
		Detail: detail +
			". Look at 'dmesg' on the node, and bring it back or unplug it; it is looked at again as soon as the kernel ends that request"}}}
}
