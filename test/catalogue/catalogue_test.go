package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/results"
)

// root is this checkout.
const root = "../.."

// example is a row whose results are in testdata: kubectl storagebench run --local made them, in a folder.
var example = row{ID: "S99", Question: "Does a scan survive?", Folder: "ageing-small", Shape: "yes, at 0.8 of a fresh one",
	Lab: []string{"LAB_FLAGS=--disk 1:size=1Gi"}, Inputs: "0123456789ab"}

func exampleResult(t *testing.T) *result {
	t.Helper()
	found, err := readReport(example, "testdata/results.json", "cd88eb7d1f3a")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// golden compares with a file of testdata. UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, is string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(string(want), is); difference != "" {
		t.Errorf("%s differs; UPDATE_GOLDEN=1 writes it again:\n%s", file, difference)
	}
}

func TestResultAndPages(t *testing.T) {
	one := example
	one.Result = exampleResult(t)
	kept := filepath.Join(t.TempDir(), resultFile)
	if err := one.Result.write(kept); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "result.json", string(text))
	again, err := readResult(kept)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(one.Result, again); difference != "" {
		t.Error(difference)
	}
	golden(t, "section.md", section(one))
	another := *one.Result
	another.Commit, another.Verdict = "0123456789ab", "Passed"
	one.Earlier = &another
	waiting := row{ID: "S100", Question: "And | now?", Folder: "s100-now", Shape: "a < b"}
	golden(t, "not-run.md", section(waiting))
	golden(t, "catalogue.md", catalogue([]row{one, waiting}))
	one.Inputs = "other"
	for _, page := range []string{section(one), catalogue([]row{one})} {
		if !strings.Contains(page, "were changed since") && !strings.Contains(page, "earlier version") {
			t.Errorf("does not say that the row was changed: %s", page)
		}
	}
}

// TestNoResult: results without a final verdict of this row are not kept.
func TestNoResult(t *testing.T) {
	text, err := os.ReadFile("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	for change, says := range map[[2]string]string{
		{`"Complete"`, `"Incomplete"`}:                  "without a final verdict",
		{`"verdict": "Failed",`, `"verdict": "",`}:      "without a final verdict",
		{`"name": "ageing-small"`, `"name": "demo"`}:    "results of demo",
		{`"finishedAt": "2026`, `"nothingAt": "2026`}:   "without a final verdict",
		{`"version": "results`, `"version" "results`}:   "invalid character",
		{`"repetitions": 5`, `"extended": true, "x":1`}: "without a final verdict",
	} {
		file := filepath.Join(t.TempDir(), "results.json")
		changed := strings.Replace(string(text), change[0], change[1], 1)
		if changed == string(text) {
			t.Fatalf("%q is not in the file", change[0])
		}
		if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := readReport(example, file, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v", change[1], found, err)
		}
	}
}

