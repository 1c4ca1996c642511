package guard

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

const silentDisk, sameDisk, goodDisk = "/dev/disk/by-id/silent", "/dev/disk/by-path/silent", "/dev/disk/by-id/good"

// stubborn simulates disks. Some of them hang until a test releases them.
type stubborn struct {
	Disks
	mutex sync.Mutex
	// hangs are the calls that hang, each as a method and a path.
	hangs map[string]chan struct{}
	begun []string
	// while is the call during which a disk gets a user, and refuses the look that finds it from then on: a method and a path each.
	while, refuses string
	used           bool
	// written counts the writes of a wipe after the request to stop.
	written int
}

func (s *stubborn) at(method, path string) {
	s.mutex.Lock()
	s.begun = append(s.begun, method+" "+path)
	s.used = s.used || method+" "+path == s.while
	wait := s.hangs[method+" "+path]
	s.mutex.Unlock()
	if wait != nil {
		<-wait
	}
}

func (s *stubborn) Check(wish host.Wish) (host.Disk, error) {
	s.at("Check", wish.Path)
	return s.Identify(wish.Path)
}

func (s *stubborn) Identify(path string) (host.Disk, error) {
	s.at("Identify", path)
	number := path
	if path == sameDisk {
		number = silentDisk
	}
	return host.Disk{Path: path, Number: number, Sequence: number}, nil
}

func (s *stubborn) Verify(checked host.Disk) error {
	s.at("Verify", checked.Path)
	return nil
}

func (s *stubborn) Untouched(checked host.Disk) error {
	s.at("Untouched", checked.Path)
	return s.user("Untouched", checked)
}

func (s *stubborn) StillUnused(checked []host.Disk) error {
	s.at("StillUnused", fmt.Sprint(len(checked)))
	var all error
	for _, disk := range checked {
		all = errors.Join(all, s.user("StillUnused", disk))
	}
	return all
}

// user refuses the disk that has a user, in the look that finds it.
func (s *stubborn) user(method string, disk host.Disk) error {
	if !s.used || method+" "+disk.Path != s.refuses {
		return nil
	}
	return &host.RefusedError{Path: disk.Path, Findings: []host.Finding{{Reason: host.InUse}}}
}

func (s *stubborn) Answer(path string) error {
	s.at("Answer", path)
	return nil
}

func (s *stubborn) Settle() { s.at("Settle", "") }

func (s *stubborn) Wipe(wish host.Wish) (host.Disk, error) {
	s.at("Wipe", wish.Path)
	select {
	case <-wish.GivenUp:
	default:
		s.mutex.Lock()
		s.written++
		s.mutex.Unlock()
	}
	return s.Identify(wish.Path)
}

func (s *stubborn) PoolUsers(pool string, _ ...string) ([]string, error) {
	s.at("PoolUsers", pool)
	return nil, nil
}

func (s *stubborn) MakeMountPoint(_, point string) error {
	s.at("MakeMountPoint", point)
	return nil
}

func (s *stubborn) MakeVolumeFolder(_, point, _ string) error {
	s.at("MakeVolumeFolder", point)
	return nil
}

func (s *stubborn) Mounted(_, point, _ string) (bool, error) {
	s.at("Mounted", point)
	return true, nil
}

func (s *stubborn) OpenDataset(dataset string, _ bool) (*os.Root, error) {
	s.at("OpenDataset", dataset)
	return nil, nil
}

func (s *stubborn) RemoveFolders(_, folder string) error {
	s.at("RemoveFolders", folder)
	return nil
}

func (s *stubborn) count(look string) (count int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, begun := range s.begun {
		if begun == look {
			count++
		}
	}
	return count
}

func bounded(looks ...string) (*stubborn, *Bounded) {
	disks := &stubborn{hangs: map[string]chan struct{}{}}
	for _, look := range looks {
		disks.hangs[look] = make(chan struct{})
	}
	return disks, &Bounded{Disks: disks, Patience: 20 * time.Millisecond}
}

