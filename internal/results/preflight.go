package results

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The values of PreflightResult.State.
const (
	PreflightClean   = "Clean"
	PreflightWarning = "Warning"
	PreflightUnknown = "Unknown"
)

// PreflightResult is the result of one check of the storage of a run.
type PreflightResult struct {
	Check string `json:"check"`
	State string `json:"state" jsonschema:"enum=Clean,enum=Warning,enum=Unknown"`
	// Messages say what is wrong, or what is not known.
	Messages []string `json:"messages,omitempty"`
}

// preflights are the checks of the storage. Each records warnings and unknown facts, and reports whether it applies. A test compares their
// names with those of the API.
var preflights = []struct {
	name string
	look func(storage, *PreflightResult) (applies bool)
}{
	{"sectors", checkSectors}, {"ashift", checkAshift}, {"alignment", checkAlignment}, {"scheduler", checkScheduler},
	{"writeCache", checkWriteCache}, {"memory", checkMemory},
}

// PreflightChecks returns the names of all checks.
func PreflightChecks() []string {
	var names []string
	for _, one := range preflights {
		names = append(names, one.name)
	}
	return names
}

// storage holds the facts that a phase found below its volume, and the volumes of the run on its pools.
type storage struct {
	facts   map[string]string
	devices []map[string]string
	volumes []RunVolume
	// filled is the number of bytes of the largest fill so far.
	filled int64
	// metrics are those of the phase.
	metrics map[string]int64
	// measures is true for a measurement.
	measures bool
	// partial is true if there may be disks that are not among the devices.
	partial bool
}

const (
	maxPreflightMessages = 4
	// mostDescribed is the largest number of disks that the environment of a phase describes.
	mostDescribed = 16
)

func (p *PreflightResult) warn(format string, values ...any) {
	p.note(PreflightWarning, fmt.Sprintf(format, values...))
}

func (p *PreflightResult) unknown(format string, values ...any) {
	p.note(PreflightUnknown, fmt.Sprintf(format, values...))
}

// note adds a message. A warning replaces messages about unknown facts, and then no more of these are added.
func (p *PreflightResult) note(state, message string) {
	switch {
	case p.State == PreflightWarning && state == PreflightUnknown:
		return
	case p.State != state:
		p.State, p.Messages = state, nil
	}
	if !slices.Contains(p.Messages, message) && len(p.Messages) < maxPreflightMessages {
		p.Messages = append(p.Messages, message)
	}
}

// Preflight returns the results of the checks of the storage of a run, over all its phases in pods, without checks that do not apply.
func Preflight(run RunResult, documents []PhaseDocument) []PreflightResult {
	found, applies := make([]PreflightResult, len(preflights)), make([]bool, len(preflights))
	var filled int64
	for _, document := range documents {
		filled = max(filled, document.Metrics["filledBytes"])
		if document.Kind == KindOperate {
			continue
		}
		seen := storage{facts: document.Environment, devices: devicesOf(document.Environment), volumes: run.Volumes, filled: filled,
			metrics: document.Metrics, measures: document.Kind == KindMeasure}
		omitted := slices.ContainsFunc(document.Omitted, func(what string) bool { return strings.Contains(what, "environment") })
		seen.partial = omitted || len(seen.devices) >= mostDescribed || withoutDisks(document.Environment)
		for i, one := range preflights {
			applies[i] = one.look(seen, &found[i]) || applies[i]
		}
	}
	var all []PreflightResult
	for i, one := range preflights {
		if applies[i] {
			found[i].Check, found[i].State = one.name, cmp.Or(found[i].State, PreflightClean)
			all = append(all, found[i])
		}
	}
	return all
}

// deviceKey matches a fact of a disk below a volume. If several workloads differ in it, each has it under its own name.
var deviceKey = regexp.MustCompile(`^((?:[^.]+\.)?device\.[0-9]+)\.([A-Za-z]+)$`)

