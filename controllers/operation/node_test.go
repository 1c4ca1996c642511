package operation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/host/mountinfo"
	"github.com/storagebench/storagebench/internal/zfs"
)

const diskA, diskB, diskC, diskD = "/dev/disk/by-id/a", "/dev/disk/by-id/b", "/dev/disk/by-id/c", "/dev/disk/by-id/d"

const (
	scanSeconds = 5
	txgHistory  = "txg birth state ndirty nread nwritten reads writes otime qtime wtime stime\n"
)

// fakeNode simulates the zpool, zfs and zdb of a node, its disks and its files. Long-running work takes time of its fake clock.
type fakeNode struct {
	mutex    sync.Mutex
	clock    *clocktesting.FakeClock
	root     string
	pools    []*fakePool
	users    map[string][]string
	refused  map[string]error
	commands []string
	guids    int
	// events are the changes of the node and the writes to the API. The agent dies right after the event with the number diesAfter. 0 means
	// never.
	events, diesAfter int
	// dead says that the agent has died and was not restarted yet.
	dead bool
	// deadly is the beginning of commands that kill the agent, for example because it runs out of memory. fatalities counts them.
	deadly     string
	fatalities int
	// blocks are lines that zdb prints of an object instead of the usual ones.
	blocks []string
	// marksNothing says that a receive does not set properties.
	marksNothing bool
	// swapAfter is the command after which the paths lead to other disks: then they are swapped.
	swapAfter string
	swapped   bool
	// blocked are disks that were opened while they were offline: they could not come back in that moment.
	blocked []string
	// hangs is the beginning of commands that hang in the kernel until the disks respond.
	hangs    string
	responds chan struct{}
	// silent says that the disks do not respond.
	silent atomic.Bool
	// usedSince says that the disks got users after they were checked.
	usedSince bool
	// meanwhile happens before each look for the users of a pool.
	meanwhile func()
	// refuses are settings, such as recordsize=2M, that ZFS refuses.
	refuses []string
	// interrupted is how many receives are interrupted halfway.
	interrupted int
	// received is the number of bytes received from a stream that was broken off.
	received int
	// syncs is how long a sync of a pool takes.
	syncs time.Duration
	// takes is how long a command that changes something takes.
	takes time.Duration
	// onOpen is called before a dataset is opened.
	onOpen func(dataset string, readOnly bool)
	// sampled is the time of the last sample.
	sampled time.Time
}

type fakePool struct {
	name, guid string
	imported   bool
	readOnly   bool
	loads      int
	freeing    int64
	// pending is space that is in use until the pool is synced, and stuck makes a sync fail.
	pending   int64
	stuck     bool
	freeUntil time.Time
	tops      []*fakeTop
	scan      *fakeScan
	removal   *fakeScan
	datasets  []*fakeDataset
}

type fakeTop struct {
	name, guid string
	disks      []*fakeDisk
}

type fakeDisk struct {
	path, guid string
	trim       *fakeScan
	offline    bool
	// replacing is the disk that is about to replace it.
	replacing *fakeDisk
}

type fakeScan struct {
	function   string
	start, end time.Time
	stopped    bool
	errors     int
	member     string
}

type fakeDataset struct {
	name, kind, guid string
	properties       map[string]string
	token            string
	// mountedAt is where it is mounted. Empty if it is not mounted.
	mountedAt string
}

func newNode(t *testing.T) *fakeNode {
	t.Helper()
	n := &fakeNode{clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), root: t.TempDir(), users: map[string][]string{},
		refused: map[string]error{}, guids: 100}
	n.write(t, "/proc/sys/kernel/random/boot_id", "boot-1\n")
	n.write(t, "/proc/uptime", "100.00 200.00\n")
	n.write(t, "/sys/module/zfs/parameters/zfs_txg_timeout", "5\n")
	n.write(t, "/proc/1/mountinfo", "")
	n.write(t, "/proc/spl/kstat/zfs/bench0/txgs", txgHistory+"7 1 C 100 0 200 0 1 10 20 30 40\n8 2 O 0 0 0 0 0 0 0 0 0\n")
	n.write(t, "/proc/spl/kstat/zfs/zio_stats",
		"1 1 0x01 3 816 1 2\nname type data\ntotal_allocations 4 10\ngang_writes 4 2\ngang_multilevel 4 0\n")
	n.pools = []*fakePool{n.pool("bench0", diskA, diskB), n.pool("bench1", diskC)}
	for _, name := range []string{"bench0/data", "bench0/data/child"} {
		n.pools[0].datasets = append(n.pools[0].datasets, n.dataset(name, "filesystem"))
	}
	return n
}

func (n *fakeNode) guid() string {
	n.guids++
	return strconv.Itoa(n.guids)
}

func (n *fakeNode) pool(name string, paths ...string) *fakePool {
	made := &fakePool{name: name, guid: n.guid(), imported: true, loads: 1}
	top := &fakeTop{name: "mirror-0", guid: n.guid()}
	for _, path := range paths {
		top.disks = append(top.disks, &fakeDisk{path: path, guid: n.guid()})
	}
	made.tops = []*fakeTop{top}
	root := n.dataset(name, "filesystem")
	root.properties["storagebench.dev:uid"] = "uid-" + name
	made.datasets = []*fakeDataset{root}
	return made
}

