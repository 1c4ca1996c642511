package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// TestTurnsExclude: of many callers with overlapping names, no two ever hold the same name, and all of them get their turn.
func TestTurnsExclude(t *testing.T) {
	const goroutines, rounds, names = 16, 50, 5
	turns := &Turns{Patience: time.Minute}
	var mutex sync.Mutex
	held, most, together := map[string]int{}, 0, 0
	var all sync.WaitGroup
	for number := range goroutines {
		random := rand.New(rand.NewPCG(1, uint64(number)))
		all.Go(func() {
			for range rounds {
				wanted := []string{fmt.Sprint(random.IntN(names)), fmt.Sprint(names + random.IntN(names))}
				_, turn, err := turns.Take(t.Context(), fmt.Sprint(number), wanted...)
				if err != nil {
					t.Error(err)
					return
				}
				mutex.Lock()
				for _, name := range wanted {
					held[name]++
					most = max(most, held[name])
				}
				together = max(together, len(turns.Held()))
				mutex.Unlock()
				for range random.IntN(100) {
					runtime.Gosched()
				}
				mutex.Lock()
				for _, name := range wanted {
					held[name]--
				}
				mutex.Unlock()
				turn.End()
			}
		})
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d had one name at the same time", most)
	}
	if together < 2 {
		t.Error("turns of different names never ran beside each other: this shows nothing")
	}
	if left := turns.Held(); len(left) > 0 {
		t.Errorf("turns are left: %v", left)
	}
}

// TestAStuckTurnIsNotWaitedFor: callers that need a stuck turn retry later, and the others continue.
func TestAStuckTurnIsNotWaitedFor(t *testing.T) { synctest.Test(t, stuckTurn) }

func stuckTurn(t *testing.T) {
	turns := &Turns{Patience: 10 * time.Millisecond}
	_, stuck, err := turns.Take(t.Context(), "BenchmarkPool a", "pool a", "device 8:0")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	var busy *BusyError
	_, _, err = turns.Take(t.Context(), "BenchmarkPool b", "pool b", "device 8:0")
	if !errors.As(err, &busy) || !Busy(err) || busy.Who != "BenchmarkPool a" ||
		!strings.Contains(err.Error(), "BenchmarkPool a, which has been using device 8:0 since 2") {
		t.Fatalf("%v", err)
	}
	for range 1000 { // it has been held for longer than any caller waits
		if _, _, err := turns.Take(t.Context(), "BenchmarkPool b", "pool a"); !Busy(err) {
			t.Fatal(err)
		}
	}
	if spent := time.Since(begun); spent != turns.Patience {
		t.Errorf("1001 tries took %s, want those of the first", spent)
	}
	_, other, err := turns.Take(t.Context(), "BenchmarkPool b", "pool b") // the refused callers hold no names
	if err != nil {
		t.Fatal(err)
	}
	other.End()
	stuck.End()
	_, again, err := turns.Take(t.Context(), "BenchmarkPool b", "pool b", "device 8:0")
	if err != nil {
		t.Fatal(err)
	}
	again.End()
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &Turns{Patience: time.Hour}
		_, held, err := turns.Take(t.Context(), "a", "x")
		if err != nil {
			t.Fatal(err)
		}
		defer held.End()
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := turns.Take(ctx, "b", "x"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

// TestAnUnendedProgramKeepsTheTurn: a command that hangs in the kernel may still take the disks that it was given.
func TestAnUnendedProgramKeepsTheTurn(t *testing.T) {
	turns := &Turns{Patience: 10 * time.Millisecond}
	ctx, turn, err := turns.Take(t.Context(), "BenchmarkPool a", "device 8:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	zfs.NoteUnended(ctx, ended)
	turn.End()
	if _, _, err := turns.Take(t.Context(), "BenchmarkPool b", "device 8:0"); !Busy(err) {
		t.Fatalf("the disk was given to another while a command may still take it: %v", err)
	}
	if held := turns.Held(); len(held) != 1 || !held[0].Hanging {
		t.Errorf("held are %+v", held)
	}
	close(ended)
	turns.Patience = time.Minute
	_, next, err := turns.Take(t.Context(), "BenchmarkPool b", "device 8:0")
	if err != nil {
		t.Fatal(err)
	}
	next.End()
}

// aliases simulates disks to which several paths lead.
type aliases struct {
	Disks
	numbers map[string]string
}

func (a aliases) Identify(path string) (host.Disk, error) {
	return host.Disk{Path: path, Number: a.numbers[path]}, nil
}

// TestWhoSharesADiskSharesATurn: this holds even if the disk has another path or is no longer in the spec, or if only the name of the pool
// is shared.
func TestWhoSharesADiskSharesATurn(t *testing.T) {
	disks := aliases{numbers: map[string]string{"/dev/disk/by-id/a": "8:0", "/dev/disk/by-path/a": "8:0", "/dev/disk/by-id/b": "8:16"}}
	pool := func(name, zpool string, paths ...v1alpha1.DevicePath) *v1alpha1.BenchmarkPool {
		made := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made.Spec.PoolName, made.Spec.Vdevs = v1alpha1.PoolName(zpool), []v1alpha1.Vdev{{Devices: paths}}
		return made
	}
	held := pool("x", "", "/dev/disk/by-id/gone")
	held.Status.Vdevs = []v1alpha1.VdevStatus{{Name: "/dev/disk/by-id/a-part1"}}
	for name, test := range map[string]struct {
		a, b   *v1alpha1.BenchmarkPool
		shared bool
	}{
		"one path":             {pool("a", "", "/dev/disk/by-id/a"), pool("b", "", "/dev/disk/by-id/a"), true},
		"another path":         {pool("a", "", "/dev/disk/by-id/a"), pool("b", "", "/dev/disk/by-path/a"), true},
		"a disk that is gone":  {pool("a", "", "/dev/disk/by-id/gone"), pool("b", "", "/dev/disk/by-id/gone"), true},
		"one that a pool has":  {held, pool("b", "", "/dev/disk/by-path/a"), true},
		"one name of the pool": {pool("a", "same", "/dev/disk/by-id/a"), pool("same", "", "/dev/disk/by-id/b"), true},
		"nothing":              {pool("a", "", "/dev/disk/by-id/a"), pool("b", "", "/dev/disk/by-id/b"), false},
	} {
		a, b := TurnNames(disks, nil, test.a), TurnNames(disks, nil, test.b)
		if shared := slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) }); shared != test.shared {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
	if Covers([]string{"a"}, []string{"a", "b"}) || !Covers([]string{"a", "b"}, []string{"b"}) {
		t.Error("a turn covers what it was not taken for")
	}
}
