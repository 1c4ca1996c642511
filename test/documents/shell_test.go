package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// word is a word of a command. Its variables and substitutions are not expanded.
type word = string

var (
	// keywords come before a command, and are not commands themselves.
	keywords = []word{"do", "done", "then", "fi", "else", "if", "while", "!", "esac", "{", "}"}
	// endings end a command.
	endings = []string{"&&", "||", ";;", ";", "|", "&", "\n"}
	// pattern matches the beginning of a branch of case.
	pattern = regexp.MustCompile(`^[^\s(){};&$'"]+\)\s`)
)

// simpleCommands returns the commands in a text for the shell, including those in $(...). Each is its words, without comments and
// redirections. It knows only the part of the language that pages use.
func simpleCommands(text string) (commands [][]word) {
	var words []word
	end := func() {
		for len(words) > 0 && slices.Contains(keywords, words[0]) {
			words = words[1:]
		}
		if len(words) > 0 && words[0] != "for" && words[0] != "case" {
			commands = append(commands, words)
		}
		words = nil
	}
	for text = strings.ReplaceAll(text, "\\\n", " "); text != ""; {
		switch {
		case text[0] == ' ' || text[0] == '\t':
			text = text[1:]
		case len(words) == 0 && pattern.MatchString(text):
			text = text[len(pattern.FindString(text)):]
		case text[0] == '#':
			_, after, _ := strings.Cut(text, "\n")
			text = "\n" + after
			if after == "" {
				text = ""
			}
		case slices.ContainsFunc(endings, func(ending string) bool { return strings.HasPrefix(text, ending) }):
			end()
			text = strings.TrimLeft(text, "&|;\n")
		default:
			var next word
			var inner []string
			next, inner, text = cutWord(text)
			for _, one := range inner {
				commands = append(commands, simpleCommands(one)...)
			}
			if redirected := strings.TrimLeft(next, "12"); strings.HasPrefix(redirected, ">") || strings.HasPrefix(redirected, "<") {
				if strings.Trim(redirected, "<>") == "" { // the file is the next word
					_, _, text = cutWord(strings.TrimLeft(text, " "))
				}
				continue
			}
			words = append(words, next)
		}
	}
	end()
	return commands
}

// cutWord cuts off the first word of a text, and also returns the substitutions in it.
func cutWord(text string) (first word, inner []string, rest string) {
	var built strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '$' && quote != '\'' && strings.HasPrefix(text[i:], "$("):
			length := strings.IndexByte(text[i:], ')') // pages do not nest them
			if length < 0 {
				return built.String() + text[i:], inner, ""
			}
			inner = append(inner, text[i+2:i+length])
			built.WriteString("$()")
			i += length
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			built.WriteByte(c)
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte(" \t\n;&|", c) >= 0:
			return built.String(), inner, text[i:]
		default:
			built.WriteByte(c)
		}
	}
	return built.String(), inner, ""
}

func TestSimpleCommands(t *testing.T) {
	for text, want := range map[string][][]word{
		"make demo     # a first verdict":                                              {{"make", "demo"}},
		"for image in dist/*.tar; do kind load image-archive $image; done   # or push": {{"kind", "load", "image-archive", "$image"}},
		"kubectl delete crd a \\\n  b":                                                 {{"kubectl", "delete", "crd", "a", "b"}},
		`E2E_SHORT=1 make catalogue ROW="S14 S20"`:                                     {{"E2E_SHORT=1", "make", "catalogue", "ROW=S14 S20"}},
		"a > report.html; b 2>errors | c":                                              {{"a"}, {"b"}, {"c"}},
		`export KUBECONFIG=$(make -s lab-kubeconfig)`:                                  {{"make", "-s", "lab-kubeconfig"}, {"export", "KUBECONFIG=$()"}},
		"run gate.yaml || case $? in\n  1) echo \"slower; or not\" ;;\n  2|3) echo no ;;\nesac": {
			{"run", "gate.yaml"}, {"echo", "slower; or not"}, {"echo", "no"}},
		`kubectl get cm "$name" -o go-template='{{index .data "a|b"}}' | gunzip`: {
			{"kubectl", "get", "cm", "$name", "-o", `go-template={{index .data "a|b"}}`}, {"gunzip"}},
		"a &&\nb &": {{"a"}, {"b"}},
	} {
		if diff := cmp.Diff(want, simpleCommands(text)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
	}
}
