package zfs

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The patterns of arguments. They are narrower than those of ZFS: no argument can begin like an option or contain a space, and in the name
// of a dataset, '@' only separates the snapshot and '#' does not occur.
var (
	poolPattern      = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,63}$`)
	componentPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:-]{0,199}$`)
	nativePattern    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	userPattern      = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,127}:[a-z0-9_.:-]{1,127}$`)
	valuePattern     = regexp.MustCompile(`^[a-zA-Z0-9/][a-zA-Z0-9_.:/+@=,-]{0,511}$`)
	devicePattern    = regexp.MustCompile(`^/dev/disk/by-[a-z]+/[a-zA-Z0-9_][a-zA-Z0-9_.:@+-]{0,200}$`)
	guidPattern      = regexp.MustCompile(`^[0-9]{1,20}$`)
	vdevPattern      = regexp.MustCompile(`^(mirror|raidz[123]|draid[123]:[0-9]+d:[0-9]+c:[0-9]+s|spare|replacing)-[0-9]+$`)
	tokenPattern     = regexp.MustCompile(`^1-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+$`)
	// reservedPools are prefixes that zpool takes for types of vdevs.
	reservedPools = []string{"mirror", "raidz", "draid", "spare", "log", "cache", "special", "dedup", "replacing"}
)

func checkPool(name string) error {
	if !poolPattern.MatchString(name) {
		return invalid("pool name %q: start with a letter, followed by letters, digits, '_', '.' or '-', such as bench0", name)
	}
	for _, reserved := range reservedPools {
		if strings.HasPrefix(name, reserved) {
			return invalid("pool name %q: ZFS reserves names that begin with %q; choose another, such as bench0", name, reserved)
		}
	}
	return nil
}

// checkDataset accepts a pool or a dataset below it, but no snapshot.
func checkDataset(name string) error {
	pool, below, found := strings.Cut(name, "/")
	if err := checkPool(pool); err != nil {
		return err
	}
	if !found {
		return nil
	}
	if len(name) > 255 {
		return invalid("dataset name of %d characters: make it at most 255", len(name))
	}
	for part := range strings.SplitSeq(below, "/") {
		if !componentPattern.MatchString(part) {
			return invalid("dataset name %q: write parts of letters, digits and _ . : - between '/', such as bench0/parent/data", name)
		}
	}
	return nil
}

// checkSnapshot accepts dataset@snapshot.
func checkSnapshot(name string) error {
	dataset, snapshot, found := strings.Cut(name, "@")
	if !found || !componentPattern.MatchString(snapshot) {
		return invalid("snapshot name %q: write DATASET@SNAPSHOT with letters, digits and _ . : -, such as bench0/data@before", name)
	}
	return checkDataset(dataset)
}

// checkEither accepts a dataset or a snapshot.
func checkEither(name string) error {
	if strings.Contains(name, "@") {
		return checkSnapshot(name)
	}
	return checkDataset(name)
}

func checkProperty(name string) error {
	if !nativePattern.MatchString(name) && !userPattern.MatchString(name) {
		return invalid("property name %q: write it as 'zfs get' prints it, such as recordsize, or with ':' such as storagebench.dev:uid", name)
	}
	return nil
}

func checkValue(name, value string) error {
	if !valuePattern.MatchString(value) {
		return invalid("value %q of property %s: write letters, digits and _ . : / + @ = , - without spaces", value, name)
	}
	return nil
}

func checkDevice(path string) error {
	if !devicePattern.MatchString(path) {
		return invalid("device %q: name a disk by its stable path, such as /dev/disk/by-id/nvme-SERIAL", path)
	}
	return nil
}

// checkMember accepts a device, a vdev's guid, or a top-level vdev such as mirror-0.
func checkMember(name string) error {
	if guidPattern.MatchString(name) || vdevPattern.MatchString(name) || devicePattern.MatchString(name) {
		return nil
	}
	return invalid("vdev %q: name it by its stable path, its guid, or a name such as mirror-0", name)
}

// checkEach applies a check to each name.
func checkEach(check func(string) error, names []string) error {
	for _, name := range names {
		if err := check(name); err != nil {
			return err
		}
	}
	return nil
}

// propertyOptions renders properties as options in the order of their names, so that equal properties give equal commands.
func propertyOptions(option string, properties map[string]string) ([]string, error) {
	args := []string{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if err := cmp.Or(checkProperty(name), checkValue(name, properties[name])); err != nil {
			return nil, err
		}
		args = append(args, option, name+"="+properties[name])
	}
	return args, nil
}

// without refuses properties that belong to this package or have a field of their own.
func without(properties map[string]string, names ...string) error {
	for _, name := range names {
		if _, there := properties[name]; there {
			return invalid("property %q: remove it from the properties, it is set by other means", name)
		}
	}
	return nil
}
