package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// labTime is how long a row of the catalogue may take in the lab, by its estimate.
const labTime = 20 * time.Minute

var estimated = regexp.MustCompile(`is valid: .*, about ([0-9hms]+)`)

// TestLabOverlays: each overlay of experiments/*/lab builds, without a network, and makes an experiment that is valid and short.
func TestLabOverlays(t *testing.T) {
	kubectl := kubectlOrSkip(t)
	overlays, err := filepath.Glob("../../experiments/*/lab")
	if err != nil {
		t.Fatal(err)
	}
	if len(overlays) < 41 {
		t.Errorf("only %d overlays", len(overlays))
	}
	for _, overlay := range overlays {
		name := filepath.Base(filepath.Dir(overlay))
		t.Run(name, func(t *testing.T) {
			text, err := exec.CommandContext(t.Context(), kubectl, "kustomize", "--load-restrictor", "LoadRestrictionsNone", overlay).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			file := filepath.Join(t.TempDir(), "overlay.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			code, said := validate(t, file)
			if code != ExitPassed || !strings.Contains(said, "StorageBenchmark "+name+" is valid: ") {
				t.Fatalf("exit code %d: %s", code, said)
			}
			for _, unwanted := range []string{"is in none of the files", "cannot be decided", "warning"} {
				if strings.Contains(said, unwanted) {
					t.Errorf("says %q: %s", unwanted, said)
				}
			}
			match := estimated.FindStringSubmatch(said)
			if match == nil {
				t.Fatalf("no estimate: %s", said)
			}
			if takes, err := time.ParseDuration(match[1]); err != nil || takes > labTime {
				t.Errorf("takes %s (%v), more than %s", match[1], err, labTime)
			}
		})
	}
}

// kubectlOrSkip is the kubectl of this machine, or that of tools/.
func kubectlOrSkip(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path
	}
	path, err := exec.CommandContext(t.Context(), "../../hack/tool", "kubectl").Output()
	if err != nil {
		t.Skipf("no kubectl on this machine, and hack/tool kubectl cannot build one: %v", err)
	}
	return strings.TrimSpace(string(path))
}
