package observe

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	kstats = "/proc/spl/kstat/zfs"
	// maxDatasets is how many datasets of a pool are examined to find the volume's.
	maxDatasets = 8192
)

// zfsVolume describes a volume on ZFS.
type zfsVolume struct {
	dataset    string // empty if unknown
	pool       string // empty if unknown
	objset     string // the file with the counters of the dataset
	recordSize uint64 // the largest block of its files, or the volblocksize; 0 if unknown
	version    string
}

// noticeZvol looks for a zvol among the devices, and puts the disks of its pool below it.
func (o *Observer) noticeZvol(ask func() (string, error)) error {
	index := slices.IndexFunc(o.devices.all, func(d *device) bool { return d.kind == kindZvol })
	if index < 0 {
		return nil
	}
	zvol := o.devices.all[index]
	size, _ := o.system.number(path.Join(zvol.disk, "queue/physical_block_size"))
	name, err := ask()
	if err != nil {
		o.cannot("The name of the zvol", err)
	}
	o.findZFS(name, size)
	zvol.hidden = "the disks of its pool are not known"
	disks, err := o.poolDisks()
	if err != nil {
		return err
	}
	zvol.below, zvol.hidden = append(zvol.below, disks...), ""
	return nil
}

// findZFS finds the counters of a dataset. If the name of the dataset is unknown and the node has a single pool, it uses that pool.
func (o *Observer) findZFS(dataset string, recordSize uint64) {
	o.zfs = &zfsVolume{dataset: dataset, recordSize: recordSize, version: o.system.word("/sys/module/zfs/version")}
	o.zfs.pool, _, _ = strings.Cut(dataset, "/")
	if pools := o.pools(); dataset == "" && len(pools) == 1 {
		o.zfs.pool = pools[0]
	}
	if !poolName.MatchString(o.zfs.pool) {
		o.zfs.pool = ""
	}
	err := errors.New("the dataset or its pool is not known")
	if o.zfs.pool != "" && dataset != "" {
		err = o.zfs.findObjset(o.system)
	}
	if err != nil {
		o.cannot("Counters of the dataset", err)
	}
}

// PoolOnline is the kernel's state of a complete pool.
const PoolOnline = "ONLINE"

// PoolState is the kernel's state of the volume's pool, such as DEGRADED. Empty if it is unknown or if there is no pool.
func (o *Observer) PoolState() string {
	if o.zfs == nil || o.zfs.pool == "" {
		return ""
	}
	return o.system.word(path.Join(kstats, o.zfs.pool, "state"))
}

