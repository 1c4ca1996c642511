package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// labTime limits the estimated time of a row of the catalogue in the lab, if its operations take their longest time.
const labTime = 25 * time.Minute

// These match the limits of a disk in a lab.env: those of all disks, or those of the first disk with its own limits.
var (
	labIOPS  = regexp.MustCompile(`(?:DISK_IOPS|\biops)=([0-9]+)`)
	labDelay = regexp.MustCompile(`\bdelay=([0-9]+ms)`)
	labSeek  = regexp.MustCompile(`\bseek=([0-9]+ms)`)
	labBytes = regexp.MustCompile(`(?:DISK_BPS|\bbps)=([0-9]+[KMG]i)`)
)

var estimated = regexp.MustCompile(`is valid: .*, about ([0-9hms]+)`)

// TestLabOverlays: each overlay in experiments/*/lab builds without a network into a valid experiment. Its estimated time is short, and not
// far from the time that it took in the lab.
func TestLabOverlays(t *testing.T) {
	kubectl := kubectlOrSkip(t)
	overlays, err := filepath.Glob("../../experiments/*/lab")
	if err != nil {
		t.Fatal(err)
	}
	if len(overlays) < 41 {
		t.Errorf("only %d overlays", len(overlays))
	}
	compared := 0
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
			code, said := validate(t, file, "--speed", labSpeed(t, overlay))
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
			takes, err := time.ParseDuration(match[1])
			if err != nil || takes > labTime {
				t.Errorf("takes %s (%v), more than %s", match[1], err, labTime)
			}
			if took, known := tookInLab(t, overlay); known {
				compared++
				t.Logf("estimate %s, took %s: a factor of %.2f", takes, took, took.Seconds()/takes.Seconds())
				longer := took > 2*takes && !strings.Contains(said, "plus the phases that depend on the size of the pool")
				shorter := takes > 2*took && !strings.Contains(said, "less if operations end")
				if longer || shorter {
					t.Errorf("it took %s in the lab, and the estimate is %s", took, takes)
				}
			}
		})
	}
	if compared < 24 {
		t.Errorf("only %d rows have a result to compare the estimate with", compared)
	}
}

// labSpeed returns how many bytes the disks of a row can transfer in a second within their limits, with requests of 128 KiB. It is at most
// the default limit of a disk, because an emulated processor is no faster. If each request is delayed, the delay determines the speed.
func labSpeed(t *testing.T, overlay string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(overlay, "lab.env"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	requests, size, each := int64(1000), resource.MustParse("50Mi"), int64(128<<10) // the defaults of the Makefile
	if match := labIOPS.FindSubmatch(text); match != nil {
		if requests, err = strconv.ParseInt(string(match[1]), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if match := labBytes.FindSubmatch(text); match != nil {
		if given := resource.MustParse(string(match[1])); given.Cmp(size) < 0 {
			size = given
		}
	}
	if match := labDelay.FindSubmatch(text); match != nil {
		delay, err := time.ParseDuration(string(match[1]))
		if err != nil {
			t.Fatal(err)
		}
		if match := labSeek.FindSubmatch(text); match != nil { // an aged pool transfers only small pieces between two seeks
			seek, err := time.ParseDuration(string(match[1]))
			if err != nil {
				t.Fatal(err)
			}
			delay, each = delay+seek, 32<<10
		}
		requests = min(requests, int64(time.Second/delay))
	}
	return strconv.FormatInt(min(size.Value(), requests*each), 10)
}

// tookInLab returns how long 'make catalogue' took for a row. known is false if the row was not run.
func tookInLab(t *testing.T, overlay string) (took time.Duration, known bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(overlay, "result.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	var result struct{ Took string }
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	if err == nil {
		took, err = time.ParseDuration(result.Took)
	}
	if err != nil {
		t.Fatal(err)
	}
	return took, true
}

// kubectlOrSkip returns the kubectl of this machine, or builds the one of tools/.
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
