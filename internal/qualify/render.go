package qualify

import (
	"fmt"
	"html/template"
	"strings"

	_ "embed"

	"github.com/storagebench/storagebench/internal/report/svg"
)

const maxWords = 1500

// Text is the card for a terminal.
func (c Card) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Fitness for databases: %s\n", clean(c.where()))
	fmt.Fprintf(&out, "%s\n", clean(c.Sentence))
	for _, finding := range c.Findings {
		if finding.Level == Good {
			continue
		}
		fmt.Fprintf(&out, "\n%-8s %s\n", strings.ToUpper(string(finding.Level)), clean(finding.About))
		fmt.Fprintf(&out, "         measured  %s\n         means     %s\n         do        %s\n", clean(finding.Measured),
			clean(finding.Means), clean(finding.Do))
	}
	first := true
	for _, finding := range c.Findings {
		if finding.Level != Good {
			continue
		}
		if first {
			out.WriteString("\n")
			first = false
		}
		fmt.Fprintf(&out, "GOOD     %s: %s\n", clean(finding.About), clean(finding.Measured))
	}
	return out.String()
}

// where returns the subject with nodes and date.
func (c Card) where() string {
	words := c.Subject
	if len(c.Nodes) > 0 {
		words += ", on " + strings.Join(c.Nodes, " and ")
	}
	if c.Measured != nil {
		words += ", measured " + c.Measured.UTC().Format("2006-01-02 15:04 UTC")
	}
	return words
}

// escapes prevents text from other sources from becoming markup.
var escapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "<", `\<`, "#", `\#`)

func escaped(words string) string { return escapes.Replace(clean(words)) }

// clean turns text from other sources into one line.
func clean(words string) string { return svg.Clean(words, maxWords) }

// Markdown is the card as a page.
func (c Card) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Fitness for databases: %s\n\n**%s**\n", escaped(c.where()), escaped(c.Sentence))
	out.WriteString("\n| | What | Measured | Means | Do |\n|---|---|---|---|---|\n")
	for _, f := range c.Findings {
		fmt.Fprintf(&out, "| **%s** | %s | %s | %s | %s |\n", escaped(string(f.Level)), escaped(f.About), escaped(f.Measured), escaped(f.Means),
			escaped(f.Do))
	}
	return out.String()
}

//go:embed card.html
var cardText string

var cardTemplate = template.Must(template.New("card").Funcs(template.FuncMap{
	"clean": clean,
}).Parse(cardText))

// HTML is the card as one self-contained file.
func (c Card) HTML() (string, error) {
	var out strings.Builder
	err := cardTemplate.Execute(&out, struct {
		Card

		Where string
	}{c, c.where()})
	return out.String(), err
}
