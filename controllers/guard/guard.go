// Package guard proves, immediately before a pool or a disk is changed, that it is the intended one.
package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// Disks checks the node's disks. host.Node implements it.
type Disks interface {
	Check(wish host.Wish) (host.Disk, error)
	Identify(path string) (host.Disk, error)
	Verify(checked host.Disk) error
	Untouched(checked host.Disk) error
	StillUnused(checked []host.Disk) error
	Wipe(wish host.Wish) (host.Disk, error)
	Answer(path string) error
	Settle()
	PoolUsers(pool string, own ...string) ([]string, error)
	RemoveFolders(top, folder string) error
	MakeMountPoint(top, point string) error
	MakeVolumeFolder(top, point, dataset string) error
	Mounted(top, point, dataset string) (bool, error)
	NestedMounts(pool string, points ...string) ([]string, error)
	OpenDataset(dataset string, readOnly bool) (*os.Root, error)
}

var (
	_ Disks = (*host.Node)(nil)
	_ Disks = (*Bounded)(nil)
)

// ErrNotOurs means that a pool does not carry the object's mark, or is not the observed one.
var ErrNotOurs = errors.New("the pool does not belong to this BenchmarkPool")

// Prove proves, from the current state of ZFS, that a pool belongs to the BenchmarkPool and is the intended one.
func Prove(ctx context.Context, host *zfs.Client, pool *v1alpha1.BenchmarkPool, guid string) error {
	name := naming.PoolName(pool)
	summary, err := host.Pool(ctx, name)
	if err != nil {
		return fmt.Errorf("confirm which pool %s is: %w", name, err)
	}
	if summary.GUID != guid {
		return fmt.Errorf("pool %s has guid %s instead of %s: %w", name, summary.GUID, guid, ErrNotOurs)
	}
	marks, err := host.DatasetProperties(ctx, []string{naming.PropertyUID}, name)
	if err != nil {
		return fmt.Errorf("confirm the owner of pool %s: %w", name, err)
	}
	live := pools.LivePool{PoolSummary: summary, DatasetProperties: marks}
	if !live.OwnedBy(string(pool.UID)) {
		return fmt.Errorf("pool %s (guid %s) does not carry %s=%s: %w", name, guid, naming.PropertyUID, pool.UID, ErrNotOurs)
	}
	return nil
}

// Vacate unmounts the agent's own mounts of the pool, and then proves that the pool is unused and ours. Call it before an export or
// destroy, because these unmount everything even if they fail.
func Vacate(ctx context.Context, host *zfs.Client, disks Disks, pool *v1alpha1.BenchmarkPool, guid string) error {
	if err := unmountOwn(ctx, host, disks, pool, guid); err != nil {
		return err
	}
	if err := Unused(disks, naming.PoolName(pool)); err != nil {
		return err
	}
	return Prove(ctx, host, pool, guid)
}

// unmountOwn unmounts the agent's own mounts, if there are no others.
func unmountOwn(ctx context.Context, host *zfs.Client, disks Disks, pool *v1alpha1.BenchmarkPool, guid string) error {
	own := naming.MountPoints(pool)
	if len(own) == 0 {
		return nil
	}
	if err := Unused(disks, naming.PoolName(pool), own...); err != nil {
		return err
	}
	if err := Prove(ctx, host, pool, guid); err != nil {
		return err
	}
	datasets, err := host.Datasets(ctx, naming.PoolName(pool))
	if err != nil {
		return fmt.Errorf("look for what is mounted of pool %s: %w", naming.PoolName(pool), err)
	}
	for _, dataset := range datasets {
		if dataset.Mounted && slices.Contains(own, dataset.MountPoint) {
			if err := host.Unmount(ctx, dataset.Name); err != nil {
				return err
			}
		}
	}
	return unmounted(disks, pool, own)
}

// Unused checks that a pool, or a dataset with its children, is unused. It ignores the given mount points, which are the agent's own.
func Unused(disks Disks, name string, own ...string) error {
	users, err := disks.PoolUsers(name, own...)
	if err != nil {
		return fmt.Errorf("find the users of %s: %w", name, err)
	}
	if len(users) > 0 {
		return fmt.Errorf("%s is in use: %s", name, strings.Join(users, "; "))
	}
	return nil
}

// maxTakes is the maximum number of runs of a command that takes disks, if the command does not find the partitions that it has created
// itself.
const maxTakes = 3

