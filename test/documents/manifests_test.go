package documents

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/cli"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestManifestsAreValid: a whole manifest of storagebench that a page shows is one that can be applied.
func TestManifestsAreValid(t *testing.T) {
	const root = "../.."
	manifests := 0
	for _, page := range pagesBelow(t, root) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(match[1], "apiVersion: storagebench.dev/") {
				continue
			}
			manifests++
			var output bytes.Buffer
			app := &cli.App{In: strings.NewReader(match[1]), Out: &output, Err: &output, Now: time.Now}
			if code := app.Main(t.Context(), []string{"validate", "-"}); code != 0 {
				t.Errorf("%s: exit code %d for\n%s\n%s", page, code, match[1], output.String())
			}
		}
	}
	var output bytes.Buffer // a template that people copy
	app := &cli.App{In: strings.NewReader(""), Out: &output, Err: &output, Now: time.Now}
	if code := app.Main(t.Context(), []string{"validate", root + "/config/gitops/promotion/gate"}); code != 0 ||
		!strings.Contains(output.String(), "StorageBenchmark gate-v2 is valid") {
		t.Errorf("exit code %d: %s", code, output.String())
	}
	if manifests < 4 {
		t.Fatalf("only %d manifests found: the pattern of this test is wrong", manifests)
	}
}
