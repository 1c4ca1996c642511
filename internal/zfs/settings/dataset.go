package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// Kinds of datasets, as the API names them.
const (
	Filesystem = "Filesystem"
	Volume     = "Volume"
)

// property is a property of a dataset.
type property struct {
	values values
	// only is the kind of dataset that has it. Empty for both.
	only string
	// once says that the property can be set only when the dataset is created.
	once bool
	// refused says why a benchmark cannot set it, and what to do.
	refused string
}

var (
	onOff  = words{known: []string{"on", "off"}}
	limit  = size{words: []string{"none"}}
	blocks = power{512, 16 << 20}
	cached = words{known: []string{"all", "none", "metadata"}}
)

const (
	operators = "remove it: the operator sets it, because it has effects on the node"
	readOnly  = "remove it: ZFS reports it, and nothing can set it"
	keyless   = "remove it: an encrypted dataset needs a key, and the operator gives it none"
)

// Operators returns the properties that only the operator sets: where datasets are mounted, and what the node may do with their contents.
func Operators() []string {
	return []string{"mountpoint", "canmount", "zoned", "zoned_uid", "sharenfs", "sharesmb", "keylocation", "setuid", "devices", "exec",
		"volmode", "snapdir"}
}

// properties are those of filesystems and volumes.
var properties = allProperties()

func allProperties() map[string]property {
	all := commonProperties()
	for name, of := range filesystemProperties() {
		all[name] = property{values: of, only: Filesystem}
	}
	for name, of := range map[string][]string{
		"normalization":   {"none", "formC", "formD", "formKC", "formKD"},
		"casesensitivity": {"sensitive", "insensitive", "mixed"},
		"utf8only":        {"on", "off"},
	} {
		all[name] = property{values: words{known: of}, only: Filesystem, once: true}
	}
	for remedy, names := range map[string]string{
		keyless:   "encryption keyformat pbkdf2iters",
		operators: strings.Join(Operators(), " "),
		readOnly: `available clones compressratio createtxg creation defer_destroy encryptionroot filesystem_count guid keystatus
			logicalreferenced logicalused mounted name objsetid origin receive_resume_token redact_snaps refcompressratio referenced
			snapshot_count snapshots_changed snapshots_changed_nsecs type used usedbychildren usedbydataset usedbyrefreservation
			usedbysnapshots userrefs written`,
	} {
		for _, name := range strings.Fields(names) {
			all[name] = property{refused: remedy}
		}
	}
	return all
}

// commonProperties are the properties of both kinds of datasets, and some of a single kind, which the field only then names.
func commonProperties() map[string]property {
	return map[string]property{
		"recordsize":   {values: blocks, only: Filesystem},
		"volblocksize": {values: blocks, only: Volume, once: true},
		"volsize":      {values: size{}, only: Volume},
		"volthreading": {values: onOff, only: Volume},
		"compression": {values: words{known: compressions(), more: true,
			text: "on, off, lz4, lzjb, zle, gzip, gzip-1 to gzip-9, zstd, zstd-1 to zstd-19, zstd-fast or zstd-fast-1 to zstd-fast-1000"}},
		"checksum": {values: words{known: []string{"on", "off", "fletcher2", "fletcher4", "sha256", "sha512", "skein",
			"edonr", "blake3"}, more: true}},
		"dedup":                {values: words{known: []string{"on", "off", "verify", "sha256", "sha512", "skein", "blake3"}, more: true}},
		"copies":               {values: words{known: []string{"1", "2", "3"}}},
		"sync":                 {values: words{known: []string{"standard", "always", "disabled"}}},
		"logbias":              {values: words{known: []string{"latency", "throughput"}}},
		"primarycache":         {values: cached},
		"secondarycache":       {values: cached},
		"prefetch":             {values: cached},
		"redundant_metadata":   {values: words{known: []string{"all", "most", "some", "none"}, more: true}},
		"special_small_blocks": {values: size{to: 16 << 20}},
		"quota":                {values: limit, only: Filesystem},
		"refquota":             {values: limit, only: Filesystem},
		"reservation":          {values: limit},
		"refreservation":       {values: size{words: []string{"none", "auto"}}},
		"filesystem_limit":     {values: count{[]string{"none"}}, only: Filesystem},
		"snapshot_limit":       {values: count{[]string{"none"}}},
		"readonly":             {values: onOff},
		"snapdev":              {values: words{known: []string{"hidden", "visible"}}},
		"mlslabel":             {values: anything{}},
	}
}

