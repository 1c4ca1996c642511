package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func TestExitCodeOfAnError(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		text bool
	}{
		{nil, 0, false},
		{exitf(ExitUsage, "wrong"), 64, true},
		{fmt.Errorf("more: %w", exitf(ExitRefused, "wrong")), 65, true},
		{silent(ExitInvalid), 3, false},
		{silent(ExitPassed), 0, false},
		{context.Canceled, 130, true},
		{errors.New("anything"), 70, true},
	} {
		if code, text := exitCode(test.err); code != test.code || text != test.text {
			t.Errorf("%v: %d %v", test.err, code, text)
		}
	}
}

func TestExitCodeOfAVerdict(t *testing.T) {
	for verdict, want := range map[v1alpha1.Verdict]int{
		v1alpha1.VerdictPassed: 0, v1alpha1.VerdictFailed: 1, v1alpha1.VerdictInconclusive: 2, v1alpha1.VerdictInvalid: 3, "": 2, "Splendid": 2,
	} {
		if got := verdictCode(verdict); got != want {
			t.Errorf("%q: %d", verdict, got)
		}
	}
}

// TestWorstCode: a success never hides anything, and a failed gate is never hidden.
func TestWorstCode(t *testing.T) {
	for _, test := range []struct {
		codes []int
		want  int
	}{
		{nil, 0}, {[]int{0, 0}, 0}, {[]int{0, 2}, 2}, {[]int{2, 3}, 3}, {[]int{3, 4}, 4}, {[]int{4, 65}, 65}, {[]int{65, 1, 130}, 1},
		{[]int{130, 3}, 130},
	} {
		if got := worstCode(test.codes); got != test.want {
			t.Errorf("%v: %d instead of %d", test.codes, got, test.want)
		}
	}
}

// TestHelpNamesEveryExitCode keeps the help, and docs/reference/cli.md, complete.
func TestHelpNamesEveryExitCode(t *testing.T) {
	page := read(t, "../../docs/reference/cli.md")
	for _, code := range []int{ExitPassed, ExitFailed, ExitInconclusive, ExitInvalid, ExitTimeout, ExitUsage, ExitRefused, ExitNotFound,
		ExitUnavailable, ExitError, ExitInterrupted} {
		if !strings.Contains(exitHelp, fmt.Sprintf("\n  %-4d ", code)) {
			t.Errorf("the help does not name %d", code)
		}
		if !strings.Contains(page, fmt.Sprintf("\n| %d |", code)) {
			t.Errorf("docs/reference/cli.md does not name %d", code)
		}
	}
}

// TestHelpNamesOwnExitCodes: a command lists the codes that it returns, and no others.
func TestHelpNamesOwnExitCodes(t *testing.T) {
	for command, own := range map[string][]int{
		"run": {0, 1, 2, 3, 4, 64, 65, 66, 69, 70, 130}, "watch": {0, 1, 2, 3, 4, 64, 65, 66, 69, 70, 130},
		"gate":    {0, 1, 2, 3, 4, 64, 65, 66, 69, 70, 130},
		"qualify": {0, 1, 2, 4, 64, 65, 66, 69, 70, 130}, "sweep": {0, 1, 2, 4, 64, 65, 66, 69, 70, 130},
		"report": {0, 64, 65, 66, 69, 70, 130}, "history": {0, 64, 65, 66, 69, 70, 130},
		"validate": {0, 1, 64, 70, 130}, "doctor": {0, 1, 64, 69, 70, 130}, "calibration accept": {0, 64, 65, 66, 69, 70, 130},
		"baseline accept": {0, 64, 65, 66, 69, 70, 130}, "baseline diff": {0, 1, 64, 65, 66, 69, 70, 130},
	} {
		app, out, _ := testApp()
		app.Main(t.Context(), append(strings.Fields(command), "--help"))
		for code := range 131 {
			if named := strings.Contains(out.String(), fmt.Sprintf("\n  %-4d ", code)); named != slices.Contains(own, code) {
				t.Errorf("%s --help: names %d: %v\n%s", command, code, named, out)
			}
		}
	}
}

func TestErrorsOfUse(t *testing.T) {
	for _, test := range []struct {
		arguments, says string
	}{
		{"fly", `unknown command "fly": use baseline, calibration, `},
		{"fly", "samples (also: init)"},
		{"waatch", `unknown command "waatch": did you mean watch?`},
		{"inti", `unknown command "inti": did you mean init?`},
		{"baseline acept", `unknown command "acept" for baseline: did you mean accept?`},
		{"completion tcsh", `unknown command "tcsh" for completion: use bash, fish, powershell, zsh`},
		{"completion bsah", `unknown command "bsah" for completion: did you mean bash?`},
		{"help nope", `unknown command "nope": use baseline, `},
		{"help baseline nope", `unknown command "nope" for baseline: use accept, diff, show`},
		{"watch --after 0ld x", "write the 8 hexadecimal digits"},
		{"logs x --tail abc", `invalid argument "abc" for "--tail" flag: write a number of lines, such as 100, or -1 for all`},
		{"logs x --tail -5", "write a number of lines"},
		{"collect -o json", "-o json: write the name of the archive, such as support.tar.gz"},
		{"run", "run needs one file"},
		{"run a b", "run needs one file"},
		{"validate", "validate needs a file"},
		{"report", "report needs one name"},
		{"list quickstart", "for one of them write kubectl storagebench show quickstart"},
		{"list -o pretty", `invalid argument "pretty" for "-o, --output" flag: write one of table, wide, json, yaml, name`},
		{"list -A -n lab", "--all-namespaces and --namespace contradict each other"},
		{"show", "show needs one name"},
		{"doctor -o pretty", "write one of text, json, yaml"},
		{"version now", "version takes no argument"},
		{"sweep x", "sweep takes no argument: write the file with -f x"},
		{"run --fast x", "unknown flag: --fast: see 'kubectl storagebench run --help'"},
		{"run x --local=", "--local is empty"},
		{"run x --serial 1", "--serial is for --local"},
		{"run x --output d", "--output is for --local"},
		{"run x --local d --wait", "--wait is for a cluster"},
		{"run x --local d --context c", "--context is for a cluster"},
		{"run x --local d --as ann", "--as is for a cluster"},
		{"run x --timeout 1h", "--timeout needs --wait"},
		{"run x --wait --timeout -1h", "--timeout needs --wait and a duration above 0"},
		{"run x --wait --timeout soon", "invalid argument"},
		{"validate x -o xml", "write one of text, json, sarif"},
		{"report x -o pdf", "write one of markdown, json, junit, html"},
	} {
		app, out, errors := testApp()
		code := app.Main(t.Context(), strings.Fields(test.arguments))
		if code != ExitUsage || !strings.Contains(errors.String(), test.says) {
			t.Errorf("%s: exit code %d, %s%s", test.arguments, code, out, errors)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for arguments, says := range map[string]string{
		"": "Run and follow:", "help watch": "--after", "help baseline accept": "--note", "completion": "zsh", "completion zsh": "#compdef",
		"run --help": "Ctrl-C", "validate --help": "API server", "report --help": "--output-dir",
		"version": "kubectl-storagebench v1.2.3 (API storagebench.dev/v1alpha1",
	} {
		app, out, errors := testApp()
		if code := app.Main(t.Context(), strings.Fields(arguments)); code != 0 || !strings.Contains(out.String(), says) {
			t.Errorf("%q: exit code %d, %s%s", arguments, code, out, errors)
		}
	}
}
