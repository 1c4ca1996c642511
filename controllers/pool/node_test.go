package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/zfs"
)

// fakeNode simulates the zpool and zfs of a node, and its disks.
type fakeNode struct {
	// root is the node's file system, and boots how often it has booted again.
	root  string
	boots int
	pools []*fakePool
	users []string
	// commands are those that change something. all are all commands.
	commands, all []string
	// diesAfter is the number of commands that change something until the agent dies, before it learns the result. 0 means never.
	diesAfter int
	changes   int
	// dead says that the agent has died and was not restarted yet. With resets, the node dies too.
	dead   bool
	resets bool
	// searches is how often pools were searched for on the disks. stopsAtSearch says that the node dies then.
	searches      int
	stopsAtSearch bool
	refused       map[string]error
	// also holds the findings of disks besides labels of pools.
	also    map[string]host.Reason
	swapped bool
	// usedSince says that the disks got users after they were checked.
	usedSince bool
	// opened are the disks that were opened.
	opened []string
	// answers guards opened while several disks are asked at once.
	answers sync.Mutex
	// meanwhile happens once, while the users of a pool are looked for.
	meanwhile func()
	// version of OpenZFS.
	version string
	// swapAfter is the command after which the paths lead to other disks.
	swapAfter string
	// folders are the folders that the agent has tried to remove. folderStays is the error of each attempt.
	folders     []string
	folderStays error
	// made are the states of the mount points: "sealed", or "ready" with the folder for pods.
	made map[string]string
	// nested are mounts within others.
	nested []string
	// elsewhere says that mounted datasets do not show in their places.
	elsewhere bool
}

// tooLarge is a setting that ZFS refuses.
const tooLarge = "reservation=1P"

// nodeHost is the node's name in labels.
const nodeHost = "n1"

type fakePool struct {
	name, guid         string
	imported, readOnly bool
	// altroot of the import.
	altroot   string
	destroyed bool
	// host that the labels name.
	host         string
	properties   map[string]string
	datasets     map[string]map[string]string
	mirror       [][]string
	cache, spare []string
	// swappedCache says that the cache device of the pool was replaced by a foreign one.
	swappedCache bool
	labels       map[string]bool
	// left are the labels of disks that were taken out of the pool.
	left map[string]host.PoolLabel
	// offline is the disk that is offline. Its label is not written.
	offline string
	// mounted are the datasets that are mounted.
	mounted map[string]bool
	// guids of recreated datasets begin with 2, those of others with 1. Snapshots are only listed.
	guids     map[string]int
	made      int
	snapshots []string
}

func (n *fakeNode) find(key string) *fakePool {
	for _, pool := range n.pools {
		if (pool.imported && pool.name == key) || (!pool.imported && !pool.destroyed && pool.guid == key) {
			return pool
		}
	}
	return nil
}

func failure(kind zfs.Kind, command zfs.Command) error {
	return &zfs.Error{Kind: kind, Command: command.String(), ExitCode: 1, Stderr: string(kind)}
}

// Run simulates one command.
func (n *fakeNode) Run(ctx context.Context, command zfs.Command) ([]byte, error) {
	if ctx.Err() != nil || n.dead {
		return nil, &zfs.Error{Kind: zfs.Cancelled, Command: command.String(), Err: ctx.Err()}
	}
	key := command.Program + " " + command.Args[0]
	n.swapped = n.swapped || key == n.swapAfter
	args := command.Args[1:]
	n.all = append(n.all, command.String())
	switch key {
	case "zfs version":
		version := cmp.Or(n.version, "2.3.9")
		return []byte("zfs-" + version + "-1\nzfs-kmod-" + version + "-1\n"), nil
	case "uname -n":
		return []byte(nodeHost + "\n"), nil
	case "zpool list":
		return n.list(command)
	case "zpool status":
		return n.find(args[len(args)-1]).status(args), nil
	case "zpool get", "zfs get":
		return n.get(command)
	case "zfs list":
		last := args[len(args)-1]
		name, _, _ := strings.Cut(last, "/")
		return n.find(name).list(last), nil
	}
	if key == "zpool import" && strings.HasPrefix(args[len(args)-1], "/dev/disk/") {
		if n.searches++; n.stopsAtSearch {
			n.dead, n.resets = true, true
			return nil, &zfs.Error{Kind: zfs.Cancelled, Command: command.String(), Err: context.Canceled}
		}
		return n.importable(command)
	}
	n.commands = append(n.commands, command.String())
	err := n.change(key, args, command)
	if n.changes++; n.changes == n.diesAfter {
		n.dead = true
		return nil, &zfs.Error{Kind: zfs.Cancelled, Command: command.String(), Err: context.Canceled}
	}
	return nil, err
}

