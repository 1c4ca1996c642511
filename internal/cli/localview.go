package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/spelling"
)

// localView shows one phase of a local run during its execution.
type localView struct {
	run   *localRun
	tally experiment.Tally
	// title and sentence identify the phase, for a terminal and for a log.
	title, sentence string
	phase           string
	started         time.Time
	live            *livePhase
}

func newLocalView(l *localRun, run *v1alpha1.BenchmarkRun, i int, tally experiment.Tally) *localView {
	phase, attempt := string(run.Spec.Phases[i].Name), ""
	names := make([]string, len(run.Spec.Phases))
	for j := range run.Spec.Phases {
		names[j] = string(run.Spec.Phases[j].Name)
	}
	sentence := fmt.Sprintf("run %d of %d (%s, repetition %d): phase %s (%d of %d)",
		run.Spec.Index+1, tally.Total, run.Spec.Variant, run.Spec.Repetition, phase, i+1, len(names))
	if run.Spec.Attempt > 1 {
		attempt = fmt.Sprint(run.Spec.Attempt)
		sentence += ", attempt " + attempt
	}
	return &localView{run: l, tally: tally, title: phaseTitle(int(run.Spec.Index)+1, tally.Total, attempt, phase, names),
		sentence: sentence, phase: phase, started: l.app.Now()}
}

// during shows progress until execute has returned. When the context ends, it shows that it waits for the workload to stop.
func (v *localView) during(ctx context.Context,
	execute func(func(results.Progress)) (results.PhaseDocument, error)) (document results.PhaseDocument, err error) {
	news, done := make(chan results.Progress), make(chan struct{})
	go func() {
		defer close(done)
		document, err = execute(func(progress results.Progress) {
			select {
			case news <- progress:
			case <-ctx.Done():
			}
		})
	}()
	ticker := time.NewTicker(v.run.screen.interval())
	defer ticker.Stop()
	ending := ctx.Done()
	for {
		v.show()
		select {
		case progress := <-news:
			v.live = &livePhase{phase: v.phase, at: v.run.app.Now(), Progress: progress}
		case <-ticker.C:
		case <-ending:
			ending = nil
			v.sentence = "stopping the workload"
			if errors.Is(ctx.Err(), context.Canceled) {
				v.sentence += "; press Ctrl-C again to exit without cleanup"
			}
			v.live = nil
		case <-done:
			return document, err
		}
	}
}

// ended reports the end of the phase: its most important metrics, or why its measurements cannot be used.
func (v *localView) ended(document results.PhaseDocument, spoilt *runs.Ending) {
	now := v.run.app.Now()
	text, how := fmt.Sprintf("%s  done in %s", v.title, brief(now.Sub(v.started))), good
	if spoilt != nil {
		why := strings.TrimPrefix(spoilt.Message, "phase "+v.phase+": ")
		text, how = fmt.Sprintf("%s  cannot be used, after %s: %s", v.title, brief(now.Sub(v.started)), why), doubtful
	} else if figures := mainFigures(document); figures != "" {
		text += "  " + figures
	}
	v.run.screen.news(v.run.name(), text, how, now)
}

// mainFigures formats the most important metrics, for example "read 3.20 k op/s, 25.0 MiB/s".
func mainFigures(document results.PhaseDocument) string {
	var parts []string
	for _, part := range []struct {
		word    string
		metrics []string
	}{
		{"filled", []string{"filledBytes"}},
		{"rounds:", []string{"rounds"}},
		{"", []string{"transactionsPerSecond"}},
		{"read", []string{"readOperationsPerSecond", "readBytesPerSecond"}},
		{"wrote", []string{"writeOperationsPerSecond", "writeBytesPerSecond"}},
	} {
		var figures []string
		for _, name := range part.metrics {
			known, is := results.LookupMetric(name)
			if value := document.Metrics[name]; is && value != 0 {
				figures = append(figures, report.Amount(name, known.Unit, value))
			}
		}
		if len(figures) > 0 {
			parts = append(parts, strings.TrimSpace(part.word+" "+strings.Join(figures, ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

func (v *localView) show() {
	l, now := v.run, v.run.app.Now()
	head := fmt.Sprintf("%s  on %s, %d of %s done", l.name(), l.storage.path, v.tally.Done, spelling.Count(v.tally.Total, "run"))
	if v.tally.Invalid > 0 {
		head += fmt.Sprintf(", %d invalid", v.tally.Invalid)
	}
	head += ", " + brief(now.Sub(l.checked.benchmark.Status.StartedAt.Time))
	one := shown{name: l.name(), sentence: v.sentence}
	if v.live != nil {
		one.phase, one.percent, one.milestone = v.sentence, v.live.Percent, milestoneText(v.phase, v.live.Progress)
		one.block = append(one.block, "  "+v.title+"  "+progressText(v.live.Progress, now.Sub(v.live.at)))
	}
	one.block = append(one.block, head, "  "+v.sentence)
	if v.tally.MeanDuration > 0 {
		if left := v.tally.MeanDuration * time.Duration(v.tally.Total-v.tally.Done); left > 0 {
			one.block = append(one.block, "  all runs take about "+roughly(left)+" from the start of this one")
		}
	}
	l.screen.show([]shown{one}, now)
}
