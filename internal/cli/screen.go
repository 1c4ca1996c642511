package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// screen shows progress: a block that is refreshed on a terminal, or a line for each change elsewhere.
type screen interface {
	// show shows the current state of all benchmarks.
	show(all []shown, now time.Time)
	// news prints permanent lines, such as the end of a phase.
	news(name, text string, mood mood, now time.Time)
	// clear makes room for the final output.
	clear()
	// interval returns how often to refresh without a change.
	interval() time.Duration
}

// shown is one benchmark in progress.
type shown struct {
	name string
	// block are the lines for a terminal.
	block []string
	// sentence is the current state. A log gets a line for each change of it.
	sentence string
	// phase and percent are the progress of a phase, and milestone is the text about it for a log. They are empty without a phase.
	phase     string
	percent   int32
	milestone string
}

// newScreen chooses the screen for the output.
func (a *App) newScreen() screen {
	if a.onTerminal() {
		return &terminalScreen{out: a.Out, colour: a.Colour, size: func() (columns, rows int) {
			columns, rows, _ = a.Terminal()
			return columns, rows
		}}
	}
	return &plainScreen{out: a.Out, last: map[string]*plainState{}}
}

// plainScreen writes lines for logs: one for each change of the sentence, and one for each quarter of a phase.
type plainScreen struct {
	out  io.Writer
	last map[string]*plainState
}

type plainState struct {
	// written is the sentence written last, next is the pending one, and since is when next was set.
	written, next string
	since         time.Time
	phase         string
	quarter       int32
	at            time.Time
}

const (
	// settleFor is how long a sentence must last before it is written.
	settleFor = time.Second
	// quietFor is the shortest time between a line and a line that only reports progress of a phase.
	quietFor = 10 * time.Second
)

func (s *plainScreen) show(all []shown, now time.Time) {
	for _, one := range all {
		state := s.state(one.name, now)
		if one.sentence != state.next {
			state.next, state.since = one.sentence, now
		}
		if state.next != state.written && now.Sub(state.since) >= settleFor {
			state.written = state.next
			s.news(one.name, one.sentence, neutral, now)
		}
		if one.phase != state.phase {
			state.phase, state.quarter = one.phase, 0
		}
		if quarter := one.percent / 25; one.phase != "" && quarter > state.quarter && now.Sub(state.at) >= quietFor {
			state.quarter = quarter
			s.news(one.name, one.milestone, neutral, now)
		}
	}
}

func (s *plainScreen) state(name string, now time.Time) *plainState {
	if s.last[name] == nil {
		s.last[name] = &plainState{at: now}
	}
	return s.last[name]
}

func (s *plainScreen) news(name, text string, _ mood, now time.Time) {
	s.state(name, now).at = now
	_, _ = fmt.Fprintf(s.out, "%s %s: %s\n", now.Format("15:04:05"), clean(name), clean(text))
}

func (s *plainScreen) clear() {}

func (s *plainScreen) interval() time.Duration { return settleFor / 2 }

// terminalScreen repaints its block in place. Permanent lines scroll away above it.
type terminalScreen struct {
	out    io.Writer
	colour bool
	size   func() (columns, rows int)
	// painted are the lines of the block. They are kept to count their rows after the window size has changed.
	painted []string
}

func (s *terminalScreen) show(all []shown, _ time.Time) {
	var lines []string
	for _, one := range all {
		lines = append(lines, one.block...)
	}
	s.paint("", lines)
}

func (s *terminalScreen) news(_, text string, mood mood, _ time.Time) {
	s.paint("  "+tint(clean(text), mood, s.colour)+"\n", s.painted)
}

// paint replaces the block and writes text above it. It does so in one write, because otherwise a terminal flickers.
func (s *terminalScreen) paint(above string, lines []string) {
	columns, rows := s.size()
	if most := rows - 1; most > 0 && len(lines) > most {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("... and %d more lines", len(lines)-most+1))
	}
	text := s.back(columns) + above
	s.painted = nil
	for _, line := range lines {
		fitted := fit(clean(line), columns)
		s.painted = append(s.painted, fitted)
		text += fitted + "\n"
	}
	_, _ = io.WriteString(s.out, text)
}

// back moves to the first line of the block and erases everything below. In a narrower window, lines wrap.
func (s *terminalScreen) back(columns int) string {
	if len(s.painted) == 0 {
		return ""
	}
	rows := 0
	for _, line := range s.painted {
		rows += max(1, (cells(line)+columns-1)/max(1, columns))
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", rows)
}

func (s *terminalScreen) clear() {
	columns, _ := s.size()
	_, _ = io.WriteString(s.out, s.back(columns))
	s.painted = nil
}

func (s *terminalScreen) interval() time.Duration { return time.Second }

// fit truncates a line to the width, because the cursor could not move back over a wrapped line.
func fit(line string, columns int) string {
	if columns <= 0 || cells(line) < columns {
		return line
	}
	dots := strings.Repeat(".", min(3, columns-1))
	room := columns - 1 - len(dots)
	for i, r := range line {
		if room -= cellsOf(r); room < 0 {
			return line[:i] + dots
		}
	}
	return line
}

// cells returns an upper bound for the width of a text on a terminal: every possibly wide character counts as wide.
func cells(text string) int {
	count := 0
	for _, r := range text {
		count += cellsOf(r)
	}
	return count
}

func cellsOf(r rune) int {
	if r >= 0x1100 && (r < 0x2000 || r >= 0x2E80) {
		return 2
	}
	return 1
}