func (n *fakeNode) list(command zfs.Command) ([]byte, error) {
	var text strings.Builder
	name := command.Args[len(command.Args)-1]
	for _, pool := range n.pools {
		if pool.imported && (strings.Contains(name, ",") || name == pool.name) {
			fmt.Fprintf(&text, "%s\t%s\t1000\t100\t900\t3\t10\tONLINE\t0\t0\t-\t-\t12\n", pool.name, pool.guid)
		}
	}
	if text.Len() == 0 && !strings.Contains(name, ",") {
		return nil, failure(zfs.NotFound, command)
	}
	return []byte(text.String()), nil
}

func (n *fakeNode) importable(command zfs.Command) ([]byte, error) {
	text := ""
	for _, word := range command.Args {
		if path, isDisk := strings.CutSuffix(word, "-part1"); isDisk {
			n.opened = append(n.opened, path)
		}
	}
	for _, pool := range n.pools {
		if !pool.imported && !pool.destroyed && pool.in(command.Args) {
			text += fmt.Sprintf("  pool: %s\n    id: %s\n state: ONLINE\nconfig:\n\n\t%s  ONLINE\n", pool.name, pool.guid, pool.name)
		}
	}
	if text == "" {
		return nil, &zfs.Error{Kind: zfs.Unknown, Command: command.String(), ExitCode: 1, Stderr: "no pools available to import\n"}
	}
	return []byte(text), nil
}

func (p *fakePool) mount(dataset string, mounted bool) {
	if p.mounted == nil {
		p.mounted = map[string]bool{}
	}
	p.mounted[dataset] = mounted
}

// list prints a dataset and everything below it.
func (p *fakePool) list(root string) []byte {
	text := ""
	for _, name := range p.snapshots {
		text += name + "\tsnapshot\t1\t1\t-\t1\t-\t-\t-\t-\n"
	}
	for name, properties := range p.datasets {
		if name != root && !strings.HasPrefix(name, root+"/") {
			continue
		}
		text += fmt.Sprintf("%s\tfilesystem\t%d\t1\t1\t1\t%s\t%s\t-\t0\n", name, cmp.Or(p.guids[name], 1),
			map[bool]string{true: "yes", false: "no"}[p.mounted[name]], cmp.Or(properties["mountpoint"], "none"))
	}
	return []byte(text)
}

func (n *fakeNode) get(command zfs.Command) ([]byte, error) {
	text, columns := "", command.Args[4]
	row := func(object string, values map[string]string) {
		for name, value := range values {
			if columns == "all" || slices.Contains(strings.Split(columns, ","), name) {
				text += object + "\t" + name + "\t" + value + "\tlocal\n"
			}
		}
	}
	if command.Program == "zpool" {
		pool := n.find(command.Args[5])
		if len(command.Args) > 6 {
			return []byte("mirror-0\tashift\t12\t-\n"), nil
		}
		row(pool.name, pool.properties)
		text += fmt.Sprintf("%s\treadonly\t%s\t-\n", pool.name, map[bool]string{true: "on", false: "off"}[pool.readOnly])
		text += fmt.Sprintf("%s\taltroot\t%s\t-\n", pool.name, cmp.Or(pool.altroot, "-"))
		return []byte(text), nil
	}
	for _, object := range command.Args[5:] {
		name, _, _ := strings.Cut(object, "/")
		pool := n.find(name)
		if pool == nil {
			return nil, failure(zfs.NotFound, command)
		}
		row(object, pool.datasets[object])
	}
	return []byte(text), nil
}

