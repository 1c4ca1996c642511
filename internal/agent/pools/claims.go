package pools

import (
	"errors"
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// DevicePolicy is the admin's allowlist. Without a grant, no device is allowed.
type DevicePolicy []DeviceGrant

// DeviceGrant allows devices.
type DeviceGrant struct {
	// Namespace that may use them. Empty is for pools without a namespace.
	Namespace string
	// Pattern of the stable path. '*' matches anything but '/'.
	Pattern string
	// Reuse lets the namespace list disks whose file systems may be destroyed. Pools without a namespace belong to an admin and need no
	// such right.
	Reuse bool
}

// reuseSuffix ends a grant that lets a namespace destroy file systems.
const reuseSuffix = ":reuse"

// ParseDeviceGrant reads PATTERN, NAMESPACE=PATTERN or NAMESPACE=PATTERN:reuse.
func ParseDeviceGrant(text string) (DeviceGrant, error) {
	grant := DeviceGrant{Pattern: text}
	if !strings.HasPrefix(text, "/") {
		namespace, pattern, found := strings.Cut(text, "=")
		if !found || namespace == "" {
			return DeviceGrant{}, fmt.Errorf("device grant %q: write PATTERN or NAMESPACE=PATTERN, such as lab=/dev/disk/by-id/nvme-bench-*", text)
		}
		pattern, reuse := strings.CutSuffix(pattern, reuseSuffix)
		grant = DeviceGrant{Namespace: namespace, Pattern: pattern, Reuse: reuse}
	}
	if strings.HasSuffix(grant.Pattern, reuseSuffix) {
		return DeviceGrant{},
			fmt.Errorf("device grant %q: remove '%s', which is for grants to a namespace: an admin's pool may reuse every disk that it may use",
				text, reuseSuffix)
	}
	if !strings.HasPrefix(grant.Pattern, "/dev/disk/by-id/") && !strings.HasPrefix(grant.Pattern, "/dev/disk/by-path/") {
		return DeviceGrant{}, fmt.Errorf("device grant %q: start the pattern with /dev/disk/by-id/ or /dev/disk/by-path/", text)
	}
	if _, err := path.Match(grant.Pattern, ""); err != nil {
		return DeviceGrant{}, fmt.Errorf("device grant %q: %w", text, err)
	}
	return grant, nil
}

// Allows reports whether a namespace may use a device. A grant to one namespace is no grant to another.
func (p DevicePolicy) Allows(namespace, device string) bool {
	return slices.ContainsFunc(p, func(grant DeviceGrant) bool { return grant.matches(namespace, device) })
}

func (g DeviceGrant) matches(namespace, device string) bool {
	matched, err := path.Match(g.Pattern, device)
	return err == nil && matched && g.Namespace == namespace
}

// MayOpen reports whether a disk may be opened for a pool: the disk is granted, or the status says that the pool has it or may have it. So
// a pool whose grant was withdrawn can still be found, exported and destroyed. The spec alone gives no right to open a disk.
func (p DevicePolicy) MayOpen(pool *v1alpha1.BenchmarkPool, path string) bool {
	return p.Allows(pool.Spec.Namespace, path) || slices.Contains(pool.Status.Joining, v1alpha1.DevicePath(path)) ||
		slices.ContainsFunc(pool.Status.Vdevs, func(vdev v1alpha1.VdevStatus) bool {
			return vdev.State != StateLeft && objects.WholeDisk(vdev.Name) == path
		})
}

// Right returns which old contents of a device a namespace may destroy.
func (p DevicePolicy) Right(namespace, path string) host.Right {
	switch {
	case namespace == "" && p.Allows(namespace, path):
		return host.AnyContents
	case slices.ContainsFunc(p, func(grant DeviceGrant) bool { return grant.Reuse && grant.matches(namespace, path) }):
		return host.FileSystems
	}
	return host.NoContents
}

// Take returns the given disks if the pool may have all of them, and otherwise a decision with the reason why not.
func (s State) Take(paths []string) ([]Disk, *Decision) {
	refuse := func(reason, format string, values ...any) ([]Disk, *Decision) {
		return nil, new(stall(reason, format, values...))
	}
	for _, path := range paths {
		if !s.Policy.Allows(s.Pool.Spec.Namespace, path) {
			return refuse(v1alpha1.ReasonPoolDeviceDenied, "the allowlist of the agent on node %s does not grant %s to %s: ask the cluster's admin",
				s.Pool.Spec.NodeName, path, onBehalf(s.Pool))
		}
	}
	if path := s.reuseDenied(paths); path != "" {
		return refuse(v1alpha1.ReasonPoolDeviceDenied,
			"the allowlist of the agent on node %s lets %s use %s, but not destroy its contents: remove spec.reuse, "+
				"or ask the cluster's admin to append '%s' to the grant", s.Pool.Spec.NodeName, onBehalf(s.Pool), path, reuseSuffix)
	}
	if problem := s.conflict(paths); problem != "" {
		return refuse(v1alpha1.ReasonPoolConflict, "%s", problem)
	}
	var disks []Disk
	var refusals []error
	number := map[string]string{}
	for _, path := range paths {
		disk, seen := s.Disks[path]
		if !seen {
			return refuse(v1alpha1.ReasonPoolDeviceRefused, "%s has not been checked yet", path)
		}
		if other := number[disk.Number]; other != "" && disk.Number != "" {
			return refuse(v1alpha1.ReasonPoolDeviceRefused, "%s and %s are the same disk (%s): name it only once", other, path, disk.Kernel)
		}
		number[disk.Number] = path
		refusals = append(refusals, disk.Refusal, s.sectors(path, disk))
		disks = append(disks, disk)
	}
	if refused := errors.Join(refusals...); refused != nil {
		return refuse(v1alpha1.ReasonPoolDeviceRefused, "%s", strings.ReplaceAll(refused.Error(), "\n", "; "))
	}
	return disks, nil
}

// sectors refuses a disk whose sectors are larger than the blocks that the pool asks for. ZFS would silently make the blocks larger, and
// still report the requested ashift.
func (s State) sectors(path string, disk Disk) error {
	ashift := s.Pool.Spec.Ashift
	if ashift == 0 || disk.LogicalSectorBytes <= 1<<ashift {
		return nil
	}
	return fmt.Errorf("%s has sectors of %d bytes, so blocks of %d (ashift %d) are not possible: create the pool with ashift: %d", path,
		disk.LogicalSectorBytes, 1<<ashift, ashift, bits.Len64(uint64(disk.LogicalSectorBytes-1)))
}

// reuseDenied returns a disk whose contents the pool wants to destroy but may not, or "" if there is none.
func (s State) reuseDenied(paths []string) string {
	if s.Pool.Spec.Reuse == nil {
		return ""
	}
	at := slices.IndexFunc(paths, func(path string) bool { return s.Policy.Right(s.Pool.Spec.Namespace, path) == host.NoContents })
	if at < 0 {
		return ""
	}
	return paths[at]
}

func onBehalf(pool *v1alpha1.BenchmarkPool) string {
	if pool.Spec.Namespace == "" {
		return "pools without a namespace"
	}
	return "namespace " + pool.Spec.Namespace
}

// claims returns the path by which another BenchmarkPool claims a disk, or "" if it does not claim it.
func (s State) claims(rival *v1alpha1.BenchmarkPool, path string) string {
	number := s.Disks[path].Number
	for _, other := range objects.ClaimedDevices(rival) {
		if other == path || number != "" && s.Disks[other].Number == number {
			return other
		}
	}
	return ""
}

func holdsDisk(pool *v1alpha1.BenchmarkPool, path string) bool {
	return slices.ContainsFunc(pool.Status.Vdevs, func(vdev v1alpha1.VdevStatus) bool { return objects.WholeDisk(vdev.Name) == path })
}

// prevails reports whether the claim of a rival has priority over that of a pool which does not hold the disk.
func prevails(rival *v1alpha1.BenchmarkPool, holds bool, own *v1alpha1.BenchmarkPool) bool {
	if holds || !rival.CreationTimestamp.Equal(&own.CreationTimestamp) {
		return holds || rival.CreationTimestamp.Before(&own.CreationTimestamp)
	}
	return rival.UID < own.UID
}

// LeafPaths returns the possible paths of a vdev of a live pool: the current ones, and the one it had before it was lost.
func LeafPaths(leaf zfs.VdevStatus) []string {
	var paths []string
	for _, text := range []string{leaf.Path, leaf.Name, strings.TrimPrefix(leaf.Note, "was ")} {
		if whole := objects.WholeDisk(text); strings.HasPrefix(whole, "/dev/") && !slices.Contains(paths, whole) {
			paths = append(paths, whole)
		}
	}
	return paths
}

// missing reports whether a disk was not visible, so that its contents are unknown.
func (d Disk) missing() bool {
	return d.Number == "" || errors.Is(d.Refusal, host.Missing) || errors.Is(d.Refusal, host.Unreadable) || d.silent()
}

// Blank reports whether the disk has been checked and shows no label of a pool.
func (d Disk) Blank() bool { return d.Refusal == nil && len(d.Pools) == 0 }

// silent reports whether a disk does not respond: its contents are unknown, and a command that waits for it would never end.
func (d Disk) silent() bool { return errors.Is(d.Refusal, host.Silent) }

// silentDisks returns which disks of a pool that is not imported do not respond, or "" if all do. A pool with such disks must not be
// imported: the kernel would wait for them, and block all other pools of the node.
func (s State) silentDisks() string {
	var told []string
	for _, path := range objects.ClaimedDevices(s.Pool) {
		if disk := s.Disks[path]; disk.silent() {
			told = append(told, disk.Refusal.Error())
		}
	}
	return strings.Join(told, "; ")
}
