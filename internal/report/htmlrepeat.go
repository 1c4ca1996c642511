package report

import (
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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

// mainRows returns a row for each main key that the environment has.
func mainRows(environment map[string][]string) [][]tableCell {
	var rows [][]tableCell
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
			rows = append(rows, []tableCell{words(title), words(strings.Join(environment[key], "; "))})
		}
	}
	return rows
}

func (m *maker) environment() pageSection {
	e := m.Experiment
	var all, different [][]tableCell
	for _, key := range sortedKeys(e.Environment) {
		values := strings.Join(e.Environment[key], "; ")
		all = append(all, []tableCell{words(key), codeWords(values)})
		if len(e.Environment[key]) > 1 {
			different = append(different, []tableCell{words(key), codeWords(values)})
		}
	}
	section := pageSection{}
	switch {
	case len(all) == 0:
		section.Notes = []string{"The results say nothing about the environment."}
	case len(different) == 0:
		section.Notes = []string{"All runs had the same environment."}
	default:
		section.Notes = []string{"The runs were not alike. Compare numbers with care."}
	}
	section.Before = tables(
		m.rows(table{Caption: "What differed between runs", Head: []string{"What", "Values"}}, different...),
		m.rows(table{Caption: "Where it was measured", Head: []string{"What", "Value"}}, mainRows(e.Environment)...))
	section.After = tables(
		m.rows(table{Caption: "Volumes, as read back from ZFS before the first phase", Head: []string{"Variant", "Volume", "Properties",
			"OpenZFS"}}, m.volumeRows()...),
		m.rows(table{Caption: "The whole environment", Closed: true, Head: []string{"Key", "Values"}}, all...))
	return section
}

func (m *maker) volumeRows() [][]tableCell {
	var rows [][]tableCell
	for _, run := range volumeRuns(m.Experiment.Runs) {
		for _, volume := range run.Volumes {
			var properties []string
			for _, property := range slices.Sorted(maps.Keys(volume.Properties)) {
				properties = append(properties, property+"="+volume.Properties[property])
			}
			rows = append(rows, []tableCell{words(run.Variant), words(volume.Name), codeWords(strings.Join(properties, ", ")),
				words(volume.ZFSVersion)})
		}
	}
	return rows
}

func (m *maker) runs() pageSection {
	e := m.Experiment
	var rows, raw [][]tableCell
	for _, run := range e.Runs {
		outcome, why := tableCell{Text: "Valid"}, run.Message
		if !run.Valid {
			outcome = tableCell{Text: "Invalid", Strong: true, Class: "doubt"}
			why = strings.TrimPrefix(run.Reason+": "+invalidMessage(run), ": ")
		}
		rows = append(rows, []tableCell{{Text: plain(run.Name, maxNameBytes)}, words(run.Variant), figure(strconv.Itoa(int(run.Repetition))),
			figure(strconv.Itoa(int(run.Attempt))), words(run.NodeName), outcome, words(why), figure(lasted(run.StartedAt, run.FinishedAt))})
		var kept []string
		for _, phase := range run.Phases {
			if phase.ConfigMap != "" {
				kept = append(kept, phase.ConfigMap)
			}
		}
		if len(kept) > 0 {
			raw = append(raw, []tableCell{{Text: plain(run.Name, maxNameBytes)}, codeWords(strings.Join(kept, ", "))})
		}
	}
	section := pageSection{After: tables(
		m.rows(table{Caption: "Every attempt, in the order of execution", Head: []string{"Run", "Variant", "Repetition", "Attempt", "Node",
			"Outcome", "Why", "Took"}}, rows...),
		m.rows(table{Caption: "ConfigMaps with everything that was measured", Closed: true, Head: []string{"Run", "ConfigMaps"}}, raw...))}
	if countValid(e.Runs) < len(e.Runs) {
		section.Notes = []string{"Invalid attempts are in no number above."}
	}
	return section
}

func lasted(from, to *time.Time) string {
	return took(results.Experiment{StartedAt: from, FinishedAt: to})
}

// repeat says how the experiment was run, and how to run it again.
func (m *maker) repeat() pageSection {
	e := m.Experiment
	var rows [][]tableCell
	for _, line := range howLines(e) {
		if line.value != "" {
			rows = append(rows, []tableCell{words(line.what), words(line.value)})
		}
	}
	for _, left := range e.Omitted {
		rows = append(rows, []tableCell{words("Left out of results.json"), words(left)})
	}
	section := pageSection{Before: tables(m.rows(table{Caption: "How it was run", Head: []string{"What", "Value"}}, rows...))}
	if m.Manifest == "" {
		section.Notes = []string{"The StorageBenchmark was changed since, or its spec is not known here: take it from where you keep your " +
			"manifests, with spec.seed " + strconv.FormatInt(e.Seed, 10) + "."}
		return section
	}
	section.Notes = []string{"Save the StorageBenchmark below as benchmark.yaml. It has the seed of these runs: all random choices " +
		"are the same again."}
	section.Texts = []verbatim{
		{"In a cluster", "kubectl storagebench run benchmark.yaml --wait"},
		{"On one machine, in a folder of the storage to measure",
			"kubectl-storagebench run benchmark.yaml --local /path/to/folder --output results"},
		{"benchmark.yaml", lines(m.Manifest, manifestBytes)},
	}
	return section
}

// lines removes invisible characters from text of several lines, and cuts it so that it has at most that many bytes when escaped.
func lines(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return visible(r)
	}, strings.ToValidUTF8(text, "\uFFFD"))
	for i, r := range text {
		if most -= len(html.EscapeString(string(r))); most < 0 {
			return text[:i] + "\n# The rest did not fit here."
		}
	}
	return text
}

func sortedKeys[V any](all map[string]V) []string { return slices.Sorted(maps.Keys(all)) }
