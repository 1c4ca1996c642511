package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/results"
)

// invalidTable lists the invalid attempts, with the phases that caused them.
func invalidTable(e results.Experiment) table {
	t := table{Head: []string{"Run", "Variant", "Repetition", "Attempt", "Reason", "Message"}}
	for _, run := range e.Runs {
		if !run.Valid {
			t.add(named(run.Name), named(run.Variant), count(run.Repetition), count(run.Attempt), named(run.Reason), words(invalidMessage(run)))
		}
	}
	return t
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

// repeatedAttempts counts the repeated attempts of each variant. Empty if there are none.
func repeatedAttempts(e results.Experiment) string {
	again, total := map[string]int{}, 0
	for _, run := range e.Runs {
		if run.Attempt > 1 && (run.Group == nil || run.Group.Index == 0) {
			again[run.Variant]++
			total++
		}
	}
	if total == 0 {
		return ""
	}
	var words []string
	for _, variant := range e.Variants {
		if n := again[variant.Name]; n > 0 {
			words = append(words, fmt.Sprintf("%s %d", plain(variant.Name, maxNameBytes), n))
		}
	}
	counts := "Repeated attempts: " + strings.Join(words, ", ") + "."
	if len(e.Variants) == 1 {
		return counts
	}
	return "A variant that is repeated more often than the others may look better than it is: what made its runs Invalid is not in its " +
		"numbers. " + counts
}

// attemptsTable lists all attempts.
func attemptsTable(e results.Experiment) table {
	t := table{Caption: "Every attempt, in the order of execution", Head: []string{"Run", "Variant", "Repetition", "Attempt", "Node",
		"Outcome", "Why", "Took"}}
	for _, run := range e.Runs {
		outcome, why := tableCell{Text: "Valid"}, run.Message
		if !run.Valid {
			outcome, why = verdictCell("Invalid"), strings.TrimPrefix(run.Reason+": "+invalidMessage(run), ": ")
		}
		t.add(named(run.Name), named(run.Variant), count(run.Repetition), count(run.Attempt), named(run.NodeName), outcome, words(why),
			figure(took(run.StartedAt, run.FinishedAt)))
	}
	return t
}

// rawTable names the ConfigMaps of each run.
func rawTable(e results.Experiment) table {
	t := table{Caption: "ConfigMaps with everything that was measured", Head: []string{"Run", "ConfigMaps"}, Closed: true}
	for _, run := range e.Runs {
		var kept []string
		for _, phase := range run.Phases {
			if phase.ConfigMap != "" {
				kept = append(kept, phase.ConfigMap)
			}
		}
		if len(kept) > 0 {
			t.add(named(run.Name), listed(", ", kept))
		}
	}
	return t
}

func (m *maker) runs() pageSection {
	e := m.Experiment
	section := pageSection{After: m.tables(attemptsTable(e), rawTable(e))}
	if countValid(e.Runs) < len(e.Runs) {
		section.Notes = []string{"Invalid attempts are in no number above."}
	}
	if again := repeatedAttempts(e); again != "" {
		section.Notes = append(section.Notes, again)
	}
	return section
}

// howTable says how an experiment was run, as far as that is known.
func howTable(e results.Experiment) table {
	t := table{Caption: "How it was run", Head: []string{"What", "Value"}}
	for _, line := range []struct{ what, value string }{
		{"Experiment", e.Experiment}, {"State", e.State}, {"Generation", strconv.FormatInt(e.Generation, 10)},
		{"Seed", strconv.FormatInt(e.Seed, 10)},
		{"Order", e.Order}, {"Repetitions", strconv.Itoa(int(e.Repetitions))}, {"Node", e.NodeName}, {"StorageClass", e.StorageClass},
		{"Reset", resetWords(e)}, {"Pool", results.AgeOf(e.Runs).Words()}, {"Runner image", e.RunnerImage}, {"Started", moment(e.StartedAt)},
		{"Finished", moment(e.FinishedAt)}, {"Took", took(e.StartedAt, e.FinishedAt)}, {"Drift", driftWords(e)},
	} {
		if line.value != "" {
			t.add(words(line.what), exact(line.value))
		}
	}
	for _, left := range e.Omitted {
		t.add(words("Left out of results.json"), words(left))
	}
	return t
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

func took(from, to *time.Time) string {
	if from == nil || to == nil || to.Before(*from) {
		return ""
	}
	return to.Sub(*from).Round(time.Second).String()
}

// repeat says how the experiment was run, and how to run it again.
func (m *maker) repeat() pageSection {
	e := m.Experiment
	section := pageSection{Before: m.tables(howTable(e))}
	if m.Manifest == "" {
		section.Notes = []string{"The StorageBenchmark was changed since, or its spec is not known here: take it from where you keep your " +
			"manifests, with spec.seed " + strconv.FormatInt(e.Seed, 10) + "."}
		return section
	}
	section.Notes = []string{"Save the StorageBenchmark below as benchmark.yaml. It has the seed of these runs: all random choices " +
		"are the same again."}
	if names := targetNames(m.Manifest); len(names) > 0 {
		section.Notes = append(section.Notes, "It also needs the StorageTarget "+plain(strings.Join(names, ", "), maxNameBytes)+".")
	}
	section.Texts = []verbatim{{"In a cluster", "kubectl storagebench run benchmark.yaml --wait"}}
	// Pools that a run created need the agent.
	if !slices.ContainsFunc(e.Runs, func(run results.RunResult) bool { return len(run.Volumes) > 0 }) {
		section.Texts = append(section.Texts, verbatim{"On one machine, in a folder of the storage to measure",
			"kubectl-storagebench run benchmark.yaml --local /path/to/folder --output results"})
	}
	section.Texts = append(section.Texts, verbatim{"benchmark.yaml", lines(m.Manifest, manifestBytes)})
	return section
}

// targetNames returns the names of the StorageTargets that a manifest refers to. A manifest that is no StorageBenchmark refers to none.
func targetNames(manifest string) []string {
	var benchmark v1alpha1.StorageBenchmark
	if yaml.Unmarshal([]byte(manifest), &benchmark) != nil {
		return nil
	}
	return design.TargetNames(&benchmark.Spec)
}