func (n *fakeNode) change(key string, args []string, command zfs.Command) error {
	last := args[len(args)-1]
	switch key {
	case "zpool create":
		if slices.Contains(args, tooLarge) { // the kernel makes the pool, and destroys it when it cannot set this
			made := created(args, strconv.Itoa(700+len(n.pools)))
			made.imported, made.destroyed = false, true
			n.pools = append(n.pools, made)
			return failure(zfs.NoSpace, command)
		}
		n.pools = append(n.pools, created(args, strconv.Itoa(700+len(n.pools))))
		return nil
	case "zpool labelclear":
		disk := strings.TrimSuffix(last, "-part1")
		for _, pool := range n.pools {
			if _, left := pool.left[disk]; left || pool.destroyed && pool.offline != disk {
				delete(pool.labels, disk)
				delete(pool.left, disk)
			} else if pool.labels[disk] {
				return failure(zfs.DeviceInUse, command)
			}
		}
		return nil
	}
	target := last
	switch key {
	case "zpool add":
		target = args[slices.Index(args, "mirror")-1]
	case "zpool attach", "zpool detach", "zpool online":
		target = args[0]
	}
	name, _, _ := strings.Cut(target, "/")
	pool := n.find(name)
	if pool == nil || key == "zpool import" && !pool.in(args) {
		return failure(zfs.NotFound, command)
	}
	if pool.imported && pool.readOnly && key != "zpool export" {
		return failure(zfs.Permission, command)
	}
	property, value, _ := strings.Cut(args[0], "=")
	switch key {
	case "zpool import":
		pool.imported, pool.readOnly, pool.altroot = true, slices.Contains(args, "readonly=on"), ""
		for _, word := range args {
			if root, set := strings.CutPrefix(word, "altroot="); set {
				pool.altroot = root
			}
		}
	case "zpool export":
		pool.imported, pool.mounted = false, nil
	case "zpool destroy":
		pool.imported, pool.destroyed, pool.mounted = false, true, nil
	case "zpool add":
		pool.mirror = append(pool.mirror, args[slices.Index(args, "mirror")+1:])
	case "zpool attach":
		pool.attach(args[1], args[2])
	case "zpool detach":
		pool.detach(args[1])
	case "zpool online":
		pool.offline = ""
	case "zpool set":
		pool.properties[property] = value
	case "zfs set":
		if args[0] == tooLarge {
			return failure(zfs.NoSpace, command)
		}
		pool.datasets[last][property] = value
		if property == "mountpoint" && (value == "none" || pool.datasets[last]["canmount"] != "noauto") { // from none, it is mounted at once
			pool.mount(last, value != "none")
		}
	case "zfs inherit":
		delete(pool.datasets[last], args[0])
	case "zfs mount", "zfs unmount":
		pool.mount(last, key == "zfs mount")
		if key == "zfs mount" && n.made[pool.datasets[last]["mountpoint"]] != "sealed" {
			return failure(zfs.Unknown, command) // a folder that could be written
		}
	case "zfs create":
		pool.make(last, args)
	case "zfs destroy":
		if slices.Contains(args, "-r") || len(pool.snapshots) > 0 || len(pool.list(last)) == 0 {
			return failure(zfs.Unknown, command)
		}
		delete(pool.datasets, last)
		pool.mount(last, false)
	default:
		return failure(zfs.Unknown, command)
	}
	return nil
}

// make creates a dataset. Without marks, it gets no properties, so that the agent has to set them.
func (p *fakePool) make(name string, args []string) {
	p.made++
	if p.guids == nil {
		p.guids = map[string]int{}
	}
	p.datasets[name], p.guids[name] = map[string]string{}, 1+p.made
	marked := slices.ContainsFunc(args, func(word string) bool { return strings.Contains(word, ":") })
	for _, word := range args {
		if property, value, is := strings.Cut(word, "="); is && marked {
			p.datasets[name][property] = value
		}
	}
}

// restart starts a dead agent again.
func (n *fakeNode) restart() {
	if n.dead && n.resets {
		n.reset()
	}
	n.dead = false
}

func newNode(t *testing.T) *fakeNode {
	t.Helper()
	n := &fakeNode{root: t.TempDir()}
	n.boot()
	return n
}

func (n *fakeNode) boot() {
	n.boots++
	n.write("/proc/sys/kernel/random/boot_id", fmt.Sprintf("boot-%d\n", n.boots))
	n.write("/proc/uptime", "30.12 50.00\n")
}

func (n *fakeNode) write(path, text string) {
	path = filepath.Join(n.root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		panic(err)
	}
}

// reset simulates a crash of the node.
func (n *fakeNode) reset() {
	n.boot()
	for _, pool := range n.pools {
		pool.imported, pool.readOnly, pool.mounted = false, false, nil
	}
}