// pollers are the goroutines by which gomega waits.
const pollers = 2

// settled waits until nothing hangs any more.
func settled(t *testing.T, b *Bounded, goroutines int) {
	t.Helper()
	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
		g.Expect(b.Hanging()).To(gomega.BeEmpty())
		g.Expect(runtime.NumGoroutine()).To(gomega.BeNumerically("<=", goroutines+pollers), "goroutines")
	}).WithTimeout(time.Minute).WithPolling(time.Millisecond).Should(gomega.Succeed())
}

// TestASilentDiskIsAskedOnce: at most one check of a disk hangs, whatever the method and the path. All others fail at once.
func TestASilentDiskIsAskedOnce(t *testing.T) {
	before := runtime.NumGoroutine()
	disks, b := bounded("Answer " + silentDisk)
	looks := map[string]func(path string) error{
		"Check":  func(path string) error { _, err := b.Check(host.Wish{Path: path}); return err },
		"Wipe":   func(path string) error { _, err := b.Wipe(host.Wish{Path: path, Reuse: "1"}); return err },
		"Answer": b.Answer,
	}
	if err := b.Answer(silentDisk); !IsSilent(err) || !strings.Contains(err.Error(), "it has not responded within 20ms. See 'dmesg'") {
		t.Fatalf("%v", err)
	}
	for range 50 {
		for name, look := range looks {
			for _, path := range []string{silentDisk, sameDisk} {
				if err := look(path); !IsSilent(err) || !strings.Contains(err.Error(), path+" is refused: it does not respond: "+silentDisk+
					", started at 2") {
					t.Fatalf("%s of %s: %v", name, path, err)
				}
			}
			if err := look(goodDisk); err != nil {
				t.Fatalf("%s of a disk that answers: %v", name, err)
			}
		}
	}
	if asked := disks.count("Answer "+silentDisk) + disks.count("Answer "+sameDisk); asked != 1 ||
		disks.count("Check "+silentDisk)+disks.count("Wipe "+sameDisk) != 0 {
		t.Errorf("the disk was asked %d times, and looked into", asked)
	}
	if more := runtime.NumGoroutine() - before; more > 10 || len(b.Hanging()) != 1 {
		t.Errorf("%d more goroutines, hanging are %v", more, b.Hanging())
	}
	close(disks.hangs["Answer "+silentDisk])
	settled(t, b, before)
	if _, err := b.Check(host.Wish{Path: sameDisk}); err != nil {
		t.Errorf("it answers again, but: %v", err)
	}
}

// TestEveryLookIsBounded: every check has a time limit, whichever call hangs.
func TestEveryLookIsBounded(t *testing.T) {
	before := runtime.NumGoroutine()
	for look, do := range map[string]func(b *Bounded) error{
		"Identify " + goodDisk:    func(b *Bounded) error { _, err := b.Identify(goodDisk); return err },
		"Verify " + goodDisk:      func(b *Bounded) error { return b.Verify(host.Disk{Path: goodDisk}) },
		"Untouched " + goodDisk:   func(b *Bounded) error { return b.Untouched(host.Disk{Path: goodDisk}) },
		"StillUnused 1":           func(b *Bounded) error { return b.StillUnused([]host.Disk{{Path: goodDisk}}) },
		"Check " + goodDisk:       func(b *Bounded) error { _, err := b.Check(host.Wish{Path: goodDisk}); return err },
		"Wipe " + goodDisk:        func(b *Bounded) error { _, err := b.Wipe(host.Wish{Path: goodDisk}); return err },
		"Answer " + goodDisk:      func(b *Bounded) error { return b.Answer(goodDisk) },
		"PoolUsers tank":          func(b *Bounded) error { _, err := b.PoolUsers("tank"); return err },
		"MakeMountPoint /point":   func(b *Bounded) error { return b.MakeMountPoint("/", "/point") },
		"MakeVolumeFolder /point": func(b *Bounded) error { return b.MakeVolumeFolder("/", "/point", "bench0/a") },
		"Mounted /point": func(b *Bounded) error {
			_, err := b.Mounted("/", "/point", "bench0/a")
			return err
		},
		"OpenDataset bench0/a": func(b *Bounded) error {
			_, err := b.OpenDataset("bench0/a", true)
			return err
		},
		"RemoveFolders /volumes": func(b *Bounded) error { return b.RemoveFolders("/", "/volumes") },
	} {
		disks, b := bounded(look)
		for range 2 {
			if err := do(b); !IsSilent(err) {
				t.Errorf("%s: %v", look, err)
			}
		}
		if disks.count(look) != 1 {
			t.Errorf("%s was begun %d times", look, disks.count(look))
		}
		close(disks.hangs[look])
		settled(t, b, before)
		if err := do(b); err != nil {
			t.Errorf("%s afterwards: %v", look, err)
		}
	}
}

