package delivery

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/internal/flagenv"
)

const (
	account       = "ServiceAccount " + namespace + "/storagebench-manager"
	agentSet      = "DaemonSet elsewhere/storagebench-agent"
	agentSubject  = "ServiceAccount elsewhere/storagebench-agent"
	managerPolicy = "NetworkPolicy " + namespace + "/storagebench-manager"
)

// everythingOn enables all parts, so that the other values have something to change.
const everythingOn = `
agent: {enabled: true, namespace: elsewhere, metrics: {enabled: true, serviceMonitor: {enabled: true}}}
metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboards: {enabled: true}}
networkPolicy: {enabled: true}
podDisruptionBudget: {enabled: true}
`

// arrivals says where each value of the chart arrives that is more than a switch: the JSON that it adds to an object.
var arrivals = []struct{ value, set, object, adds string }{
	{"image.repository", "image: {repository: registry.example/manager}", deployment, `"image":"registry.example/manager:v1"`},
	{"image.tag", "image: {tag: v1}", deployment, `manager:v1"`},
	{"image.pullPolicy", "image: {pullPolicy: Always}", deployment, `"imagePullPolicy":"Always"`},
	{"runnerImage.repository", "runnerImage: {repository: registry.example/runner}", deployment,
		setting("runner-image", "registry.example/runner:v2")},
	{"runnerImage.tag", "runnerImage: {tag: v2}", deployment, `runner:v2"`},
	{"postgresImage.repository", "postgresImage: {repository: registry.example/postgres}", deployment,
		setting("postgres-image", "registry.example/postgres:v3")},
	{"postgresImage.tag", "postgresImage: {tag: v3}", deployment, `postgres:v3"`},
	{"imagePullSecrets", "imagePullSecrets: [{name: registry}]", deployment, `"imagePullSecrets":[{"name":"registry"}]`},
	{"imagePullSecrets", "", agentSet, `"imagePullSecrets":[{"name":"registry"}]`},
	{"replicas", "replicas: 2", deployment, `"replicas":2`},
	{"resources", "resources: {requests: {cpu: 1}}", deployment, `"requests":{"cpu":1,`},
	{"nodeSelector", "nodeSelector: {role: infra}", deployment, `"nodeSelector":{"role":"infra"}`},
	{"tolerations", "tolerations: [{key: infra, operator: Exists}]", deployment, `"tolerations":[{"key":"infra","operator":"Exists"}]`},
	{"affinity", "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}", deployment,
		`"affinity":{"podAntiAffinity":`},
	{"priorityClassName", "priorityClassName: important", deployment, `"priorityClassName":"important"`},
	{"podAnnotations", `podAnnotations: {note: "1"}`, deployment, `"annotations":{"note":"1"}`},
	{"serviceAccountAnnotations", `serviceAccountAnnotations: {role: "a"}`, account, `"annotations":{"role":"a"}`},
	{"commonLabels", `commonLabels: {team: storage}`, account, `"team":"storage"`},
	{"extraArgs", "extraArgs: [--concurrency=8]", deployment, `"args":["--leader-elect","--health-probe-bind-address=:8081","--concurrency=8"]`},
	{"extraEnv", "extraEnv: [{name: GOMEMLIMIT, value: 200MiB}]", deployment, `{"name":"GOMEMLIMIT","value":"200MiB"}`},
	{"logLevel", "logLevel: debug", deployment, setting("zap-log-level", "debug")},
	{"logLevel", "", agentSet, setting("zap-log-level", "debug")},
	{"logFormat", "logFormat: json", deployment, setting("zap-encoder", "json")},
	{"logFormat", "", agentSet, setting("zap-encoder", "json")},
	{"limits.maxHold", "limits: {maxHold: 12h}", deployment, setting("max-hold", "12h")},
	{"limits.maxStartDeadline", "limits: {maxStartDeadline: 2h}", deployment, setting("max-start-deadline", "2h")},
	{"limits.teardownGrace", "limits: {teardownGrace: 6m}", deployment, setting("teardown-grace", "6m")},
	{"limits.nodesPerNamespace", "limits: {nodesPerNamespace: 0}", deployment, setting("nodes-per-namespace", "0")},
	{"limits.benchmarksPerNamespace", "limits: {benchmarksPerNamespace: 100000}", deployment, setting("benchmarks-per-namespace", "100000")},
	{"limits.keepPools", "limits: {keepPools: false}", deployment, setting("keep-pools", "false")},
	{"limits.maxPriority", `limits: {maxPriority: {team-a: 10, "*": 1}}`, deployment, setting("max-priority", "*=1,team-a=10")},
	{"limits.queueWeights", "limits: {queueWeights: {team-a: 2}}", deployment, setting("queue-weights", "team-a=2")},
	{"limits.priorityClasses", "limits: {priorityClasses: [bench, bench-low]}", deployment, setting("priority-classes", "bench,bench-low")},
	{"limits.tolerationKeys", "limits: {tolerationKeys: [dedicated, example.com/*]}", deployment,
		setting("toleration-keys", "dedicated,example.com/*")},
	{"metrics.port", "metrics: {port: 9443}", deployment, setting("metrics-bind-address", ":9443")},
	{"metrics.port", "", deployment, `"containerPort":9443`},
	{"metrics.port", "", "Service " + namespace + "/storagebench-metrics", `"port":9443`},
	{"metrics.benchmarks", "metrics: {benchmarks: 10000}", deployment, setting("benchmark-metrics", "10000")},
	{"metrics.serviceMonitor.labels", "metrics: {serviceMonitor: {labels: {prometheus: main}}}",
		"ServiceMonitor " + namespace + "/storagebench-metrics", `"prometheus":"main"`},
	{"metrics.prometheusRule.labels", "metrics: {prometheusRule: {labels: {role: alerts}}}",
		"PrometheusRule " + namespace + "/storagebench", `"role":"alerts"`},
	{"metrics.dashboards.labels", "metrics: {dashboards: {labels: {folder: bench}}}",
		"ConfigMap " + namespace + "/storagebench-dashboard-fleet", `"folder":"bench"`},
	{"networkPolicy.metricsFrom", "networkPolicy: {metricsFrom: [{podSelector: {matchLabels: {app: prometheus}}}]}", managerPolicy,
		`"ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"prometheus"}}}],"ports":[{"port":"metrics","protocol":"TCP"}]}]`},
	{"networkPolicy.metricsFrom", "", "NetworkPolicy elsewhere/storagebench-agent", `"app":"prometheus"`},
	{"networkPolicy.apiServerPorts", "networkPolicy: {apiServerPorts: [8443]}", managerPolicy,
		`"egress":[{"ports":[{"port":8443,"protocol":"TCP"}]}]`},
	{"agent.allowDevices", `agent: {allowDevices: [lab=/dev/disk/by-id/nvme-bench-*, "/dev/disk/by-path/pci-0000-*"]}`, agentSet,
		setting("allow-device", `lab=/dev/disk/by-id/nvme-bench-*\n/dev/disk/by-path/pci-0000-*`)},
	{"agent.allowParameters", `agent: {allowParameters: [zfs_txg_timeout=1..60|0, zfs_arc_max=*]}`, agentSet,
		setting("allow-parameter", `zfs_txg_timeout=1..60|0\nzfs_arc_max=*`)},
	{"agent.multihost", "agent: {multihost: true}", agentSet, setting("multihost", "true")},
	{"agent.image.repository", "agent: {image: {repository: registry.example/agent}}", agentSet, `"image":"registry.example/agent:v4"`},
	{"agent.image.tag", "agent: {image: {tag: v4}}", agentSet, `agent:v4"`},
	{"agent.nodeSelector", "agent: {nodeSelector: {disks: fast}}", agentSet, `"nodeSelector":{"disks":"fast","storagebench.dev/lab":"true"}`},
	{"agent.tolerations", "agent: {tolerations: [{key: storage, operator: Exists}]}", agentSet, `"tolerations":[{"key":"storage"`},
	{"agent.priorityClassName", "agent: {priorityClassName: system-node-critical}", agentSet, `"priorityClassName":"system-node-critical"`},
	{"agent.resources", "agent: {resources: {limits: {memory: 1Gi}}}", agentSet, `"limits":{"memory":"1Gi"}`},
	{"agent.podAnnotations", `agent: {podAnnotations: {note: "2"}}`, agentSet, `"annotations":{"note":"2"}`},
	{"agent.serviceAccountAnnotations", `agent: {serviceAccountAnnotations: {role: "b"}}`, agentSubject, `"annotations":{"role":"b"}`},
	{"agent.extraArgs", "agent: {extraArgs: [--zap-devel]}", agentSet, `"args":["--health-probe-bind-address=:8081","--zap-devel"]`},
	{"agent.extraEnv", "agent: {extraEnv: [{name: GOMEMLIMIT, value: 60MiB}]}", agentSet, `{"name":"GOMEMLIMIT","value":"60MiB"}`},
	{"agent.metrics.port", "agent: {metrics: {port: 9444}}", agentSet, setting("metrics-bind-address", ":9444")},
	{"agent.metrics.port", "", "Service elsewhere/storagebench-agent-metrics", `"port":9444`},
	{"agent.metrics.serviceMonitor.labels", "agent: {metrics: {serviceMonitor: {labels: {prometheus: main}}}}",
		"ServiceMonitor elsewhere/storagebench-agent-metrics", `"prometheus":"main"`},
}