// poolName ensures that the source of a mount cannot lead elsewhere in /proc.
var poolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.: -]*$`)

// pools are the imported pools: those with a folder of counters.
func (o *Observer) pools() []string {
	var pools []string
	for _, name := range o.system.list(kstats) {
		if o.system.exists(path.Join(kstats, name, "state")) || o.system.exists(path.Join(kstats, name, "txgs")) {
			pools = append(pools, name)
		}
	}
	return pools
}

// findObjset finds the file of the dataset in the folder of the pool, where the names of the files identify datasets only by number.
func (z *zfsVolume) findObjset(sys system) error {
	folder := path.Join(kstats, z.pool)
	seen := 0
	for _, name := range sys.list(folder) {
		if !strings.HasPrefix(name, "objset-") {
			continue
		}
		if seen++; seen > maxDatasets {
			return fmt.Errorf("%s has more than %d datasets", folder, maxDatasets)
		}
		text, err := sys.read(path.Join(folder, name))
		if err != nil {
			continue // destroyed in between, and so not ours
		}
		if stat, err := parseKstat(text); err == nil && stat.texts["dataset_name"] == z.dataset {
			z.objset = path.Join(folder, name)
			return nil
		}
	}
	return fmt.Errorf("no file in %s is of %s", folder, z.dataset)
}

// poolDisks returns the disks of the pool according to the request. Nothing in /proc or /sys names them, and labels on disks may be those
// of a former pool.
func (o *Observer) poolDisks() ([]*device, error) {
	if len(o.target.Disks) == 0 {
		return nil, fmt.Errorf("the disks of %s are unknown: they are known only for a BenchmarkPool whose agent has the release of this runner",
			cmp.Or(o.zfs.pool, "an unknown pool"))
	}
	for _, told := range o.target.Disks { // describe all of them or none
		folder := path.Join("/sys/dev/block", told.Number)
		serial := cmp.Or(o.system.word(path.Join(folder, "serial")), o.system.word(path.Join(folder, "device/serial")))
		switch {
		case !o.system.exists(path.Join(folder, "uevent")):
			return nil, fmt.Errorf("the disk %s of the pool is not device %s any more", told.Path, told.Number)
		case serial != "" && told.Serial != "" && serial != told.Serial:
			return nil, fmt.Errorf("the disk %s of the pool has the serial number %s, but device %s now has %s", told.Path, told.Serial,
				told.Number, serial)
		}
	}
	var disks []*device
	for i := range o.target.Disks {
		d, err := o.devices.resolve(o.target.Disks[i].Number)
		if err != nil {
			return nil, err
		}
		d.told = &o.target.Disks[i]
		disks = append(disks, d)
	}
	o.cannot("What the disks of the volume read and wrote", errors.New("the agent of the node counts it: see pool.json.gz"))
	return disks, nil
}

// sources returns the kstats that matter, each with the name of its group.
func (z *zfsVolume) sources(sys system) []source {
	since := func(version string) string {
		return fmt.Sprintf("it needs OpenZFS %s, and this node has %s", version, orUnknownVersion(z.version))
	}
	list := []source{
		kstatSource(sys, "zfs.arc", "ARC counters", path.Join(kstats, "arcstats"), "", keepARC),
		kstatSource(sys, "zfs.zil", "Intent log counters", path.Join(kstats, "zil"), "", nil),
		kstatSource(sys, "zfs.allocation", "Gang block counters", path.Join(kstats, "zio_stats"), since("2.3.1"), nil),
		kstatSource(sys, "zfs.transactions", "Transaction throttle counters", path.Join(kstats, "dmu_tx"), "", nil),
		kstatSource(sys, "zfs.metaslab", "Metaslab counters", path.Join(kstats, "metaslab_stats"), "", nil),
		kstatSource(sys, "zfs.dbuf", "Dbuf cache counters", path.Join(kstats, "dbufstats"), "", keepDbuf),
		kstatSource(sys, "zfs.prefetch", "Prefetch counters", path.Join(kstats, "zfetchstats"), "", nil),
	}
	if z.pool != "" {
		pool := kstatSource(sys, "zfs.pool", "Pool counters", path.Join(kstats, z.pool, "iostats"), "", nil)
		read := pool.read
		pool.read = func(groups map[string]group) error {
			if err := read(groups); err != nil {
				return err
			}
			if _, found := groups["zfs.pool"].counters["arc_read_bytes"]; !found {
				return errors.New("what the pool read is not in its iostats; " + since("2.3.0"))
			}
			return nil
		}
		list = append(list, pool)
	}
	if z.objset != "" {
		list = append(list, kstatSource(sys, "zfs.dataset", "Counters of the dataset", z.objset, "", nil))
	}
	return list
}

// keep reports whether a value of a kstat is wanted, and whether it is a level.
type keep func(name string) (wanted, level bool)

func kstatSource(sys system, name, words, file, hint string, keep keep) source {
	return source{name: words, hint: hint, read: func(groups map[string]group) error {
		text, err := sys.read(file)
		if err != nil {
			return err
		}
		stat, err := parseKstat(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		into := newGroup()
		for key, value := range stat.numbers {
			wanted, level := true, false
			if keep != nil {
				wanted, level = keep(key)
			}
			switch {
			case wanted && level:
				into.levels[key] = value
			case wanted:
				into.counters[key] = value
			}
		}
		groups[name] = into
		return nil
	}}
}

var (
	arcLevels = []string{"size", "c", "c_min", "c_max", "data_size", "metadata_size", "dnode_size", "compressed_size",
		"uncompressed_size", "arc_meta_used", "meta", "l2_size", "l2_asize", "memory_available_bytes"}
	arcCounters = []string{"hits", "iohits", "misses", "mru_hits", "mfu_hits", "mru_ghost_hits", "mfu_ghost_hits", "uncached_hits",
		"deleted", "evict_skip", "l2_hits", "l2_misses", "l2_read_bytes", "l2_write_bytes", "memory_throttle_count",
		"memory_direct_count", "memory_indirect_count", "demand_hit_predictive_prefetch", "demand_hit_prescient_prefetch"}
)

func keepARC(name string) (wanted, level bool) {
	if slices.Contains(arcLevels, name) {
		return true, true
	}
	return strings.HasPrefix(name, "demand_data_") || strings.HasPrefix(name, "demand_metadata_") ||
		strings.HasPrefix(name, "prefetch_") || slices.Contains(arcCounters, name), false
}

func keepDbuf(name string) (wanted, level bool) {
	switch name {
	case "hash_hits", "hash_misses", "cache_total_evicts":
		return true, false
	case "cache_count", "cache_size_bytes", "cache_target_bytes":
		return true, true
	}
	return false, false
}

// readTxgs returns the history of the pool's transaction groups.
func (z *zfsVolume) readTxgs(sys system) ([]txg, error) {
	if z.pool == "" {
		return nil, errors.New("the pool is not known")
	}
	file := path.Join(kstats, z.pool, "txgs")
	text, err := sys.read(file)
	if err != nil {
		return nil, err
	}
	rows, err := parseTxgs(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rows, nil
}

func orUnknownVersion(text string) string {
	return cmp.Or(text, "an unknown version")
}
