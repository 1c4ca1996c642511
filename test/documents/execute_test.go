package documents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/test/program"
)

// buildPlugin is the command that pages build the plugin with. It is executed once, for all of them.
const buildPlugin = "go build -o ~/bin/kubectl-storagebench ./cmd/kubectl-storagebench"

// bench executes commands as a reader of all pages does: one after another, in a checkout, with the real plugin. It has no cluster.
type bench struct {
	// home has the plugin, and a kubectl that knows only the plugin.
	home string
	// checkout has copies of the files that commands read: what they write stays out of the repository.
	checkout string
	// elsewhere replaces the folders outside of the checkout that pages write to.
	elsewhere string
	// before has the output of earlier blocks: two pages may show the same one.
	before map[string][]said
}

// said is what a statement has printed, and its exit code.
type said struct{ text, code string }

// outside are folders that pages write to. Nothing else outside of the checkout is allowed.
var (
	outside  = []string{"/tmp", "/mnt"}
	absolute = regexp.MustCompile(`([\s=<>])(/[^\s]*)`)
)

// newBench builds the plugin with the command of the pages.
func newBench(t *testing.T) *bench {
	b := &bench{home: t.TempDir(), checkout: t.TempDir(), elsewhere: t.TempDir(), before: map[string][]said{}}
	build := exec.CommandContext(t.Context(), "bash", "-c", buildPlugin)
	build.Dir, build.Env = root, append(append(os.Environ(), caches(t)...), "HOME="+b.home)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	const kubectl = `#!/bin/sh
[ "$1" = storagebench ] || { echo "there is no cluster: kubectl $*" >&2; exit 1; }
shift
exec kubectl-storagebench "$@"
`
	if err := program.Script(filepath.Join(b.home, "bin/kubectl"), kubectl); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "experiments"} {
		if err := os.CopyFS(filepath.Join(b.checkout, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range outside {
		if err := os.MkdirAll(filepath.Join(b.elsewhere, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// caches returns the variables for the caches of go, which would otherwise be below HOME, and HOME is another folder here.
func caches(t *testing.T) (environment []string) {
	names := []string{"GOPATH", "GOCACHE", "GOMODCACHE"}
	output, err := exec.CommandContext(t.Context(), "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range strings.Split(strings.TrimSpace(string(output)), "\n") {
		environment = append(environment, names[i]+"="+value)
	}
	return environment
}

// offline returns why a statement cannot be executed here, or an empty string.
func offline(text string) string {
	for _, words := range simpleCommands(text) {
		name, arguments := words[0], words[1:]
		if name == "kubectl" && len(arguments) > 0 && arguments[0] == "storagebench" {
			name, arguments = "kubectl-storagebench", arguments[1:]
		}
		switch {
		case strings.Join(words, " ") == buildPlugin, name == "echo", name == "mkdir", name == "cp", name == "export":
		case name == "kubectl-storagebench" && len(arguments) > 0 && withoutCluster(arguments[0], arguments[1:]):
		default:
			return strings.Join(words, " ") + " is not executed by test/documents"
		}
	}
	for _, path := range absolute.FindAllStringSubmatch(text, -1) {
		if !slices.ContainsFunc(outside, func(folder string) bool { return strings.HasPrefix(path[2], folder+"/") }) {
			return path[2] + " is a place of this machine: write one below " + strings.Join(outside, " or ")
		}
	}
	return ""
}

// withoutCluster reports whether a command of the plugin uses only files. A device is never written to.
func withoutCluster(command string, arguments []word) bool {
	has := func(flag string) bool { return slices.Contains(arguments, flag) }
	switch command {
	case "validate", "plan", "samples", "init", "version", "completion":
		return true
	case "run":
		return has("--local") && !has("--serial")
	case "qualify":
		return has("--dry-run")
	case "compare":
		return len(arguments) >= 2 && strings.HasSuffix(arguments[0], ".json") && strings.HasSuffix(arguments[1], ".json")
	case "baseline", "calibration":
		return has("--from") || has("show") && strings.HasSuffix(arguments[len(arguments)-1], ".yaml")
	}
	return false
}

// execute executes the statements of a block in one shell.
func (b *bench) execute(t *testing.T, statements []statement) (all []said) {
	const end = "-- the end of a statement, and its exit code: "
	var script strings.Builder
	for _, one := range statements {
		text := one.text
		if text == buildPlugin {
			text = ":" // newBench has done it
		}
		text = absolute.ReplaceAllString(text, "${1}"+b.elsewhere+"${2}")
		fmt.Fprintf(&script, "%s\ncode=$?; printf '\\n%s%%s\\n' $code; (exit $code)\n", text, end)
	}
	if known, is := b.before[script.String()]; is {
		return known
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	shell.Dir = b.checkout
	shell.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "KUBE") }),
		"HOME="+b.home, "PATH="+filepath.Join(b.home, "bin")+":"+os.Getenv("PATH"), "KUBECONFIG="+os.DevNull)
	output, _ := shell.CombinedOutput() // each statement prints its exit code
	left := strings.ReplaceAll(string(output), b.elsewhere, "")
	for _, one := range statements {
		text, rest, ended := strings.Cut(left, "\n"+end)
		if !ended {
			t.Fatalf("the shell has ended within %s: %s", one.text, output)
		}
		code, after, _ := strings.Cut(rest, "\n")
		all, left = append(all, said{text, code}), after
	}
	b.before[script.String()] = all
	return all
}

var (
	// figures matches the parts that differ each time: numbers with their units. The widths of columns depend on them.
	figures = regexp.MustCompile(`(\d+[hm])*\d[\d.:]*( ?(k|M|B|KiB|MiB|GiB|ns|µs|ms|s)\b)?( op/s|/s)?`)
	columns = regexp.MustCompile(` +`)
	// progress matches a line that a slow machine prints more often, and what a run warns of on some machines.
	progress = regexp.MustCompile(`^(\d\d:\d\d:\d\d|Warning:) `)
)

// differs compares what was printed with what a page shows, where ... stands for any lines. If it was measured, figures may differ.
func differs(shown []string, printed string, measured bool) string {
	same := func(a, b string) bool { return strings.TrimRight(a, " ") == strings.TrimRight(b, " ") }
	if measured {
		mask := func(line string) string { return columns.ReplaceAllString(figures.ReplaceAllString(line, "#"), " ") }
		same = func(a, b string) bool { return mask(a) == mask(b) }
	}
	left := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	anything := false
	for _, line := range strings.Split(strings.TrimRight(strings.Join(shown, "\n"), "\n"), "\n") {
		if line == "..." {
			anything = true
			continue
		}
		for len(left) > 0 && !same(line, left[0]) && (anything || measured && progress.MatchString(left[0])) {
			left = left[1:]
		}
		if len(left) == 0 || !same(line, left[0]) {
			return fmt.Sprintf("the page shows %q, but printed was\n%s", line, printed)
		}
		left, anything = left[1:], false
	}
	if len(left) > 0 && !anything {
		return fmt.Sprintf("the page does not show %q, but printed was\n%s", left[0], printed)
	}
	return ""
}

func TestDiffers(t *testing.T) {
	const printed = "02:03:31 fill  done in 1s\n02:03:32 read 25%\n" +
		"02:03:42 read  done in 10s  read 30.2 k op/s, 236 MiB/s\n\nGATE   VERDICT\nfast   Passed\n"
	for name, test := range map[string]struct {
		shown    string
		measured bool
		want     string
	}{
		"the same":                     {printed, false, ""},
		"other figures":                {strings.NewReplacer("02:", "13:", "30.2 k", "5301", "236 MiB", "1.02 GiB", "GATE   ", "GATE ").Replace(printed), true, ""},
		"figures that are no measures": {strings.Replace(printed, "236", "237", 1), false, "237"},
		"fewer lines of progress":      {"02:03:31 fill  done in 1s\n02:03:42 read  done in 1m1s  read 1 op/s, 1 MiB/s\n\nGATE   VERDICT\nfast   Passed", true, ""},
		"anything between":             {"02:03:31 fill  done in 1s\n...\nfast   Passed", false, ""},
		"anything at the end":          {"02:03:31 fill  done in 1s\n...", false, ""},
		"another word":                 {strings.Replace(printed, "Passed", "Failed", 1), true, `"fast   Failed"`},
		"another word after anything":  {"...\nfast   Failed", true, `"fast   Failed"`},
		"a line less":                  {strings.Replace(printed, "fast   Passed", "", 1), true, `"fast   Passed"`},
		"a line more":                  {printed + "slow   Failed", true, `"slow   Failed"`},
	} {
		if got := differs(strings.Split(test.shown, "\n"), printed, test.measured); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
