package delivery

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/storagebench/storagebench/internal/flagenv"
	"github.com/storagebench/storagebench/test/cluster"
)

const deployment = "Deployment " + namespace + "/storagebench-manager"

func TestChartEqualsKustomize(t *testing.T) {
	for _, test := range []struct {
		name      string
		kustomize func(*testing.T) objects
		helm      []string
	}{
		{"default", func(t *testing.T) objects { return kustomize(t, "config/default") }, nil},
		{"with the namespace", func(t *testing.T) objects { return kustomize(t, "config/install") },
			[]string{"--set", "createNamespace=true"}},
		{"with a ServiceMonitor", func(t *testing.T) objects {
			return overlay(t, []string{"default"}, []string{"prometheus"})
		}, []string{"--set", "metrics.serviceMonitor.enabled=true"}},
		{"with the agent", func(t *testing.T) objects {
			return overlay(t, []string{"default"}, []string{"agent"})
		}, []string{"--set", "agent.enabled=true"}},
		{"with a budget and a policy for traffic", func(t *testing.T) objects {
			return overlay(t, []string{"default"}, []string{"disruption-budget", "network-policy"})
		}, []string{"--set", "podDisruptionBudget.enabled=true,networkPolicy.enabled=true"}},
		{"with CRDs not kept", func(t *testing.T) objects { return kustomize(t, "config/default") },
			[]string{"--set", "crds.keep=false"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want, got := test.kustomize(t), helm(t, test.helm...)
			if len(want) < 16 {
				t.Errorf("kustomize renders only %d objects", len(want))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kustomize (-) and helm (+) render different objects; "+
					"if it is a CRD, run `make manifests`:\n%s", diff)
			}
		})
	}
}

// The kustomization on the installation page, with the patch for the agent, does what the page says.
func TestDocumentedKustomization(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "tasks", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, part := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(part, "```\n")
		texts = append(texts, text)
	}
	if len(texts) != 2 {
		t.Fatalf("%d blocks of YAML, want the kustomization and the patch for the agent", len(texts))
	}
	text := strings.ReplaceAll(texts[0]+texts[1], "../storagebench/config/", configFolder)
	got := kustomization(t, strings.Replace(text, "components: [", "components: ["+configFolder+"agent, ", 1))
	manager := get[appsv1.Deployment](t, got, deployment).Spec.Template.Spec.Containers[0]
	want := flagsOf(get[appsv1.Deployment](t, kustomize(t, "config/default"), deployment).Spec.Template.Spec.Containers[0])
	maps.Copy(want, map[string]string{"agent": "true", "max-hold": "72h", "runner-image": "registry.example/storagebench-runner:v0.1.0",
		"postgres-image": "registry.example/storagebench-postgres:v0.1.0"})
	if diff := cmp.Diff(want, flagsOf(manager)); diff != "" || manager.Image != "registry.example/storagebench-manager:v0.1.0" {
		t.Errorf("image %s, flags (-want +got):\n%s", manager.Image, diff)
	}
	agent := get[appsv1.DaemonSet](t, got, "DaemonSet storagebench-agent/storagebench-agent").Spec.Template.Spec.Containers[0]
	grants := []string{"team-a=/dev/disk/by-id/nvme-BENCH_*", "/dev/disk/by-id/nvme-ADMIN_1"}
	if diff := cmp.Diff(grants, flagenv.Values(flagsOf(agent)["allow-device"])); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	if len(manager.Args) != 2 || len(agent.Args) != 1 || agent.Env[0].ValueFrom == nil && agent.Env[1].ValueFrom == nil {
		t.Errorf("a patch has replaced what it should add to: %v, %+v", manager.Args, agent)
	}
}

