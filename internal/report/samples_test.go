package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/results/resultstest"
)

// hanging is an experiment without gates in which a run of the second variant hung, and was not repeated.
func hanging(repetitions int32) results.Experiment {
	e := experiment(repetitions, "old", "new")
	for i := range e.Runs {
		if e.Runs[i].Variant == "new" && e.Runs[i].Repetition == 3 {
			e.Runs[i].Phases[1].Metrics["readBytesPerSecond"] /= 10
		}
	}
	e.Variants = results.Summarise(e.Runs)
	return e
}

func TestRatiosHaveIntervals(t *testing.T) {
	sequential, kept, zero := hanging(8), hanging(8), hanging(8)
	sequential.Order = "Sequential"
	kept.Runs[2].KeptFrom = "another"
	zero.Runs[0].Phases[1].Metrics["readBytesPerSecond"] = 0
	for name, c := range map[string]struct {
		e          results.Experiment
		head, want string
	}{
		"pairs":       {hanging(9), "Against old (95% interval) |", "×0.887 (0.884..0.888) |"},
		"few pairs":   {hanging(8), "Against old (95% interval) |", "×0.886 (0.089..0.888) |"},
		"sequential":  {sequential, "Against old (95% interval) |", "×0.885 (0.866..0.901) |"},
		"too few":     {hanging(5), "Against old (of medians) |", "×0.8"},
		"kept pools":  {kept, "Against old (of medians) |", "×0.89 |"},
		"not a ratio": {zero, "Against old (95% interval) |", "×0.89 |"}, // the other metrics have intervals
	} {
		rows := 0
		if _, scan, _ := strings.Cut(sectionOf(c.e, "Numbers"), "### aged-scan"); !strings.Contains(scan, c.head) {
			t.Errorf("%s: the head is not %s in %s", name, c.head, scan)
		}
		for line := range strings.Lines(Render(c.e).Markdown) {
			if strings.HasPrefix(line, "| readBytesPerSecond |") && strings.Contains(line, "| new |") {
				if rows++; !strings.Contains(line, c.want) {
					t.Errorf("%s: %s, want %s", name, line, c.want)
				}
			}
		}
		if rows != 1 {
			t.Errorf("%s: %d rows", name, rows)
		}
	}
}

// TestWhatDoesNotFitIsNotLacking: values of single runs that do not fit into results.json were measured, unless the summary says otherwise.
func TestWhatDoesNotFitIsNotLacking(t *testing.T) {
	const judged, primary = "log.syncLatencyMeanNanoseconds", "readLatencyP99Nanoseconds"
	for _, test := range []struct {
		omitted, metric string
		stalled         bool
	}{
		{"metrics of single runs", judged, false}, {"metrics of single runs", judged, true}, {"metrics of single runs", primary, true},
		{"phases of single runs", judged, false}, {"phases of single runs", judged, true},
		{"phases of single runs", primary, false}, {"phases of single runs", primary, true},
	} {
		t.Run(fmt.Sprintf("%s, %s, stalled: %v", test.omitted, test.metric, test.stalled), func(t *testing.T) {
			g := gomega.NewWithT(t)
			e := experiment(6, "a", "b")
			for i := range e.Runs {
				run := &e.Runs[i]
				run.Phases[1].Metrics[judged] = 7_000_000
				if test.stalled && run.Variant == "b" && run.Repetition == 3 {
					delete(run.Phases[1].Metrics, test.metric)
				}
			}
			e.Variants = results.Summarise(e.Runs)
			e.Gates = []results.GateResult{{Name: "g", Metrics: []results.GateMetric{{Phase: "aged-scan", Metric: judged}}}}
			stored := resultstest.WithoutPart(t, e, test.omitted)
			g.Expect(strings.Contains(string(render(t, Page{Experiment: stored})), notInAll)).To(gomega.Equal(test.stalled))
			rows := 0
			for _, row := range numbersTable(stored, samplesOf(stored), "aged-scan", wide).Rows {
				if text := fmt.Sprint(row); row[0].Text == test.metric && row[2].Text == "b" {
					rows++
					g.Expect(strings.Contains(text, notInAll)).To(gomega.Equal(test.stalled), text)
					g.Expect(strings.Contains(text, "×")).To(gomega.Equal(!test.stalled), text)
				}
			}
			g.Expect(rows).To(gomega.Equal(1))
		})
	}
}

func TestOutlyingRunsAreNamed(t *testing.T) {
	text := Render(hanging(8)).Markdown
	_, section, found := strings.Cut(text, "## Outlying runs")
	if !found || !strings.Contains(section, "| new | 3 | aged-scan | readBytesPerSecond | ") || strings.Contains(section, "| old |") ||
		strings.Contains(section, "| new | 4 |") {
		t.Errorf("%s", section)
	}
	page, _, err := HTML(Page{Experiment: hanging(8)})
	if _, outlying, found := strings.Cut(string(page), "<caption>Outlying runs</caption>"); err != nil || !found ||
		!strings.Contains(outlying, "readBytesPerSecond") || !strings.Contains(outlying, "These are far") {
		t.Errorf("%v: the page has no outlying run", err)
	}
	if strings.Contains(Render(experiment(8, "old", "new")).Markdown, "Outlying") {
		t.Error("runs without an outlier have some")
	}
}

func TestRepeatedAttemptsAreCounted(t *testing.T) {
	if got := repeatedAttempts(invalidCase()); !strings.HasSuffix(got, " Repeated attempts: r8k 1, r128k 1.") {
		t.Error(got)
	}
	if got := repeatedAttempts(experiment(2, "a")); got != "" {
		t.Error(got)
	}
	alone := experiment(2, "a")
	alone.Runs[1].Attempt = 2
	if got := repeatedAttempts(alone); got != "Repeated attempts: a 1." {
		t.Error("one variant: " + got)
	}
}
