package cli

import "github.com/storagebench/storagebench/api/v1alpha1"

// mood is the meaning of a colour. The text says the same, so the output does not depend on colours.
type mood int

const (
	neutral mood = iota
	good
	doubtful
	bad
)

// tint colours a text for a terminal.
func tint(text string, mood mood, colour bool) string {
	code := ""
	switch mood {
	case good:
		code = "32"
	case doubtful:
		code = "33"
	case bad:
		code = "31"
	case neutral:
	}
	if code == "" || !colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func moodOf(verdict string) mood {
	switch v1alpha1.Verdict(verdict) {
	case v1alpha1.VerdictPassed:
		return good
	case v1alpha1.VerdictFailed:
		return bad
	default:
		return doubtful
	}
}
