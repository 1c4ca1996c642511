package operation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// look simulates the commands that only read.
func (n *fakeNode) look(command zfs.Command) (output []byte, isLook bool, err error) {
	args, last := command.Args, command.Args[len(command.Args)-1]
	pool := n.find(last)
	switch command.Program + " " + args[0] {
	case "zfs version":
		return []byte("zfs-2.3.9-1\nzfs-kmod-2.3.9-1\n"), true, nil
	case "zpool list":
		text := ""
		for _, pool := range n.pools {
			if pool.imported && (pool.name == last || strings.Contains(last, ",")) {
				text += fmt.Sprintf("%s\t%s\t1000\t%d\t900\t3\t10\tONLINE\t%d\t0\t-\t-\t12\n", pool.name, pool.guid, 100+pool.pending,
					pool.freeing)
			}
		}
		return []byte(text), true, nil
	case "zdb -mm":
		return []byte("Metaslabs:\n\tvdev          0      metaslabs  2\n\tmetaslab      0   offset            0   spacemap     10   free " +
			"4096\n\t\tOn-disk histogram:\t\tfragmentation 7\n\t\t\t 12:      1 *\n\tmetaslab      1   offset         1000   spacemap     11   " +
			"free 8192\n"), true, nil
	case "zdb -ddddd":
		text := "    Object  lvl   iblk   dblk  dsize  dnsize  lsize   %full  type\n  0 L0 0:1000:1000 1000L/1000P F=1 B=1/1\n  1000 L0 " +
			"0:2000:1000 1000L/1000P F=1 B=1/1\n  2000 L0 0:900000:1000 1000L/1000P F=1 B=1/1\n"
		if n.blocks != nil {
			text = "    Object  lvl   iblk   dblk  dsize  dnsize  lsize   %full  type\n" + strings.Join(n.blocks, "\n") + "\n"
		}
		_, err := io.WriteString(command.Stdout, text)
		return nil, true, err
	case "zpool wait":
		if pool != nil && pool.scan != nil && pool.scan.end.After(n.clock.Now()) {
			n.clock.SetTime(pool.scan.end)
		}
		return nil, true, nil
	case "zpool sync":
		n.clock.Step(n.syncs)
		if pool == nil || pool.stuck {
			return nil, true, refusal(zfs.Suspended, command)
		}
		pool.pending = 0
		return nil, true, nil
	}
	if command.Program == "zfs" && args[0] == "send" {
		output, err := n.dryRun(command)
		return output, true, err
	}
	if pool == nil && slices.Contains([]string{"status", "iostat", "get", "list"}, args[0]) && last != "all-vdevs" {
		return nil, true, refusal(zfs.NotFound, command)
	}
	switch command.Program + " " + args[0] {
	case "zpool status":
		return pool.status(n.clock.Now()), true, nil
	case "zpool iostat":
		return []byte(pool.name + "\n512\t1\t2\n1024\t3\t4\n"), true, nil
	case "zpool get":
		if last == "all-vdevs" {
			seconds := n.clock.Now().Unix() - 1_800_000_000
			return []byte(fmt.Sprintf("mirror-0\tread_ops\t%d\t-\nmirror-0\twrite_bytes\t%d\t-\na\tread_ops\t%d\t-\nb\tread_ops\t0\t-\n"+
				"a\twrite_bytes\t%d\t-\nb\twrite_ops\t%d\t-\na\tread_bytes\t%d\t-\n", seconds, 10*seconds, seconds, 9003*seconds,
				3*seconds, 3001*seconds)), true, nil
		}
		text := fmt.Sprintf("%s\tload_guid\t%d\t-\n", pool.name, pool.loads)
		if strings.Contains(args[4], "readonly") {
			text += fmt.Sprintf("%s\treadonly\t%s\t-\n", pool.name, map[bool]string{true: "on", false: "off"}[pool.readOnly])
		}
		return []byte(text), true, nil
	case "zfs list":
		return pool.list(last), true, nil
	case "zfs get":
		output, err := n.properties(pool, command)
		return output, true, err
	}
	return nil, false, nil
}

func (p *fakePool) list(root string) []byte {
	text := ""
	for _, d := range p.datasets {
		if d.name == root || strings.HasPrefix(d.name, root+"/") || strings.HasPrefix(d.name, root+"@") {
			mounted, point := "no", cmp.Or(d.mountedAt, d.properties["mountpoint"], "none")
			if d.mountedAt != "" {
				mounted = "yes"
			}
			text += fmt.Sprintf("%s\t%s\t%s\t50\t900\t40\t%s\t%s\t%s\t0\n", d.name, d.kind, d.guid, mounted, point, "-")
		}
	}
	return []byte(text)
}