// TestAWipeThatWasGivenUpWritesNothing: when the disk responds at last, it may belong to others.
func TestAWipeThatWasGivenUpWritesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	disks, b := bounded("Wipe " + goodDisk)
	if _, err := b.Wipe(host.Wish{Path: goodDisk, Reuse: "1"}); !IsSilent(err) {
		t.Fatal(err)
	}
	close(disks.hangs["Wipe "+goodDisk])
	settled(t, b, before)
	if disks.written != 0 {
		t.Error("it wrote after it had been given up")
	}
	if _, err := b.Wipe(host.Wish{Path: goodDisk, Reuse: "1"}); err != nil || disks.written != 1 {
		t.Errorf("a wipe that is waited for: %v, written %d times", err, disks.written)
	}
}

// TestHangingLooksAreBounded: the number of hanging checks of a node is limited.
func TestHangingLooksAreBounded(t *testing.T) {
	before := runtime.NumGoroutine()
	disks, b := bounded()
	b.Patience = time.Millisecond
	wait := make(chan struct{})
	for number := range hangingLooks + 10 {
		path := fmt.Sprint("/dev/disk/by-id/", number)
		disks.mutex.Lock()
		disks.hangs["Verify "+path] = wait
		disks.mutex.Unlock()
		if err := b.Verify(host.Disk{Path: path}); !IsSilent(err) {
			t.Fatal(err)
		}
	}
	if hanging := len(b.Hanging()); hanging != hangingLooks || runtime.NumGoroutine() > before+2*hangingLooks+2 {
		t.Errorf("%d looks hang, with %d goroutines", hanging, runtime.NumGoroutine()-before)
	}
	close(wait)
	settled(t, b, before)
}

// TestASurveyAsksAllAtOnce: many silent disks take no longer than one.
func TestASurveyAsksAllAtOnce(t *testing.T) {
	before := runtime.NumGoroutine()
	disks, b := bounded()
	b.Patience = 200 * time.Millisecond
	wait := make(chan struct{})
	var wanted []string
	for number := range 20 {
		wanted = append(wanted, fmt.Sprint("/dev/disk/by-id/", number))
		disks.hangs["Answer "+wanted[number]] = wait
	}
	begun := time.Now()
	seen := Survey(b, &v1alpha1.BenchmarkPool{}, nil, append(wanted, goodDisk, "/dev/disk/by-id/others"),
		func(path string) bool { return path != "/dev/disk/by-id/others" }, nil, nil)
	if spent := time.Since(begun); spent > 10*b.Patience {
		t.Errorf("it took %s", spent)
	}
	silent := 0
	for _, path := range wanted {
		if errors.Is(seen[path].Refusal, host.Silent) {
			silent++
		}
	}
	if silent != len(wanted) || seen[goodDisk].Refusal != nil || disks.count("Answer /dev/disk/by-id/others") != 0 {
		t.Errorf("%d of %d are silent, the good one: %v", silent, len(wanted), seen[goodDisk].Refusal)
	}
	close(wait)
	settled(t, b, before)
}