func TestHelmKeepsCRDs(t *testing.T) {
	for _, test := range []struct {
		args []string
		want int
	}{{nil, 5}, {[]string{"--set", "crds.keep=false"}, 0}} {
		out, err := helmTemplate(test.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(out, []byte("\n    helm.sh/resource-policy: keep\n")); got != test.want {
			t.Errorf("helm template %v: %d objects are kept at uninstall, want %d", test.args, got, test.want)
		}
	}
}

func TestHelmLint(t *testing.T) {
	if _, err := tool("helm", "lint", "--strict", "charts/storagebench"); err != nil {
		t.Error(err)
	}
}

func TestHelmRefuses(t *testing.T) {
	for _, test := range []struct{ set, says string }{
		{"replica=2", "additional properties 'replica' not allowed"},
		{"image.tga=v1", "additional properties 'tga' not allowed"},
		{"metrics.servicemonitor.enabled=true", "additional properties 'servicemonitor' not allowed"},
		{"crds.instal=false", "additional properties 'instal' not allowed"},
		{"replicas=-1", "replicas"},
		{"replicas=two", "replicas"},
		{"image.pullPolicy=ifnotpresent", "pullPolicy"},
		{"image.tag=two words", "tag"},
		{"metrics.port=8081", "port"}, // taken by the health probes
		{"metrics.port=443", "port"},  // the manager may not bind it
		{"logLevel=loud", "logLevel"},
		{"limits.maxHolds=1h", "additional properties 'maxHolds' not allowed"},
		{"limits.maxHold=forever", "maxHold"},
		{"limits.teardownGrace=5x", "teardownGrace"},
		{"limits.benchmarksPerNamespace=-1", "benchmarksPerNamespace"},
		{"limits.benchmarksPerNamespace=1000000", "benchmarksPerNamespace"}, // arrives as 1e+06, which is no number for the manager
		{"limits.nodesPerNamespace=1000000", "nodesPerNamespace"},
		{"limits.priorityClasses={System Critical}", "priorityClasses"},
		{"limits.tolerationKeys={*}", "tolerationKeys"},
		{"agent.allowDevices={/dev/sda}", "allowDevices"}, // a name that moves to another disk
		{"agent.allowDevices={*}", "allowDevices"},
		{"agent.allowParameters={nvme_x=1}", "allowParameters"},
		{"agent.allowParameters={zfs_txg_timeout}", "allowParameters"}, // to which values?
		{"agent.allowParameters={zfs_txg_timeout=1..}", "allowParameters"},
		{"agent.allowParameters={zfs_txg_timeout=1|*}", "allowParameters"},
		{"extraArgs={concurrency}", "extraArgs"},
		{"extraEnv[0].nam=x", "additional properties 'nam' not allowed"},
		{"agent.resources.limit.memory=1Gi", "additional properties 'limit' not allowed"},
		{`agent.nodeSelector.storagebench\.dev/lab=x`, "nodeSelector"},                    // it has to be true
		{`commonLabels.app\.kubernetes\.io/name=mine`, "commonLabels"},                    // selectors have it
		{`commonLabels.storagebench\.dev/run-uid=x`, "commonLabels"},                      // the operator's own
		{`commonLabels.rbac\.authorization\.k8s\.io/aggregate-to-view=x`, "commonLabels"}, // gives rights away
		{`commonLabels.pod-security\.kubernetes\.io/enforce=privileged`, "commonLabels"},
		{"networkPolicy.apiServerPorts={}", "apiServerPorts"}, // would cut it off
		{"metrics.enabled=false,metrics.serviceMonitor.enabled=true", "needs metrics.enabled"},
		{"metrics.enabled=false,metrics.prometheusRule.enabled=true", "needs metrics.enabled"},
		{"agent.metrics.enabled=true", "needs agent.enabled"},
		{"agent.enabled=true,agent.metrics.serviceMonitor.enabled=true", "needs agent.metrics.enabled"},
		{"agent.enabled=true,agent.metrics.enabled=true,metrics.enabled=false", "needs metrics.enabled"},
		{"agent.metrics.port=8081", "port"},
		{"namespaces={Team A}", "namespaces"},
		{"namespaces={team-a}", "write metrics.enabled: false"},
		{"namespaces={team-a},metrics.enabled=false,agent.enabled=true", "agent.enabled needs rights in the whole cluster"},
		{"agent.enabled=true,agent.namespace=" + namespace, "write one of its own"}, // the manager's would be privileged
		{"agent.enabled=true,agent.namespace=default", "write one of its own"},
		{"agent.enabled=true,agent.namespace=kube-system", "write one of its own"},
		{"agent.enabled=true,policies.install=false", "agent.enabled needs the policies"},
		{"agent.enabled=true,clusterReads=false", "agent.enabled needs to read nodes"},
	} {
		out, err := helmTemplate("--set", test.set)
		switch {
		case err == nil:
			t.Errorf("--set %s was accepted:\n%.300s", test.set, out)
		case !strings.Contains(err.Error(), test.says):
			t.Errorf("--set %s: the message does not say %q: %v", test.set, test.says, err)
		}
	}
}

func TestHelmToggles(t *testing.T) {
	t.Run("no CRDs", func(t *testing.T) {
		got := helm(t, "--set", "crds.install=false")
		if crds := got.ofKind("CustomResourceDefinition"); len(crds) != 0 || len(got) == 0 {
			t.Errorf("%d CRDs in %d objects", len(crds), len(got))
		}
	})
	t.Run("no metrics", func(t *testing.T) {
		got := helm(t, "--set", "metrics.enabled=false")
		for key := range got {
			if strings.Contains(key, "metrics") {
				t.Errorf("still rendered: %s", key)
			}
		}
		container := get[appsv1.Deployment](t, got, deployment).Spec.Template.Spec.Containers[0]
		if flagsOf(container)["metrics-bind-address"] != "0" || len(container.Ports) != 1 {
			t.Errorf("flags %v, ports %v", flagsOf(container), container.Ports)
		}
	})
	t.Run("other namespace", func(t *testing.T) {
		out, err := tool("helm", "template", release, "charts/storagebench", "--namespace", "elsewhere")
		if err != nil {
			t.Fatal(err)
		}
		rendered := parse(t, out)
		if len(rendered) < 6 {
			t.Errorf("only %d objects", len(rendered))
		}
		for key, object := range rendered {
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), namespace) {
				t.Errorf("%s still names %s", key, namespace)
			}
		}
	})
}

