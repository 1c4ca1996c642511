package zfs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// poolTimeout is for commands that label disks, open them all, or wait for a transaction group.
const poolTimeout = 10 * time.Minute

// importFrom returns the beginning of an import that searches for pools on these disks only. With a device after -d, zpool opens only that
// device. With a folder, it would open every disk of the node, including foreign and silent ones. ZFS has its labels on the first
// partition. Missing paths are skipped.
func importFrom(devices []string, args ...string) ([]string, error) {
	if len(devices) == 0 {
		return nil, invalid("import without disks: name those that the pool is on")
	}
	argv := []string{"import"}
	for _, device := range devices {
		if err := checkDevice(device); err != nil {
			return nil, err
		}
		argv = append(argv, "-d", device+"-part1")
	}
	return append(argv, args...), nil
}

// PoolSpec describes a pool to create.
type PoolSpec struct {
	Name   string
	Layout Layout
	// Ashift of all vdevs, 9 to 16; 0 leaves it to ZFS.
	Ashift int
	// Multihost makes ZFS write to each disk about once a second, so that no other host imports the pool meanwhile. ZFS refuses it on a
	// host without a host id.
	Multihost bool
	// NoSnapdir makes .zfs inaccessible. Otherwise, a program that looks into a snapshot there makes the kernel mount it on the node, for as
	// long as the program likes. NoSnapdir needs OpenZFS 2.3.
	NoSnapdir bool
	// Properties of the pool.
	Properties map[string]string
	// RootProperties of the root dataset; all others inherit them. The user properties that identify the owner of the pool belong here,
	// because these exist from the pool's first transaction group on.
	RootProperties map[string]string
}

// CreatePool creates a pool. It neither mounts the pool nor writes it to the cache file of the node, so no boot imports it.
func (c *Client) CreatePool(ctx context.Context, spec PoolSpec) error {
	command, err := createPool(spec)
	if err != nil {
		return err
	}
	return c.do(ctx, command)
}

func createPool(spec PoolSpec) (Command, error) {
	layout, err := spec.Layout.arguments()
	pool, propertiesErr := propertyOptions("-o", spec.Properties)
	root, rootErr := propertyOptions("-O", spec.RootProperties)
	ashift, ashiftErr := ashiftOption(spec.Ashift)
	if err := cmp.Or(checkPool(spec.Name), err, propertiesErr, rootErr, ashiftErr,
		checkPoolProperties(spec.Properties), without(spec.RootProperties, "mountpoint", "canmount"),
		without(spec.RootProperties, nodeProperties...)); err != nil {
		return Command{}, err
	}
	if len(spec.Layout.Data) == 0 {
		return Command{}, invalid("pool %s without data vdevs: name at least one", spec.Name)
	}
	var optional []string
	if spec.Multihost {
		optional = append(optional, "-o", "multihost=on")
	}
	if spec.NoSnapdir {
		optional = append(optional, "-O", "snapdir=disabled")
	}
	command := zpool(slices.Concat([]string{"create", "-o", "cachefile=none", "-o", "autoreplace=off", "-m", "none"}, rootSettings, optional,
		ashift, pool, root, []string{spec.Name}, layout)...).onPool(spec.Name)
	command.Timeout = poolTimeout
	return command, nil
}

// rootSettings are the properties of the root dataset of each pool. All datasets of the pool inherit them, whoever creates them, except for
// canmount. What tenants write is only data: the node runs none of their programs, ignores their device files, and reads no partition table
// from their volumes.
var rootSettings = []string{"-O", "canmount=off", "-O", "setuid=off", "-O", "devices=off", "-O", "exec=off", "-O", "volmode=dev"}

// nodeProperties say what the node does with the contents of a dataset. A pool gets them when it is made; nothing else sets them.
var nodeProperties = []string{"setuid", "devices", "exec", "volmode", "snapdir"}

// poolProperties are the properties that can be set on a pool. The others affect more than the pool, such as the other pools of the node,
// or belong to this package.
var poolProperties = []string{"autoexpand", "autotrim", "comment", "compatibility", "dedup_table_quota", "failmode"}

