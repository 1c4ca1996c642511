package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

const (
	// toldUsers limits how many users are listed, and toldPath how much of a path is shown: tenants can have any number of mounts.
	toldUsers, toldPath = 32, 256
	// copiesLimit bounds the memory for copies of the agent's own mounts.
	copiesLimit = 1000
)

// users lists users up to a limit, and counts the others.
type users struct {
	told []string
	more int
}

func (u *users) tell(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	switch {
	case slices.Contains(u.told, text):
	case len(u.told) < toldUsers:
		u.told = append(u.told, text)
	default:
		u.more++
	}
}

func (u *users) all() []string {
	if u.more > 0 {
		return append(u.told, fmt.Sprintf("and %d more", u.more))
	}
	return u.told
}

// PoolUsers lists the users of a pool. Empty means unused. Call it before each export and destroy: if these fail because the pool is busy,
// they have already unmounted what they could, even under running pods. A mount at one of the agent's own mount points does not count as a
// use by itself, nor do its copies in other mount namespaces that are unmounted with it. A process with too many mounts to read counts as a
// user.
func (n *Node) PoolUsers(pool string, own ...string) ([]string, error) {
	found := &users{}
	volumes, err := n.volumes(pool)
	if err != nil {
		return nil, err
	}
	members := map[string]string{}
	for _, kernel := range slices.Sorted(maps.Keys(volumes)) {
		number, err := n.text("sys/class/block", kernel, "dev")
		if err != nil {
			return nil, err
		}
		members[number] = kernel
		if err := n.volumeUsers(kernel, number, volumes[kernel], found.tell); err != nil {
			return nil, err
		}
	}
	err = n.mountUsers(pool, own, found, volumes, members)
	if errors.Is(err, errManyMounts) {
		found.tell("%v", err)
		err = nil
	}
	return found.all(), err
}

// mountUsers finds mounts of the datasets and volumes of a pool.
func (n *Node) mountUsers(pool string, own []string, found *users, volumes, members map[string]string) error {
	// A tenant cannot mount a dataset that is not delegated to its user namespace, and the kernel writes the names of datasets itself.
	isDataset := func(mount mountinfo.Mount) bool { return mount.FSType == "zfs" && ofPool(mount.Source, pool) }
	isOwn := func(mount mountinfo.Mount) bool { return isDataset(mount) && slices.Contains(own, mount.Point) }
	same, deviceless := copies{texts: map[mountinfo.Standing]string{}}, n.deviceless()
	err := n.standing(nodeProcess, isOwn, func(mount mountinfo.Standing) { same.own = append(same.own, mount) })
	if err != nil && !gone(err) {
		return err
	}
	err = n.eachNamespace(func(process, thread string) error {
		want := func(mount mountinfo.Mount) bool {
			return isDataset(mount) && (process != nodeProcess || !isOwn(mount)) || n.mounted(mount, members, deviceless) != ""
		}
		return n.standing(thread, want, func(mount mountinfo.Standing) {
			at := fmt.Sprintf("is mounted at %.*s, seen by process %s", toldPath, mount.Point, process)
			if kernel := n.mounted(mount.Mount, members, deviceless); kernel != "" {
				found.tell("volume %s (%s) %s", volumes[kernel], kernel, at)
			} else if text := fmt.Sprintf("dataset %s %s", mount.Source, at); !same.add(mount, text) {
				found.tell("%s", text)
			}
		})
	})
	for _, text := range same.left() {
		found.tell("%s", text)
	}
	return err
}

// copies are mounts of the same datasets at the same places as the agent's own mounts. They are unmounted together with the own mounts if
// they receive the events of the mount that the own mount is on. A pod that sees the node's root receives the agent's mounts while it runs
// (HostToContainer, Bidirectional). If a pod got a private copy of the root with its namespace, the mounts in that copy are its own and
// keep the pool in use.
type copies struct {
	own []mountinfo.Standing
	// texts describe copies. The key of a copy is the own mount with the peer groups of the mount that the copy is on: only these differ.
	// Whether a group receives the events is known only after all copies have been seen.
	texts map[mountinfo.Standing]string
}

// add reports whether a mount is a copy that may be unmounted with an own mount.
func (c *copies) add(mount mountinfo.Standing, text string) bool {
	place, known := mount.Place()
	if !known || mount.On.Shared == "" && mount.On.Master == "" {
		return false
	}
	for _, own := range c.own {
		if at, _ := own.Place(); at != place || own.Device != mount.Device || own.Root != mount.Root {
			continue
		}
		own.On.Shared, own.On.Master = strings.Clone(mount.On.Shared), strings.Clone(mount.On.Master)
		if c.texts[own] == "" && len(c.texts) < copiesLimit {
			c.texts[own] = text
		}
		return c.texts[own] != ""
	}
	return false
}

// left describes the copies that remain when the own mounts are unmounted, one of each group.
func (c *copies) left() []string {
	all := slices.AppendSeq(slices.Clone(c.own), maps.Keys(c.texts))
	var unmounted []mountinfo.Propagation
	for _, own := range c.own {
		unmounted = append(unmounted, mountinfo.NewPropagation(own, all))
	}
	maps.DeleteFunc(c.texts, func(mount mountinfo.Standing, _ string) bool {
		return slices.ContainsFunc(unmounted, func(p mountinfo.Propagation) bool { return p.Reaches(mount) })
	})
	return slices.Sorted(maps.Values(c.texts))
}

// ofPool reports whether a dataset or snapshot belongs to the pool.
func ofPool(dataset, pool string) bool {
	rest, found := strings.CutPrefix(dataset, pool)
	return found && (rest == "" || rest[0] == '/' || rest[0] == '@')
}

// volumes returns the block devices of the pool's volumes, with the names of the volumes.
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
		// Partitions of a volume have links of their own; the use of one holds the whole volume.
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