func (n *fakeNode) dataset(name, kind string) *fakeDataset {
	return &fakeDataset{name: name, kind: kind, guid: n.guid(), properties: map[string]string{}}
}

func (n *fakeNode) write(t *testing.T, path, text string) {
	t.Helper()
	full := filepath.Join(n.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (n *fakeNode) read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.root, path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// event counts a change and reports whether the agent is still alive.
func (n *fakeNode) event() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.eventLocked()
}

func (n *fakeNode) eventLocked() bool {
	if n.events++; n.events == n.diesAfter {
		n.dead = true
	}
	return !n.dead
}

func (n *fakeNode) isDead() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.dead
}

// poolController stands in for the pool controller: it imports our pools.
func (n *fakeNode) poolController() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, pool := range n.pools {
		if !pool.imported {
			pool.imported = true
			pool.loads++
		}
	}
}

// reset simulates a crash of the node: only the contents of the disks remain.
func (n *fakeNode) reset(t *testing.T) {
	t.Helper()
	n.mutex.Lock()
	for _, pool := range n.pools {
		pool.imported = false
		if disk := pool.offline(); disk != nil { // the next import brings it back
			disk.offline, pool.scan = false, n.began("resilver")
		}
	}
	n.mutex.Unlock()
	n.write(t, "/proc/sys/kernel/random/boot_id", "boot-2\n")
	n.write(t, "/sys/module/zfs/parameters/zfs_txg_timeout", "5\n")
}

func (n *fakeNode) find(name string) *fakePool {
	name, _, _ = strings.Cut(name, "/")
	name, _, _ = strings.Cut(name, "@")
	for _, pool := range n.pools {
		if pool.imported && pool.name == name || !pool.imported && pool.guid == name {
			return pool
		}
	}
	return nil
}

// offline returns the disk that is offline, or nil if there is none.
func (p *fakePool) offline() *fakeDisk {
	for _, top := range p.tops {
		for _, disk := range top.disks {
			if disk.offline {
				return disk
			}
		}
	}
	return nil
}

func (p *fakePool) find(name string) *fakeDataset {
	for _, dataset := range p.datasets {
		if dataset.name == name {
			return dataset
		}
	}
	return nil
}

func (n *fakeNode) count(prefix string) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	count := 0
	for _, command := range n.commands {
		if strings.HasPrefix(command, prefix) {
			count++
		}
	}
	return count
}

// changes returns the commands that have changed something, apart from the mark of operations that have begun.
func (n *fakeNode) changes() []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(n.commands), func(command string) bool {
		return strings.HasPrefix(command, "zfs set "+operations.PropertyBegun+"=")
	})
}

func refusal(kind zfs.Kind, command zfs.Command) error {
	return &zfs.Error{Kind: kind, Command: command.String(), ExitCode: 1, Stderr: string(kind)}
}

var errDied = errors.New("the agent has died")

// Run simulates one command.
func (n *fakeNode) Run(ctx context.Context, command zfs.Command) ([]byte, error) {
	killed := &zfs.Error{Kind: zfs.Cancelled, Command: command.String(), ExitCode: -1, Err: errors.Join(ctx.Err(), errDied)}
	if ctx.Err() != nil || n.isDead() {
		return nil, killed
	}
	if n.kills(command) {
		return nil, killed
	}
	if command.Stdout != nil && command.Program == "zfs" && command.Args[1] != "-n" {
		return nil, n.send(command)
	}
	if command.Stdin != nil {
		return nil, n.receive(command, killed)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.advance()
	n.swapped = n.swapped || command.Program+" "+command.Args[0] == n.swapAfter
	if output, isLook, err := n.look(command); isLook {
		return output, err
	}
	n.commands = append(n.commands, command.String())
	if n.hangs != "" && strings.HasPrefix(command.String(), n.hangs) {
		return nil, n.hang(ctx, command)
	}
	n.clock.Step(n.takes)
	err := n.change(command)
	if (err == nil || len(n.refuses) > 0) && !n.eventLocked() {
		return nil, killed
	}
	return nil, err
}

// hang is a command that does not end in time. It takes effect once the disks respond.
func (n *fakeNode) hang(ctx context.Context, command zfs.Command) error {
	ended, responds := make(chan struct{}), n.responds
	go func() {
		<-responds
		n.mutex.Lock()
		_ = n.change(command)
		n.mutex.Unlock()
		close(ended)
	}()
	zfs.NoteUnended(ctx, ended)
	return &zfs.Error{Kind: zfs.Timeout, Command: command.String(), ExitCode: -1}
}

func (n *fakeNode) kills(command zfs.Command) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.deadly == "" || !strings.HasPrefix(command.String(), n.deadly) {
		return false
	}
	n.dead = true
	n.fatalities++
	return true
}

