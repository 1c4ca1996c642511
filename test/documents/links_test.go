// Package documents tests the pages of the documentation. It needs no API server.
package documents

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// codeBlock and codeSpan hold examples, not links.
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan  = regexp.MustCompile("`[^`\n]+`")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	// notInAnchor matches the characters that GitHub leaves out of the anchor of a heading.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks: every relative link in a page leads to a file or folder of the repository, and its anchor to a heading there.
func TestLinks(t *testing.T) {
	pages, links := pagesBelow(t, root), 0
	for _, page := range pages {
		for _, match := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(prose(t, filepath.Join(root, page)), ""), -1) {
			target, err := url.Parse(match[1])
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if target.Scheme != "" {
				continue
			}
			links++
			if problem := broken(t, root, page, target); problem != "" {
				t.Errorf("%s: the link %s: %s", page, match[1], problem)
			}
		}
	}
	if len(pages) < 20 || links < 100 {
		t.Fatalf("only %d links on %d pages found: the pattern of this test is wrong", links, len(pages))
	}
}

// TestEveryPageIsListed: docs/README.md, whose tables are the navigation of the site, links to every page of docs.
func TestEveryPageIsListed(t *testing.T) {
	listed := map[string]bool{"docs/README.md": true}
	for _, match := range link.FindAllStringSubmatch(read(t, filepath.Join(root, "docs/README.md")), -1) {
		listed[filepath.Join("docs", match[1])] = true
	}
	pages := 0
	for _, page := range pagesBelow(t, root) {
		if strings.HasPrefix(page, "docs/") {
			if pages++; !listed[page] {
				t.Errorf("docs/README.md has no link to %s", page)
			}
		}
	}
	if pages < 30 {
		t.Fatalf("only %d pages found", pages)
	}
}

// pagesBelow lists the Markdown files of the repository, without test data and build output.
func pagesBelow(t *testing.T, root string) []string {
	var pages []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist" || name == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			page, err := filepath.Rel(root, path)
			pages = append(pages, page)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// broken returns what is wrong with a link of a page, or an empty string.
func broken(t *testing.T, root, page string, target *url.URL) string {
	path := page
	if target.Path != "" {
		path = filepath.Join(filepath.Dir(page), target.Path)
	}
	if strings.HasPrefix(path, "..") {
		return "leaves the repository"
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return "there is no " + path
	}
	if target.Fragment == "" {
		return ""
	}
	for _, match := range heading.FindAllStringSubmatch(prose(t, filepath.Join(root, path)), -1) {
		if anchor(match[1]) == target.Fragment {
			return ""
		}
	}
	return "there is no heading for #" + target.Fragment + " in " + path
}

// anchor returns the name that GitHub gives a heading.
func anchor(text string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

// prose returns the text of a page without its blocks of code.
func prose(t *testing.T, path string) string {
	return codeBlock.ReplaceAllString(read(t, path), "")
}

func TestAnchors(t *testing.T) {
	for text, want := range map[string]string{
		"Which disks the agent takes":    "which-disks-the-agent-takes",
		"`run --local`: without cluster": "run---local-without-cluster",
		"spec.pool":                      "specpool",
	} {
		if got := anchor(text); got != want {
			t.Errorf("%s: #%s instead of #%s", text, got, want)
		}
	}
}