func TestShown(t *testing.T) {
	for message, want := range map[string]string{
		"a.readBytesPerSecond = 75 (3 runs), b.readBytesPerSecond = 100 (3 runs)":                                      "0.75",
		"a.readBytesPerSecond of variant x=1,y=2 = 50 (1 run), a.readBytesPerSecond of variant z = 100 (3 runs); more": "0.5",
		"a.readBytesPerSecond = 75 (3 runs), b.writeBytesPerSecond = 100 (3 runs)":                                     "readBytesPerSecond 75 B/s, writeBytesPerSecond 100 B/s",
		"s.readBytes of variant r = 1024 (1 run), s.readBytes of variant q = 2048 (1 run), s.rounds = 1 (1 run)":       "readBytes r 1 KiB, q 2 KiB, rounds 1",
		"holds for all 2 variants: x: a.b = 75 (3 runs), at most 1M; y: a.b = 7 (3 runs), at most 1M":                  "x b 75; y b 7",
		"a.b is 2.1% lower than in variant p (from -8.0% to 5.5%; 5 pairs of runs); c.d is as high as in variant p":    "a.b 2.1% lower than in variant p (-8.0% to 5.5%), c.d as high as in variant p",
		"a.b is 32.1% lower than in variant two (from -38.0% to -25.5%; 5 pairs of runs): too few":                     "32.1% lower than in variant two (-38.0% to -25.5%)",
		"a.b is as high as in variant two: fine":                                                                       "as high as in variant two",
		"a.readBytes = 2048 (5 runs), the median lies between 1024 and 3072 with a confidence of 93.8%: at least 1Ki":  "readBytes 2 KiB (1 KiB to 3 KiB)",
		"a.freeSegments = 75 (3 runs); an expression judges medians":                                                   "freeSegments 75",
		"a.gangBlocks = 5 (1 run), b.gangBlocks = 0 (1 run)":                                                           "a.gangBlocks 5, b.gangBlocks 0",
		"holds for all 2 variants: x: a.b = 1 (3 runs), c.b = 2 (3 runs); y: a.b = 3 (3 runs), c.b = 4 (3 runs)":       "x 0.5; y 0.75",
		"a.b / c.b = 0.835 (6 runs), the median lies between 0.81 and 0.86 with a confidence of 96.9%: at least 80%":   "0.835 (0.81 to 0.86)",
		"a.b / a.b of variant old = 2 (5 pairs), the median lies between 1.9 and 2.1 with a confidence: at least 1.5x": "2 (1.9 to 2.1)",
		"holds for all 2 variants: x: a.l.b / a.l.c = 0.5 (5 runs): at most 1x; y: a.l.b / a.l.c = 2e-05 (5 runs)":     "x 0.5, y 2e-05",
		"no data: variant x has no valid runs":                                                                         "Passed",
	} {
		if is := (gateResult{Verdict: "Passed", Message: message}).shown(); is != want {
			t.Errorf("%s: %q, not %q", message, is, want)
		}
	}
}

