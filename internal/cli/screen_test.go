package cli

import (
	"strings"
	"testing"
	"time"
)

// window emulates the features of a terminal that the screen uses: it wraps text, moves the cursor up, and erases everything below.
type window struct {
	columns, rows int
	lines         []string
	y             int
}

func (w *window) Write(text []byte) (int, error) {
	for rest := string(text); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			end := strings.IndexAny(rest, "AJm")
			switch rest[end] {
			case 'A':
				up := 0
				for _, digit := range rest[2:end] {
					up = 10*up + int(digit-'0')
				}
				w.y -= up
			case 'J':
				w.lines = w.lines[:w.y]
			}
			rest = rest[end+1:]
		case rest[0] == '\r':
			rest = rest[1:]
		default:
			line, after, _ := strings.Cut(rest, "\n")
			for runes := []rune(line); ; {
				part := runes[:min(len(runes), w.columns)]
				w.lines, w.y = append(w.lines, string(part)), w.y+1
				if runes = runes[len(part):]; len(runes) == 0 {
					break
				}
			}
			rest = after
		}
	}
	return len(text), nil
}

func (w *window) screen() *terminalScreen {
	return &terminalScreen{out: w, size: func() (int, int) { return w.columns, w.rows }}
}

func TestTerminalRepaintsInPlace(t *testing.T) {
	w := &window{columns: 30, rows: 10}
	s := w.screen()
	s.show([]shown{{name: "a", block: []string{"one", "two"}}}, noon)
	s.show([]shown{{name: "a", block: []string{"three", strings.Repeat("long ", 20)}}}, noon)
	s.news("a", "run 1 of 2  fill  done in 3s", good, noon)
	s.show([]shown{{name: "a", block: []string{"four"}}, {name: "b", block: []string{"five"}}}, noon)
	want := "  run 1 of 2  fill  done in 3s|four|five"
	if got := strings.Join(w.lines, "|"); got != want {
		t.Errorf("%q", got)
	}
	s.clear()
	if got := strings.Join(w.lines, "|"); got != "  run 1 of 2  fill  done in 3s" {
		t.Errorf("%q", got)
	}
}

// TestTerminalOfAnySize: no line wraps, and no line scrolls out of reach.
func TestTerminalOfAnySize(t *testing.T) {
	for columns := 1; columns < 40; columns++ {
		for _, rows := range []int{2, 3, 4} {
			w := &window{columns: columns, rows: rows}
			s := w.screen()
			for range 3 {
				s.show([]shown{{block: []string{"漢字漢字漢字漢字漢字漢字", "[####----]  45%  1.2 GiB/s  12s left", "c", "d", "e"}}}, noon)
				if len(w.lines) >= rows {
					t.Fatalf("%d columns, %d rows: %q", columns, rows, w.lines)
				}
			}
			s.clear()
			if len(w.lines) != 0 {
				t.Fatalf("%d columns: %q is left", columns, w.lines)
			}
		}
	}
}

// TestTerminalThatShrinks: the block is erased completely, although its lines wrap when the window becomes narrower.
func TestTerminalThatShrinks(t *testing.T) {
	w := &window{columns: 40, rows: 10}
	s := w.screen()
	s.show([]shown{{block: []string{"0123456789012345678901234567890123", "x"}}}, noon)
	w.columns = 10
	w.lines, w.y = []string{"0123456789", "0123456789", "0123456789", "0123", "x"}, 5
	s.show([]shown{{block: []string{"y"}}}, noon)
	if got := strings.Join(w.lines, "|"); got != "y" {
		t.Errorf("%q", got)
	}
}

func TestColours(t *testing.T) {
	for _, test := range []struct {
		mood   mood
		colour bool
		want   string
	}{
		{good, true, "\x1b[32mx\x1b[0m"}, {doubtful, true, "\x1b[33mx\x1b[0m"}, {bad, true, "\x1b[31mx\x1b[0m"}, {neutral, true, "x"},
		{bad, false, "x"},
	} {
		if got := tint("x", test.mood, test.colour); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
	for verdict, want := range map[string]mood{"Passed": good, "Failed": bad, "Invalid": doubtful, "Inconclusive": doubtful, "": doubtful} {
		if got := moodOf(verdict); got != want {
			t.Errorf("%s: %v", verdict, got)
		}
	}
}

// TestPlainLines: a log gets only sentences that last, and a line for each quarter of a phase at most every ten seconds.
func TestPlainLines(t *testing.T) {
	out := &written{}
	s := &plainScreen{out: out, last: map[string]*plainState{}}
	at := func(seconds int, sentence, phase string, percent int32) {
		s.show([]shown{{name: "ns/b", sentence: sentence, phase: phase, percent: percent, milestone: "at " + phase}},
			noon.Add(time.Duration(seconds)*time.Second))
	}
	at(0, "waiting", "", 0)
	at(0, "flicker", "", 0)
	at(1, "in line", "", 0)
	at(2, "in line", "", 0)
	at(3, "in line", "", 0)
	at(4, "filling", "fill", 30)
	at(5, "filling", "fill", 60)
	at(16, "filling", "fill", 60)
	at(17, "filling", "fill", 80)
	at(27, "filling", "fill", 80)
	s.news("ns/b", "fill done\x1b[2J", good, noon.Add(28*time.Second))
	at(29, "measuring", "read", 10)
	at(40, "measuring", "read", 20)
	golden(t, "plain.txt", out.String())
}

func TestProgressText(t *testing.T) {
	live := progressOf(45, "1.2 GiB/s", "round 3", 190)
	if got := progressText(live, 10*time.Second); got != "[##########--------------]  45%  1.2 GiB/s  3m left  round 3" {
		t.Error(got)
	}
	if got := progressText(progressOf(100, "", "", 0), time.Hour); got != "[########################] 100%" {
		t.Error(got)
	}
	if got := milestoneText("fill", progressOf(100, "0.0 MiB/s", "", 0)); got != "phase fill: 100%, finishing" {
		t.Error(got)
	}
	if got := progressText(progressOf(1, "", "", 5), time.Hour); got != "[------------------------]   1%  0s left" {
		t.Error(got)
	}
}

func TestBrief(t *testing.T) {
	for length, want := range map[time.Duration]string{
		-time.Second: "0s", 400 * time.Millisecond: "0s", 45 * time.Second: "45s", 190 * time.Second: "3m10s", 2 * time.Minute: "2m",
		time.Hour: "1h", 125*time.Minute + 40*time.Second: "2h05m", 30 * time.Hour: "30h",
	} {
		if got := brief(length); got != want {
			t.Errorf("%v: %s", length, got)
		}
	}
}