// switches says which object a value adds or removes.
var switches = []struct {
	value, set, object string
	before, after      bool
}{
	{"agent.enabled", "agent.enabled=true", "DaemonSet storagebench-agent/storagebench-agent", false, true},
	{"agent.namespace", "agent.enabled=true,agent.namespace=elsewhere", agentSet, false, true},
	{"agent.metrics.enabled", "agent.enabled=true,agent.metrics.enabled=true", "Service storagebench-agent/storagebench-agent-metrics", false, true},
	{"agent.metrics.serviceMonitor.enabled", "agent.enabled=true,agent.metrics.enabled=true,agent.metrics.serviceMonitor.enabled=true",
		"ServiceMonitor storagebench-agent/storagebench-agent-metrics", false, true},
	{"metrics.enabled", "metrics.enabled=false", "Service " + namespace + "/storagebench-metrics", true, false},
	{"metrics.serviceMonitor.enabled", "metrics.serviceMonitor.enabled=true", "ServiceMonitor " + namespace + "/storagebench-metrics", false, true},
	{"metrics.prometheusRule.enabled", "metrics.prometheusRule.enabled=true", "PrometheusRule " + namespace + "/storagebench", false, true},
	{"metrics.dashboards.enabled", "metrics.dashboards.enabled=true", "ConfigMap " + namespace + "/storagebench-dashboard-pools", false, true},
	{"podDisruptionBudget.enabled", "podDisruptionBudget.enabled=true", "PodDisruptionBudget " + namespace + "/storagebench-manager", false, true},
	{"networkPolicy.enabled", "networkPolicy.enabled=true", managerPolicy, false, true},
	{"networkPolicy.enabled", "networkPolicy.enabled=true,agent.enabled=true", "NetworkPolicy storagebench-agent/storagebench-agent", false, true},
	{"createNamespace", "createNamespace=true", "Namespace /" + namespace, false, true},
	{"crds.install", "crds.install=false", "CustomResourceDefinition /benchmarkpools.storagebench.dev", true, false},
	{"policies.install", "policies.install=false", "ValidatingAdmissionPolicy /storagebench-manager-objects", true, false},
	{"userRoles.install", "userRoles.install=false", "ClusterRole /storagebench-editor", true, false},
	{"clusterReads", "clusterReads=false", "ClusterRole /storagebench-manager-reads", true, false},
	{"namespaces", "namespaces={team-a},metrics.enabled=false", "Role team-a/storagebench-manager", false, true},
}

