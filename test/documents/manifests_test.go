package documents

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/internal/cli"
)

// TestManifestsAreValid: every complete manifest of storagebench on a page is valid.
func TestManifestsAreValid(t *testing.T) {
	manifests := 0
	for _, page := range pagesBelow(t, root) {
		blocks, _ := blocksOf(t, root, page)
		for _, one := range blocks {
			text := strings.Join(one.lines, "\n")
			if one.language != "yaml" || !strings.Contains(text, "apiVersion: storagebench.dev/") {
				continue
			}
			manifests++
			var output bytes.Buffer
			app := &cli.App{In: strings.NewReader(text), Out: &output, Err: &output, Now: time.Now}
			if code := app.Main(t.Context(), []string{"validate", "-"}); code != 0 {
				t.Errorf("%s:%d: exit code %d: %s", page, one.line, code, output.String())
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

// TestQuickstartIsTheSample: pages that show the sample quickstart show the content of its file.
func TestQuickstartIsTheSample(t *testing.T) {
	want, shown := parsed(t, read(t, root+"/config/samples/quickstart.yaml")), 0
	for _, page := range []string{"README.md", "docs/tutorial.md"} {
		blocks, _ := blocksOf(t, root, page)
		for _, one := range blocks {
			if text := strings.Join(one.lines, "\n"); one.language == "yaml" && strings.Contains(text, "name: quickstart\n") {
				shown++
				if diff := cmp.Diff(want, parsed(t, text)); diff != "" {
					t.Errorf("%s:%d: (-the file +this page)\n%s", page, one.line, diff)
				}
			}
		}
	}
	if shown != 2 {
		t.Errorf("shown %d times", shown)
	}
}

func parsed(t *testing.T, text string) (value any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
