package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

// The size limit of the head and of each section of the Markdown.
const (
	headBytes        = 6 << 10
	gatesBytes       = 40 << 10
	comparisonsBytes = 12 << 10
	bestBytes        = 12 << 10
	numbersBytes     = 36 << 10
	notesBytes       = 8 << 10
	outlierBytes     = 4 << 10
	nodesBytes       = 12 << 10
	disksBytes       = 12 << 10
	invalidBytes     = 16 << 10
	preflightBytes   = 8 << 10
	environmentBytes = 8 << 10
	whereBytes       = 4 << 10
	volumesBytes     = 8 << 10
	howBytes         = 6 << 10
	rawBytes         = 8 << 10
)

// Together they stay below MaxMarkdownBytes: otherwise this array has a negative length, and nothing compiles.
var _ [MaxMarkdownBytes - headBytes - gatesBytes - comparisonsBytes - bestBytes - numbersBytes - notesBytes - outlierBytes - nodesBytes -
	disksBytes - invalidBytes - preflightBytes - environmentBytes - whereBytes - volumesBytes - howBytes - rawBytes]struct{}

// renderMarkdown also lists what did not fit.
func renderMarkdown(e results.Experiment) (text string, omitted []string) {
	all := samplesOf(e)
	sections := []*section{gatesSection(e), comparisonsSection(e), bestSection(e, all), numbersSection(e, all),
		notesSection(e), outliersSection(e, all), nodesSection(e), disksSection(e), invalidSection(e), preflightSection(e), environmentSection(e),
		whereSection(e), volumesSection(e), howSection(e), rawSection(e)}
	var out strings.Builder
	out.WriteString(head(e))
	for _, s := range sections {
		out.WriteString(s.String())
		if s.dropped > 0 {
			omitted = append(omitted, fmt.Sprintf("report.md: %d rows of %q", s.dropped, s.title))
		}
	}
	return out.String(), omitted
}

// head is the verdict with its message, and warnings about the measurements.
func head(e results.Experiment) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s/%s: %s\n\n**%s**", name(e.Benchmark.Namespace), name(e.Benchmark.Name), name(verdictWord(e)), name(verdictWord(e)))
	if e.Reason != "" && e.Reason != e.Verdict {
		fmt.Fprintf(&out, " (%s)", name(e.Reason))
	}
	if e.Message != "" {
		fmt.Fprintf(&out, ": %s", cell(e.Message))
	}
	out.WriteString("\n")
	switch e.State {
	case results.StateSuperseded:
		out.WriteString("\nThe benchmark was changed before this experiment ended. What was measured until then is below; no verdict follows " +
			"from it.\n")
	case results.StateIncomplete:
		out.WriteString("\nRuns are missing, so nothing is decided. What was measured is below.\n")
	}
	if len(e.Runs) > 0 {
		fmt.Fprintf(&out, "\n%s\n", runsText(e.Runs))
	}
	if len(e.Groups) > 0 {
		fmt.Fprintf(&out, "\nThe runs on all nodes at the same time are one repetition: there are %d such groups.\n", len(e.Groups))
	}
	return out.String()
}

// runsText is, for example, "6 runs, 3 of them valid."
func runsText(runs []results.RunResult) string {
	valid := countValid(runs)
	switch {
	case len(runs) != 1:
		return fmt.Sprintf("%d runs, %d of them valid.", len(runs), valid)
	case valid == 1:
		return "1 run, which is valid."
	default:
		return "1 run, which is not valid."
	}
}

func countValid(runs []results.RunResult) int {
	count := 0
	for _, run := range runs {
		if run.Valid {
			count++
		}
	}
	return count
}

func gatesSection(e results.Experiment) *section {
	s := newSection("Gates", gatesBytes)
	if len(e.Gates) == 0 {
		return s
	}
	s.uncounted("| Gate | Verdict | Why | Definition |\n|---|---|---|---|")
	for _, gate := range e.Gates {
		why := cmp.Or(cell(gate.Message), cell(gate.Reason))
		s.row("| %s | **%s** | %s | %s |", name(gate.Name), name(gate.Verdict), why, code(gate.Definition))
	}
	for _, warning := range cacheWarnings(e) {
		s.row("\nWarning: %s", cell(warning))
	}
	return s
}

// invalidSection lists the invalid attempts, with the phases that caused them.
func invalidSection(e results.Experiment) *section {
	s := newSection("What went wrong", invalidBytes)
	for _, run := range e.Runs {
		if run.Valid {
			continue
		}
		if s.text.Len() == 0 {
			s.uncounted("These attempts were not used in any number above.\n\n" + repeatedAttempts(e) + "| Run | Variant | Repetition | Attempt | " +
				"Reason | Message |\n|---|---|---|---|---|---|")
		}
		s.row("| %s | %s | %d | %d | %s | %s |", name(run.Name), name(run.Variant), run.Repetition, run.Attempt, name(run.Reason),
			cell(invalidMessage(run)))
	}
	return s
}