// elsewhereTested are values with a test of their own.
var elsewhereTested = []string{"crds.keep"} // TestHelmKeepsCRDs

func TestValuesArrive(t *testing.T) {
	before, after := renderedJSON(t, helm(t, valueFiles(t, everythingOn)...)), renderedJSON(t, helm(t, allValues(t)...))
	for _, one := range arrivals {
		if strings.Contains(before[one.object], one.adds) {
			t.Errorf("%s: %s has %s by default too, so this proves nothing", one.value, one.object, one.adds)
		}
		if !strings.Contains(after[one.object], one.adds) {
			t.Errorf("%s does not arrive: no %s in %s %s", one.value, one.adds, one.object, after[one.object])
		}
	}
	// The labels of the user are on all objects, and on the pod templates in them.
	labelled := 0
	for key, text := range after {
		if strings.HasPrefix(key, "CustomResourceDefinition ") {
			continue
		}
		if want := 1 + strings.Count(text, `"template":{"metadata"`); strings.Count(text, `"team":"storage"`) != want {
			t.Errorf("%s has the common label %d times, want %d", key, strings.Count(text, `"team":"storage"`), want)
		}
		labelled++
	}
	if labelled < 40 {
		t.Errorf("only %d objects", labelled)
	}
}

// A server-side apply refuses a container that has a variable twice.
func TestNoVariableIsThereTwice(t *testing.T) {
	rendered := helm(t, allValues(t)...)
	for object, pod := range map[string]corev1.PodSpec{deployment: get[appsv1.Deployment](t, rendered, deployment).Spec.Template.Spec,
		agentSet: get[appsv1.DaemonSet](t, rendered, agentSet).Spec.Template.Spec} {
		has := map[string]bool{}
		for _, variable := range pod.Containers[0].Env {
			if has[variable.Name] {
				t.Errorf("%s has %s twice", object, variable.Name)
			}
			has[variable.Name] = true
		}
		if !has["GOMEMLIMIT"] {
			t.Errorf("%s has no GOMEMLIMIT, which this is about", object)
		}
	}
}