// TestNothingWaitsForASilentDisk: a command that would wait for a silent disk is not run.
func TestNothingWaitsForASilentDisk(t *testing.T) {
	disks, b := bounded("Answer " + silentDisk)
	defer close(disks.hangs["Answer "+silentDisk])
	if err := Answering(b, []string{goodDisk}); err != nil {
		t.Error(err)
	}
	if err := Answering(b, []string{goodDisk, sameDisk, silentDisk}); !errors.Is(err, ErrSilent) ||
		!strings.Contains(err.Error(), silentDisk) {
		t.Error(err)
	}
	ran := false
	taken := []pools.Disk{{Disk: host.Disk{Path: silentDisk, Number: silentDisk, Sequence: silentDisk}}}
	if err := OnDisks(b, v1alpha1.PoolTemplate{}, taken, wanted, wanted, func() error { ran = true; return nil }); !IsSilent(err) || ran {
		t.Errorf("%v, ran: %v", err, ran)
	}
}

// TestASwappedDiskIsNotTaken: the turn covers only the disk that was checked.
func TestASwappedDiskIsNotTaken(t *testing.T) {
	_, b := bounded()
	ran := 0
	run := func() error { ran++; return nil }
	taken := pools.Disk{Disk: host.Disk{Path: goodDisk, Number: goodDisk, Sequence: goodDisk}}
	if err := OnDisks(b, v1alpha1.PoolTemplate{}, []pools.Disk{taken}, wanted, wanted, run); err != nil || ran != 1 {
		t.Errorf("the same disk: %v, ran %d times", err, ran)
	}
	for _, change := range []func(d *host.Disk){func(d *host.Disk) { d.Number = "8:0" }, func(d *host.Disk) { d.Sequence = "7" }} {
		other := taken
		change(&other.Disk)
		if err := OnDisks(b, v1alpha1.PoolTemplate{}, []pools.Disk{other}, wanted, wanted, run); err == nil || ran != 1 {
			t.Errorf("another disk: %v, ran %d times", err, ran)
		}
	}
}

// TestAllDisksAreLookedAtOnceMore: if a disk gets a user after its check, while others are checked or wiped, or while the pool is proven,
// the command does not run.
func TestAllDisksAreLookedAtOnceMore(t *testing.T) {
	const first, second, third = "/dev/disk/by-id/1", "/dev/disk/by-id/2", "/dev/disk/by-id/3"
	for name, test := range map[string]struct {
		while, refuses string // the call during which a user comes, and the look that finds it
	}{
		"unused":                              {},
		"used while the last disk is checked": {"Check " + third, "StillUnused " + first},
		"used while a disk is wiped":          {"Wipe " + second, "StillUnused " + first},
		"written while a disk is wiped":       {"Wipe " + second, "Untouched " + first},
		"written after it was wiped":          {"Check " + third, "Untouched " + second},
		"used while the pool is proven":       {"prove bench0", "StillUnused " + third},
	} {
		disks, b := bounded()
		disks.while, disks.refuses = test.while, test.refuses
		var taken []pools.Disk
		for _, path := range []string{first, second, third} {
			taken = append(taken, pools.Disk{Disk: host.Disk{Path: path, Number: path, Sequence: path}})
		}
		taken[1].Reuse = "serial"
		prove := func() error { disks.at("prove", "bench0"); return nil }
		ran := false
		err := OnDisks(b, v1alpha1.PoolTemplate{}, taken, wanted, prove, func() error { ran = true; return nil })
		if unused := test.refuses == ""; ran != unused || errors.Is(err, host.InUse) == unused || unused && err != nil {
			t.Errorf("%s: ran %v, %v", name, ran, err)
		}
		if disks.count("StillUnused 3") > 1 {
			t.Errorf("%s: users are not looked for together: %q", name, disks.begun)
		}
	}
}

// wanted is a command that is still wanted.
func wanted() error { return nil }