func invalidMessage(run results.RunResult) string {
	parts := []string{run.Message}
	for _, phase := range run.Phases {
		if phase.Outcome == results.OutcomeInvalid && phase.Message != run.Message {
			parts = append(parts, fmt.Sprintf("phase %s: %s: %s", phase.Name, phase.Reason, phase.Message))
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

func environmentSection(e results.Experiment) *section {
	s := newSection("The runs were not alike", environmentBytes)
	keys := make([]string, 0, len(e.Environment))
	for key, values := range e.Environment {
		if len(values) > 1 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for i, key := range keys {
		if i == 0 {
			s.uncounted("Compare numbers with care: these parts of the environment had more than one value.\n\n| What | Values |\n|---|---|")
		}
		shown := make([]string, 0, len(e.Environment[key]))
		for _, value := range e.Environment[key] {
			shown = append(shown, code(value))
		}
		s.row("| %s | %s |", name(key), strings.Join(shown, ", "))
	}
	for _, words := range e.UnlikeCheckpoints() {
		s.row("\n%s: each takes time from its run, so a comparison also compares how many there were.", cell(words))
	}
	return s
}

// whereSection shows the main keys of the environment, even if all runs had the same values.
func whereSection(e results.Experiment) *section {
	s := newSection("Where it was measured", whereBytes)
	for i, row := range mainRows(e.Environment) {
		if i == 0 {
			s.uncounted("| | |\n|---|---|")
		}
		s.row("| %s | %s |", markdownEscapes.Replace(row[0].Text), code(row[1].Text))
	}
	return s
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

// volumesSection lists the volumes of each variant as ZFS reported them.
func volumesSection(e results.Experiment) *section {
	s := newSection("What was made", volumesBytes)
	for _, run := range volumeRuns(e.Runs) {
		for _, volume := range run.Volumes {
			if s.text.Len() == 0 {
				s.uncounted("As read back from ZFS before the first phase.\n\n| Variant | Volume | Properties | OpenZFS |\n|---|---|---|---|")
			}
			var properties []string
			for _, property := range slices.Sorted(maps.Keys(volume.Properties)) {
				properties = append(properties, code(property+"="+volume.Properties[property]))
			}
			s.row("| %s | %s | %s | %s |", name(run.Variant), name(volume.Name), strings.Join(properties, ", "), cell(volume.ZFSVersion))
		}
	}
	return s
}

// howLine is a fact about how an experiment was run. Without a value it is not known.
type howLine struct{ what, value string }

func howLines(e results.Experiment) []howLine {
	return []howLine{
		{"Experiment", e.Experiment}, {"State", e.State}, {"Generation", strconv.FormatInt(e.Generation, 10)},
		{"Seed", strconv.FormatInt(e.Seed, 10)},
		{"Order", e.Order}, {"Repetitions", strconv.Itoa(int(e.Repetitions))}, {"Node", e.NodeName}, {"StorageClass", e.StorageClass},
		{"Reset", resetWords(e)}, {"Pool", results.AgeOf(e.Runs).Words()}, {"Runner image", e.RunnerImage}, {"Started", moment(e.StartedAt)},
		{"Finished", moment(e.FinishedAt)}, {"Took", took(e)}, {"Drift", driftWords(e)},
	}
}

func howSection(e results.Experiment) *section {
	s := newSection("How it was run", howBytes)
	s.uncounted("| | |\n|---|---|")
	for _, line := range howLines(e) {
		if line.value != "" {
			s.row("| %s | %s |", line.what, code(line.value))
		}
	}
	for _, words := range e.Omitted {
		s.row("| Left out of results.json | %s |", cell(words))
	}
	return s
}

// resetWords says how many runs reused the pool of an earlier run. Empty if each had its own.
func resetWords(e results.Experiment) string {
	reset, kept := "", 0
	for _, run := range e.Runs {
		if run.Reset != "" {
			reset = run.Reset
		}
		if run.KeptFrom != "" {
			kept++
		}
	}
	if reset == "" {
		return ""
	}
	return fmt.Sprintf("%s: %d of %d runs reused the pool of the previous run, and do not count as independent", reset, kept, len(e.Runs))
}

func moment(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func took(e results.Experiment) string {
	if e.StartedAt == nil || e.FinishedAt == nil || e.FinishedAt.Before(*e.StartedAt) {
		return ""
	}
	return e.FinishedAt.Sub(*e.StartedAt).Round(time.Second).String()
}

func rawSection(e results.Experiment) *section {
	s := newSection("Raw data", rawBytes)
	for _, run := range e.Runs {
		var maps []string
		for _, phase := range run.Phases {
			if phase.ConfigMap != "" {
				maps = append(maps, code(phase.ConfigMap))
			}
		}
		if len(maps) == 0 {
			continue
		}
		if s.text.Len() == 0 {
			s.uncounted("Each phase of each run has a ConfigMap; `document.json.gz` in it is everything that was measured.\n\n| Run | ConfigMaps " +
				"|\n|---|---|")
		}
		s.row("| %s | %s |", name(run.Name), strings.Join(maps, ", "))
	}
	return s
}