func (n *fakeNode) properties(pool *fakePool, command zfs.Command) ([]byte, error) {
	name, text := command.Args[4], ""
	dataset := pool.find(command.Args[5])
	if dataset == nil {
		return nil, refusal(zfs.NotFound, command)
	}
	if name == "all" {
		for _, set := range slices.Sorted(maps.Keys(dataset.properties)) {
			text += dataset.name + "\t" + set + "\t" + dataset.properties[set] + "\tlocal\n"
		}
		return []byte(text), nil
	}
	for name := range strings.SplitSeq(name, ",") {
		value, source := "-", "-"
		if set, isSet := dataset.properties[name]; isSet {
			value, source = set, "local"
		}
		if name == "receive_resume_token" && dataset.token != "" {
			value = dataset.token
		}
		text += dataset.name + "\t" + name + "\t" + value + "\t" + source + "\n"
	}
	return []byte(text), nil
}

func (s *fakeScan) state(now time.Time) string {
	switch {
	case s.stopped:
		return "CANCELED"
	case now.Before(s.end):
		return "SCANNING"
	}
	return "FINISHED"
}

func (s *fakeScan) json(now time.Time) map[string]any {
	document := map[string]any{"function": strings.ToUpper(s.function), "state": s.state(now), "start_time": s.start.Unix(),
		"to_examine": 1000, "issued": 500,
		"errors": s.errors, "to_copy": 1000, "copied": 500}
	if s.state(now) != "SCANNING" {
		document["end_time"] = s.end.Unix()
	}
	return document
}

func (d *fakeDisk) json(now time.Time) map[string]any {
	guid, _ := strconv.Atoi(d.guid)
	document := map[string]any{"name": d.path + "-part1", "vdev_type": "disk", "path": d.path + "-part1", "class": "normal", "state": "ONLINE",
		"guid": guid}
	if d.offline {
		document["state"] = "OFFLINE"
	}
	if d.trim != nil {
		states := map[string]string{"SCANNING": "ACTIVE", "FINISHED": "COMPLETE", "CANCELED": "CANCELED"}
		document["trim_state"], document["trim_time"], document["trimmed"], document["to_trim"] = states[d.trim.state(now)], d.trim.start.Unix(),
			1000, 1000
		if d.trim.state(now) != "SCANNING" {
			document["trim_time"] = d.trim.end.Unix()
		}
	}
	return document
}

func (p *fakePool) status(now time.Time) []byte {
	vdevs := map[string]any{}
	for _, top := range p.tops {
		children := map[string]any{}
		for _, disk := range top.disks {
			if disk.replacing != nil {
				children["replacing-0"] = map[string]any{"name": "replacing-0", "vdev_type": "replacing", "class": "normal", "state": "ONLINE",
					"guid":  9,
					"vdevs": map[string]any{"old": disk.json(now), "new": disk.replacing.json(now)}}
				continue
			}
			children[disk.path] = disk.json(now)
		}
		guid, _ := strconv.Atoi(top.guid)
		vdevs[top.name] = map[string]any{"name": top.name, "vdev_type": "mirror", "class": "normal", "state": "ONLINE", "guid": guid,
			"vdevs": children}
	}
	guid, _ := strconv.Atoi(p.guid)
	pool := map[string]any{"name": p.name, "state": "ONLINE", "pool_guid": guid, "error_count": 0,
		"vdevs": map[string]any{p.name: map[string]any{"name": p.name, "vdev_type": "root", "class": "normal", "state": "ONLINE",
			"vdevs": vdevs}}}
	if p.scan != nil {
		pool["scan_stats"] = p.scan.json(now)
	}
	if p.removal != nil {
		pool["removal_stats"] = p.removal.json(now)
	}
	text, _ := json.Marshal(map[string]any{"pools": map[string]any{p.name: pool}})
	return text
}

func (n *fakeNode) began(function string) *fakeScan {
	now := n.clock.Now().Truncate(time.Second)
	return &fakeScan{function: function, start: now, end: now.Add(scanSeconds * time.Second)}
}