// TestFiguresOfRatios: the page has both metrics that a ratio gate divides.
func TestFiguresOfRatios(t *testing.T) {
	text, err := os.ReadFile("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var of results.Experiment
	if err := json.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	of.Gates = []results.GateResult{{Message: "aged-scan.readBytesPerSecond / fresh-scan.readBytesPerSecond = 0.7 (5 runs)"}}
	count := map[string]int{}
	for _, one := range figuresOf(&of) {
		count[one.Name]++
	}
	want := map[string]int{"aged-scan.readBytesPerSecond": 2, "fresh-scan.readBytesPerSecond": 2}
	if difference := cmp.Diff(want, count); difference != "" {
		t.Error(difference)
	}
}

func TestWithResult(t *testing.T) {
	part := beginMark + "\nnew\n" + endMark + "\n"
	for text, want := range map[string]string{
		"# Page\n": "# Page\n\n" + part,
		"# Page\n\n" + beginMark + "\nold\n" + endMark + "\n\n## More\n": "# Page\n\n" + part + "\n## More\n",
		"# Page\n\n" + part: "# Page\n\n" + part,
	} {
		if is, err := withResult(text, part); err != nil || is != want {
			t.Errorf("%q: %q, %v", text, is, err)
		}
	}
	for _, broken := range []string{beginMark, endMark, endMark + beginMark, part + part} {
		if is, err := withResult(broken, part); err == nil {
			t.Errorf("%q: %q", broken, is)
		}
	}
}

// TestCatalogueIsComplete: each folder of experiments has a row, and the pages show the results that are kept.
func TestCatalogueIsComplete(t *testing.T) {
	rows, err := loadRows(root)
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(root, "experiments", "*", "experiment.yaml"))
	if err != nil || len(folders) < 41 || len(rows) != len(folders) {
		t.Errorf("%d rows, %d folders, %v", len(rows), len(folders), err)
	}
	short := 0
	for _, one := range rows {
		if one.Short {
			short++
		}
		page, err := os.ReadFile(filepath.Join(root, "experiments", one.Folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		above, _, found := strings.Cut(string(page), section(one))
		if !found {
			t.Errorf("%s/README.md does not say what the lab showed: run 'go run ./test/catalogue pages'", one.Folder)
		}
		if !strings.Contains(above, "\n"+command(one)) {
			t.Errorf("%s/README.md does not say how to run it: write %s", one.Folder, command(one))
		}
	}
	if short < 3 {
		t.Errorf("only %d rows are short", short)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "catalogue.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != catalogue(rows) {
		t.Error("docs/catalogue.md is not up to date: run 'go run ./test/catalogue pages'")
	}
}

func TestPlan(t *testing.T) {
	done := example
	done.Result = &result{Inputs: example.Inputs}
	rows := []row{
		{ID: "S1", Folder: "s01-a"}, {ID: "S2", Folder: "s02-b", Lab: example.Lab}, done,
		{ID: "S3", Folder: "s03-c", Short: true, Inputs: "new", Result: &result{Inputs: "old"}}, {ID: "X1", Folder: "x1-d"},
		{ID: "X2", Folder: "x2-e", Short: true, Inputs: "same", Result: &result{Inputs: "same"}},
		{ID: "X3", Folder: "x3-f", Inputs: "same", Result: &result{Inputs: "same", Verdict: "Invalid"}},
		{ID: "X4", Folder: "x4-g", Inputs: "same", Result: &result{Inputs: "same"}, Earlier: &result{Inputs: "same"}},
		{ID: "X5", Folder: "x5-h", Inputs: "same", Result: &result{Inputs: "same"}, Earlier: &result{Inputs: "old"}},
	}
	for _, c := range []struct {
		names, commit string
		which         selection
		want, says    string
	}{
		{"", "", selection{}, "s01-a s03-c x1-d x3-f\ns02-b\tLAB_FLAGS=--disk 1:size=1Gi\n", ""},
		{"", "", selection{again: true}, "ageing-small\tLAB_FLAGS=--disk 1:size=1Gi\nx2-e x5-h\n", ""},
		{"", "", selection{force: true}, "s01-a s03-c x1-d x2-e x3-f x4-g x5-h\ns02-b ageing-small\tLAB_FLAGS=--disk 1:size=1Gi\n", ""},
		{"x1-d s1", "", selection{}, "x1-d s01-a\n", ""},
		{"S99", "", selection{}, "", ""},
		{"S99", "", selection{force: true}, "ageing-small\tLAB_FLAGS=--disk 1:size=1Gi\n", ""},
		{"short", "00000002aaaa", selection{}, "s03-c\n", ""},
		{"short", "00000003aaaa+changes", selection{}, "x2-e\n", ""},
		{"short", "main", selection{}, "", `"main" is no hash`},
		{"S7", "", selection{}, "", "there is no row S7: write one of S1 to X5, or short"},
	} {
		var out bytes.Buffer
		err := plan(rows, c.names, c.commit, c.which, &out)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || out.String() != c.want {
			t.Errorf("%+v: %q, %v", c, out.String(), err)
		}
	}
}

func TestSettings(t *testing.T) {
	one := row{}
	if err := one.settings([]byte("# comment\nSHORT=1\nNODES=2\nDISK_BPS=20Mi\n")); err != nil || !one.Short ||
		!cmp.Equal(one.Lab, []string{"DISK_BPS=20Mi", "NODES=2"}) {
		t.Errorf("%+v, %v", one, err)
	}
	for _, wrong := range []string{"SHORT=yes", "DISK=3", "NODES=", "NODES"} {
		if err := (&row{}).settings([]byte(wrong)); err == nil {
			t.Error(wrong)
		}
	}
}

func TestShapeOf(t *testing.T) {
	is, err := shapeOf("# S1: it.\n# Shape: so,\n# or so.\napiVersion: v1\n# Shape: not this.\n")
	if err != nil || is != "so, or so." {
		t.Errorf("%q, %v", is, err)
	}
	if is, err := shapeOf("# S1: it.\nkind: a\n"); err == nil {
		t.Error(is)
	}
}
