package report

import (
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
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
		"pairs":       {hanging(8), "Against old (95% interval) |", "×0.886 (0.885..0.888) |"},
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