// checkPoolProperties refuses the same properties and values as the API: with failmode=panic, a lost disk takes the node down, and with
// listsnapshots=on, other programs read snapshots where they expect datasets.
func checkPoolProperties(properties map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		value := properties[name]
		switch {
		case !slices.Contains(poolProperties, name):
			return invalid("property %q of a pool: remove it, only these can be set: %s", name, strings.Join(poolProperties, ", "))
		case name == "failmode" && value != "wait" && value != "continue":
			return invalid("failmode %q: write wait or continue", value)
		case name == "compatibility" && strings.Contains(value, "/"):
			return invalid("compatibility %q: write off, legacy or the name of a file in compatibility.d, without '/'", value)
		}
	}
	return nil
}

func ashiftOption(ashift int) ([]string, error) {
	if ashift == 0 {
		return nil, nil
	}
	if ashift < 9 || ashift > 16 {
		return nil, invalid("ashift %d: make it 9 to 16", ashift)
	}
	return []string{"-o", "ashift=" + strconv.Itoa(ashift)}, nil
}

// onPool runs a command on one pool. behind are the arguments after the name of the pool.
func (c *Client) onPool(ctx context.Context, pool string, args []string, behind ...string) error {
	if err := checkPool(pool); err != nil {
		return err
	}
	command := zpool(slices.Concat(args, []string{pool}, behind)...).onPool(pool)
	command.Timeout = poolTimeout
	return c.do(ctx, command)
}

// DestroyPool destroys a pool. If it fails because the pool is busy, it has already unmounted everything of the pool that could be
// unmounted, even while pods use it: check first that the pool is unused.
func (c *Client) DestroyPool(ctx context.Context, pool string) error {
	return c.onPool(ctx, pool, []string{"destroy"})
}

// Export exports a pool from the node. The warning of DestroyPool applies here too.
func (c *Client) Export(ctx context.Context, pool string) error {
	return c.onPool(ctx, pool, []string{"export"})
}

// ImportOptions say which pool to import, and how.
type ImportOptions struct {
	// GUID of the pool: a name can belong to several.
	GUID string
	// Pool is its name, to report a hanging import.
	Pool string
	// Devices that the pool is on: no other disk is opened.
	Devices []string
	// Look imports the pool read-only, and marks the import with LookRoot.
	Look bool
}

// LookRoot is the alternate root of a pool that was imported only to look at it. It tells this import from that of a person: it cannot be
// set on an imported pool, it lasts as long as the import, and it is not written to the disks. Nothing is mounted there.
const LookRoot = "/run/storagebench/look"

// Import imports a pool without mounting its datasets. It looks only on the given disks.
func (c *Client) Import(ctx context.Context, options ImportOptions) error {
	if !guidPattern.MatchString(options.GUID) {
		return invalid("pool guid %q: write the number that 'zpool get guid' prints", options.GUID)
	}
	args, err := importFrom(options.Devices, "-o", "cachefile=none", "-N")
	if err != nil {
		return err
	}
	if options.Look {
		args = append(args, "-o", "readonly=on", "-o", "altroot="+LookRoot)
	}
	command := zpool(append(args, options.GUID)...).onPool(options.Pool)
	command.Timeout = poolTimeout
	return c.do(ctx, command)
}

// Add adds vdevs to a pool. ZFS refuses vdevs that would lower its redundancy.
func (c *Client) Add(ctx context.Context, pool string, ashift int, layout Layout) error {
	vdevs, err := layout.arguments()
	option, ashiftErr := ashiftOption(ashift)
	if err := cmp.Or(err, ashiftErr); err != nil {
		return err
	}
	return c.onPool(ctx, pool, append([]string{"add"}, option...), vdevs...)
}

// Attach turns a disk into a mirror, or adds a disk to one; from OpenZFS 2.3 on, also to a raidz.
func (c *Client) Attach(ctx context.Context, pool, member, device string) error {
	if err := cmp.Or(checkMember(member), checkDevice(device)); err != nil {
		return err
	}
	return c.onPool(ctx, pool, []string{"attach"}, member, device)
}

// Detach takes a device out of a mirror.
func (c *Client) Detach(ctx context.Context, pool, member string) error {
	return c.onMember(ctx, pool, member, "detach")
}

