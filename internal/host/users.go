package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// PoolUsers lists the users of a pool. Empty means unused. Call it before each export and destroy: if these fail because the pool is busy,
// they have already unmounted what they could, even under running pods. A mount at one of the agent's own mount points does not count as a
// use by itself, nor do its copies in other mount namespaces that are unmounted with it.
func (n *Node) PoolUsers(pool string, own ...string) ([]string, error) {
	var users []string
	told := map[string]bool{}
	tell := func(format string, values ...any) {
		if text := fmt.Sprintf(format, values...); !told[text] {
			told[text] = true
			users = append(users, text)
		}
	}
	volumes, err := n.volumes(pool)
	if err != nil {
		return nil, err
	}
	members := map[string]string{}
	for kernel, name := range volumes {
		number, err := n.text("sys/class/block", kernel, "dev")
		if err != nil {
			return nil, err
		}
		members[number] = kernel
		if err := n.volumeUsers(kernel, number, name, tell); err != nil {
			return nil, err
		}
	}
	var datasets []seenMount
	err = n.eachMount(func(mount seenMount) {
		if mount.FSType == "zfs" && ofPool(mount.Source, pool) {
			datasets = append(datasets, mount)
		}
		if kernel := n.mounted(mount.Mount, members); kernel != "" {
			tell("volume %s (%s) is mounted at %s, seen by process %s", volumes[kernel], kernel, mount.Point, mount.process)
		}
	})
	for _, mount := range others(datasets, own) {
		tell("dataset %s is mounted at %s, seen by process %s", mount.Source, mount.Point, mount.process)
	}
	return users, err
}

// others are the mounts that remain when the node's own mounts at some points are unmounted, which also unmounts mounts in other
// namespaces. A pod that sees the node's root receives the agent's mounts while it runs (HostToContainer, Bidirectional). A private copy of
// the root that a pod got with its namespace is its own, and keeps the pool in use.
func others(datasets []seenMount, own []string) []seenMount {
	var all []mountinfo.Standing
	for _, mount := range datasets {
		all = append(all, mount.Standing)
	}
	isOwn := func(mount seenMount) bool { return mount.process == nodeProcess && slices.Contains(own, mount.Point) }
	var unmounted []mountinfo.Propagation
	for _, mount := range datasets {
		if isOwn(mount) {
			unmounted = append(unmounted, mountinfo.NewPropagation(mount.Standing, all))
		}
	}
	return slices.DeleteFunc(datasets, func(mount seenMount) bool {
		return isOwn(mount) || slices.ContainsFunc(unmounted, func(p mountinfo.Propagation) bool { return p.Reaches(mount.Standing) })
	})
}

// ofPool reports whether a dataset or snapshot is one of the pool.
func ofPool(dataset, pool string) bool {
	rest, found := strings.CutPrefix(dataset, pool)
	return found && (rest == "" || rest[0] == '/' || rest[0] == '@')
}

// volumes are the block devices of the pool's volumes, with their names.
func (n *Node) volumes(pool string) (map[string]string, error) {
	volumes := map[string]string{}
	root := n.path("dev/zvol", pool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		kernel, err := n.resolve(filepath.Join("/dev/zvol", pool, below))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		// Partitions of a volume have links of their own; who uses one holds the whole volume.
		volumes[kernel] = pool + "/" + below
		return nil
	})
	return volumes, err
}

func (n *Node) volumeUsers(kernel, number, name string, tell func(format string, values ...any)) error {
	holders, err := n.names("sys/class/block", kernel, "holders")
	if err != nil {
		return err
	}
	for _, holder := range holders {
		tell("volume %s (%s) is part of %s", name, kernel, holder)
	}
	file, err := n.open(kernel, number, os.O_RDONLY|unix.O_EXCL)
	switch {
	case errors.Is(err, unix.EBUSY):
		tell("volume %s (%s) is in exclusive use", name, kernel)
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking for users of volume %s: %w", name, err)
	}
	return file.Close()
}
