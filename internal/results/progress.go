package results

import (
	"encoding/json"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	progressPrefix    = "storagebench-progress "
	maxProgressText   = 256
	maxProgressLength = 4096
)

// Progress says how far a phase is. It is a line in the log, and is not kept elsewhere.
type Progress struct {
	Percent     int32  `json:"percent"`
	Rate        string `json:"rate,omitempty"`
	Message     string `json:"message,omitempty"`
	SecondsLeft int64  `json:"secondsLeft,omitempty"`
}

// Line writes the progress as one line, without its end.
func (p Progress) Line() string {
	text, err := json.Marshal(p.bounded())
	if err != nil { // cannot happen: there are only strings and integers in it
		return ""
	}
	return progressPrefix + string(text)
}

// ParseProgress reads a line that Line wrote. It returns false if the line is something else.
func ParseProgress(line string) (Progress, bool) {
	text, found := strings.CutPrefix(strings.TrimSpace(line), progressPrefix)
	if !found || len(text) > maxProgressLength {
		return Progress{}, false
	}
	var progress Progress
	if err := json.Unmarshal([]byte(text), &progress); err != nil {
		return Progress{}, false
	}
	return progress.bounded(), true
}

// bounded is applied when progress is written and when it is read, because the text of a log ends up in status and in terminals.
func (p Progress) bounded() Progress {
	p.Percent = min(max(p.Percent, 0), 100)
	p.SecondsLeft = max(p.SecondsLeft, 0)
	p.Rate = spelling.Shorten(p.Rate, maxProgressText)
	p.Message = spelling.Shorten(p.Message, maxProgressText)
	return p
}
