package delivery

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/controllers/metrics"
	"github.com/storagebench/storagebench/test/cluster"
)

type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expression  string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ruleTests has the parts of the promtool test file that this test needs.
type ruleTests struct {
	Tests []struct {
		Alerts []struct {
			Name   string `json:"alertname"`
			Expect []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func rulesPath() string {
	return filepath.Join(cluster.Root(), "charts", "storagebench", "files", "rules.yaml")
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file ruleFile
	readYAML(t, rulesPath(), &file)
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 8 {
		t.Fatalf("the rules are %+v", file)
	}
	return file.Groups[0].Rules
}

// TestAlertsAreComplete: each alert says what it is about and what to do, uses only existing metrics, and has a test in which it fires and
// one in which it does not.
func TestAlertsAreComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "tasks", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests ruleTests
	readYAML(t, "testdata/rules_test.yaml", &tests)
	fires, stays := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, alert := range test.Alerts {
			if len(alert.Expect) > 0 {
				fires[alert.Name] = true
			} else {
				stays[alert.Name] = true
			}
		}
	}
	known := map[string]bool{}
	for _, metric := range metrics.All() {
		known[metric.Name] = true
	}
	for _, rule := range rules(t) {
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.For == "" ||
			!slices.Contains([]string{"info", "warning", "critical"}, rule.Labels["severity"]) {
			t.Errorf("%s is incomplete: %+v", rule.Alert, rule)
		}
		if !strings.HasSuffix(rule.Annotations["runbook_url"], "docs/tasks/monitoring.md#"+strings.ToLower(rule.Alert)) ||
			!strings.Contains(string(page), "\n### "+rule.Alert+"\n") {
			t.Errorf("%s: docs/tasks/monitoring.md does not say what to do, or the link %s is another one", rule.Alert,
				rule.Annotations["runbook_url"])
		}
		if !fires[rule.Alert] || !stays[rule.Alert] {
			t.Errorf("%s: tested that it fires %t, that it does not %t", rule.Alert, fires[rule.Alert], stays[rule.Alert])
		}
		names := regexp.MustCompile(`storagebench_[a-z_]+`).FindAllString(rule.Expression, -1)
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s asks for %s, which is not a metric", rule.Alert, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s asks for no metric: %s", rule.Alert, rule.Expression)
		}
	}
}

// TestAlerts lets promtool check and test the rules.
func TestAlerts(t *testing.T) {
	promtool, folder := cluster.Prometheus(t, "promtool"), t.TempDir()
	for from, name := range map[string]string{rulesPath(): "rules.yaml", "testdata/rules_test.yaml": "rules_test.yaml"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		command := exec.CommandContext(t.Context(), promtool, arguments...)
		command.Dir = folder
		if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), "SUCCESS") {
			t.Errorf("promtool %v: %v\n%s", arguments, err, output)
		}
	}
}

// TestPrometheusRule: the chart renders the rules file unchanged, and only if asked.
func TestPrometheusRule(t *testing.T) {
	key := "PrometheusRule " + namespace + "/storagebench"
	got := helm(t, "--set", "metrics.prometheusRule.enabled=true,metrics.prometheusRule.labels.release=kube")[key]
	if got == nil || helm(t)[key] != nil {
		t.Fatalf("rendered if asked: %t, by default: %t", got != nil, helm(t)[key] != nil)
	}
	var want map[string]any
	readYAML(t, rulesPath(), &want)
	if diff := cmp.Diff(want, got.Object["spec"]); diff != "" || got.GetLabels()["release"] != "kube" {
		t.Errorf("labels %v, spec (-want +got):\n%s", got.GetLabels(), diff)
	}
}
