package imports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// DefaultSize is the size of a volume whose size is unknown.
const DefaultSize = "20Gi"

// Manifest returns the StorageBenchmark as YAML, below a comment that says what was left out.
func (b *Benchmark) Manifest() string {
	var text strings.Builder
	line := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	line("# Converted from %s. The original runs once. This benchmark repeats it, so that gates can tell a change from chance. Add gates.",
		b.From)
	if len(b.Left) > 0 {
		line("# Left out or changed:")
		for _, left := range b.Left {
			line("#   - %s", comment(left))
		}
	}
	line("apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata:\n  name: %s\nspec:", InYAML(b.Name))
	line("  target:\n    storageClass: {%s}", b.class())
	line("  phases:")
	switch {
	case strings.HasSuffix(b.Fill, "%"):
		line("  - {name: fill, fill: {to: %s}}", b.Fill)
	case b.Fill != "":
		line("  - {name: fill, fill: {size: %s}}", b.Fill)
	}
	for _, phase := range b.Phases {
		line("  - name: %s\n    measure:\n      workload:\n        fio:\n          jobFile: |", InYAML(phase.Name))
		for job := range strings.Lines(phase.Jobs) {
			if job = strings.TrimRight(job, "\n"); job != "" {
				job = "            " + job
			}
			line("%s", job)
		}
	}
	if len(b.NodeSelector) > 0 {
		selector, _ := json.Marshal(b.NodeSelector) // strings can always be encoded, and JSON is YAML
		line("  podTemplate:\n    nodeSelector: %s", selector)
	}
	return text.String()
}

// plainName matches names that YAML reads as text, except for a few words.
var plainName = regexp.MustCompile(`^[a-z][-a-z0-9.]+$`)

// InYAML returns a name as YAML, in quotes if YAML would read it as a number or as another value.
func InYAML(name string) string {
	if !plainName.MatchString(name) || slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "null"}, name) {
		return strconv.Quote(name)
	}
	return name
}

// class returns the fields of the target in YAML.
func (b *Benchmark) class() string {
	size := cmp.Or(b.Size, DefaultSize)
	fields := fmt.Sprintf("size: %q", size)
	if plain := strings.Trim(size, "0123456789KMGTPi"); plain == "" && strings.ContainsAny(size, "KMGTP") {
		fields = "size: " + size
	}
	if b.Class != "" {
		fields = "name: " + InYAML(b.Class) + ", " + fields
	}
	if b.Block {
		fields += ", volumeMode: Block"
	}
	return fields
}

// comment makes one line of comment from the text of a file.
func comment(text string) string {
	text = strings.Map(func(letter rune) rune {
		if letter == unicode.ReplacementChar || !unicode.IsPrint(letter) {
			return '?'
		}
		return letter
	}, text)
	if letters := []rune(text); len(letters) > 240 {
		return string(letters[:237]) + "..."
	}
	return text
}