// FactDevices is the number of disks below a volume.
const FactDevices = "devices.count"

// devicesOf returns the facts of each disk below the volumes of a phase. If a workload lacks a fact, that of the first workload counts,
// unless the workload has its own number of disks.
func devicesOf(facts map[string]string) []map[string]string {
	byPlace := map[string]map[string]string{}
	for key, value := range facts {
		if parts := deviceKey.FindStringSubmatch(key); parts != nil {
			if byPlace[parts[1]] == nil {
				byPlace[parts[1]] = map[string]string{}
			}
			byPlace[parts[1]][parts[2]] = value
		}
	}
	var devices []map[string]string
	for _, place := range sortedKeys(byPlace) {
		device := byPlace[place]
		if at := strings.Index(place, "device."); at > 0 && facts[place[:at]+FactDevices] == "" {
			for name, value := range byPlace[place[at:]] {
				if _, own := device[name]; !own {
					device[name] = value
				}
			}
		}
		devices = append(devices, device)
	}
	return devices
}

// withoutDisks reports whether nothing is known about the disks of one of several workloads.
func withoutDisks(facts map[string]string) bool {
	for key, value := range facts {
		if strings.HasSuffix(key, "."+FactDevices) && value == "0" {
			return true
		}
	}
	return false
}

// each calls a function for each disk. Without disks, the result is unknown.
func (s storage) each(p *PreflightResult, look func(name string, device map[string]string)) {
	if len(s.devices) == 0 {
		p.unknown("the disks below the volume are not known")
	}
	if s.partial {
		p.unknown("the phase does not describe all disks below the volume")
	}
	for _, device := range s.devices {
		look(cmp.Or(device["name"], "a disk"), device)
	}
}

// sectors returns the sizes of a logical and a physical sector in bytes, or 0 if not known.
func sectors(device map[string]string) (logical, physical int64) {
	logical, _ = strconv.ParseInt(device["logicalSectorBytes"], 10, 64)
	physical, _ = strconv.ParseInt(device["physicalSectorBytes"], 10, 64)
	return logical, physical
}

func checkSectors(s storage, p *PreflightResult) bool {
	s.each(p, func(name string, device map[string]string) {
		switch logical, physical := sectors(device); {
		case logical <= 0 || physical <= 0:
			p.unknown("%s does not say how large its sectors are", name)
		case logical < physical:
			p.warn("%s shows sectors of %d bytes as %d: the disk emulates the smaller ones", name, physical, logical)
		}
	})
	return true
}

// checkAshift compares the blocks of the run's pools with the sectors of their disks.
func checkAshift(s storage, p *PreflightResult) bool {
	if len(s.volumes) == 0 {
		return false
	}
	ashift, problem := s.ashift()
	if problem != "" {
		p.unknown("%s", problem)
		return true
	}
	block := int64(1) << ashift
	s.each(p, func(name string, device map[string]string) {
		const wasteful = 4
		switch _, physical := sectors(device); {
		case physical <= 0:
			p.unknown("%s does not say how large its sectors are", name)
		case block < physical:
			p.warn("ashift %d writes blocks of %d bytes to sectors of %d of %s: the disk must read and rewrite a whole sector for each block",
				ashift, block, physical,
				name)
		case block > wasteful*physical:
			p.warn("ashift %d makes blocks of %d bytes on sectors of %d of %s: small records take more space", ashift, block, physical, name)
		}
	})
	return true
}