// advance completes the work that has ended by now.
func (n *fakeNode) advance() {
	now := n.clock.Now()
	for _, pool := range n.pools {
		if pool.freeing > 0 && !now.Before(pool.freeUntil) {
			pool.freeing = 0
		}
		if removal := pool.removal; removal != nil && !removal.stopped && !now.Before(removal.end) {
			pool.tops = slices.DeleteFunc(pool.tops, func(top *fakeTop) bool { return top.guid == removal.member })
		}
		for _, top := range pool.tops {
			for at, disk := range top.disks {
				if disk.replacing != nil && !now.Before(pool.scan.end) {
					top.disks[at] = disk.replacing
				}
			}
		}
	}
}

// Check finds the disks of pools.
func (n *fakeNode) Check(wish host.Wish) (host.Disk, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.swapped = false // the disk is the one to which the path leads now
	disk := host.Disk{Path: wish.Path, Number: wish.Path, Kernel: wish.Path, Serial: "serial", SizeBytes: 1 << 30, LogicalSectorBytes: 512,
		PhysicalSectorBytes: 4096}
	if err := n.refused[wish.Path]; err != nil {
		return disk, err
	}
	for _, pool := range n.pools {
		if _, taken := pool.disk(wish.Path); taken != nil {
			if taken.offline {
				n.blocked = append(n.blocked, wish.Path)
			}
			return disk, &host.RefusedError{Path: wish.Path,
				Findings: []host.Finding{{Reason: host.RunningPool, Detail: "it belongs to pool " + pool.name}}}
		}
	}
	return disk, nil
}

func (p *fakePool) disk(path string) (*fakeTop, *fakeDisk) {
	for _, top := range p.tops {
		for _, disk := range top.disks {
			if disk.path == path || disk.guid == path || disk.replacing != nil && disk.replacing.path == path {
				return top, disk
			}
		}
	}
	return nil, nil
}

// Identify opens nothing.
func (n *fakeNode) Identify(path string) (host.Disk, error) {
	return host.Disk{Path: path, Number: path, Kernel: path, Serial: "serial", SizeBytes: 1 << 30}, n.refused[path]
}

// Answer answers, unless the disks are silent.
func (n *fakeNode) Answer(string) error {
	if n.silent.Load() {
		return host.Silent
	}
	return nil
}

func (n *fakeNode) Settle() {}

// Verify refuses every disk once they have been swapped.
func (n *fakeNode) Verify(checked host.Disk) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.swapped {
		return &host.RefusedError{Path: checked.Path, Findings: []host.Finding{{Reason: host.Changed}}}
	}
	return nil
}

// Untouched finds the ends of all disks as they were.
func (n *fakeNode) Untouched(host.Disk) error { return nil }

// StillUnused refuses every disk if they have users by now.
func (n *fakeNode) StillUnused(checked []host.Disk) error {
	if n.usedSince {
		return &host.RefusedError{Path: checked[0].Path, Findings: []host.Finding{{Reason: host.InUse, Detail: "it is open for writing"}}}
	}
	return nil
}

// Wipe is not used by these tests.
func (n *fakeNode) Wipe(wish host.Wish) (host.Disk, error) {
	return host.Disk{}, fmt.Errorf("the contents of %s were not given up", wish.Path)
}

// PoolUsers returns the users that the test has set, and the mounts at other places than the caller's own.
func (n *fakeNode) PoolUsers(name string, own ...string) ([]string, error) {
	users := slices.Clone(n.users[name])
	if n.meanwhile != nil {
		n.meanwhile()
	}
	for _, pool := range n.pools {
		for _, d := range pool.datasets {
			if d.mountedAt != "" && (d.name == name || strings.HasPrefix(d.name, name+"/")) && !slices.Contains(own, d.mountedAt) {
				users = append(users, "dataset "+d.name+" is mounted at "+d.mountedAt)
			}
		}
	}
	return users, nil
}

// RemoveFolders has nothing to do: this node has no folders.
func (n *fakeNode) RemoveFolders(string, string) error { return nil }

// MakeMountPoint has nothing to do.
func (n *fakeNode) MakeMountPoint(string, string) error { return nil }

// MakeVolumeFolder has nothing to do.
func (n *fakeNode) MakeVolumeFolder(string, string, string) error { return nil }

// Mounted accepts every mount.
func (n *fakeNode) Mounted(string, string, string) (bool, error) { return true, nil }

// NestedMounts returns none.
func (n *fakeNode) NestedMounts(string, ...string) ([]string, error) { return nil, nil }

// OpenDataset opens the folder that stands for the dataset.
func (n *fakeNode) OpenDataset(dataset string, readOnly bool) (*os.Root, error) {
	if n.onOpen != nil {
		n.onOpen(dataset, readOnly)
	}
	text, err := os.ReadFile(filepath.Join(n.root, "/proc/1/mountinfo"))
	if err != nil {
		return nil, err
	}
	mounts, err := mountinfo.Parse(string(text))
	for _, mount := range mounts {
		if mount.Source == dataset {
			return os.OpenRoot(filepath.Join(n.root, mount.Point))
		}
	}
	return nil, errors.Join(err, fmt.Errorf("dataset %s has no files", dataset))
}
