package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestAcceptFromAFileLooksIntoNoCluster: without --add-to, results of a file are added to nothing, and the help says so.
func TestAcceptFromAFileLooksIntoNoCluster(t *testing.T) {
	later := nightly()
	later.Experiment = "9a8b7c6d"
	from := file(t, "results.json", encoded(t, later))
	for kind, suffix := range map[string]string{"baseline": baselineSuffix, "calibration": calibrationSuffix} {
		_, manifest, _ := called(t, storedBenchmark(t, nightly(), nil), kind, "accept", "nightly")
		stored := &corev1.ConfigMap{}
		if err := yaml.Unmarshal([]byte(manifest), stored); err != nil {
			t.Fatal(err)
		}
		stored.Namespace = "lab"
		for count, arguments := range map[int][]string{1: nil, 2: {"--add-to", nightly().Benchmark.Name + suffix}} {
			code, out, said := called(t, newHub(t, stored.DeepCopy()), append([]string{kind, "accept", "--from", from}, arguments...)...)
			if code != ExitPassed || strings.Count(out, `"experiment": `) != count {
				t.Errorf("%s %v: %d %s\n%.900s", kind, arguments, code, said, out)
			}
		}
		if _, help, _ := called(t, newHub(t), kind, "accept", "--help"); !strings.Contains(help, "with --from none") ||
			!strings.Contains(help, "Results of --from are added only to --add-to") {
			t.Error(help)
		}
	}
}
