package delivery

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

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
		{"limits.linePerNamespace=-1", "linePerNamespace"},
		{"limits.priorityClasses={System Critical}", "priorityClasses"},
		{"limits.tolerationKeys={*}", "tolerationKeys"},
		{"agent.allowDevices={/dev/sda}", "allowDevices"}, // a name that moves to another disk
		{"agent.allowDevices={*}", "allowDevices"},
		{"agent.allowParameters={nvme_x=1}", "allowParameters"},
		{"agent.allowParameters={zfs_txg_timeout}", "allowParameters"}, // to which values?
		{"agent.allowParameters={zfs_txg_timeout=1..}", "allowParameters"},
		{"agent.allowParameters={zfs_txg_timeout=1|*}", "allowParameters"},
		{"metrics.enabled=false,metrics.serviceMonitor.enabled=true", "needs metrics.enabled"},
		{"metrics.enabled=false,metrics.prometheusRule.enabled=true", "needs metrics.enabled"},
		{"agent.metrics.enabled=true", "needs agent.enabled"},
		{"agent.enabled=true,agent.metrics.serviceMonitor.enabled=true", "needs agent.metrics.enabled"},
		{"agent.enabled=true,agent.metrics.enabled=true,metrics.enabled=false", "needs metrics.enabled"},
		{"agent.metrics.port=8081", "port"},
		{"namespaces={Team A}", "namespaces"},
		{"namespaces={team-a}", "write metrics.enabled: false"},
		{"namespaces={team-a},metrics.enabled=false,agent.enabled=true", "agent.enabled needs rights in the whole cluster"},
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
		if !slices.Contains(container.Args, "--metrics-bind-address=0") || len(container.Ports) != 1 {
			t.Errorf("args %v, ports %v", container.Args, container.Ports)
		}
	})
	t.Run("metrics port", func(t *testing.T) {
		got := helm(t, "--set", "metrics.port=9443")
		container := get[appsv1.Deployment](t, got, deployment).Spec.Template.Spec.Containers[0]
		service := get[corev1.Service](t, got, "Service "+namespace+"/storagebench-metrics")
		if !slices.Contains(container.Args, "--metrics-bind-address=:9443") || container.Ports[1].ContainerPort != 9443 ||
			service.Spec.Ports[0].Port != 9443 {
			t.Errorf("args %v, ports %v, service %v", container.Args, container.Ports, service.Spec.Ports)
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

// Every value that shapes the pod arrives in the pod.
func TestHelmPodValues(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	text := `
image: {repository: registry.example/manager, tag: v1, pullPolicy: Always}
runnerImage: {repository: registry.example/runner, tag: v2}
postgresImage: {repository: registry.example/postgres, tag: v3}
imagePullSecrets: [{name: registry}]
replicas: 2
resources: {requests: {cpu: 1}}
nodeSelector: {role: infra}
tolerations: [{key: infra, operator: Exists, effect: NoSchedule}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
priorityClassName: important
podAnnotations: {note: "1"}
logLevel: debug
logFormat: json
limits: {maxHold: 12h, nodesPerNamespace: 2, maxPriority: {team-a: 10, "*": 1}, queueWeights: {team-a: 2}, priorityClasses: [bench, bench-low], tolerationKeys: [dedicated, example.com/*]}
`
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := get[appsv1.Deployment](t, helm(t, "--values", values), deployment)
	pod := got.Spec.Template.Spec
	container := pod.Containers[0]
	for name, check := range map[string]bool{
		"image":             container.Image == "registry.example/manager:v1" && container.ImagePullPolicy == "Always",
		"runnerImage":       slices.Contains(container.Args, "--runner-image=registry.example/runner:v2"),
		"postgresImage":     slices.Contains(container.Args, "--postgres-image=registry.example/postgres:v3"),
		"imagePullSecrets":  len(pod.ImagePullSecrets) == 1 && pod.ImagePullSecrets[0].Name == "registry",
		"replicas":          *got.Spec.Replicas == 2,
		"resources":         container.Resources.Requests.Cpu().Value() == 1,
		"nodeSelector":      pod.NodeSelector["role"] == "infra",
		"tolerations":       len(pod.Tolerations) == 1 && pod.Tolerations[0].Key == "infra",
		"affinity":          pod.Affinity != nil && pod.Affinity.NodeAffinity != nil,
		"priorityClassName": pod.PriorityClassName == "important",
		"podAnnotations":    got.Spec.Template.Annotations["note"] == "1",
		"logLevel":          slices.Contains(container.Args, "--zap-log-level=debug"),
		"limits.maxHold":    slices.Contains(container.Args, "--max-hold=12h"),
		"limits": slices.Contains(container.Args, "--nodes-per-namespace=2") &&
			slices.Contains(container.Args, "--line-per-namespace=4"),
		"limits.shares": slices.Contains(container.Args, "--max-priority=*=1,team-a=10") &&
			slices.Contains(container.Args, "--queue-weights=team-a=2"),
		"limits.classes": slices.Contains(container.Args, "--priority-classes=bench,bench-low"),
		"limits.keys":    slices.Contains(container.Args, "--toleration-keys=dedicated,example.com/*"),
		"logFormat":      slices.Contains(container.Args, "--zap-encoder=json"),
	} {
		if !check {
			t.Errorf("%s does not arrive: %+v", name, got.Spec)
		}
	}
}

// The agent gets what the admin allows, and nothing by default.
func TestHelmAgentValues(t *testing.T) {
	agent := func(values string) *appsv1.DaemonSet {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
			t.Fatal(err)
		}
		return get[appsv1.DaemonSet](t, helm(t, "--values", file), "DaemonSet elsewhere/storagebench-agent")
	}
	for _, argument := range agent("agent: {enabled: true, namespace: elsewhere}").Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(argument, "--allow-device") || strings.HasPrefix(argument, "--multihost") {
			t.Errorf("it is not off by default: %s", argument)
		}
	}
	pod := agent(`
agent:
  enabled: true
  namespace: elsewhere
  allowDevices: [lab=/dev/disk/by-id/nvme-bench-*, /dev/disk/by-path/pci-0000-*]
  allowParameters: [zfs_txg_timeout=1..60|0, zfs_arc_max=*]
  multihost: true
  image: {repository: registry.example/agent, tag: v4}
  tolerations: [{key: storage, operator: Exists}]
  podAnnotations: {note: "1"}
imagePullSecrets: [{name: registry}]
logLevel: debug
logFormat: json
`).Spec.Template
	container := pod.Spec.Containers[0]
	want := []string{"--health-probe-bind-address=:8081", "--allow-device=lab=/dev/disk/by-id/nvme-bench-*",
		"--allow-device=/dev/disk/by-path/pci-0000-*", "--allow-parameter=zfs_txg_timeout=1..60|0", "--allow-parameter=zfs_arc_max=*",
		"--multihost", "--zap-log-level=debug", "--zap-encoder=json"}
	if diff := cmp.Diff(want, container.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if container.Image != "registry.example/agent:v4" || len(pod.Spec.Tolerations) != 1 || pod.Annotations["note"] != "1" ||
		len(pod.Spec.ImagePullSecrets) != 1 {
		t.Errorf("a value does not arrive: %+v", pod)
	}
}

// values.yaml, its comments and values.schema.json know the same keys.
func TestValuesAreDocumented(t *testing.T) {
	folder := filepath.Join(cluster.Root(), "charts", "storagebench")
	text, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values, schema map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	want := schemaKeys(schema, "")
	sort.Strings(want)
	got := valueKeys(values, schema, "")
	sort.Strings(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values.schema.json (-) and values.yaml (+) have different keys:\n%s", diff)
	}
	lines := strings.Split(string(text), "\n")
	key := regexp.MustCompile(`^( *)[a-zA-Z]+:`)
	for i, line := range lines {
		inner := strings.HasPrefix(line, "    ") // below resources, which Kubernetes documents
		opens := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  ") && strings.Contains(lines[i+1], "#")
		if key.MatchString(line) && !inner && !opens && !strings.Contains(lines[i-1], "#") &&
			!regexp.MustCompile(`^  (requests|limits):`).MatchString(line) {
			t.Errorf("values.yaml line %d has no comment above it: %s", i+1, line)
		}
	}
}

// schemaKeys lists the paths of a JSON schema's closed objects.
func schemaKeys(schema map[string]any, at string) []string {
	var keys []string
	properties, _ := schema["properties"].(map[string]any)
	for name, child := range properties {
		if at+name == "global" || at == "resources." { // Helm's own, and Kubernetes' own
			continue
		}
		keys = append(keys, at+name)
		keys = append(keys, schemaKeys(child.(map[string]any), at+name+".")...)
	}
	return keys
}

// valueKeys lists the paths of the values down to where the schema has no names of its own.
func valueKeys(values, schema map[string]any, at string) []string {
	var keys []string
	properties, _ := schema["properties"].(map[string]any)
	for name, child := range values {
		if at == "resources." {
			continue
		}
		keys = append(keys, at+name)
		inner, isMap := child.(map[string]any)
		if below, ok := properties[name].(map[string]any); ok && isMap && below["properties"] != nil {
			keys = append(keys, valueKeys(inner, below, at+name+".")...)
		}
	}
	return keys
}
