package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// screen shows progress: a block that is refreshed on a terminal, or a line for each change elsewhere.
type screen interface {
	// show shows the present state of all.
	show(all []shown, now time.Time)
	// news says what stays true, such as the end of a phase.
	news(name, text string, mood mood, now time.Time)
	// clear makes room for what is said at the end.
	clear()
	// interval is how often to show although nothing happened.
	interval() time.Duration
}

// shown is one benchmark in progress.
type shown struct {
	name string
	// block for a terminal.
	block []string
	// sentence says what happens; a change of it is news for a log.
	sentence string
	// phase and percent are how far a phase is, with the text for a log. Without a phase there is none.
	phase     string
	percent   int32
	milestone string
}

// newScreen fits to where the output goes.
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
	// written is the sentence that was written last, next the one that is to be, since when.
	written, next string
	since         time.Time
	phase         string
	quarter       int32
	at            time.Time
}

const (
	// settleFor is how long a sentence must last to be worth a line.
	settleFor = time.Second
	// quietFor is the shortest time between a line and one that only tells how far a phase is.
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

// terminalScreen repaints its block in place. News scrolls away above it.
type terminalScreen struct {
	out    io.Writer
	colour bool
	size   func() (columns, rows int)
	// painted are the lines of the block, so that their rows can be counted after the window has changed.
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

// paint replaces the block, with text above it. It is one write: a terminal that shows half a block flickers.
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

// back goes to the first line of the block and erases everything below. In a window that became narrower, lines wrap.
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

// fit cuts a line to the width, for one that wraps could not be gone back over.
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

// cells is the width of a text on a terminal, or more: whatever may be wide counts as wide.
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
