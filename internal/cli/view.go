package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

const barWidth = 24

// blockOf returns the lines for a benchmark on a terminal: the current phase, then the overall state.
func blockOf(t *tracked, now time.Time) []string {
	var lines []string
	if live, is := t.phase(); is {
		lines = append(lines, "  "+t.phaseTitle(live.run, live.phase)+"  "+progressText(live.Progress, now.Sub(live.at)))
	}
	lines = append(lines, headLine(t, now), "  "+t.sentence())
	if end := endLine(t, now); end != "" {
		lines = append(lines, "  "+end)
	}
	if t.noRates != "" {
		lines = append(lines, "  no rates: "+t.noRates)
	}
	if t.outage != "" {
		lines = append(lines, "  connection lost, retrying: "+t.outage)
	}
	return lines
}

// phaseTitle identifies a phase, for example "run 1 of 2  fill", with the same width for every phase.
func phaseTitle(run, total int, attempt, phase string, phases []string) string {
	width := 0
	for _, name := range phases {
		width = max(width, len(name))
	}
	text := fmt.Sprintf("run %*d of %d", len(fmt.Sprint(total)), run, total)
	if attempt != "" && attempt != "1" {
		text += ", attempt " + attempt
	}
	return fmt.Sprintf("%s  %-*s", text, width, phase)
}

// headLine summarises a benchmark, for example "lab/quickstart  Running on node-a (fast), 1 of 2 runs done, 1m35s".
func headLine(t *tracked, now time.Time) string {
	text := t.key.String() + "  "
	if !t.current() {
		return text + "Applied"
	}
	status := &t.benchmark.Status
	text += status.State
	if status.NodeName != "" {
		text += " on " + status.NodeName
	}
	if status.StorageClass != "" {
		text += " (" + status.StorageClass + ")"
	}
	if done := t.runsDone(); done != "" {
		text += ", " + done
	}
	switch {
	case status.StartedAt != nil && status.FinishedAt != nil:
		text += ", in " + brief(status.FinishedAt.Sub(status.StartedAt.Time))
	case status.StartedAt != nil:
		text += ", " + brief(now.Sub(status.StartedAt.Time))
	case status.Queue != nil:
		text += ", queued for " + brief(now.Sub(status.Queue.Since.Time))
	}
	return text
}

// endLine shows when the benchmark will end, as the operator estimates from earlier runs.
func endLine(t *tracked, now time.Time) string {
	if !t.current() || t.benchmark.Status.Progress == nil || t.benchmark.Status.Progress.EstimatedEnd == nil {
		return ""
	}
	end := t.benchmark.Status.Progress.EstimatedEnd.Time
	if left := end.Sub(now); left >= time.Second {
		return fmt.Sprintf("ends about %s, in %s", end.In(now.Location()).Format("15:04"), brief(left))
	}
	return "should end any moment"
}

// progressText formats progress, for example "[######------] 45%  1.2 GiB/s  3m10s left  round 3". age is the age of the progress.
func progressText(progress results.Progress, age time.Duration) string {
	filled := int(progress.Percent) * barWidth / 100
	text := fmt.Sprintf("[%s%s] %3d%%", strings.Repeat("#", filled), strings.Repeat("-", barWidth-filled), progress.Percent)
	if progress.Rate != "" {
		text += "  " + progress.Rate
	}
	if left := time.Duration(progress.SecondsLeft)*time.Second - max(age, 0); progress.SecondsLeft > 0 {
		text += "  " + brief(left) + " left"
	}
	if progress.Message != "" {
		text += "  " + progress.Message
	}
	return text
}

// milestoneText formats the progress of a phase for a log.
func milestoneText(phase string, progress results.Progress) string {
	if progress.Percent == 100 { // the flush, the checks and the end of the pod follow
		return fmt.Sprintf("phase %s: 100%%, finishing", phase)
	}
	text := fmt.Sprintf("phase %s: %d%%", phase, progress.Percent)
	if progress.Rate != "" {
		text += ", " + progress.Rate
	}
	if progress.SecondsLeft > 0 {
		text += ", " + brief(time.Duration(progress.SecondsLeft)*time.Second) + " left"
	}
	return text
}