// The agent gets what the admin allows, and nothing by default.
func TestHelmAgentIsAllowedNothing(t *testing.T) {
	rendered := helm(t, "--set", "agent.enabled=true")
	agent := get[appsv1.DaemonSet](t, rendered, "DaemonSet storagebench-agent/storagebench-agent").Spec.Template.Spec.Containers[0]
	if diff := cmp.Diff(map[string]string{"health-probe-bind-address": ":8081"}, flagsOf(agent)); diff != "" {
		t.Errorf("flags by default (-want +got):\n%s", diff)
	}
}

// values.yaml and values.schema.json have the same keys. The generator of the page for values.yaml requires a comment for each.
func TestSchemaHasAllValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(cluster.Root(), "charts", "storagebench", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	schema := readSchema(t)
	want := schemaKeys(schema, "")
	sort.Strings(want)
	got := valueKeys(values, schema, "")
	sort.Strings(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values.schema.json (-) and values.yaml (+) have different keys:\n%s", diff)
	}
}

func readSchema(t *testing.T) (schema map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Root(), "charts", "storagebench", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// schemaKeys lists the paths of a JSON schema's closed objects.
func schemaKeys(schema map[string]any, at string) []string {
	var keys []string
	properties, _ := schema["properties"].(map[string]any)
	for name, child := range properties {
		if at+name == "global" { // Helm's own
			continue
		}
		keys = append(keys, at+name)
		keys = append(keys, schemaKeys(child.(map[string]any), at+name+".")...)
	}
	return keys
}

// valueKeys lists the paths of the values, down to the maps whose keys the schema does not name.
func valueKeys(values, schema map[string]any, at string) []string {
	var keys []string
	properties, _ := schema["properties"].(map[string]any)
	for name, child := range values {
		keys = append(keys, at+name)
		inner, isMap := child.(map[string]any)
		if below, ok := properties[name].(map[string]any); ok && isMap && below["properties"] != nil {
			keys = append(keys, valueKeys(inner, below, at+name+".")...)
		}
	}
	return keys
}