// OnDisks runs a command that takes disks, if the command is still wanted. The disks are checked again, wiped if they are listed for reuse,
// looked at once more all together, and verified right before and right after the command. prove shows that the pool is the intended one.
// It comes before the last look at users and paths, because it takes time in which a link may move to another disk. The command is a single
// one: it partitions each disk and then looks for the partition by a link that udev creates. On a slow disk, udev may be recreating the
// link at that moment. The command then fails without changing the pool. It is run again if it is still wanted, after the same checks.
func OnDisks(disks Disks, template v1alpha1.PoolTemplate, taken []pools.Disk, still, prove, command func() error) error {
	var failed error
	for range maxTakes {
		disks.Settle() // wait here, so that nothing waits between the checks and the command
		if err := still(); err != nil {
			return errors.Join(failed, err)
		}
		checked, err := ready(disks, template, taken)
		if err == nil {
			err = stillFree(disks, checked, prove)
		}
		if err != nil {
			return errors.Join(failed, err)
		}
		failed = Steady(disks, checked, command)
		if !errors.Is(failed, zfs.NotFound) && !errors.Is(failed, zfs.NoPartition) {
			break
		}
	}
	return failed
}

// ready checks or wipes disks right before a command takes them.
func ready(disks Disks, template v1alpha1.PoolTemplate, taken []pools.Disk) ([]host.Disk, error) {
	var checked []host.Disk
	for _, disk := range taken {
		wish := host.Wish{Path: disk.Path, MinBytes: minBytes(template), Reuse: disk.Reuse, Right: disk.Right}
		prepare := disks.Check // the disk may have been used since the planner's check
		if disk.Reuse != "" {
			prepare = disks.Wipe
		}
		now, err := prepare(wish)
		if err != nil {
			return nil, err
		}
		if now.Number != disk.Number || now.Sequence != disk.Sequence { // the turn covers the disk that was checked
			return nil, fmt.Errorf("%s leads to another disk since it was checked: it was %s and is %s now", disk.Path, disk.Number, now.Number)
		}
		checked = append(checked, now)
	}
	return checked, nil
}

// stillFree looks at all disks once more: checks and wipes take minutes if there are many disks, and meanwhile a program may have begun to
// use one that was checked before. The search for users comes last, because it is the only one that finds a program that has not written
// yet.
func stillFree(disks Disks, checked []host.Disk, prove func() error) error {
	for _, disk := range checked {
		if err := disks.Untouched(disk); err != nil {
			return err
		}
	}
	if err := prove(); err != nil {
		return err
	}
	return disks.StillUnused(checked)
}

// Record writes disks into the status of a BenchmarkPool before a command adds them to its pool, if the object still has the given version.
// If the node goes down right after the command, only this record shows on which disks to look for the pool.
func Record(ctx context.Context, writer client.StatusClient, pool *v1alpha1.BenchmarkPool, disks []pools.Disk) error {
	changed := pool.DeepCopy()
	for _, disk := range disks {
		if path := v1alpha1.DevicePath(disk.Path); !slices.Contains(changed.Status.Joining, path) {
			changed.Status.Joining = append(changed.Status.Joining, path)
		}
	}
	if len(changed.Status.Joining) == len(pool.Status.Joining) {
		return nil
	}
	if err := writer.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("record the disks that are added to the pool of BenchmarkPool %s: %w", pool.Name, err)
	}
	pool.Status.Joining = changed.Status.Joining
	pool.SetResourceVersion(changed.GetResourceVersion())
	return nil
}

// Steady runs a command on paths of disks. Right before and right after it, each path has to lead to the disk that was checked.
func Steady(disks Disks, checked []host.Disk, command func() error) error {
	verify := func() error {
		for _, disk := range checked {
			if err := disks.Verify(disk); err != nil {
				return err
			}
		}
		return nil
	}
	if err := verify(); err != nil {
		return err
	}
	if err := command(); err != nil {
		return err
	}
	if err := verify(); err != nil {
		return fmt.Errorf("the command was run, but a path changed meanwhile; check 'zpool status' before using the pool: %w", err)
	}
	return nil
}

// Rivals returns the other BenchmarkPools of the pool's node. live must read from the API server: the order of claims on a disk must not
// depend on a lagging cache.
func Rivals(ctx context.Context, live client.Reader, pool *v1alpha1.BenchmarkPool) ([]v1alpha1.BenchmarkPool, error) {
	var pools v1alpha1.BenchmarkPoolList
	if err := live.List(ctx, &pools, client.MatchingFields{v1alpha1.FieldNodeName: pool.Spec.NodeName}); err != nil {
		return nil, fmt.Errorf("list BenchmarkPools of node %s: %w", pool.Spec.NodeName, err)
	}
	return slices.DeleteFunc(pools.Items, func(other v1alpha1.BenchmarkPool) bool { return other.UID == pool.UID }), nil
}

