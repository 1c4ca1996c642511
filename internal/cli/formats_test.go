package cli

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// answered decodes the output of a command for programs, and checks that JSON and YAML are equivalent.
func answered(t *testing.T, h *hub, into any, arguments ...string) {
	t.Helper()
	var both [2]string
	for i, format := range []string{formatJSON, formatYAML} {
		code, out, problems := called(t, h, append(arguments, "-o", format)...)
		if code != ExitPassed || problems != "" {
			t.Fatalf("%v -o %s: %d %s", arguments, format, code, problems)
		}
		text, err := yaml.YAMLToJSON([]byte(out))
		if err != nil || (format == formatJSON) != json.Valid([]byte(out)) {
			t.Fatalf("%v -o %s: %v\n%s", arguments, format, err, out)
		}
		both[i] = string(text)
	}
	if both[0] != both[1] {
		t.Errorf("%v: JSON and YAML differ:\n%s\n%s", arguments, both[0], both[1])
	}
	if err := json.Unmarshal([]byte(both[0]), into); err != nil {
		t.Errorf("%v: %v\n%s", arguments, err, both[0])
	}
}

// TestForPrograms: the commands that show something have the same content for programs.
func TestForPrograms(t *testing.T) {
	h := newHub(t, benchmarkNamed("lab", "quickstart", running))
	var version struct{ Version, API string }
	if answered(t, h, &version, "version"); version.Version != "v1.2.3" || version.API != "storagebench.dev/v1alpha1" {
		t.Errorf("version: %+v", version)
	}
	var samples []struct{ Name, Purpose string }
	if answered(t, h, &samples, "samples"); len(samples) < 10 || samples[0].Name == "" || samples[0].Purpose == "" {
		t.Errorf("samples: %+v", samples)
	}
	var shown struct {
		Kind     string
		Metadata struct{ Name string }
		Status   struct{ State string }
	}
	if answered(t, h, &shown, "show", "quickstart"); shown.Kind != kindBenchmark || shown.Metadata.Name != "quickstart" || shown.Status.State == "" {
		t.Errorf("show: %+v", shown)
	}
	if _, out, _ := called(t, h, "show", "quickstart", "-o", "name"); out != "storagebenchmark.storagebench.dev/quickstart\n" {
		t.Errorf("show -o name: %q", out)
	}
	if _, out, _ := called(t, h, "samples", "-o", "name"); !strings.Contains(out, "\nquickstart\n") || strings.Contains(out, " ") {
		t.Errorf("samples -o name: %q", out)
	}
	if code, _, said := called(t, h, "samples", "quickstart", "-o", "json"); code != ExitUsage || !strings.Contains(said, "as YAML") {
		t.Errorf("samples quickstart -o json: %d %s", code, said)
	}
	var plans []plannedBenchmark
	answered(t, h, &plans, "plan", "../../config/samples/zfs-ashift.yaml", "../../config/samples/quickstart.yaml")
	if len(plans) != 2 || len(plans[0].Devices) == 0 || len(plans[0].Variants) < 2 || len(plans[1].Runs) != 2 || len(plans[1].Devices) != 0 ||
		plans[1].Variants[0].VolumeBytes != 256<<20 || plans[1].Variants[0].Seconds < 10 {
		t.Errorf("plan: %+v", plans)
	}
}

// TestResultsForPrograms does the same for the commands about results.
func TestResultsForPrograms(t *testing.T) {
	weekly := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "weekly", UID: "uid-weekly"}}
	h := newHub(t, weekly, storedHistory(t, "weekly", 20))
	var series struct {
		Experiments []struct{ Experiment string }
		Changes     []historyChange
	}
	answered(t, h, &series, "history", "weekly", "--last", "2")
	if len(series.Experiments) != 2 || len(series.Changes) != 1 || series.Changes[0].Experiment != "e12" ||
		series.Changes[0].Direction != "worse" || *series.Changes[0].Share > -0.24 || series.Changes[0].Phase != "scan" {
		t.Errorf("history: %+v", series)
	}
	from := func(e results.Experiment) string { return file(t, "results.json", encoded(t, e)) }
	var compared comparedDocument
	answered(t, h, &compared, "compare", from(nightly()), from(slower()))
	row := compared.Metrics[0]
	if row.Change == nil || row.Change.Low == nil || row.Change.Share > -0.09 || row.Change.Share < -0.11 || *row.Change.Low > row.Change.Share ||
		*row.Change.High < row.Change.Share || row.A.Median <= row.B.Median || len(compared.Mind) == 0 || compared.BOf != "99999999" {
		t.Errorf("compare: %+v %+v", compared, row.Change)
	}
	_, accepted, _ := called(t, storedBenchmark(t, nightly(), nil), "baseline", "accept", "nightly")
	var baseline results.Baseline
	for _, kind := range []string{"baseline", "calibration"} {
		if answered(t, h, &baseline, kind, "show", file(t, "accepted.yaml", accepted)); len(baseline.Experiments) != 1 || len(baseline.Variants) == 0 {
			t.Errorf("%s: %+v", kind, baseline)
		}
	}
}
