package cmd

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const product = "github.com/storagebench/storagebench/"

// TestPrograms lists packages that each program must link, and packages that it must not link, directly or indirectly. The first list also
// proves that the names are right: otherwise a renamed package would go unnoticed.
func TestPrograms(t *testing.T) {
	decides := []string{product + "internal/experiment", product + "internal/runs", "github.com/google/cel-go", "github.com/robfig/cron"}
	touches := []string{product + "internal/host", product + "internal/agent/pools", product + "internal/agent/operations"}
	executes := []string{product + "internal/workload/engine", product + "internal/observe"}
	judges := []string{product + "internal/verdict", product + "internal/results", product + "internal/stats"}
	for program, is := range map[string]struct{ links, not []string }{
		"manager": {links: slices.Concat(decides, judges), not: slices.Concat(touches, executes)},
		"agent":   {links: touches, not: slices.Concat(decides, executes, judges)},
		"runner":  {links: executes, not: slices.Concat(decides, touches[1:])},
	} {
		output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+program).Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		linked := strings.Fields(string(output))
		if len(linked) < 100 {
			t.Fatalf("%s links only %d packages: %v", program, len(linked), linked)
		}
		within := func(name string) int {
			return slices.IndexFunc(linked, func(path string) bool { return path == name || strings.HasPrefix(path, name+"/") })
		}
		for _, name := range is.links {
			if within(name) < 0 {
				t.Errorf("%s does not link %s: was it moved?", program, name)
			}
		}
		for _, name := range is.not {
			if at := within(name); at >= 0 {
				t.Errorf("%s links %s: 'go list -deps -f \"{{.ImportPath}}: {{.Imports}}\" ./cmd/%[1]s' shows by what", program, linked[at])
			}
		}
	}
}
