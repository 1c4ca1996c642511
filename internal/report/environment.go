package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// mainTitles are the titles of results.MainKeys.
var mainTitles = map[string]string{
	"kernel": "Kernel", "os": "Operating system", "zfs.version": "OpenZFS", "fio": "fio", "postgres.version": "PostgreSQL", "cpu.model": "CPU",
	"cpu.count": "CPUs", "memory.bytes": "Memory", "machine": "Machine", "virtualization": "Virtualization", "mount.type": "File system",
	"mount.options": "Mount options",
}

// diskKeys are the keys of a disk in the order of its description, with what stands before and after a value.
var diskKeys = []struct{ before, key, after string }{
	{"", "name", ""}, {"", "vendor", ""}, {"", "model", ""}, {"", "sizeBytes", ""}, {"rotational ", "rotational", ""},
	{"", "logicalSectorBytes", " logical sectors"}, {"", "physicalSectorBytes", " physical sectors"},
	{"", "writeCache", ""}, {"scheduler ", "scheduler", ""},
}

// mainTable has a row for each main key that the environment has, and for each disk.
func mainTable(environment map[string][]string) table {
	t := table{Caption: "Where it was measured", Head: []string{"What", "Value"}}
	for _, key := range results.MainKeys {
		if values := environment[key]; len(values) > 0 {
			t.add(words(mainTitles[key]), exact(readable(key, values)))
		}
	}
	for _, disk := range disks(environment) {
		var facts []string
		for _, of := range diskKeys {
			key := "device." + disk + "." + of.key
			if values := environment[key]; len(values) > 0 {
				facts = append(facts, of.before+readable(key, values)+of.after)
			}
		}
		t.add(words("Disk "+disk), exact(strings.Join(facts, ", ")))
	}
	return t
}

// disks returns the names of the disks in an environment, whose keys are next to each other in their order.
func disks(environment map[string][]string) (names []string) {
	for _, key := range sortedKeys(environment) {
		rest, isDisk := strings.CutPrefix(key, "device.")
		if name, _, found := strings.Cut(rest, "."); isDisk && found && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	return names
}

// readable joins the values of a key. Sizes get a unit, and what the kernel says with a digit becomes a word.
func readable(key string, values []string) string {
	values = slices.Clone(values)
	for i, value := range values {
		bytes, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err == nil && strings.HasSuffix(strings.ToLower(key), "bytes"):
			values[i] = Bytes(bytes)
		case strings.HasSuffix(key, ".rotational"):
			values[i] = cmp.Or(map[string]string{"0": "no", "1": "yes"}[value], value)
		}
	}
	return strings.Join(values, "; ")
}

// environmentTable has a row for each of the keys.
func environmentTable(environment map[string][]string, keys []string) table {
	t := table{Caption: "What differed between runs", Head: []string{"What", "Values"}}
	for _, key := range keys {
		t.add(named(key), listed("; ", environment[key]))
	}
	return t
}

// checkpointNotes name the phases whose checkpoints differed.
func checkpointNotes(e results.Experiment) (notes []string) {
	for _, unlike := range e.UnlikeCheckpoints() {
		notes = append(notes, plain(unlike, maxCellBytes)+": each takes time from its run, so a comparison also compares how many there were.")
	}
	return notes
}

// unlikeNote says how to read the table of what differed.
const unlikeNote = "These parts of the environment had more than one value. What a variant sets is meant to differ. If anything else " +
	"does, compare numbers with care."

func environmentSection(e results.Experiment) *section {
	different := environmentTable(e.Environment, e.UnlikeKeys())
	return newSection("The runs were not alike", 8<<10).table(different, unlikeNote).lines(checkpointNotes(e))
}

func (m *maker) environment() pageSection {
	e := m.Experiment
	different, whole := environmentTable(e.Environment, e.UnlikeKeys()), environmentTable(e.Environment, sortedKeys(e.Environment))
	whole.Caption, whole.Head[0], whole.Closed = "The whole environment", "Key", true
	section := pageSection{Before: m.tables(different, mainTable(e.Environment)), After: m.tables(volumesTable(e), whole)}
	switch {
	case len(whole.Rows) == 0:
		section.Notes = []string{"The results say nothing about the environment."}
	case len(different.Rows) == 0:
		section.Notes = []string{"All runs had the same environment."}
	default:
		section.Notes = []string{"The runs were not alike. " + unlikeNote}
	}
	section.Notes = append(section.Notes, checkpointNotes(e)...)
	return section
}

// volumeRuns returns the runs whose volumes are shown: of each variant the first valid run with volumes, or else the first with volumes.
func volumeRuns(runs []results.RunResult) []results.RunResult {
	chosen := map[string]results.RunResult{}
	var variants []string
	for _, run := range runs {
		known, seen := chosen[run.Variant]
		if !seen {
			variants = append(variants, run.Variant)
		}
		if !seen || len(known.Volumes) == 0 || run.Valid && !known.Valid && len(run.Volumes) > 0 {
			chosen[run.Variant] = run
		}
	}
	slices.Sort(variants)
	var shown []results.RunResult
	for _, variant := range variants {
		shown = append(shown, chosen[variant])
	}
	return shown
}

// volumesTable lists the volumes of each variant as ZFS reported them.
func volumesTable(e results.Experiment) table {
	t := table{Caption: "Volumes, as read back from ZFS before the first phase", Head: []string{"Variant", "Volume", "Properties", "OpenZFS"}}
	for _, run := range volumeRuns(e.Runs) {
		for _, volume := range run.Volumes {
			var properties []string
			for _, property := range sortedKeys(volume.Properties) {
				properties = append(properties, property+"="+volume.Properties[property])
			}
			t.add(named(run.Variant), named(volume.Name), listed(", ", properties), words(volume.ZFSVersion))
		}
	}
	return t
}

func sortedKeys[V any](all map[string]V) []string { return slices.Sorted(maps.Keys(all)) }