// change simulates the commands that change something.
func (n *fakeNode) change(command zfs.Command) error {
	args, now := command.Args, n.clock.Now()
	last := args[len(args)-1]
	pool := n.find(last)
	if slices.Contains([]string{"remove", "replace", "trim", "add", "offline", "online"}, args[0]) {
		for _, arg := range args[1:] {
			if found := n.find(arg); found != nil {
				pool = found
			}
		}
	}
	if pool == nil {
		return refusal(zfs.NotFound, command)
	}
	running := pool.scan != nil && pool.scan.state(now) == "SCANNING"
	switch command.Program + " " + args[0] {
	case "zpool scrub":
		if args[1] == "-s" {
			if !running {
				return refusal(zfs.NotRunning, command)
			}
			pool.scan.stopped, pool.scan.end = true, now
			return nil
		}
		if running {
			return refusal(zfs.InProgress, command)
		}
		pool.scan = n.began("scrub")
	case "zpool trim":
		return n.trim(pool, args, command)
	case "zpool add":
		at := slices.Index(args, "mirror")
		top := &fakeTop{name: fmt.Sprintf("mirror-%d", len(pool.tops)), guid: n.guid()}
		for _, path := range args[at+1:] {
			top.disks = append(top.disks, &fakeDisk{path: path, guid: n.guid()})
		}
		pool.tops = append(pool.tops, top)
	case "zpool remove":
		if args[1] == "-s" {
			pool.removal.stopped, pool.removal.end = true, now
			return nil
		}
		pool.removal = n.began("removal")
		pool.removal.member = last
	case "zpool replace":
		_, disk := pool.disk(args[2])
		if disk == nil {
			return refusal(zfs.NotFound, command)
		}
		disk.replacing = &fakeDisk{path: last, guid: n.guid()}
		pool.scan = n.began("resilver")
	case "zpool offline", "zpool online":
		_, disk := pool.disk(last)
		if disk.offline = args[0] == "offline"; !disk.offline {
			pool.scan = n.began("resilver")
		}
	case "zpool export":
		pool.imported = false
	case "zpool import":
		pool.imported = true
		pool.loads++
	default:
		return n.changeDataset(pool, command)
	}
	return nil
}

func (n *fakeNode) trim(pool *fakePool, args []string, command zfs.Command) error {
	for _, top := range pool.tops {
		for _, disk := range top.disks {
			switch {
			case args[1] == "-c":
				if disk.trim == nil {
					return refusal(zfs.NotRunning, command)
				}
				disk.trim.stopped, disk.trim.end = true, n.clock.Now()
			case disk.trim != nil && disk.trim.state(n.clock.Now()) == "SCANNING":
				return refusal(zfs.InProgress, command)
			default:
				disk.trim = n.began("trim")
			}
		}
	}
	return nil
}

// options returns the options that are set with -o.
func options(args []string) map[string]string {
	set := map[string]string{}
	for at, arg := range args {
		if arg == "-o" {
			name, value, _ := strings.Cut(args[at+1], "=")
			set[name] = value
		}
	}
	return set
}

func (n *fakeNode) changeDataset(pool *fakePool, command zfs.Command) error {
	args := command.Args
	last := args[len(args)-1]
	switch command.Program + " " + args[0] {
	case "zfs snapshot", "zfs clone":
		if pool.find(last) != nil {
			return refusal(zfs.Exists, command)
		}
		kind := map[string]string{"snapshot": "snapshot", "clone": "filesystem"}[args[0]]
		made := n.dataset(last, kind)
		made.properties = options(args)
		pool.datasets = append(pool.datasets, made)
	case "zfs create":
		if pool.find(last) != nil {
			return refusal(zfs.Exists, command)
		}
		made := n.dataset(last, "filesystem")
		made.properties = options(args)
		pool.datasets = append(pool.datasets, made)
	case "zfs destroy":
		if pool.find(last) == nil {
			return refusal(zfs.NotFound, command)
		}
		pool.datasets = slices.DeleteFunc(pool.datasets, func(d *fakeDataset) bool {
			return d.name == last || args[1] == "-r" && (strings.HasPrefix(d.name, last+"/") || strings.HasPrefix(d.name, last+"@"))
		})
		if !strings.Contains(last, "@") {
			pool.freeing, pool.freeUntil = 40, n.clock.Now().Add(scanSeconds*time.Second)
		}
	case "zfs set": // each property separately: those that are not refused are set
		var err error
		for _, setting := range args[1 : len(args)-1] {
			if slices.Contains(n.refuses, setting) {
				err = refusal(zfs.Invalid, command)
				continue
			}
			name, value, _ := strings.Cut(setting, "=")
			pool.find(last).properties[name] = value
		}
		return err
	case "zfs mount":
		pool.find(last).mountedAt = naming.VolumesFolder + "/" + last
	case "zfs unmount":
		pool.find(last).mountedAt = ""
	case "zfs receive": // -A
		target := pool.find(last)
		if target == nil || target.token == "" {
			return refusal(zfs.NotRunning, command)
		}
		target.token = ""
		if !slices.ContainsFunc(pool.datasets, func(d *fakeDataset) bool { return strings.HasPrefix(d.name, last+"@") }) {
			pool.datasets = slices.DeleteFunc(pool.datasets, func(d *fakeDataset) bool { return d == target })
		}
	default:
		return refusal(zfs.Unknown, command)
	}
	return nil
}

