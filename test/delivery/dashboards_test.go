package delivery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/controllers/metrics"
	"github.com/storagebench/storagebench/test/cluster"
)

// TestDashboards: the chart renders each dashboard if asked, with the label that Grafana looks for, and together they show every metric.
// test/integration lets a real Prometheus answer their queries.
func TestDashboards(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(cluster.Root(), "charts", "storagebench", "files", "dashboards", "*.json"))
	if err != nil || len(paths) != 3 {
		t.Fatalf("%v: the dashboards are %v", err, paths)
	}
	got, without := helm(t, "--set", "metrics.dashboards.enabled=true"), helm(t)
	shown, titles := map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		key := "ConfigMap " + namespace + "/storagebench-dashboard-" + name
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		config := get[corev1.ConfigMap](t, got, key)
		if config.Data["storagebench-"+name+".json"] != string(text) || config.Labels["grafana_dashboard"] != "1" {
			t.Errorf("%s has labels %v, and not the text of the file", key, config.Labels)
		}
		if without[key] != nil {
			t.Errorf("by default there is %s", key)
		}
		var dashboard struct{ Title, UID string }
		if err := json.Unmarshal(text, &dashboard); err != nil || dashboard.UID != "storagebench-"+name || titles[dashboard.Title] {
			t.Errorf("%s: %v, uid %q, title %q", name, err, dashboard.UID, dashboard.Title)
		}
		titles[dashboard.Title] = true
		for _, metric := range regexp.MustCompile(`storagebench_[a-z_]+`).FindAllString(string(text), -1) {
			shown[strings.TrimSuffix(metric, "_bucket")] = true
		}
	}
	for _, metric := range metrics.All() {
		if !shown[metric.Name] {
			t.Errorf("no dashboard shows %s", metric.Name)
		}
		delete(shown, metric.Name)
	}
	for name := range shown {
		t.Errorf("a dashboard asks for %s, which is not a metric", name)
	}
}
