package cli

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
)

// unpacked returns the files in an archive.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(zip)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "storagebench/")] = string(text)
	}
}

// hushedProbe has a secret in each of its fields that can have one.
func hushedProbe() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", HTTPHeaders: []corev1.HTTPHeader{
		{Name: "Authorization", Value: "hush"}}}}}
}

// withSidecar adds containers to a pod as admission webhooks do, with the same word.
func withSidecar(spec *corev1.PodSpec, status *corev1.PodStatus) {
	hushed := corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/?token=hush", HTTPHeaders: []corev1.HTTPHeader{{Value: "hush"}}}}
	asking := func(word string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ask", "--password=" + word}}}}
	}
	sidecar := corev1.Container{Name: "proxy", Image: "mesh/proxy:1", Command: []string{"proxy", "hush"}, Args: []string{"--token=hush"},
		Env:           []corev1.EnvVar{{Name: "FLAG_TOKEN", Value: "hush"}},
		LivenessProbe: asking("hush"), ReadinessProbe: asking("hush"), StartupProbe: hushedProbe(),
		Lifecycle: &corev1.Lifecycle{PostStart: &hushed, PreStop: &hushed}}
	spec.Containers = append(spec.Containers, sidecar)
	spec.InitContainers = append(spec.InitContainers, sidecar)
	spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Args: []string{"hush"}}})
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "injected", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: "files.example", VolumeAttributes: map[string]string{"mountOptions": "password=hush"}}}})
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "hush"}}
	status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: ended,
		LastTerminationState: ended})
	status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: ended})
	status.EphemeralContainerStatuses = append(status.EphemeralContainerStatuses, corev1.ContainerStatus{Name: "debugger", State: ended})
}

// secretive returns a cluster that has the word "hush" wherever a secret or an address could be.
func secretive(t *testing.T) *hub {
	t.Helper()
	i := installed(t)
	one := benchmarkNamed("lab", "quickstart", running)
	one.Annotations = map[string]string{"vault.example/token": "hush", "storagebench.dev/rerun": "2"}
	pod := podOf(one, "quickstart-1-000", "read", 1)
	pod.Spec.Containers = []corev1.Container{{Name: "runner", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "hush"},
		{Name: "FROM", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "password"}}}},
		Ports: []corev1.ContainerPort{{ContainerPort: 1, HostIP: "hush"}}}}
	withSidecar(&pod.Spec, &pod.Status)
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: "hush", Hostnames: []string{"hush"}}}
	pod.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"hush"}}
	pod.Status.HostIP, pod.Status.HostIPs = "hush", []corev1.HostIP{{IP: "hush"}}
	pod.Status.PodIP, pod.Status.PodIPs = "hush", []corev1.PodIP{{IP: "hush"}}
	i.manager.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PROXY", Value: "http://hush@proxy"},
		{Name: "FLAG_MAX_HOLD", Value: "12h"}}
	i.manager.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "hush"}
	i.manager.Spec.Template.Spec.Containers[0].LivenessProbe = hushedProbe()
	withSidecar(&i.manager.Spec.Template.Spec, &corev1.PodStatus{})
	withSidecar(&i.agent.Spec.Template.Spec, &corev1.PodStatus{})
	i.class.MountOptions = []string{"noatime", "username=hush", "vers=3,password=hush"}
	i.class.Parameters = map[string]string{"secretKey": "hush", "recordsize": "8k"}
	i.nodes[0].Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "hush"}}
	i.nodes[0].Spec.PodCIDR, i.nodes[0].Spec.PodCIDRs = "hush", []string{"hush"}
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "lab", Name: name, Labels: labels}
	}
	of := map[string]string{v1alpha1.LabelBenchmarkUID: string(one.UID)}
	phase := maps.Clone(of)
	phase[v1alpha1.LabelPhase] = "read"
	event := func(name, kind, about, version string) *corev1.Event {
		return &corev1.Event{ObjectMeta: meta(name, nil), InvolvedObject: corev1.ObjectReference{APIVersion: version, Kind: kind, Name: about}}
	}
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "storagebench-agent", Name: "agent-x7", Labels: i.agent.Labels},
		Spec: corev1.PodSpec{ServiceAccountName: "storagebench-agent", Containers: []corev1.Container{{Name: "agent"}}}}
	withSidecar(&own.Spec, &own.Status)
	foreign := own.DeepCopy()
	foreign.Namespace, foreign.Name, foreign.Spec.ServiceAccountName = "team-b", "hush", "default"
	i.others = append(i.lookalikes(), one, pod, own, foreign,
		&v1alpha1.BenchmarkRun{ObjectMeta: meta("quickstart-1-000", of)},
		&corev1.ConfigMap{ObjectMeta: meta("quickstart-1", of), Data: map[string]string{"report.md": "numbers"}},
		&corev1.ConfigMap{ObjectMeta: meta("quickstart-1-000-read", phase), Data: map[string]string{"phase.json": "much"}},
		&corev1.ConfigMap{ObjectMeta: meta("application", nil), Data: map[string]string{"password": "hush"}},
		&corev1.Secret{ObjectMeta: meta("secret", of), StringData: map[string]string{"password": "hush"}},
		event("ours", kindBenchmark, "quickstart", v1alpha1.GroupVersion.String()),
		event("of-a-pod", "Pod", "quickstart-1-000-read-x7", "v1"), event("of-others", "Pod", "hush", "v1"))
	h := i.hub(t)
	h.logged(map[string]string{"quickstart-1-000-read": "\x1b]0;owned\a\x1b[2Jthe log\nand \xff more\n",
		"agent-x7/agent": "the log of an agent", "agent-x7/proxy": "hush", "quickstart-1-000-read/proxy": "hush"})
	return h
}

