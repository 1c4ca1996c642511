package qualify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

// Level says how much a finding matters.
type Level string

// The levels, worst first.
const (
	// Bad: databases will suffer.
	Bad Level = "Bad"
	// Unknown: it was not measured, so nothing can be said.
	Unknown Level = "Unknown"
	// Warning: keep it in mind.
	Warning Level = "Warning"
	// Good: no concerns.
	Good Level = "Good"
)

// levels in the order of a card.
var levels = []Level{Bad, Unknown, Warning, Good}

// Finding is what one rule says.
type Finding struct {
	Level Level `json:"level"`
	// About is what was judged.
	About string `json:"about"`
	// Measured are the figures, with the limit.
	Measured string `json:"measured"`
	// Means and Do say what follows. Empty if it is good.
	Means string `json:"means,omitempty"`
	Do    string `json:"do,omitempty"`
	// beyond is by which factor the value is beyond the limit: the worst comes first.
	beyond float64
}

// Card is the answer of qualify.
type Card struct {
	// Subject is what was qualified.
	Subject string `json:"subject"`
	// Verdict is the worst level: Bad, Unknown, Warning or Good.
	Verdict Level `json:"verdict"`
	// Sentence says it in words.
	Sentence string `json:"sentence"`
	// Nodes and Measured say where and when.
	Nodes    []string   `json:"nodes,omitempty"`
	Measured *time.Time `json:"measured,omitempty"`
	// Findings, the worst first.
	Findings []Finding `json:"findings"`
}

// Facts are what the rules judge.
type Facts struct {
	// metrics by phase and name.
	metrics map[string]map[string]results.MetricResult
	// troubles are experiments without usable numbers, in words; doubts are what preflight checks found.
	troubles, doubts []string
	// nodes is the largest number of nodes that measured at the same time.
	nodes int
	attempts
}

// FactsOf returns the facts from the experiments of a suite.
func FactsOf(experiments ...results.Experiment) Facts {
	facts := Facts{metrics: map[string]map[string]results.MetricResult{}}
	for _, e := range experiments {
		if e.State != results.StateComplete {
			facts.troubles = append(facts.troubles, fmt.Sprintf("%s is %s: %s", e.Benchmark.Name, e.State, e.Message))
		}
		facts.nodes = max(facts.nodes, nodesOf(e))
		repetitions := results.Repetitions(e.Runs)
		for _, variant := range e.Variants {
			for _, phase := range variant.Phases {
				phase.Metrics = slices.DeleteFunc(slices.Clone(phase.Metrics), func(metric results.MetricResult) bool {
					return results.Lacks(repetitions, variant.Name, metric) // unknown: these runs may have stalled
				})
				facts.add(phase)
			}
		}
		for _, run := range e.Runs {
			facts.see(run)
			for _, check := range run.Preflight {
				for _, message := range check.Messages {
					words := check.Check + ": " + message
					if check.State == results.PreflightWarning && !slices.Contains(facts.doubts, words) {
						facts.doubts = append(facts.doubts, words)
					}
				}
			}
		}
	}
	return facts
}

func (f Facts) add(phase results.PhaseResult) {
	if f.metrics[phase.Name] == nil {
		f.metrics[phase.Name] = map[string]results.MetricResult{}
	}
	for _, metric := range phase.Metrics {
		f.metrics[phase.Name][metric.Name] = metric
	}
}

// metric returns a metric of a phase, or false if it was not measured.
func (f Facts) metric(phase, name string) (results.MetricResult, bool) {
	metric, found := f.metrics[phase][name]
	return metric, found && metric.Runs > 0
}

// Judge makes the findings of all rules, the worst first.
func Judge(facts Facts) []Finding {
	var all []Finding
	for _, rule := range rules {
		all = append(all, rule(facts)...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level)), cmp.Compare(b.beyond, a.beyond))
	})
	return all
}

// CardOf judges the experiments of a suite. Troubles say why some are missing.
func CardOf(subject string, troubles []string, experiments ...results.Experiment) Card {
	facts := FactsOf(experiments...)
	facts.troubles = append(facts.troubles, troubles...)
	card := Card{Subject: subject, Findings: Judge(facts)}
	for _, e := range experiments {
		if e.NodeName != "" && !slices.Contains(card.Nodes, e.NodeName) {
			card.Nodes = append(card.Nodes, e.NodeName)
		}
		if at := e.FinishedAt; at != nil && (card.Measured == nil || card.Measured.Before(*at)) {
			card.Measured = at
		}
	}
	card.Verdict = Good
	if len(card.Findings) > 0 {
		card.Verdict = card.Findings[0].Level
	}
	count := map[Level]int{}
	for _, finding := range card.Findings {
		count[finding.Level]++
	}
	card.Sentence = sentence(card.Verdict, count)
	return card
}

func sentence(verdict Level, count map[Level]int) string {
	switch verdict {
	case Bad:
		return fmt.Sprintf("Not fit for databases as measured. Of %d findings %d are bad, %d unknown and %d warnings.",
			count[Bad]+count[Unknown]+count[Warning]+count[Good], count[Bad], count[Unknown], count[Warning])
	case Unknown:
		return fmt.Sprintf("Unknown. Findings without figures of the storage: %d. Nothing that was measured is bad.", count[Unknown])
	case Warning:
		return fmt.Sprintf("Usable for databases. Warnings to mind: %d.", count[Warning])
	case Good:
		return "Fit for databases: no rule found a problem."
	}
	return "Not known."
}
