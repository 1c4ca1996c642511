package zfs

import (
	"context"
	"slices"
	"strings"
)

// The classes of vdevs that serve a pool without being a part of it.
const (
	classCache = "l2cache"
	classSpare = "spare"
)

// Serves reports whether a top-level vdev is a cache device or a spare: it serves the pool without being a part of it.
func (v VdevStatus) Serves() bool { return v.Class == classCache || v.Class == classSpare }

// Auxiliary reports whether a top-level vdev is a cache device or a spare on a disk. The label of such a disk holds its own guid, but names
// no pool. The distributed spares of a draid are not disks.
func (v VdevStatus) Auxiliary() bool {
	return v.Serves() && !strings.HasPrefix(v.Name, "draid")
}

// AuxiliaryGUIDs fills in the guids of cache devices and spares where the text output of OpenZFS before 2.3 lacks them. They stay empty if
// the pool has just changed.
func (c *Client) AuxiliaryGUIDs(ctx context.Context, status *Status) error {
	if err := checkPool(status.Pool); err != nil {
		return err
	}
	if !slices.ContainsFunc(status.Vdevs, func(vdev VdevStatus) bool { return vdev.Auxiliary() && vdev.GUID == "" }) {
		return nil
	}
	// This prints the same tree, with guids as names.
	output, err := c.run.Run(ctx, zpool("status", "-g", "-p", status.Pool).onPool(status.Pool))
	if err != nil {
		return err
	}
	numbered, err := parseStatusText(output)
	if err != nil {
		return err
	}
	for _, class := range []string{classCache, classSpare} {
		named, numbers := ofClass(status.Vdevs, class), ofClass(numbered.Vdevs, class)
		if len(named) != len(numbers) {
			continue
		}
		for at, vdev := range named {
			if guid := numbers[at].Name; guidPattern.MatchString(guid) {
				vdev.GUID = guid
			}
		}
	}
	return nil
}

func ofClass(vdevs []VdevStatus, class string) []*VdevStatus {
	var found []*VdevStatus
	for at := range vdevs {
		if vdevs[at].Class == class {
			found = append(found, &vdevs[at])
		}
	}
	return found
}