func filesystemProperties() map[string]values {
	return map[string]values{
		"atime": onOff, "relatime": onOff, "vscan": onOff, "nbmand": onOff, "overlay": onOff, "longname": onOff,
		"xattr":            words{known: []string{"on", "off", "sa", "dir"}, more: true},
		"dnodesize":        words{known: []string{"legacy", "auto", "1k", "2k", "4k", "8k", "16k"}},
		"direct":           words{known: []string{"disabled", "standard", "always"}, more: true},
		"acltype":          words{known: []string{"off", "posix", "nfsv4", "disabled", "noacl", "posixacl"}, more: true},
		"aclmode":          words{known: []string{"discard", "groupmask", "passthrough", "restricted"}},
		"aclinherit":       words{known: []string{"discard", "noallow", "restricted", "passthrough", "passthrough-x", "secure"}},
		"context":          anything{},
		"fscontext":        anything{},
		"defcontext":       anything{},
		"rootcontext":      anything{},
		"version":          words{known: []string{"1", "2", "3", "4", "5", "current"}, more: true},
		"defaultuserquota": limit, "defaultgroupquota": limit, "defaultprojectquota": limit,
		"defaultuserobjquota": limit, "defaultgroupobjquota": limit, "defaultprojectobjquota": limit,
	}
}

func compressions() []string {
	known := []string{"on", "off", "lz4", "lzjb", "zle", "gzip", "zstd", "zstd-fast"}
	add := func(prefix string, from, to, step int) {
		for level := from; level <= to; level += step {
			known = append(known, fmt.Sprintf("%s-%d", prefix, level))
		}
	}
	add("gzip", 1, 9, 1)
	add("zstd", 1, 19, 1)
	add("zstd-fast", 1, 10, 1)
	add("zstd-fast", 20, 100, 10)
	return append(known, "zstd-fast-500", "zstd-fast-1000")
}

// short are names that ZFS accepts too, but never prints: the value that was set could not be compared with the value that ZFS reports.
var short = map[string]string{"compress": "compression", "recsize": "recordsize", "volblock": "volblocksize", "reserv": "reservation",
	"refreserv": "refreservation", "rdonly": "readonly"}

// Fields are the fields of a dataset in the API besides its properties.
var Fields = []string{"provisioner", "type", "fsType", "size"}

// Dataset says what is wrong with a property of a dataset.
func Dataset(name, value string) Answer {
	known, found := properties[name]
	switch {
	case slices.Contains(Fields, name):
		return refused("it is a field of the dataset: write dataset.%s", name)
	case !found && short[name] != "":
		return refused("write %s, as 'zfs get' prints it", short[name])
	case !found && parameters[name] != "":
		return refused("it is a parameter of the ZFS module: write it under moduleParameters")
	case !found && Place(name) != "":
		return refused("it is a property of the pool: write %s", Place(name))
	case !found && slices.Contains(nodesOwn, name):
		return refused("it is a property of the pool, and a benchmark cannot set it: remove it")
	case !found:
		return unknown("dataset", name, settable())
	case known.refused != "":
		return refused("%s", known.refused)
	}
	return known.values.check(value)
}

// Once reports whether a property has to be set when the dataset is created. A version cannot be lowered later, and the highest is the
// default.
func Once(name string) bool { return properties[name].once || name == "version" }

// Change says what is wrong with a new value for a property of a dataset that exists.
func Change(name, value string) Answer {
	if properties[name].once {
		return refused("it cannot be changed once a dataset exists: set it in the properties of the dataset")
	}
	return Dataset(name, value)
}

// On says why a dataset of that kind does not have a property, and which one it has instead. It is empty if the dataset has the property.
func On(name, kind string) string {
	switch only := properties[name].only; {
	case only == "" || only == kind:
		return ""
	case name == "recordsize":
		return fmt.Sprintf("only a dataset of type %s has it, and this one is a %s: write volblocksize", only, kind)
	case name == "volblocksize":
		return fmt.Sprintf("only a dataset of type %s has it, and this one is a %s: write recordsize", only, kind)
	default:
		return fmt.Sprintf("only a dataset of type %s has it, and this one is a %s: remove it", only, kind)
	}
}

// unknown refuses a name that is most likely a typing error, and warns of other names: a newer OpenZFS may have them.
func unknown(of, name string, known []string) Answer {
	if meant := spelling.Slip(name, known); meant != "" {
		return refused("a %s has no such property: did you mean %s?", of, meant)
	}
	return Answer{Warning: fmt.Sprintf("no %s has such a property up to OpenZFS %s: if the OpenZFS of the node does not have it either, "+
		"no run can begin", of,
		Newest)}
}

// settable returns the names of the properties that a benchmark can set.
func settable() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if properties[name].refused == "" {
			names = append(names, name)
		}
	}
	return names
}