func TestSwitches(t *testing.T) {
	standard := helm(t)
	for _, one := range switches {
		if _, is := standard[one.object]; is != one.before {
			t.Errorf("%s: by default %s is rendered: %v, want %v", one.value, one.object, is, one.before)
		}
		if _, is := helm(t, "--set", one.set)[one.object]; is != one.after {
			t.Errorf("--set %s: %s is rendered: %v, want %v", one.set, one.object, is, one.after)
		}
	}
}

// Each value has a test, and each test is for a value that exists.
func TestEveryValueHasATest(t *testing.T) {
	tested := map[string]bool{}
	for _, one := range arrivals {
		tested[one.value] = true
	}
	for _, one := range switches {
		tested[one.value] = true
	}
	for _, one := range elsewhereTested {
		tested[one] = true
	}
	all := schemaKeys(readSchema(t), "")
	for _, key := range all {
		leaf := !slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(other, key+".") })
		if leaf && !tested[key] {
			t.Errorf("no test shows what the value %s does: add it to arrivals or switches", key)
		}
		delete(tested, key)
	}
	if len(tested) > 0 || len(all) < 60 {
		t.Errorf("%d values, and tests of some that do not exist: %v", len(all), slices.Sorted(maps.Keys(tested)))
	}
}

// With all values set, the API server accepts the rendered chart without a warning. Names of namespaces do not matter here.
func testAllValuesAreValid(t *testing.T) {
	warnings := &collector{}
	warned := rest.CopyConfig(config)
	warned.WarningHandlerWithContext = warnings
	server, err := client.New(warned, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for key, object := range helm(t, allValues(t)...) {
		if strings.HasPrefix(object.GetAPIVersion(), "monitoring.coreos.com/") {
			continue // not in this API server; test/delivery/rules_test.go has promtool for the rules
		}
		if object.GetNamespace() != "" {
			object.SetNamespace(team)
		}
		err := server.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.FieldOwner("test"),
			client.ForceOwnership)
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		checked++
	}
	if checked < 40 || len(warnings.messages) != 0 {
		t.Errorf("%d objects; warnings: %q", checked, warnings.messages)
	}
}

// allValues returns the arguments that set each value of arrivals.
func allValues(t *testing.T) []string {
	t.Helper()
	texts := []string{everythingOn}
	for _, one := range arrivals {
		if one.set != "" {
			texts = append(texts, one.set)
		}
	}
	return valueFiles(t, texts...)
}

// valueFiles writes files of values, and returns the arguments of helm for them: it merges the files.
func valueFiles(t *testing.T, texts ...string) (arguments []string) {
	t.Helper()
	folder := t.TempDir()
	for i, text := range texts {
		path := filepath.Join(folder, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, "--values", path)
	}
	return arguments
}

func renderedJSON(t *testing.T, rendered objects) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for key, object := range rendered {
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(object.Object); err != nil {
			t.Fatal(err)
		}
		texts[key] = text.String()
	}
	return texts
}

// setting returns the JSON of the variable that sets a flag.
func setting(flag, value string) string {
	return `{"name":"` + flagenv.Variable(flag) + `","value":"` + value + `"}`
}

// flagsOf returns the flags of a container: its arguments, and the variables that set some.
func flagsOf(container corev1.Container) map[string]string {
	flags := map[string]string{}
	for _, variable := range container.Env {
		if name, is := strings.CutPrefix(variable.Name, flagenv.Prefix); is {
			flags[strings.ToLower(strings.ReplaceAll(name, "_", "-"))] = variable.Value
		}
	}
	for _, argument := range container.Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		flags[name] = value
	}
	return flags
}
