package observe

import "path"

// Memory of the node at one moment.
type Memory struct {
	// Available is what programs could get without swapping, as the kernel estimates it. The estimate counts the ARC as used.
	Available Level
	// ARC is the size of the cache of ZFS.
	ARC Level
}

// Level is an amount that goes up and down.
type Level struct {
	Bytes int64
	Known bool
}

// Memory reads the memory of the node.
func (o *Observer) Memory() Memory {
	var now Memory
	if text, err := o.system.read("/proc/meminfo"); err == nil {
		if values, err := parseKeyValues(text); err == nil {
			now.Available = levelOf(values, "MemAvailable")
		}
	}
	if text, err := o.system.read(path.Join(kstats, "arcstats")); err == nil {
		if stat, err := parseKstat(text); err == nil {
			now.ARC = levelOf(stat.numbers, "size")
		}
	}
	return now
}

func levelOf(values map[string]uint64, name string) Level {
	value, known := values[name]
	return Level{Bytes: clip(value), Known: known}
}
