package delivery

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest   = regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)(?:/([a-z][a-z0-9_]*))?`)
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)\(`)
	// namedRow is a row of the tables in test/lab/e2e.
	namedRow = regexp.MustCompile(`\{name: "([^"]+)"`)
)

// TestNamedTestsExist: the tests that the pages on safety give as evidence exist. It finds a promise whose test was renamed or removed.
func TestNamedTestsExist(t *testing.T) {
	defined := map[string]bool{}
	for _, folder := range []string{"api", "cmd", "controllers", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
			for _, match := range definedTest.FindAllStringSubmatch(string(text), -1) {
				defined[match[1]] = true
			}
			if strings.Contains(path, "/e2e/") {
				for _, match := range namedRow.FindAllStringSubmatch(string(text), -1) {
					defined[strings.ReplaceAll(match[1], " ", "_")] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for page, atLeast := range map[string]int{"explanation/safety.md": 40, "explanation/security.md": 20} {
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		named := namedTest.FindAllStringSubmatch(string(text), -1)
		if len(named) < atLeast {
			t.Errorf("docs/%s names %d tests, expected at least %d: the pattern of this test is wrong, or the evidence is gone", page, len(named),
				atLeast)
		}
		rows := 0
		for _, match := range named {
			test, row := match[1], match[2]
			if row != "" {
				rows++
			}
			if !defined[test] {
				t.Errorf("docs/%s names %s, which does not exist", page, match[0])
			}
			if strings.HasPrefix(test, "TestPools") && row != "" && !defined[row] {
				t.Errorf("docs/%s names the row %s of %s, which does not exist", page, row, test)
			}
		}
		if rows < atLeast/10 {
			t.Errorf("docs/%s names %d rows of tests, expected at least %d: the pattern of this test is wrong", page, rows, atLeast/10)
		}
	}
}

var (
	definedReason = regexp.MustCompile(`(?m)^\tReason[A-Za-z]+ += "([A-Za-z]+)"`)
	reasonRow     = regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z]+(?:, [A-Z][A-Za-z]+)*) \|`)
)

// TestEveryReasonIsExplained: the troubleshooting page explains every reason that users see, and no others.
func TestEveryReasonIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../api/v1alpha1/conditions.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, row := range reasonRow.FindAllStringSubmatch(string(page), -1) {
		for _, reason := range strings.Split(row[1], ", ") {
			explained[reason] = true
		}
	}
	defined := definedReason.FindAllStringSubmatch(string(text), -1)
	if len(defined) < 90 {
		t.Fatalf("only %d reasons found: the pattern of this test is wrong", len(defined))
	}
	for _, reason := range defined {
		if !explained[reason[1]] {
			t.Errorf("docs/troubleshooting.md does not explain %s", reason[1])
		}
		delete(explained, reason[1])
	}
	for reason := range explained {
		t.Errorf("docs/troubleshooting.md explains %s, which does not exist", reason)
	}
}
