package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	namedTest    = regexp.MustCompile(`\bTest[A-Z]\w*`)
	// testsOf matches a folder and names of tests in it, as in "`internal/host` TestRefusals, TestEveryMark".
	testsOf = regexp.MustCompile("`((?:api|cmd|controllers|internal|test)(?:/[a-z0-9]+)*)`\\s+(Test[A-Z]\\w*(?:,\\s+Test[A-Z]\\w*)*)")
	// goFile matches a Go file of the project in a page.
	goFile = regexp.MustCompile("`((?:api|cmd|controllers|internal|test)/[a-z0-9_/]+\\.go)`")
)

// TestNamedTests: if a page names a test as the proof of a promise, the test exists, in the folder that the page says. The Go files that a
// page names exist too.
func TestNamedTests(t *testing.T) {
	folders := testsByName(t)
	named, placed, files := 0, 0, 0
	for _, page := range pagesBelow(t, root) {
		text := prose(t, filepath.Join(root, page))
		for _, name := range namedTest.FindAllString(text, -1) {
			if named++; len(folders[name]) == 0 {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
		for _, match := range testsOf.FindAllStringSubmatch(text, -1) {
			for _, name := range namedTest.FindAllString(match[2], -1) {
				if placed++; !slices.ContainsFunc(folders[name], func(folder string) bool { return below(match[1], folder) }) {
					t.Errorf("%s says that %s is in %s: it is in %s", page, name, match[1], strings.Join(folders[name], ", "))
				}
			}
		}
		for _, match := range goFile.FindAllStringSubmatch(text, -1) {
			files++
			if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if named < 100 || placed < 50 || files < 5 {
		t.Errorf("only %d tests, %d of them with their folder, and %d files are named: the patterns of this test are wrong", named, placed, files)
	}
}

func below(parent, folder string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// testsByName returns the folders of each test function of the repository.
func testsByName(t *testing.T) map[string][]string {
	t.Helper()
	folders := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, match := range testFunction.FindAllStringSubmatch(read(t, path), -1) {
			folders[match[1]] = append(folders[match[1]], folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}