// Unfinished returns the PoolOperations of a node that have no outcome yet. It reads them from the API server in pages, because the
// documents of finished ones are large.
func Unfinished(ctx context.Context, live client.Reader, node string) ([]v1alpha1.PoolOperation, error) {
	const few = 16
	var all []v1alpha1.PoolOperation
	for next := ""; ; {
		var page v1alpha1.PoolOperationList
		err := live.List(ctx, &page, client.MatchingFields{v1alpha1.FieldNodeName: node}, client.Limit(few), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("list PoolOperations of node %s: %w", node, err)
		}
		for i := range page.Items {
			if page.Items[i].Status.Outcome == "" {
				all = append(all, page.Items[i])
			}
		}
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// Survey checks the disks that a pool wants, and identifies those that others claim or that a live pool has: two paths may lead to one
// disk. Only granted disks are checked, because the owner of a disk cannot mount it while it is open. For the same reason, no disk of the
// live pool that is offline is checked: it could not come back meanwhile.
func Survey(disks Disks, pool *v1alpha1.BenchmarkPool, policy pools.DevicePolicy, wanted []string, granted func(path string) bool,
	leaves []zfs.VdevStatus, rivals []v1alpha1.BenchmarkPool) map[string]pools.Disk {
	seen := map[string]pools.Disk{}
	away := offline(disks, leaves)
	checked := slices.DeleteFunc(slices.Clone(wanted), func(path string) bool {
		if !granted(path) || len(away) == 0 {
			return !granted(path)
		}
		disk, _ := disks.Identify(path)
		return slices.Contains(away, disk.Number)
	})
	// Check them concurrently: sequential checks would wait for one silent disk after another. The results are collected below.
	_ = Answering(disks, checked)
	for _, path := range wanted {
		if slices.Contains(checked, path) {
			seen[path] = look(disks, path, pool.Spec.PoolTemplate, policy.Right(pool.Spec.Namespace, path))
			continue
		}
		seen[path] = identify(disks, path)
	}
	var others []string
	for _, leaf := range leaves {
		others = append(others, pools.LeafPaths(leaf)...)
	}
	for i := range rivals {
		others = append(others, objects.ClaimedDevices(&rivals[i])...)
	}
	for _, path := range others {
		if _, known := seen[path]; !known && strings.HasPrefix(path, "/dev/disk/") {
			seen[path] = identify(disks, path)
		}
	}
	return seen
}

// offline returns the numbers of the disks that are offline in a live pool.
func offline(disks Disks, leaves []zfs.VdevStatus) (numbers []string) {
	for _, leaf := range leaves {
		if leaf.State != zfs.StateOffline {
			continue
		}
		for _, path := range StablePaths(pools.LeafPaths(leaf)) {
			if disk, _ := disks.Identify(path); disk.Number != "" {
				numbers = append(numbers, disk.Number)
			}
		}
	}
	return numbers
}

// identify finds the disk that a path leads to, without checking it. The result always has a Refusal, so the disk is never taken.
func identify(disks Disks, path string) pools.Disk {
	disk, refusal := disks.Identify(path)
	if refusal == nil {
		refusal = fmt.Errorf("%s has not been checked", path)
	}
	return pools.Disk{Disk: disk, Refusal: refusal}
}

// look checks a disk. If the disk is refused, and the spec lists its serial number for reuse, look checks it again for reuse.
func look(disks Disks, path string, template v1alpha1.PoolTemplate, right host.Right) pools.Disk {
	wish := host.Wish{Path: path, MinBytes: minBytes(template), Right: right}
	disk, refusal := disks.Check(wish)
	if refusal == nil || template.Reuse == nil || !slices.Contains(template.Reuse.Serials, disk.Serial) {
		return pools.Disk{Disk: disk, Refusal: refusal}
	}
	wish.Reuse = disk.Serial
	disk, refusal = disks.Check(wish)
	if refusal != nil {
		return pools.Disk{Disk: disk, Refusal: refusal}
	}
	return pools.Disk{Disk: disk, Reuse: wish.Reuse, Right: right}
}

func minBytes(template v1alpha1.PoolTemplate) int64 {
	if template.MinDeviceSize == nil {
		return 0
	}
	return template.MinDeviceSize.Value()
}
