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

// TestDocumentedValuesAreAllowed: the examples in the list of options have to work.
func TestDocumentedValuesAreAllowed(t *testing.T) {
	for _, line := range []string{"iodepth=8", "bs=64k", "runtime=10s", "size=20%", "bsrange=4k-16k", "bs=4k,8k", "time_based", "direct=1",
		"rw=randread:8", "rw=read:4k", "bssplit=4k/60:64k/40", "bssplit=4k/60:64k/40,8k/100", "random_distribution=zipf:1.2",
		"random_distribution=zoned:80/20:20/80", "cpus_allowed=0,2-5"} {
		if refused := Refused(ReadOption(line)); refused != "" {
			t.Errorf("%s: %s", line, refused)
		}
	}
}