// RemoveVdev starts the removal of a log, cache, spare or top-level data vdev; see Status.Removal for the last.
func (c *Client) RemoveVdev(ctx context.Context, pool, member string) error {
	return c.onMember(ctx, pool, member, "remove")
}

// CancelRemoval cancels the removal of a vdev.
func (c *Client) CancelRemoval(ctx context.Context, pool string) error {
	return c.onPool(ctx, pool, []string{"remove", "-s"})
}

// Replace puts a device in the place of another. Use the guid to name a device that is gone. The resilver has not begun when this returns:
// follow Status.
func (c *Client) Replace(ctx context.Context, pool, member, device string) error {
	if err := cmp.Or(checkMember(member), checkDevice(device)); err != nil {
		return err
	}
	return c.onPool(ctx, pool, []string{"replace"}, member, device)
}

// Offline takes a device out of use until Online or the next import: if the node goes down in the meantime, the pool comes back with the
// device.
func (c *Client) Offline(ctx context.Context, pool, member string) error {
	return c.onMember(ctx, pool, member, "offline", "-t")
}

// Online takes a device back into use. The resilver has not begun when this returns: follow Status.
func (c *Client) Online(ctx context.Context, pool, member string) error {
	return c.onMember(ctx, pool, member, "online")
}

// AwaitResilver returns when no resilver runs on a pool, or with Timeout.
func (c *Client) AwaitResilver(ctx context.Context, pool string) error {
	return c.onPool(ctx, pool, []string{"wait", "-t", "resilver"})
}

func (c *Client) onMember(ctx context.Context, pool, member string, args ...string) error {
	if err := checkMember(member); err != nil {
		return err
	}
	return c.onPool(ctx, pool, args, member)
}

// ScrubAct is an action on a scrub.
type ScrubAct string

// Starting a paused scrub resumes it.
const (
	ScrubStart ScrubAct = "start"
	ScrubStop  ScrubAct = "stop"
)

// Scrub starts or stops a scrub, which reads and verifies all data; see Status.Scan.
func (c *Client) Scrub(ctx context.Context, pool string, act ScrubAct) error {
	options := map[ScrubAct][]string{ScrubStart: {"scrub"}, ScrubStop: {"scrub", "-s"}}
	args, known := options[act]
	if !known {
		return invalid("scrub %q: write start or stop", act)
	}
	return c.onPool(ctx, pool, args)
}

// TrimAct is an action on a trim.
type TrimAct string

// Starting a suspended trim resumes it.
const (
	TrimStart  TrimAct = "start"
	TrimCancel TrimAct = "cancel"
)

// Trim tells all disks of the pool, or one of them, which space is free; see VdevStatus.Trim.
func (c *Client) Trim(ctx context.Context, pool, member string, act TrimAct) error {
	options := map[TrimAct][]string{TrimStart: {"trim"}, TrimCancel: {"trim", "-c"}}
	args, known := options[act]
	if !known {
		return invalid("trim %q: write start or cancel", act)
	}
	if member == "" {
		return c.onPool(ctx, pool, args)
	}
	return c.onMember(ctx, pool, member, args...)
}

// Sync writes out the data that the pool holds in memory.
func (c *Client) Sync(ctx context.Context, pool string) error {
	return c.onPool(ctx, pool, []string{"sync"})
}

// ClearLabel clears the ZFS label on the first partition of a disk whose pool was destroyed, so that the next pool needs no force. ZFS
// refuses a disk of a pool that is imported, exported or perhaps in use. ClearLabel also fails if there is no label to clear. Rely only on
// host.Node.Check: it says whether the disk can be used afterwards.
func (c *Client) ClearLabel(ctx context.Context, device string) error {
	if err := checkDevice(device); err != nil {
		return err
	}
	return c.do(ctx, zpool("labelclear", device+"-part1").onPool(device))
}

// SetPoolProperty sets one property.
func (c *Client) SetPoolProperty(ctx context.Context, pool, name, value string) error {
	if err := cmp.Or(checkPool(pool), checkProperty(name), checkValue(name, value),
		checkPoolProperties(map[string]string{name: value})); err != nil {
		return err
	}
	return c.do(ctx, zpool("set", name+"="+value, pool).onPool(pool))
}
