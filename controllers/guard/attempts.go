package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

const (
	// attemptsKept is the number of boots that a record names.
	attemptsKept = 8
	// inService is how long a pool has to be imported until its import no longer counts as a reason if the node stops. ZFS does part of the
	// work in the first transaction groups after the import.
	inService = time.Minute
)

// Attempts remembers on the node in which boots the agent searched for a pool, created it or imported it, until the pool is in service. A
// pool that stops the kernel would otherwise stop it again after each boot.
type Attempts struct {
	// Root is the path of the node's file system.
	Root string
	// ended has the pools, by UID, whose commands have ended in this process.
	ended sync.Map
}

// attempt is one line of a record: the boot, and the time since that boot.
type attempt struct {
	boot  string
	since time.Duration
}

func (a *Attempts) path(pool types.UID) string { return filepath.Join(a.Root, pools.AttemptPath(pool)) }

// read returns the attempts of earlier boots, that of the current boot if there is one, and the current moment.
func (a *Attempts) read(pool types.UID) (earlier []attempt, own *attempt, now attempt, err error) {
	text, err := os.ReadFile(a.path(pool))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, now, nil
	}
	if err != nil {
		return nil, nil, now, fmt.Errorf("read in which boots the pool was imported: %w", err)
	}
	if now, err = a.now(); err != nil {
		return nil, nil, now, err
	}
	for line := range strings.Lines(string(text)) {
		boot, seconds, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, _ := strconv.ParseInt(seconds, 10, 64)
		known := attempt{boot, time.Duration(number) * time.Second}
		switch boot {
		case "":
		case now.boot:
			own = &known
		default:
			earlier = append(earlier, known)
		}
	}
	return earlier, own, now, nil
}

// now reads the time since the boot, because the clock may be set at any moment.
func (a *Attempts) now() (attempt, error) {
	boot, err := host.BootID(a.Root)
	if err != nil {
		return attempt{}, err
	}
	since, err := host.Uptime(a.Root)
	return attempt{boot, since}, err
}

func (a *Attempts) write(pool types.UID, attempts []attempt) error {
	if len(attempts) == 0 {
		return a.Forget(pool)
	}
	var text strings.Builder
	for _, one := range attempts[max(0, len(attempts)-attemptsKept):] {
		fmt.Fprintf(&text, "%s %d\n", one.boot, int64(one.since.Seconds()))
	}
	if err := host.WriteDurably(a.path(pool), []byte(text.String())); err != nil {
		return fmt.Errorf("record on the node that the pool is searched for, created or imported: %w", err)
	}
	return nil
}

// Try runs a command that creates or imports the pool, if the attempt can be recorded. The record stays until Survived or Imported sees how
// it ended: a command that failed may have imported the pool.
func (a *Attempts) Try(pool types.UID, command func() error) error {
	a.ended.Delete(pool)
	if err := a.note(pool); err != nil {
		return err
	}
	failed := command()
	if over(failed) {
		a.ended.Store(pool, true)
	}
	if failed != nil {
		return failed
	}
	return a.note(pool) // from now on, it has to stay in service
}

// Search runs a command that searches for the pool on its disks, if the attempt can be recorded. Once the command has ended, the node has
// survived it.
func (a *Attempts) Search(pool types.UID, command func() error) error {
	if err := a.note(pool); err != nil {
		return err
	}
	failed := command()
	if !over(failed) {
		return failed
	}
	_, err := a.Survived(pool)
	return errors.Join(failed, err)
}

// over reports whether a command has ended, also in the kernel.
func over(failed error) bool {
	return !errors.Is(failed, zfs.Timeout) && !errors.Is(failed, zfs.Cancelled)
}

// note records an attempt in the current boot.
func (a *Attempts) note(pool types.UID) error {
	earlier, _, _, err := a.read(pool)
	if err != nil {
		return err
	}
	now, err := a.now()
	if err != nil {
		return err
	}
	return a.write(pool, append(earlier, now))
}

// Survived returns the number of earlier boots that ended before the pool was in service. It removes this boot from the record: the node
// has survived its attempts, because the pool is not imported now, or the node is shut down in order.
func (a *Attempts) Survived(pool types.UID) (stopped int, err error) {
	earlier, own, _, err := a.read(pool)
	if err == nil && own != nil {
		err = a.write(pool, earlier)
	}
	return len(earlier), err
}

// Imported forgets the attempts once the pool, which is imported, is in service.
func (a *Attempts) Imported(pool types.UID) error {
	earlier, own, now, err := a.read(pool)
	switch {
	case err != nil || now.boot == "":
		return err
	case own == nil && len(earlier) > 0: // imported by hand, or by an agent that was asked to end
		return a.write(pool, append(earlier, now))
	case own != nil && now.since-own.since < inService:
		return nil
	}
	return a.Forget(pool)
}

// Forget removes the record of a pool.
func (a *Attempts) Forget(pool types.UID) error {
	a.ended.Delete(pool)
	if err := host.RemoveDurably(a.path(pool)); err != nil {
		return fmt.Errorf("remove the record of the imports of a pool: %w", err)
	}
	return nil
}

// Start waits until the agent is asked to end, as at the shutdown of a node, and removes this boot from the records: a node that is shut
// down in order was not stopped by a pool.
func (a *Attempts) Start(ctx context.Context) error {
	<-ctx.Done()
	a.ended.Range(func(pool, _ any) bool {
		if _, err := a.Survived(pool.(types.UID)); err != nil {
			ctrl.Log.WithName("attempts").Error(err, "this shutdown will count as a stop of the node")
		}
		return true
	})
	return nil
}
