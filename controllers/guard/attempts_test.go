package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/internal/zfs"
)

// bootedNode is a node that boots, and on which time passes.
type bootedNode struct {
	*gomega.WithT
	root  string
	boots int
}

func newBootedNode(t *testing.T) *bootedNode {
	t.Helper()
	n := &bootedNode{WithT: gomega.NewWithT(t), root: t.TempDir()}
	n.boot()
	return n
}

func (n *bootedNode) write(path, text string) {
	path = filepath.Join(n.root, path)
	n.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(gomega.Succeed())
	n.Expect(os.WriteFile(path, []byte(text), 0o600)).To(gomega.Succeed())
}

func (n *bootedNode) boot() {
	n.boots++
	n.write("/proc/sys/kernel/random/boot_id", fmt.Sprintf("boot-%d\n", n.boots))
	n.uptime(30)
}

func (n *bootedNode) uptime(seconds int) {
	n.write("/proc/uptime", fmt.Sprintf("%d.42 99.10\n", seconds))
}

// stops runs an attempt during which the node stops.
func (n *bootedNode) stops(pool types.UID) {
	defer func() {
		_ = recover()
		n.boot()
	}()
	_ = (&Attempts{Root: n.root}).Try(pool, func() error { panic("the node has stopped") })
}

// shutDown asks the agent to end, and boots the node again.
func (n *bootedNode) shutDown(a *Attempts) {
	asked, ask := context.WithCancel(context.Background())
	ask()
	n.Expect(a.Start(asked)).To(gomega.Succeed())
	n.boot()
}

func TestAttempts(t *testing.T) {
	refused := errors.New("no such pool")
	for name, test := range map[string]struct {
		happens func(n *bootedNode, a *Attempts)
		want    int
	}{
		"nothing": {func(*bootedNode, *Attempts) {}, 0},
		"the node stops twice": {func(n *bootedNode, _ *Attempts) {
			n.stops("uid")
			n.stops("uid")
		}, 2},
		"right after the import": {func(n *bootedNode, a *Attempts) {
			n.Expect(a.Try("uid", func() error { return nil })).To(gomega.Succeed())
			n.uptime(60)
			n.Expect(a.Imported("uid")).To(gomega.Succeed())
			n.boot()
		}, 1},
		"a minute after the import": {func(n *bootedNode, a *Attempts) {
			n.stops("uid")
			n.Expect(a.Try("uid", func() error { return nil })).To(gomega.Succeed())
			n.uptime(90)
			n.Expect(a.Imported("uid")).To(gomega.Succeed())
			n.boot()
		}, 0},
		"a long import": {func(n *bootedNode, a *Attempts) {
			n.Expect(a.Try("uid", func() error { n.uptime(600); return nil })).To(gomega.Succeed())
			n.Expect(a.Imported("uid")).To(gomega.Succeed())
			n.boot()
		}, 1},
		"the pool is still absent": {func(n *bootedNode, a *Attempts) {
			n.stops("uid")
			n.Expect(a.Try("uid", func() error { return refused })).To(gomega.MatchError(refused))
			n.Expect(a.Survived("uid")).To(gomega.Equal(1))
			n.boot()
		}, 1},
		"failed, but may be imported": {func(n *bootedNode, a *Attempts) {
			n.Expect(a.Try("uid", func() error { return refused })).To(gomega.MatchError(refused))
			n.boot()
		}, 1},
		"shut down in order": {func(n *bootedNode, a *Attempts) {
			n.Expect(a.Try("uid", func() error { return nil })).To(gomega.Succeed())
			n.shutDown(a)
		}, 0},
		"shut down while it hangs": {func(n *bootedNode, a *Attempts) {
			hangs := &zfs.Error{Kind: zfs.Timeout}
			n.Expect(a.Try("uid", func() error { return hangs })).To(gomega.MatchError(hangs))
			n.shutDown(a)
		}, 1},
		"shut down after a failure": {func(n *bootedNode, a *Attempts) {
			n.Expect(a.Try("uid", func() error { return refused })).To(gomega.MatchError(refused))
			n.shutDown(a)
		}, 0},
		"the agent is updated": {func(n *bootedNode, a *Attempts) {
			n.stops("uid")
			n.Expect(a.Try("uid", func() error { return nil })).To(gomega.Succeed())
			n.shutDown(a)
			n.boots -= 1
			n.write("/proc/sys/kernel/random/boot_id", fmt.Sprintf("boot-%d\n", n.boots)) // the same boot as before
			n.Expect((&Attempts{Root: n.root}).Imported("uid")).To(gomega.Succeed())
			n.boots++
			n.boot()
		}, 2},
		"more often than is kept": {func(n *bootedNode, _ *Attempts) {
			for range attemptsKept + 3 {
				n.stops("uid")
			}
		}, attemptsKept},
		"forgotten": {func(n *bootedNode, a *Attempts) {
			n.stops("uid")
			n.Expect(a.Forget("uid")).To(gomega.Succeed())
		}, 0},
		"another pool": {func(n *bootedNode, _ *Attempts) { n.stops("other") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBootedNode(t)
			test.happens(n, &Attempts{Root: n.root})
			n.Expect((&Attempts{Root: n.root}).Survived("uid")).To(gomega.Equal(test.want))
		})
	}
}

// TestNothingIsTriedUnrecorded: the root of the node is full or read-only.
func TestNothingIsTriedUnrecorded(t *testing.T) {
	n := newBootedNode(t)
	n.write("/var/lib/storagebench/attempts", "a file where the folder belongs")
	ran := false
	n.Expect((&Attempts{Root: n.root}).Try("uid", func() error { ran = true; return nil })).NotTo(gomega.Succeed())
	n.Expect(ran).To(gomega.BeFalse())
}