func TestCollect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "support.tar.gz")
	code, out, problems := called(t, secretive(t), "collect", "-o", path)
	if code != ExitPassed || problems != "" {
		t.Fatalf("%d %s\n%s", code, problems, out)
	}
	files := unpacked(t, path)
	for name, text := range files {
		if strings.Contains(text, "hush") {
			t.Errorf("%s has a secret:\n%s", name, text)
		}
	}
	want := []string{"benchmarkpool/sb-node-a.yaml", "benchmarkpool/sb-node-b.yaml", "benchmarkrun/quickstart-1-000.yaml",
		"configmap/quickstart-1.yaml", "daemonset/storagebench-agent/storagebench-agent.yaml",
		"deployment/storagebench-system/storagebench-manager.yaml", "doctor.yaml", "event/of-a-pod.yaml", "event/ours.yaml", "missing.txt",
		"node/node-a.yaml", "node/node-b.yaml", "pod-agent/storagebench-agent/agent-x7-agent.log",
		"pod-agent/storagebench-agent/agent-x7.yaml",
		"pod/quickstart-1-000-read-runner.log", "pod/quickstart-1-000-read.yaml",
		"storagebenchmark/quickstart.yaml", "storageclass/fast.yaml", "version.yaml"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s\n%s", diff, files["missing.txt"])
	}
	for name, all := range map[string][]string{
		"storagebenchmark/quickstart.yaml":                         {`storagebench.dev/rerun: "2"`},
		"deployment/storagebench-system/storagebench-manager.yaml": {"value: 12h", "- --agent", "path: /healthz"},
		"storageclass/fast.yaml":                                   {"recordsize: 8k", "- noatime\n", "- username=(left out)\n"},
		"pod/quickstart-1-000-read.yaml":                           {"value: (left out)", "- (left out)", "mesh/proxy:1", "exitCode: 3"},
		"pod/quickstart-1-000-read-runner.log":                     {"]0;owned[2Jthe log\nand ? more\n"},
		"doctor.yaml":                                              {"check: api"},
		"version.yaml":                                             {"plugin: v1.2.3"},
	} {
		for _, says := range all {
			if !strings.Contains(files[name], says) {
				t.Errorf("%s does not say %q:\n%s", name, says, files[name])
			}
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	if code, _, problems := called(t, secretive(t), "collect", "-o", path); code != ExitRefused || !strings.Contains(problems, "exists") {
		t.Errorf("an archive is overwritten: %d %s", code, problems)
	}
}

// TestOwnContainers: the names by which an archive selects arguments and logs are those of the pods.
func TestOwnContainers(t *testing.T) {
	for path, name := range map[string]string{
		"../../config/manager/deployment.yaml": partManager, "../../config/agent/daemonset.yaml": partAgent,
		"../../charts/storagebench/templates/deployment.yaml": partManager, "../../charts/storagebench/templates/agent.yaml": partAgent} {
		if text := read(t, path); !strings.Contains(text, "      containers:\n      - name: "+name+"\n") {
			t.Errorf("%s has no container %s", path, name)
		}
	}
	if runnerContainer != runs.ContainerName {
		t.Errorf("the container of a phase is %s, and not %s", runs.ContainerName, runnerContainer)
	}
	for _, kind := range collected {
		if slices.Contains([]string{"Pod", "Job", "Deployment", "DaemonSet"}, kind.GVK.Kind) != (kind.container != "") {
			t.Errorf("%s%s: own container %q", kind.GVK.Kind, kind.suffix, kind.container)
		}
	}
}

// TestCollectAsUser: a user of the namespace gets the objects of the namespace, and the archive says what is missing.
func TestCollectAsUser(t *testing.T) {
	path, h := filepath.Join(t.TempDir(), "support.tar.gz"), secretive(t)
	h.asUser()
	code, out, problems := called(t, h, "collect", "-o", path)
	if code != ExitPassed || problems != "" || !strings.Contains(out, "left out: Node objects: you may not read them; a cluster admin can") {
		t.Fatalf("%d %s\n%s", code, problems, out)
	}
	files := unpacked(t, path)
	if files["storagebenchmark/quickstart.yaml"] == "" || files["node/node-a.yaml"] != "" ||
		!strings.Contains(files["missing.txt"], "Node objects: you may not read them") {
		t.Errorf("%v", slices.Sorted(maps.Keys(files)))
	}
}

// TestCollectNothing: without a cluster no archive is created.
func TestCollectNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "support.tar.gz")
	app, _, _ := testApp()
	app.Connect = func(Connection) (*Cluster, error) { return nil, exitf(ExitUnavailable, "no cluster") }
	if code := app.Main(t.Context(), []string{"collect", "-o", path}); code != ExitUnavailable {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is an archive: %v", err)
	}
}
