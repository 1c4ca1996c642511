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
)

// strict reports whether each command of a page is executed here, or marked. The commands of other pages are only vetted.
func strict(page string) bool {
	return page == "README.md" || page == "docs/tutorial.md" || strings.HasPrefix(page, "docs/tasks/")
}

// TestCommands: the commands that the pages ask readers to enter work. Commands and their flags, make targets, files and kinds of objects
// exist. On strict pages, commands that need no cluster are executed, and print what the page shows; other blocks are marked, with the
// reason.
func TestCommands(t *testing.T) {
	v := newVetter(t)
	reader := newBench(t)
	vetted, executed := 0, 0
	for _, page := range pagesBelow(t, root) {
		if page == "CHANGELOG.md" { // describes the past
			continue
		}
		blocks, spans, problems := v.review(root, page, strict(page))
		for _, problem := range problems {
			t.Error(problem)
		}
		for _, one := range blocks {
			if one.commands() {
				vetted += len(one.statements())
			}
		}
		vetted += spans
		if strict(page) {
			executed += reader.page(t, blocks)
		}
	}
	t.Logf("%d commands are vetted, and %d of them executed", vetted, executed)
	if vetted < 400 || executed < 20 {
		t.Errorf("only %d commands are vetted and %d of them executed: write pages that can be executed", vetted, executed)
	}
}

// review returns the problems with the commands of a page, with page and line.
func (v *vetter) review(folder, page string, strict bool) (blocks []block, spans int, problems []string) {
	problem := func(line int, text string) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s", page, line, strings.TrimSpace(text)))
	}
	for _, one := range spansOf(v.t, folder, page) {
		spans++
		for _, found := range v.mentioned(one.text) {
			problem(one.line, found)
		}
	}
	blocks, lost := blocksOf(v.t, folder, page)
	for _, line := range lost {
		problem(line, "this mark is not directly above a block")
	}
	for _, one := range blocks {
		if !one.commands() {
			if one.mark != "" {
				problem(one.line, "a mark is above a block of sh or console, and this is none")
			}
			if !slices.Contains([]string{"", "yaml", "json", "markdown"}, one.language) {
				problem(one.line, "write sh or console for commands, or yaml, json, markdown or nothing for what is not entered")
			}
			if one.language == "" && len(one.lines) > 0 && entered(one.lines[0]) {
				problem(one.line+1, "this block looks like commands: begin it with ```sh, or with ```console if it also shows what they print")
			}
			continue
		}
		statements := one.statements()
		if len(statements) == 0 {
			problem(one.line, "there is no command in this block: commands in a console block begin with $")
		}
		for _, statement := range statements {
			for _, found := range v.problems(statement.text) {
				problem(statement.line, found)
			}
			if found := columnsDiffer(v.t, statement); found != "" {
				problem(statement.line, found)
			}
			if reason := offline(statement.text); strict && one.mark == "" && reason != "" {
				problem(statement.line, reason+": write <!-- not executed: REASON --> directly above the block")
			}
		}
	}
	return blocks, spans, problems
}

// entered reports whether a line is one that a reader enters.
func entered(line string) bool {
	first, _, _ := strings.Cut(line, " ")
	return first == "$" || slices.Contains([]string{"make", "kubectl", "kubectl-storagebench", "helm", "dist/bin/lab"}, first)
}

var plainGet = regexp.MustCompile(`^kubectl get (\w+)( [\w-]+)?( +#.*)?$`)

// columnsDiffer compares the columns that a page shows of our objects with those of the CRD.
func columnsDiffer(t *testing.T, statement statement) string {
	asked := plainGet.FindStringSubmatch(statement.text)
	if asked == nil || len(statement.shown) == 0 {
		return ""
	}
	for _, crd := range crds(t) {
		if !slices.Contains(append(crd.Spec.Names.ShortNames, crd.Spec.Names.Plural, crd.Spec.Names.Singular), asked[1]) {
			continue
		}
		want := []string{"NAME"}
		for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			if column.Priority == 0 {
				want = append(want, strings.ToUpper(column.Name))
			}
		}
		if got := columns.Split(strings.TrimSpace(statement.shown[0]), -1); strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Sprintf("the columns are %s", strings.Join(want, " "))
		}
	}
	return ""
}

// page executes the blocks of a page that are not marked, and returns the number of commands.
func (b *bench) page(t *testing.T, blocks []block) (executed int) {
	for _, one := range blocks {
		if one.saveAs != "" {
			text := strings.Join(one.lines, "\n") + "\n"
			if err := os.WriteFile(filepath.Join(b.checkout, one.saveAs), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		statements := one.statements()
		if !one.commands() || one.mark != "" || slices.ContainsFunc(statements, func(s statement) bool { return offline(s.text) != "" }) {
			continue // review reports the last case
		}
		executed += len(statements)
		if _, err := exec.LookPath("fio"); err != nil && strings.Contains(strings.Join(one.lines, "\n"), "/tmp/results") {
			t.Logf("%s:%d: not executed, for there is no fio: Debian, Ubuntu: apt-get install fio", one.page, one.line)
			continue
		}
		for i, said := range b.execute(t, statements) {
			place := fmt.Sprintf("%s:%d", one.page, statements[i].line)
			if said.code != "0" {
				t.Errorf("%s: exit code %s: %s", place, said.code, said.text)
			} else if one.language == "console" {
				if problem := differs(statements[i].shown, said.text, strings.Contains(statements[i].text, " --local ")); problem != "" {
					t.Errorf("%s: %s", place, problem)
				}
			}
		}
	}
	return executed
}

// TestReview: each mistake that a page can have is found, with its line.
func TestReview(t *testing.T) {
	_, _, got := newVetter(t).review("testdata", "mistakes.md", true)
	wanted := 0
	for i, line := range strings.Split(read(t, "testdata/mistakes.md"), "\n") {
		// A comment on a line says what is wrong with it.
		_, want, wrong := strings.Cut(line, "# wrong: ")
		place := fmt.Sprintf("mistakes.md:%d: ", i+1)
		found := slices.DeleteFunc(slices.Clone(got), func(one string) bool { return !strings.HasPrefix(one, place) })
		want = strings.TrimSuffix(want, " -->")
		if wrong && !strings.Contains(strings.Join(found, "\n"), want) || !wrong && len(found) > 0 {
			t.Errorf("%s%q is found instead of %q", place, found, want)
		}
		if wrong {
			wanted++
		}
	}
	if wanted < 20 {
		t.Errorf("only %d mistakes are there", wanted)
	}
}