// ashift returns the ashift of the pool that a phase works on.
func (s storage) ashift() (ashift int, problem string) {
	var known []string
	for _, volume := range s.volumes {
		if value := volume.Properties["pool.ashift"]; !slices.Contains(known, value) {
			known = append(known, value)
		}
	}
	if len(known) > 1 {
		several := slices.ContainsFunc(sortedKeys(s.facts), func(key string) bool { return strings.HasSuffix(key, ".zfs.pool") })
		if several || s.facts["zfs.pool"] == "" {
			return 0, "the pools of the run have different values of ashift, and the phase does not say which disks belong to which pool"
		}
		at := slices.IndexFunc(s.volumes, func(volume RunVolume) bool { return volume.Pool == s.facts["zfs.pool"] })
		if at < 0 {
			return 0, "the run has no pool " + s.facts["zfs.pool"]
		}
		known = []string{s.volumes[at].Properties["pool.ashift"]}
	}
	const largest = 16
	ashift, err := strconv.Atoi(known[0])
	if err != nil || ashift <= 0 || ashift > largest {
		return 0, "the pool does not say its ashift: set it"
	}
	return ashift, ""
}

// partitionWarning matches the key of a warning that a device does not begin at a sector.
var partitionWarning = regexp.MustCompile(`(^|\.)warning\.partition\.[0-9]+\.alignment$`)

func checkAlignment(s storage, p *PreflightResult) bool {
	for _, key := range sortedKeys(s.facts) {
		if partitionWarning.MatchString(key) {
			p.warn("%s", s.facts[key])
		}
	}
	s.each(p, func(name string, device map[string]string) {
		if _, physical := sectors(device); physical <= 0 {
			p.unknown("%s does not say how large its sectors are", name)
		}
	})
	return true
}

// checkScheduler only applies to ZFS, which has a queue of its own for each disk. For other file systems, the best scheduler depends on the
// disk.
func checkScheduler(s storage, p *PreflightResult) bool {
	if len(s.volumes) == 0 {
		return false
	}
	s.each(p, func(name string, device map[string]string) {
		switch scheduler := device["scheduler"]; scheduler {
		case "":
			p.unknown("the scheduler of %s is not known", name)
		case "none", "noop":
		default:
			p.warn("%s has the scheduler %s: ZFS orders the requests itself, so set none", name, scheduler)
		}
	})
	return true
}

func checkWriteCache(s storage, p *PreflightResult) bool {
	s.each(p, func(name string, device map[string]string) {
		switch device["writeCache"] {
		case "write through":
		case "write back":
			p.warn("%s has a volatile write cache, according to the kernel: the cost of flushes depends on it", name)
		default:
			p.unknown("the write cache of %s is not known", name)
		}
	})
	return true
}

// checkMemory compares the size of the filled data with the largest size of the ARC, if a measurement may have read it from there. Without
// a bound, all memory counts as that size. It also compares a configured bound of the ARC with the memory that the ARC could get when a
// measurement began.
func checkMemory(s storage, p *PreflightResult) bool {
	keeps := slices.ContainsFunc(s.volumes, func(volume RunVolume) bool {
		return volume.Properties["primarycache"] != "metadata" && volume.Properties["primarycache"] != "none"
	})
	if len(s.volumes) == 0 || s.filled == 0 || !s.measures {
		return false
	}
	available, known := s.metrics["nodeMemoryAvailableBytes"]
	own, also := s.metrics["nodeARCBytes"]
	hits, counted := s.metrics["cacheHitPartsPerMillion"]
	bounded := s.facts["zfs.arc.maxBytes"] != ""
	most, err := strconv.ParseInt(cmp.Or(s.facts["zfs.arc.maxBytes"], s.facts["memory.bytes"]), 10, 64)
	switch {
	case !keeps:
	case err != nil || most <= 0:
		p.unknown("the largest size of the ARC is not known")
	case s.filled <= most && counted && hits < fewHits: // whatever fits, it was not read from memory
	case s.filled <= most:
		p.warn("%s of data fit into the ARC, which may have %s: reads may come from memory", inMebibytes(s.filled), inMebibytes(most))
	case bounded && known && also && available+own < most:
		p.warn("the ARC may have %s, and %s are free or its own: how much data it keeps depends on what else runs on the node",
			inMebibytes(most), inMebibytes(available+own))
	}
	return true
}

// fewHits is a share of reads from memory, in parts per million, that is too small to matter.
const fewHits = 100_000

func inMebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