// TestACommandThatMissesItsPartitionRunsAgain: it runs again if it is still wanted, after the same checks. A command with another error
// does not.
func TestACommandThatMissesItsPartitionRunsAgain(t *testing.T) {
	path := "/dev/disk/by-id/good"
	lost, other := &zfs.Error{Kind: zfs.NotFound, Stderr: "lost"}, &zfs.Error{Kind: zfs.Busy, Stderr: "busy"}
	for name, test := range map[string]struct {
		answers []error // of the command, one after another
		becomes string  // the disk at that path after the first one
		deleted bool    // the object, after the first one
		says    string
	}{
		"at once":            {answers: []error{nil}},
		"found":              {answers: []error{lost, nil}},
		"found late":         {answers: []error{&zfs.Error{Kind: zfs.NoPartition}, lost, nil}},
		"never found":        {answers: []error{lost, lost, lost}, says: "lost"},
		"another error":      {answers: []error{other}, says: "busy"},
		"another disk":       {answers: []error{lost}, becomes: "7:7", says: "leads to another disk"},
		"not wanted anymore": {answers: []error{lost}, deleted: true, says: "lost\ndeleted"},
	} {
		for _, reuse := range []string{"", "serial"} {
			disks, b := bounded()
			ran, asked := 0, 0
			taken := []pools.Disk{{Disk: host.Disk{Path: path, Number: path, Sequence: path}, Reuse: reuse}}
			still := func() error {
				asked++
				if test.deleted && ran > 0 {
					return errors.New("deleted")
				}
				return nil
			}
			err := OnDisks(b, v1alpha1.PoolTemplate{}, taken, still, wanted, func() error {
				ran++
				if disks.count("Check "+path)+disks.count("Wipe "+path) != ran || disks.count("Settle ") != ran || asked != ran {
					t.Errorf("%s: run %d, asked %d times, is after %q", name, ran, asked, disks.begun)
				}
				if test.becomes != "" {
					taken[0].Number = test.becomes
				}
				return test.answers[ran-1]
			})
			if ran != len(test.answers) || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: ran %d times: %v", name, ran, err)
			}
			if test.deleted && disks.count("Wipe "+path) > 1 {
				t.Errorf("%s: wiped for an object that is gone: %q", name, disks.begun)
			}
		}
	}
}

// TestPoolDisks: commands wait for the disks of a live pool and, if the stable path of one of them is unknown, for all disks that the
// object claims and that may be opened.
func TestPoolDisks(t *testing.T) {
	const a, b, joining = "/dev/disk/by-id/a", "/dev/disk/by-id/b", "/dev/disk/by-id/c"
	pool := &v1alpha1.BenchmarkPool{}
	pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{a, b}}}
	pool.Status.Joining = []v1alpha1.DevicePath{joining}
	granted := pools.DevicePolicy{{Pattern: a}, {Pattern: b}}
	status := func(paths ...string) *zfs.Status {
		live := &zfs.Status{}
		for _, path := range paths {
			live.Vdevs = append(live.Vdevs, zfs.VdevStatus{Type: "disk", Name: path, Path: path})
		}
		return live
	}
	for name, test := range map[string]struct {
		policy pools.DevicePolicy
		live   *zfs.Status
		want   []string
	}{
		"not imported":              {granted, nil, []string{a, b, joining}},
		"not imported, one granted": {granted[1:], nil, []string{b, joining}},
		"both":                      {granted, status(a+"-part1", b+"-part1"), []string{a, b, joining}},
		"both, without a grant":     {nil, status(a+"-part1", b+"-part1"), []string{a, b, joining}},
		"one has left":              {granted, status(a + "-part1"), []string{a, joining}},
		"with a spare":              {granted, status(a+"-part1", "draid1-0-0"), []string{a, joining}},
		"by another path":           {granted, status("/dev/disk/by-partuuid/1"), []string{a, b, joining, "/dev/disk/by-partuuid/1"}},
		"by kernel name":            {granted, status("/dev/sdb1"), []string{a, b, joining}},
		"by kernel name, ungranted": {granted[1:], status("/dev/sdb1"), []string{b, joining}},
	} {
		if got := PoolDisks(pool, test.policy, test.live); !slices.Equal(got, slices.Sorted(slices.Values(test.want))) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