// tokenOf returns the resume token of a snapshot, which contains the number of the snapshot.
func tokenOf(snapshot string) string {
	return "1-" + snapshot[strings.LastIndex(snapshot, "-")+1:] + "-a-b"
}

// lostBytes is how many bytes a receiver loses when a stream is broken off: the last block.
const lostBytes = 7

// strangersToken is the resume token of a snapshot that this node does not have.
const strangersToken = "1-5-5-5"

// sent returns the snapshot that a send names, by its name or by its token.
func (n *fakeNode) sent(command zfs.Command) *fakeDataset {
	last := command.Args[len(command.Args)-1]
	for _, pool := range n.pools {
		for _, dataset := range pool.datasets {
			if dataset.kind == "snapshot" && (dataset.name == last || slices.Contains(command.Args, "-t") &&
				strings.HasPrefix(dataset.name, "bench0/data@storagebench-") && tokenOf(dataset.name) == last) {
				return dataset
			}
		}
	}
	return nil
}

// dryRun prints the size of a send, and the contents of a token.
func (n *fakeNode) dryRun(command zfs.Command) ([]byte, error) {
	text, sent, last := "", n.sent(command), command.Args[len(command.Args)-1]
	if number, ours := strings.CutSuffix(strings.TrimPrefix(last, "1-"), "-a-b"); slices.Contains(command.Args, "-t") {
		name, guid := "other/fs@big", 999_999
		if ours {
			name = "bench0/data@storagebench-12345678-" + number
		}
		if sent != nil {
			guid, _ = strconv.Atoi(sent.guid)
		}
		text = fmt.Sprintf("resume token contents:\nnvlist version: 0\n\tobject = 0x2\n\tbytes = %#x\n\ttoguid = %#x\n\ttoname = %s\n", n.received, guid, name)
	}
	err := refusal(zfs.Exists, command) // "used in the initial send no longer exists"
	if sent != nil {
		text, err = text+"size\t100\n", nil
	}
	if command.Stdout == nil {
		return []byte(text), err
	}
	_, writing := io.WriteString(command.Stdout, text)
	return nil, errors.Join(err, writing)
}

func (n *fakeNode) send(command zfs.Command) error {
	n.mutex.Lock()
	n.commands = append(n.commands, command.String())
	sent := n.sent(command)
	n.mutex.Unlock()
	if sent == nil {
		return refusal(zfs.NotFound, command)
	}
	_, err := io.WriteString(command.Stdout, fmt.Sprintf("%-99s\n", sent.name+"\n"+sent.guid+"\n")) // as long as its estimate
	return err
}

// receive receives a stream in two steps. Between them, there is only a token.
func (n *fakeNode) receive(command zfs.Command, killed error) error {
	stream, broken := io.ReadAll(command.Stdin)
	lines := strings.Split(string(stream), "\n")
	if len(lines) < 3 { // not even the beginning
		return refusal(zfs.BadStream, command)
	}
	guid := lines[1]
	_, snapshot, _ := strings.Cut(lines[0], "@")
	last := command.Args[len(command.Args)-1]
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.commands = append(n.commands, command.String())
	pool := n.find(last)
	target := pool.find(last)
	if target == nil {
		target = n.dataset(last, "filesystem")
		if !n.marksNothing {
			target.properties = options(command.Args)
		}
		pool.datasets = append(pool.datasets, target)
	} else if target.token == "" && strings.HasSuffix(snapshot, "-0") {
		return refusal(zfs.Exists, command)
	}
	target.token = tokenOf(snapshot)
	if broken != nil {
		n.received = len(stream) - lostBytes
	}
	if !n.eventLocked() {
		return killed
	}
	if n.interrupted > 0 || broken != nil {
		n.interrupted = max(n.interrupted-1, 0)
		return refusal(zfs.BadStream, command)
	}
	target.token = ""
	arrived := n.dataset(last+"@"+snapshot, "snapshot")
	arrived.guid = guid
	pool.datasets = append(pool.datasets, arrived)
	if !n.eventLocked() {
		return killed
	}
	return nil
}
