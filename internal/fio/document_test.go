package fio

import (
	"os"
	"strings"
	"testing"
)

// TestOptionsAreDocumented: messages send users to the page for the list of options.
func TestOptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/runner.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range allowed {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/reference/runner.md does not list %s", name)
		}
	}
}
