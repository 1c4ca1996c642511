package naming

import (
	"regexp"
	"strings"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Like returns a name that Kubernetes accepts and that is like a text, but perhaps too long. Empty if the text has no letters and digits.
func Like(text string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-")
}
