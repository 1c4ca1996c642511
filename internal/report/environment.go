package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// mainKeys are the keys of an environment that readers look for first: patterns of keys, with their titles.
var mainKeys = []struct{ title, key string }{
	{"Kernel", "kernel"}, {"Operating system", "os"}, {"OpenZFS", "zfs.version"}, {"fio", "fio"}, {"PostgreSQL", "postgres.version"},
	{"CPU", "cpu.model"}, {"CPUs", "cpu.count"}, {"Memory, bytes", "memory.bytes"}, {"Virtualization", "virtualization"},
	{"Disk", "device.*.model"}, {"Disk vendor", "device.*.vendor"}, {"Disk kind", "device.*.kind"}, {"Disk size, bytes", "device.*.sizeBytes"},
	{"Rotational", "device.*.rotational"}, {"Scheduler", "device.*.scheduler"}, {"File system", "mount.type"},
	{"Mount options", "mount.options"},
}

// mainTable has a row for each main key that the environment has.
func mainTable(environment map[string][]string) table {
	t := table{Caption: "Where it was measured", Head: []string{"What", "Value"}}
	for _, of := range mainKeys {
		for _, key := range sortedKeys(environment) {
			before, after, pattern := strings.Cut(of.key, "*")
			if key != of.key && (!pattern || !strings.HasPrefix(key, before) || !strings.HasSuffix(key, after)) {
				continue
			}
			title := of.title
			if pattern {
				title += " " + strings.TrimSuffix(strings.TrimPrefix(key, before), after)
			}
			t.add(words(title), exact(strings.Join(environment[key], "; ")))
		}
	}
	return t
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
