package cluster

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Prometheus returns the path of the program prometheus or promtool, or skips the test and says why the program is missing.
func Prometheus(t *testing.T, name string) string {
	t.Helper()
	find := exec.CommandContext(t.Context(), filepath.Join(Root(), "hack", "prometheus"))
	var said strings.Builder
	find.Stderr = &said
	folder, err := find.Output()
	if err != nil {
		t.Fatalf("hack/prometheus: %v\n%s", err, said.String())
	}
	if len(folder) == 0 {
		t.Skip(said.String())
	}
	return filepath.Join(strings.TrimSpace(string(folder)), name)
}