// Check finds labels of pools on a disk.
func (n *fakeNode) Check(wish host.Wish) (host.Disk, error) {
	disk := host.Disk{Path: wish.Path, Number: wish.Path, Kernel: wish.Path, Serial: "serial", SizeBytes: 1 << 30, LogicalSectorBytes: 512,
		PhysicalSectorBytes: 4096, AfterPool: true}
	if err := n.refused[wish.Path]; err != nil {
		return disk, err
	}
	n.opened = append(n.opened, wish.Path)
	for _, pool := range n.pools {
		if !pool.labels[wish.Path] {
			continue
		}
		disk.Pools = append(disk.Pools, pool.label(wish.Path))
		disk.Findings = append(disk.Findings, host.Finding{Reason: host.PoolMember, Detail: "it belongs to pool " + pool.name})
	}
	if reason := n.also[wish.Path]; reason != "" {
		disk.Findings = append(disk.Findings, host.Finding{Reason: reason, Detail: string(reason)})
	}
	if len(disk.Findings) > 0 {
		return disk, &host.RefusedError{Path: wish.Path, Serial: disk.Serial, Findings: disk.Findings}
	}
	return disk, nil
}

// Identify opens nothing.
func (n *fakeNode) Identify(path string) (host.Disk, error) {
	return host.Disk{Path: path, Number: path, Kernel: path, Serial: "serial", SizeBytes: 1 << 30}, n.refused[path]
}

// Verify refuses every disk once they have been swapped.
func (n *fakeNode) Verify(checked host.Disk) error {
	if n.swapped {
		return &host.RefusedError{Path: checked.Path,
			Findings: []host.Finding{{Reason: host.Changed, Detail: "the path leads to another disk"}}}
	}
	return nil
}

// Answer answers.
func (n *fakeNode) Answer(path string) error {
	n.answers.Lock()
	defer n.answers.Unlock()
	n.opened = append(n.opened, path)
	return nil
}

func (n *fakeNode) Settle() {}

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

// PoolUsers returns the users that the test has set, and datasets that are mounted elsewhere than at the agent's own mount points.
func (n *fakeNode) PoolUsers(name string, own ...string) ([]string, error) {
	users := slices.Clone(n.users)
	if meanwhile := n.meanwhile; meanwhile != nil {
		n.meanwhile = nil
		meanwhile()
	}
	if pool := n.find(name); pool != nil {
		for dataset, mounted := range pool.mounted {
			if point := pool.datasets[dataset]["mountpoint"]; mounted && !slices.Contains(own, point) {
				users = append(users, "dataset "+dataset+" is mounted at "+point)
			}
		}
	}
	return users, nil
}

// RemoveFolders has nothing to do: this node has no folders, or one that stays.
func (n *fakeNode) RemoveFolders(_, folder string) error {
	n.folders = append(n.folders, folder)
	return n.folderStays
}

func (n *fakeNode) set(point, state string) {
	if n.made == nil {
		n.made = map[string]string{}
	}
	n.made[point] = state
}

// MakeMountPoint seals the mount point.
func (n *fakeNode) MakeMountPoint(_, point string) error {
	n.set(point, "sealed")
	return nil
}

// MakeVolumeFolder requires that the dataset is mounted there.
func (n *fakeNode) MakeVolumeFolder(_, point, dataset string) error {
	name, _, _ := strings.Cut(dataset, "/")
	if pool := n.find(name); n.elsewhere || !pool.mounted[dataset] || pool.datasets[dataset]["mountpoint"] != point {
		return fmt.Errorf("dataset %s is not mounted at %s", dataset, point)
	}
	n.set(point, "ready")
	return nil
}

// Mounted reports whether the folder for pods exists.
func (n *fakeNode) Mounted(_, point, _ string) (bool, error) { return n.made[point] == "ready", nil }

// NestedMounts returns the datasets mounted below the points, and those set by the test, until they are unmounted.
func (n *fakeNode) NestedMounts(name string, points ...string) ([]string, error) {
	pool := n.find(name)
	if pool == nil {
		return nil, nil
	}
	nested := slices.DeleteFunc(slices.Clone(n.nested), func(dataset string) bool { return !pool.mounted[dataset] })
	for dataset, is := range pool.mounted {
		below := func(point string) bool { return strings.HasPrefix(pool.datasets[dataset]["mountpoint"], point+"/") }
		if is && slices.ContainsFunc(points, below) {
			nested = append(nested, dataset)
		}
	}
	return nested, nil
}

// OpenDataset is not used by these tests.
func (n *fakeNode) OpenDataset(dataset string, _ bool) (*os.Root, error) {
	return nil, fmt.Errorf("dataset %s has no files", dataset)
}
